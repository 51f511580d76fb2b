//! Entries of a run: the loaded ones, the begun operations and their effects.
//!
//! The ledger is the only code that turns records into a snapshot: the engine applies its records to one while it runs,
//! and the recovery applies the journal of an interrupted run, so both result in the same list.
//!
//! Order of the list (docs/spec/engine-semantics.md#6.1): first the confirmed entries, which this run has added or
//! kept, in the order of their confirmation, then the others in the old order. This order is valid: an entry is
//! confirmed only after its dependencies.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use pulumi_proto::urn::Urn;

use super::adoption::{self, Adopted};
use super::record::{Effect, EntryId, OperationId, Record, Subject};
use super::resource::ResourceState;
use super::snapshot::{OperationKind, PendingOperation, Snapshot};

/// Entry of the recorded list, with its number.
pub type Entry = (EntryId, Arc<ResourceState>);

/// State of a run, updated with each record.
#[derive(Debug)]
pub struct Ledger {
    base: Snapshot,
    entries: HashMap<EntryId, Arc<ResourceState>>,
    /// Entries of each URN: the live one, and those with a pending delete.
    by_urn: HashMap<Urn, Vec<EntryId>>,
    /// Entries that are views of each URN.
    views: HashMap<Urn, Vec<EntryId>>,
    /// Entries in the order of the loaded list; moved and removed entries stay in it and are skipped.
    old_order: Vec<EntryId>,
    /// Confirmed entries in the order of their confirmation; the keys only grow.
    confirmed: BTreeMap<u64, EntryId>,
    positions: HashMap<EntryId, u64>,
    next_position: u64,
    next_entry: u64,
    next_operation: u64,
    pending: BTreeMap<OperationId, PendingOperation>,
    /// Entries of pending creates of earlier runs that no record has changed or confirmed yet.
    adopted: BTreeMap<EntryId, Adopted>,
    keep_inherited_pending: bool,
}

impl Ledger {
    /// Creates a ledger that starts from a loaded snapshot. Pending creates of earlier runs whose id is known are
    /// entries: see [`Ledger::unread_creates`].
    pub fn new(mut base: Snapshot) -> Self {
        let adopted = adoption::adopt(&mut base).into_iter().collect();
        let count = base.resources.len() as u64;
        let mut entries = HashMap::with_capacity(base.resources.len());
        let mut by_urn: HashMap<Urn, Vec<EntryId>> = HashMap::with_capacity(base.resources.len());
        let mut views: HashMap<Urn, Vec<EntryId>> = HashMap::new();
        for (entry, state) in (0..count).map(EntryId).zip(&base.resources) {
            entries.insert(entry, Arc::clone(state));
            by_urn.entry(state.urn.clone()).or_default().push(entry);
            if let Some(resource) = &state.view_of {
                views.entry(resource.clone()).or_default().push(entry);
            }
        }
        Self {
            old_order: (0..count).map(EntryId).collect(),
            entries,
            by_urn,
            views,
            base,
            confirmed: BTreeMap::new(),
            positions: HashMap::new(),
            next_position: 0,
            next_entry: count,
            next_operation: 0,
            pending: BTreeMap::new(),
            adopted,
            keep_inherited_pending: true,
        }
    }

    /// Returns the snapshot that the run started from, with the entries of pending creates whose id is known.
    pub fn base(&self) -> &Snapshot {
        &self.base
    }

    /// Returns an entry as it was loaded; `None` for an entry that was added since.
    pub fn base_entry(&self, id: EntryId) -> Option<&Arc<ResourceState>> {
        self.base.resources.get(usize::try_from(id.0).ok()?)
    }

    /// Returns the id of an entry that is about to be added.
    pub fn new_entry(&mut self) -> EntryId {
        self.next_entry += 1;
        EntryId(self.next_entry - 1)
    }

    /// Returns the id of an operation that is about to begin.
    pub fn new_operation(&mut self) -> OperationId {
        self.next_operation += 1;
        OperationId(self.next_operation - 1)
    }

    /// Returns the current state of an entry; `None` if the entry was removed or never added.
    pub fn get(&self, entry: EntryId) -> Option<&Arc<ResourceState>> {
        self.entries.get(&entry)
    }

    /// Returns the subject of an operation on a resource: the entry if the list contains this very resource, else the
    /// resource.
    pub fn subject(&self, resource: &Arc<ResourceState>) -> Subject {
        let entry = self.entries_of(&resource.urn).find(|(_, state)| Arc::ptr_eq(state, resource));
        entry.map_or_else(|| Subject::Resource(Arc::clone(resource)), |(entry, _)| Subject::Entry(entry))
    }

    /// Returns the resource of a subject; `None` for an entry that is missing.
    pub fn resource_of<'a>(&'a self, subject: &'a Subject) -> Option<&'a Arc<ResourceState>> {
        match subject {
            Subject::Resource(resource) => Some(resource),
            Subject::Entry(entry) => self.get(*entry),
        }
    }

