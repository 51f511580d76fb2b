//! Renames of stacks.

use bridge::fs::MAX_DOCUMENT_BYTES;
use futures_util::future::try_join_all;
use jiff::Timestamp;

use super::catalog::PARALLEL_REQUESTS;
use super::compression::Compression;
use super::error::StoreError;
use super::lock::{LockHolder, StackLock, StoredLock, new_lock_name};
use super::migration_mark::{MigrationDirection, MigrationMark};
use super::objects::WriteCondition;
use super::reference::StackReference;
use super::rename_intent::{Intent, Progress, RENAMES};
use super::revision::Expected;
use super::state_store::StateStore;
use crate::digest::digest;

impl StateStore {
    /// Locks the old and the new name of a stack for a rename.
    ///
    /// # Errors
    /// [`StoreError::Locked`] of either name.
    pub async fn begin_rename(
        &self,
        from: &StackReference,
        to: &StackReference,
        holder: &LockHolder,
    ) -> Result<StackRename, StoreError> {
        let [from, to] = [from, to].map(|stack| StackLock::new(stack.clone(), new_lock_name()));
        // The intent of a rename without the first lock is that of a process that has ended.
        self.take_lock(&from, holder).await?;
        let intent = Intent::new(&from, &to, holder);
        let intent = StoredIntent { key: format!("{RENAMES}/{}.json", uuid::Uuid::new_v4()), intent };
        let written = self.replace(&intent.key, intent.intent.write().into()).await;
        let rename = StackRename { from, to, outcome: RenameOutcome::OldName, intent };
        let locked = match written {
            Ok(()) => self.take_lock(&rename.to, holder).await,
            failed => failed,
        };
        if let Err(error) = locked {
            // A lock that was not taken is missing, which is no error.
            self.finish_rename(rename).await?;
            return Err(error);
        }
        Ok(rename)
    }

    /// Renames a stack with the expected checkpoint: `checkpoint` becomes that under the new name, and the history moves
    /// with it. Tags and backups stay under the old name; the old checkpoint becomes a backup.
    ///
    /// After an error the rename is undone, or completed if the old checkpoint is removed already; if that fails, too, the
    /// next command does it.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::LockLost`], [`StoreError::Replaced`]; nothing was changed then. After other
    /// errors, the outcome of the rename says which name the stack has.
    pub async fn rename(
        &self,
        rename: &mut StackRename,
        checkpoint: &str,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        self.check_lock(&rename.from).await?;
        self.check_lock(&rename.to).await?;
        let [from, to] = [rename.from.stack.clone(), rename.to.stack.clone()];
        self.check_expected(&from, expected).await?;
        if self.find_current(&to).await?.is_some() {
            return Err(StoreError::Exists(to));
        }
        let before = self.read_checkpoint(&from).await?.map(|loaded| loaded.into_text()).unwrap_or_default();
        let checkpoints = [digest(&before), digest(checkpoint)];
        self.write_progress(rename, Progress::Moving(checkpoints.clone())).await?;
        rename.outcome = RenameOutcome::Pending;
        if let Err(error) = self.move_objects(rename, checkpoint).await {
            for lock in rename.locks() {
                self.rewrite_lock(lock, StoredLock::renewed).await?;
            }
            rename.outcome = self.complete_or_undo(rename, &checkpoints).await?;
            return if rename.outcome == RenameOutcome::NewName { Ok(()) } else { Err(error) };
        }
        rename.outcome = RenameOutcome::NewName;
        Ok(())
    }

    /// Moves the checkpoint and the history. Both locks are renewed before the old checkpoint is removed, because another run
    /// may have taken them over and undone the rename.
    async fn move_objects(&self, rename: &StackRename, checkpoint: &str) -> Result<(), StoreError> {
        let [from, to] = [rename.from(), rename.to()];
        let compression = self.options.compression;
        let content = compression.compress(checkpoint).into_owned().into();
        let key = self.layout.checkpoint(to, compression);
        self.write_checkpoint(to, &key, content, &WriteCondition::Missing).await?;
        for lock in rename.locks() {
            self.rewrite_lock(lock, StoredLock::renewed).await?;
        }
        self.back_up_and_remove(from).await?;
        self.mark_renamed(rename, &digest(checkpoint)).await?;
        self.move_history(from, to).await
    }

