//! Repository in a temporary folder, in which `sc` runs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{Call, ProviderHome, RemoteStore, Sdk};

/// Passphrase that encrypts the state of a repository.
pub const PASSPHRASE: &str = "kelp forest 7";

/// First secret text in a repository; no other text contains it.
pub const SECRET: &str = "hush-now-7";
/// Second secret text in a repository.
pub const ANOTHER_SECRET: &str = "hush-later-8";

/// Resource of `server.yaml`: key, SDK of its provider, and `config`.
pub type DeclaredResource<'a> = (&'a str, Sdk, Value);

/// Returns the inputs of a resource; `secret` is the name of a value in secrets.yaml.
pub fn resource_inputs(v: &str, k: &str, secret: &str) -> Value {
    json!({"v": v, "k": k, "secret": format!("${{secret:{secret}}}")})
}

/// Repository with project `tide` and stack `reef`, with the plugins of the given SDKs.
pub struct Repository {
    folder: TempDir,
    sdks: Vec<Sdk>,
    path: OsString,
    /// Variables of `sc`, besides the usual ones.
    variables: Vec<(String, String)>,
    /// Members of the entry of each plugin, besides the usual ones.
    settings: Map<String, Value>,
    /// Store of the state, unless it is in `.sc/state`.
    remote: Option<RemoteStore>,
    /// Entry of server.yaml.
    secrets_provider: Value,
    /// Folder with the resources and call logs of the providers.
    pub home: ProviderHome,
}

impl Repository {
    /// Creates the repository, with SDKs and plugins installed.
    pub fn new(sdks: &[Sdk]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut path = std::env::var_os("PATH").unwrap();
        for sdk in sdks {
            let plugin = sdk.install(&folder.path().join("plugins").join(sdk.package()));
            if plugin.first_on_path.is_some() {
                path = plugin.path().unwrap();
            }
        }
        let home = ProviderHome::create(folder.path().join("provider-home"));
        fs::create_dir(folder.path().join("rec")).unwrap();
        let (variables, settings, remote) = (Vec::new(), Map::new(), None);
        let secrets_provider = json!({"type": "passphrase", "config": {"passPhrase": "${secret:passphrase}"}});
        let sdks = sdks.to_vec();
        let repository = Self { folder, sdks, path, variables, settings, remote, secrets_provider, home };
        repository.write_file(".sc/cfg.default.yaml", "projectName: tide\n");
        let secrets = json!({
            "schemaVersion": "1.0",
            "values": {"passphrase": PASSPHRASE, "first": SECRET, "second": ANOTHER_SECRET},
        });
        repository.write_file(".sc/stacks/reef/secrets.yaml", &secrets.to_string());
        repository
    }

    /// Sets the PATH that plugins are started with.
    #[must_use]
    pub fn with_path(self, path: OsString) -> Self {
        Self { path, ..self }
    }

    /// Sets a variable of `sc`.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Keeps the state in a store.
    #[must_use]
    pub fn with_remote_store(mut self, store: RemoteStore) -> Self {
        self.variables.extend(store.variables.clone());
        self.remote = Some(store);
        self
    }

    /// Sets the entry `secrets-provider` of server.yaml.
    #[must_use]
    pub fn with_secrets_provider(self, secrets_provider: Value) -> Self {
        Self { secrets_provider, ..self }
    }

    /// Returns the variables of `sc`, besides the usual ones.
    pub fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// Runs all plugins in the sandbox `strict`, in which they reach their own folders and these, and no port.
    #[must_use]
    pub fn in_strict_sandbox(self, readable: &[PathBuf]) -> Self {
        self.with_settings(
            &json!({"sandbox": "strict", "readable": readable, "writable": ["provider-home", "rec"], "ports": []}),
        )
    }

    /// Adds members to the entry of each plugin.
    #[must_use]
    pub fn with_settings(mut self, settings: &Value) -> Self {
        self.settings.extend(settings.as_object().unwrap().clone());
        self
    }

