//! Requests and replies of Check, and the failures that every checking call returns.

use std::sync::Arc;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

/// Input of Check.
#[derive(Clone, Debug)]
pub struct CheckRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Checked inputs of the last run; empty if there was none.
    pub olds: Arc<PropertyMap>,
    /// Inputs as the program gives them.
    pub news: Arc<PropertyMap>,
    /// Seed for names and other random choices: the same in both Checks of a replacement.
    pub random_seed: [u8; 32],
    /// How the provider shall choose a name, if the user said so.
    pub autonaming: Option<Autonaming>,
    /// In a preview unknowns are sent and accepted.
    pub preview: bool,
}

/// How a provider shall choose the name of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Autonaming {
    /// Use this name, or one derived from it.
    Propose(String),
    /// Use exactly this name.
    Enforce(String),
    /// Choose no name.
    Disable,
}

/// Answer of Check and CheckConfig.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckReply {
    /// The inputs from now on, defaults added.
    pub inputs: PropertyMap,
    /// What is wrong with them; any failure fails the registration.
    pub failures: Vec<CheckFailure>,
}

/// Why inputs were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFailure {
    /// Path of the property, never empty; `None` for the resource as a whole.
    pub property: Option<String>,
    /// The provider's words.
    pub reason: String,
}

impl CheckFailure {
    /// Returns a failure with the two texts of the protocol's message, where an empty property is the whole resource.
    pub fn new(property: String, reason: String) -> Self {
        Self { property: Some(property).filter(|property| !property.is_empty()), reason }
    }
}
