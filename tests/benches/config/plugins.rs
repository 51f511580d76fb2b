//! Measurement of the time to resolve plugins that are already in the cache.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;

use anyhow::ensure;
use bridge::install::{CacheSettings, GithubReleases, PackageSource as _};
use bridge::plugin::{Checksum, GithubReleaseSource, PluginName, PluginNames};
use bridge::process::{HostEnvironment, Spawner};
use futures_util::future::try_join_all;
use sha2::{Digest as _, Sha256};
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};

use crate::compare_in_turns;

/// Size of a plugin, that of a small provider.
const SIZE: usize = 8 << 20;

/// Content whose digest is the declared checksum of a plugin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pinned {
    /// The executable in the archive: its file is hashed.
    Executable,
    /// The archive: it is hashed and decompressed too, and compared with the files.
    Archive,
}

pub(crate) fn compare(pinned: Pinned, plugins: usize, rounds: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let environment = HostEnvironment::default();
    let source = GithubReleases::new(CacheSettings {
        folder: folder.path().join("cache"),
        root: folder.path().to_owned(),
        environment,
        spawner: Spawner::unsupervised(),
    });
    let server = runtime.block_on(ReleaseServer::start())?;
    let is_archive = pinned == Pinned::Archive;
    let mut plugins_of_server = Vec::new();
    for plugin in 0..plugins {
        let mut program = b"#!/bin/sh\n".to_vec();
        program.resize(SIZE, u8::try_from(plugin % 256)?);
        let archive = tar_gz(&[(&format!("pulumi-resource-p{plugin}"), Entry::File(0o755, &program))])?;
        server.publish(&format!("acme/p{plugin}"), "v1.0.0", &[("plugin.tar.gz", &archive)]);
        let release = GithubReleaseSource {
            repository: format!("acme/p{plugin}"),
            tag: "v1.0.0".into(),
            platform: Some("linux-amd64".parse()?),
            checksum: Some(Checksum::One(if is_archive { sha256(&archive) } else { sha256(&program) }.parse()?)),
            asset: Some("plugin.tar.gz".into()),
            token: None,
            api_url: Some(server.api_url()),
            insecure: false,
            requires_digest: false,
        };
        let name: PluginName = format!("p{plugin}").parse()?;
        plugins_of_server.push((name, release));
    }
    let start = || {
        let resolved = plugins_of_server.iter().map(|(name, release)| {
            let names = PluginNames { plugin: name, package: name };
            source.resolve(names, release, &())
        });
        runtime.block_on(try_join_all(resolved))
    };
    let folders: Vec<PathBuf> = start()?.iter().map(|package| package.folder().to_owned()).collect();
    // From here on, no server responds.
    drop(server);
    let ours = || {
        ensure!(start()?.len() == plugins);
        Ok(())
    };
    let hash = || {
        for folder in &folders {
            for entry in fs::read_dir(folder)? {
                let mut file = File::open(entry?.path())?;
                let (mut hash, mut buffer) = (Sha256::new(), vec![0; 256 * 1024]);
                loop {
                    let read = file.read(&mut buffer)?;
                    if read == 0 {
                        break;
                    }
                    hash.update(&buffer[..read]);
                }
                ensure!(hash.finalize().len() == 32);
            }
        }
        Ok(())
    };
    let (what, limit) = if is_archive { ("archive", 3.0) } else { ("executable", 1.5) };
    compare_in_turns(
        &format!("{plugins} installed plugins of 8 MiB, each with the checksum of its {what}, located without network"),
        limit,
        rounds,
        ours,
        hash,
    )
}
