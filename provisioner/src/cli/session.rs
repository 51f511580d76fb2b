//! Session of an operation: a display for its events, and signals and a time limit that stop it.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use bridge::message_text::MessageText;
use engine::StopSignals;
use engine::events::{Event, EventSink};
use futures_util::FutureExt as _;
use provisioner::operation::{Approval, OperationError};
use tokio::sync::{Mutex, MutexGuard};

use super::display::{Display, HeldDisplay, Locate, Secrets};
use super::exit::{CliError, Exit};
use super::output::Output;
use super::prompt::{self, Confirmation};
use super::signals::{SignalReceiver, TimeLimit};
use super::ui::Ui;

/// Settings of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionOptions {
    /// True if changes are shown property by property.
    pub(crate) diff: bool,
    /// Treatment of secrets.
    pub(crate) secrets: Secrets,
    /// Limit on the time of the command, from its start on.
    pub(crate) limit: Option<TimeLimit>,
    /// True if several stacks may run at the same time.
    pub(crate) has_turns: bool,
}

/// Running session.
#[derive(Clone, Debug)]
pub(crate) struct Session<'a> {
    output: &'a Output,
    /// Receiver of the signals of the user.
    user_signals: &'a SignalReceiver,
    display: &'a Display,
    /// Held by the question that is being asked.
    asking: &'a Mutex<()>,
    /// Stack that asks; empty for the command as a whole.
    stack: String,
    /// Signals that stop or abort the operation.
    pub(crate) signals: StopSignals,
}

/// Screen that shows no event until this is dropped, so that something else can be printed.
struct HeldScreen<'s> {
    _display: HeldDisplay,
    _asking: MutexGuard<'s, ()>,
}

impl<'a> Session<'a> {
    /// Returns the session as one of its stacks uses it.
    pub(crate) fn of_stack(&self, stack: &str) -> Session<'a> {
        Session { stack: stack.to_owned(), ..self.clone() }
    }
    /// Returns the sink for the events of a stack. Messages have the positions that `locate` returns.
    pub(crate) fn sink(&self, stack: &str, locate: Option<Locate>) -> Arc<dyn EventSink> {
        self.display.sink(stack, locate)
    }

    /// Returns once all earlier events are on the screen, and leaves the screen to the caller.
    pub(crate) fn pause(&self) {
        self.take_turn();
        self.display.pause();
    }

    /// Takes the screen for this stack, once its earlier events are shown and no question is asked.
    async fn hold(&self) -> HeldScreen<'a> {
        let asking = self.asking.lock().await;
        self.take_turn();
        HeldScreen { _display: self.display.hold(), _asking: asking }
    }

    fn take_turn(&self) {
        if !self.stack.is_empty() {
            self.display.take_turn(&self.stack);
        }
    }

    /// Notes that the run on this stack has ended: no event of it follows.
    pub(crate) fn end_stack(&self) {
        self.display.end_stack(&self.stack);
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
    pub(crate) async fn confirm(&self, question: impl Into<MessageText>, yes: bool) -> anyhow::Result<Confirmation> {
        // Questions are asked one at a time. One that nobody is asked takes no turn.
        let _held = if yes { None } else { Some(self.hold().await) };
        prompt::confirm(self.output, self.user_signals, &self.signals.stop, question, yes).await
    }

    /// Asks for a line of text, once all earlier events are on the screen. Returns `None` after a stop, at the end of the input, and
    /// with a warning if nobody can be asked.
    pub(crate) async fn ask_line(&self, question: impl Into<MessageText>) -> Option<String> {
        let _held = self.hold().await;
        match prompt::ask_line(self.output, self.user_signals, &self.signals.stop, question).await {
            Ok(reply) => reply,
            Err(error) => {
                self.output.warn(format_args!("{error:#}"));
                None
            }
        }
    }

    /// Asks for an approval, which `--yes` does not give. One that cannot be asked for is declined, with a warning.
    pub(crate) async fn approve(&self, question: impl Into<MessageText>) -> Approval {
        match self.confirm(question, false).await {
            Ok(Confirmation::Yes) => Approval::Granted,
            Ok(Confirmation::No) => Approval::Declined,
            Err(error) => {
                self.output.warn(format_args!("{error:#}"));
                Approval::Declined
            }
        }
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
    let display = ui.output.start_display(options.diff, options.secrets, options.has_turns, ui.elapsed())?;
    let asking = Mutex::default();
    let session = Session {
        output: &ui.output,
        user_signals: &ui.signals,
        display: &display,
        asking: &asking,
        stack: String::new(),
        signals: StopSignals::default(),
    };
    ui.output.session().set(Some(session.sink("", None)), Some(session.display.log_lines()));
    let notify = Box::new(session.display.stop_notifier());
    let limit = options.limit.map(|limit| ui.rest_of(limit));
    let guard = ui.signals.begin_session(&session.signals, limit, notify, ui.end_by_signal());
    // A panic is continued after the display has ended, which must still show what the run could not record.
    let result = tokio::select! {
        result = AssertUnwindSafe(work(&session)).catch_unwind() => result,
        never = guard.respond() => match never {},
    };
    for change in ui.unrecorded.changes() {
        session.sink(change.urn.stack(), None).emit(Event::Unrecorded(change));
    }
    ui.output.session().set(None, None);
    let shown = display.finish();
    let has_timed_out = guard.has_timed_out();
    // Not earlier: a signal that arrives while the display is being finished must not end it at once.
    drop(guard);
    let result = result.unwrap_or_else(|panic| resume_unwind(panic));
    let exit = if has_timed_out { after_timeout(result)? } else { result? };
    shown?;
    Ok(exit)
}

/// Returns the outcome of work after the execution timeout has expired. Work that it stopped has failed: no user cancelled it.
fn after_timeout(result: anyhow::Result<Exit>) -> anyhow::Result<Exit> {
    let expired = "the execution timeout has expired";
    let hint = "run the command again to continue, or give it more time with --execution-timeout";
    match result {
        Ok(Exit::Canceled) => Err(CliError::failed(expired, hint).into()),
        Err(error) if Exit::of_error(&error) == Exit::Canceled => {
            Err(CliError::failed(format_args!("{expired}: {error:#}"), hint).into())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_the_timeout_stopped_has_failed() {
        let exit = |result| after_timeout(result).unwrap_or_else(|error| Exit::of_error(&error));
        assert_eq!(exit(Ok(Exit::Canceled)), Exit::Failed);
        assert_eq!(exit(Err(OperationError::Stopped.into())), Exit::Failed);
        for ended in [Exit::Done, Exit::Failed, Exit::UnexpectedChanges] {
            assert_eq!(exit(Ok(ended)), ended);
        }
        assert_eq!(exit(Err(CliError::usage("no", "").into())), Exit::Usage);
    }
}
