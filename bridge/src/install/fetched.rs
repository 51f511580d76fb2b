//! What all packages have in common that come from elsewhere: they are fetched once, by one of all who want them, kept in
//! the cache, and looked at again at each start.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::blocking::blocking;
use super::layout::{Located, executables, locate, read_manifest};
use super::runtime::{Home, Toolbox};
use super::store::{Found, Key, Record, Store, Stored, WORK};
use super::tree::FileDigests;
use super::verify::Checked;
use super::{FetchEvent, FetchEvents, InstallError, VerifiedPackage};
use crate::fs::{PathError, Scratch};
use crate::plugin::{PluginConfig, Sha256Digest};
use crate::process::{HostEnvironment, Spawner};

/// What sources that fetch work with.
#[derive(Clone, Debug)]
pub struct CacheSettings {
    /// The folder of the cache. Programs must be allowed to run there. Created when needed.
    pub folder: PathBuf,
    /// Where relative paths start: the root of the repository.
    pub root: PathBuf,
    /// Where programs are looked for.
    pub environment: HostEnvironment,
    /// What runs git, and builds.
    pub spawner: Spawner,
}

impl CacheSettings {
    /// The folder of the cache for what is being made, which packages on this machine may use, too.
    pub fn work(&self) -> PathBuf {
        self.folder.join(WORK)
    }
}

/// The cache, for one kind of source.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    pub(super) settings: CacheSettings,
    pub(super) store: Store,
}

/// A package that was fetched, not yet checked and not yet in its place.
#[derive(Debug)]
pub(super) struct Fetched {
    /// The tag or the whole id of the commit.
    pub(super) revision: String,
    /// The digest of what was downloaded, if that was one file.
    pub(super) download: Option<Sha256Digest>,
    /// A folder with its files.
    pub(super) folder: PathBuf,
}

/// What is declared of a package.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) plugin: &'a PluginConfig,
    /// The digest it must have.
    pub(super) digest: Option<Sha256Digest>,
    /// Where the plugin is in it.
    pub(super) subdir: &'a Path,
}

impl Wanted<'_> {
    /// The digest that pins a package beside that of its download: that of its executable, or of all its files where it
    /// has a manifest, for then any of them may be run.
    pub(super) fn digest_of(&self, folder: &Path, files: &FileDigests) -> Result<Sha256Digest, InstallError> {
        let program = match locate(&executables(self.plugin), &self.home(folder)?)? {
            Located::Manifest => return Ok(files.digest()),
            Located::Executable(program) => program,
        };
        // A link is what it leads to: that is what runs.
        let real = |path: &Path| std::fs::canonicalize(path).map_err(PathError::of("find", path));
        let (root, real_program) = (real(folder)?, real(&program)?);
        let digest = real_program.strip_prefix(root).ok().and_then(|inside| files.file(inside));
        digest.ok_or(InstallError::Uncoverable { path: program, reason: "it is no file of the package" })
    }

    /// Refuses what is not what was declared.
    fn check(&self, download: Option<Sha256Digest>, folder: &Path, files: &FileDigests) -> Result<(), InstallError> {
        let Some(expected) = self.digest.filter(|expected| download != Some(*expected)) else { return Ok(()) };
        let found = self.digest_of(folder, files)?;
        if found == expected {
            return Ok(());
        }
        Err(InstallError::ChecksumMismatch { expected, found: download.unwrap_or(found) })
    }

    /// The plugin's own folder. No link leads there: it could lead to another one tomorrow.
    fn home(&self, folder: &Path) -> Result<PathBuf, InstallError> {
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

    fn accepts(&self, record: &Record, stored: &Stored) -> bool {
        self.check(record.download, &stored.folder, &stored.files).is_ok()
    }
}

impl Cache {
    pub(super) fn new(settings: CacheSettings) -> Self {
        Self { store: Store::new(settings.folder.clone()), settings }
    }

