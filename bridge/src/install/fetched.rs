//! Packages that are downloaded: each is fetched once by one of all concurrent runs, kept in the cache, and verified
//! again at each start.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::blocking::run_blocking;
use super::layout::{Located, executables, locate, read_manifest};
use super::runtime::{PluginOrigin, RuntimeContext};
use super::store::{CacheKey, Lookup, Record, Store, StoredPackage, WORK};
use super::tree::FileDigests;
use super::verify::CheckedFiles;
use super::{FetchEvent, FetchEvents, InstallError, VerifiedPackage};
use crate::fs::{PathError, ScratchFolder};
use crate::plugin::{PluginConfig, Sha256Digest};
use crate::process::{HostEnvironment, Spawner};

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
}

impl CacheSettings {
    /// Returns the folder for unfinished packages. Local packages may use it for their private copies.
    pub fn work(&self) -> PathBuf {
        self.folder.join(WORK)
    }
}

/// Cache of one kind of source.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    pub(super) settings: CacheSettings,
    pub(super) store: Store,
}

/// Package that was fetched, but neither verified nor moved to the cache yet.
#[derive(Debug)]
pub(super) struct Fetched {
    /// Tag of the release, or full id of the commit.
    pub(super) revision: String,
    /// Digest of the downloaded file. `None` for git.
    pub(super) download: Option<Sha256Digest>,
    /// Folder with the files of the package.
    pub(super) folder: PathBuf,
}

/// Declaration of a package.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackageSpec<'a> {
    pub(super) plugin: &'a PluginConfig,
    /// Expected digest.
    pub(super) digest: Option<Sha256Digest>,
    /// Folder of the plugin, relative to the folder of the package.
    pub(super) subdir: &'a Path,
}

impl PackageSpec<'_> {
    /// Returns the digest that pins a package if its download has none: the digest of its executable, or of all its
    /// files if it has a manifest, because any of them may be executed.
    pub(super) fn digest_of(&self, folder: &Path, files: &FileDigests) -> Result<Sha256Digest, InstallError> {
        let program = match locate(&executables(self.plugin), &self.plugin_folder(folder)?)? {
            Located::Manifest => return Ok(files.digest()),
            Located::Executable(program) => program,
        };
        // Links are resolved: their target is what the system executes.
        let real = |path: &Path| std::fs::canonicalize(path).map_err(PathError::of("find", path));
        let (root, real_program) = (real(folder)?, real(&program)?);
        let digest = real_program.strip_prefix(root).ok().and_then(|inside| files.file(inside));
        digest.ok_or(InstallError::NotHashable { path: program, reason: "it is not a file of the package" })
    }

    /// Returns an error unless the digest of the download or of the files is the expected one.
    fn check(&self, download: Option<Sha256Digest>, folder: &Path, files: &FileDigests) -> Result<(), InstallError> {
        let Some(expected) = self.digest.filter(|expected| download != Some(*expected)) else { return Ok(()) };
        let found = self.digest_of(folder, files)?;
        if found == expected {
            return Ok(());
        }
        Err(InstallError::ChecksumMismatch { expected, found: download.unwrap_or(found) })
    }

    /// Returns the folder of the plugin. No component of the path may be a link, because its target could change.
    fn plugin_folder(&self, folder: &Path) -> Result<PathBuf, InstallError> {
        let mut home = folder.to_owned();
        for part in self.subdir.components() {
            match part {
                Component::Normal(name) => home.push(name),
                Component::CurDir => continue,
                _ => return Err(InstallError::Subdir { subdir: self.subdir.to_owned() }),
            }
            if !home.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                return Err(InstallError::Subdir { subdir: self.subdir.to_owned() });
            }
        }
        Ok(home)
    }

    fn accepts(&self, record: &Record, stored: &StoredPackage) -> bool {
        self.check(record.download, &stored.folder, &stored.files).is_ok()
    }
}

impl Cache {
    pub(super) fn new(settings: CacheSettings) -> Self {
        Self { store: Store::new(settings.folder.clone()), settings }
    }

