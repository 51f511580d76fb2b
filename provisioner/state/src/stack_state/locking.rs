//! Takes the lock of a stack, also from a run that has ended without releasing it, and keeps it.

use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;
use tracing::{Instrument as _, debug_span, info, info_span};

use super::access::StackAccess;
use super::lock_settings::TakenOverLock;
use super::lock_wait::{StoreClock, Wait};
use crate::error::StateError;
use crate::held_lease::{HeldLease, clock};
use crate::journal::seal_unwritten;
use crate::store::{LockHolder, LockInfo, LockLease, StackLock, StackReference, StackRename, StoreError};

/// Number of lease times without renewal after which a lock is taken over.
const TAKEN_OVER_AFTER: u32 = 2;
/// Largest number of takeovers in an attempt, without a wait between them.
const MAX_TAKEOVERS: u32 = 2;

/// Lock of a stack that is renewed until it is released or dropped.
pub(super) struct HeldLock {
    pub(super) lock: StackLock,
    pub(super) lease: Option<HeldLease>,
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
    /// The errors of [`HeldLease::confirm`].
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
        let released = access.store.unlock(lock).instrument(info_span!("unlock", %stack)).await;
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
    let acquiring = acquire(access, holder, || access.store.lock(&access.stack, holder));
    let (lock, requested) = acquiring.instrument(info_span!("lock", stack = %access.stack)).await?;
    Ok(HeldLock::new(access, lock, holder, requested))
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
    let (rename, requested) = acquire(access, holder, || access.store.begin_rename(&access.stack, to, holder)).await?;
    let keepers = rename.locks().map(|lock| keep(access, lock, holder, requested).1);
    Ok((rename, keepers))
}

/// Completes or undoes a rename from or to a stack whose process has ended, also if it has left its locks. Waits for locks
/// that other runs have, for the time in the settings. Renews the locks of both names until the rename is completed.
///
/// # Errors
/// The errors of `resume_rename` and `complete_rename` of the store.
pub async fn resume_rename(access: &StackAccess, holder: &LockHolder) -> Result<Option<StackRename>, StoreError> {
    let holder = &requested_by(access, holder);
    let (resumed, requested) = acquire(access, holder, || access.store.resume_rename(&access.stack, holder)).await?;
    let Some(mut rename) = resumed else { return Ok(None) };
    let _keepers = rename.locks().map(|lock| keep(access, lock, holder, requested).1);
    access.store.complete_rename(&mut rename).await?;
    Ok(Some(rename))
}

/// Requests locks until they are held, for the time in the settings, and returns the time of the request as well. Takes over
/// locks of ended runs.
async fn acquire<T, F>(
    access: &StackAccess,
    holder: &LockHolder,
    request: impl Fn() -> F,
) -> Result<(T, Duration), StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut wait = Wait::new(access);
    let mut takeovers = 0;
    loop {
        let requested = clock();
        let failed = match request().await {
            Ok(acquired) => return Ok((acquired, requested)),
            // A rename locks two names, each of which may have a lock of an ended run.
            Err(StoreError::Locked { stack, holders }) if takeovers < MAX_TAKEOVERS => {
                match take_over(access, holder, stack, holders, &mut wait.store_clock).await {
                    Ok(()) => {
                        info!("took over the lock of an ended run");
                        takeovers += 1;
                        continue;
                    }
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        wait.after(failed).instrument(debug_span!("wait", subject = "lock of another run")).await?;
        takeovers = 0;
    }
}

/// Returns the holder of a lock that the settings request: with a lease, or without one.
fn requested_by(access: &StackAccess, holder: &LockHolder) -> LockHolder {
    let lease = holder.lease.clone().filter(|_| access.locks.takeover);
    let has_stored_journal = access.has_stored_journal();
    LockHolder { lease: lease.map(|lease| LockLease { has_stored_journal, ..lease }), ..holder.clone() }
}

/// Starts to renew a lock, if it has a lease.
fn keep(
    access: &StackAccess,
    lock: &StackLock,
    holder: &LockHolder,
    requested: Duration,
) -> (Option<HeldLease>, JoinSet<()>) {
    let lease = holder.lease.as_ref().map(|lease| {
        HeldLease::new(access.store.clone(), lock.duplicate(), lease.duration, requested, access.locks.lost.clone())
    });
    let keeper = lease.as_ref().map_or_else(JoinSet::new, HeldLease::keeper);
    (lease, keeper)
}

/// Removes the locks of a stack if all of them belong to runs that have ended. A holder whose own lock has no lease takes
/// over no lock, and a lock without a lease is never taken over.
///
/// Two runs on one stack at the same time can lose resources, a lock that stays costs a command: in doubt the lock stays.
/// - A lock of `pulumi` has no lease, and nothing tells a long run from a dead one. Only a person can remove it.
/// - A process of this machine that has certainly ended (its id, start, boot and namespaces are compared) needs no waiting time.
/// - Any other holder counts as ended after twice the time of its lease. It starts nothing new once the lease has passed, so the
///   second half is for calls that were under way. The clock is that of the store, because clocks of two machines may differ.
/// - All locks must have ended: of two holders one may be in the middle of its request for the lock.
/// - A lock is removed only if it is still the object that was looked at. If its holder has renewed it meanwhile, it stays.
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
        if lock.lease().is_some_and(|lease| lease.has_stored_journal) {
            // Without a seal the run learns of the takeover by its lock alone.
            seal_unwritten(&access.store, &stack, lock.run(), &holder.hostname).await.ok();
        }
        let has_journal = access.has_journal().await.unwrap_or(false);
        (access.locks.report)(&TakenOverLock { stack: stack.clone(), lock: lock.clone(), unrenewed, has_journal });
    }
    Ok(())
}

