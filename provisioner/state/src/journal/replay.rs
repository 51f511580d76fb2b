//! Reads the journal of a run that did not end.

use std::collections::BTreeMap;
use std::path::Path;

use bridge::fs::read_if_exists;
use serde::de::IgnoredAny;

use super::chain::Chain;
use super::closing::{Closing, FileEnd, is_close_line};
use super::creations::Creations;
use super::decode::{self, Line};
use super::error::JournalError;
use super::header::{StoredHeader, StoredSecrets, VERSION};
use super::stored::StoredJournal;
use crate::MAX_STATE_BYTES;
use crate::format::{FormatError, UpdateKind, UpdateOrigin};
use crate::record::Record;
use crate::secrets::{Crypter, Keyring, SecretsError};
use crate::snapshot::SecretsDescription;

/// Content of a journal.
#[derive(Debug)]
pub(crate) struct Replay {
    /// Digest of the checkpoint that the journal starts from.
    pub(crate) base: Option<String>,
    /// Start of the run, RFC 3339.
    pub(crate) started: String,
    /// Records of each phase; none if the journal is merged.
    pub(crate) phases: Vec<Vec<Record>>,
    /// User and host of the run; `None` if no segment says it.
    pub(crate) by: Option<String>,
    /// Kind of the update; `None` in older journals.
    pub(crate) update: Option<UpdateKind>,
    /// Origin of the update; `None` in older journals, and if it was not known when the journal began.
    pub(crate) origin: Option<UpdateOrigin>,
    /// End of the run, if it was about to save the checkpoint.
    pub(crate) closed: Option<Closing>,
    /// `true` if the last line, or the line before the `close` line of a recovery, is incomplete and was ignored.
    pub(crate) last_record_incomplete: bool,
    /// Position at which the file ends.
    pub(crate) end: FileEnd,
    /// Length of the file, in bytes.
    pub(crate) length: u64,
    /// `true` if the file could be read from its first line on.
    pub(crate) has_file: bool,
    /// Number of lines whose records are in `phases`, or in a checkpoint.
    pub(crate) lines: usize,
    /// `true` if a checkpoint has all records but the late ones: another run has taken the journal over.
    pub(crate) is_merged: bool,
    /// Creations that a run has recorded after another one had taken its journal over, or behind a gap in the store.
    pub(crate) late: Creations,
}

/// Text of a journal in a file.
struct FileText {
    header: StoredHeader,
    /// Lines after the first.
    body: String,
    end: FileEnd,
    length: u64,
}

impl FileText {
    /// Reads the file of a journal. Returns `None` if it is missing, because its run has ended, or if the first line is
    /// incomplete, because no operation can have begun.
    fn read(path: &Path) -> Result<Option<Self>, JournalError> {
        // The run may have ended and removed the journal since it was listed.
        let Some(bytes) = read_if_exists(path, MAX_STATE_BYTES)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        let Some((first, rest)) = text.split_once('\n') else { return Ok(None) };
        let header: StoredHeader = serde_json::from_str(first).map_err(|error| JournalError::Damaged {
            path: path.to_owned(),
            line: 1,
            source: Box::new(FormatError::Malformed(error)),
        })?;
        if header.journal != VERSION {
            return Err(JournalError::UnsupportedVersion { path: path.to_owned(), version: header.journal });
        }
        Ok(Some(Self { header, body: rest.to_owned(), end: FileEnd::of(&text), length: bytes.len() as u64 }))
    }

    /// Returns the complete lines by their numbers, without `close` lines.
    fn lines(&self) -> BTreeMap<usize, &str> {
        let complete = self.body.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        // A torn line that a recovery has ended with a newline is none.
        let is_whole = |line: &&str| serde_json::from_str::<IgnoredAny>(line).is_ok();
        (1..).zip(complete.filter(|line| !is_close_line(line)).filter(is_whole)).collect()
    }
}

