//! Options for opening a store (docs/spec/state-and-secrets.md#2.2).

use bridge::fs::Access;

use super::compression::Compression;
use super::layout::Layout;

/// Options of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// Permissions of files and folders, in a store that has some. For [`Access::Private`], the permissions in the URL do not apply, and existing
    /// files and the folder `.pulumi` lose the permissions of other users when they are replaced or written to.
    pub access: Access,
    /// Compression of checkpoints, history entries and backups that are written.
    pub compression: Compression,
    /// Keeps a copy of each saved checkpoint beside it, named after the time and never removed.
    pub retain_checkpoints: bool,
    /// Writes no copies of checkpoints to the folder of the backups. The previous checkpoint is kept in any case.
    pub skip_backups: bool,
    /// Layout for an empty store.
    pub new_layout: Layout,
    /// Treatment of a store with the legacy layout.
    pub legacy_stores: LegacyStores,
}

/// Treatment of a store with the legacy layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LegacyStores {
    /// Opening the store fails.
    #[default]
    Refused,
    /// The store is read and written.
    Accepted,
}
