//! Migration of a stack to another store.
//!
//! The target gets a mark before anything is copied there. Once its checkpoint is complete, the source gets a mark, and then
//! the target loses its own, so that at no time both stores can be used. If the process ends in between, the next migration
//! continues.

mod decision;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use futures_util::stream::{self, TryStreamExt as _};
use jiff::Timestamp;

use self::decision::{TargetCheckpoint, find_target_checkpoint};
use super::access::StackAccess;
use super::locking::{self, HeldLock};
use super::manage::load_uninterrupted;
use super::recovery;
use super::saving::explained;
use crate::error::StateError;
use crate::migration_error::MigrationError;
use crate::store::{
    CopyKind, Expected, LockHolder, MigrationDirection, MigrationMark, StackReference, StoreError, StoredCheckpoint,
};

/// Number of copies that are moved at the same time.
const PARALLEL_COPIES: usize = 8;

/// Migration of a stack from one store to another.
pub struct StackMigration {
    /// Access to the stack in its store.
    pub source: StackAccess,
    /// Access to the same stack in the other store.
    pub target: StackAccess,
    /// URL of the store as server.yaml takes it, without passwords.
    pub source_url: String,
    /// URL of the other store as server.yaml takes it, without passwords.
    pub target_url: String,
}

/// Outcome of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationOutcome {
    /// The stack has moved.
    Completed(MigratedStack),
    /// An earlier migration has moved the stack to the target. The mark is that of the source.
    Earlier(MigrationMark),
}

/// Contents of a stack that have moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigratedStack {
    /// SHA-256 of the checkpoint.
    pub digest: String,
    /// Number of entries in the history.
    pub history_entries: usize,
    /// Number of copies of earlier checkpoints.
    pub copies: usize,
    /// Number of tags.
    pub tags: usize,
}

impl StackMigration {
    /// Locks the stack in both stores and moves its checkpoint, history, backups and tags. The files of the source stay, and
    /// get a mark. Continues an interrupted migration between the same stores. Needs no key: secrets keep their ciphertexts.
    ///
    /// # Errors
    /// [`StateError`]: the stack does not exist, has an interrupted run, or has moved elsewhere; [`MigrationError`].
    pub async fn run(&self, holder: &LockHolder) -> Result<MigrationOutcome, StateError> {
        let source = locking::lock(&self.source, holder).await?;
        let target = match self.lock_target(&source, holder).await {
            Ok(target) => target,
            Err(error) => {
                source.release(&self.source).await.ok();
                return Err(error);
            }
        };
        let moved = self.move_locked(&source, &target, holder).await;
        let unlocked =
            [(&self.target, target.release(&self.target).await), (&self.source, source.release(&self.source).await)];
        let moved = moved?;
        for (access, unlocked) in unlocked {
            let (stack, location) = (self.stack().clone(), access.store.location());
            unlocked.map_err(|source| MigrationError::NotReleased { stack, location, source: Box::new(source) })?;
        }
        Ok(moved)
    }

    /// Returns the mark of the source if an earlier migration to the target has completed. Locks nothing.
    ///
    /// # Errors
    /// [`StoreError`]: a mark cannot be read, or the stack has moved on from the target.
    pub async fn completed_earlier(&self) -> Result<Option<MigrationMark>, StoreError> {
        let Some(mark) = self.mark_of_this_migration().await? else { return Ok(None) };
        if self.is_arriving(self.target.store.mark(self.stack()).await?.as_ref()) {
            return Ok(None);
        }
        Ok(self.target.store.load(self.stack()).await?.map(|_| mark))
    }

    /// Returns the mark of the source if it says that the stack has moved to the target.
    async fn mark_of_this_migration(&self) -> Result<Option<MigrationMark>, StoreError> {
        let location = self.target.store.location();
        let mark = self.source.store.mark(self.stack()).await?;
        Ok(mark.filter(|mark| mark.direction == MigrationDirection::To && mark.location == location))
    }

    /// Returns true if a mark of the target says that the stack is being moved there from the source.
    fn is_arriving(&self, mark: Option<&MigrationMark>) -> bool {
        let location = self.source.store.location();
        mark.is_some_and(|mark| mark.direction == MigrationDirection::From && mark.location == location)
    }

