//! Requests and replies of Construct, Call and Invoke (docs/spec/provider-protocol.md#3.10 and #3.16).

use std::collections::BTreeMap;
use std::sync::Arc;

use pulumi_proto::duration::Timeouts;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;

use super::check::CheckFailure;

/// Information about the run, sent in Construct and Call.
#[derive(Clone, Debug, Default)]
pub struct RunInfo {
    /// Project name.
    pub project: String,
    /// Stack name.
    pub stack: String,
    /// Stack configuration: values by `namespace:name`.
    pub config: BTreeMap<String, String>,
    /// Keys of `config` whose values are secret (Construct only).
    pub config_secret_keys: Vec<String>,
    /// True in a preview.
    pub dry_run: bool,
    /// Maximum number of parallel operations.
    pub parallel: i32,
    /// Address of the resource monitor, `host:port`; `None` in [`Monitor::run`](crate::host::Monitor::run).
    pub monitor_endpoint: Option<String>,
    /// Organization name (Construct only).
    pub organization: String,
}

/// Input of Call.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// Information about the run.
    pub run: RunInfo,
    /// Token of the method.
    pub token: String,
    /// Arguments; the receiver has the key `__self__`.
    pub arguments: Arc<PropertyMap>,
    /// URNs that each argument depends on.
    pub argument_dependencies: BTreeMap<String, Vec<Urn>>,
}

/// Reply of Call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallReply {
    /// Result of the method. Must not be used if there are failures.
    pub result: PropertyMap,
    /// URNs that each property of the result depends on.
    pub dependencies: BTreeMap<String, Vec<Urn>>,
    /// Invalid arguments.
    pub failures: Vec<CheckFailure>,
}

/// Input of Construct.
#[derive(Clone, Debug)]
pub struct ConstructRequest {
    /// Information about the run.
    pub run: RunInfo,
    /// Type of the component.
    pub type_token: String,
    /// Name of the component.
    pub name: String,
    /// Parent of the component.
    pub parent: Option<Urn>,
    /// Inputs of the program.
    pub inputs: Arc<PropertyMap>,
    /// URNs that each input depends on.
    pub input_dependencies: BTreeMap<String, Vec<Urn>>,
    /// Provider references by package.
    pub providers: BTreeMap<String, String>,
    /// Resources that the component depends on.
    pub dependencies: Vec<Urn>,
    /// Other resource options.
    pub options: ResourceOptions,
}

/// Resource options, sent in Construct and in registrations by component plugins.
#[derive(Clone, Debug, Default)]
pub struct ResourceOptions {
    /// Former identities of the resource.
    pub aliases: Vec<Alias>,
    /// Reject deletion of the resource.
    pub protect: Option<bool>,
    /// Outputs to mark as secret.
    pub additional_secret_outputs: Vec<String>,
    /// Limits on the duration of operations.
    pub custom_timeouts: Timeouts,
    /// Resource whose deletion implies the deletion of this resource.
    pub deleted_with: Option<Urn>,
    /// Delete before replacing.
    pub delete_before_replace: Option<bool>,
    /// Property paths whose changes are ignored.
    pub ignore_changes: Vec<String>,
    /// Property paths whose changes force replacement.
    pub replace_on_changes: Vec<String>,
    /// Remove the resource from the state without calling Delete.
    pub retain_on_delete: Option<bool>,
    /// Resources whose replacement forces replacement of this resource.
    pub replace_with: Vec<Urn>,
    /// Value whose change forces replacement.
    pub replacement_trigger: Option<PropertyValue>,
}

/// Former identity of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alias {
    /// Complete URN.
    Urn(Urn),
    /// Parts of the identity that differ. A missing part equals the current one.
    Spec {
        /// Former name.
        name: Option<String>,
        /// Former type.
        type_token: Option<String>,
        /// Former stack.
        stack: Option<String>,
        /// Former project.
        project: Option<String>,
        /// Former parent.
        parent: AliasParent,
    },
}

/// Former parent in an alias.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AliasParent {
    /// Current parent.
    #[default]
    Same,
    /// No parent.
    None,
    /// Resource with this URN.
    Urn(Urn),
}

/// Reply of Construct.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstructReply {
    /// URN of the component.
    pub urn: Urn,
    /// Outputs of the component.
    pub state: PropertyMap,
    /// URNs that each output depends on.
    pub state_dependencies: BTreeMap<String, Vec<Urn>>,
}

/// Input of Invoke.
#[derive(Clone, Debug)]
pub struct InvokeRequest {
    /// Token of the function.
    pub token: String,
    /// Arguments of the function. Unknown arguments are not sent.
    pub arguments: Arc<PropertyMap>,
    /// True in a preview.
    pub preview: bool,
}

/// Reply of Invoke.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InvokeReply {
    /// Result of the function; empty if there are failures.
    pub result: PropertyMap,
    /// Invalid arguments.
    pub failures: Vec<CheckFailure>,
}
