//! Copies of releases that are nearer than their place: folders of plugins on this machine, and a mirror. Both have one layout:
//!
//! ```text
//! [providers/][HOST/]OWNER/NAME/index.json           versions, with their times and assets
//! [providers/][HOST/]OWNER/NAME/TAG/[OS_ARCH/]ASSET  assets as they were published, archives of Terraform providers
//! [providers/][HOST/]OWNER/NAME/COMMIT/COMMIT.tar.gz the files of a commit of a git repository
//! [providers/][HOST/]OWNER/NAME/VERSION/[OS_ARCH/]   one plugin that is ready to run, see `installed`
//! ```
//! Without a host it is that of GitHub.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::InstallError;
use crate::fs::{FileError, MAX_DOCUMENT_BYTES, read_if_exists};
use crate::json;
use crate::plugin::{Platform, Sha256Digest};
use crate::source::{Asset, Release};

/// Host of the releases whose copies need no folder for it.
const USUAL_HOST: &str = "github.com/";
/// Folder of the layout of Celerity, which has a folder for each kind of plugin.
const PROVIDERS: &str = "providers";
/// Name of the index of a plugin.
pub(super) const INDEX: &str = "index.json";

/// Places that are asked before the place of a plugin itself.
#[derive(Clone, Debug, Default)]
pub struct PackageCopies {
    /// Folders of plugins, searched in this order.
    pub folders: Vec<PathBuf>,
    /// Address of a static file server with the same layout.
    pub mirror: Option<String>,
}

/// Copy of an asset in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredAsset {
    /// Path of the file.
    pub path: PathBuf,
    /// Platform of the asset; `None` for the files of a commit, which are the same for all.
    pub platform: Option<Platform>,
    /// Length in bytes.
    pub size: u64,
    /// True if the folder had it already.
    pub is_kept: bool,
}

/// Index of a plugin: its versions.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Index {
    pub(super) versions: Vec<IndexedVersion>,
}

/// Version of an index.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct IndexedVersion {
    pub(super) tag: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) released: Option<String>,
    /// Commit of a git repository. A release has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<IndexedCommit>,
    #[serde(default)]
    pub(super) assets: BTreeMap<String, IndexedAsset>,
}

/// Commit of a version in an index.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct IndexedCommit {
    /// Full id.
    pub(super) id: String,
    /// Digest of its files, as `checksum` computes it.
    pub(super) tree: Sha256Digest,
}

/// Asset of a version in an index, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct IndexedAsset {
    pub(super) size: u64,
    pub(super) sha256: Sha256Digest,
}

impl Index {
    /// Reads the text of an index; `None` if it is none.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        json::from_slice(text).ok()
    }

    /// Returns the versions that are releases.
    pub(super) fn into_releases(self) -> Vec<Release> {
        let release = |IndexedVersion { tag, released, assets, .. }: IndexedVersion| {
            let assets = assets.into_iter().map(|(name, asset)| Asset::of_copy(name, asset.size, Some(asset.sha256)));
            Release { tag, published_at: released, assets: assets.collect(), ..Release::default() }
        };
        self.versions.into_iter().filter(|version| version.commit.is_none()).map(release).collect()
    }
}

/// Returns the paths at which copies of a place may lie, by its host and path: `github.com/acme/reef`. Empty for a place whose path
/// would lead elsewhere.
pub(super) fn paths_of(place: &str) -> Vec<String> {
    if !is_plain(place) {
        return Vec::new();
    }
    let without_host = place.strip_prefix(USUAL_HOST);
    let paths = [Some(place), without_host].into_iter().flatten();
    paths.flat_map(|path| [path.to_owned(), format!("{PROVIDERS}/{path}")]).collect()
}

/// Returns the names of the folder of a tag: the tag, and the version in it.
pub(super) fn names_of_tag(tag: &str) -> Vec<&str> {
    let version = tag.strip_prefix('v').filter(|version| version.starts_with(|first: char| first.is_ascii_digit()));
    [Some(tag), version].into_iter().flatten().filter(|name| is_plain(name)).collect()
}

/// Returns the name of the folder of a platform.
pub(super) fn platform_folder(platform: Platform) -> String {
    format!("{}_{}", platform.os.as_str(), platform.arch.as_str())
}

fn is_plain(path: &str) -> bool {
    let mut parts = path.split('/');
    !path.is_empty()
        && parts
            .all(|part| !part.is_empty() && matches!(Path::new(part).components().next(), Some(Component::Normal(_))))
}

/// Folder with the copies of one place.
#[derive(Clone, Debug)]
pub(super) struct CopyFolder(pub(super) PathBuf);

impl CopyFolder {
    /// Returns the folders of a place that exist, the first one first.
    pub(super) fn find(folders: &[PathBuf], place: &str) -> Vec<Self> {
        let paths = paths_of(place);
        let below = |folder: &PathBuf| paths.iter().map(|path| folder.join(path)).collect::<Vec<_>>();
        folders.iter().flat_map(below).filter(|folder| folder.is_dir()).map(Self).collect()
    }