    /// Returns the entries of a URN, in no particular order.
    pub fn entries_of(&self, urn: &Urn) -> impl Iterator<Item = (EntryId, &Arc<ResourceState>)> + Clone {
        self.by_urn.get(urn).into_iter().flatten().filter_map(|entry| Some((*entry, self.entries.get(entry)?)))
    }

    /// Returns the views of a URN: those of the live entry and those with a pending delete.
    pub fn views_of(&self, urn: &Urn) -> impl Iterator<Item = (EntryId, &Arc<ResourceState>)> + Clone {
        self.views.get(urn).into_iter().flatten().filter_map(|entry| Some((*entry, self.entries.get(entry)?)))
    }

    /// Returns the pending creates of earlier runs that are entries because their id is known. They must be read before
    /// a decision depends on them. An entry that a record has changed or confirmed is not pending any more.
    pub fn unread_creates(&self) -> impl Iterator<Item = (EntryId, &PendingOperation)> {
        self.adopted.iter().map(|(id, adopted)| (*id, &adopted.operation))
    }

    /// Returns `true` if an operation of this run has begun and not ended.
    pub fn is_pending(&self, operation: OperationId) -> bool {
        self.pending.contains_key(&operation)
    }

    /// Returns `true` if this run has added or kept the entry.
    pub fn is_confirmed(&self, entry: EntryId) -> bool {
        self.positions.contains_key(&entry)
    }

    /// Returns the entries in the order of the list.
    pub fn entries(&self) -> impl Iterator<Item = (EntryId, &Arc<ResourceState>)> {
        let unconfirmed = self.old_order.iter().filter(|entry| !self.positions.contains_key(*entry));
        self.confirmed.values().chain(unconfirmed).filter_map(|entry| Some((*entry, self.entries.get(entry)?)))
    }

    /// Applies a record.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Begin { operation, kind, subject } => {
                self.next_operation = self.next_operation.max(operation.0 + 1);
                let resource = self.resource_of(subject).cloned();
                let pending = resource.map(|resource| PendingOperation { resource, kind: *kind });
                self.pending.extend(pending.map(|pending| (*operation, pending)));
            }
            Record::End { operation, effects } => {
                self.pending.remove(operation);
                effects.iter().for_each(|effect| self.apply_effect(effect));
            }
            Record::Change(effects) => effects.iter().for_each(|effect| self.apply_effect(effect)),
        }
    }

    fn apply_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Add(entry, _) | Effect::Remove(entry) | Effect::Rewrite(entry, _) | Effect::Keep(entry) => {
                self.adopted.remove(entry);
            }
            Effect::DropInheritedPending => {}
        }
        match effect {
            Effect::Add(entry, state) => {
                self.next_entry = self.next_entry.max(entry.0 + 1);
                self.replace_state(*entry, Some(state));
                self.move_to_end(*entry);
            }
            Effect::Remove(entry) => {
                self.replace_state(*entry, None);
                if let Some(position) = self.positions.remove(entry) {
                    self.confirmed.remove(&position);
                }
            }
            Effect::Rewrite(entry, state) => self.replace_state(*entry, Some(state)),
            Effect::Keep(entry) => self.move_to_end(*entry),
            Effect::DropInheritedPending => self.keep_inherited_pending = false,
        }
    }

    /// Replaces the state of an entry; `None` removes the entry.
    fn replace_state(&mut self, entry: EntryId, state: Option<&Arc<ResourceState>>) {
        let old = match state {
            Some(state) => self.entries.insert(entry, Arc::clone(state)),
            None => self.entries.remove(&entry),
        };
        let old = old.as_deref();
        let state = state.map(Arc::as_ref);
        move_entry(&mut self.by_urn, entry, old.map(|old| &old.urn), state.map(|state| &state.urn));
        let view_of = |state: &'_ ResourceState| state.view_of.clone();
        move_entry(&mut self.views, entry, old.and_then(view_of).as_ref(), state.and_then(view_of).as_ref());
    }

    fn move_to_end(&mut self, entry: EntryId) {
        if let Some(position) = self.positions.insert(entry, self.next_position) {
            self.confirmed.remove(&position);
        }
        self.confirmed.insert(self.next_position, entry);
        self.next_position += 1;
    }

    /// Returns the snapshot as it would be written now. Manifest and secrets are those of the base.
    ///
    /// Pending creates of earlier runs are kept until they are resolved; other inherited operations are dropped,
    /// because an ordinary Diff or Read repairs their effects (docs/spec/engine-semantics.md#5.7).
    pub fn snapshot(&self) -> Snapshot {
        let is_kept =
            |operation: &&PendingOperation| self.keep_inherited_pending && operation.kind == OperationKind::Creating;
        let inherited = self.base.pending_operations.iter().filter(is_kept);
        let unread = self.adopted.values().map(|adopted| &adopted.operation);
        let resource = |(id, state): (EntryId, &Arc<ResourceState>)| match self.adopted.get(&id) {
            Some(adopted) => adopted.replaced.clone(),
            None => Some(Arc::clone(state)),
        };
        Snapshot {
            manifest: self.base.manifest.clone(),
            secrets: self.base.secrets.clone(),
            resources: self.entries().filter_map(resource).collect(),
            pending_operations: inherited.chain(unread).chain(self.pending.values()).cloned().collect(),
            rest: self.base.rest.clone(),
        }
    }
}

