//! Former dependents of entries that are deleted before their replacement: resources that still use such an entry, while the
//! program no longer says so.

use hashbrown::HashSet;
use pulumi_proto::urn::Urn;
use state::{Entry, EntryId, ResourceState};

use super::DeploymentState;
use super::resource_status::ResourceStatus;

/// Former dependents of entries that are about to be deleted.
#[derive(Debug, Default)]
pub(crate) struct FormerDependents {
    /// Entries that use one of the entries, directly or through another former dependent, and that can be deleted first.
    pub(crate) deletable: Vec<FormerDependent>,
    /// Resources with decided steps that are not done: until then their entry may use one of the entries.
    pub(crate) changing: Vec<Urn>,
}

/// Former dependent that can be deleted first.
#[derive(Debug)]
pub(crate) struct FormerDependent {
    pub(crate) entry: Entry,
    pub(crate) kind: FormerDependentKind,
}

/// Kind of a former dependent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormerDependentKind {
    /// Pending delete, or an entry that becomes one once its replacement is created.
    OldVersion,
    /// Live entry that the program will not register.
    Unregistered,
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
                let uses = loaded.provider_and_dependencies().any(|urn| used.contains(urn));
                if !uses || visited.contains(id) || self.is_deleted_before_replace(*id) {
                    continue;
                }
                let Some(now) = self.ledger.get(*id) else { continue };
                let urn = self.new_urn(&loaded.urn);
                let has_deletion_call = has_deletion_call(loaded);
                let is_changing = has_deletion_call && !now.delete && self.status(urn) == ResourceStatus::Decided;
                if is_changing {
                    found.changing.push(urn.clone());
                    visited.insert(*id);
                }
                let kind = if is_changing && self.is_marked_for_replacement(urn) {
                    FormerDependentKind::OldVersion
                } else if !is_in_scope(now) {
                    continue;
                } else if now.delete && has_deletion_call {
                    FormerDependentKind::OldVersion
                } else if !now.protect && self.will_not_be_registered(loaded, now) {
                    FormerDependentKind::Unregistered
                } else {
                    continue;
                };
                visited.insert(*id);
                used.insert(loaded.urn.clone());
                found.deletable.push(FormerDependent { entry: (*id, now.clone()), kind });
            }
            if used.len() == before {
                found.deletable = self.without_used(found.deletable, deleted, is_in_scope);
                return found;
            }
        }
    }

    /// Returns the former dependents without those that an entry that stays may use, and without those that these use in turn.
    fn without_used(
        &self,
        mut former: Vec<FormerDependent>,
        deleted: &HashSet<EntryId>,
        is_in_scope: impl Fn(&ResourceState) -> bool,
    ) -> Vec<FormerDependent> {
        loop {
            let going: HashSet<EntryId> =
                former.iter().map(|former| former.entry.0).chain(deleted.iter().copied()).collect();
            let is_used = |former: &FormerDependent| {
                let urn = &self.as_in_base(&former.entry).1.urn;
                let staying = self.loaded.iter().filter(|(id, user)| !going.contains(id) && user.view_of.is_none());
                let mut users = staying.filter(|(_, user)| user.provider_and_dependencies().any(|used| used == urn));
                users.any(|(id, user)| self.may_use(*id, user, former.kind, &is_in_scope))
            };
            let before = former.len();
            former.retain(|former| !is_used(former));
            if former.len() == before {
                return former;
            }
        }
    }

    /// Returns whether an entry that is not deleted with a former dependent may use it. `user` is the entry as it was loaded,
    /// which refers to the URN of the former dependent.
    fn may_use(
        &self,
        id: EntryId,
        user: &ResourceState,
        kind: FormerDependentKind,
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
            FormerDependentKind::Unregistered => true,
            // A resource that the program registers later uses the new version already, or gets it then.
            FormerDependentKind::OldVersion => {
                status == ResourceStatus::Ended || self.will_not_be_registered(user, now) || !is_in_scope(now)
            }
        }
    }
}

/// Returns whether a provider deletes the resource of an entry by a call of its own.
fn has_deletion_call(state: &ResourceState) -> bool {
    state.custom && !state.external && state.view_of.is_none()
}
