//! Safe unpacking of untrusted archives: an archive can only create files, folders and links in one folder.
//!
//! Supported: tar, tar.gz, tar.zst, zip, and a plain file. An archive may contain files, folders and links that stay inside; any other
//! member makes the whole archive fail. Each file is hashed as it is written. Excluded: verification of digests.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, BufReader, Read, Seek as _};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest as _, Sha256};

use super::archive_error::{ArchiveError, PartOfPackage};
use super::content::{HEAD, Kind, describe, is_program, is_tar, read_head};
use super::error::InstallError;
use super::file_digests::{FileDigests, FileEntry, FileKind, GIT_FOLDER, may_lead_out};
use super::layout::ExecutableNames;
use super::members::{MAX_MEMBERS, Member, MemberKind, OnMember, TOO_MANY, UnpackError, read_members};
use crate::fs::{FileError, open_regular};
use crate::plugin::{Platform, Sha256Digest};
use crate::zstd::ZstdReader;

/// Maximum total size of all files, in bytes.
pub(super) const MAX_BYTES: u64 = 8 << 30;
/// Size of the unpacked content that is allowed for any archive, in bytes.
const ALLOWED_BYTES: u64 = 64 << 20;
/// Maximum ratio of the size of the unpacked content to the size of the archive, above [`ALLOWED_BYTES`].
const MAX_RATIO: u64 = 100;
/// Maximum length of a path in bytes, and maximum number of its components.
pub(super) const MAX_PATH_LENGTH: usize = 1024;
pub(super) const MAX_PATH_DEPTH: usize = 64;
/// Maximum number of links from the name of a program to its file.
const MAX_LINKS: usize = 8;

/// Downloaded file.
#[derive(Debug)]
pub(super) struct DownloadedFile<'a> {
    /// Name for messages.
    pub(super) name: &'a str,
    /// Path of the file.
    pub(super) path: &'a Path,
}

