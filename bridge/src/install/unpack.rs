//! Archives as somebody else made them: what they may do is to put files and folders into one folder.
//!
//! Taken: tar, alone or in gzip, and a file that is no archive at all and stands for itself. Of a tar, files, folders and
//! links that stay inside; anything else refuses the whole archive. Never here: whether its bytes are those expected.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest as _, Sha256};
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::error::{ArchiveError, InstallError};
use super::tree::{GIT, leads_out};
use crate::fs::PathError;
use crate::plugin::Sha256Digest;

/// More entries than any plugin has.
pub(super) const MOST_ENTRIES: usize = 200_000;
/// More bytes than any plugin has.
pub(super) const MOST_BYTES: u64 = 8 << 30;
/// What an archive may unpack to in any case.
const FREE_BYTES: u64 = 64 << 20;
/// How much larger than the archive its content may be beyond that.
const MOST_RATIO: u64 = 100;
/// More than what a header says about the next entry may need: it is read into memory.
const MOST_WORDS: u64 = 1 << 20;
/// Longer paths than any plugin has, in bytes and in parts.
pub(super) const LONGEST_PATH: usize = 1024;
pub(super) const DEEPEST_PATH: usize = 64;

/// A downloaded file.
#[derive(Debug)]
pub(super) struct Package<'a> {
    /// Its name, for messages.
    pub(super) name: &'a str,
    /// Where it is.
    pub(super) path: &'a Path,
}

/// What a file is by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gzip,
    Tar,
    Plain,
}

impl Package<'_> {
    /// Puts its files into a folder, which must be empty. What is no archive becomes the file `plain`.
    ///
    /// # Errors
    /// [`InstallError::Archive`], [`InstallError::Path`]; the folder is to be thrown away then.
    pub(super) fn unpack(&self, folder: &Path, plain: &str) -> Result<(), InstallError> {
        self.open(|kind, content, limit| match kind {
            Kind::Plain => write_file(&folder.join(plain), content, 0o500, limit).map(drop),
            _ => Unpacking { folder, left: limit }.unpack(content),
        })
    }

    /// The digest of the first of these files that is in it, without unpacking it. `None` where there is none.
    ///
    /// # Errors
    /// [`InstallError::Archive`], [`InstallError::Path`].
    pub(super) fn digest_of(&self, names: &[String]) -> Result<Option<Sha256Digest>, InstallError> {
        self.open(|kind, content, limit| {
            if kind == Kind::Plain {
                return Ok(None);
            }
            let mut archive = Archive::new(content.take(limit.saturating_mul(2)));
            for entry in archive.entries().map_err(ArchiveError::Unreadable)? {
                let mut entry = entry.map_err(ArchiveError::Unreadable)?;
                let path = entry.path().map_err(ArchiveError::Unreadable)?;
                let name = path.strip_prefix(".").unwrap_or(&path);
                let wanted = names.iter().any(|wanted| name == Path::new(wanted));
                if wanted && entry.header().entry_type() == EntryType::Regular {
                    let mut hash = Sha256::new();
                    copy(&mut entry, limit, |bytes| {
                        hash.update(bytes);
                        Ok(())
                    })?;
                    return Ok(Some(Sha256Digest::finish(hash)));
                }
            }
            Ok(None)
        })
    }

    /// Opens it, looks through it, and hands it on with the number of bytes that may come out of it.
    fn open<T>(&self, read: impl FnOnce(Kind, &mut dyn Read, u64) -> Result<T, Fault>) -> Result<T, InstallError> {
        let path_error = |action| PathError::of(action, self.path);
        let file = File::open(self.path).map_err(path_error("read"))?;
        let size = file.metadata().map_err(path_error("read"))?.len();
        let limit = MOST_BYTES.min(size.saturating_mul(MOST_RATIO).max(FREE_BYTES));
        let mut result = kind(&file).and_then(|kind| {
            let again = || {
                (&file).rewind().map_err(ArchiveError::Unreadable)?;
                let content = BufReader::with_capacity(256 * 1024, &file);
                let content: Box<dyn Read + '_> = match kind {
                    Kind::Gzip => Box::new(MultiGzDecoder::new(content)),
                    Kind::Tar | Kind::Plain => Box::new(content),
                };
                Ok::<_, Fault>(content)
            };
            if kind != Kind::Plain {
                scan(&mut *again()?, limit)?;
            }
            read(kind, &mut *again()?, limit)
        });
        if let Err(Fault::Archive(ArchiveError::Unreadable(error))) = &mut result
            && error.kind() == io::ErrorKind::UnexpectedEof
        {
            *error = io::Error::new(io::ErrorKind::UnexpectedEof, "it ends too early");
        }
        result.map_err(|fault| match fault {
            Fault::Archive(source) => InstallError::Archive { archive: self.name.to_owned(), source },
            Fault::Path(error) => error.into(),
        })
    }
}

