//! Objects of a journal in a store: segments, and seals.
//!
//! ```text
//! {"journal":1,"stack":"organization/P/S","base":"…","started":"…","update":"update","secrets":{…},"run":"<id>","segment":{"number":0,"first":1,"lines":2}}
//! {"begin":{"operation":0,"kind":"creating","resource":{…}}}
//! {"end":{"operation":0,"kind":"creating","effects":[{"add":{"entry":4,"resource":{…}}}]}}
//! ```
//! ```text
//! {"seal":{"run":"<id of the run that has taken the journal over>","lines":2,"checkpoint":"<sha-256 of the checkpoint that it is about to save>","time":"…","history":{…},"saved":false}}
//! ```
//! The lines of a run are numbered from 1 in their order, `close` lines excluded. Each segment has the whole first line of
//! the journal, so one that arrives late, or behind a gap, can be read alone.

use bridge::json;
use serde::de::Error as _;

use super::closing::is_close_line;
use super::error::JournalError;
use super::header::{StoredHeader, VERSION};
use super::seal::{Seal, read_seal};
use crate::format::FormatError;

/// Segment of a journal.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) header: StoredHeader,
    /// Number of the first line.
    pub(super) first: usize,
    /// Lines after the first line of the object, each without its end; with a `close` line, if there is one.
    pub(super) lines: Vec<String>,
}

impl Segment {
    /// Returns the number of the last line, without a `close` line; that before the first one if there is no other line.
    pub(super) fn last(&self) -> usize {
        self.first + self.lines.iter().filter(|line| !is_close_line(line)).count() - 1
    }
}

/// Content of an object of a journal.
#[derive(Debug)]
pub(super) enum JournalContent {
    /// A segment.
    Segment(Segment),
    /// A seal.
    Seal(Seal),
}

/// Returns the name of an object.
pub(super) fn object_name(number: u64) -> String {
    format!("{number:08}")
}

/// Returns the number in the name of an object; `None` for a name that no object has.
pub(super) fn object_number(name: &str) -> Option<u64> {
    let is_number = name.len() >= 8 && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|number| is_number && object_name(*number) == name)
}

/// Reads an object of the journal of a run.
///
/// # Errors
/// [`JournalError`] if the object has a later format, is of another run or stack, or lacks lines.
pub(super) fn read_object(
    location: &str,
    stack: &str,
    run: &str,
    number: u64,
    content: Vec<u8>,
) -> Result<JournalContent, JournalError> {
    if let Some(seal) = read_seal(&content) {
        return Ok(JournalContent::Seal(seal));
    }
    let damaged = |line, text: &str| {
        let source = Box::new(FormatError::Malformed(serde_json::Error::custom(text)));
        JournalError::Damaged { path: location.into(), line, source }
    };
    let text = String::from_utf8(content).map_err(|_| damaged(1, "it is not UTF-8"))?;
    let (first, rest) = text.split_once('\n').ok_or_else(|| damaged(1, "it is incomplete"))?;
    let header: StoredHeader = json::from_slice(first.as_bytes()).map_err(|error| damaged(1, &error.to_string()))?;
    if header.journal != VERSION {
        return Err(JournalError::UnsupportedVersion { path: location.into(), version: header.journal });
    }
    let Some(segment) = header.segment else { return Err(damaged(1, "it has no `segment`")) };
    if header.stack.as_deref() != Some(stack) {
        return Err(damaged(1, "it is a journal of another stack"));
    }
    if header.run.as_deref() != Some(run) || segment.number != number {
        return Err(damaged(1, "it is an object of another run, or has another number"));
    }
    if !rest.ends_with('\n') && !rest.is_empty() {
        return Err(damaged(rest.lines().count() + 1, "the line is incomplete"));
    }
    let lines: Vec<String> = rest.lines().map(str::to_owned).collect();
    if segment.first == 0 || lines.iter().filter(|line| !is_close_line(line)).count() != segment.lines {
        return Err(damaged(1, "it has other lines than its first line says"));
    }
    Ok(JournalContent::Segment(Segment { header, first: segment.first, lines }))
}
