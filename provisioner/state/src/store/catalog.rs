//! Whole stacks of a store: list, tags, remove; and the entries of their history.

use bridge::fs::MAX_DOCUMENT_BYTES;
use futures_util::future::try_join_all;
use jiff::Timestamp;

use super::error::StoreError;
use super::layout::{self, Layout};
use super::lock::{StackLock, StoredLock};
use super::reference::StackReference;
use super::revision::Expected;
use super::state_store::StateStore;
use super::tags::{self, Tags};

/// Treatment of the backups of a removed stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backups {
    /// The backups are kept, and the last checkpoint becomes one of them.
    Kept,
    /// The backups and the last checkpoint are removed. Retained checkpoints are kept.
    Removed,
}

/// Number of objects that are requested at the same time.
pub(super) const PARALLEL_REQUESTS: usize = 16;

impl StateStore {
    /// Returns the stacks, sorted.
    pub async fn list(&self) -> Result<Vec<StackReference>, StoreError> {
        let reference = |name: &str| match self.layout {
            Layout::Legacy => StackReference::without_project(layout::stack_name_of_file(name)?).ok(),
            Layout::Projects => {
                let (project, file) = name.split_once('/')?;
                StackReference::new(project, layout::stack_name_of_file(file)?).ok()
            }
        };
        let listed = match self.layout {
            Layout::Legacy => self.objects.list(layout::STACKS).await?,
            Layout::Projects => self.objects.list_all(layout::STACKS).await?,
        };
        let mut stacks: Vec<_> = listed.iter().filter_map(|object| reference(&object.name)).collect();
        stacks.sort();
        stacks.dedup();
        Ok(stacks)
    }

    /// The tags of a stack.
    pub async fn tags(&self, stack: &StackReference) -> Result<Tags, StoreError> {
        let key = self.layout.tags(stack);
        let object = self.objects.read(&key, MAX_DOCUMENT_BYTES).await?;
        object.map_or_else(|| Ok(Tags::new()), |object| tags::read(&object.content, &self.location_of(&key)))
    }

    /// Replaces the tags of a stack.
    pub async fn set_tags(&self, stack: &StackReference, tags: &Tags) -> Result<(), StoreError> {
        let key = self.layout.tags(stack);
        if tags.is_empty() {
            return Ok(self.objects.remove(&key).await?);
        }
        self.replace(&key, tags::write(tags.clone()).into()).await
    }

    /// Removes the locked stack with the expected checkpoint: its checkpoint, its history and its tags.
    ///
    /// # Errors
    /// [`StoreError::LockLost`], [`StoreError::Replaced`]; nothing was removed then.
    pub async fn remove(&self, lock: &StackLock, backups: Backups, expected: &Expected) -> Result<(), StoreError> {
        self.check_lock(lock).await?;
        let stack = &lock.stack;
        let current = self.check_expected(stack, expected).await?;
        // Another run that has taken the lock over may have saved since.
        self.rewrite_lock(lock, StoredLock::renewed).await?;
        self.back_up_and_remove(stack).await?;
        self.objects.remove(&self.layout.tags(stack)).await?;
        self.remove_objects(&self.layout.history(stack)).await?;
        if backups == Backups::Removed {
            self.rewrite_lock(lock, StoredLock::renewed).await?;
            self.remove_objects(&self.layout.backups(stack)).await?;
            if let Some(current) = current {
                self.objects.remove(&format!("{}.bak", self.layout.checkpoint(stack, current.variant))).await?;
            }
        }
        Ok(())
    }

    /// Removes the objects of a folder.
    async fn remove_objects(&self, folder: &str) -> Result<(), StoreError> {
        let listed = self.objects.list(folder).await?;
        for group in listed.chunks(PARALLEL_REQUESTS) {
            let remove = async |name: &str| self.objects.remove(&format!("{folder}/{name}")).await;
            try_join_all(group.iter().map(|object| remove(&object.name))).await?;
        }
        Ok(())
    }
}

/// Entry to add to the history of a stack. Its time names the files, so an entry that is added twice exists once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Time of the entry. No other entry of the stack has it.
    pub time: Timestamp,
    /// Text of the update.
    pub update: String,
}

impl HistoryEntry {
    /// Creates an entry of the current time.
    pub fn new(update: impl Into<String>) -> Self {
        Self { time: Timestamp::now(), update: update.into() }
    }
}