    /// Returns the cached package of a key, if it is valid and has the expected digest.
    pub(super) async fn find(
        &self,
        key: &CacheKey,
        spec: PackageSpec<'_>,
    ) -> Result<Option<(Record, StoredPackage)>, InstallError> {
        Ok(match self.open(key).await? {
            Lookup::Valid(record, stored) if spec.accepts(&record, &stored) => Some((record, stored)),
            _ => None,
        })
    }

    /// Returns the package of a key: from the cache, or fetched now. Waits if another run fetches it.
    pub(super) async fn find_or_fetch(
        &self,
        key: &CacheKey,
        spec: PackageSpec<'_>,
        events: &dyn FetchEvents,
        fetch: impl AsyncFnOnce(&Arc<ScratchFolder>) -> Result<Fetched, InstallError>,
    ) -> Result<(Record, StoredPackage), InstallError> {
        if let Some(found) = self.find(key, spec).await? {
            return Ok(found);
        }
        let _lock = self.store.lock(key, || events.emit(FetchEvent::Waiting)).await?;
        match self.open(key).await? {
            Lookup::Valid(record, stored) if spec.accepts(&record, &stored) => return Ok((record, stored)),
            Lookup::Damaged => {
                let text = "the package in the cache is damaged; it is fetched again";
                events.emit(FetchEvent::Warning(text.to_owned()));
                let (store, key) = (self.store.clone(), key.clone());
                run_blocking(move || store.remove(&key)).await?;
            }
            Lookup::Valid(..) | Lookup::Missing => {}
        }
        let store = self.store.clone();
        let scratch = Arc::new(run_blocking(move || store.scratch()).await?);
        let fetched = fetch(&scratch).await?;
        let package_folder = fetched.folder.clone();
        let files = run_blocking(move || FileDigests::of(&package_folder)).await?;
        spec.check(fetched.download, &fetched.folder, &files)?;
        let (store, key) = (self.store.clone(), key.clone());
        run_blocking(move || {
            let stored = store.publish(&fetched.folder, files)?;
            let record = key.record(&fetched.revision, fetched.download, stored.files.identity());
            store.write(&key, &record)?;
            drop(scratch);
            Ok((record, stored))
        })
        .await
    }

    /// Records the current revision of a key whose revision can change, such as a branch or `latest`.
    pub(super) fn record_revision(&self, mutable_key: &CacheKey, record: &Record) -> Result<(), InstallError> {
        let now = mutable_key.record(&record.revision, record.download, record.package);
        if self.store.record(mutable_key)?.as_ref() != Some(&now) {
            self.store.write(mutable_key, &now)?;
        }
        Ok(())
    }

    /// Returns the package with the command that starts it.
    pub(super) async fn package(
        &self,
        spec: PackageSpec<'_>,
        (record, stored): (Record, StoredPackage),
    ) -> Result<VerifiedPackage, InstallError> {
        let home = spec.plugin_folder(&stored.folder)?;
        // Both the digest of the download and that of the files can pin a package: a declared one is kept.
        let digest = match spec.digest.or(record.download) {
            Some(digest) => digest,
            None => spec.digest_of(&stored.folder, &stored.files)?,
        };
        let names = executables(spec.plugin);
        let (program, arguments, built) = match locate(&names, &home)? {
            Located::Executable(program) => (program, Vec::new(), None),
            Located::Manifest => {
                let manifest = read_manifest(&home)?;
                let CacheSettings { environment, spawner, .. } = &self.settings;
                let work = self.settings.work();
                let runtime = RuntimeContext { environment, spawner, work: &work };
                runtime.start_command(&names, &manifest, &home, PluginOrigin::Fetched).await?
            }
        };
        Ok(VerifiedPackage {
            name: spec.plugin.name.clone(),
            version: spec.plugin.source.version(),
            revision: Some(record.revision),
            digest: Some(digest),
            origin: home.clone(),
            program,
            arguments,
            checked: CheckedFiles::in_store(home),
            _built: built,
        })
    }

    async fn open(&self, key: &CacheKey) -> Result<Lookup, InstallError> {
        let (store, key) = (self.store.clone(), key.clone());
        run_blocking(move || store.open(&key)).await
    }
}
