//! Terraform providers in registries, as packages that are placed and not started.

use std::path::Path;

use async_trait::async_trait;

use super::cached_fetcher::{CacheSettings, CachedFetcher};
use super::layout::ExecutableNames;
use super::run_blocking;
use super::terraform_release::ProviderDeclaration;
use super::{
    Decision, FetchEvents, InstallError, LastResolved, LockKey, MirroredAsset, PackageSource, TerraformProviderFolder,
};
use crate::plugin::{
    Platform, PluginNames, ResolvedPackage, ResolvedRelease, Sha256Digest, TerraformProviderSource, WantedVersion,
};

/// Source of Terraform providers in registries, with a cache. A cached version needs no network. `names` are those of the plugin that uses the
/// provider, for the lock file.
#[derive(Clone, Debug)]
pub struct TerraformProviders {
    fetcher: CachedFetcher,
}

impl TerraformProviders {
    /// Creates the source.
    pub fn new(settings: CacheSettings) -> Self {
        Self { fetcher: CachedFetcher::new(settings) }
    }

    fn declaration<'a>(
        &'a self,
        names: PluginNames<'a>,
        executables: &'a ExecutableNames,
        source: &'a TerraformProviderSource,
        events: &'a dyn FetchEvents,
    ) -> Result<ProviderDeclaration<'a>, InstallError> {
        let platform = source.platform.or(Platform::current()).ok_or(InstallError::NoPlatform)?;
        Ok(ProviderDeclaration { fetcher: &self.fetcher, source, names, executables, platform, events })
    }
}

#[async_trait]
impl PackageSource for TerraformProviders {
    type Declared = TerraformProviderSource;
    type Package = TerraformProviderFolder;

    fn lock_key(
        &self,
        names: PluginNames<'_>,
        source: &TerraformProviderSource,
    ) -> Result<Option<LockKey>, InstallError> {
        let (place, wanted) = (format!("terraform {}", source.provider), source.version.clone());
        Ok(Some(LockKey { source: place, wanted, asset: None, package: names.package.clone() }))
    }

    fn is_complete(&self, _: PluginNames<'_>, source: &TerraformProviderSource, package: &ResolvedPackage) -> bool {
        package.has_digest_for(source.platform.or(Platform::current()))
    }

    async fn complete(
        &self,
        names: PluginNames<'_>,
        source: &TerraformProviderSource,
        package: ResolvedPackage,
        events: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError> {
        let ResolvedPackage::Release(recorded) = package else { return Err(InstallError::OtherKind) };
        let executables = ExecutableNames::of_terraform_provider(&source.provider);
        let version = TerraformProviderSource { version: WantedVersion::Named(recorded.tag.clone()), ..source.clone() };
        let declaration = self.declaration(names, &executables, &version, events)?;
        declaration.complete(recorded).await.map(ResolvedPackage::Release)
    }

    async fn resolve(
        &self,
        names: PluginNames<'_>,
        source: &TerraformProviderSource,
        events: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError> {
        let executables = ExecutableNames::of_terraform_provider(&source.provider);
        let declaration = self.declaration(names, &executables, source, events)?;
        declaration.resolve().await.map(ResolvedPackage::Release)
    }

    async fn last_resolved(
        &self,
        names: PluginNames<'_>,
        source: &TerraformProviderSource,
    ) -> Result<Option<LastResolved>, InstallError> {
        let executables = ExecutableNames::of_terraform_provider(&source.provider);
        let key = self.declaration(names, &executables, source, &())?.wanted_key();
        let cache = self.fetcher.cache.clone();
        let entry = run_blocking(move || cache.find_entry(&key)).await?;
        let is_fixed = matches!(source.version, WantedVersion::Named(_));
        let release = |tag: String| ResolvedPackage::Release(ResolvedRelease { tag, ..ResolvedRelease::default() });
        Ok(entry.map(|entry| LastResolved { package: release(entry.revision), is_fixed }))
    }

    async fn fetch(
        &self,
        names: PluginNames<'_>,
        source: &TerraformProviderSource,
        decision: Decision,
        events: &dyn FetchEvents,
    ) -> Result<(TerraformProviderFolder, ResolvedPackage), InstallError> {
        let Decision { package: ResolvedPackage::Release(release), is_locked, .. } = decision else {
            return Err(InstallError::OtherKind);
        };
        let executables = ExecutableNames::of_terraform_provider(&source.provider);
        let declaration = self.declaration(names, &executables, source, events)?;
        let (folder, release) = declaration.fetch(release, is_locked).await?;
        Ok((folder, ResolvedPackage::Release(release)))
    }

    async fn mirror(
        &self,
        names: PluginNames<'_>,
        source: &TerraformProviderSource,
        package: ResolvedPackage,
        platforms: &[Platform],
        folder: &Path,
        events: &dyn FetchEvents,
    ) -> Result<Option<Vec<MirroredAsset>>, InstallError> {
        let ResolvedPackage::Release(release) = package else { return Err(InstallError::OtherKind) };
        let executables = ExecutableNames::of_terraform_provider(&source.provider);
        let declaration = self.declaration(names, &executables, source, events)?;
        declaration.mirror(&release, platforms, folder).await.map(Some)
    }

    async fn known_digest(
        &self,
        names: PluginNames<'_>,
        source: &TerraformProviderSource,
    ) -> Result<Option<Sha256Digest>, InstallError> {
        let executables = ExecutableNames::of_terraform_provider(&source.provider);
        let key = self.declaration(names, &executables, source, &())?.wanted_key();
        let cache = self.fetcher.cache.clone();
        let entry = run_blocking(move || cache.find_entry(&key)).await?;
        Ok(entry.and_then(|entry| entry.download_digest))
    }
}
