//! Copies of the checkpoints of a stack that a store keeps.

use jiff::Timestamp;

/// Copy of an earlier checkpoint of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointCopy {
    /// Kind of the copy.
    pub kind: CopyKind,
    /// Name that no other copy of the stack has, such as `bak` or `history-1788242409123456789`.
    pub name: String,
    /// Location of the copy, for messages: the path of a file, or the URL of an object.
    pub location: String,
    /// Time at which the checkpoint was written; that of the copy if it has a time in its name.
    pub time: Timestamp,
    /// Key of the file or object in the store.
    pub(super) key: String,
}

/// Reason why a store keeps a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopyKind {
    /// The checkpoint before the last save (`.bak`).
    Previous,
    /// The checkpoint at the end of a run, in its history.
    History,
    /// The checkpoint at the end of a run, in the backups.
    Backup,
    /// A saved checkpoint that an option of the store retains.
    Retained,
}

impl CopyKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Previous, Self::History, Self::Backup, Self::Retained];

    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Previous => "previous",
            Self::History => "history",
            Self::Backup => "backup",
            Self::Retained => "retained",
        }
    }
}