/// The archive's fault, or the disk's.
#[derive(Debug)]
enum Fault {
    Archive(ArchiveError),
    Path(PathError),
}

impl From<ArchiveError> for Fault {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

impl From<PathError> for Fault {
    fn from(error: PathError) -> Self {
        Self::Path(error)
    }
}

fn kind(file: &File) -> Result<Kind, Fault> {
    let mut start = Vec::new();
    file.take(512).read_to_end(&mut start).map_err(ArchiveError::Unreadable)?;
    Ok(match start.as_slice() {
        [0x1f, 0x8b, ..] => Kind::Gzip,
        [b'P', b'K', 3, 4, ..] => return Err(ArchiveError::Kind("zip").into()),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => return Err(ArchiveError::Kind("xz").into()),
        [b'B', b'Z', b'h', ..] => return Err(ArchiveError::Kind("bzip2").into()),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => return Err(ArchiveError::Kind("zstd").into()),
        block if block.get(257..262) == Some(b"ustar") => Kind::Tar,
        _ => Kind::Plain,
    })
}

/// Looks through an archive before anything is made of it: its kinds of entries, their number and their lengths.
fn scan(content: &mut dyn Read, limit: u64) -> Result<(), Fault> {
    let (mut entries, mut bytes) = (0_usize, 0_u64);
    // Twice: an archive may consist of headers alone.
    let mut bounded = content.take(limit.saturating_mul(2));
    // Raw: nothing that a header says about the next entry is taken into memory unseen.
    for entry in Archive::new(&mut bounded).entries().map_err(ArchiveError::Unreadable)?.raw(true) {
        let mut entry = entry.map_err(ArchiveError::Unreadable)?;
        (entries, bytes) = (entries + 1, bytes.saturating_add(entry.size()));
        if entries > MOST_ENTRIES {
            return Err(ArchiveError::TooLarge("it has too many entries").into());
        }
        if bytes > limit {
            return Err(ArchiveError::TooLarge("its content is out of all proportion to its length").into());
        }
        let refused = |path: &[u8], reason| {
            Err(ArchiveError::Entry { path: String::from_utf8_lossy(path).into_owned(), reason }.into())
        };
        match entry.header().entry_type() {
            EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader | EntryType::XGlobalHeader
                if entry.size() > MOST_WORDS =>
            {
                return Err(ArchiveError::TooLarge("one of its headers is").into());
            }
            // Whoever reads it again would see other entries than we do here.
            EntryType::XHeader => {
                let mut said = Vec::new();
                entry.read_to_end(&mut said).map_err(ArchiveError::Unreadable)?;
                let changes = |key: &str| key == "size" || key.starts_with("GNU.sparse");
                if PaxExtensions::new(&said).any(|word| word.map_or(true, |word| word.key().map_or(true, changes))) {
                    return refused(&entry.path_bytes(), "it says another length of the next entry");
                }
            }
            EntryType::GNUSparse => return refused(&entry.path_bytes(), "it is a file with holes"),
            _ => {}
        }
    }
    if entries == 0 {
        return Err(ArchiveError::Unreadable(io::Error::other("it is empty, or no tar")).into());
    }
    // The sum of its bytes stands at its end.
    io::copy(&mut bounded, &mut io::sink()).map_err(ArchiveError::Unreadable)?;
    if bounded.limit() == 0 {
        return Err(ArchiveError::TooLarge("its content is out of all proportion to its length").into());
    }
    Ok(())
}

/// An archive on its way into a folder, looked through before.
struct Unpacking<'a> {
    folder: &'a Path,
    /// How many bytes may still come.
    left: u64,
}

