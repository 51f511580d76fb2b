//! Copies of the files of a commit: which one the folders of plugins and the mirror have, and its archive from there.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::cached_fetcher::{Fetched, RecordedDigest};
use super::copies::{Index, IndexedAsset, IndexedCommit, IndexedVersion, MirroredAsset};
use super::copy_places::{CopiedFile, CopyPlaces};
use super::file_digests::{FileDigests, FileKind};
use super::mirror::{CopyTarget, PartialFile};
use super::package_cache::CachedPackage;
use super::unpack::DownloadedFile;
use super::verify::hash_file;
use super::{InstallError, run_blocking};
use crate::fs::{FileError, ScratchFolder, create_private_folders, open_regular};
use crate::plugin::{ResolvedCommit, Sha256Digest, WantedVersion};

/// Name by which an archive without the files of a commit, one file, would be unpacked.
const PLAIN: &str = "plain";

/// Returns the name of the archive of a commit.
fn archive_name(commit: &str) -> String {
    format!("{commit}.tar.gz")
}

/// Returns the commit that the index of the folders of plugins has for a wanted version, else the one that the index of the mirror has;
/// `None` if neither has one. Its digest is trusted as at a first download.
pub(super) async fn resolve_copy(
    copies: CopyPlaces<'_>,
    wanted: &WantedVersion,
) -> Result<Option<ResolvedCommit>, InstallError> {
    for folder in copies.folders() {
        let listed = folder.clone();
        let index = run_blocking(move || listed.index()).await?;
        if let Some(found) = choose(index, wanted) {
            copies.tell(wanted_name(&found), &folder.0.display().to_string());
            return Ok(Some(found));
        }
    }
    let Some(mirror) = copies.mirror()? else { return Ok(None) };
    let found = copies.mirror_index(&mirror).await?.and_then(|index| choose(index, wanted));
    Ok(found.inspect(|found| copies.tell(wanted_name(found), &mirror.host())))
}

fn wanted_name(found: &ResolvedCommit) -> &str {
    found.tag.as_deref().unwrap_or(&found.commit)
}

/// Returns the commit with the highest tag in a range, or that of a tag or a full id. What a branch is, only its repository knows.
fn choose(index: Index, wanted: &WantedVersion) -> Option<ResolvedCommit> {
    let commit = |version: IndexedVersion| {
        let IndexedCommit { id, tree } = version.commit?;
        let tag = Some(version.tag).filter(|tag| *tag != id);
        Some(ResolvedCommit { tag, commit: id, tree: Some(tree) })
    };
    let mut commits = index.versions.into_iter().filter_map(commit);
    match wanted {
        WantedVersion::Named(name) => {
            commits.find(|found| found.commit == *name || found.tag.as_deref() == Some(name.as_str()))
        }
        WantedVersion::Range(range) => {
            let in_range = commits.filter_map(|found| Some((range.version_in(found.tag.as_deref()?)?, found)));
            in_range.max_by(|(first, _), (second, _)| first.cmp(second)).map(|(_, found)| found)
        }
        WantedVersion::Latest => None,
    }
}

/// Fetches the files of a commit from the folders of plugins, else from the mirror; `None` if neither has them.
///
/// # Errors
/// [`InstallError::OtherCopy`] if they are not what is recorded.
pub(super) async fn fetch_copy(
    copies: CopyPlaces<'_>,
    recorded: &RecordedDigest,
    scratch: &Arc<ScratchFolder>,
) -> Result<Option<Fetched>, InstallError> {
    let (commit, path) = (recorded.revision.clone(), scratch.path().join("download"));
    let name = archive_name(&commit);
    let Some(CopiedFile { origin, .. }) = copies.fetch_file(&commit, (&name, None), None, &path).await? else {
        return Ok(None);
    };
    let folder = scratch.path().join("package");
    let (made, scratch, recorded, archive) = (folder.clone(), Arc::clone(scratch), recorded.clone(), name.clone());
    let unpacked = run_blocking(move || {
        // The caller may be cancelled: the folder must exist until the blocking work ends.
        let _scratch = scratch;
        create_private_folders(&made)?;
        let (_, files) = DownloadedFile { name: &archive, path: &path }.unpack(&made, PLAIN)?;
        recorded.check(files.checksum_digest())?;
        Ok(files)
    });
    let fetched = |files| Some(Fetched { revision: commit, name, download: None, folder, files: Some(files) });
    unpacked.await.map(fetched).map_err(|error| InstallError::OtherCopy { place: origin, source: Box::new(error) })
}

