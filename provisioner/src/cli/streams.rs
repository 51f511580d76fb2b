//! Standard streams: the echo of the terminal, which is off while the user types a secret, and output whose errors name it.

use std::fmt;
use std::io::{self, Write};
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

/// Standard output, or a stream that writes to it. The error of a write alone does not say what could not be written.
pub(crate) struct StandardOutput<W>(pub(crate) W);

#[derive(Debug, thiserror::Error)]
#[error("failed to write to standard output")]
struct OutputError(#[source] io::Error);

/// Names standard output in an error. Its kind stays: a broken pipe ends the program without a message.
fn named(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), OutputError(error))
}

impl<W: Write> Write for StandardOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn error_names_standard_output_and_keeps_its_kind() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::BrokenPipe] {
            let mut output = StandardOutput(Failing(kind));
            for error in [output.write_all(b"x").unwrap_err(), output.flush().unwrap_err()] {
                assert_eq!((error.to_string().as_str(), error.kind()), ("failed to write to standard output", kind));
                assert_eq!(error.source().unwrap().to_string(), kind.to_string());
            }
        }
    }
}
