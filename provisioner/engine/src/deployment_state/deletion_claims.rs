//! Resources that the run is going to delete, as far as its limit allows.

use pulumi_proto::urn::Urn;

use super::DeploymentState;
use crate::deletion_limit::DeletionLimit;
use state::Entry;

impl DeploymentState {
    /// Adds entries to those whose resources the run deletes. If the limit does not allow all of them, adds none and returns the URN
    /// of one that is too many. Entries count as in [`DeploymentState::count_deletion`].
    pub(crate) fn claim_deletions<'e>(
        &mut self,
        entries: impl Iterator<Item = &'e Entry>,
        limit: &DeletionLimit,
    ) -> Option<Urn> {
        let counted = entries.filter(|(_, entry)| Self::is_counted_deletion(entry));
        let new: Vec<&Entry> = counted.filter(|(id, _)| !self.claimed_deletions.contains(id)).collect();
        let refused = match limit {
            DeletionLimit::Count { count, .. } => {
                new.last().filter(|_| self.claimed_deletions.len() + new.len() > *count).copied()
            }
            DeletionLimit::Shown(shown) => new
                .iter()
                .find(|(_, entry)| ![&entry.urn, self.new_urn(&entry.urn)].iter().any(|urn| shown.contains(*urn)))
                .copied(),
        };
        if let Some((_, entry)) = refused {
            return Some(entry.urn.clone());
        }
        self.claimed_deletions.extend(new.iter().map(|(id, _)| *id));
        None
    }
}
