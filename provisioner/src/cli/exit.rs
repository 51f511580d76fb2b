//! End of the program: exit codes and the printed form of errors.

use std::io;
use std::path::Path;

use bridge::error::{Hint as _, text_of_masked};
use bridge::message_text::MessageText;
use engine::events::{Outcome, StepOp, Summary};
use engine::masking::SecretMasker;
use provisioner::operation::{OperationError, SetupError};
use secrets_store::SecretsStoreError;
use state::format::FormatError;
use state::secrets::SecretsError;
use state::store::{LockInfo, StackReference, StoreError};
use state::{JournalError, KeptJournal, StateError, UnrecordedChange};

use super::display::{ErrorTexts, Line, Palette};
use super::{lock_process, migrated, setup_errors};

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

    /// Returns the outcome for an error. The first cause with an outcome of its own decides.
    pub(crate) fn of_error(error: &anyhow::Error) -> Self {
        error.chain().find_map(Self::of_cause).unwrap_or(Self::Failed)
    }

    fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Self> {
        if let Some(error) = cause.downcast_ref::<CliError>() {
            return Some(error.exit);
        }
        if cause.downcast_ref::<SetupError>().is_some_and(setup_errors::is_usage) {
            return Some(Self::Usage);
        }
        if let Some(error) = cause.downcast_ref::<tokio::task::JoinError>() {
            return Some(if error.is_panic() { Self::Bug } else { Self::Canceled });
        }
        if locks_of_others(cause).is_some() || is_lock_lost(cause) {
            return Some(Self::Locked);
        }
        if let Some(OperationError::Stopped) = downcast::<OperationError>(cause) {
            return Some(Self::Canceled);
        }
        let is_broken_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        cause.downcast_ref::<io::Error>().filter(|error| is_broken_pipe(error)).map(|_| Self::BrokenPipe)
    }
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

/// Downcasts a cause to an error type, including a boxed one.
fn downcast<'e, E: std::error::Error + 'static>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e E> {
    cause.downcast_ref::<E>().or_else(|| cause.downcast_ref::<Box<E>>().map(AsRef::as_ref))
}

/// Returns the state error of a cause, including one inside a transparent [`OperationError`], which the chain skips.
fn state_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e StateError> {
    match downcast::<OperationError>(cause) {
        Some(OperationError::State(error)) => Some(error),
        _ => downcast::<StateError>(cause),
    }
}

/// Returns the error of the secrets of a stack that is the cause, if there is one.
pub(crate) fn secrets_error(error: &anyhow::Error) -> Option<&SecretsError> {
    error.chain().find_map(|cause| match (downcast::<SecretsError>(cause), downcast::<FormatError>(cause)) {
        (Some(error), _) | (None, Some(FormatError::Secret(error))) => Some(error),
        (None, _) => match state_error(cause) {
            Some(StateError::Secrets(error)) => Some(error),
            _ => None,
        },
    })
}

/// Returns the error of a backend, including one inside a transparent [`SetupError`], which the chain skips.
fn store_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e StoreError> {
    match cause.downcast_ref::<SetupError>() {
        Some(SetupError::Rename(error)) => Some(error),
        _ => downcast::<StoreError>(cause),
    }
}

/// Returns the locks of other runs and their stack, if they are the cause.
fn locks_of_others<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<(&'e StackReference, &'e [LockInfo])> {
    match error_of_store(cause) {
        Some(StoreError::Locked { stack, holders }) => Some((stack, holders)),
        _ => None,
    }
}

/// Returns whether the lock of the run was removed during the run.
fn is_lock_lost(cause: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error_of_store(cause), Some(StoreError::LockLost { .. }))
}

/// Returns the error of a store, including one inside a transparent [`StateError`], which the chain skips.
fn error_of_store<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e StoreError> {
    match state_error(cause) {
        Some(StateError::Store(error)) => Some(error),
        _ => store_error(cause),
    }
}

