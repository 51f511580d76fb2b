//! What a program asks for: registrations, reads, function calls; and what an import takes over.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::provider::Alias;
use pulumi_proto::duration::Timeouts;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use crate::events::SourceRef;

/// One registration: what a resource is to be.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The resource's type.
    pub type_token: TypeToken,
    /// Its name.
    pub name: String,
    /// Managed by a plugin; components are not.
    pub custom: bool,
    /// A component that its plugin is to construct: children and all.
    pub remote: bool,
    /// Inputs as the program gives them. Unknowns only in a preview.
    pub inputs: Arc<PropertyMap>,
    /// Parent; must have been registered in this run.
    pub parent: Option<Urn>,
    /// Everything it depends on.
    pub dependencies: Vec<Urn>,
    /// Input name to the URNs it came from; every input has an entry.
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
    /// The provider resource that serves it; `None`: the default provider of its package, or an inherited one.
    pub provider: Option<ProviderReference>,
    /// Of a component: package to the provider that its children use where they name none.
    pub providers: BTreeMap<String, ProviderReference>,
    /// Refuse deletion; `None`: as the parent.
    pub protect: Option<bool>,
    /// Delete before replacing; `None`: as the provider says.
    pub delete_before_replace: Option<bool>,
    /// Paths whose changes do not count.
    pub ignore_changes: Vec<String>,
    /// Paths whose changes replace.
    pub replace_on_changes: Vec<String>,
    /// Outputs to keep secret.
    pub additional_secret_outputs: Vec<String>,
    /// Where it was before.
    pub aliases: Vec<Alias>,
    /// How long operations may take.
    pub custom_timeouts: Timeouts,
    /// Id of an existing resource to import; `None` without import.
    pub import_id: Option<ResourceId>,
    /// Forget instead of deleting; `None`: as the parent.
    pub retain_on_delete: Option<bool>,
    /// Gone with that resource, without a call; `None`: as the parent.
    pub deleted_with: Option<Urn>,
    /// Replaced when one of these is.
    pub replace_with: Vec<Urn>,
    /// Replace when this changes.
    pub replacement_trigger: Option<PropertyValue>,
    /// Paths whose changes are not shown.
    pub hide_diff: Vec<String>,
    /// Version of the package for a default provider; `None`: any.
    pub version: Option<String>,
    /// Where the package of a default provider comes from; `None`: the usual place.
    pub plugin_download_url: Option<String>,
    /// Where the program wrote it.
    pub source: Option<SourceRef>,
}

impl Goal {
    /// Returns what manages the resource.
    pub(crate) fn kind(&self) -> ResourceKind {
        match (self.custom, self.type_token.is_provider()) {
            (false, _) => ResourceKind::Component,
            (true, true) => ResourceKind::Provider,
            (true, false) => ResourceKind::Custom,
        }
    }

    /// Returns every URN that the recorded resource will refer to, its provider apart.
    pub(crate) fn references(&self) -> impl Iterator<Item = &Urn> {
        let by_property = self.property_dependencies.values().flatten();
        let by_option = self.deleted_with.iter().chain(&self.replace_with);
        self.parent.iter().chain(&self.dependencies).chain(by_property).chain(by_option)
    }

    /// A custom resource without any options.
    pub fn custom(type_token: TypeToken, name: impl Into<String>, inputs: PropertyMap) -> Self {
        Self { custom: true, ..Self::component(type_token, name, inputs) }
    }

    /// A component without any options.
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
            source: None,
        }
    }
}

/// What manages a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    /// Nothing: no provider is asked.
    Component,
    /// The engine itself: of a provider resource the configuration is checked and compared.
    Provider,
    /// A plugin.
    Custom,
}

/// A read of a resource that the stack does not own.
#[derive(Clone, Debug)]
pub struct ReadGoal {
    /// The resource's type.
    pub type_token: TypeToken,
    /// Its name.
    pub name: String,
    /// Id of the resource to read; may be unknown in a preview.
    pub id: ReferenceId,
    /// What is known of it, to find it by.
    pub properties: PropertyMap,
    /// Parent.
    pub parent: Option<Urn>,
    /// Everything it depends on.
    pub dependencies: Vec<Urn>,
    /// The provider resource that serves it.
    pub provider: Option<ProviderReference>,
    /// Outputs to keep secret.
    pub additional_secret_outputs: Vec<String>,
    /// Version of the package for a default provider; `None`: any.
    pub version: Option<String>,
    /// Where the package of a default provider comes from; `None`: the usual place.
    pub plugin_download_url: Option<String>,
    /// Where the program wrote it.
    pub source: Option<SourceRef>,
}

/// A call of a function.
#[derive(Clone, Debug)]
pub struct InvokeGoal {
    /// Token of the function.
    pub token: TypeToken,
    /// Arguments. Unknown ones are not sent: ask only when all are known.
    pub arguments: PropertyMap,
    /// The provider resource that serves it.
    pub provider: Option<ProviderReference>,
    /// Version of the package for a default provider; `None`: any.
    pub version: Option<String>,
    /// Where the package of a default provider comes from; `None`: the usual place.
    pub plugin_download_url: Option<String>,
}

/// An existing resource that is to be recorded.
#[derive(Clone, Debug)]
pub struct ImportGoal {
    /// Its type.
    pub type_token: TypeToken,
    /// Its name in the stack.
    pub name: String,
    /// Id that the provider reads it by.
    pub id: ResourceId,
    /// Its parent; `None`: the stack.
    pub parent: Option<Urn>,
    /// Who reads it.
    pub provider: ImportProvider,
    /// Refuse deletion.
    pub protect: bool,
    /// What it was called before.
    pub aliases: Vec<Alias>,
    /// Inputs that are known of it: those that are secret are secret in what is read, too.
    pub inputs: Arc<PropertyMap>,
    /// Outputs to keep secret.
    pub additional_secret_outputs: Vec<String>,
    /// Where the user wrote what it is.
    pub source: Option<SourceRef>,
}

/// The provider of an imported resource.
#[derive(Clone, Debug)]
pub enum ImportProvider {
    /// The default one of its package; of this version, or of any.
    Default(Option<String>),
    /// One that is recorded.
    Recorded(ProviderReference),
    /// This one, made if it is not recorded.
    Declared(Box<Goal>),
}
