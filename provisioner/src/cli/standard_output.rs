//! Standard output, whose errors name it.

use std::io::{self, Write};

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
