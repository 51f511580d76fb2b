//! Package of a downloaded asset: verified, and unpacked into a folder.

use std::path::PathBuf;
use std::sync::Arc;

use super::InstallError;
use super::cached_fetcher::{Download, Fetched, PackageSpec};
use super::content::Kind;
use super::layout::{files_in, locate};
use super::run_blocking;
use super::unpack::DownloadedFile;
use crate::fs::{ScratchFolder, create_private_folders};
use crate::plugin::Sha256Digest;

/// Asset that was downloaded to a file, or copied to one.
pub(super) struct DownloadedAsset {
    /// Tag of its release.
    pub(super) tag: String,
    /// Name of the asset.
    pub(super) name: String,
    /// Digest of its bytes.
    pub(super) digest: Sha256Digest,
    /// Digest that its server publishes.
    pub(super) published: Option<Sha256Digest>,
    /// Host that it is from, for messages.
    pub(super) host: String,
    /// Path of the file.
    pub(super) path: PathBuf,
}

impl DownloadedAsset {
    /// Verifies the asset, and unpacks it into the scratch folder.
    pub(super) async fn unpack(
        self,
        spec: PackageSpec<'_>,
        scratch: &Arc<ScratchFolder>,
    ) -> Result<Fetched, InstallError> {
        let Self { tag: revision, name, digest: download_digest, published, host, path } = self;
        let (fetched_name, recorded) = (name.clone(), spec.recorded.cloned());
        let known = recorded.as_ref().map(|recorded| recorded.digest).or(published);
        let folder = scratch.path().join("package");
        let (names, platform, declared) = (spec.executables.clone(), spec.platform, spec.expected_digest);
        let is_built = spec.build.is_some();
        let (made, scratch) = (folder.clone(), Arc::clone(scratch));
        let (archive, files) = run_blocking(move || {
            // The caller may be cancelled: the folder must exist until the blocking work ends.
            let _scratch = scratch;
            let package = DownloadedFile { name: &name, path: &path };
            // First: the digest of a page of a proxy is nothing that an author has changed.
            package.check_content(platform)?;
            // The declared digest may be that of the executable, which is computed without unpacking.
            if let Some(expected) = declared
                && expected != download_digest
                && package.program_digest(&names)? != Some(expected)
            {
                let (found, differing) = (download_digest, Box::default());
                return Err(InstallError::ChecksumMismatch { expected, found, published: known, differing });
            }
            if let Some(recorded) = &recorded {
                recorded.check(download_digest)?;
            }
            if let Some(published) = published.filter(|published| *published != download_digest) {
                let found = download_digest;
                return Err(InstallError::PublishedMismatch { asset: name, host, published, found });
            }
            create_private_folders(&folder)?;
            let (kind, files) = package.unpack(&folder, &names.of_package)?;
            if !is_built {
                locate(&names, &folder).map_err(|error| match error {
                    InstallError::NoPlugin { executable, .. } => {
                        InstallError::NotInArchive { archive: name, executable, files: files_in(&folder) }
                    }
                    other => other,
                })?;
            }
            Ok(((kind != Kind::Plain).then_some(path), files))
        })
        .await?;
        let download = Some(Download { digest: download_digest, published, archive });
        Ok(Fetched { revision, name: fetched_name, download, folder: made, files: Some(files) })
    }
}
