//! Edits of a state by hand: what is recorded changes, and nothing else.
//!
//! Enters: a snapshot, and which of its entries are meant. Leaves: the snapshot changed and an account of it, or a refusal
//! and the snapshot as it was. Never here: providers, locks, files.

use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

use pulumi_proto::urn::{NameError, ProviderReference, Urn};

use super::integrity::{self, IntegrityError, Relation};
use super::resource::ResourceState;
use super::snapshot::Snapshot;

/// Why an edit is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SurgeryError {
    /// Entries that must not be lost.
    #[error("protected: {}", names(.0))]
    Protected(Vec<Urn>),
    /// Others depend on what would go.
    #[error("needed by {}", names(.0))]
    Needed(Vec<Urn>),
    /// A URN stands for several entries, of which one was meant.
    #[error("{} is recorded several times, with the ids {}", .urn.name(), .ids.join(", "))]
    Ambiguous {
        /// The URN.
        urn: Urn,
        /// The ids of its entries.
        ids: Vec<String>,
    },
    /// No entry has the id.
    #[error("none of them has the id {0}")]
    NoSuchId(String),
    /// The new name is another resource's.
    #[error("there is a resource {} of this type already", .0.name())]
    Taken(Urn),
    /// The new name cannot be one.
    #[error("{0:?} cannot be the name of a resource")]
    BadName(String, #[source] NameError),
    /// Entries refer to each other in a circle.
    #[error("these refer to each other in a circle: {}", names(.0))]
    Circle(Vec<Urn>),
    /// What is broken beyond the order and the references.
    #[error("cannot be repaired: {0}")]
    Broken(IntegrityError),
}

fn names(urns: &[Urn]) -> String {
    urns.iter().map(Urn::name).collect::<Vec<_>>().join(", ")
}

/// Which entries are meant, by their URNs.
pub type Selection<'a> = &'a dyn Fn(&Urn) -> bool;

/// How entries are removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Removal<'a> {
    /// Only the entry with this id, where a URN has several.
    pub id: Option<&'a str>,
    /// Protected ones, too.
    pub force: bool,
    /// With them whatever depends on them.
    pub dependents: bool,
}

/// Removes entries, and returns them. What they stand for is not deleted.
///
/// # Errors
/// [`SurgeryError::Ambiguous`], [`SurgeryError::Needed`], [`SurgeryError::Protected`].
pub fn remove(
    snapshot: &mut Snapshot,
    selected: Selection<'_>,
    how: Removal<'_>,
) -> Result<Vec<Arc<ResourceState>>, SurgeryError> {
    let gone = chosen(snapshot, selected, how)?;
    let (mut removed, mut left) = (Vec::new(), Vec::new());
    for (index, state) in std::mem::take(&mut snapshot.resources).into_iter().enumerate() {
        if gone.contains(&index) { removed.push(state) } else { left.push(state) }
    }
    snapshot.resources = left;
    Ok(removed)
}

/// The places of the entries that a removal takes.
fn chosen(snapshot: &Snapshot, selected: Selection<'_>, how: Removal<'_>) -> Result<HashSet<usize>, SurgeryError> {
    let meant = |state: &ResourceState| selected(&state.urn) && how.id.is_none_or(|id| state.id == id);
    let mut copies: HashMap<&Urn, Vec<String>> = HashMap::new();
    for state in snapshot.resources.iter().filter(|state| meant(state)) {
        copies.entry(&state.urn).or_default().push(state.id.clone());
    }
    if let (Some(id), true) = (how.id, copies.is_empty()) {
        return Err(SurgeryError::NoSuchId(id.to_owned()));
    }
    if let Some((urn, ids)) = copies.into_iter().filter(|(_, ids)| ids.len() > 1).min() {
        return Err(SurgeryError::Ambiguous { urn: urn.clone(), ids });
    }

    let (mut kept, mut seen) = (Names::default(), Names::default());
    let (mut gone, mut needed) = (Vec::new(), Vec::new());
    for (index, state) in snapshot.resources.iter().enumerate() {
        let cut_off = seen.satisfy(state) && !kept.satisfy(state);
        seen.insert(state);
        if meant(state) || (cut_off && how.dependents) {
            gone.push(index);
            continue;
        }
        if cut_off {
            needed.push(state.urn.clone());
        }
        kept.insert(state);
    }
    if !needed.is_empty() {
        return Err(SurgeryError::Needed(needed));
    }
    let protected = gone.iter().map(|index| &snapshot.resources[*index]).filter(|state| state.protect && !how.force);
    let protected: Vec<Urn> = protected.map(|state| state.urn.clone()).collect();
    if !protected.is_empty() {
        return Err(SurgeryError::Protected(protected));
    }
    Ok(gone.into_iter().collect())
}

