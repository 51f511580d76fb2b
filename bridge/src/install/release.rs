//! Packages that are assets of releases.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use super::cache_key::{CacheEntry, CacheKey};
use super::cached_fetcher::{CacheSettings, CachedFetcher, Download, Fetched, PackageSpec};
use super::content::Kind;
use super::layout::{ExecutableNames, locate};
use super::package_cache::CachedPackage;
use super::progress::Progress;
use super::unpack::{DownloadedFile, MAX_BYTES};
use super::verify::{check_transport, expected_digest};
use super::{ArchiveError, FetchEvent, FetchEvents, InstallError, PackageSource, VerifiedPackage};
use super::{asset_names, checksum_file, run_blocking};
use crate::fs::{FileError, ScratchFolder, create_private_folders};
use crate::plugin::{GithubReleaseSource, Platform, PluginNames, Sha256Digest};
use crate::source::{Asset, Github, Release, Repository};

/// Value of `source.version` that selects the newest release.
const LATEST: &str = "latest";

/// Source of packages that are assets of releases on GitHub, with a cache. A cached tag needs no network.
#[derive(Clone, Debug)]
pub struct GithubReleases {
    fetcher: CachedFetcher,
}

impl GithubReleases {
    /// Creates the source.
    pub fn new(settings: CacheSettings) -> Self {
        Self { fetcher: CachedFetcher::new(settings) }
    }

    /// Returns the digest of the download whose package is in the cache for the tag of a source; `None` if it is not
    /// there. Neither reads the files of the package nor verifies them.
    ///
    /// # Errors
    /// [`InstallError`].
    pub async fn find_cached(
        &self,
        names: PluginNames<'_>,
        source: &GithubReleaseSource,
    ) -> Result<Option<Sha256Digest>, InstallError> {
        self.known_digest(names, source).await
    }

    /// Asks the server for the size of the asset that [`PackageSource::resolve`] downloads for the tag of a source, in bytes.
    ///
    /// # Errors
    /// [`InstallError`] if the server cannot be reached, or if the release has no asset for the platform.
    pub async fn download_size(
        &self,
        names: PluginNames<'_>,
        source: &GithubReleaseSource,
    ) -> Result<u64, InstallError> {
        check_transport(source.unprotected_address())?;
        let executables = ExecutableNames::new(names).or_only_program();
        let resolution = self.resolution(names, &executables, source, &())?;
        let release = resolution.github()?.release(Some(&source.tag)).await?;
        Ok(resolution.find_asset(&release)?.size)
    }

    fn resolution<'a>(
        &'a self,
        names: PluginNames<'a>,
        executables: &'a ExecutableNames,
        source: &'a GithubReleaseSource,
        events: &'a dyn FetchEvents,
    ) -> Result<Resolution<'a>, InstallError> {
        let platform = source.platform.or(Platform::current()).ok_or(InstallError::NoPlatform)?;
        let expected_digest = expected_digest(source.checksum.as_ref(), Some(platform))?;
        let spec = PackageSpec { names, executables, expected_digest, subdir: Path::new(""), platform: Some(platform) };
        let repository = Repository::of(source)?;
        Ok(Resolution { fetcher: &self.fetcher, source, repository, platform, spec, events })
    }
}

#[async_trait]
impl PackageSource for GithubReleases {
    type Declared = GithubReleaseSource;

    async fn known_digest(
        &self,
        names: PluginNames<'_>,
        source: &GithubReleaseSource,
    ) -> Result<Option<Sha256Digest>, InstallError> {
        let executables = ExecutableNames::new(names).or_only_program();
        let resolution = self.resolution(names, &executables, source, &())?;
        let is_latest = source.tag == LATEST;
        let key = if is_latest { resolution.latest_key() } else { resolution.key(&source.tag) };
        let cache = self.fetcher.cache.clone();
        let entry = run_blocking(move || cache.find_entry(&key)).await?;
        Ok(entry.and_then(|entry| entry.download_digest))
    }

    async fn resolve(
        &self,
        names: PluginNames<'_>,
        source: &GithubReleaseSource,
        events: &dyn FetchEvents,
    ) -> Result<VerifiedPackage, InstallError> {
        check_transport(source.unprotected_address())?;
        let executables = ExecutableNames::new(names).or_only_program();
        let resolution = self.resolution(names, &executables, source, events)?;
        let cached =
            if source.tag == LATEST { resolution.resolve_latest().await? } else { resolution.resolve_tag().await? };
        self.fetcher.package(resolution.spec, source.version(), cached, events).await
    }
}

/// Resolution of one declared source.
struct Resolution<'a> {
    fetcher: &'a CachedFetcher,
    source: &'a GithubReleaseSource,
    repository: Repository,
    platform: Platform,
    spec: PackageSpec<'a>,
    events: &'a dyn FetchEvents,
}

