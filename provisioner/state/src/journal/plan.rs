//! Beginning of a journal, and the places where it is written.

use super::folder::JournalFolders;
use super::mode::JournalMode;
use super::segment_writer::SegmentWriter;
use crate::digest::CheckpointDigest;
use crate::snapshot::SecretsDescription;
use crate::store::StackReference;

/// Content of the first line of a journal.
#[derive(Debug)]
pub(crate) struct JournalHeader {
    /// The stack.
    pub(crate) stack: StackReference,
    /// Checkpoint that the run starts from; `None` if there is none.
    pub(crate) base: Option<CheckpointDigest>,
    /// Secrets manager that encrypts the secrets in the journal.
    pub(crate) secrets: Option<SecretsDescription>,
}

/// Places of a journal, and the guarantee that its run waits for.
pub(crate) struct JournalPlan {
    /// Folders of the file.
    pub(crate) folders: JournalFolders,
    /// Id of the run, which is the name of the file.
    pub(crate) run: String,
    /// Guarantee that the run waits for.
    pub(crate) mode: JournalMode,
    /// Writer of the segments in the store; `None` if there are none.
    pub(crate) segments: Option<SegmentWriter>,
}
