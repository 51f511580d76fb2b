//! Treatment of locks that a stack may have.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::{LockInfo, StackReference};

/// Treatment of the locks of other runs, and of the loss of the own one.
#[derive(Clone)]
pub struct LockSettings {
    /// `true` if the lock has a lease, and locks whose lease has ended are taken over.
    pub takeover: bool,
    /// Returns whether the process of a lock has ended for certain.
    pub has_ended: fn(&LockInfo) -> bool,
    /// Receives each lock that was taken over.
    pub report: Arc<dyn Fn(&TakenOverLock) + Send + Sync>,
    /// Cancelled once the lock of this run is lost.
    pub lost: CancellationToken,
    /// Wait for a lock that another run has.
    pub wait: LockWait,
}

impl Default for LockSettings {
    /// Returns settings that take locks over, wait for none, know no processes and report nothing.
    fn default() -> Self {
        Self {
            takeover: true,
            has_ended: |_| false,
            report: Arc::new(|_| ()),
            lost: CancellationToken::new(),
            wait: LockWait::default(),
        }
    }
}

/// Wait for a lock that another run has.
#[derive(Clone)]
pub struct LockWait {
    /// Time for which a lock is awaited.
    pub limit: Duration,
    /// Describes the process of a lock, if it is known on this machine.
    pub describe: fn(&LockInfo) -> Option<String>,
    /// Receives the locks that are awaited, and again once they are others.
    pub report: Arc<dyn Fn(&AwaitedLocks) + Send + Sync>,
    /// Ends the wait once it is cancelled, as its limit does.
    pub stop: CancellationToken,
}

impl Default for LockWait {
    /// Returns settings that wait for no lock.
    fn default() -> Self {
        let report: Arc<dyn Fn(&AwaitedLocks) + Send + Sync> = Arc::new(|_| ());
        Self { limit: Duration::ZERO, describe: |_| None, report, stop: CancellationToken::new() }
    }
}

/// Locks of a stack that a command waits for. `Display` says who holds them, and what is known about their processes.
#[derive(Clone, Debug)]
pub struct AwaitedLocks {
    /// The stack.
    pub stack: StackReference,
    /// Locks, each with what is known about its process.
    pub locks: Vec<(LockInfo, Option<String>)>,
    /// Time for which they are awaited.
    pub limit: Duration,
}

impl fmt::Display for AwaitedLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "waiting for the lock of {}, {} s at most:", self.stack, self.limit.as_secs_f32())?;
        for (lock, process) in &self.locks {
            write!(f, "\n  {lock}")?;
            process.iter().try_for_each(|text| write!(f, "\n    {text}"))?;
        }
        Ok(())
    }
}

/// Lock that was removed because its run has ended without releasing it. `Display` says so.
#[derive(Clone, Debug)]
pub struct TakenOverLock {
    /// The stack.
    pub stack: StackReference,
    /// The lock.
    pub lock: LockInfo,
    /// Time without renewal; `None` if the process has ended.
    pub unrenewed: Option<Duration>,
    /// `true` if there is the journal of a run, which is merged into the state: on this machine, or in the store.
    pub has_journal: bool,
}

impl fmt::Display for TakenOverLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stack, lock, unrenewed, has_journal } = self;
        write!(f, "took over the lock of {stack}: ")?;
        match unrenewed {
            Some(time) => write!(f, "its run has not renewed it for {} s", time.as_secs())?,
            None => write!(f, "its run has ended without releasing it")?,
        }
        write!(f, "\n  {lock}\n  ")?;
        let is_stored = lock.lease().is_some_and(|lease| lease.has_stored_journal);
        f.write_str(match (has_journal, is_stored) {
            (true, _) => "it has left a journal",
            (false, true) => "it has left no journal: nothing that may create a resource had begun",
            (false, false) => {
                "no journal of it is on this machine or in the store: what it had created and not saved is not in the state"
            }
        })
    }
}
