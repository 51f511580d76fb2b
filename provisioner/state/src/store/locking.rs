//! Locks of stacks: taken, renewed, released and listed.

use bridge::fs::MAX_DOCUMENT_BYTES;
use bytes::Bytes;
use futures_util::future::join_all;
use jiff::Timestamp;

use super::error::StoreError;
use super::lock::{
    self, CHECK_DELAYS, LockHolder, LockInfo, LockLease, LockObject, StackLock, StoredLock, new_lock_name,
};
use super::objects::{Durability, Effect, ObjectVersion, StoredObject, WriteCondition, WriteError};
use super::reference::StackReference;
use super::state_store::StateStore;

impl StateStore {
    /// Takes the lock of a stack in the order of Pulumi's command line: check, write, check again. Of two concurrent runs at
    /// least one finds the lock of the other, because a listing has every object that was written before.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another holder has the lock, or requests it at the same time: of several concurrent
    /// requests all may fail, but at most one succeeds.
    pub async fn lock(&self, stack: &StackReference, holder: &LockHolder) -> Result<StackLock, StoreError> {
        let lock = StackLock::new(stack.clone(), new_lock_name());
        let lease = holder.lease.clone().map(|lease| LockLease { run: lock.run().to_owned(), ..lease });
        self.take_lock(&lock, &LockHolder { lease, ..holder.clone() }).await?;
        Ok(lock)
    }

    /// Locks a stack with a lock whose name is known.
    pub(super) async fn take_lock(&self, lock: &StackLock, holder: &LockHolder) -> Result<(), StoreError> {
        let StackLock { stack, name, .. } = lock;
        self.refuse_if_locked(stack, None).await?;
        self.write_metadata().await?;
        let key = self.lock_key(stack, name);
        let stored = StoredLock::new(holder, Timestamp::now());
        // Of the locks that were requested at the same time the one with the lowest name stays until the others are gone. If
        // each gave way to each, many requests could prevent each other for minutes.
        let beside = match self.write_lock(&key, &stored, &WriteCondition::Missing).await {
            Ok(Some(version)) => {
                *lock.object.lock().await = Some(LockObject { stored, version });
                self.names_beside(lock, |names| names.iter().min() == Some(name)).await
            }
            // A lock of a rename: another run has resumed it at the same time.
            Ok(None) => return self.refuse_if_locked(stack, None).await,
            Err(error) => Err(error),
        };
        if beside.as_ref().is_ok_and(|names| *names == [name.as_str()]) {
            return Ok(());
        }
        // A request without reply may have written the lock. It is removed before anything else is requested, because the lock
        // that stays waits for that. The first error is the reason.
        self.objects.remove(&key).await.ok();
        Err(match beside {
            Ok(names) => self.held_by_others(lock, names).await,
            Err(error) => error,
        })
    }

    /// Writes a lock on a condition, and returns its version; `None` if another program has changed or removed it. If the
    /// reply to a request is lost, the content of the object says whether it was written.
    async fn write_lock(
        &self,
        key: &str,
        stored: &StoredLock,
        condition: &WriteCondition,
    ) -> Result<Option<ObjectVersion>, StoreError> {
        let text = Bytes::from(stored.write());
        match self.objects.write(key, text.clone(), condition, Durability::Eventual).await {
            Ok(version) => Ok(Some(version)),
            Err(WriteError::Request(error)) if error.effect != Effect::Unknown => Err(error.into()),
            Err(failed) => {
                let found = self.objects.read(key, MAX_DOCUMENT_BYTES).await?;
                match (found, failed) {
                    (Some(found), _) if found.content == text => Ok(Some(found.version)),
                    (_, WriteError::Condition) => Ok(None),
                    (_, WriteError::Request(error)) => Err(error.into()),
                }
            }
        }
    }

    /// Releases a lock.
    pub async fn unlock(&self, lock: StackLock) -> Result<(), StoreError> {
        Ok(self.objects.remove(&self.lock_key(&lock.stack, &lock.name)).await?)
    }

    /// Renews the lease of a lock. A lock that was removed is not created again.
    ///
    /// # Errors
    /// [`StoreError::LockLost`] if the lock was removed.
    pub async fn renew(&self, lock: &StackLock) -> Result<(), StoreError> {
        self.rewrite_lock(lock, StoredLock::renewed).await
    }

    /// Removes the lease of a lock, which then stays until it is released or broken. A lock that was removed is not created
    /// again.
    ///
    /// # Errors
    /// [`StoreError::LockLost`] if the lock was removed.
    pub async fn end_lease(&self, lock: &StackLock) -> Result<(), StoreError> {
        self.rewrite_lock(lock, StoredLock::without_lease).await
    }

    /// Changes the text of a lock on the condition that it is still the one that this run has written.
    pub(super) async fn rewrite_lock(
        &self,
        lock: &StackLock,
        change: impl FnOnce(&StoredLock) -> StoredLock + Send,
    ) -> Result<(), StoreError> {
        let key = self.lock_key(&lock.stack, &lock.name);
        let mut object = lock.object.lock().await;
        if let Some(LockObject { stored, version }) = &*object {
            let renewed = change(stored);
            let condition = WriteCondition::Unchanged(version.clone());
            if let Some(version) = self.write_lock(&key, &renewed, &condition).await? {
                *object = Some(LockObject { stored: renewed, version });
                return Ok(());
            }
        }
        let mut holders = self.locks(&lock.stack).await?;
        holders.retain(|holder| holder.name != lock.name);
        Err(StoreError::LockLost { stack: lock.stack.clone(), holders })
    }

