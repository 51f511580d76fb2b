//! Reporter of the events of a run, which stores whether the run has failed.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use pulumi_proto::urn::Urn;

use crate::events::{Event, EventSink, Message, Severity, SourceRef};
use crate::masking::SecretMasker;

/// An error that has been reported as an event.
///
/// Only the reporter makes one, so a function that returns it cannot have failed in silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorReported(());

/// Effect of an error on the run, in ascending severity. A run with one of these failures also has those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Failure {
    /// The error alone stops nothing; the run fails at its end.
    AtEnd,
    /// A step failed: nothing new starts, unless the run continues on errors.
    Step,
    /// A fatal error: nothing new starts, even if the run continues on errors.
    Fatal,
}

impl Failure {
    fn level(self) -> u8 {
        match self {
            Self::AtEnd => 1,
            Self::Step => 2,
            Self::Fatal => 3,
        }
    }
}

/// Reports events, and stores the most severe failure.
pub(crate) struct Reporter {
    sink: Arc<dyn EventSink>,
    masker: Arc<SecretMasker>,
    /// Level of the most severe failure; 0 if there is none.
    failure: AtomicU8,
    first_error: OnceLock<ErrorReported>,
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").field("failure", &self.failure).finish_non_exhaustive()
    }
}

impl Reporter {
    /// Creates the reporter of a run without failures.
    pub(crate) fn new(sink: Arc<dyn EventSink>, masker: Arc<SecretMasker>) -> Self {
        Self { sink, masker, failure: AtomicU8::new(0), first_error: OnceLock::new() }
    }

    /// Emits an event, and adds the secrets in its values to those that are masked.
    pub(crate) fn emit(&self, event: Event) {
        match &event {
            Event::StepStarted(info) | Event::StepSucceeded(info, _) | Event::StepFailed(info, _) => {
                // Secrets of old entries are known.
                let is_old = |new: &Arc<_>| info.old.as_ref().is_some_and(|old| Arc::ptr_eq(old, new));
                info.new.iter().filter(|new| !is_old(new)).for_each(|new| self.masker.add_resource(new));
            }
            Event::OutputsRegistered(state) => self.masker.add_values(&state.outputs),
            Event::RegistrationStarted(_)
            | Event::RegistrationDecided(_)
            | Event::RetryScheduled(_)
            | Event::Message(_)
            | Event::PhaseStarted(_)
            | Event::PhaseEnded(_)
            | Event::Download(_)
            | Event::Activity(_)
            | Event::PhaseTotal(_)
            | Event::Unrecorded(_) => {}
        }
        self.sink.emit(event);
    }

    /// Reports an error, and stores that the run has failed. The inputs that the error of a provider names are reported
    /// in messages of their own, each at its place, as the failures of Check are.
    pub(crate) fn report_error(&self, message: Message, failure: Failure) -> ErrorReported {
        let violations = message.details.iter().flat_map(|details| &details.violations);
        let violations: Vec<Message> = violations
            .map(|failure| Message {
                urn: message.urn.clone(),
                source: message.source,
                plugin: message.plugin.clone(),
                ..Message::rejected_input(failure)
            })
            .collect();
        self.emit(Event::Message(Message { severity: Severity::Error, ..message }));
        violations.into_iter().for_each(|violation| self.emit(Event::Message(violation)));
        self.escalate(ErrorReported(()), failure)
    }

    /// Raises the failure of the run to `failure`, at least, for an error that has been reported.
    pub(crate) fn escalate(&self, error: ErrorReported, failure: Failure) -> ErrorReported {
        self.first_error.set(error).ok();
        self.failure.fetch_max(failure.level(), Ordering::Relaxed);
        error
    }

    /// Stores that the program has failed. The program has reported its own errors.
    pub(crate) fn program_failed(&self) {
        self.escalate(ErrorReported(()), Failure::Fatal);
    }

    /// Returns whether the run has a failure of this severity, or a higher one.
    pub(crate) fn has_failed(&self, failure: Failure) -> bool {
        self.failure.load(Ordering::Relaxed) >= failure.level()
    }

    pub(crate) fn first_error(&self) -> Option<ErrorReported> {
        self.first_error.get().copied()
    }
}

/// Reports every error of an iterator, and returns the last one.
pub(crate) fn report_all(errors: impl Iterator<Item = ErrorReported>) -> Option<ErrorReported> {
    errors.fold(None, |_, error| Some(error))
}

/// Completes a message with the resource that it is about.
pub(crate) fn about(urn: &Urn, source: Option<SourceRef>, message: Message) -> Message {
    Message { urn: Some(urn.clone()), source, ..message }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Events(Mutex<Vec<Event>>);

    impl EventSink for Events {
        fn emit(&self, event: Event) {
            self.0.lock().unwrap().push(event);
        }
    }

    #[test]
    fn failure_includes_lower_severities_and_never_decreases() {
        let reporter = Reporter::new(Arc::new(Events::default()), Arc::default());
        let message = || Message::new(Severity::Error, "it failed");
        assert!(!reporter.has_failed(Failure::AtEnd));
        reporter.report_error(message(), Failure::Step);
        reporter.report_error(message(), Failure::AtEnd);
        assert!(reporter.has_failed(Failure::AtEnd) && reporter.has_failed(Failure::Step));
        assert!(!reporter.has_failed(Failure::Fatal));
    }

    #[test]
    fn error_is_reported_with_severity_error() {
        let events = Arc::new(Events::default());
        let reporter = Reporter::new(Arc::clone(&events) as Arc<dyn EventSink>, Arc::default());
        reporter.report_error(Message::new(Severity::Warning, "it failed"), Failure::AtEnd);
        let events = events.0.lock().unwrap();
        assert!(matches!(&events[..], [Event::Message(message)] if message.severity == Severity::Error));
    }
}
