//! Session of an operation: a display for its events, and signals and a time limit that stop it.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use engine::StopSignals;
use engine::events::{Event, EventSink, Message, Severity};
use futures_util::FutureExt as _;
use provisioner::operation::OperationError;

use super::display::{Display, Locate, Secrets};
use super::exit::Exit;
use super::prompt::{self, Confirmation};
use super::ui::Ui;

/// Settings of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionOptions {
    /// True if changes are shown property by property.
    pub(crate) diff: bool,
    /// Treatment of secrets.
    pub(crate) secrets: Secrets,
    /// Time limit, after which the operation is stopped as by a signal.
    pub(crate) timeout: Option<Duration>,
}

/// Running session.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    ui: &'a Ui,
    display: Display,
    /// Signals that stop or abort the operation.
    pub(crate) signals: StopSignals,
}

impl Session<'_> {
    /// Returns the sink for the events of a stack. Messages have the positions that `locate` returns.
    pub(crate) fn sink(&self, stack: &str, locate: Option<Locate>) -> Arc<dyn EventSink> {
        self.display.sink(stack, locate)
    }

    /// Returns once all earlier events are on the screen, and leaves the screen to the caller.
    pub(crate) fn pause(&self) {
        self.display.pause();
    }

    /// Waits for work that changes nothing, unless the operation is stopped.
    ///
    /// # Errors
    /// The error of the work; [`OperationError::Stopped`] after a stop.
    pub(crate) async fn unless_stopped<T>(&self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        tokio::select! {
            result = work => result,
            () = self.signals.stop.cancelled() => Err(OperationError::Stopped.into()),
        }
    }

    /// Asks for a confirmation, once all earlier events are on the screen.
    ///
    /// # Errors
    /// Wrong usage, if standard input or standard error is not a terminal.
    pub(crate) async fn confirm(&self, question: &str, yes: bool) -> anyhow::Result<Confirmation> {
        self.display.pause();
        prompt::confirm(self.ui, &self.signals.stop, question, yes).await
    }
}

/// Runs work in a session. Returns once all its events are shown.
///
/// # Errors
/// The error of the work; else the first error of a write, such as a broken pipe.
///
/// # Cancellation
/// The third signal ends the process; so does the second one if the work does not return in time.
pub(crate) async fn run(
    ui: &Ui,
    options: SessionOptions,
    work: impl AsyncFnOnce(&Session<'_>) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let display = ui.start_display(options.diff, options.secrets)?;
    let session = Session { ui, display, signals: StopSignals::default() };
    let sink = session.sink("", None);
    let warn = move |text: &str| sink.emit(Event::Message(Message::new(Severity::Warning, text)));
    let notify = Box::new(session.display.stop_notifier());
    let guard = ui.signals.begin_session(&session.signals, notify, ui.end_by_signal());
    // A panic is continued after the display has ended, which must still show what the run could not record.
    let result = tokio::select! {
        result = AssertUnwindSafe(work(&session)).catch_unwind() => result,
        never = stop_after_timeout(&session.signals, options.timeout, warn) => match never {},
        never = guard.respond() => match never {},
    };
    for change in ui.unrecorded().changes() {
        session.sink(change.urn.stack(), None).emit(Event::Unrecorded(change));
    }
    let shown = session.display.finish();
    // Not earlier: a signal that arrives while the display is being finished must not end it at once.
    drop(guard);
    let exit = result.unwrap_or_else(|panic| resume_unwind(panic))?;
    shown?;
    Ok(exit)
}

async fn stop_after_timeout(
    signals: &StopSignals,
    timeout: Option<Duration>,
    warn: impl Fn(&str),
) -> std::convert::Infallible {
    if let Some(timeout) = timeout {
        tokio::time::sleep(timeout).await;
        if !signals.stop.is_cancelled() {
            signals.stop.cancel();
            warn("stopping: the execution timeout has expired; waiting for running steps to finish");
        }
    }
    std::future::pending().await
}
