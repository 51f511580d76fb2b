//! Takes the lock of a stack, also from a run that has ended without releasing it, and keeps it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;

use super::access::StackAccess;
use super::lock_settings::TakenOverLock;
use super::lock_wait::{StoreClock, Wait};
use crate::error::StateError;
use crate::lease::{Lease, clock};
use crate::store::{LockHolder, LockInfo, StackLock, StackReference, StackRename, StoreError};

/// Number of lease times without renewal after which a lock is taken over.
const TAKEN_OVER_AFTER: u32 = 2;

/// Lock of a stack that is renewed until it is released or dropped.
pub(super) struct HeldLock {
    pub(super) lock: StackLock,
    pub(super) lease: Option<Lease>,
    keeper: JoinSet<()>,
}

impl HeldLock {
    fn new(access: &StackAccess, lock: StackLock, holder: &LockHolder, requested: Duration) -> Self {
        let (lease, keeper) = keep(access, &lock, holder, requested);
        Self { lock, lease, keeper }
    }

    /// Waits until the lock is held for certain.
    ///
    /// # Errors
    /// The errors of [`Lease::confirm`].
    pub(super) async fn confirm(&self) -> Result<(), StateError> {
        match &self.lease {
            Some(lease) => lease.confirm().await,
            None => Ok(()),
        }
    }

    /// Leaves the lock in place for good: without its lease no other run takes it over, because the state lacks what the
    /// journal of this run has. A lock that was lost is not written again.
    pub(super) async fn leave(self, access: &StackAccess) {
        let Self { lock, lease, keeper } = self;
        drop(keeper);
        if lease.is_some() {
            // The error of the run is reported; without this change the lock is taken over as that of an ended run.
            access.store.end_lease(&lock).await.ok();
        }
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// [`StoreError::LockLost`] if it was lost before.
    pub(super) async fn release(self, access: &StackAccess) -> Result<(), StoreError> {
        let Self { lock, lease, keeper } = self;
        drop(keeper);
        let stack = lock.stack().clone();
        let released = access.store.unlock(lock).await;
        if lease.is_some() && access.locks.lost.is_cancelled() {
            let holders = access.store.locks(&stack).await.unwrap_or_default();
            return Err(StoreError::LockLost { stack, holders });
        }
        released
    }
}

/// Takes the lock of a stack. Waits for one that another run has, for the time in the settings.
///
/// # Errors
/// [`StateError::Store`]; [`StoreError::Locked`] if another run has the lock.
pub(super) async fn lock(access: &StackAccess, holder: &LockHolder) -> Result<HeldLock, StateError> {
    let holder = &requested_by(access, holder);
    let mut wait = Wait::new(access, holder);
    loop {
        match try_lock(access, holder, &mut wait.store_clock).await {
            Ok((lock, requested)) => return Ok(HeldLock::new(access, lock, holder, requested)),
            Err(error) => wait.after(error).await?,
        }
    }
}

/// Takes the lock of a stack, and returns the time of the request.
async fn try_lock(
    access: &StackAccess,
    holder: &LockHolder,
    store_clock: &mut StoreClock,
) -> Result<(StackLock, Duration), StoreError> {
    let requested = clock();
    match access.store.lock(&access.stack, holder).await {
        Err(StoreError::Locked { stack, holders }) => {
            take_over(access, holder, stack, holders, store_clock).await?;
            let requested = clock();
            Ok((access.store.lock(&access.stack, holder).await?, requested))
        }
        locked => Ok((locked?, requested)),
    }
}

/// Locks both names for a rename, and renews the locks until the second value is dropped. Waits for locks that other runs
/// have, for the time in the settings.
///
/// # Errors
/// [`StateError::Store`]; [`StoreError::Locked`] if another run has the lock of either name.
pub(super) async fn lock_for_rename(
    access: &StackAccess,
    holder: &LockHolder,
    to: &StackReference,
) -> Result<(StackRename, [JoinSet<()>; 2]), StateError> {
    let holder = &requested_by(access, holder);
    let mut wait = Wait::new(access, holder);
    loop {
        match try_lock_for_rename(access, holder, to, &mut wait.store_clock).await {
            Ok((rename, requested)) => {
                let keepers = rename.locks().map(|lock| keep(access, lock, holder, requested).1);
                return Ok((rename, keepers));
            }
            Err(error) => wait.after(error).await?,
        }
    }
}

/// Locks both names for a rename, and returns the time of the request.
async fn try_lock_for_rename(
    access: &StackAccess,
    holder: &LockHolder,
    to: &StackReference,
    store_clock: &mut StoreClock,
) -> Result<(StackRename, Duration), StoreError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let requested = clock();
        match access.store.begin_rename(&access.stack, to, holder).await {
            // Each of the names may have a lock of an ended run.
            Err(StoreError::Locked { stack, holders }) if attempts <= 2 => {
                take_over(access, holder, stack, holders, store_clock).await?;
            }
            begun => return Ok((begun?, requested)),
        }
    }
}

