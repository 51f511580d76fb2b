//! Providers of the type `Thing`, with the files that each of them keeps.
//!
//! Sources of the providers are in `tests/interop_providers/{python,node,go}`.
//!
//! All three serve the type `<package>:index:Thing`. Its inputs are `v` (a change updates), `k` (a change replaces),
//! `secret` (a change updates) and `delay` (duration of Create in milliseconds; a change is no difference). Its outputs
//! have the same names, and `out` (`made of <v>`). In the folder `PEER_HOME` each has
//!
//! ```text
//! things/<id>.json   {"v": …, "k": …, "secret": …}: the actual state, as Read returns it
//! calls.jsonl        a line for each call that has ended
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::peers::{Peer, PeerPlugin};

impl Peer {
    /// Returns the name of the plugin and of its package.
    pub fn package(self) -> &'static str {
        match self {
            Self::Python => "peerpy",
            Self::Node => "peernode",
            Self::Go => "peergo",
        }
    }

    /// Returns whether Create and Update are called in previews.
    pub fn shows_previews(self) -> bool {
        match self {
            Self::Python | Self::Go => true,
            Self::Node => false,
        }
    }

    /// Returns the form in which secrets reach the provider.
    pub fn secrets(self) -> Secrecy {
        match self {
            Self::Python => Secrecy::Plain,
            Self::Node | Self::Go => Secrecy::Wrapped,
        }
    }

    /// Installs the plugin, with its SDK, in a folder.
    pub fn install(self, folder: &Path) -> PeerPlugin {
        self.install_plugin("interop_providers", self.package(), folder).unwrap()
    }
}

/// Form in which a secret reached a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Secrecy {
    /// No secret was sent.
    Absent,
    /// The secret was sent as plain text.
    Plain,
    /// The secret was sent with its mark.
    Wrapped,
}

/// Call, as the provider recorded it at its end. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Call {
    /// Name of the RPC.
    pub call: String,
    /// Name of the resource.
    pub name: String,
    /// Id of the resource; empty before its creation.
    pub id: String,
    /// True if the call is a preview.
    pub preview: bool,
    /// Form in which the secret was sent.
    pub secret: Secrecy,
    /// Process id of the provider.
    pub pid: i32,
    /// Time at which the call was received.
    pub begin: f64,
    /// Time at which the call was replied to.
    pub end: f64,
}

/// Folder `PEER_HOME` of a provider.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// Creates the folder, without any things.
    pub fn create(folder: PathBuf) -> Self {
        fs::create_dir_all(folder.join("things")).unwrap();
        Self(folder)
    }

    /// Returns the path of the folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Returns all calls so far, in the order of their ends.
    pub fn calls(&self) -> Vec<Call> {
        let log = fs::read_to_string(self.0.join("calls.jsonl")).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the existing things, by id.
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

    /// Changes a thing outside of any provider.
    pub fn alter(&self, id: &str, thing: &Value) {
        fs::write(self.file(id), thing.to_string()).unwrap();
    }

    /// Deletes a thing outside of any provider.
    pub fn lose(&self, id: &str) {
        fs::remove_file(self.file(id)).unwrap();
    }

    fn file(&self, id: &str) -> PathBuf {
        let file = self.0.join(format!("things/{id}.json"));
        assert!(file.is_file(), "there is no {id}");
        file
    }
}
