//! Packages that are assets of releases.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::cached_fetcher::{CacheSettings, CachedFetcher, RecordedDigest};
use super::layout::ExecutableNames;
use super::mirror::{CopyTarget, LockedAssets};
use super::release_declaration::{DescribedReleases, ReleaseDeclaration};
use super::run_blocking;
use super::{
    Decision, FetchEvents, InstallError, LastResolved, LockKey, MirroredAsset, PackageSource, VerifiedPackage,
};
use crate::plugin::{
    GithubReleaseSource, Platform, PluginNames, ResolvedAsset, ResolvedPackage, ResolvedRelease, Sha256Digest,
    WantedVersion,
};
use crate::source::Repository;

/// Source of packages that are assets of releases on GitHub, with a cache. A cached tag needs no network. Clones share what servers have
/// said about tags.
#[derive(Clone, Debug)]
pub struct GithubReleases {
    fetcher: CachedFetcher,
    /// Releases that servers have described in this run.
    described: Arc<DescribedReleases>,
}

impl GithubReleases {
    /// Creates the source.
    pub fn new(settings: CacheSettings) -> Self {
        Self { fetcher: CachedFetcher::new(settings), described: Arc::default() }
    }

    /// Asks the server for the size of the asset that [`PackageSource::fetch`] downloads for the tag of a source, in bytes. Zero if the server does
    /// not tell it.
    ///
    /// # Errors
    /// [`InstallError`] if the server cannot be reached, or if the release has no asset for the platform.
    pub async fn download_size(
        &self,
        names: PluginNames<'_>,
        source: &GithubReleaseSource,
    ) -> Result<u64, InstallError> {
        let executables = ExecutableNames::new(names).or_only_program();
        let declaration = self.declaration(names, &executables, source, &())?;
        let resolved = declaration.resolve().await?;
        Ok(resolved.assets.get(&declaration.platform).and_then(|asset| asset.size).unwrap_or_default())
    }

    fn declaration<'a>(
        &'a self,
        names: PluginNames<'a>,
        executables: &'a ExecutableNames,
        source: &'a GithubReleaseSource,
        events: &'a dyn FetchEvents,
    ) -> Result<ReleaseDeclaration<'a>, InstallError> {
        let platform = source.platform.or(Platform::current()).ok_or(InstallError::NoPlatform)?;
        let repository = Repository::of(source)?;
        let (fetcher, described) = (&self.fetcher, &*self.described);
        Ok(ReleaseDeclaration { fetcher, described, source, names, executables, repository, platform, events })
    }
}

#[async_trait]
impl PackageSource for GithubReleases {
    type Declared = GithubReleaseSource;
    type Package = VerifiedPackage;

    fn lock_key(&self, names: PluginNames<'_>, source: &GithubReleaseSource) -> Result<Option<LockKey>, InstallError> {
        let place = format!("github-release {}", Repository::of(source)?.place);
        let (wanted, asset, package) = (source.version.clone(), source.asset.clone(), names.package.clone());
        Ok(Some(LockKey { source: place, wanted, asset, package }))
    }

    fn is_complete(&self, _: PluginNames<'_>, source: &GithubReleaseSource, package: &ResolvedPackage) -> bool {
        package.has_digest_for(source.platform.or(Platform::current()))
    }

    async fn complete(
        &self,
        names: PluginNames<'_>,
        source: &GithubReleaseSource,
        package: ResolvedPackage,
        events: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError> {
        let ResolvedPackage::Release(recorded) = package else { return Err(InstallError::OtherKind) };
        let executables = ExecutableNames::new(names).or_only_program();
        let tag = GithubReleaseSource { version: WantedVersion::Named(recorded.tag.clone()), ..source.clone() };
        let declaration = self.declaration(names, &executables, &tag, events)?;
        let found = declaration.resolve().await?;
        declaration.complete(recorded, found).map(ResolvedPackage::Release)
    }

    async fn resolve(
        &self,
        names: PluginNames<'_>,
        source: &GithubReleaseSource,
        events: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError> {
        let executables = ExecutableNames::new(names).or_only_program();
        let declaration = self.declaration(names, &executables, source, events)?;
        declaration.resolve().await.map(ResolvedPackage::Release)
    }

    async fn last_resolved(
        &self,
        names: PluginNames<'_>,
        source: &GithubReleaseSource,
    ) -> Result<Option<LastResolved>, InstallError> {
        let executables = ExecutableNames::new(names).or_only_program();
        let declaration = self.declaration(names, &executables, source, &())?;
        let (cache, key) = (self.fetcher.cache.clone(), declaration.wanted_key());
        let entry = run_blocking(move || cache.find_entry(&key)).await?;
        let is_fixed = matches!(source.version, WantedVersion::Named(_));
        let release = |tag: String| ResolvedPackage::Release(ResolvedRelease { tag, ..ResolvedRelease::default() });
        Ok(entry.map(|entry| LastResolved { package: release(entry.revision), is_fixed }))
    }

    async fn fetch(
        &self,
        names: PluginNames<'_>,
        source: &GithubReleaseSource,
        decision: Decision,
        events: &dyn FetchEvents,
    ) -> Result<(VerifiedPackage, ResolvedPackage), InstallError> {
        let Decision { package: ResolvedPackage::Release(release), is_locked, .. } = decision else {
            return Err(InstallError::OtherKind);
        };
        let executables = ExecutableNames::new(names).or_only_program();
        let declaration = self.declaration(names, &executables, source, events)?;
        let (package, release) = declaration.fetch(release, is_locked).await?;
        Ok((package, ResolvedPackage::Release(release)))
    }

    async fn mirror(
        &self,
        names: PluginNames<'_>,
        source: &GithubReleaseSource,
        package: ResolvedPackage,
        platforms: &[Platform],
        folder: &Path,
        events: &dyn FetchEvents,
    ) -> Result<Option<Vec<MirroredAsset>>, InstallError> {
        let ResolvedPackage::Release(release) = package else { return Err(InstallError::OtherKind) };
        let executables = ExecutableNames::new(names).or_only_program();
        let declaration = self.declaration(names, &executables, source, events)?;
        let place = &declaration.repository.place;
        let target = CopyTarget::new(folder, place, &release.tag)?;
        let locked = LockedRelease { declaration: &declaration, release: &release };
        target.add_release(place, &release, platforms, &locked).await.map(Some)
    }

    async fn known_digest(
        &self,
        names: PluginNames<'_>,
        source: &GithubReleaseSource,
    ) -> Result<Option<Sha256Digest>, InstallError> {
        let executables = ExecutableNames::new(names).or_only_program();
        let key = self.declaration(names, &executables, source, &())?.wanted_key();
        let cache = self.fetcher.cache.clone();
        let entry = run_blocking(move || cache.find_entry(&key)).await?;
        Ok(entry.and_then(|entry| entry.download_digest))
    }
}

/// Locked release.
struct LockedRelease<'a> {
    declaration: &'a ReleaseDeclaration<'a>,
    release: &'a ResolvedRelease,
}

#[async_trait]
impl LockedAssets for LockedRelease<'_> {
    fn recorded(&self, platform: Platform, asset: &ResolvedAsset) -> Option<RecordedDigest> {
        let recorded = self.declaration.recorded_digest(asset, self.release, true)?;
        Some(RecordedDigest { platform: Some(platform), ..recorded })
    }

    async fn download(&self, _: Platform, asset: &ResolvedAsset, to: &Path) -> Result<Sha256Digest, InstallError> {
        self.declaration.download_asset(&self.release.tag, asset, to).await
    }
}
