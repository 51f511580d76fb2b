//! Plugins that are installed on this machine: in folders of plugins, else in that of the `pulumi` command line. No place is asked.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::asset_package::DownloadedAsset;
use super::cache_key::CacheKey;
use super::cached_fetcher::{CacheSettings, CachedFetcher, PackageSpec};
use super::copies::{CopyFolder, platform_folder};
use super::layout::{ExecutableNames, locate};
use super::local::LocalPackages;
use super::release_assets::AssetChoice;
use super::verify::{expected_digest, hash_file};
use super::{
    Decision, FetchEvents, InstallError, LastResolved, LockKey, PackageSource, VerifiedPackage, find_in_pulumi_folder,
    run_blocking,
};
use crate::fs::{FileError, ScratchFolder, check_trusted_target, check_trusted_tree};
use crate::plugin::{
    GithubReleaseSource, InstalledSource, LocalSource, Platform, PluginName, PluginNames, PluginVersion,
    ResolvedPackage, Sha256Digest, WantedVersion, tag_version,
};

/// Name of the program of a plugin in the layout of Celerity.
const PLUGIN: &str = "plugin";

/// Source of plugins that are installed on this machine.
#[derive(Clone, Debug)]
pub struct InstalledPackages {
    /// Folder of plugins of the `pulumi` command line.
    pub pulumi: Option<PathBuf>,
    local: LocalPackages,
    fetcher: CachedFetcher,
}

/// Plugin that was found.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// File or folder that is ready to run.
    Ready(PathBuf),
    /// Asset of a release.
    Asset { path: PathBuf, name: String, tag: String },
}

impl InstalledPackages {
    /// Creates the source, for the folders of plugins of the settings.
    pub fn new(settings: CacheSettings, local: LocalPackages, pulumi: Option<PathBuf>) -> Self {
        Self { pulumi, local, fetcher: CachedFetcher::new(settings) }
    }

    /// Finds the highest version that fits, in the first folder that has one. Another account must not be able to change it.
    fn find(
        &self,
        names: PluginNames<'_>,
        source: &InstalledSource,
    ) -> Result<(Found, Option<PluginVersion>), InstallError> {
        let platform = Platform::current().ok_or(InstallError::NoPlatform)?;
        let place = if source.path.split('/').count() == 2 {
            format!("github.com/{}", source.path)
        } else {
            source.path.clone()
        };
        let folders = &self.fetcher.settings.copies.folders;
        for folder in CopyFolder::find(folders, &place) {
            for (version, name) in fitting(&folder.0, source)? {
                let of_version = folder.0.join(&name);
                for place in [of_version.join(platform_folder(platform)), of_version] {
                    if !place.is_dir() {
                        continue;
                    }
                    if let Some(found) = find_ready(names, &place) {
                        check_trusted_tree(&place)?;
                        return Ok((Found::Ready(found), Some(version)));
                    }
                    if let Some((path, asset)) = find_asset(names, &folder, &name, platform)? {
                        check_trusted_target(&path)?;
                        return Ok((Found::Asset { path, name: asset, tag: name }, Some(version)));
                    }
                }
            }
        }
        let of_pulumi = self.pulumi.iter().map(|folder| self.find_of_pulumi(folder, source));
        if let Some((found, version)) = of_pulumi.into_iter().next().transpose()?.flatten() {
            return Ok((Found::Ready(found), Some(version)));
        }
        let searched = folders.iter().chain(&self.pulumi).map(|folder| folder.display().to_string());
        let searched = searched.collect::<Vec<_>>().join(", ");
        let reason = if searched.is_empty() {
            "there are no folders of plugins".to_owned()
        } else {
            format!("searched in {searched}")
        };
        let wanted = source.version.as_ref().map_or("in any version".to_owned(), ToString::to_string);
        Err(InstallError::NotInstalled { path: source.path.clone(), wanted, reason })
    }

    /// Finds a plugin that the `pulumi` command line has installed, by the last part of the path.
    fn find_of_pulumi(
        &self,
        plugins: &Path,
        source: &InstalledSource,
    ) -> Result<Option<(PathBuf, PluginVersion)>, InstallError> {
        let last = source.path.rsplit('/').next().unwrap_or_default();
        let Ok(package) = last.strip_prefix("pulumi-").unwrap_or(last).parse::<PluginName>() else { return Ok(None) };
        let prefix = format!("resource-{package}-v");
        let mut versions: Vec<PluginVersion> = fs::read_dir(plugins)
            .into_iter()
            .flatten()
            .filter_map(|member| member.ok()?.file_name().to_str()?.strip_prefix(&prefix)?.parse().ok())
            .filter(|version: &PluginVersion| accepts(source, version, &format!("v{version}")))
            .collect();
        versions.sort();
        for version in versions.into_iter().rev() {
            if let Some(folder) = find_in_pulumi_folder(plugins, &package, &version)? {
                return Ok(Some((folder, version)));
            }
        }
        Ok(None)
    }

