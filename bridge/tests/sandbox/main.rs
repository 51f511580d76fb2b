//! Tests of the sandbox of plugins: a program attempts what each restriction prevents, at each level.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]
#![cfg(target_os = "linux")]

mod calls;
mod restrictions;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bridge::process::{
    AllowedAccess, FirstLine, OutputStream, Process, ProcessSandbox, ProcessSpec, SandboxSupport, Spawner, Supervision,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bridge-sandboxed");

/// Folder in which attempts are made, and the spawner of their processes.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
    spawner: Spawner,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let supervisor = Supervision::new(env!("CARGO_BIN_EXE_bridge-supervised").as_ref()).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), spawner: Spawner::supervised(Arc::new(supervisor)) }
    }

    /// Returns a sandbox of each level. In the strict one, only the program is allowed.
    pub(crate) fn levels(&self) -> [ProcessSandbox; 3] {
        [ProcessSandbox::None, ProcessSandbox::Basic, self.strict()]
    }

    /// Returns a strict sandbox in which only the program is allowed.
    pub(crate) fn strict(&self) -> ProcessSandbox {
        ProcessSandbox::Strict(AllowedAccess { readable: vec![PROGRAM.into()], ..AllowedAccess::default() })
    }

    /// Returns whether this kernel has rules for signals and abstract sockets.
    pub(crate) fn has_scopes(&self) -> bool {
        !SandboxSupport::current().missing_in_strict().iter().any(|missing| missing.contains("signals"))
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file, and returns its path.
    pub(crate) fn file(&self, name: &str, content: &[u8], mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Starts a program with one argument.
    pub(crate) fn start(&self, program: &Path, arguments: &[&str], sandbox: ProcessSandbox) -> Process {
        let spec = ProcessSpec {
            program: program.to_owned(),
            arguments: arguments.iter().map(Into::into).collect(),
            directory: self.folder.path().into(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("TMPDIR".into(), self.folder.path().into())],
            sandbox,
        };
        self.spawner.spawn(&spec, Arc::new(())).unwrap()
    }

    /// Runs an attempt to its end, and returns what the program printed.
    pub(crate) async fn attempt(&self, attempt: &str, argument: &str, sandbox: ProcessSandbox) -> String {
        let process = self.start(PROGRAM.as_ref(), &[attempt, argument], sandbox);
        match process.first_line().await {
            FirstLine::Line(line) => {
                process.wait_for_exit().await;
                line
            }
            other => {
                process.wait_for_output_end().await;
                panic!("{attempt}: {other:?} {:?}", process.last_lines(OutputStream::Stderr))
            }
        }
    }
}
