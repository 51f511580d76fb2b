//! Lock of a stack: its holder, and its stored form.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bridge::json;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::objects::ObjectVersion;
use super::reference::StackReference;

/// Delays between checks of a lock that is not the only one: time for other runs to remove the locks that they wrote
/// before they saw that the stack is locked.
pub(super) const CHECK_DELAYS: [Duration; 4] =
    [Duration::from_millis(20), Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200)];

/// End of the name of a lock, after the id of its run.
const LOCK_SUFFIX: &str = ".json";

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
    /// Lease of the lock; `None` if it is held until it is released, and in locks of other programs.
    pub lease: Option<LockLease>,
}

/// Time for which a lock is held unless it is renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockLease {
    /// Id of the run; that of the lock, once a store has taken it.
    pub run: String,
    /// `true` if the run writes its journal to the store: no program may take the lock over that does not read it there.
    pub has_stored_journal: bool,
    /// Time of the lease. The holder starts nothing once it has passed since the last renewal; others remove the lock after
    /// twice this time.
    pub duration: Duration,
}

impl LockLease {
    /// Time of a lease by default.
    pub const DURATION: Duration = Duration::from_secs(60);

    /// Creates a lease for a new run.
    pub fn new(duration: Duration) -> Self {
        Self { run: uuid::Uuid::new_v4().to_string(), has_stored_journal: false, duration }
    }
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
    /// Namespace of the clocks (`/proc/PID/ns/time`), in another one of which the same process has another start. `None` on a
    /// system without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_namespace: Option<String>,
}

/// Information about a held lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// Name of the lock within its stack.
    pub name: String,
    /// Holder and time of the lock; `None` if the lock cannot be read.
    pub holder: Option<(LockHolder, String)>,
    /// Time at which the lock was taken or renewed, by the clock of the store.
    pub renewed: Option<Timestamp>,
    /// Version of the object.
    pub(super) version: Option<ObjectVersion>,
}

impl LockInfo {
    /// Creates the information about a lock of which only the text is known.
    pub fn new(name: impl Into<String>, holder: Option<(LockHolder, String)>) -> Self {
        Self { name: name.into(), holder, renewed: None, version: None }
    }

    /// Returns the id of the run that holds the lock.
    pub(crate) fn run(&self) -> &str {
        self.name.strip_suffix(LOCK_SUFFIX).unwrap_or(&self.name)
    }

    /// The lease, if the lock has one.
    pub fn lease(&self) -> Option<&LockLease> {
        self.holder.as_ref()?.0.lease.as_ref()
    }
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
    /// Last written text and version of the object; `None` before it is written.
    pub(super) object: Arc<tokio::sync::Mutex<Option<LockObject>>>,
}

/// Lock as an object.
#[derive(Debug)]
pub(super) struct LockObject {
    pub(super) stored: StoredLock,
    pub(super) version: ObjectVersion,
}

impl StackLock {
    pub(super) fn new(stack: StackReference, name: String) -> Self {
        Self { stack, name, object: Arc::default() }
    }

    /// Returns the same lock for a task that works on behalf of its holder.
    pub(crate) fn duplicate(&self) -> Self {
        Self { stack: self.stack.clone(), name: self.name.clone(), object: Arc::clone(&self.object) }
    }

    /// Returns the name of the lock within its stack.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the id of the run that holds the lock, which its journal has, too.
    pub(crate) fn run(&self) -> &str {
        self.name.strip_suffix(LOCK_SUFFIX).unwrap_or(&self.name)
    }

    /// The locked stack.
    pub fn stack(&self) -> &StackReference {
        &self.stack
    }
}

/// Stored form of a lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredLock {
    pid: u32,
    username: String,
    hostname: String,
    timestamp: String,
    /// Members that Pulumi ignores.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_extension")]
    sc: Option<Extension>,
}

/// Members of a lock that only this program reads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Extension {
    #[serde(flatten)]
    process: Option<ProcessFingerprint>,
    #[serde(flatten)]
    lease: Option<StoredLease>,
    /// Lease of a run whose journal is in the store. Earlier versions, which do not look there, take no such lock over.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_with_journal: Option<StoredLease>,
}

impl Extension {
    fn lease_mut(&mut self) -> Option<&mut StoredLease> {
        self.lease.as_mut().or(self.lease_with_journal.as_mut())
    }
}

/// Stored form of a lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredLease {
    run: String,
    lease_seconds: u64,
    /// Number of renewals: the text differs after each of them, so that the tag of the object does.
    renewals: u64,
}

/// Reads the members of this program; `None` for those of another version.
fn known_extension<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Extension>, D::Error> {
    let members = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(members).ok())
}

/// Returns a name that no other lock has.
pub(super) fn new_lock_name() -> String {
    format!("{}{LOCK_SUFFIX}", uuid::Uuid::new_v4())
}

