//! Assets of a release: which one is the package of a platform, and which digest is published for it.

use std::collections::BTreeMap;

use super::layout::ExecutableNames;
use super::unpack::MAX_BYTES;
use super::{ArchiveError, InstallError, asset_names, checksum_file};
use crate::plugin::{DigestOrigin, GithubReleaseSource, Platform, PluginNames, ResolvedAsset, Sha256Digest};
use crate::source::{Asset, FetchError, Github, Release};

/// Choice of the assets of releases for a declared plugin.
#[derive(Clone, Copy)]
pub(super) struct AssetChoice<'a> {
    pub(super) source: &'a GithubReleaseSource,
    pub(super) names: PluginNames<'a>,
    pub(super) executables: &'a ExecutableNames,
    /// `owner/name`, for messages.
    pub(super) repository: &'a str,
}

impl AssetChoice<'_> {
    /// Returns the accepted names of the asset: the declared one, or else Pulumi's names for the package and the
    /// plugin.
    pub(super) fn names(&self, tag: &str, Platform { os, arch }: Platform) -> Vec<String> {
        let version = version_of(tag);
        if let Some(pattern) = &self.source.asset {
            let name = pattern.replace("{version}", version).replace("{os}", os.as_str());
            return vec![name.replace("{arch}", arch.as_str())];
        }
        let ExecutableNames { of_package, of_plugin, .. } = self.executables;
        let asset = |executable: &str| format!("{executable}-v{version}-{}-{}.tar.gz", os.as_str(), arch.as_str());
        let mut names = vec![asset(of_package)];
        let of_plugin = asset(of_plugin);
        if names[0] != of_plugin {
            names.push(of_plugin);
        }
        names
    }

    /// Returns the package of the plugin, by which its asset is found, unless the name of the asset is declared.
    pub(super) fn package(&self) -> Option<String> {
        self.source.asset.is_none().then(|| self.names.package.to_string())
    }

    fn fitting<'n>(&self, assets: impl Iterator<Item = &'n str>, platform: Platform) -> Vec<&'n str> {
        let PluginNames { plugin, package, .. } = self.names;
        asset_names::fitting(assets, platform, &[plugin.as_str(), package.as_str()])
    }

    /// Returns the asset of a release for a platform.
    ///
    /// # Errors
    /// [`InstallError::NoAsset`], [`InstallError::SeveralAssets`], [`InstallError::NotUploaded`], [`InstallError::Archive`] for one that
    /// is too large.
    pub(super) fn find<'r>(&self, release: &'r Release, platform: Platform) -> Result<&'r Asset, InstallError> {
        let names = self.names(&release.tag, platform);
        let named = || names.iter().filter_map(|name| release.assets.iter().find(|asset| asset.name == *name));
        let found = named().find(|asset| asset.incomplete_state().is_none()).or_else(|| named().next());
        let found = match found {
            None if self.source.asset.is_none() => self.find_by_words(release, platform)?,
            found => found,
        };
        let asset = found.ok_or_else(|| InstallError::NoAsset {
            release: format!("{} {}", self.repository, release.tag),
            expected: names.join(" or "),
            available: release.assets.iter().map(|asset| asset.name.clone()).collect(),
        })?;
        check_asset(asset)?;
        Ok(asset)
    }

    /// Returns the only asset that fits the platform by the words in its name; `None` if there is none.
    fn find_by_words<'r>(&self, release: &'r Release, platform: Platform) -> Result<Option<&'r Asset>, InstallError> {
        let found = self.fitting(release.assets.iter().map(|asset| asset.name.as_str()), platform);
        match found[..] {
            [] => Ok(None),
            [only] => Ok(release.assets.iter().find(|asset| asset.name == only)),
            [..] => Err(InstallError::SeveralAssets {
                release: format!("{} {}", self.repository, release.tag),
                platform,
                available: found.into_iter().map(str::to_owned).collect(),
            }),
        }
    }

    /// Returns the assets of all platforms that a release has, with the digests that are published for them. The release must have
    /// that of `platform`.
    ///
    /// # Errors
    /// Returns the errors of [`AssetChoice::find`] for `platform`; [`InstallError::Fetch`] if a checksum file cannot be fetched now.
    pub(super) async fn resolve(
        &self,
        github: &Github,
        release: &Release,
        platform: Platform,
    ) -> Result<BTreeMap<Platform, ResolvedAsset>, InstallError> {
        self.find(release, platform)?;
        let mut files = ChecksumFiles { github, release, read: BTreeMap::new() };
        let mut assets = BTreeMap::new();
        for platform in Platform::all() {
            let Ok(asset) = self.find(release, platform) else { continue };
            let digest = match asset.digest() {
                Some(digest) => Some((digest, DigestOrigin::Published)),
                None => files.digest_of(&asset.name).await?.map(|digest| (digest, DigestOrigin::Sums)),
            };
            assets.insert(platform, ResolvedAsset { name: asset.name.clone(), size: Some(asset.size), digest });
        }
        Ok(assets)
    }
}

/// Returns an error about an asset that is not installed, whatever its content is.
///
/// # Errors
/// [`InstallError::NotUploaded`], [`InstallError::Archive`].
pub(super) fn check_asset(asset: &Asset) -> Result<(), InstallError> {
    if let Some(state) = asset.incomplete_state() {
        return Err(InstallError::NotUploaded { asset: asset.name.clone(), state: state.to_owned() });
    }
    if asset.size > MAX_BYTES {
        let source = ArchiveError::TooLarge("it has more than 8 GiB");
        return Err(InstallError::Archive { archive: asset.name.clone(), source });
    }
    Ok(())
}

/// Checksum files of a release. Each is fetched once.
struct ChecksumFiles<'a> {
    github: &'a Github,
    release: &'a Release,
    read: BTreeMap<String, String>,
}

impl ChecksumFiles<'_> {
    /// Returns the digest of an asset in a checksum file; `None` if there is none, or if it has no digest of the asset.
    async fn digest_of(&mut self, asset: &str) -> Result<Option<Sha256Digest>, InstallError> {
        let Some(file) = checksum_file::find(self.release, asset) else { return Ok(None) };
        if !self.read.contains_key(&file.name) {
            let text = match read_text(self.github, file).await {
                Ok(text) => text,
                Err(error) if error.is_unreachable() => return Err(error.into()),
                Err(_) => String::new(),
            };
            self.read.insert(file.name.clone(), text);
        }
        Ok(checksum_file::digest_of(asset, &self.read[&file.name]))
    }
}

async fn read_text(github: &Github, file: &Asset) -> Result<String, FetchError> {
    let mut text = Vec::new();
    let sink = |bytes: &[u8]| {
        // An empty slice marks the start of an attempt.
        if bytes.is_empty() {
            text.clear();
        }
        text.extend_from_slice(bytes);
        Ok(())
    };
    github.download(file, sink).await?;
    Ok(String::from_utf8_lossy(&text).into_owned())
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