    /// Leaves a mark under the old name, and removes the one that an earlier rename has left under the new name.
    async fn mark_renamed(&self, rename: &StackRename, digest: &str) -> Result<(), StoreError> {
        let [from, to] = [rename.from(), rename.to()];
        let Intent { user, host, time, .. } = &rename.intent.intent;
        let mark = MigrationMark {
            direction: MigrationDirection::Renamed,
            url: to.to_string(),
            location: self.location_of(""),
            digest: digest.to_owned(),
            replaces: None,
            outdated: Vec::new(),
            time: time.parse().unwrap_or_else(|_| Timestamp::now()),
            user: user.clone(),
            host: host.clone(),
            run: None,
        };
        self.set_mark(to, None).await?;
        self.set_mark(from, Some(&mark)).await
    }

    /// Ends a rename: removes both locks and the intent, unless the rename is pending.
    pub async fn finish_rename(&self, rename: StackRename) -> Result<(), StoreError> {
        let progress = match rename.outcome {
            RenameOutcome::Pending => return Ok(()),
            RenameOutcome::OldName => Progress::Undone,
            RenameOutcome::NewName => Progress::Done,
        };
        // Once a lock is removed, other programs may change both stacks: the steps must not be undone then.
        self.write_progress(&rename, progress).await?;
        for lock in [&rename.to, &rename.from] {
            self.objects.remove(&self.lock_key(&lock.stack, &lock.name)).await?;
        }
        Ok(self.objects.remove(&rename.intent.key).await?)
    }

    /// Locks both names of a rename from or to a stack whose process has ended before it had finished the rename; `None` if
    /// there is none. [`StateStore::complete_rename`] follows.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if the process may still run: its lock is there, which is removed or taken over once it has
    /// ended. Also if another holder has a lock of either name.
    pub async fn resume_rename(
        &self,
        stack: &StackReference,
        holder: &LockHolder,
    ) -> Result<Option<StackRename>, StoreError> {
        // A killed process may have left an incomplete file under a temporary name.
        let intents = self.objects.list(RENAMES).await?.into_iter().filter(|object| object.name.ends_with(".json"));
        for object in intents {
            let key = format!("{RENAMES}/{}", object.name);
            // The rename may have ended meanwhile.
            let Some(intent) = self.read_intent(&key).await? else { continue };
            let [from, to] = intent.stacks(&self.location_of(&key))?;
            if *stack != from && *stack != to {
                continue;
            }
            let [from_name, to_name] = &intent.locks;
            // The process of the rename may run, here or on another machine, as long as it has its first lock.
            if self.lock_names(&from).await?.contains(from_name) {
                let holders = self.locks(&from).await?;
                return Err(StoreError::Locked { stack: from, holders });
            }
            let from = self.take_over_lock(from, from_name, holder).await?;
            let to = self.take_over_lock(to, to_name, holder).await?;
            let intent = StoredIntent { key, intent };
            return Ok(Some(StackRename { from, to, outcome: RenameOutcome::Pending, intent }));
        }
        Ok(None)
    }

    /// Completes or undoes a rename that was resumed.
    ///
    /// # Errors
    /// [`StoreError::BothNames`] if both stacks have been changed since. The rename stays pending after each error.
    pub async fn complete_rename(&self, rename: &mut StackRename) -> Result<(), StoreError> {
        rename.outcome = match &rename.intent.intent.progress {
            Progress::Moving(checkpoints) => self.complete_or_undo(rename, checkpoints).await?,
            Progress::Locking | Progress::Undone => RenameOutcome::OldName,
            Progress::Done => RenameOutcome::NewName,
        };
        Ok(())
    }

