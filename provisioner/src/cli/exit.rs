//! End of the program: exit codes.

use std::io;

use bridge::error::Hint;
use bridge::message_text::MessageText;
use engine::events::{Outcome, StepOp, Summary};
use provisioner::operation::{OperationError, SetupError};
use state::store::StoreError;

use super::causes::{downcast, error_of_store};

/// Outcome of the program, with one exit code each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded. A preview that shows changes succeeds as well.
    Done,
    /// The command failed, and its errors have been reported; or the user declined a question.
    Failed,
    /// The arguments are wrong, or there is no terminal to ask for confirmation.
    Usage,
    /// The reader of the output closed it.
    BrokenPipe,
    /// Another run holds the lock of the stack.
    Locked,
    /// The run has changes despite `--expect-no-changes`.
    UnexpectedChanges,
    /// A signal, such as that of Ctrl-C, stopped the command before its end.
    Canceled,
    /// A bug in `sc`.
    Bug,
}

impl Exit {
    /// Returns the exit code of the process. Scripts rely on each code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::BrokenPipe => 3,
            Self::Locked => 4,
            Self::UnexpectedChanges => 7,
            Self::Canceled => 130,
            Self::Bug => 255,
        }
    }

    /// Returns the outcome of runs that ended. The most severe one decides: a failure, then a cancellation, then
    /// unexpected changes.
    pub(crate) fn of_runs(summaries: &[Summary], changes: Changes) -> Self {
        let any = |outcome| summaries.iter().any(|summary| summary.outcome == outcome);
        if any(Outcome::Failed) {
            Self::Failed
        } else if any(Outcome::Canceled) {
            Self::Canceled
        } else if changes == Changes::Unexpected && summaries.iter().any(has_changes) {
            Self::UnexpectedChanges
        } else {
            Self::Done
        }
    }

    /// Returns the worse one of two outcomes: a failure, then a cancellation, then a lock.
    pub(crate) fn worst(self, other: Self) -> Self {
        let severity = |exit| match exit {
            Self::Done => 0,
            Self::UnexpectedChanges => 1,
            Self::BrokenPipe => 2,
            Self::Locked => 3,
            Self::Canceled => 4,
            Self::Usage => 5,
            Self::Failed => 6,
            Self::Bug => 7,
        };
        if severity(other) > severity(self) { other } else { self }
    }

    /// Returns the outcome for an error. The first cause with an outcome of its own decides.
    pub(crate) fn of_error(error: &anyhow::Error) -> Self {
        error.chain().find_map(Self::of_cause).unwrap_or(Self::Failed)
    }

    fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Self> {
        if let Some(error) = cause.downcast_ref::<CliError>() {
            return Some(error.exit);
        }
        if cause.downcast_ref::<SetupError>().is_some_and(is_usage) {
            return Some(Self::Usage);
        }
        if let Some(error) = cause.downcast_ref::<tokio::task::JoinError>() {
            return Some(if error.is_panic() { Self::Bug } else { Self::Canceled });
        }
        if let Some(StoreError::Locked { .. } | StoreError::LockLost { .. }) = error_of_store(cause) {
            return Some(Self::Locked);
        }
        if let Some(OperationError::Stopped) = downcast::<OperationError>(cause) {
            return Some(Self::Canceled);
        }
        let is_broken_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        cause.downcast_ref::<io::Error>().filter(|error| is_broken_pipe(error)).map(|_| Self::BrokenPipe)
    }
}

/// Returns whether the arguments of the command or its environment are wrong.
fn is_usage(error: &SetupError) -> bool {
    matches!(
        error,
        SetupError::EmptyName
            | SetupError::NoStacks
            | SetupError::UnknownStack { .. }
            | SetupError::ClientStack { .. }
            | SetupError::SeveralStacks(_)
            | SetupError::TwoCompressions { .. }
            | SetupError::LeaseSeconds { .. }
            | SetupError::Verification { .. }
            | SetupError::UnknownOverride { .. }
            | SetupError::OverrideRefused { .. }
            | SetupError::UnsupportedTarget { .. }
    )
}

/// Treatment of changes (`--expect-no-changes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    Allowed,
    Unexpected,
}

impl Changes {
    /// Returns the treatment that `--expect-no-changes` selects.
    pub(crate) fn from_expect_no_changes(expect_no_changes: bool) -> Self {
        if expect_no_changes { Self::Unexpected } else { Self::Allowed }
    }
}

/// Returns whether a run made changes, or would make them for a preview (docs/spec/engine-semantics.md#9.3).
fn has_changes(summary: &Summary) -> bool {
    let is_change = |op| !matches!(op, StepOp::Same | StepOp::Read | StepOp::Discard | StepOp::ReadReplacement);
    let changes = summary.changes.iter().any(|(op, count)| *count > 0 && is_change(*op));
    // The deletion of an old resource that an earlier run has replaced is not among the changes.
    changes || summary.deletions.total() > 0
}

