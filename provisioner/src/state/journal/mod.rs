//! The journal of a run: what it began and what came of it, one line each, so that a crash loses nothing.
//!
//! Enters: records, as they happen. Leaves: the state that they led to, when the next run finds the journal of one that
//! did not end. Never here: locks, checkpoints (only the digest of the one a journal starts from).
//!
//! A journal is a file `.sc/journal/PROJECT/STACK/<id>` beside the store's `.pulumi`, made when there is something to write:
//!
//! ```text
//! {"journal":1,"stack":"organization/P/S","base":"<sha-256 of the checkpoint, or null>","started":…,"secrets":{…}}
//! {"begin":{"operation":0,"kind":"creating","resource":{…}}}
//! {"begin":{"operation":1,"kind":"deleting","entry":2}}
//! {"end":{"operation":0,"effects":[{"add":{"entry":4,"resource":{…}}}]}}
//! {"change":[{"keep":{"entry":2}},{"remove":{"entry":3}},{"rewrite":{"entry":1,"resource":{…}}},{"dropInheritedPending":{}}]}
//! {"phase":{}}
//! {"close":"<sha-256 of the checkpoint that is about to be saved>"}
//! ```
//! Resources are written as in a checkpoint, their secrets sealed with the manager that the first line names. A line is
//! written by one write(2) and outlives the process from then on; disks follow within 100 milliseconds. A last line that is
//! torn was never answered for, and does not count. After a `phase` line (a refresh before an update, say) entries and
//! operations are numbered anew, from the state that the phase before left. The last line of a run that ended well says what it is about to save:
//! a journal left behind by a death between that and its removal is recognized as settled.

mod line;
mod replay;
mod writer;

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest::{SHA256, digest as digest_of};
use bridge::fs::PathError;

use super::format::{FormatError, hex};
use super::store::StackReference;

pub(super) use replay::{Replay, replay};
pub(super) use writer::{Journal, JournalStart, settle};

/// Version of the format, in the first line.
const VERSION: u32 = 1;

/// Why a journal cannot be written or replayed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A line other than the last makes no sense.
    #[error("line {line} of the journal {} is damaged", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: Box<FormatError>,
    },
    /// Written by something newer than us.
    #[error("the journal {} has format version {version}, which this program does not know", path.display())]
    TooNew {
        /// The journal.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// An earlier write failed, and the journal can no longer be trusted to be whole.
    #[error("the journal {} could not be written before, and takes no more", path.display())]
    Broken {
        /// The journal.
        path: PathBuf,
    },
}

/// A checkpoint as journals know it: by its digest, which is computed aside, before anybody asks for it.
#[derive(Clone)]
pub(super) struct CheckpointDigest(Arc<Digested>);

struct Digested {
    checkpoint: String,
    digest: OnceLock<String>,
}

impl CheckpointDigest {
    /// That of a text.
    pub(super) fn of(checkpoint: String) -> Self {
        let digest = Self(Arc::new(Digested { checkpoint, digest: OnceLock::new() }));
        let computed = digest.clone();
        tokio::task::spawn_blocking(move || {
            computed.as_str();
        });
        digest
    }

    /// The text; empty where only the digest is known.
    pub(super) fn checkpoint(&self) -> &str {
        &self.0.checkpoint
    }

    /// One that is known.
    pub(super) fn known(digest: String) -> Self {
        Self(Arc::new(Digested { checkpoint: String::new(), digest: OnceLock::from(digest) }))
    }

    /// Its text.
    pub(super) fn as_str(&self) -> &str {
        self.0.digest.get_or_init(|| digest(&self.0.checkpoint))
    }
}

impl fmt::Debug for CheckpointDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CheckpointDigest").finish_non_exhaustive()
    }
}

/// The digest by which a journal knows the checkpoint it starts from.
pub(super) fn digest(checkpoint: &str) -> String {
    hex(digest_of(&SHA256, checkpoint.as_bytes()).as_ref())
}

/// The folder of the journals of a stack.
pub(super) fn folder(root: &Path, stack: &StackReference) -> PathBuf {
    root.join(".sc/journal").join(stack.project()).join(stack.stack())
}

/// The journals that runs of a stack left behind, oldest name first.
pub(super) fn left_behind(root: &Path, stack: &StackReference) -> Result<Vec<PathBuf>, JournalError> {
    let folder = folder(root, stack);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(PathError::of("list", &folder)(error).into()),
    };
    let mut journals = Vec::new();
    for entry in entries {
        journals.push(entry.map_err(PathError::of("list", &folder))?.path());
    }
    journals.sort();
    Ok(journals)
}

/// Removes a journal that is settled.
pub(super) fn remove(path: &Path) -> Result<(), JournalError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(PathError::of("remove", path)(error).into()),
        _ => Ok(()),
    }
}
