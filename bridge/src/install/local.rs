//! Packages on this machine: an executable, a folder that contains one, or a folder with a `PulumiPlugin.yaml`.

use std::fs;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::layout::{ExecutableNames, Located, locate, read_manifest};
use super::package_cache::{PackageCache, Verification};
use super::run_blocking;
use super::runtime::PluginOrigin;
use super::runtime_context::RuntimeContext;
use super::verify::{CheckedFiles, ChecksumCheck, hash_file, read_folder};
use super::{Decision, FetchEvents, InstallError, LastResolved, LockKey, PackageSource, VerifiedPackage};
use crate::fs::FileError;
use crate::plugin::{Checksum, LocalSource, Platform, PluginManifest, PluginNames, ResolvedPackage, Sha256Digest};
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
    type Declared = LocalSource;

    async fn known_digest(
        &self,
        names: PluginNames<'_>,
        source: &LocalSource,
    ) -> Result<Option<Sha256Digest>, InstallError> {
        local_digest(&self.root, names, source).await.map(Some)
    }

    fn lock_key(&self, _: PluginNames<'_>, _: &LocalSource) -> Result<Option<LockKey>, InstallError> {
        Ok(None)
    }

    fn is_complete(&self, _: PluginNames<'_>, _: &LocalSource, _: &ResolvedPackage) -> bool {
        true
    }

    async fn complete(
        &self,
        _: PluginNames<'_>,
        _: &LocalSource,
        package: ResolvedPackage,
        _: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError> {
        Ok(package)
    }

    async fn resolve(
        &self,
        _: PluginNames<'_>,
        _: &LocalSource,
        _: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError> {
        Ok(ResolvedPackage::Local)
    }

    async fn last_resolved(&self, _: PluginNames<'_>, _: &LocalSource) -> Result<Option<LastResolved>, InstallError> {
        Ok(Some(LastResolved { package: ResolvedPackage::Local, is_fixed: true }))
    }

    async fn fetch(
        &self,
        names: PluginNames<'_>,
        source: &LocalSource,
        decision: Decision,
        events: &dyn FetchEvents,
    ) -> Result<(VerifiedPackage, ResolvedPackage), InstallError> {
        let path = self.root.join(&source.path);
        let origin = fs::canonicalize(&path).map_err(FileError::of("find plugin", &path))?;
        let executables = ExecutableNames::new(names);
        let cache = PackageCache::new(self.cache.clone());
        let (found, manifest) = {
            let (executables, origin, cache) = (executables.clone(), origin.clone(), cache.clone());
            let checksum = source.checksum.clone();
            run_blocking(move || find(&executables, &origin, checksum.as_ref(), &cache)).await?
        };
        let runtime = RuntimeContext {
            environment: &self.environment,
            spawner: &self.spawner,
            cache: &cache,
            verification: Verification::default(),
            events,
        };
        let (program, arguments, built) = match manifest {
            None => (found.path().to_owned(), Vec::new(), None),
            Some(manifest) => {
                runtime.start_command(&executables, &manifest, found.path(), PluginOrigin::Folder(&origin)).await?
            }
        };
        let package = VerifiedPackage {
            name: names.plugin.clone(),
            version: None,
            revision: None,
            digest: found.digest(),
            origin,
            program,
            arguments,
            checked: found,
            _package_use: None,
            _built: built,
        };
        Ok((package, decision.package))
    }
}

/// Returns the digest by which a `checksum` would pin a local plugin. `root` is the base of relative paths. Executes and
/// copies nothing.
///
/// # Errors
/// [`InstallError`] if the plugin cannot be found, read, or pinned.
pub async fn local_digest(
    root: &Path,
    names: PluginNames<'_>,
    source: &LocalSource,
) -> Result<Sha256Digest, InstallError> {
    let path = root.join(&source.path);
    let executables = ExecutableNames::new(names);
    run_blocking(move || {
        let path = fs::canonicalize(&path).map_err(FileError::of("find plugin", &path))?;
        if !path.is_dir() {
            return hash_file(&path);
        }
        match locate(&executables, &path)? {
            Located::Executable(executable) => hash_file(&executable),
            Located::Manifest => Ok(read_folder(&path, None)?.checksum_digest()),
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
