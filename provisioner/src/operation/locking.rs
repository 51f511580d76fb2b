//! Lock of the stack of a run, and the wait for it.

use std::time::{Duration, Instant};

use engine::events::{Event, Message, Severity};
use state::store::{LockInfo, StoreError};
use state::{StackState, StateError};

use super::{OperationError, StackRun};

/// Time between two attempts to take a lock. A store may be shared by several machines, whose changes cause no notification.
const INTERVAL: Duration = Duration::from_secs(1);
/// Largest addition to the time between two attempts. Each process has its own, so that two that wait do not keep meeting:
/// of two that lock at the same time, both may fail.
const SPREAD: u32 = 300;

impl StackRun {
    /// Locks the stack and loads its state. Waits if another run has the lock, for the time in the options.
    ///
    /// # Errors
    /// [`OperationError::State`] if the stack is still locked then, or the state cannot be loaded;
    /// [`OperationError::Stopped`] if the user stopped the operation.
    pub(super) async fn lock_and_load(&self) -> Result<StackState, OperationError> {
        let (limit, started) = (self.options.lock_timeout, Instant::now());
        let interval = INTERVAL + Duration::from_millis(u64::from(self.holder.pid % SPREAD));
        let mut shown = Vec::new();
        loop {
            let holders = match StackState::open(self.access.clone(), &self.holder).await {
                Err(StateError::Store(StoreError::Locked { holders, .. })) if started.elapsed() < limit => holders,
                opened => return Ok(opened?),
            };
            // A renewed lock is the same one.
            let names: Vec<_> = holders.iter().map(|lock| lock.name.clone()).collect();
            if names != shown {
                self.report_wait(&holders);
                shown = names;
            }
            tokio::select! {
                () = tokio::time::sleep(interval.min(limit.saturating_sub(started.elapsed()))) => {}
                () = self.signals.stop.cancelled() => return Err(OperationError::Stopped),
            }
        }
    }

    /// Emits who holds the lock, and what is known about the process of each holder.
    fn report_wait(&self, holders: &[LockInfo]) {
        let about = |holder: &LockInfo| (self.options.describe_process)(holder).map(|text| format!("\n    {text}"));
        let line = |holder: &LockInfo| format!("\n  {holder}{}", about(holder).unwrap_or_default());
        let holders: String = holders.iter().map(line).collect();
        let limit = self.options.lock_timeout.as_secs_f32();
        let text = format!("waiting for the lock of {}, {limit} s at most:{holders}", self.access.stack);
        self.events.emit(Event::Message(Message::new(Severity::Info, text)));
    }
}
