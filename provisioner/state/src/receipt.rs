//! Receipts of records that are on their way to the store or to the disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::error::StateError;
use crate::journal::JournalError;
use crate::store::{StackReference, StoreError};

/// Lines of a journal that the store has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Number of the last line that the store has, with all before it.
    pub(crate) lines: usize,
    /// `true` once another run has taken the journal over.
    pub(crate) is_sealed: bool,
    /// Reason why no further lines are sent.
    pub(crate) failure: Option<SendFailure>,
}

/// Reason why lines of a journal are not in the store.
#[derive(Clone, Debug)]
pub(crate) enum SendFailure {
    /// The store has failed.
    Store(Arc<StoreError>),
    /// Another program has written an object of the journal at this location.
    Foreign(String),
    /// The file at this path could not be flushed to disk, or was removed.
    Unflushed(PathBuf),
    /// Another run has taken the journal over.
    Sealed,
}

impl SendFailure {
    /// Returns the error of a run of a stack.
    pub(crate) fn into_error(self, stack: &StackReference) -> StateError {
        match self {
            Self::Store(source) => StateError::JournalNotSent { stack: stack.clone(), source },
            Self::Foreign(location) => StateError::ForeignJournal { location },
            Self::Unflushed(path) => JournalError::Unflushed { path }.into(),
            Self::Sealed => StoreError::LockLost { stack: stack.clone(), holders: Vec::new() }.into(),
        }
    }
}

/// Receipt of an appended record: what it announces may begin, or be reported, once [`Receipt::wait`] has returned.
#[derive(Debug, Default)]
pub struct Receipt {
    awaited: Option<Awaited>,
}

#[derive(Debug)]
struct Awaited {
    stack: StackReference,
    line: usize,
    progress: watch::Receiver<Progress>,
    waits: Waits,
}

/// Time for which a run has waited for its journal, in all. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(Arc<AtomicU64>);

impl Waits {
    fn add(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the time.
    pub(crate) fn total(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

impl Receipt {
    /// Creates the receipt of a record that is as durable as it has to be.
    pub fn complete() -> Self {
        Self { awaited: None }
    }

    /// Creates the receipt of a line that has to reach the store.
    pub(crate) fn of_line(
        stack: StackReference,
        line: usize,
        progress: watch::Receiver<Progress>,
        waits: Waits,
    ) -> Self {
        Self { awaited: Some(Awaited { stack, line, progress, waits }) }
    }

    /// Creates a receipt that is complete once the second value says so.
    #[cfg(any(test, feature = "testing"))]
    pub fn awaited(stack: StackReference) -> (Self, ReceiptControl) {
        let (sender, progress) = watch::channel(Progress::default());
        (Self::of_line(stack, 1, progress, Waits::default()), ReceiptControl(sender))
    }

    /// Returns `true` if there is nothing to wait for.
    pub fn is_complete(&self) -> bool {
        self.awaited.as_ref().is_none_or(|awaited| {
            let progress = awaited.progress.borrow();
            progress.lines >= awaited.line && !progress.is_sealed
        })
    }

    /// Waits until the record is as durable as it has to be.
    ///
    /// # Errors
    /// [`StateError`] if the store cannot be reached, or another run has taken the journal over. What the record announces
    /// must not begin then.
    pub async fn wait(self) -> Result<(), StateError> {
        let Some(Awaited { stack, line, mut progress, waits }) = self.awaited else { return Ok(()) };
        let begun = Instant::now();
        let is_over = |progress: &Progress| progress.lines >= line || progress.is_sealed || progress.failure.is_some();
        let failure = match progress.wait_for(is_over).await {
            Ok(progress) if progress.is_sealed => Some(SendFailure::Sealed),
            Ok(progress) if progress.lines >= line => None,
            Ok(progress) => progress.failure.clone(),
            // The run has ended.
            Err(_) => Some(SendFailure::Sealed),
        };
        waits.add(begun.elapsed());
        failure.map_or(Ok(()), |failure| Err(failure.into_error(&stack)))
    }
}

/// Completes a receipt of a test.
#[cfg(any(test, feature = "testing"))]
pub struct ReceiptControl(watch::Sender<Progress>);

#[cfg(any(test, feature = "testing"))]
impl ReceiptControl {
    /// Completes the receipt.
    pub fn complete(self) {
        self.0.send_modify(|progress| progress.lines = 1);
    }

    /// Fails the receipt, as if another run had taken the journal over.
    pub fn fail(self) {
        self.0.send_modify(|progress| progress.is_sealed = true);
    }
}
