//! Verification of packages: declared digests, and the digests of local files.
//!
//! ```text
//! executable   sha256 of its bytes
//! folder       digest of its files, see [`FileDigests`]
//! ```

use std::fs::{self, DirEntry, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use super::InstallError;
use super::file_digests::{FileDigests, FileKind, hash_while_reading, is_left_out, may_lead_out};
use super::fingerprint::Fingerprint;
use crate::fs::{FileError, check_trusted_target, create_private_folders, open_regular};
use crate::plugin::{Checksum, Platform, Sha256Digest};
use crate::source::{FetchError, without_credentials};

/// Returns the digest that is declared for a platform. Returns `None` without a checksum. Returns an error if the
/// checksum has no digest for this platform.
pub(super) fn expected_digest(
    checksum: Option<&Checksum>,
    platform: Option<Platform>,
) -> Result<Option<Sha256Digest>, InstallError> {
    let Some(checksum) = checksum else { return Ok(None) };
    checksum.for_platform(platform).map(Some).ok_or(InstallError::NoChecksum { platform })
}

/// Returns an error if the content of a source would arrive without encryption and without a checksum: from its
/// unprotected address, if it has one.
pub(super) fn check_transport(unprotected_address: Option<&str>) -> Result<(), InstallError> {
    let refused = |address| FetchError::PlainText { address: without_credentials(address) };
    unprotected_address.map_or(Ok(()), |address| Err(refused(address).into()))
}

/// Returns the digests of the files of a folder, given by its canonical path. Copies the folder to `copy`; without a copy, a file that
/// has not changed since a known fingerprint is not read.
pub(super) fn read_folder(
    folder: &Path,
    copy: Option<&Path>,
    known: Option<&Fingerprint>,
) -> Result<FileDigests, InstallError> {
    let mut hash = FolderHash { root: folder, files: FileDigests::default(), known };
    hash.add_members(folder, copy)?;
    Ok(hash.files)
}

/// Returns the digest of a file, by which a `checksum` pins an executable.
pub(super) fn hash_file(path: &Path) -> Result<Sha256Digest, InstallError> {
    let mut file = open_regular(path).map_err(FileError::of("read", path))?;
    Ok(hash_while_reading(&mut file, path, |_| Ok(()))?)
}

/// Digest of a folder in progress, with a copy of the folder if one is made.
struct FolderHash<'a> {
    root: &'a Path,
    files: FileDigests,
    known: Option<&'a Fingerprint>,
}

impl FolderHash<'_> {
    fn add_members(&mut self, from: &Path, to: Option<&Path>) -> Result<(), InstallError> {
        if let Some(to) = to {
            create_private_folders(to)?;
        }
        for member in fs::read_dir(from).map_err(FileError::of("list", from))? {
            let member = member.map_err(FileError::of("list", from))?;
            let source = member.path();
            let target = to.map(|to| to.join(member.file_name()));
            let target = target.as_deref();
            let kind = member.file_type().map_err(FileError::of("read", &source))?;
            if is_left_out(self.root, &source, kind) {
                continue;
            }
            if kind.is_dir() {
                self.add_members(&source, target)?;
            } else if kind.is_symlink() {
                let digest = self.hash_link(&source, target)?;
                self.files.add(self.root, &source, digest, FileKind::Link)?;
            } else if kind.is_file() {
                let digest = match target {
                    Some(target) => copy_file(&source, target)?,
                    None => match self.known_digest(&source, &member)? {
                        Some(digest) => digest,
                        None => hash_file(&source)?,
                    },
                };
                self.files.add(self.root, &source, digest, FileKind::Plain)?;
            } else {
                return Err(InstallError::NotHashable { path: source, reason: "it is neither file, folder nor link" });
            }
        }
        Ok(())
    }

    /// Returns the digest of a file that has not changed since the known fingerprint.
    fn known_digest(&self, path: &Path, member: &DirEntry) -> Result<Option<Sha256Digest>, InstallError> {
        let Some(known) = self.known else { return Ok(None) };
        let metadata = member.metadata().map_err(FileError::of("read", path))?;
        let inside = path.strip_prefix(self.root).ok().and_then(Path::to_str);
        Ok(inside.and_then(|inside| known.known(inside, &metadata)).map(|file| file.digest))
    }

    /// Hashes a link, and copies it. A relative link that stays inside the folder is allowed, because its target is
    /// verified too. An absolute link to a path outside the folder is trusted like the programs of the system, such as
    /// that of a virtual environment to its interpreter, if no other account can have changed the target. Other links
    /// are an error: they would have another target in the copy, or escape the verification.
    fn hash_link(&self, from: &Path, to: Option<&Path>) -> Result<Sha256Digest, InstallError> {
        let target = fs::read_link(from).map_err(FileError::of("read link", from))?;
        let is_refused = if target.is_absolute() {
            target.starts_with(self.root) || fs::canonicalize(&target).is_ok_and(|real| real.starts_with(self.root))
        } else {
            let depth = from.strip_prefix(self.root).map_or(0, |path| path.components().count().saturating_sub(1));
            may_lead_out(&target, depth)
        };
        let refused = |reason| Err(InstallError::NotHashable { path: from.to_owned(), reason });
        if is_refused {
            return refused("the link leads out of the folder, or back into it by an absolute path");
        }
        if target.is_absolute() && check_trusted_target(&target).is_err() {
            return refused("the target of the link is missing, or another account can change it");
        }
        if let Some(to) = to {
            std::os::unix::fs::symlink(&target, to).map_err(FileError::of("create link", to))?;
        }
        Ok(Sha256Digest::of(target.as_os_str().as_bytes()))
    }
}

/// Copies a file and returns the digest of the written bytes. The copy is read-only, and executable if the file is.
pub(super) fn copy_file(from: &Path, to: &Path) -> Result<Sha256Digest, FileError> {
    let mut source = open_regular(from).map_err(FileError::of("read", from))?;
    let metadata = source.metadata().map_err(FileError::of("read", from))?;
    let executable = metadata.permissions().mode() & 0o111 != 0;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(if executable { 0o500 } else { 0o400 });
    let mut target = options.open(to).map_err(FileError::of("create", to))?;
    hash_while_reading(&mut source, from, |bytes| target.write_all(bytes).map_err(FileError::of("write", to)))
}
