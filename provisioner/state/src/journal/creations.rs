//! Resources that a run has created, according to its journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::record::{Effect, EntryId, Record, Subject};
use crate::resource::ResourceState;
use crate::snapshot::OperationKind;

/// Resources that a run has created, according to its journal. Provider resources, components, views and external
/// resources are not created by a provider, and are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Creations {
    /// Created resources in the last state that the journal has. Each has an id.
    pub created: Vec<Arc<ResourceState>>,
    /// Resources whose Create has begun and has an unknown outcome. One has an id only if that is known although the
    /// reply was lost.
    pub creating: Vec<Arc<ResourceState>>,
    /// Provider resources and components that the run has added or changed, to which the others may refer.
    pub(crate) context: Vec<Arc<ResourceState>>,
}

impl Creations {
    /// Collects the creations in the records of a journal. A resource that the run has deleted again is none, unless it
    /// was deleted in a later phase than that of its creation: entries of the phases have different numbers, which depend
    /// on the checkpoint that the journal starts from.
    pub(crate) fn of(phases: &[Vec<Record>]) -> Self {
        let mut creations = Self::default();
        for records in phases {
            creations.add_phase(records);
        }
        // A URN has one live entry at a time, so a later one shows that the earlier one was deleted.
        let created = std::mem::take(&mut creations.created);
        let is_live = |state: &Arc<ResourceState>| !state.delete;
        let is_deleted = |index: usize, state: &Arc<ResourceState>| {
            let mut later = created.iter().skip(index + 1).filter(|later| is_live(later));
            is_live(state) && later.any(|later| later.urn == state.urn)
        };
        let existing = created.iter().enumerate().filter(|(index, state)| !is_deleted(*index, state));
        creations.created = existing.map(|(_, state)| Arc::clone(state)).collect();
        creations
    }

    /// Collects the creations in lines that stand alone, each with the kind of the operation that it ends. What has ended
    /// exists; a Create without an id and without an end counts for nothing, because it has not begun.
    pub(super) fn of_late(lines: &[(Record, Option<OperationKind>)]) -> Self {
        let mut records = Vec::with_capacity(lines.len());
        for (record, ended) in lines {
            if let (Record::End { operation, .. }, Some(OperationKind::Creating)) = (record, ended) {
                // The line that begins the operation is missing, and the resource stands in the effects.
                let subject = Subject::Entry(EntryId(u64::MAX));
                records.push(Record::Begin { operation: *operation, kind: OperationKind::Creating, subject });
            }
            records.push(record.clone());
        }
        let mut creations = Self::of(&[records]);
        creations.creating.retain(|state| state.id.is_some());
        creations
    }

    fn add_phase(&mut self, records: &[Record]) {
        let mut creating: BTreeMap<_, Option<&Arc<ResourceState>>> = BTreeMap::new();
        let mut entries: BTreeMap<EntryId, Arc<ResourceState>> = BTreeMap::new();
        for record in records {
            let (effects, is_creation) = match record {
                Record::Begin { operation, kind: OperationKind::Creating, subject } => {
                    // A resource that is being created has no entry yet.
                    let created = match subject {
                        Subject::Resource(state) => Some(state),
                        Subject::Entry(_) => None,
                    };
                    creating.insert(*operation, created);
                    continue;
                }
                Record::Begin { .. } => continue,
                Record::End { operation, effects } => (effects, creating.remove(operation).is_some()),
                Record::Change(effects) => (effects, false),
            };
            for effect in effects {
                match effect {
                    Effect::Remove(entry) => {
                        let removed = entries.remove(entry);
                        self.created.retain(|state| {
                            let is_removed = removed.as_ref().is_some_and(|removed| is_same(state, removed));
                            // An update removes the old entry and adds a new one with the same id.
                            !is_removed || states_of(effects).any(|new| is_same(state, new))
                        });
                    }
                    Effect::Add(entry, state) => {
                        entries.insert(*entry, Arc::clone(state));
                        self.set(state, is_creation);
                    }
                    Effect::Rewrite(entry, state) => {
                        entries.insert(*entry, Arc::clone(state));
                        self.set(state, false);
                    }
                    Effect::Keep(_) | Effect::DropInheritedPending => {}
                }
            }
        }
        self.creating.extend(creating.into_values().flatten().filter(|state| is_managed(state)).cloned());
    }

    /// Takes over the state of an entry that was added or rewritten.
    fn set(&mut self, state: &Arc<ResourceState>, is_created: bool) {
        let (states, is_new) = match (is_managed(state), is_context(state)) {
            (true, _) => (&mut self.created, is_created && state.id.is_some()),
            (false, true) => (&mut self.context, true),
            (false, false) => return,
        };
        match states.iter().position(|known| is_same(known, state)) {
            // The resource is deleted before its replacement is created.
            Some(index) if state.pending_replacement => drop(states.remove(index)),
            Some(index) => states[index] = Arc::clone(state),
            None if is_new => states.push(Arc::clone(state)),
            None => {}
        }
    }
}

/// Returns the states that effects add or rewrite.
fn states_of(effects: &[Effect]) -> impl Iterator<Item = &Arc<ResourceState>> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Add(_, state) | Effect::Rewrite(_, state) => Some(state),
        Effect::Remove(_) | Effect::Keep(_) | Effect::DropInheritedPending => None,
    })
}

/// Returns `true` for the same resource of the same URN.
fn is_same(a: &ResourceState, b: &ResourceState) -> bool {
    a.urn == b.urn && a.id == b.id
}

