//! Writes the journal of a run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bridge::fs::FileError;
use jiff::Timestamp;

use super::digest::{CheckpointDigest, digest};
use super::encode::{write_close, write_phase, write_record};
use super::end::FileEnd;
use super::error::JournalError;
use super::flusher::Flusher;
use super::folder;
use super::header::{StoredHeader, VERSION};
use crate::error::StateError;
use crate::record::Record;
use crate::secrets::Crypter;
use crate::snapshot::SecretsDescription;
use crate::store::StackReference;

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
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    header: JournalHeader,
    file: Option<OpenJournal>,
    deferred: Vec<Deferred>,
    line: Vec<u8>,
    condition: JournalCondition,
}

/// Condition of a journal, which decides what it still accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JournalCondition {
    /// All records are written.
    Intact,
    /// A record is missing that later ones may depend on: no record is accepted. The journal can still be closed.
    LacksRecord,
    /// The end may be part of a line, or was not flushed: nothing is accepted.
    Unreliable,
}

/// Line that is written together with the next appended record.
#[derive(Debug)]
enum Deferred {
    Record(Record),
    Phase,
}

#[derive(Debug)]
struct OpenJournal {
    file: Arc<File>,
    length: u64,
    flusher: Flusher,
}

impl Journal {
    /// Creates a journal in the folder of its stack. Writes nothing yet.
    pub(crate) fn new(folder: &Path, header: JournalHeader) -> Self {
        Self {
            path: folder.join(uuid::Uuid::new_v4().to_string()),
            header,
            file: None,
            deferred: Vec::new(),
            line: Vec::new(),
            condition: JournalCondition::Intact,
        }
    }

    /// Returns the path of the journal once something was written.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.is_some().then_some(&*self.path)
    }

    /// Keeps a record until the next appended one.
    pub(crate) fn defer(&mut self, record: Record) {
        self.deferred.push(Deferred::Record(record));
    }

    /// Begins another phase of the run: its entries are numbered from 0 in the order of the state that the previous
    /// phase left.
    pub(crate) fn begin_phase(&mut self) {
        if self.file.is_some() || !self.deferred.is_empty() {
            self.deferred.push(Deferred::Phase);
        }
    }

    /// Writes the deferred records and a record. After a failed write no other record is accepted: it may depend on the
    /// missing one.
    ///
    /// # Errors
    /// [`StateError`].
    pub(crate) fn append(&mut self, record: &Record, crypter: Option<&dyn Crypter>) -> Result<(), StateError> {
        if self.condition != JournalCondition::Intact {
            return Err(JournalError::EarlierWriteFailed { path: self.path.clone() }.into());
        }
        self.line.clear();
        if self.file.is_none() {
            self.write_header();
        }
        for deferred in &self.deferred {
            match deferred {
                Deferred::Record(record) => write_record(&mut self.line, record, crypter)?,
                Deferred::Phase => write_phase(&mut self.line),
            }
        }
        write_record(&mut self.line, record, crypter)?;
        self.write_line()?;
        self.deferred.clear();
        Ok(())
    }

    /// Writes the digest of the checkpoint that is about to be saved, and flushes the file. Does nothing without a
    /// file.
    pub(crate) fn close(&mut self, checkpoint: &str) -> Result<(), JournalError> {
        if self.file.is_none() {
            return Ok(());
        }
        self.line.clear();
        write_close(&mut self.line, &digest(checkpoint));
        self.write_line()?;
        if let Some(journal) = &self.file {
            journal.file.sync_data().map_err(FileError::of("flush", &self.path))?;
            journal.flusher.mark_flushed();
        }
        Ok(())
    }

    /// Writes the journal again if another run has removed it: the records added since are in no checkpoint.
    ///
    /// # Errors
    /// [`JournalError::Path`].
    pub(crate) fn restore(&mut self) -> Result<(), JournalError> {
        let Some(journal) = &self.file else { return Ok(()) };
        let mut removed = &*journal.file;
        let mut copy = match folder::create_file(&self.path) {
            Ok(copy) => copy,
            Err(error) if error.source.kind() == ErrorKind::AlreadyExists => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let copied = removed.seek(SeekFrom::Start(0)).and_then(|_| io::copy(&mut removed, &mut copy));
        copied.and_then(|_| copy.sync_data()).map_err(FileError::of("write", &self.path))?;
        Ok(())
    }

    fn write_header(&mut self) {
        let header = StoredHeader {
            journal: VERSION,
            stack: Some(self.header.stack.to_string()),
            base: self.header.base.as_ref().map(|base| base.as_str().to_owned()),
            started: Some(Timestamp::now().to_string()),
            secrets: self.header.secrets.clone().map(Into::into),
        };
        serde_json::to_writer(&mut self.line, &header).expect("texts and numbers are always JSON");
        self.line.push(b'\n');
    }

    /// Writes the prepared lines in one call. After a failed write the file is truncated to its previous length.
    fn write_line(&mut self) -> Result<(), JournalError> {
        if self.condition == JournalCondition::Unreliable {
            return Err(JournalError::EarlierWriteFailed { path: self.path.clone() });
        }
        let journal = match &mut self.file {
            Some(journal) => journal,
            None => self.file.insert(OpenJournal::create(&self.path)?),
        };
        if journal.flusher.has_failed() {
            self.condition = JournalCondition::Unreliable;
            return Err(JournalError::EarlierWriteFailed { path: self.path.clone() });
        }
        if let Err(error) = (&*journal.file).write_all(&self.line) {
            let shortened = journal.file.set_len(journal.length).is_ok();
            self.condition = if shortened { JournalCondition::LacksRecord } else { JournalCondition::Unreliable };
            if journal.length == 0 && shortened && fs::remove_file(&self.path).is_ok() {
                // The first line was not written: there is no journal.
                self.file = None;
            }
            return Err(FileError::of("write", &self.path)(error).into());
        }
        journal.length += self.line.len() as u64;
        journal.flusher.wake();
        Ok(())
    }
}

impl OpenJournal {
    fn create(path: &Path) -> Result<Self, JournalError> {
        let file = Arc::new(folder::create_file(path)?);
        let folder = path.parent().unwrap_or(Path::new("."));
        let flusher = Flusher::start(Arc::clone(&file), folder.to_owned());
        Ok(Self { file, length: 0, flusher })
    }
}

/// Closes the journal of another run: appends the digest of the checkpoint that is about to be saved.
pub(crate) fn append_close_line(path: &Path, end: FileEnd, digest: &str) -> Result<(), JournalError> {
    let failed = || FileError::of("write", path);
    let mut file = OpenOptions::new().append(true).open(path).map_err(failed())?;
    let mut text = Vec::new();
    if end == FileEnd::InLine {
        text.push(b'\n');
    }
    write_close(&mut text, digest);
    file.write_all(&text).and_then(|()| file.sync_data()).map_err(failed())?;
    Ok(())
}
