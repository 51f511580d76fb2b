//! Packages in git repositories.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::cache_key::{CacheEntry, CacheKey};
use super::cached_fetcher::{CacheSettings, CachedFetcher, Fetched, PackageSpec};
use super::layout::ExecutableNames;
use super::members::MAX_MEMBERS;
use super::package_cache::CachedPackage;
use super::progress::Progress;
use super::run_blocking;
use super::unpack::{MAX_BYTES, MAX_PATH_DEPTH, MAX_PATH_LENGTH};
use super::verify::{check_transport, expected_digest};
use super::{FetchEvent, FetchEvents, InstallError, PackageSource, VerifiedPackage};
use crate::fs::{FileError, ScratchFolder, create_private_folders};
use crate::plugin::{GitSource, Platform, PluginNames, Sha256Digest};
use crate::source::{Commit, Git, Remote, TreeLimits};

/// Source of packages in git repositories, with a cache. A cached tag or commit needs no network.
#[derive(Clone, Debug)]
pub struct GitRepositories {
    fetcher: CachedFetcher,
}

impl GitRepositories {
    /// Creates the source.
    pub fn new(settings: CacheSettings) -> Self {
        Self { fetcher: CachedFetcher::new(settings) }
    }
}

#[async_trait]
impl PackageSource for GitRepositories {
    type Declared = GitSource;

    async fn known_digest(
        &self,
        names: PluginNames<'_>,
        source: &GitSource,
    ) -> Result<Option<Sha256Digest>, InstallError> {
        let platform = source.platform.or(Platform::current());
        let executables = ExecutableNames::new(names);
        let spec =
            PackageSpec { names, executables: &executables, expected_digest: None, subdir: &source.subdir, platform };
        let remote = Remote::new(&source.url, &self.fetcher.settings.root, source.token.clone())?;
        let resolution = Resolution { fetcher: &self.fetcher, source, remote, spec, events: &() };
        let found = match self.fetcher.find(&resolution.key(&source.revision), spec).await? {
            Some(found) => Some(found),
            None => self.fetcher.find(&resolution.branch_key(), spec).await?,
        };
        found.map(|(_, cached)| spec.pinning_digest(&cached.folder, &cached.files)).transpose()
    }

    async fn resolve(
        &self,
        names: PluginNames<'_>,
        source: &GitSource,
        events: &dyn FetchEvents,
    ) -> Result<VerifiedPackage, InstallError> {
        check_transport(source.unprotected_address())?;
        let platform = source.platform.or(Platform::current());
        let expected_digest = expected_digest(source.checksum.as_ref(), platform)?;
        let executables = ExecutableNames::new(names);
        let spec = PackageSpec { names, executables: &executables, expected_digest, subdir: &source.subdir, platform };
        let remote = Remote::new(&source.url, &self.fetcher.settings.root, source.token.clone())?;
        let resolution = Resolution { fetcher: &self.fetcher, source, remote, spec, events };
        let cached = resolution.resolve_revision().await?;
        self.fetcher.package(spec, source.version(), cached, events).await
    }
}

/// Resolution of one declared source.
struct Resolution<'a> {
    fetcher: &'a CachedFetcher,
    source: &'a GitSource,
    remote: Remote,
    spec: PackageSpec<'a>,
    events: &'a dyn FetchEvents,
}

impl Resolution<'_> {
    async fn resolve_revision(&self) -> Result<(CacheEntry, CachedPackage), InstallError> {
        let revision = &self.source.revision;
        if let Some(found) = self.fetcher.find(&self.key(revision), self.spec).await? {
            return Ok(found);
        }
        let git = Git::find(&self.fetcher.settings.environment, &self.fetcher.settings.spawner)?;
        let commit = match git.resolve(&self.remote, revision).await {
            Ok(commit) => commit,
            Err(error) if error.is_unreachable() => return self.find_last_known(error).await,
            Err(error) => return Err(error.into()),
        };
        let key = self.key(if commit.is_branch { commit.name() } else { revision });
        let fetch = async |scratch: &Arc<ScratchFolder>| self.fetch(&git, &commit, scratch).await;
        let (entry, cached) = self.fetcher.find_or_fetch(&key, self.spec, self.events, fetch).await?;
        if commit.is_branch {
            self.fetcher.set_latest(&self.branch_key(), &entry)?;
        }
        Ok((entry, cached))
    }

    /// Returns the last known commit of the branch from the cache, or `error` if the cache has none.
    async fn find_last_known(
        &self,
        error: crate::source::FetchError,
    ) -> Result<(CacheEntry, CachedPackage), InstallError> {
        let Some((entry, cached)) = self.fetcher.find(&self.branch_key(), self.spec).await? else {
            return Err(error.into());
        };
        let (branch, commit) = (&self.source.revision, &entry.revision);
        let text = format!("{error}; {commit}, the last known commit of {branch}, is used");
        self.events.emit(FetchEvent::Warning(text));
        Ok((entry, cached))
    }

    fn key(&self, revision: &str) -> CacheKey {
        CacheKey::new(["git", &self.remote.display_url(), revision])
    }

    fn branch_key(&self) -> CacheKey {
        CacheKey::new(["git branch", &self.remote.display_url(), &self.source.revision])
    }

    async fn fetch(&self, git: &Git, commit: &Commit, scratch: &Arc<ScratchFolder>) -> Result<Fetched, InstallError> {
        let folder = scratch.path().join("package");
        create_private_folders(&folder)?;
        let progress = Progress::start(self.events, &self.remote.display_url(), None);
        let limits = TreeLimits {
            entries: MAX_MEMBERS,
            bytes: MAX_BYTES,
            path_length: MAX_PATH_LENGTH,
            path_depth: MAX_PATH_DEPTH,
        };
        let revision = git.checkout(&self.remote, commit, limits, &folder).await?;
        progress.done();
        let (made, scratch) = (folder.clone(), Arc::clone(scratch));
        run_blocking(move || {
            let result = make_private_and_read_only(&made);
            drop(scratch);
            result
        })
        .await?;
        Ok(Fetched { revision, name: self.remote.display_url(), download: None, folder, files: None })
    }
}

/// Makes a folder accessible for the current user only, whatever the umask was at the checkout. Makes all files of the
/// folder read-only, so that they stay as they were verified.
fn make_private_and_read_only(folder: &Path) -> Result<(), InstallError> {
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).map_err(FileError::of("make private", path))
    };
    set_mode(folder, 0o700)?;
    for member in fs::read_dir(folder).map_err(FileError::of("list", folder))? {
        let member = member.map_err(FileError::of("list", folder))?;
        let path = member.path();
        let metadata = path.symlink_metadata().map_err(FileError::of("read", &path))?;
        if metadata.is_dir() {
            make_private_and_read_only(&path)?;
        } else if metadata.is_file() {
            let executable = metadata.permissions().mode() & 0o111 != 0;
            set_mode(&path, if executable { 0o500 } else { 0o400 })?;
        }
    }
    Ok(())
}
