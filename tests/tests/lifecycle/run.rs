//! Runs of a deployment, each checked for the invariants of every run (docs/spec/engine-semantics.md#11.1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use engine::events::{Deletions, Event, EventSink, Message, Operation, Outcome, Severity, StepInfo, StepOp};
use engine::masking::SecretMasker;
use engine::{
    ConfigEntry, DeletionLimit, Deployment, DeploymentRequest, ImportGoal, MissingApproval, PlanGuard, ProgramEnd,
    ProgramGoals, ProviderReadings, Registered, RegistrationResult, StopSignals, UrnPattern,
};
use pulumi_proto::urn::Urn;
use state::{HeldLease, ResourceState, Snapshot, StateRecorder, integrity};

use crate::fake_cloud::{Call, CloudState, FakeCloud, Hold, yield_until_idle};
use crate::invariants::{self, CheckingRecorder, SecretChecks};
use crate::program::{self, PROJECT, ProgramResource, Reply, STACK};

/// Time after which a run is considered to hang.
const LIMIT: Duration = Duration::from_secs(20);

/// Run that has not started.
pub(crate) struct Run {
    cloud: FakeCloud,
    base: Snapshot,
    resources: Vec<ProgramResource>,
    request: DeploymentRequest,
    signals: StopSignals,
    end: ProgramEnd,
    record_fails_after: Option<usize>,
    lease: Option<HeldLease>,
    /// True if the fake cloud may differ from the state, as records were lost in a crash.
    lost_records: bool,
}

/// Run that has ended.
#[derive(Debug)]
pub(crate) struct EndedRun {
    pub(crate) outcome: Outcome,
    pub(crate) state: Snapshot,
    pub(crate) replies: BTreeMap<String, Reply>,
    /// Started steps, such as `create a`.
    pub(crate) steps: Vec<String>,
    /// Steps that failed partially, with a recorded resource.
    pub(crate) partial_failures: Vec<String>,
    /// Secrets that the run learned of.
    pub(crate) masker: Arc<SecretMasker>,
    pub(crate) errors: Vec<String>,
    /// Hints of the messages.
    pub(crate) hints: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) notices: Vec<String>,
    /// Repetitions of calls, such as `Create a 2` for the second attempt.
    pub(crate) retries: Vec<String>,
    /// Calls that the provider received in this run.
    pub(crate) calls: Vec<Call>,
    /// State after a crash at each record.
    pub(crate) crash_states: Vec<Snapshot>,
    /// State of the fake cloud when each record was written.
    pub(crate) cloud_states: Vec<CloudState>,
    pub(crate) counts: BTreeMap<StepOp, usize>,
    pub(crate) deletions: Deletions,
    pub(crate) readings: Vec<ProviderReadings>,
    pub(crate) deleted: BTreeSet<Urn>,
}

/// Refuses each refresh that does not find a resource.
#[derive(Debug)]
struct Refusal;

#[async_trait]
impl MissingApproval for Refusal {
    async fn approve(&self, readings: &[ProviderReadings]) -> Result<(), Message> {
        let names = readings.iter().flat_map(|found| &found.missing).map(|resource| resource.urn.name());
        let names: Vec<&str> = names.collect();
        if names.is_empty() {
            Ok(())
        } else {
            Err(Message::new(Severity::Error, format!("missing: {}", names.join(", "))))
        }
    }
}

impl FakeCloud {
    /// Creates an update with a program.
    pub(crate) fn up(&self, base: &Snapshot, resources: &[ProgramResource]) -> Run {
        self.new_run(Operation::Update, base, resources)
    }

    /// Creates a refresh.
    pub(crate) fn refresh(&self, base: &Snapshot) -> Run {
        self.new_run(Operation::Refresh, base, &[])
    }

    /// Creates an import.
    pub(crate) fn import(&self, base: &Snapshot, goals: &[ImportGoal]) -> Run {
        let mut run = self.new_run(Operation::Import, base, &[]);
        run.request.options.imports = goals.to_vec();
        run.request.options.continue_on_error = true;
        run
    }

    /// Creates a destroy.
    pub(crate) fn destroy(&self, base: &Snapshot) -> Run {
        self.new_run(Operation::Destroy, base, &[])
    }

    /// Creates a refresh that runs a program.
    pub(crate) fn refresh_with(&self, base: &Snapshot, resources: &[ProgramResource]) -> Run {
        self.new_run(Operation::Refresh, base, resources).run_program()
    }

