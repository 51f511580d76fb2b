//! The providers, and what each keeps and writes down.
//!
//! Their sources are in `tests/interop_providers/{python,node,go}`.
//!
//! All three serve the type `<package>:index:Thing` with the inputs `v` (a change updates), `k` (a change replaces),
//! `secret` (a change updates) and `delay` (how many milliseconds Create takes; a change is none), and the outputs of the
//! same names and `out` (`made of <v>`). In the folder `PEER_HOME` each has
//!
//! ```text
//! things/<id>.json   {"v": …, "k": …, "secret": …}: the world, as Read sees it
//! calls.jsonl        a line for each call that has ended
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::peers::{Peer, PeerPlugin};

impl Peer {
    /// Name of the plugin and of its package.
    pub fn package(self) -> &'static str {
        match self {
            Self::Python => "peerpy",
            Self::Node => "peernode",
            Self::Go => "peergo",
        }
    }

    /// Whether its Create and Update are called in previews.
    pub fn shows_previews(self) -> bool {
        match self {
            Self::Python | Self::Go => true,
            Self::Node => false,
        }
    }

    /// How secrets reach it.
    pub fn secrets(self) -> Secrecy {
        match self {
            Self::Python => Secrecy::Plain,
            Self::Node | Self::Go => Secrecy::Wrapped,
        }
    }

    /// Makes the plugin in a folder, its SDK installed.
    pub fn install(self, folder: &Path) -> PeerPlugin {
        self.install_plugin("interop_providers", self.package(), folder).unwrap()
    }
}

/// How a secret reached a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Secrecy {
    /// There was none.
    Absent,
    /// As any other text.
    Plain,
    /// Marked as a secret.
    Wrapped,
}

/// A call, as the provider wrote it down when it had ended. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Call {
    /// The RPC.
    pub call: String,
    /// Name of the resource.
    pub name: String,
    /// Its id; empty where there is none yet.
    pub id: String,
    /// Whether the world was to be left alone.
    pub preview: bool,
    /// How its secret came.
    pub secret: Secrecy,
    /// The provider's process.
    pub pid: i32,
    /// When it came.
    pub begin: f64,
    /// When it was answered.
    pub end: f64,
}

/// The folder `PEER_HOME` of a provider.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// Makes an empty world.
    pub fn create(folder: PathBuf) -> Self {
        fs::create_dir_all(folder.join("things")).unwrap();
        Self(folder)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// All calls so far, in the order in which they ended.
    pub fn calls(&self) -> Vec<Call> {
        let log = fs::read_to_string(self.0.join("calls.jsonl")).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What is there, by id.
    pub fn things(&self) -> Vec<(String, Value)> {
        let files = fs::read_dir(self.0.join("things")).unwrap().map(|entry| entry.unwrap().path());
        let thing = |path: PathBuf| {
            let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (id, serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
        };
        let mut things: Vec<_> = files.map(thing).collect();
        things.sort_by(|(a, _), (b, _)| a.cmp(b));
        things
    }

    /// Changes a thing behind everybody's back.
    pub fn alter(&self, id: &str, thing: &Value) {
        fs::write(self.file(id), thing.to_string()).unwrap();
    }

    /// Takes a thing away behind everybody's back.
    pub fn lose(&self, id: &str) {
        fs::remove_file(self.file(id)).unwrap();
    }

    fn file(&self, id: &str) -> PathBuf {
        let file = self.0.join(format!("things/{id}.json"));
        assert!(file.is_file(), "there is no {id}");
        file
    }
}
