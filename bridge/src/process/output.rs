//! Output of a process: read until its end, with the last lines kept for error messages.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Mutex, PoisonError};

use crate::error::cut;

/// Output stream of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Receives the output lines of a process, on the threads that read the pipes. A sink that blocks also blocks the
/// process.
pub trait OutputSink: Send + Sync {
    /// Receives one line, without its line end. A line longer than 64 KiB ends with [`crate::error::CUT`] instead of
    /// its rest. Bytes that are not UTF-8 are replaced by U+FFFD.
    fn line(&self, stream: OutputStream, line: &str);

    /// Receives a message of the log of the process. By default, the message is a line of standard error.
    fn log(&self, _: LogLevel, message: &str) {
        self.line(OutputStream::Stderr, message);
    }
}

/// Level of a message in the log of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Information for the user.
    Info,
    /// Possible problem.
    Warning,
    /// Error.
    Error,
}

/// Sink that discards all lines.
impl OutputSink for () {
    fn line(&self, _: OutputStream, _: &str) {}
}

/// Maximum length of a line in bytes. The rest of a longer line is dropped: in pieces, it would be shown without the
/// secrets that reach from one piece into the next masked.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// Maximum number of last lines that are kept for the error message about an exited process.
const MAX_TAIL_LINES: usize = 50;
/// Maximum number of bytes that are kept of a line without a line end.
const MAX_REST_BYTES: usize = 256;
/// Maximum number of bytes that are kept of each of the last lines.
const MAX_TAIL_LINE_BYTES: usize = 2000;

/// Beginning of the last line of a stream, while its line end is missing.
#[derive(Debug, Default)]
pub(super) struct Rest(Mutex<String>);

impl Rest {
    pub(super) fn set(&self, bytes: &[u8]) {
        let beginning = &bytes[..bytes.len().min(MAX_REST_BYTES)];
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text_of(beginning).into_owned();
    }

    pub(super) fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Last lines of a stream.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<VecDeque<String>>);

impl Tail {
    pub(super) fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MAX_TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(cut(line, MAX_TAIL_LINE_BYTES).into_owned());
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Reads a pipe to its end. Calls `on_line` with each line and `true` if the line is complete: it has a line end, and is
/// not cut. Calls `on_rest` after each read with the bytes after the last line end. An error of the pipe counts as its end.
pub(super) fn read_lines(mut pipe: impl Read, mut on_line: impl FnMut(&str, bool), mut on_rest: impl FnMut(&[u8])) {
    let mut buffer = [0; 8192];
    let mut pending: Vec<u8> = Vec::new();
    let mut is_cut = false;
    loop {
        let read = match pipe.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let mut chunk = &buffer[..read];
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            if !is_cut {
                pending.extend_from_slice(&chunk[..end]);
                on_line(&text_of(&pending), true);
            }
            pending.clear();
            is_cut = false;
            chunk = &chunk[end + 1..];
        }
        if is_cut {
            continue;
        }
        pending.extend_from_slice(chunk);
        on_rest(&pending);
        if pending.len() > MAX_LINE_BYTES {
            on_line(&cut(&text_of(&pending), MAX_LINE_BYTES), false);
            pending.clear();
            on_rest(&[]);
            is_cut = true;
        }
    }
    if !pending.is_empty() {
        on_line(&text_of(&pending), false);
    }
}

fn text_of(line: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::CUT;

    fn lines(bytes: &[u8]) -> Vec<(String, bool)> {
        let mut lines = Vec::new();
        read_lines(bytes, |line, is_complete| lines.push((line.to_owned(), is_complete)), |_| ());
        lines
    }

    #[test]
    fn last_line_without_line_end_is_returned_and_invalid_utf8_is_replaced() {
        assert_eq!(lines(b"a\r\n\nb\xff"), [("a".into(), true), (String::new(), true), ("b\u{fffd}".into(), false)]);
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn bytes_after_the_last_line_end_are_kept_until_it_arrives() {
        let rest = Rest::default();
        let read = |chunks: &[&[u8]]| {
            let pipe =
                chunks.iter().fold(Box::new(&b""[..]) as Box<dyn Read>, |pipe, chunk| Box::new(pipe.chain(*chunk)));
            read_lines(pipe, |_, _| (), |bytes| rest.set(bytes));
            rest.get()
        };
        assert_eq!(read(&[b"41", b"233"]), "41233");
        assert_eq!(read(&[b"41233", b"\n"]), "");
        assert_eq!(read(&[b"41233\nrea", b"dy"]), "ready");
        assert_eq!(read(&[&[b'x'; 1000]]).len(), MAX_REST_BYTES);
    }

    #[test]
    fn rest_of_a_line_longer_than_the_limit_is_dropped() {
        let long = [vec![b'x'; 3 * MAX_LINE_BYTES], b"\nnext\n".to_vec()].concat();
        let expected = [(format!("{}{CUT}", "x".repeat(MAX_LINE_BYTES)), false), ("next".into(), true)];
        assert_eq!(lines(&long), expected);
        assert_eq!(lines(&long[..2 * MAX_LINE_BYTES]), expected[..1]);
        let longest = [vec![b'x'; MAX_LINE_BYTES], b"\n".to_vec()].concat();
        assert_eq!(lines(&longest), [("x".repeat(MAX_LINE_BYTES), true)]);
    }

    #[test]
    fn tail_keeps_the_last_lines_and_the_beginning_of_each() {
        let tail = Tail::default();
        (0..60).for_each(|number| tail.push(&format!("{number} {}", "ä".repeat(MAX_TAIL_LINE_BYTES))));
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].split(' ').next()), (MAX_TAIL_LINES, Some("10")));
        assert!(lines.iter().all(|line| line.ends_with(CUT) && line.len() <= MAX_TAIL_LINE_BYTES + CUT.len()));
    }
}