    /// Locks the stack in the target. A lock there that is the own one shows that both stores are the same.
    async fn lock_target(&self, source: &HeldLock, holder: &LockHolder) -> Result<HeldLock, StateError> {
        let (stack, location) = (self.target.stack.clone(), self.target.store.location());
        match locking::lock(&self.target, holder).await {
            Err(StateError::Store(StoreError::Locked { holders, .. }))
                if holders.iter().any(|lock| lock.name == source.lock.name()) =>
            {
                Err(MigrationError::SameStore { stack, location }.into())
            }
            Err(StateError::Store(error @ StoreError::Locked { .. })) => {
                Err(MigrationError::TargetLocked { stack, location, source: Box::new(error) }.into())
            }
            locked => locked,
        }
    }

    async fn move_locked(
        &self,
        source_lock: &HeldLock,
        target_lock: &HeldLock,
        holder: &LockHolder,
    ) -> Result<MigrationOutcome, StateError> {
        let (stack, target) = (self.stack(), &self.target.store);
        if let Some(mark) = self.completed_earlier().await? {
            return Ok(MigrationOutcome::Earlier(mark));
        }
        let found_mark = target.mark(stack).await?;
        if let Some(mark) = self.mark_of_this_migration().await?.filter(|_| self.is_arriving(found_mark.as_ref())) {
            // An earlier attempt ended between the two marks.
            self.compare_target(&mark.digest).await?;
            confirm(source_lock, target_lock).await?;
            self.change_mark(&self.target, None).await?;
            return Ok(MigrationOutcome::Earlier(mark));
        }
        let checkpoint = load_uninterrupted(&self.source).await?;
        let digest = checkpoint.revision.digest().as_str();
        recovery::refuse_journals(&self.target).await?;
        let found = target.read_checkpoint(stack).await?;
        let target_checkpoint = self.check_target(found_mark.as_ref(), found.as_ref(), digest)?;
        let mark = self.target_mark(found_mark.as_ref(), &target_checkpoint, digest, holder);
        target.set_mark(stack, Some(&mark)).await?;

        let mut moved = self.move_earlier_states(digest).await?;
        if let TargetCheckpoint::Kept(kept) = &target_checkpoint {
            target.add_copy(stack, CopyKind::Backup, mark.time, &kept.text).await?;
        }
        let expected = match target_checkpoint {
            TargetCheckpoint::Equal => None,
            TargetCheckpoint::Missing => Some(Expected::Missing),
            TargetCheckpoint::Kept(found) | TargetCheckpoint::Outdated(found) => {
                Some(Expected::Revision(found.revision))
            }
        };
        confirm(source_lock, target_lock).await?;
        if let Some(expected) = expected {
            explained(&self.target, target.save(&target_lock.lock, &checkpoint.text, &expected)).await?;
        }
        moved.copies += self.move_previous().await?;
        self.compare(digest).await?;
        confirm(source_lock, target_lock).await?;
        self.change_mark(&self.source, Some(&self.source_mark(mark))).await?;
        self.change_mark(&self.target, None).await?;
        Ok(MigrationOutcome::Completed(moved))
    }

    fn stack(&self) -> &StackReference {
        &self.source.stack
    }

    /// Checks that the migration may replace what the target has of the stack.
    fn check_target(
        &self,
        mark: Option<&MigrationMark>,
        found: Option<&StoredCheckpoint>,
        digest: &str,
    ) -> Result<TargetCheckpoint, StateError> {
        let (stack, location) = (self.stack().clone(), self.target.store.location());
        if let Some(mark) = mark.filter(|mark| mark.direction == MigrationDirection::From)
            && mark.location != self.source.store.location()
        {
            let (mark, mark_location) = (Box::new(mark.clone()), self.target.store.mark_location(&stack));
            return Err(StoreError::Migrated { stack, mark, mark_location }.into());
        }
        find_target_checkpoint(mark, found, digest).ok_or_else(|| match mark {
            Some(_) => MigrationError::TargetChanged { stack, location }.into(),
            None => MigrationError::TargetExists { stack, location }.into(),
        })
    }

    /// Returns the mark of the target while the stack is being moved there. If an earlier attempt was interrupted, its time
    /// stays: it names the backup of the replaced checkpoint.
    fn target_mark(
        &self,
        earlier: Option<&MigrationMark>,
        found: &TargetCheckpoint,
        digest: &str,
        holder: &LockHolder,
    ) -> MigrationMark {
        let earlier = earlier.filter(|mark| mark.direction == MigrationDirection::From);
        let replaces = match found {
            TargetCheckpoint::Kept(kept) => Some(kept.revision.digest().as_str().to_owned()),
            TargetCheckpoint::Missing | TargetCheckpoint::Equal | TargetCheckpoint::Outdated(_) => {
                earlier.and_then(|mark| mark.replaces.clone())
            }
        };
        let outdated = earlier.into_iter().flat_map(|mark| mark.outdated.iter().chain([&mark.digest]));
        MigrationMark {
            direction: MigrationDirection::From,
            url: self.source_url.clone(),
            location: self.source.store.location(),
            digest: digest.to_owned(),
            replaces,
            outdated: outdated.filter(|outdated| *outdated != digest).cloned().collect(),
            time: earlier.map_or_else(Timestamp::now, |mark| mark.time),
            user: holder.username.clone(),
            host: holder.hostname.clone(),
            run: holder.lease.as_ref().map(|lease| lease.run.clone()),
        }
    }