/// Returns `true` for a resource that a provider creates.
fn is_managed(state: &ResourceState) -> bool {
    state.custom && !state.is_provider() && !state.external && state.view_of.is_none()
}

/// Returns `true` for a resource that others need to be recorded, and that the engine alone creates.
fn is_context(state: &ResourceState) -> bool {
    !state.custom || state.is_provider()
}

#[cfg(test)]
mod tests {
    use pulumi_proto::resource_id::ResourceId;
    use pulumi_proto::urn::Urn;

    use super::*;
    use crate::record::OperationId;

    fn state(name: &str, id: &str) -> Arc<ResourceState> {
        let urn = Urn::new("s", "p", None, "t:m:T", name);
        Arc::new(ResourceState { id: ResourceId::new(id), ..ResourceState::new(urn, true) })
    }

    fn begin(operation: u64, kind: OperationKind, name: &str) -> Record {
        Record::Begin { operation: OperationId(operation), kind, subject: Subject::Resource(state(name, "")) }
    }

    fn end(operation: u64, effects: Vec<Effect>) -> Record {
        Record::End { operation: OperationId(operation), effects }
    }

    /// Returns the created and the unfinished resources.
    fn shown(phases: &[Vec<Record>]) -> [Vec<String>; 2] {
        let creations = Creations::of(phases);
        [creations.created, creations.creating]
            .map(|states| states.iter().map(|state| format!("{}={}", state.urn.name(), state.id_text())).collect())
    }

    fn created(operation: u64, entry: u64, name: &str, id: &str) -> Vec<Record> {
        let added = vec![Effect::Add(EntryId(entry), state(name, id))];
        vec![begin(operation, OperationKind::Creating, name), end(operation, added)]
    }

    /// Phases of a journal, and what they have created and may have created.
    type Case = (Vec<Vec<Record>>, [&'static [&'static str]; 2]);

    #[test]
    fn creations_are_what_exists_after_the_run_and_did_not_before() {
        use OperationKind::{Creating, Deleting, Importing, Updating};
        let b = || created(1, 5, "b", "b-1");
        let then = |more: Vec<Record>| vec![[b(), more].concat()];
        let removed = || Effect::Remove(EntryId(5));
        let pending = Arc::new(ResourceState { pending_replacement: true, ..(*state("b", "b-1")).clone() });
        let external = Arc::new(ResourceState { external: true, ..(*state("c", "c-1")).clone() });
        let table: Vec<Case> = vec![
            (vec![], [&[], &[]]),
            (then(vec![]), [&["b=b-1"], &[]]),
            (then(vec![begin(2, Creating, "c")]), [&["b=b-1"], &["c="]]),
            // A Create without effects has failed.
            (then(vec![begin(2, Creating, "c"), end(2, vec![])]), [&["b=b-1"], &[]]),
            (then(vec![begin(2, Deleting, "b"), end(2, vec![removed()])]), [&[], &[]]),
            (then(vec![begin(2, Deleting, "b")]), [&["b=b-1"], &[]]),
            (
                then(vec![
                    begin(2, Updating, "b"),
                    end(2, vec![removed(), Effect::Add(EntryId(6), state("b", "b-1"))]),
                ]),
                [&["b=b-1"], &[]],
            ),
            (then(vec![end(2, vec![Effect::Rewrite(EntryId(5), pending)])]), [&[], &[]]),
            (vec![b(), created(1, 6, "c", "c-1")], [&["b=b-1", "c=c-1"], &[]]),
            // The number of the entry is that of another one in the next phase.
            (vec![b(), vec![Record::Change(vec![removed()])]], [&["b=b-1"], &[]]),
            (vec![b(), [vec![Record::Change(vec![removed()])], created(1, 9, "b", "b-2")].concat()], [&["b=b-2"], &[]]),
            (
                vec![vec![
                    begin(1, Importing, "c"),
                    end(1, vec![Effect::Add(EntryId(5), state("c", "c-1"))]),
                    Record::Change(vec![Effect::Add(EntryId(6), state("d", "d-1"))]),
                ]],
                [&[], &[]],
            ),
            (vec![vec![begin(1, Creating, "c"), end(1, vec![Effect::Add(EntryId(5), external)])]], [&[], &[]]),
        ];
        for (phases, expected) in table {
            assert_eq!(shown(&phases), expected, "{phases:?}");
        }
    }

    #[test]
    fn providers_and_components_are_context_and_the_id_of_a_lost_reply_is_kept() {
        let provider = |id: &str| {
            let urn = Urn::new("s", "p", None, "pulumi:providers:t", "default");
            Arc::new(ResourceState { id: ResourceId::new(id), ..ResourceState::new(urn, true) })
        };
        let lost = Record::Begin {
            operation: OperationId(2),
            kind: OperationKind::Creating,
            subject: Subject::Resource(state("b", "b-1")),
        };
        let creating_provider = Record::Begin {
            operation: OperationId(3),
            kind: OperationKind::Creating,
            subject: Subject::Resource(provider("")),
        };
        let records = vec![
            begin(1, OperationKind::Creating, "default"),
            end(1, vec![Effect::Add(EntryId(5), provider("1"))]),
            begin(2, OperationKind::Creating, "b"),
            lost,
            creating_provider,
        ];
        let creations = Creations::of(&[records]);
        assert_eq!((creations.created, creations.context), (vec![], vec![provider("1")]));
        assert_eq!(creations.creating, [state("b", "b-1")]);
    }
}
