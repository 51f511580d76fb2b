//! Providers of the type `Thing`, with the files that each of them keeps.
//!
//! Sources of the providers are in `tests/interop_providers/{python,node,go}`.
//!
//! All three serve the type `<package>:index:Thing`. Its inputs are `v` (a change updates), `k` (a change replaces),
//! `secret` (a change updates) and `delay` (duration of Create in milliseconds; a change is no difference). Its outputs
//! have the same names, and `out` (`made of <v>`). Check refuses the value `bad` of `v`. The first Check of a process with
//! `busy` as `v`, and its first Delete with `busy` as `k`, fail and ask to be repeated. Each provider has these files in the folder `PEER_HOME`:
//!
//! ```text
//! things/<id>.json   {"v": …, "k": …, "secret": …}: the actual state, as Read returns it
//! calls.jsonl        a line for each call that has ended
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::sdks::{Sdk, SdkPlugin};

impl Sdk {
    /// Returns the name of the plugin and of its package.
    pub fn package(self) -> &'static str {
        match self {
            Self::Python => "peerpy",
            Self::Node => "peernode",
            Self::Go => "peergo",
        }
    }

    /// Returns whether Create and Update are called in previews.
    pub fn supports_previews(self) -> bool {
        match self {
            Self::Python | Self::Go => true,
            Self::Node => false,
        }
    }

    /// Returns the form in which secrets reach the provider.
    pub fn secret_form(self) -> SecretForm {
        match self {
            Self::Python => SecretForm::Plain,
            Self::Node | Self::Go => SecretForm::Wrapped,
        }
    }

    /// Installs the plugin, with its SDK, in a folder. It starts with the protocols `pulumi` and `register`.
    pub fn install(self, folder: &Path) -> SdkPlugin {
        let plugin = self.install_plugin("interop_providers", self.package(), folder).unwrap();
        if self != Self::Go {
            // The provider in Go writes the fields of the request by their numbers.
            let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pulumi-proto/proto/simplecontainer");
            fs::copy(protos.join("host/v1/host.proto"), folder.join("host.proto")).unwrap();
        }
        plugin
    }
}

/// Form in which a secret reached a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretForm {
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
    pub secret: SecretForm,
    /// Process id of the provider.
    pub pid: i32,
    /// Time at which the call was received.
    pub begin: f64,
    /// Time of the reply.
    pub end: f64,
}

/// Folder `PEER_HOME` of a provider.
#[derive(Clone, Debug)]
pub struct ProviderHome(PathBuf);

impl ProviderHome {
    /// Creates the folder, without resources.
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

    /// Returns the existing resources, by id.
    pub fn resources(&self) -> Vec<(String, Value)> {
        let files = fs::read_dir(self.0.join("things")).unwrap().map(|entry| entry.unwrap().path());
        let resource_inputs = |path: PathBuf| {
            let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (id, serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
        };
        let mut resources: Vec<_> = files.map(resource_inputs).collect();
        resources.sort_by(|(a, _), (b, _)| a.cmp(b));
        resources
    }

    /// Changes a resource outside of any provider.
    pub fn change(&self, id: &str, resource_inputs: &Value) {
        fs::write(self.file(id), resource_inputs.to_string()).unwrap();
    }

    /// Deletes a resource outside of any provider.
    pub fn delete(&self, id: &str) {
        fs::remove_file(self.file(id)).unwrap();
    }

    fn file(&self, id: &str) -> PathBuf {
        let file = self.0.join(format!("things/{id}.json"));
        assert!(file.is_file(), "{id} does not exist");
        file
    }
}
