//! Runs one recorded step with our engine, and returns its outcome in the format of a recording.
//!
//! The module translates between the recordings and `engine`. Input: a step, and the state that it starts from.
//! Output: an [`Outcome`], and violations of our engine's own guarantees, which recordings cannot show.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bridge::host::ProviderHost;
use engine::events::{Event, EventSink, Operation, Outcome as RunOutcome, Severity};
use engine::{
    ConfigEntry, DEFAULT_PARALLEL, Deployment, DeploymentOptions, DeploymentRequest, ImportGoal, ImportProvider,
    ProgramEnd, Scope, StopSignals, UrnPattern,
};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{TypeToken, Urn};
use serde_json::{Map, Value};
use state::{MemoryRecorder, OperationKind, Receipt, Record, Snapshot, StateError, StateRecorder, integrity};

use crate::export;
use crate::program_runner::{Concurrency, ProgramResult, run_program};
use crate::rec::{MemoryCallRecorder, ScriptedProviderHost};
use crate::scenario::{Interrupt, Op, Outcome, PROJECT, STACK, Scenario, Step, urn_argument};

/// Time after which a run is considered to hang.
const LIMIT: Duration = Duration::from_secs(30);

/// Run of a step with our engine.
#[derive(Debug, Default)]
pub struct StepRun {
    /// Outcome in the format of a recording.
    pub outcome: Outcome,
    /// Violations of our engine's own guarantees.
    pub violations: Vec<String>,
}

/// Runs a step of a scenario from the recorded state of the step before.
///
/// # Errors
/// Returns a text if the engine cannot run the step, or does not end in time.
pub async fn run_step(scenario: &Scenario, index: usize, concurrency: Concurrency) -> Result<StepRun, String> {
    run_step_with_components(scenario, index, concurrency, None).await
}

/// Runs a step like [`run_step`], with component providers of another host than the one in this process.
///
/// # Errors
/// Returns the errors of [`run_step`].
pub async fn run_step_with_components(
    scenario: &Scenario,
    index: usize,
    concurrency: Concurrency,
    components: Option<Arc<dyn ProviderHost>>,
) -> Result<StepRun, String> {
    let step = &scenario.steps[index];
    let mut base = export::import(&scenario.base(index))?;
    if step.flags.clear_pending_creates {
        base.pending_operations.retain(|operation| operation.kind != OperationKind::Creating);
    }
    let call_recorder = Arc::new(MemoryCallRecorder::new(step.script.clone(), scenario.ids(index)));
    let request = request(scenario, index, concurrency)?;
    match tokio::time::timeout(LIMIT, run_with(step, base, request, &call_recorder, concurrency, components)).await {
        Ok(step_run) => Ok(step_run),
        Err(_) => Err(format!("the run did not end within {} s", LIMIT.as_secs())),
    }
}

fn request(scenario: &Scenario, index: usize, concurrency: Concurrency) -> Result<DeploymentRequest, String> {
    let step = &scenario.steps[index];
    let flags = &step.flags;
    let operation = match step.op {
        Op::Taint => return Err("taint is an edit of the state".to_owned()),
        Op::Preview | Op::Up => Operation::Update,
        Op::Import => Operation::Import,
        Op::Refresh => Operation::Refresh,
        Op::Destroy => Operation::Destroy,
    };
    let patterns = |names: &[&Vec<String>]| -> Vec<UrnPattern> {
        names.iter().copied().flatten().map(|name| UrnPattern::new(urn_argument(name))).collect()
    };
    let options = DeploymentOptions {
        run_program: flags.run_program,
        parallel: if concurrency == Concurrency::Sequential { 1 } else { DEFAULT_PARALLEL.into() },
        scope: Scope {
            targets: patterns(&[&flags.target, &flags.target_replace]),
            excludes: patterns(&[&flags.exclude]),
            target_dependents: flags.target_dependents,
            exclude_dependents: flags.exclude_dependents,
        },
        replace: patterns(&[&flags.replace, &flags.target_replace]),
        continue_on_error: flags.continue_on_error || step.op == Op::Import,
        imports: imports(scenario, index),
        exclude_protected: flags.exclude_protected,
        ..DeploymentOptions::default()
    };
    Ok(DeploymentRequest {
        options,
        preview: step.is_preview(),
        refresh: flags.refresh,
        config: config(scenario, index),
        ..DeploymentRequest::new(STACK, PROJECT, operation)
    })
}

/// Returns the goals of an import step.
fn imports(scenario: &Scenario, index: usize) -> Vec<ImportGoal> {
    let step = &scenario.steps[index];
    if step.op != Op::Import {
        return Vec::new();
    }
    // Parents and providers are looked up in the recorded state.
    let base = scenario.base(index);
    let recorded_urn = |name: &String| {
        let urns = base.resources.iter().filter_map(|resource| resource["urn"].as_str()?.parse::<Urn>().ok());
        urns.into_iter().find(|urn| urn.name() == name)
    };
    vec![ImportGoal {
        type_token: TypeToken::new(&step.type_token),
        name: step.name.clone(),
        id: ResourceId::new(step.id.as_str()).expect("an import has an id"),
        parent: step.parent.as_ref().and_then(recorded_urn),
        provider: ImportProvider::Default(None),
        protect: step.protect,
        aliases: Vec::new(),
        inputs: Arc::default(),
        additional_secret_outputs: Vec::new(),
        source: None,
    }]
}

