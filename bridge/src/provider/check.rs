//! Request and reply of Check, and the check failures that Check, CheckConfig, Invoke and Call return.

use std::sync::Arc;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

/// Input of Check.
#[derive(Clone, Debug)]
pub struct CheckRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Checked inputs of the last run; empty if the resource has none.
    pub olds: Arc<PropertyMap>,
    /// Inputs of the program.
    pub news: Arc<PropertyMap>,
    /// Seed for names and other random values. Both Checks of a replacement have the same seed.
    pub random_seed: [u8; 32],
    /// Autonaming option; `None` leaves the name to the provider.
    pub autonaming: Option<Autonaming>,
    /// True in a preview: unknown values are sent and accepted.
    pub preview: bool,
}

/// Autonaming option of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Autonaming {
    /// Use this name, or one derived from it.
    Propose(String),
    /// Use exactly this name.
    Enforce(String),
    /// Choose no name.
    Disable,
}

/// Reply of Check and CheckConfig.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckReply {
    /// Checked inputs, with defaults added.
    pub inputs: PropertyMap,
    /// Invalid inputs. Any failure fails the registration.
    pub failures: Vec<CheckFailure>,
}

/// Reason why an input is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFailure {
    /// Path of the property, never empty; `None` for the resource as a whole.
    pub property: Option<String>,
    /// Message of the provider.
    pub reason: String,
}

impl CheckFailure {
    /// Returns a failure from the fields of `rpc::CheckFailure`, in which an empty property stands for the whole
    /// resource.
    pub fn new(property: String, reason: String) -> Self {
        Self { property: Some(property).filter(|property| !property.is_empty()), reason }
    }
}