impl Resolution<'_> {
    async fn resolve_tag(&self) -> Result<(CacheEntry, CachedPackage), InstallError> {
        let tag = &self.source.tag;
        let fetch = async |scratch: &Arc<ScratchFolder>| {
            let github = self.github()?;
            let release = github.release(Some(tag)).await?;
            self.fetch(&github, &release, scratch).await
        };
        self.fetcher.find_or_fetch(&self.key(tag), self.spec, self.events, fetch).await
    }

    /// Resolves the newest release, or the last known one if the server cannot be reached.
    async fn resolve_latest(&self) -> Result<(CacheEntry, CachedPackage), InstallError> {
        let mutable_key = self.latest_key();
        let github = self.github()?;
        let release = match github.release(None).await {
            Ok(release) => release,
            Err(error) if error.is_unreachable() => {
                let Some((entry, cached)) = self.fetcher.find(&mutable_key, self.spec).await? else {
                    return Err(error.into());
                };
                let text = format!("{error}; {}, the last known latest release, is used", entry.revision);
                self.events.emit(FetchEvent::Warning(text));
                return Ok((entry, cached));
            }
            Err(error) => return Err(error.into()),
        };
        let fetch = async |scratch: &Arc<ScratchFolder>| self.fetch(&github, &release, scratch).await;
        let (entry, cached) =
            self.fetcher.find_or_fetch(&self.key(&release.tag), self.spec, self.events, fetch).await?;
        self.fetcher.set_latest(&mutable_key, &entry)?;
        Ok((entry, cached))
    }

    fn github(&self) -> Result<Github, InstallError> {
        Ok(Github::new(self.repository.clone(), self.source.token.as_ref())?)
    }

    fn latest_key(&self) -> CacheKey {
        self.key_of("latest github-release", LATEST)
    }

    fn key(&self, tag: &str) -> CacheKey {
        self.key_of("github-release", tag)
    }

    fn key_of(&self, kind: &str, tag: &str) -> CacheKey {
        let names = self.asset_names(tag);
        let Repository { api, name } = &self.repository;
        CacheKey::new([kind, api, name, tag].into_iter().chain(names.iter().map(String::as_str)))
    }

    /// Returns the accepted names of the asset: the declared one, or else Pulumi's names for the package and the
    /// plugin.
    fn asset_names(&self, tag: &str) -> Vec<String> {
        let version = version_of(tag);
        let Platform { os, arch } = self.platform;
        if let Some(pattern) = &self.source.asset {
            let name = pattern.replace("{version}", version).replace("{os}", os.as_str());
            return vec![name.replace("{arch}", arch.as_str())];
        }
        let ExecutableNames { of_package, of_plugin, .. } = self.spec.executables;
        let asset = |executable: &str| format!("{executable}-v{version}-{}-{}.tar.gz", os.as_str(), arch.as_str());
        let mut names = vec![asset(of_package)];
        let of_plugin = asset(of_plugin);
        if names[0] != of_plugin {
            names.push(of_plugin);
        }
        names
    }

    fn find_asset<'r>(&self, release: &'r Release) -> Result<&'r Asset, InstallError> {
        let names = self.asset_names(&release.tag);
        let named = || names.iter().filter_map(|name| release.assets.iter().find(|asset| asset.name == *name));
        let found = named().find(|asset| asset.incomplete_state().is_none()).or_else(|| named().next());
        let found = match found {
            None if self.source.asset.is_none() => self.find_asset_by_words(release)?,
            found => found,
        };
        let asset = found.ok_or_else(|| InstallError::NoAsset {
            release: format!("{} {}", self.repository.name, release.tag),
            expected: names.join(" or "),
            available: release.assets.iter().map(|asset| asset.name.clone()).collect(),
        })?;
        if let Some(state) = asset.incomplete_state() {
            return Err(InstallError::NotUploaded { asset: asset.name.clone(), state: state.to_owned() });
        }
        if asset.size > MAX_BYTES {
            let source = ArchiveError::TooLarge("it has more than 8 GiB");
            return Err(InstallError::Archive { archive: asset.name.clone(), source });
        }
        Ok(asset)
    }

    /// Returns the only asset that fits the platform by the words in its name; `None` if there is none.
    fn find_asset_by_words<'r>(&self, release: &'r Release) -> Result<Option<&'r Asset>, InstallError> {
        let PluginNames { plugin, package } = self.spec.names;
        let names = release.assets.iter().map(|asset| asset.name.as_str());
        let found = asset_names::fitting(names, self.platform, &[plugin.as_str(), package.as_str()]);
        match found[..] {
            [] => Ok(None),
            [only] => Ok(release.assets.iter().find(|asset| asset.name == only)),
            [..] => Err(InstallError::SeveralAssets {
                release: format!("{} {}", self.repository.name, release.tag),
                platform: self.platform,
                available: found.into_iter().map(str::to_owned).collect(),
            }),
        }
    }

    async fn fetch(
        &self,
        github: &Github,
        release: &Release,
        scratch: &Arc<ScratchFolder>,
    ) -> Result<Fetched, InstallError> {
        let asset = self.find_asset(release)?;
        if self.source.requires_digest && self.spec.expected_digest.is_none() && asset.digest().is_none() {
            return Err(InstallError::NoDigest { asset: asset.name.clone() });
        }
        let path = scratch.path().join("download");
        let download_digest = self.download(github, asset, &path).await?;
        let (folder, name) = (scratch.path().join("package"), asset.name.clone());
        let (names, platform) = (self.spec.executables.clone(), Some(self.platform));
        let (declared, published) = (self.spec.expected_digest, asset.digest());
        let (made, scratch) = (folder.clone(), Arc::clone(scratch));
        let host = github.host();
        let unpacked = run_blocking(move || {
            // The caller may be cancelled: the folder must exist until the blocking work ends.
            let _scratch = scratch;
            let package = DownloadedFile { name: &name, path: &path };
            // First: the digest of a page of a proxy is nothing that an author has changed.
            package.check_content(platform)?;
            if let Some(expected) = declared.or(published).filter(|expected| *expected != download_digest) {
                // The declared digest may be that of the executable, which is computed without unpacking.
                let found = download_digest;
                if declared.is_none() {
                    return Err(InstallError::PublishedMismatch { asset: name, host, published: expected, found });
                }
                if package.program_digest(&names)? != Some(expected) {
                    return Err(InstallError::ChecksumMismatch {
                        expected,
                        found,
                        published,
                        differing: Box::default(),
                    });
                }
            }
            create_private_folders(&folder)?;
            let (kind, files) = package.unpack(&folder, &names.of_package)?;
            locate(&names, &folder).map_err(|error| match error {
                InstallError::NoPlugin { executable, .. } => {
                    InstallError::NotInArchive { archive: name, executable, files: files_in(&folder) }
                }
                other => other,
            })?;
            Ok(((kind != Kind::Plain).then_some(path), files))
        })
        .await;
        let (archive, files) = match unpacked {
            Err(InstallError::ChecksumMismatch { expected, found, published: None, .. }) => {
                let published = find_published(github, release, &asset.name).await;
                return Err(InstallError::ChecksumMismatch { expected, found, published, differing: Box::default() });
            }
            unpacked => unpacked?,
        };
        let download = Some(Download { digest: download_digest, published, archive });
        let (revision, name) = (release.tag.clone(), asset.name.clone());
        Ok(Fetched { revision, name, download, folder: made, files: Some(files) })
    }

    /// Downloads an asset to a file and returns the digest of its bytes.
    async fn download(&self, github: &Github, asset: &Asset, path: &Path) -> Result<Sha256Digest, InstallError> {
        let mut progress = Progress::start(self.events, &asset.name, Some(asset.size));
        let mut download = None;
        let sink = |bytes: &[u8]| {
            if bytes.is_empty() {
                let file = File::create(path).map_err(FileError::of("create", path))?;
                download = Some((file, Sha256::new()));
                progress.restart();
                return Ok(());
            }
            if let Some((file, hash)) = &mut download {
                file.write_all(bytes).map_err(FileError::of("write", path))?;
                hash.update(bytes);
            }
            progress.advance(bytes.len() as u64);
            Ok(())
        };
        github.download(asset, sink).await?;
        progress.done();
        let hash = download.map_or_else(Sha256::new, |(_, hash)| hash);
        Ok(Sha256Digest::finish(hash))
    }
}

