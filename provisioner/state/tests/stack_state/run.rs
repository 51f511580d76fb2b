//! Runs made up at random, such as an engine could make them.

use std::sync::Arc;

use proptest::prelude::*;
use pulumi_proto::urn::Urn;
use state::{Effect, EntryId, OperationId, OperationKind, Record, ResourceState, Subject};

/// A state to start from and the records of a run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) base: Vec<Arc<ResourceState>>,
    pub(crate) records: Vec<Recorded>,
}

/// A record, and whether it may be lost.
#[derive(Clone, Debug)]
pub(crate) enum Recorded {
    Appended(Record),
    Deferred(Record),
}

/// What becomes of a resource that is there.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Kept,
    Updated,
    Replaced,
    /// Deleted in the end, unless the run stops short.
    Abandoned,
}

/// Runs over some resources, each of which depends on some of those before it.
pub(crate) fn runs() -> impl Strategy<Value = Run> {
    let fate = prop_oneof![Just(Fate::Kept), Just(Fate::Updated), Just(Fate::Replaced), Just(Fate::Abandoned)];
    let old = prop::collection::vec((any::<[bool; 8]>(), fate), 0..8);
    let new = prop::collection::vec(any::<[bool; 8]>(), 0..4);
    (old, new).prop_map(|(old, new)| {
        let base: Vec<_> = old.iter().enumerate().map(|(index, (links, _))| resource(index, links, &[])).collect();
        let mut builder = Builder { records: Vec::new(), entry: base.len() as u64, operation: 0 };
        let mut live = Vec::new();
        let mut abandoned = Vec::new();
        for (index, (_, fate)) in old.iter().enumerate() {
            // Whoever depends on something abandoned is abandoned too.
            let orphaned = base[index].dependencies.iter().any(|urn| !live.contains(urn));
            if orphaned || matches!(fate, Fate::Abandoned) {
                abandoned.push(index);
                continue;
            }
            live.push(base[index].urn.clone());
            builder.register(index, &base[index], *fate);
        }
        for (index, links) in new.iter().enumerate() {
            let state = resource(100 + index, links, &live);
            live.push(state.urn.clone());
            builder.create(state);
        }
        abandoned.into_iter().rev().for_each(|index| builder.delete(EntryId(index as u64), &base[index]));
        Run { base, records: builder.records }
    })
}

struct Builder {
    records: Vec<Recorded>,
    entry: u64,
    operation: u64,
}

impl Builder {
    fn register(&mut self, index: usize, state: &Arc<ResourceState>, fate: Fate) {
        let old = EntryId(index as u64);
        match fate {
            Fate::Kept => self.records.push(Recorded::Deferred(Record::Change(vec![Effect::Keep(old)]))),
            Fate::Updated => {
                let new = Arc::new(ResourceState { protect: true, ..ResourceState::clone(state) });
                let add = Effect::Add(self.entry(), Arc::clone(&new));
                self.step(OperationKind::Updating, &new, vec![Effect::Remove(old), add]);
            }
            Fate::Replaced => {
                let superseded = Arc::new(ResourceState { delete: true, ..ResourceState::clone(state) });
                let add = Effect::Add(self.entry(), Arc::clone(state));
                self.step(OperationKind::Creating, state, vec![add, Effect::Rewrite(old, Arc::clone(&superseded))]);
                self.step(OperationKind::Deleting, &superseded, vec![Effect::Remove(old)]);
            }
            Fate::Abandoned => unreachable!("abandoned resources are not registered"),
        }
    }

    fn create(&mut self, state: Arc<ResourceState>) {
        let add = Effect::Add(self.entry(), Arc::clone(&state));
        self.step(OperationKind::Creating, &state, vec![add]);
    }

    fn delete(&mut self, entry: EntryId, state: &Arc<ResourceState>) {
        self.step(OperationKind::Deleting, state, vec![Effect::Remove(entry)]);
    }

    fn step(&mut self, kind: OperationKind, state: &Arc<ResourceState>, effects: Vec<Effect>) {
        let operation = OperationId(self.operation);
        self.operation += 1;
        // What goes is named by its place in the list, as the engine does.
        let subject = match effects[..] {
            [Effect::Remove(entry)] => Subject::Entry(entry),
            _ => Subject::Resource(Arc::clone(state)),
        };
        let begin = Record::Begin { operation, kind, subject };
        self.records.extend([begin, Record::End { operation, effects }].map(Recorded::Appended));
    }

    fn entry(&mut self) -> EntryId {
        self.entry += 1;
        EntryId(self.entry - 1)
    }
}

/// A resource that depends on some of those numbered before it, or on some of the given ones.
fn resource(number: usize, links: &[bool; 8], others: &[Urn]) -> Arc<ResourceState> {
    let urn = |number: usize| Urn::new("dev", "reef", None, "t:m:T", &format!("r{number}"));
    let before: Vec<_> =
        if others.is_empty() && number < 100 { (0..number).map(urn).collect() } else { others.to_vec() };
    let mut state = ResourceState::new(urn(number), true);
    state.dependencies = before.into_iter().zip(links).filter(|(_, linked)| **linked).map(|(urn, _)| urn).collect();
    Arc::new(state)
}
