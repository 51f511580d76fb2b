//! Renames of stacks in a folder.
//!
//! A rename writes its intent into `.sc/renames` before its first step and removes it after its last one. The steps
//! have a fixed order: the checkpoint under the new name, the removal of the old one, the history. While the old
//! checkpoint exists, a rename whose process has ended is undone, which removes the new checkpoint; from then on it is
//! completed.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bridge::fs::{FileError, MAX_DOCUMENT_BYTES, TEMPORARY_PREFIX, TemporaryFiles, calls, read_regular, sync_folder};

use super::super::compression::Compression;
use super::super::error::StoreError;
use super::super::lock::{LockHolder, StackLock, new_lock_name};
use super::super::reference::StackReference;
use super::super::rename::{FileIntent, HeldIntent, RenameOutcome, StackRename};
use super::super::rename_intent::{Intent, Progress, RENAMES};
use super::super::revision::Expected;
use super::folder::{Folder, list, remove};
use crate::background::drop_in_background;
use crate::digest::digest;

impl Folder {
    /// Locks both names for a rename.
    pub(super) fn begin_rename(
        &self,
        from: &StackReference,
        to: &StackReference,
        holder: &LockHolder,
    ) -> Result<StackRename, StoreError> {
        let [from_lock, to_lock] = [from, to].map(|stack| StackLock::new(stack.clone(), new_lock_name()));
        let intent = Intent::new(&from_lock, &to_lock, holder);
        let path = self.path_of(&format!("{RENAMES}/{}.json", uuid::Uuid::new_v4()));
        let intent = Some(HeldIntent::File(self.write_intent(path, &intent)?));
        let rename = StackRename { from: from_lock, to: to_lock, outcome: RenameOutcome::OldName, intent };
        match self.take_lock(&rename.from, holder).and_then(|()| self.take_lock(&rename.to, holder)) {
            Ok(()) => Ok(rename),
            Err(error) => {
                // A lock that was not taken is missing, which is no error.
                self.finish_rename(rename)?;
                Err(error)
            }
        }
    }

    /// Moves the checkpoint and the history. After an error the rename is undone, or completed if the old checkpoint is
    /// removed already; if that fails, too, the next command does it.
    pub(super) fn rename(
        &self,
        rename: &mut StackRename,
        checkpoint: &str,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        self.check_lock(&rename.from)?;
        self.check_lock(&rename.to)?;
        self.check_expected(&rename.from.stack, expected)?;
        let [from, to] = [rename.from.stack.clone(), rename.to.stack.clone()];
        if self.current_variant(&to)?.is_some() {
            return Err(StoreError::Exists(to));
        }
        let Some(HeldIntent::File(held)) = &mut rename.intent else { return Ok(()) };
        let before = self.load(&from)?.unwrap_or_default();
        let checkpoints = [digest(&before), digest(checkpoint)];
        *held = self.write_progress(held, Progress::Moving(checkpoints.clone()))?;
        rename.outcome = RenameOutcome::Pending;
        let compression = self.options.compression;
        let moved = self
            .write(&self.layout.checkpoint(&to, compression), &compression.compress(checkpoint))
            .and_then(|()| self.back_up_and_remove(&from))
            .and_then(|()| self.move_history(&from, &to));
        if let Err(error) = moved {
            rename.outcome = self.complete_or_undo(&from, &to, &checkpoints)?;
            return if rename.outcome == RenameOutcome::NewName { Ok(()) } else { Err(error) };
        }
        rename.outcome = RenameOutcome::NewName;
        Ok(())
    }

