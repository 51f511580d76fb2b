//! Decisions of the user.

use engine::DeletionLimit;

/// Decision of the user: whether packages are downloaded, or missing resources leave the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The run continues.
    Granted,
    /// The run ends without a change.
    Declined,
}

/// Decision about the changes that a preview has shown.
#[derive(Debug)]
pub enum Agreement {
    /// The run applies the changes, and deletes no more resources than this.
    Granted(Option<DeletionLimit>),
    /// The run ends without a change.
    Declined,
}
