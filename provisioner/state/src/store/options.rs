//! What is chosen when a store is opened (spec of the state, section 2.2).

use super::compression::Compression;
use super::layout::Layout;

/// What the user may choose of a store; without a word nothing special.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// How checkpoints, history entries and backups are compressed from now on.
    pub compression: Compression,
    /// Keep a copy of each checkpoint that is saved beside it, named after the time, for ever.
    pub retain_checkpoints: bool,
    /// Put no copies of checkpoints into the folder of the backups. The one before is kept all the same.
    pub skip_backups: bool,
    /// The layout that an empty store gets.
    pub new_layout: Layout,
    /// Whether a store of the legacy layout is opened.
    pub legacy_stores: LegacyStores,
}

/// Whether a store of the legacy layout is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LegacyStores {
    /// It is refused.
    #[default]
    Refused,
    /// It is read and written.
    Accepted,
}
