//! Deletions at the end of a run: the entries, the kind of each deletion, and their order
//! (docs/spec/engine-semantics.md#3).

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::Urn;

use crate::events::{RunMode, StepOp};
use state::{EntryId, ResourceState};

/// Returns the step that deletes an entry at the end of a run; `None` if the entry stays. `registered` is true if the
/// program has registered the resource, under its recorded URN or a new one.
pub(crate) fn deletion_step(state: &ResourceState, registered: bool) -> Option<StepOp> {
    if state.delete {
        Some(if state.external { StepOp::DiscardReplaced } else { StepOp::DeleteReplaced })
    } else if registered {
        None
    } else if state.pending_replacement {
        Some(StepOp::RemovePendingReplace)
    } else {
        Some(if state.external { StepOp::Discard } else { StepOp::Delete })
    }
}

/// Kind of the deletion of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletionKind {
    /// The entry cannot be deleted.
    Refused(Undeletable),
    /// The entry is removed from the state, and no provider is called. In a preview, every deletion that is not
    /// refused has this kind.
    RemoveFromState,
    /// The provider is called to delete the resource.
    CallProvider,
}

/// Reason that an entry cannot be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undeletable {
    /// The resource is protected.
    Protected,
    /// The resource has hooks that run with its deletion, and only its program can run them.
    HasDeleteHooks,
    /// No provider is recorded, as in old states.
    WithoutProvider,
}

/// Reason that an entry is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletionReason {
    /// The program no longer registers the resource, or the operation is a destroy.
    Removed,
    /// The replacement of the resource exists, or is about to be created.
    Replaced,
}

/// Outcome for the resource that `deletedWith` of an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletedWithTarget {
    /// The resource stays, or the entry has no `deletedWith`.
    Stays,
    /// The resource is deleted in the same run.
    IsDeleted,
}

/// Decides the kind of the deletion of an entry (docs/spec/engine-semantics.md#3.3).
pub(crate) fn deletion_kind(
    old: &ResourceState,
    reason: DeletionReason,
    deleted_with: DeletedWithTarget,
    mode: RunMode,
) -> DeletionKind {
    if old.protect && reason == DeletionReason::Removed && !old.delete {
        DeletionKind::Refused(Undeletable::Protected)
    } else if old.external
        || old.retain_on_delete
        || deleted_with == DeletedWithTarget::IsDeleted
        || old.pending_replacement
    {
        DeletionKind::RemoveFromState
    } else if old.has_delete_hooks() {
        DeletionKind::Refused(Undeletable::HasDeleteHooks)
    } else if old.custom && !old.is_provider() && old.provider.is_none() {
        DeletionKind::Refused(Undeletable::WithoutProvider)
    } else {
        match mode {
            RunMode::Preview => DeletionKind::RemoveFromState,
            RunMode::Apply => DeletionKind::CallProvider,
        }
    }
}

/// Groups the entries to delete into batches. Batches are deleted one after the other, the members of a batch at once.
/// Dependents are deleted before their dependencies, children before parents, resources before their provider.
///
/// `snapshot` holds all entries in their order. A reference means all earlier entries of its URN.
pub(crate) fn deletion_batches(
    snapshot: &[(EntryId, Arc<ResourceState>)],
    to_delete: &HashSet<EntryId>,
) -> Vec<Vec<EntryId>> {
    // Number of batches after that of an entry: 0 if no dependency of the entry is deleted.
    let mut depths: HashMap<EntryId, usize> = HashMap::new();
    let mut by_urn: HashMap<&Urn, Vec<EntryId>> = HashMap::new();
    let mut components: HashSet<&Urn> = HashSet::new();
    let mut children: HashMap<&Urn, Vec<&Urn>> = HashMap::new();
    let mut batches: Vec<Vec<EntryId>> = Vec::new();
    for (entry, state) in snapshot {
        let mut depth = 0;
        let mut depend_on = |urn: &Urn| {
            for target in by_urn.get(urn).into_iter().flatten() {
                if let Some(below) = depths.get(target) {
                    depth = depth.max(below + 1);
                }
            }
        };
        state.provider.iter().for_each(|provider| depend_on(&provider.urn));
        for urn in state.all_dependencies() {
            depend_on(urn);
            if components.contains(urn) && state.parent.as_ref() != Some(urn) {
                descendants(urn, &children).into_iter().for_each(&mut depend_on);
            }
        }
        if to_delete.contains(entry) {
            depths.insert(*entry, depth);
            if batches.len() <= depth {
                batches.resize_with(depth + 1, Vec::new);
            }
            batches[depth].push(*entry);
        }
        by_urn.entry(&state.urn).or_default().push(*entry);
        if let Some(parent) = &state.parent {
            children.entry(parent).or_default().push(&state.urn);
        }
        if !state.custom {
            components.insert(&state.urn);
        }
    }
    batches.reverse();
    batches
}

