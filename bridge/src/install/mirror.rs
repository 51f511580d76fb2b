//! Copies of locked packages, written into a folder in the layout of `copies`: for machines without network, and for static file servers.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use tempfile::TempPath;

use super::cached_fetcher::RecordedDigest;
use super::copies::{INDEX, Index, IndexedAsset, IndexedVersion, MirroredAsset, names_of_tag, paths_of};
use super::verify::hash_file;
use super::{InstallError, run_blocking};
use crate::fs::{
    Access, FileError, MAX_DOCUMENT_BYTES, create_folders, open_regular, read_if_exists, write_atomically,
};
use crate::plugin::{Platform, ResolvedAsset, ResolvedRelease, Sha256Digest};

/// Folder to which copies of one place are added.
pub(super) struct CopyTarget {
    folder: PathBuf,
}

impl CopyTarget {
    /// Returns the folder of a place below a folder of plugins.
    ///
    /// # Errors
    /// [`InstallError::NoLayout`] if the place, or its tag or commit, cannot be a path.
    pub(super) fn new(below: &Path, place: &str, tag: &str) -> Result<Self, InstallError> {
        let path = paths_of(place).into_iter().next().filter(|_| !names_of_tag(tag).is_empty());
        let path = path.ok_or_else(|| InstallError::NoLayout { name: format!("{place} {tag}") })?;
        Ok(Self { folder: below.join(path) })
    }

    /// Returns the path of a file of a tag or a commit.
    pub(super) fn path(&self, tag: &str, name: &str) -> PathBuf {
        self.folder.join(tag).join(name)
    }

    /// Copies the assets of a locked release, those of some platforms or all that are locked, and adds them to the index.
    ///
    /// # Errors
    /// [`InstallError::PlatformNotLocked`] if the lock file has no digest for a platform; [`InstallError`]. Files that are complete stay.
    pub(super) async fn add_release(
        &self,
        place: &str,
        release: &ResolvedRelease,
        platforms: &[Platform],
        assets: &dyn LockedAssets,
    ) -> Result<Vec<MirroredAsset>, InstallError> {
        let has_digest = |platform: &Platform| release.assets.get(platform).is_some_and(|asset| asset.digest.is_some());
        if let Some(missing) = platforms.iter().find(|platform| !has_digest(platform)) {
            let name = format!("{place} {}", release.tag);
            return Err(InstallError::PlatformNotLocked { name, platform: Some(*missing) });
        }
        let is_wanted = |platform: Platform| platforms.is_empty() || platforms.contains(&platform);
        let (mut copied, mut indexed) = (Vec::new(), BTreeMap::new());
        for (platform, asset) in release.assets.iter().filter(|(platform, _)| is_wanted(**platform)) {
            let Some((sha256, _)) = asset.digest else { continue };
            let path = self.path(&release.tag, &asset.name);
            let is_kept = is_complete(&path, sha256).await?;
            if !is_kept {
                let partial = PartialFile::begin(&path)?;
                let digest = assets.download(*platform, asset, partial.path()).await?;
                if let Some(recorded) = assets.recorded(*platform, asset) {
                    recorded.check(digest)?;
                }
                partial.finish().await?;
            }
            let size = path.metadata().map_err(FileError::of("read", &path))?.len();
            indexed.insert(asset.name.clone(), IndexedAsset { size, sha256 });
            copied.push(MirroredAsset { path, platform: Some(*platform), size, is_kept });
        }
        let (tag, released) = (release.tag.clone(), release.released.clone());
        self.add_to_index(IndexedVersion { tag, released, commit: None, assets: indexed }).await?;
        Ok(copied)
    }

    /// Adds a version to the index, with its files beside those that are known.
    pub(super) async fn add_to_index(&self, version: IndexedVersion) -> Result<(), InstallError> {
        let path = self.folder.join(INDEX);
        run_blocking(move || {
            let text = read_if_exists(&path, MAX_DOCUMENT_BYTES)?;
            let refused = || InstallError::Index { place: path.display().to_string() };
            let mut index = text.map_or(Ok(Index::default()), |text| Index::parse(&text).ok_or_else(refused))?;
            let is_same = |known: &IndexedVersion| known.tag == version.tag && known.commit == version.commit;
            match index.versions.iter_mut().find(|known| is_same(known)) {
                Some(known) => {
                    known.released = version.released.or(known.released.take());
                    known.assets.extend(version.assets);
                }
                None => index.versions.push(version),
            }
            index.versions.sort_by(|first, second| first.tag.cmp(&second.tag));
            let text = serde_json::to_string_pretty(&index).expect("texts and numbers are always JSON") + "\n";
            Ok(write_atomically(&path, text.as_bytes(), Access::Shared)?)
        })
        .await
    }
}

/// Assets of a locked release.
#[async_trait]
pub(super) trait LockedAssets: Sync {
    /// Returns what the lock file says about an asset.
    fn recorded(&self, platform: Platform, asset: &ResolvedAsset) -> Option<RecordedDigest>;

    /// Downloads an asset to a file, and returns the digest of its bytes.
    async fn download(
        &self,
        platform: Platform,
        asset: &ResolvedAsset,
        to: &Path,
    ) -> Result<Sha256Digest, InstallError>;
}

/// File that others may read, which appears once it is complete.
pub(super) struct PartialFile {
    partial: TempPath,
    path: PathBuf,
}

impl PartialFile {
    /// Creates an empty file beside a path.
    pub(super) fn begin(path: &Path) -> Result<Self, InstallError> {
        let folder = path.parent().unwrap_or(path);
        create_folders(folder)?;
        let mode = Permissions::from_mode(Access::Shared.file_mode());
        let partial = tempfile::Builder::new().prefix(".sc-mirror-").permissions(mode).tempfile_in(folder);
        let partial = partial.map_err(FileError::of("create a file in", folder))?.into_temp_path();
        Ok(Self { partial, path: path.to_owned() })
    }

    /// Returns the path at which it is written.
    pub(super) fn path(&self) -> &Path {
        &self.partial
    }

    /// Moves the file to its path.
    pub(super) async fn finish(self) -> Result<(), InstallError> {
        let Self { partial, path } = self;
        run_blocking(move || {
            let flushed = open_regular(&partial).and_then(|file| file.sync_all());
            flushed.map_err(FileError::of("flush", &partial))?;
            partial.persist(&path).map_err(|error| FileError::of("create", &path)(error.error))?;
            Ok(())
        })
        .await
    }
}

/// Returns whether a file is there and has a digest.
async fn is_complete(path: &Path, digest: Sha256Digest) -> Result<bool, InstallError> {
    let path = path.to_owned();
    run_blocking(move || Ok(path.is_file() && hash_file(&path)? == digest)).await
}
