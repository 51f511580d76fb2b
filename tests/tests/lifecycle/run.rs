//! Runs of a deployment, each checked for the promises of every run (engine semantics, section 11.1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::events::{Event, EventSink, Operation, Outcome, Severity, StepInfo, StepOp};
use engine::{
    ConfigEntry, Deployment, DeploymentOptions, ImportGoal, ProgramEnd, RegistrationResult, StopSignals, UrnPattern,
};
use pulumi_proto::urn::Urn;
use state::{ResourceState, Snapshot, StateRecorder, integrity};

use crate::program::{self, Answer, PROJECT, STACK, Thing};
use crate::promises::{self, Tape};
use crate::world::{Call, Hold, Moment, World, calm};

/// Time after which a run is considered to hang.
const LIMIT: Duration = Duration::from_secs(20);

/// Run that has not started.
pub(crate) struct Run {
    world: World,
    base: Snapshot,
    things: Vec<Thing>,
    options: DeploymentOptions,
    signals: StopSignals,
    end: ProgramEnd,
    record_fails_after: Option<usize>,
    /// True if the world may differ from the state, as records were lost in a crash.
    lost: bool,
}

/// Run that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) state: Snapshot,
    pub(crate) answers: BTreeMap<String, Answer>,
    /// Started steps, such as `create a`.
    pub(crate) steps: Vec<String>,
    /// Steps that failed in part, with a recorded resource.
    pub(crate) half_done: Vec<String>,
    /// Keys of the secrets that were announced for masking apart from the steps.
    pub(crate) told_secrets: Vec<String>,
    pub(crate) errors: Vec<String>,
    /// Hints of the errors.
    pub(crate) hints: Vec<String>,
    pub(crate) warnings: Vec<String>,
    /// Calls that the provider received in this run.
    pub(crate) calls: Vec<Call>,
    /// State after a crash at each record.
    pub(crate) prefixes: Vec<Snapshot>,
    /// State of the cloud when each record was written.
    pub(crate) moments: Vec<Moment>,
    pub(crate) counts: BTreeMap<StepOp, usize>,
}

impl World {
    /// Creates an update with a program.
    pub(crate) fn up(&self, base: &Snapshot, things: &[Thing]) -> Run {
        self.run(Operation::Update, base, things)
    }

    /// Creates a refresh.
    pub(crate) fn refresh(&self, base: &Snapshot) -> Run {
        self.run(Operation::Refresh, base, &[])
    }

    /// Creates an import.
    pub(crate) fn import(&self, base: &Snapshot, goals: &[ImportGoal]) -> Run {
        let mut run = self.run(Operation::Import, base, &[]);
        run.options.imports = goals.to_vec();
        run.options.continue_on_error = true;
        run
    }

    /// Creates a destroy.
    pub(crate) fn destroy(&self, base: &Snapshot) -> Run {
        self.run(Operation::Destroy, base, &[])
    }

    /// Creates a refresh that runs a program.
    pub(crate) fn refresh_with(&self, base: &Snapshot, things: &[Thing]) -> Run {
        self.run(Operation::Refresh, base, things).with_program()
    }

    /// Creates a destroy that runs a program.
    pub(crate) fn destroy_with(&self, base: &Snapshot, things: &[Thing]) -> Run {
        self.run(Operation::Destroy, base, things).with_program()
    }

    fn run(&self, operation: Operation, base: &Snapshot, things: &[Thing]) -> Run {
        Run {
            world: self.clone(),
            base: base.clone(),
            things: things.to_vec(),
            options: DeploymentOptions::new(STACK, PROJECT, operation),
            signals: StopSignals::default(),
            end: ProgramEnd::Completed,
            record_fails_after: None,
            lost: false,
        }
    }
}

impl Run {
    pub(crate) fn preview(mut self) -> Self {
        self.options.preview = true;
        self
    }

    pub(crate) fn parallel(mut self, parallel: usize) -> Self {
        self.options.parallel = parallel;
        self
    }

    /// Continues after failures.
    pub(crate) fn going_on(mut self) -> Self {
        self.options.continue_on_error = true;
        self
    }

    /// Refreshes before the operation.
    pub(crate) fn refreshing(mut self) -> Self {
        self.options.refresh = true;
        self
    }

    /// Runs the program in a refresh or destroy as well.
    pub(crate) fn with_program(mut self) -> Self {
        self.options.run_program = true;
        self
    }

    pub(crate) fn target(mut self, name: &str) -> Self {
        self.options.scope.targets.push(UrnPattern::new(format!("**::{name}")));
        self
    }

    pub(crate) fn exclude(mut self, name: &str) -> Self {
        self.options.scope.excludes.push(UrnPattern::new(format!("**::{name}")));
        self
    }