/// Lock of a stack, and what is known about its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockSummary {
    /// Account and machine of the run, `USER@HOST`; `None` if the lock cannot be read.
    pub by: Option<String>,
    /// Knowledge about the run.
    pub run: LockedRun,
}

/// Knowledge about the run that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedRun {
    /// Run that has renewed the lock in time.
    Active,
    /// Run whose process has ended, or that has not renewed the lock for so long that the next run takes it over.
    Ended,
    /// Lock without a lease, as those of `pulumi`, or in a store without a clock: the run may be active or not.
    Unknown,
}

/// Summarizes the locks of a stack; `None` if there is none. Of several locks, one of a run that may be active decides.
pub(super) async fn summarize(access: &StackAccess) -> Result<Option<LockSummary>, StoreError> {
    let (locks, mut store_clock) = (access.store.locks(&access.stack).await?, StoreClock::default());
    let mut summary: Option<LockSummary> = None;
    for lock in &locks {
        let run = if (access.locks.has_ended)(lock) {
            LockedRun::Ended
        } else if lock.lease().is_none() || lock.renewed.is_none() {
            LockedRun::Unknown
        } else {
            match store_clock.now(access).await {
                Ok(now) if unrenewed_time(lock, now).is_some() => LockedRun::Ended,
                Ok(_) => LockedRun::Active,
                Err(_) => LockedRun::Unknown,
            }
        };
        if summary.as_ref().is_none_or(|found| found.run == LockedRun::Ended) {
            let by = lock.holder.as_ref().map(|(holder, _)| format!("{}@{}", holder.username, holder.hostname));
            summary = Some(LockSummary { by, run });
        }
    }
    Ok(summary)
}

/// Removes locks that a user has seen, and returns those that were still held. A run that is active nevertheless and has written
/// nothing to the store begins nothing any more: its journal is sealed on behalf of a host.
///
/// # Errors
/// [`StoreError`].
pub async fn break_locks(access: &StackAccess, seen: &[LockInfo], host: &str) -> Result<Vec<LockInfo>, StoreError> {
    let removed = access.store.break_locks(&access.stack, seen).await?;
    for lock in &removed {
        if lock.lease().is_some_and(|lease| lease.has_stored_journal) {
            // Without a seal the run learns by its lock alone.
            seal_unwritten(&access.store, &access.stack, lock.run(), host).await.ok();
        }
    }
    Ok(removed)
}

/// Returns the time since the last renewal of a lock, if it is so long that the lock may be taken over. A renewal in the
/// future is none.
fn unrenewed_time(lock: &LockInfo, now: Timestamp) -> Option<Duration> {
    let limit = lock.lease()?.duration.checked_mul(TAKEN_OVER_AFTER)?;
    let time = Duration::try_from(now.duration_since(lock.renewed?)).ok()?;
    (time >= limit).then_some(time)
}
