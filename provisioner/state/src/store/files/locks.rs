//! Locks as files.

use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

use bridge::fs::PathError;
use jiff::Timestamp;

use super::super::error::StoreError;
use super::super::layout;
use super::super::lock::{self, LockHolder, LockInfo, StackLock};
use super::super::reference::StackReference;
use super::folder::{Folder, Lasting, list, read, remove, sidecar};
use crate::background::free_aside;

/// How long others are given to take back what they wrote before they saw that the stack is locked.
const PATIENCE: [Duration; 4] =
    [Duration::from_millis(20), Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200)];

impl Folder {
    /// The command line's order: look, write, look again. Of two that do so at once, at least one sees the other.
    pub(super) fn lock(&self, stack: StackReference, holder: &LockHolder) -> Result<StackLock, StoreError> {
        self.refuse_if_locked(&stack, None)?;
        self.write_meta()?;
        let name = format!("{}.json", uuid::Uuid::new_v4());
        let key = self.lock_key(&stack, &name);
        self.write_lock(&key, lock::write(holder, Timestamp::now()).as_bytes())?;
        if let Err(error) = self.refuse_if_locked(&stack, Some(&name)) {
            self.remove(&key)?;
            return Err(error);
        }
        Ok(StackLock { stack, name })
    }

    pub(super) fn lock_key(&self, stack: &StackReference, name: &str) -> String {
        format!("{}/{name}", self.layout.locks(stack))
    }

    pub(super) fn refuse_if_locked(&self, stack: &StackReference, own: Option<&str>) -> Result<(), StoreError> {
        let mut holders = self.locks(stack)?;
        holders.retain(|lock| Some(lock.name.as_str()) != own);
        if holders.is_empty() { Ok(()) } else { Err(StoreError::Locked { stack: stack.clone(), holders }) }
    }

    /// Finds out whether a lock is still held, and held alone. Of others who try to lock there may be traces for a moment:
    /// they see this one, and give up.
    pub(super) fn check_lock(&self, lock: &StackLock) -> Result<(), StoreError> {
        let mut patience = PATIENCE.iter();
        let held = loop {
            let names = self.lock_names(&lock.stack)?;
            // One look at the folder is enough where all is well.
            if names == [lock.name.as_str()] {
                return Ok(());
            }
            let held = names.contains(&lock.name);
            match patience.next().filter(|_| held) {
                Some(pause) => std::thread::sleep(*pause),
                None => break held,
            }
        };
        let mut holders = self.locks(&lock.stack)?;
        holders.retain(|holder| holder.name != lock.name);
        let stack = lock.stack.clone();
        Err(if held { StoreError::Locked { stack, holders } } else { StoreError::LockLost { stack, holders } })
    }

    /// Everything in the folder counts, whatever its name, but folders and sidecars.
    fn lock_names(&self, stack: &StackReference) -> Result<Vec<String>, StoreError> {
        let entries = list(&self.at(&self.layout.locks(stack)))?;
        let locks = entries.into_iter().filter(|entry| !entry.is_folder && !entry.name.ends_with(".attrs"));
        Ok(locks.map(|entry| entry.name).collect())
    }

    pub(super) fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        let mut locks = Vec::new();
        for name in self.lock_names(stack)? {
            // One that is gone by now was given back, but it was there: whoever looks has to come again.
            // One that is not ours to read is one all the same.
            let bytes = read(&self.at(&self.lock_key(stack, &name))).ok().flatten().unwrap_or_default();
            locks.push(lock::read(&name, &String::from_utf8_lossy(&bytes)));
        }
        Ok(locks)
    }

    /// Writes a lock so that no unfinished file is ever seen in its folder, where it would count as a lock.
    #[allow(clippy::disallowed_methods, reason = "it was written whole, elsewhere: a lock may not be seen half")]
    pub(super) fn write_lock(&self, key: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = self.at(key);
        let folder = path.parent().unwrap_or(&self.path);
        self.make_folder(folder)?;
        let unfinished = self.at(&format!("{}/.lock-{}", layout::ROOT, uuid::Uuid::new_v4()));
        fs::write(&unfinished, content).map_err(PathError::of("write", &unfinished))?;
        self.write_sidecar(&path, content, Lasting::No)?;
        Ok(fs::rename(&unfinished, &path).map_err(PathError::of("write", &path))?)
    }

    /// Removes a lock. Nobody has to wait until the disk has given back what it took, which happens where it is closed; for
    /// what is open and removed may keep a name for a while, it is taken out of its folder first.
    #[allow(clippy::disallowed_methods, reason = "nothing is written")]
    pub(super) fn remove_lock(&self, key: &str) -> Result<(), StoreError> {
        let path = self.at(key);
        let given_back = self.at(&format!("{}/.lock-{}", layout::ROOT, uuid::Uuid::new_v4()));
        match fs::rename(&path, &given_back) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            renamed => renamed.map_err(PathError::of("remove", &path))?,
        }
        let held = fs::File::open(&given_back);
        let removed = remove(&given_back).and_then(|()| remove(&sidecar(&path)));
        free_aside(held);
        removed
    }
}
