//! Store in memory that checks the integrity of every saved checkpoint. Compiled for tests only (`#[cfg(test)]` in
//! `mod.rs`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bridge::fs::FileError;
use jiff::Timestamp;

use super::catalog::{Backups, StackCatalog, Tags};
use super::contents::StackContents;
use super::copy::{CheckpointCopy, CopyKind};
use super::error::StoreError;
use super::history_entry::HistoryEntry;
use super::lock::{self, LockHolder, LockInfo, StackLock, StoredLock};
use super::migration_mark::MigrationMark;
use super::reference::StackReference;
use super::rename::{RenameOutcome, StackRename};
use super::revision::{Expected, Revision, StoredCheckpoint};
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
    history: BTreeMap<Timestamp, String>,
    tags: Tags,
    locks: BTreeMap<String, String>,
    /// Copies of a migration, by kind and time.
    copies: BTreeMap<(CopyKind, Timestamp), String>,
    mark: Option<MigrationMark>,
}

impl MemoryStore {
    fn text(&self, stack: &StackReference) -> Option<String> {
        self.stacks().get(stack).and_then(|stack| stack.checkpoints.last().cloned())
    }

    fn check_expected(&self, stack: &StackReference, expected: &Expected) -> Result<(), StoreError> {
        if expected.is_met_by(self.text(stack).as_deref()) {
            return Ok(());
        }
        Err(StoreError::Replaced { stack: stack.clone(), written: None })
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

    async fn tags(&self, stack: &StackReference) -> Result<Tags, StoreError> {
        Ok(self.stacks().get(stack).map(|stack| stack.tags.clone()).unwrap_or_default())
    }

    async fn set_tags(&self, stack: &StackReference, tags: &Tags) -> Result<(), StoreError> {
        self.stacks().entry(stack.clone()).or_default().tags.clone_from(tags);
        Ok(())
    }

    async fn copies(&self, stack: &StackReference, kinds: &[CopyKind]) -> Result<Vec<CheckpointCopy>, StoreError> {
        let saved = self.stacks().get(stack).map_or(0, |stack| stack.checkpoints.len());
        let previous = CheckpointCopy {
            kind: CopyKind::Previous,
            name: "bak".to_owned(),
            location: format!("{stack}.bak"),
            time: Timestamp::UNIX_EPOCH,
            key: stack.to_string(),
        };
        let previous = Some(previous).filter(|_| saved > 1 && kinds.contains(&CopyKind::Previous));
        let stacks = self.stacks();
        let added = stacks.get(stack).into_iter().flat_map(|stack| stack.copies.keys()).rev();
        let added = added.filter(|(kind, _)| kinds.contains(kind)).map(|(kind, time)| CheckpointCopy {
            kind: *kind,
            name: format!("{}-{}", kind.as_str(), time.as_nanosecond()),
            location: format!("{stack}.{}", kind.as_str()),
            time: *time,
            key: stack.to_string(),
        });
        Ok(previous.into_iter().chain(added).collect())
    }

    async fn read_copy(&self, copy: &CheckpointCopy) -> Result<String, StoreError> {
        let stacks = self.stacks();
        let stack = stacks.iter().find(|(name, _)| name.to_string() == copy.key);
        let added = stack.and_then(|(_, stack)| stack.copies.get(&(copy.kind, copy.time)).cloned());
        let previous = stack.and_then(|(_, stack)| stack.checkpoints.iter().nth_back(1).cloned());
        added
            .or(previous)
            .ok_or_else(|| FileError::of("read", Path::new(&copy.location))(std::io::ErrorKind::NotFound.into()).into())
    }

    async fn restore(
        &self,
        lock: &StackLock,
        _: &CheckpointCopy,
        checkpoint: &str,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        self.save(lock, checkpoint, expected).await.map(drop)
    }

    async fn begin_rename(
        &self,
        from: &StackReference,
        to: &StackReference,
        holder: &LockHolder,
    ) -> Result<StackRename, StoreError> {
        let from = self.lock(from, holder).await?;
        match self.lock(to, holder).await {
            Ok(to) => Ok(StackRename { from, to, outcome: RenameOutcome::OldName, intent: None }),
            Err(error) => {
                self.unlock(from).await?;
                Err(error)
            }
        }
    }

    async fn rename(&self, rename: &mut StackRename, checkpoint: &str, expected: &Expected) -> Result<(), StoreError> {
        self.check_lock(&rename.from).await?;
        self.check_lock(&rename.to).await?;
        self.check_expected(rename.from(), expected)?;
        if self.load(rename.to()).await?.is_some() {
            return Err(StoreError::Exists(rename.to().clone()));
        }
        let mut stacks = self.stacks();
        let old = stacks.entry(rename.from().clone()).or_default();
        old.checkpoints.clear();
        let history = std::mem::take(&mut old.history);
        let new = stacks.entry(rename.to().clone()).or_default();
        (new.checkpoints, new.history) = (vec![checkpoint.to_owned()], history);
        rename.outcome = RenameOutcome::NewName;
        Ok(())
    }

    async fn finish_rename(&self, rename: StackRename) -> Result<(), StoreError> {
        self.unlock(rename.to).await?;
        self.unlock(rename.from).await
    }

    /// Returns `None`: a rename does not outlive the process.
    async fn resume_rename(&self, _: &StackReference, _: &LockHolder) -> Result<Option<StackRename>, StoreError> {
        Ok(None)
    }

    async fn complete_rename(&self, _: &mut StackRename) -> Result<(), StoreError> {
        Ok(())
    }

    async fn remove(&self, lock: &StackLock, _: Backups, expected: &Expected) -> Result<(), StoreError> {
        self.check_lock(lock).await?;
        self.check_expected(&lock.stack, expected)?;
        if let Some(stack) = self.stacks().get_mut(&lock.stack) {
            (stack.checkpoints, stack.history, stack.tags) = Default::default();
        }
        Ok(())
    }
}

#[async_trait]
impl StackContents for MemoryStore {
    async fn read_checkpoint(&self, stack: &StackReference) -> Result<Option<StoredCheckpoint>, StoreError> {
        Ok(self.text(stack).map(StoredCheckpoint::new))
    }

