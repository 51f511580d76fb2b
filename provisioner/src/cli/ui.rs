//! Environment of each command: its output, the signals of the user, its start, and the changes that it could not record.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use state::{Unrecorded, UnrecordedReport};

use super::args::GlobalArgs;
use super::display::SHOW_CURSOR;
use super::error_texts::{kept_journal_lines, unrecorded_lines};
use super::exit::Exit;
use super::output::{Output, StreamProperties};
use super::signals::{RESTORE_LIMIT, SignalReceiver, TimeLimit, within};

/// Limit on the output of the lines that are the only record of a change, before a signal ends the process.
const LINES_LIMIT: Duration = Duration::from_secs(5);

/// Environment of each command. A function that needs one part alone takes that part.
#[derive(Clone, Debug)]
pub(crate) struct Ui {
    pub(crate) output: Output,
    /// Receiver of the signals that stop an operation.
    pub(crate) signals: SignalReceiver,
    /// Changes that the command could not record so far.
    pub(crate) unrecorded: Unrecorded,
    /// Start of the command.
    started: Instant,
}

impl Ui {
    pub(crate) fn new(global: &GlobalArgs, streams: &StreamProperties, signals: SignalReceiver) -> Self {
        let output = Output::new(global, streams);
        Self { output, signals, unrecorded: Unrecorded::default(), started: Instant::now() }
    }

    /// Returns the time since the start of the command.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the rest of a limit on the time of the command.
    pub(crate) fn rest_of(&self, limit: TimeLimit) -> TimeLimit {
        TimeLimit { timeout: limit.timeout.saturating_sub(self.started.elapsed()), ..limit }
    }

    /// Returns a function for the end of the process by a signal, before the display ends: it restores the terminal and
    /// prints what the command could not record. It returns the outcome, which is a failure if there is such a change.
    pub(crate) fn end_by_signal(&self) -> Box<dyn FnOnce() -> Exit + Send> {
        let ui = self.clone();
        Box::new(move || {
            if ui.output.has_live_display() {
                // An error means that standard error is closed.
                within(RESTORE_LIMIT, || drop(io::stderr().write_all(SHOW_CURSOR.as_bytes())));
            }
            if ui.unrecorded.changes().is_empty() {
                return Exit::Canceled;
            }
            within(LINES_LIMIT, move || {
                ui.report_unrecorded(Exit::Canceled);
            });
            Exit::Failed
        })
    }

    /// Prints what the command could not record: one line `URN = id` for each change. Returns the outcome of the command,
    /// which is a failure then.
    pub(crate) fn report_unrecorded(&self, exit: Exit) -> Exit {
        let UnrecordedReport { changes, journal } = self.unrecorded.take();
        if let Some(journal) = journal {
            self.output.print_messages(&kept_journal_lines(&journal));
        }
        if changes.is_empty() {
            return exit;
        }
        self.output.print_messages(&unrecorded_lines(&changes));
        if exit == Exit::Bug { Exit::Bug } else { Exit::Failed }
    }
}