/// Returns the digest of an asset in a checksum file of its release; `None` if there is none, or if it cannot be read.
async fn find_published(github: &Github, release: &Release, asset: &str) -> Option<Sha256Digest> {
    let file = checksum_file::find(release, asset)?;
    let mut text = Vec::new();
    let sink = |bytes: &[u8]| {
        // An empty slice marks the start of an attempt.
        if bytes.is_empty() {
            text.clear();
        }
        text.extend_from_slice(bytes);
        Ok(())
    };
    github.download(file, sink).await.ok()?;
    checksum_file::digest_of(asset, &String::from_utf8_lossy(&text))
}

/// Returns the paths of the files below a folder, sorted, for a message. Leaves out what cannot be read.
fn files_in(root: &Path) -> Vec<String> {
    let (mut folders, mut files) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for member in fs::read_dir(folder).into_iter().flatten().flatten() {
            match member.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(member.path()),
                _ => files.extend(member.path().strip_prefix(root).map(|path| path.display().to_string())),
            }
        }
    }
    files.sort();
    files
}

/// Returns the version in a tag: `1.2.3` for `v1.2.3` and for `plugins/reef/v1.2.3`.
fn version_of(tag: &str) -> &str {
    let last = tag.rsplit('/').next().unwrap_or(tag);
    last.strip_prefix('v').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_extracted_from_a_tag() {
        for (tag, version) in [("v1.2.3", "1.2.3"), ("1.2.3", "1.2.3"), ("sdk/v1.2.3", "1.2.3"), ("vanilla", "vanilla")]
        {
            assert_eq!(version_of(tag), version);
        }
    }
}
