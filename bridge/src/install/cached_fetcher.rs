//! Packages from the cache, or fetched into it. Of concurrent runs that need the same package, only one fetches it. A
//! package in the cache is verified again at each start, by its fingerprint.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::cache_key::{CacheEntry, CacheKey};
use super::checked_files::CheckedFiles;
use super::content::check_program;
use super::file_digests::FileDigests;
use super::fingerprint::FileTime;
use super::layout::{ExecutableNames, Located, locate, read_manifest};
use super::package_cache::{CachedPackage, Lookup, PackageCache, Verification};
use super::package_use::BuiltProgram;
use super::run_blocking;
use super::runtime::PluginOrigin;
use super::runtime_context::RuntimeContext;
use super::tree_build::TreeBuild;
use super::{FetchEvent, FetchEvents, InstallError, LockMismatch, PackageCopies, VerifiedPackage};
use crate::fs::{FileError, ScratchFolder};
use crate::plugin::{Build, DigestOrigin, Platform, PluginNames, PluginRuntime, PluginVersion, Sha256Digest};
use crate::process::{HostEnvironment, Spawner};
use crate::source::Credentials;

/// Settings of the sources that download packages.
#[derive(Clone, Debug)]
pub struct CacheSettings {
    /// Folder of the cache, created when needed. The file system must allow execution.
    pub folder: PathBuf,
    /// Root of the repository, the base of relative paths.
    pub root: PathBuf,
    /// Environment in which programs are searched.
    pub environment: HostEnvironment,
    /// Spawner of `git` and of build commands.
    pub spawner: Spawner,
    /// Rule for which files of packages in the cache are read at a start.
    pub verification: Verification,
    /// True if no place may be asked through a connection: what is not on this machine is an error.
    pub is_offline: bool,
    /// Time after which a command of a build is ended, usually [`BUILD_LIMIT`](super::BUILD_LIMIT).
    pub build_limit: Duration,
    /// Credentials for sources without a declared token.
    pub credentials: Credentials,
    /// Places that are asked before the place of a plugin itself.
    pub copies: PackageCopies,
}

impl CacheSettings {
    /// Returns an error if no place may be asked.
    pub(super) fn check_online(&self) -> Result<(), InstallError> {
        if self.is_offline { Err(InstallError::Offline) } else { Ok(()) }
    }
}

/// Returns packages of one kind of source from the cache, and fetches missing ones.
#[derive(Clone, Debug)]
pub(super) struct CachedFetcher {
    pub(super) settings: CacheSettings,
    pub(super) cache: PackageCache,
}

/// Package that was fetched, but neither verified nor moved to the cache yet.
#[derive(Debug)]
pub(super) struct Fetched {
    /// Tag of the release, or full id of the commit.
    pub(super) revision: String,
    /// Name of the asset, or address of the repository, for messages.
    pub(super) name: String,
    /// Downloaded file. `None` for git.
    pub(super) download: Option<Download>,
    /// Folder with the files of the package.
    pub(super) folder: PathBuf,
    /// Digests of its files, if they were hashed while they were written.
    pub(super) files: Option<FileDigests>,
}

impl Fetched {
    fn download_digest(&self) -> Option<Sha256Digest> {
        self.download.as_ref().map(|download| download.digest)
    }
}

/// Downloaded file.
#[derive(Debug)]
pub(super) struct Download {
    /// Digest of its bytes.
    pub(super) digest: Sha256Digest,
    /// Digest that the server publishes for it, if any.
    pub(super) published: Option<Sha256Digest>,
    /// Path of the file. `None` if it is no archive.
    pub(super) archive: Option<PathBuf>,
}

/// Declaration of a package.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackageSpec<'a> {
    pub(super) names: PluginNames<'a>,
    /// Accepted names of its executable.
    pub(super) executables: &'a ExecutableNames,
    /// Digest that `checksum` declares for the platform. `None` without a checksum.
    pub(super) expected_digest: Option<Sha256Digest>,
    /// Digest of the package that was resolved. `None` if none is known before the package is fetched.
    pub(super) recorded: Option<&'a RecordedDigest>,
    /// Refusal of a build, if the policy allows none.
    /// Folder of the plugin, relative to the folder of the package.
    pub(super) subdir: &'a Path,
    /// Platform of its programs. `None` if plugins are not published for this machine.
    pub(super) platform: Option<Platform>,
    /// Build of its files. `None` if they are ready to run.
    pub(super) build: Option<&'a Build>,
}

