//! Work that a run waits for beside the steps of a phase, such as the start of a plugin.

use std::fmt;

/// Begin or end of work that may take long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Kind of the work.
    pub kind: ActivityKind,
    /// Name of the plugin or the stack that the work is about.
    pub subject: String,
    /// Stage of the work.
    pub stage: ActivityStage,
}

/// Kind of work that a run waits for. `Display` says what the run does, up to the name of the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActivityKind {
    /// The package of a plugin is found or fetched, and verified.
    Prepare,
    /// The program of a plugin is built.
    Build,
    /// A process of a plugin starts.
    Start,
    /// A process of a plugin is configured.
    Configure,
    /// The key of a stack is derived from its passphrase, or decrypted by a key management service.
    DeriveKey,
    /// The lock of a stack is awaited.
    WaitForLock,
    /// The state of a stack is read.
    OpenState,
    /// The state of a stack is written.
    SaveState,
    /// The plugins of a command end.
    End,
    /// A stack runs beside the one that is shown.
    RunStack,
}

impl ActivityKind {
    /// Returns the name in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Build => "build",
            Self::Start => "start",
            Self::Configure => "configure",
            Self::DeriveKey => "derive-key",
            Self::WaitForLock => "wait-for-lock",
            Self::OpenState => "open-state",
            Self::SaveState => "save-state",
            Self::End => "end",
            Self::RunStack => "run-stack",
        }
    }
}

impl fmt::Display for ActivityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prepare => "fetching and verifying plugin",
            Self::Build => "building plugin",
            Self::Start => "starting plugin",
            Self::Configure => "configuring plugin",
            Self::DeriveKey => "deriving the key of",
            Self::WaitForLock => "waiting for the lock of",
            Self::OpenState => "reading the state of",
            Self::SaveState => "saving the state of",
            Self::End => "ending the plugins of",
            Self::RunStack => "also running",
        })
    }
}

/// Stage of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityStage {
    /// The work begins.
    Started,
    /// The work has ended, also with a failure.
    Ended,
}