    /// Moves tags, history, backups and retained checkpoints beside the checkpoint with a digest. Those that the target has
    /// already are not read.
    async fn move_earlier_states(&self, digest: &str) -> Result<MigratedStack, StateError> {
        let (stack, source, target) = (self.stack(), &self.source.store, &self.target.store);
        let tags = source.tags(stack).await?;
        target.set_tags(stack, &tags).await?;

        let entries = source.history_entries(stack).await?;
        let present: BTreeSet<_> = target.history_entries(stack).await?.into_iter().map(|entry| entry.time).collect();
        let missing = entries.iter().filter(|entry| !present.contains(&entry.time));
        let add = |entry| async move { target.add_history_entry(stack, entry).await };
        stream::iter(missing.map(Ok)).try_for_each_concurrent(PARALLEL_COPIES, add).await?;

        let kinds = [CopyKind::History, CopyKind::Backup, CopyKind::Retained];
        let copies = source.copies(stack, &kinds).await?;
        let present: BTreeSet<_> =
            target.copies(stack, &kinds).await?.into_iter().map(|copy| (copy.kind, copy.time)).collect();
        let missing = copies.iter().filter(|copy| !present.contains(&(copy.kind, copy.time)));
        let add = |copy: _| async move {
            let text = source.read_copy(copy).await?;
            target.add_copy(stack, copy.kind, copy.time, &text).await
        };
        stream::iter(missing.map(Ok)).try_for_each_concurrent(PARALLEL_COPIES, add).await?;
        let digest = digest.to_owned();
        Ok(MigratedStack { digest, history_entries: entries.len(), copies: copies.len(), tags: tags.len() })
    }

    /// Moves the previous checkpoint, and returns the number of moved ones. Follows the save, which keeps the replaced
    /// checkpoint as the previous one.
    async fn move_previous(&self) -> Result<usize, StateError> {
        let (stack, source) = (self.stack(), &self.source.store);
        let copies = source.copies(stack, &[CopyKind::Previous]).await?;
        let Some(previous) = copies.first() else { return Ok(0) };
        let text = source.read_copy(previous).await?;
        self.target.store.add_copy(stack, CopyKind::Previous, previous.time, &text).await?;
        Ok(1)
    }

    /// Compares the checkpoints of both stores with the one that was read first.
    async fn compare(&self, digest: &str) -> Result<(), StateError> {
        self.compare_target(digest).await?;
        if !self.has_checkpoint(&self.source, digest).await? {
            return Err(StateError::Changed(self.stack().clone()));
        }
        Ok(())
    }

    async fn compare_target(&self, digest: &str) -> Result<(), StateError> {
        if !self.has_checkpoint(&self.target, digest).await? {
            let (stack, location) = (self.stack().clone(), self.target.store.location());
            return Err(MigrationError::NotEqual { stack, location }.into());
        }
        Ok(())
    }

    async fn has_checkpoint(&self, access: &StackAccess, digest: &str) -> Result<bool, StoreError> {
        let stored = access.store.read_checkpoint(self.stack()).await?;
        Ok(stored.is_some_and(|stored| stored.revision.digest().as_str() == digest))
    }

    fn source_mark(&self, target_mark: MigrationMark) -> MigrationMark {
        MigrationMark {
            direction: MigrationDirection::To,
            url: self.target_url.clone(),
            location: self.target.store.location(),
            replaces: None,
            outdated: Vec::new(),
            time: Timestamp::now(),
            ..target_mark
        }
    }

    /// Replaces or removes the mark of a stack that is complete in the target.
    async fn change_mark(&self, access: &StackAccess, mark: Option<&MigrationMark>) -> Result<(), StateError> {
        access.store.set_mark(self.stack(), mark).await.map_err(|source| {
            let (stack, location) = (self.stack().clone(), access.store.location());
            MigrationError::MarkNotChanged { stack, location, source: Box::new(source) }.into()
        })
    }
}

/// Waits until both locks are held for certain.
async fn confirm(source: &HeldLock, target: &HeldLock) -> Result<(), StateError> {
    source.confirm().await?;
    target.confirm().await
}