    /// Removes both locks and the intent, unless the rename is pending.
    pub(super) fn finish_rename(&self, mut rename: StackRename) -> Result<(), StoreError> {
        let progress = match rename.outcome {
            RenameOutcome::Pending => return Ok(()),
            RenameOutcome::OldName => Progress::Undone,
            RenameOutcome::NewName => Progress::Done,
        };
        // Once a lock is removed, other programs may change both stacks: the steps must not be undone then.
        if let Some(HeldIntent::File(held)) = &mut rename.intent {
            *held = self.write_progress(held, progress)?;
        }
        for lock in [&rename.to, &rename.from] {
            self.remove_lock(&self.lock_key(&lock.stack, &lock.name))?;
        }
        match rename.intent {
            Some(HeldIntent::File(held)) => remove(&held.path),
            _ => Ok(()),
        }
    }

    /// Locks both names of a rename from or to a stack whose process has ended.
    pub(super) fn resume_rename(
        &self,
        stack: &StackReference,
        holder: &LockHolder,
    ) -> Result<Option<StackRename>, StoreError> {
        for entry in list(&self.path_of(RENAMES))?.into_iter().filter(|entry| entry.name.ends_with(".json")) {
            let path = self.path_of(&format!("{RENAMES}/{}", entry.name));
            let file = match File::options().read(true).write(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(FileError::of("open", &path)(error).into()),
            };
            let intent = match read_intent(&path) {
                Ok(intent) => intent,
                // The rename has ended meanwhile.
                Err(_) if !path.exists() => continue,
                Err(error) => return Err(error),
            };
            let [from, to] = intent.stacks(&path.display().to_string())?;
            if *stack != from && *stack != to {
                continue;
            }
            let active = |stack: &StackReference| -> Result<StoreError, StoreError> {
                Ok(StoreError::Locked { stack: stack.clone(), holders: self.locks(stack)? })
            };
            let has_lock = self.path_of(&self.lock_key(&from, &intent.locks[0])).exists();
            match file.try_lock() {
                Ok(()) if !path.exists() => continue,
                // The lock of another host may not be visible here.
                Ok(()) if has_lock && intent.host != holder.hostname => return Err(active(&from)?),
                Err(TryLockError::Error(_)) if has_lock => return Err(active(&from)?),
                Err(TryLockError::WouldBlock) => return Err(active(&from)?),
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            let [from_name, to_name] = &intent.locks;
            let from = self.take_over_lock(&from, from_name, holder)?;
            let to = self.take_over_lock(&to, to_name, holder)?;
            let (outcome, intent) = (RenameOutcome::Pending, HeldIntent::File(FileIntent { path, file }));
            return Ok(Some(StackRename { from, to, outcome, intent: Some(intent) }));
        }
        Ok(None)
    }

    /// Completes or undoes a rename that was resumed.
    pub(super) fn complete_rename(&self, rename: &StackRename) -> Result<RenameOutcome, StoreError> {
        let Some(HeldIntent::File(held)) = &rename.intent else { return Ok(rename.outcome) };
        match &read_intent(&held.path)?.progress {
            Progress::Moving(checkpoints) => self.complete_or_undo(rename.from(), rename.to(), checkpoints),
            Progress::Locking | Progress::Undone => Ok(RenameOutcome::OldName),
            Progress::Done => Ok(RenameOutcome::NewName),
        }
    }

    /// Undoes a rename as long as the old checkpoint exists, else completes it. A checkpoint that another program has
    /// changed since is kept.
    fn complete_or_undo(
        &self,
        from: &StackReference,
        to: &StackReference,
        [before, after]: &[String; 2],
    ) -> Result<RenameOutcome, StoreError> {
        let [old, new] = [self.load(from)?, self.load(to)?];
        let [old, new] = [old, new].map(|text| text.map(|text| digest(&text)));
        match old {
            Some(_) if new.as_ref().is_none_or(|new| new == after) => {
                for variant in Compression::ALL {
                    self.remove(&self.layout.checkpoint(to, variant))?;
                }
                return Ok(RenameOutcome::OldName);
            }
            Some(old) if old == *before => self.back_up_and_remove(from)?,
            Some(_) => return Err(StoreError::BothNames { from: from.clone(), to: to.clone() }),
            None => {}
        }
        self.move_history(from, to)?;
        Ok(RenameOutcome::NewName)
    }

    /// Returns the lock of a rename whose process has ended, or a new one if it was removed.
    fn take_over_lock(&self, stack: &StackReference, name: &str, holder: &LockHolder) -> Result<StackLock, StoreError> {
        let lock = StackLock::new(stack.clone(), name.to_owned());
        if self.path_of(&self.lock_key(stack, name)).exists() {
            self.refuse_if_locked(stack, Some(name))?;
            self.adopt_lock(&lock, holder)?;
        } else {
            self.take_lock(&lock, holder)?;
        }
        Ok(lock)
    }

    /// Moves the checkpoint of a stack to its backup (`.bak`), in every compression that exists, the current one last:
    /// an older one must not take its place.
    pub(super) fn back_up_and_remove(&self, stack: &StackReference) -> Result<(), StoreError> {
        let current = self.current_variant(stack)?;
        let others = Compression::ALL.into_iter().filter(|variant| Some(*variant) != current);
        for variant in others.chain(current) {
            let key = self.layout.checkpoint(stack, variant);
            if self.path_of(&key).exists() {
                drop_in_background(self.back_up(&key, &format!("{key}.bak"))?);
                self.remove(&key)?;
            }
        }
        Ok(())
    }

    /// Moves the files of a history to the folder and the names of another stack.
    fn move_history(&self, from: &StackReference, to: &StackReference) -> Result<(), StoreError> {
        let (old, new) = (self.path_of(&self.layout.history(from)), self.path_of(&self.layout.history(to)));
        let entries = list(&old)?;
        if !entries.is_empty() {
            self.make_folder(&new)?;
        }
        for entry in entries.iter().filter(|entry| !entry.is_folder) {
            let Some(rest) = entry.name.strip_prefix(from.stack()).filter(|rest| rest.starts_with('-')) else {
                continue;
            };
            let path = old.join(&entry.name);
            let renamed = calls::rename(&path, &new.join(format!("{}{rest}", to.stack())));
            renamed.map_err(FileError::of("rename", &path))?;
        }
        remove_if_empty(&old)
    }

    /// Writes the progress of a rename into its intent.
    fn write_progress(&self, held: &FileIntent, progress: Progress) -> Result<FileIntent, StoreError> {
        let intent = Intent { progress, ..read_intent(&held.path)? };
        self.write_intent(held.path.clone(), &intent)
    }

    /// Writes an intent, and returns it with the lock of the operating system. The file gets its name only after it is
    /// complete and locked.
    fn write_intent(&self, path: PathBuf, intent: &Intent) -> Result<FileIntent, StoreError> {
        let folder = self.path_of(RENAMES);
        self.make_folder(&folder)?;
        let _writing = TemporaryFiles::begin(&folder);
        let temporary = folder.join(format!("{TEMPORARY_PREFIX}{}", uuid::Uuid::new_v4()));
        let text = intent.write();
        let written = self.create_new(&temporary).and_then(|file| {
            calls::write_all(&file, &temporary, text.as_bytes())?;
            calls::sync_all(&file, &temporary)?;
            // A file system without locks has no protection but the locks of the stacks.
            file.try_lock().ok();
            calls::rename(&temporary, &path)?;
            Ok(file)
        });
        if written.is_err() {
            calls::remove_file(&temporary).ok();
        }
        let file = written.map_err(FileError::of("write", &path))?;
        sync_folder(&folder).ok();
        Ok(FileIntent { path, file })
    }
}

fn read_intent(path: &Path) -> Result<Intent, StoreError> {
    let text = read_regular(path, MAX_DOCUMENT_BYTES).map_err(FileError::of("read", path))?;
    Intent::read(&text, &path.display().to_string())
}

/// Removes a folder; one with content is kept.
pub(super) fn remove_if_empty(folder: &Path) -> Result<(), StoreError> {
    match fs::remove_dir(folder) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
            Err(FileError::of("remove", folder)(error).into())
        }
        _ => Ok(()),
    }
}
