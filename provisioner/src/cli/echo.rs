//! Echo of the terminal, which is off while the user types a secret.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Echo of standard input. Clones share its state.
#[derive(Clone, Default)]
pub(crate) struct Echo {
    /// Mode of the terminal while the echo is off: that of before.
    hidden: Arc<Mutex<Option<Termios>>>,
}

impl Echo {
    /// Switches the echo off until the guard is dropped, except for ends of lines. Discards what was typed before.
    ///
    /// # Errors
    /// Standard input is not a terminal.
    pub(crate) fn hide(&self) -> io::Result<EchoGuard> {
        let mode = tcgetattr(io::stdin())?;
        let mut silent = mode.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent.local_modes.insert(LocalModes::ECHONL);
        *self.lock() = Some(mode);
        let guard = EchoGuard(self.clone());
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(guard)
    }

    /// Switches the echo on again, if it is off. An error means that the terminal is closed.
    pub(crate) fn restore(&self) {
        if let Some(mode) = self.lock().take() {
            tcsetattr(io::stdin(), OptionalActions::Now, &mode).unwrap_or_default();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Termios>> {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Echo").finish_non_exhaustive()
    }
}

/// Guard of an echo that is off.
#[derive(Debug)]
pub(crate) struct EchoGuard(Echo);

impl Drop for EchoGuard {
    fn drop(&mut self) {
        self.0.restore();
    }
}
