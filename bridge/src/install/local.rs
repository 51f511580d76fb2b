//! Packages on this machine: an executable, a folder that contains one, or a folder with a `PulumiPlugin.yaml`.

use std::fs;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::checked_files::{CheckedFiles, ChecksumCheck};
use super::layout::{ExecutableNames, Located, locate, read_manifest};
use super::local_files::LocalFiles;
use super::package_cache::{PackageCache, Verification};
use super::run_blocking;
use super::runtime::PluginOrigin;
use super::runtime_context::{BUILD_LIMIT, RuntimeContext};
use super::tree_build::TreeBuild;
use super::verify::{expected_digest, hash_file, read_folder};
use super::{Decision, FetchEvents, InstallError, LastResolved, LockKey, PackageSource, VerifiedPackage};
use crate::fs::FileError;
use crate::plugin::{
    Build, LocalSource, Platform, PluginManifest, PluginNames, PolicyRefusal, ResolvedPackage, Sha256Digest,
};
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
    /// Rule for which files are read that have not changed.
    pub verification: Verification,
    /// True if a build must not open a connection.
    pub is_offline: bool,
}

impl LocalPackages {
    /// Builds the files in a folder, after a check of their checksum.
    async fn build(
        &self,
        names: PluginNames<'_>,
        source: &LocalSource,
        build: &Build,
        events: &dyn FetchEvents,
    ) -> Result<VerifiedPackage, InstallError> {
        let path = self.root.join(&source.path);
        let origin = fs::canonicalize(&path).map_err(FileError::of("find plugin", &path))?;
        if !origin.is_dir() {
            return Err(InstallError::NothingToBuild { folder: origin });
        }
        let (executables, cache) = (ExecutableNames::new(names), PackageCache::new(self.cache.clone()));
        let expected = expected_digest(source.checksum.as_ref(), Platform::current())?;
        let digest = {
            let (cache, folder, verification) = (cache.clone(), origin.clone(), self.verification);
            run_blocking(move || {
                let files = LocalFiles { cache: &cache, folder: &folder, file: None, verification };
                Ok(files.digests()?.checksum_digest())
            })
            .await?
        };
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            let differing = Box::default();
            return Err(InstallError::ChecksumMismatch { expected, found: digest, published: None, differing });
        }
        // A declared build was allowed.
        let context = self.context(&cache, None, events);
        let (names_of_program, tree, inside) = (&executables, &origin, Path::new(""));
        let tree_build = TreeBuild { context: &context, build, names: names_of_program, tree, inside, digest };
        let built = tree_build.kept().await?;
        let (program, arguments) = match locate(&executables, &built.folder)? {
            Located::Executable(program) => (program, Vec::new()),
            Located::Manifest => {
                let manifest = read_manifest(&built.folder)?;
                let files = PluginOrigin::Fetched { package: &built.folder };
                let started = context.start_command(&executables, &manifest, &built.folder, files).await?;
                (started.0, started.1)
            }
        };
        Ok(VerifiedPackage {
            name: names.plugin.clone(),
            version: None,
            revision: None,
            digest: expected,
            origin,
            program,
            arguments,
            checked: CheckedFiles::in_cache(built.folder),
            _package_use: built.package_use,
            _built: None,
        })
    }

    fn context<'a>(
        &'a self,
        cache: &'a PackageCache,
        build_refusal: Option<&'a PolicyRefusal>,
        events: &'a dyn FetchEvents,
    ) -> RuntimeContext<'a> {
        RuntimeContext {
            environment: &self.environment,
            spawner: &self.spawner,
            cache,
            verification: self.verification,
            is_offline: self.is_offline,
            build_limit: BUILD_LIMIT,
            build_refusal,
            events,
        }
    }
}

#[async_trait]
impl PackageSource for LocalPackages {
    type Declared = LocalSource;
    type Package = VerifiedPackage;

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
        if let Some(build) = &source.build {
            return Ok((self.build(names, source, build, events).await?, decision.package));
        }
        let path = self.root.join(&source.path);
        let origin = fs::canonicalize(&path).map_err(FileError::of("find plugin", &path))?;
        let executables = ExecutableNames::new(names);
        let cache = PackageCache::new(self.cache.clone());
        let (found, manifest) = {
            let (executables, origin, cache) = (executables.clone(), origin.clone(), cache.clone());
            let (checksum, verification) = (source.checksum.clone(), self.verification);
            run_blocking(move || {
                let (checksum, platform) = (checksum.as_ref(), Platform::current());
                let check = ChecksumCheck { checksum, platform, cache: &cache, verification };
                find(&executables, &origin, check)
            })
            .await?
        };
        let runtime = self.context(&cache, decision.build_refusal.as_deref(), events);
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
    let (executables, is_built) = (ExecutableNames::new(names), source.build.is_some());
    run_blocking(move || {
        let path = fs::canonicalize(&path).map_err(FileError::of("find plugin", &path))?;
        if !path.is_dir() {
            return hash_file(&path);
        }
        if is_built {
            return Ok(read_folder(&path, None, None)?.checksum_digest());
        }
        match locate(&executables, &path)? {
            Located::Executable(executable) => hash_file(&executable),
            Located::Manifest => Ok(read_folder(&path, None, None)?.checksum_digest()),
        }
    })
    .await
}

/// Finds the plugin at a path and verifies its checksum. In a folder a manifest takes precedence over an executable.
fn find(
    names: &ExecutableNames,
    path: &Path,
    check: ChecksumCheck<'_>,
) -> Result<(CheckedFiles, Option<PluginManifest>), InstallError> {
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
