//! Guarantee that a run waits for before it goes on.

use std::fmt;
use std::str::FromStr;

/// Guarantee that a run waits for before it goes on. In a store that is not on this machine, it concerns the lines in the store;
/// in a folder, those on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalMode {
    /// A call that may create something begins once the line that announces it is there. All others follow within a second.
    #[default]
    Intents,
    /// Each line that begins or ends an operation is there before the run goes on.
    Sync,
    /// The run waits for nothing. The journal is on this machine alone.
    Local,
}

impl JournalMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Intents, Self::Sync, Self::Local];

    /// Returns the name of the mode.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Intents => "intents",
            Self::Sync => "sync",
            Self::Local => "local",
        }
    }
}

impl fmt::Display for JournalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for JournalMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or(UnknownMode)
    }
}

/// Text that names no mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `intents`, `sync` or `local`")]
pub struct UnknownMode;
