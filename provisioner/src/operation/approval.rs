//! Decisions of the user.

/// Decision of the user: whether a provision applies the changes of its preview, or whether packages are downloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The run continues.
    Granted,
    /// The run ends without a change.
    Declined,
}