/// Digest of a package that was resolved, and who has stated it.
#[derive(Clone, Debug)]
pub(super) struct RecordedDigest {
    /// Name of the asset, or that of the files of a commit, for messages.
    pub(super) item: String,
    /// Tag or commit.
    pub(super) revision: String,
    /// Platform of the asset; `None` for the files of a commit.
    pub(super) platform: Option<Platform>,
    pub(super) digest: Sha256Digest,
    pub(super) origin: DigestOrigin,
    /// Time of the publication of the release, if it is known.
    pub(super) released: Option<String>,
    /// True if the lock file records it.
    pub(super) is_locked: bool,
    /// Host of the release, or address of the repository.
    pub(super) host: String,
}

impl RecordedDigest {
    /// Returns an error if a digest is another one.
    pub(super) fn check(&self, found: Sha256Digest) -> Result<(), InstallError> {
        let Self { item, revision, platform, digest, origin, released, is_locked, host } = self.clone();
        if found == digest {
            return Ok(());
        }
        if !is_locked {
            return Err(InstallError::PublishedMismatch { asset: item, host, published: digest, found });
        }
        let item = format!("{item} of {revision}");
        let mismatch = LockMismatch { item, platform, expected: digest, found, origin, released };
        Err(InstallError::LockMismatch(Box::new(mismatch)))
    }
}

impl PackageSpec<'_> {
    /// Returns the digest that pins a package without a download digest. For a plugin with a manifest, or one that is built, returns
    /// the digest of all files of the package, because any of them may be executed. Otherwise returns the digest of the
    /// plugin's executable.
    pub(super) fn pinning_digest(&self, folder: &Path, files: &FileDigests) -> Result<Sha256Digest, InstallError> {
        if self.build.is_some() {
            return Ok(files.checksum_digest());
        }
        let program = match locate(self.executables, &self.plugin_folder(folder)?)? {
            Located::Manifest => return Ok(files.checksum_digest()),
            Located::Executable(program) => program,
        };
        // Links are resolved: their target is what the system executes.
        let real = |path: &Path| std::fs::canonicalize(path).map_err(FileError::of("find", path));
        let (root, real_program) = (real(folder)?, real(&program)?);
        let digest = real_program.strip_prefix(root).ok().and_then(|inside| files.file(inside));
        digest.ok_or(InstallError::NotHashable { path: program, reason: "it is not a file of the package" })
    }

    /// Returns an error if what a fetched package starts cannot be executed, or if its manifest cannot be used.
    fn check_program(&self, fetched: &Fetched) -> Result<(), InstallError> {
        let plugin_folder = self.plugin_folder(&fetched.folder)?;
        if self.build.is_some() {
            return Ok(());
        }
        let program = match locate(self.executables, &plugin_folder)? {
            Located::Executable(program) => program,
            Located::Manifest => match read_manifest(&plugin_folder)?.runtime {
                PluginRuntime::Go { binary: Some(binary) } => {
                    let program = plugin_folder.join(&binary);
                    let is_inside = |component| matches!(component, Component::Normal(_) | Component::CurDir);
                    // A path that leads out of the package is refused at the start, and a missing program is built.
                    if !Path::new(&binary).components().all(is_inside) || !program.is_file() {
                        return Ok(());
                    }
                    program
                }
                PluginRuntime::Go { binary: None } | PluginRuntime::Python { .. } | PluginRuntime::Nodejs => {
                    return Ok(());
                }
            },
        };
        let inside = program.strip_prefix(&fetched.folder).unwrap_or(&program);
        check_program(&program, &format!("{} in {}", inside.display(), fetched.name), self.platform)
    }

    /// Returns an error if a digest is expected and neither the download nor the files have it.
    fn check(&self, download: Option<&Download>, folder: &Path, files: &FileDigests) -> Result<(), InstallError> {
        let not_downloaded = |expected: &Sha256Digest| download.is_none_or(|download| download.digest != *expected);
        let Some(expected) = self.expected_digest.filter(not_downloaded) else { return Ok(()) };
        let found = self.pinning_digest(folder, files)?;
        if found == expected {
            return Ok(());
        }
        let found = download.map_or(found, |download| download.digest);
        Err(InstallError::ChecksumMismatch {
            expected,
            found,
            published: download.and_then(|download| download.published),
            differing: Box::default(),
        })
    }

    fn has_pinning_digest(&self, expected: Sha256Digest, folder: &Path, files: &FileDigests) -> bool {
        self.pinning_digest(folder, files).is_ok_and(|found| found == expected)
    }

    /// Returns the folder of the plugin. No component of the path may be a link, because its target could change.
    fn plugin_folder(&self, folder: &Path) -> Result<PathBuf, InstallError> {
        let mut plugin_folder = folder.to_owned();
        for part in self.subdir.components() {
            match part {
                Component::Normal(name) => plugin_folder.push(name),
                Component::CurDir => continue,
                _ => return Err(InstallError::Subdir { subdir: self.subdir.to_owned() }),
            }
            if !plugin_folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                return Err(InstallError::Subdir { subdir: self.subdir.to_owned() });
            }
        }
        Ok(plugin_folder)
    }
}

