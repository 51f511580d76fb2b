//! Repairs the order of entries and their references.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::{ProviderReference, Urn};

use super::error::SurgeryError;
use super::rename::replace_urn;
use crate::integrity::{self, Relation};
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;

/// What was repaired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Entries that stood before something that they refer to.
    pub moved: Vec<Urn>,
    /// References to what is not there: whose, how, to what.
    pub pruned: Vec<(Urn, Relation, Urn)>,
    /// URNs that named a parent which is not there, and what they are now.
    pub renamed: Vec<(Urn, Urn)>,
    /// The checksum of the manifest, where it was wrong. The right one is written with the state.
    pub checksum: Option<String>,
}

impl Repair {
    /// Whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Brings entries into an order in which each comes after all that it refers to, drops references to what is not there, and
/// a wrong checksum. A provider that is not there cannot be made up.
///
/// # Errors
/// [`SurgeryError::Circle`], [`SurgeryError::Broken`], [`SurgeryError::Taken`].
pub fn repair(snapshot: &mut Snapshot) -> Result<Repair, SurgeryError> {
    let mut repaired = snapshot.clone();
    let (sorted, moved) = sort(&snapshot.resources)?;
    repaired.resources = sorted;
    let checksum = repaired.manifest.wrong_checksum.take();
    let mut done = Repair { moved, checksum, ..Repair::default() };
    prune(&mut repaired, &mut done);
    for (from, to) in &done.renamed {
        if repaired.resources.iter().any(|state| state.urn == *to) {
            return Err(SurgeryError::Taken(to.clone()));
        }
        replace_urn(&mut repaired, from, to);
    }
    integrity::verify(&repaired).map_err(SurgeryError::Broken)?;
    *snapshot = repaired;
    Ok(done)
}

/// Sorts entries, keeping their order where nothing is against it, and returns those that had to wait.
fn sort(entries: &[Arc<ResourceState>]) -> Result<(Vec<Arc<ResourceState>>, Vec<Urn>), SurgeryError> {
    let mut by_urn: HashMap<&Urn, usize> = HashMap::new();
    let mut providers: HashMap<ProviderReference, usize> = HashMap::new();
    for (index, state) in entries.iter().enumerate() {
        // What lives is meant, if anything does.
        if !state.delete || !by_urn.contains_key(&state.urn) {
            by_urn.insert(&state.urn, index);
        }
        if let Some(provider) = state.as_provider_reference() {
            providers.entry(provider).or_insert(index);
        }
    }
    let needs = |index: usize| -> Vec<usize> {
        let state = &entries[index];
        let provider = state.provider.as_ref().filter(|_| !state.pending_replacement);
        let provider = provider.and_then(|provider| providers.get(provider));
        let needed = provider.into_iter().chain(state.references().filter_map(|urn| by_urn.get(urn))).copied();
        // Copies of one URN may refer to it.
        needed.filter(|needed| *needed != index && entries[*needed].urn != state.urn).collect()
    };
    let (mut order, mut moved) = (Vec::with_capacity(entries.len()), Vec::new());
    let mut placed = vec![false; entries.len()];
    let mut open = vec![false; entries.len()];
    for start in 0..entries.len() {
        // Each frame: an entry, and what it still waits for.
        let mut stack = if placed[start] { Vec::new() } else { vec![(start, needs(start))] };
        while let Some((index, waiting)) = stack.last_mut() {
            let index = *index;
            open[index] = true;
            match waiting.pop() {
                Some(next) if open[next] => {
                    let from = stack.iter().position(|(entry, _)| *entry == next).unwrap_or_default();
                    let circle = stack[from..].iter().map(|(entry, _)| entries[*entry].urn.clone());
                    return Err(SurgeryError::Circle(circle.collect()));
                }
                Some(next) if placed[next] => {}
                Some(next) => stack.push((next, needs(next))),
                None => {
                    (open[index], placed[index]) = (false, true);
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

/// Drops references to what is not there.
fn prune(snapshot: &mut Snapshot, done: &mut Repair) {
    let there: HashSet<Urn> = snapshot.resources.iter().map(|state| state.urn.clone()).collect();
    for state in &mut snapshot.resources {
        if state.references().all(|urn| there.contains(urn)) {
            continue;
        }
        let state = Arc::make_mut(state);
        let urn = state.urn.clone();
        let mut is_there = |relation: Relation, target: &Urn| {
            let found = there.contains(target);
            if !found {
                done.pruned.push((urn.clone(), relation, target.clone()));
            }
            found
        };
        state.parent = state.parent.take().filter(|parent| is_there(Relation::Parent, parent));
        state.dependencies.retain(|target| is_there(Relation::Dependency, target));
        for (property, targets) in &mut state.property_dependencies {
            targets.retain(|target| is_there(Relation::PropertyDependency(property.clone()), target));
        }
        state.deleted_with = state.deleted_with.take().filter(|target| is_there(Relation::DeletedWith, target));
        state.replace_with.retain(|target| is_there(Relation::ReplaceWith, target));
        let orphaned = state.parent.is_none() && state.urn.qualified_type() != state.urn.type_token();
        let renamed = done.renamed.iter().any(|(from, _)| *from == urn);
        if orphaned && !renamed {
            let to = Urn::new(urn.stack(), urn.project(), None, urn.type_token(), urn.name());
            done.renamed.push((urn, to));
        }
    }
}