impl StoredLock {
    /// Returns the stored form of the lock of a holder.
    pub(super) fn new(holder: &LockHolder, now: Timestamp) -> Self {
        let lease = holder.lease.as_ref().map(|lease| StoredLease {
            run: lease.run.clone(),
            lease_seconds: lease.duration.as_secs(),
            renewals: 0,
        });
        let process = holder.process.clone();
        let is_stored = holder.lease.as_ref().is_some_and(|lease| lease.has_stored_journal);
        let has_extension = process.is_some() || lease.is_some();
        let (lease, lease_with_journal) = if is_stored { (None, lease) } else { (lease, None) };
        Self {
            pid: holder.pid,
            username: holder.username.clone(),
            hostname: holder.hostname.clone(),
            timestamp: now.to_string(),
            sc: has_extension.then_some(Extension { process, lease, lease_with_journal }),
        }
    }

    /// Returns the lock after one more renewal.
    pub(super) fn renewed(&self) -> Self {
        let mut renewed = self.clone();
        if let Some(lease) = renewed.sc.as_mut().and_then(Extension::lease_mut) {
            lease.renewals += 1;
        }
        renewed
    }

    pub(super) fn without_lease(&self) -> Self {
        let mut permanent = self.clone();
        if let Some(extension) = &mut permanent.sc {
            (extension.lease, extension.lease_with_journal) = (None, None);
        }
        permanent
    }

    /// Returns the text of the lock.
    pub(super) fn write(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are always JSON")
    }

    /// Parses the text of a lock; `None` if it is malformed.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        json::from_slice(text).ok()
    }

    fn into_holder(self) -> (LockHolder, String) {
        let Self { pid, username, hostname, timestamp, sc } = self;
        let Extension { process, lease, lease_with_journal } = sc.unwrap_or_default();
        let has_stored_journal = lease_with_journal.is_some();
        let lease = lease_with_journal.or(lease).map(|StoredLease { run, lease_seconds, .. }| LockLease {
            run,
            has_stored_journal,
            duration: Duration::from_secs(lease_seconds),
        });
        (LockHolder { pid, username, hostname, process, lease }, timestamp)
    }
}

/// Parses the text of a lock. The holder is `None` if the text is malformed.
pub(super) fn read(name: &str, text: &[u8]) -> LockInfo {
    LockInfo::new(name, StoredLock::read(text).map(StoredLock::into_holder))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: state.md#locks "all of them must agree: a process of another container, or of an earlier start of the
    ///   machine, proves nothing"
    #[test]
    fn lock_has_the_members_of_pulumi_and_those_of_the_process_and_the_lease() {
        let process = ProcessFingerprint {
            started: 77,
            boot_id: "b".to_owned(),
            pid_namespace: "pid:[1]".to_owned(),
            time_namespace: Some("time:[2]".to_owned()),
        };
        let lease = LockLease { run: "r".to_owned(), has_stored_journal: false, duration: Duration::from_secs(60) };
        let with_journal = LockLease { has_stored_journal: true, ..lease.clone() };
        let of_pulumi = LockHolder {
            pid: 7,
            username: "ada".to_owned(),
            hostname: "reefbox".to_owned(),
            process: None,
            lease: None,
        };
        let identified = LockHolder { process: Some(process), ..of_pulumi.clone() };
        let leased = LockHolder { lease: Some(lease.clone()), ..of_pulumi.clone() };
        let both = LockHolder { lease: Some(lease), ..identified.clone() };
        let stored = LockHolder { lease: Some(with_journal), ..identified.clone() };
        let plain = r#"{"pid":7,"username":"ada","hostname":"reefbox","timestamp":"1970-01-01T00:00:00Z"}"#;
        let with = |members: &str| plain.replace('}', &format!(r#","sc":{{{members}}}}}"#));
        let (of_process, of_lease) = (
            r#""started":77,"bootId":"b","pidNamespace":"pid:[1]","timeNamespace":"time:[2]""#,
            r#""run":"r","leaseSeconds":60,"renewals":0"#,
        );
        for (holder, text) in [
            (of_pulumi, plain.to_owned()),
            (identified, with(of_process)),
            (leased, with(of_lease)),
            (both, with(&format!("{of_process},{of_lease}"))),
            // An earlier version finds no lease, and never takes the lock over.
            (stored, with(&format!(r#"{of_process},"leaseWithJournal":{{{of_lease}}}"#))),
        ] {
            assert_eq!(StoredLock::new(&holder, Timestamp::UNIX_EPOCH).write(), text);
            assert_eq!(read("x", text.as_bytes()).holder.unwrap().0, holder);
            let renewed = StoredLock::new(&holder, Timestamp::UNIX_EPOCH).renewed().write();
            assert_eq!(renewed, text.replace(r#""renewals":0"#, r#""renewals":1"#));
        }
        let of_another_version = read("x", plain.replace('}', r#","sc":{"run":1}}"#).as_bytes());
        let holder = of_another_version.holder.unwrap().0;
        assert_eq!((holder.process, holder.lease), (None, None));
        assert!(read("x", b"{").holder.is_none());
    }
}