/// Completes or undoes a rename from or to a stack whose process has ended, also if it has left its locks. Waits for locks
/// that other runs have, for the time in the settings. Renews the locks of both names until the rename is completed.
///
/// # Errors
/// The errors of `resume_rename` and `complete_rename` of the store.
pub async fn resume_rename(access: &StackAccess, holder: &LockHolder) -> Result<Option<StackRename>, StoreError> {
    let holder = &requested_by(access, holder);
    let mut wait = Wait::new(access, holder);
    let mut rename = loop {
        match try_resume_rename(access, holder, &mut wait.store_clock).await {
            Err(error) => wait.after(error).await?,
            Ok(None) => return Ok(None),
            Ok(Some(rename)) => break rename,
        }
    };
    let requested = clock();
    if holder.lease.is_some() {
        // The ended process may have left its locks, which it has renewed long ago.
        for lock in rename.locks() {
            access.store.renew(lock).await?;
        }
    }
    let _keepers = rename.locks().map(|lock| keep(access, lock, holder, requested).1);
    access.store.complete_rename(&mut rename).await?;
    Ok(Some(rename))
}

async fn try_resume_rename(
    access: &StackAccess,
    holder: &LockHolder,
    store_clock: &mut StoreClock,
) -> Result<Option<StackRename>, StoreError> {
    match access.store.resume_rename(&access.stack, holder).await {
        Err(StoreError::Locked { stack, holders }) => {
            take_over(access, holder, stack, holders, store_clock).await?;
            access.store.resume_rename(&access.stack, holder).await
        }
        resumed => resumed,
    }
}

/// Returns the holder of a lock that the settings request: with a lease, or without one.
fn requested_by(access: &StackAccess, holder: &LockHolder) -> LockHolder {
    let lease = holder.lease.clone().filter(|_| access.locks.takeover);
    LockHolder { lease, ..holder.clone() }
}

/// Starts to renew a lock, if it has a lease.
fn keep(
    access: &StackAccess,
    lock: &StackLock,
    holder: &LockHolder,
    requested: Duration,
) -> (Option<Lease>, JoinSet<()>) {
    let lease = holder.lease.as_ref().map(|lease| {
        Lease::new(Arc::clone(&access.store), lock.duplicate(), lease.duration, requested, access.locks.lost.clone())
    });
    let keeper = lease.as_ref().map_or_else(JoinSet::new, Lease::keeper);
    (lease, keeper)
}

/// Removes the locks of a stack if all of them belong to runs that have ended. A holder whose own lock has no lease takes
/// over no lock, and a lock without a lease is never taken over.
///
/// # Errors
/// [`StoreError::Locked`] if a run may be active.
async fn take_over(
    access: &StackAccess,
    holder: &LockHolder,
    stack: StackReference,
    holders: Vec<LockInfo>,
    store_clock: &mut StoreClock,
) -> Result<(), StoreError> {
    if holder.lease.is_none() || holders.iter().any(|lock| lock.lease().is_none()) {
        return Err(StoreError::Locked { stack, holders });
    }
    let mut ended = Vec::new();
    for lock in &holders {
        if (access.locks.has_ended)(lock) {
            ended.push((lock, None));
            continue;
        }
        // Without the time nothing is known about the lock.
        let Ok(now) = store_clock.now(access).await else { return Err(StoreError::Locked { stack, holders }) };
        match unrenewed_time(lock, now) {
            Some(time) => ended.push((lock, Some(time))),
            None => return Err(StoreError::Locked { stack, holders }),
        }
    }
    for (lock, unrenewed) in ended {
        if !access.store.remove_ended_lock(&stack, lock, holder).await? {
            return Err(StoreError::Locked { stack, holders });
        }
        let has_journal = access.has_journal().unwrap_or(false);
        (access.locks.report)(&TakenOverLock { stack: stack.clone(), lock: lock.clone(), unrenewed, has_journal });
    }
    Ok(())
}

/// Returns the time since the last renewal of a lock, if it is so long that the lock may be taken over. A renewal in the
/// future is none.
fn unrenewed_time(lock: &LockInfo, now: Timestamp) -> Option<Duration> {
    let limit = lock.lease()?.duration.checked_mul(TAKEN_OVER_AFTER)?;
    let time = Duration::try_from(now.duration_since(lock.renewed?)).ok()?;
    (time >= limit).then_some(time)
}