impl Unpacking<'_> {
    fn unpack(&mut self, content: &mut dyn Read) -> Result<(), Fault> {
        let mut archive = Archive::new(content.take(self.left.saturating_mul(2)));
        for (count, entry) in archive.entries().map_err(ArchiveError::Unreadable)?.enumerate() {
            if count > MOST_ENTRIES {
                return Err(ArchiveError::TooLarge("it has too many entries").into());
            }
            self.entry(entry.map_err(ArchiveError::Unreadable)?)?;
        }
        Ok(())
    }

    fn entry(&mut self, mut entry: Entry<'_, impl Read>) -> Result<(), Fault> {
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
        self.parents(&inside)
            .map_err(|fault| fault.unwrap_or_else(|| refused("it lies below something that is no folder").into()))?;
        match kind {
            EntryType::Directory => self
                .folder_at(&inside)
                .map_err(|fault| fault.unwrap_or_else(|| refused("there is something else at this path").into())),
            EntryType::Regular | EntryType::Continuous => {
                if target.symlink_metadata().is_ok() {
                    return Err(refused("there is something at this path already").into());
                }
                let mode = entry.header().mode().map_err(ArchiveError::Unreadable)?;
                let mode = if mode & 0o111 == 0 { 0o400 } else { 0o500 };
                self.left -= write_file(&target, &mut entry, mode, self.left)?;
                Ok(())
            }
            EntryType::Symlink => {
                let link = entry.link_name().map_err(ArchiveError::Unreadable)?.unwrap_or_default().into_owned();
                if link.as_os_str().is_empty() || leads_out(&link, depth) {
                    return Err(refused("the link may lead out of the package").into());
                }
                if target.symlink_metadata().is_ok() {
                    return Err(refused("there is something at this path already").into());
                }
                Ok(std::os::unix::fs::symlink(&link, &target).map_err(PathError::of("create link", &target))?)
            }
            EntryType::Link => {
                let link = entry.link_name().map_err(ArchiveError::Unreadable)?.unwrap_or_default().into_owned();
                let outside = || refused("the link may lead out of the package");
                let other = plain_path(&link).ok().flatten().ok_or_else(outside)?;
                self.parents(&other).map_err(|_| outside())?;
                let other = self.folder.join(other);
                let Some(metadata) = other.symlink_metadata().ok().filter(|metadata| metadata.is_file()) else {
                    return Err(refused("it links to what is not there").into());
                };
                // Whoever reads all files reads it again.
                let left = self.left.checked_sub(metadata.len());
                self.left = left.ok_or(ArchiveError::TooLarge("its links are"))?;
                Ok(fs::hard_link(&other, &target).map_err(PathError::of("create link", &target))?)
            }
            _ => Err(refused("it is neither file, folder nor link").into()),
        }
    }

    /// Makes the folders above a path, none of which may be a link. `Err(None)`: something else is in the way.
    fn parents(&self, inside: &Path) -> Result<(), Option<Fault>> {
        match inside.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                self.parents(parent)?;
                self.folder_at(parent)
            }
            _ => Ok(()),
        }
    }

    fn folder_at(&self, inside: &Path) -> Result<(), Option<Fault>> {
        let path = self.folder.join(inside);
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => Err(None),
            Err(_) => fs::create_dir(&path).map_err(|error| Some(PathError::of("create folder", &path)(error).into())),
        }
    }
}

/// A path that leads down from the folder, without `.`; `None` for the folder itself.
fn plain_path(path: &Path) -> Result<Option<PathBuf>, &'static str> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) if name == GIT => return Err("it belongs to git"),
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err("its path leads upwards"),
            Component::RootDir | Component::Prefix(_) => return Err("its path is absolute"),
        }
    }
    if plain.as_os_str().len() > LONGEST_PATH || plain.components().count() > DEEPEST_PATH {
        return Err("its path is too long");
    }
    if plain.to_str().is_none_or(|plain| plain.contains(['\n', '\0'])) {
        return Err("its path is not UTF-8, or holds a line end");
    }
    Ok(Some(plain).filter(|plain| !plain.as_os_str().is_empty()))
}

/// Writes a new file and says how long it is.
fn write_file(path: &Path, content: &mut (impl Read + ?Sized), mode: u32, limit: u64) -> Result<u64, Fault> {
    let created = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = created.map_err(PathError::of("create", path))?;
    copy(content, limit, |bytes| {
        io::Write::write_all(&mut file, bytes).map_err(PathError::of("write", path))?;
        Ok(())
    })
}

/// Hands on all bytes, and says how many there were.
fn copy(
    content: &mut (impl Read + ?Sized),
    limit: u64,
    mut take: impl FnMut(&[u8]) -> Result<(), Fault>,
) -> Result<u64, Fault> {
    let mut buffer = vec![0; 256 * 1024];
    let mut copied = 0;
    loop {
        let read = content.read(&mut buffer).map_err(ArchiveError::Unreadable)?;
        if read == 0 {
            return Ok(copied);
        }
        copied += read as u64;
        if copied > limit {
            return Err(ArchiveError::TooLarge("its content is out of all proportion to its length").into());
        }
        take(&buffer[..read])?;
    }
}
