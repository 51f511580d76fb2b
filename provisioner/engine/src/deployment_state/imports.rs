//! Resources that a run imports.

use pulumi_proto::urn::Urn;
use state::{EntryId, ResourceState};

use super::DeploymentState;
use crate::decisions::imports::owns_imported;

impl DeploymentState {
    /// Reserves the resource that is imported as `planned`, in place of the entry `old` if there is one. Called before the
    /// resource is read, and again with the id that the provider returned, which may be another spelling.
    ///
    /// # Errors
    /// The URN that owns the resource: that of another entry, or of an import of this run that has reserved it.
    pub(crate) fn reserve_import(&mut self, planned: &ResourceState, old: Option<EntryId>) -> Result<(), Urn> {
        let others = self.ledger.entries().filter(|(id, _)| Some(*id) != old);
        let mut owners = others.map(|(_, entry)| &**entry).chain(&self.imports);
        if let Some(owner) = owners.find(|entry| owns_imported(entry, planned) && self.is_same_resource(entry, planned))
        {
            return Err(owner.urn.clone());
        }
        self.imports.push(planned.clone());
        Ok(())
    }
}
