//! Writes the journal of a run.

use std::sync::Arc;

use jiff::Timestamp;

use super::closing::{Closing, KeptJournal};
use super::encode::{write_close, write_phase, write_record};
use super::error::JournalError;
use super::file::JournalFile;
use super::folder::{JournalFolders, JournalPlace};
use super::header::{StoredHeader, VERSION};
use crate::digest::{CheckpointDigest, digest};
use crate::error::StateError;
use crate::format::UpdateKind;
use crate::ledger::Ledger;
use crate::record::{Effect, Record};
use crate::secrets::{Crypter, SecretsError};
use crate::snapshot::{SecretsDescription, Snapshot};
use crate::store::{HistoryEntry, StackReference};
use crate::unrecorded::{ChangeCollector, Unrecorded, UnrecordedChange};

/// Content of the first line of a journal.
#[derive(Debug)]
pub(crate) struct JournalHeader {
    /// The stack.
    pub(crate) stack: StackReference,
    /// Checkpoint that the run starts from; `None` if there is none.
    pub(crate) base: Option<CheckpointDigest>,
    /// Secrets manager that encrypts the secrets in the journal.
    pub(crate) secrets: Option<SecretsDescription>,
}

/// Journal of one run. The first appended record creates its file.
///
/// All records stay in memory, so that the journal can be written anew as a whole: in the folder of the backend if it
/// was removed there, and else in a fallback folder. What no file contains is reported in [`Unrecorded`].
pub(crate) struct Journal {
    folders: JournalFolders,
    /// Name of the file.
    name: String,
    header: JournalHeader,
    started: String,
    /// Kind of the update; `None` before the first phase.
    update: Option<UpdateKind>,
    /// State that the run starts from.
    base: Snapshot,
    lines: Vec<Line>,
    file: Option<JournalFile>,
    crypter: Option<Arc<dyn Crypter>>,
    unrecorded: Unrecorded,
    /// End of the run, once it is about to save the checkpoint.
    closed: Option<Closing>,
    /// Last place in which a file may exist.
    last_place: JournalPlace,
    /// `true` if the run has saved its state, or has reported what it could not save.
    has_ended: bool,
    buffer: Vec<u8>,
}

/// Line of a journal.
enum Line {
    Record(Record),
    /// Record that is written together with the next other one, and that may be lost without harm.
    Deferred(Record),
    Phase,
}

impl Journal {
    /// Creates the journal of a run that starts from a state. Writes nothing yet.
    pub(crate) fn new(folders: JournalFolders, header: JournalHeader, base: Snapshot, unrecorded: Unrecorded) -> Self {
        Self {
            folders,
            name: uuid::Uuid::new_v4().to_string(),
            header,
            started: Timestamp::now().to_string(),
            update: None,
            base,
            lines: Vec::new(),
            file: None,
            crypter: None,
            unrecorded,
            closed: None,
            last_place: JournalPlace::BACKEND,
            has_ended: false,
            buffer: Vec::new(),
        }
    }

    /// Sets the key of the secrets in the records.
    pub(crate) fn set_crypter(&mut self, crypter: Arc<dyn Crypter>) {
        self.crypter = Some(crypter);
    }

    /// Returns whether the key of the secrets is set.
    pub(crate) fn has_crypter(&self) -> bool {
        self.crypter.is_some()
    }

    /// Keeps a record until the next appended one.
    pub(crate) fn defer(&mut self, record: Record) {
        self.lines.push(Line::Deferred(record));
    }

    /// Begins another phase of the run: its entries are numbered from 0 in the order of the state that the previous
    /// phase left. `kind` is that of the history entry of the run, if it ends with this phase.
    pub(crate) fn begin_phase(&mut self, kind: UpdateKind) {
        self.update = Some(kind);
        if !self.lines.is_empty() {
            self.lines.push(Line::Phase);
        }
    }

    /// Writes a record, and all earlier ones that are not written yet. If the file was removed or cannot be written,
    /// writes the whole journal anew. The end of an operation may go into a fallback folder, the begin of one may not.
    ///
    /// # Errors
    /// [`StateError`]. The begin of an operation, and a record whose secrets have no key yet, is not part of the journal
    /// then. Other records are: they are written with the next one, and reported until then.
    pub(crate) fn append(&mut self, record: &Record) -> Result<(), StateError> {
        let is_begin = matches!(record, Record::Begin { .. });
        self.lines.push(Line::Record(record.clone()));
        let Err(error) = self.write_lines(is_begin) else { return Ok(()) };
        if is_begin || matches!(error, WriteError::Secrets(SecretsError::KeyNeeded)) {
            self.lines.pop();
            return Err(error.into());
        }
        // A file that was removed contains nothing that the next run could find.
        let recorded = self.file.as_ref().filter(|file| file.exists()).map_or(0, |file| file.lines);
        let changes = self.changes_after(recorded);
        self.unrecorded.set_changes(changes.clone());
        Err(match error {
            WriteError::Journal(error) => JournalError::Unrecorded { changes, reason: Box::new(error) }.into(),
            WriteError::Secrets(error) => error.into(),
        })
    }