/// Returns the hint for a cause, if there is one.
fn hint(cause: &(dyn std::error::Error + 'static)) -> Option<MessageText> {
    if let Some(error) = cause.downcast_ref::<CliError>() {
        return error.hint.clone();
    }
    if let Some(error) = cause.downcast_ref::<SecretsStoreError>() {
        return error.hint().map(MessageText::from);
    }
    if let Some(hint) = cause.downcast_ref::<SetupError>().and_then(setup_errors::hint) {
        return Some(hint);
    }
    if let Some((stack, locks)) = locks_of_others(cause) {
        return Some(lock_process::hint(stack.stack(), locks));
    }
    if let Some(StoreError::Migrated { mark, mark_location, .. }) = error_of_store(cause) {
        return Some(migrated::hint(mark, mark_location));
    }
    match downcast::<OperationError>(cause) {
        Some(OperationError::Plugins { error, .. } | OperationError::Schema(error)) => {
            return error.hint().map(MessageText::from);
        }
        Some(OperationError::Unserved { .. }) => {
            return Some("declare and enable the plugin in `plugins`: it is needed to delete these resources".into());
        }
        Some(OperationError::DownloadDeclined(_)) => {
            return Some("declare plugins of these packages in `plugins`, or run `sc plugin install`".into());
        }
        Some(OperationError::NotPending { pending, .. }) => {
            return Some(match pending.as_slice() {
                [] => "there are no pending creates: omit --import-pending-creates".into(),
                pending => MessageText::new(format_args!("the pending creates are: {}", pending.join(", "))),
            });
        }
        Some(
            OperationError::State(_)
            | OperationError::Types(_)
            | OperationError::Packages(_)
            | OperationError::SeveralPlugins(_)
            | OperationError::Stopped,
        )
        | None => {}
    }
    let of_state = match state_error(cause) {
        Some(StateError::Secrets(error)) => return error.hint().map(MessageText::from),
        Some(error) => state_hint(error).map(MessageText::from),
        None => {
            let of_secrets = downcast::<SecretsError>(cause).and_then(SecretsError::hint).map(MessageText::from);
            of_secrets.or_else(|| store_error(cause).and_then(store_hint).map(MessageText::from))
        }
    };
    of_state.or_else(|| match downcast::<FormatError>(cause) {
        Some(FormatError::Secret(error)) => error.hint().map(MessageText::from),
        Some(FormatError::TooNew(_) | FormatError::UnknownFeature(_)) => {
            Some(MessageText::new(format_args!("{NEWER}; the file is intact")))
        }
        _ => None,
    })
}

/// Hint for a file of the backend that a newer program has written.
const NEWER: &str = "a newer version of `pulumi` or `sc` has written this: use a version of `sc` that supports it";

fn store_hint(error: &StoreError) -> Option<&'static str> {
    match error {
        StoreError::Legacy(_) => Some(
            "`pulumi state upgrade` converts it to the current layout; to use it unchanged, set \
             PULUMI_DIY_BACKEND_IGNORE_DEPRECATION_ERROR=1, which the upgrade needs as well",
        ),
        StoreError::BothNames { .. } => Some(
            "compare both with `pulumi stack export`, remove the one that is not needed with `pulumi stack rm`, and the \
             file of the rename in `.sc/renames` of the backend",
        ),
        StoreError::TooNew { .. } => Some(NEWER),
        _ => None,
    }
}

