//! Former dependents of entries that are deleted before their replacement: resources that no longer refer to such an
//! entry, while their old version still uses it.

use hashbrown::HashSet;
use pulumi_proto::urn::Urn;
use state::{EntryId, ResourceState};

use super::DeploymentState;
use super::resource_status::ResourceStatus;
use crate::entry::Entry;

/// Former dependents of entries that are about to be deleted.
#[derive(Debug, Default)]
pub(crate) struct FormerDependents {
    /// Pending deletes that use one of the entries, directly or through another pending delete, and entries that become
    /// pending deletes once their replacement is created.
    pub(crate) old_versions: Vec<Entry>,
    /// Resources with decided steps that are not done: until then their entry may use one of the entries.
    pub(crate) changing: Vec<Urn>,
}

impl DeploymentState {
    /// Returns the former dependents of the entries with these URNs. `deleted` are the entries that are deleted together
    /// with them in any case.
    ///
    /// An entry that is carried over keeps its references, so it is no former dependent. A resource without decided steps is
    /// a dependent as it is recorded.
    pub(crate) fn former_dependents(&self, urns: &HashSet<Urn>, deleted: &HashSet<EntryId>) -> FormerDependents {
        let mut used = urns.clone();
        let mut found = FormerDependents::default();
        let mut visited = deleted.clone();
        // A pending delete may be listed before one that it uses.
        loop {
            let before = used.len();
            for (id, loaded) in self.loaded.iter().filter(|(_, loaded)| has_deletion_call(loaded)) {
                let uses = loaded.provider_and_references().any(|urn| used.contains(urn));
                if !uses || visited.contains(id) || self.is_deleted_before_replace(*id) {
                    continue;
                }
                let Some(now) = self.ledger.get(*id) else { continue };
                let urn = self.new_urn(&loaded.urn);
                let is_changing = !now.delete && self.status(urn) == ResourceStatus::Decided;
                if is_changing {
                    found.changing.push(urn.clone());
                }
                if now.delete || (is_changing && self.is_marked_for_replacement(urn)) {
                    found.old_versions.push((*id, now.clone()));
                    used.insert(loaded.urn.clone());
                }
                if now.delete || is_changing {
                    visited.insert(*id);
                }
            }
            if used.len() == before {
                return found;
            }
        }
    }
}

/// Returns whether a provider deletes the resource of an entry by a call of its own.
fn has_deletion_call(state: &ResourceState) -> bool {
    state.custom && !state.external && state.view_of.is_none()
}
