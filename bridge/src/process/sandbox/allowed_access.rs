//! Files and ports that a strict sandbox lets through.

use std::path::PathBuf;

/// Files and ports that a program in a strict sandbox reaches, besides the programs and settings of the system, and its
/// folder for temporary files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedAccess {
    /// Existing files and folders that it reads, with what is below them.
    pub readable: Vec<PathBuf>,
    /// Existing files and folders that it reads, with what is below them at its start except [`AllowedAccess::hidden`].
    pub readable_in_part: Vec<PathBuf>,
    /// Patterns of [`HiddenFiles`](super::HiddenFiles).
    pub hidden: Vec<PathBuf>,
    /// Existing files and folders that it reads and changes, with what is below them.
    pub writable: Vec<PathBuf>,
    /// Ports to which it opens TCP connections, on every machine.
    pub ports: Vec<u16>,
}
