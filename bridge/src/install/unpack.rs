//! Safe unpacking of untrusted archives: an archive can only create files, folders and links in one folder.
//!
//! Supported: tar, tar.gz, and a plain file. A tar may contain files, folders and links that stay inside; any other
//! entry makes the whole archive fail. Excluded: verification of digests.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest as _, Sha256};
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::content::{HEAD, Kind, describe, is_program, is_tar, read_head};
use super::error::{ArchiveError, InstallError, PartOfPackage};
use super::file_digests::{FileDigests, FileKind, GIT_FOLDER, may_lead_out};
use super::layout::ExecutableNames;
use crate::fs::{FileError, open_regular};
use crate::plugin::{Platform, Sha256Digest};

/// Maximum number of entries.
pub(super) const MAX_ENTRIES: usize = 200_000;
/// Maximum total size of all files, in bytes.
pub(super) const MAX_BYTES: u64 = 8 << 30;
/// Size of the unpacked content that is allowed for any archive, in bytes.
const ALLOWED_BYTES: u64 = 64 << 20;
/// Maximum ratio of the size of the unpacked content to the size of the archive, above [`ALLOWED_BYTES`].
const MAX_RATIO: u64 = 100;
/// Maximum size of an extended header in bytes: it is read into memory.
const MAX_HEADER_BYTES: u64 = 1 << 20;
/// Maximum length of a path in bytes, and maximum number of its components.
pub(super) const MAX_PATH_LENGTH: usize = 1024;
pub(super) const MAX_PATH_DEPTH: usize = 64;

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
            Kind::Tar => Ok(()),
            Kind::Gzip => {
                (&file).rewind().map_err(path_error("read"))?;
                let mut block = Vec::with_capacity(HEAD);
                let read = MultiGzDecoder::new(BufReader::new(&file)).take(HEAD as u64).read_to_end(&mut block);
                if read.is_err() || is_tar(&block) || (block.len() == HEAD && block.iter().all(|byte| *byte == 0)) {
                    return Ok(());
                }
                let content = format!("a gzip-compressed file that is no tar archive, but {}", describe(&block));
                let is_program = is_program(&block, platform);
                unusable(content, if is_program { PartOfPackage::CompressedProgram } else { PartOfPackage::Asset })
            }
        }
    }

    /// Unpacks the archive into an empty folder. A plain file is copied to the file `plain` in the folder. Returns the
    /// format.
    ///
    /// # Errors
    /// [`InstallError::Archive`], [`InstallError::Path`]. The caller must remove the folder then.
    pub(super) fn unpack(&self, folder: &Path, plain: &str) -> Result<Kind, InstallError> {
        self.open(Scan::Required, |kind, content, limit| {
            match kind {
                Kind::Plain => drop(write_file(&folder.join(plain), content, 0o500, limit)?),
                Kind::Gzip | Kind::Tar | Kind::Unsupported(_) => Unpacker { folder, left: limit }.unpack(content)?,
            }
            Ok(kind)
        })
    }

    /// Returns the digests of the files that [`unpack`](Self::unpack) has created from an archive with the same bytes,
    /// without unpacking.
    ///
    /// # Errors
    /// [`InstallError::Archive`], [`InstallError::Path`].
    pub(super) fn file_digests(&self) -> Result<FileDigests, InstallError> {
        self.open(Scan::Done, |_, content, limit| {
            let mut digests = FileDigests::default();
            let mut archive = Archive::new(content.take(limit.saturating_mul(2)));
            for entry in archive.entries().map_err(ArchiveError::Unreadable)? {
                add_entry(&mut digests, entry.map_err(ArchiveError::Unreadable)?, limit)?;
            }
            Ok(digests)
        })
    }

    /// Returns the digest of the first entry with one of the names, without unpacking. `None` if no entry has such a
    /// name.
    ///
    /// # Errors
    /// [`InstallError::Archive`], [`InstallError::Path`].
    pub(super) fn entry_digest(&self, names: &ExecutableNames) -> Result<Option<Sha256Digest>, InstallError> {
        self.open(Scan::Required, |kind, content, limit| {
            if kind == Kind::Plain {
                return Ok(None);
            }
            let mut archive = Archive::new(content.take(limit.saturating_mul(2)));
            for entry in archive.entries().map_err(ArchiveError::Unreadable)? {
                let mut entry = entry.map_err(ArchiveError::Unreadable)?;
                let path = entry.path().map_err(ArchiveError::Unreadable)?;
                let name = path.strip_prefix(".").unwrap_or(&path);
                let is_requested = names.iter().any(|requested| name == Path::new(requested));
                if is_requested && entry.header().entry_type() == EntryType::Regular {
                    return Ok(Some(hash(&mut entry, limit)?));
                }
            }
            Ok(None)
        })
    }

    /// Opens the archive and scans it if required, then calls `read` with its format, its content and the maximum number
    /// of unpacked bytes.
    fn open<T>(
        &self,
        required: Scan,
        read: impl FnOnce(Kind, &mut dyn Read, u64) -> Result<T, UnpackError>,
    ) -> Result<T, InstallError> {
        let path_error = |action| FileError::of(action, self.path);
        let file = open_regular(self.path).map_err(path_error("read"))?;
        let size = file.metadata().map_err(path_error("read"))?.len();
        let limit = MAX_BYTES.min(size.saturating_mul(MAX_RATIO).max(ALLOWED_BYTES));
        let mut result = detect_kind(&file).and_then(|kind| {
            let open_content = || {
                (&file).rewind().map_err(ArchiveError::Unreadable)?;
                let content = BufReader::with_capacity(256 * 1024, &file);
                let content: Box<dyn Read + '_> = match kind {
                    Kind::Gzip => Box::new(MultiGzDecoder::new(content)),
                    Kind::Tar | Kind::Plain | Kind::Unsupported(_) => Box::new(content),
                };
                Ok::<_, UnpackError>(content)
            };
            if kind != Kind::Plain && required == Scan::Required {
                scan(&mut *open_content()?, limit)?;
            }
            read(kind, &mut *open_content()?, limit)
        });
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

