//! Declared Terraform provider: which version it is, with signed digests for all platforms, and its archive.

use std::path::Path;
use std::sync::Arc;

use semver::Version;
use url::Url;

use super::cache_key::CacheKey;
use super::cached_fetcher::{CachedFetcher, Download, Fetched, PackageSpec, RecordedDigest};
use super::checksum_file::MAX_CHECKSUM_FILE;
use super::content::Kind;
use super::download_file::DownloadFile;
use super::layout::{ExecutableNames, Located, files_in, locate};
use super::signature::signer;
use super::unpack::DownloadedFile;
use super::verify::check_transport;
use super::{
    FetchEvent, FetchEvents, InstallError, SignatureError, TerraformError, TerraformProviderFolder, run_blocking,
};
use crate::fs::{ScratchFolder, create_private_folders};
use crate::plugin::{
    DigestOrigin, Platform, PluginNames, PluginVersion, ResolvedAsset, ResolvedRelease, Sha256Digest,
    TerraformProviderSource, WantedVersion, is_plain_text,
};
use crate::source::{FetchError, ProviderArchive, ProviderVersion, TerraformRegistry, registry_variable};

/// Declared Terraform provider.
pub(super) struct ProviderDeclaration<'a> {
    pub(super) fetcher: &'a CachedFetcher,
    pub(super) source: &'a TerraformProviderSource,
    pub(super) names: PluginNames<'a>,
    pub(super) executables: &'a ExecutableNames,
    pub(super) platform: Platform,
    pub(super) events: &'a dyn FetchEvents,
}