    /// Creates a destroy that runs a program.
    pub(crate) fn destroy_with(&self, base: &Snapshot, resources: &[ProgramResource]) -> Run {
        self.new_run(Operation::Destroy, base, resources).run_program()
    }

    fn new_run(&self, operation: Operation, base: &Snapshot, resources: &[ProgramResource]) -> Run {
        Run {
            cloud: self.clone(),
            base: base.clone(),
            resources: resources.to_vec(),
            request: DeploymentRequest::new(STACK, PROJECT, operation),
            signals: StopSignals::default(),
            end: ProgramEnd::Completed,
            record_fails_after: None,
            lease: None,
            lost_records: false,
        }
    }
}

impl Run {
    pub(crate) fn preview(mut self) -> Self {
        self.request.preview = true;
        self
    }

    pub(crate) fn parallel(mut self, parallel: usize) -> Self {
        self.request.options.parallel = parallel;
        self
    }

    /// Deletes and replaces no more resources than this.
    pub(crate) fn deletion_limit(mut self, count: usize) -> Self {
        let (origin, hint) = (format!("the limit of {count}").into(), "allow more".into());
        self.request.options.deletion_limit = Some(DeletionLimit::Count { count, origin, hint });
        self
    }

    /// Deletes and replaces only resources that a preview has shown as deleted.
    pub(crate) fn delete_only(mut self, shown: &BTreeSet<Urn>) -> Self {
        self.request.options.deletion_limit = Some(DeletionLimit::Shown(shown.clone()));
        self
    }

    /// Continues after failures.
    pub(crate) fn continue_on_error(mut self) -> Self {
        self.request.options.continue_on_error = true;
        self
    }

    /// Refreshes before the operation.
    pub(crate) fn refresh_first(mut self) -> Self {
        self.request.refresh = true;
        self
    }

    /// Refuses refreshes that do not find a resource.
    pub(crate) fn refuse_missing(mut self) -> Self {
        self.request.missing = Some(Arc::new(Refusal));
        self
    }

    /// Sets the provider resources of the program, for a refresh that does not run it.
    pub(crate) fn program_goals(mut self, providers: Arc<dyn ProgramGoals>) -> Self {
        self.request.program_goals = Some(providers);
        self
    }

    /// Runs the program in a refresh or destroy as well.
    pub(crate) fn run_program(mut self) -> Self {
        self.request.options.run_program = true;
        self
    }

    pub(crate) fn target(mut self, name: &str) -> Self {
        self.request.options.scope.targets.push(UrnPattern::new(format!("**::{name}")));
        self
    }

    pub(crate) fn exclude(mut self, name: &str) -> Self {
        self.request.options.scope.excludes.push(UrnPattern::new(format!("**::{name}")));
        self
    }

    pub(crate) fn replace(mut self, name: &str) -> Self {
        self.request.options.replace.push(UrnPattern::new(format!("**::{name}")));
        self
    }

    /// Sets a value of the stack's configuration, in the namespace `cloud` unless the name starts with another one.
    pub(crate) fn config(mut self, name: &str, value: &str, secret: bool) -> Self {
        let (namespace, name) = name.split_once(':').unwrap_or(("cloud", name));
        let (namespace, name, value) = (namespace.to_owned(), name.to_owned(), value.to_owned());
        self.request.config.push(ConfigEntry { namespace, name, value, secret });
        self
    }

    /// Adds dependents to targets and excludes.
    pub(crate) fn with_dependents(mut self) -> Self {
        (self.request.options.scope.target_dependents, self.request.options.scope.exclude_dependents) = (true, true);
        self
    }

    /// Keeps protected resources in a destroy.
    pub(crate) fn exclude_protected(mut self) -> Self {
        self.request.options.exclude_protected = true;
        self
    }

    /// Ends the program with its own error.
    pub(crate) fn fail_program(mut self) -> Self {
        self.end = ProgramEnd::Failed;
        self
    }

    /// Fails the recorder after a number of records.
    pub(crate) fn fail_records_after(mut self, records: usize) -> Self {
        self.record_fails_after = Some(records);
        self
    }

    /// Records under a lock with this lease.
    pub(crate) fn lease(mut self, lease: HeldLease) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Allows the state and the fake cloud to differ by lost records.
    pub(crate) fn allow_lost_records(mut self) -> Self {
        self.lost_records = true;
        self
    }

    /// Sets the guard, which gives seeds and may refuse steps.
    pub(crate) fn guard(mut self, guard: Arc<dyn PlanGuard>) -> Self {
        self.request.guard = guard;
        self
    }

