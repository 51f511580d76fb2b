//! Earlier phases of a command, as the displays for people remember them: what was shown, and what the next phase decides about.

use std::time::Duration;

use engine::events::{Operation, Phase, Summary};

use super::ends::HeldEnd;
use super::progress::{Progress, ShownPreview};
use super::rows::{Refreshed, Rows};
use super::text::Line;

/// Ended phases of a command.
#[derive(Debug, Default)]
pub(super) struct EarlierPhases {
    /// Last preview, whose changes have been shown.
    previewed: Option<ShownPreview>,
    /// Last lines of the last phase, if they are not printed yet.
    held: Option<HeldEnd>,
    /// Stack of which the last printed lines have said that it has no changes.
    said_unchanged: Option<String>,
    /// Differences that the last refresh has found, with its stack.
    refreshed: Option<(String, Refreshed)>,
}

impl EarlierPhases {
    /// Returns the rows and the progress of a phase that begins. Drops the last lines of the phase before it, if this one makes them
    /// redundant: otherwise the caller prints them.
    pub(super) fn begin(&mut self, phase: Phase, stack: &str) -> (Rows, Progress) {
        if self.held.as_ref().is_some_and(|held| held.is_redundant_before(stack)) {
            self.held = None;
        }
        let refreshed = self.refreshed.take().filter(|(of, _)| of == stack).map(|(_, found)| found);
        let announced = self.previewed.as_ref().and_then(|shown| shown.expected_changes(phase, stack));
        (Rows::after_refresh(phase, refreshed.unwrap_or_default()), Progress::new(announced))
    }

    /// Takes the rows of a phase that has ended, and holds its last lines.
    pub(super) fn end(&mut self, phase: Phase, stack: String, rows: Rows, summary: &Summary) {
        if phase.preview {
            self.previewed = Some(ShownPreview::new(phase, &stack, &rows));
        }
        let end = HeldEnd::new(summary, &stack, &rows);
        let is_said = end.unchanged_stack().is_some() && end.unchanged_stack() == self.said_unchanged.as_deref();
        self.held = Some(end).filter(|_| !is_said);
        self.refreshed = (phase.operation == Operation::Refresh).then(|| (stack, rows.into_refreshed()));
    }

    /// Returns the last lines of the last phase to print, unless they are printed already. `whole` is the time of the whole
    /// command, if they are its last ones.
    pub(super) fn take_last_lines(&mut self, whole: Option<Duration>) -> Option<Vec<Line>> {
        let held = self.held.take()?;
        self.said_unchanged = held.unchanged_stack().map(str::to_owned);
        Some(held.lines(whole))
    }

    /// Returns whether a preview has shown the changes of a stack.
    pub(super) fn have_shown_changes(&self, stack: &str) -> bool {
        self.previewed.as_ref().is_some_and(|shown| shown.is_of(stack))
    }
}