/// Returns the configuration of the stack. A key with a dot is a path into an object.
fn config(scenario: &Scenario, index: usize) -> Vec<ConfigEntry> {
    let mut objects = Map::new();
    let mut entries = Vec::new();
    for (key, value) in scenario.config(index) {
        match key.split_once('.') {
            None => entries.push((key, value)),
            Some((key, member)) => {
                let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
                objects.entry(key).or_insert_with(|| Map::new().into())[member] = value;
            }
        }
    }
    entries.extend(objects.into_iter().map(|(key, object)| (key, object.to_string())));
    let entry = |(key, value): (String, String)| {
        let (namespace, name) = key.split_once(':').unwrap_or((PROJECT, &key));
        ConfigEntry { namespace: namespace.to_owned(), name: name.to_owned(), value, secret: false }
    };
    entries.into_iter().map(entry).collect()
}

async fn run_with(
    step: &Step,
    base: Snapshot,
    request: DeploymentRequest,
    call_recorder: &Arc<MemoryCallRecorder>,
    concurrency: Concurrency,
    components: Option<Arc<dyn ProviderHost>>,
) -> StepRun {
    let preview = request.preview;
    let events = Arc::new(Events::default());
    let records = Records(Arc::new(Mutex::new(MemoryRecorder::new(base.clone()))));
    let recorder = (!preview).then(|| Box::new(records.clone()) as Box<dyn StateRecorder>);
    let signals = StopSignals::default();
    let host = Arc::new(ScriptedProviderHost::new(Arc::clone(call_recorder) as _).with_other_host(components));
    let (deployment, run) =
        Deployment::new(request, base.clone(), host, recorder, Arc::clone(&events) as _, signals.clone());
    let program = async {
        if step.runs_program() {
            let end = match run_program(step, &deployment, concurrency).await {
                ProgramResult::Completed => ProgramEnd::Completed,
                ProgramResult::Failed | ProgramResult::Halted => ProgramEnd::Failed,
            };
            deployment.finish(end).await;
        }
    };
    let interrupt_run = async {
        match step.interrupt {
            None => std::future::pending::<()>().await,
            Some(interrupt) => {
                call_recorder.wait_for_hanging_call().await;
                if interrupt != Interrupt::Kill {
                    signals.stop.cancel();
                    if interrupt == Interrupt::Signals {
                        call_recorder.wait_for_cancel().await;
                        signals.abort.cancel();
                    }
                    std::future::pending::<()>().await;
                }
            }
        }
    };
    let ended = tokio::select! {
        (end, ()) = async { tokio::join!(run, program) } => Some(end),
        () = interrupt_run => None,
    };

    let mut violations = Vec::new();
    let (ok, snapshot) = match ended {
        // A preview records nothing.
        Some(end) if preview => (end.outcome == RunOutcome::Succeeded, base),
        Some(end) => {
            if records.final_snapshot() != end.snapshot {
                violations.push("the replayed records differ from the final state".to_owned());
            }
            (end.outcome == RunOutcome::Succeeded, end.snapshot)
        }
        None => (false, records.durable_snapshot()),
    };
    if let Err(error) = integrity::verify(&snapshot) {
        violations.push(format!("the state violates integrity: {error}"));
    }
    let mut outcome = events.outcome(preview);
    outcome.ok = ok;
    outcome.calls = call_recorder.calls();
    outcome.state = export::export(&snapshot);
    StepRun { outcome, violations }
}

/// Event sink that keeps the events of a run.
#[derive(Debug, Default)]
struct Events(Mutex<Vec<Event>>);

impl EventSink for Events {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

impl Events {
    /// Converts the events to the format of a recording.
    fn outcome(&self, preview: bool) -> Outcome {
        let mut outcome = Outcome::default();
        for event in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            match event {
                Event::StepStarted(step) => outcome.steps.push((step.op.as_str().to_owned(), step.urn.to_string())),
                // Pulumi's log of a preview contains the error, but not the failed step.
                Event::StepFailed(step, _) if !preview => outcome.failed.push(step.urn.to_string()),
                Event::Message(message) if message.severity == Severity::Error => {
                    let urn = message.urn.as_ref().map(Urn::to_string).unwrap_or_default();
                    outcome.errors.push((urn, message.text.to_string()));
                }
                Event::PhaseEnded(summary) => {
                    let counts = summary.changes.iter().filter(|(_, count)| **count > 0);
                    outcome.changes.extend(counts.map(|(op, count)| (op.as_str().to_owned(), *count)));
                }
                _ => {}
            }
        }
        outcome
    }
}

/// Recorder whose records can be read while the engine uses it.
#[derive(Clone, Debug)]
struct Records(Arc<Mutex<MemoryRecorder>>);

impl Records {
    fn recorder(&self) -> std::sync::MutexGuard<'_, MemoryRecorder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the snapshot after a crash at this point.
    fn durable_snapshot(&self) -> Snapshot {
        self.recorder().snapshot()
    }

    /// Returns the snapshot of all records, deferred ones included.
    fn final_snapshot(&self) -> Snapshot {
        let mut recorder = self.recorder();
        // The integrity of the state is checked at the end of the run.
        recorder.append(&Record::Change(Vec::new())).ok();
        recorder.snapshot()
    }
}

#[async_trait]
impl StateRecorder for Records {
    fn append(&mut self, record: &Record) -> Result<Receipt, StateError> {
        self.recorder().append(record)
    }

    fn defer(&mut self, record: Record) {
        self.recorder().defer(record);
    }

    async fn wait_for_secrets(&mut self) -> Result<(), StateError> {
        Ok(())
    }
}
