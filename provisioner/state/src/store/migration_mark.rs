//! Mark of a stack that has moved to another store or another name, or that is being moved into this store.
//!
//! A migration writes the mark of the target before it copies anything there. Once the checkpoint is complete, it writes the
//! mark of the source, and removes that of the target last. A stack with a mark is not read or changed: of two stores that
//! have the stack, one at most is used.
//!
//! A rename leaves a mark under the old name: the files of a repository may still have that name, and a run would create all
//! resources a second time. A rename in the other direction removes it.

use std::fmt;

use jiff::Timestamp;

/// Mark of a stack that has moved to another store or name, or that is being moved into this store. `Display` is the predicate of a
/// sentence about the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationMark {
    /// Direction of the migration.
    pub direction: MigrationDirection,
    /// URL of the other store as server.yaml takes it, with masked passwords; of a renamed stack, its new name.
    pub url: String,
    /// Location of the store that has the stack.
    pub location: String,
    /// SHA-256 of the checkpoint that moves.
    pub digest: String,
    /// SHA-256 of the checkpoint of an earlier migration in the other direction, which this one replaces.
    pub replaces: Option<String>,
    /// SHA-256 of the checkpoints that earlier attempts of this migration were to move, and may have written.
    pub outdated: Vec<String>,
    /// Time of the migration.
    pub time: Timestamp,
    /// User of the migration.
    pub user: String,
    /// Machine of the migration.
    pub host: String,
    /// Id of the run.
    pub run: Option<String>,
}

/// Direction of a migration, from the store with the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationDirection {
    /// The stack has moved to the other store. Its files here are those of that time.
    To,
    /// The stack is being moved from the other store, and may be incomplete here.
    From,
    /// The stack has another name in this store.
    Renamed,
}

impl fmt::Display for MigrationMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, time, user, host, .. } = self;
        match self.direction {
            MigrationDirection::To => write!(f, "has moved to {url}: {user}@{host} migrated it at {time:.0}"),
            MigrationDirection::Renamed => write!(f, "is now {url}: {user}@{host} renamed it at {time:.0}"),
            MigrationDirection::From => {
                write!(f, "is incomplete here: {user}@{host} began to migrate it from {url} at {time:.0}")
            }
        }
    }
}
