//! Refresh, which updates the recorded state to the actual state of the resources, and destroy, which deletes them.

use bridge::message_text::MessageText;
use jiff::Timestamp;

use engine::events::{ActivityKind, Event, Message, Operation, Severity};
use state::format::UpdateKind;
use state::{LateReport, OperationKind, RecoveredRun};

use super::pending_resolution::Opening;
use super::{OperationError, Report, StackRun};

/// Reads all recorded resources, and records their actual state. Returns `None` if the user ended its questions.
///
/// # Errors
/// Returns the errors of [`super::provision()`].
///
/// # Cancellation
/// Is cancelled like [`super::provision()`].
pub async fn refresh(run: &StackRun) -> Result<Option<Report>, OperationError> {
    run.refresh_or_destroy(Operation::Refresh, UpdateKind::Refresh, false).await
}

impl StackRun {
    /// Runs a refresh or a destroy on the recorded resources, under the lock. Resolves the pending creates in the options
    /// first. `refresh_before`: true if a destroy reads the actual state of the resources first. Returns `None` if the user ended
    /// the questions.
    pub(super) async fn refresh_or_destroy(
        &self,
        operation: Operation,
        kind: UpdateKind,
        refresh_before: bool,
    ) -> Result<Option<Report>, OperationError> {
        let host = self.load_plugins(1).await?;
        let started = Timestamp::now().as_second();
        self.check_types(&host, operation).await?;
        let opened = match self.open_and_resolve(&host, operation, started).await? {
            Opening::Opened(opened) => opened,
            Opening::Ended(report) => return Ok(report.map(|report| *report)),
        };
        if operation == Operation::Refresh {
            // The refresh reads the resources of all other pending operations.
            self.report_pending_creates(&opened.snapshot);
        }
        let run = opened.run(self);
        let refused = run.approve_missing_first(&host, operation, refresh_before, &opened.snapshot).await;
        let report = match refused {
            Some(refused) => refused,
            None => {
                let mode = run.applied_to(&opened.state, kind);
                run.deploy(&host, operation, refresh_before, opened.snapshot.clone(), mode).await
            }
        };
        if report.is_refused {
            opened.close_refused().await?;
            return Ok(Some(report));
        }
        if operation == Operation::Destroy {
            self.report_nothing_found(&report);
        }
        let _saving = self.begin(ActivityKind::SaveState);
        opened.state.close(report.snapshot.clone(), Some(&self.history(kind, started, &report).await)).await?;
        Ok(Some(report))
    }

    /// Reports the operations that were recovered from the journal of an interrupted run. `has_ended` is as in
    /// [`recovery_text`].
    pub(super) fn report_recovery(&self, recovered: Option<&RecoveredRun>, has_ended: bool) {
        if let Some(recovered) = recovered {
            self.warn_of_journal(recovery_text(recovered, has_ended));
        }
    }

    /// Reports resources that runs have recorded after their journals had been taken over.
    pub(super) fn report_late(&self, late: &LateReport) {
        if !late.is_empty() {
            self.warn_of_journal(MessageText::of(late));
        }
    }

    /// Reports the interrupted runs whose journals are not merged, although nothing that they created is missing from
    /// the state. `obsolete` has the starts of the runs.
    pub(super) fn report_obsolete(&self, obsolete: &[String]) {
        obsolete.iter().for_each(|started| self.warn_of_journal(obsolete_text(started)));
    }

    /// Reports the location of journals that the store does not allow to remove.
    pub(super) fn report_undeleted_journals(&self, location: Option<String>) {
        if let Some(location) = location {
            self.warn_of_journal(MessageText::new(format_args!(
                "the store does not allow to remove journals of runs that have ended, in {location}: each run reads them again. Allow the \
                 removal of objects there, or remove them yourself"
            )));
        }
    }

    fn warn_of_journal(&self, text: MessageText) {
        self.events.emit(Event::Message(Message { repeated: true, ..Message::new(Severity::Warning, text) }));
    }
}

/// Returns the message about the merged journal of an interrupted run. `has_ended` is false if the stack is still
/// locked, and its run may be active.
pub fn recovery_text(recovered: &RecoveredRun, has_ended: bool) -> MessageText {
    let started = &recovered.started;
    let by = recovered.by.as_ref().map(|by| format!(" of {by}")).unwrap_or_default();
    let mut text = if has_ended {
        MessageText::new(format_args!(
            "the state includes the journal of the interrupted run{by} that started {started}"
        ))
    } else {
        MessageText::new(format_args!(
            "the state includes the journal of the run{by} that started {started}, which may still be active"
        ))
    };
    if let Some(sent) = recovered.last_sent {
        // The clocks of the store and of this machine may differ.
        let age = Timestamp::now().duration_since(sent).as_secs().max(0);
        text.push_text(&MessageText::new(format_args!("; its last lines reached the store {age} s ago")));
    }
    for (index, (kind, count)) in recovered.done.iter().enumerate() {
        let done = match kind {
            OperationKind::Creating => "created",
            OperationKind::Updating => "updated",
            OperationKind::Deleting => "deleted",
            OperationKind::Reading => "read",
            OperationKind::Importing => "imported",
        };
        let separator = if index == 0 { ": " } else { ", " };
        text.push_text(&MessageText::new(format_args!("{separator}{count} {done}")));
    }
    if !recovered.pending.is_empty() {
        text.push_text(&"\npending operations:".into());
    }
    for (kind, urn) in &recovered.pending {
        let (kind, name, token) = (kind.as_str(), urn.name(), urn.type_token());
        text.push_text(&MessageText::new(format_args!("\n{kind} {name} ({token})")));
    }
    text
}

/// Returns the message about the journal of an interrupted run, started at this time, that is not merged, although
/// nothing that the run created is missing from the state.
pub fn obsolete_text(started: &str) -> MessageText {
    MessageText::new(format_args!(
        "the journal of the interrupted run that started {started} is not merged: the state has changed since, and records \
         all that the run created. Run `sc refresh` to find its other changes"
    ))
}

/// Deletes all recorded resources, dependents first. With `refresh`, reads their actual state first. Returns `None` if the user ended
/// its questions.
///
/// # Errors
/// Returns the errors of [`super::provision()`].
///
/// # Cancellation
/// Is cancelled like [`super::provision()`].
pub async fn destroy(run: &StackRun, refresh: bool) -> Result<Option<Report>, OperationError> {
    run.refresh_or_destroy(Operation::Destroy, UpdateKind::Destroy, refresh).await
}
