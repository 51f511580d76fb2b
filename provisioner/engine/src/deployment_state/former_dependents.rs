//! Former dependents of entries that are deleted before their replacement: resources that still use such an entry, while the
//! program no longer says so.

use hashbrown::HashSet;
use pulumi_proto::urn::Urn;
use state::{EntryId, ResourceState};

use super::DeploymentState;
use super::resource_status::ResourceStatus;
use crate::entry::Entry;

/// Former dependents of entries that are about to be deleted.
#[derive(Debug, Default)]
pub(crate) struct FormerDependents {
    /// Pending deletes that use one of the entries, directly or through another former dependent, and entries that become
    /// pending deletes once their replacement is created.
    pub(crate) old_versions: Vec<Entry>,
    /// Live entries that use one of the entries in the same way, and that the program will not register.
    pub(crate) leaving: Vec<Entry>,
    /// Resources with decided steps that are not done: until then their entry may use one of the entries.
    pub(crate) changing: Vec<Urn>,
}

/// Kind of a former dependent that can be deleted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OldVersion,
    Leaving,
}

impl DeploymentState {
    /// Returns the former dependents of the entries with these URNs. `deleted` are the entries that are deleted together
    /// with them in any case. Only entries in scope are deleted.
    ///
    /// An entry that is carried over keeps its references, so it is no former dependent. A resource without decided steps is
    /// a dependent as it is recorded. A former dependent that an entry that stays may use is left out.
    pub(crate) fn former_dependents(
        &self,
        urns: &HashSet<Urn>,
        deleted: &HashSet<EntryId>,
        is_in_scope: impl Fn(&ResourceState) -> bool,
    ) -> FormerDependents {
        let mut used = urns.clone();
        let mut found = FormerDependents::default();
        let mut visited = deleted.clone();
        // A pending delete may be listed before one that it uses.
        loop {
            let before = used.len();
            for (id, loaded) in self.loaded.iter().filter(|(_, loaded)| loaded.view_of.is_none()) {
                let uses = loaded.provider_and_references().any(|urn| used.contains(urn));
                if !uses || visited.contains(id) || self.is_deleted_before_replace(*id) {
                    continue;
                }
                let Some(now) = self.ledger.get(*id) else { continue };
                let urn = self.new_urn(&loaded.urn);
                let is_changing =
                    has_deletion_call(loaded) && !now.delete && self.status(urn) == ResourceStatus::Decided;
                if is_changing {
                    found.changing.push(urn.clone());
                }
                let is_old_version = has_deletion_call(loaded) && now.delete && is_in_scope(now);
                if is_old_version || (is_changing && self.is_marked_for_replacement(urn)) {
                    found.old_versions.push((*id, now.clone()));
                } else if self.is_gone(loaded, now) && !now.protect && is_in_scope(now) {
                    found.leaving.push((*id, now.clone()));
                } else {
                    if is_changing {
                        visited.insert(*id);
                    }
                    continue;
                }
                visited.insert(*id);
                used.insert(loaded.urn.clone());
            }
            if used.len() == before {
                self.remove_used(&mut found, deleted, is_in_scope);
                return found;
            }
        }
    }

    /// Removes the former dependents that an entry that stays may use, and those that these use in turn.
    fn remove_used(
        &self,
        found: &mut FormerDependents,
        deleted: &HashSet<EntryId>,
        is_in_scope: impl Fn(&ResourceState) -> bool,
    ) {
        loop {
            let candidates = || found.old_versions.iter().chain(&found.leaving);
            let going: HashSet<EntryId> = candidates().map(|(id, _)| *id).chain(deleted.iter().copied()).collect();
            let users = |entry: &Entry, kind: Kind| {
                let urn = self.as_in_base(entry).1.urn.clone();
                let others = self.loaded.iter().filter(|(id, user)| !going.contains(id) && user.view_of.is_none());
                let mut users = others.filter(|(_, user)| user.provider_and_references().any(|used| *used == urn));
                users.any(|(id, user)| self.may_use(*id, user, kind, &is_in_scope))
            };
            let is_free = |kind: Kind| move |entry: &Entry| !users(entry, kind);
            let old_versions = found.old_versions.iter().filter(|entry| is_free(Kind::OldVersion)(entry)).cloned();
            let leaving = found.leaving.iter().filter(|entry| is_free(Kind::Leaving)(entry)).cloned();
            let (old_versions, leaving) = (old_versions.collect::<Vec<_>>(), leaving.collect::<Vec<_>>());
            let is_done = old_versions.len() + leaving.len() == candidates().count();
            (found.old_versions, found.leaving) = (old_versions, leaving);
            if is_done {
                return;
            }
        }
    }

    /// Returns whether an entry that is not deleted with a former dependent may use it. `user` is the entry as it was loaded,
    /// which refers to the URN of the former dependent.
    fn may_use(
        &self,
        id: EntryId,
        user: &ResourceState,
        kind: Kind,
        is_in_scope: impl Fn(&ResourceState) -> bool,
    ) -> bool {
        let Some(now) = self.ledger.get(id) else { return false };
        if now.pending_replacement || self.is_deleted_before_replace(id) {
            return false;
        }
        if now.delete {
            return true;
        }
        let status = self.status(self.new_urn(&user.urn));
        match kind {
            // Its steps are waited for.
            _ if status == ResourceStatus::Decided && has_deletion_call(user) => false,
            _ if status.is_decided() => !self.is_applied(id, user),
            Kind::Leaving => true,
            // A resource that the program registers later uses the new version already, or gets it then.
            Kind::OldVersion => status == ResourceStatus::Ended || self.is_gone(user, now) || !is_in_scope(now),
        }
    }
}

/// Returns whether a provider deletes the resource of an entry by a call of its own.
fn has_deletion_call(state: &ResourceState) -> bool {
    state.custom && !state.external && state.view_of.is_none()
}
