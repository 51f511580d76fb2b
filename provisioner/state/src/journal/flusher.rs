//! Flushes a journal to disk in the background.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bridge::fs::calls::sync_data;
use bridge::fs::sync_folder;
use tokio::sync::watch;
use tracing::debug_span;

use crate::receipt::{Progress, SendFailure};

/// Time for which records are gathered before they are flushed; the duration of the flush is added to it.
const BATCH_INTERVAL: Duration = Duration::from_millis(50);
/// The same for records that something waits for.
const AWAITED_INTERVAL: Duration = Duration::from_millis(1);

/// Flushes written records to disk on a thread of its own, so that writers never wait for the disk.
#[derive(Debug)]
pub(super) struct Flusher {
    wake: Option<Sender<()>>,
    shared: Arc<FlusherState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct FlusherState {
    /// `true` if records were written since the last flush began.
    dirty: AtomicBool,
    /// `true` if a flush failed, or after it the file did not have its name any more.
    failed: AtomicBool,
    /// Number of written lines.
    lines: AtomicUsize,
    /// `true` if something waits for the next flush.
    is_awaited: AtomicBool,
    /// Lines that are on the disk.
    progress: watch::Sender<Progress>,
}

impl Flusher {
    /// Starts to flush a file whose lines are on the disk so far.
    pub(super) fn start(file: Arc<File>, path: PathBuf, lines: usize) -> Self {
        let (wake, woken) = channel();
        let state = FlusherState::default();
        state.progress.send_modify(|progress| progress.lines = lines);
        let shared = Arc::new(state);
        let (state, unflushed) = (Arc::clone(&shared), path.clone());
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || {
            if flush(&file, &path, &woken, &state).is_err() {
                state.failed.store(true, Ordering::Release);
                let failure = SendFailure::Unflushed(path);
                state.progress.send_modify(|progress| progress.failure = Some(failure));
            }
        });
        if thread.is_err() {
            // The records outlive the process; only a loss of power can lose them. What waits for the disk fails.
            shared.progress.send_modify(|progress| progress.failure = Some(SendFailure::Unflushed(unflushed)));
        }
        Self { wake: Some(wake), shared, thread: thread.ok() }
    }

    /// Flushes a file of this number of lines soon.
    pub(super) fn wake(&self, lines: usize) {
        self.shared.lines.store(lines, Ordering::Release);
        if !self.shared.dirty.swap(true, Ordering::AcqRel) {
            // The receiver is gone after a failed flush, which the next write reports, or if the thread did not start.
            _ = self.wake.as_ref().map(|wake| wake.send(()));
        }
    }

    /// Marks all written records as flushed: the caller has synced the file itself.
    pub(super) fn mark_flushed(&self) {
        self.shared.dirty.store(false, Ordering::Release);
        let lines = self.shared.lines.load(Ordering::Acquire);
        self.shared.progress.send_modify(|progress| progress.lines = lines);
    }

    /// Completes what waits for lines of this file, which another file has on the disk.
    pub(super) fn supersede(&self) {
        self.shared.progress.send_modify(|progress| progress.lines = usize::MAX);
    }

    /// Returns what the disk has, and flushes the written lines at once.
    pub(super) fn hurry(&self) -> watch::Receiver<Progress> {
        self.shared.is_awaited.store(true, Ordering::Release);
        // The thread waits on the channel while it gathers records.
        _ = self.wake.as_ref().map(|wake| wake.send(()));
        self.shared.progress.subscribe()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }
}

fn flush(file: &File, path: &Path, woken: &Receiver<()>, state: &FlusherState) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut is_folder_flushed = false;
    while woken.recv().is_ok() {
        // The folder need not be readable at once, for instance because all descriptors are in use.
        is_folder_flushed = is_folder_flushed || sync_folder(folder).is_ok();
        // Waits until the interval has elapsed, something waits for a line, or the journal is closed.
        if !state.is_awaited.load(Ordering::Acquire) {
            _ = woken.recv_timeout(BATCH_INTERVAL);
        }
        if state.is_awaited.swap(false, Ordering::AcqRel) {
            // Operations that begin at about the same time share a flush; nothing says when the last of them has come.
            std::thread::sleep(AWAITED_INTERVAL);
        }
        if state.dirty.swap(false, Ordering::AcqRel) {
            let lines = state.lines.load(Ordering::Acquire);
            debug_span!("journal flush").in_scope(|| sync_data(file, path))?;
            if !has_name(file, path)? {
                return Err(io::ErrorKind::NotFound.into());
            }
            state.progress.send_modify(|progress| progress.lines = lines);
        }
    }
    Ok(())
}

/// Returns whether a file has this name, and no other file has it.
pub(super) fn has_name(file: &File, path: &Path) -> io::Result<bool> {
    let (open, named) = (file.metadata()?, fs::metadata(path)?);
    Ok((open.dev(), open.ino()) == (named.dev(), named.ino()))
}

impl Drop for Flusher {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // The thread returns no value; a panic of it is ignored.
            thread.join().ok();
        }
    }
}
