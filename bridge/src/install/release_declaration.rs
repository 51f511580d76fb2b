//! Declared release of a plugin: which one it is, and its package.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::asset_package::DownloadedAsset;
use super::cache_key::CacheKey;
use super::cached_fetcher::{CacheSettings, CachedFetcher, Fetched, PackageSpec, RecordedDigest};
use super::download_file::DownloadFile;
use super::layout::ExecutableNames;
use super::release_assets::{AssetChoice, check_asset};
use super::release_choice::ReleaseChoice;
use super::verify::{check_transport, expected_digest};
use super::{FetchEvent, FetchEvents, InstallError, VerifiedPackage};
use crate::fs::ScratchFolder;
use crate::plugin::{
    DigestOrigin, GithubReleaseSource, Platform, PluginNames, PluginVersion, ResolvedAsset, ResolvedRelease,
    Sha256Digest, WantedVersion,
};
use crate::source::{Asset, Credential, FetchError, Github, Release, Repository};

/// Releases by the address of the API, the repository and the tag: their ids are needed for a download.
pub(super) type DescribedReleases = Mutex<BTreeMap<(String, String, String), Release>>;

/// Declared source of a plugin.
pub(super) struct ReleaseDeclaration<'a> {
    pub(super) fetcher: &'a CachedFetcher,
    /// Releases that servers have described in this run.
    pub(super) described: &'a DescribedReleases,
    pub(super) source: &'a GithubReleaseSource,
    pub(super) names: PluginNames<'a>,
    pub(super) executables: &'a ExecutableNames,
    pub(super) repository: Repository,
    pub(super) platform: Platform,
    pub(super) events: &'a dyn FetchEvents,
}

