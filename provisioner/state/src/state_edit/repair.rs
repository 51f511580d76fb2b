//! Repairs the order of entries and their references.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::{ProviderReference, Urn};

use super::error::StateEditError;
use crate::integrity;
use crate::references::Relation;
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;

/// Changes of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Entries that were moved because they stood after an entry that refers to them.
    pub moved: Vec<Urn>,
    /// Removed references, to missing entries, of entries to themselves, and in cycles: referring entry, relation, target.
    pub pruned: Vec<(Urn, Relation<'static>, Urn)>,
    /// URNs whose parent is missing, and their new URNs.
    pub renamed: Vec<(Urn, Urn)>,
    /// The wrong checksum of the manifest. Saving writes the correct one.
    pub checksum: Option<String>,
}

impl Repair {
    /// Returns `true` if the repair changed nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Sorts entries so that each comes after all entries that it refers to, and removes references to missing entries,
/// references of entries to themselves, and a wrong checksum. In a cycle, removes the references of one entry to a later
/// one. A missing provider and a cycle of parents or providers cannot be repaired.
///
/// # Errors
/// [`StateEditError::Cycle`], [`StateEditError::Unrepairable`], [`StateEditError::NameTaken`].
pub fn repair_snapshot(snapshot: &mut Snapshot) -> Result<Repair, StateEditError> {
    let mut repaired = snapshot.clone();
    let mut repair = Repair { checksum: repaired.manifest.wrong_checksum.take(), ..Repair::default() };
    prune_self_references(&mut repaired, &mut repair);
    (repaired.resources, repair.moved) = loop {
        match sort_entries(&repaired.resources) {
            Ok(sorted) => break sorted,
            Err(cycle) => break_cycle(&mut repaired, &cycle, &mut repair)?,
        }
    };
    prune_references(&mut repaired, &mut repair);
    for (from, to) in &repair.renamed {
        if repaired.resources.iter().any(|state| state.urn == *to) {
            return Err(StateEditError::NameTaken(to.clone()));
        }
        repaired.replace_urn(from, to);
    }
    integrity::verify(&repaired).map_err(StateEditError::Unrepairable)?;
    *snapshot = repaired;
    Ok(repair)
}

/// Indices of entries of which each refers to the next one, and the last one to the first.
struct Cycle(Vec<usize>);

/// Sorts entries stably after their dependencies. Returns the sorted entries and the URNs of the moved ones.
fn sort_entries(entries: &[Arc<ResourceState>]) -> Result<(Vec<Arc<ResourceState>>, Vec<Urn>), Cycle> {
    let mut by_urn: HashMap<&Urn, usize> = HashMap::new();
    let mut providers: HashMap<ProviderReference, usize> = HashMap::new();
    for (index, state) in entries.iter().enumerate() {
        // A reference to a URN means its live entry, if there is one.
        if !state.delete || !by_urn.contains_key(&state.urn) {
            by_urn.insert(&state.urn, index);
        }
        if let Some(provider) = state.as_provider_reference() {
            providers.entry(provider).or_insert(index);
        }
    }
    let dependencies_of = |index: usize| -> Vec<usize> {
        let state = &entries[index];
        let provider = state.provider.as_ref().filter(|_| !state.pending_replacement);
        let provider = provider.and_then(|provider| providers.get(provider));
        let dependencies =
            provider.into_iter().chain(state.all_dependencies().filter_map(|urn| by_urn.get(urn))).copied();
        // References between entries of the same URN do not constrain the order.
        dependencies.filter(|dependency| *dependency != index && entries[*dependency].urn != state.urn).collect()
    };
    let (mut order, mut moved) = (Vec::with_capacity(entries.len()), Vec::new());
    let mut placed = vec![false; entries.len()];
    let mut visiting = vec![false; entries.len()];
    for start in 0..entries.len() {
        // Each frame has an entry and the entries that have to be placed before it.
        let mut stack = if placed[start] { Vec::new() } else { vec![(start, dependencies_of(start))] };
        while let Some((index, waiting)) = stack.last_mut() {
            let index = *index;
            visiting[index] = true;
            match waiting.pop() {
                Some(next) if visiting[next] => {
                    let from = stack.iter().position(|(entry, _)| *entry == next).unwrap_or_default();
                    return Err(Cycle(stack[from..].iter().map(|(entry, _)| *entry).collect()));
                }
                Some(next) if placed[next] => {}
                Some(next) => stack.push((next, dependencies_of(next))),
                None => {
                    (visiting[index], placed[index]) = (false, true);
                    if index > start {
                        moved.push(entries[index].urn.clone());
                    }
                    order.push(index);
                    stack.pop();
                }
            }
        }
    }
    Ok((order.into_iter().map(|index| Arc::clone(&entries[index])).collect(), moved))
}

/// Removes references of entries to themselves.
fn prune_self_references(snapshot: &mut Snapshot, repair: &mut Repair) {
    for state in &mut snapshot.resources {
        if state.all_dependencies().any(|urn| *urn == state.urn) {
            let state = Arc::make_mut(state);
            let own = state.urn.clone();
            retain_dependencies(state, repair, |target| *target != own);
        }
    }
}

/// Removes the references by which one entry of a cycle refers to a later entry. A parent and a provider are never removed.
fn break_cycle(snapshot: &mut Snapshot, cycle: &Cycle, repair: &mut Repair) -> Result<(), StateEditError> {
    let Cycle(indices) = cycle;
    let entries = &mut snapshot.resources;
    let mut edges = indices.iter().copied().zip(indices.iter().copied().cycle().skip(1));
    let can_be_removed = |(from, to): &(usize, usize)| {
        let (state, target) = (&entries[*from], &entries[*to]);
        let is_provider = state.provider.as_ref().is_some_and(|provider| provider.urn == target.urn);
        from < to && !is_provider && state.parent.as_ref() != Some(&target.urn)
    };
    let Some((from, to)) = edges.find(can_be_removed) else {
        return Err(StateEditError::Cycle(indices.iter().map(|index| entries[*index].urn.clone()).collect()));
    };
    let later = entries[to].urn.clone();
    retain_dependencies(Arc::make_mut(&mut entries[from]), repair, |target| *target != later);
    Ok(())
}

/// Removes the dependencies that are not to be kept, and adds them to the repair.
fn retain_dependencies(state: &mut ResourceState, repair: &mut Repair, is_kept: impl Fn(&Urn) -> bool) {
    let urn = state.urn.clone();
    state.retain_dependencies(|relation, target| {
        let kept = is_kept(target);
        if !kept {
            repair.pruned.push((urn.clone(), relation.into_owned(), target.clone()));
        }
        kept
    });
}

/// Removes references to missing entries.
fn prune_references(snapshot: &mut Snapshot, repair: &mut Repair) {
    let existing: HashSet<Urn> = snapshot.resources.iter().map(|state| state.urn.clone()).collect();
    for state in &mut snapshot.resources {
        if state.all_dependencies().all(|urn| existing.contains(urn)) {
            continue;
        }
        let state = Arc::make_mut(state);
        retain_dependencies(state, repair, |target| existing.contains(target));
        let urn = state.urn.clone();
        let orphaned = state.parent.is_none() && state.urn.qualified_type() != state.urn.type_token();
        let renamed = repair.renamed.iter().any(|(from, _)| *from == urn);
        if orphaned && !renamed {
            let to = Urn::new(urn.stack(), urn.project(), None, urn.type_token(), urn.name());
            repair.renamed.push((urn, to));
        }
    }
}