    /// Writes the digest of the checkpoint that is about to be saved, with the entry that is added to the history then,
    /// and flushes the file. A run that has confirmed entries and changed none writes nothing.
    ///
    /// # Errors
    /// [`JournalError`].
    pub(crate) fn close(&mut self, checkpoint: &str, history: Option<HistoryEntry>) -> Result<(), StateError> {
        if self.file.is_none() && !self.has_changes() {
            return Ok(());
        }
        let is_intact = self.file.as_ref().is_some_and(|file| file.check().is_ok());
        self.closed = Some(Closing { checkpoint: digest(checkpoint), history });
        if is_intact { self.write_close_line() } else { Ok(self.write_anew(JournalPlace::BACKEND)?) }
    }

    /// Returns whether a record changes an entry, or begins an operation.
    fn has_changes(&self) -> bool {
        let is_keep = |effect: &Effect| matches!(effect, Effect::Keep(_));
        self.lines.iter().any(|line| match line {
            Line::Record(_) => true,
            Line::Deferred(Record::Change(effects)) => !effects.iter().all(is_keep),
            Line::Deferred(_) => true,
            Line::Phase => false,
        })
    }

    /// Appends the line that closes the journal, unless the file has it.
    fn write_close_line(&mut self) -> Result<(), StateError> {
        if let (Some(file), Some(closing)) = (&mut self.file, &self.closed)
            && !file.is_closed
        {
            self.buffer.clear();
            write_close(&mut self.buffer, closing);
            file.close(&self.buffer)?;
        }
        Ok(())
    }

    /// Marks the records as saved in the checkpoint. The file stays.
    pub(crate) fn mark_saved(&mut self) {
        self.has_ended = true;
        self.unrecorded.take();
    }

    /// Removes the journal after its records were saved in the checkpoint.
    ///
    /// # Errors
    /// [`JournalError::Path`].
    pub(crate) fn remove(&mut self) -> Result<(), JournalError> {
        self.mark_saved();
        if self.file.take().is_none() && self.last_place == JournalPlace::BACKEND {
            return Ok(());
        }
        // The file in the backend comes first: without the later one, it would be taken for the journal.
        let places = self.folders.places().filter(|place| *place <= self.last_place);
        let removed = places.map(|place| self.folders.remove(place, &self.header.stack, &self.name));
        removed.fold(Ok(()), Result::and)
    }

    /// Makes sure that a file contains all records, after the checkpoint could not be saved. Returns the file, whose
    /// content was checked; `None` if nothing was appended, or if no file could be written. Reports the changes that the
    /// file lacks.
    pub(crate) fn keep(&mut self) -> Option<KeptJournal> {
        self.has_ended = true;
        if !self.has_records() {
            return None;
        }
        // A save that failed late may have replaced the checkpoint: the next run recognizes it by the last line.
        let is_kept = self.write_lines(false).is_ok() && self.write_close_line().is_ok() && self.is_verified()
            || self.folders.places().any(|place| self.rewrite(place).is_ok() && self.is_verified());
        // Without a complete file, the first one that was written may contain the first records.
        let written = if is_kept || self.is_verified() { self.written() } else { 0 };
        let changes = if is_kept { Vec::new() } else { self.changes_after(written) };
        let lacks_changes = !changes.is_empty();
        self.unrecorded.set_changes(changes);
        let file = self.file.as_ref().filter(|_| written > 0)?;
        let is_fallback = file.place != JournalPlace::BACKEND;
        Some(KeptJournal { path: file.path.clone(), is_fallback, lacks_changes })
    }

    /// Returns whether a record was appended that is not deferred.
    pub(crate) fn has_records(&self) -> bool {
        self.lines.iter().any(|line| matches!(line, Line::Record(_)))
    }

