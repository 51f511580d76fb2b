//! Errors of a store.

use std::path::PathBuf;

use bridge::fs::PathError;

use super::lock::LockInfo;
use super::reference::StackReference;
#[cfg(test)]
use crate::{format::FormatError, integrity::IntegrityError};

/// Why a store could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Something in the store cannot be read or written.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Somebody holds the lock.
    #[error("{stack}: the stack is currently locked by {} lock(s){}", holders.len(), list(holders))]
    Locked {
        /// The stack.
        stack: StackReference,
        /// Who holds it.
        holders: Vec<LockInfo>,
    },
    /// Somebody took the lock away from who holds it.
    #[error("{stack}: the lock of this run was taken away{}", now_held_by(holders))]
    LockLost {
        /// The stack.
        stack: StackReference,
        /// Who holds it now.
        holders: Vec<LockInfo>,
    },
    /// There is a stack of that name.
    #[error("there is a stack {0} already")]
    Exists(StackReference),
    /// The folder of the store is not there.
    #[error("there is no folder {} (add `?create_dir=true` to the URL to have it made)", .0.display())]
    NoFolder(PathBuf),
    /// A file of the store cannot be read for what it is.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Damage,
    },
    /// The store has the layout of long ago.
    #[error("{} has the old layout without projects", .0.display())]
    Legacy(PathBuf),
    /// The store has a layout that came after us.
    #[error("{} says layout version {version}, which is newer than this program knows", path.display())]
    TooNew {
        /// Where it says so.
        path: PathBuf,
        /// The version.
        version: u64,
    },
    /// A store for tests refuses a checkpoint that a run could not continue from.
    #[cfg(test)]
    #[error("{stack}: refusing to save an invalid checkpoint")]
    Refused {
        /// The stack.
        stack: StackReference,
        /// What is wrong with the checkpoint.
        source: Box<InvalidCheckpoint>,
    },
}

/// What is wrong with a file of a store.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// The metadata are no YAML.
    #[error("it is not YAML")]
    Yaml(#[source] serde_yaml::Error),
    /// The metadata name no version of the layout.
    #[error("it names no version")]
    NoVersion,
    /// A compressed file cannot be decompressed.
    #[error("it cannot be decompressed")]
    Compression(#[source] std::io::Error),
    /// A text is not UTF-8.
    #[error("it is not UTF-8")]
    Utf8(#[source] std::string::FromUtf8Error),
    /// The tags of a stack are no JSON, or not of the shape of tags.
    #[error("it does not hold tags")]
    Tags(#[source] serde_json::Error),
    /// The tags of a stack have a version that this program does not know.
    #[error("tags of version {0} are not known")]
    TagsVersion(u32),
}

/// Why a store refuses a checkpoint.
#[cfg(test)]
#[derive(Debug, thiserror::Error)]
pub enum InvalidCheckpoint {
    /// It cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// It violates the integrity of a snapshot.
    #[error(transparent)]
    Integrity(#[from] IntegrityError),
}

fn now_held_by(holders: &[LockInfo]) -> String {
    if holders.is_empty() { ", and nobody holds it".to_owned() } else { format!(", and now held by{}", list(holders)) }
}

fn list(holders: &[LockInfo]) -> String {
    holders.iter().map(|holder| format!("\n  {holder}")).collect()
}
