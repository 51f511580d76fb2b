//! Store in a folder, in the layout of Pulumi's command line.

mod abandoned;
mod catalog;
mod checkpoints;
mod contents;
mod copies;
mod folder;
mod locks;
mod renames;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use jiff::Timestamp;

use super::catalog::{Backups, StackCatalog, Tags};
use super::contents::StackContents;
use super::copy::{CheckpointCopy, CopyKind};
use super::error::StoreError;
use super::history_entry::HistoryEntry;
use super::layout::Layout;
use super::lock::{LockHolder, LockInfo, StackLock};
use super::migration_mark::MigrationMark;
use super::options::StoreOptions;
use super::reference::StackReference;
use super::rename::StackRename;
use super::revision::{Expected, Revision, StoredCheckpoint};
use super::state_store::StateStore;
use super::url::FileUrl;
use folder::Folder;

/// Store that keeps states in a folder.
#[derive(Clone, Debug)]
pub struct FileStore {
    folder: Arc<Folder>,
}

impl FileStore {
    /// Opens a store. Writes nothing except the folder, which is created if it is missing and the URL requests it.
    ///
    /// # Errors
    /// [`StoreError`] if the folder is missing, or has an unsupported layout.
    pub async fn open(url: &FileUrl) -> Result<Self, StoreError> {
        Self::open_with(url, StoreOptions::default()).await
    }

    /// Opens a store like [`FileStore::open`], with options.
    ///
    /// # Errors
    /// Errors of [`FileStore::open`].
    pub async fn open_with(url: &FileUrl, options: StoreOptions) -> Result<Self, StoreError> {
        let (path, layout) = (url.folder.clone(), Layout::Projects);
        let mut folder = Folder { path, mode: url.folder_mode, sidecars: url.sidecars, options, layout };
        let create = url.create;
        let opened = in_background(move || {
            if create {
                folder.make_folder(&folder.path)?;
            }
            folder.layout = folder.find_layout()?;
            Ok(folder)
        });
        Ok(Self { folder: Arc::new(opened.await?) })
    }

    /// Returns the folder that contains `.pulumi`.
    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let folder = Arc::clone(&self.folder);
        in_background(move || work(&folder)).await
    }
}

#[async_trait]
impl StackCatalog for FileStore {
    async fn list(&self) -> Result<Vec<StackReference>, StoreError> {
        self.run(Folder::list).await
    }

    async fn tags(&self, stack: &StackReference) -> Result<Tags, StoreError> {
        let stack = stack.clone();
        self.run(move |folder| folder.tags(&stack)).await
    }

    async fn set_tags(&self, stack: &StackReference, tags: &Tags) -> Result<(), StoreError> {
        let (stack, tags) = (stack.clone(), tags.clone());
        self.run(move |folder| folder.set_tags(&stack, tags)).await
    }

    async fn copies(&self, stack: &StackReference, kinds: &[CopyKind]) -> Result<Vec<CheckpointCopy>, StoreError> {
        let (stack, kinds) = (stack.clone(), kinds.to_vec());
        self.run(move |folder| folder.copies(&stack, &kinds)).await
    }

    async fn read_copy(&self, copy: &CheckpointCopy) -> Result<String, StoreError> {
        let copy = copy.clone();
        self.run(move |folder| folder.read_copy(&copy)).await
    }

    async fn restore(
        &self,
        lock: &StackLock,
        copy: &CheckpointCopy,
        checkpoint: &str,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        let (lock, copy, checkpoint) = (lock.duplicate(), copy.clone(), checkpoint.to_owned());
        let expected = expected.clone();
        self.run(move |folder| folder.restore(&lock, &copy, &checkpoint, &expected)).await
    }

    async fn begin_rename(
        &self,
        from: &StackReference,
        to: &StackReference,
        holder: &LockHolder,
    ) -> Result<StackRename, StoreError> {
        let (from, to, holder) = (from.clone(), to.clone(), holder.clone());
        self.run(move |folder| folder.begin_rename(&from, &to, &holder)).await
    }

    async fn rename(&self, rename: &mut StackRename, checkpoint: &str, expected: &Expected) -> Result<(), StoreError> {
        let (mut moved, checkpoint, expected) = (rename.duplicate()?, checkpoint.to_owned(), expected.clone());
        let task = self.run(move |folder| {
            let result = folder.rename(&mut moved, &checkpoint, &expected);
            Ok((moved, result))
        });
        let result;
        (*rename, result) = task.await?;
        result
    }

    async fn finish_rename(&self, rename: StackRename) -> Result<(), StoreError> {
        self.run(move |folder| folder.finish_rename(rename)).await
    }

    async fn resume_rename(
        &self,
        stack: &StackReference,
        holder: &LockHolder,
    ) -> Result<Option<StackRename>, StoreError> {
        let (stack, holder) = (stack.clone(), holder.clone());
        self.run(move |folder| folder.resume_rename(&stack, &holder)).await
    }

    async fn complete_rename(&self, rename: &mut StackRename) -> Result<(), StoreError> {
        let resumed = rename.duplicate()?;
        rename.outcome = self.run(move |folder| folder.complete_rename(&resumed)).await?;
        Ok(())
    }

    async fn remove(&self, lock: &StackLock, backups: Backups, expected: &Expected) -> Result<(), StoreError> {
        let (lock, expected) = (lock.duplicate(), expected.clone());
        self.run(move |folder| folder.remove_stack(&lock, backups, &expected)).await
    }
}