/// What entries can refer to.
#[derive(Default)]
struct Names<'s> {
    urns: HashSet<&'s Urn>,
    providers: HashSet<(&'s Urn, &'s str)>,
}

impl<'s> Names<'s> {
    fn insert(&mut self, state: &'s ResourceState) {
        self.urns.insert(&state.urn);
        if state.is_provider() {
            self.providers.insert((&state.urn, &state.id));
        }
    }

    /// Whether all that an entry refers to is here.
    fn satisfy(&self, state: &ResourceState) -> bool {
        let provider = state.provider.as_ref().filter(|_| !state.pending_replacement);
        provider.is_none_or(|provider| self.providers.contains(&(&provider.urn, &*provider.id)))
            && state.references().all(|urn| self.urns.contains(urn))
    }
}

/// A mark that an entry can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It must not be deleted.
    Protect,
    /// The next update replaces it.
    Taint,
}

/// Sets or takes a mark, and returns the entries that did not have it, or had it. What awaits deletion is not replaced.
pub fn mark(snapshot: &mut Snapshot, selected: Selection<'_>, mark: Mark, value: bool) -> Vec<Urn> {
    let mut changed = Vec::new();
    for state in &mut snapshot.resources {
        let has = match mark {
            Mark::Protect => state.protect,
            Mark::Taint => state.taint,
        };
        if !selected(&state.urn) || has == value || (mark == Mark::Taint && state.delete) {
            continue;
        }
        let state = Arc::make_mut(state);
        match mark {
            Mark::Protect => state.protect = value,
            Mark::Taint => state.taint = value,
        }
        changed.push(state.urn.clone());
    }
    changed
}

/// Gives a resource another name, wherever it is named, and returns its new URN.
///
/// # Errors
/// [`SurgeryError::Taken`], [`SurgeryError::BadName`].
pub fn rename(snapshot: &mut Snapshot, from: &Urn, name: &str) -> Result<Urn, SurgeryError> {
    let bad = |error| SurgeryError::BadName(name.to_owned(), error);
    let prefix = from.as_str().strip_suffix(from.name()).unwrap_or_default();
    if name.is_empty() || name.starts_with("urn:") {
        return Err(bad(NameError::Urn(prefix.to_owned())));
    }
    let to: Urn = format!("{prefix}{name}").parse().map_err(bad)?;
    if snapshot.resources.iter().any(|state| state.urn == to) {
        return Err(SurgeryError::Taken(to));
    }
    replace_urn(snapshot, from, &to);
    Ok(to)
}

/// Puts one URN in place of another everywhere.
fn replace_urn(snapshot: &mut Snapshot, from: &Urn, to: &Urn) {
    let pending = snapshot.pending_operations.iter_mut().map(|pending| &mut pending.resource);
    for state in snapshot.resources.iter_mut().chain(pending) {
        let provider = state.provider.as_ref().is_some_and(|provider| provider.urn == *from);
        let views = state.view_of.as_ref() == Some(from);
        if state.urn != *from && !provider && !views && !state.references().any(|urn| urn == from) {
            continue;
        }
        let state = Arc::make_mut(state);
        if state.urn == *from {
            state.urn = to.clone();
        }
        if let Some(provider) = state.provider.as_mut().filter(|provider| provider.urn == *from) {
            *provider = ProviderReference::new(to.clone(), &*provider.id);
        }
        let view_of = state.view_of.iter_mut();
        let parent = state.parent.iter_mut().chain(&mut state.dependencies);
        let others = state.property_dependencies.values_mut().flatten().chain(&mut state.deleted_with);
        for urn in view_of.chain(parent).chain(others).chain(&mut state.replace_with).filter(|urn| **urn == *from) {
            *urn = to.clone();
        }
    }
}

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
    let mut providers: HashMap<(&Urn, &str), usize> = HashMap::new();
    for (index, state) in entries.iter().enumerate() {
        // What lives is meant, if anything does.
        if !state.delete || !by_urn.contains_key(&state.urn) {
            by_urn.insert(&state.urn, index);
        }
        if state.is_provider() {
            providers.entry((&state.urn, &state.id)).or_insert(index);
        }
    }
    let needs = |index: usize| -> Vec<usize> {
        let state = &entries[index];
        let provider = state.provider.as_ref().filter(|_| !state.pending_replacement);
        let provider = provider.and_then(|provider| providers.get(&(&provider.urn, &*provider.id)));
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

#[cfg(test)]
mod tests;
