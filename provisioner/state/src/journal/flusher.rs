//! Flushes a journal to disk in the background.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bridge::fs::sync_folder;

/// How long records are gathered before the disk is told to keep them; a flush takes its time on top.
const GATHERING: Duration = Duration::from_millis(50);

/// Tells the disk to keep what was written, soon and never in anybody's way.
#[derive(Debug)]
pub(super) struct Flusher {
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
    pub(super) fn start(file: Arc<File>, folder: PathBuf) -> Self {
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

    pub(super) fn wake(&self) {
        if !self.shared.dirty.swap(true, Ordering::AcqRel) {
            // Nobody listens only after a failure, which is told at the next write.
            _ = self.wake.as_ref().map(|wake| wake.send(()));
        }
    }

    /// Says that everything is flushed already.
    pub(super) fn settle(&self) {
        self.shared.dirty.store(false, Ordering::Release);
    }

    pub(super) fn failed(&self) -> bool {
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
