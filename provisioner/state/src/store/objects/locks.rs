//! Locks as objects.

use bridge::fs::MAX_DOCUMENT_BYTES;
use futures_util::future::join_all;
use jiff::Timestamp;

use super::super::error::StoreError;
use super::super::lock::{self, CHECK_DELAYS, LockHolder, LockInfo, StackLock, new_lock_name};
use super::super::reference::StackReference;
use super::interface::{WriteCondition, WriteError};
use super::store::ObjectStore;

impl ObjectStore {
    /// Locks a stack in the order of Pulumi's command line: check, write, check again. Of two concurrent runs at least
    /// one finds the lock of the other, because a listing has every object that was written before.
    pub(super) async fn take_new_lock(
        &self,
        stack: &StackReference,
        holder: &LockHolder,
    ) -> Result<StackLock, StoreError> {
        let lock = StackLock { stack: stack.clone(), name: new_lock_name() };
        self.take_lock(&lock, holder).await?;
        Ok(lock)
    }

    /// Locks a stack with a lock whose name is known.
    pub(super) async fn take_lock(&self, lock: &StackLock, holder: &LockHolder) -> Result<(), StoreError> {
        let StackLock { stack, name } = lock;
        self.refuse_if_locked(stack, None).await?;
        self.write_metadata().await?;
        let key = self.lock_key(stack, name);
        let text = lock::write(holder, Timestamp::now());
        let written = self.write(&key, text.into_bytes(), &WriteCondition::Missing).await;
        let locked = match written {
            // No other run uses this name: the reply to the first request was lost.
            Ok(()) | Err(WriteError::Condition) => self.refuse_if_locked(stack, Some(name)).await,
            Err(WriteError::Request(error)) => Err(error.into()),
        };
        if locked.is_err() {
            // A request without reply may have written the lock. The first error is the reason.
            self.objects.remove(&key).await.ok();
        }
        locked
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
        let mut delays = CHECK_DELAYS.iter();
        let (names, is_held) = loop {
            let names = self.lock_names(&lock.stack).await?;
            // The common case needs only one listing.
            if names == [lock.name.as_str()] {
                return Ok(());
            }
            let is_held = names.contains(&lock.name);
            match delays.next().filter(|_| is_held) {
                // A store sends no notification of a change.
                Some(delay) => tokio::time::sleep(*delay).await,
                None => break (names, is_held),
            }
        };
        let others: Vec<_> = names.into_iter().filter(|name| *name != lock.name).collect();
        let holders = self.read_named_locks(&lock.stack, &others).await;
        let stack = lock.stack.clone();
        Err(if is_held { StoreError::Locked { stack, holders } } else { StoreError::LockLost { stack, holders } })
    }

    /// Returns the names of all objects in the folder of the locks. Any object counts as a lock, as in Pulumi.
    pub(super) async fn lock_names(&self, stack: &StackReference) -> Result<Vec<String>, StoreError> {
        let listed = self.objects.list(&self.layout.locks(stack)).await?;
        Ok(listed.into_iter().map(|object| object.name).collect())
    }

    pub(super) async fn read_locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        let names = self.lock_names(stack).await?;
        Ok(self.read_named_locks(stack, &names).await)
    }

    /// Reads locks. One that was released since the listing counts: the caller has to try again. One that cannot be read
    /// counts as well.
    async fn read_named_locks(&self, stack: &StackReference, names: &[String]) -> Vec<LockInfo> {
        let read = async |name: &String| {
            let key = self.lock_key(stack, name);
            let object = self.objects.read(&key, MAX_DOCUMENT_BYTES).await.ok().flatten();
            let content = object.map(|object| object.content).unwrap_or_default();
            lock::read(name, &String::from_utf8_lossy(&content))
        };
        join_all(names.iter().map(read)).await
    }
}
