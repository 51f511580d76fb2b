//! Layout of a store: keys of the objects of a stack (docs/spec/state-and-secrets.md#2), relative to the folder of the
//! store.
//!
//! ```text
//! .pulumi/meta.yaml                                     version: 1
//! .pulumi/stacks/P/S.json          .bak  .NS            the checkpoint, the previous one, retained ones
//! .pulumi/stacks/P/S.pulumi-tags                        tags
//! .pulumi/history/P/S/S-NS.history.json                 history entry of an update
//! .pulumi/history/P/S/S-NS.checkpoint.json              checkpoint after the update
//! .pulumi/backups/P/S/S.NS.json                         backup of that checkpoint
//! .pulumi/locks/organization/P/S/<uuid>.json            lock with its holder
//! .sc/renames/<uuid>.json                               intent of a rename
//! .sc/moved/P/S.json                                    mark of a stack that has moved to another store or name,
//!                                                    or record of a move of its resources that has not ended
//! .sc/journal/P/S/<run>/<number>                        lines of the journal of a run
//! .sc/clock/<uuid>                                      object whose time is read and which is removed then
//! ```
//! If compressed, all files with `.json` except locks have `.gz` or `.zst` after it. The legacy layout has no metadata,
//! and neither `organization` nor `P` in its keys.

use bridge::fs::utf8;
use bridge::yaml;
use jiff::Timestamp;

use super::compression::Compression;
use super::error::{Damage, StoreError};
use super::reference::StackReference;

pub(super) const ROOT: &str = ".pulumi";
pub(super) const META: &str = ".pulumi/meta.yaml";
pub(super) const STACKS: &str = ".pulumi/stacks";
/// Folder of the journals of the runs of all stacks.
pub(super) const JOURNALS: &str = ".sc/journal";
pub(super) const HISTORY: &str = ".pulumi/history";
pub(super) const BACKUPS: &str = ".pulumi/backups";
pub(super) const LOCKS: &str = ".pulumi/locks";

/// Layout of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Stacks belong to projects (version 1).
    #[default]
    Projects,
    /// Stacks belong to no project (version 0, deprecated by Pulumi).
    Legacy,
}

impl Layout {
    /// Returns the full name of a stack in the store.
    pub(super) fn full_name(self, stack: &StackReference) -> String {
        match self {
            Self::Projects => stack.to_string(),
            Self::Legacy => stack.stack().to_owned(),
        }
    }

    /// Returns the path of a stack below each of the folders except that of the locks.
    fn stack_path(self, stack: &StackReference) -> String {
        match self {
            Self::Projects => format!("{}/{}", stack.project(), stack.stack()),
            Self::Legacy => stack.stack().to_owned(),
        }
    }

    pub(super) fn checkpoint(self, stack: &StackReference, compression: Compression) -> String {
        format!("{STACKS}/{}.json{}", self.stack_path(stack), compression.suffix())
    }

    /// Returns the folder of the checkpoints of a stack.
    pub(super) fn checkpoints(self, stack: &StackReference) -> String {
        match self {
            Self::Projects => format!("{STACKS}/{}", stack.project()),
            Self::Legacy => STACKS.to_owned(),
        }
    }

    pub(super) fn tags(self, stack: &StackReference) -> String {
        format!("{STACKS}/{}.pulumi-tags", self.stack_path(stack))
    }

    /// Returns the folder of the history of a stack.
    pub(super) fn history(self, stack: &StackReference) -> String {
        format!("{HISTORY}/{}", self.stack_path(stack))
    }

    /// Returns the keys of the history entry and of the copy of the checkpoint of one update, without the suffix of a
    /// compression.
    pub(super) fn history_files(self, stack: &StackReference, nanoseconds: i128) -> [String; 2] {
        let (folder, stack) = (self.history(stack), stack.stack());
        ["history", "checkpoint"].map(|kind| format!("{folder}/{stack}-{nanoseconds}.{kind}.json"))
    }

    /// Returns the folder of the backups of a stack.
    pub(super) fn backups(self, stack: &StackReference) -> String {
        format!("{BACKUPS}/{}", self.stack_path(stack))
    }

    /// Returns the key of a backup, without the suffix of a compression.
    pub(super) fn backup(self, stack: &StackReference, nanoseconds: i128) -> String {
        format!("{}/{}.{nanoseconds}.json", self.backups(stack), stack.stack())
    }

