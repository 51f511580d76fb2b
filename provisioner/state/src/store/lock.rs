//! Lock of a stack: its holder, and its stored form.

use std::fmt;

use bridge::json;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::reference::StackReference;

/// Process that requests a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Process id.
    pub pid: u32,
    /// Name of the user.
    pub username: String,
    /// Name of the machine.
    pub hostname: String,
}

/// Information about a held lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// Name of the lock within its stack.
    pub name: String,
    /// Holder and time of the lock; `None` if the lock cannot be read.
    pub holder: Option<(LockHolder, String)>,
}

impl fmt::Display for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holder {
            Some((holder, since)) => {
                write!(f, "{}: created by {}@{}", self.name, holder.username, holder.hostname)?;
                write!(f, " (pid {}) at {since}", holder.pid)
            }
            None => write!(f, "{}: created by an unknown holder", self.name),
        }
    }
}

/// Held lock, created by a store only. Dropping it does not release it: a stack stays locked after a crash.
#[derive(Debug)]
#[must_use = "a lock is released with `StateStore::unlock`"]
pub struct StackLock {
    pub(super) stack: StackReference,
    pub(super) name: String,
}

impl StackLock {
    /// Returns the same lock for a task that works on behalf of its holder.
    pub(super) fn duplicate(&self) -> Self {
        Self { stack: self.stack.clone(), name: self.name.clone() }
    }

    /// Returns the locked stack.
    pub fn stack(&self) -> &StackReference {
        &self.stack
    }
}

/// Stored form of a lock.
#[derive(Serialize, Deserialize)]
struct StoredLock {
    pid: u32,
    username: String,
    hostname: String,
    timestamp: String,
}

/// Returns the text of a lock.
pub(super) fn write(holder: &LockHolder, now: Timestamp) -> String {
    let stored = StoredLock {
        pid: holder.pid,
        username: holder.username.clone(),
        hostname: holder.hostname.clone(),
        timestamp: now.to_string(),
    };
    serde_json::to_string(&stored).expect("texts and numbers are always JSON")
}

/// Parses the text of a lock. The holder is `None` if the text is malformed.
pub(super) fn read(name: &str, text: &str) -> LockInfo {
    let holder = json::from_slice::<StoredLock>(text.as_bytes()).ok().map(|stored| {
        let StoredLock { pid, username, hostname, timestamp } = stored;
        (LockHolder { pid, username, hostname }, timestamp)
    });
    LockInfo { name: name.to_owned(), holder }
}
