//! Packages in git repositories.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::cache_key::{CacheEntry, CacheKey};
use super::cached_fetcher::{CacheSettings, CachedFetcher, Fetched, PackageSpec, RecordedDigest};
use super::copy_places::CopyPlaces;
use super::file_modes::make_private_and_read_only;
use super::git_copies::{fetch_copy, mirror, resolve_copy};
use super::layout::ExecutableNames;
use super::members::MAX_MEMBERS;
use super::package_cache::{CachedPackage, PackageCache};
use super::progress::Progress;
use super::run_blocking;
use super::unpack::{MAX_BYTES, MAX_PATH_DEPTH, MAX_PATH_LENGTH};
use super::verify::{check_transport, expected_digest};
use super::{
    Decision, FetchEvents, InstallError, LastResolved, LockKey, MirroredAsset, PackageSource, VerifiedPackage,
};
use crate::fs::{ScratchFolder, create_private_folders};
use crate::plugin::{
    DigestOrigin, GitSource, Platform, PluginNames, PluginPlace, ResolvedCommit, ResolvedPackage, Sha256Digest,
    TagRange, WantedVersion,
};
use crate::source::{Commit, Git, Remote, RevisionKind, TreeLimits, without_credentials};

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

    /// Returns the client of a repository.
    fn git(&self, remote: &Remote) -> Result<Git, InstallError> {
        // A repository on this machine needs no connection.
        if !remote.is_on_this_machine() {
            self.fetcher.settings.check_online()?;
        }
        Ok(Git::find(&self.fetcher.settings.environment, &self.fetcher.settings.spawner)?)
    }

    /// Returns the address of a repository as the lock file has it: without credentials and a query, which may hold a token, and from the
    /// root if it is below it, so that it is the same on every machine.
    fn recorded_address(&self, url: &str) -> String {
        let address = without_credentials(url);
        let path = address.strip_prefix("file://").unwrap_or(&address);
        if let Ok(below) = Path::new(path).strip_prefix(&self.fetcher.settings.root) {
            return format!("./{}", below.display());
        }
        address.split(['?', '#']).next().unwrap_or_default().to_owned()
    }

    fn copies<'c>(&'c self, place: &'c str, events: &'c dyn FetchEvents) -> CopyPlaces<'c> {
        CopyPlaces { settings: &self.fetcher.settings, place, events }
    }

    /// Finds or fetches the files of a commit, and verifies them: of a copy, if there is one and their digest is known, else of the
    /// repository.
    async fn cached(
        &self,
        declaration: &Declaration<'_>,
        spec: PackageSpec<'_>,
        resolved: &ResolvedCommit,
        is_locked: bool,
    ) -> Result<(CacheKey, (CacheEntry, CachedPackage)), InstallError> {
        check_transport(declaration.source.unprotected_address())?;
        let recorded = resolved.tree.map(|digest| RecordedDigest {
            item: "the tree".to_owned(),
            revision: resolved.commit.clone(),
            platform: None,
            digest,
            origin: DigestOrigin::Fetched,
            released: None,
            is_locked,
            host: declaration.remote.display_url(),
        });
        let spec = PackageSpec { recorded: recorded.as_ref(), ..spec };
        let fetch = async |scratch: &Arc<ScratchFolder>| {
            if let (Some(place), Some(recorded)) = (declaration.place(), &recorded)
                && let Some(fetched) = fetch_copy(self.copies(&place, declaration.events), recorded, scratch).await?
            {
                return Ok(fetched);
            }
            let git = self.git(&declaration.remote)?;
            declaration.fetch(&git, &Commit::resolved(&resolved.commit), scratch).await
        };
        let key = declaration.key_of(&self.fetcher.cache, &resolved.commit)?;
        let cached = self.fetcher.find_or_fetch(&key, spec, declaration.events, fetch).await?;
        Ok((key, cached))
    }

    fn remote(&self, source: &GitSource) -> Result<Remote, InstallError> {
        Ok(Remote::new(&source.url, &self.fetcher.settings.root, source.token.clone())?)
    }
}

#[async_trait]
impl PackageSource for GitRepositories {
    type Declared = GitSource;
    type Package = VerifiedPackage;

    fn lock_key(&self, names: PluginNames<'_>, source: &GitSource) -> Result<Option<LockKey>, InstallError> {
        let source_text = format!("git {}", self.recorded_address(&source.url));
        let (wanted, package) = (source.version.clone(), names.package.clone());
        Ok(Some(LockKey { source: source_text, wanted, asset: None, package }))
    }

