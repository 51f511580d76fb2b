//! Wait for the lock of a stack that another run has.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::access::StackAccess;
use super::lock_settings::AwaitedLocks;
use crate::held_lease::clock;
use crate::store::StoreError;

/// Time between two attempts to take a lock. A store may be shared by several machines, whose changes cause no notification.
const INTERVAL: Duration = Duration::from_secs(1);
/// Largest addition to the time between two attempts, in milliseconds. It differs each time, so that two processes that wait do
/// not keep meeting: of two that lock at the same time, both may fail.
const SPREAD: u128 = 300;

/// Wait for a lock, from the first attempt to take it on.
pub(super) struct Wait<'a> {
    access: &'a StackAccess,
    started: Instant,
    /// Names of the locks that were reported last.
    shown: Vec<String>,
    pub(super) store_clock: StoreClock,
}

impl<'a> Wait<'a> {
    /// Begins a wait.
    pub(super) fn new(access: &'a StackAccess) -> Self {
        Self { access, started: Instant::now(), shown: Vec::new(), store_clock: StoreClock::default() }
    }

    /// Returns when it is time for another attempt, after one that has failed.
    ///
    /// # Errors
    /// The error of the attempt, if it is not that another run has the lock, the time to wait is over, or the wait was
    /// stopped.
    pub(super) async fn after(&mut self, error: StoreError) -> Result<(), StoreError> {
        let wait = &self.access.locks.wait;
        let rest = wait.limit.saturating_sub(self.started.elapsed());
        let StoreError::Locked { stack, holders } = &error else { return Err(error) };
        if rest.is_zero() {
            return Err(error);
        }
        // A renewed lock is the same one.
        let names: Vec<_> = holders.iter().map(|lock| lock.name.clone()).collect();
        if names != self.shown {
            let locks = holders.iter().map(|lock| (lock.clone(), (wait.describe)(lock))).collect();
            (wait.report)(&AwaitedLocks { stack: stack.clone(), locks, limit: wait.limit });
            self.shown = names;
        }
        let addition = u64::try_from(uuid::Uuid::new_v4().as_u128() % SPREAD).unwrap_or_default();
        let interval = INTERVAL + Duration::from_millis(addition);
        // A store does not report that a lock was removed.
        tokio::select! {
            () = tokio::time::sleep(interval.min(rest)) => Ok(()),
            () = wait.stop.cancelled() => Err(error),
        }
    }
}

/// Clock of the store. It is read once for all attempts, because that takes several requests, and then continued here.
#[derive(Default)]
pub(super) struct StoreClock {
    /// Time of the store, and that of [`clock`] afterwards.
    read: Option<(Timestamp, Duration)>,
}

impl StoreClock {
    /// Returns the time by the clock of the store, or an earlier one.
    pub(super) async fn now(&mut self, access: &StackAccess) -> Result<Timestamp, StoreError> {
        let (time, read) = match self.read {
            Some(read) => read,
            None => {
                let time = access.store.now().await?;
                *self.read.insert((time, clock()))
            }
        };
        Ok(time.checked_add(clock().saturating_sub(read)).unwrap_or(time))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::lock_settings::{LockSettings, LockWait};
    use super::super::locking::lock;
    use super::*;
    use crate::error::StateError;
    use crate::journal::JournalFolders;
    use crate::secrets::Keyring;
    use crate::store::{MemoryObjects, StackReference, StateStore, StoreOptions, compliance};

    #[tokio::test(start_paused = true)]
    async fn wait_for_a_lock_reads_the_clock_of_the_store_once() {
        let objects = MemoryObjects::default();
        let store = StateStore::open(Arc::new(objects.clone()), StoreOptions::default()).await.unwrap();
        let holder = compliance::leased(1);
        let stack = StackReference::new("reef", "dev").unwrap();
        let _held = store.lock(&stack, &holder).await.unwrap();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&reports);
        let wait = LockWait {
            limit: Duration::from_secs(30),
            describe: |_| Some("it runs".to_owned()),
            report: Arc::new(move |locks: &AwaitedLocks| reported.lock().unwrap().push(locks.to_string())),
            ..LockWait::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let access = StackAccess {
            store,
            stack,
            keyring: Arc::new(Keyring::new(None)),
            configured_secrets: None,
            config: Default::default(),
            journals: JournalFolders::of_backend(folder.path()),
            journal_mode: Default::default(),
            unrecorded: Default::default(),
            locks: LockSettings { wait, ..LockSettings::default() },
            begins_anew: false,
            engine_version: String::new(),
        };
        objects.take_requests();
        let error = lock(&access, &holder).await.err().unwrap();
        assert!(matches!(error, StateError::Store(StoreError::Locked { .. })), "{error}");
        let requests = objects.take_requests();
        let count = |key: &str| requests.iter().filter(|request| request.key.starts_with(key)).count();
        assert_eq!(count(".sc/clock"), 3, "{requests:?}");
        assert!(count(".pulumi/locks") > 40, "{requests:?}");
        let reports = reports.lock().unwrap();
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(
            reports[0].starts_with("waiting for the lock of organization/reef/dev, 30 s at most:\n  "),
            "{reports:?}"
        );
        assert!(reports[0].ends_with("\n    it runs"), "{reports:?}");
    }
}
