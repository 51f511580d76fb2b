//! Which resources go at the end of a run, how, and in which order (engine semantics, section 3).

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::Urn;

use crate::events::StepOp;
use crate::run_mode::RunMode;
use state::{EntryId, ResourceState};

/// Returns the step that deletes an entry at the end of a run; `None`: the entry stays. `registered`: the program has
/// registered the resource, under its recorded name or another one.
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

/// What deleting an entry takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// It stays.
    Refused(Undeletable),
    /// It is only forgotten.
    Forget,
    /// Its provider is called to delete it.
    CallProvider,
}

/// Why an entry is not deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undeletable {
    /// It is protected.
    Protected,
    /// Its program is to be called before or after, and is not there to be.
    Hooked,
    /// Nobody is recorded who could be asked: states of long ago have such entries.
    Unserved,
}

/// Why an entry is to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletionReason {
    /// Nothing wants the resource any more.
    Unwanted,
    /// Its replacement exists, or is about to be created.
    Replaced,
}

/// What happens to the resource that an entry is `deletedWith`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It stays, or the entry has none.
    Stays,
    /// It is deleted in the same run.
    IsDeleted,
}

/// Decides what deleting an entry takes (section 3.3).
pub(crate) fn deletion(old: &ResourceState, reason: DeletionReason, owner: Owner, mode: RunMode) -> Deletion {
    if old.protect && reason == DeletionReason::Unwanted && !old.delete {
        Deletion::Refused(Undeletable::Protected)
    } else if old.external || old.retain_on_delete || owner == Owner::IsDeleted || old.pending_replacement {
        Deletion::Forget
    } else if old.has_delete_hooks() {
        Deletion::Refused(Undeletable::Hooked)
    } else if old.custom && !old.is_provider() && old.provider.is_none() {
        Deletion::Refused(Undeletable::Unserved)
    } else {
        match mode {
            RunMode::Preview => Deletion::Forget,
            RunMode::Apply => Deletion::CallProvider,
        }
    }
}

/// The doomed entries in waves: one wave goes after the other, the members of a wave at once. Dependents go before what
/// they depend on, children before parents, resources before their provider.
///
/// `snapshot` holds all entries in their order; a reference is looked up by URN among the entries before it, so every
/// copy of a URN counts.
pub(crate) fn waves(snapshot: &[(EntryId, Arc<ResourceState>)], doomed: &HashSet<EntryId>) -> Vec<Vec<EntryId>> {
    // How many waves must go after an entry's own: 0 for who depends on no doomed one.
    let mut depths: HashMap<EntryId, usize> = HashMap::new();
    let mut copies: HashMap<&Urn, Vec<EntryId>> = HashMap::new();
    let mut components: HashSet<&Urn> = HashSet::new();
    let mut children: HashMap<&Urn, Vec<&Urn>> = HashMap::new();
    let mut waves: Vec<Vec<EntryId>> = Vec::new();
    for (entry, state) in snapshot {
        let mut depth = 0;
        let mut reach = |urn: &Urn| {
            for target in copies.get(urn).into_iter().flatten() {
                if let Some(below) = depths.get(target) {
                    depth = depth.max(below + 1);
                }
            }
        };
        state.provider.iter().for_each(|provider| reach(&provider.urn));
        for urn in state.references() {
            reach(urn);
            if components.contains(urn) && state.parent.as_ref() != Some(urn) {
                descendants(urn, &children).into_iter().for_each(&mut reach);
            }
        }
        if doomed.contains(entry) {
            depths.insert(*entry, depth);
            if waves.len() <= depth {
                waves.resize_with(depth + 1, Vec::new);
            }
            waves[depth].push(*entry);
        }
        copies.entry(&state.urn).or_default().push(*entry);
        if let Some(parent) = &state.parent {
            children.entry(parent).or_default().push(&state.urn);
        }
        if !state.custom {
            components.insert(&state.urn);
        }
    }
    waves.reverse();
    waves
}

/// The entries with each copy that awaits its deletion, unless `confirmed`, before what refers to its URN: a run leaves what
/// it has not confirmed at the end. Where that would put a copy before something that it needs, it stays where it is.
pub(crate) fn superseded_first(
    snapshot: &[(EntryId, Arc<ResourceState>)],
    confirmed: impl Fn(EntryId) -> bool,
) -> Vec<(EntryId, Arc<ResourceState>)> {
    let is_copy = |(id, state): &(EntryId, Arc<ResourceState>)| state.delete && !confirmed(*id);
    if !snapshot.iter().any(is_copy) {
        return snapshot.to_vec();
    }
    let mut places: HashMap<&Urn, Vec<usize>> = HashMap::new();
    for (place, (_, state)) in snapshot.iter().enumerate() {
        places.entry(&state.urn).or_default().push(place);
    }
    let named = |place: usize| {
        let (_, state) = &snapshot[place];
        let urns = state.provider.iter().map(|provider| &provider.urn).chain(state.references());
        urns.filter_map(|urn| places.get(urn)).flatten().copied().collect::<Vec<_>>()
    };
    let needed = |place: usize| named(place).into_iter().filter(move |other| *other < place);
    // Each copy, and everything that must come before it.
    let copies: HashMap<usize, HashSet<usize>> = (0..snapshot.len())
        .filter(|place| is_copy(&snapshot[*place]))
        .map(|copy| {
            let (mut met, mut open) = (HashSet::new(), vec![copy]);
            while let Some(place) = open.pop() {
                open.extend(needed(place).filter(|needed| met.insert(*needed)));
            }
            (copy, met)
        })
        .collect();
    let before = |place: usize| {
        let free = |copy: usize| copies.get(&copy).is_some_and(|needed| !needed.contains(&place));
        let mut before = named(place);
        before.retain(|other| *other < place || free(*other));
        before
    };
    let (mut order, mut begun) = (Vec::with_capacity(snapshot.len()), HashSet::new());
    for start in 0..snapshot.len() {
        let mut open = if begun.insert(start) { vec![(start, before(start))] } else { Vec::new() };
        while let Some((place, waits_for)) = open.last_mut() {
            match waits_for.pop() {
                Some(next) if begun.insert(next) => open.push((next, before(next))),
                Some(_) => {}
                None => {
                    order.push(snapshot[*place].clone());
                    open.pop();
                }
            }
        }
    }
    order
}

/// To depend on a component means to depend on what is in it. Each once: a copy may be within what is now within its
/// successor.
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
