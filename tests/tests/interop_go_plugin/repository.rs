//! Repositories whose plugin is a go-plugin server, and the program `sc` in them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tests::binaries;
use tests::sdks::go_program;

/// Settings of the provider, with mutual TLS.
pub(crate) const SETTINGS: &str =
    "protocol: go-plugin, goPlugin: { cookieKey: GOPLUGIN_GOLDEN, cookieValue: provider }";
/// Settings of the provider in plain text.
pub(crate) const PLAIN: &str =
    "protocol: go-plugin, goPlugin: { cookieKey: GOPLUGIN_GOLDEN, cookieValue: provider, tls: none }";

/// Returns the folder with the sources of the provider.
pub(crate) fn provider_sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_go_plugin/provider")
}

/// Repository in a folder of its own.
pub(crate) struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    /// Writes a repository whose plugin is the provider, started with these arguments and settings.
    pub(crate) fn new(arguments: &str, settings: &str) -> Self {
        let program = go_program("goplugin-provider", &provider_sources()).unwrap();
        Self::with_program(&program, arguments, settings)
    }

    /// Writes a repository whose plugin is a program that serves the provider, started with these arguments and settings.
    pub(crate) fn with_program(program: &Path, arguments: &str, settings: &str) -> Self {
        let entry = format!("name: rec, passEnv: [REC_DIR], {settings}");
        Self::write(program, arguments, &entry, "type: rec:index:Thing, config: { v: 1 }")
    }

    /// Writes a repository with a program as its plugin, an entry of that plugin without its source, and one resource.
    pub(crate) fn write(program: &Path, arguments: &str, entry: &str, resource: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for path in [".git", ".sc/stacks/dev", "rec", "home", "backend", "run"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        let script = folder.path().join("plugin.sh");
        fs::write(&script, format!("#!/bin/sh\nexec '{}' {arguments}\n", program.display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: golden\n").unwrap();
        let server = format!(
            "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    state-storage: {{ type: fs, config: {{ path: file://backend }} }}
    secrets-provider: {{ type: passphrase, config: {{ passPhrase: hush }} }}
plugins:
  - {{ source: {{ type: local, path: plugin.sh }}, {entry} }}
resources:
  resources:
    prod:
      resources:
        a: {{ {resource} }}
"
        );
        fs::write(folder.path().join(".sc/stacks/dev/server.yaml"), server).unwrap();
        Self { folder }
    }

    /// Returns the path of a file.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Returns a command, which is not started.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(binaries::sc().unwrap());
        command
            .args(arguments.split(' '))
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .env("REC_DIR", self.path("rec"))
            .env("XDG_RUNTIME_DIR", self.path("run"));
        command
    }

    /// Runs a command, and returns its exit code and its output.
    pub(crate) fn sc(&self, arguments: &str) -> (Option<i32>, String) {
        let output = self.command(arguments).output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), text)
    }

    /// Starts a command. Its output is read by [`Child::wait_with_output`].
    pub(crate) fn start(&self, arguments: &str) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs commands, and asserts that each succeeds with a text in its output.
    pub(crate) fn run_all(&self, name: &str, commands: &[(&str, &str)]) {
        for (command, expected) in commands {
            let (code, output) = self.sc(command);
            assert_eq!(code, Some(0), "{command}, {name}: {output}");
            assert!(output.contains(expected), "{command}, {name}: {output}");
        }
    }

    /// Returns the number of calls of a procedure that the provider has recorded.
    pub(crate) fn calls(&self, procedure: &str) -> usize {
        let calls = fs::read_to_string(self.path("rec/calls.jsonl")).unwrap_or_default();
        calls.lines().filter(|line| line.contains(&format!(r#""rpc":"{procedure}""#))).count()
    }

    /// Returns the number of processes that have the folder of the repository in their environment.
    pub(crate) fn processes(&self) -> usize {
        let folder = self.path("rec").into_os_string().into_encoded_bytes();
        let environments =
            fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("environ")).ok());
        environments.filter(|text| text.windows(folder.len()).any(|part| part == folder)).count()
    }

    /// Returns the folders for the sockets of plugins.
    pub(crate) fn socket_folders(&self) -> Vec<PathBuf> {
        socket_folders(&self.path("run"))
    }
}

/// Returns the folders for sockets that `sc` has made in a folder.
pub(crate) fn socket_folders(folder: &Path) -> Vec<PathBuf> {
    let own = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    own.flat_map(|own| fs::read_dir(own).unwrap()).map(|entry| entry.unwrap().path()).collect()
}