    /// Runs, and holds a call until no other task can continue.
    pub(crate) async fn run_held_at(self, call: Hold) -> EndedRun {
        let (ended, ()) = tokio::join!(self.run(), async {
            call.reached().await;
            yield_until_idle().await;
            call.release();
        });
        ended
    }

    pub(crate) fn signals(&self) -> StopSignals {
        self.signals.clone()
    }

    /// Runs, and panics if the run violates an invariant.
    pub(crate) async fn run(self) -> EndedRun {
        self.run_within(LIMIT).await
    }

    /// Runs on a paused clock, on which waits between repeated calls take no time.
    pub(crate) async fn run_on_paused_clock(self) -> EndedRun {
        self.run_within(Duration::from_secs(24 * 60 * 60)).await
    }

    async fn run_within(self, limit: Duration) -> EndedRun {
        match tokio::time::timeout(limit, self.execute()).await {
            Ok(ended) => ended,
            Err(_) => panic!("the run hangs"),
        }
    }

    async fn execute(self) -> EndedRun {
        let (before, lost_before) = (self.cloud.calls().len(), self.cloud.lost_replies());
        let entries_before = entries(&self.base);
        let preview = self.request.preview;
        let secrets = Arc::new(SecretChecks::new(&self.base, &self.resources));
        let (fails_after, lease) = (self.record_fails_after, self.lease);
        let masker = Arc::clone(&self.request.masker);
        let events = Arc::new(Events { masker: Arc::clone(&masker), ..Events::default() });
        let (operation, has_program) = (self.request.operation, self.request.has_program());
        let destroys = operation == Operation::Destroy;
        let resources = if has_program { self.resources.as_slice() } else { &[] };
        let checking_recorder =
            CheckingRecorder::new(&self.cloud, &self.base, fails_after, lease, Arc::clone(&secrets), resources);
        let recorder = (!preview).then(|| Box::new(checking_recorder.clone()) as Box<dyn StateRecorder>);
        let host = Arc::new(self.cloud.clone());
        let has_no_scope =
            self.request.options.scope.targets.is_empty() && self.request.options.scope.excludes.is_empty();
        let (deployment, run) = Deployment::new(
            self.request,
            self.base.clone(),
            host,
            recorder,
            Arc::clone(&events) as _,
            self.signals.clone(),
        );
        let program = async {
            if has_program {
                let (replies, result) = program::register_all(&self.resources, &deployment).await;
                events.record_program_end();
                deployment.finish(result.map_or(ProgramEnd::Failed, |()| self.end)).await;
                replies
            } else {
                BTreeMap::new()
            }
        };
        let (end, replies) = tokio::join!(run, program);
        let mut ended = events.ended(end.outcome, replies);
        ended.masker = masker;
        ended.calls = self.cloud.calls().split_off(before);
        (ended.counts, ended.deletions, ended.readings) = (end.summary.changes, end.summary.deletions, end.readings);
        ended.deleted = end.deleted.clone();
        (ended.crash_states, ended.cloud_states) = checking_recorder.crash_states();
        self.cloud.record_created_unchecked(invariants::created_unchecked(&ended.calls));

        let mut violations = [self.cloud.violations(), checking_recorder.violations()].concat();
        let steps = events.steps();
        violations.extend(secrets.of_steps(&self.base, &steps, has_no_scope));
        violations.extend(events.components().iter().flat_map(|component| secrets.of_entry(component, &self.base)));
        if operation == Operation::Update && has_no_scope {
            violations.extend(invariants::unchanged_with_init_errors(&steps));
        }
        let messages = [&ended.errors, &ended.warnings, &ended.notices, &ended.hints];
        violations.extend(messages.into_iter().flat_map(|messages| invariants::secrets_in_messages(messages)));
        let aborted = self.signals.abort.is_cancelled();
        if preview {
            let changes = ended.changes();
            if !changes.is_empty() {
                violations.push(format!("a preview changed resources: {changes:?}"));
            }
            ended.state = self.base;
        } else {
            if self.record_fails_after.is_none() && checking_recorder.written() != end.snapshot {
                violations.push("the replayed records differ from the final state".to_owned());
            }
            if let Err(error) = integrity::verify(&end.snapshot) {
                violations.push(format!("the final state violates integrity: {error}"));
            }
            if !aborted && !self.lost_records {
                violations.extend(invariants::entries_without_resource(&end.snapshot, &self.cloud));
            }
            let lost_replies = self.cloud.lost_replies() - lost_before;
            if !aborted && end.snapshot.pending_operations.len() > self.base.pending_operations.len() + lost_replies {
                violations.push("an operation is pending, but the run was not aborted, and no reply lost".to_owned());
            }
            if !self.lost_records {
                violations.extend(invariants::repeated_changes(&ended.calls));
            }
            if end.is_refused && (ended.crash_states.len() > 1 || !ended.changes().is_empty()) {
                violations.push("a refused refresh was recorded, or changes followed it".to_owned());
            }
            let uncounted = invariants::successful_deletes(&ended.calls).saturating_sub(ended.deletions.total());
            if uncounted > 0 && !aborted && self.record_fails_after.is_none() {
                violations.push(format!("{uncounted} deletes are not counted: {:?}", ended.deletions));
            }
            violations.extend(invariants::init_errors_without_update(&self.base, &end.snapshot, &ended.calls));
            let is_complete = end.outcome == Outcome::Succeeded && operation == Operation::Update;
            if is_complete && has_no_scope && self.end == ProgramEnd::Completed {
                violations.extend(invariants::uninitialized_entries(&end.snapshot));
            }
            let (cloud, calls) = (&self.cloud, &ended.calls);
            violations.extend(invariants::deletes_of_kept(cloud, &self.base, calls, resources, destroys));
            if !self.lost_records {
                let deletes =
                    invariants::deletes_of_named(cloud, &end.snapshot, calls, resources, destroys, end.outcome);
                violations.extend(deletes);
            }
            violations.extend(invariants::deletes_out_of_order(
                &self.base,
                &ended.calls,
                &events.deletes_before_replacement(),
            ));
            violations.extend(invariants::successes_after_failed_dependency(&self.resources, &ended.replies));
            if has_no_scope {
                violations.extend(secrets.of_end(&end.snapshot, &ended.replies));
                let created_unchecked = self.cloud.created_unchecked();
                violations.extend(invariants::dangling_inputs(
                    &self.base,
                    &end.snapshot,
                    &ended.calls,
                    &events.deletes_before_replacement(),
                    &created_unchecked,
                ));
            }
            ended.state = end.snapshot;
        }
        if ended.outcome == Outcome::Failed && ended.errors.is_empty() && self.end == ProgramEnd::Completed {
            violations.push("the run failed without an error".to_owned());
        }
        if ended.outcome == Outcome::Succeeded && !ended.errors.is_empty() {
            violations.push(format!("the run succeeded with errors: {:?}", ended.errors));
        }
        assert!(
            violations.is_empty(),
            "{violations:#?}\nentries before: {entries_before:?}\nsteps: {:#?}\nchanges: {:?}\nerrors: {:#?}",
            ended.steps,
            ended.changes(),
            ended.errors
        );
        ended
    }
}

