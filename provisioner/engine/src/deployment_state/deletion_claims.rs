//! Resources that the run is going to delete, in the number that its limit allows.

use super::DeploymentState;
use crate::entry::Entry;

impl DeploymentState {
    /// Adds entries to those whose resources the run deletes. Returns false, and adds none, if there would be more than `limit`.
    /// Entries count as in [`DeploymentState::count_deletion`].
    pub(crate) fn claim_deletions<'e>(&mut self, entries: impl Iterator<Item = &'e Entry>, limit: usize) -> bool {
        let counted = entries.filter(|(_, entry)| Self::is_counted_deletion(entry)).map(|(id, _)| *id);
        let new: Vec<_> = counted.filter(|id| !self.claimed_deletions.contains(id)).collect();
        if !new.is_empty() && self.claimed_deletions.len() + new.len() > limit {
            return false;
        }
        self.claimed_deletions.extend(new);
        true
    }
}
