//! Requests and replies of the calls on a provider itself: capabilities, parameterization, schema and configuration
//! (docs/spec/provider-protocol.md#4).

use std::sync::Arc;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::ReferenceId;
use pulumi_proto::urn::Urn;

/// Capabilities of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Accepts secrets as tagged objects. Otherwise they are sent in plain text and marked as secret again in the
    /// replies.
    pub accept_secrets: bool,
    /// Accepts resource references. Otherwise they are sent as ids.
    pub accept_resources: bool,
    /// Accepts output values in Construct and Call.
    pub accept_outputs: bool,
    /// Accepts strings that are not UTF-8.
    pub accept_byte_strings: bool,
    /// Supports Create and Update in previews.
    pub supports_preview: bool,
    /// Accepts autonaming options in Check.
    pub supports_autonaming: bool,
}

/// Input of Parameterize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterizeRequest {
    /// Command line arguments, as in the generation of an SDK.
    Arguments(Vec<String>),
    /// Parameters from a generated SDK or from the state.
    Value {
        /// Name of the resulting package.
        name: String,
        /// Version of the resulting package; `None` if it is unknown.
        version: Option<String>,
        /// Opaque value of the parameters.
        value: Vec<u8>,
    },
}

/// Reply of Parameterize: the package that the provider serves from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterizeReply {
    /// Name of the package.
    pub name: String,
    /// Version of the package; `None` if the reply has none.
    pub version: Option<String>,
}

/// Input of GetSchema. Without a subpackage it requests the schema of the package itself.
#[derive(Clone, Debug, Default)]
pub struct SchemaRequest {
    /// Name of the parameterized package.
    pub subpackage_name: Option<String>,
    /// Version of the parameterized package.
    pub subpackage_version: Option<String>,
}

/// Input of CheckConfig. Unknowns are allowed. Secrets are sent in plain text and marked as secret again in the reply.
#[derive(Clone, Debug)]
pub struct CheckConfigRequest {
    /// URN of the provider resource.
    pub urn: Urn,
    /// Checked inputs of the last run; empty if the provider resource has none.
    pub olds: Arc<PropertyMap>,
    /// Inputs of the program.
    pub news: Arc<PropertyMap>,
}

/// Input of DiffConfig.
#[derive(Clone, Debug)]
pub struct DiffConfigRequest {
    /// URN of the provider resource.
    pub urn: Urn,
    /// Outputs of the last run.
    pub olds: Arc<PropertyMap>,
    /// Checked inputs of the last run.
    pub old_inputs: Arc<PropertyMap>,
    /// Checked inputs of this run.
    pub news: Arc<PropertyMap>,
    /// Property paths whose changes are ignored.
    pub ignore_changes: Vec<String>,
}

/// Input of Configure.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigureRequest {
    /// URN of the provider resource.
    pub urn: Urn,
    /// Id of the provider resource; unknown in a preview that would create it.
    pub id: ReferenceId,
    /// Checked inputs without `__internal`, including `version`.
    pub inputs: Arc<PropertyMap>,
}
