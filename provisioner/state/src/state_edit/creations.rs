//! Records the creations that the journal of an interrupted run has and the state lacks.

use std::sync::Arc;

use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, Urn};

use crate::journal::Creations;
use crate::resource::{ResourceState, can_identify};
use crate::snapshot::{OperationKind, PendingOperation, Snapshot};

/// Treatment of a creation that the state lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreationTreatment {
    /// Recorded as an entry, as the run had recorded it.
    Entry,
    /// Recorded as a pending create: its outcome is unknown, or its provider or parent is missing from the state.
    PendingCreate,
    /// Not recorded: the live entry of its URN has another id.
    OtherId(ResourceId),
    /// Not recorded: an entry of its type with another URN has its id.
    OtherUrn(Urn),
}

/// Records the creations of a journal that the state lacks. Returns these with their treatment. Repeated, it changes
/// nothing.
///
/// A live entry is never replaced, and no pending delete recorded: the next run would delete its resource, and which of two
/// resources is needed is not known. Providers and components that a new entry needs are recorded with it.
/// The entries may stand in a wrong order, and refer to missing dependencies, until
/// [`repair_snapshot`](super::repair_snapshot).
pub fn record_creations(
    snapshot: &mut Snapshot,
    creations: &Creations,
) -> Vec<(Arc<ResourceState>, CreationTreatment)> {
    let mut treated = Vec::new();
    // Entries of one URN in the journal are a resource and its old copies, of which the run had recorded which is which.
    let before = snapshot.clone();
    for state in &creations.created {
        if is_recorded(snapshot, state) {
            continue;
        }
        let treatment = obstacle(&before, state).unwrap_or_else(|| {
            if record_entry(snapshot, state, creations) {
                return CreationTreatment::Entry;
            }
            push_pending_create(snapshot, state);
            CreationTreatment::PendingCreate
        });
        treated.push((Arc::clone(state), treatment));
    }
    for state in &creations.creating {
        if is_recorded(snapshot, state) || has_pending_create(snapshot, state) {
            continue;
        }
        // With an id, it would be recorded as a pending delete beside a live entry.
        let treatment = obstacle(snapshot, state).unwrap_or_else(|| {
            push_pending_create(snapshot, state);
            CreationTreatment::PendingCreate
        });
        treated.push((Arc::clone(state), treatment));
    }
    treated
}

/// Treatment of a creation that a run has recorded late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LateTreatment {
    /// The state has it already.
    Recorded,
    /// Recorded as a pending create with its id.
    PendingCreate,
    /// Not recorded: the live entry of its URN has another id.
    OtherId(ResourceId),
}

/// Records a resource that a run has created late, unless the state has it, also under another URN. A pending create of its
/// URN without an id is the one whose reply came late. A live entry of its URN, or a pending create with another id, is never replaced, and the resource is not
/// recorded beside it, because the next run would delete it.
pub(crate) fn record_late(snapshot: &mut Snapshot, state: &Arc<ResourceState>) -> LateTreatment {
    if is_recorded(snapshot, state) {
        return LateTreatment::Recorded;
    }
    match obstacle(snapshot, state) {
        Some(CreationTreatment::OtherId(other)) => return LateTreatment::OtherId(other),
        Some(_) => return LateTreatment::Recorded,
        None => {}
    }
    let is_other = |operation: &&PendingOperation| operation.is_create_with_id() && operation.resource.urn == state.urn;
    if let Some(other) = snapshot.pending_operations.iter().find(is_other).and_then(|other| other.resource.id.clone()) {
        return LateTreatment::OtherId(other);
    }
    let mut pending = snapshot.pending_operations.iter_mut().filter(|operation| operation.is_create_without_id());
    match pending.find(|operation| operation.resource.urn == state.urn) {
        Some(operation) => operation.resource = Arc::clone(state),
        None => push_pending_create(snapshot, state),
    }
    LateTreatment::PendingCreate
}

/// Returns `true` if the state has the resource with its URN and id: as an entry, or as a pending create.
pub(crate) fn is_recorded(snapshot: &Snapshot, state: &ResourceState) -> bool {
    let pending = snapshot.pending_operations.iter().filter(|operation| operation.kind == OperationKind::Creating);
    let mut recorded = snapshot.resources.iter().chain(pending.map(|operation| &operation.resource));
    state.id.is_some() && recorded.any(|entry| entry.urn == state.urn && entry.id == state.id)
}

