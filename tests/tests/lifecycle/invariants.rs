//! Invariants of every run (docs/spec/engine-semantics.md#11.1), checked against records, calls and replies.

mod kept;
mod secrets;
mod unchanged;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use engine::RegistrationResult;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::Urn;
use state::store::StackReference;
use state::{
    HeldLease, Ledger, OperationKind, Receipt, Record, ResourceState, Snapshot, StateError, StateRecorder, Subject,
    integrity,
};

pub(crate) use self::kept::{deletes_of_kept, deletes_of_named};
pub(crate) use self::secrets::{SecretChecks, plain_secrets, secret_text, secrets_in_messages};
pub(crate) use self::unchanged::{init_errors_without_update, unchanged_with_init_errors, uninitialized_entries};
use crate::fake_cloud::{Call, CloudState, FakeCloud, NAMED};
use crate::program::{ProgramResource, Reply};

/// Returns the entries of the state whose resource does not exist.
pub(crate) fn entries_without_resource(state: &Snapshot, cloud: &FakeCloud) -> Vec<String> {
    let owned = |state: &&Arc<ResourceState>| {
        let is_managed = state.custom && !state.is_provider() && !state.external && state.view_of.is_none();
        is_managed && !state.pending_replacement
    };
    let objects = state.resources.iter().filter(owned).map(|entry| cloud.object_of(state, entry));
    let missing = objects.filter(|object| !cloud.has_or_lost(object));
    missing.map(|object| format!("the state contains {object}, which does not exist")).collect()
}

/// Returns the calls that change a resource a second time. A resource with the input [`NAMED`] may be changed by several
/// entries.
pub(crate) fn repeated_changes(calls: &[Call]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let has_effect = |call: &&Call| !call.id.is_empty() && !call.is_busy && !call.news.contains_key(NAMED);
    let changes = calls.iter().filter(|call| matches!(call.verb, "create" | "update" | "delete")).filter(has_effect);
    changes
        .filter(|call| !seen.insert(&call.object))
        .map(|call| format!("{} is a second change of the resource", call.text()))
        .collect()
}

/// Returns the deletes that started before the end of the deletes of dependents.
pub(crate) fn deletes_out_of_order(
    base: &Snapshot,
    calls: &[Call],
    deletes_before_replacement: &BTreeSet<String>,
) -> Vec<String> {
    // An external resource is never deleted, but may have the id of one that is.
    // An entry with a pending replacement gets no Delete, but may have the id of one that does.
    let has_delete = |state: &ResourceState| state.custom && !state.external && !state.pending_replacement;
    let listed = base.resources.iter().enumerate().filter(|(_, state)| has_delete(state));
    let mut by_id: HashMap<&str, (usize, &Arc<ResourceState>)> =
        listed.map(|(place, state)| (state.id_text(), (place, state))).collect();
    // Several entries may name such a resource, so its id does not say which entry a Delete belongs to.
    by_id.retain(|_, (_, state)| !state.inputs.contains_key(NAMED));
    let deletes: Vec<&Call> = calls.iter().filter(|call| call.verb == "delete").collect();
    let mut violations = Vec::new();
    for first in &deletes {
        for second in &deletes {
            let places = (by_id.get(first.id.as_str()), by_id.get(second.id.as_str()));
            let (Some((place, dependency)), Some((later, dependent))) = places else { continue };
            let is_dependent = dependent.all_dependencies().any(|urn| *urn == dependency.urn);
            // Before a replacement, only dependents that cannot exist without the resource are deleted; others are
            // deleted independently.
            let before_replacement =
                (deletes_before_replacement.contains(&first.id), deletes_before_replacement.contains(&second.id));
            let mut inputs = dependent.property_dependencies.iter();
            let is_replaced_with =
                inputs.any(|(key, urns)| key.starts_with(['k', 'd']) && urns.contains(&dependency.urn));
            let same_phase = before_replacement == (false, false)
                || (before_replacement == (true, true) && is_replaced_with && second.started < first.started);
            let in_order = second.ended.is_some_and(|ended| ended < first.started);
            if is_dependent && place < later && same_phase && !in_order {
                violations.push(format!("{} before the end of {}", first.text(), second.text()));
            }
        }
    }
    violations
}

/// Returns the ids of resources that were created without a Check, from their recorded inputs.
pub(crate) fn created_unchecked(calls: &[Call]) -> impl Iterator<Item = &String> {
    let checked: BTreeSet<&str> = calls.iter().filter(|call| call.verb == "check").map(|call| &*call.name).collect();
    calls.iter().filter(move |call| call.verb == "create" && !checked.contains(&*call.name)).map(|call| &call.id)
}

/// Returns the number of deletes that succeeded.
pub(crate) fn successful_deletes(calls: &[Call]) -> usize {
    calls.iter().filter(|call| call.verb == "delete" && call.succeeded).count()
}