    /// Returns the entry of a plugin with the members of every entry.
    pub fn entry_with_settings(&self, mut entry: Value) -> Value {
        entry.as_object_mut().unwrap().extend(self.settings.clone());
        entry
    }

    /// Writes server.yaml with these resources. The outputs of each become an output of the stack.
    pub fn declare(&self, wanted: &[DeclaredResource<'_>]) {
        let plugin = |sdk: &Sdk| {
            self.entry_with_settings(json!({
                "name": sdk.package(),
                "source": {"type": "local", "path": format!("plugins/{}", sdk.package())},
                "passEnv": ["PEER_HOME"],
            }))
        };
        let resource = |(key, sdk, config): &DeclaredResource<'_>| {
            let resource = json!({"type": format!("{}:index:Thing", sdk.package()), "config": config});
            ((*key).to_owned(), resource)
        };
        let output = |(key, _, config): &DeclaredResource<'_>| {
            let names = ["v", "out", "secret"].into_iter().filter(|name| *name == "out" || config.get(name).is_some());
            let members = names.map(|name| (name.to_owned(), json!(format!("${{resource:main/{key}.{name}}}"))));
            ((*key).to_owned(), Value::Object(members.collect()))
        };
        let plugins: Value = self.sdks.iter().map(plugin).collect();
        let resources: Value = wanted.iter().map(resource).collect();
        self.declare_sections(&plugins, &resources, &wanted.iter().map(output).collect());
    }

    /// Writes server.yaml with these sections; the resources are those of the environment `main`.
    pub fn declare_sections(&self, plugins: &Value, resources: &Value, outputs: &Value) {
        let in_folder = "file://${project:root}/.sc/state?create_dir=true";
        let url = self.remote.as_ref().map_or(in_folder, |remote| &remote.url);
        let server = json!({
            "schemaVersion": "1.0",
            "provisioner": {"type": "pulumi", "config": {
                "state-storage": {"type": "fs", "config": {"path": url}},
                "secrets-provider": self.secrets_provider,
            }},
            "plugins": plugins,
            "resources": {"resources": {"main": {"resources": resources}}},
            "outputs": outputs,
        });
        self.write_file(".sc/stacks/reef/server.yaml", &format!("{server:#}"));
    }

    /// Returns the path of the folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the URL of the state.
    pub fn backend(&self) -> String {
        let in_folder = || format!("file://{}/.sc/state", self.folder.path().display());
        self.remote.as_ref().map_or_else(in_folder, |remote| remote.url.clone())
    }

    /// Runs `sc` and returns its exit code and its output.
    pub fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.code().unwrap_or(-1), text)
    }

    /// Runs `sc`, which must succeed, and returns its output and the calls that it made.
    pub fn run_successfully(&self, arguments: &[&str]) -> (String, Vec<Call>) {
        let before = self.home.calls().len();
        let (code, text) = self.run(arguments);
        assert_eq!(code, 0, "sc {}:\n{text}", arguments.join(" "));
        (text, self.home.calls().split_off(before))
    }

    /// Provisions the stack, and returns the calls that `sc` made.
    pub fn provision(&self) -> Vec<Call> {
        self.run_successfully(&["provision", "-s", "reef", "--yes"]).1
    }

    /// Returns the state, with secrets in plain text.
    pub fn state(&self) -> Value {
        let output = self.command(&["stack", "export", "-s", "reef", "--show-secrets"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Returns the outputs of the stack.
    pub fn outputs(&self, arguments: &[&str]) -> Value {
        let output = self.command(&["stack", "outputs", "-s", "reef"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["outputs"].take()
    }

    /// Returns the entries of the state for a resource.
    pub fn entries(&self, key: &str) -> Vec<Value> {
        let urn_end = format!("::{key}--main");
        let state = self.state();
        // An empty state has no such member.
        let resources = state["deployment"]["resources"].as_array().map_or(&[][..], Vec::as_slice);
        resources.iter().filter(|resource| resource["urn"].as_str().unwrap().ends_with(&urn_end)).cloned().collect()
    }

    /// Returns the resources of the state, each with its name and, if it has one, its provider's name.
    pub fn resources(&self) -> Vec<String> {
        let name = |urn: &str| urn.rsplit("::").next().unwrap_or_default().to_owned();
        let line = |resource: &Value| {
            // The id of the provider is the last part of the reference.
            let provider = resource["provider"].as_str().and_then(|reference| reference.rsplit_once("::"));
            let provider = provider.map(|(urn, _)| format!(" by {}", name(urn))).unwrap_or_default();
            name(resource["urn"].as_str().unwrap()) + &provider
        };
        self.state()["deployment"]["resources"].as_array().into_iter().flatten().map(line).collect()
    }

    /// Returns the only entry of the state for a resource.
    pub fn entry(&self, key: &str) -> Value {
        let mut entries = self.entries(key);
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries.remove(0)
    }

    /// Returns the recorded id of a resource.
    pub fn id(&self, key: &str) -> String {
        self.entry(key)["id"].as_str().unwrap().to_owned()
    }

    /// Returns all files of the state, by path: backend, journals, locks. The objects of a remote store are those of the
    /// folder `.sc/state`.
    pub fn state_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let folder = |path: &str| self.folder.path().join(path);
        let remote = self.remote.iter().flat_map(RemoteStore::read_all);
        let mut files: Vec<_> = remote.map(|(key, content)| (folder(".sc/state").join(key), content)).collect();
        // The journals of a remote store are in the home directory.
        let mut open = [".sc/state", ".sc/journal", "home/.local/state/sc/stores"].map(folder).to_vec();
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                match fs::read(&path) {
                    Ok(content) => files.push((path, content)),
                    Err(_) if path.is_dir() => open.push(path),
                    // A running `sc` may have removed the file in the meantime.
                    Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{}", path.display()),
                }
            }
        }
        files.sort();
        files
    }

    /// Changes the uncompressed checkpoint outside of any program.
    pub fn change_checkpoint(&self, change: impl FnOnce(&mut Value)) {
        let key = ".pulumi/stacks/tide/reef.json";
        let path = self.folder.path().join(".sc/state").join(key);
        let files = self.state_files();
        let (_, content) = files.iter().find(|(file, _)| *file == path).unwrap();
        let mut checkpoint = serde_json::from_slice(content).unwrap();
        change(&mut checkpoint);
        match &self.remote {
            Some(remote) => remote.write(key, checkpoint.to_string().into_bytes()),
            None => fs::write(path, checkpoint.to_string()).unwrap(),
        }
    }

    /// Returns the number of processes whose environment has the path of the folder: `sc` and its plugins.
    pub fn processes(&self) -> usize {
        let folder = self.folder.path().as_os_str().as_encoded_bytes();
        let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path().join("environ"));
        let environments = processes.filter_map(|file| fs::read(file).ok());
        environments.filter(|text| text.windows(folder.len()).any(|part| part == folder)).count()
    }

    /// Returns a command that runs `sc` in the repository.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::binaries::sc().unwrap());
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.folder.path().join("home"))
            .env("PEER_HOME", self.home.folder())
            .env("REC_DIR", self.folder.path().join("rec"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns the text of a file of the repository.
    pub fn read_file(&self, path: &str) -> String {
        fs::read_to_string(self.folder.path().join(path)).unwrap()
    }

    /// Writes a file of the repository.
    pub fn write_file(&self, path: &str, text: &str) {
        let path: &Path = &self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Removes the envelopes of secrets, whose content an export has as JSON in `plaintext`.
pub fn plain(value: &Value) -> Value {
    match value {
        Value::Object(members) => match members.get("plaintext") {
            Some(Value::String(text)) => plain(&serde_json::from_str(text).unwrap()),
            _ => members.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        },
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}
