//! Writes the journal of a run.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::closing::{Closing, KeptJournal};
use super::encode::{write_close, write_phase, write_record};
use super::error::JournalError;
use super::file::JournalFile;
use super::folder::{JournalFolders, JournalPlace};
use super::header::{StoredHeader, VERSION};
use super::mode::JournalMode;
use super::plan::{JournalHeader, JournalPlan};
use super::segment_writer::SegmentWriter;
use super::write_error::WriteError;
use crate::digest::digest;
use crate::error::StateError;
use crate::format::{UpdateKind, UpdateOrigin};
use crate::ledger::Ledger;
use crate::receipt::Receipt;
use crate::record::{Effect, OperationId, Record, Subject};
use crate::secrets::{Crypter, SecretsError};
use crate::snapshot::{OperationKind, Snapshot};
use crate::store::HistoryEntry;
use crate::unrecorded::{ChangeCollector, Unrecorded, UnrecordedChange};

/// Journal of one run. The first appended record creates its file.
///
/// All records stay in memory, so that the journal can be written anew as a whole: in the folder of the backend if it
/// was removed there, and else in a fallback folder. What no file contains is reported in [`Unrecorded`].
pub(crate) struct Journal {
    folders: JournalFolders,
    /// Name of the file.
    name: String,
    mode: JournalMode,
    segments: Option<SegmentWriter>,
    /// Number of lines that the writer of the segments has.
    sent: usize,
    /// `true` once an operation has begun. A run that begins none, such as a refresh that finds nothing, sends nothing to the store.
    has_operations: bool,
    /// Kinds of the operations of this phase.
    kinds: HashMap<OperationId, OperationKind>,
    header: JournalHeader,
    started: String,
    /// Kind of the update; `None` before the first phase.
    update: Option<UpdateKind>,
    /// Origin of the update, if it was known before the first record.
    origin: Option<UpdateOrigin>,
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
    /// Lines that the buffer has, and its position after the first line of a file.
    buffered: Buffered,
}

/// Content of the buffer: lines from a number on, which begin at a position.
#[derive(Clone, Copy, Debug, Default)]
struct Buffered {
    from: usize,
    start: usize,
}

/// Line of a journal.
enum Line {
    Record(Record, Option<OperationKind>),
    /// Record that is written together with the next other one, and that may be lost without harm.
    Deferred(Record),
    Phase,
}