impl ProviderDeclaration<'_> {
    /// Returns the wanted version: the one of which there is a copy, else as the registry names it now.
    pub(super) async fn resolve(&self) -> Result<ResolvedRelease, InstallError> {
        match self.resolve_copy().await? {
            Some(found) => Ok(found),
            None => self.resolve_in_registry().await,
        }
    }

    async fn resolve_in_registry(&self) -> Result<ResolvedRelease, InstallError> {
        loop {
            match self.resolve_once().await {
                Err(error) if self.leaves_credential_out(&error) => {}
                resolved => return resolved.map_err(|error| self.explained(error)),
            }
        }
    }

    async fn resolve_once(&self) -> Result<ResolvedRelease, InstallError> {
        let registry = self.registry().await?;
        let version = self.choose(&registry).await?;
        Ok(self.describe(&registry, &version).await?.1)
    }

    /// Returns a recorded version with the digests of the platforms that it lacks.
    pub(super) async fn complete(&self, recorded: ResolvedRelease) -> Result<ResolvedRelease, InstallError> {
        self.check_version(&recorded.tag)?;
        let found = self.resolve_in_registry().await?;
        if let Some(known) = recorded.signer.as_ref().filter(|known| found.signer.as_ref() != Some(*known)) {
            let name = format!("{} of {}", recorded.tag, self.source.provider);
            return Err(TerraformError::OtherSigner { name, recorded: known.clone(), found: found.signer }.into());
        }
        for (platform, asset) in &recorded.assets {
            let again = found.assets.get(platform).and_then(|asset| asset.digest);
            if let (Some(known), Some((digest, _))) = (self.recorded_digest(*platform, asset, &recorded, true), again) {
                known.check(digest)?;
            }
        }
        let mut assets = recorded.assets;
        assets.extend(found.assets);
        Ok(ResolvedRelease { assets, signer: found.signer, ..recorded })
    }

    /// Returns the client of the registry, with the token of its host, if there is one.
    async fn registry(&self) -> Result<TerraformRegistry, InstallError> {
        let address = self.source.address();
        check_transport(Some(address.as_str()).filter(|address| is_plain_text(address)))?;
        self.fetcher.settings.check_online()?;
        let credential = self.fetcher.settings.credentials.of_registry(&self.authority());
        Ok(TerraformRegistry::discover(&address, credential.as_ref()).await?)
    }

    /// Returns the host that is asked, with its port unless that is the usual one.
    fn authority(&self) -> String {
        let Some(url) = self.source.registry_url.as_deref().and_then(|url| Url::parse(url).ok()) else {
            return self.source.provider.host().to_owned();
        };
        let host = url.host_str().unwrap_or_default();
        url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Leaves the token out that an error says is refused, and tells so. Returns whether the request is to be repeated.
    fn leaves_credential_out(&self, error: &InstallError) -> bool {
        let InstallError::Fetch(FetchError::AccessDenied { credential: Some(name), host, status, .. }) = error else {
            return false;
        };
        if self.fetcher.settings.credentials.refuse(&self.authority(), None, name) {
            let text = format!("{host} refuses the token of {name} ({status}): it is left out");
            self.events.emit(FetchEvent::Warning(text));
        }
        true
    }

    /// Returns an error with the name of the variable that would have a token.
    fn explained(&self, error: InstallError) -> InstallError {
        match error {
            InstallError::Fetch(
                error @ (FetchError::NotFound { credential: None, .. }
                | FetchError::AccessDenied { credential: None, .. }),
            ) => TerraformError::NotShown { error, variable: registry_variable(&self.authority()) }.into(),
            other => other,
        }
    }

    /// Returns whether the declaration accepts a version.
    pub(super) fn is_wanted(&self, version: &PluginVersion) -> bool {
        match &self.source.version {
            WantedVersion::Named(name) => name.parse::<PluginVersion>().is_ok_and(|named| named == *version),
            WantedVersion::Latest => version.as_semver().pre.is_empty(),
            WantedVersion::Range(range) => range.contains(version),
        }
    }

    /// Returns the highest version that is wanted and has an archive for the platform. What is passed over is told.
    async fn choose(&self, registry: &TerraformRegistry) -> Result<String, InstallError> {
        let versions = registry.versions(&self.source.provider).await?;
        let parsed = |found: ProviderVersion| Some((PluginVersion::from(Version::parse(&found.version).ok()?), found));
        let mut versions: Vec<(PluginVersion, ProviderVersion)> = versions.into_iter().filter_map(parsed).collect();
        versions.sort_by(|(first, _), (second, _)| second.cmp(first));
        let mut passed = 0;
        for (version, found) in versions.iter().filter(|(version, _)| self.is_wanted(version)) {
            if found.may_have(self.platform) {
                return Ok(version.to_string());
            }
            passed += 1;
            let (provider, platform) = (&self.source.provider, self.platform);
            let text = format!("{version} of {provider} is passed over: it has no archive for {platform}");
            self.events.emit(FetchEvent::Note(text));
        }
        let reason = match (passed, versions.first()) {
            (0, None) => "the registry names none".to_owned(),
            (0, Some((highest, _))) => format!("the highest version is {highest}"),
            (1, _) => format!("it has no archive for {}", self.platform),
            _ => format!("{passed} have no archive for {}", self.platform),
        };
        let (repository, wanted) = (self.source.provider.to_string(), self.source.version.to_string());
        Err(InstallError::NoRelease { repository, host: registry.host(), wanted, reason, passed_by: None })
    }

    /// Returns the archive of a version for the platform, and the digests of all platforms, which are verified: by the signature of one of the
    /// keys that the registry names, if it names any.
    async fn describe(
        &self,
        registry: &TerraformRegistry,
        version: &str,
    ) -> Result<(ProviderArchive, ResolvedRelease), InstallError> {
        let archive = self.archive(registry, version).await?;
        let provider = self.version_name(version);
        let other =
            |reason: String| TerraformError::OtherAnswer { host: registry.host(), provider: provider.clone(), reason };
        let invalid = |source| TerraformError::Signature { provider: provider.clone(), host: registry.host(), source };
        let item = format!("the checksums of {provider}");
        let sums = match &archive.sums {
            Some(address) => registry.read(address, &item).await?,
            None => Vec::new(),
        };
        if sums.len() as u64 > MAX_CHECKSUM_FILE {
            return Err(other("its checksum file is too large".to_owned()).into());
        }
        let signer = if archive.keys.is_empty() {
            None
        } else {
            let Some(address) = &archive.signature else { return Err(invalid(SignatureError::Missing).into()) };
            let signature = registry.read(address, &format!("the signature of {item}")).await?;
            let (content, keys) = (sums.clone(), archive.keys.clone());
            let signer = run_blocking(move || Ok(signer(&content, &signature, &keys))).await?;
            Some(signer.map_err(invalid)?)
        };
        let own = Sums::read(&sums).digest_of(&archive.filename);
        let own_digest = match (own, &archive.sums) {
            // A registry without such a file has the digest of this platform only.
            (_, None) if signer.is_none() => archive.digest,
            (Some(digest), _) => digest,
            (None, _) => return Err(other(format!("its checksum file has no line for {}", archive.filename)).into()),
        };
        if own_digest != archive.digest {
            let reason = format!("its checksum file has {own_digest}, and its answer {}", archive.digest);
            return Err(other(reason).into());
        }
        let origin = match (&signer, &archive.sums) {
            (Some(_), _) => DigestOrigin::Signed,
            (None, Some(_)) => DigestOrigin::Sums,
            (None, None) => DigestOrigin::Published,
        };
        let sums = Sums::read(&sums);
        let asset = |platform| {
            let name = self.source.provider.archive(version, platform);
            let digest = if platform == self.platform { own_digest } else { sums.digest_of(&name)? };
            Some((platform, ResolvedAsset { name, size: None, digest: Some((digest, origin)) }))
        };
        let assets = Platform::all().filter_map(asset).collect();
        let tag = version.to_owned();
        Ok((archive, ResolvedRelease { tag, released: None, package: None, signer, assets }))
    }

    /// Returns the archive of a version for the platform, which has the name of the one that was asked for.
    async fn archive(&self, registry: &TerraformRegistry, version: &str) -> Result<ProviderArchive, InstallError> {
        let archive = registry.archive(&self.source.provider, version, self.platform).await?;
        let expected = self.source.provider.archive(version, self.platform);
        if archive.filename != expected {
            let (host, provider) = (registry.host(), self.version_name(version));
            let reason = format!("its archive is {:?}, not {expected:?}", archive.filename);
            return Err(TerraformError::OtherAnswer { host, provider, reason }.into());
        }
        Ok(archive)
    }

    fn version_name(&self, version: &str) -> String {
        format!("version {version} of {}", self.source.provider)
    }

    /// Returns an error if a recorded version is not one of a registry: it becomes a part of paths.
    pub(super) fn check_version(&self, version: &str) -> Result<(), InstallError> {
        match Version::parse(version) {
            Ok(_) => Ok(()),
            Err(_) => {
                let (version, provider) = (version.to_owned(), self.source.provider.to_string());
                Err(TerraformError::Version { version, provider }.into())
            }
        }
    }

    /// Returns the key of what is wanted: of the version, if it is written out.
    pub(super) fn wanted_key(&self) -> CacheKey {
        match &self.source.version {
            WantedVersion::Named(version) if Version::parse(version).is_ok() => self.version_key(version),
            wanted => self.key_of("latest terraform", wanted.as_str()),
        }
    }

    fn version_key(&self, version: &str) -> CacheKey {
        self.key_of("terraform", version)
    }

    fn key_of(&self, kind: &str, version: &str) -> CacheKey {
        let (provider, platform) = (self.source.provider.to_string(), self.platform.to_string());
        CacheKey::new([kind, provider.as_str(), version, platform.as_str(), self.source.address().as_str()])
    }

    pub(super) fn recorded_digest(
        &self,
        platform: Platform,
        asset: &ResolvedAsset,
        release: &ResolvedRelease,
        is_locked: bool,
    ) -> Option<RecordedDigest> {
        let (digest, origin) = asset.digest?;
        Some(RecordedDigest {
            item: asset.name.clone(),
            revision: release.tag.clone(),
            platform: Some(platform),
            digest,
            origin,
            released: None,
            is_locked,
            host: self.source.provider.host().to_owned(),
        })
    }

    /// Finds or fetches a version, and verifies it.
    pub(super) async fn fetch(
        &self,
        mut release: ResolvedRelease,
        is_locked: bool,
    ) -> Result<(TerraformProviderFolder, ResolvedRelease), InstallError> {
        self.check_version(&release.tag)?;
        let known = release.assets.get(&self.platform);
        let recorded = known.and_then(|asset| self.recorded_digest(self.platform, asset, &release, is_locked));
        let spec = PackageSpec {
            names: self.names,
            executables: self.executables,
            expected_digest: None,
            recorded: recorded.as_ref(),
            subdir: Path::new(""),
            platform: Some(self.platform),
            build: None,
        };
        let version = release.tag.clone();
        let fetch = async |scratch: &Arc<ScratchFolder>| {
            if let Some(recorded) = &recorded
                && let Some(fetched) = self.fetch_copy(&version, recorded, scratch).await?
            {
                return Ok(fetched);
            }
            let (name, path) = (self.source.provider.archive(&version, self.platform), scratch.path().join("download"));
            let digest = self.download(&version, recorded.as_ref(), &path).await?;
            let archive = FetchedArchive { name, digest, published: Some(digest), version: &version };
            self.unpack(archive, scratch).await
        };
        let key = self.version_key(&version);
        let (entry, cached) = self.fetcher.find_or_fetch(&key, spec, self.events, fetch).await?;
        if self.wanted_key() != key {
            // A cache that cannot be written, such as that of an image, keeps its entry.
            self.fetcher.set_latest(&self.wanted_key(), &entry).ok();
        }
        let downloaded = || ResolvedAsset {
            name: self.source.provider.archive(&version, self.platform),
            size: None,
            digest: entry.download_digest.map(|digest| (digest, DigestOrigin::Fetched)),
        };
        release.assets.entry(self.platform).or_insert_with(downloaded);
        let (folder, platform) = (cached.folder, self.platform);
        let program = match locate(self.executables, &folder)? {
            Located::Executable(program) => program,
            // A provider has none: `locate` looks for its program only.
            Located::Manifest => {
                return Err(InstallError::NoPlugin { folder, executable: self.executables.of_plugin.clone() });
            }
        };
        let folder = TerraformProviderFolder {
            provider: self.source.provider.clone(),
            version,
            platform,
            digest: entry.download_digest,
            folder,
            program,
            _package_use: cached.package_use,
        };
        Ok((folder, release))
    }

    /// Downloads the archive of a version to a file, and verifies it. Without a recorded digest, its signature is verified first. Returns the
    /// digest of its bytes.
    pub(super) async fn download(
        &self,
        version: &str,
        recorded: Option<&RecordedDigest>,
        to: &Path,
    ) -> Result<Sha256Digest, InstallError> {
        loop {
            let registry = self.registry().await?;
            match self.download_from(&registry, version, recorded, to).await {
                Err(error) if self.leaves_credential_out(&error) => {}
                downloaded => return downloaded.map_err(|error| self.explained(error)),
            }
        }
    }

    async fn download_from(
        &self,
        registry: &TerraformRegistry,
        version: &str,
        recorded: Option<&RecordedDigest>,
        to: &Path,
    ) -> Result<Sha256Digest, InstallError> {
        let archive = match recorded {
            Some(recorded) => {
                let archive = self.archive(registry, version).await?;
                // What is refused is not downloaded first.
                recorded.check(archive.digest)?;
                archive
            }
            None => self.describe(registry, version).await?.0,
        };
        let mut download = DownloadFile::new(self.events, &archive.filename, None, to);
        registry.download(&archive, |bytes| download.write(bytes)).await?;
        let (digest, published) = (download.finish(), archive.digest);
        if digest != published {
            let (path, name, platform) = (to.to_owned(), archive.filename.clone(), Some(self.platform));
            // First: the digest of a page of a proxy is nothing that an author has changed.
            run_blocking(move || DownloadedFile { name: &name, path: &path }.check_content(platform)).await?;
            let (asset, host) = (archive.filename, registry.host());
            return Err(InstallError::PublishedMismatch { asset, host, published, found: digest });
        }
        Ok(digest)
    }

    /// Unpacks the archive that is the file `download` of the scratch folder.
    pub(super) async fn unpack(
        &self,
        archive: FetchedArchive<'_>,
        scratch: &Arc<ScratchFolder>,
    ) -> Result<Fetched, InstallError> {
        let FetchedArchive { name, digest, published, version } = archive;
        let (path, folder) = (scratch.path().join("download"), scratch.path().join("package"));
        let (made, scratch, fetched_name) = (folder.clone(), Arc::clone(scratch), name.clone());
        let (executables, platform) = (self.executables.clone(), Some(self.platform));
        let (archive, files) = run_blocking(move || {
            // The caller may be cancelled: the folder must exist until the blocking work ends.
            let _scratch = scratch;
            let package = DownloadedFile { name: &name, path: &path };
            package.check_content(platform)?;
            create_private_folders(&folder)?;
            let (kind, files) = package.unpack(&folder, &executables.of_package)?;
            locate(&executables, &folder).map_err(|error| match error {
                InstallError::NoPlugin { executable, .. } => {
                    TerraformError::NoProgram { archive: name.clone(), executable, files: files_in(&folder) }.into()
                }
                other => other,
            })?;
            Ok(((kind != Kind::Plain).then_some(path), files))
        })
        .await?;
        let download = Some(Download { digest, published, archive });
        Ok(Fetched { revision: version.to_owned(), name: fetched_name, download, folder: made, files: Some(files) })
    }
}

