//! Packages that are folders of a git repository.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::blocking::blocking;
use super::fetched::{Cache, CacheSettings, Fetched, Wanted};
use super::progress::Progress;
use super::store::{Key, Record, Stored};
use super::unpack::{DEEPEST_PATH, LONGEST_PATH, MOST_BYTES, MOST_ENTRIES};
use super::verify::expected;
use super::{FetchEvent, FetchEvents, InstallError, PackageSource, VerifiedPackage};
use crate::fs::{PathError, Scratch};
use crate::plugin::{GitSource, Platform, PluginConfig, PluginSource};
use crate::source::{Commit, Git, Remote, TreeLimits};

/// Packages in git repositories, kept in a cache. A tag or commit that is in the cache needs no network.
#[derive(Clone, Debug)]
pub struct GitRepositories {
    cache: Cache,
}

impl GitRepositories {
    /// Packages in git repositories.
    pub fn new(settings: CacheSettings) -> Self {
        Self { cache: Cache::new(settings) }
    }
}

#[async_trait]
impl PackageSource for GitRepositories {
    async fn resolve(&self, plugin: &PluginConfig, events: &dyn FetchEvents) -> Result<VerifiedPackage, InstallError> {
        let PluginSource::Git(source) = &plugin.source else {
            return Err(InstallError::Unsupported { kind: plugin.source.kind() });
        };
        let digest = expected(source.checksum.as_ref(), source.platform.or(Platform::current()))?;
        let wanted = Wanted { plugin, digest, subdir: &source.subdir };
        let remote = Remote::new(&source.url, &self.cache.settings.root, source.token.clone())?;
        let declared = Declared { cache: &self.cache, source, remote, wanted, events };
        let stored = declared.stored().await?;
        self.cache.package(wanted, stored).await
    }
}

/// One declaration on its way to a package.
struct Declared<'a> {
    cache: &'a Cache,
    source: &'a GitSource,
    remote: Remote,
    wanted: Wanted<'a>,
    events: &'a dyn FetchEvents,
}

impl Declared<'_> {
    async fn stored(&self) -> Result<(Record, Stored), InstallError> {
        let revision = &self.source.revision;
        if let Some(found) = self.cache.find(&self.key(revision), self.wanted).await? {
            return Ok(found);
        }
        let git = Git::find(&self.cache.settings.environment, &self.cache.settings.spawner)?;
        let commit = match git.resolve(&self.remote, revision).await {
            Ok(commit) => commit,
            Err(error) if error.is_unreachable() => return self.last_known(error).await,
            Err(error) => return Err(error.into()),
        };
        let key = self.key(if commit.moves { commit.name() } else { revision });
        let fetch = async |scratch: &Arc<Scratch>| self.fetch(&git, &commit, scratch).await;
        let (record, stored) = self.cache.obtain(&key, self.wanted, self.events, fetch).await?;
        if commit.moves {
            self.cache.remember(&self.branch_key(), &record)?;
        }
        Ok((record, stored))
    }

    /// The commit that the branch stood at when it was asked for last.
    async fn last_known(&self, error: crate::source::FetchError) -> Result<(Record, Stored), InstallError> {
        let Some((record, stored)) = self.cache.find(&self.branch_key(), self.wanted).await? else {
            return Err(error.into());
        };
        let (branch, commit) = (&self.source.revision, &record.revision);
        let text = format!("{error}; {commit}, where {branch} stood when that was last known, is used");
        self.events.emit(FetchEvent::Warning(text));
        Ok((record, stored))
    }

    fn key(&self, revision: &str) -> Key {
        Key::new(["git", &self.remote.shown(), revision])
    }

    fn branch_key(&self) -> Key {
        Key::new(["git branch", &self.remote.shown(), &self.source.revision])
    }

    async fn fetch(&self, git: &Git, commit: &Commit, scratch: &Arc<Scratch>) -> Result<Fetched, InstallError> {
        let folder = scratch.path().join("package");
        std::fs::create_dir(&folder).map_err(PathError::of("create folder", &folder))?;
        let progress = Progress::start(self.events, &self.remote.shown(), None);
        let limits = TreeLimits {
            entries: MOST_ENTRIES,
            bytes: MOST_BYTES,
            path_length: LONGEST_PATH,
            path_depth: DEEPEST_PATH,
        };
        let revision = git.checkout(&self.remote, commit, limits, &folder).await?;
        progress.done();
        let (made, kept) = (folder.clone(), Arc::clone(scratch));
        blocking(move || {
            let sealed = seal(&made);
            drop(kept);
            sealed
        })
        .await?;
        Ok(Fetched { revision, download: None, folder })
    }
}

/// Takes the right to write to files away: what runs was checked.
fn seal(folder: &Path) -> Result<(), InstallError> {
    for member in std::fs::read_dir(folder).map_err(PathError::of("list", folder))? {
        let member = member.map_err(PathError::of("list", folder))?;
        let path = member.path();
        let metadata = path.symlink_metadata().map_err(PathError::of("read", &path))?;
        if metadata.is_dir() {
            seal(&path)?;
        } else if metadata.is_file() {
            let mut permissions = metadata.permissions();
            permissions.set_readonly(true);
            std::fs::set_permissions(&path, permissions).map_err(PathError::of("make read-only", &path))?;
        }
    }
    Ok(())
}
