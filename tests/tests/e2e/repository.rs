//! Repository in a temporary folder, in which `sc` runs isolated from the machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::Signal;
use tests::binaries;
use tests::processes::kill_with_variable;

use crate::filter::filter_output;
use crate::processes::{signal, wait_until, with_variable};
use crate::schema_agreement::{CODES_OF_THE_SCHEMA, Reported, disagreement};

/// Declaration of the plugin `files`, which writes into the folder `site`.
pub(crate) const FILES: &str = "- { name: files, source: { type: local, path: $FILES }, config: { root: site } }";
/// Declaration of the scripted plugin `rec`.
pub(crate) const REC: &str = "- { name: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR] }";

/// Path of the checkpoint of the stack.
pub(crate) const CHECKPOINT: &str = "backend/.pulumi/stacks/tank/reef.json";

/// Sections of server.yaml, whose lines are indented automatically.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sections<'a> {
    /// Entries of `plugins`.
    pub(crate) plugins: &'a str,
    /// Entries of the resources of the environment `prod`.
    pub(crate) resources: &'a str,
    /// Entries of `outputs`.
    pub(crate) outputs: &'a str,
}

/// Repository with the stack `reef` of project `tank`, whose state is in `backend`.
pub(crate) struct Repository {
    folder: tempfile::TempDir,
    /// Line of `provisioner.config`, if a test needs one.
    setting: String,
}

impl Drop for Repository {
    fn drop(&mut self) {
        // A test that fails leaves no processes.
        kill_with_variable("HOME", &self.path("home"));
    }
}

impl Repository {
    /// Creates a repository with these sections in the server.yaml of its stack.
    pub(crate) fn new(sections: Sections<'_>) -> Self {
        let repository =
            Self { folder: tempfile::Builder::new().prefix("sc-e2e-").tempdir().unwrap(), setting: String::new() };
        for folder in [".git", "backend", "home", "rec", "tmp"] {
            fs::create_dir(repository.path(folder)).unwrap();
        }
        repository.write(".sc/cfg.default.yaml", "projectName: tank\n");
        repository.write_sections(sections);
        repository
    }

    /// Copies the repository, with its state and the files of its plugins.
    pub(crate) fn copy(&self) -> Self {
        let folder = tempfile::Builder::new().prefix("sc-e2e-").tempdir().unwrap();
        let copy = Self { folder, setting: self.setting.clone() };
        copy_folder(self.folder.path(), copy.folder.path());
        copy
    }

    /// Writes the server.yaml of the stack.
    pub(crate) fn write_sections(&self, sections: Sections<'_>) {
        self.write_stack("reef", &provisioner_with(&self.setting), sections);
    }

    /// Adds a line to `provisioner.config`, here and in what is written later.
    pub(crate) fn with_setting(mut self, setting: &str) -> Self {
        self.setting = setting.to_owned();
        let path = ".sc/stacks/reef/server.yaml";
        self.write(path, &self.read(path).replace(PROVISIONER, &provisioner_with(setting)));
        self
    }

    /// Writes the server.yaml of a stack.
    pub(crate) fn write_stack(&self, stack: &str, provisioner: &str, sections: Sections<'_>) {
        let mut text = format!("schemaVersion: 1.0\n{provisioner}");
        section(&mut text, "plugins:\n", 2, sections.plugins);
        section(&mut text, "resources:\n  resources:\n    prod:\n      resources:\n", 8, sections.resources);
        section(&mut text, "outputs:\n", 2, sections.outputs);
        self.write(&format!(".sc/stacks/{stack}/server.yaml"), &text);
    }