    async fn history_entries(&self, stack: &StackReference) -> Result<Vec<HistoryEntry>, StoreError> {
        let stacks = self.stacks();
        let entries = stacks.get(stack).into_iter().flat_map(|stack| stack.history.iter());
        Ok(entries.map(|(time, update)| HistoryEntry { time: *time, update: update.clone() }).collect())
    }

    async fn add_history_entry(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        self.archive(stack, entry).await
    }

    async fn add_copy(
        &self,
        stack: &StackReference,
        kind: CopyKind,
        time: Timestamp,
        checkpoint: &str,
    ) -> Result<(), StoreError> {
        let mut stacks = self.stacks();
        stacks.entry(stack.clone()).or_default().copies.insert((kind, time), checkpoint.to_owned());
        Ok(())
    }

    fn mark_location(&self, stack: &StackReference) -> String {
        format!("memory:mark of {stack}")
    }

    async fn mark(&self, stack: &StackReference) -> Result<Option<MigrationMark>, StoreError> {
        Ok(self.stacks().get(stack).and_then(|stack| stack.mark.clone()))
    }

    async fn set_mark(&self, stack: &StackReference, mark: Option<&MigrationMark>) -> Result<(), StoreError> {
        self.stacks().entry(stack.clone()).or_default().mark = mark.cloned();
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

    async fn save(&self, lock: &StackLock, checkpoint: &str, expected: &Expected) -> Result<Revision, StoreError> {
        self.check_lock(lock).await?;
        self.check_expected(&lock.stack, expected)?;
        let stack = &lock.stack;
        let refuse = |source| StoreError::Refused { stack: stack.clone(), source: Box::new(source) };
        let read = StoredText::parse(checkpoint).and_then(|stored| stored.read(SecretDecryption::KeepEncrypted));
        let read = read.map_err(|error| refuse(error.into()))?;
        if let Some(snapshot) = &read.snapshot {
            integrity::verify(snapshot).map_err(|error| refuse(error.into()))?;
        }
        self.stacks().entry(stack.clone()).or_default().checkpoints.push(checkpoint.to_owned());
        Ok(Revision::of_saved(Arc::new(checkpoint.to_owned())))
    }

    async fn archive(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        self.stacks().entry(stack.clone()).or_default().history.insert(entry.time, entry.update.clone());
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
        Ok(StackLock::new(stack.clone(), name))
    }

    async fn unlock(&self, lock: StackLock) -> Result<(), StoreError> {
        if let Some(stack) = self.stacks().get_mut(&lock.stack) {
            stack.locks.remove(&lock.name);
        }
        Ok(())
    }

    async fn renew(&self, lock: &StackLock) -> Result<(), StoreError> {
        self.check_lock(lock).await
    }

    async fn end_lease(&self, lock: &StackLock) -> Result<(), StoreError> {
        self.check_lock(lock).await?;
        let mut stacks = self.stacks();
        let text = stacks.get_mut(&lock.stack).and_then(|stack| stack.locks.get_mut(&lock.name));
        if let Some(text) = text
            && let Some(stored) = StoredLock::read(text.as_bytes())
        {
            *text = stored.without_lease().write();
        }
        Ok(())
    }

    async fn remove_ended_lock(
        &self,
        stack: &StackReference,
        lock: &LockInfo,
        _: &LockHolder,
    ) -> Result<bool, StoreError> {
        self.break_locks(stack, std::slice::from_ref(lock)).await.map(|_| true)
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::now())
    }

    async fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        let stacks = self.stacks();
        let locks = stacks.get(stack).map(|stack| stack.locks.iter()).into_iter().flatten();
        Ok(locks.map(|(name, text)| lock::read(name, text.as_bytes())).collect())
    }

    async fn break_locks(&self, stack: &StackReference, locks: &[LockInfo]) -> Result<Vec<LockInfo>, StoreError> {
        let mut stacks = self.stacks();
        let held = &mut stacks.entry(stack.clone()).or_default().locks;
        Ok(locks.iter().filter(|lock| held.remove(&lock.name).is_some()).cloned().collect())
    }
}