    /// Returns the key of a copy of a checkpoint.
    pub(super) fn copy(
        self,
        stack: &StackReference,
        kind: CopyKind,
        time: Timestamp,
        compression: Compression,
    ) -> String {
        let (nanoseconds, suffix) = (time.as_nanosecond(), compression.suffix());
        match kind {
            CopyKind::Previous => format!("{}.bak", self.checkpoint(stack, compression)),
            CopyKind::Retained => format!("{}.{nanoseconds}", self.checkpoint(stack, compression)),
            CopyKind::Backup => format!("{}{suffix}", self.backup(stack, nanoseconds)),
            CopyKind::History => {
                let [_, checkpoint] = self.history_files(stack, nanoseconds);
                format!("{checkpoint}{suffix}")
            }
        }
    }

    /// Returns the key of the mark of a stack that has moved to another store or name.
    pub(super) fn mark(self, stack: &StackReference) -> String {
        format!(".sc/moved/{}.json", self.stack_path(stack))
    }

    /// Returns the folder of the records of the used plans of a stack.
    pub(super) fn used_plans(self, stack: &StackReference) -> String {
        format!(".sc/plans/{}", self.stack_path(stack))
    }

    /// Returns the folder of the journals of the runs of a stack.
    pub(super) fn journal(self, stack: &StackReference) -> String {
        format!("{JOURNALS}/{}", self.stack_path(stack))
    }

    /// Returns the folder of the locks of a stack.
    pub(super) fn locks(self, stack: &StackReference) -> String {
        format!("{LOCKS}/{}", self.full_name(stack))
    }
}

/// Returns the time in the file name of a history entry, compressed or not; `None` for other files.
pub(super) fn time_of_history_entry(stack: &StackReference, file_name: &str) -> Option<Timestamp> {
    let (digits, rest) = file_name.strip_prefix(stack.stack())?.strip_prefix('-')?.split_once('.')?;
    let suffix = rest.strip_prefix("history.json")?;
    let is_compression = Compression::ALL.iter().any(|compression| compression.suffix() == suffix);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    Timestamp::from_nanosecond(digits.parse().ok().filter(|_| is_compression && is_number)?).ok()
}

/// Returns the time in the file name of a copy of a checkpoint; `None` for other files and other kinds of copies.
pub(super) fn time_of_copy(kind: CopyKind, stack: &StackReference, file_name: &str) -> Option<Timestamp> {
    let rest = file_name.strip_prefix(stack.stack())?;
    // The suffix of a compression comes after `.json`.
    let bare = |text: &'_ str| -> Option<String> {
        let suffix = |compression: &Compression| text.strip_suffix(compression.suffix())?.strip_suffix(".json");
        Compression::ALL.iter().find_map(suffix).map(str::to_owned)
    };
    let digits = match kind {
        CopyKind::History => bare(rest.strip_prefix('-')?)?.strip_suffix(".checkpoint")?.to_owned(),
        CopyKind::Backup => bare(rest.strip_prefix('.')?)?,
        CopyKind::Retained => {
            let (before, digits) = rest.rsplit_once('.')?;
            bare(before).filter(String::is_empty)?;
            digits.to_owned()
        }
        CopyKind::Previous => return None,
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    Timestamp::from_nanosecond(digits.parse().ok().filter(|_| is_number)?).ok()
}

/// Returns the name of the stack whose checkpoint has this file name; `None` for other files.
pub(super) fn stack_name_of_file(file_name: &str) -> Option<&str> {
    let bare = |compression: &Compression| file_name.strip_suffix(compression.suffix())?.strip_suffix(".json");
    Compression::ALL.iter().find_map(bare)
}

/// Metadata of a store with projects.
pub(super) const META_TEXT: &str = "version: 1\n";

/// Returns the layout that the metadata at a location name.
pub(super) fn layout_of(metadata: Vec<u8>, location: &str) -> Result<Layout, StoreError> {
    let damaged = |source| StoreError::Damaged { location: location.to_owned(), source };
    let text = utf8(metadata).map_err(|error| damaged(Damage::Utf8(error)))?;
    let meta: serde_yaml::Value = yaml::from_str(&text).map_err(|error| damaged(Damage::Yaml(error)))?;
    match meta.get("version").and_then(serde_yaml::Value::as_u64) {
        Some(0) => Ok(Layout::Legacy),
        Some(1) => Ok(Layout::Projects),
        Some(version) => Err(StoreError::TooNew { location: location.to_owned(), version }),
        None => Err(damaged(Damage::NoVersion)),
    }
}

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