    /// Returns a path in the repository.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file and its parent folders.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = text.replace("$FILES", binaries::files_plugin().unwrap().to_str().unwrap());
        let text = text.replace("$REC", env!("CARGO_BIN_EXE_pulumi-resource-rec"));
        let text = text.replace("$COMP", env!("CARGO_BIN_EXE_pulumi-resource-comp"));
        let text = text.replace("$CLOUD", env!("CARGO_BIN_EXE_pulumi-resource-cloud"));
        fs::write(path, text).unwrap();
    }

    /// Writes an executable shell script.
    pub(crate) fn write_script(&self, path: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        self.write(path, &format!("#!/bin/sh\n{text}"));
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the text of a file.
    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.path(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns every file below a folder with its content. Files that a running program removes meanwhile are skipped.
    pub(crate) fn files(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.path(folder)];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    open.push(entry.path());
                } else {
                    let path = entry.path().strip_prefix(self.folder.path()).unwrap().display().to_string();
                    match fs::read(entry.path()) {
                        Ok(bytes) => drop(found.insert(path, bytes)),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{path}: {error}"),
                    }
                }
            }
        }
        found
    }

    /// Returns the names of the files below a folder.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        self.files(folder).into_keys().collect()
    }

    /// Returns whether the stack is locked.
    pub(crate) fn is_locked(&self) -> bool {
        !self.names("backend/.pulumi/locks").is_empty()
    }

    /// Returns the checkpoint as JSON.
    pub(crate) fn state(&self) -> serde_json::Value {
        serde_json::from_str(&self.read(CHECKPOINT)).unwrap()
    }

    /// Returns the resources of the state as lines `name type id`, with marks for pending deletes and pending
    /// creates.
    pub(crate) fn resources(&self) -> Vec<String> {
        let state = self.state();
        let latest = &state["checkpoint"]["latest"];
        let text = |resource: &serde_json::Value, key: &str| resource[key].as_str().unwrap_or_default().to_owned();
        let line = |resource: &serde_json::Value| {
            let mark = if resource["delete"] == true { " (to delete)" } else { "" };
            let urn = text(resource, "urn");
            let name = urn.rsplit("::").next().unwrap();
            format!("{name} {} {}{mark}", text(resource, "type"), text(resource, "id")).trim_end().to_owned()
        };
        let pending = latest["pending_operations"].as_array().into_iter().flatten();
        let pending = pending.map(|operation| format!("{} {}", text(operation, "type"), line(&operation["resource"])));
        let lines = latest["resources"].as_array().into_iter().flatten().map(line).chain(pending);
        lines.map(|line| filter_output(&line, &[])).collect()
    }

    /// Returns the command, which is not started. Its environment only contains a home, a path and the folder of the
    /// scripted plugin.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(binaries::sc().unwrap());
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("PATH", "/usr/bin:/bin")
            .env("REC_DIR", self.path("rec"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the command.
    pub(crate) fn start(&self, arguments: &str) -> Running<'_> {
        self.start_command(self.command(arguments))
    }

    /// Starts a prepared command.
    pub(crate) fn start_command(&self, mut command: Command) -> Running<'_> {
        let mut child = command.spawn().unwrap();
        let stdout = Output::read(child.stdout.take().unwrap());
        let stderr = Output::read(child.stderr.take().unwrap());
        Running { repository: self, child, stdout, stderr }
    }

    /// Runs the command to its end, and returns its exit code and output.
    pub(crate) fn sc(&self, arguments: &str) -> String {
        self.start(arguments).output()
    }

    /// Runs the command to its end in a shell that has executed the prelude, such as `ulimit`.
    pub(crate) fn sc_in_shell(&self, prelude: &str, arguments: &str) -> String {
        self.start_command(in_shell(prelude, &self.command(arguments))).output()
    }

    /// Runs the command to its end, which must have this exit code.
    pub(crate) fn expect_exit(&self, code: u8, arguments: &str) -> String {
        let output = self.sc(arguments);
        assert!(output.starts_with(&format!("exit {code}\n")), "{arguments}: {output}");
        output
    }

    /// Runs a command that must fail, leave the state unchanged bit for bit, and leave no lock.
    pub(crate) fn expect_rejected(&self, arguments: &str) -> String {
        let before = self.files("backend");
        let output = self.sc(arguments);
        assert!(!output.starts_with("exit 0\n"), "the command succeeds:\n{output}");
        let after = self.files("backend");
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{output}");
        assert!(before == after, "the state has changed:\n{output}");
        output
    }

    /// Returns the processes of this repository.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        with_variable("HOME", &self.path("home"))
    }

    /// Returns the calls that the scripted plugin received, as `RPC name`.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("rec/calls.jsonl")).unwrap_or_default();
        let call = |line: &str| {
            let call: serde_json::Value = serde_json::from_str(line).unwrap();
            let urn = call["request"]["urn"].as_str().unwrap_or_default();
            format!("{} {}", call["rpc"].as_str().unwrap(), urn.rsplit("::").next().unwrap()).trim_end().to_owned()
        };
        // The last line may be incomplete.
        text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(call).collect()
    }

    /// Returns the Creates, Updates and Deletes of the scripted plugin after the first `seen` calls, sorted. Creates of
    /// previews are included.
    pub(crate) fn change_calls(&self, seen: &mut usize) -> Vec<String> {
        let calls = self.calls();
        let is_change =
            |call: &&String| ["Create ", "Update ", "Delete "].iter().any(|change| call.starts_with(change));
        let mut changes: Vec<String> = calls[*seen..].iter().filter(is_change).cloned().collect();
        *seen = calls.len();
        changes.sort();
        changes.dedup();
        changes
    }

    /// Waits until the scripted plugin has received a call.
    pub(crate) fn wait_until_called(&self, call: &str) {
        wait_until(&format!("the plugin receives the call {call}"), || self.calls().iter().any(|known| known == call));
    }

    /// Checks that the schema of server.yaml accepts the file of a stack that a command has accepted, and refuses a file
    /// whose keys or kinds of values it has refused.
    fn compare_with_schema(&self, status: &str, stderr: &str) {
        let of_schema = CODES_OF_THE_SCHEMA.iter().any(|code| stderr.contains(&format!("error[{code}]")));
        let accepted = status == "exit 0" && !stderr.contains("warning[");
        let text = fs::read_to_string(self.path(".sc/stacks/reef/server.yaml"));
        if let (true, Ok(text)) = (of_schema || accepted, text) {
            assert_eq!(disagreement(&text, Reported { any: of_schema, of_schema }), None);
        }
    }

    /// Replaces the script of the scripted plugin.
    pub(crate) fn script(&self, script: serde_json::Value) {
        // The file is renamed into place, as the plugin reads it at each call.
        self.write("rec/script.new", &script.to_string());
        fs::rename(self.path("rec/script.new"), self.path("rec/script.json")).unwrap();
    }
}