fn state_hint(error: &StateError) -> Option<&'static str> {
    match error {
        StateError::Checkpoint { source, .. } => match &**source {
            // The file itself is intact.
            FormatError::Secret(_)
            | FormatError::TooOld(_)
            | FormatError::TooNew(_)
            | FormatError::UnknownFeature(_) => None,
            _ => Some("`sc stack restore` lists the earlier states that the backend keeps, and restores one"),
        },
        StateError::Integrity(_) => Some(
            "nothing was changed; `sc state repair` can repair the state, and `sc stack restore` lists earlier states \
             and restores one",
        ),
        StateError::Copy { .. } | StateError::NotRestorable { .. } => {
            Some("nothing was changed; choose another copy, which `sc stack restore` lists")
        }
        StateError::Replaced { .. } => {
            Some(
                "nothing was overwritten. Find out which program works on the stack at the same time without its lock. If a \
                 journal is kept, run `sc cancel` and `sc preview`: it lists what this run has created; else run the \
                 command again",
            )
        }
        StateError::Changed(_) => Some("run the command again to see the new changes"),
        StateError::UnexplainedEmpty(_) => Some(
            "`sc stack restore` lists the earlier states and restores one of them; --allow-empty continues without \
             resources, and a provision then creates all of them again",
        ),
        // The hint of the source error says when to run again.
        StateError::Unsaved { kept: Some(KeptJournal { is_fallback: false, .. }), source, .. }
            if matches!(&**source, StateError::Store(StoreError::LockLost { .. })) =>
        {
            Some(
                "the next run on this machine merges the journal into the state, or reports a conflict if the state has \
                 changed since",
            )
        }
        StateError::NotReleased { source, .. } => Some(match &**source {
            StoreError::LockLost { .. } => {
                "nothing of this run is lost: its state is complete, and the next run adds what its history lacks. Find out \
                 who removed the lock while the run was active"
            }
            _ => "nothing of this run is lost; if the next command finds the lock, `sc cancel` removes it",
        }),
        // The hint of the source error says what to do.
        StateError::Unsaved { kept: Some(KeptJournal { is_fallback, .. }), source, .. }
            if matches!(&**source, StateError::Replaced { .. }) =>
        {
            is_fallback.then_some(
                "only commands of the same user on this machine, with the same HOME, XDG_STATE_HOME and TMPDIR, find the \
                 journal",
            )
        }
        StateError::Unsaved { kept: None, .. } => Some(
            "keep the lines at the end of this output: they are the only record of these changes. Fix the cause, remove \
             the lock with `sc cancel`, and import the added resources with `sc import`",
        ),
        StateError::Unsaved { kept: Some(KeptJournal { is_fallback: true, .. }), .. } => Some(
            "fix the cause, remove the lock with `sc cancel` and run `sc refresh` as the same user on this machine, with the \
             same HOME, XDG_STATE_HOME and TMPDIR: it finds the journal and merges it into the state",
        ),
        StateError::Unsaved { .. } => Some(
            "fix the cause, remove the lock with `sc cancel` and run again: the journal is merged into the state \
             first",
        ),
        StateError::Store(StoreError::LockLost { .. }) => Some("run again once no other run uses the stack"),
        StateError::Store(error) => store_hint(error),
        StateError::Journal(JournalError::UnsupportedVersion { .. }) => {
            Some("a newer version of `sc` has written this: use that version to continue")
        }
        StateError::Import(_) => Some("nothing was changed; --force imports it anyway"),
        StateError::NotAnExport(_) => Some("use a file written by `sc stack export` or `pulumi stack export`"),
        StateError::Interrupted { .. } => {
            Some("run `sc refresh` to merge the journal into the state, and then this command again")
        }
        StateError::NoStack(_) => Some("`sc stack ls` lists the stacks"),
        StateError::NotEmpty { .. } => {
            Some("`sc destroy --parent` deletes them; --force removes the stack and leaves them in the cloud")
        }
        StateError::PendingCreates { .. } => Some(
            "`sc refresh` asks how to resolve pending creates, or drops them with --clear-pending-creates; --force \
             drops them, too",
        ),
        StateError::Migration(error) => migrated::migration_hint(error),
        StateError::Conflict(_) => Some(
            "`sc state repair` records the resources in this list that the state lacks, shows those that it has with \
             another id, and removes the journal",
        ),
        _ => None,
    }
}

