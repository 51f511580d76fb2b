//! Packages that are assets of a release.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use super::blocking::blocking;
use super::fetched::{Cache, CacheSettings, Fetched, Wanted};
use super::layout::{executables, locate};
use super::progress::Progress;
use super::store::{Key, Record, Stored};
use super::unpack::{MOST_BYTES, Package};
use super::verify::expected;
use super::{ArchiveError, FetchEvent, FetchEvents, InstallError, PackageSource, VerifiedPackage};
use crate::fs::{PathError, Scratch};
use crate::plugin::{GithubReleaseSource, Platform, PluginConfig, PluginSource, Sha256Digest};
use crate::source::{Asset, Github, Release, Repository};

/// The word for the newest release.
const LATEST: &str = "latest";

/// Packages that are assets of releases on GitHub, kept in a cache. A tag that is in the cache needs no network.
#[derive(Clone, Debug)]
pub struct GithubReleases {
    cache: Cache,
}

impl GithubReleases {
    /// Packages of releases.
    pub fn new(settings: CacheSettings) -> Self {
        Self { cache: Cache::new(settings) }
    }
}

#[async_trait]
impl PackageSource for GithubReleases {
    async fn resolve(&self, plugin: &PluginConfig, events: &dyn FetchEvents) -> Result<VerifiedPackage, InstallError> {
        let PluginSource::GithubRelease(source) = &plugin.source else {
            return Err(InstallError::Unsupported { kind: plugin.source.kind() });
        };
        let platform = source.platform.or(Platform::current()).ok_or(InstallError::NoPlatform)?;
        let digest = expected(source.checksum.as_ref(), Some(platform))?;
        let wanted = Wanted { plugin, digest, subdir: Path::new("") };
        let repository = Repository::of(source)?;
        let declared = Declared { cache: &self.cache, source, repository, platform, wanted, events };
        let stored = if source.version == LATEST { declared.latest().await? } else { declared.tagged().await? };
        self.cache.package(wanted, stored).await
    }
}

/// One declaration on its way to a package.
struct Declared<'a> {
    cache: &'a Cache,
    source: &'a GithubReleaseSource,
    repository: Repository,
    platform: Platform,
    wanted: Wanted<'a>,
    events: &'a dyn FetchEvents,
}

