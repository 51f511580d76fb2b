//! Whether a deployment changes anything.

/// Whether a deployment changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// Providers are asked what they would do.
    Preview,
    /// Steps are carried out and recorded.
    Apply,
}
