//! Changes of a run that are recorded nowhere, for the program to print when the run ends.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use super::ledger::Ledger;
use super::record::{Effect, Record};
use super::resource::ResourceState;

/// Change of a resource that neither the checkpoint nor a journal contains. `Display` writes `URN = id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrecordedChange {
    /// Kind of the change.
    pub kind: ChangeKind,
    /// The resource.
    pub urn: Urn,
    /// Id that the provider gave.
    pub id: ResourceId,
}

/// Kind of a change of the recorded resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The resource was created, imported or replaced: no record has its id.
    Added,
    /// The resource was updated: a record has its id, but not its new state.
    Changed,
    /// The resource was deleted or released: a record still has it.
    Removed,
}

impl ChangeKind {
    /// Returns the name in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

impl fmt::Display for UnrecordedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.urn, self.id)?;
        match self.kind {
            ChangeKind::Added => Ok(()),
            kind @ (ChangeKind::Changed | ChangeKind::Removed) => write!(f, " ({})", kind.as_str()),
        }
    }
}

/// Report of the changes that a run could not record, shared by the run and the program: the run updates it, and the
/// program reads it when the run has ended in any way, such as a panic.
#[derive(Clone, Debug, Default)]
pub struct Unrecorded(Arc<Mutex<UnrecordedReport>>);

/// Content of [`Unrecorded`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnrecordedReport {
    /// Changes that are recorded nowhere.
    pub changes: Vec<UnrecordedChange>,
    /// Journal with the changes of a run that ended without an attempt to save its state. Its content was checked.
    pub journal: Option<PathBuf>,
}

impl Unrecorded {
    /// Takes the report, which is empty afterwards.
    pub fn take(&self) -> UnrecordedReport {
        std::mem::take(&mut *self.lock())
    }

    /// Returns the changes that are recorded nowhere.
    pub fn changes(&self) -> Vec<UnrecordedChange> {
        self.lock().changes.clone()
    }

    pub(crate) fn set_changes(&self, changes: Vec<UnrecordedChange>) {
        self.lock().changes = changes;
    }