/// Returns the texts of an error. Secrets are masked.
pub(crate) fn error_texts(error: &anyhow::Error, masker: &SecretMasker) -> ErrorTexts {
    let mask = |text: &MessageText| masker.mask_message(text);
    let text = |error: &(dyn std::error::Error + 'static)| text_of_masked(error, mask);
    ErrorTexts {
        message: text(error.as_ref()),
        causes: error.chain().skip(1).map(text).collect(),
        hints: error.chain().filter_map(hint).map(|hint| mask(&hint)).collect(),
    }
}

/// Returns the lines of an error: its message, its causes, its hints.
pub(crate) fn error_lines(texts: &ErrorTexts) -> Vec<Line> {
    let head = Line::new().styled(Palette::ERROR, "error").styled(Palette::BOLD, ":").text(" ");
    let mut lines = paragraph(head, "  ", &texts.message);
    for cause in &texts.causes {
        let head = Line::plain("  ").styled(Palette::ERROR, "caused by").styled(Palette::BOLD, ":").text(" ");
        lines.extend(paragraph(head, "    ", cause));
    }
    lines.extend(texts.hints.iter().flat_map(|hint| hint_lines(hint)));
    lines
}

fn hint_lines(hint: &str) -> Vec<Line> {
    let head = Line::plain("  ").styled(Palette::HINT, "hint").styled(Palette::BOLD, ":").text(" ");
    paragraph(head, "    ", hint)
}

/// Returns the lines about a journal that a run left without an attempt to save its state.
pub(crate) fn kept_journal_lines(journal: &Path) -> Vec<Line> {
    let text = format!("the state was not saved; the changes of the run are kept in the journal {}", journal.display());
    let mut lines = warning_lines(&text);
    lines.extend(hint_lines(
        "run `sc refresh` on this machine: it takes over the lock, and merges the journal into the state",
    ));
    lines
}

/// Returns the lines about changes that are recorded nowhere: one line `URN = id` each, not indented.
pub(crate) fn unrecorded_lines(changes: &[UnrecordedChange]) -> Vec<Line> {
    let head = Line::new().styled(Palette::ERROR, "error").styled(Palette::BOLD, ":").text(" ");
    let count = if changes.len() == 1 { "a change is".to_owned() } else { format!("{} changes are", changes.len()) };
    let mut lines = paragraph(head, "  ", &format!("{count} recorded neither in the state nor in a journal:"));
    lines.extend(changes.iter().map(|change| Line::plain(change.to_string())));
    lines
}

/// Returns the lines of a warning.
pub(crate) fn warning_lines(text: &str) -> Vec<Line> {
    let head = Line::new().styled(Palette::WARNING, "warning").styled(Palette::BOLD, ":").text(" ");
    paragraph(head, "  ", text)
}

/// Returns the lines of a message, as the display of a run has them.
pub(crate) fn info_lines(text: &str) -> Vec<Line> {
    paragraph(Line::new().styled(Palette::BOLD, "info").styled(Palette::BOLD, ":").text(" "), "  ", text)
}

fn paragraph(head: Line, indent: &str, text: &str) -> Vec<Line> {
    let mut text = text.trim_end().lines();
    let first = head.text(text.next().unwrap_or_default());
    std::iter::once(first).chain(text.map(|line| Line::plain(indent).text(line))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::Context as _;
    use engine::events::{Deletions, Operation, Phase};

    use super::*;

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
        let run =
            |outcome, op| Summary { phase, changes: [(op, 1)].into(), deletions, outcome, duration: Duration::ZERO };
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
    fn lost_lock_has_hints_about_what_the_run_left() {
        let stack = StackReference::new("reef", "aquarium").unwrap();
        let lost = || StoreError::LockLost { stack: stack.clone(), holders: vec![] };
        let kept = Some(KeptJournal { path: "file".into(), is_fallback: false, lacks_changes: false });
        let unsaved = StateError::Unsaved { stack: stack.clone(), kept, source: Box::new(lost().into()) };
        let saved = StateError::NotReleased { stack: stack.clone(), source: Box::new(lost()) };
        let printed = [unsaved, saved, lost().into()].map(|error| {
            let error = anyhow::Error::new(error);
            assert_eq!(Exit::of_error(&error), Exit::Locked);
            let hints: Vec<String> = error.chain().filter_map(hint).map(MessageText::into_string).collect();
            hints.join("\n") + "\n"
        });
        insta::assert_snapshot!(printed.join("\n"), @"
        the next run on this machine merges the journal into the state, or reports a conflict if the state has changed since
        run again once no other run uses the stack

        nothing of this run is lost: its state is complete, and the next run adds what its history lacks. Find out who removed the lock while the run was active

        run again once no other run uses the stack
        ");
    }

    #[test]
    fn panic_in_a_task_exits_as_a_bug() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime
            .block_on(async { tokio::task::spawn_blocking(|| std::panic::resume_unwind(Box::new("oh"))).await })
            .unwrap_err();
        assert_eq!(Exit::of_error(&error.into()), Exit::Bug);
    }

    #[test]
    fn unrecorded_changes_are_printed_as_urn_and_id() {
        use state::ChangeKind;
        let change = |kind, id| UnrecordedChange {
            kind,
            urn: "urn:pulumi:dev::reef::t:m:T::a".parse().unwrap(),
            id: pulumi_proto::resource_id::ResourceId::new(id).unwrap(),
        };
        let changes = [change(ChangeKind::Added, "a-2"), change(ChangeKind::Removed, "a-1")];
        let text: Vec<String> = unrecorded_lines(&changes).iter().map(|line| line.render(false)).collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        error: 2 changes are recorded neither in the state nor in a journal:
        urn:pulumi:dev::reef::t:m:T::a = a-2
        urn:pulumi:dev::reef::t:m:T::a = a-1 (removed)
        ");
    }

    #[test]
    fn journal_in_a_fallback_folder_is_found_with_the_same_variables() {
        let unsaved = |is_fallback| {
            let stack = StackReference::new("reef", "dev").unwrap();
            let kept = Some(KeptJournal { path: "file".into(), is_fallback, lacks_changes: false });
            let source = Box::new(StateError::Changed(stack.clone()));
            state_hint(&StateError::Unsaved { stack, kept, source }).unwrap()
        };
        let names_variables = |hint: &str| ["HOME", "XDG_STATE_HOME", "TMPDIR"].iter().all(|name| hint.contains(name));
        assert_eq!([unsaved(true), unsaved(false)].map(names_variables), [true, false]);
    }

    #[test]
    fn file_of_a_newer_version_has_a_hint() {
        let path = || "file".into();
        let checkpoint = |source| StateError::Checkpoint {
            stack: StackReference::new("reef", "dev").unwrap(),
            file: "file".to_owned(),
            source: Box::new(source),
        };
        let table: [anyhow::Error; 6] = [
            checkpoint(FormatError::TooNew(9)).into(),
            checkpoint(FormatError::UnknownFeature("hearts".to_owned())).into(),
            StateError::Export(Box::new(FormatError::TooNew(9))).into(),
            StateError::from(JournalError::UnsupportedVersion { path: path(), version: 2 }).into(),
            StateError::from(StoreError::TooNew { location: "file".to_owned(), version: 2 }).into(),
            StoreError::TooNew { location: "file".to_owned(), version: 2 }.into(),
        ];
        for error in table {
            let hints: Vec<String> = error.chain().filter_map(hint).map(MessageText::into_string).collect();
            assert!(hints.len() == 1 && hints[0].starts_with("a newer version of "), "{error:?}: {hints:?}");
        }
    }

    #[test]
    fn error_is_printed_with_causes_and_hint() {
        let error = Err::<(), _>(CliError::usage("there are two stacks:\nreef, shore", "choose one with --stack"))
            .context("nothing was changed")
            .unwrap_err();
        let text: Vec<String> =
            error_lines(&error_texts(&error, &SecretMasker::default())).iter().map(|line| line.render(false)).collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        error: nothing was changed
          caused by: there are two stacks:
            reef, shore
          hint: choose one with --stack
        ");
    }
}