/// Writes the files of a commit into a folder of plugins, and adds it to the index.
pub(super) async fn mirror(
    below: &Path,
    place: &str,
    commit: ResolvedCommit,
    cached: CachedPackage,
) -> Result<MirroredAsset, InstallError> {
    let ResolvedCommit { tag, commit, .. } = commit;
    let (target, name, tree) =
        (CopyTarget::new(below, place, &commit)?, archive_name(&commit), cached.files.checksum_digest());
    let path = target.path(&commit, &name);
    let is_kept = has_tree(&path, tree).await?;
    if !is_kept {
        let partial = PartialFile::begin(&path)?;
        let written = partial.path().to_owned();
        run_blocking(move || write_archive(&written, &cached.folder, &cached.files)).await?;
        partial.finish().await?;
    }
    let written = path.clone();
    let sha256 = run_blocking(move || hash_file(&written)).await?;
    let size = path.metadata().map_err(FileError::of("read", &path))?.len();
    let assets = [(name, IndexedAsset { size, sha256 })].into();
    let tag = tag.unwrap_or_else(|| commit.clone());
    let commit = Some(IndexedCommit { id: commit, tree });
    target.add_to_index(IndexedVersion { tag, released: None, commit, assets }).await?;
    Ok(MirroredAsset { path, platform: None, size, is_kept })
}

/// Returns whether an archive is there and has files with a digest.
async fn has_tree(path: &Path, tree: Sha256Digest) -> Result<bool, InstallError> {
    let path = path.to_owned();
    run_blocking(move || {
        let files = path.is_file().then(|| DownloadedFile { name: PLAIN, path: &path }.file_digests());
        Ok(files.is_some_and(|files| files.is_ok_and(|files| files.checksum_digest() == tree)))
    })
    .await
}

/// Writes files in the order of their paths, without times and owners: the same files have the same archive.
fn write_archive(to: &Path, folder: &Path, files: &FileDigests) -> Result<(), InstallError> {
    let failed = FileError::of("write", to);
    let written = || -> io::Result<()> {
        let mut archive = tar::Builder::new(GzEncoder::new(File::create(to)?, Compression::default()));
        for path in files.paths() {
            let (from, mut header) = (folder.join(path), tar::Header::new_gnu());
            header.set_mtime(0);
            match files.entry(path).map(|file| file.kind) {
                Some(FileKind::Link) => {
                    header.set_entry_type(tar::EntryType::Symlink);
                    header.set_size(0);
                    header.set_mode(0o777);
                    archive.append_link(&mut header, path, std::fs::read_link(&from)?)?;
                }
                kind => {
                    let file = open_regular(&from)?;
                    header.set_size(file.metadata()?.len());
                    header.set_mode(if kind == Some(FileKind::Executable) { 0o755 } else { 0o644 });
                    archive.append_data(&mut header, path, file)?;
                }
            }
        }
        archive.into_inner()?.finish()?.set_permissions(Permissions::from_mode(0o644))
    };
    Ok(written().map_err(failed)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn archive_has_the_files_of_the_tree() {
        let root = tempfile::tempdir().unwrap();
        let (tree, unpacked) = (root.path().join("tree"), root.path().join("unpacked"));
        let deep = "a".repeat(90);
        fs::create_dir_all(tree.join(&deep).join(&deep)).unwrap();
        fs::create_dir(&unpacked).unwrap();
        fs::write(tree.join(&deep).join(&deep).join("file"), "text").unwrap();
        fs::write(tree.join("run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(tree.join("run"), Permissions::from_mode(0o755)).unwrap();
        symlink("run", tree.join("link")).unwrap();
        let files = FileDigests::of(&tree).unwrap();
        let (first, second) = (root.path().join("first"), root.path().join("second"));
        for archive in [&first, &second] {
            write_archive(archive, &tree, &files).unwrap();
        }
        assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
        let (_, found) = DownloadedFile { name: "a", path: &first }.unpack(&unpacked, PLAIN).unwrap();
        assert_eq!(found.cache_digest(), files.cache_digest());
        assert_eq!(FileDigests::of(&unpacked).unwrap(), files);
    }

    /// Shows: plugins.md#folders-of-plugins-and-mirrors "a branch is asked of its repository"
    #[test]
    fn index_has_tags_and_commits_and_no_branches() {
        let (first, second) = ("1".repeat(40), "2".repeat(40));
        let version = |tag: &str, commit: Option<&str>| {
            let commit = commit.map(|id| IndexedCommit { id: id.to_owned(), tree: Sha256Digest::from_bytes([7; 32]) });
            IndexedVersion { tag: tag.to_owned(), released: None, commit, assets: Default::default() }
        };
        let index = || Index {
            versions: vec![
                version("v1.0.0", Some(&first)),
                version("v1.1.0", Some(&second)),
                version(&first, Some(&first)),
                version("v1.9.0", None),
            ],
        };
        let range = |text: &str| WantedVersion::of_git(text).unwrap();
        let named = |name: &str| WantedVersion::Named(name.to_owned());
        for (wanted, expected) in [
            (range("^1"), Some(&second)),
            (range("~1.0"), Some(&first)),
            (range("^2"), None),
            (named("v1.0.0"), Some(&first)),
            (named(&second), Some(&second)),
            (named("v1.9.0"), None),
            (named("main"), None),
            (WantedVersion::Latest, None),
        ] {
            let found = choose(index(), &wanted);
            assert_eq!(found.as_ref().map(|found| &found.commit), expected, "{wanted}");
        }
    }
}
