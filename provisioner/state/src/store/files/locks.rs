//! Locks as files.

use std::io::ErrorKind;
use std::time::Duration;

use bridge::fs::{FileError, MAX_DOCUMENT_BYTES, calls, open_regular, read_if_exists};
use jiff::Timestamp;

use super::super::error::StoreError;
use super::super::layout;
use super::super::lock::{self, CHECK_DELAYS, LockHolder, LockInfo, StackLock, new_lock_name};
use super::super::reference::StackReference;
use super::folder::{Durability, Folder, list, remove, sidecar};
use crate::background::drop_in_background;

impl Folder {
    /// Locks a stack in the order of Pulumi's command line: check, write, check again. Of two concurrent runs at least
    /// one finds the lock of the other.
    pub(super) fn lock(&self, stack: StackReference, holder: &LockHolder) -> Result<StackLock, StoreError> {
        let lock = StackLock { stack, name: new_lock_name() };
        self.take_lock(&lock, holder)?;
        Ok(lock)
    }

    /// Locks a stack with a lock whose name is known.
    pub(super) fn take_lock(&self, lock: &StackLock, holder: &LockHolder) -> Result<(), StoreError> {
        let StackLock { stack, name } = lock;
        self.refuse_if_locked(stack, None)?;
        self.write_meta()?;
        let key = self.lock_key(stack, name);
        self.write_lock(&key, lock::write(holder, Timestamp::now()).as_bytes())?;
        if let Err(error) = self.refuse_if_locked(stack, Some(name)) {
            self.remove(&key)?;
            return Err(error);
        }
        Ok(())
    }

    pub(super) fn lock_key(&self, stack: &StackReference, name: &str) -> String {
        format!("{}/{name}", self.layout.locks(stack))
    }

    pub(super) fn refuse_if_locked(&self, stack: &StackReference, own: Option<&str>) -> Result<(), StoreError> {
        let mut holders = self.locks(stack)?;
        holders.retain(|lock| Some(lock.name.as_str()) != own);
        if holders.is_empty() { Ok(()) } else { Err(StoreError::Locked { stack: stack.clone(), holders }) }
    }

    /// Checks that a lock is still held, and is the only one. Locks of other runs may appear for a moment: these runs
    /// find this lock and remove theirs. Blocks the thread until they have, for at most the sum of [`CHECK_DELAYS`].
    pub(super) fn check_lock(&self, lock: &StackLock) -> Result<(), StoreError> {
        // The folder is polled: its file system may be shared by several machines, whose changes cause no notification.
        self.check_lock_with(lock, std::thread::sleep)
    }

    /// Checks a lock like [`Folder::check_lock`], and calls `wait` with the delay before each repetition.
    pub(super) fn check_lock_with(&self, lock: &StackLock, mut wait: impl FnMut(Duration)) -> Result<(), StoreError> {
        let mut delays = CHECK_DELAYS.iter();
        let held = loop {
            let names = self.lock_names(&lock.stack)?;
            // The common case needs only one listing of the folder.
            if names == [lock.name.as_str()] {
                return Ok(());
            }
            let held = names.contains(&lock.name);
            match delays.next().filter(|_| held) {
                Some(delay) => wait(*delay),
                None => break held,
            }
        };
        let mut holders = self.locks(&lock.stack)?;
        holders.retain(|holder| holder.name != lock.name);
        let stack = lock.stack.clone();
        Err(if held { StoreError::Locked { stack, holders } } else { StoreError::LockLost { stack, holders } })
    }

    /// Returns the names of all files in the folder of the locks except sidecars. Any file counts as a lock, as in
    /// Pulumi.
    pub(super) fn lock_names(&self, stack: &StackReference) -> Result<Vec<String>, StoreError> {
        let entries = list(&self.path_of(&self.layout.locks(stack)))?;
        let locks = entries.into_iter().filter(|entry| !entry.is_folder && !entry.name.ends_with(".attrs"));
        Ok(locks.map(|entry| entry.name).collect())
    }

    pub(super) fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        let mut locks = Vec::new();
        for name in self.lock_names(stack)? {
            // A lock that was released since the listing counts: the caller has to try again. A lock that cannot be
            // read counts as well.
            let path = self.path_of(&self.lock_key(stack, &name));
            let bytes = read_if_exists(&path, MAX_DOCUMENT_BYTES).ok().flatten().unwrap_or_default();
            locks.push(lock::read(&name, &String::from_utf8_lossy(&bytes)));
        }
        Ok(locks)
    }

    /// Writes a lock under a temporary name elsewhere, because an incomplete file in its folder would count as a lock.
    pub(super) fn write_lock(&self, key: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = self.path_of(key);
        let folder = path.parent().unwrap_or(&self.path);
        self.make_folder(folder)?;
        let temporary = self.path_of(&format!("{}/.lock-{}", layout::ROOT, uuid::Uuid::new_v4()));
        let written = self
            .create_new(&temporary)
            .and_then(|file| calls::write_all(&file, &temporary, content))
            .map_err(|error| FileError::of("write", &temporary)(error).into())
            .and_then(|()| self.write_sidecar(&path, content, Durability::Unflushed))
            .and_then(|()| Ok(calls::rename(&temporary, &path).map_err(FileError::of("write", &path))?));
        if written.is_err() {
            calls::remove_file(&temporary).ok();
        }
        written
    }

    /// Removes a lock. An open file that is removed may keep its name for a while, so it is moved out of its folder
    /// first; it is closed in the background, because the disk frees its blocks then.
    pub(super) fn remove_lock(&self, key: &str) -> Result<(), StoreError> {
        let path = self.path_of(key);
        let released = self.path_of(&format!("{}/.lock-{}", layout::ROOT, uuid::Uuid::new_v4()));
        match calls::rename(&path, &released) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            renamed => renamed.map_err(FileError::of("remove", &path))?,
        }
        let held = open_regular(&released);
        let removed = remove(&released).and_then(|()| remove(&sidecar(&path)));
        drop_in_background(held);
        removed
    }
}