impl DownloadedFile<'_> {
    /// Checks that the file is an archive or a program for a platform, as far as its first bytes show. Damage that prevents
    /// this check is left to those that read more.
    ///
    /// # Errors
    /// [`InstallError::Unusable`], [`InstallError::Archive`] for an archive format that is not supported,
    /// [`InstallError::Path`].
    pub(super) fn check_content(&self, platform: Option<Platform>) -> Result<(), InstallError> {
        let path_error = |action| FileError::of(action, self.path);
        let file = open_regular(self.path).map_err(path_error("read"))?;
        let head = read_head(&file).map_err(path_error("read"))?;
        let unusable = |content, part| Err(InstallError::Unusable { name: self.name.to_owned(), content, part });
        match Kind::of(&head) {
            Kind::Plain if is_program(&head, platform) => Ok(()),
            Kind::Plain => unusable(describe(&head), PartOfPackage::Asset),
            Kind::Unsupported(format) => {
                let source = ArchiveError::UnsupportedFormat(format);
                Err(InstallError::Archive { archive: self.name.to_owned(), source })
            }
            Kind::Tar | Kind::Zip => Ok(()),
            Kind::Gzip | Kind::Zstd => {
                (&file).rewind().map_err(path_error("read"))?;
                let (compressed, mut block) = (BufReader::new(&file), Vec::with_capacity(HEAD));
                let (read, format) = match Kind::of(&head) {
                    Kind::Zstd => (ZstdReader::new(compressed).take(HEAD as u64).read_to_end(&mut block), "zstd"),
                    _ => (MultiGzDecoder::new(compressed).take(HEAD as u64).read_to_end(&mut block), "gzip"),
                };
                if read.is_err() || is_tar(&block) || (block.len() == HEAD && block.iter().all(|byte| *byte == 0)) {
                    return Ok(());
                }
                let content = format!("a {format}-compressed file that is no tar archive, but {}", describe(&block));
                let is_program = is_program(&block, platform);
                unusable(content, if is_program { PartOfPackage::CompressedProgram } else { PartOfPackage::Asset })
            }
        }
    }

    /// Unpacks the archive into an empty folder, and hashes each file as it is written. A plain file is copied to the file `plain` in the
    /// folder. Returns the format and the digests of the files.
    ///
    /// # Errors
    /// [`InstallError::Archive`], [`InstallError::Path`]. The caller must remove the folder then.
    pub(super) fn unpack(&self, folder: &Path, plain: &str) -> Result<(Kind, FileDigests), InstallError> {
        let mut unpacker = Unpacker { folder, left: 0, folders: 0, digests: FileDigests::default() };
        let kind = self.read(|kind, file, limit| {
            unpacker.left = limit;
            if kind == Kind::Plain {
                return unpacker.write_file(Path::new(plain), file, 0o755);
            }
            read_members(file, kind, limit, &mut |member, content| {
                unpacker.unpack(member, content)?;
                Ok(ControlFlow::Continue(()))
            })
        })?;
        Ok((kind, unpacker.digests))
    }

    /// Returns the digests of the files that [`unpack`](Self::unpack) has created from an archive with the same bytes,
    /// without unpacking.
    ///
    /// # Errors
    /// [`InstallError::Archive`], [`InstallError::Path`].
    pub(super) fn file_digests(&self) -> Result<FileDigests, InstallError> {
        let mut digests = FileDigests::default();
        self.read_members(&mut |member, content| {
            add_member(&mut digests, member, content)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(digests)
    }

    /// Returns the digest of the program of a plugin at the top of the archive, as it is found in the unpacked package: the first of the
    /// names, also as a link to another file, or else the only program. `None` if there is none.
    ///
    /// # Errors
    /// [`InstallError::Archive`], [`InstallError::Path`].
    pub(super) fn program_digest(&self, names: &ExecutableNames) -> Result<Option<Sha256Digest>, InstallError> {
        let (mut files, mut links, mut programs) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        self.read_members(&mut |member, content| {
            let Some(path) = plain_path(&member.path).ok().flatten() else { return Ok(ControlFlow::Continue(())) };
            match &member.kind {
                MemberKind::File(mode) => {
                    let mut head = Vec::with_capacity(HEAD);
                    content.take(HEAD as u64).read_to_end(&mut head).map_err(ArchiveError::Unreadable)?;
                    let digest = hash(&mut head.as_slice().chain(content))?;
                    let is_executable = FileKind::of_mode(*mode) == FileKind::Executable;
                    if is_executable && path.components().count() == 1 && is_program(&head, None) {
                        programs.push(digest);
                    }
                    files.insert(path, digest);
                }
                MemberKind::Link(target) => {
                    links.extend(target_in_archive(&path, target).map(|target| (path, target)));
                }
                MemberKind::HardLink(target) => {
                    links.extend(plain_path(target).ok().flatten().map(|target| (path, target)));
                }
                MemberKind::Folder | MemberKind::Other => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let file_of = |name: &str| {
            let mut path = Path::new(name);
            for _ in 0..=MAX_LINKS {
                match links.get(path) {
                    Some(target) => path = target,
                    None => return files.get(path).copied(),
                }
            }
            None
        };
        let only = programs.first().copied().filter(|_| programs.len() == 1 && names.accepts_only_program());
        Ok(names.iter().find_map(file_of).or(only))
    }

    /// Reads the members of the archive. A plain file has none.
    fn read_members(&self, on_member: OnMember<'_>) -> Result<(), InstallError> {
        let read = |kind, file: &mut fs::File, limit| match kind {
            Kind::Plain => Ok(()),
            kind => read_members(file, kind, limit, on_member),
        };
        self.read(read).map(drop)
    }

    /// Opens the file, and calls `read` with its format and the maximum number of unpacked bytes. Returns the format.
    fn read(
        &self,
        read: impl FnOnce(Kind, &mut fs::File, u64) -> Result<(), UnpackError>,
    ) -> Result<Kind, InstallError> {
        let path_error = |action| FileError::of(action, self.path);
        let mut file = open_regular(self.path).map_err(path_error("read"))?;
        let size = file.metadata().map_err(path_error("read"))?.len();
        let limit = MAX_BYTES.min(size.saturating_mul(MAX_RATIO).max(ALLOWED_BYTES));
        let mut result = detect_kind(&mut file).and_then(|kind| read(kind, &mut file, limit).map(|()| kind));
        if let Err(UnpackError::Archive(ArchiveError::Unreadable(error))) = &mut result
            && error.kind() == io::ErrorKind::UnexpectedEof
        {
            *error = io::Error::new(io::ErrorKind::UnexpectedEof, "it ends too early");
        }
        result.map_err(|error| match error {
            UnpackError::Archive(source) => InstallError::Archive { archive: self.name.to_owned(), source },
            UnpackError::Path(error) => error.into(),
        })
    }
}

/// Detects the format of a file, and returns to its start. Returns an error for an archive format that is not supported.
fn detect_kind(file: &mut fs::File) -> Result<Kind, UnpackError> {
    let head = read_head(file).map_err(ArchiveError::Unreadable)?;
    file.rewind().map_err(ArchiveError::Unreadable)?;
    match Kind::of(&head) {
        Kind::Unsupported(format) => Err(ArchiveError::UnsupportedFormat(format).into()),
        kind => Ok(kind),
    }
}

/// Adds the digest of a member as [`FileDigests::of`] computes it for the unpacked member.
fn add_member(digests: &mut FileDigests, member: &Member, content: &mut dyn Read) -> Result<(), UnpackError> {
    let refused = |reason| member.refused(reason);
    let Some(path) = plain_path(&member.path).map_err(refused)? else { return Ok(()) };
    let (digest, kind) = match &member.kind {
        MemberKind::File(mode) => (hash(content)?, FileKind::of_mode(*mode)),
        MemberKind::Link(target) => (Sha256Digest::of(target.as_os_str().as_bytes()), FileKind::Link),
        MemberKind::HardLink(target) => {
            let other = plain_path(target).map_err(refused)?.unwrap_or_default();
            let added = digests.add_copy(&path, &other);
            return if added { Ok(()) } else { Err(refused("the target of the hard link is missing").into()) };
        }
        MemberKind::Folder | MemberKind::Other => return Ok(()),
    };
    add(digests, &path, FileEntry { digest, kind });
    Ok(())
}

/// Adds a file by a path that is UTF-8.
fn add(digests: &mut FileDigests, path: &Path, file: FileEntry) {
    digests.insert(path.to_string_lossy().into_owned(), file);
}

/// Writer of the members of an archive into a folder.
struct Unpacker<'a> {
    folder: &'a Path,
    /// Number of bytes that may still be unpacked.
    left: u64,
    /// Number of folders that were created: a path can name many.
    folders: usize,
    /// Digests of what was written.
    digests: FileDigests,
}

impl Unpacker<'_> {
    fn unpack(&mut self, member: &Member, content: &mut dyn Read) -> Result<(), UnpackError> {
        let refused = |reason| member.refused(reason);
        let Some(inside) = plain_path(&member.path).map_err(refused)? else { return Ok(()) };
        let depth = inside.components().count() - 1;
        let target = self.folder.join(&inside);
        self.create_parents(&inside)
            .map_err(|error| error.unwrap_or_else(|| refused("a parent of its path is not a folder").into()))?;
        let exists = || target.symlink_metadata().is_ok();
        match &member.kind {
            MemberKind::Folder => self.create_folder(&inside).map_err(|error| {
                error.unwrap_or_else(|| refused("another entry has this path and is not a folder").into())
            }),
            MemberKind::File(_) if exists() => Err(refused("another entry has the same path").into()),
            MemberKind::File(mode) => self.write_file(&inside, content, *mode),
            MemberKind::Link(link) => {
                if link.as_os_str().is_empty() || may_lead_out(link, depth) {
                    return Err(refused("the link may lead out of the package").into());
                }
                if exists() {
                    return Err(refused("another entry has the same path").into());
                }
                std::os::unix::fs::symlink(link, &target).map_err(FileError::of("create link", &target))?;
                let digest = Sha256Digest::of(link.as_os_str().as_bytes());
                add(&mut self.digests, &inside, FileEntry { digest, kind: FileKind::Link });
                Ok(())
            }
            MemberKind::HardLink(_) if exists() => Err(refused("another entry has the same path").into()),
            MemberKind::HardLink(link) => {
                let outside = || refused("the link may lead out of the package");
                let other_inside = plain_path(link).ok().flatten().ok_or_else(outside)?;
                self.create_parents(&other_inside).map_err(|_| outside())?;
                let other = self.folder.join(&other_inside);
                let Some(metadata) = other.symlink_metadata().ok().filter(|metadata| metadata.is_file()) else {
                    return Err(refused("the target of the hard link is missing").into());
                };
                // A hard link counts as a copy: hashing reads its content again.
                let left = self.left.checked_sub(metadata.len());
                self.left = left.ok_or(ArchiveError::TooLarge("its hard links are too large"))?;
                fs::hard_link(&other, &target).map_err(FileError::of("create link", &target))?;
                self.digests.add_copy(&inside, &other_inside);
                Ok(())
            }
            MemberKind::Other => Err(refused("it is neither file, folder nor link").into()),
        }
    }

    /// Writes a new file, read-only, and hashes it.
    fn write_file(&mut self, inside: &Path, content: &mut (impl Read + ?Sized), mode: u32) -> Result<(), UnpackError> {
        let (path, kind) = (self.folder.join(inside), FileKind::of_mode(mode));
        let mode = if kind == FileKind::Executable { 0o500 } else { 0o400 };
        let created = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        let mut file = created.map_err(FileError::of("create", &path))?;
        let mut hash = Sha256::new();
        self.left -= copy(content, self.left, |bytes| {
            io::Write::write_all(&mut file, bytes).map_err(FileError::of("write", &path))?;
            hash.update(bytes);
            Ok(())
        })?;
        add(&mut self.digests, inside, FileEntry { digest: Sha256Digest::finish(hash), kind });
        Ok(())
    }

    /// Creates the parent folders of a path. Returns `Err(None)` if one of them exists and is not a folder, or is
    /// a link to a folder.
    fn create_parents(&mut self, inside: &Path) -> Result<(), Option<UnpackError>> {
        match inside.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                self.create_parents(parent)?;
                self.create_folder(parent)
            }
            _ => Ok(()),
        }
    }

    fn create_folder(&mut self, inside: &Path) -> Result<(), Option<UnpackError>> {
        let path = self.folder.join(inside);
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => Err(None),
            Err(_) => {
                self.folders += 1;
                if self.folders > MAX_MEMBERS {
                    return Err(Some(ArchiveError::TooLarge(TOO_MANY).into()));
                }
                let created = fs::DirBuilder::new().mode(0o700).create(&path);
                created.map_err(|error| Some(FileError::of("create folder", &path)(error).into()))
            }
        }
    }
}

