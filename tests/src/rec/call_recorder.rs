//! Script and recorded calls of the scripted provider: in memory, in a folder, or none.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::script::Script;

/// Call that a provider received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Name of the RPC, such as `CheckConfig`.
    pub rpc: String,
    /// Request in the JSON form of protobuf.
    pub request: Value,
    /// Error that the provider replied, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Number of created ids by name.
pub type IdCounters = BTreeMap<String, u64>;

/// Script, recorded calls and ids of the provider, shared by all its instances.
pub trait CallRecorder: Send + Sync + fmt::Debug + 'static {
    /// Returns the script that applies now.
    fn script(&self) -> Result<Script, String>;
    /// Records a call.
    fn record(&self, call: Call);
    /// Returns the next id of a name.
    fn next_id(&self, name: &str) -> String;
    /// Reports a call that waits for Cancel.
    fn report_hanging_call(&self);
    /// Reports that a resource exists from now on, or no longer exists.
    fn set_exists(&self, _id: &str, _exists: bool) {}
    /// Returns whether a resource exists, as far as that is known.
    fn exists(&self, _id: &str) -> bool {
        true
    }
    /// Returns whether calls are recorded, so that requests need to be converted.
    fn is_recording(&self) -> bool {
        true
    }
}

/// Recorder without a script and a record, for benchmarks.
#[derive(Debug)]
pub struct NoCallRecorder;

impl CallRecorder for NoCallRecorder {
    fn script(&self) -> Result<Script, String> {
        Ok(Script::default())
    }

    fn record(&self, _: Call) {}

    fn next_id(&self, name: &str) -> String {
        format!("{name}-id")
    }

    fn report_hanging_call(&self) {}

    fn is_recording(&self) -> bool {
        false
    }
}

/// Recorder in memory with a given script, for one step of a scenario.
#[derive(Debug)]
pub struct MemoryCallRecorder {
    script: Script,
    recorded: watch::Sender<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    calls: Vec<Call>,
    ids: IdCounters,
    hanging: u32,
}

impl MemoryCallRecorder {
    /// Creates a recorder for a script. `ids`: number of ids that were created for each name before.
    pub fn new(script: Script, ids: IdCounters) -> Self {
        Self { script, recorded: watch::Sender::new(Recorded { ids, ..Recorded::default() }) }
    }

    /// Returns the calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.recorded.borrow().calls.clone()
    }

    /// Returns once a call waits for Cancel.
    pub async fn wait_for_hanging_call(&self) {
        self.wait_until(|recorded| recorded.hanging > 0).await;
    }

    /// Returns once Cancel has been received while a call waited for it.
    pub async fn wait_for_cancel(&self) {
        self.wait_until(|recorded| recorded.calls.iter().any(|call| call.rpc == "Cancel")).await;
    }

    async fn wait_until(&self, condition: impl Fn(&Recorded) -> bool) {
        let mut recorded = self.recorded.subscribe();
        recorded.wait_for(|recorded| condition(recorded)).await.expect("the sender lives as long as the recorder");
    }
}

impl CallRecorder for MemoryCallRecorder {
    fn script(&self) -> Result<Script, String> {
        Ok(self.script.clone())
    }

    fn record(&self, call: Call) {
        self.recorded.send_modify(|recorded| recorded.calls.push(call));
    }

    fn next_id(&self, name: &str) -> String {
        let mut id = String::new();
        self.recorded.send_modify(|recorded| {
            let count = recorded.ids.entry(name.to_owned()).or_default();
            *count += 1;
            id = format!("{name}-{count}");
        });
        id
    }

    fn report_hanging_call(&self) {
        self.recorded.send_modify(|recorded| recorded.hanging += 1);
    }
}

/// Recorder in a folder, for plugin processes: `script.json` (read at each call), `calls.jsonl` and `ids.json`.
#[derive(Debug)]
pub struct FolderCallRecorder {
    folder: PathBuf,
    lock: Mutex<u64>,
}

impl FolderCallRecorder {
    /// Creates a recorder in an existing folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), lock: Mutex::new(0) }
    }
}

impl CallRecorder for FolderCallRecorder {
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
            // The line is written at once, so that several processes can share the file.
            file.write_all(format!("{line}\n").as_bytes())
        });
        if let Err(error) = written {
            // A provider that cannot write its record must not look as if it had received no calls.
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
        // The file is renamed into place, so that a process that is killed while it writes does not return the same ids
        // again.
        let new_file = path.with_extension("new");
        let text = serde_json::to_string(&ids).map_err(std::io::Error::from);
        if let Err(error) =
            text.and_then(|text| std::fs::write(&new_file, text)).and_then(|()| std::fs::rename(&new_file, &path))
        {
            panic!("ids.json: {error}");
        }
        id
    }

    /// Creates or removes a file per resource in the folder `ledger`, if that exists.
    fn set_exists(&self, id: &str, exists: bool) {
        let ledger = self.folder.join("ledger");
        if !ledger.is_dir() {
            return;
        }
        let entry = ledger.join(id);
        if exists {
            std::fs::write(entry, "").expect("the ledger is writable");
        } else {
            // A resource that does not exist may be deleted again.
            std::fs::remove_file(entry).ok();
        }
    }

    fn exists(&self, id: &str) -> bool {
        let ledger = self.folder.join("ledger");
        !ledger.is_dir() || ledger.join(id).is_file()
    }

    fn report_hanging_call(&self) {}
}
