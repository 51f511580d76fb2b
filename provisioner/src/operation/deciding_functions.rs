//! Functions whose results decide what a run registers: they are called before it, in a preview that registers their providers alone.

use std::sync::{Arc, Mutex, PoisonError};

use bridge::host::ProviderHost;
use config::FunctionResults;
use config::diagnostics::{Code, Diagnostic};
use engine::events::{Event, EventSink, Message, Operation, Severity};
use engine::{Deployment, DeploymentOptions, DeploymentRequest, ProgramEnd};
use state::Snapshot;

use super::{OperationError, StackRun};

impl StackRun {
    /// Returns the run on the stack as the results of functions decide it, or the same run if none do. Their replies are kept for the run.
    ///
    /// # Errors
    /// [`OperationError::Functions`] if a function fails, with its position, and for mistakes that only the results show.
    pub(super) async fn decided(
        &self,
        host: &Arc<impl ProviderHost + 'static>,
        recorded: &Snapshot,
    ) -> Result<Self, OperationError> {
        if self.program.stack().deciding.is_empty() {
            return Ok(self.clone());
        }
        let results = self.call_deciding(host, recorded).await?;
        let stack = self.reader.read(self.program.stack(), Some(results)).await.map_err(OperationError::Functions)?;
        let mut run = self.clone();
        run.program = self.program.on(Arc::new(stack));
        let known = self.program.undeclared_packages();
        let missing = run.program.undeclared_packages().into_iter().filter(|needed| !known.contains(needed));
        let missing: Vec<Diagnostic> = missing
            .map(|needed| {
                let text = format_args!(
                    "the package {:?} of this type is needed only by what a function decides",
                    needed.package.name
                );
                Diagnostic::error(Code("package"), needed.span, text)
                    .help("declare a plugin of the package in `plugins`")
            })
            .collect();
        if missing.is_empty() { Ok(run) } else { Err(OperationError::Functions(missing)) }
    }

    /// Calls the functions.
    async fn call_deciding(
        &self,
        host: &Arc<impl ProviderHost + 'static>,
        recorded: &Snapshot,
    ) -> Result<FunctionResults, OperationError> {
        let program = self.program.of_deciding_functions();
        let stack = program.stack();
        let request = DeploymentRequest {
            // What the user selects are resources.
            options: DeploymentOptions { parallel: self.options.deployment.parallel, ..DeploymentOptions::default() },
            preview: true,
            config: self.config.clone(),
            masker: Arc::clone(&self.masker),
            ..DeploymentRequest::new(&stack.name, &stack.project, Operation::Update)
        };
        let sink = Arc::new(ErrorSink { events: Arc::clone(&self.events), errors: Mutex::default() });
        let host = Arc::clone(host) as Arc<dyn ProviderHost>;
        let events = Arc::clone(&sink) as Arc<dyn EventSink>;
        let (deployment, run) = Deployment::new(request, recorded.clone(), host, None, events, self.signals.clone());
        let called = Box::pin(async {
            let result = program.run(&deployment, &*self.effects).await;
            // What is not registered here is not deleted.
            deployment.finish(ProgramEnd::Failed).await;
            result
        });
        let (_, result) = tokio::join!(Box::pin(run), called);
        if self.signals.stop.is_cancelled() {
            return Err(OperationError::Stopped);
        }
        let errors = std::mem::take(&mut *sink.errors.lock().unwrap_or_else(PoisonError::into_inner));
        let mut found = result.diagnostics;
        found.extend(errors.into_iter().map(|message| program.error_of(message)));
        if found.is_empty() { Ok(result.functions) } else { Err(OperationError::Functions(found)) }
    }
}

/// Sink that keeps errors, and passes on what is not about the phase.
struct ErrorSink {
    events: Arc<dyn EventSink>,
    errors: Mutex<Vec<Message>>,
}

impl EventSink for ErrorSink {
    fn emit(&self, event: Event) {
        match event {
            Event::Message(message) if message.severity == Severity::Error => {
                self.errors.lock().unwrap_or_else(PoisonError::into_inner).push(message);
            }
            Event::Activity(_) | Event::Download(_) | Event::RetryScheduled(_) => self.events.emit(event),
            // Its source is that of the program of the functions.
            Event::Message(message) => self.events.emit(Event::Message(Message { source: None, ..message })),
            _ => {}
        }
    }
}