    /// Unpacks an asset into the cache, once for each state of its file.
    async fn unpacked(
        &self,
        names: PluginNames<'_>,
        source: &InstalledSource,
        (path, name, tag): (PathBuf, String, String),
        version: Option<PluginVersion>,
        events: &dyn FetchEvents,
    ) -> Result<VerifiedPackage, InstallError> {
        let platform = Platform::current();
        let executables = ExecutableNames::new(names).or_only_program();
        let spec = PackageSpec {
            names,
            executables: &executables,
            expected_digest: expected_digest(source.checksum.as_ref(), platform)?,
            recorded: None,
            subdir: Path::new(""),
            platform,
            build: None,
        };
        let metadata = fs::metadata(&path).map_err(FileError::of("read", &path))?;
        let state = [
            metadata.ino().to_string(),
            metadata.size().to_string(),
            format!("{}.{}", metadata.ctime(), metadata.ctime_nsec()),
        ];
        let place = path.display().to_string();
        let key = CacheKey::new(["installed", place.as_str()].into_iter().chain(state.iter().map(String::as_str)));
        let fetch = async |scratch: &Arc<ScratchFolder>| {
            let (from, to) = (path.clone(), scratch.path().join("download"));
            let copied = to.clone();
            let digest = run_blocking(move || {
                fs::copy(&from, &copied).map_err(FileError::of("copy", &from))?;
                hash_file(&copied)
            });
            let (tag, name, host, digest) = (tag.clone(), name.clone(), "this machine".to_owned(), digest.await?);
            DownloadedAsset { tag, name, digest, published: None, host, path: to }.unpack(spec, scratch).await
        };
        let (entry, cached) = self.fetcher.find_or_fetch(&key, spec, events, fetch).await?;
        self.fetcher.package(spec, version, (entry, cached), events).await
    }
}

/// Returns the versions that fit, the highest one first, with the names of their folders.
fn fitting(folder: &Path, source: &InstalledSource) -> Result<Vec<(PluginVersion, String)>, InstallError> {
    let mut found = Vec::new();
    for member in fs::read_dir(folder).map_err(FileError::of("list", folder))? {
        let Some(name) = member.map_err(FileError::of("list", folder))?.file_name().to_str().map(str::to_owned) else {
            continue;
        };
        if let Some(version) = tag_version(&name).filter(|version| accepts(source, version, &name)) {
            found.push((version, name));
        }
    }
    found.sort_by(|(first, _), (second, _)| second.cmp(first));
    Ok(found)
}

/// Returns whether a version is the wanted one. Without a wanted version, or with `latest`, pre-releases are not.
fn accepts(source: &InstalledSource, version: &PluginVersion, name: &str) -> bool {
    match &source.version {
        None | Some(WantedVersion::Latest) => version.as_semver().pre.is_empty(),
        Some(WantedVersion::Range(range)) => range.version_in(name).is_some(),
        Some(WantedVersion::Named(wanted)) => tag_version(wanted).as_ref() == Some(version),
    }
}

/// Returns what is ready to run in a folder: the folder, or the program that Celerity calls `plugin`.
fn find_ready(names: PluginNames<'_>, folder: &Path) -> Option<PathBuf> {
    if locate(&ExecutableNames::new(names), folder).is_ok() {
        return Some(folder.to_owned());
    }
    Some(folder.join(PLUGIN)).filter(|program| program.is_file())
}

/// Returns the path and the name of the asset of a tag in a folder of copies.
fn find_asset(
    names: PluginNames<'_>,
    folder: &CopyFolder,
    tag: &str,
    platform: Platform,
) -> Result<Option<(PathBuf, String)>, InstallError> {
    let executables = ExecutableNames::new(names);
    let source = GithubReleaseSource::new(String::new(), WantedVersion::Named(tag.to_owned()));
    let assets = AssetChoice { source: &source, names, executables: &executables, repository: tag };
    let releases = folder.releases()?;
    let release = releases.iter().find(|release| release.tag == tag);
    let name = release.and_then(|release| assets.find(release, platform).ok()).map(|asset| asset.name.clone());
    Ok(name.and_then(|name| Some((folder.asset(tag, &name, Some(platform))?, name))))
}

#[async_trait]
impl PackageSource for InstalledPackages {
    type Declared = InstalledSource;
    type Package = VerifiedPackage;

    fn lock_key(&self, _: PluginNames<'_>, _: &InstalledSource) -> Result<Option<LockKey>, InstallError> {
        Ok(None)
    }

    fn is_complete(&self, _: PluginNames<'_>, _: &InstalledSource, _: &ResolvedPackage) -> bool {
        true
    }

    async fn complete(
        &self,
        _: PluginNames<'_>,
        _: &InstalledSource,
        package: ResolvedPackage,
        _: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError> {
        Ok(package)
    }

    async fn resolve(
        &self,
        _: PluginNames<'_>,
        _: &InstalledSource,
        _: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError> {
        Ok(ResolvedPackage::Local)
    }

    async fn last_resolved(
        &self,
        _: PluginNames<'_>,
        _: &InstalledSource,
    ) -> Result<Option<LastResolved>, InstallError> {
        Ok(Some(LastResolved { package: ResolvedPackage::Local, is_fixed: true }))
    }

    async fn fetch(
        &self,
        names: PluginNames<'_>,
        source: &InstalledSource,
        decision: Decision,
        events: &dyn FetchEvents,
    ) -> Result<(VerifiedPackage, ResolvedPackage), InstallError> {
        let (found, version) = self.find(names, source)?;
        let package = match found {
            Found::Ready(path) => {
                let local = LocalSource { checksum: source.checksum.clone(), ..LocalSource::new(path) };
                let (package, _) = self.local.fetch(names, &local, decision.clone(), events).await?;
                VerifiedPackage { version, ..package }
            }
            Found::Asset { path, name, tag } => {
                self.unpacked(names, source, (path, name, tag), version, events).await?
            }
        };
        Ok((package, decision.package))
    }

    async fn known_digest(
        &self,
        names: PluginNames<'_>,
        source: &InstalledSource,
    ) -> Result<Option<Sha256Digest>, InstallError> {
        match self.find(names, source) {
            Ok((Found::Ready(path), _)) => self.local.known_digest(names, &LocalSource::new(path)).await,
            Ok((Found::Asset { path, .. }, _)) => run_blocking(move || hash_file(&path)).await.map(Some),
            Err(InstallError::NotInstalled { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
