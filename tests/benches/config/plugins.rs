//! Measurement of the time to resolve plugins that are in the cache, and to fetch one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use bridge::install::{
    BUILD_LIMIT, CacheSettings, GithubReleases, Installer, LockRule, PackageCopies, PackageLock, Verification,
};
use bridge::plugin::{Checksum, GithubReleaseSource, PluginName, PluginNames, WantedVersion};
use bridge::process::{HostEnvironment, Spawner};
use bridge::source::Credentials;
use futures_util::future::try_join_all;
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};
use tokio::runtime::Runtime;

use crate::compare_in_turns;

/// Start of a program.
pub(crate) const PROGRAM: &[u8] = b"#!/bin/sh\n";
pub(crate) const MIB: usize = 1 << 20;

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
        let source = releases(folder.path());
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
            let names = PluginNames { plugin: &name, package: &name, accepts_only_program: false };
            let package =
                installed.runtime.block_on(installed.installer().install(&installed.source, names, &release))?;
            installed.folders.push(package.folder().to_owned());
            installed.plugins.push((name, release));
        }
        Ok(installed)
    }

    /// Returns the installer of a run, which reads the lock file once.
    fn installer(&self) -> Installer<'static> {
        installer(self.root.path())
    }

    /// Installs all plugins at the same time, as a run does whose plugins are locked and in the cache.
    fn start(&self) -> anyhow::Result<()> {
        let installer = self.installer();
        let resolved = self.plugins.iter().map(|(name, release)| {
            let names = PluginNames { plugin: name, package: name, accepts_only_program: false };
            installer.install(&self.source, names, release)
        });
        ensure!(self.runtime.block_on(try_join_all(resolved))?.len() == self.plugins.len());
        Ok(())
    }
}

/// Returns the source of releases, whose cache is in a repository.
pub(crate) fn releases(root: &Path) -> GithubReleases {
    GithubReleases::new(CacheSettings {
        folder: root.join("cache"),
        root: root.to_owned(),
        environment: HostEnvironment::default(),
        spawner: Spawner::unsupervised(),
        verification: Verification::default(),
        is_offline: false,
        build_limit: BUILD_LIMIT,
        credentials: Credentials::default(),
        copies: PackageCopies::default(),
    })
}

pub(crate) fn installer(root: &Path) -> Installer<'static> {
    let lock = PackageLock::new(root, LockRule::Add);
    Installer { lock, cache: root.join("cache"), ..Installer::new(&()) }
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

/// Compares the fetch of an archive from loopback with its extraction by `tar`. The content is twice as large.
pub(crate) fn compare_with_tar(mebibytes: usize, rounds: usize) -> anyhow::Result<()> {
    let content = [PROGRAM, hex::encode(noise(mebibytes * MIB)).as_bytes()].concat();
    let archive = tar_gz(&[("pulumi-resource-p", Entry::File(0o755, &content))])?;
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), &archive)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = runtime.block_on(ReleaseServer::start())?;
    server.publish("acme/p", "v1.0.0", &[("p.tar.gz", &archive)]);
    let release = GithubReleaseSource {
        platform: Some("linux-amd64".parse()?),
        asset: Some("p.tar.gz".into()),
        api_url: Some(server.api_url()),
        ..GithubReleaseSource::new("acme/p".into(), WantedVersion::Named("v1.0.0".into()))
    };
    let name: PluginName = "p".parse()?;
    let names = PluginNames { plugin: &name, package: &name, accepts_only_program: false };
    // Removed afterwards, not while time is measured.
    let folders = (0..rounds * 2).map(|_| tempfile::tempdir()).collect::<Result<Vec<_>, _>>()?;
    let (mut ours, mut others) = (folders.iter().take(rounds), folders.iter().skip(rounds));
    let mut fetch = || {
        let root = ours.next().context("a folder for each round")?.path();
        let package = runtime.block_on(installer(root).install(&releases(root), names, &release))?;
        ensure!(fs::metadata(package.folder().join("pulumi-resource-p"))?.len() == content.len() as u64);
        Ok(())
    };
    let mut extract = || {
        let folder = others.next().context("a folder for each round")?.path();
        let status = Command::new("tar").arg("-xzf").arg(file.path()).arg("-C").arg(folder).status()?;
        ensure!(status.success());
        Ok(())
    };
    let figure = format!(
        "fetch of an archive of {} MiB from loopback, verified and in the cache, against `tar -xzf` of the same file",
        archive.len() / MIB
    );
    compare_in_turns(&figure, 1.5, rounds, &mut fetch, &mut extract)
}

/// Returns bytes that cannot be compressed.
pub(crate) fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    std::iter::repeat_with(|| next().to_le_bytes()).flatten().take(count).collect()
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
