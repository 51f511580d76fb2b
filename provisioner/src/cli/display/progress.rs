//! Progress of a run, measured by the changes that its preview announced.

use engine::events::{Operation, Phase};

use super::rows::{Row, RowState, Rows};

/// Preview that has ended, and whose changes were shown.
#[derive(Debug)]
pub(super) struct ShownPreview {
    stack: String,
    operation: Operation,
    /// Number of resources that it would change.
    changes: usize,
}

impl ShownPreview {
    pub(super) fn new(phase: Phase, stack: &str, rows: &Rows) -> Self {
        let changes = rows.iter().filter(|row| row.is_change()).count();
        Self { stack: stack.to_owned(), operation: phase.operation, changes }
    }

    /// Returns whether the preview was of this stack.
    pub(super) fn is_of(&self, stack: &str) -> bool {
        self.stack == stack
    }

    /// Returns the number of changes that the preview announced for a phase; `None` for another phase.
    pub(super) fn expected_changes(&self, phase: Phase, stack: &str) -> Option<usize> {
        (!phase.preview && self.is_of(stack) && self.operation == phase.operation).then_some(self.changes)
    }
}

/// Progress of a phase, measured by the changes that a preview announced, else by the resources that the phase is about.
#[derive(Debug)]
pub(super) struct Progress {
    changes: Option<usize>,
    resources: Option<usize>,
}

impl Progress {
    /// Creates the progress of a phase, with the number of changes that a preview of it has announced.
    pub(super) fn new(changes: Option<usize>) -> Self {
        Self { changes, resources: None }
    }

    /// Sets the number of resources that the phase is about.
    pub(super) fn expect(&mut self, resources: usize) {
        self.resources = Some(resources);
    }

    /// Returns whether the progress is that of changes.
    pub(super) fn counts_changes(&self) -> bool {
        self.changes.is_some()
    }

    /// Returns the finished and the expected number: `[3/12]`; `None` if it is not known what is expected.
    pub(super) fn fraction(&self, done: usize) -> Option<String> {
        self.changes.or(self.resources).filter(|expected| *expected > 0).map(|expected| fraction(done, expected))
    }
}

/// Returns the number of finished changes of a run and the announced number: `[3/12]`. A run may make more changes than
/// announced.
fn fraction(done: usize, expected: usize) -> String {
    format!("[{done}/{}]", expected.max(done))
}

/// Returns whether a row is a change that has ended, also with a failure.
pub(super) fn is_finished_change(row: &Row) -> bool {
    row.is_change() && row.state != RowState::Running
}