/// Error of the command line itself: a message, a hint, and the outcome of the program.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CliError {
    exit: Exit,
    message: MessageText,
    hint: Option<MessageText>,
}

impl CliError {
    /// Returns an error for wrong usage.
    pub(crate) fn usage(message: impl Into<MessageText>, hint: impl Into<MessageText>) -> Self {
        Self { exit: Exit::Usage, ..Self::failed(message, hint) }
    }

    /// Returns an error for a command that failed. An empty hint is not printed.
    pub(crate) fn failed(message: impl Into<MessageText>, hint: impl Into<MessageText>) -> Self {
        let hint = Some(hint.into()).filter(|hint| !hint.is_empty());
        Self { exit: Exit::Failed, message: message.into(), hint }
    }
}

impl Hint for CliError {
    fn hint(&self) -> Option<MessageText> {
        self.hint.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use engine::events::{Deletions, Operation, Phase};

    use state::StateError;
    use state::store::StackReference;

    use super::*;

    /// Shows: events.md#order "The exit codes are fixed"
    #[test]
    fn exit_codes_are_stable() {
        let table = [
            (Exit::Done, 0),
            (Exit::Failed, 1),
            (Exit::Usage, 2),
            (Exit::BrokenPipe, 3),
            (Exit::Locked, 4),
            (Exit::UnexpectedChanges, 7),
            (Exit::Canceled, 130),
            (Exit::Bug, 255),
        ];
        for (exit, code) in table {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
    }

    #[test]
    fn most_severe_outcome_of_several_runs_is_the_exit() {
        let phase = Phase { operation: Operation::Update, preview: true };
        let deletions = Deletions::default();
        let run = |outcome, op| Summary {
            phase,
            changes: [(op, 1)].into(),
            deletions,
            outcome,
            duration: Duration::ZERO,
            journal: None,
        };
        let unchanged = run(Outcome::Succeeded, StepOp::Same);
        let changed = run(Outcome::Succeeded, StepOp::Update);
        let failed = run(Outcome::Failed, StepOp::Update);
        let canceled = run(Outcome::Canceled, StepOp::Create);
        let deletions = Deletions { removed: 1, ..deletions };
        let old_deleted = Summary { deletions, ..unchanged.clone() };
        let table: [(&[Summary], _, _); 7] = [
            (&[old_deleted], Changes::Unexpected, Exit::UnexpectedChanges),
            (&[], Changes::Unexpected, Exit::Done),
            (&[unchanged.clone(), changed.clone()], Changes::Allowed, Exit::Done),
            (std::slice::from_ref(&unchanged), Changes::Unexpected, Exit::Done),
            (&[unchanged.clone(), changed.clone()], Changes::Unexpected, Exit::UnexpectedChanges),
            (&[changed.clone(), canceled.clone()], Changes::Unexpected, Exit::Canceled),
            (&[canceled, failed], Changes::Allowed, Exit::Failed),
        ];
        for (summaries, changes, expected) in table {
            assert_eq!(Exit::of_runs(summaries, changes), expected, "{summaries:?}");
        }
    }

    #[test]
    fn cause_of_an_error_decides_the_exit() {
        let exit = |error: anyhow::Error| Exit::of_error(&error.context("while doing something"));
        assert_eq!(exit(anyhow::anyhow!("no")), Exit::Failed);
        assert_eq!(exit(CliError::usage("no stack", "").into()), Exit::Usage);
        assert_eq!(exit(io::Error::from(io::ErrorKind::BrokenPipe).into()), Exit::BrokenPipe);
        assert_eq!(exit(io::Error::from(io::ErrorKind::NotFound).into()), Exit::Failed);
    }

    #[test]
    fn locked_stack_has_its_own_exit_code() {
        let stack = StackReference::new("reef", "aquarium").unwrap();
        let locked = || StoreError::Locked { stack: stack.clone(), holders: vec![] };
        let lost = || StoreError::LockLost { stack: stack.clone(), holders: vec![] };
        let unsaved = |source| StateError::Unsaved { stack: stack.clone(), kept: None, source: Box::new(source) };
        assert_eq!(Exit::of_error(&unsaved(StateError::from(lost())).into()), Exit::Locked);
        assert_eq!(Exit::of_error(&lost().into()), Exit::Locked);
        assert_eq!(Exit::of_error(&locked().into()), Exit::Locked);
        assert_eq!(Exit::of_error(&anyhow::Error::new(StateError::from(locked())).context("no")), Exit::Locked);
    }

    #[test]
    fn panic_in_a_task_exits_as_a_bug() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime
            .block_on(async { tokio::task::spawn_blocking(|| std::panic::resume_unwind(Box::new("oh"))).await })
            .unwrap_err();
        assert_eq!(Exit::of_error(&error.into()), Exit::Bug);
    }
}
