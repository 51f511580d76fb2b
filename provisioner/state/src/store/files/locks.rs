//! Locks as files.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use bridge::fs::{FileError, MAX_DOCUMENT_BYTES, calls, open_regular, read_if_exists, read_regular};
use jiff::Timestamp;

use super::super::error::StoreError;
use super::super::layout;
use super::super::lock::{self, CHECK_DELAYS, LockHolder, LockInfo, StackLock, StoredLock, new_lock_name};
use super::super::reference::StackReference;
use super::folder::{Durability, Folder, list, remove, sidecar};
use crate::background::drop_in_background;

impl Folder {
    /// Locks a stack in the order of Pulumi's command line: check, write, check again. Of two concurrent runs at least
    /// one finds the lock of the other.
    pub(super) fn lock(&self, stack: StackReference, holder: &LockHolder) -> Result<StackLock, StoreError> {
        let lock = StackLock::new(stack, new_lock_name());
        self.take_lock(&lock, holder)?;
        Ok(lock)
    }

    /// Locks a stack with a lock whose name is known.
    pub(super) fn take_lock(&self, lock: &StackLock, holder: &LockHolder) -> Result<(), StoreError> {
        let StackLock { stack, name, .. } = lock;
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
            let renewed = modified(&path).ok();
            let bytes = read_if_exists(&path, MAX_DOCUMENT_BYTES).ok().flatten().unwrap_or_default();
            locks.push(LockInfo { renewed, ..lock::read(&name, &bytes) });
        }
        Ok(locks)
    }

    /// Renews a lock: writes its text in place once more, so that the file system sets the time. A file that was removed is
    /// not created again.
    pub(super) fn renew_lock(&self, lock: &StackLock) -> Result<(), StoreError> {
        let path = self.path_of(&self.lock_key(&lock.stack, &lock.name));
        self.rewrite_lock(lock, &path, |text| text)
    }

    /// Removes the lease of a lock.
    pub(super) fn end_lease(&self, lock: &StackLock) -> Result<(), StoreError> {
        let path = self.path_of(&self.lock_key(&lock.stack, &lock.name));
        self.rewrite_lock(lock, &path, |text| match StoredLock::read(&text) {
            Some(stored) => in_place_of(&text, &stored.without_lease()),
            None => text,
        })
    }

    /// Makes a lock that an ended process has left one of the holder.
    pub(super) fn adopt_lock(&self, lock: &StackLock, holder: &LockHolder) -> Result<(), StoreError> {
        let path = self.path_of(&self.lock_key(&lock.stack, &lock.name));
        let adopted = StoredLock::new(holder, Timestamp::now());
        self.rewrite_lock(lock, &path, |text| in_place_of(&text, &adopted))
    }

    /// Writes the text of a lock in place. The lock is lost if the file was removed, or moved away meanwhile.
    fn rewrite_lock(
        &self,
        lock: &StackLock,
        path: &Path,
        change: impl FnOnce(Vec<u8>) -> Vec<u8>,
    ) -> Result<(), StoreError> {
        let written = read_regular(path, MAX_DOCUMENT_BYTES).and_then(|text| {
            let file = calls::open(fs::OpenOptions::new().write(true), path)?;
            calls::write_all(&file, path, &change(text))?;
            let (written, present) = (file.metadata()?, fs::symlink_metadata(path)?);
            let is_same = (written.dev(), written.ino()) == (present.dev(), present.ino());
            if is_same { Ok(()) } else { Err(ErrorKind::NotFound.into()) }
        });
        match written {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let holders = self.locks(&lock.stack)?;
                Err(StoreError::LockLost { stack: lock.stack.clone(), holders })
            }
            Err(error) => Err(FileError::of("write", path)(error).into()),
        }
    }

    /// Removes a lock unless it was renewed: moves it out of its folder first, where its holder does not find it, and back if
    /// the file is newer than the one that was read. Meanwhile a second link keeps the stack locked, where the file system
    /// has links. If this process ends before, that link is a lock of the same run, which is taken over like it.
    pub(super) fn remove_unrenewed(&self, stack: &StackReference, lock: &LockInfo) -> Result<bool, StoreError> {
        self.remove_unrenewed_with(stack, lock, || ())
    }

    /// Removes a lock like [`Folder::remove_unrenewed`], and calls `on_moved` while it is out of its folder.
    pub(super) fn remove_unrenewed_with(
        &self,
        stack: &StackReference,
        lock: &LockInfo,
        on_moved: impl FnOnce(),
    ) -> Result<bool, StoreError> {
        let path = self.path_of(&self.lock_key(stack, &lock.name));
        let link = self.path_of(&self.lock_key(stack, &new_lock_name()));
        let moved = self.path_of(&format!("{}/.lock-{}", layout::ROOT, uuid::Uuid::new_v4()));
        calls::hard_link(&path, &link).ok();
        if let Err(error) = calls::rename(&path, &moved) {
            remove(&link)?;
            if error.kind() != ErrorKind::NotFound {
                return Err(FileError::of("remove", &path)(error).into());
            }
        } else {
            on_moved();
            // After an error from here on, the lock may be out of its folder: the link stays.
            if modified(&moved).ok() != lock.renewed {
                calls::rename(&moved, &path).map_err(FileError::of("write", &path))?;
                remove(&link)?;
                return Ok(false);
            }
            remove(&moved)?;
            remove(&link)?;
        }
        remove(&sidecar(&path))?;
        Ok(true)
    }

    /// Returns the time by the clock of the file system.
    pub(super) fn time(&self) -> Result<Timestamp, StoreError> {
        let path = self.path_of(&format!("{}/.lock-{}", layout::ROOT, uuid::Uuid::new_v4()));
        let created = self.create_new(&path).and_then(|_| modified(&path));
        calls::remove_file(&path).ok();
        Ok(created.map_err(FileError::of("write", &path))?)
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

/// Returns the text of a lock, as long as the present text at least: the file is written in place.
fn in_place_of(present: &[u8], lock: &StoredLock) -> Vec<u8> {
    let mut text = lock.write().into_bytes();
    text.resize(text.len().max(present.len()), b' ');
    text
}

/// Returns the time at which a file was written.
fn modified(path: &Path) -> io::Result<Timestamp> {
    let modified = fs::symlink_metadata(path)?.modified()?;
    Timestamp::try_from(modified).map_err(io::Error::other)
}