/// Reads a journal: from its file or from its objects, of which the longer one counts. `checkpoint` is the digest of the current
/// checkpoint. Returns `None` if there is neither, because its run has ended, or if no operation can have begun. Fetches the
/// key only if the journal contains secrets.
///
/// # Errors
/// [`JournalError`] if the file cannot be read, if the program does not support its version, if the first line or a
/// line before the last is malformed, or if a secret cannot be decrypted.
pub(crate) async fn replay(
    stored: &StoredJournal,
    checkpoint: Option<&str>,
    keyring: &Keyring,
) -> Result<Option<Replay>, JournalError> {
    let file = stored.files.as_ref().map(|files| FileText::read(&files.path)).transpose()?.flatten();
    let path = &stored.path();
    let chain = stored.chain.as_ref();
    // Lines have numbers only where a store may have some of them.
    let numbered = file.as_ref().filter(|_| stored.may_have_objects);
    let lines_of_file = numbered.map(FileText::lines).unwrap_or_default();
    let of_store = chain.map(Chain::lines).unwrap_or_default();
    let Some(header) = file.as_ref().map(|file| &file.header).or(chain.and_then(Chain::header)) else {
        // Only a seal is left, or no operation has begun.
        return Ok(None);
    };
    let (in_file, in_store) = (contiguous(&lines_of_file), contiguous(&of_store));
    let seal = chain.and_then(|chain| chain.counting_seal(checkpoint, in_file));
    let merged = seal.map(|seal| seal.lines);
    let saved = match seal {
        // The history has its entry once the segments are gone.
        Some(seal) if chain.is_some_and(Chain::has_segments) => seal.closing(),
        Some(_) => None,
        None => chain.and_then(|chain| chain.has_saved(checkpoint)),
    };
    // What is merged, in the file or in the contiguous part of the store is not late.
    let known = merged.unwrap_or_else(|| in_file.max(in_store));
    let late: Vec<&str> = match &saved {
        // The run itself has saved.
        Some(_) if merged.is_none() => Vec::new(),
        _ => of_store
            .iter()
            .chain(&lines_of_file)
            .filter(|(number, _)| **number > known)
            .collect::<BTreeMap<_, _>>()
            .into_values()
            .copied()
            .collect(),
    };
    let from_store = || {
        let mut text: String = of_store.iter().take(in_store).flat_map(|(_, line)| [line, "\n"]).collect();
        text.extend(chain.and_then(|chain| chain.close_line(in_store)));
        text
    };
    let is_saved = merged.is_some() || saved.is_some();
    let of_file = file.as_ref().filter(|_| in_file >= in_store && !is_saved);
    let body = match of_file {
        Some(file) => file.body.clone(),
        None if is_saved => String::new(),
        None => from_store(),
    };
    // A line of a file may be incomplete; an object is written as a whole.
    let last_line = if of_file.is_some() { LastLine::MayBeIncomplete } else { LastLine::IsComplete };
    let needs_key = |error: &JournalError| matches!(error, JournalError::Damaged { source, .. } if source.needs_key());
    let read_both = |crypter: Option<&dyn Crypter>| {
        Ok::<_, JournalError>((read_lines(path, &body, last_line, crypter)?, read_late(path, &late, crypter)?))
    };
    let (read, late) = match read_both(None) {
        Err(error) if needs_key(&error) => {
            let crypter = crypter(header.secrets.clone(), keyring).await;
            let crypter = crypter.map_err(|error| JournalError::Damaged {
                path: path.clone(),
                line: 1,
                source: Box::new(FormatError::Secret(error)),
            })?;
            read_both(Some(&*crypter))?
        }
        read => read?,
    };
    let Lines { phases, closed, last_record_incomplete } = read;
    let (end, length) = file.as_ref().map_or((FileEnd::AfterLine, 0), |file| (file.end, file.length));
    Ok(Some(Replay {
        base: header.base.clone(),
        started: header.started.clone().unwrap_or_default(),
        by: chain.and_then(Chain::header).and_then(|header| header.by.clone()),
        update: header.update.as_deref().and_then(UpdateKind::parse),
        origin: header.origin.as_deref().cloned(),
        phases,
        closed: saved.or(closed),
        last_record_incomplete,
        end,
        length,
        has_file: file.is_some(),
        lines: known,
        is_merged: merged.is_some(),
        late,
    }))
}

/// Returns the number of lines that follow each other from the first one on.
fn contiguous(lines: &BTreeMap<usize, &str>) -> usize {
    lines.keys().zip(1..).take_while(|(number, expected)| **number == *expected).count()
}

