//! Errors of reading and writing recorded state.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bridge::error::Hint;
use bridge::message_text::MessageText;
use jiff::Timestamp;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use super::format::{FormatError, UpdateInfo};
use super::integrity::IntegrityError;
use super::journal::{JournalError, KeptJournal};
use super::migration_error::MigrationError;
use super::secrets::SecretsError;
use super::store::{CheckpointCopy, CopyKind, StackReference, StoreError};

/// Reason why state could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A snapshot violates its invariants.
    #[error(transparent)]
    Integrity(#[from] IntegrityError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The checkpoint of a stack could not be read.
    #[error("the checkpoint of {stack} ({file}) cannot be read")]
    Checkpoint {
        /// The stack.
        stack: StackReference,
        /// File of the checkpoint.
        file: String,
        /// Cause of the failure.
        source: Box<FormatError>,
    },
    /// A copy of an earlier state cannot be read.
    #[error("the copy {location} cannot be read")]
    Copy {
        /// Location of the copy.
        location: String,
        /// Cause of the failure.
        source: Box<FormatError>,
    },
    /// A copy of an earlier state does not fit the stack.
    #[error("the copy {location} cannot be restored")]
    NotRestorable {
        /// Location of the copy.
        location: String,
        /// Reason.
        source: ImportProblem,
    },
    /// The state has changed since it was compared.
    #[error("the state of {0} has changed in the meantime")]
    Changed(StackReference),
    /// The stack has lost its resources.
    #[error(transparent)]
    UnexplainedEmpty(#[from] Box<UnexplainedEmptyState>),
    /// The input of an import is not JSON of an exported deployment.
    #[error("this is not an exported deployment")]
    NotAnExport(#[source] serde_json::Error),
    /// The input of an import could not be read.
    #[error("the export cannot be read")]
    Export(#[source] Box<FormatError>),
    /// The deployment to import does not fit the stack.
    #[error(transparent)]
    Import(#[from] ImportProblem),
    /// An interrupted run left a journal that has to be recovered first.
    #[error("an interrupted run of {stack} left the journal {}", journal.display())]
    Interrupted {
        /// The stack.
        stack: StackReference,
        /// The journal.
        journal: PathBuf,
    },
    /// The journal of another run changes while it is read: the run is still active.
    #[error("the journal of another run of {stack} changes at the same time")]
    JournalChanged {
        /// The stack.
        stack: StackReference,
    },
    /// The lines of the journal cannot be written to the store.
    #[error("the journal of {stack} could not be written to the store, so nothing that may create a resource begins")]
    JournalNotSent {
        /// The stack.
        stack: StackReference,
        /// Cause of the failure.
        source: Arc<StoreError>,
    },
    /// Another program has written an object of the journal of this run.
    #[error("another program has written into the journal {location}")]
    ForeignJournal {
        /// Location of the journal.
        location: String,
    },
    /// There is no journal of the run.
    #[error("there is no journal of run {run} of {stack}")]
    NoJournal {
        /// The stack.
        stack: StackReference,
        /// Id of the run.
        run: String,
    },
    /// The stack does not exist in the store.
    #[error("there is no state of {0}")]
    NoStack(StackReference),
    /// A rename has failed, and so has the attempt to undo or complete it, or to remove its locks.
    #[error("the rename of {from} to {to} has not ended: the next command on either stack completes or undoes it")]
    RenamePending {
        /// Old name of the stack.
        from: StackReference,
        /// New name of the stack.
        to: StackReference,
        /// Cause of the failure.
        source: Box<StateError>,
    },
    /// A move of resources to another stack has failed, and so has the attempt to complete or undo it.
    #[error(
        "the move of resources from {from} to {to} has not ended: the next command on either stack completes or undoes it"
    )]
    MovePending {
        /// Stack that has the resources, or had them.
        from: StackReference,
        /// Stack that gets them.
        to: StackReference,
        /// Cause of the failure.
        source: Box<StateError>,
    },
    /// A move of resources was interrupted, and another program has changed the source since: both stacks have resources of the move.
    #[error(
        "a move of resources from {from} to {to} was interrupted, and {from} has been changed since: both have the resources"
    )]
    MovedTwice {
        /// Stack that the resources were to leave.
        from: StackReference,
        /// Stack that has got them.
        to: StackReference,
        /// Location of the record of the move.
        record: Box<str>,
    },
    /// The stack cannot move to another store.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// The stack still has resources.
    #[error("{stack} still has {}", resource_count(*count))]
    NotEmpty {
        /// The stack.
        stack: StackReference,
        /// Number of resources.
        count: usize,
    },
    /// The stack has pending creates whose outcome is unknown.
    #[error("{stack} has pending creates of an interrupted run: {}", names.join(", "))]
    PendingCreates {
        /// The stack.
        stack: StackReference,
        /// Names of the resources that were being created.
        names: Vec<String>,
    },
    /// An entry of the history cannot be read.
    #[error("the history of {stack} cannot be read")]
    History {
        /// The stack.
        stack: StackReference,
        /// Cause of the failure.
        source: serde_json::Error,
    },
    /// The journal could not be written or replayed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A run was interrupted, and the checkpoint was changed before its journal was replayed.
    #[error(transparent)]
    Conflict(#[from] Box<JournalConflict>),
    /// The state violates its invariants. It was saved all the same: it is the best record of the run.
    #[error("the state was saved, but must be repaired (`sc state repair`)")]
    SavedInvalid(#[source] IntegrityError),
    /// The new checkpoint could not be saved. The lock is kept.
    #[error("the state of {stack} could not be saved; {}", kept_text(kept))]
    Unsaved {
        /// The stack.
        stack: StackReference,
        /// Journal that has the changes: its content was checked. `None` if no journal could be written;
        /// [`Unrecorded`](super::Unrecorded) has the changes then.
        kept: Option<KeptJournal>,
        /// Cause of the failure.
        source: Box<StateError>,
    },
    /// Another program has replaced the state since it was read. Nothing was written.
    #[error("{error}{}", newest_run(newest.as_deref()))]
    Replaced {
        /// Error of the store: [`StoreError::Replaced`].
        error: Box<StoreError>,
        /// Newest run in the history.
        newest: Option<Box<UpdateInfo>>,
    },
    /// The new checkpoint was saved, but the history entry could not be written.
    #[error("the state of {stack} was saved, but the run could not be added to its history")]
    HistoryNotWritten {
        /// The stack.
        stack: StackReference,
        /// Cause of the failure.
        source: Box<StoreError>,
    },
    /// The new checkpoint was saved, but the lock could not be released.
    #[error("the state of {stack} was saved, but its lock was not released")]
    NotReleased {
        /// The stack.
        stack: StackReference,
        /// Cause of the failure.
        source: Box<StoreError>,
    },
    /// A secret could not be encrypted or decrypted.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
}

impl Hint for StateError {
    fn hint(&self) -> Option<MessageText> {
        let hint = match self {
            Self::Checkpoint { source, .. } => match &**source {
                // The file itself is intact.
                FormatError::Secret(_)
                | FormatError::TooOld(_)
                | FormatError::TooNew(_)
                | FormatError::UnknownFeature(_) => return None,
                FormatError::Malformed(_)
                | FormatError::NotAState { .. }
                | FormatError::TooDeep
                | FormatError::Name { .. }
                | FormatError::Time { .. }
                | FormatError::Value { .. }
                | FormatError::OperationKind { .. } => {
                    "`sc stack restore` lists the earlier states that the backend keeps, and restores one"
                }
            },
            Self::Integrity(_) => {
                "nothing was changed; `sc state repair` can repair the state, and `sc stack restore` lists earlier states \
                 and restores one"
            }
            Self::Copy { .. } | Self::NotRestorable { .. } => {
                "nothing was changed; choose another copy, which `sc stack restore` lists"
            }
            Self::Replaced { .. } => {
                "nothing was overwritten. Find out which program works on the stack at the same time without its lock. If a \
                 journal is kept, run `sc cancel` and `sc preview`: it lists what this run has created; else run the \
                 command again"
            }
            Self::Changed(_) => "run the command again to see the new changes",
            Self::UnexplainedEmpty(_) => {
                "`sc stack restore` lists the earlier states and restores one of them; --allow-empty continues without \
                 resources, and a provision then creates all of them again"
            }
            Self::Unsaved { kept, source, .. } => unsaved_hint(kept.as_ref(), source)?,
            Self::NotReleased { source, .. } => match &**source {
                StoreError::LockLost { .. } => {
                    "nothing of this run is lost: its state is complete, and the next run adds what its history lacks. Find \
                     out who removed the lock while the run was active"
                }
                _ => "nothing of this run is lost; if the next command finds the lock, `sc cancel` removes it",
            },
            Self::Store(StoreError::LockLost { .. }) => "run again once no other run uses the stack",
            Self::Store(error) => return error.hint(),
            Self::Journal(error) => return error.hint(),
            Self::Migration(error) => return error.hint(),
            Self::Secrets(error) => return error.hint(),
            Self::Import(_) => "nothing was changed; --force imports it anyway",
            Self::NotAnExport(_) => "use a file written by `sc stack export` or `pulumi stack export`",
            Self::Interrupted { .. } => {
                "run `sc refresh` to merge the journal into the state, and then this command again"
            }
            Self::JournalChanged { .. } => "run the command again",
            Self::NoJournal { .. } => "`sc state journal ls` lists the journals",
            Self::JournalNotSent { source, .. } => return source.hint(),
            Self::ForeignJournal { .. } => {
                "nothing of it was used; find out what writes there, and remove it. `sc state journal ls` lists the journals"
            }
            Self::MovedTwice { record, .. } => {
                return Some(MessageText::new(format_args!(
                    "remove the resources from one of both with `pulumi state delete`, and then {record}"
                )));
            }
            Self::NoStack(_) => "`sc stack ls` lists the stacks",
            Self::NotEmpty { .. } => {
                "`sc destroy --parent` deletes them; --force removes the stack and leaves them in the cloud"
            }
            Self::PendingCreates { .. } => {
                "`sc refresh` asks how to resolve pending creates, or drops them with --clear-pending-creates; --force \
                 drops them, too"
            }
            Self::Conflict(_) => {
                "`sc state repair` records the resources in this list that the state lacks, shows those that it has with \
                 another id, and removes the journal"
            }
            // The texts of these errors, or the hints of their causes, say what to do.
            Self::Export(_)
            | Self::RenamePending { .. }
            | Self::MovePending { .. }
            | Self::History { .. }
            | Self::SavedInvalid(_)
            | Self::HistoryNotWritten { .. } => return None,
        };
        Some(hint.into())
    }
}

/// Returns what to do about a state that was not saved: its changes are in a journal, in one that only this account finds, or
/// only in the output of the run. After a lost lock and after a replaced checkpoint, the hint of the cause says when to run
/// again, so this one says only what it adds.
fn unsaved_hint(kept: Option<&KeptJournal>, source: &StateError) -> Option<&'static str> {
    let Some(KeptJournal { is_fallback, .. }) = kept else {
        return Some(
            "keep the lines at the end of this output: they are the only record of these changes. Fix the cause, remove \
             the lock with `sc cancel`, and import the added resources with `sc import`",
        );
    };
    match (source, is_fallback) {
        (StateError::Store(StoreError::LockLost { .. }), false) => Some(
            "the next run merges the journal into the state, or reports a conflict if the state has changed since; in a bucket \
             or a database that is also a run on another machine, unless `journal` is `local`",
        ),
        (StateError::Replaced { .. }, false) => None,
        (StateError::Replaced { .. }, true) => Some(
            "only commands of the same user on this machine, with the same HOME, XDG_STATE_HOME and TMPDIR, find the \
             journal",
        ),
        (_, true) => Some(
            "fix the cause, remove the lock with `sc cancel` and run `sc refresh` as the same user on this machine, with the \
             same HOME, XDG_STATE_HOME and TMPDIR: it finds the journal and merges it into the state",
        ),
        (_, false) => Some(
            "fix the cause, remove the lock with `sc cancel` and run again: the journal is merged into the state first",
        ),
    }
}

/// Reason to refuse an import without `--force`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportProblem {
    /// The deployment contains resources of another stack, or of a former name of this stack.
    #[error("it holds {count} resources of another stack: {first} is not of {stack}")]
    OtherStack {
        /// Stack that is imported into.
        stack: String,
        /// Number of resources of other stacks.
        count: usize,
        /// First of these resources.
        first: Urn,
    },
    /// The deployment violates the integrity of a snapshot.
    #[error(transparent)]
    Integrity(#[from] IntegrityError),
}

/// The journal of an interrupted run starts from another checkpoint than the current one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an interrupted run of {stack} left the journal {}, but the checkpoint has changed since: the journal starts from \
     {} and the checkpoint is {}{}{}",
    journal.display(),
    digest_text(base),
    digest_text(found),
    created_lines(created),
    creating_lines(creating)
)]
pub struct JournalConflict {
    /// The stack.
    pub stack: StackReference,
    /// The journal.
    pub journal: PathBuf,
    /// SHA-256 of the checkpoint that the journal starts from, if there was one.
    pub base: Option<String>,
    /// SHA-256 of the current checkpoint, if there is one.
    pub found: Option<String>,
    /// Created resources in the journal, with their ids. Discarding the journal loses track of them.
    pub created: Vec<(Urn, Option<ResourceId>)>,
    /// Begun creations in the journal whose outcome is unknown, with their ids as far as they are known.
    pub creating: Vec<(Urn, Option<ResourceId>)>,
}