/// Section that all stacks of these tests share.
pub(crate) const PROVISIONER: &str = "provisioner:
  type: pulumi
  config:
    state-storage: { type: fs, config: { path: file://backend } }
    secrets-provider: { type: passphrase, config: { passPhrase: hush } }
";

/// Returns the provisioner with a line in its `config`.
pub(crate) fn provisioner_with(setting: &str) -> String {
    let line = if setting.is_empty() { String::new() } else { format!("    {setting}\n") };
    PROVISIONER.replace("  config:\n", &format!("  config:\n{line}"))
}

/// Returns a command that a shell runs after it has executed the prelude, such as `ulimit`.
pub(crate) fn in_shell(prelude: &str, command: &Command) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("{prelude}; exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    in_place_of(command, shell)
}

/// Gives a command the folder, the environment and the streams of a command of a [`Repository`].
pub(crate) fn in_place_of(command: &Command, mut other: Command) -> Command {
    other.current_dir(command.get_current_dir().unwrap()).env_clear();
    other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    other
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&to).unwrap();
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}

fn section(text: &mut String, head: &str, indent: usize, lines: &str) {
    if lines.trim().is_empty() {
        return;
    }
    text.push_str(head);
    let lines: Vec<&str> = lines.lines().filter(|line| !line.trim().is_empty()).collect();
    let margin = lines.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or_default();
    for line in lines {
        text.push_str(&format!("{:indent$}{}\n", "", &line[margin..]));
    }
}

/// Output of a command, which is read on a thread.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Output {
    fn read(mut pipe: impl std::io::Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let of_thread = Arc::clone(&bytes);
        let read = move || {
            let mut buffer = [0; 8192];
            loop {
                match pipe.read(&mut buffer).unwrap() {
                    0 => break,
                    count => of_thread.lock().unwrap().extend_from_slice(&buffer[..count]),
                }
            }
        };
        Self { bytes, thread: std::thread::spawn(read) }
    }

    /// Returns the output so far.
    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// Waits for the end of the output, and returns it.
    fn into_text(self) -> String {
        self.thread.join().unwrap();
        String::from_utf8(std::mem::take(&mut *self.bytes.lock().unwrap())).unwrap()
    }
}

/// Running command.
pub(crate) struct Running<'a> {
    repository: &'a Repository,
    child: Child,
    stdout: Output,
    stderr: Output,
}

/// Exit status and output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// Exit code, or the signal that killed the command.
    pub(crate) status: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running<'_> {
    /// Returns the process id of the command.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Sends a signal to the command.
    pub(crate) fn signal(&self, sent: Signal) {
        signal(self.pid(), sent);
    }

    /// Waits until the command has printed a text on standard output or standard error.
    pub(crate) fn wait_until_printed(&self, text: &str) {
        wait_until(&format!("{text:?} is printed"), || {
            self.stdout.so_far().contains(text) || self.stderr.so_far().contains(text)
        });
    }

    /// Returns what the command has printed on standard output so far.
    pub(crate) fn stdout(&self) -> String {
        self.stdout.so_far()
    }

    /// Returns whether the command has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end of the command, and of all processes of the repository.
    pub(crate) fn wait(self) -> CommandOutput {
        let repository = self.repository;
        let ended = self.wait_for_command();
        wait_until(&format!("all processes have ended, but {:?} run", repository.processes()), || {
            repository.processes().is_empty()
        });
        ended
    }

    /// Waits for the end of the command, while other processes work in the repository.
    pub(crate) fn wait_for_command(mut self) -> CommandOutput {
        use std::os::unix::process::ExitStatusExt as _;
        let status = self.child.wait().unwrap();
        let status = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit {code}"),
            (None, signal) => format!("killed by signal {}", signal.unwrap_or_default()),
        };
        CommandOutput { status, stdout: self.stdout.into_text(), stderr: self.stderr.into_text() }
    }

    /// Waits for the end of the command, and returns its exit code and output, with times, process ids and the like
    /// replaced by placeholders.
    pub(crate) fn output(self) -> String {
        let repository = self.repository;
        let root = repository.folder.path();
        let CommandOutput { status, stdout, stderr } = self.wait();
        repository.compare_with_schema(&status, &stderr);
        filter_output(&format!("{status}\n--- out\n{stdout}--- err\n{stderr}"), &[(root, "[repo]"), (bin(), "[bin]")])
    }
}

fn bin() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_pulumi-resource-rec")).parent().unwrap()
}