impl CachedFetcher {
    pub(super) fn new(settings: CacheSettings) -> Self {
        Self { cache: PackageCache::new(settings.folder.clone()), settings }
    }

    /// Returns the cached package of a key, if it is valid and has the expected digest.
    pub(super) async fn find(
        &self,
        key: &CacheKey,
        spec: PackageSpec<'_>,
    ) -> Result<Option<(CacheEntry, CachedPackage)>, InstallError> {
        Ok(match self.open(key, spec).await? {
            Lookup::Valid(entry, cached) => Some((entry, cached)),
            Lookup::Missing | Lookup::Damaged => None,
        })
    }

    /// Returns the package of a key: from the cache, or fetched now. Waits if another run fetches it.
    pub(super) async fn find_or_fetch(
        &self,
        key: &CacheKey,
        spec: PackageSpec<'_>,
        events: &dyn FetchEvents,
        fetch: impl AsyncFnOnce(&Arc<ScratchFolder>) -> Result<Fetched, InstallError>,
    ) -> Result<(CacheEntry, CachedPackage), InstallError> {
        if let Some(found) = self.find(key, spec).await? {
            return Ok(found);
        }
        let _lock = self.cache.lock(key, || events.emit(FetchEvent::Waiting)).await?;
        match self.open(key, spec).await? {
            Lookup::Valid(entry, cached) => return Ok((entry, cached)),
            Lookup::Damaged => {
                let text = "the package in the cache is damaged; it is fetched again";
                events.emit(FetchEvent::Warning(text.to_owned()));
                let (cache, key) = (self.cache.clone(), key.clone());
                run_blocking(move || cache.remove_damaged(&key)).await?;
            }
            Lookup::Missing => {}
        }
        let cache = self.cache.clone();
        let scratch = Arc::new(run_blocking(move || cache.scratch()).await?);
        let mut fetched = fetch(&scratch).await?;
        let (package_folder, work, hashed) = (fetched.folder.clone(), Arc::clone(&scratch), fetched.files.take());
        let (begun, files) = run_blocking(move || {
            let (begun, are_shown) = FileTime::after_changes_of(&package_folder, hashed.as_ref(), work.path())?;
            let hashed = hashed.filter(|_| are_shown);
            Ok((begun, hashed.map_or_else(|| FileDigests::of(&package_folder), Ok)?))
        })
        .await?;
        spec.check_program(&fetched)?;
        spec.check(fetched.download.as_ref(), &fetched.folder, &files)?;
        if let (Some(recorded), None) = (spec.recorded, &fetched.download) {
            recorded.check(files.checksum_digest())?;
        }
        let (cache, key) = (self.cache.clone(), key.clone());
        run_blocking(move || {
            if let Some(Download { digest, archive: Some(archive), .. }) = &fetched.download {
                cache.keep_download(archive, *digest)?;
            }
            let cached = cache.publish(&fetched.folder, files, begun, fetched.download_digest())?;
            let entry = key.new_entry(&fetched.revision, fetched.download_digest(), cached.files.cache_digest());
            cache.write_entry(&key, &entry)?;
            drop(scratch);
            Ok((entry, cached))
        })
        .await
    }

    /// Writes the entry of a key whose revision can change, such as a branch or `latest`. `entry` is the entry of its
    /// current revision.
    pub(super) fn set_latest(&self, mutable_key: &CacheKey, entry: &CacheEntry) -> Result<(), InstallError> {
        let latest = mutable_key.new_entry(&entry.revision, entry.download_digest, entry.package_digest);
        if self.cache.entry(mutable_key)?.as_ref() != Some(&latest) {
            self.cache.write_entry(mutable_key, &latest)?;
        }
        Ok(())
    }