/// State without resources, although an earlier checkpoint has some and no run in the history removed them. A run
/// that continues from it creates all resources again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnexplainedEmptyState {
    /// The stack.
    pub stack: StackReference,
    /// `true` if the checkpoint itself is missing.
    pub is_missing: bool,
    /// Copy of an earlier checkpoint: the previous one, or another if that is missing or has no resources.
    pub copy: CheckpointCopy,
    /// Number of resources in the copy; `None` if it cannot be read.
    pub resources: Option<usize>,
}

impl fmt::Display for UnexplainedEmptyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_missing {
            true => write!(f, "the checkpoint of {} is missing", self.stack)?,
            false => write!(f, "the state of {} has no resources", self.stack)?,
        }
        let age = if self.copy.kind == CopyKind::Previous { "previous" } else { "earlier" };
        write!(f, ", but the {age} state {} ", self.copy.location)?;
        match self.resources {
            Some(1) => f.write_str("has 1 resource, and no run in the history removed it"),
            Some(count) => write!(f, "has {count} resources, and no run in the history removed them"),
            None => f.write_str("cannot be read"),
        }
    }
}

impl std::error::Error for UnexplainedEmptyState {}

fn resource_count(count: usize) -> String {
    if count == 1 { "a resource".to_owned() } else { format!("{count} resources") }
}

