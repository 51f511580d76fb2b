//! What a program asks for: one registration.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::provider::Alias;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use crate::events::SourceRef;
use crate::state::CustomTimeouts;

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
    pub custom_timeouts: CustomTimeouts,
    /// Id of an existing resource to take over; empty without.
    pub import_id: String,
    /// Forget instead of deleting; `None`: as the parent.
    pub retain_on_delete: Option<bool>,
    /// Gone with that resource, without a call; `None`: as the parent.
    pub deleted_with: Option<Urn>,
    /// Replaced when one of these is.
    pub replace_with: Vec<Urn>,
    /// Replace when this changes; null without.
    pub replacement_trigger: PropertyValue,
    /// Paths whose changes are not shown.
    pub hide_diff: Vec<String>,
    /// Version of the package for a default provider; empty: any.
    pub version: String,
    /// Where the package of a default provider comes from; empty: the usual place.
    pub plugin_download_url: String,
    /// Where the program wrote it.
    pub source: Option<SourceRef>,
}

impl Goal {
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
            custom_timeouts: CustomTimeouts::default(),
            import_id: String::new(),
            retain_on_delete: None,
            deleted_with: None,
            replace_with: Vec::new(),
            replacement_trigger: PropertyValue::Null,
            hide_diff: Vec::new(),
            version: String::new(),
            plugin_download_url: String::new(),
            source: None,
        }
    }
}
