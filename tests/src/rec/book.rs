//! What the scripted provider is told and what it writes down: in memory, in a folder, or not at all.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::script::Script;

/// One call that a provider got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The RPC, such as `CheckConfig`.
    pub rpc: String,
    /// The request in the JSON form of protobuf.
    pub request: Value,
    /// What the provider answered, if it was an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How many ids each name has been given.
pub type IdCounters = BTreeMap<String, u64>;

/// The script and the memory of the provider, shared by all its instances.
pub trait Book: Send + Sync + fmt::Debug + 'static {
    /// What to do now.
    fn script(&self) -> Result<Script, String>;
    /// Takes a call down.
    fn record(&self, call: Call);
    /// The next id of a name.
    fn next_id(&self, name: &str) -> String;
    /// A call has come that waits for Cancel.
    fn hangs(&self);
    /// Something is there from now on, or is not any more.
    fn exists(&self, _id: &str, _exists: bool) {}
    /// Whether calls are taken down at all; if not, nobody needs to spell them out.
    fn is_recording(&self) -> bool {
        true
    }
}

/// No script and no record: for benchmarks.
#[derive(Debug)]
pub struct NoBook;

impl Book for NoBook {
    fn script(&self) -> Result<Script, String> {
        Ok(Script::default())
    }

    fn record(&self, _: Call) {}

    fn next_id(&self, name: &str) -> String {
        format!("{name}-id")
    }

    fn hangs(&self) {}

    fn is_recording(&self) -> bool {
        false
    }
}

/// A script given beforehand, calls and ids kept in memory: for one step of a scenario.
#[derive(Debug)]
pub struct MemoryBook {
    script: Script,
    written: watch::Sender<Written>,
}

#[derive(Debug, Default)]
struct Written {
    calls: Vec<Call>,
    ids: IdCounters,
    hanging: u32,
}

impl MemoryBook {
    /// An empty book for a script; names have had as many ids as the counters say.
    pub fn new(script: Script, ids: IdCounters) -> Self {
        Self { script, written: watch::Sender::new(Written { ids, ..Written::default() }) }
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.written.borrow().calls.clone()
    }

    /// Returns once a call has come that waits for Cancel.
    pub async fn hanging(&self) {
        self.until(|written| written.hanging > 0).await;
    }

    /// Returns once a Cancel has met a call that waits for it.
    pub async fn cancelled(&self) {
        self.until(|written| written.calls.iter().any(|call| call.rpc == "Cancel")).await;
    }

    async fn until(&self, holds: impl Fn(&Written) -> bool) {
        let mut written = self.written.subscribe();
        written.wait_for(|written| holds(written)).await.expect("the sender lives as long as the book");
    }
}

impl Book for MemoryBook {
    fn script(&self) -> Result<Script, String> {
        Ok(self.script.clone())
    }

    fn record(&self, call: Call) {
        self.written.send_modify(|written| written.calls.push(call));
    }

    fn next_id(&self, name: &str) -> String {
        let mut id = String::new();
        self.written.send_modify(|written| {
            let count = written.ids.entry(name.to_owned()).or_default();
            *count += 1;
            id = format!("{name}-{count}");
        });
        id
    }

    fn hangs(&self) {
        self.written.send_modify(|written| written.hanging += 1);
    }
}

/// A folder with `script.json` (read anew at each call), `calls.jsonl` and `ids.json`: for plugin processes.
#[derive(Debug)]
pub struct FolderBook {
    folder: PathBuf,
    lock: Mutex<u64>,
}

impl FolderBook {
    /// Works in an existing folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), lock: Mutex::new(0) }
    }
}

impl Book for FolderBook {
    fn script(&self) -> Result<Script, String> {
        match std::fs::read_to_string(self.folder.join("script.json")) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| format!("script.json: {error}")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Script::default()),
            Err(error) => Err(format!("script.json: {error}")),
        }
    }

    fn record(&self, call: Call) {
        #[derive(Serialize)]
        struct Line {
            seq: u64,
            #[serde(flatten)]
            call: Call,
        }
        let mut seq = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        *seq += 1;
        let written = serde_json::to_string(&Line { seq: *seq, call }).map_err(std::io::Error::from).and_then(|line| {
            let mut file =
                std::fs::OpenOptions::new().append(true).create(true).open(self.folder.join("calls.jsonl"))?;
            // One write, so that several processes may share the file.
            file.write_all(format!("{line}\n").as_bytes())
        });
        if let Err(error) = written {
            // A provider that cannot write its record must not look as if it had got no calls.
            panic!("calls.jsonl: {error}");
        }
    }

    fn next_id(&self, name: &str) -> String {
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.folder.join("ids.json");
        let mut ids: IdCounters =
            std::fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let count = ids.entry(name.to_owned()).or_default();
        *count += 1;
        let id = format!("{name}-{count}");
        // Renamed into place: a process that is killed while it writes must not give out the same ids again.
        let written = path.with_extension("new");
        let text = serde_json::to_string(&ids).map_err(std::io::Error::from);
        if let Err(error) =
            text.and_then(|text| std::fs::write(&written, text)).and_then(|()| std::fs::rename(&written, &path))
        {
            panic!("ids.json: {error}");
        }
        id
    }

    /// Files in the folder `ledger`, if there is one.
    fn exists(&self, id: &str, exists: bool) {
        let ledger = self.folder.join("ledger");
        if !ledger.is_dir() {
            return;
        }
        let entry = ledger.join(id);
        if exists {
            std::fs::write(entry, "").expect("the ledger takes entries");
        } else {
            // What is not there may be deleted once more.
            std::fs::remove_file(entry).ok();
        }
    }

    fn hangs(&self) {}
}