impl EndedRun {
    /// Returns the calls that change resources, in the order of their starts.
    pub(crate) fn changes(&self) -> Vec<String> {
        let changes = self.calls.iter().filter(|call| matches!(call.verb, "create" | "update" | "delete"));
        changes.map(Call::text).collect()
    }

    pub(crate) fn call_count(&self, text: &str) -> usize {
        self.calls.iter().filter(|call| call.text() == text).count()
    }

    /// Returns the entries of the state: `a-1`, `a-1 (delete)`, `a-1 (pending replacement)`; components and providers
    /// by name.
    pub(crate) fn entries(&self) -> Vec<String> {
        entries(&self.state)
    }

    pub(crate) fn expect(self, outcome: Outcome) -> Self {
        assert_eq!(self.outcome, outcome, "{:?}\n{:?}", self.errors, self.steps);
        self
    }

    pub(crate) fn result(&self, name: &str) -> RegistrationResult {
        self.registered(name).result
    }

    pub(crate) fn registered(&self, name: &str) -> &Registered {
        let reply = self.replies.get(name).unwrap_or_else(|| panic!("{name} has no reply"));
        reply.as_ref().unwrap_or_else(|_| panic!("the registration of {name} was halted"))
    }
}

/// Returns the entries of a state, without the root and default providers.
pub(crate) fn entries(state: &Snapshot) -> Vec<String> {
    let shown_entries = state.resources.iter().filter(|state| {
        state.type_token.as_str() != "pulumi:pulumi:Stack" && !(state.is_provider() && state.urn.name() == "default")
    });
    let entry_text = |state: &Arc<ResourceState>| {
        let name = if state.is_provider() || !state.custom { state.urn.name() } else { state.id_text() };
        let suffix = match (state.delete, state.pending_replacement) {
            (true, _) => " (delete)",
            (_, true) => " (pending replacement)",
            _ => "",
        };
        format!("{name}{suffix}")
    };
    shown_entries.map(entry_text).collect()
}