    /// Returns the package with the command that starts it. `version` is the declared one.
    pub(super) async fn package(
        &self,
        spec: PackageSpec<'_>,
        version: Option<PluginVersion>,
        (entry, cached): (CacheEntry, CachedPackage),
        events: &dyn FetchEvents,
    ) -> Result<VerifiedPackage, InstallError> {
        let plugin_folder = spec.plugin_folder(&cached.folder)?;
        // A checksum may be the digest of the download or of the files: the declared one is reported unchanged.
        let digest = match spec.expected_digest.or(entry.download_digest) {
            Some(digest) => digest,
            None => spec.pinning_digest(&cached.folder, &cached.files)?,
        };
        let CacheSettings { environment, spawner, verification, is_offline, .. } = &self.settings;
        let (cache, verification, is_offline) = (&self.cache, *verification, *is_offline);
        // A declared build was allowed, and nothing else of a fetched package is built.
        let (build_refusal, build_limit) = (None, self.settings.build_limit);
        let context = RuntimeContext {
            environment,
            spawner,
            cache,
            verification,
            build_refusal,
            is_offline,
            build_limit,
            events,
        };
        let (package, plugin_folder, built) = match spec.build {
            None => (cached.folder.clone(), plugin_folder, None),
            Some(build) => {
                let inside = plugin_folder.strip_prefix(&cached.folder).unwrap_or(spec.subdir);
                let (names, tree, digest) = (spec.executables, &cached.folder, cached.files.checksum_digest());
                let built = TreeBuild { context: &context, build, names, tree, inside, digest }.kept().await?;
                let plugin_folder = built.folder.join(inside);
                (built.folder, plugin_folder, Some(BuiltProgram::Kept { _package_use: built.package_use }))
            }
        };
        let (program, arguments, _) = match locate(spec.executables, &plugin_folder)? {
            Located::Executable(program) => (program, Vec::new(), None),
            Located::Manifest => {
                let manifest = read_manifest(&plugin_folder)?;
                let origin = PluginOrigin::Fetched { package: &package };
                context.start_command(spec.executables, &manifest, &plugin_folder, origin).await?
            }
        };
        Ok(VerifiedPackage {
            name: spec.names.plugin.clone(),
            version,
            revision: Some(entry.revision),
            digest: Some(digest),
            origin: plugin_folder.clone(),
            program,
            arguments,
            checked: CheckedFiles::in_cache(plugin_folder),
            _package_use: cached.package_use,
            _built: built,
        })
    }

    /// Finds the package of a key. A package without the expected or the recorded digest counts as missing.
    async fn open(&self, key: &CacheKey, spec: PackageSpec<'_>) -> Result<Lookup, InstallError> {
        let (cache, key, verification) = (self.cache.clone(), key.clone(), self.settings.verification);
        let lookup = run_blocking(move || cache.open(&key, verification)).await?;
        let Lookup::Valid(entry, mut cached) = lookup else { return Ok(lookup) };
        let recorded = spec.recorded.map(|recorded| recorded.digest);
        let downloads = match entry.download_digest {
            // The files of a commit have no archive.
            None if recorded.is_some_and(|tree| cached.files.checksum_digest() != tree) => return Ok(Lookup::Missing),
            None => [spec.expected_digest, None],
            Some(_) => [spec.expected_digest, recorded.filter(|digest| spec.expected_digest != Some(*digest))],
        };
        for expected in downloads.into_iter().flatten() {
            let is_known = verification != Verification::Always && cached.downloads.contains(&expected);
            if is_known || spec.has_pinning_digest(expected, &cached.folder, &cached.files) {
                continue;
            }
            // The digest of the download in the entry is no evidence: the archive has to have the same files.
            let (cache, package) = (self.cache.clone(), entry.package_digest);
            let compared = run_blocking(move || {
                let is_same = cache.files_of_download(expected)?.as_ref() == Some(&cached.files);
                if is_same {
                    // A cache that cannot be written is compared at each start.
                    cache.add_download(package, expected).ok();
                }
                Ok(is_same.then_some(cached))
            });
            match compared.await? {
                Some(same) => cached = same,
                None => return Ok(Lookup::Missing),
            }
        }
        Ok(Lookup::Valid(entry, cached))
    }
}