    /// Returns its index; an empty one if it has none.
    ///
    /// # Errors
    /// [`InstallError::Path`]; [`InstallError::Index`].
    pub(super) fn index(&self) -> Result<Index, InstallError> {
        let path = self.0.join(INDEX);
        match read_if_exists(&path, MAX_DOCUMENT_BYTES)? {
            Some(text) => Index::parse(&text).ok_or_else(|| InstallError::Index { place: path.display().to_string() }),
            None => Ok(Index::default()),
        }
    }

    /// Returns the releases of which it has copies: those of its index, and those that have a folder.
    ///
    /// # Errors
    /// [`InstallError::Path`]; [`InstallError::Index`].
    pub(super) fn releases(&self) -> Result<Vec<Release>, InstallError> {
        let mut releases = self.index()?.into_releases();
        for member in fs::read_dir(&self.0).map_err(FileError::of("list", &self.0))? {
            let member = member.map_err(FileError::of("list", &self.0))?;
            let Some(tag) = member.file_name().to_str().map(str::to_owned) else { continue };
            if !member.path().is_dir()
                || releases.iter().any(|release| names_of_tag(&release.tag).contains(&tag.as_str()))
            {
                continue;
            }
            let assets = assets_in(&member.path())?;
            releases.push(Release { tag, assets, ..Release::default() });
        }
        Ok(releases)
    }

    /// Returns the path of an asset of a tag.
    pub(super) fn asset(&self, tag: &str, name: &str, platform: Option<Platform>) -> Option<PathBuf> {
        if !is_plain(name) {
            return None;
        }
        let of_version = names_of_tag(tag).into_iter().map(|folder| self.0.join(folder));
        let mut files = of_version.flat_map(|folder| {
            let of_platform = platform.map(|platform| folder.join(platform_folder(platform)).join(name));
            [Some(folder.join(name)), of_platform].into_iter().flatten()
        });
        files.find(|file| file.is_file())
    }
}

/// Returns the files in the folder of a version, and in its folders of platforms.
fn assets_in(folder: &Path) -> Result<Vec<Asset>, InstallError> {
    let mut assets = Vec::new();
    let of_platforms = Platform::all().map(|platform| folder.join(platform_folder(platform)));
    for folder in [folder.to_owned()].into_iter().chain(of_platforms) {
        if !folder.is_dir() {
            continue;
        }
        for member in fs::read_dir(&folder).map_err(FileError::of("list", &folder))? {
            let path = member.map_err(FileError::of("list", &folder))?.path();
            let metadata = path.metadata().map_err(FileError::of("read", &path))?;
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.filter(|_| metadata.is_file());
            assets.extend(name.map(|name| Asset::of_copy(name.to_owned(), metadata.len(), None)));
        }
    }
    Ok(assets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: plugins.md#folders-of-plugins-and-mirrors "without a host it is that of `github.com`"
    #[test]
    fn copies_of_github_need_no_folder_for_its_host() {
        for (place, expected) in [
            (
                "github.com/acme/reef",
                &["github.com/acme/reef", "providers/github.com/acme/reef", "acme/reef", "providers/acme/reef"][..],
            ),
            ("git.example/acme/reef", &["git.example/acme/reef", "providers/git.example/acme/reef"]),
            ("git.example/../../etc", &[]),
            ("git.example//reef", &[]),
            ("", &[]),
        ] {
            assert_eq!(paths_of(place), expected, "{place}");
        }
        assert_eq!(names_of_tag("v1.2.3"), ["v1.2.3", "1.2.3"]);
        assert_eq!(names_of_tag("reef/v1.2.3"), ["reef/v1.2.3"]);
        assert_eq!(names_of_tag("vanilla"), ["vanilla"]);
        assert_eq!(names_of_tag("../v1"), [""; 0]);
    }

    #[test]
    fn index_survives_its_text() {
        let digest = Sha256Digest::from_bytes([7; 32]);
        let assets = BTreeMap::from([("reef.tar.gz".to_owned(), IndexedAsset { size: 3, sha256: digest })]);
        let release = IndexedVersion { tag: "v1.2.3".into(), released: None, commit: None, assets };
        let commit = Some(IndexedCommit { id: "c0".repeat(20), tree: digest });
        let commit = IndexedVersion { tag: "v1.2.3".into(), released: None, commit, assets: BTreeMap::new() };
        let text = serde_json::to_string(&Index { versions: vec![commit.clone(), release] }).unwrap();
        let index = Index::parse(text.as_bytes()).unwrap();
        assert_eq!(index.versions[0].commit, commit.commit);
        let releases = index.into_releases();
        assert_eq!(releases.len(), 1, "a commit is no release");
        assert_eq!((releases[0].tag.as_str(), releases[0].assets[0].digest()), ("v1.2.3", Some(digest)));
        for bad in ["", "{}", "[]", "{\"versions\": [{}]}"] {
            assert!(Index::parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