/// Returns `true` if the state has a pending create of the URN whose id is not known.
fn has_pending_create(snapshot: &Snapshot, state: &ResourceState) -> bool {
    let mut pending = snapshot.pending_operations.iter().filter(|operation| operation.is_create_without_id());
    state.id.is_none() && pending.any(|operation| operation.resource.urn == state.urn)
}

/// Returns the reason not to record a resource whose id is known.
fn obstacle(snapshot: &Snapshot, state: &ResourceState) -> Option<CreationTreatment> {
    let id = state.id.as_ref()?;
    let is_live = |entry: &&Arc<ResourceState>| !entry.delete && !entry.pending_replacement;
    let mut live = snapshot.resources.iter().filter(is_live);
    if let Some(other) = live.find(|entry| entry.urn == state.urn) {
        return other.id.clone().map(CreationTreatment::OtherId);
    }
    let is_same_resource = |entry: &&Arc<ResourceState>| {
        let has_id = entry.id.as_ref() == Some(id) || entry.import_id.as_ref() == Some(id);
        entry.type_token == state.type_token && has_id && !entry.pending_replacement
    };
    let other = snapshot.resources.iter().filter(|_| can_identify(id, &state.type_token)).find(is_same_resource)?;
    Some(CreationTreatment::OtherUrn(other.urn.clone()))
}

/// Records a resource as an entry, with the providers and components that it needs. Returns `false` and changes nothing
/// if one of these is missing.
fn record_entry(snapshot: &mut Snapshot, state: &ResourceState, creations: &Creations) -> bool {
    let mut extended = snapshot.clone();
    let is_replaced = |entry: &Arc<ResourceState>| entry.urn == state.urn && !entry.delete && entry.pending_replacement;
    if !state.delete {
        // The resource of the entry is deleted, and this one is its replacement.
        extended.resources.retain(|entry| !is_replaced(entry));
    }
    let is_complete = push_entry(&mut extended, state, creations);
    if is_complete {
        *snapshot = extended;
    }
    is_complete
}

/// Adds an entry after the providers and components that it needs. Returns `false` if one of these is missing.
fn push_entry(snapshot: &mut Snapshot, state: &ResourceState, creations: &Creations) -> bool {
    let mut entry = state.clone();
    if let Some(provider) = &state.provider {
        match find_provider(snapshot, provider, creations) {
            Some(found) => entry.provider = Some(found),
            None => return false,
        }
    }
    if let Some(parent) = &state.parent
        && !snapshot.resources.iter().any(|entry| entry.urn == *parent)
    {
        let is_parent = |state: &&Arc<ResourceState>| state.urn == *parent;
        let added = creations.context.iter().chain(&creations.created).find(is_parent);
        // Parents do not form a cycle: a resource is registered after its parent.
        if !added.is_some_and(|parent| parent.urn != state.urn && push_entry(snapshot, parent, creations)) {
            return false;
        }
    }
    snapshot.resources.push(Arc::new(entry));
    true
}

/// Returns a reference to the recorded provider: to the same one, else to the live one with its URN. Records that of the
/// journal if there is neither.
fn find_provider(
    snapshot: &mut Snapshot,
    provider: &ProviderReference,
    creations: &Creations,
) -> Option<ProviderReference> {
    let references = |entry: &Arc<ResourceState>| entry.as_provider_reference();
    if snapshot.resources.iter().filter_map(references).any(|reference| reference == *provider) {
        return Some(provider.clone());
    }
    let mut live = snapshot.resources.iter().filter(|entry| !entry.delete);
    if let Some(live) = live.find(|entry| entry.urn == provider.urn) {
        return live.as_provider_reference();
    }
    let added = creations.context.iter().find(|state| state.as_provider_reference().as_ref() == Some(provider))?;
    push_entry(snapshot, added, creations).then(|| provider.clone())
}

fn push_pending_create(snapshot: &mut Snapshot, state: &Arc<ResourceState>) {
    let operation = PendingOperation { resource: Arc::clone(state), kind: OperationKind::Creating };
    snapshot.pending_operations.push(operation);
}
