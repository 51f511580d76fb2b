//! Copies of a declared release: which one the folders of plugins and the mirror have, and its asset from there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use super::asset_package::DownloadedAsset;
use super::cached_fetcher::{Fetched, PackageSpec};
use super::copies::{CopyFolder, INDEX, Index, names_of_tag, paths_of};
use super::download_file::DownloadFile;
use super::release_declaration::ReleaseDeclaration;
use super::verify::hash_file;
use super::{FetchEvent, InstallError, run_blocking};
use crate::fs::{FileError, ScratchFolder, check_trusted_target, open_regular};
use crate::plugin::{DigestOrigin, Platform, ResolvedAsset, ResolvedRelease, Sha256Digest, WantedVersion};
use crate::source::{Asset, FetchError, FileServer, Release};

/// Length of the parts in which a file is copied, in bytes.
const PART: usize = 1 << 16;

impl ReleaseDeclaration<'_> {
    /// Returns the release that the folders of plugins have for the declaration, else the one that the mirror has; `None` if neither
    /// has one. A package whose digest must be published is not looked for, since only its place publishes one.
    pub(super) async fn resolve_copy(&self) -> Result<Option<ResolvedRelease>, InstallError> {
        if self.source.requires_digest {
            return Ok(None);
        }
        for folder in self.copy_folders() {
            let listed = folder.clone();
            let releases = run_blocking(move || listed.releases()).await?;
            if let Some(release) = self.choose(releases)? {
                let mut resolved = self.resolved_copy(&release);
                let own = resolved.assets.get_mut(&self.platform).filter(|asset| asset.digest.is_none());
                if let Some(asset) = own
                    && let Some(file) = folder.asset(&release.tag, &asset.name, self.platform)
                {
                    // Nothing else says what it has to be.
                    check_trusted_target(&file)?;
                    asset.digest = Some((run_blocking(move || hash_file(&file)).await?, DigestOrigin::Fetched));
                }
                self.tell(&release.tag, &folder.0.display().to_string());
                return Ok(Some(resolved));
            }
        }
        let Some(mirror) = self.mirror_server()? else { return Ok(None) };
        match self.resolve_in_mirror(&mirror).await {
            Err(InstallError::Fetch(error)) if error.is_unreachable() => {
                self.warn_of(&mirror, &error);
                Ok(None)
            }
            found => Ok(found?.inspect(|release| self.tell(&release.tag, &mirror.host()))),
        }
    }

    async fn resolve_in_mirror(&self, mirror: &FileServer) -> Result<Option<ResolvedRelease>, InstallError> {
        for path in paths_of(&self.repository.place).into_iter().take(1) {
            let index = format!("{path}/{INDEX}");
            let Some(text) = mirror.content(&index).await? else { continue };
            let place = || format!("{index} of {}", mirror.host());
            let index = Index::parse(&text).ok_or_else(|| InstallError::Index { place: place() })?;
            return Ok(self.choose(index.into_releases())?.map(|release| self.resolved_copy(&release)));
        }
        // A mirror without an index has what is written out.
        let WantedVersion::Named(tag) = &self.source.version else { return Ok(None) };
        for name in self.assets().names(tag, self.platform) {
            for path in self.mirror_paths(tag, &name) {
                if let Some(size) = mirror.size(&path).await? {
                    let assets = vec![Asset::of_copy(name, size, None)];
                    let release = Release { tag: tag.clone(), assets, ..Release::default() };
                    return Ok(Some(self.resolved_copy(&release)));
                }
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
        for folder in self.copy_folders() {
            let Some(file) = folder.asset(tag, &asset.name, self.platform) else { continue };
            let digest = self.copy(&file, asset, &path).await?;
            return self
                .unpack_copy(tag, asset, (digest, folder.0.display().to_string()), spec, scratch)
                .await
                .map(Some);
        }
        let Some(mirror) = self.mirror_server()? else { return Ok(None) };
        for from in self.mirror_paths(tag, &asset.name) {
            let mut download = DownloadFile::new(self.events, &asset.name, asset.size, &path);
            match mirror.download(&from, asset.size, |bytes| download.write(bytes)).await {
                Ok(false) => {}
                Ok(true) => {
                    let origin = (download.finish(), mirror.host());
                    return self.unpack_copy(tag, asset, origin, spec, scratch).await.map(Some);
                }
                Err(FetchError::Path(error)) => return Err(error.into()),
                Err(error) if error.is_unreachable() => {
                    self.warn_of(&mirror, &error);
                    return Ok(None);
                }
                Err(error) => {
                    return Err(InstallError::OtherCopy { place: mirror.host(), source: Box::new(error.into()) });
                }
            }
        }
        Ok(None)
    }

    async fn unpack_copy(
        &self,
        tag: &str,
        asset: &ResolvedAsset,
        (digest, place): (Sha256Digest, String),
        spec: PackageSpec<'_>,
        scratch: &Arc<ScratchFolder>,
    ) -> Result<Fetched, InstallError> {
        let (name, path) = (asset.name.clone(), scratch.path().join("download"));
        let (tag, host) = (tag.to_owned(), place.clone());
        let downloaded = DownloadedAsset { tag, name, digest, published: None, host, path };
        let unpacked = downloaded.unpack(spec, scratch).await;
        unpacked.map_err(|error| InstallError::OtherCopy { place, source: Box::new(error) })
    }

    /// Copies a file, and returns the digest of the copied bytes.
    async fn copy(&self, from: &Path, asset: &ResolvedAsset, to: &Path) -> Result<Sha256Digest, InstallError> {
        let mut source: File = open_regular(from).map_err(FileError::of("read", from))?;
        let mut download = DownloadFile::new(self.events, &asset.name, asset.size, to);
        download.write(&[])?;
        let mut part = vec![0; PART];
        loop {
            let length = source.read(&mut part).map_err(FileError::of("read", from))?;
            if length == 0 {
                return Ok(download.finish());
            }
            download.write(&part[..length])?;
            // Other plugins are prepared meanwhile.
            tokio::task::yield_now().await;
        }
    }

    fn copy_folders(&self) -> Vec<CopyFolder> {
        CopyFolder::find(&self.fetcher.settings.copies.folders, &self.repository.place)
    }

    /// Returns a client of the mirror; `None` if there is none, or if no connection may be opened.
    fn mirror_server(&self) -> Result<Option<FileServer>, InstallError> {
        let settings = &self.fetcher.settings;
        let address = settings.copies.mirror.as_deref().filter(|_| !settings.is_offline);
        Ok(address.map(FileServer::new).transpose()?)
    }

    fn mirror_paths(&self, tag: &str, asset: &str) -> Vec<String> {
        // A mirror is asked for few names, each of which is a request.
        let place = paths_of(&self.repository.place).into_iter().next();
        place
            .filter(|_| !names_of_tag(tag).is_empty())
            .map(|place| format!("{place}/{tag}/{asset}"))
            .into_iter()
            .collect()
    }

    fn tell(&self, tag: &str, place: &str) {
        self.events.emit(FetchEvent::Note(format!("{tag} is taken from {place}")));
    }

    fn warn_of(&self, mirror: &FileServer, error: &FetchError) {
        let text = format!("the mirror {} cannot be asked: {}", mirror.host(), crate::error::chain(error));
        self.events.emit(FetchEvent::Warning(text));
    }
}
