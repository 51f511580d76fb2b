//! The sandbox of a plugin.

use std::fmt;
use std::path::PathBuf;

/// Restrictions of the process of a plugin (docs/hosting.md#sandbox).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sandbox {
    /// No restrictions: the process can do what the account can do.
    None,
    /// No new privileges, no inherited descriptors, no core dumps, and a folder of its own for temporary files.
    #[default]
    Basic,
    /// The restrictions of `Basic`, and access to few files and ports only.
    Strict(StrictSandbox),
}

/// Files and ports that a plugin in the sandbox `strict` reaches, besides those of the system and its own. A relative path
/// starts at the root of the repository, and one with `~` at the home directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StrictSandbox {
    /// Files and folders that it reads.
    pub readable: Vec<PathBuf>,
    /// Files and folders that it reads and changes.
    pub writable: Vec<PathBuf>,
    /// Ports to which it opens TCP connections, on every machine.
    pub ports: Vec<u16>,
}

impl StrictSandbox {
    /// Ports to which a plugin opens connections if none are declared: that of HTTPS.
    pub const PORTS: [u16; 1] = [443];
}

impl Default for StrictSandbox {
    fn default() -> Self {
        Self { readable: Vec::new(), writable: Vec::new(), ports: Self::PORTS.to_vec() }
    }
}

impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Basic => "basic",
            Self::Strict(_) => "strict",
        })
    }
}
