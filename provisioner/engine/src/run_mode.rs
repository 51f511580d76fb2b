//! Mode of a run: preview or apply.

/// Mode of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// Preview: providers report the changes that they would make, and none is made.
    Preview,
    /// Steps are carried out and recorded.
    Apply,
}
