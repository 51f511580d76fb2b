//! Repository of a team in a temporary folder, in which its pipeline runs isolated from the machine.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tests::binaries;
use tests::fake_clouds::packages;
use tests::processes::kill_with_variable;
use tests::sdks::python_venv;
use tests::service::type_and_name;

const SERVER: &str = ".sc/stacks/reef/server.yaml";
const SECRETS: &str = ".sc/stacks/reef/secrets.yaml";
const CLOUD: &str = env!("CARGO_BIN_EXE_pulumi-resource-cloud");

/// Repository with the stack `reef` of project `tank`. Its secrets are only in the store, and it declares no plugins.
pub(crate) struct Repository {
    folder: tempfile::TempDir,
    environment: BTreeMap<String, String>,
}

impl Drop for Repository {
    fn drop(&mut self) {
        // A test that fails leaves no processes.
        kill_with_variable("HOME", &self.path("home"));
    }
}

impl Repository {
    /// Copies the repository with this name, installs the packages in the folder of `pulumi` in its home, and hides its secrets,
    /// in which `$ACCOUNT` stands for the account.
    pub(crate) fn new(name: &str, account: &str, environment: &[(&str, String)]) -> Self {
        let folder = tempfile::Builder::new().prefix("sc-pipeline-").tempdir().unwrap();
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let repository = Self { folder, environment };
        for folder in [".git", "home", "rec", "tmp", "keys"] {
            fs::create_dir(repository.path(folder)).unwrap();
        }
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_pipelines").join(name);
        for path in [".sc/cfg.default.yaml", SERVER, SECRETS, "pipeline.sh"] {
            let text = fs::read_to_string(sources.join(path)).unwrap();
            repository.write(path, &text.replace("$ACCOUNT", account));
        }
        fs::write(repository.path(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let store =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/simple-container/secrets/stores/ed25519-openssh/root");
        for key in ["keys/test_a-ed25519-openssh", "keys/test_a-ed25519-openssh.pub"] {
            fs::copy(store.join(key), repository.path(key)).unwrap();
        }
        repository.install_packages();
        repository.succeed(&format!("secrets add --yes {SECRETS}"));
        fs::remove_file(repository.path(SECRETS)).unwrap();
        repository
    }

    fn install_packages(&self) {
        for (name, package) in packages() {
            let folder = self.path(&format!("home/.pulumi/plugins/resource-{name}-v{}", package.version));
            fs::create_dir_all(&folder).unwrap();
            let path = folder.join(format!("pulumi-resource-{name}"));
            let program = if name == "kubernetes" { on_python() } else { CLOUD.to_owned() };
            fs::write(&path, format!("#!/bin/sh\nREC_DIR=\"$HOME/../rec\" exec {program} \"$@\"\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Replaces a text in server.yaml.
    pub(crate) fn change(&self, from: &str, to: &str) {
        let server = fs::read_to_string(self.path(SERVER)).unwrap();
        assert!(server.contains(from), "{from} is not in {server}");
        self.write(SERVER, &server.replacen(from, to, 1));
    }

    /// Tells the fake clouds what to do.
    pub(crate) fn script(&self, script: &Value) {
        self.write("rec/script.json", &script.to_string());
    }

    fn prepared(&self, mut command: Command) -> Command {
        let sc = binaries::sc().unwrap();
        command
            .current_dir(self.folder.path())
            .env_clear()
            .envs(&self.environment)
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("PATH", format!("{}:/usr/bin:/bin", sc.parent().unwrap().display()))
            .stdin(Stdio::null());
        command
    }

    /// Returns a command of `sc`, which is not started.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(binaries::sc().unwrap());
        command.args(arguments.split_whitespace());
        self.prepared(command)
    }

    /// Runs a command of `sc`, which must succeed, and returns its standard output.
    pub(crate) fn succeed(&self, arguments: &str) -> String {
        expect(0, self.command(arguments))
    }

    /// Runs a command of `sc`, which must end with this exit code, and returns its output.
    pub(crate) fn end_with(&self, code: i32, arguments: &str) -> String {
        expect(code, self.command(arguments))
    }

    /// Follows `docs/moving.md`: runs its commands, which must succeed, in their order. Returns the commands.
    pub(crate) fn follow_guide(&self) -> Vec<String> {
        let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/moving.md")).unwrap();
        let blocks =
            page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().replace("STACK", "reef"));
        let commands: Vec<String> =
            blocks.flat_map(|block| block.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()).collect();
        let commands: Vec<String> = commands.into_iter().filter(|command| !command.is_empty()).collect();
        for command in &commands {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", command]);
            expect(0, self.prepared(shell));
        }
        commands
    }

    /// Checks that the secrets are on the disk, for the owner of the file alone, and removes them again.
    pub(crate) fn hide_again(&self) {
        let mode = fs::metadata(self.path(SECRETS)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::remove_file(self.path(SECRETS)).unwrap();
    }

    /// Runs the pipeline, which must end with this exit code, and returns its output.
    pub(crate) fn pipeline(&self, code: i32, parallel: usize) -> String {
        let mut shell = Command::new("/bin/sh");
        shell.arg("pipeline.sh");
        let mut shell = self.prepared(shell);
        shell.env("PARALLEL", parallel.to_string());
        expect(code, shell)
    }

    /// Returns the calls that the fake clouds received.
    fn calls(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("rec/calls.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the Creates, Updates, Deletes and imports after the first `seen` calls, as `RPC TYPE NAME`, sorted.
    pub(crate) fn changes(&self, seen: &mut usize) -> Vec<String> {
        let calls = self.calls();
        let change = |call: &Value| {
            let (token, name) = type_and_name(call["request"]["urn"].as_str()?);
            let rpc = call["rpc"].as_str()?;
            // Operators make the secrets with these names, which every run reads.
            let is_change = ["Create", "Update", "Delete", "Read"].contains(&rpc) && !name.ends_with("-get-0");
            is_change.then(|| format!("{rpc} {token} {name}"))
        };
        let mut changes: Vec<String> = calls[*seen..].iter().filter_map(change).collect();
        *seen = calls.len();
        changes.sort();
        changes
    }

    /// Returns the inputs of the resources of a type that were created.
    pub(crate) fn created(&self, token: &str) -> Vec<Value> {
        let is_created = |call: &Value| {
            let urn = call["request"]["urn"].as_str().unwrap_or_default();
            call["rpc"] == "Create" && urn.contains(&format!("::{token}::"))
        };
        self.calls().into_iter().filter(is_created).map(|call| call["request"]["properties"].clone()).collect()
    }

    /// Returns the state as `sc stack export` prints it.
    pub(crate) fn state(&self) -> Value {
        serde_json::from_str(&self.succeed("stack export -s reef")).unwrap()
    }

    /// Returns the resources of the state as `TYPE NAME`, sorted.
    pub(crate) fn resources(&self) -> Vec<String> {
        let state = self.state();
        let name = |resource: &Value| {
            let (token, name) = resource["urn"].as_str()?.split_once("::tank::")?.1.split_once("::")?;
            Some(format!("{token} {name}"))
        };
        let resources = state["deployment"]["resources"].as_array().into_iter().flatten();
        let mut resources: Vec<String> = resources.filter_map(name).collect();
        resources.sort();
        resources
    }

    /// Checks that nothing was revealed: no secrets on the disk, none in the state.
    pub(crate) fn assert_hidden(&self) {
        assert!(!self.path(SECRETS).exists());
        assert!(!self.state().to_string().contains("low-tide-"), "a secret is in the state");
    }
}

/// Runs a command, which must end with this exit code, and returns its output. It contains no secret: those of the repositories
/// have a common beginning.
fn expect(code: i32, mut command: Command) -> String {
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{command:?}: {stdout}{stderr}");
    assert!(!stdout.contains("low-tide-") && !stderr.contains("low-tide-"), "{command:?}: {stdout}{stderr}");
    stdout + &stderr
}

/// Returns the command of the provider of Kubernetes, whose charts are components on the Python SDK.
fn on_python() -> String {
    let venv = python_venv("python-pulumi", &["pulumi>=3.272.0", "googleapis-common-protos", "grpcio-tools"]).unwrap();
    let provider = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_pipelines/kubernetes/provider.py");
    format!("{} {} {CLOUD}", venv.python().display(), provider.display())
}
