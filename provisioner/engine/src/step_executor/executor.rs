//! Execution of a step of any kind: its events, its failure, the consequences of its end.

use std::sync::Arc;
use std::time::Instant;

use bridge::message_text::MessageText;
use bridge::provider::ProviderError;
use state::{Entry, ResourceState};
use tracing::{Instrument as _, debug_span};

use super::failed_call::StepResult;
use super::view_log::ViewLog;
use super::{create, delete, import, read, same, update};
use crate::context::Context;
use crate::decisions::deletions::Undeletable;
use crate::deployment_state::Incomplete;
use crate::events::{Event, StepFailure, StepOp};
use crate::messages;
use crate::reporter::{ErrorReported, Failure};
use crate::step::{Actor, CarryOver, Step, StepError};

/// Result of the import of a registration.
#[derive(Debug)]
pub(crate) enum Imported {
    /// The recorded entry is the resource: it stays as it is.
    Recorded,
    /// Entry of the imported resource.
    New(Option<Entry>),
}

/// Executor of the steps of a deployment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepExecutor<'c> {
    ctx: &'c Arc<Context>,
}

impl<'c> StepExecutor<'c> {
    /// Creates the step executor of a deployment.
    pub(crate) fn new(ctx: &'c Arc<Context>) -> Self {
        Self { ctx }
    }

    /// Waits until the provider of a step is configured, which may take long, and returns whether the step may still
    /// begin. If the configuration fails, the step itself reports the error.
    pub(crate) async fn can_begin(self, step: &Step) -> bool {
        if let Actor::Instance(instance) = &step.actor {
            instance.ready().instrument(debug_span!("wait", subject = "provider")).await.ok();
        }
        !self.ctx.is_halted()
    }

    /// Carries a step out, records it and reports it. Returns the entry that the step made or confirmed.
    ///
    /// # Errors
    /// [`ErrorReported`] of the step, or of one of its views.
    pub(crate) async fn execute(self, step: Step) -> Result<Option<Entry>, ErrorReported> {
        let views = ViewLog::of_step(self.ctx, &step);
        self.execute_with(step, views, None).await
    }

    /// Carries the import of a registration out, as [`StepExecutor::execute`] does, unless the id of the import turns out
    /// to be another spelling of the id of the recorded entry: then there is no step.
    ///
    /// # Errors
    /// [`ErrorReported`] of the step, or of a protected entry that the imported resource would replace; fatal.
    pub(crate) async fn import(self, step: Step) -> Result<Imported, ErrorReported> {
        let views = ViewLog::of_step(self.ctx, &step);
        let reading = match (&step.old, &step.new) {
            (Some((entry, _)), Some(planned)) => {
                let reading = import::read_planned(&step, planned, &views).await;
                let recorded = self.ctx.state().ledger().get(*entry).cloned();
                if let (Ok(read), Some(recorded)) = (&reading, recorded.filter(|recorded| !recorded.external)) {
                    // An alias may have found the entry under another type.
                    let renamed = ResourceState { type_token: read.type_token.clone(), ..(*recorded).clone() };
                    if self.ctx.state().is_same_resource(&renamed, read) {
                        return Ok(Imported::Recorded);
                    }
                    self.refuse_protected(&step, &recorded)?;
                }
                Some(reading)
            }
            _ => None,
        };
        self.execute_with(step, views, reading).await.map(Imported::New)
    }

    /// Refuses to put an imported resource in the place of an entry that the program protects. A preview reports the
    /// error and goes on.
    fn refuse_protected(self, step: &Step, old: &ResourceState) -> Result<(), ErrorReported> {
        let is_protected = step.new.as_ref().is_some_and(|planned| planned.protect);
        if !is_protected || old.pending_replacement {
            return Ok(());
        }
        let message = messages::import_over_protected(old);
        if self.ctx.is_preview() {
            self.ctx.report_error(&step.urn, step.source, message, Failure::AtEnd);
            return Ok(());
        }
        Err(self.ctx.report_fatal(&step.urn, step.source, message))
    }

