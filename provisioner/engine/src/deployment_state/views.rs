//! Recorded views of a resource (docs/spec/engine-semantics.md#4.2).

use std::sync::Arc;

use pulumi_proto::urn::Urn;
use state::ResourceState;

use super::DeploymentState;
use crate::entry::Entry;

impl DeploymentState {
    /// Returns the views of an entry. The views of a pending delete are pending deletes, too.
    pub(crate) fn views_of(&self, owner: &ResourceState) -> Vec<Entry> {
        let views = self.ledger.views_of(&owner.urn).filter(|(_, state)| state.delete == owner.delete);
        views.map(|(id, state)| (id, Arc::clone(state))).collect()
    }
}

/// Moves a view below the new URN of its owner.
pub(crate) fn rename_view(view: &mut ResourceState, owner: &Urn) {
    view.urn = Urn::new(owner.stack(), owner.project(), Some(owner), view.urn.type_token(), view.urn.name());
    (view.parent, view.view_of) = (Some(owner.clone()), Some(owner.clone()));
}