#[async_trait]
impl StackContents for FileStore {
    async fn read_checkpoint(&self, stack: &StackReference) -> Result<Option<StoredCheckpoint>, StoreError> {
        let stack = stack.clone();
        let text = self.run(move |folder| folder.load(&stack)).await?;
        Ok(text.map(StoredCheckpoint::new))
    }

    async fn history_entries(&self, stack: &StackReference) -> Result<Vec<HistoryEntry>, StoreError> {
        let stack = stack.clone();
        self.run(move |folder| folder.history_entries(&stack)).await
    }

    async fn add_history_entry(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        let (stack, entry) = (stack.clone(), entry.clone());
        self.run(move |folder| folder.add_history_entry(&stack, &entry)).await
    }

    async fn add_copy(
        &self,
        stack: &StackReference,
        kind: CopyKind,
        time: Timestamp,
        checkpoint: &str,
    ) -> Result<(), StoreError> {
        let (stack, checkpoint) = (stack.clone(), checkpoint.to_owned());
        self.run(move |folder| folder.add_copy(&stack, kind, time, &checkpoint)).await
    }

    fn mark_location(&self, stack: &StackReference) -> String {
        self.folder.path_of(&self.folder.layout.mark(stack)).display().to_string()
    }

    async fn mark(&self, stack: &StackReference) -> Result<Option<MigrationMark>, StoreError> {
        let stack = stack.clone();
        self.run(move |folder| folder.mark(&stack)).await
    }

    async fn set_mark(&self, stack: &StackReference, mark: Option<&MigrationMark>) -> Result<(), StoreError> {
        let (stack, mark) = (stack.clone(), mark.cloned());
        self.run(move |folder| folder.set_mark(&stack, mark.as_ref())).await
    }
}

#[async_trait]
impl StateStore for FileStore {
    fn location(&self) -> String {
        format!("file://{}", self.folder.path.display())
    }

    fn full_name(&self, stack: &StackReference) -> String {
        self.folder.layout.full_name(stack)
    }

    fn checkpoint_location(&self, stack: &StackReference) -> String {
        let variant = self.folder.current_variant(stack).ok().flatten().unwrap_or_default();
        self.folder.path_of(&self.folder.layout.checkpoint(stack, variant)).display().to_string()
    }

    async fn save(&self, lock: &StackLock, checkpoint: &str, expected: &Expected) -> Result<Revision, StoreError> {
        let (lock, checkpoint, expected) = (lock.duplicate(), Arc::new(checkpoint.to_owned()), expected.clone());
        self.run(move |folder| {
            folder.check_lock(&lock)?;
            folder.check_expected(&lock.stack, &expected)?;
            folder.save(&lock.stack, &checkpoint)?;
            Ok(Revision::of_saved(checkpoint))
        })
        .await
    }

    async fn archive(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        let (stack, entry) = (stack.clone(), entry.clone());
        self.run(move |folder| folder.archive(&stack, &entry)).await
    }

    async fn lock(&self, stack: &StackReference, holder: &LockHolder) -> Result<StackLock, StoreError> {
        let (stack, holder) = (stack.clone(), holder.clone());
        let lock = self.run(move |folder| folder.lock(stack, &holder)).await?;
        let (folder, key) = (Arc::clone(&self.folder), self.folder.lock_key(&lock.stack, &lock.name));
        let stack = lock.stack.clone();
        // The lock is effective now; its flush to disk is not awaited.
        drop(tokio::task::spawn_blocking(move || {
            folder.flush(&key);
            folder.remove_abandoned(&stack, SystemTime::now());
        }));
        Ok(lock)
    }

    async fn unlock(&self, lock: StackLock) -> Result<(), StoreError> {
        self.run(move |folder| folder.remove_lock(&folder.lock_key(&lock.stack, &lock.name))).await
    }

    async fn renew(&self, lock: &StackLock) -> Result<(), StoreError> {
        let lock = lock.duplicate();
        self.run(move |folder| folder.renew_lock(&lock)).await
    }

    async fn end_lease(&self, lock: &StackLock) -> Result<(), StoreError> {
        let lock = lock.duplicate();
        self.run(move |folder| folder.end_lease(&lock)).await
    }

    async fn remove_ended_lock(
        &self,
        stack: &StackReference,
        lock: &LockInfo,
        _: &LockHolder,
    ) -> Result<bool, StoreError> {
        let (stack, lock) = (stack.clone(), lock.clone());
        self.run(move |folder| folder.remove_unrenewed(&stack, &lock)).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.run(Folder::time).await
    }

    async fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        let stack = stack.clone();
        self.run(move |folder| folder.locks(&stack)).await
    }

    async fn break_locks(&self, stack: &StackReference, locks: &[LockInfo]) -> Result<Vec<LockInfo>, StoreError> {
        let (stack, mut locks) = (stack.clone(), locks.to_vec());
        self.run(move |folder| {
            let held = folder.lock_names(&stack)?;
            locks.retain(|lock| held.contains(&lock.name));
            for lock in &locks {
                folder.remove(&folder.lock_key(&stack, &lock.name))?;
            }
            Ok(locks)
        })
        .await
    }
}

/// Runs blocking file operations on a blocking thread, so that the tasks of a run are not blocked.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => unreachable!("work that blocks is not cancelled once it runs"),
        },
    }
}