    fn is_verified(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.verify().is_ok())
    }

    /// Returns the number of lines in the file.
    fn written(&self) -> usize {
        self.file.as_ref().map_or(0, |file| file.lines)
    }

    /// Writes the lines that the file lacks.
    fn write_lines(&mut self, is_begin: bool) -> Result<(), WriteError> {
        let Some(file) = &self.file else {
            self.encode(0)?;
            let (folders, stack) = (&self.folders, &self.header.stack);
            return match JournalFile::create(folders, stack, &self.name, &self.buffer, self.lines.len()) {
                Ok(file) => {
                    self.set_file(file);
                    Ok(())
                }
                Err(error) if is_begin => Err(error.into()),
                Err(error) => self.write_in_fallback(JournalPlace::BACKEND, error),
            };
        };
        let place = file.place;
        if is_begin && place != JournalPlace::BACKEND {
            return Err(JournalError::InFallback { journal: file.path.clone() }.into());
        }
        if let Err(error) = file.check_open() {
            return match self.rewrite(place) {
                Ok(()) => Ok(()),
                Err(_) if !is_begin => self.write_in_fallback(place, error),
                Err(error) => Err(error),
            };
        }
        self.encode(self.written())?;
        let lines = self.lines.len() - self.written();
        let Some(file) = &mut self.file else { return Ok(()) };
        match file.append(&self.buffer, lines) {
            Ok(()) => {
                self.unrecorded.set_changes(Vec::new());
                Ok(())
            }
            Err(error) if is_begin => Err(error.into()),
            Err(error) => self.write_in_fallback(place, error),
        }
    }

    /// Writes the journal anew in a place, or in a later one.
    fn write_anew(&mut self, first: JournalPlace) -> Result<(), WriteError> {
        self.rewrite(first).or_else(|error| match error {
            WriteError::Journal(error) => self.write_in_fallback(first, error),
            WriteError::Secrets(_) => Err(error),
        })
    }

    /// Writes the journal anew in the first place after `failed` in which that is possible. Fails with `error` if there
    /// is none.
    fn write_in_fallback(&mut self, failed: JournalPlace, error: JournalError) -> Result<(), WriteError> {
        let later = self.folders.places().filter(|place| *place > failed);
        for place in later {
            if self.rewrite(place).is_ok() {
                return Ok(());
            }
        }
        Err(error.into())
    }

    /// Writes the journal anew in a place.
    fn rewrite(&mut self, place: JournalPlace) -> Result<(), WriteError> {
        self.encode(0)?;
        if let Some(closing) = &self.closed {
            write_close(&mut self.buffer, closing);
        }
        self.last_place = self.last_place.max(place);
        let (folders, stack) = (&self.folders, &self.header.stack);
        let (lines, is_closed) = (self.lines.len(), self.closed.is_some());
        let file = JournalFile::rewrite(folders, place, stack, &self.name, &self.buffer, lines, is_closed)?;
        self.set_file(file);
        Ok(())
    }

    /// Sets the file, which contains all lines.
    fn set_file(&mut self, file: JournalFile) {
        self.unrecorded.set_changes(Vec::new());
        self.file = Some(file);
    }

    /// Encodes the lines from a number on into the buffer, for a new file with its first line.
    fn encode(&mut self, from: usize) -> Result<(), SecretsError> {
        self.buffer.clear();
        if from == 0 {
            self.encode_header();
        }
        let crypter = self.crypter.as_deref();
        self.lines[from..].iter().try_for_each(|line| match line {
            Line::Record(record) | Line::Deferred(record) => write_record(&mut self.buffer, record, crypter),
            Line::Phase => {
                write_phase(&mut self.buffer);
                Ok(())
            }
        })
    }

    fn encode_header(&mut self) {
        let header = StoredHeader {
            journal: VERSION,
            stack: Some(self.header.stack.to_string()),
            base: self.header.base.as_ref().map(|base| base.as_str().to_owned()),
            started: Some(self.started.clone()),
            update: self.update.map(|kind| kind.as_str().to_owned()),
            secrets: self.header.secrets.clone().map(Into::into),
        };
        serde_json::to_writer(&mut self.buffer, &header).expect("texts and numbers are always JSON");
        self.buffer.push(b'\n');
    }

    /// Returns the changes of the records from a number of lines on. Deferred records have none.
    fn changes_after(&self, written: usize) -> Vec<UnrecordedChange> {
        let mut ledger = Ledger::new(self.base.clone());
        let mut collector = ChangeCollector::default();
        for (index, line) in self.lines.iter().enumerate() {
            match line {
                Line::Phase => ledger = Ledger::new(ledger.snapshot()),
                Line::Deferred(record) => ledger.apply(record),
                Line::Record(record) => {
                    if index >= written {
                        collector.add(&ledger, record);
                    }
                    ledger.apply(record);
                }
            }
        }
        collector.changes()
    }
}

/// Reports the journal of a run that ends without an attempt to save its state, or what the journal lacks.
impl Drop for Journal {
    fn drop(&mut self) {
        if self.has_ended || !self.has_records() {
            return;
        }
        match self.file.as_ref().filter(|file| file.verify().is_ok()) {
            Some(file) => {
                self.unrecorded.set_changes(self.changes_after(file.lines));
                self.unrecorded.set_journal(&file.path);
            }
            None => self.unrecorded.set_changes(self.changes_after(0)),
        }
    }
}

/// Reason why lines could not be written.
enum WriteError {
    /// The file cannot be written.
    Journal(JournalError),
    /// The lines cannot be encrypted; nothing was written.
    Secrets(SecretsError),
}

impl From<JournalError> for WriteError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl From<SecretsError> for WriteError {
    fn from(error: SecretsError) -> Self {
        Self::Secrets(error)
    }
}

impl From<WriteError> for StateError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Journal(error) => error.into(),
            WriteError::Secrets(error) => error.into(),
        }
    }
}
