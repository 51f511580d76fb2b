//! Decisions of the user, and the phases of a provision that are optional.

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

/// Optional phases of a provision.
#[derive(Clone, Copy, Debug)]
pub struct ProvisionOptions {
    /// True if all recorded resources are refreshed first.
    pub refresh: bool,
    /// True if a preview comes before the update.
    pub preview: bool,
}
