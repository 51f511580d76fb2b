//! Reads the journal of a run that did not end.

use std::path::Path;

use bridge::fs::read_if_exists;

use super::closing::{Closing, FileEnd};
use super::decode::{self, Line};
use super::error::JournalError;
use super::header::{StoredHeader, StoredSecrets, VERSION};
use crate::MAX_STATE_BYTES;
use crate::format::{FormatError, UpdateKind};
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
    /// Records of each phase.
    pub(crate) phases: Vec<Vec<Record>>,
    /// Kind of the update; `None` in older journals.
    pub(crate) update: Option<UpdateKind>,
    /// End of the run, if it was about to save the checkpoint.
    pub(crate) closed: Option<Closing>,
    /// `true` if the last line, or the line before the `close` line of a recovery, is incomplete and was ignored.
    pub(crate) last_record_incomplete: bool,
    /// Position at which the file ends.
    pub(crate) end: FileEnd,
    /// Length of the file, in bytes.
    pub(crate) length: u64,
}

/// Reads a journal. Returns `None` if the file is missing, because its run has ended, or if the first line is
/// incomplete, because no operation can have begun. Fetches the key only if the journal contains secrets.
///
/// # Errors
/// [`JournalError`] if the file cannot be read, if the program does not support its version, if the first line or a
/// line before the last is malformed, or if a secret cannot be decrypted.
pub(crate) async fn replay(path: &Path, keyring: &Keyring) -> Result<Option<Replay>, JournalError> {
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
    let read = match read_lines(path, rest, None) {
        Err(JournalError::Damaged { source, .. }) if source.needs_key() => {
            let crypter = crypter(header.secrets, keyring).await;
            let crypter = crypter.map_err(|error| JournalError::Damaged {
                path: path.to_owned(),
                line: 1,
                source: Box::new(FormatError::Secret(error)),
            })?;
            read_lines(path, rest, Some(&*crypter))?
        }
        read => read?,
    };
    let (started, base) = (header.started.unwrap_or_default(), header.base);
    let update = header.update.as_deref().and_then(UpdateKind::parse);
    let Lines { phases, closed, last_record_incomplete } = read;
    let end = FileEnd::of(&text);
    Ok(Some(Replay { base, started, update, phases, closed, last_record_incomplete, end, length: bytes.len() as u64 }))
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

fn read_lines(path: &Path, text: &str, crypter: Option<&dyn Crypter>) -> Result<Lines, JournalError> {
    let mut lines = Lines { phases: Vec::new(), closed: None, last_record_incomplete: false };
    let mut phase = Vec::new();
    let mut rest = text.split_inclusive('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    while let Some((index, text)) = rest.next() {
        match decode::read_line(text, crypter) {
            Ok(Line::Record(record)) => {
                // A recovery closed the journal, but the run was still alive and continued.
                lines.closed = None;
                phase.push(record);
            }
            Ok(Line::Phase) => lines.phases.push(std::mem::take(&mut phase)),
            Ok(Line::Close(closing)) => lines.closed = Some(closing),
            Err(FormatError::Malformed(_)) if rest.peek().is_none() || is_close_line(rest.peek()) => {
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

/// Returns `true` for the `close` line that a recovery writes after an incomplete line.
fn is_close_line(line: Option<&(usize, &str)>) -> bool {
    line.is_some_and(|(_, text)| text.starts_with("{\"close\":"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::append_close_line;
    use super::*;
    use crate::digest::digest;
    use crate::store::HistoryEntry;

    const HEADER: &str = "{\"journal\":1,\"base\":null,\"started\":\"\",\"secrets\":null}\n";

    #[tokio::test]
    async fn missing_journal_is_replayed_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let replayed = replay(&folder.path().join("missing"), &Keyring::new(None)).await.unwrap();
        assert!(replayed.is_none());
    }

    #[tokio::test]
    async fn named_pipe_among_the_journals_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = replay(&path, &Keyring::new(None)).await.unwrap_err();
        assert!(bridge::error::chain(&error).ends_with("it is a named pipe, not a regular file"), "{error:?}");
    }

    #[tokio::test]
    async fn incomplete_last_line_is_terminated_before_the_close_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        for (last, incomplete) in [("{\"phase\":{}}", false), ("{\"pha", true), ("{\"phase\":{}}\n", false)] {
            fs::write(&path, format!("{HEADER}{last}")).unwrap();
            let interrupted = replay(&path, &Keyring::new(None)).await.unwrap().unwrap();
            let end = if last.ends_with('\n') { FileEnd::AfterLine } else { FileEnd::InLine };
            assert_eq!((interrupted.last_record_incomplete, interrupted.end), (incomplete, end), "{last}");
            for history in [None, Some(HistoryEntry::new("{\"kind\":\"destroy\"}"))] {
                let closing = Closing { checkpoint: digest("saved"), history };
                append_close_line(&path, interrupted.end, &closing).unwrap();
                let closed = replay(&path, &Keyring::new(None)).await.unwrap().unwrap();
                assert_eq!(closed.closed, Some(closing), "{last}");
            }
        }
    }
}