/// Archive that was fetched and verified.
pub(super) struct FetchedArchive<'a> {
    /// Name of the file.
    pub(super) name: String,
    /// Digest of its bytes.
    pub(super) digest: Sha256Digest,
    /// Digest that its registry publishes, if that was asked.
    pub(super) published: Option<Sha256Digest>,
    /// Version of the provider.
    pub(super) version: &'a str,
}

/// Lines of a checksum file: a digest and the name of a file each.
struct Sums<'t> {
    lines: Vec<(Sha256Digest, &'t str)>,
}

impl<'t> Sums<'t> {
    fn read(text: &'t [u8]) -> Self {
        let line = |line: &'t str| {
            let mut words = line.split_ascii_whitespace();
            let (digest, name, rest) = (words.next()?, words.next()?, words.next());
            let digest = digest.parse().ok().filter(|_| rest.is_none())?;
            Some((digest, name.strip_prefix('*').unwrap_or(name)))
        };
        let text = std::str::from_utf8(text).unwrap_or_default();
        Self { lines: text.lines().filter_map(line).collect() }
    }

    /// Returns the digest of a file; `None` if no line has it, or if several lines differ.
    fn digest_of(&self, name: &str) -> Option<Sha256Digest> {
        let mut found = self.lines.iter().filter(|(_, known)| *known == name).map(|(digest, _)| *digest);
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_that_of_the_only_line_with_the_name() {
        let (one, two) = ("1".repeat(64), "2".repeat(64));
        for (text, expected) in [
            (format!("{two}  other.zip\n{one}  reef.zip\n"), Some(&one)),
            (format!("{one} *reef.zip\r\n"), Some(&one)),
            (format!("{one}  reef.zip\n{one}  reef.zip\n"), Some(&one)),
            (format!("{one}  reef.zip\n{two}  reef.zip\n"), None),
            (format!("{one}\n"), None),
            (format!("{one}  a reef.zip\n"), None),
            (format!("{one}  reef.zip x\n"), None),
            ("x  reef.zip\n".to_owned(), None),
            (String::new(), None),
        ] {
            let found = Sums::read(text.as_bytes()).digest_of("reef.zip").map(Sha256Digest::to_hex);
            assert_eq!(found.as_ref(), expected, "{text}");
        }
        assert!(Sums::read(b"\xff\xfe").lines.is_empty());
    }
}
