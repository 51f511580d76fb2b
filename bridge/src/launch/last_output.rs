//! Last lines that a plugin wrote, for the error of its start.

use std::fmt;

use crate::process::{OutputStream, Process};

/// Last lines that a plugin wrote. Displays as the end of a message; displays nothing if it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastOutput(pub Vec<String>);

impl LastOutput {
    /// Returns the last lines on standard error.
    pub(super) fn of(process: &Process) -> Self {
        Self(process.last_lines(OutputStream::Stderr))
    }

    /// Returns whether a line contains a text.
    pub(super) fn contains(&self, text: &str) -> bool {
        self.0.iter().any(|line| line.contains(text))
    }

    /// Returns whether a line is a port alone, as in Pulumi's start protocol.
    pub(super) fn has_port(&self) -> bool {
        self.0.iter().any(|line| line.trim().parse::<u16>().is_ok())
    }
}

impl fmt::Display for LastOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() {
            write!(f, ". Its last output:\n  {}", self.0.join("\n  "))?;
        }
        Ok(())
    }
}