/// Scan of an archive before its content is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scan {
    Required,
    /// An archive with the same bytes was scanned and unpacked before.
    Done,
}

/// Error of the archive, or of the file system.
#[derive(Debug)]
enum UnpackError {
    Archive(ArchiveError),
    Path(FileError),
}

impl From<ArchiveError> for UnpackError {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

impl From<FileError> for UnpackError {
    fn from(error: FileError) -> Self {
        Self::Path(error)
    }
}

/// Detects the format of a file. Returns an error for an archive format that is not supported.
fn detect_kind(file: &File) -> Result<Kind, UnpackError> {
    match Kind::of(&read_head(file).map_err(ArchiveError::Unreadable)?) {
        Kind::Unsupported(format) => Err(ArchiveError::UnsupportedFormat(format).into()),
        kind => Ok(kind),
    }
}

/// Checks the types, number and lengths of all entries before unpacking.
fn scan(content: &mut dyn Read, limit: u64) -> Result<(), UnpackError> {
    let (mut entries, mut bytes) = (0_usize, 0_u64);
    // Twice the limit, because headers count here.
    let mut bounded = content.take(limit.saturating_mul(2));
    // Raw: extended headers are entries here, so their size is checked before they are read into memory.
    for entry in Archive::new(&mut bounded).entries().map_err(ArchiveError::Unreadable)?.raw(true) {
        let mut entry = entry.map_err(ArchiveError::Unreadable)?;
        (entries, bytes) = (entries + 1, bytes.saturating_add(entry.size()));
        if entries > MAX_ENTRIES {
            return Err(ArchiveError::TooLarge("it has too many entries").into());
        }
        if bytes > limit {
            return Err(ArchiveError::TooLarge("its content is far larger than the archive").into());
        }
        let refused = |path: &[u8], reason| {
            Err(ArchiveError::Entry { path: String::from_utf8_lossy(path).into_owned(), reason }.into())
        };
        match entry.header().entry_type() {
            EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader | EntryType::XGlobalHeader
                if entry.size() > MAX_HEADER_BYTES =>
            {
                return Err(ArchiveError::TooLarge("one of its headers is too large").into());
            }
            // The keys `size` and `GNU.sparse*` of an extended header change the length of the next entry: unpacking
            // would find other entries than this scan.
            EntryType::XHeader => {
                let mut extensions = Vec::new();
                entry.read_to_end(&mut extensions).map_err(ArchiveError::Unreadable)?;
                let changes = |key: &str| key == "size" || key.starts_with("GNU.sparse");
                if PaxExtensions::new(&extensions)
                    .any(|field| field.map_or(true, |field| field.key().map_or(true, changes)))
                {
                    return refused(&entry.path_bytes(), "it changes the length of the next entry");
                }
            }
            EntryType::GNUSparse => return refused(&entry.path_bytes(), "it is a sparse file"),
            _ => {}
        }
    }
    if entries == 0 {
        return Err(ArchiveError::NoFiles.into());
    }
    // Reads to the end, where gzip has its checksum.
    io::copy(&mut bounded, &mut io::sink()).map_err(ArchiveError::Unreadable)?;
    if bounded.limit() == 0 {
        return Err(ArchiveError::TooLarge("its content is far larger than the archive").into());
    }
    Ok(())
}

/// Adds the digest of an entry as [`FileDigests::of`] computes it for the unpacked entry.
fn add_entry(digests: &mut FileDigests, mut entry: Entry<'_, impl Read>, limit: u64) -> Result<(), UnpackError> {
    let shown = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let refused = |reason| ArchiveError::Entry { path: shown.clone(), reason };
    let kind = entry.header().entry_type();
    let path = entry.path().map_err(ArchiveError::Unreadable)?.into_owned();
    let Some(path) = plain_path(&path).map_err(refused)? else { return Ok(()) };
    let link = entry.link_name().map_err(ArchiveError::Unreadable)?.unwrap_or_default().into_owned();
    let (digest, kind) = match kind {
        EntryType::Regular | EntryType::Continuous => {
            let mode = entry.header().mode().map_err(ArchiveError::Unreadable)?;
            (hash(&mut entry, limit)?, FileKind::of_mode(mode))
        }
        EntryType::Symlink => (Sha256Digest::of(link.as_os_str().as_bytes()), FileKind::Link),
        EntryType::Link => {
            let other = plain_path(&link).map_err(refused)?.unwrap_or_default();
            let added = digests.add_copy(&path, &other);
            return if added { Ok(()) } else { Err(refused("the target of the hard link is missing").into()) };
        }
        _ => return Ok(()),
    };
    digests.add(Path::new(""), &path, digest, kind).map_err(|_| refused("its path is not UTF-8").into())
}

/// Writer of the entries of a scanned archive into a folder.
struct Unpacker<'a> {
    folder: &'a Path,
    /// Number of bytes that may still be unpacked.
    left: u64,
}