/// Returns the resources that succeeded although a dependency failed.
pub(crate) fn successes_after_failed_dependency(
    resources: &[ProgramResource],
    replies: &BTreeMap<String, Reply>,
) -> Vec<String> {
    let has_result =
        |name: &str, result| matches!(replies.get(name), Some(Ok(registered)) if registered.result == result);
    let mut violations = Vec::new();
    for resource in resources.iter().filter(|resource| has_result(&resource.name, RegistrationResult::Succeeded)) {
        for dependency in
            resource.dependencies().filter(|dependency| has_result(dependency, RegistrationResult::Failed))
        {
            violations.push(format!("{} succeeded, but its dependency {dependency} failed", resource.name));
        }
    }
    violations
}

/// Returns the inputs of live entries that are the id of a resource deleted at the end of the run. There are
/// exceptions, in which such an input is legitimate:
///
/// - A run that ends after a delete before a replacement may leave such inputs.
/// - A pending delete of an earlier run is deleted even if a dependent is kept, as in Pulumi's own tests.
/// - A program may read a resource under a new name and no longer register it under the old one.
/// - A partially failed update is recorded with the former inputs, so that the next run retries it, and with the new
///   references.
/// - A dependent replacement that the program does not register again is created with its recorded inputs and with the
///   references of the program, as in Pulumi's engine. Its id is in `created_unchecked`.
pub(crate) fn dangling_inputs(
    base: &Snapshot,
    state: &Snapshot,
    calls: &[Call],
    deletes_before_replacement: &BTreeSet<String>,
    created_unchecked: &BTreeSet<String>,
) -> Vec<String> {
    let pending_deletes = base.resources.iter().filter(|state| state.delete);
    let read = state.resources.iter().filter(|state| state.external);
    let exempt: BTreeSet<&str> = pending_deletes.chain(read).map(|state| state.id_text()).collect();
    let deletes = calls
        .iter()
        .filter(|call| call.verb == "delete" && call.succeeded && !deletes_before_replacement.contains(&call.id));
    let created: BTreeSet<&str> = calls.iter().filter(|call| call.verb == "create").map(|call| &*call.id).collect();
    let is_gone = |id: &&str| !exempt.contains(id) && !created.contains(id);
    let deleted: BTreeSet<&str> = deletes.map(|call| call.id.as_str()).filter(is_gone).collect();
    let owned = |state: &&Arc<ResourceState>| state.custom && !state.delete && !state.external;
    let live = state.resources.iter().filter(owned).filter(|state| !state.pending_replacement);
    let has_init_errors = |state: &&Arc<ResourceState>| !state.init_errors.is_empty();
    let partial_before = base.resources.iter().filter(has_init_errors).map(|state| state.id_text());
    let updated = calls.iter().filter(|call| call.verb == "update").map(|call| &*call.id);
    let updated: BTreeSet<&str> = updated.chain(partial_before).collect();
    let is_partially_updated =
        |state: &Arc<ResourceState>| has_init_errors(&state) && updated.contains(state.id_text());
    live.filter(|state| {
        state.ignore_changes.is_empty() && !is_partially_updated(state) && !created_unchecked.contains(state.id_text())
    })
    .flat_map(|state| state.inputs.iter().map(move |(key, value)| (state, key, value)))
    .filter(|(_, key, _)| *key != NAMED)
    .filter(|(_, _, value)| matches!(value, PropertyValue::String(id) if deleted.contains(&**id)))
    .map(|(state, key, value)| format!("{} of {} is {value:?}, which was deleted", key, state.id_text()))
    .collect()
}

/// Returns the references of a resource that are missing or incomplete when its creation or update starts.
fn unmet_references(resource: &ResourceState, base: &Snapshot, now: &Snapshot) -> Vec<String> {
    // A pending delete may be deleted concurrently.
    let running = |state: &Snapshot, urn: &Urn| {
        let pending = state.pending_operations.iter().filter(|pending| pending.kind != OperationKind::Deleting);
        pending.filter(|pending| pending.resource.urn == *urn).count()
    };
    let mut violations = Vec::new();
    for urn in resource.all_dependencies() {
        if !now.resources.iter().any(|state| state.urn == *urn) {
            violations.push(format!("{} starts before {urn} is recorded", resource.urn));
        } else if running(now, urn) > running(base, urn) {
            violations.push(format!("{} starts before {urn} is completed", resource.urn));
        }
    }
    let provides = |state: &Arc<ResourceState>| state.as_provider_reference() == resource.provider;
    if resource.provider.is_some() && !now.resources.iter().any(provides) {
        violations.push(format!("{} starts without its provider", resource.urn));
    }
    violations
}

/// Recorder that keeps the snapshot after each record, and checks its integrity.
#[derive(Clone, Debug)]
pub(crate) struct CheckingRecorder(Arc<Mutex<CheckingRecorderInner>>);

