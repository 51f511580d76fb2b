//! Writing a journal while a run goes on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bridge::fs::{PathError, sync_folder};
use jiff::Timestamp;

use super::{CheckpointDigest, JournalError, VERSION, line};
use crate::state::error::StateError;
use crate::state::ledger::Record;
use crate::state::secrets::Crypter;
use crate::state::snapshot::SecretsDescription;
use crate::state::store::StackReference;

/// How long records are gathered before the disk is told to keep them; a flush takes its time on top.
const GATHERING: Duration = Duration::from_millis(50);

/// What the first line of a journal says.
#[derive(Debug)]
pub(in crate::state) struct JournalStart {
    /// The stack.
    pub(in crate::state) stack: StackReference,
    /// The checkpoint the run starts from, if there is one.
    pub(in crate::state) base: Option<CheckpointDigest>,
    /// The manager that seals the secrets in it.
    pub(in crate::state) secrets: Option<SecretsDescription>,
}

/// The journal of one run. Its file is made by the first record that has to survive.
#[derive(Debug)]
pub(in crate::state) struct Journal {
    path: PathBuf,
    start: JournalStart,
    file: Option<OpenJournal>,
    deferred: Vec<Deferred>,
    line: String,
    /// A record is missing: what would follow may build on it.
    gap: bool,
    /// What was written of a record could not be taken back.
    broken: bool,
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
    pub(in crate::state) fn new(folder: &Path, start: JournalStart) -> Self {
        Self {
            path: folder.join(uuid::Uuid::new_v4().to_string()),
            start,
            file: None,
            deferred: Vec::new(),
            line: String::new(),
            gap: false,
            broken: false,
        }
    }

    /// Where the journal is, once something was written.
    pub(in crate::state) fn path(&self) -> Option<&Path> {
        self.file.is_some().then_some(&*self.path)
    }

    /// Remembers a record until the next appended one.
    pub(in crate::state) fn defer(&mut self, record: Record) {
        self.deferred.push(Deferred::Record(record));
    }

    /// Begins another phase of the run: its entries are numbered from 0 in the order of the state that the phase before left.
    pub(in crate::state) fn begin_phase(&mut self) {
        if self.file.is_some() || !self.deferred.is_empty() {
            self.deferred.push(Deferred::Phase);
        }
    }

    /// Writes what was deferred and a record. Once that failed no other record is taken: it may build on what is missing.
    ///
    /// # Errors
    /// [`StateError`].
    pub(in crate::state) fn append(
        &mut self,
        record: &Record,
        crypter: Option<&dyn Crypter>,
    ) -> Result<(), StateError> {
        if self.gap {
            return Err(JournalError::Broken { path: self.path.clone() }.into());
        }
        self.line.clear();
        if self.file.is_none() {
            self.write_header();
        }
        for deferred in &self.deferred {
            match deferred {
                Deferred::Record(record) => line::write(&mut self.line, record, crypter)?,
                Deferred::Phase => line::write_phase(&mut self.line),
            }
        }
        line::write(&mut self.line, record, crypter)?;
        self.write_line()?;
        self.deferred.clear();
        Ok(())
    }

    /// Says which checkpoint is about to be saved, and makes that certain. Without a file there is nothing to settle.
    pub(in crate::state) fn close(&mut self, checkpoint: &str) -> Result<(), JournalError> {
        if self.file.is_none() {
            return Ok(());
        }
        self.line.clear();
        push_close(&mut self.line, &super::digest(checkpoint));
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
    pub(in crate::state) fn restore(&mut self) -> Result<(), JournalError> {
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
        let secrets = self.start.secrets.as_ref();
        let header = serde_json::json!({
            "journal": VERSION,
            "stack": self.start.stack.to_string(),
            "base": self.start.base.as_ref().map(CheckpointDigest::as_str),
            "started": Timestamp::now().to_string(),
            "secrets": secrets.map(|secrets| serde_json::json!({ "type": secrets.kind, "state": secrets.state })),
        });
        self.line.push_str(&header.to_string());
        self.line.push('\n');
    }

    /// Writes the prepared text at once. What was written of it by a write that failed is taken back.
    fn write_line(&mut self) -> Result<(), JournalError> {
        if self.broken {
            return Err(JournalError::Broken { path: self.path.clone() });
        }
        let journal = match &mut self.file {
            Some(journal) => journal,
            None => self.file.insert(OpenJournal::create(&self.path)?),
        };
        if journal.flusher.failed() {
            self.broken = true;
            return Err(JournalError::Broken { path: self.path.clone() });
        }
        if let Err(error) = (&*journal.file).write_all(self.line.as_bytes()) {
            self.gap = true;
            self.broken = journal.file.set_len(journal.length).is_err();
            if journal.length == 0 && !self.broken && fs::remove_file(&self.path).is_ok() {
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

/// Settles a journal that another run left behind: says which checkpoint is about to be saved in its place. `open_ended`: its
/// last line has no end.
pub(in crate::state) fn settle(path: &Path, open_ended: bool, digest: &str) -> Result<(), JournalError> {
    let failed = || PathError::of("write", path);
    let mut file = OpenOptions::new().append(true).open(path).map_err(failed())?;
    let mut text = String::new();
    if open_ended {
        text.push('\n');
    }
    push_close(&mut text, digest);
    file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).map_err(failed())?;
    Ok(())
}

fn push_close(line: &mut String, digest: &str) {
    line.push_str("{\"close\":\"");
    line.push_str(digest);
    line.push_str("\"}\n");
}

/// Tells the disk to keep what was written, soon and never in anybody's way.
#[derive(Debug)]
struct Flusher {
    wake: Option<Sender<()>>,
    shared: Arc<FlusherState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct FlusherState {
    /// Something was written that no flush has begun for.
    dirty: AtomicBool,
    failed: AtomicBool,
}

impl Flusher {
    fn start(file: Arc<File>, folder: PathBuf) -> Self {
        let (wake, woken) = channel();
        let shared = Arc::new(FlusherState::default());
        let state = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || {
            if flush(&file, &folder, &woken, &state).is_err() {
                state.failed.store(true, Ordering::Release);
            }
        });
        // Without a thread the records still outlive the process, which is what is promised at once.
        Self { wake: Some(wake), shared, thread: thread.ok() }
    }

    fn wake(&self) {
        if !self.shared.dirty.swap(true, Ordering::AcqRel) {
            // Nobody listens only after a failure, which is told at the next write.
            _ = self.wake.as_ref().map(|wake| wake.send(()));
        }
    }

    /// Says that everything is flushed already.
    fn settle(&self) {
        self.shared.dirty.store(false, Ordering::Release);
    }

    fn failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }
}

fn flush(file: &File, folder: &Path, woken: &Receiver<()>, state: &FlusherState) -> Result<(), std::io::Error> {
    sync_folder(folder).map_err(|error| error.source)?;
    while woken.recv().is_ok() {
        // Gathers until the time is up, or the journal is closed.
        _ = woken.recv_timeout(GATHERING);
        if state.dirty.swap(false, Ordering::AcqRel) {
            file.sync_data()?;
        }
    }
    Ok(())
}

impl Drop for Flusher {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // It can only have panicked, and has nothing to tell.
            thread.join().ok();
        }
    }
}
