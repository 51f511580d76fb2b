//! Writing a journal while a run goes on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bridge::fs::PathError;
use jiff::Timestamp;

use super::digest::{CheckpointDigest, digest};
use super::encode::{write_close, write_phase, write_record};
use super::end::FileEnd;
use super::error::JournalError;
use super::flusher::Flusher;
use super::header::{StoredHeader, VERSION};
use crate::error::StateError;
use crate::record::Record;
use crate::secrets::Crypter;
use crate::snapshot::SecretsDescription;
use crate::store::StackReference;

/// What the first line of a journal says.
#[derive(Debug)]
pub(crate) struct JournalStart {
    /// The stack.
    pub(crate) stack: StackReference,
    /// The checkpoint the run starts from, if there is one.
    pub(crate) base: Option<CheckpointDigest>,
    /// The manager that seals the secrets in it.
    pub(crate) secrets: Option<SecretsDescription>,
}

/// The journal of one run. Its file is made by the first record that has to survive.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    start: JournalStart,
    file: Option<OpenJournal>,
    deferred: Vec<Deferred>,
    line: Vec<u8>,
    condition: Condition,
}

/// What a journal still accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    /// Everything.
    Intact,
    /// No record, for one is missing that others may build on. The journal can still be closed.
    LacksRecord,
    /// Nothing: its end may be part of a line, or was not flushed.
    Unreliable,
}

/// What goes with the next record that has to survive.
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
    /// Prepares a journal in the folder of its stack. Nothing is written yet.
    pub(crate) fn new(folder: &Path, start: JournalStart) -> Self {
        Self {
            path: folder.join(uuid::Uuid::new_v4().to_string()),
            start,
            file: None,
            deferred: Vec::new(),
            line: Vec::new(),
            condition: Condition::Intact,
        }
    }

    /// Where the journal is, once something was written.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.is_some().then_some(&*self.path)
    }

    /// Remembers a record until the next appended one.
    pub(crate) fn defer(&mut self, record: Record) {
        self.deferred.push(Deferred::Record(record));
    }

    /// Begins another phase of the run: its entries are numbered from 0 in the order of the state that the phase before left.
    pub(crate) fn begin_phase(&mut self) {
        if self.file.is_some() || !self.deferred.is_empty() {
            self.deferred.push(Deferred::Phase);
        }
    }

    /// Writes what was deferred and a record. Once that failed no other record is taken: it may build on what is missing.
    ///
    /// # Errors
    /// [`StateError`].
    pub(crate) fn append(&mut self, record: &Record, crypter: Option<&dyn Crypter>) -> Result<(), StateError> {
        if self.condition != Condition::Intact {
            return Err(JournalError::Broken { path: self.path.clone() }.into());
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

    /// Says which checkpoint is about to be saved, and makes that certain. Without a file there is nothing to settle.
    pub(crate) fn close(&mut self, checkpoint: &str) -> Result<(), JournalError> {
        if self.file.is_none() {
            return Ok(());
        }
        self.line.clear();
        write_close(&mut self.line, &digest(checkpoint));
        self.write_line()?;
        if let Some(journal) = &self.file {
            journal.file.sync_data().map_err(PathError::of("flush", &self.path))?;
            journal.flusher.settle();
        }
        Ok(())
    }

    /// Writes the journal anew if it has been removed: what was added since is in no state.
    ///
    /// # Errors
    /// [`JournalError::Path`].
    pub(crate) fn restore(&mut self) -> Result<(), JournalError> {
        let Some(journal) = &self.file else { return Ok(()) };
        let mut removed = &*journal.file;
        let mut again = match OpenOptions::new().append(true).create_new(true).open(&self.path) {
            Ok(again) => again,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
            Err(error) => return Err(PathError::of("create", &self.path)(error).into()),
        };
        let copied = removed.seek(SeekFrom::Start(0)).and_then(|_| io::copy(&mut removed, &mut again));
        copied.and_then(|_| again.sync_data()).map_err(PathError::of("write", &self.path))?;
        Ok(())
    }

    fn write_header(&mut self) {
        let header = StoredHeader {
            journal: VERSION,
            stack: Some(self.start.stack.to_string()),
            base: self.start.base.as_ref().map(|base| base.as_str().to_owned()),
            started: Some(Timestamp::now().to_string()),
            secrets: self.start.secrets.clone().map(Into::into),
        };
        serde_json::to_writer(&mut self.line, &header).expect("texts and numbers are always JSON");
        self.line.push(b'\n');
    }

    /// Writes the prepared text at once. What was written of it by a write that failed is taken back.
    fn write_line(&mut self) -> Result<(), JournalError> {
        if self.condition == Condition::Unreliable {
            return Err(JournalError::Broken { path: self.path.clone() });
        }
        let journal = match &mut self.file {
            Some(journal) => journal,
            None => self.file.insert(OpenJournal::create(&self.path)?),
        };
        if journal.flusher.failed() {
            self.condition = Condition::Unreliable;
            return Err(JournalError::Broken { path: self.path.clone() });
        }
        if let Err(error) = (&*journal.file).write_all(&self.line) {
            let shortened = journal.file.set_len(journal.length).is_ok();
            self.condition = if shortened { Condition::LacksRecord } else { Condition::Unreliable };
            if journal.length == 0 && shortened && fs::remove_file(&self.path).is_ok() {
                // Not even its first line is there: there is no journal.
                self.file = None;
            }
            return Err(PathError::of("write", &self.path)(error).into());
        }
        journal.length += self.line.len() as u64;
        journal.flusher.wake();
        Ok(())
    }
}

impl OpenJournal {
    fn create(path: &Path) -> Result<Self, JournalError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(PathError::of("create folder", folder))?;
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(path);
        let file = Arc::new(file.map_err(PathError::of("create", path))?);
        let flusher = Flusher::start(Arc::clone(&file), folder.to_owned());
        Ok(Self { file, length: 0, flusher })
    }
}

/// Settles a journal that another run left behind: adds the digest of the checkpoint that is about to be saved in its place.
pub(crate) fn settle(path: &Path, end: FileEnd, digest: &str) -> Result<(), JournalError> {
    let failed = || PathError::of("write", path);
    let mut file = OpenOptions::new().append(true).open(path).map_err(failed())?;
    let mut text = Vec::new();
    if end == FileEnd::InLine {
        text.push(b'\n');
    }
    write_close(&mut text, digest);
    file.write_all(&text).and_then(|()| file.sync_data()).map_err(failed())?;
    Ok(())
}
