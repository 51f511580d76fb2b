//! Requests of a program: registrations, reads, function calls; resources to import; the configuration of the stack, and the inputs of
//! provider resources that the engine uses itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bridge::host::Subpackage;
use bridge::provider::Alias;
use pulumi_proto::duration::Timeouts;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use crate::events::SourceRef;

/// Registration of a resource: its desired inputs and its options.
#[derive(Clone, Debug)]
pub struct Goal {
    /// Type of the resource.
    pub type_token: TypeToken,
    /// Name of the resource.
    pub name: String,
    /// True for custom and provider resources, false for components.
    pub custom: bool,
    /// True for a component that its plugin constructs, together with its children.
    pub remote: bool,
    /// Inputs of the program. They contain unknown values only in a preview.
    pub inputs: Arc<PropertyMap>,
    /// Parent, which must have been registered in this run.
    pub parent: Option<Urn>,
    /// URNs of the dependencies in `dependsOn` and in inputs.
    pub dependencies: Vec<Urn>,
    /// URNs that each input depends on, by input name. Every input has an entry.
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
    /// Provider of the resource; `None`: the inherited provider, or the default provider of the package.
    pub provider: Option<ProviderReference>,
    /// Providers that children of a component inherit, by package.
    pub providers: BTreeMap<String, ProviderReference>,
    /// Option `protect`; `None`: inherited from the parent.
    pub protect: Option<bool>,
    /// Option `deleteBeforeReplace`; `None`: decided by the provider.
    pub delete_before_replace: Option<bool>,
    /// Paths whose changes are ignored.
    pub ignore_changes: Vec<String>,
    /// Paths whose changes replace the resource.
    pub replace_on_changes: Vec<String>,
    /// Names of outputs that are secret.
    pub additional_secret_outputs: Vec<String>,
    /// Aliases, under which the resource may be recorded.
    pub aliases: Vec<Alias>,
    /// Timeouts of the operations on the resource.
    pub custom_timeouts: Timeouts,
    /// Id of the existing resource to import; `None` without import.
    pub import_id: Option<ResourceId>,
    /// Option `retainOnDelete`; `None`: inherited from the parent.
    pub retain_on_delete: Option<bool>,
    /// Option `deletedWith`: the resource needs no Delete if that resource is deleted. `None`: inherited from the
    /// parent.
    pub deleted_with: Option<Urn>,
    /// Option `replaceWith`: the resource is replaced if one of these is.
    pub replace_with: Vec<Urn>,
    /// Value whose changes replace the resource.
    pub replacement_trigger: Option<PropertyValue>,
    /// Paths whose changes are not shown.
    pub hide_diff: Vec<String>,
    /// Version of the package for a default provider; `None`: any.
    pub version: Option<String>,
    /// Download URL of the package for a default provider; `None`: the default source.
    pub plugin_download_url: Option<String>,
    /// Package that a provider resource, or a default provider, serves after Parameterize; `None`: that of the type.
    pub subpackage: Option<Arc<Subpackage>>,
    /// Place where the program wrote the resource.
    pub source: Option<SourceRef>,
}

impl Goal {
    pub(crate) fn kind(&self) -> ResourceKind {
        match (self.custom, self.type_token.is_provider()) {
            (false, _) => ResourceKind::Component,
            (true, true) => ResourceKind::Provider,
            (true, false) => ResourceKind::Custom,
        }
    }

    /// Returns all URNs that the entry of this goal will refer to as dependencies ([`state::Relation::is_dependency`]): those of
    /// its parent, of `dependencies`, of single inputs and of options.
    pub(crate) fn all_dependencies(&self) -> impl Iterator<Item = &Urn> {
        let by_property = self.property_dependencies.values().flatten();
        let by_option = self.deleted_with.iter().chain(&self.replace_with);
        self.parent.iter().chain(&self.dependencies).chain(by_property).chain(by_option)
    }

    /// Creates the goal of a custom resource without options.
    pub fn custom(type_token: TypeToken, name: impl Into<String>, inputs: PropertyMap) -> Self {
        Self { custom: true, ..Self::component(type_token, name, inputs) }
    }

    /// Creates the goal of a component without options.
    pub fn component(type_token: TypeToken, name: impl Into<String>, inputs: PropertyMap) -> Self {
        Self {
            type_token,
            name: name.into(),
            custom: false,
            remote: false,
            inputs: Arc::new(inputs),
            parent: None,
            dependencies: Vec::new(),
            property_dependencies: BTreeMap::new(),
            provider: None,
            providers: BTreeMap::new(),
            protect: None,
            delete_before_replace: None,
            ignore_changes: Vec::new(),
            replace_on_changes: Vec::new(),
            additional_secret_outputs: Vec::new(),
            aliases: Vec::new(),
            custom_timeouts: Timeouts::default(),
            import_id: None,
            retain_on_delete: None,
            deleted_with: None,
            replace_with: Vec::new(),
            replacement_trigger: None,
            hide_diff: Vec::new(),
            version: None,
            plugin_download_url: None,
            subpackage: None,
            source: None,
        }
    }
}

/// Kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    /// Component: no provider is called.
    Component,
    /// Provider resource: CheckConfig and DiffConfig are called for its configuration.
    Provider,
    /// Custom resource: a plugin manages it.
    Custom,
}

/// Read of a resource that the stack does not own.
#[derive(Clone, Debug)]
pub struct ReadGoal {
    /// Type of the resource.
    pub type_token: TypeToken,
    /// Name of the resource.
    pub name: String,
    /// Id of the resource to read, which may be unknown in a preview.
    pub id: ReferenceId,
    /// Known properties, which help the provider to find the resource.
    pub properties: PropertyMap,
    /// Time for which a run waits for a resource that does not exist yet; a preview does not.
    pub patience: Duration,
    /// Parent of the resource.
    pub parent: Option<Urn>,
    /// URNs of all dependencies.
    pub dependencies: Vec<Urn>,
    /// Provider to call; `None`: the default provider of the package.
    pub provider: Option<ProviderReference>,
    /// Names of outputs that are secret.
    pub additional_secret_outputs: Vec<String>,
    /// Version of the package for a default provider; `None`: any.
    pub version: Option<String>,
    /// Download URL of the package for a default provider; `None`: the default source.
    pub plugin_download_url: Option<String>,
    /// Package that a default provider serves after Parameterize; `None`: that of the type.
    pub subpackage: Option<Arc<Subpackage>>,
    /// Place where the program wrote the resource.
    pub source: Option<SourceRef>,
}

/// Call of a function.
#[derive(Clone, Debug)]
pub struct InvokeGoal {
    /// Token of the function.
    pub token: TypeToken,
    /// Arguments. All of them must be known, because unknown values are not sent.
    pub arguments: PropertyMap,
    /// Provider to call; `None`: the default provider of the package.
    pub provider: Option<ProviderReference>,
    /// Version of the package for a default provider; `None`: any.
    pub version: Option<String>,
    /// Download URL of the package for a default provider; `None`: the default source.
    pub plugin_download_url: Option<String>,
    /// Package that a default provider serves after Parameterize; `None`: that of the token.
    pub subpackage: Option<Arc<Subpackage>>,
    /// Place where the program wrote the call.
    pub source: Option<SourceRef>,
}

/// Existing resource to import.
#[derive(Clone, Debug)]
pub struct ImportGoal {
    /// Type of the resource.
    pub type_token: TypeToken,
    /// Name of the resource in the stack.
    pub name: String,
    /// Id with which the provider reads the resource.
    pub id: ResourceId,
    /// Parent of the resource; `None`: the root stack.
    pub parent: Option<Urn>,
    /// Provider that reads the resource.
    pub provider: ImportProvider,
    /// Option `protect`.
    pub protect: bool,
    /// Aliases, under which the resource may be recorded.
    pub aliases: Vec<Alias>,
    /// Known inputs. Values that are secret among them are secret in the inputs that are read, too.
    pub inputs: Arc<PropertyMap>,
    /// Names of outputs that are secret.
    pub additional_secret_outputs: Vec<String>,
    /// Place where the user wrote the import.
    pub source: Option<SourceRef>,
}

/// Provider of an imported resource.
#[derive(Clone, Debug)]
pub enum ImportProvider {
    /// Default provider of the package, with this version or any version.
    Default(Option<String>),
    /// Recorded provider.
    Recorded(ProviderReference),
    /// Provider of this goal, which is registered if it is not recorded.
    Declared(Box<Goal>),
}

/// Source of the goals of the custom resources that the program of a stack registers. A refresh asks for them: they say which
/// inputs are secret, and how a provider is configured whose recorded configuration does not work any more.
#[async_trait]
pub trait ProgramGoals: fmt::Debug + Send + Sync {
    /// Returns the goals of the custom resources, provider resources included. An input that depends on a resource is unknown.
    async fn goals(&self) -> Vec<Goal>;
}

/// Input of a provider resource that contains the values for the engine alone. It is never sent to a plugin.
pub const INTERNAL_KEY: &str = "__internal";
/// Input of a provider resource that holds the version of its package.
pub const VERSION_KEY: &str = "version";

/// Returns the inputs without those for the engine alone: the configuration that plugins receive.
pub(crate) fn visible(inputs: &PropertyMap) -> PropertyMap {
    inputs.iter().filter(|(key, _)| *key != INTERNAL_KEY).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Package that Pulumi's engine itself serves. This engine serves only its function `getResource`.
pub const BUILT_IN: &str = "pulumi";

/// Configuration value of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Namespace of the key: a package or a project.
    pub namespace: String,
    /// Name of the key.
    pub name: String,
    /// Text of the value. Values other than strings are JSON.
    pub value: String,
    /// True if the value is secret.
    pub secret: bool,
}
