//! What has become of one URN in a run.

use std::collections::BTreeMap;

use pulumi_proto::urn::{ProviderReference, Urn};

use super::entry_deletions::DeletionWait;
use super::resource_status::ResourceStatus;
use crate::entry::Entry;
use crate::events::SourceRef;

/// What has become of one URN.
#[derive(Debug, Default)]
pub(super) struct ResourceRecord {
    pub(super) status: ResourceStatus,
    /// What children inherit, from the registration on.
    pub(super) inheritance: Option<Inheritance>,
    /// The entry, once a registration or a read has succeeded.
    pub(super) entry: Option<Entry>,
    /// Why there is none, or why it is not as the program wants it.
    pub(super) incomplete: Option<Incomplete>,
    /// It is deleted together with a resource that it depends on, and is to be registered again.
    pub(super) pending_replacement: Option<PendingReplacement>,
    /// It is or was replaced in this run.
    pub(super) replaced: bool,
    /// It is or was deleted in this run: what is `deletedWith` it needs no call.
    pub(super) deleted: bool,
    /// Where the program wrote it, or the component that it is in.
    pub(super) source: Option<SourceRef>,
}

/// Why a resource is not what the program asks for. A later reason never weakens an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Incomplete {
    /// It was not created: it is out of scope, or needs what was not created.
    Skipped,
    /// It failed, or depends on what failed.
    Failed,
    /// A component that its plugin could not construct, or was not asked to.
    NotConstructed,
}

/// What children inherit from a registered resource where their own registration is silent.
#[derive(Clone, Debug)]
pub(crate) struct Inheritance {
    pub(crate) protect: bool,
    pub(crate) retain_on_delete: bool,
    pub(crate) deleted_with: Option<Urn>,
    pub(crate) provider: Option<ProviderReference>,
    /// Of a component: package to provider.
    pub(crate) providers: BTreeMap<String, ProviderReference>,
}

/// A resource that is deleted together with one that it depends on, before both are created again.
#[derive(Clone, Debug)]
pub(crate) struct PendingReplacement {
    /// Why: input names, `provider`, `deletedWith` or `replaceWith`.
    pub(crate) keys: Vec<String>,
    /// Its deletion.
    pub(crate) deletion: DeletionWait,
}
