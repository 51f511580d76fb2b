//! Copies of locked releases, written into a folder in the layout of `copies`: for machines without network, and for static file servers.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::cached_fetcher::RecordedDigest;
use super::copies::{INDEX, Index, IndexedAsset, IndexedVersion, MirroredAsset, paths_of};
use super::release_declaration::ReleaseDeclaration;
use super::verify::hash_file;
use super::{InstallError, run_blocking};
use crate::fs::{
    Access, FileError, MAX_DOCUMENT_BYTES, create_folders, open_regular, read_if_exists, write_atomically,
};
use crate::plugin::{Platform, ResolvedAsset, ResolvedRelease, Sha256Digest};

impl ReleaseDeclaration<'_> {
    /// Copies the assets of a locked release into a folder, those of some platforms or all that are locked, and adds them to the index.
    ///
    /// # Errors
    /// [`InstallError::PlatformNotLocked`] if the lock file has no digest for a platform; [`InstallError`]. Files that are complete stay.
    pub(super) async fn mirror(
        &self,
        release: &ResolvedRelease,
        platforms: &[Platform],
        folder: &Path,
    ) -> Result<Vec<MirroredAsset>, InstallError> {
        let name = || format!("{} {}", self.repository.place, release.tag);
        let place = paths_of(&self.repository.place).into_iter().next();
        let place = folder.join(place.ok_or_else(|| InstallError::NoLayout { name: name() })?);
        let wanted = |platform: Platform| platforms.is_empty() || platforms.contains(&platform);
        if let Some(missing) = platforms.iter().find(|platform| !has_digest(release, **platform)) {
            return Err(InstallError::PlatformNotLocked { name: name(), platform: Some(*missing) });
        }
        let mut copied = Vec::new();
        for (platform, asset) in release.assets.iter().filter(|(platform, _)| wanted(**platform)) {
            let Some((digest, _)) = asset.digest else { continue };
            let path = place.join(&release.tag).join(&asset.name);
            let is_kept = is_complete(&path, digest).await?;
            if !is_kept {
                self.copy_to(release, asset, *platform, &path).await?;
            }
            let size = path.metadata().map_err(FileError::of("read", &path))?.len();
            copied.push(MirroredAsset { path, platform: *platform, size, is_kept });
        }
        let release = release.clone();
        run_blocking(move || add_to_index(&place.join(INDEX), &release)).await?;
        Ok(copied)
    }

    /// Downloads an asset to a file, which appears once it is verified.
    async fn copy_to(
        &self,
        release: &ResolvedRelease,
        asset: &ResolvedAsset,
        platform: Platform,
        path: &Path,
    ) -> Result<(), InstallError> {
        let folder = path.parent().unwrap_or(path);
        create_folders(folder)?;
        let mode = Permissions::from_mode(Access::Shared.file_mode());
        let partial = tempfile::Builder::new().prefix(".sc-mirror-").permissions(mode).tempfile_in(folder);
        let partial = partial.map_err(FileError::of("create a file in", folder))?.into_temp_path();
        let digest = self.download_asset(&release.tag, asset, &partial).await?;
        if let Some(recorded) = self.recorded_digest(asset, release, true) {
            RecordedDigest { platform: Some(platform), ..recorded }.check(digest)?;
        }
        let path = path.to_owned();
        run_blocking(move || {
            let flushed = open_regular(&partial).and_then(|file| file.sync_all());
            flushed.map_err(FileError::of("flush", &partial))?;
            partial.persist(&path).map_err(|error| FileError::of("create", &path)(error.error))?;
            Ok(())
        })
        .await
    }
}

fn has_digest(release: &ResolvedRelease, platform: Platform) -> bool {
    release.assets.get(&platform).is_some_and(|asset| asset.digest.is_some())
}

/// Returns whether a file is there and has a digest.
async fn is_complete(path: &Path, digest: Sha256Digest) -> Result<bool, InstallError> {
    let path = path.to_owned();
    run_blocking(move || Ok(path.is_file() && hash_file(&path)? == digest)).await
}

/// Adds what is locked of a release to an index.
fn add_to_index(path: &Path, release: &ResolvedRelease) -> Result<(), InstallError> {
    let text = read_if_exists(path, MAX_DOCUMENT_BYTES)?;
    let index =
        text.map(|text| Index::parse(&text).ok_or_else(|| InstallError::Index { place: path.display().to_string() }));
    let mut index = index.transpose()?.unwrap_or_default();
    let known = index.versions.iter().position(|version| version.tag == release.tag);
    let mut version = match known {
        Some(position) => index.versions.remove(position),
        None => IndexedVersion { tag: release.tag.clone(), released: None, assets: Default::default() },
    };
    version.released = release.released.clone().or(version.released);
    for asset in release.assets.values() {
        if let (Some((sha256, _)), Some(size)) = (asset.digest, asset.size) {
            version.assets.insert(asset.name.clone(), IndexedAsset { size, sha256 });
        }
    }
    index.versions.push(version);
    index.versions.sort_by(|first, second| first.tag.cmp(&second.tag));
    let text = serde_json::to_string_pretty(&index).expect("texts and numbers are always JSON") + "\n";
    Ok(write_atomically(path, text.as_bytes(), Access::Shared)?)
}
