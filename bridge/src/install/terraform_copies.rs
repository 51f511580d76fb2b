//! Copies of a declared Terraform provider: which version the folders of plugins and the mirror have, and its archive from there.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use semver::Version;

use super::cached_fetcher::{Fetched, RecordedDigest};
use super::copy_places::{CopiedFile, CopyPlaces};
use super::mirror::{CopyTarget, LockedAssets};
use super::terraform_release::{FetchedArchive, ProviderDeclaration};
use super::{InstallError, MirroredAsset, run_blocking};
use crate::fs::ScratchFolder;
use crate::plugin::{DigestOrigin, Platform, PluginVersion, ResolvedAsset, ResolvedRelease, Sha256Digest};
use crate::source::{Asset, Release};

impl ProviderDeclaration<'_> {
    /// Returns the version that the folders of plugins have for the declaration, else the one that the index of the mirror has; `None` if
    /// neither has one. No signature is verified: its digest is trusted as at a first download.
    pub(super) async fn resolve_copy(&self) -> Result<Option<ResolvedRelease>, InstallError> {
        let place = self.source.provider.to_string();
        let copies = self.copies(&place);
        for folder in copies.folders() {
            let listed = folder.clone();
            let releases = run_blocking(move || listed.releases()).await?;
            let Some(mut found) = self.choose_copy(&releases) else { continue };
            let own = found.assets.get_mut(&self.platform).filter(|asset| asset.digest.is_none());
            if let Some(asset) = own {
                let digest = copies.digest_of(&folder, &found.tag, &asset.name, self.platform).await?;
                asset.digest = digest.map(|digest| (digest, DigestOrigin::Fetched));
            }
            copies.tell(&found.tag, &folder.0.display().to_string());
            return Ok(Some(found));
        }
        let Some(mirror) = copies.mirror()? else { return Ok(None) };
        let index = copies.mirror_index(&mirror).await?;
        let found = index.and_then(|index| self.choose_copy(&index.into_releases()));
        Ok(found.inspect(|found| copies.tell(&found.tag, &mirror.host())))
    }

    fn copies<'c>(&'c self, place: &'c str) -> CopyPlaces<'c> {
        CopyPlaces { settings: &self.fetcher.settings, place, events: self.events }
    }

    /// Returns the highest version that is wanted and has an archive for the platform.
    fn choose_copy(&self, releases: &[Release]) -> Option<ResolvedRelease> {
        let asset_of = |release: &Release, platform: Platform| {
            let name = self.source.provider.archive(&release.tag, platform);
            let Asset { name, size, .. } = release.assets.iter().find(|asset| asset.name == name)?.clone();
            let digest = release.assets.iter().find(|asset| asset.name == name).and_then(Asset::digest);
            let digest = digest.map(|digest| (digest, DigestOrigin::Fetched));
            Some(ResolvedAsset { name, size: Some(size), digest })
        };
        let wanted = releases.iter().filter_map(|release| {
            let version = PluginVersion::from(Version::parse(&release.tag).ok()?);
            let is_found = self.is_wanted(&version) && asset_of(release, self.platform).is_some();
            is_found.then_some((version, release))
        });
        let (_, release) = wanted.max_by(|(first, _), (second, _)| first.cmp(second))?;
        let assets = Platform::all().filter_map(|platform| Some((platform, asset_of(release, platform)?)));
        let (tag, released) = (release.tag.clone(), release.published_at.clone());
        Some(ResolvedRelease { tag, released, package: None, signer: None, assets: assets.collect() })
    }

    /// Fetches the archive of a recorded version from the folders of plugins, else from the mirror; `None` if neither has it.
    ///
    /// # Errors
    /// [`InstallError::OtherCopy`] if it is not what is recorded.
    pub(super) async fn fetch_copy(
        &self,
        version: &str,
        recorded: &RecordedDigest,
        scratch: &Arc<ScratchFolder>,
    ) -> Result<Option<Fetched>, InstallError> {
        let (place, path) = (self.source.provider.to_string(), scratch.path().join("download"));
        let name = self.source.provider.archive(version, self.platform);
        let copied = self.copies(&place).fetch_file(version, (&name, None), Some(self.platform), &path).await?;
        let Some(CopiedFile { digest, origin }) = copied else { return Ok(None) };
        let archive = FetchedArchive { name, digest, published: None, version };
        let unpacked = match recorded.check(digest) {
            Ok(()) => self.unpack(archive, scratch).await,
            Err(error) => Err(error),
        };
        unpacked.map(Some).map_err(|error| InstallError::OtherCopy { place: origin, source: Box::new(error) })
    }

    /// Copies the archives of a locked version into a folder of plugins, for some platforms or for all that are locked.
    pub(super) async fn mirror(
        &self,
        release: &ResolvedRelease,
        platforms: &[Platform],
        folder: &Path,
    ) -> Result<Vec<MirroredAsset>, InstallError> {
        self.check_version(&release.tag)?;
        let place = self.source.provider.to_string();
        let target = CopyTarget::new(folder, &place, &release.tag)?;
        let locked = LockedProvider { declaration: self, release };
        target.add_release(&place, release, platforms, &locked).await
    }
}

/// Locked version of a provider.
struct LockedProvider<'a> {
    declaration: &'a ProviderDeclaration<'a>,
    release: &'a ResolvedRelease,
}

#[async_trait]
impl LockedAssets for LockedProvider<'_> {
    fn recorded(&self, platform: Platform, asset: &ResolvedAsset) -> Option<RecordedDigest> {
        self.declaration.recorded_digest(platform, asset, self.release, true)
    }

    async fn download(
        &self,
        platform: Platform,
        asset: &ResolvedAsset,
        to: &Path,
    ) -> Result<Sha256Digest, InstallError> {
        let declaration = ProviderDeclaration { platform, ..*self.declaration };
        declaration.download(&self.release.tag, self.recorded(platform, asset).as_ref(), to).await
    }
}
