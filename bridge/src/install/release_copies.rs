//! Copies of a declared release: which one the folders of plugins and the mirror have, and its asset from there.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::asset_package::DownloadedAsset;
use super::cached_fetcher::{Fetched, PackageSpec};
use super::copies::names_of_tag;
use super::copy_places::{CopiedFile, CopyPlaces};
use super::release_declaration::ReleaseDeclaration;
use super::{InstallError, run_blocking};
use crate::fs::ScratchFolder;
use crate::plugin::{DigestOrigin, Platform, ResolvedAsset, ResolvedRelease, WantedVersion};
use crate::source::{Asset, FileServer, Release};

impl ReleaseDeclaration<'_> {
    fn copies(&self) -> CopyPlaces<'_> {
        CopyPlaces { settings: &self.fetcher.settings, place: &self.repository.place, events: self.events }
    }

    /// Returns the release that the folders of plugins have for the declaration, else the one that the mirror has; `None` if neither
    /// has one. A package whose digest must be published is not looked for, since only its place publishes one.
    pub(super) async fn resolve_copy(&self) -> Result<Option<ResolvedRelease>, InstallError> {
        if self.source.requires_digest {
            return Ok(None);
        }
        let copies = self.copies();
        for folder in copies.folders() {
            let listed = folder.clone();
            let releases = run_blocking(move || listed.releases()).await?;
            if let Some(release) = self.choose(releases)? {
                let mut resolved = self.resolved_copy(&release);
                let own = resolved.assets.get_mut(&self.platform).filter(|asset| asset.digest.is_none());
                if let Some(asset) = own {
                    let digest = copies.digest_of(&folder, &release.tag, &asset.name, self.platform).await?;
                    asset.digest = digest.map(|digest| (digest, DigestOrigin::Fetched));
                }
                copies.tell(&release.tag, &folder.0.display().to_string());
                return Ok(Some(resolved));
            }
        }
        let Some(mirror) = copies.mirror()? else { return Ok(None) };
        match self.resolve_in_mirror(&mirror).await {
            Err(InstallError::Fetch(error)) if error.is_unreachable() => {
                copies.warn_of(&mirror, &error);
                Ok(None)
            }
            found => Ok(found?.inspect(|release| copies.tell(&release.tag, &mirror.host()))),
        }
    }

    async fn resolve_in_mirror(&self, mirror: &FileServer) -> Result<Option<ResolvedRelease>, InstallError> {
        let copies = self.copies();
        if let Some(index) = copies.mirror_index(mirror).await? {
            return Ok(self.choose(index.into_releases())?.map(|release| self.resolved_copy(&release)));
        }
        // A mirror without an index has what is written out.
        let WantedVersion::Named(tag) = &self.source.version else { return Ok(None) };
        for name in self.assets().names(tag, self.platform) {
            let Some(path) = copies.mirror_path(tag, &name) else { continue };
            if let Some(size) = mirror.size(&path).await? {
                let assets = vec![Asset::of_copy(name, size, None)];
                let release = Release { tag: tag.clone(), assets, ..Release::default() };
                return Ok(Some(self.resolved_copy(&release)));
            }
        }
        Ok(None)
    }

    /// Returns the release that the declaration means, of those of which there are copies.
    fn choose(&self, releases: Vec<Release>) -> Result<Option<Release>, InstallError> {
        match &self.source.version {
            WantedVersion::Named(wanted) => {
                let mut named =
                    releases.into_iter().filter(|release| names_of_tag(wanted).contains(&release.tag.as_str()));
                let found = named.find(|release| self.assets().find(release, self.platform).is_ok());
                // A folder may be called by the version alone.
                Ok(found.map(|release| Release { tag: wanted.clone(), ..release }))
            }
            WantedVersion::Latest => self.choice().highest(releases, None),
            WantedVersion::Range(range) => self.choice().highest(releases, Some(range)),
        }
    }

    /// Returns a copied release with the assets of all platforms that it has. Their digests are trusted as at a first download.
    fn resolved_copy(&self, release: &Release) -> ResolvedRelease {
        let asset = |platform: Platform| {
            let Asset { name, size, .. } = self.assets().find(release, platform).ok()?.clone();
            let digest = release.assets.iter().find(|asset| asset.name == name).and_then(Asset::digest);
            Some((
                platform,
                ResolvedAsset { name, size: Some(size), digest: digest.map(|digest| (digest, DigestOrigin::Fetched)) },
            ))
        };
        let assets: BTreeMap<_, _> = Platform::all().filter_map(asset).collect();
        let (tag, released) = (release.tag.clone(), release.published_at.clone());
        ResolvedRelease { tag, released, package: self.assets().package(), assets, signer: None }
    }

    /// Fetches an asset of a tag from the folders of plugins, else from the mirror; `None` if neither has it.
    ///
    /// # Errors
    /// [`InstallError::OtherCopy`] if it is not what the lock file records.
    pub(super) async fn fetch_copy(
        &self,
        tag: &str,
        asset: &ResolvedAsset,
        spec: PackageSpec<'_>,
        scratch: &Arc<ScratchFolder>,
    ) -> Result<Option<Fetched>, InstallError> {
        // Its digest is known from its place, from the lock file or from the declaration.
        let is_known = asset.digest.is_some_and(|(_, origin)| origin <= DigestOrigin::Published);
        if self.source.requires_digest && !is_known && spec.expected_digest.is_none() {
            return Ok(None);
        }
        let path = scratch.path().join("download");
        let wanted = (asset.name.as_str(), asset.size);
        let copied = self.copies().fetch_file(tag, wanted, Some(self.platform), &path).await?;
        let Some(CopiedFile { digest, origin }) = copied else { return Ok(None) };
        let (tag, name, host) = (tag.to_owned(), asset.name.clone(), origin.clone());
        let downloaded = DownloadedAsset { tag, name, digest, published: None, host, path };
        let unpacked = downloaded.unpack(spec, scratch).await;
        unpacked.map(Some).map_err(|error| InstallError::OtherCopy { place: origin, source: Box::new(error) })
    }
}
