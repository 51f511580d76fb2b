//! Deployment of an operation, driven by its program.

use std::sync::Arc;

use bridge::host::ProviderHost;

use crate::program::End;
use engine::events::{Event, EventSink, Operation, StepOp};
use engine::{Deployment, DeploymentOptions, ProgramEnd};
use state::secrets::SecretsManager;
use state::{JournalRecorder, Snapshot, StateRecorder};

use super::{Report, StackRun};

/// Effect of a deployment on resources and state.
pub(super) enum Effect {
    /// Preview: changes neither resources nor state. Holds the secrets manager whose key a real run would need, if a
    /// real run may follow.
    Preview(Option<Arc<dyn SecretsManager>>),
    /// Real run: changes resources, and records its steps with this recorder.
    Real(JournalRecorder),
}

impl StackRun {
    /// Runs one deployment from a snapshot, side by side with the program if the operation has one.
    pub(super) async fn deploy(
        &self,
        host: &Arc<impl ProviderHost + 'static>,
        operation: Operation,
        refresh: bool,
        snapshot: Snapshot,
        effect: Effect,
    ) -> Report {
        let stack = self.program.stack();
        let events = Arc::clone(&self.events);
        let (preview, recorder, events) = match effect {
            Effect::Preview(None) => (true, None, events),
            Effect::Preview(Some(secrets)) => (true, None, Arc::new(Foresight { events, secrets }) as _),
            Effect::Real(recorder) => {
                // The key is prepared early only if the run is sure to write records.
                let empty = snapshot.resources.is_empty();
                let is_sure = match operation {
                    Operation::Import => true,
                    Operation::Update => empty,
                    Operation::Destroy => !empty,
                    Operation::Refresh => false,
                };
                if is_sure {
                    recorder.prepare_secrets();
                }
                (false, Some(Box::new(recorder) as Box<dyn StateRecorder>), events)
            }
        };
        let options = DeploymentOptions {
            preview,
            refresh,
            run_program: self.options.run_program,
            parallel: self.options.parallel,
            scope: self.options.scope.clone(),
            replace: self.options.replace.clone(),
            gone: self.options.gone.clone(),
            // A failed import does not stop the others.
            continue_on_error: self.options.continue_on_error || operation == Operation::Import,
            imports: self.options.imports.clone(),
            exclude_protected: self.options.exclude_protected,
            config: self.config.clone(),
            ..DeploymentOptions::new(&stack.name, &stack.project, operation)
        };
        let has_program = options.has_program();
        let host = Arc::clone(host) as Arc<dyn ProviderHost>;
        let (deployment, run) = Deployment::new(options, snapshot, host, recorder, events, self.signals.clone());
        let program = async {
            if !has_program {
                return Vec::new();
            }
            let ended = self.program.run(&deployment).await;
            let end = match ended.end {
                End::Complete => ProgramEnd::Completed,
                End::Incomplete => ProgramEnd::Failed,
            };
            deployment.finish(end).await;
            ended.diagnostics
        };
        let (end, diagnostics) = tokio::join!(run, program);
        Report { summary: end.summary, snapshot: end.snapshot, diagnostics }
    }
}

/// Event sink of previews that prepares the key of a stack at the first step that a real run would record, since a real
/// run is likely to follow. Earlier preparation would waste processor time, as most runs change nothing.
struct Foresight {
    events: Arc<dyn EventSink>,
    secrets: Arc<dyn SecretsManager>,
}

impl EventSink for Foresight {
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
    struct Counted(AtomicUsize);

    #[async_trait]
    impl SecretsManager for Counted {
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

    struct Nobody;

    impl EventSink for Nobody {
        fn emit(&self, _: Event) {}
    }

    #[test]
    fn the_key_is_made_ready_once_a_preview_finds_something_to_write_down() {
        let secrets = Arc::new(Counted::default());
        let foresight = Foresight { events: Arc::new(Nobody), secrets: Arc::clone(&secrets) as _ };
        let told = |op| {
            let urn = "urn:pulumi:s::p::t:m:T::n".parse().unwrap();
            let (old, new, detailed_diff) = (None, None, BTreeMap::new());
            let (replace_keys, diffs) = (Vec::new(), Vec::new());
            let step =
                StepInfo { op, result: None, urn, old, new, replace_keys, diffs, detailed_diff, internal: false };
            foresight.emit(Event::StepStarted(Arc::new(step)));
            secrets.0.load(Ordering::Relaxed)
        };
        assert_eq!([StepOp::Same, StepOp::Refresh].map(told), [0, 0]);
        assert_eq!([StepOp::Read, StepOp::Update, StepOp::Delete].map(told), [1, 2, 3]);
    }
}