impl ReleaseDeclaration<'_> {
    pub(super) fn assets(&self) -> AssetChoice<'_> {
        let Self { source, names, executables, repository, .. } = self;
        AssetChoice { source, names: *names, executables, repository: &repository.name }
    }

    pub(super) async fn resolve(&self) -> Result<ResolvedRelease, InstallError> {
        check_transport(self.source.unprotected_address())?;
        // A declaration that cannot be satisfied asks nobody.
        expected_digest(self.source.checksum.as_ref(), Some(self.platform))?;
        if let Some(found) = self.resolve_copy().await? {
            return Ok(found);
        }
        loop {
            match self.resolve_with(&self.github().await?).await {
                Err(error) if self.leaves_credential_out(&error) => {}
                resolved => return resolved,
            }
        }
    }

    async fn resolve_with(&self, github: &Github) -> Result<ResolvedRelease, InstallError> {
        let release = match &self.source.version {
            WantedVersion::Named(tag) => self.release(github, tag).await?,
            WantedVersion::Latest => self.choice().latest(github).await?,
            WantedVersion::Range(range) => self.choice().newest_in(github, range).await?,
        };
        let assets = self.assets().resolve(github, &release, self.platform).await?;
        let package = self.assets().package();
        let (tag, released) = (release.tag.clone(), release.published_at.clone());
        let resolved = ResolvedRelease { tag, released, package, signer: None, assets };
        self.lock_described().insert(self.described_key(&release.tag), release);
        Ok(resolved)
    }

    pub(super) fn choice(&self) -> ReleaseChoice<'_> {
        ReleaseChoice {
            assets: self.assets(),
            minimum_age: self.source.age_rule(),
            needs_time: self.source.policy_age.is_some_and(|age| !age.allows_undated),
            platform: self.platform,
            now: SystemTime::now(),
            events: self.events,
        }
    }

    /// Returns the release of a tag, as the server has described it in this run.
    async fn release(&self, github: &Github, tag: &str) -> Result<Release, InstallError> {
        let key = self.described_key(tag);
        let known = self.lock_described().get(&key).cloned();
        if let Some(release) = known {
            return Ok(release);
        }
        let release = github.release(Some(tag)).await?;
        self.lock_described().insert(key, release.clone());
        Ok(release)
    }

    fn lock_described(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, String, String), Release>> {
        self.described.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn described_key(&self, tag: &str) -> (String, String, String) {
        (self.repository.api.clone(), self.repository.name.clone(), tag.to_owned())
    }

    /// Returns a client of the API, with the declared token, else with a credential that is found around the command.
    async fn github(&self) -> Result<Github, InstallError> {
        let CacheSettings { credentials, .. } = &self.fetcher.settings;
        self.fetcher.settings.check_online()?;
        let credential = match &self.source.token {
            Some(token) => Some(Credential { name: "source.token".to_owned(), token: token.clone() }),
            None if self.repository.may_receive_token() => {
                credentials.find(&self.repository.authority(), &self.repository.name).await
            }
            None => None,
        };
        Ok(Github::new(self.repository.clone(), credential.as_ref())?)
    }

    /// Leaves a credential out that was found around the command, if an error says that the server refuses it, and tells so. Returns
    /// whether the request is to be repeated.
    fn leaves_credential_out(&self, error: &InstallError) -> bool {
        let InstallError::Fetch(FetchError::AccessDenied { credential: Some(name), host, status, .. }) = error else {
            return false;
        };
        let CacheSettings { credentials, .. } = &self.fetcher.settings;
        if self.source.token.is_some() {
            return false;
        }
        // A token that is valid may not be for this repository; one that is not known is for none.
        let repository = (*status == 403).then_some(self.repository.name.as_str());
        if credentials.refuse(&self.repository.authority(), repository, name) {
            let text = format!("{host} refuses the token of {name} ({status}): it is left out");
            self.events.emit(FetchEvent::Warning(text));
        }
        // Another plugin may have left it out meanwhile.
        true
    }

    /// Returns the key of what is wanted: of the tag, if it has a name.
    pub(super) fn wanted_key(&self) -> CacheKey {
        match &self.source.version {
            WantedVersion::Named(tag) => self.tag_key(tag),
            WantedVersion::Latest | WantedVersion::Range(_) => {
                self.key_of("latest github-release", self.source.version.as_str())
            }
        }
    }

    fn tag_key(&self, tag: &str) -> CacheKey {
        self.key_of("github-release", tag)
    }

    fn key_of(&self, kind: &str, tag: &str) -> CacheKey {
        let names = self.assets().names(tag, self.platform);
        let Repository { api, name, .. } = &self.repository;
        CacheKey::new([kind, api, name, tag].into_iter().chain(names.iter().map(String::as_str)))
    }

    /// Returns the version of a release of the declared source.
    fn version(&self, tag: &str) -> Option<PluginVersion> {
        match &self.source.version {
            WantedVersion::Range(range) => range.version_of(tag),
            WantedVersion::Named(_) | WantedVersion::Latest => tag.parse().ok(),
        }
    }

    /// Returns a recorded release with the asset of the platform, as the server describes it now.
    pub(super) fn complete(
        &self,
        recorded: ResolvedRelease,
        found: ResolvedRelease,
    ) -> Result<ResolvedRelease, InstallError> {
        let mut complete = recorded;
        for (platform, asset) in &found.assets {
            let known = complete.assets.get(platform).and_then(|known| self.recorded_digest(known, &complete, true));
            if let (Some(known), Some((digest, _))) = (known, asset.digest) {
                RecordedDigest { platform: Some(*platform), ..known }.check(digest)?;
            }
        }
        let own = found.assets.into_iter().filter(|(platform, _)| *platform == self.platform);
        complete.assets.extend(own);
        Ok(complete)
    }

    pub(super) fn recorded_digest(
        &self,
        asset: &ResolvedAsset,
        release: &ResolvedRelease,
        is_locked: bool,
    ) -> Option<RecordedDigest> {
        let (digest, origin) = asset.digest?;
        Some(RecordedDigest {
            item: asset.name.clone(),
            revision: release.tag.clone(),
            platform: Some(self.platform),
            digest,
            origin,
            released: release.released.clone(),
            is_locked,
            host: self.repository.host(),
        })
    }

    pub(super) async fn fetch(
        &self,
        mut release: ResolvedRelease,
        is_locked: bool,
    ) -> Result<(VerifiedPackage, ResolvedRelease), InstallError> {
        check_transport(self.source.unprotected_address())?;
        let fetcher = self.fetcher;
        let known = release.assets.get(&self.platform);
        let recorded = known.and_then(|asset| self.recorded_digest(asset, &release, is_locked));
        let spec = PackageSpec {
            names: self.names,
            executables: self.executables,
            expected_digest: expected_digest(self.source.checksum.as_ref(), Some(self.platform))?,
            recorded: recorded.as_ref(),
            subdir: Path::new(""),
            platform: Some(self.platform),
            build: self.source.build.as_ref(),
        };
        let mut asset = known.cloned();
        let fetch = async |scratch: &Arc<ScratchFolder>| {
            if let Some(known) = &asset
                && let Some(fetched) = self.fetch_copy(&release.tag, known, spec, scratch).await?
            {
                return Ok(fetched);
            }
            loop {
                let github = self.github().await?;
                match self.fetch_asset(&github, &release.tag, asset.as_ref(), spec, scratch).await {
                    Err(error) if self.leaves_credential_out(&error) => {}
                    Err(error) => return Err(error),
                    Ok((fetched, found)) => {
                        asset.get_or_insert(found);
                        return Ok(fetched);
                    }
                }
            }
        };
        let (entry, cached) = fetcher.find_or_fetch(&self.tag_key(&release.tag), spec, self.events, fetch).await?;
        let version = self.version(&release.tag);
        if !matches!(self.source.version, WantedVersion::Named(_)) {
            // A cache that cannot be written, such as that of an image, keeps its entry.
            fetcher.set_latest(&self.wanted_key(), &entry).ok();
        }
        if let Some(mut asset) = asset {
            asset.digest = asset.digest.or(entry.download_digest.map(|digest| (digest, DigestOrigin::Fetched)));
            release.assets.insert(self.platform, asset);
        }
        let package = fetcher.package(spec, version, (entry, cached), self.events).await?;
        Ok((package, release))
    }

    /// Returns the asset of a tag as the server describes it: the resolved one, else that for the platform.
    async fn described_asset(
        &self,
        github: &Github,
        tag: &str,
        resolved: Option<&ResolvedAsset>,
    ) -> Result<Asset, InstallError> {
        let release = self.release(github, tag).await?;
        let Some(resolved) = resolved else { return Ok(self.assets().find(&release, self.platform)?.clone()) };
        let asset = release.assets.iter().find(|asset| asset.name == resolved.name);
        let asset = asset.ok_or_else(|| InstallError::NoAsset {
            release: format!("{} {tag}", self.repository.name),
            expected: resolved.name.clone(),
            available: release.assets.iter().map(|asset| asset.name.clone()).collect(),
        })?;
        check_asset(asset)?;
        Ok(asset.clone())
    }

    /// Fetches the asset of a tag: the resolved one, else that for the platform. Returns what is known of it then.
    async fn fetch_asset(
        &self,
        github: &Github,
        tag: &str,
        asset: Option<&ResolvedAsset>,
        spec: PackageSpec<'_>,
        scratch: &Arc<ScratchFolder>,
    ) -> Result<(Fetched, ResolvedAsset), InstallError> {
        let is_published =
            |asset: &ResolvedAsset| matches!(asset.digest, Some((_, DigestOrigin::Published | DigestOrigin::Signed)));
        if let Some(known) = asset
            && (!self.source.requires_digest || is_published(known))
            && let Some(fetched) = self.fetch_public(github, tag, known, spec, scratch).await?
        {
            return Ok((fetched, known.clone()));
        }
        let found = self.described_asset(github, tag, asset).await?;
        let fetched = self.fetch_described(github, tag, &found, spec, scratch).await?;
        let digest = found.digest().map(|digest| (digest, DigestOrigin::Published));
        Ok((fetched, ResolvedAsset { name: found.name, size: Some(found.size), digest }))
    }

    /// Fetches a resolved asset from its public address, without a request to the API; `None` if it has none.
    async fn fetch_public(
        &self,
        github: &Github,
        tag: &str,
        asset: &ResolvedAsset,
        spec: PackageSpec<'_>,
        scratch: &Arc<ScratchFolder>,
    ) -> Result<Option<Fetched>, InstallError> {
        if !github.has_public_addresses() {
            return Ok(None);
        }
        let ResolvedAsset { name, size, .. } = asset;
        let path = scratch.path().join("download");
        let mut download = DownloadFile::new(self.events, name, *size, &path);
        match github.download_public(tag, (name, *size), |bytes| download.write(bytes)).await {
            Ok(()) => {}
            Err(FetchError::Path(error)) => return Err(error.into()),
            // A page to log in, a firewall, or a server without public addresses: the API decides.
            Err(_) => return Ok(None),
        }
        let (tag, name, host, digest) = (tag.to_owned(), name.clone(), github.host(), download.finish());
        let downloaded = DownloadedAsset { tag, name, digest, published: None, host, path };
        downloaded.unpack(spec, scratch).await.map(Some)
    }

    /// Downloads a resolved asset of a tag to a file, from its public address, else from the API. Returns the digest of its bytes.
    pub(super) async fn download_asset(
        &self,
        tag: &str,
        asset: &ResolvedAsset,
        path: &Path,
    ) -> Result<Sha256Digest, InstallError> {
        loop {
            let github = self.github().await?;
            let mut download = DownloadFile::new(self.events, &asset.name, asset.size, path);
            let public = github.download_public(tag, (&asset.name, asset.size), |bytes| download.write(bytes)).await;
            match public {
                Ok(()) => return Ok(download.finish()),
                Err(FetchError::Path(error)) => return Err(error.into()),
                Err(_) => {}
            }
            let described = match self.described_asset(&github, tag, Some(asset)).await {
                Err(error) if self.leaves_credential_out(&error) => continue,
                described => described?,
            };
            let mut download = DownloadFile::new(self.events, &asset.name, Some(described.size), path);
            match github.download(&described, |bytes| download.write(bytes)).await.map_err(InstallError::from) {
                Ok(()) => return Ok(download.finish()),
                Err(error) if self.leaves_credential_out(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Fetches an asset from the API, which has described it.
    async fn fetch_described(
        &self,
        github: &Github,
        tag: &str,
        asset: &Asset,
        spec: PackageSpec<'_>,
        scratch: &Arc<ScratchFolder>,
    ) -> Result<Fetched, InstallError> {
        let published = asset.digest();
        // What is refused is not downloaded first.
        if let Some((recorded, published)) = spec.recorded.zip(published) {
            recorded.check(published)?;
        }
        let is_recorded = spec.recorded.is_some_and(|recorded| recorded.origin <= DigestOrigin::Published);
        let is_known = is_recorded || published.is_some() || spec.expected_digest.is_some();
        if self.source.requires_digest && !is_known {
            return Err(InstallError::NoDigest { asset: asset.name.clone() });
        }
        let path = scratch.path().join("download");
        let mut download = DownloadFile::new(self.events, &asset.name, Some(asset.size), &path);
        github.download(asset, |bytes| download.write(bytes)).await?;
        let (tag, name, host, digest) = (tag.to_owned(), asset.name.clone(), github.host(), download.finish());
        DownloadedAsset { tag, name, digest, published, host, path }.unpack(spec, scratch).await
    }
}
