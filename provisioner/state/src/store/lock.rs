//! Lock of a stack: its holder, and its stored form.

use std::fmt;
use std::time::Duration;

use bridge::json;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::reference::StackReference;

/// Delays between checks of a lock that is not the only one: time for other runs to remove the locks that they wrote
/// before they saw that the stack is locked.
pub(super) const CHECK_DELAYS: [Duration; 4] =
    [Duration::from_millis(20), Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200)];

/// Process that requests a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Process id.
    pub pid: u32,
    /// Name of the user.
    pub username: String,
    /// Name of the machine.
    pub hostname: String,
    /// Identity of the process; `None` if the system does not show it, and in locks of other programs.
    pub process: Option<ProcessFingerprint>,
}

/// Identity of a process on a machine: its id alone may be that of another process by now, or in another container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessFingerprint {
    /// Start of the process, in clock ticks since the start of the machine (`/proc/PID/stat`).
    pub started: u64,
    /// Id of the start of the machine (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
    /// Namespace of process ids (`/proc/PID/ns/pid`).
    pub pid_namespace: String,
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
    /// Members that Pulumi ignores.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_fingerprint")]
    sc: Option<ProcessFingerprint>,
}

/// Reads the identity of a process; `None` for members of another version.
fn known_fingerprint<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ProcessFingerprint>, D::Error> {
    let members = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(members).ok())
}

/// Returns a name that no other lock has.
pub(super) fn new_lock_name() -> String {
    format!("{}.json", uuid::Uuid::new_v4())
}

/// Returns the text of a lock.
pub(super) fn write(holder: &LockHolder, now: Timestamp) -> String {
    let stored = StoredLock {
        pid: holder.pid,
        username: holder.username.clone(),
        hostname: holder.hostname.clone(),
        timestamp: now.to_string(),
        sc: holder.process.clone(),
    };
    serde_json::to_string(&stored).expect("texts and numbers are always JSON")
}

/// Parses the text of a lock. The holder is `None` if the text is malformed.
pub(super) fn read(name: &str, text: &str) -> LockInfo {
    let holder = json::from_slice::<StoredLock>(text.as_bytes()).ok().map(|stored| {
        let StoredLock { pid, username, hostname, timestamp, sc } = stored;
        (LockHolder { pid, username, hostname, process: sc }, timestamp)
    });
    LockInfo { name: name.to_owned(), holder }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_has_the_members_of_pulumi_and_the_identity_of_the_process() {
        let fingerprint =
            ProcessFingerprint { started: 77, boot_id: "b".to_owned(), pid_namespace: "pid:[1]".to_owned() };
        let of_pulumi =
            LockHolder { pid: 7, username: "ada".to_owned(), hostname: "reefbox".to_owned(), process: None };
        let holder = LockHolder { process: Some(fingerprint), ..of_pulumi.clone() };
        let plain = r#"{"pid":7,"username":"ada","hostname":"reefbox","timestamp":"1970-01-01T00:00:00Z"}"#;
        let ours = r#","sc":{"started":77,"bootId":"b","pidNamespace":"pid:[1]"}}"#;
        assert_eq!(write(&of_pulumi, Timestamp::UNIX_EPOCH), plain);
        assert_eq!(write(&holder, Timestamp::UNIX_EPOCH), plain.replace('}', ours));
        for (text, holder) in [(plain.to_owned(), of_pulumi), (plain.replace('}', ours), holder)] {
            assert_eq!(read("x", &text).holder.unwrap().0, holder);
        }
        let of_another_version = read("x", &plain.replace('}', r#","sc":{"run":1}}"#));
        assert!(of_another_version.holder.is_some_and(|(holder, _)| holder.process.is_none()));
    }
}