/// Returns the path in an archive to which a symbolic link leads, without other links on the way; `None` if it leads out.
fn target_in_archive(link: &Path, target: &Path) -> Option<PathBuf> {
    let mut path = link.parent()?.to_owned();
    for component in target.components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => path.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// Returns a relative path without `.` components. `None` for the folder itself.
fn plain_path(path: &Path) -> Result<Option<PathBuf>, &'static str> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) if name == GIT_FOLDER => return Err("its path contains .git"),
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err("its path contains .."),
            Component::RootDir | Component::Prefix(_) => return Err("its path is absolute"),
        }
    }
    if plain.as_os_str().len() > MAX_PATH_LENGTH || plain.components().count() > MAX_PATH_DEPTH {
        return Err("its path is too long");
    }
    if plain.to_str().is_none_or(|plain| plain.contains(['\n', '\0'])) {
        return Err("its path is not UTF-8, or contains a line end");
    }
    Ok(Some(plain).filter(|plain| !plain.as_os_str().is_empty()))
}

/// Returns the digest of all bytes.
fn hash(content: &mut dyn Read) -> Result<Sha256Digest, UnpackError> {
    let mut hash = Sha256::new();
    copy(content, MAX_BYTES, |bytes| {
        hash.update(bytes);
        Ok(())
    })?;
    Ok(Sha256Digest::finish(hash))
}

/// Passes all bytes to `on_chunk` in chunks, and returns their number.
fn copy(
    content: &mut (impl Read + ?Sized),
    limit: u64,
    mut on_chunk: impl FnMut(&[u8]) -> Result<(), UnpackError>,
) -> Result<u64, UnpackError> {
    let mut buffer = vec![0; 256 * 1024];
    let mut copied = 0;
    loop {
        let read = content.read(&mut buffer).map_err(ArchiveError::Unreadable)?;
        if read == 0 {
            return Ok(copied);
        }
        copied += read as u64;
        if copied > limit {
            return Err(ArchiveError::TooLarge("its content is far larger than the archive").into());
        }
        on_chunk(&buffer[..read])?;
    }
}

#[cfg(test)]
mod tests;