impl Journal {
    /// Creates the journal of a run that starts from a state. Writes nothing yet.
    pub(crate) fn new(plan: JournalPlan, header: JournalHeader, base: Snapshot, unrecorded: Unrecorded) -> Self {
        let JournalPlan { folders, run, mode, segments } = plan;
        Self {
            folders,
            name: run,
            mode,
            segments,
            sent: 0,
            has_operations: false,
            kinds: HashMap::new(),
            header,
            started: Timestamp::now().to_string(),
            update: None,
            origin: None,
            base,
            lines: Vec::new(),
            file: None,
            crypter: None,
            unrecorded,
            closed: None,
            last_place: JournalPlace::BACKEND,
            has_ended: false,
            buffer: Vec::new(),
            buffered: Buffered::default(),
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

    /// Sets the origin of the update, for its history entry if it is interrupted. Has no effect after the first record.
    pub(crate) fn set_origin(&mut self, origin: UpdateOrigin) {
        if self.lines.is_empty() {
            self.origin = Some(origin);
        }
    }

    /// Begins another phase of the run: its entries are numbered from 0 in the order of the state that the previous
    /// phase left. `kind` is that of the history entry of the run, if it ends with this phase.
    pub(crate) fn begin_phase(&mut self, kind: UpdateKind) {
        self.update = Some(kind);
        self.kinds.clear();
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
    pub(crate) fn append(&mut self, record: &Record) -> Result<Receipt, StateError> {
        let is_begin = matches!(record, Record::Begin { .. });
        let kind = self.kind_of(record);
        // A line of a segment may have to be read without the one that begins its operation.
        let is_creation = matches!((record, kind), (Record::End { .. }, Some(OperationKind::Creating)));
        self.lines.push(Line::Record(record.clone(), kind.filter(|_| is_creation && self.segments.is_some())));
        let written = self.write_lines(is_begin);
        let is_awaited = self.is_awaited(record, kind);
        let error = match written {
            Ok(()) if self.segments.is_some() => return self.send(is_awaited),
            Ok(()) => {
                let file = self.file.as_ref().filter(|_| is_awaited);
                return Ok(file.map_or_else(Receipt::complete, |file| file.receipt(self.header.stack.clone())));
            }
            Err(error) if is_begin || matches!(error, WriteError::Secrets(SecretsError::KeyNeeded)) => {
                self.lines.pop();
                return Err(error.into());
            }
            Err(error) => error,
        };
        // The store may have what this machine could not write. The error is that of the file.
        self.send(false).map(drop).ok();
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
        let has_segments = self.sent > 0;
        let is_intact = self.file.as_ref().is_some_and(|file| file.check().is_ok());
        self.closed = Some(Closing { checkpoint: digest(checkpoint), history });
        let closed = match is_intact {
            true => self.write_close_line(),
            false => self.write_anew(JournalPlace::BACKEND).map_err(StateError::from),
        };
        if has_segments {
            drop(self.send(false)?);
            if let (Some(segments), Some(closing)) = (&self.segments, &self.closed) {
                let mut line = Vec::new();
                write_close(&mut line, closing);
                segments.push_close(self.stored_header(), &line);
            }
        }
        closed
    }

    /// Returns the writer of the segments, if the store has or gets any.
    pub(crate) fn segments(&self) -> Option<SegmentWriter> {
        self.segments.clone().filter(|_| self.sent > 0)
    }

    /// Returns the kind of the operation that a record begins or ends, and remembers the operations that have begun.
    fn kind_of(&mut self, record: &Record) -> Option<OperationKind> {
        match record {
            Record::Begin { operation, kind, .. } => {
                self.has_operations = true;
                self.kinds.insert(*operation, *kind);
                Some(*kind)
            }
            Record::End { operation, .. } => self.kinds.get(operation).copied(),
            Record::Change(_) => None,
        }
    }

    /// Returns whether the run waits for any record.
    pub(crate) fn is_awaited_at_all(&self) -> bool {
        self.mode != JournalMode::Local
    }

    /// Returns whether the run waits until a record is as durable as the mode demands.
    fn is_awaited(&self, record: &Record, kind: Option<OperationKind>) -> bool {
        match (self.mode, record) {
            (JournalMode::Intents, Record::Begin { subject, .. }) => {
                // A provider resource is created by the engine alone, and a second line of an operation has the id that was lost.
                kind == Some(OperationKind::Creating)
                    && matches!(subject, Subject::Resource(state) if !state.is_provider() && state.id.is_none())
            }
            (JournalMode::Sync, Record::Begin { .. } | Record::End { .. }) => true,
            (JournalMode::Intents | JournalMode::Sync, _) | (JournalMode::Local, _) => false,
        }
    }

    /// Hands the lines that the store lacks over to the writer of the segments.
    fn send(&mut self, is_awaited: bool) -> Result<Receipt, StateError> {
        let Some(segments) = self.segments.clone().filter(|_| self.has_operations) else {
            return Ok(Receipt::complete());
        };
        let (from, lines) = (self.sent, self.lines.len() - self.sent);
        if lines == 0 {
            return Ok(Receipt::complete());
        }
        if self.buffered.from != from || self.closed.is_some() {
            self.encode(from)?;
        }
        let text = &self.buffer[self.buffered.start..];
        let receipt = segments.push(self.stored_header(), text, lines, is_awaited);
        self.sent = self.lines.len();
        Ok(receipt)
    }

    /// Returns whether a record changes an entry, or begins an operation.
    fn has_changes(&self) -> bool {
        let is_keep = |effect: &Effect| matches!(effect, Effect::Keep(_));
        self.lines.iter().any(|line| match line {
            Line::Record(..) => true,
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
        self.lines.iter().any(|line| matches!(line, Line::Record(..)))
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
        if let Some(replaced) = self.file.replace(file) {
            // The new file was flushed before it took the name.
            replaced.supersede();
        }
    }

    /// Encodes the lines from a number on into the buffer, for a new file with its first line.
    fn encode(&mut self, from: usize) -> Result<(), SecretsError> {
        self.buffer.clear();
        if from == 0 {
            self.encode_header();
        }
        let buffered = Buffered { from, start: self.buffer.len() };
        // A line that cannot be encrypted leaves a part of itself.
        self.buffered = Buffered { from: usize::MAX, start: 0 };
        let crypter = self.crypter.as_deref();
        self.lines[from..].iter().try_for_each(|line| match line {
            Line::Record(record, ended) => write_record(&mut self.buffer, record, *ended, crypter),
            Line::Deferred(record) => write_record(&mut self.buffer, record, None, crypter),
            Line::Phase => {
                write_phase(&mut self.buffer);
                Ok(())
            }
        })?;
        self.buffered = buffered;
        Ok(())
    }

    fn stored_header(&self) -> StoredHeader {
        StoredHeader {
            journal: VERSION,
            stack: Some(self.header.stack.to_string()),
            base: self.header.base.as_ref().map(|base| base.as_str().to_owned()),
            started: Some(self.started.clone()),
            update: self.update.map(|kind| kind.as_str().to_owned()),
            secrets: self.header.secrets.clone().map(Into::into),
            origin: self.origin.clone().map(Box::new),
            run: None,
            by: None,
            segment: None,
        }
    }

    fn encode_header(&mut self) {
        let header = self.stored_header();
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
                Line::Record(record, _) => {
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
