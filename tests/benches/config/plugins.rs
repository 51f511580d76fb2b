//! Measurement of the time to resolve plugins that are already in the cache.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use bridge::install::{CacheSettings, GithubReleases, Installer, LockRule, PackageLock, Verification};
use bridge::plugin::{Checksum, GithubReleaseSource, PluginName, PluginNames, WantedVersion};
use bridge::process::{HostEnvironment, Spawner};
use bridge::source::Credentials;
use futures_util::future::try_join_all;
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};
use tokio::runtime::Runtime;

use crate::compare_in_turns;

/// Start of a program.
const PROGRAM: &[u8] = b"#!/bin/sh\n";
const MIB: usize = 1 << 20;

/// Plugins in the cache of a machine without a network, each pinned by the digest of its asset.
struct Installed {
    runtime: Runtime,
    source: GithubReleases,
    plugins: Vec<(PluginName, GithubReleaseSource)>,
    folders: Vec<PathBuf>,
    /// Repository, and the cache in it.
    root: tempfile::TempDir,
}

impl Installed {
    /// Installs plugins whose assets a function makes from their numbers.
    fn new(count: usize, asset: impl Fn(usize) -> anyhow::Result<Vec<u8>>) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let source = GithubReleases::new(CacheSettings {
            folder: folder.path().join("cache"),
            root: folder.path().to_owned(),
            environment: HostEnvironment::default(),
            spawner: Spawner::unsupervised(),
            verification: Verification::default(),
            is_offline: false,
            credentials: Credentials::default(),
        });
        let mut installed = Self { runtime, source, plugins: Vec::new(), folders: Vec::new(), root: folder };
        for number in 0..count {
            let server = installed.runtime.block_on(ReleaseServer::start())?;
            let asset = asset(number)?;
            server.publish(&format!("acme/p{number}"), "v1.0.0", &[("plugin", &asset)]);
            let release = GithubReleaseSource {
                platform: Some("linux-amd64".parse()?),
                checksum: Some(Checksum::One(sha256(&asset).parse()?)),
                asset: Some("plugin".into()),
                api_url: Some(server.api_url()),
                ..GithubReleaseSource::new(format!("acme/p{number}"), WantedVersion::Named("v1.0.0".into()))
            };
            let name: PluginName = format!("p{number}").parse()?;
            let names = PluginNames { plugin: &name, package: &name };
            let package =
                installed.runtime.block_on(installed.installer().install(&installed.source, names, &release))?;
            installed.folders.push(package.folder().to_owned());
            installed.plugins.push((name, release));
        }
        Ok(installed)
    }

    /// Returns the installer of a run, which reads the lock file once.
    fn installer(&self) -> Installer<'static> {
        let lock = PackageLock::new(self.root.path(), LockRule::Add);
        Installer { lock, cache: self.root.path().join("cache"), ..Installer::new(&()) }
    }

    /// Installs all plugins at the same time, as a run does whose plugins are locked and in the cache.
    fn start(&self) -> anyhow::Result<()> {
        let installer = self.installer();
        let resolved = self.plugins.iter().map(|(name, release)| {
            let names = PluginNames { plugin: name, package: name };
            installer.install(&self.source, names, release)
        });
        ensure!(self.runtime.block_on(try_join_all(resolved))?.len() == self.plugins.len());
        Ok(())
    }
}

/// Compares the start of plugins with a walk that asks the system about the same files.
pub(crate) fn compare_with_walk(plugins: usize, files: usize, rounds: usize) -> anyhow::Result<()> {
    let installed = Installed::new(plugins, |number| {
        let names: Vec<String> = (0..files).map(|file| format!("data/{file}")).collect();
        let contents: Vec<String> = (0..files).map(|file| format!("{number} {file}")).collect();
        let program = format!("pulumi-resource-p{number}");
        let mut entries = vec![(program.as_str(), Entry::File(0o755, PROGRAM)), ("data/", Entry::Folder)];
        let data = names.iter().zip(&contents);
        entries.extend(data.map(|(name, content)| (name.as_str(), Entry::File(0o644, content.as_bytes()))));
        Ok(tar_gz(&entries)?)
    })?;
    let walk = || {
        let mut seen = 0;
        for folder in &installed.folders {
            seen += count_files(folder)?;
        }
        ensure!(seen == plugins * (files + 1));
        Ok(())
    };
    let figure = format!(
        "{plugins} installed plugins of {files} files, each with the checksum of its archive, located and verified without network"
    );
    compare_in_turns(&figure, 1.5, rounds, || installed.start(), walk)
}

/// Compares the start of large plugins with that of small ones.
pub(crate) fn compare_sizes(plugins: usize, (large, small): (usize, usize), rounds: usize) -> anyhow::Result<()> {
    let of_size = |mebibytes: usize| {
        Installed::new(plugins, |number| {
            let mut program = PROGRAM.to_vec();
            program.resize(mebibytes * MIB, u8::try_from(number % 256)?);
            Ok(program)
        })
    };
    let [large_ones, small_ones] = [of_size(large)?, of_size(small)?];
    let figure = format!("{plugins} installed plugins of {large} MiB, against {plugins} of {small} MiB");
    compare_in_turns(&figure, 1.2, rounds, || large_ones.start(), || small_ones.start())
}

/// Asks the system about each file below a folder, and returns their number.
fn count_files(folder: &Path) -> anyhow::Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            count += count_files(&entry.path())?;
        } else {
            ensure!(entry.metadata()?.is_file());
            count += 1;
        }
    }
    Ok(count)
}
