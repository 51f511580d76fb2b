//! Verification of packages. Of a local one the digest is computed while the files are copied, and the copy is executed.
//!
//! ```text
//! executable   sha256 of its bytes
//! folder       digest of its files, see [`FileDigests`]
//! ```
//! Without a declared checksum no file is verified or copied: the original files are executed.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::InstallError;
use super::file_digests::{FileDigests, FileKind, GIT_FOLDER, hash_while_reading, may_lead_out};
use super::package_cache::PackageCache;
use crate::fs::{FileError, ScratchFolder, check_trusted_target, create_private_folders, open_regular};
use crate::plugin::{Checksum, Platform, Sha256Digest};
use crate::source::{FetchError, without_credentials};

/// Name of the folders of compiled files of Python, which are neither hashed nor copied.
const COMPILED_FOLDER: &str = "__pycache__";
/// File that makes a folder a virtual environment of Python (PEP 405).
const ENVIRONMENT_FILE: &str = "pyvenv.cfg";

/// Files that were verified, or that have no declared checksum. Created in this module only.
#[derive(Debug)]
pub(super) struct CheckedFiles {
    /// Executable or folder that may be run.
    path: PathBuf,
    folder: PathBuf,
    digest: Option<Sha256Digest>,
    _copy: Option<ScratchFolder>,
}

impl CheckedFiles {
    /// Creates the value for a folder in the cache with verified digests.
    pub(super) fn in_cache(folder: PathBuf) -> Self {
        Self { path: folder.clone(), folder, digest: None, _copy: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn digest(&self) -> Option<Sha256Digest> {
        self.digest
    }
}

/// Parameters of a verification.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChecksumCheck<'a> {
    pub(super) checksum: Option<&'a Checksum>,
    pub(super) platform: Option<Platform>,
    /// Cache that contains the private copies.
    pub(super) cache: &'a PackageCache,
}

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

impl ChecksumCheck<'_> {
    fn expected_digest(&self) -> Result<Option<Sha256Digest>, InstallError> {
        expected_digest(self.checksum, self.platform)
    }

    /// Verifies an executable. `plugin_folder` is the folder of a plugin that is declared by its folder. The private
    /// copy of such an executable is placed beside links to the other files of `plugin_folder`, which the checksum does
    /// not cover.
    pub(super) fn executable(&self, path: &Path, plugin_folder: Option<&Path>) -> Result<CheckedFiles, InstallError> {
        let Some(expected) = self.expected_digest()? else {
            let folder = path.parent().unwrap_or(path).to_owned();
            return Ok(CheckedFiles { path: path.to_owned(), folder, digest: None, _copy: None });
        };
        let copy = self.cache.scratch()?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let folder = copy.path().join("plugin");
        create_private_folders(&folder)?;
        let target = folder.join(name);
        let found = copy_file(path, &target)?;
        if found != expected {
            return Err(InstallError::ChecksumMismatch { expected, found, published: None, differing: Box::default() });
        }
        if let Some(plugin_folder) = plugin_folder {
            for member in fs::read_dir(plugin_folder).map_err(FileError::of("list", plugin_folder))? {
                let member = member.map_err(FileError::of("list", plugin_folder))?;
                if member.file_name() != name {
                    let link = folder.join(member.file_name());
                    std::os::unix::fs::symlink(member.path(), &link).map_err(FileError::of("create link", &link))?;
                }
            }
        }
        Ok(CheckedFiles { path: target, folder, digest: Some(found), _copy: Some(copy) })
    }

    /// Verifies a whole folder, given by its canonical path.
    pub(super) fn folder(&self, folder: &Path) -> Result<CheckedFiles, InstallError> {
        let Some(expected) = self.expected_digest()? else {
            return Ok(CheckedFiles { path: folder.to_owned(), folder: folder.to_owned(), digest: None, _copy: None });
        };
        let copy = self.cache.scratch()?;
        if fs::canonicalize(copy.path()).is_ok_and(|copy| copy.starts_with(folder)) {
            let reason = "the folder for private copies is inside it";
            return Err(InstallError::NotHashable { path: folder.to_owned(), reason });
        }
        // The copy has the same folder name, for programs that show it.
        let target = copy.path().join(folder.file_name().unwrap_or("plugin".as_ref()));
        let files = read_folder(folder, Some(&target))?;
        let found = files.checksum_digest();
        if found != expected {
            let differing = self.cache.folder_files(expected).map(|known| files.differences(&known).into());
            let differing = differing.unwrap_or_default();
            return Err(InstallError::ChecksumMismatch { expected, found, published: None, differing });
        }
        // Without the list, a later mismatch names no files.
        self.cache.keep_folder_files(&files).ok();
        Ok(CheckedFiles { path: target.clone(), folder: target, digest: Some(found), _copy: Some(copy) })
    }
}

/// Returns the digests of the files of a folder, given by its canonical path. Copies the folder to `copy`.
pub(super) fn read_folder(folder: &Path, copy: Option<&Path>) -> Result<FileDigests, InstallError> {
    let mut hash = FolderHash { root: folder, files: FileDigests::default() };
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
            // Python writes its compiled files in a run without a checksum, and does not need them.
            let is_compiled = kind.is_dir() && member.file_name() == COMPILED_FOLDER;
            // It differs between machines, and is used where it was made.
            let is_environment = from == self.root && kind.is_dir() && source.join(ENVIRONMENT_FILE).is_file();
            if is_compiled || is_environment || member.file_name() == GIT_FOLDER {
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
                    None => hash_file(&source)?,
                };
                self.files.add(self.root, &source, digest, FileKind::Plain)?;
            } else {
                return Err(InstallError::NotHashable { path: source, reason: "it is neither file, folder nor link" });
            }
        }
        Ok(())
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
fn copy_file(from: &Path, to: &Path) -> Result<Sha256Digest, FileError> {
    let mut source = open_regular(from).map_err(FileError::of("read", from))?;
    let metadata = source.metadata().map_err(FileError::of("read", from))?;
    let executable = metadata.permissions().mode() & 0o111 != 0;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(if executable { 0o500 } else { 0o400 });
    let mut target = options.open(to).map_err(FileError::of("create", to))?;
    hash_while_reading(&mut source, from, |bytes| target.write_all(bytes).map_err(FileError::of("write", to)))
}
