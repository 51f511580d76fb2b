//! Errors of a store.

use std::path::PathBuf;

use bridge::error::Hint;
use bridge::message_text::MessageText;
use bridge::yaml::YamlError;
use jiff::Timestamp;

use super::lock::LockInfo;
use super::migration_mark::MigrationMark;
use super::objects::{ObjectError, ObjectErrorKind};
use super::reference::StackReference;

/// Reason why an operation of a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A request to the store failed.
    #[error(transparent)]
    Request(#[from] ObjectError),
    /// Another run holds the lock of the stack.
    #[error("{stack}: the stack is currently locked by {} lock(s){}", holders.len(), list(holders))]
    Locked {
        /// The stack.
        stack: StackReference,
        /// Held locks.
        holders: Vec<LockInfo>,
    },
    /// The lock of this run was removed during the run.
    #[error("{stack}: the lock of this run was removed{}", now_held_by(holders))]
    LockLost {
        /// The stack.
        stack: StackReference,
        /// Locks that are held now.
        holders: Vec<LockInfo>,
    },
    /// Another program has replaced the checkpoint since it was read.
    #[error("{stack}: another program has changed its state{} after this run had read it", written_at(written))]
    Replaced {
        /// The stack.
        stack: StackReference,
        /// Time at which the present checkpoint was written; `None` if there is none, or the time is not known.
        written: Option<Timestamp>,
    },
    /// The stack has moved to another store or name, or is being moved into this store.
    #[error("{stack} {mark}")]
    Migrated {
        /// The stack.
        stack: StackReference,
        /// Mark of the stack.
        mark: Box<MigrationMark>,
        /// Location of the mark.
        mark_location: String,
    },
    /// A rename was interrupted, and both stacks were changed since.
    #[error("a rename of {from} to {to} was interrupted, and both stacks have been changed since")]
    BothNames {
        /// The stack under its old name.
        from: StackReference,
        /// The stack under its new name.
        to: StackReference,
    },
    /// A move of resources from or to the stack has not ended.
    #[error("{stack}: a move of resources {} has not ended", moved_where(*is_source, other))]
    MovePending {
        /// The stack.
        stack: StackReference,
        /// The other stack of the move.
        other: Box<StackReference>,
        /// `true` if the resources leave the stack.
        is_source: bool,
    },
    /// A stack of that name exists.
    #[error("there is a stack {0} already")]
    Exists(StackReference),
    /// The folder of the store does not exist.
    #[error("there is no folder {} (add `?create_dir=true` to the URL to create it)", .0.display())]
    NoFolder(PathBuf),
    /// A file or an object of the store has invalid content.
    #[error("{location} is damaged")]
    Damaged {
        /// The file or object.
        location: String,
        /// Reason why the content is invalid.
        source: Damage,
    },
    /// The store has the legacy layout.
    #[error("{0} has the old layout without projects")]
    Legacy(String),
    /// The layout of the store is newer than the supported ones.
    #[error("{location} has layout version {version}, which is newer than the supported ones")]
    TooNew {
        /// File or object with the version of the layout.
        location: String,
        /// The version.
        version: u64,
    },
}

/// Reason why the content of a file is invalid.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// The metadata are not YAML.
    #[error("it is not YAML")]
    Yaml(#[source] YamlError),
    /// The metadata have no layout version.
    #[error("it names no version")]
    NoVersion,
    /// A compressed file cannot be decompressed, or is too large when it is.
    #[error("it cannot be decompressed")]
    Compression(#[source] std::io::Error),
    /// A text is not UTF-8.
    #[error(transparent)]
    Utf8(std::io::Error),
    /// The tags of a stack are not JSON, or do not have the shape of tags.
    #[error("it does not hold tags")]
    Tags(#[source] serde_json::Error),
    /// The intent of a rename is not JSON, or does not have the shape of an intent.
    #[error("it does not describe a rename")]
    Rename(#[source] serde_json::Error),
    /// The intent of a rename has invalid names.
    #[error("it does not have the names of stacks and locks")]
    RenameNames,
    /// The record of a move of resources is not JSON, or does not have the shape of a record.
    #[error("it does not describe a move of resources")]
    Move(#[source] serde_json::Error),
    /// The record of a move of resources has invalid names, or lacks a member.
    #[error("it lacks the names of resources and stacks")]
    MoveNames,
    /// The mark of a migration is not JSON, or does not have the shape of a mark.
    #[error("it does not describe a migration")]
    MigrationMark(#[source] serde_json::Error),
    /// The tags of a stack have an unsupported version.
    #[error("tags of version {0} are not supported")]
    TagsVersion(u32),
}

/// Advice for a file or an object that a newer program has written.
pub(crate) const NEWER: &str =
    "a newer version of `pulumi` or `sc` has written this: use a version of `sc` that supports it";

impl StoreError {
    /// Returns `true` if the store does not allow the request to the user.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Request(ObjectError { kind: ObjectErrorKind::Denied, .. }))
    }
}

impl Hint for StoreError {
    fn hint(&self) -> Option<MessageText> {
        let hint = match self {
            Self::Legacy(_) => {
                "`pulumi state upgrade` converts it to the current layout; to use it unchanged, set \
                 PULUMI_DIY_BACKEND_IGNORE_DEPRECATION_ERROR=1, which the upgrade needs as well"
            }
            Self::BothNames { .. } => {
                "compare both with `pulumi stack export`, remove the one that is not needed with `pulumi stack rm`, and the \
                 file of the rename in `.sc/renames` of the backend"
            }
            Self::TooNew { .. } => NEWER,
            Self::MovePending { .. } => {
                "the next command on either stack, such as `sc state ls`, finishes or undoes the move"
            }
            // The command line looks for the process of the lock, and writes the lines of server.yaml for another store.
            Self::Locked { .. } | Self::Migrated { .. } => return None,
            // The text of the error says what to do, or the state error around it has the hint.
            Self::Request(_)
            | Self::LockLost { .. }
            | Self::Replaced { .. }
            | Self::Exists(_)
            | Self::NoFolder(_)
            | Self::Damaged { .. } => return None,
        };
        Some(hint.into())
    }
}

fn moved_where(is_source: bool, other: &StackReference) -> String {
    if is_source { format!("to {other}") } else { format!("from {other}") }
}

fn written_at(written: &Option<Timestamp>) -> String {
    written.map(|written| format!(" at {written:.0}")).unwrap_or_default()
}

fn now_held_by(holders: &[LockInfo]) -> String {
    if holders.is_empty() {
        ", and the stack is not locked now".to_owned()
    } else {
        format!(", and is now held by{}", list(holders))
    }
}

fn list(holders: &[LockInfo]) -> String {
    holders.iter().map(|holder| format!("\n  {holder}")).collect()
}