    pub(crate) fn set_journal(&self, journal: &Path) {
        self.lock().journal = Some(journal.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, UnrecordedReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects the changes of records that are recorded nowhere.
#[derive(Debug, Default)]
pub(crate) struct ChangeCollector {
    /// Changes by URN and id, each with the number of its first record.
    changes: HashMap<(Urn, ResourceId), (usize, ChangeKind)>,
    next: usize,
}

impl ChangeCollector {
    /// Adds the changes of a record. The ledger does not contain the record yet.
    pub(crate) fn add(&mut self, ledger: &Ledger, record: &Record) {
        let effects = match record {
            Record::Begin { .. } => return,
            Record::End { effects, .. } | Record::Change(effects) => effects,
        };
        for effect in effects {
            match effect {
                // The resource is deleted before its replacement is created.
                Effect::Rewrite(_, state) if state.pending_replacement => self.remove(state),
                Effect::Add(_, state) | Effect::Rewrite(_, state) => self.set(state, effects, ledger),
                Effect::Remove(entry) => {
                    let Some(old) = ledger.get(*entry) else { continue };
                    // An update removes the old entry and adds a new one with the same id.
                    let is_same = |effect: &Effect| match effect {
                        Effect::Add(_, new) | Effect::Rewrite(_, new) => new.urn == old.urn && new.id == old.id,
                        Effect::Remove(_) | Effect::Keep(_) | Effect::DropInheritedPending => false,
                    };
                    if !effects.iter().any(is_same) {
                        self.remove(old);
                    }
                }
                Effect::Keep(_) | Effect::DropInheritedPending => {}
            }
        }
    }

    /// Returns the changes, in the order of their records.
    pub(crate) fn changes(self) -> Vec<UnrecordedChange> {
        let mut changes: Vec<_> = self.changes.into_iter().map(|((urn, id), (at, kind))| (at, urn, id, kind)).collect();
        changes.sort_by_key(|(at, ..)| *at);
        changes.into_iter().map(|(_, urn, id, kind)| UnrecordedChange { kind, urn, id }).collect()
    }

    fn remove(&mut self, state: &ResourceState) {
        let Some(key) = key_of(state) else { return };
        match self.changes.get_mut(&key) {
            // No record has the resource.
            Some((_, ChangeKind::Added)) => drop(self.changes.remove(&key)),
            Some((_, kind)) => *kind = ChangeKind::Removed,
            None => self.push(key, ChangeKind::Removed),
        }
    }

    fn set(&mut self, state: &ResourceState, effects: &[Effect], ledger: &Ledger) {
        let Some(key) = key_of(state) else { return };
        let is_same = |old: &Arc<ResourceState>| old.urn == state.urn && old.id == state.id;
        let is_known = effects.iter().any(|effect| match effect {
            Effect::Remove(entry) | Effect::Rewrite(entry, _) => ledger.get(*entry).is_some_and(is_same),
            Effect::Add(..) | Effect::Keep(_) | Effect::DropInheritedPending => false,
        });
        match self.changes.get_mut(&key) {
            Some((_, kind @ ChangeKind::Removed)) => *kind = ChangeKind::Changed,
            Some(_) => {}
            None => self.push(key, if is_known { ChangeKind::Changed } else { ChangeKind::Added }),
        }
    }

    fn push(&mut self, key: (Urn, ResourceId), kind: ChangeKind) {
        self.changes.insert(key, (self.next, kind));
        self.next += 1;
    }
}

/// Returns the URN and the id of a resource that would be lost without a record. Ids of provider resources are made by
/// the engine, and those of external resources are in the program.
fn key_of(state: &ResourceState) -> Option<(Urn, ResourceId)> {
    let id = state.id.as_ref().filter(|_| state.custom && !state.is_provider() && !state.external);
    Some((state.urn.clone(), id?.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{EntryId, OperationId};
    use crate::snapshot::Snapshot;

    fn state(name: &str, id: &str) -> Arc<ResourceState> {
        let mut state = ResourceState::new(Urn::new("s", "p", None, "t:m:T", name), true);
        state.id = ResourceId::new(id);
        Arc::new(state)
    }

    /// Returns the lines of the changes of operations with these effects, on a state with `old` as its only entry.
    fn lines(operations: &[&[Effect]]) -> Vec<String> {
        let mut ledger = Ledger::new(Snapshot { resources: vec![state("old", "o")], ..Snapshot::default() });
        let mut collector = ChangeCollector::default();
        for effects in operations {
            let record = Record::End { operation: OperationId(0), effects: effects.to_vec() };
            collector.add(&ledger, &record);
            ledger.apply(&record);
        }
        let changes = collector.changes();
        changes.iter().map(|change| change.to_string().replace("urn:pulumi:s::p::t:m:T::", "")).collect()
    }

    #[test]
    fn change_of_each_resource_is_reported_once_with_what_no_record_contains() {
        let (old, new) = (EntryId(0), EntryId(1));
        let add = |entry, name, id| Effect::Add(entry, state(name, id));
        assert_eq!(lines(&[&[add(new, "new", "n")]]), ["new = n"]);
        assert_eq!(lines(&[&[Effect::Remove(old), add(new, "old", "o")]]), ["old = o (changed)"]);
        assert_eq!(lines(&[&[Effect::Remove(old)]]), ["old = o (removed)"]);
        let replaced: &[Effect] = &[add(new, "old", "o2"), Effect::Rewrite(old, state("old", "o"))];
        assert_eq!(lines(&[replaced, &[Effect::Remove(old)]]), ["old = o2", "old = o (removed)"]);
        let updated: &[Effect] = &[Effect::Remove(new), add(EntryId(2), "new", "n")];
        assert_eq!(lines(&[&[add(new, "new", "n")], updated]), ["new = n"]);
        assert_eq!(lines(&[&[add(new, "new", "n")], &[Effect::Remove(new)]]), [""; 0]);
        assert_eq!(lines(&[&[Effect::Remove(old)], &[add(new, "old", "o")]]), ["old = o (changed)"]);
        assert_eq!(lines(&[&[Effect::Keep(old)]]), [""; 0]);
    }
}