fn kept_text(kept: &Option<KeptJournal>) -> String {
    match kept {
        None => "its changes could not be recorded in a journal either".to_owned(),
        Some(KeptJournal { path, lacks_changes: false, .. }) => {
            format!("its changes are kept in the journal {}", path.display())
        }
        Some(KeptJournal { path, lacks_changes: true, .. }) => {
            format!("a part of its changes is kept in the journal {}", path.display())
        }
    }
}

/// Environment members of a history entry that say who has made the run, as Pulumi and CI systems write them.
const AUTHORS: [&str; 4] = ["exec.kind", "git.author", "git.author.email", "ci.build.url"];

fn newest_run(newest: Option<&UpdateInfo>) -> String {
    let Some(update) = newest else { return String::new() };
    let ended = Timestamp::from_second(update.end_time).map(|ended| format!(", ended at {ended}")).unwrap_or_default();
    let known = AUTHORS.iter().filter_map(|name| Some(format!(", {name} {:?}", update.environment.get(*name)?)));
    format!("; the newest run in its history: {}{ended}{}", update.kind.as_str(), known.collect::<String>())
}

fn digest_text(digest: &Option<String>) -> &str {
    digest.as_deref().unwrap_or("nothing")
}

fn creating_lines(creating: &[(Urn, Option<ResourceId>)]) -> String {
    let line = |(urn, id): &(Urn, Option<ResourceId>)| {
        let id = id.as_ref().map(|id| format!(" with id {:?}", id.as_str())).unwrap_or_default();
        format!("\n  it was creating {urn}, which may exist{id}")
    };
    creating.iter().map(line).collect()
}

fn created_lines(created: &[(Urn, Option<ResourceId>)]) -> String {
    created
        .iter()
        .map(|(urn, id)| format!("\n  it had created {urn} with id {:?}", ResourceId::text(id.as_ref())))
        .collect()
}