    /// Makes a lock that an ended process has left one of the holder.
    pub(super) async fn adopt_lock(&self, lock: &StackLock, holder: &LockHolder) -> Result<(), StoreError> {
        let read = self.objects.read(&self.lock_key(&lock.stack, &lock.name), MAX_DOCUMENT_BYTES).await?;
        let stored = read.and_then(|read| Some((StoredLock::read(&read.content)?, read.version)));
        *lock.object.lock().await = stored.map(|(stored, version)| LockObject { stored, version });
        self.rewrite_lock(lock, |_| StoredLock::new(holder, Timestamp::now())).await
    }

    /// Removes a lock whose run has ended, on behalf of a holder, unless it was renewed since it was read. Returns whether it
    /// is removed. Replaces the lock by one of the holder on that condition first: no store removes on a condition.
    pub async fn remove_ended_lock(
        &self,
        stack: &StackReference,
        lock: &LockInfo,
        holder: &LockHolder,
    ) -> Result<bool, StoreError> {
        let key = self.lock_key(stack, &lock.name);
        let Some(version) = &lock.version else { return Ok(false) };
        let condition = WriteCondition::Unchanged(version.clone());
        let replaced = self.write_lock(&key, &StoredLock::new(holder, Timestamp::now()), &condition).await?;
        if replaced.is_some() {
            self.objects.remove(&key).await?;
        }
        Ok(replaced.is_some())
    }

    /// Returns the time by the clock that [`LockInfo::renewed`] has.
    pub async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.objects.time().await?)
    }

    pub(super) fn lock_key(&self, stack: &StackReference, name: &str) -> String {
        format!("{}/{name}", self.layout.locks(stack))
    }

    pub(super) async fn refuse_if_locked(&self, stack: &StackReference, own: Option<&str>) -> Result<(), StoreError> {
        let mut names = self.lock_names(stack).await?;
        names.retain(|name| Some(name.as_str()) != own);
        if names.is_empty() {
            return Ok(());
        }
        let holders = self.read_named_locks(stack, &names).await;
        Err(StoreError::Locked { stack: stack.clone(), holders })
    }

    /// Checks that a lock is still held, and is the only one. Locks of other runs may appear for a moment: these runs
    /// find this lock and remove theirs.
    pub(super) async fn check_lock(&self, lock: &StackLock) -> Result<(), StoreError> {
        let names = self.names_beside(lock, |names| names.contains(&lock.name)).await?;
        if names == [lock.name.as_str()] {
            return Ok(());
        }
        Err(self.held_by_others(lock, names).await)
    }

    /// Returns the names of the locks of a stack, once the given one is the only one or has to give way.
    async fn names_beside(
        &self,
        lock: &StackLock,
        stays: impl Fn(&[String]) -> bool + Send,
    ) -> Result<Vec<String>, StoreError> {
        let mut delays = CHECK_DELAYS.iter();
        loop {
            let names = self.lock_names(&lock.stack).await?;
            // The common case needs only one listing.
            if names == [lock.name.as_str()] {
                return Ok(names);
            }
            match delays.next().filter(|_| stays(&names)) {
                // A store sends no notification of a change.
                Some(delay) => tokio::time::sleep(*delay).await,
                None => return Ok(names),
            }
        }
    }

    /// Returns the error for a lock that is not the only one, or is none any more.
    async fn held_by_others(&self, lock: &StackLock, mut names: Vec<String>) -> StoreError {
        let is_held = names.contains(&lock.name);
        names.retain(|name| *name != lock.name);
        let holders = self.read_named_locks(&lock.stack, &names).await;
        let stack = lock.stack.clone();
        if is_held { StoreError::Locked { stack, holders } } else { StoreError::LockLost { stack, holders } }
    }

    /// Returns the names of all objects in the folder of the locks. Any object counts as a lock, as in Pulumi.
    pub(super) async fn lock_names(&self, stack: &StackReference) -> Result<Vec<String>, StoreError> {
        let listed = self.objects.list(&self.layout.locks(stack)).await?;
        Ok(listed.into_iter().map(|object| object.name).collect())
    }

    /// Returns the held locks of a stack.
    pub async fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        let names = self.lock_names(stack).await?;
        Ok(self.read_named_locks(stack, &names).await)
    }

    /// Breaks the given locks of a stack, and returns those that were still held. Locks that other runs have taken since
    /// they were listed stay.
    pub async fn break_locks(&self, stack: &StackReference, locks: &[LockInfo]) -> Result<Vec<LockInfo>, StoreError> {
        let held = self.lock_names(stack).await?;
        let mut removed = locks.to_vec();
        removed.retain(|lock| held.contains(&lock.name));
        for lock in &removed {
            self.objects.remove(&self.lock_key(stack, &lock.name)).await?;
        }
        Ok(removed)
    }

    /// Reads locks. One that was released since the listing counts: the caller has to try again. One that cannot be read
    /// counts as well.
    async fn read_named_locks(&self, stack: &StackReference, names: &[String]) -> Vec<LockInfo> {
        let read = async |name: &String| {
            let key = self.lock_key(stack, name);
            match self.objects.read(&key, MAX_DOCUMENT_BYTES).await {
                Ok(Some(StoredObject { content, version, modified })) => {
                    LockInfo { renewed: Some(modified), version: Some(version), ..lock::read(name, &content) }
                }
                Ok(None) | Err(_) => LockInfo::new(name, None),
            }
        };
        join_all(names.iter().map(read)).await
    }
}
