//! What is chosen when a store is opened (spec of the state, section 2.2).

use super::compression::Compression;

/// What the user may choose of a store; without a word nothing special.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// How checkpoints, history entries and backups are compressed from now on.
    pub compression: Compression,
    /// Keep a copy of each checkpoint that is saved beside it, named after the time, for ever.
    pub retain_checkpoints: bool,
    /// Put no copies of checkpoints into the folder of the backups. The one before is kept all the same.
    pub skip_backups: bool,
    /// Give a store that is empty the layout of long ago, in which stacks belong to no project.
    pub new_legacy: bool,
    /// Work with a store that has that layout, in place of refusing it.
    pub accept_legacy: bool,
}
