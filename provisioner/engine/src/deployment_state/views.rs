//! Recorded views of a resource (docs/spec/engine-semantics.md#4.2).

use std::sync::Arc;

use pulumi_proto::urn::Urn;
use state::ResourceState;

use super::DeploymentState;
use crate::entry::Entry;

impl DeploymentState {
    /// Returns the views of an entry. The views of a pending delete are pending deletes, too.
    pub(crate) fn views_of(&self, resource: &ResourceState) -> Vec<Entry> {
        let views = self.ledger.views_of(&resource.urn).filter(|(_, state)| state.delete == resource.delete);
        views.map(|(id, state)| (id, Arc::clone(state))).collect()
    }
}

/// Moves a view below the new URN of its resource.
pub(crate) fn rename_view(view: &mut ResourceState, resource: &Urn) {
    view.urn = Urn::new(resource.stack(), resource.project(), Some(resource), view.urn.type_token(), view.urn.name());
    (view.parent, view.view_of) = (Some(resource.clone()), Some(resource.clone()));
}
