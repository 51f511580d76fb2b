//! Deployment of an operation, together with the program of the stack.

use std::sync::Arc;

use async_trait::async_trait;
use bridge::host::ProviderHost;
use engine::events::{Event, EventSink, Operation, Outcome, StepOp};
use engine::{Deployment, DeploymentEnd, DeploymentRequest, MissingApproval, StopSignals};
use jiff::Timestamp;
use state::format::{UpdateInfo, UpdateKind, UpdateOrigin, UpdateResult};
use state::secrets::SecretsManager;
use state::{JournalRecorder, Snapshot, StackState, StateRecorder};
use tokio_util::sync::CancellationToken;

use super::rename_hints::RenameHints;
use super::{Report, StackRun};
use crate::registry::recipe::Effects;

/// Mode of a deployment.
pub(super) enum DeployMode {
    /// Preview: changes neither resources nor state. Holds the secrets manager of the stack if a run that applies
    /// the changes may follow.
    Preview(Option<Arc<dyn SecretsManager>>),
    /// Changes resources, and records the steps with this recorder.
    Apply(JournalRecorder),
}

impl StackRun {
    /// Runs one deployment from a snapshot, concurrently with the program if the operation has one.
    pub(super) async fn deploy(
        &self,
        host: &Arc<impl ProviderHost + 'static>,
        operation: Operation,
        refresh: bool,
        snapshot: Snapshot,
        mode: DeployMode,
    ) -> Report {
        let stack = self.program.stack();
        let is_preview = matches!(mode, DeployMode::Preview(_));
        let events = Arc::clone(&self.events);
        let events: Arc<dyn EventSink> = match operation {
            Operation::Update if is_preview => Arc::new(RenameHints::new(events)),
            _ => events,
        };
        let (preview, recorder, events) = match mode {
            DeployMode::Preview(None) => (true, None, events),
            DeployMode::Preview(Some(secrets)) => (true, None, Arc::new(KeyPreparingSink { events, secrets }) as _),
            DeployMode::Apply(recorder) => {
                // The derivation of the key takes time, so it starts early, but only if the run is expected to change
                // entries: other runs may need no key.
                let empty = snapshot.resources.is_empty();
                let writes_records = match operation {
                    Operation::Import => true,
                    Operation::Update => empty,
                    Operation::Destroy => !empty,
                    Operation::Refresh => false,
                };
                if writes_records {
                    recorder.prepare_secrets();
                }
                (false, Some(Box::new(recorder) as Box<dyn StateRecorder>), events)
            }
        };
        let mut options = self.options.deployment.clone();
        // A failed import does not stop the other imports.
        options.continue_on_error |= operation == Operation::Import;
        let request = DeploymentRequest {
            options,
            preview,
            refresh,
            missing: match (&self.imported, &self.options.missing) {
                (Some(guard), _) => Some(Arc::clone(guard) as Arc<dyn MissingApproval>),
                (None, guard) => guard.clone().map(|guard| guard as Arc<dyn MissingApproval>),
            },
            config: self.config.clone(),
            program_goals: Some(Arc::new(self.program.clone())),
            masker: Arc::clone(&self.masker),
            guard: Arc::clone(&self.guard),
            ..DeploymentRequest::new(&stack.name, &stack.project, operation)
        };
        let has_program = request.has_program();
        let host = Arc::clone(host) as Arc<dyn ProviderHost>;
        // A run that has lost the lock of its stack stops.
        let signals = StopSignals { stop: self.signals.stop.child_token(), ..self.signals.clone() };
        let stop = signals.stop.clone();
        let (deployment, run) = Deployment::new(request, snapshot, host, recorder, events, signals);
        // On the heap: a caller holds several deployments, and the stack of a thread is small.
        let run = Box::pin(run);
        let program = Box::pin(async {
            if !has_program {
                return Vec::new();
            }
            let effects = StoppableEffects { effects: &*self.effects, stop: &stop };
            let result = self.program.run(&deployment, &effects).await;
            deployment.finish(result.end).await;
            result.diagnostics
        });
        let stop_without_lock = async {
            self.access.locks.lost.cancelled().await;
            stop.cancel();
            std::future::pending().await
        };
        let (end, diagnostics) = tokio::select! {
            ended = async { tokio::join!(run, program) } => ended,
            never = stop_without_lock => never,
        };
        let DeploymentEnd { summary, snapshot, readings, deleted, may_exist, is_refused, .. } = end;
        Report { summary, snapshot, diagnostics, readings, deleted, may_exist, is_refused }
    }

