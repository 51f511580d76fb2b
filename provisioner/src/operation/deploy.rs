//! One deployment of an operation, with its program beside it.

use std::sync::Arc;

use bridge::host::ProviderHost;

use crate::deployment::{Deployment, DeploymentOptions, ProgramEnd};
use crate::events::Operation;
use crate::program::End;
use crate::state::{JournalRecorder, Snapshot, StateRecorder};

use super::{Report, StackRun};

/// Whether a deployment changes anything.
pub(super) enum Effect {
    /// It asks, and changes nothing.
    Preview,
    /// It does what it says, and writes it down.
    Real(JournalRecorder),
}

impl StackRun {
    /// Runs one deployment from a snapshot, with the program beside it where it has one.
    pub(super) async fn deploy(
        &self,
        host: &Arc<impl ProviderHost + 'static>,
        operation: Operation,
        refresh: bool,
        snapshot: Snapshot,
        effect: Effect,
    ) -> Report {
        let stack = self.program.stack();
        let (preview, recorder) = match effect {
            Effect::Preview => (true, None),
            Effect::Real(recorder) => (false, Some(Box::new(recorder) as Box<dyn StateRecorder>)),
        };
        let options = DeploymentOptions {
            preview,
            refresh,
            run_program: self.options.run_program,
            parallel: self.options.parallel,
            scope: self.options.scope.clone(),
            replace: self.options.replace.clone(),
            gone: self.options.gone.clone(),
            // One import that fails stops no other.
            continue_on_error: self.options.continue_on_error || operation == Operation::Import,
            imports: self.options.imports.clone(),
            exclude_protected: self.options.exclude_protected,
            config: self.config.clone(),
            ..DeploymentOptions::new(&stack.name, &stack.project, operation)
        };
        let has_program = options.has_program();
        let host = Arc::clone(host) as Arc<dyn ProviderHost>;
        let (deployment, run) =
            Deployment::new(options, snapshot, host, recorder, Arc::clone(&self.events), self.signals.clone());
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
