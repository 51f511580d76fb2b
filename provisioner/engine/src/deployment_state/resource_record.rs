//! State of one URN in a run.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ProviderReference, Urn};

use super::entry_deletions::DeletionWait;
use super::resource_status::ResourceStatus;
use crate::events::SourceRef;
use state::Entry;

/// State of one URN in a run.
#[derive(Debug, Default)]
pub(super) struct ResourceRecord {
    pub(super) status: ResourceStatus,
    /// Options that children inherit; set once the registration has begun.
    pub(super) inheritance: Option<Inheritance>,
    /// Entry of the resource, once a registration or a read has succeeded.
    pub(super) entry: Option<Entry>,
    /// Reason that the entry is missing, or does not match the program.
    pub(super) incomplete: Option<Incomplete>,
    /// Set if the resource is deleted together with one that it depends on, and is to be registered again.
    pub(super) planned_dependent_replacement: Option<PlannedDependentReplacement>,
    /// True if the replacement of the resource is planned, running or done.
    pub(super) marked_for_replacement: bool,
    /// True if the deletion of the resource is planned, running or done: resources that are `deletedWith` it need no
    /// call.
    pub(super) marked_for_deletion: bool,
    /// Secrets that the program gives to the component of this URN, which its plugin registers.
    pub(super) constructed_secrets: PropertyMap,
    /// Place where the program wrote the resource, or the component that the resource is in.
    pub(super) source: Option<SourceRef>,
}

/// Reason that a resource does not match the program, in ascending severity. A reason never replaces a more severe one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Incomplete {
    /// The resource was not created: it is out of scope, or refers to a resource that was not created.
    Skipped,
    /// The resource failed, or depends on one that failed.
    Failed,
    /// The component could not be constructed by its plugin, or its plugin was not called.
    NotConstructed,
}

/// Options that children inherit from a registered resource where their own registration sets none.
#[derive(Clone, Debug)]
pub(crate) struct Inheritance {
    pub(crate) protect: bool,
    pub(crate) retain_on_delete: bool,
    pub(crate) deleted_with: Option<Urn>,
    pub(crate) provider: Option<ProviderReference>,
    /// Package to provider; of a component.
    pub(crate) providers: BTreeMap<String, ProviderReference>,
}

/// Planned dependent replacement: the resource is deleted together with one that it depends on, before both are created
/// again.
#[derive(Clone, Debug)]
pub(crate) struct PlannedDependentReplacement {
    /// Reasons for the replacement: input names, `provider`, `deletedWith` or `replaceWith`.
    pub(crate) keys: Vec<String>,
    /// Deletion of the resource.
    pub(crate) deletion: DeletionWait,
}

/// Resources that the program will register.
#[derive(Debug, Default)]
pub(super) struct Announced {
    /// Options, by the URNs under which the resources may be recorded.
    pub(super) resources: HashMap<Urn, AnnouncedOptions>,
    /// Packages of which the program may register further resources.
    pub(super) incomplete_packages: BTreeSet<String>,
    /// Types, also former ones, of which the program will import resources that their entries do not name yet.
    pub(super) imported_types: BTreeSet<String>,
}

/// Options of an announced resource that matter to the deletion of its entry, and of entries within it. `None`: inherited
/// from the parent.
#[derive(Clone, Debug)]
pub(super) struct AnnouncedOptions {
    /// URN under which the program will register the resource.
    pub(super) urn: Urn,
    /// URN under which the program will register the parent.
    pub(super) parent: Option<Urn>,
    /// True for a component whose plugin registers its children.
    pub(super) remote: bool,
    pub(super) protect: Option<bool>,
    pub(super) retain_on_delete: Option<bool>,
}
