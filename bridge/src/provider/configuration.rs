//! Requests and replies about a provider as a whole: what it serves, what it can take, and its configuration (provider
//! protocol, section 4).

use std::sync::Arc;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::ReferenceId;
use pulumi_proto::urn::Urn;

/// What a provider can take and do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Takes secrets as tagged objects; otherwise they are sent plain and marked again in the answers.
    pub accept_secrets: bool,
    /// Takes resource references; otherwise they are sent as ids.
    pub accept_resources: bool,
    /// Takes output values in Construct and Call.
    pub accept_outputs: bool,
    /// Takes strings that are not UTF-8.
    pub accept_byte_strings: bool,
    /// Answers Create and Update in previews.
    pub supports_preview: bool,
    /// Takes autonaming options in Check.
    pub supports_autonaming: bool,
}

/// Input of Parameterize.
#[derive(Clone, Debug)]
pub enum ParameterizeRequest {
    /// Command line arguments, as when generating an SDK.
    Arguments(Vec<String>),
    /// The parameters that a generated SDK or a state carries.
    Value {
        /// Name of the resulting package.
        name: String,
        /// Version of the resulting package, where one is known.
        version: Option<String>,
        /// Opaque parameters.
        value: Vec<u8>,
    },
}

/// The package that a parameterized provider serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterizeReply {
    /// Name of the package.
    pub name: String,
    /// Version of the package, if the plugin says one.
    pub version: Option<String>,
}

/// Input of GetSchema: the schema of the package itself, unless a parameterized one is named.
#[derive(Clone, Debug, Default)]
pub struct SchemaRequest {
    /// Name of the parameterized package.
    pub subpackage_name: Option<String>,
    /// Version of the parameterized package.
    pub subpackage_version: Option<String>,
}

/// Input of CheckConfig. Unknowns are allowed, secrets travel plain and are marked again in the answer.
#[derive(Clone, Debug)]
pub struct CheckConfigRequest {
    /// URN of the provider resource.
    pub urn: Urn,
    /// Checked inputs of the last run; empty if there was none.
    pub olds: Arc<PropertyMap>,
    /// Inputs as the program gives them.
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
    /// Paths whose changes do not count.
    pub ignore_changes: Vec<String>,
}

/// Input of Configure.
#[derive(Clone, Debug)]
pub struct ConfigureRequest {
    /// URN of the provider resource.
    pub urn: Urn,
    /// Id of the provider resource; unknown in the preview that would create it.
    pub id: ReferenceId,
    /// Checked inputs without `__internal`; `version` included.
    pub inputs: Arc<PropertyMap>,
}