    /// Returns the mode of a deployment that changes the state of a stack. `kind` is that of the history entry of the run, if it ends
    /// with this deployment.
    pub(super) fn applied_to(&self, state: &StackState, kind: UpdateKind) -> DeployMode {
        if let Some(origin) = self.options.origin.collected() {
            state.set_origin(self.recorded_origin(origin));
        }
        DeployMode::Apply(state.recorder(kind))
    }

    /// Returns the origin of a run as its history entry has it.
    fn recorded_origin(&self, UpdateOrigin { message, environment }: &UpdateOrigin) -> UpdateOrigin {
        let masked = |(key, value): (&String, &String)| (key.clone(), self.masker.mask(value).into_owned());
        let program = ("exec.kind".to_owned(), "sc".to_owned());
        let environment = std::iter::once(program).chain(environment.iter().map(masked)).collect();
        UpdateOrigin { message: self.masker.mask(message).into_owned(), environment }
    }

    /// Returns the history entry of a run.
    pub(super) async fn history(&self, kind: UpdateKind, started: i64, report: &Report) -> UpdateInfo {
        let result = match report.summary.outcome {
            Outcome::Succeeded => UpdateResult::Succeeded,
            Outcome::Failed | Outcome::Canceled => UpdateResult::Failed,
        };
        let UpdateOrigin { message, environment } = self.recorded_origin(&self.options.origin.collect().await);
        UpdateInfo {
            kind,
            start_time: started,
            message,
            environment,
            config: self.access.config.clone(),
            result,
            end_time: Timestamp::now().as_second(),
            resource_changes: report
                .summary
                .changes
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(op, count)| (op.as_str().to_owned(), *count as u64))
                .collect(),
        }
    }
}

/// Effects of a run that its stop ends.
struct StoppableEffects<'r> {
    effects: &'r dyn Effects,
    stop: &'r CancellationToken,
}

#[async_trait]
impl Effects for StoppableEffects<'_> {
    async fn enable_google_api(&self, project: &str, service: &str, credentials: &str) -> Result<(), String> {
        tokio::select! {
            enabled = self.effects.enable_google_api(project, service, credentials) => enabled,
            () = self.stop.cancelled() => Err("the run was stopped before it was on".to_owned()),
        }
    }
}

/// Event sink of previews that starts the preparation of the stack's key at each step that changes or reads a resource,
/// because a run that records the step is likely to follow. A preparation before the first such step would waste
/// processor time, because most runs change no resource.
struct KeyPreparingSink {
    events: Arc<dyn EventSink>,
    secrets: Arc<dyn SecretsManager>,
}

impl EventSink for KeyPreparingSink {
    fn emit(&self, event: Event) {
        if let Event::StepStarted(step) = &event
            && !matches!(step.op, StepOp::Same | StepOp::Refresh)
        {
            self.secrets.prepare();
        }
        self.events.emit(event);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;

    use super::*;
    use engine::events::StepInfo;
    use state::SecretsDescription;
    use state::secrets::{Crypter, SecretsError};

    #[derive(Default)]
    struct CountingSecretsManager(AtomicUsize);

    #[async_trait]
    impl SecretsManager for CountingSecretsManager {
        fn describe(&self) -> SecretsDescription {
            SecretsDescription { kind: "counted".to_owned(), state: serde_json::Value::Null }
        }

        fn prepare(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        async fn crypter(&self) -> Result<Arc<dyn Crypter>, SecretsError> {
            Err(SecretsError::KeyNeeded)
        }
    }

    struct DiscardingSink;

    impl EventSink for DiscardingSink {
        fn emit(&self, _: Event) {}
    }

    /// Shows: performance.md#performance "The derivation starts when the preview finds the first change"
    #[test]
    fn preview_prepares_key_at_each_step_that_update_would_record() {
        let secrets = Arc::new(CountingSecretsManager::default());
        let sink = KeyPreparingSink { events: Arc::new(DiscardingSink), secrets: Arc::clone(&secrets) as _ };
        let prepare_count_after = |op| {
            let urn = "urn:pulumi:s::p::t:m:T::n".parse().unwrap();
            let step = StepInfo {
                op,
                result: None,
                urn,
                source: None,
                old: None,
                new: None,
                replace_keys: Vec::new(),
                diffs: Vec::new(),
                detailed_diff: BTreeMap::new(),
                internal: false,
                may_exist: false,
            };
            sink.emit(Event::StepStarted(Arc::new(step)));
            secrets.0.load(Ordering::Relaxed)
        };
        assert_eq!([StepOp::Same, StepOp::Refresh].map(prepare_count_after), [0, 0]);
        assert_eq!([StepOp::Read, StepOp::Update, StepOp::Delete].map(prepare_count_after), [1, 2, 3]);
    }
}
