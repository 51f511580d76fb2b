//! Life of a stack whose state is in a store: the same commands, with the same results, on each store.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use tests::binaries;
use tests::processes::{kill_with_variable, wait_until};

use crate::{azblob, postgres};

/// Arguments of `unshare` for a command with a host name of its own.
const UNSHARE: [&str; 4] = ["--user", "--map-root-user", "--uts", "--"];

/// Repository with the stack `reef` of project `tank`.
pub(crate) struct Repository {
    folder: tempfile::TempDir,
    /// Entry of `state-storage`.
    storage: String,
    /// Entry of `secrets-provider`.
    secrets_provider: String,
    environment: Vec<(String, String)>,
    /// Name of the host, in place of that of this machine.
    hostname: Option<String>,
}

impl Repository {
    pub(crate) fn new(storage: &str, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::Builder::new().prefix("sc-store-").tempdir().unwrap();
        for name in [".git", ".sc/stacks/reef", "home", "rec", "tmp"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: tank\n").unwrap();
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let secrets_provider = "{ type: passphrase, config: { passPhrase: hush } }".to_owned();
        let (storage, environment) = (storage.to_owned(), environment.collect());
        Self { folder, storage, secrets_provider, environment, hostname: None }
    }

    /// Creates a repository whose state is in the bucket `reef` of a server of S3, or of a proxy in front of it.
    pub(crate) fn in_s3(endpoint: &str) -> Self {
        Self::in_bucket("reef/team", endpoint)
    }

    /// Creates a repository whose state is in a bucket of S3, below a prefix.
    pub(crate) fn in_bucket(path: &str, endpoint: &str) -> Self {
        let url = format!("s3://{path}?endpoint={endpoint}&s3ForcePathStyle=true&region=us-east-1");
        let keys = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "test")];
        Self::new(&format!("{{ type: fs, config: {{ path: \"{url}\" }} }}"), &keys)
    }

    /// Adds variables to the environment of all commands.
    pub(crate) fn with_environment(mut self, variables: &[(&str, String)]) -> Self {
        self.environment.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self
    }

    /// Sets the entry of `secrets-provider`.
    pub(crate) fn with_secrets_provider(mut self, entry: &str) -> Self {
        entry.clone_into(&mut self.secrets_provider);
        self
    }

    /// Creates a repository whose state is in the database `reef`, which is reached at a port of 127.0.0.1.
    pub(crate) fn in_postgres(port: u16) -> Self {
        let url = postgres::url_at(port, "ada", "reef", "sslmode=disable");
        Self::new(&format!("{{ type: fs, config: {{ path: \"{url}\" }} }}"), &[])
    }

    /// Creates a repository whose state is in the container `reef` of `azurite`, or of a proxy in front of it.
    pub(crate) fn in_azure(host: &str) -> Self {
        let url = azblob::url("reef/team", host);
        Self::new(&format!("{{ type: fs, config: {{ path: \"{url}\" }} }}"), &azblob::KEYS)
    }

    /// Creates a repository whose state is in the bucket `reef` of a stand-in of Google Cloud Storage.
    pub(crate) fn in_google_cloud_storage(host: &str) -> Self {
        let storage = "{ type: gcp-bucket, config: { bucketName: reef } }";
        Self::new(storage, &[("STORAGE_EMULATOR_HOST", host)])
    }

    /// Returns another clone of the repository, on another machine: it shares the store and nothing else.
    pub(crate) fn elsewhere(&self) -> Self {
        let environment: Vec<_> =
            self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Self::new(&self.storage, &environment).with_secrets_provider(&self.secrets_provider)
    }

    /// Gives the machine another host name, if this system allows namespaces of users.
    pub(crate) fn on_host(mut self, name: &str) -> Self {
        let tried = Command::new("unshare").args(UNSHARE).args(["hostname", name]).output();
        match tried {
            Ok(output) if output.status.success() => self.hostname = Some(name.to_owned()),
            _ => println!("SKIPPED another host name: `unshare --user --uts` is not allowed here"),
        }
        self
    }

    /// Lets server.yaml name another state storage from its next write on.
    pub(crate) fn use_storage(&mut self, storage: &str) {
        storage.clone_into(&mut self.storage);
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes server.yaml with resources of the scripted plugin.
    pub(crate) fn write_things(&self, things: &[(&str, &str)]) {
        let line = |(name, value): &(&str, &str)| {
            format!("        {name}: {{ type: rec:index:Thing, config: {{ v: '{value}' }} }}\n")
        };
        self.write_resources(&things.iter().map(line).collect::<String>());
    }

    /// Writes server.yaml with the lines of resources.
    pub(crate) fn write_resources(&self, resources: &str) {
        let rec = env!("CARGO_BIN_EXE_pulumi-resource-rec");
        let text = format!(
            "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    pendingCreates: recreate
    state-storage: {}
    secrets-provider: {}
plugins:
  - {{ name: rec, source: {{ type: local, path: {rec} }}, passEnv: [REC_DIR, REC_KILL] }}
resources:
  resources:
    prod:
      resources:
{resources}",
            self.storage, self.secrets_provider
        );
        fs::write(self.path(".sc/stacks/reef/server.yaml"), text).unwrap();
    }

    /// Tells the scripted plugin what to do.
    pub(crate) fn script(&self, script: &serde_json::Value) {
        fs::write(self.path("rec/script.json"), script.to_string()).unwrap();
    }

    /// Returns the calls that the scripted plugin received.
    pub(crate) fn calls(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.path("rec/calls.jsonl")).unwrap_or_default();
        // The last line may be incomplete.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the command, which is not started.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let sc = binaries::sc().unwrap();
        let mut command = match &self.hostname {
            None => Command::new(sc),
            Some(name) => {
                let mut command = Command::new("unshare");
                command.args(UNSHARE).args(["sh", "-c", r#"hostname "$0" && exec "$@""#, name]).arg(sc);
                command
            }
        };
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("PATH", "/usr/bin:/bin")
            .env("REC_DIR", self.path("rec"))
            .env("REC_KILL", "0:never")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a command, and returns it once a condition holds, which it must not outlive.
    pub(crate) fn start_until(&self, command: &mut Command, what: &str, mut condition: impl FnMut() -> bool) -> Child {
        let mut running = command.spawn().unwrap();
        wait_until(what, || {
            let is_met = condition();
            assert!(is_met || running.try_wait().unwrap().is_none(), "the command has ended before {what}");
            is_met
        });
        running
    }

    /// Runs a command, which must end with this code, and returns what it printed.
    pub(crate) fn sc(&self, code: i32, arguments: &str) -> String {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        let printed = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert_eq!(status.code(), Some(code), "sc {arguments}: {printed}");
        printed
    }

    /// Checks that what a command printed contains a text.
    pub(crate) fn expect(&self, code: i32, arguments: &str, text: &str) {
        let printed = self.sc(code, arguments);
        assert!(printed.contains(text), "sc {arguments}: expected {text:?} in {printed}");
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        kill_with_variable("HOME", &self.path("home"));
    }
}

/// Leads a stack through its whole life.
pub(crate) fn lead_a_whole_life(repository: &Repository) {
    repository.write_things(&[("a", "1"), ("b", "1")]);
    repository.expect(0, "provision -S", "created");
    repository.expect(0, "stack ls", "reef");
    repository.expect(0, "provision --expect-no-changes", "unchanged");
    repository.expect(0, "preview --expect-no-changes", "");

    // A change of which one part fails: the other part is recorded.
    repository.write_things(&[("a", "2"), ("b", "2"), ("c", "1")]);
    repository.script(&serde_json::json!({ "resources": { "c--prod": { "create": "error" } } }));
    repository.sc(1, "provision -S --continue-on-error");
    repository.script(&serde_json::json!({}));
    repository.expect(0, "provision -S", "1 created");
    repository.sc(0, "refresh --yes");

    // Another machine sees the same stack.
    let elsewhere = repository.elsewhere();
    elsewhere.write_things(&[("a", "2"), ("b", "2"), ("c", "1")]);
    fs::remove_dir_all(elsewhere.path("rec")).unwrap();
    let linked = std::os::unix::fs::symlink(repository.path("rec"), elsewhere.path("rec"));
    linked.unwrap();
    elsewhere.expect(0, "provision --expect-no-changes", "unchanged");

    let exported = repository.sc(0, "stack export");
    assert!(exported.contains("urn:pulumi:reef::tank::"), "{exported}");
    repository.sc(0, "stack tag set owner ada");
    repository.expect(0, "stack tag ls", "ada");
    repository.expect(0, "stack history", "update");
    repository.expect(0, "stack restore", "bak");
    let name = exported.lines().find_map(|line| line.split('"').find(|text| text.ends_with("::c--prod")));
    repository.sc(0, &format!("state protect {} --yes", name.unwrap()));
    repository.sc(1, "destroy --parent --yes");
    repository.sc(0, &format!("state unprotect {} --yes", name.unwrap()));

    // A resource that exists is recorded, and managed from then on.
    repository.write_things(&[("a", "2"), ("b", "2"), ("c", "1"), ("d", "read")]);
    repository.expect(0, "import d--prod=d-7", "imported");
    repository.expect(0, "provision -S --expect-no-changes", "unchanged");
    fs::write(repository.path("export.json"), repository.sc(0, "stack export")).unwrap();
    repository.sc(0, "stack import --file export.json");

    repository.sc(0, "stack rename deep --yes");
    fs::rename(repository.path(".sc/stacks/reef"), repository.path(".sc/stacks/deep")).unwrap();
    repository.expect(0, "provision --expect-no-changes", "unchanged");
    repository.expect(0, "stack history", "import");
    repository.sc(0, "destroy --parent --yes");
    repository.sc(0, "stack rm --yes");
    let listed = repository.sc(0, "stack ls --json");
    assert!(listed.contains(r#""stack":"deep""#) && listed.contains(r#""resources":null"#), "{listed}");
}