    pub(crate) fn replace(mut self, name: &str) -> Self {
        self.options.replace.push(UrnPattern::new(format!("**::{name}")));
        self
    }

    /// Sets a value of the stack's configuration, in the namespace `cloud` unless the name starts with another one.
    pub(crate) fn config(mut self, name: &str, value: &str, secret: bool) -> Self {
        let (namespace, name) = name.split_once(':').unwrap_or(("cloud", name));
        let (namespace, name, value) = (namespace.to_owned(), name.to_owned(), value.to_owned());
        self.options.config.push(ConfigEntry { namespace, name, value, secret });
        self
    }

    /// Adds dependents to targets and excludes.
    pub(crate) fn with_dependents(mut self) -> Self {
        (self.options.scope.target_dependents, self.options.scope.exclude_dependents) = (true, true);
        self
    }

    /// Keeps protected resources in a destroy.
    pub(crate) fn keeping_protected(mut self) -> Self {
        self.options.exclude_protected = true;
        self
    }

    /// Ends the program with an error of its own.
    pub(crate) fn gives_up(mut self) -> Self {
        self.end = ProgramEnd::Failed;
        self
    }

    /// Fails the recorder after a number of records.
    pub(crate) fn disk_full_after(mut self, records: usize) -> Self {
        self.record_fails_after = Some(records);
        self
    }

    /// Allows the state and the world to differ by lost records.
    pub(crate) fn after_a_loss(mut self) -> Self {
        self.lost = true;
        self
    }

    /// Runs, and holds a call until nothing else can continue.
    pub(crate) async fn held_up_at(self, call: Hold) -> Ended {
        let (ended, ()) = tokio::join!(self.go(), async {
            call.reached().await;
            calm().await;
            call.release();
        });
        ended
    }

    pub(crate) fn signals(&self) -> StopSignals {
        self.signals.clone()
    }

    /// Runs, and panics if the run violates a promise.
    pub(crate) async fn go(self) -> Ended {
        match tokio::time::timeout(LIMIT, self.run()).await {
            Ok(ended) => ended,
            Err(_) => panic!("the run hangs"),
        }
    }

    async fn run(self) -> Ended {
        let before = self.world.calls().len();
        let preview = self.options.preview;
        let tape = Tape::new(&self.world, &self.base, self.record_fails_after);
        let events = Arc::new(Events::default());
        let recorder = (!preview).then(|| Box::new(tape.clone()) as Box<dyn StateRecorder>);
        let host = Arc::new(self.world.clone());
        let has_program = self.options.has_program();
        let everything = self.options.scope.targets.is_empty() && self.options.scope.excludes.is_empty();
        let (deployment, run) = Deployment::new(
            self.options,
            self.base.clone(),
            host,
            recorder,
            Arc::clone(&events) as _,
            self.signals.clone(),
        );
        let program = async {
            if has_program { program::drive(&self.things, &deployment, self.end).await } else { BTreeMap::new() }
        };
        let (end, answers) = tokio::join!(run, program);
        let mut ended = events.ended(end.outcome, answers);
        ended.calls = self.world.calls().split_off(before);
        ended.counts = end.summary.changes;
        (ended.prefixes, ended.moments) = tape.prefixes();
        self.world.note_unasked(promises::unasked(&ended.calls));

        let mut faults = [self.world.faults(), tape.faults()].concat();
        let aborted = self.signals.abort.is_cancelled();
        if preview {
            let changes = ended.changes();
            if !changes.is_empty() {
                faults.push(format!("a preview changed something: {changes:?}"));
            }
            ended.state = self.base;
        } else {
            if self.record_fails_after.is_none() && tape.written() != end.snapshot {
                faults.push("what was recorded does not come to the state at the end".to_owned());
            }
            if let Err(error) = integrity::verify(&end.snapshot) {
                faults.push(format!("the state at the end breaks the laws: {error}"));
            }
            if !aborted && !self.lost {
                faults.extend(promises::ghosts(&end.snapshot, &self.world));
            }
            let unknown = ended.errors.iter().filter(|error| error.contains("ended during Create")).count();
            if !aborted && end.snapshot.pending_operations.len() > self.base.pending_operations.len() + unknown {
                faults.push("an operation is pending although the run was not aborted".to_owned());
            }
            faults.extend(promises::twice(&ended.calls));
            faults.extend(promises::disorder(&self.base, &ended.calls, &events.heads()));
            faults.extend(promises::hasty(&self.things, &ended.answers));
            if everything {
                let unasked = self.world.unasked();
                faults.extend(promises::dangling(&self.base, &end.snapshot, &ended.calls, &events.heads(), &unasked));
            }
            ended.state = end.snapshot;
        }
        if ended.outcome == Outcome::Failed && ended.errors.is_empty() && self.end == ProgramEnd::Completed {
            faults.push("a failure without an error".to_owned());
        }
        if ended.outcome == Outcome::Succeeded && !ended.errors.is_empty() {
            faults.push(format!("a success with errors: {:?}", ended.errors));
        }
        assert!(faults.is_empty(), "{faults:#?}\nsteps: {:#?}\nerrors: {:#?}", ended.steps, ended.errors);
        ended
    }
}