    fn is_complete(&self, _: PluginNames<'_>, _: &GitSource, package: &ResolvedPackage) -> bool {
        matches!(package, ResolvedPackage::Commit(ResolvedCommit { tree: Some(_), .. }))
    }

    async fn complete(
        &self,
        _: PluginNames<'_>,
        _: &GitSource,
        package: ResolvedPackage,
        _: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError> {
        // The tree is the same for all platforms.
        Ok(package)
    }

    async fn resolve(
        &self,
        _: PluginNames<'_>,
        source: &GitSource,
        events: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError> {
        check_transport(source.unprotected_address())?;
        expected_digest(source.checksum.as_ref(), source.platform.or(Platform::current()))?;
        let declaration = Declaration { source, remote: self.remote(source)?, events };
        if let Some(place) = declaration.place()
            && let Some(found) = resolve_copy(self.copies(&place, events), &source.version).await?
        {
            return Ok(ResolvedPackage::Commit(found));
        }
        let git = self.git(&declaration.remote)?;
        declaration.resolve(&git).await.map(ResolvedPackage::Commit)
    }

    async fn last_resolved(
        &self,
        _: PluginNames<'_>,
        source: &GitSource,
    ) -> Result<Option<LastResolved>, InstallError> {
        let declaration = Declaration { source, remote: self.remote(source)?, events: &() };
        let (cache, wanted) = (self.fetcher.cache.clone(), source.version.clone());
        let (fixed, moving) = (declaration.fixed_key(), declaration.moving_key());
        run_blocking(move || {
            for (key, is_fixed) in [(fixed, true), (moving, false)] {
                if let Some(CacheEntry { revision: commit, .. }) = cache.find_entry(&key)? {
                    let tag = Some(wanted.as_str().to_owned()).filter(|name| is_fixed && !commit.starts_with(name));
                    let package = ResolvedPackage::Commit(ResolvedCommit { tag, commit, tree: None });
                    return Ok(Some(LastResolved { package, is_fixed }));
                }
            }
            Ok(None)
        })
        .await
    }

    async fn fetch(
        &self,
        names: PluginNames<'_>,
        source: &GitSource,
        decision: Decision,
        events: &dyn FetchEvents,
    ) -> Result<(VerifiedPackage, ResolvedPackage), InstallError> {
        let Decision { package: ResolvedPackage::Commit(resolved), is_locked, .. } = decision else {
            return Err(InstallError::OtherKind);
        };
        let declaration = Declaration { source, remote: self.remote(source)?, events };
        let executables = ExecutableNames::new(names);
        let spec = declaration.spec(names, &executables)?;
        let (key, (entry, cached)) = self.cached(&declaration, spec, &resolved, is_locked).await?;
        let is_fixed = matches!(source.version, WantedVersion::Named(_))
            && (resolved.tag.as_deref() == Some(source.version.as_str())
                || entry.revision.starts_with(source.version.as_str()));
        let wanted_key = if is_fixed { declaration.fixed_key() } else { declaration.moving_key() };
        if wanted_key != key {
            // A cache that cannot be written, such as that of an image, keeps its entry.
            self.fetcher.set_latest(&wanted_key, &entry).ok();
        }
        let resolved = ResolvedCommit {
            commit: entry.revision.clone(),
            tree: Some(cached.files.checksum_digest()),
            tag: resolved.tag,
        };
        let version = match (&source.version, &resolved.tag) {
            (WantedVersion::Range(range), Some(tag)) => range.version_of(tag),
            (wanted, _) => wanted.stated(),
        };
        let package = self.fetcher.package(spec, version, (entry, cached), events).await?;
        Ok((package, ResolvedPackage::Commit(resolved)))
    }

    async fn mirror(
        &self,
        names: PluginNames<'_>,
        source: &GitSource,
        package: ResolvedPackage,
        _: &[Platform],
        folder: &Path,
        events: &dyn FetchEvents,
    ) -> Result<Option<Vec<MirroredAsset>>, InstallError> {
        let ResolvedPackage::Commit(commit) = package else { return Err(InstallError::OtherKind) };
        let declaration = Declaration { source, remote: self.remote(source)?, events };
        // A repository on this machine is not elsewhere.
        let Some(place) = declaration.place() else { return Ok(None) };
        let executables = ExecutableNames::new(names);
        let spec = declaration.spec(names, &executables)?;
        let (_, (_, cached)) = self.cached(&declaration, spec, &commit, true).await?;
        Ok(Some(vec![mirror(folder, &place, commit, cached).await?]))
    }

    async fn known_digest(
        &self,
        names: PluginNames<'_>,
        source: &GitSource,
    ) -> Result<Option<Sha256Digest>, InstallError> {
        let executables = ExecutableNames::new(names);
        let declaration = Declaration { source, remote: self.remote(source)?, events: &() };
        let spec = PackageSpec { expected_digest: None, ..declaration.spec(names, &executables)? };
        for key in [declaration.fixed_key(), declaration.moving_key()] {
            if let Some((_, cached)) = self.fetcher.find(&key, spec).await? {
                return spec.pinning_digest(&cached.folder, &cached.files).map(Some);
            }
        }
        Ok(None)
    }
}

/// Declared source of a plugin.
struct Declaration<'a> {
    source: &'a GitSource,
    remote: Remote,
    events: &'a dyn FetchEvents,
}

impl Declaration<'_> {
    /// Returns what is expected of the package, without what is recorded.
    fn spec<'s>(
        &'s self,
        names: PluginNames<'s>,
        executables: &'s ExecutableNames,
    ) -> Result<PackageSpec<'s>, InstallError> {
        let platform = self.source.platform.or(Platform::current());
        let expected_digest = expected_digest(self.source.checksum.as_ref(), platform)?;
        let (subdir, build) = (self.source.subdir.as_path(), self.source.build.as_ref());
        Ok(PackageSpec { names, executables, expected_digest, recorded: None, subdir, platform, build })
    }

    /// Returns the place of its copies; `None` for a repository on this machine.
    fn place(&self) -> Option<String> {
        match PluginPlace::of_git(self.source) {
            PluginPlace::Repository(place) => Some(place),
            PluginPlace::Local | PluginPlace::Installed | PluginPlace::Ambiguous(_) => None,
        }
    }

    async fn resolve(&self, git: &Git) -> Result<ResolvedCommit, InstallError> {
        let name = match &self.source.version {
            WantedVersion::Range(range) => self.highest_tag(git, range).await?,
            named => named.as_str().to_owned(),
        };
        let commit = git.resolve(&self.remote, &name).await?;
        let tag = (commit.kind == RevisionKind::Tag).then_some(name);
        Ok(ResolvedCommit { tag, commit: commit.name().to_owned(), tree: None })
    }

    /// Returns the tag with the highest version in a range.
    async fn highest_tag(&self, git: &Git, range: &TagRange) -> Result<String, InstallError> {
        let tags = git.tags(&self.remote).await?;
        let in_range = tags.iter().filter_map(|tag| Some((range.version_in(tag)?, tag)));
        if let Some((_, tag)) = in_range.max() {
            return Ok(tag.clone());
        }
        let highest = tags.iter().filter_map(|tag| range.version_of(tag)).max();
        let reason = match highest {
            Some(highest) => format!("the highest version is {highest}"),
            None => "none is a version of three numbers, such as v1.2.3".to_owned(),
        };
        Err(InstallError::NoTag { repository: self.remote.display_url(), wanted: range.to_string(), reason })
    }

    fn key(&self, kind: &str, revision: &str) -> CacheKey {
        CacheKey::new([kind, &self.remote.display_url(), revision])
    }

    /// Returns the key of a commit; that of the tag if only that is in the cache, as an earlier version of this program has left it.
    fn key_of(&self, cache: &PackageCache, commit: &str) -> Result<CacheKey, InstallError> {
        let key = self.commit_key(commit);
        if cache.entry(&key)?.is_some() {
            return Ok(key);
        }
        let of_tag = cache.entry(&self.fixed_key())?;
        Ok(if of_tag.is_some_and(|entry| entry.revision == commit) { self.fixed_key() } else { key })
    }

    fn commit_key(&self, commit: &str) -> CacheKey {
        self.key("git", commit)
    }

    /// Returns the key of the commit to which the declared name leads, if that is a tag or a commit.
    fn fixed_key(&self) -> CacheKey {
        self.key("git", self.source.version.as_str())
    }

    /// Returns the key of the last commit that was fetched for a branch or a range.
    fn moving_key(&self) -> CacheKey {
        self.key("git branch", self.source.version.as_str())
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
