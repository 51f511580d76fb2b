//! Measurement of previews whose plugin is large: `sc` from its start to its exit.

use std::fs;
use std::process::Command;

use anyhow::ensure;
use tests::binaries;
use tests::releases::ReleaseServer;

use crate::compare_in_turns;

/// Repository with one resource, and the package of its plugin in the cache.
struct Repository {
    folder: tempfile::TempDir,
    _server: ReleaseServer,
}

impl Repository {
    /// Installs a plugin of a size in MiB: what follows the program is not read when it starts.
    async fn new(mebibytes: usize) -> anyhow::Result<Self> {
        let server = ReleaseServer::start().await?;
        let mut program = fs::read(binaries::files_plugin()?)?;
        program.resize(program.len().max(mebibytes << 20), 0);
        server.publish("acme/files", "v1.0.0", &[("plugin", &program)]);
        let folder = tempfile::tempdir()?;
        for name in [".git", ".sc/stacks/dev", "home", "site"] {
            fs::create_dir_all(folder.path().join(name))?;
        }
        fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: bench\n")?;
        let server_yaml = format!(
            "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    state-storage: {{ type: fs, config: {{ path: 'file://state?create_dir=true' }} }}
    secrets-provider: {{ type: passphrase, config: {{ passPhrase: low tide }} }}
plugins:
  - name: files
    source: {{ type: github-release, repository: acme/files, version: v1.0.0, asset: plugin, platform: linux-amd64, apiUrl: '{}' }}
    config: {{ root: site }}
resources:
  resources:
    dev:
      resources:
        note: {{ type: files:fs:File, config: {{ path: note.txt, content: hello }} }}
",
            server.api_url()
        );
        fs::write(folder.path().join(".sc/stacks/dev/server.yaml"), server_yaml)?;
        let repository = Self { folder, _server: server };
        for arguments in [&["plugin", "install"][..], &["provision", "--skip-preview"]] {
            repository.run(arguments)?;
        }
        Ok(repository)
    }

    fn run(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let mut sc = Command::new(binaries::sc()?);
        sc.args(arguments).current_dir(self.folder.path()).env_clear().env("PATH", "/usr/bin:/bin");
        let output = sc.env("HOME", self.folder.path().join("home")).output()?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

/// Compares the preview with a large plugin with that with a small one.
pub(crate) fn compare_sizes((large, small): (usize, usize), rounds: usize) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let large_one = runtime.block_on(Repository::new(large))?;
    let small_one = runtime.block_on(Repository::new(small))?;
    let figure = format!("`sc preview` of one resource with a plugin of {large} MiB, against one of {small} MiB");
    let preview = |repository: &Repository| repository.run(&["preview", "--expect-no-changes"]);
    compare_in_turns(&figure, "20 ms more", rounds, || preview(&large_one), || preview(&small_one))
}