#[derive(Debug)]
struct CheckingRecorderInner {
    ledger: Ledger,
    deferred: Vec<Record>,
    crash_states: Vec<Snapshot>,
    cloud: FakeCloud,
    cloud_states: Vec<CloudState>,
    violations: Vec<String>,
    fails_after: Option<usize>,
    lease: Option<HeldLease>,
    secrets: Arc<SecretChecks>,
    /// Resources that the program retains.
    retained: Vec<ProgramResource>,
}

impl CheckingRecorderInner {
    /// Returns the URN of the resource that an operation is about to create.
    fn created_by(&self, record: &Record) -> Option<Urn> {
        match record {
            Record::Begin { kind: OperationKind::Creating, subject: Subject::Resource(state), .. } => {
                Some(state.urn.clone()).filter(|_| !state.is_provider() && state.id.is_none())
            }
            _ => None,
        }
    }

    fn apply(&mut self, record: &Record) {
        self.ledger.apply(record);
        let snapshot = self.ledger.snapshot();
        if let Err(error) = integrity::verify(&snapshot) {
            self.violations.push(format!("record {} violates integrity: {error}\n{record:?}", self.crash_states.len()));
        }
        if let Record::Begin { kind: OperationKind::Creating | OperationKind::Updating, subject, .. } = record
            && let Some(resource) = self.ledger.resource_of(subject)
        {
            self.violations.extend(unmet_references(resource, &self.crash_states[0], &snapshot));
        }
        self.violations
            .extend(self.crash_states.last().map(|last| self.secrets.of_record(last, &snapshot)).unwrap_or_default());
        let before = self.crash_states.last();
        let lost =
            before.map(|before| self.cloud.lost_resources(before, &snapshot, &self.retained)).unwrap_or_default();
        self.violations.extend(lost.into_iter().map(|id| {
            format!("after record {} the existing resource {id} has no entry\n{record:?}", self.crash_states.len())
        }));
        self.crash_states.push(snapshot);
        self.cloud_states.push(self.cloud.state());
    }
}

impl CheckingRecorder {
    pub(crate) fn new(
        cloud: &FakeCloud,
        base: &Snapshot,
        fails_after: Option<usize>,
        lease: Option<HeldLease>,
        secrets: Arc<SecretChecks>,
        program: &[ProgramResource],
    ) -> Self {
        Self(Arc::new(Mutex::new(CheckingRecorderInner {
            ledger: Ledger::new(base.clone()),
            deferred: Vec::new(),
            crash_states: vec![base.clone()],
            cloud: cloud.clone(),
            cloud_states: vec![cloud.state()],
            violations: Vec::new(),
            fails_after,
            lease,
            secrets,
            retained: program.iter().filter(|resource| resource.kept_by(program).retained).cloned().collect(),
        })))
    }

    fn with<T>(&self, work: impl FnOnce(&mut CheckingRecorderInner) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn crash_states(&self) -> (Vec<Snapshot>, Vec<CloudState>) {
        self.with(|recorder| (recorder.crash_states.clone(), recorder.cloud_states.clone()))
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.with(|recorder| recorder.violations.clone())
    }

    pub(crate) fn written(&self) -> Snapshot {
        self.with(|recorder| {
            for record in std::mem::take(&mut recorder.deferred) {
                recorder.apply(&record);
            }
            recorder.ledger.snapshot()
        })
    }
}

#[async_trait]
impl StateRecorder for CheckingRecorder {
    fn append(&mut self, record: &Record) -> Result<Receipt, StateError> {
        let awaited = self.with(|recorder| {
            if recorder.fails_after.is_some_and(|limit| recorder.crash_states.len() > limit) {
                let error = integrity::IntegrityError { violations: Vec::new() };
                return Err(StateError::Integrity(error));
            }
            for deferred in std::mem::take(&mut recorder.deferred) {
                recorder.apply(&deferred);
            }
            recorder.apply(record);
            Ok(recorder.created_by(record).map(|urn| (urn.clone(), recorder.cloud.creates_of(&urn))))
        })?;
        let Some((urn, before)) = awaited else { return Ok(Receipt::complete()) };
        // As with a journal in a store, the record is durable some time later, and the call must not begin before.
        let (receipt, control) = Receipt::awaited(StackReference::new("p", "s").expect("the names are valid"));
        let recorder = self.clone();
        tokio::spawn(async move {
            for _ in 0..urn.as_str().len() % 7 {
                tokio::task::yield_now().await;
            }
            recorder.with(|recorder| {
                if recorder.cloud.creates_of(&urn) != before {
                    recorder.violations.push(format!("{urn} is created before that is durable"));
                }
            });
            control.complete();
        });
        Ok(receipt)
    }

    fn defer(&mut self, record: Record) {
        self.with(|recorder| recorder.deferred.push(record));
    }

    fn delays_operations(&self) -> bool {
        true
    }

    fn lease(&self) -> Option<HeldLease> {
        self.with(|recorder| recorder.lease.clone())
    }

    async fn wait_for_secrets(&mut self) -> Result<(), StateError> {
        tokio::task::yield_now().await;
        Ok(())
    }
}