impl Ended {
    /// Returns the calls that change resources, in the order of their starts.
    pub(crate) fn changes(&self) -> Vec<String> {
        let changes = self.calls.iter().filter(|call| matches!(call.verb, "create" | "update" | "delete"));
        changes.map(Call::said).collect()
    }

    pub(crate) fn called(&self, said: &str) -> usize {
        self.calls.iter().filter(|call| call.said() == said).count()
    }

    /// Returns the entries of the state: `a-1`, `a-1 (delete)`, `a-1 (owed)`; components and providers by name.
    pub(crate) fn entries(&self) -> Vec<String> {
        entries(&self.state)
    }

    pub(crate) fn expect(self, outcome: Outcome) -> Self {
        assert_eq!(self.outcome, outcome, "{:?}\n{:?}", self.errors, self.steps);
        self
    }

    pub(crate) fn result(&self, name: &str) -> RegistrationResult {
        let answer = self.answers.get(name).unwrap_or_else(|| panic!("{name} got no answer"));
        answer.unwrap_or_else(|_| panic!("{name} was refused"))
    }
}

/// Returns the entries of a state, without the root and default providers.
pub(crate) fn entries(state: &Snapshot) -> Vec<String> {
    let shown = state.resources.iter().filter(|state| {
        state.type_token.as_str() != "pulumi:pulumi:Stack" && !(state.is_provider() && state.urn.name() == "default")
    });
    let word = |state: &Arc<ResourceState>| {
        let name = if state.is_provider() || !state.custom { state.urn.name() } else { state.id_text() };
        let mark = match (state.delete, state.pending_replacement) {
            (true, _) => " (delete)",
            (_, true) => " (owed)",
            _ => "",
        };
        format!("{name}{mark}")
    };
    shown.map(word).collect()
}

/// Returns the live entry of a name.
pub(crate) fn entry<'a>(state: &'a Snapshot, name: &str) -> &'a ResourceState {
    let found = state.resources.iter().find(|state| state.urn.name() == name && !state.delete);
    found.unwrap_or_else(|| panic!("{name} is not in the state: {:?}", entries(state)))
}

#[derive(Debug, Default)]
struct Events(Mutex<Vec<Event>>);

impl EventSink for Events {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

impl Events {
    fn ended(&self, outcome: Outcome, answers: BTreeMap<String, Answer>) -> Ended {
        let (mut steps, mut half_done, mut errors, mut warnings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut told_secrets, mut hints) = (Vec::new(), Vec::new());
        let named = |step: &StepInfo| format!("{} {}", step.op.as_str(), step.urn.name());
        for event in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            match event {
                Event::StepStarted(step) => steps.push(named(step)),
                Event::StepFailed(step, failure) if failure.partial => half_done.push(named(step)),
                Event::SecretsTold(values) => told_secrets.extend(values.keys().cloned()),
                Event::Message(message) => {
                    hints.extend(
                        (message.severity == Severity::Error).then(|| message.hint.clone().unwrap_or_default()),
                    );
                    let told = match message.severity {
                        Severity::Error => &mut errors,
                        Severity::Warning => &mut warnings,
                        Severity::Info | Severity::Debug => continue,
                    };
                    let name = message.urn.as_ref().map(Urn::name).unwrap_or_default();
                    told.push(format!("{name}: {}", message.text));
                }
                _ => {}
            }
        }
        Ended {
            outcome,
            state: Snapshot::default(),
            answers,
            steps,
            half_done,
            told_secrets,
            hints,
            errors,
            warnings,
            calls: Vec::new(),
            prefixes: Vec::new(),
            moments: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Returns the ids that were deleted before a replacement, superseded ones included.
    fn heads(&self) -> BTreeSet<String> {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = |event: &Event| match event {
            Event::StepStarted(step) => Some(Arc::clone(step)),
            _ => None,
        };
        let steps: Vec<_> = events.iter().filter_map(begun).collect();
        let program_ended = steps.iter().rposition(|step| {
            !matches!(step.op, StepOp::Delete | StepOp::DeleteReplaced | StepOp::Discard | StepOp::RemovePendingReplace)
        });
        let head = |(place, step): (usize, &Arc<StepInfo>)| {
            let old = step.old.as_ref().filter(|_| step.op == StepOp::DeleteReplaced)?;
            (!old.delete || Some(place) < program_ended).then(|| old.id_text().to_owned())
        };
        steps.iter().enumerate().filter_map(head).collect()
    }
}
