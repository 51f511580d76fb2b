//! Flushes a journal to disk in the background.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bridge::fs::calls::sync_data;
use bridge::fs::sync_folder;
use tracing::debug_span;

/// Time for which records are gathered before they are flushed; the duration of the flush is added to it.
const BATCH_INTERVAL: Duration = Duration::from_millis(50);

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
}

impl Flusher {
    pub(super) fn start(file: Arc<File>, path: PathBuf) -> Self {
        let (wake, woken) = channel();
        let shared = Arc::new(FlusherState::default());
        let state = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || {
            if flush(&file, &path, &woken, &state).is_err() {
                state.failed.store(true, Ordering::Release);
            }
        });
        // Without a thread the records still outlive the process; only a loss of power can lose them.
        Self { wake: Some(wake), shared, thread: thread.ok() }
    }

    pub(super) fn wake(&self) {
        if !self.shared.dirty.swap(true, Ordering::AcqRel) {
            // The receiver is gone after a failed flush, which the next write reports, or if the thread did not start.
            _ = self.wake.as_ref().map(|wake| wake.send(()));
        }
    }

    /// Marks all written records as flushed: the caller has synced the file itself.
    pub(super) fn mark_flushed(&self) {
        self.shared.dirty.store(false, Ordering::Release);
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
        // Waits until the interval has elapsed or the journal is closed.
        _ = woken.recv_timeout(BATCH_INTERVAL);
        if state.dirty.swap(false, Ordering::AcqRel) {
            debug_span!("journal flush").in_scope(|| sync_data(file, path))?;
            if !has_name(file, path)? {
                return Err(io::ErrorKind::NotFound.into());
            }
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
