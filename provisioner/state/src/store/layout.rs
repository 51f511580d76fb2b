//! Which object of a stack is where (spec of the state, section 2). Keys are relative to the folder of the store.
//!
//! ```text
//! .pulumi/meta.yaml                                     version: 1
//! .pulumi/stacks/P/S.json          .bak  .NS            the checkpoint, the one before, all before
//! .pulumi/stacks/P/S.pulumi-tags                        its tags
//! .pulumi/history/P/S/S-NS.history.json                 what an update did
//! .pulumi/history/P/S/S-NS.checkpoint.json              what it left
//! .pulumi/backups/P/S/S.NS.json                         the same once more
//! .pulumi/locks/organization/P/S/<uuid>.json            who is at work
//! ```
//! Compressed, all that end with `.json` but locks have `.gz` or `.zst` after it. In the layout of long ago there are no
//! metadata, and neither `organization` nor `P`.

use super::compression::Compression;
use super::reference::StackReference;

pub(super) const ROOT: &str = ".pulumi";
pub(super) const META: &str = ".pulumi/meta.yaml";
pub(super) const STACKS: &str = ".pulumi/stacks";

/// One of the two layouts that a store can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Stacks belong to projects (version 1).
    #[default]
    Projects,
    /// Stacks belong to no project (version 0, deprecated by Pulumi).
    Legacy,
}

impl Layout {
    /// The name of a stack by which the store knows it.
    pub(super) fn full_name(self, stack: &StackReference) -> String {
        match self {
            Self::Projects => stack.to_string(),
            Self::Legacy => stack.stack().to_owned(),
        }
    }

    /// Where a stack is below each of the folders but that of the locks.
    fn place(self, stack: &StackReference) -> String {
        match self {
            Self::Projects => format!("{}/{}", stack.project(), stack.stack()),
            Self::Legacy => stack.stack().to_owned(),
        }
    }

    pub(super) fn checkpoint(self, stack: &StackReference, compression: Compression) -> String {
        format!("{STACKS}/{}.json{}", self.place(stack), compression.suffix())
    }

    pub(super) fn tags(self, stack: &StackReference) -> String {
        format!("{STACKS}/{}.pulumi-tags", self.place(stack))
    }

    /// The folder of the history of a stack.
    pub(super) fn history(self, stack: &StackReference) -> String {
        format!("{ROOT}/history/{}", self.place(stack))
    }

    /// The entry and the copy of the checkpoint of one update, before compression; the number is the time in nanoseconds.
    pub(super) fn update(self, stack: &StackReference, nanoseconds: i128) -> [String; 2] {
        let (folder, stack) = (self.history(stack), stack.stack());
        ["history", "checkpoint"].map(|kind| format!("{folder}/{stack}-{nanoseconds}.{kind}.json"))
    }

    /// The folder of the backups of a stack.
    pub(super) fn backups(self, stack: &StackReference) -> String {
        format!("{ROOT}/backups/{}", self.place(stack))
    }

    /// A backup, before compression.
    pub(super) fn backup(self, stack: &StackReference, nanoseconds: i128) -> String {
        format!("{}/{}.{nanoseconds}.json", self.backups(stack), stack.stack())
    }

    /// The folder of the locks of a stack.
    pub(super) fn locks(self, stack: &StackReference) -> String {
        format!("{ROOT}/locks/{}", self.full_name(stack))
    }
}

/// Whether a file in the folder of a history is an entry of it, compressed or not.
pub(super) fn is_update(stack: &StackReference, file_name: &str) -> bool {
    let rest = file_name.strip_prefix(stack.stack()).and_then(|rest| rest.strip_prefix('-'));
    let suffix = rest.map(|rest| rest.trim_start_matches(|character: char| character.is_ascii_digit()));
    let suffix = suffix.and_then(|rest| rest.strip_prefix(".history.json"));
    suffix.is_some_and(|suffix| Compression::ALL.iter().any(|compression| compression.suffix() == suffix))
}

/// The name of the stack whose checkpoint has this file name.
pub(super) fn stack_of_file(file_name: &str) -> Option<&str> {
    let bare = |compression: &Compression| file_name.strip_suffix(compression.suffix())?.strip_suffix(".json");
    Compression::ALL.iter().find_map(bare)
}
