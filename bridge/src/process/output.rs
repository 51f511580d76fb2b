//! What a process writes: read for ever, kept in part.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Mutex, PoisonError};

/// Where a process wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Takes the lines a process writes. Called from the threads that read them: a sink that blocks blocks the process.
pub trait OutputSink: Send + Sync {
    /// Takes one line, without its end. Longer lines than 64 KiB come in pieces; what is not UTF-8 is replaced.
    fn line(&self, stream: OutputStream, line: &str);
}

/// A sink that keeps nothing.
impl OutputSink for () {
    fn line(&self, _: OutputStream, _: &str) {}
}

/// The longest line that is kept together.
const LONGEST_LINE: usize = 64 * 1024;
/// How many of the last lines are kept for the report of a death.
const TAIL_LINES: usize = 50;
/// How much of each of them, in bytes.
const TAIL_LINE: usize = 2000;

/// The last lines of a stream.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<VecDeque<String>>);

impl Tail {
    pub(super) fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(line[..line.floor_char_boundary(TAIL_LINE)].to_owned());
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Reads to the end and hands over each line: its text, and whether it had an end. An error of the pipe is its end.
pub(super) fn read_lines(mut pipe: impl Read, mut take: impl FnMut(&str, bool)) {
    let mut buffer = [0; 8192];
    let mut pending: Vec<u8> = Vec::new();
    loop {
        let read = match pipe.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let mut chunk = &buffer[..read];
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            pending.extend_from_slice(&chunk[..end]);
            take(&text_of(&pending), true);
            pending.clear();
            chunk = &chunk[end + 1..];
        }
        pending.extend_from_slice(chunk);
        if pending.len() >= LONGEST_LINE {
            take(&text_of(&pending), false);
            pending.clear();
        }
    }
    if !pending.is_empty() {
        take(&text_of(&pending), false);
    }
}

fn text_of(line: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<(String, bool)> {
        let mut lines = Vec::new();
        read_lines(bytes, |line, ended| lines.push((line.to_owned(), ended)));
        lines
    }

    #[test]
    fn a_last_line_without_end_counts_and_bad_bytes_are_replaced() {
        assert_eq!(lines(b"a\r\n\nb\xff"), [("a".into(), true), (String::new(), true), ("b\u{fffd}".into(), false)]);
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn a_line_without_end_does_not_grow_for_ever() {
        let pieces = lines(&vec![b'x'; 3 * LONGEST_LINE]);
        assert!(pieces.len() >= 3 && pieces.iter().all(|(piece, _)| piece.len() < 2 * LONGEST_LINE));
    }

    #[test]
    fn the_tail_keeps_the_last_lines_and_the_beginning_of_each() {
        let tail = Tail::default();
        (0..60).for_each(|number| tail.push(&format!("{number} {}", "ä".repeat(TAIL_LINE))));
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].split(' ').next()), (TAIL_LINES, Some("10")));
        assert!(lines.iter().all(|line| line.len() <= TAIL_LINE));
    }
}
