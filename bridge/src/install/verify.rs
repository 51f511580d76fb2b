//! Checks bytes while it copies them: what was checked is what runs.
//!
//! ```text
//! executable   sha256 of its bytes
//! folder       the digest of its files, see [`FileDigests`]
//! ```
//! Without a declared checksum nothing is copied: the files run where they are.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::InstallError;
use super::tree::{FileDigests, GIT, digest_of_reading, leads_out};
use crate::fs::{PathError, Scratch};
use crate::plugin::{Checksum, Platform, Sha256Digest};

/// Files that were checked, or that nobody wanted checked. Made nowhere but here.
#[derive(Debug)]
pub(super) struct Checked {
    /// The executable or the folder: that which may run.
    path: PathBuf,
    folder: PathBuf,
    digest: Option<Sha256Digest>,
    _copy: Option<Scratch>,
}

impl Checked {
    /// Files within a folder that nobody but us writes to, whose digests were found to be those they should have.
    pub(super) fn in_store(folder: PathBuf) -> Self {
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

/// What to check against, and where copies go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check<'a> {
    pub(super) checksum: Option<&'a Checksum>,
    pub(super) platform: Option<Platform>,
    /// A folder for private copies.
    pub(super) work: &'a Path,
}

/// The digest that is declared for a platform, if any is. One that is missing among several is refused, never skipped.
pub(super) fn expected(
    checksum: Option<&Checksum>,
    platform: Option<Platform>,
) -> Result<Option<Sha256Digest>, InstallError> {
    let Some(checksum) = checksum else { return Ok(None) };
    checksum.for_platform(platform).map(Some).ok_or(InstallError::NoChecksum { platform })
}

impl Check<'_> {
    fn expected(&self) -> Result<Option<Sha256Digest>, InstallError> {
        expected(self.checksum, self.platform)
    }

    /// Checks an executable. If it came as a member of a folder, its copy finds links to the other members beside
    /// itself, as it would at home; the checksum does not cover those.
    pub(super) fn executable(&self, path: &Path, home: Option<&Path>) -> Result<Checked, InstallError> {
        let Some(expected) = self.expected()? else {
            let folder = path.parent().unwrap_or(path).to_owned();
            return Ok(Checked { path: path.to_owned(), folder, digest: None, _copy: None });
        };
        let copy = self.private_folder()?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let target = copy.path().join(name);
        let found = copy_file(path, &target)?;
        if found != expected {
            return Err(InstallError::ChecksumMismatch { expected, found });
        }
        if let Some(home) = home {
            for member in fs::read_dir(home).map_err(PathError::of("list", home))? {
                let member = member.map_err(PathError::of("list", home))?;
                if member.file_name() != name {
                    let link = copy.path().join(member.file_name());
                    std::os::unix::fs::symlink(member.path(), &link).map_err(PathError::of("create link", &link))?;
                }
            }
        }
        Ok(Checked { path: target, folder: copy.path().to_owned(), digest: Some(found), _copy: Some(copy) })
    }

    /// Checks a whole folder, given by its canonical path.
    pub(super) fn folder(&self, folder: &Path) -> Result<Checked, InstallError> {
        let Some(expected) = self.expected()? else {
            return Ok(Checked { path: folder.to_owned(), folder: folder.to_owned(), digest: None, _copy: None });
        };
        let copy = self.private_folder()?;
        if fs::canonicalize(copy.path()).is_ok_and(|copy| copy.starts_with(folder)) {
            let reason = "private copies would lie within it";
            return Err(InstallError::Uncoverable { path: folder.to_owned(), reason });
        }
        // As deep as the original was named, so that programs that show their folder's name show the right one.
        let target = copy.path().join(folder.file_name().unwrap_or("plugin".as_ref()));
        let mut tree = Tree { root: folder, files: FileDigests::default() };
        tree.copy(folder, &target)?;
        let found = tree.files.digest();
        if found != expected {
            return Err(InstallError::ChecksumMismatch { expected, found });
        }
        Ok(Checked { path: target.clone(), folder: target, digest: Some(found), _copy: Some(copy) })
    }

    /// A folder that nobody else can look into or change.
    fn private_folder(&self) -> Result<Scratch, InstallError> {
        Ok(Scratch::new(self.work)?)
    }
}

/// A folder on its way into a copy.
struct Tree<'a> {
    root: &'a Path,
    files: FileDigests,
}

impl Tree<'_> {
    fn copy(&mut self, from: &Path, to: &Path) -> Result<(), InstallError> {
        fs::create_dir(to).map_err(PathError::of("create folder", to))?;
        for member in fs::read_dir(from).map_err(PathError::of("list", from))? {
            let member = member.map_err(PathError::of("list", from))?;
            let (source, target) = (member.path(), to.join(member.file_name()));
            if member.file_name() == GIT {
                continue;
            }
            let kind = member.file_type().map_err(PathError::of("read", &source))?;
            if kind.is_dir() {
                self.copy(&source, &target)?;
            } else if kind.is_symlink() {
                let digest = self.copy_link(&source, &target)?;
                self.note(&source, digest)?;
            } else if kind.is_file() {
                let digest = copy_file(&source, &target)?;
                self.note(&source, digest)?;
            } else {
                return Err(InstallError::Uncoverable { path: source, reason: "it is neither file, folder nor link" });
            }
        }
        Ok(())
    }

    /// A link that stays within the folder leads to what is checked. One that leads out by an absolute path is trusted
    /// as the system's own programs are. Anything else would change its meaning with the copy, or escape the check.
    fn copy_link(&self, from: &Path, to: &Path) -> Result<Sha256Digest, InstallError> {
        let target = fs::read_link(from).map_err(PathError::of("read link", from))?;
        let escapes = if target.is_absolute() {
            target.starts_with(self.root) || fs::canonicalize(&target).is_ok_and(|real| real.starts_with(self.root))
        } else {
            let depth = from.strip_prefix(self.root).map_or(0, |path| path.components().count().saturating_sub(1));
            leads_out(&target, depth)
        };
        if escapes {
            let reason = "the link leads out of the folder, or back into it by an absolute path";
            return Err(InstallError::Uncoverable { path: from.to_owned(), reason });
        }
        std::os::unix::fs::symlink(&target, to).map_err(PathError::of("create link", to))?;
        Ok(Sha256Digest::of(target.as_os_str().as_bytes()))
    }

    fn note(&mut self, path: &Path, digest: Sha256Digest) -> Result<(), InstallError> {
        self.files.note(self.root, path, digest, false)
    }
}

/// Copies a file and says the digest of the bytes that were written. The copy is read-only, and executable if the file is.
fn copy_file(from: &Path, to: &Path) -> Result<Sha256Digest, PathError> {
    let mut source = File::open(from).map_err(PathError::of("read", from))?;
    let metadata = source.metadata().map_err(PathError::of("read", from))?;
    let executable = metadata.permissions().mode() & 0o111 != 0;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(if executable { 0o500 } else { 0o400 });
    let mut target = options.open(to).map_err(PathError::of("create", to))?;
    digest_of_reading(&mut source, from, |bytes| target.write_all(bytes).map_err(PathError::of("write", to)))
}
