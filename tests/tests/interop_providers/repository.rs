//! A repository in a temporary folder, and the program `sc` at work in it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use provisioner::state::secrets::{Keyring, Passphrase};
use provisioner::state::store::{FileStore, FileUrl, StackReference};
use provisioner::state::{ExportedSecrets, StackAccess, StackView};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::peer::{Call, Home, Peer};

const PASSPHRASE: &str = "kelp forest 7";

/// What the secrets in a repository say; no other text in it holds them.
pub(crate) const SECRET: &str = "hush-now-7";
pub(crate) const ANOTHER_SECRET: &str = "hush-later-8";

/// A resource as `server.yaml` describes it: key and `config`.
pub(crate) type Wanted<'a> = (&'a str, Peer, Value);

/// The inputs of a thing; `secret` is the name of a value in secrets.yaml.
pub(crate) fn thing(v: &str, k: &str, secret: &str) -> Value {
    json!({"v": v, "k": k, "secret": format!("${{secret:{secret}}}")})
}

/// A repository with project `tide` and stack `reef`, whose plugins are all the peers it was made for.
pub(crate) struct Repository {
    folder: TempDir,
    peers: Vec<Peer>,
    path: OsString,
    pub(crate) home: Home,
}

impl Repository {
    pub(crate) fn new(peers: &[Peer]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut path = std::env::var_os("PATH").unwrap();
        for peer in peers {
            if let Some(bin) = peer.install(&folder.path().join("plugins").join(peer.package())) {
                path = tests::peers::first_on_path(&bin).unwrap();
            }
        }
        let home = Home::create(folder.path().join("world"));
        let repository = Self { folder, peers: peers.to_vec(), path, home };
        repository.file(".sc/cfg.default.yaml", "projectName: tide\n");
        let secrets = json!({
            "schemaVersion": "1.0",
            "values": {"passphrase": PASSPHRASE, "first": SECRET, "second": ANOTHER_SECRET},
        });
        repository.file(".sc/stacks/reef/secrets.yaml", &secrets.to_string());
        repository
    }

    /// Describes the stack anew: these resources, and the outputs of each as an output of the stack.
    pub(crate) fn describe(&self, wanted: &[Wanted<'_>]) {
        let plugin = |peer: &Peer| {
            json!({
                "name": peer.package(),
                "source": {"type": "local", "path": format!("plugins/{}", peer.package())},
                "passEnv": ["PEER_HOME"],
            })
        };
        let resource = |(key, peer, config): &Wanted<'_>| {
            let resource = json!({"type": format!("{}:index:Thing", peer.package()), "config": config});
            ((*key).to_owned(), resource)
        };
        let output = |(key, _, config): &Wanted<'_>| {
            let names = ["v", "out", "secret"].into_iter().filter(|name| *name == "out" || config.get(name).is_some());
            let members = names.map(|name| (name.to_owned(), json!(format!("${{resource:main/{key}.{name}}}"))));
            ((*key).to_owned(), Value::Object(members.collect()))
        };
        let server = json!({
            "schemaVersion": "1.0",
            "provisioner": {"type": "pulumi", "config": {
                "state-storage": {"type": "fs", "config": {"path": "file://${project:root}/.sc/state?create_dir=true"}},
                "secrets-provider": {"type": "passphrase", "config": {"passPhrase": "${secret:passphrase}"}},
            }},
            "plugins": self.peers.iter().map(plugin).collect::<Vec<_>>(),
            "resources": {"resources": {"main": {
                "resources": wanted.iter().map(resource).collect::<serde_json::Map<_, _>>(),
            }}},
            "outputs": wanted.iter().map(output).collect::<serde_json::Map<_, _>>(),
        });
        self.file(".sc/stacks/reef/server.yaml", &format!("{server:#}"));
    }

    /// Runs `sc` and returns its exit code and all it wrote.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.code().unwrap_or(-1), text)
    }

    /// Runs `sc`, which succeeds, and returns what it wrote and what it called meanwhile.
    pub(crate) fn succeeds(&self, arguments: &[&str]) -> (String, Vec<Call>) {
        let before = self.home.calls().len();
        let (code, text) = self.run(arguments);
        assert_eq!(code, 0, "sc {}:\n{text}", arguments.join(" "));
        (text, self.home.calls().split_off(before))
    }

    /// Provisions the stack, and returns the calls that it took.
    pub(crate) fn provision(&self) -> Vec<Call> {
        self.succeeds(&["provision", "-s", "reef", "--yes"]).1
    }

    /// The state, with secrets in clear.
    pub(crate) fn state(&self) -> Value {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = self.folder.path().join(".sc/state");
            let url = FileUrl { folder: folder.clone(), create: false, folder_mode: 0o777, sidecars: true };
            let access = StackAccess {
                store: Arc::new(FileStore::open(&url).await.unwrap()),
                stack: StackReference::new("tide", "reef").unwrap(),
                keyring: Arc::new(Keyring::new(Some(Passphrase::new(PASSPHRASE)))),
                configured_secrets: None,
                journals: self.folder.path().join(".sc/journal"),
                engine_version: String::new(),
            };
            let export = StackView::export(&access, ExportedSecrets::Shown).await.unwrap();
            serde_json::from_str(&export.expect("the stack exists")).unwrap()
        })
    }

    /// The outputs of the stack.
    pub(crate) fn outputs(&self, arguments: &[&str]) -> Value {
        let output = self.command(&["stack", "outputs", "-s", "reef"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["outputs"].take()
    }

    /// The entries of the state for the resource.
    pub(crate) fn entries(&self, key: &str) -> Vec<Value> {
        let urn_end = format!("::{key}--main");
        let state = self.state();
        let resources = state["deployment"]["resources"].as_array().unwrap();
        resources.iter().filter(|resource| resource["urn"].as_str().unwrap().ends_with(&urn_end)).cloned().collect()
    }

    /// The one entry of the state for the resource.
    pub(crate) fn entry(&self, key: &str) -> Value {
        let mut entries = self.entries(key);
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries.remove(0)
    }

    /// The id that the state has for the resource.
    pub(crate) fn id(&self, key: &str) -> String {
        self.entry(key)["id"].as_str().unwrap().to_owned()
    }

    /// All files of the state, by path: backend, journals, locks.
    pub(crate) fn state_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut open = [".sc/state", ".sc/journal"].map(|path| self.folder.path().join(path)).to_vec();
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() { open.push(path) } else { files.push((path.clone(), fs::read(&path).unwrap())) }
            }
        }
        files.sort();
        files
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(tests::program::sc().unwrap());
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.folder.path().join("home"))
            .env("PEER_HOME", self.home.folder());
        command
    }

    fn file(&self, path: &str, text: &str) {
        let path: &Path = &self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}
