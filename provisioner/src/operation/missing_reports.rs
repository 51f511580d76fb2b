//! Reports of a run about resources that its refresh did not find: before a run with the program, after a preview, and after a
//! destroy that found nothing.

use std::sync::Arc;

use bridge::host::ProviderHost;
use bridge::message_text::MessageText;
use engine::MissingApproval as _;
use engine::events::{Event, EventSink, Message, Operation, Outcome, Severity, Summary};
use state::Snapshot;

use super::deploy::DeployMode;
use super::{Report, StackRun};

/// Sink of a preview that nobody sees.
struct UnshownEvents;

impl EventSink for UnshownEvents {
    fn emit(&self, _: Event) {}
}

impl StackRun {
    /// Reads the resources in memory, and asks for the agreement to remove those that are missing, if the run reads each resource
    /// when the program registers it: then the run itself changes some resources before it has read all. Returns the report of a
    /// run that is refused.
    pub(super) async fn approve_missing_first(
        &self,
        host: &Arc<impl ProviderHost + 'static>,
        operation: Operation,
        refresh: bool,
        snapshot: &Snapshot,
    ) -> Option<Report> {
        let reads = self.options.deployment.run_program && (refresh || operation == Operation::Refresh);
        let guard = self.options.missing.as_ref().filter(|_| reads)?;
        let unshown = StackRun { events: Arc::new(UnshownEvents), ..self.clone() };
        let preview = unshown.deploy(host, operation, refresh, snapshot.clone(), DeployMode::Preview(None)).await;
        let refusal = guard.approve(&preview.readings).await.err()?;
        let outcome = if self.signals.stop.is_cancelled() {
            Outcome::Canceled
        } else {
            self.events.emit(Event::Message(refusal));
            Outcome::Failed
        };
        let summary = Summary { outcome, ..preview.summary };
        Some(Report { summary, snapshot: snapshot.clone(), is_refused: true, diagnostics: Vec::new(), ..preview })
    }

    /// Warns after a preview of missing resources for which a run would need an agreement.
    pub(super) fn warn_of_missing(&self, preview: &Report) {
        if let Some(guard) = &self.options.missing {
            drop(guard.warn(&preview.readings));
        }
    }

    /// Reports after a destroy that its refresh has found no resource, so that it has deleted nothing.
    pub(super) fn report_nothing_found(&self, report: &Report) {
        let read: usize = report.readings.iter().map(|found| found.read).sum();
        let missing: usize = report.readings.iter().map(|found| found.missing.len()).sum();
        let succeeded = report.summary.outcome == Outcome::Succeeded && report.summary.deletions.total() == 0;
        if succeeded && read > 0 && read == missing {
            let text = MessageText::new(format_args!(
                "nothing was found: the refresh of stack {} found none of its {read} resources, so there was nothing to \
                 delete",
                self.program.stack().name
            ));
            let message = Message { repeated: true, ..Message::new(Severity::Warning, text) };
            self.events.emit(Event::Message(message));
        }
    }
}
