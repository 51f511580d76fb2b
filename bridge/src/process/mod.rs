//! Child processes: own group, drained pipes, an end on every path.

/// Where a process wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}
