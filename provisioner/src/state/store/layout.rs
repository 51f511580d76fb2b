//! Which object of a stack is where (spec of the state, section 2). Keys are relative to the folder of the store.
//!
//! ```text
//! .pulumi/meta.yaml                                     version: 1
//! .pulumi/stacks/P/S.json          .bak                 the checkpoint and the one before
//! .pulumi/history/P/S/S-NS.history.json                 what an update did
//! .pulumi/history/P/S/S-NS.checkpoint.json              what it left
//! .pulumi/backups/P/S/S.NS.json                         the same once more
//! .pulumi/locks/organization/P/S/<uuid>.json            who is at work
//! ```
//! Compressed, all that end with `.json` but locks have `.gz` or `.zst` after it.

use super::compression::Compression;
use super::reference::StackReference;

pub(super) const ROOT: &str = ".pulumi";
pub(super) const META: &str = ".pulumi/meta.yaml";
pub(super) const STACKS: &str = ".pulumi/stacks";
pub(super) fn checkpoint(stack: &StackReference, compression: Compression) -> String {
    format!("{STACKS}/{}/{}.json{}", stack.project(), stack.stack(), compression.suffix())
}

/// The entry and the copy of the checkpoint of one update, before compression; the number is the time in nanoseconds.
pub(super) fn history(stack: &StackReference, nanoseconds: i128) -> [String; 2] {
    let (project, stack) = (stack.project(), stack.stack());
    ["history", "checkpoint"].map(|kind| format!("{ROOT}/history/{project}/{stack}/{stack}-{nanoseconds}.{kind}.json"))
}

pub(super) fn backup(stack: &StackReference, nanoseconds: i128) -> String {
    let (project, stack) = (stack.project(), stack.stack());
    format!("{ROOT}/backups/{project}/{stack}/{stack}.{nanoseconds}.json")
}

/// The folder of the locks of a stack.
pub(super) fn locks(stack: &StackReference) -> String {
    format!("{ROOT}/locks/{stack}")
}

/// The stack whose checkpoint has this file name, in the folder of a project.
pub(super) fn stack_of_file(project: &str, file_name: &str) -> Option<StackReference> {
    let name = Compression::ALL.iter().find_map(|compression| {
        file_name.strip_suffix(compression.suffix()).and_then(|name| name.strip_suffix(".json"))
    });
    StackReference::new(project, name?).ok()
}
