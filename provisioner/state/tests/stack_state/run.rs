//! Generators of random runs, as an engine could execute them.

use std::sync::Arc;

use proptest::prelude::*;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{Effect, EntryId, OperationId, OperationKind, Record, ResourceState, Subject};

/// State at the start of a run, and the records of the run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) base: Vec<Arc<ResourceState>>,
    pub(crate) records: Vec<Recorded>,
}

/// Record of a run, appended or deferred.
#[derive(Clone, Debug)]
pub(crate) enum Recorded {
    Appended(Record),
    Deferred(Record),
}

/// Step on a loaded resource.
#[derive(Clone, Copy, Debug)]
enum Step {
    Same,
    Update,
    Replace,
    /// Deleted at the end, unless the run is interrupted.
    Delete,
}

/// Returns a strategy for runs over resources that depend on earlier ones.
pub(crate) fn runs() -> impl Strategy<Value = Run> {
    let step = prop_oneof![Just(Step::Same), Just(Step::Update), Just(Step::Replace), Just(Step::Delete)];
    let old = prop::collection::vec((any::<[bool; 8]>(), step), 0..8);
    let new = prop::collection::vec(any::<[bool; 8]>(), 0..4);
    (old, new).prop_map(|(old, new)| {
        let base: Vec<_> = old.iter().enumerate().map(|(index, (links, _))| resource(index, links, &[])).collect();
        let mut builder = Builder { records: Vec::new(), entry: base.len() as u64, operation: 0 };
        let mut live = Vec::new();
        let mut deleted = Vec::new();
        for (index, (_, step)) in old.iter().enumerate() {
            // Dependents of a deleted resource are deleted too.
            let has_deleted_dependency = base[index].dependencies.iter().any(|urn| !live.contains(urn));
            if has_deleted_dependency || matches!(step, Step::Delete) {
                deleted.push(index);
                continue;
            }
            live.push(base[index].urn.clone());
            builder.register(index, &base[index], *step);
        }
        for (index, links) in new.iter().enumerate() {
            let state = resource(100 + index, links, &live);
            live.push(state.urn.clone());
            builder.create(state);
        }
        deleted.into_iter().rev().for_each(|index| builder.delete(EntryId(index as u64), &base[index]));
        Run { base, records: builder.records }
    })
}

struct Builder {
    records: Vec<Recorded>,
    entry: u64,
    operation: u64,
}

impl Builder {
    fn register(&mut self, index: usize, state: &Arc<ResourceState>, step: Step) {
        let old = EntryId(index as u64);
        match step {
            Step::Same => self.records.push(Recorded::Deferred(Record::Change(vec![Effect::Keep(old)]))),
            Step::Update => {
                let new = Arc::new(ResourceState { protect: true, ..ResourceState::clone(state) });
                let add = Effect::Add(self.next_entry(), Arc::clone(&new));
                self.push_operation(OperationKind::Updating, &new, vec![Effect::Remove(old), add]);
            }
            Step::Replace => {
                let pending_delete = Arc::new(ResourceState { delete: true, ..ResourceState::clone(state) });
                let add = Effect::Add(self.next_entry(), Arc::clone(state));
                self.push_operation(
                    OperationKind::Creating,
                    state,
                    vec![add, Effect::Rewrite(old, Arc::clone(&pending_delete))],
                );
                self.push_operation(OperationKind::Deleting, &pending_delete, vec![Effect::Remove(old)]);
            }
            Step::Delete => unreachable!("deleted resources are not registered"),
        }
    }

    fn create(&mut self, state: Arc<ResourceState>) {
        let add = Effect::Add(self.next_entry(), Arc::clone(&state));
        self.push_operation(OperationKind::Creating, &state, vec![add]);
    }

    fn delete(&mut self, entry: EntryId, state: &Arc<ResourceState>) {
        self.push_operation(OperationKind::Deleting, state, vec![Effect::Remove(entry)]);
    }

    fn push_operation(&mut self, kind: OperationKind, state: &Arc<ResourceState>, effects: Vec<Effect>) {
        let operation = OperationId(self.operation);
        self.operation += 1;
        // A removed resource is referred to by its entry, as in the engine.
        let subject = match effects[..] {
            [Effect::Remove(entry)] => Subject::Entry(entry),
            _ => Subject::Resource(Arc::clone(state)),
        };
        let begin = Record::Begin { operation, kind, subject };
        self.records.extend([begin, Record::End { operation, effects }].map(Recorded::Appended));
    }

    fn next_entry(&mut self) -> EntryId {
        self.entry += 1;
        EntryId(self.entry - 1)
    }
}

/// Returns a resource that depends on some of the resources with smaller numbers, or on some of the given ones.
fn resource(number: usize, links: &[bool; 8], others: &[Urn]) -> Arc<ResourceState> {
    let urn = |number: usize| Urn::new("dev", "reef", None, "t:m:T", &format!("r{number}"));
    let before: Vec<_> =
        if others.is_empty() && number < 100 { (0..number).map(urn).collect() } else { others.to_vec() };
    let mut state = ResourceState::new(urn(number), true);
    state.id = ResourceId::new(format!("id-{number}"));
    state.dependencies = before.into_iter().zip(links).filter(|(_, linked)| **linked).map(|(urn, _)| urn).collect();
    Arc::new(state)
}