/// Moves an entry from one key of an index to another.
fn move_entry(index: &mut HashMap<Urn, Vec<EntryId>>, entry: EntryId, old: Option<&Urn>, new: Option<&Urn>) {
    if old == new {
        return;
    }
    if let Some(old) = old
        && let Some(entries) = index.get_mut(old)
    {
        entries.retain(|indexed| *indexed != entry);
    }
    if let Some(new) = new {
        index.entry(new.clone()).or_default().push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(name: &str) -> Arc<ResourceState> {
        Arc::new(ResourceState::new(Urn::new("s", "p", None, "t:m:T", name), true))
    }

    fn names(ledger: &Ledger) -> Vec<String> {
        ledger.entries().map(|(_, state)| state.urn.name().to_owned()).collect()
    }

    fn ledger(resources: &[&str]) -> Ledger {
        Ledger::new(Snapshot { resources: resources.iter().map(|name| state(name)).collect(), ..Snapshot::default() })
    }

    #[test]
    fn confirmed_entries_come_first_and_others_keep_their_order() {
        let mut ledger = ledger(&["a", "b", "c"]);
        let new = ledger.new_entry();
        ledger.apply(&Record::Change(vec![Effect::Keep(EntryId(1))]));
        ledger.apply(&Record::Change(vec![Effect::Add(new, state("d"))]));
        assert_eq!(names(&ledger), ["b", "d", "a", "c"]);
        ledger.apply(&Record::Change(vec![Effect::Remove(EntryId(1)), Effect::Remove(EntryId(0))]));
        assert_eq!(names(&ledger), ["d", "c"]);
    }

    #[test]
    fn renamed_entry_is_found_by_its_new_urn() {
        let mut ledger = ledger(&["a", "b"]);
        let found = |ledger: &Ledger, name: &str| -> Vec<EntryId> {
            ledger.entries_of(&state(name).urn).map(|(entry, _)| entry).collect()
        };
        let second = ledger.new_entry();
        ledger.apply(&Record::Change(vec![Effect::Rewrite(EntryId(1), state("c")), Effect::Add(second, state("a"))]));
        assert_eq!(found(&ledger, "a"), [EntryId(0), second]);
        assert_eq!((found(&ledger, "b"), found(&ledger, "c")), (vec![], vec![EntryId(1)]));
        ledger.apply(&Record::Change(vec![Effect::Remove(EntryId(0)), Effect::Remove(second)]));
        assert_eq!(found(&ledger, "a"), []);
    }

    #[test]
    fn operation_without_end_is_pending() {
        let mut ledger = ledger(&[]);
        let (first, second) = (ledger.new_operation(), ledger.new_operation());
        for operation in [first, second] {
            ledger.apply(&Record::Begin {
                operation,
                kind: OperationKind::Creating,
                subject: Subject::Resource(state("x")),
            });
        }
        ledger.apply(&Record::End { operation: first, effects: vec![Effect::Add(EntryId(0), state("x"))] });
        let snapshot = ledger.snapshot();
        assert_eq!((snapshot.resources.len(), snapshot.pending_operations.len()), (1, 1));
    }

    #[test]
    fn operation_on_an_entry_refers_to_its_current_state() {
        let mut ledger = ledger(&["a", "b"]);
        let recorded = Arc::clone(ledger.get(EntryId(1)).unwrap());
        assert_eq!(ledger.subject(&recorded), Subject::Entry(EntryId(1)));
        assert_eq!(ledger.subject(&state("b")), Subject::Resource(state("b")));
        for (number, entry) in [1, 7].into_iter().enumerate() {
            let (operation, subject) = (OperationId(number as u64), Subject::Entry(EntryId(entry)));
            ledger.apply(&Record::Begin { operation, kind: OperationKind::Deleting, subject });
        }
        let pending = ledger.snapshot().pending_operations;
        assert_eq!(pending, [PendingOperation { resource: recorded, kind: OperationKind::Deleting }]);
    }

    #[test]
    fn inherited_pending_operations_are_dropped_except_creates() {
        let pending = |kind| PendingOperation { resource: state("x"), kind };
        let base = Snapshot {
            pending_operations: vec![pending(OperationKind::Creating), pending(OperationKind::Deleting)],
            ..Snapshot::default()
        };
        let mut ledger = Ledger::new(base);
        assert_eq!(ledger.snapshot().pending_operations.len(), 1);
        ledger.apply(&Record::Change(vec![Effect::DropInheritedPending]));
        assert!(ledger.snapshot().pending_operations.is_empty());
    }
}