impl Declared<'_> {
    async fn tagged(&self) -> Result<(Record, Stored), InstallError> {
        let tag = &self.source.version;
        let fetch = async |scratch: &Arc<Scratch>| {
            let github = self.github()?;
            let release = github.release(Some(tag)).await?;
            self.fetch(&github, &release, scratch).await
        };
        self.cache.obtain(&self.key(tag), self.wanted, self.events, fetch).await
    }

    /// The newest release; where nobody can be asked which one that is, the one that it was last time.
    async fn latest(&self) -> Result<(Record, Stored), InstallError> {
        let moving = self.key_of("latest github-release", LATEST);
        let github = self.github()?;
        let release = match github.release(None).await {
            Ok(release) => release,
            Err(error) if error.is_unreachable() => {
                let Some((record, stored)) = self.cache.find(&moving, self.wanted).await? else {
                    return Err(error.into());
                };
                let text =
                    format!("{error}; {}, the latest release when that was last known, is used", record.revision);
                self.events.emit(FetchEvent::Warning(text));
                return Ok((record, stored));
            }
            Err(error) => return Err(error.into()),
        };
        let fetch = async |scratch: &Arc<Scratch>| self.fetch(&github, &release, scratch).await;
        let (record, stored) = self.cache.obtain(&self.key(&release.tag), self.wanted, self.events, fetch).await?;
        self.cache.remember(&moving, &record)?;
        Ok((record, stored))
    }

    fn github(&self) -> Result<Github, InstallError> {
        Ok(Github::new(self.repository.clone(), self.source.token.as_ref())?)
    }

    fn key(&self, tag: &str) -> Key {
        self.key_of("github-release", tag)
    }

    fn key_of(&self, kind: &str, tag: &str) -> Key {
        let names = self.asset_names(tag);
        let Repository { api, name } = &self.repository;
        Key::new([kind, api, name, tag].into_iter().chain(names.iter().map(String::as_str)))
    }

    /// The names the asset may have: the declared one, else Pulumi's for the package or the plugin.
    fn asset_names(&self, tag: &str) -> Vec<String> {
        let version = version_of(tag);
        let Platform { os, arch } = self.platform;
        if let Some(pattern) = &self.source.asset {
            let name = pattern.replace("{version}", version).replace("{os}", os.as_str());
            return vec![name.replace("{arch}", arch.as_str())];
        }
        let [plugin, package] = executables(self.wanted.plugin);
        let asset = |executable| format!("{executable}-v{version}-{}-{}.tar.gz", os.as_str(), arch.as_str());
        let mut names = vec![asset(package)];
        let of_plugin = asset(plugin);
        if names[0] != of_plugin {
            names.push(of_plugin);
        }
        names
    }

    fn choose<'r>(&self, release: &'r Release) -> Result<&'r Asset, InstallError> {
        let names = self.asset_names(&release.tag);
        let found = names.iter().find_map(|name| release.assets.iter().find(|asset| asset.name == *name));
        let asset = found.ok_or_else(|| InstallError::NoAsset {
            release: format!("{} {}", self.repository.name, release.tag),
            wanted: names.join(" or "),
            available: release.assets.iter().map(|asset| asset.name.clone()).collect(),
        })?;
        if asset.size > MOST_BYTES {
            let source = ArchiveError::TooLarge("no plugin has so many bytes");
            return Err(InstallError::Archive { archive: asset.name.clone(), source });
        }
        Ok(asset)
    }

    async fn fetch(&self, github: &Github, release: &Release, scratch: &Arc<Scratch>) -> Result<Fetched, InstallError> {
        let asset = self.choose(release)?;
        let path = scratch.path().join("download");
        let download = self.download(github, asset, &path).await?;
        let (folder, name) = (scratch.path().join("package"), asset.name.clone());
        let names = executables(self.wanted.plugin);
        let (wanted, published) = (self.wanted.digest, asset.digest());
        let (made, kept) = (folder.clone(), Arc::clone(scratch));
        blocking(move || {
            // Whoever waits for us may leave: what we write to stays until we are done.
            let _kept = kept;
            let package = Package { name: &name, path: &path };
            if let Some(expected) = wanted.or(published).filter(|expected| *expected != download) {
                // What is declared may be that of the executable, which is found without unpacking anything.
                if wanted.is_none() || package.digest_of(&names)? != Some(expected) {
                    return Err(InstallError::ChecksumMismatch { expected, found: download });
                }
            }
            std::fs::create_dir(&folder).map_err(PathError::of("create folder", &folder))?;
            package.unpack(&folder, &names[1])?;
            locate(&names, &folder).map_err(|error| match error {
                InstallError::NoPlugin { executable, .. } => InstallError::NotInArchive { archive: name, executable },
                other => other,
            })?;
            std::fs::remove_file(&path).map_err(PathError::of("remove", &path))?;
            Ok(())
        })
        .await?;
        Ok(Fetched { revision: release.tag.clone(), download: Some(download), folder: made })
    }

    /// Downloads an asset and says the digest of its bytes.
    async fn download(&self, github: &Github, asset: &Asset, path: &Path) -> Result<Sha256Digest, InstallError> {
        let mut progress = Progress::start(self.events, &asset.name, Some(asset.size));
        let mut download = None;
        let sink = |bytes: &[u8]| {
            if bytes.is_empty() {
                let file = File::create(path).map_err(PathError::of("create", path))?;
                download = Some((file, Sha256::new()));
                progress.restart();
                return Ok(());
            }
            if let Some((file, hash)) = &mut download {
                file.write_all(bytes).map_err(PathError::of("write", path))?;
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

/// The version that a tag stands for: `v1.2.3` and `plugins/reef/v1.2.3` for `1.2.3`.
fn version_of(tag: &str) -> &str {
    let last = tag.rsplit('/').next().unwrap_or(tag);
    last.strip_prefix('v').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_stands_for_a_version() {
        for (tag, version) in [("v1.2.3", "1.2.3"), ("1.2.3", "1.2.3"), ("sdk/v1.2.3", "1.2.3"), ("vanilla", "vanilla")]
        {
            assert_eq!(version_of(tag), version);
        }
    }
}
