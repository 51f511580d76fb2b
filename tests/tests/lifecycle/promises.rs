//! Promises of every run (engine semantics, section 11.1), checked against records, calls and replies.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use engine::RegistrationResult;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::Urn;
use state::{Ledger, OperationKind, Record, ResourceState, Snapshot, StateError, StateRecorder, integrity};

use crate::program::{Answer, Thing};
use crate::world::{Call, Moment, World};

/// Returns the entries of the state whose resource does not exist.
pub(crate) fn ghosts(state: &Snapshot, world: &World) -> Vec<String> {
    let (existing, vanished) = (world.existing(), world.vanished());
    let owned = |state: &&Arc<ResourceState>| {
        let managed = state.custom && !state.is_provider() && !state.external && state.view_of.is_none();
        managed && !state.pending_replacement
    };
    let ids = state.resources.iter().filter(owned).map(|state| state.id_text());
    let ghosts = ids.filter(|id| !existing.contains(*id) && !vanished.contains(*id));
    ghosts.map(|id| format!("the state holds {id}, which is not there")).collect()
}

/// Returns the calls that change a resource a second time.
pub(crate) fn twice(calls: &[Call]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let changes =
        calls.iter().filter(|call| matches!(call.verb, "create" | "update" | "delete") && !call.id.is_empty());
    changes
        .filter(|call| !seen.insert(&call.id))
        .map(|call| format!("{} comes after another change of it", call.said()))
        .collect()
}

/// Returns the deletes that began before the deletes of dependents had ended.
pub(crate) fn disorder(base: &Snapshot, calls: &[Call], heads: &BTreeSet<String>) -> Vec<String> {
    // An external resource is never deleted, but may have the id of one that is.
    let listed = base.resources.iter().enumerate().filter(|(_, state)| state.custom && !state.external);
    let by_id: HashMap<&str, (usize, &Arc<ResourceState>)> =
        listed.map(|(place, state)| (state.id_text(), (place, state))).collect();
    let deletes: Vec<&Call> = calls.iter().filter(|call| call.verb == "delete").collect();
    let mut faults = Vec::new();
    for first in &deletes {
        for second in &deletes {
            let places = (by_id.get(first.id.as_str()), by_id.get(second.id.as_str()));
            let (Some((place, needed)), Some((later, dependent))) = places else { continue };
            let refers = dependent.references().any(|urn| *urn == needed.urn);
            // Before a replacement, only dependents that cannot exist without the resource are deleted; others are
            // deleted on their own account.
            let both = (heads.contains(&first.id), heads.contains(&second.id));
            let mut inputs = dependent.property_dependencies.iter();
            let bound = inputs.any(|(key, urns)| key.starts_with(['k', 'd']) && urns.contains(&needed.urn));
            let together = both == (false, false) || (both == (true, true) && bound && second.began < first.began);
            let in_order = second.ended.is_some_and(|ended| ended < first.began);
            if refers && place < later && together && !in_order {
                faults.push(format!("{} before the end of {}", first.said(), second.said()));
            }
        }
    }
    faults
}

/// Returns the ids of resources that were created without a Check, from their recorded inputs.
pub(crate) fn unasked(calls: &[Call]) -> impl Iterator<Item = &String> {
    let asked: BTreeSet<&str> = calls.iter().filter(|call| call.verb == "check").map(|call| &*call.name).collect();
    calls.iter().filter(move |call| call.verb == "create" && !asked.contains(&*call.name)).map(|call| &call.id)
}

/// Returns the resources that succeeded although a dependency failed.
pub(crate) fn hasty(things: &[Thing], answers: &BTreeMap<String, Answer>) -> Vec<String> {
    let went = |name: &str, result| answers.get(name) == Some(&Ok(result));
    let mut faults = Vec::new();
    for thing in things.iter().filter(|thing| went(&thing.name, RegistrationResult::Succeeded)) {
        for needed in thing.needs().filter(|needed| went(needed, RegistrationResult::Failed)) {
            faults.push(format!("{} went on although {needed} failed", thing.name));
        }
    }
    faults
}

/// Returns the inputs of live entries that are the id of a resource deleted at the end of the run. There are
/// exceptions, in which such an input is legitimate:
///
/// - A delete before a replacement may leave such inputs behind, if the run ends there.
/// - An entry that an earlier run superseded is deleted even if a dependent has to stay, as in Pulumi's own tests.
/// - A program may read a resource under a new name that it has dropped under the old one.
/// - A resource that a run updated only in part is recorded with its former inputs, so that the next run tries again,
///   and with its new references.
/// - A dependent replacement that the program does not register again is created with its recorded inputs and with the
///   references of the program, as in Pulumi's engine. Its id is in `unasked`.
pub(crate) fn dangling(
    base: &Snapshot,
    state: &Snapshot,
    calls: &[Call],
    heads: &BTreeSet<String>,
    unasked: &BTreeSet<String>,
) -> Vec<String> {
    let superseded = base.resources.iter().filter(|state| state.delete);
    let read = state.resources.iter().filter(|state| state.external);
    let exempt: BTreeSet<&str> = superseded.chain(read).map(|state| state.id_text()).collect();
    let deletes = calls.iter().filter(|call| call.verb == "delete" && call.well && !heads.contains(&call.id));
    let deleted: BTreeSet<&str> = deletes.map(|call| call.id.as_str()).filter(|id| !exempt.contains(id)).collect();
    let owned = |state: &&Arc<ResourceState>| state.custom && !state.delete && !state.external;
    let live = state.resources.iter().filter(owned).filter(|state| !state.pending_replacement);
    let in_part = |state: &&Arc<ResourceState>| !state.init_errors.is_empty();
    let before = base.resources.iter().filter(in_part).map(|state| state.id_text());
    let updated = calls.iter().filter(|call| call.verb == "update").map(|call| &*call.id);
    let updated: BTreeSet<&str> = updated.chain(before).collect();
    let came_up_in_part = |state: &Arc<ResourceState>| in_part(&state) && updated.contains(state.id_text());
    live.filter(|state| {
        state.ignore_changes.is_empty() && !came_up_in_part(state) && !unasked.contains(state.id_text())
    })
    .flat_map(|state| state.inputs.iter().map(move |(key, value)| (state, key, value)))
    .filter(|(_, _, value)| matches!(value, PropertyValue::String(id) if deleted.contains(&**id)))
    .map(|(state, key, value)| format!("{} of {} is {value:?}, which was deleted", key, state.id_text()))
    .collect()
}

