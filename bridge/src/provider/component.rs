//! What components are asked, and what they answer: Construct and Call (provider protocol, sections 3.10 and 3.16).

use std::collections::BTreeMap;
use std::sync::Arc;

use pulumi_proto::duration::Timeouts;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;

use super::check::CheckFailure;

/// What both Construct and Call say about the run they are in.
#[derive(Clone, Debug, Default)]
pub struct RunInfo {
    /// Project name.
    pub project: String,
    /// Stack name.
    pub stack: String,
    /// Stack configuration, `namespace:name` to text.
    pub config: BTreeMap<String, String>,
    /// Which of those keys are secret (Construct only).
    pub config_secret_keys: Vec<String>,
    /// Whether this is a preview.
    pub dry_run: bool,
    /// How many operations may run at once.
    pub parallel: i32,
    /// Address of the ResourceMonitor, `host:port`; `None` in what the monitor itself says of the run.
    pub monitor_endpoint: Option<String>,
    /// Organization name (Construct only).
    pub organization: String,
}

/// Input of Call.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// The run.
    pub run: RunInfo,
    /// Token of the method.
    pub token: String,
    /// Arguments, the receiver under `__self__`.
    pub arguments: Arc<PropertyMap>,
    /// Argument name to the URNs it depends on.
    pub argument_dependencies: BTreeMap<String, Vec<Urn>>,
}

/// Answer of Call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallReply {
    /// The result, where there are no failures.
    pub result: PropertyMap,
    /// Result name to the URNs it depends on.
    pub dependencies: BTreeMap<String, Vec<Urn>>,
    /// Arguments that were refused.
    pub failures: Vec<CheckFailure>,
}

/// Input of Construct.
#[derive(Clone, Debug)]
pub struct ConstructRequest {
    /// The run.
    pub run: RunInfo,
    /// Type of the component.
    pub type_token: String,
    /// Its name.
    pub name: String,
    /// Its parent.
    pub parent: Option<Urn>,
    /// Inputs as the program gives them.
    pub inputs: Arc<PropertyMap>,
    /// Input name to the URNs it depends on.
    pub input_dependencies: BTreeMap<String, Vec<Urn>>,
    /// Package to the reference of its provider.
    pub providers: BTreeMap<String, String>,
    /// What it depends on as a whole.
    pub dependencies: Vec<Urn>,
    /// The rest of its options.
    pub options: ResourceOptions,
}

/// Options of a resource, as components get them and as their plugins give them to their children.
#[derive(Clone, Debug, Default)]
pub struct ResourceOptions {
    /// Where it was before.
    pub aliases: Vec<Alias>,
    /// Refuse deletion.
    pub protect: Option<bool>,
    /// Outputs to keep secret.
    pub additional_secret_outputs: Vec<String>,
    /// How long operations may take.
    pub timeouts: Timeouts,
    /// The resource whose deletion takes this one along.
    pub deleted_with: Option<Urn>,
    /// Delete before replacing.
    pub delete_before_replace: Option<bool>,
    /// Paths whose changes do not count.
    pub ignore_changes: Vec<String>,
    /// Paths whose changes replace.
    pub replace_on_changes: Vec<String>,
    /// Forget instead of deleting.
    pub retain_on_delete: Option<bool>,
    /// Resources whose replacement replaces this one.
    pub replace_with: Vec<Urn>,
    /// Replace when this value changes.
    pub replacement_trigger: Option<PropertyValue>,
}

/// Where a resource was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alias {
    /// A whole URN.
    Urn(Urn),
    /// What differed; what is absent is as it is now.
    Spec {
        /// Old name.
        name: Option<String>,
        /// Old type.
        type_token: Option<String>,
        /// Old stack.
        stack: Option<String>,
        /// Old project.
        project: Option<String>,
        /// Old parent.
        parent: AliasParent,
    },
}

/// The parent in an alias.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AliasParent {
    /// As it is now.
    #[default]
    Same,
    /// It had none.
    None,
    /// It was this one.
    Urn(Urn),
}

/// Answer of Construct.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstructReply {
    /// URN of the component.
    pub urn: Urn,
    /// Its outputs.
    pub state: PropertyMap,
    /// Output name to the URNs it depends on.
    pub state_dependencies: BTreeMap<String, Vec<Urn>>,
}