/// Returns the live entry of a name.
pub(crate) fn entry<'a>(state: &'a Snapshot, name: &str) -> &'a ResourceState {
    let found = state.resources.iter().find(|state| state.urn.name() == name && !state.delete);
    found.unwrap_or_else(|| panic!("{name} is not in the state: {:?}", entries(state)))
}

#[derive(Debug, Default)]
struct Events {
    events: Mutex<Vec<Event>>,
    /// Number of events before the end of the program.
    count_at_program_end: AtomicUsize,
    masker: Arc<SecretMasker>,
}

impl EventSink for Events {
    /// Keeps an event. Masks the text of a message at once, as a display does.
    fn emit(&self, mut event: Event) {
        if let Event::Message(message) = &mut event {
            message.text = self.masker.mask_message(&message.text).into();
        }
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

impl Events {
    fn ended(&self, outcome: Outcome, replies: BTreeMap<String, Reply>) -> EndedRun {
        let (mut steps, mut partial_failures, mut errors, mut warnings, mut notices) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut hints, mut retries) = (Vec::new(), Vec::new());
        let step_text = |step: &StepInfo| format!("{} {}", step.op.as_str(), step.urn.name());
        for event in &*self.events.lock().unwrap_or_else(PoisonError::into_inner) {
            match event {
                Event::StepStarted(step) => steps.push(step_text(step)),
                Event::StepFailed(step, failure) if failure.partial => partial_failures.push(step_text(step)),
                Event::RetryScheduled(retry) => {
                    let name = retry.urn.as_ref().map(Urn::name).or(retry.function.as_deref()).unwrap_or_default();
                    retries.push(format!("{} {name} {}", retry.method, retry.attempt));
                }
                Event::Message(message) => {
                    hints.extend(message.hint.as_ref().map(ToString::to_string));
                    let messages = match message.severity {
                        Severity::Error => &mut errors,
                        Severity::Warning => &mut warnings,
                        Severity::Info => &mut notices,
                        Severity::Debug => continue,
                    };
                    let name = message.urn.as_ref().map(Urn::name).unwrap_or_default();
                    messages.push(format!("{name}: {}", message.text));
                }
                _ => {}
            }
        }
        EndedRun {
            outcome,
            state: Snapshot::default(),
            replies,
            steps,
            partial_failures,
            masker: Arc::default(),
            hints,
            errors,
            warnings,
            notices,
            retries,
            calls: Vec::new(),
            crash_states: Vec::new(),
            cloud_states: Vec::new(),
            counts: BTreeMap::new(),
            deletions: Deletions::default(),
            readings: Vec::new(),
            deleted: BTreeSet::new(),
        }
    }

    /// Returns the components whose registered outputs were reported.
    fn components(&self) -> Vec<Arc<ResourceState>> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let components = events.iter().filter_map(|event| match event {
            Event::OutputsRegistered(component) => Some(Arc::clone(component)),
            _ => None,
        });
        components.collect()
    }

    /// Returns the steps of all events.
    fn steps(&self) -> Vec<Arc<StepInfo>> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = events.iter().filter_map(|event| match event {
            Event::StepStarted(step) | Event::StepSucceeded(step, _) | Event::StepFailed(step, _) => {
                Some(Arc::clone(step))
            }
            _ => None,
        });
        steps.collect()
    }

    /// Records that the program has registered its resources. What is deleted after this is deleted at the end of the run.
    fn record_program_end(&self) {
        let count = self.events.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.count_at_program_end.store(count, Ordering::SeqCst);
    }

    /// Returns the ids that were deleted before a replacement, including ids of pending deletes and of old versions.
    fn deletes_before_replacement(&self) -> BTreeSet<String> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let count_at_program_end = self.count_at_program_end.load(Ordering::SeqCst);
        let replaced_id = |(place, event): (usize, &Event)| {
            let Event::StepStarted(step) = event else { return None };
            let old = step.old.as_ref().filter(|_| step.op == StepOp::DeleteReplaced)?;
            (!old.delete || place < count_at_program_end).then(|| old.id_text().to_owned())
        };
        events.iter().enumerate().filter_map(replaced_id).collect()
    }
}
