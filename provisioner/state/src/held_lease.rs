//! Lease of the lock of a stack: renewed in the background, and checked before anything begins under it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::StateError;
#[cfg(any(test, feature = "testing"))]
use crate::store::{LockLease, MemoryObjects, StackReference, StoreOptions, compliance};
use crate::store::{StackLock, StateStore, StoreError};

/// Number of renewals within the time of a lease.
const RENEWALS: u32 = 3;
/// Longest sleep before the clock is read again.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Lease of a lock. Clones share it.
#[derive(Clone)]
pub struct HeldLease {
    shared: Arc<Shared>,
}

struct Shared {
    store: StateStore,
    lock: StackLock,
    duration: Duration,
    /// Time of the last renewal, by a clock that also runs while the machine is suspended.
    renewed: Mutex<Duration>,
    /// Cancelled once the lock is lost.
    lost: CancellationToken,
    /// Held during a renewal.
    renewing: tokio::sync::Mutex<()>,
}

impl fmt::Debug for HeldLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldLease").field("lock", &self.shared.lock).finish_non_exhaustive()
    }
}

impl HeldLease {
    /// Creates the lease of a lock that was requested at a time by [`clock`].
    pub(crate) fn new(
        store: StateStore,
        lock: StackLock,
        duration: Duration,
        requested: Duration,
        lost: CancellationToken,
    ) -> Self {
        let (renewed, renewing) = (Mutex::new(requested), tokio::sync::Mutex::default());
        Self { shared: Arc::new(Shared { store, lock, duration, renewed, lost, renewing }) }
    }

    /// Returns the lease of a lock that was taken and then removed.
    ///
    /// # Errors
    /// [`StoreError`], which a store in memory has not.
    #[cfg(any(test, feature = "testing"))]
    pub async fn of_lost_lock(stack: StackReference) -> Result<Self, StoreError> {
        let store = StateStore::open(Arc::new(MemoryObjects::default()), StoreOptions::default()).await?;
        let lock = store.lock(&stack, &compliance::leased(1)).await?;
        store.break_locks(&stack, &store.locks(&stack).await?).await?;
        let lost = CancellationToken::new();
        lost.cancel();
        Ok(Self::new(store, lock, LockLease::DURATION, clock(), lost))
    }

    /// Lets the time of the lease pass, as if the machine had been suspended for longer.
    #[cfg(any(test, feature = "testing"))]
    pub fn expire(&self) {
        let passed = clock().saturating_sub(self.shared.duration);
        *self.shared.renewed.lock().unwrap_or_else(PoisonError::into_inner) = passed;
    }

    /// Waits until the lock is held for certain: returns at once if it was renewed within the time of the lease, else after
    /// a renewal. Call it before anything begins that must not happen twice.
    ///
    /// # Errors
    /// [`StateError::Store`] if the lock was removed, or cannot be renewed.
    pub async fn confirm(&self) -> Result<(), StateError> {
        if self.is_valid() {
            return Ok(());
        }
        let _renewing = self.shared.renewing.lock().await;
        if self.is_valid() { Ok(()) } else { Ok(self.renew().await?) }
    }

    /// Renews the lease until the lock is lost.
    async fn keep(&self) {
        let interval = self.shared.duration / RENEWALS;
        let mut delay = interval;
        loop {
            // Nothing but time ends a lease. A sleep does not include the time in which the machine is suspended, so the clock is
            // read again and again.
            let started = clock();
            while let Some(rest) = delay.checked_sub(clock().saturating_sub(started)).filter(|rest| !rest.is_zero()) {
                tokio::time::sleep(rest.min(LONGEST_SLEEP)).await;
            }
            let _renewing = self.shared.renewing.lock().await;
            delay = if self.renew().await.is_ok() { interval } else { interval / RENEWALS };
            if self.shared.lost.is_cancelled() {
                return;
            }
        }
    }

    /// Renews the lease. The lock is lost if it was removed.
    async fn renew(&self) -> Result<(), StoreError> {
        // The time before the request: others see a later one.
        let started = clock();
        let renewed = self.shared.store.renew(&self.shared.lock).await;
        match &renewed {
            Ok(()) => *self.shared.renewed.lock().unwrap_or_else(PoisonError::into_inner) = started,
            Err(StoreError::LockLost { .. }) => self.shared.lost.cancel(),
            // The lock may still be there: nothing begins until it is renewed, and others wait longer than this run.
            Err(_) => {}
        }
        renewed
    }

    fn is_valid(&self) -> bool {
        let renewed = *self.shared.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        !self.shared.lost.is_cancelled() && clock().saturating_sub(renewed) < self.shared.duration
    }

    /// Returns a task that renews the lease until it is dropped.
    pub(crate) fn keeper(&self) -> JoinSet<()> {
        let lease = self.clone();
        let mut keeper = JoinSet::new();
        keeper.spawn(async move { lease.keep().await });
        keeper
    }
}

/// Returns the time since the start of the machine, also while it was suspended.
pub(crate) fn clock() -> Duration {
    #[cfg(target_os = "linux")]
    let now = clock_gettime(ClockId::Boottime);
    #[cfg(not(target_os = "linux"))]
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) =
        (now.tv_sec.try_into().unwrap_or_default(), now.tv_nsec.try_into().unwrap_or_default());
    Duration::new(seconds, nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Fault;

    #[tokio::test]
    async fn lock_is_lost_only_if_it_was_removed() {
        let objects = MemoryObjects::default();
        let store = StateStore::open(Arc::new(objects.clone()), StoreOptions::default()).await.unwrap();
        let stack = StackReference::new("reef", "dev").unwrap();
        let lock = store.lock(&stack, &compliance::leased(1)).await.unwrap();
        let lost = CancellationToken::new();
        // The lease has passed, as after a suspension of the machine.
        let passed = clock().saturating_sub(LockLease::DURATION);
        let lease = HeldLease::new(store.clone(), lock.duplicate(), LockLease::DURATION, passed, lost.clone());
        assert!(!lease.is_valid());
        objects.set_faults(|_| Fault::NotReached);
        assert!(matches!(lease.confirm().await, Err(StateError::Store(StoreError::Request(_)))));
        assert!(!lost.is_cancelled(), "the lock is still there");
        objects.set_faults(|_| Fault::None);
        lease.confirm().await.unwrap();
        objects.set_faults(|_| Fault::NotReached);
        lease.confirm().await.unwrap();
        objects.set_faults(|_| Fault::None);
        store.break_locks(&stack, &store.locks(&stack).await.unwrap()).await.unwrap();
        assert!(lease.renew().await.is_err() && lost.is_cancelled());
        assert!(matches!(lease.confirm().await, Err(StateError::Store(StoreError::LockLost { .. }))));
    }
}