    async fn execute_with(
        self,
        mut step: Step,
        views: Arc<ViewLog>,
        reading: Option<Result<ResourceState, StepError>>,
    ) -> Result<Option<Entry>, ErrorReported> {
        // An entry that is about to be deleted need not wait: no resource is created from it.
        if let (Some(CarryOver::AsRecorded), Some(state)) = (&step.carry_over, &step.new) {
            self.ctx.wait_for_references(state).await;
        }
        if let Some(new) = &mut step.new {
            *new = self.ctx.state().with_current_urns(new);
        }
        if matches!(step.op, StepOp::Create | StepOp::CreateReplacement) {
            step.may_exist = self.ctx.state().may_exist(&step.urn);
        }
        let started = Instant::now();
        self.ctx.emit(Event::StepStarted(Arc::new(step.info(step.new.clone()))));
        let span = debug_span!("step", op = step.op.as_str(), urn = %step.urn);
        // Boxed: a span moves its future, and that of a step is large.
        let outcome = match Box::pin(self.perform(&step, &views, reading)).instrument(span).await {
            Ok(StepResult { new, partial: None }) => Ok(new),
            Ok(StepResult { partial: Some(error), .. }) => Err(StepError::Provider(error)),
            Err(error) => Err(error),
        };
        let deletes = matches!(step.op, StepOp::Delete | StepOp::DeleteReplaced);
        // Deletions of views are reported before the step of their resource, other steps of views after it.
        let views_before = if deletes { views.report_ends(true) } else { Ok(()) };
        let outcome = match outcome {
            Ok(new) => {
                let info = step.info(new.as_ref().map(|(_, state)| Arc::clone(state)));
                if !step.internal && step.op != StepOp::Read {
                    self.ctx.state().count(step.op);
                }
                if let Some((_, old)) = step.old.as_ref().filter(|_| deletes) {
                    self.ctx.state().count_deletion(old, step.delete_before_replace);
                }
                self.ctx.emit(Event::StepSucceeded(Arc::new(info), started.elapsed()));
                Ok(new)
            }
            Err(error) => Err(self.report_failure(&step, &error)),
        };
        let views_after = if deletes { Ok(()) } else { views.report_ends(true) };
        if !matches!(step.op, StepOp::DeleteReplaced | StepOp::Replace) {
            self.ctx.shared.finish(&step.urn);
        }
        let new = outcome?;
        views_before.and(views_after).map(|()| new)
    }

    async fn perform(
        self,
        step: &Step,
        views: &Arc<ViewLog>,
        reading: Option<Result<ResourceState, StepError>>,
    ) -> Result<StepResult, StepError> {
        let ctx = self.ctx;
        let deleted = step.old.as_ref().filter(|_| matches!(step.op, StepOp::Delete | StepOp::DeleteReplaced));
        let text = || MessageText::new(format_args!("{} was not deleted", step.urn.name()));
        // Counted already, except in an import that replaces an entry.
        ctx.claim_deletions(text, deleted.into_iter()).map_err(|message| StepError::Failed(message.text))?;
        match step.op {
            StepOp::Same => same::execute(ctx, step, views).await,
            StepOp::Create | StepOp::CreateReplacement
                if step.may_exist && ctx.request.options.refuses_pending_creates && !ctx.is_preview() =>
            {
                Err(StepError::MayExist)
            }
            StepOp::Create | StepOp::CreateReplacement => create::execute(ctx, step, views).await,
            StepOp::Update => update::execute(ctx, step, views).await,
            StepOp::Delete | StepOp::DeleteReplaced => delete::execute(ctx, step, views).await,
            StepOp::Read | StepOp::ReadReplacement => read::execute(ctx, step, views).await,
            StepOp::Import | StepOp::ImportReplacement => import::execute(ctx, step, views, reading).await,
            StepOp::Discard | StepOp::DiscardReplaced | StepOp::RemovePendingReplace => {
                let (entry, _) = step.old.as_ref().ok_or_else(|| StepError::Failed("nothing to remove".into()))?;
                ctx.records.change(|state| state.delete_effects(*entry)).await?;
                Ok(StepResult { new: None, partial: None })
            }
            StepOp::Replace | StepOp::Refresh => Ok(StepResult { new: None, partial: None }),
        }
    }

    fn report_failure(self, step: &Step, error: &StepError) -> ErrorReported {
        self.ctx.state().mark_incomplete(&step.urn, Incomplete::Failed);
        if let StepError::Provider(ProviderError::Partial { failure, .. }) = error {
            // The message may quote them, also if the resource has no id and is not recorded.
            self.ctx.add_secrets(&failure.outputs);
        }
        let failure = match error {
            StepError::NotDeleted { reason: Undeletable::Protected, .. } => Failure::AtEnd,
            StepError::Provider(_)
            | StepError::Host(_)
            | StepError::Failed(_)
            | StepError::MayExist
            | StepError::NotDeleted { reason: Undeletable::HasDeleteHooks | Undeletable::WithoutProvider, .. } => {
                Failure::Step
            }
            // Operations that cannot be recorded must not be carried out.
            StepError::State(_) => Failure::Fatal,
        };
        let reported = self.ctx.report_error(
            &step.urn,
            step.source,
            messages::step_message(step, error, self.ctx.is_preview()),
            failure,
        );
        if !self.ctx.is_preview() {
            let info = step.info(step.new.clone());
            self.ctx.emit(Event::StepFailed(Arc::new(info), failure_of(step, error)));
        }
        reported
    }
}

/// Returns the description of a failed step that is reported beside its message.
fn failure_of(step: &Step, error: &StepError) -> StepFailure {
    let provider_error = match error {
        StepError::Provider(error) => Some(error),
        StepError::State(_)
        | StepError::Host(_)
        | StepError::MayExist
        | StepError::Failed(_)
        | StepError::NotDeleted { .. } => None,
    };
    StepFailure {
        message: MessageText::chain(error),
        indeterminate: provider_error.is_some_and(ProviderError::is_indeterminate),
        partial: provider_error.is_some_and(|error| step.is_failure_recorded(error)),
        details: messages::error_details(error),
    }
}
