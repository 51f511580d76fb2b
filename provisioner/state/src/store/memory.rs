//! Store in memory that checks the integrity of every saved checkpoint. Compiled for tests only (`#[cfg(test)]` in
//! `mod.rs`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;

use super::catalog::{Backups, StackCatalog, Tags};
use super::error::StoreError;
use super::lock::{self, LockHolder, LockInfo, StackLock};
use super::reference::StackReference;
use super::state_store::StateStore;
use crate::format::{SecretDecryption, StoredText};
use crate::integrity;

/// Store that keeps states in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryStore {
    stacks: Mutex<BTreeMap<StackReference, Stack>>,
}

#[derive(Debug, Default)]
struct Stack {
    checkpoints: Vec<String>,
    history: Vec<String>,
    tags: Tags,
    locks: BTreeMap<String, String>,
}

impl MemoryStore {
    /// Returns the history entries of a stack, oldest first.
    pub(crate) fn history(&self, stack: &StackReference) -> Vec<String> {
        self.stacks().get(stack).map(|stack| stack.history.clone()).unwrap_or_default()
    }

    async fn check_lock(&self, lock: &StackLock) -> Result<(), StoreError> {
        let holders = self.locks(&lock.stack).await?;
        if holders.iter().any(|holder| holder.name == lock.name) {
            return Ok(());
        }
        Err(StoreError::LockLost { stack: lock.stack.clone(), holders })
    }

    fn stacks(&self) -> MutexGuard<'_, BTreeMap<StackReference, Stack>> {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl StackCatalog for MemoryStore {
    async fn list(&self) -> Result<Vec<StackReference>, StoreError> {
        let stacks = self.stacks();
        Ok(stacks.iter().filter(|(_, stack)| !stack.checkpoints.is_empty()).map(|(name, _)| name.clone()).collect())
    }

    async fn history(&self, stack: &StackReference) -> Result<Vec<String>, StoreError> {
        Ok(Self::history(self, stack))
    }

    async fn tags(&self, stack: &StackReference) -> Result<Tags, StoreError> {
        Ok(self.stacks().get(stack).map(|stack| stack.tags.clone()).unwrap_or_default())
    }

    async fn set_tags(&self, stack: &StackReference, tags: &Tags) -> Result<(), StoreError> {
        self.stacks().entry(stack.clone()).or_default().tags.clone_from(tags);
        Ok(())
    }

    async fn rename(&self, lock: &StackLock, to: &StackReference, checkpoint: &str) -> Result<(), StoreError> {
        self.check_lock(lock).await?;
        if self.load(to).await?.is_some() {
            return Err(StoreError::Exists(to.clone()));
        }
        let mut stacks = self.stacks();
        let old = stacks.entry(lock.stack.clone()).or_default();
        old.checkpoints.clear();
        let history = std::mem::take(&mut old.history);
        let new = stacks.entry(to.clone()).or_default();
        (new.checkpoints, new.history) = (vec![checkpoint.to_owned()], history);
        Ok(())
    }

    async fn remove(&self, lock: &StackLock, _: Backups) -> Result<(), StoreError> {
        self.check_lock(lock).await?;
        if let Some(stack) = self.stacks().get_mut(&lock.stack) {
            (stack.checkpoints, stack.history, stack.tags) = Default::default();
        }
        Ok(())
    }
}

#[async_trait]
impl StateStore for MemoryStore {
    fn location(&self) -> String {
        "memory".to_owned()
    }

    fn checkpoint_location(&self, stack: &StackReference) -> String {
        format!("memory:{stack}")
    }

    async fn load(&self, stack: &StackReference) -> Result<Option<String>, StoreError> {
        Ok(self.stacks().get(stack).and_then(|stack| stack.checkpoints.last().cloned()))
    }

    async fn save(&self, lock: &StackLock, checkpoint: &str) -> Result<(), StoreError> {
        self.check_lock(lock).await?;
        let stack = &lock.stack;
        let refuse = |source| StoreError::Refused { stack: stack.clone(), source: Box::new(source) };
        let read = StoredText::parse(checkpoint).and_then(|stored| stored.read(SecretDecryption::KeepEncrypted));
        let read = read.map_err(|error| refuse(error.into()))?;
        if let Some(snapshot) = &read.snapshot {
            integrity::verify(snapshot).map_err(|error| refuse(error.into()))?;
        }
        self.stacks().entry(stack.clone()).or_default().checkpoints.push(checkpoint.to_owned());
        Ok(())
    }

    async fn archive(&self, stack: &StackReference, update: &str) -> Result<(), StoreError> {
        self.stacks().entry(stack.clone()).or_default().history.push(update.to_owned());
        Ok(())
    }

    async fn lock(&self, stack: &StackReference, holder: &LockHolder) -> Result<StackLock, StoreError> {
        let holders = self.locks(stack).await?;
        let mut stacks = self.stacks();
        let locks = &mut stacks.entry(stack.clone()).or_default().locks;
        if !locks.is_empty() {
            return Err(StoreError::Locked { stack: stack.clone(), holders });
        }
        let name = format!("{}.json", uuid::Uuid::new_v4());
        locks.insert(name.clone(), lock::write(holder, Timestamp::now()));
        Ok(StackLock { stack: stack.clone(), name })
    }

    async fn unlock(&self, lock: StackLock) -> Result<(), StoreError> {
        if let Some(stack) = self.stacks().get_mut(&lock.stack) {
            stack.locks.remove(&lock.name);
        }
        Ok(())
    }

    async fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        let stacks = self.stacks();
        let locks = stacks.get(stack).map(|stack| stack.locks.iter()).into_iter().flatten();
        Ok(locks.map(|(name, text)| lock::read(name, text)).collect())
    }

    async fn break_locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        let locks = self.locks(stack).await?;
        if let Some(stack) = self.stacks().get_mut(stack) {
            stack.locks.clear();
        }
        Ok(locks)
    }
}