    /// Undoes a rename as long as the old checkpoint exists, else completes it. A checkpoint that another program has
    /// changed since is kept.
    async fn complete_or_undo(
        &self,
        rename: &StackRename,
        [before, after]: &[String; 2],
    ) -> Result<RenameOutcome, StoreError> {
        let [from, to] = [rename.from(), rename.to()];
        let digest_of = async |stack: &StackReference| {
            let loaded = self.read_checkpoint(stack).await?;
            Ok::<_, StoreError>(loaded.map(|loaded| digest(&loaded.into_text())))
        };
        let (old, new) = (digest_of(from).await?, digest_of(to).await?);
        match old {
            Some(_) if new.as_ref().is_none_or(|new| new == after) => {
                for variant in Compression::ALL {
                    self.objects.remove(&self.layout.checkpoint(to, variant)).await?;
                }
                return Ok(RenameOutcome::OldName);
            }
            Some(old) if old == *before => self.back_up_and_remove(from).await?,
            Some(_) => return Err(StoreError::BothNames { from: from.clone(), to: to.clone() }),
            None => {}
        }
        self.mark_renamed(rename, after).await?;
        self.move_history(from, to).await?;
        Ok(RenameOutcome::NewName)
    }

    /// Returns the lock of a rename whose process has ended, or a new one if it was removed.
    async fn take_over_lock(
        &self,
        stack: StackReference,
        name: &str,
        holder: &LockHolder,
    ) -> Result<StackLock, StoreError> {
        let lock = StackLock::new(stack, name.to_owned());
        if self.lock_names(&lock.stack).await?.contains(&lock.name) {
            self.refuse_if_locked(&lock.stack, Some(name)).await?;
            self.adopt_lock(&lock, holder).await?;
        } else {
            self.take_lock(&lock, holder).await?;
        }
        Ok(lock)
    }

    /// Moves the objects of a history to the folder and the names of another stack.
    async fn move_history(&self, from: &StackReference, to: &StackReference) -> Result<(), StoreError> {
        let (old, new) = (self.layout.history(from), self.layout.history(to));
        let listed = self.objects.list(&old).await?;
        let move_object = async |name: &str| {
            let Some(rest) = name.strip_prefix(from.stack()).filter(|rest| rest.starts_with('-')) else {
                return Ok(());
            };
            let key = format!("{old}/{name}");
            self.objects.preserve(&key, &format!("{new}/{}{rest}", to.stack())).await?;
            self.objects.remove(&key).await
        };
        for group in listed.chunks(PARALLEL_REQUESTS) {
            try_join_all(group.iter().map(|object| move_object(&object.name))).await?;
        }
        Ok(())
    }

    /// Writes the progress of a rename into its intent.
    async fn write_progress(&self, rename: &StackRename, progress: Progress) -> Result<(), StoreError> {
        let StoredIntent { key, intent } = &rename.intent;
        let intent = Intent { progress, ..intent.clone() };
        self.replace(key, intent.write().into()).await
    }

    async fn read_intent(&self, key: &str) -> Result<Option<Intent>, StoreError> {
        let object = self.objects.read(key, MAX_DOCUMENT_BYTES).await?;
        object.map(|object| Intent::read(&object.content, &self.location_of(key))).transpose()
    }
}

/// Outcome of the steps of a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameOutcome {
    /// The stack has its old name: nothing has changed, or all changes were undone.
    OldName,
    /// The stack has its new name, with its checkpoint and its history.
    NewName,
    /// A step has failed, and so has the attempt to undo or complete the rename. The next command does it.
    Pending,
}

/// Rename of a stack that holds the locks of both names. It ends with `StateStore::finish_rename`; if the process
/// ends before, `StateStore::resume_rename` completes or undoes it.
#[derive(Debug)]
#[must_use = "a rename is ended with `StateStore::finish_rename`"]
pub struct StackRename {
    pub(super) from: StackLock,
    pub(super) to: StackLock,
    /// Outcome of the steps so far.
    pub outcome: RenameOutcome,
    pub(super) intent: StoredIntent,
}

/// Object with the intent of a rename. The process of the rename holds the lock of the old name.
#[derive(Clone, Debug)]
pub(super) struct StoredIntent {
    pub(super) key: String,
    pub(super) intent: Intent,
}

impl StackRename {
    /// Returns the locks of the old and of the new name.
    pub(crate) fn locks(&self) -> [&StackLock; 2] {
        [&self.from, &self.to]
    }

    /// Returns the old name.
    pub fn from(&self) -> &StackReference {
        self.from.stack()
    }

    /// Returns the new name.
    pub fn to(&self) -> &StackReference {
        self.to.stack()
    }
}
