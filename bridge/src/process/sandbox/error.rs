//! Error of a sandbox.
//!
//! Length: the rules have it, and the question whether the system supports them asks the rules.

/// Restriction of a sandbox that could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SandboxError(pub(in crate::process) String);

impl SandboxError {
    /// Creates an error from its text.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn of(action: &str, error: impl std::fmt::Display) -> Self {
        Self(format!("cannot {action}: {error}"))
    }
}