/// Returns the references of a resource that are missing or not done when its creation or update begins.
fn unfounded(resource: &ResourceState, base: &Snapshot, now: &Snapshot) -> Vec<String> {
    // A superseded entry may be deleted in the meantime.
    let under_way = |state: &Snapshot, urn: &Urn| {
        let pending = state.pending_operations.iter().filter(|pending| pending.kind != OperationKind::Deleting);
        pending.filter(|pending| pending.resource.urn == *urn).count()
    };
    let mut faults = Vec::new();
    for urn in resource.references() {
        if !now.resources.iter().any(|state| state.urn == *urn) {
            faults.push(format!("{} begins before {urn} is there", resource.urn));
        } else if under_way(now, urn) > under_way(base, urn) {
            faults.push(format!("{} begins before {urn} is done", resource.urn));
        }
    }
    let provides = |state: &Arc<ResourceState>| state.as_provider_reference() == resource.provider;
    if resource.provider.is_some() && !now.resources.iter().any(provides) {
        faults.push(format!("{} begins without its provider", resource.urn));
    }
    faults
}

/// Recorder that keeps all snapshots between records, and checks the integrity of each.
#[derive(Clone, Debug)]
pub(crate) struct Tape(Arc<Mutex<TapeInner>>);

#[derive(Debug)]
struct TapeInner {
    ledger: Ledger,
    deferred: Vec<Record>,
    prefixes: Vec<Snapshot>,
    world: World,
    moments: Vec<Moment>,
    faults: Vec<String>,
    fails_after: Option<usize>,
}

impl TapeInner {
    fn take(&mut self, record: &Record) {
        self.ledger.apply(record);
        let snapshot = self.ledger.snapshot();
        if let Err(error) = integrity::verify(&snapshot) {
            self.faults.push(format!("record {} breaks the laws: {error}\n{record:?}", self.prefixes.len()));
        }
        if let Record::Begin { kind: OperationKind::Creating | OperationKind::Updating, subject, .. } = record
            && let Some(resource) = self.ledger.resource_of(subject)
        {
            self.faults.extend(unfounded(resource, &self.prefixes[0], &snapshot));
        }
        let lost = self.prefixes.last().map(|before| self.world.lost(before, &snapshot)).unwrap_or_default();
        self.faults.extend(lost.into_iter().map(|id| {
            format!("after record {} nothing knows of {id}, which is there\n{record:?}", self.prefixes.len())
        }));
        self.prefixes.push(snapshot);
        self.moments.push(self.world.moment());
    }
}

impl Tape {
    pub(crate) fn new(world: &World, base: &Snapshot, fails_after: Option<usize>) -> Self {
        Self(Arc::new(Mutex::new(TapeInner {
            ledger: Ledger::new(base.clone()),
            deferred: Vec::new(),
            prefixes: vec![base.clone()],
            world: world.clone(),
            moments: vec![world.moment()],
            faults: Vec::new(),
            fails_after,
        })))
    }

    fn with<T>(&self, work: impl FnOnce(&mut TapeInner) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn prefixes(&self) -> (Vec<Snapshot>, Vec<Moment>) {
        self.with(|tape| (tape.prefixes.clone(), tape.moments.clone()))
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        self.with(|tape| tape.faults.clone())
    }

    pub(crate) fn written(&self) -> Snapshot {
        self.with(|tape| {
            for record in std::mem::take(&mut tape.deferred) {
                tape.take(&record);
            }
            tape.ledger.snapshot()
        })
    }
}

#[async_trait]
impl StateRecorder for Tape {
    fn append(&mut self, record: &Record) -> Result<(), StateError> {
        self.with(|tape| {
            if tape.fails_after.is_some_and(|limit| tape.prefixes.len() > limit) {
                let breach = integrity::IntegrityError { breaches: Vec::new() };
                return Err(StateError::Integrity(breach));
            }
            for deferred in std::mem::take(&mut tape.deferred) {
                tape.take(&deferred);
            }
            tape.take(record);
            Ok(())
        })
    }

    fn defer(&mut self, record: Record) {
        self.with(|tape| tape.deferred.push(record));
    }

    async fn secrets_ready(&mut self) -> Result<(), StateError> {
        tokio::task::yield_now().await;
        Ok(())
    }
}