    /// What the cache has under a name, if that is what is wanted.
    pub(super) async fn find(&self, key: &Key, wanted: Wanted<'_>) -> Result<Option<(Record, Stored)>, InstallError> {
        Ok(match self.open(key).await? {
            Found::Whole(record, stored) if wanted.accepts(&record, &stored) => Some((record, stored)),
            _ => None,
        })
    }

    /// The package of a name: from the cache, else fetched by us, or by somebody else for whom we wait.
    pub(super) async fn obtain(
        &self,
        key: &Key,
        wanted: Wanted<'_>,
        events: &dyn FetchEvents,
        fetch: impl AsyncFnOnce(&Arc<Scratch>) -> Result<Fetched, InstallError>,
    ) -> Result<(Record, Stored), InstallError> {
        if let Some(found) = self.find(key, wanted).await? {
            return Ok(found);
        }
        let _lock = self.store.lock(key, || events.emit(FetchEvent::Waiting)).await?;
        match self.open(key).await? {
            Found::Whole(record, stored) if wanted.accepts(&record, &stored) => return Ok((record, stored)),
            Found::Damaged => {
                let text = "the package in the cache is not what was put there; it is fetched again";
                events.emit(FetchEvent::Warning(text.to_owned()));
                let (store, key) = (self.store.clone(), key.clone());
                blocking(move || store.remove(&key)).await?;
            }
            Found::Whole(..) | Found::Nothing => {}
        }
        let store = self.store.clone();
        let scratch = Arc::new(blocking(move || store.scratch()).await?);
        let fetched = fetch(&scratch).await?;
        let made = fetched.folder.clone();
        let files = blocking(move || FileDigests::of(&made)).await?;
        wanted.check(fetched.download, &fetched.folder, &files)?;
        let (store, key) = (self.store.clone(), key.clone());
        blocking(move || {
            let stored = store.publish(&fetched.folder, files)?;
            let record = key.record(&fetched.revision, fetched.download, stored.files.identity());
            store.write(&key, &record)?;
            drop(scratch);
            Ok((record, stored))
        })
        .await
    }

    /// Remembers what a name that moves meant today.
    pub(super) fn remember(&self, moving: &Key, record: &Record) -> Result<(), InstallError> {
        let now = moving.record(&record.revision, record.download, record.package);
        if self.store.record(moving)?.as_ref() != Some(&now) {
            self.store.write(moving, &now)?;
        }
        Ok(())
    }

    /// How the package is started.
    pub(super) async fn package(
        &self,
        wanted: Wanted<'_>,
        (record, stored): (Record, Stored),
    ) -> Result<VerifiedPackage, InstallError> {
        let home = wanted.home(&stored.folder)?;
        // As it was declared, where it was: either may pin it.
        let digest = match wanted.digest.or(record.download) {
            Some(digest) => digest,
            None => wanted.digest_of(&stored.folder, &stored.files)?,
        };
        let names = executables(wanted.plugin);
        let (program, arguments, built) = match locate(&names, &home)? {
            Located::Executable(program) => (program, Vec::new(), None),
            Located::Manifest => {
                let manifest = read_manifest(&home)?;
                let CacheSettings { environment, spawner, .. } = &self.settings;
                let work = self.settings.work();
                let toolbox = Toolbox { environment, spawner, work: &work };
                toolbox.start(&names, &manifest, &home, Home::Fetched).await?
            }
        };
        Ok(VerifiedPackage {
            name: wanted.plugin.name.clone(),
            version: wanted.plugin.source.version(),
            revision: Some(record.revision),
            digest: Some(digest),
            origin: home.clone(),
            program,
            arguments,
            checked: Checked::in_store(home),
            _built: built,
        })
    }

    async fn open(&self, key: &Key) -> Result<Found, InstallError> {
        let (store, key) = (self.store.clone(), key.clone());
        blocking(move || store.open(&key)).await
    }
}
