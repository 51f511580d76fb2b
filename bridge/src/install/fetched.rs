//! What all packages have in common that come from elsewhere: they are fetched once, by one of all who want them, kept in
//! the cache, and looked at again at each start.

use std::path::{Path, PathBuf};

use super::local::{Located, executables, locate, read_manifest};
use super::runtime::{Home, Toolbox};
use super::store::{Found, Key, Record, Store, Stored};
use super::tree::FileDigests;
use super::verify::Checked;
use super::{FetchEvent, FetchEvents, InstallError, VerifiedPackage};
use crate::fs::Scratch;
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

/// The cache, for one kind of source.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    pub(super) settings: CacheSettings,
    pub(super) store: Store,
}

/// A package that was fetched and is what was declared, not yet in its place.
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
    /// The digests by which these files may be known: that of the executable, or of all files beside the manifest.
    pub(super) fn digest_of(&self, folder: &Path, files: &FileDigests) -> Result<Option<Sha256Digest>, InstallError> {
        let home = self.home(folder)?;
        Ok(match locate(&executables(self.plugin), &home)? {
            Located::Executable(program) => program.strip_prefix(folder).ok().and_then(|program| files.file(program)),
            Located::Manifest => Some(files.below(self.subdir).digest()),
        })
    }

    /// The plugin's own folder.
    fn home(&self, folder: &Path) -> Result<PathBuf, InstallError> {
        let home = folder.join(self.subdir);
        let outside = || InstallError::Subdir { subdir: self.subdir.to_owned() };
        let (real, real_home) = (std::fs::canonicalize(folder), std::fs::canonicalize(&home));
        match (real, real_home) {
            (Ok(folder), Ok(real_home)) if real_home.starts_with(&folder) && real_home.is_dir() => Ok(home),
            _ => Err(outside()),
        }
    }

    fn accepts(&self, record: &Record, stored: &Stored) -> bool {
        self.digest.is_none_or(|wanted| {
            record.download() == Some(wanted)
                || matches!(self.digest_of(&stored.folder, &stored.files), Ok(Some(found)) if found == wanted)
        })
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
        fetch: impl AsyncFnOnce(&Scratch) -> Result<Fetched, InstallError>,
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
                self.store.remove(key)?;
            }
            Found::Whole(..) | Found::Nothing => {}
        }
        let scratch = self.store.scratch()?;
        let fetched = match fetch(&scratch).await {
            Ok(fetched) => fetched,
            Err(error) => {
                if matches!(error, InstallError::ChecksumMismatch { .. }) {
                    // Whatever is there is not what is declared either.
                    self.store.remove(key)?;
                }
                return Err(error);
            }
        };
        let (store, key) = (self.store.clone(), key.clone());
        blocking(move || {
            let files = FileDigests::of(&fetched.folder)?;
            let stored = store.publish(&fetched.folder, files)?;
            let record = Record::new(&key, &fetched.revision, fetched.download, stored.files.digest());
            store.write(&key, &record)?;
            drop(scratch);
            Ok((record, stored))
        })
        .await
    }

    /// Remembers what a name that moves meant today.
    pub(super) fn remember(&self, moving: &Key, record: &Record) -> Result<(), InstallError> {
        let now = Record { of: moving.text().to_owned(), ..record.clone() };
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
        let digest = match record.download() {
            Some(download) => Some(download),
            None => wanted.digest_of(&stored.folder, &stored.files)?,
        };
        let names = executables(wanted.plugin);
        let (program, arguments, built) = match locate(&names, &home)? {
            Located::Executable(program) => (program, Vec::new(), None),
            Located::Manifest => {
                let manifest = read_manifest(&home)?;
                let Self { settings: CacheSettings { environment, spawner, .. }, .. } = self;
                let work = self.settings.folder.join("work");
                let toolbox = Toolbox { environment, spawner, work: &work };
                toolbox.start(&names, &manifest, &home, Home::Fetched).await?
            }
        };
        Ok(VerifiedPackage {
            name: wanted.plugin.name.clone(),
            version: wanted.plugin.source.version(),
            revision: Some(record.revision),
            digest: wanted.digest.or(digest),
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

/// Does what reads or writes much on a thread that may wait for the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InstallError> + Send + 'static,
) -> Result<T, InstallError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
