//! Journal of a run whose state could not be saved.

use std::path::PathBuf;

/// Journal that was kept after the end of a run whose state could not be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptJournal {
    /// The file.
    pub path: PathBuf,
    /// `true` if it is in a fallback folder instead of the backend.
    pub is_fallback: bool,
    /// `true` if it lacks changes: they are in [`Unrecorded`](crate::Unrecorded).
    pub lacks_changes: bool,
}
