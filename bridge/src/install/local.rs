//! Packages on this machine: an executable, a folder that contains one, or a folder with a `PulumiPlugin.yaml`.

use std::fs;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::blocking::run_blocking;
use super::layout::{ExecutableNames, Located, locate, read_manifest};
use super::package_cache::PackageCache;
use super::runtime::{PluginOrigin, RuntimeContext};
use super::verify::{CheckedFiles, ChecksumCheck, hash_file, hash_folder};
use super::{FetchEvents, InstallError, PackageSource, VerifiedPackage};
use crate::fs::FileError;
use crate::plugin::{Checksum, Platform, PluginConfig, PluginManifest, PluginSource, Sha256Digest};
use crate::process::{HostEnvironment, Spawner};

/// Source of packages on this machine.
#[derive(Clone, Debug)]
pub struct LocalPackages {
    /// Root of the repository, the base of relative paths.
    pub root: PathBuf,
    /// Folder of the cache, for private copies and built programs, created when needed. The file system must allow
    /// execution.
    pub cache: PathBuf,
    /// Environment in which interpreters are searched.
    pub environment: HostEnvironment,
    /// Spawner of build commands.
    pub spawner: Spawner,
}

#[async_trait]
impl PackageSource for LocalPackages {
    async fn resolve(&self, plugin: &PluginConfig, _: &dyn FetchEvents) -> Result<VerifiedPackage, InstallError> {
        let PluginSource::Local(source) = &plugin.source else {
            return Err(InstallError::Unsupported { kind: plugin.source.kind() });
        };
        let path = self.root.join(&source.path);
        let origin = fs::canonicalize(&path).map_err(FileError::of("find plugin", &path))?;
        let names = ExecutableNames::new(plugin);
        let cache = PackageCache::new(self.cache.clone());
        let (found, manifest) = {
            let (names, origin, cache) = (names.clone(), origin.clone(), cache.clone());
            let checksum = source.checksum.clone();
            run_blocking(move || find(&names, &origin, checksum.as_ref(), &cache)).await?
        };
        let runtime = RuntimeContext { environment: &self.environment, spawner: &self.spawner, cache: &cache };
        let (program, arguments, built) = match manifest {
            None => (found.path().to_owned(), Vec::new(), None),
            Some(manifest) => {
                runtime.start_command(&names, &manifest, found.path(), PluginOrigin::Folder(&origin)).await?
            }
        };
        Ok(VerifiedPackage {
            name: plugin.name.clone(),
            version: plugin.source.version(),
            revision: None,
            digest: found.digest(),
            origin,
            program,
            arguments,
            checked: found,
            _built: built,
        })
    }
}

/// Returns the digest by which a `checksum` would pin a local plugin; `None` for a plugin of another source. `root` is the
/// base of relative paths. Executes and copies nothing.
///
/// # Errors
/// [`InstallError`] if the plugin cannot be found, read, or pinned.
pub async fn local_digest(root: &Path, plugin: &PluginConfig) -> Result<Option<Sha256Digest>, InstallError> {
    let PluginSource::Local(source) = &plugin.source else { return Ok(None) };
    let path = root.join(&source.path);
    let names = ExecutableNames::new(plugin);
    run_blocking(move || {
        let path = fs::canonicalize(&path).map_err(FileError::of("find plugin", &path))?;
        if !path.is_dir() {
            return hash_file(&path).map(Some);
        }
        match locate(&names, &path)? {
            Located::Executable(executable) => hash_file(&executable).map(Some),
            Located::Manifest => hash_folder(&path, None).map(Some),
        }
    })
    .await
}

/// Finds the plugin at a path and verifies its checksum. In a folder a manifest takes precedence over an executable.
fn find(
    names: &ExecutableNames,
    path: &Path,
    checksum: Option<&Checksum>,
    cache: &PackageCache,
) -> Result<(CheckedFiles, Option<PluginManifest>), InstallError> {
    let check = ChecksumCheck { checksum, platform: Platform::current(), cache };
    if !path.is_dir() {
        return Ok((check.executable(path, None)?, None));
    }
    match locate(names, path)? {
        Located::Executable(executable) => Ok((check.executable(&executable, Some(path))?, None)),
        Located::Manifest => {
            let folder = check.folder(path)?;
            // Read from the verified copy, not from the original.
            let manifest = read_manifest(folder.path())?;
            Ok((folder, Some(manifest)))
        }
    }
}
