//! The recorded state of one resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

/// One entry of a snapshot: the record of one physical resource.
///
/// A URN may have several entries, of which at most one is not marked [`ResourceState::delete`]. What a member means
/// is said in `docs/state.md`; the engine keeps even those it has no use for.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceState {
    /// Identity of the goal the entry stands for.
    pub urn: Urn,
    /// The last type in the URN.
    pub type_token: TypeToken,
    /// Managed by a plugin; components are not.
    pub custom: bool,
    /// Superseded, awaiting deletion.
    pub delete: bool,
    /// Given by the provider; empty for components, and while a creation is pending. Of a provider resource: a UUID.
    pub id: String,
    /// Checked inputs.
    pub inputs: Arc<PropertyMap>,
    /// Outputs.
    pub outputs: Arc<PropertyMap>,
    /// Parent.
    pub parent: Option<Urn>,
    /// Refuse deletion.
    pub protect: bool,
    /// Replace at the next update.
    pub taint: bool,
    /// Read, not owned.
    pub external: bool,
    /// Everything it depends on.
    pub dependencies: Vec<Urn>,
    /// Why it did not come up; empty if it did.
    pub init_errors: Vec<String>,
    /// The provider resource that serves it; components and provider resources have none.
    pub provider: Option<ProviderReference>,
    /// Input name to the URNs it came from.
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
    /// Deleted before its replacement, which is still owed.
    pub pending_replacement: bool,
    /// Outputs to keep secret.
    pub additional_secret_outputs: Vec<String>,
    /// Old URNs; only in files of long ago.
    pub aliases: Vec<Urn>,
    /// How long operations may take.
    pub custom_timeouts: CustomTimeouts,
    /// The id given in the import option; empty without.
    pub import_id: String,
    /// Forget instead of deleting.
    pub retain_on_delete: bool,
    /// Gone with that resource, without a call.
    pub deleted_with: Option<Urn>,
    /// Replaced when one of these is.
    pub replace_with: Vec<Urn>,
    /// When it was created or imported.
    pub created: Option<Timestamp>,
    /// When it was last changed.
    pub modified: Option<Timestamp>,
    /// Where it was written; informational.
    pub source_position: String,
    /// Where the program was; informational: the position of each frame.
    pub stack_trace: Vec<String>,
    /// Paths whose changes do not count.
    pub ignore_changes: Vec<String>,
    /// Paths whose changes are not shown.
    pub hide_diff: Vec<String>,
    /// Paths whose changes replace.
    pub replace_on_changes: Vec<String>,
    /// Replace when this changes; null without.
    pub replacement_trigger: PropertyValue,
    /// The provider wants a Read before each update.
    pub refresh_before_update: bool,
    /// The resource this entry is a view of.
    pub view_of: Option<Urn>,
    /// Hook kind to hook names.
    pub resource_hooks: BTreeMap<String, Vec<String>>,
    /// Key into the snapshot's extensions; empty without.
    pub extension_ref: String,
    /// Bookkeeping of snippets; empty without.
    pub snippet_id: String,
}

/// How long operations may take, in seconds; 0 leaves it to the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CustomTimeouts {
    /// Create.
    pub create: f64,
    /// Update.
    pub update: f64,
    /// Delete.
    pub delete: f64,
    /// Read.
    pub read: f64,
}

impl ResourceState {
    /// Whether something of its program is to be called before or after its deletion.
    pub fn has_delete_hooks(&self) -> bool {
        let mut hooks = ["BeforeDelete", "AfterDelete"].into_iter().filter_map(|kind| self.resource_hooks.get(kind));
        hooks.any(|names| !names.is_empty())
    }

    /// An entry with nothing but its identity.
    pub fn new(urn: Urn, custom: bool) -> Self {
        Self {
            type_token: TypeToken::new(urn.type_token()),
            urn,
            custom,
            delete: false,
            id: String::new(),
            inputs: Arc::default(),
            outputs: Arc::default(),
            parent: None,
            protect: false,
            taint: false,
            external: false,
            dependencies: Vec::new(),
            init_errors: Vec::new(),
            provider: None,
            property_dependencies: BTreeMap::new(),
            pending_replacement: false,
            additional_secret_outputs: Vec::new(),
            aliases: Vec::new(),
            custom_timeouts: CustomTimeouts::default(),
            import_id: String::new(),
            retain_on_delete: false,
            deleted_with: None,
            replace_with: Vec::new(),
            created: None,
            modified: None,
            source_position: String::new(),
            stack_trace: Vec::new(),
            ignore_changes: Vec::new(),
            hide_diff: Vec::new(),
            replace_on_changes: Vec::new(),
            replacement_trigger: PropertyValue::Null,
            refresh_before_update: false,
            view_of: None,
            resource_hooks: BTreeMap::new(),
            extension_ref: String::new(),
            snippet_id: String::new(),
        }
    }

    /// Every URN that it refers to, its provider left out: parent, dependencies, property dependencies, `deletedWith`,
    /// `replaceWith`.
    pub fn references(&self) -> impl Iterator<Item = &Urn> {
        self.parent
            .iter()
            .chain(&self.dependencies)
            .chain(self.property_dependencies.values().flatten())
            .chain(&self.deleted_with)
            .chain(&self.replace_with)
    }

    /// Whether this is a provider resource.
    pub fn is_provider(&self) -> bool {
        self.type_token.is_provider()
    }

    /// The reference by which other entries name this provider resource.
    pub fn as_provider_reference(&self) -> Option<ProviderReference> {
        self.is_provider().then(|| ProviderReference::new(self.urn.clone(), self.id.as_str()))
    }
}
