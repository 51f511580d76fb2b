//! State of one stack in an operation: locking, loading, recovery, recording, saving.

mod access;
mod change_secrets;
mod import;
mod journals;
mod late;
mod loading;
mod lock_settings;
mod lock_wait;
mod locked;
mod locking;
mod manage;
mod migration;
mod namesakes;
mod recorder;
mod recovery;
mod resource_move;
mod restore;
mod saving;
mod stack_secrets;
#[cfg(test)]
mod tests;
mod unexplained_empty;
mod unmerged;
mod view;

pub use access::StackAccess;
pub use change_secrets::{change_secrets, stored_secrets};
pub use import::{ImportReport, import};
pub use journals::{JournalStatus, JournalSummary, adopt_journal, discard_journal, journals};
pub use late::{LateConflict, LateReport};
pub use lock_settings::{AwaitedLocks, LockSettings, LockWait, TakenOverLock};
pub use locked::StackState;
pub use locking::{LockSummary, LockedRun, break_locks, resume_rename};
pub use manage::{StackSummary, history, remove_stack, rename_stack, summary};
pub use migration::{MigratedStack, MigrationOutcome, StackMigration};
pub use namesakes::{Namesake, namesakes};
pub use recorder::JournalRecorder;
pub use recovery::RecoveredRun;
pub use resource_move::{MoveOutcome, MovedResources, move_between_stacks, resume_move};
pub use restore::{EntryChange, Restore, StateCopy, state_copies};
pub use stack_secrets::SecretsChange;
pub use unmerged::UnmergedJournal;
pub use view::{ExportedSecrets, StackView};