impl Unpacker<'_> {
    fn unpack(&mut self, content: &mut dyn Read) -> Result<(), UnpackError> {
        let mut archive = Archive::new(content.take(self.left.saturating_mul(2)));
        for (count, entry) in archive.entries().map_err(ArchiveError::Unreadable)?.enumerate() {
            if count > MAX_ENTRIES {
                return Err(ArchiveError::TooLarge("it has too many entries").into());
            }
            self.unpack_entry(entry.map_err(ArchiveError::Unreadable)?)?;
        }
        Ok(())
    }

    fn unpack_entry(&mut self, mut entry: Entry<'_, impl Read>) -> Result<(), UnpackError> {
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            return Ok(());
        }
        let shown = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let refused = |reason| ArchiveError::Entry { path: shown.clone(), reason };
        let path = entry.path().map_err(ArchiveError::Unreadable)?.into_owned();
        let Some(inside) = plain_path(&path).map_err(refused)? else { return Ok(()) };
        let depth = inside.components().count() - 1;
        let target = self.folder.join(&inside);
        self.create_parents(&inside)
            .map_err(|error| error.unwrap_or_else(|| refused("a parent of its path is not a folder").into()))?;
        match kind {
            EntryType::Directory => self.create_folder(&inside).map_err(|error| {
                error.unwrap_or_else(|| refused("another entry has this path and is not a folder").into())
            }),
            EntryType::Regular | EntryType::Continuous => {
                if target.symlink_metadata().is_ok() {
                    return Err(refused("another entry has the same path").into());
                }
                let mode = entry.header().mode().map_err(ArchiveError::Unreadable)?;
                let mode = if mode & 0o111 == 0 { 0o400 } else { 0o500 };
                self.left -= write_file(&target, &mut entry, mode, self.left)?;
                Ok(())
            }
            EntryType::Symlink => {
                let link = entry.link_name().map_err(ArchiveError::Unreadable)?.unwrap_or_default().into_owned();
                if link.as_os_str().is_empty() || may_lead_out(&link, depth) {
                    return Err(refused("the link may lead out of the package").into());
                }
                if target.symlink_metadata().is_ok() {
                    return Err(refused("another entry has the same path").into());
                }
                Ok(std::os::unix::fs::symlink(&link, &target).map_err(FileError::of("create link", &target))?)
            }
            EntryType::Link => {
                let link = entry.link_name().map_err(ArchiveError::Unreadable)?.unwrap_or_default().into_owned();
                let outside = || refused("the link may lead out of the package");
                let other = plain_path(&link).ok().flatten().ok_or_else(outside)?;
                self.create_parents(&other).map_err(|_| outside())?;
                let other = self.folder.join(other);
                let Some(metadata) = other.symlink_metadata().ok().filter(|metadata| metadata.is_file()) else {
                    return Err(refused("the target of the hard link is missing").into());
                };
                // A hard link counts as a copy: hashing reads its content again.
                let left = self.left.checked_sub(metadata.len());
                self.left = left.ok_or(ArchiveError::TooLarge("its hard links are too large"))?;
                Ok(fs::hard_link(&other, &target).map_err(FileError::of("create link", &target))?)
            }
            _ => Err(refused("it is neither file, folder nor link").into()),
        }
    }

    /// Creates the parent folders of a path. Returns `Err(None)` if one of them exists and is not a folder, or is
    /// a link to a folder.
    fn create_parents(&self, inside: &Path) -> Result<(), Option<UnpackError>> {
        match inside.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                self.create_parents(parent)?;
                self.create_folder(parent)
            }
            _ => Ok(()),
        }
    }

    fn create_folder(&self, inside: &Path) -> Result<(), Option<UnpackError>> {
        let path = self.folder.join(inside);
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => Err(None),
            Err(_) => fs::DirBuilder::new()
                .mode(0o700)
                .create(&path)
                .map_err(|error| Some(FileError::of("create folder", &path)(error).into())),
        }
    }
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

/// Writes a new file and returns its length in bytes.
fn write_file(path: &Path, content: &mut (impl Read + ?Sized), mode: u32, limit: u64) -> Result<u64, UnpackError> {
    let created = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = created.map_err(FileError::of("create", path))?;
    copy(content, limit, |bytes| {
        io::Write::write_all(&mut file, bytes).map_err(FileError::of("write", path))?;
        Ok(())
    })
}

/// Returns the digest of all bytes.
fn hash(content: &mut impl Read, limit: u64) -> Result<Sha256Digest, UnpackError> {
    let mut hash = Sha256::new();
    copy(content, limit, |bytes| {
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
