//! The lock of a stack: who holds it, and how that is written down.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::reference::StackReference;

/// Who asks for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Process id.
    pub pid: u32,
    /// Name of the user.
    pub username: String,
    /// Name of the machine.
    pub hostname: String,
}

/// What is known of a lock that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// The name of the lock within its stack.
    pub name: String,
    /// Who holds it since when; `None` where that cannot be read.
    pub holder: Option<(LockHolder, String)>,
}

impl fmt::Display for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holder {
            Some((holder, since)) => {
                write!(f, "{}: created by {}@{}", self.name, holder.username, holder.hostname)?;
                write!(f, " (pid {}) at {since}", holder.pid)
            }
            None => write!(f, "{}: created by somebody unknown", self.name),
        }
    }
}

/// A lock that is held. Only a store makes one. It is not given back by being dropped: what a crash leaves locked stays
/// locked.
#[derive(Debug)]
#[must_use = "a lock is given back with `StateStore::unlock`"]
pub struct StackLock {
    pub(super) stack: StackReference,
    pub(super) name: String,
}

impl StackLock {
    /// The same lock for somebody who works on behalf of who holds it.
    pub(super) fn again(&self) -> Self {
        Self { stack: self.stack.clone(), name: self.name.clone() }
    }

    /// The stack that is locked.
    pub fn stack(&self) -> &StackReference {
        &self.stack
    }
}

/// The text of a lock.
#[derive(Serialize, Deserialize)]
struct StoredLock {
    pid: u32,
    username: String,
    hostname: String,
    timestamp: String,
}

/// Writes down who takes a lock.
pub(super) fn write(holder: &LockHolder, now: Timestamp) -> String {
    let stored = StoredLock {
        pid: holder.pid,
        username: holder.username.clone(),
        hostname: holder.hostname.clone(),
        timestamp: now.to_string(),
    };
    serde_json::to_string(&stored).expect("texts and numbers are always JSON")
}

/// Reads who holds a lock.
pub(super) fn read(name: &str, text: &str) -> LockInfo {
    let holder = serde_json::from_str::<StoredLock>(text).ok().map(|stored| {
        let StoredLock { pid, username, hostname, timestamp } = stored;
        (LockHolder { pid, username, hostname }, timestamp)
    });
    LockInfo { name: name.to_owned(), holder }
}
