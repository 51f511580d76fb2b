//! Kinds of the calls that change files.
//!
//! Length: the calls and the faults that tests inject into them both use it, and no release has these faults.

/// Kind of a call that changes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileCall {
    /// Opens or creates a file for writing.
    Open,
    /// Creates a folder.
    CreateFolder,
    /// Writes to a file.
    Write,
    /// Shortens a file.
    Truncate,
    /// Flushes a file or a folder to disk.
    Sync,
    /// Renames a file.
    Rename,
    /// Links a file under a second name.
    Link,
    /// Removes a file.
    Remove,
}