/// Moves each pending delete that is not `confirmed` before the entries that refer to its URN, because a run leaves
/// unconfirmed entries at the end of the list. A pending delete never moves before its own dependencies.
pub(crate) fn order_pending_deletes_first(
    snapshot: &[(EntryId, Arc<ResourceState>)],
    confirmed: impl Fn(EntryId) -> bool,
) -> Vec<(EntryId, Arc<ResourceState>)> {
    let is_pending_delete = |(id, state): &(EntryId, Arc<ResourceState>)| state.delete && !confirmed(*id);
    if !snapshot.iter().any(is_pending_delete) {
        return snapshot.to_vec();
    }
    let mut indices: HashMap<&Urn, Vec<usize>> = HashMap::new();
    for (index, (_, state)) in snapshot.iter().enumerate() {
        indices.entry(&state.urn).or_default().push(index);
    }
    let references = |index: usize| {
        let (_, state) = &snapshot[index];
        state.provider_and_dependencies().filter_map(|urn| indices.get(urn)).flatten().copied().collect::<Vec<_>>()
    };
    let dependencies = |index: usize| references(index).into_iter().filter(move |other| *other < index);
    // Pending deletes, each with its direct and indirect dependencies.
    let pending_deletes: HashMap<usize, HashSet<usize>> = (0..snapshot.len())
        .filter(|index| is_pending_delete(&snapshot[*index]))
        .map(|pending_delete| {
            let (mut found, mut open) = (HashSet::new(), vec![pending_delete]);
            while let Some(index) = open.pop() {
                open.extend(dependencies(index).filter(|dependency| found.insert(*dependency)));
            }
            (pending_delete, found)
        })
        .collect();
    let predecessors = |index: usize| {
        let can_move = |other: usize| pending_deletes.get(&other).is_some_and(|found| !found.contains(&index));
        let mut predecessors = references(index);
        predecessors.retain(|other| *other < index || can_move(*other));
        predecessors
    };
    let (mut order, mut visited) = (Vec::with_capacity(snapshot.len()), HashSet::new());
    for start in 0..snapshot.len() {
        let mut open = if visited.insert(start) { vec![(start, predecessors(start))] } else { Vec::new() };
        while let Some((index, waits_for)) = open.last_mut() {
            match waits_for.pop() {
                Some(next) if visited.insert(next) => open.push((next, predecessors(next))),
                Some(_) => {}
                None => {
                    order.push(snapshot[*index].clone());
                    open.pop();
                }
            }
        }
    }
    order
}

/// Returns the direct and indirect children of a component: a dependent of a component depends on all of them. Each URN
/// is visited once, because a pending delete may have a parent that is a child of its replacement.
fn descendants<'a>(urn: &Urn, children: &HashMap<&'a Urn, Vec<&'a Urn>>) -> HashSet<&'a Urn> {
    let mut found = HashSet::new();
    let of = |urn: &Urn| children.get(urn).into_iter().flatten().copied();
    let mut open: Vec<&Urn> = of(urn).collect();
    while let Some(urn) = open.pop() {
        if found.insert(urn) {
            open.extend(of(urn));
        }
    }
    found
}