/// Returns the creations in lines that do not follow those that were merged: what has ended exists, whatever came before.
fn read_late(path: &Path, lines: &[&str], crypter: Option<&dyn Crypter>) -> Result<Creations, JournalError> {
    let mut records = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        let damaged = |error| JournalError::Damaged { path: path.to_owned(), line: index + 1, source: Box::new(error) };
        match decode::read_line(line, crypter).map_err(damaged)? {
            Line::Record(record, ended) => records.push((record, ended)),
            Line::Phase | Line::Close(_) => {}
        }
    }
    Ok(Creations::of_late(&records))
}

async fn crypter(
    secrets: Option<StoredSecrets>,
    keyring: &Keyring,
) -> Result<std::sync::Arc<dyn Crypter>, SecretsError> {
    let description = SecretsDescription::from(secrets.ok_or(SecretsError::KeyNeeded)?);
    keyring.manager(&description)?.crypter().await
}

struct Lines {
    phases: Vec<Vec<Record>>,
    closed: Option<Closing>,
    last_record_incomplete: bool,
}

/// Property of the last line of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastLine {
    IsComplete,
    MayBeIncomplete,
}

fn read_lines(
    path: &Path,
    text: &str,
    last_line: LastLine,
    crypter: Option<&dyn Crypter>,
) -> Result<Lines, JournalError> {
    let mut lines = Lines { phases: Vec::new(), closed: None, last_record_incomplete: false };
    let mut phase = Vec::new();
    let mut rest = text.split_inclusive('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    while let Some((index, text)) = rest.next() {
        match decode::read_line(text, crypter) {
            Ok(Line::Record(record, _)) => {
                // A recovery closed the journal, but the run was still alive and continued.
                lines.closed = None;
                phase.push(record);
            }
            Ok(Line::Phase) => lines.phases.push(std::mem::take(&mut phase)),
            Ok(Line::Close(closing)) => lines.closed = Some(closing),
            Err(FormatError::Malformed(_))
                if last_line == LastLine::MayBeIncomplete
                    && rest.peek().is_none_or(|(_, next)| is_close_line(next)) =>
            {
                lines.last_record_incomplete = true;
            }
            Err(error) => {
                let (path, source) = (path.to_owned(), Box::new(error));
                return Err(JournalError::Damaged { path, line: index + 2, source });
            }
        }
    }
    lines.phases.push(phase);
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::append_close_line;
    use super::super::folder::JournalFiles;
    use super::*;
    use crate::digest::digest;
    use crate::store::{HistoryEntry, StackReference};

    const HEADER: &str = "{\"journal\":1,\"base\":null,\"started\":\"\",\"secrets\":null}\n";

    async fn replay_file(path: &Path) -> Result<Option<Replay>, JournalError> {
        let files = Some(JournalFiles { path: path.to_owned(), is_fallback: false, older: Vec::new() });
        let (stack, location) = (StackReference::new("reef", "dev").unwrap(), String::new());
        let stored =
            StoredJournal { run: "r".to_owned(), files, chain: None, stack, location, may_have_objects: false };
        replay(&stored, None, &Keyring::new(None)).await
    }

    #[tokio::test]
    async fn missing_journal_is_replayed_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let replayed = replay_file(&folder.path().join("missing")).await.unwrap();
        assert!(replayed.is_none());
    }

    #[tokio::test]
    async fn named_pipe_among_the_journals_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = replay_file(&path).await.unwrap_err();
        assert!(bridge::error::chain(&error).ends_with("it is a named pipe, not a regular file"), "{error:?}");
    }

    #[tokio::test]
    async fn incomplete_last_line_is_terminated_before_the_close_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        for (last, incomplete) in [("{\"phase\":{}}", false), ("{\"pha", true), ("{\"phase\":{}}\n", false)] {
            fs::write(&path, format!("{HEADER}{last}")).unwrap();
            let interrupted = replay_file(&path).await.unwrap().unwrap();
            let end = if last.ends_with('\n') { FileEnd::AfterLine } else { FileEnd::InLine };
            assert_eq!((interrupted.last_record_incomplete, interrupted.end), (incomplete, end), "{last}");
            for history in [None, Some(HistoryEntry::new("{\"kind\":\"destroy\"}"))] {
                let closing = Closing { checkpoint: digest("saved"), history };
                append_close_line(&path, interrupted.end, &closing).unwrap();
                let closed = replay_file(&path).await.unwrap().unwrap();
                assert_eq!(closed.closed, Some(closing), "{last}");
            }
        }
    }
}
