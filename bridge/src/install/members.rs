//! Members of an untrusted archive, read once in the order of the archive: one set of rules for all formats.
//!
//! Limits hold while members are read: their number, the size of what they unpack to, the size of headers that are read into memory.
//! A member whose length another one changes, and one that is encrypted, fail the whole archive. Excluded: where members may lie.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, EntryType};
use zip::ZipArchive;
use zip::result::ZipError;

use super::archive_error::ArchiveError;
use super::content::{HEAD, Kind, is_program};
use crate::fs::FileError;
use crate::zstd::ZstdReader;

/// Maximum number of members.
pub(super) const MAX_MEMBERS: usize = 200_000;
/// Maximum size of an extended header, or of the target of a link, in bytes: it is read into memory.
const MAX_HEADER_BYTES: u64 = 1 << 20;
const FAR_LARGER: &str = "its content is far larger than the archive";
pub(super) const TOO_MANY: &str = "it has too many entries";

/// Member of an archive.
#[derive(Debug)]
pub(super) struct Member {
    /// Path in the archive, as it is written there.
    pub(super) path: PathBuf,
    pub(super) kind: MemberKind,
}

impl Member {
    /// Returns the error of a member that makes the whole archive fail.
    pub(super) fn refused(&self, reason: &'static str) -> ArchiveError {
        refused(self.path.as_os_str().as_bytes(), reason)
    }
}

/// Kind of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MemberKind {
    /// Regular file with these permissions. Its content follows.
    File(u32),
    Folder,
    /// Symbolic link to a path.
    Link(PathBuf),
    /// Hard link to another member.
    HardLink(PathBuf),
    /// Device, pipe, or something else that no package needs.
    Other,
}

/// Error of the archive, or of the file system.
#[derive(Debug)]
pub(super) enum UnpackError {
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

/// Function that is called for each member with its content, and that says whether it needs the next one.
pub(super) type OnMember<'f> = &'f mut dyn FnMut(&Member, &mut dyn Read) -> Result<ControlFlow<()>, UnpackError>;

/// Reads the members of an archive of a kind that has members. `limit` is the maximum number of bytes to which they unpack.
pub(super) fn read_members(file: &File, kind: Kind, limit: u64, on_member: OnMember<'_>) -> Result<(), UnpackError> {
    let mut source = file;
    source.rewind().map_err(ArchiveError::Unreadable)?;
    let buffered = BufReader::with_capacity(256 * 1024, source);
    match kind {
        Kind::Zip => read_zip(buffered, limit, on_member),
        Kind::Gzip => read_tar(&mut MultiGzDecoder::new(buffered), limit, on_member),
        Kind::Zstd => read_tar(&mut ZstdReader::new(buffered), limit, on_member),
        Kind::Tar | Kind::Plain | Kind::Unsupported(_) => read_tar(&mut { buffered }, limit, on_member),
    }
}

/// Number of members, and of the bytes to which they unpack.
#[derive(Default)]
struct Extent {
    members: usize,
    bytes: u64,
}

impl Extent {
    fn add(&mut self, bytes: u64, limit: u64) -> Result<(), ArchiveError> {
        (self.members, self.bytes) = (self.members + 1, self.bytes.saturating_add(bytes));
        match () {
            () if self.members > MAX_MEMBERS => Err(ArchiveError::TooLarge(TOO_MANY)),
            () if self.bytes > limit => Err(ArchiveError::TooLarge(FAR_LARGER)),
            () => Ok(()),
        }
    }
}

/// Path and target of a link that headers give to the next member of a tar.
#[derive(Default)]
struct NextMember {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

fn read_tar(content: &mut dyn Read, limit: u64, on_member: OnMember<'_>) -> Result<(), UnpackError> {
    // Twice the limit, because headers count here.
    let mut bounded = content.take(limit.saturating_mul(2));
    let (mut extent, mut next) = (Extent::default(), NextMember::default());
    let mut archive = Archive::new(&mut bounded);
    // Raw: extended headers are entries here, so their size is checked before they are read into memory.
    for entry in archive.entries().map_err(ArchiveError::Unreadable)?.raw(true) {
        let mut entry = entry.map_err(ArchiveError::Unreadable)?;
        extent.add(entry.size(), limit)?;
        let path = entry.path_bytes().into_owned();
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => next.path = Some(read_name(&mut entry)?),
            EntryType::GNULongLink => next.link = Some(read_name(&mut entry)?),
            EntryType::XHeader => next.extend(&path, &read_header(&mut entry)?)?,
            EntryType::XGlobalHeader => drop(read_header(&mut entry)?),
            EntryType::GNUSparse => return Err(refused(&path, "it is a sparse file").into()),
            _ => {
                let NextMember { path: long_path, link: long_link } = std::mem::take(&mut next);
                let path = PathBuf::from(std::ffi::OsString::from_vec(long_path.unwrap_or(path)));
                let link = long_link.unwrap_or_else(|| entry.link_name_bytes().unwrap_or_default().into_owned());
                let link = PathBuf::from(std::ffi::OsString::from_vec(link));
                let kind = match kind {
                    // The first tars have no type for folders.
                    EntryType::Regular if path.as_os_str().as_bytes().ends_with(b"/") => MemberKind::Folder,
                    EntryType::Regular | EntryType::Continuous => {
                        MemberKind::File(entry.header().mode().map_err(ArchiveError::Unreadable)?)
                    }
                    EntryType::Directory => MemberKind::Folder,
                    EntryType::Symlink => MemberKind::Link(link),
                    EntryType::Link => MemberKind::HardLink(link),
                    _ => MemberKind::Other,
                };
                if on_member(&Member { path, kind }, &mut entry)?.is_break() {
                    return Ok(());
                }
            }
        }
    }
    if extent.members == 0 {
        return Err(ArchiveError::NoFiles.into());
    }
    // Reads to the end, where a compressed content has its checksum.
    io::copy(&mut bounded, &mut io::sink()).map_err(ArchiveError::Unreadable)?;
    if bounded.limit() == 0 {
        return Err(ArchiveError::TooLarge(FAR_LARGER).into());
    }
    Ok(())
}

impl NextMember {
    /// Reads an extended header. Its keys `size` and `GNU.sparse*` would change the length of the next member, which a program that
    /// does not know them finds elsewhere.
    fn extend(&mut self, shown: &[u8], header: &[u8]) -> Result<(), UnpackError> {
        let mut rest = header;
        while !rest.is_empty() {
            let (key, value, after) =
                next_record(rest).ok_or_else(|| refused(shown, "its extended header is malformed"))?;
            match key {
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                key if key == b"size" || key.starts_with(b"GNU.sparse") => {
                    return Err(refused(shown, "it changes the length of the next entry").into());
                }
                _ => {}
            }
            rest = after;
        }
        Ok(())
    }
}

/// Splits the first record off an extended header, `LENGTH KEY=VALUE\n`. A value may contain line ends. Returns its key, its value and
/// the other records.
fn next_record(header: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = header.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&header[..space]).ok()?.parse().ok()?;
    let (record, after) = header.split_at_checked(length)?;
    let pair = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    Some((&pair[..equals], &pair[equals + 1..], after))
}

/// Reads a name that is the content of an entry, without the zero at its end.
fn read_name(entry: &mut impl Read) -> Result<Vec<u8>, UnpackError> {
    let mut name = read_header(entry)?;
    if name.last() == Some(&0) {
        name.pop();
    }
    Ok(name)
}

fn read_header(entry: &mut impl Read) -> Result<Vec<u8>, UnpackError> {
    let mut header = Vec::new();
    entry.take(MAX_HEADER_BYTES + 1).read_to_end(&mut header).map_err(ArchiveError::Unreadable)?;
    if header.len() as u64 > MAX_HEADER_BYTES {
        return Err(ArchiveError::TooLarge("one of its headers is too large").into());
    }
    Ok(header)
}

fn read_zip(mut file: BufReader<&File>, limit: u64, on_member: OnMember<'_>) -> Result<(), UnpackError> {
    // Before the library reads the names of all members into memory.
    if has_large_count(&mut file).map_err(ArchiveError::Unreadable)? {
        return Err(ArchiveError::TooLarge(TOO_MANY).into());
    }
    let mut archive = ZipArchive::new(file).map_err(zip_error)?;
    // The library keeps the last one of each path.
    if archive.has_duplicate_names() {
        return Err(ArchiveError::Unreadable(io::Error::other("several of its entries have the same path")).into());
    }
    if archive.is_empty() {
        return Err(ArchiveError::NoFiles.into());
    }
    let mut extent = Extent::default();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(zip_error)?;
        extent.add(entry.size(), limit)?;
        let (name, mode) = (entry.name_raw().to_vec(), entry.unix_mode());
        if name.contains(&b'\\') {
            return Err(refused(&name, "its path contains a backslash").into());
        }
        let mut head = Vec::new();
        let kind = match mode.map_or(FILE_TYPE, |mode| mode & TYPE_MASK) {
            _ if entry.is_dir() => MemberKind::Folder,
            LINK_TYPE => MemberKind::Link(PathBuf::from(std::ffi::OsString::from_vec(read_header(&mut entry)?))),
            FILE_TYPE | 0 => {
                (&mut entry).take(HEAD as u64).read_to_end(&mut head).map_err(ArchiveError::Unreadable)?;
                // Many tools write a zip without modes.
                let executable = if is_program(&head, None) { 0o111 } else { 0 };
                MemberKind::File(mode.unwrap_or_default() & 0o777 | executable)
            }
            _ => MemberKind::Other,
        };
        let path = PathBuf::from(std::ffi::OsString::from_vec(name));
        if on_member(&Member { path, kind }, &mut head.as_slice().chain(&mut entry))?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns whether a zip has more members than the field for their number at its end can hold, 65,534.
fn has_large_count(file: &mut BufReader<&File>) -> io::Result<bool> {
    /// Largest length of a comment, with the record before it.
    const LONGEST_END: u64 = 22 + 0xffff;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST_END)))?;
    let mut end = Vec::new();
    file.take(LONGEST_END).read_to_end(&mut end)?;
    file.rewind()?;
    let record = end.windows(12).rev().find(|window| window.starts_with(b"PK\x05\x06"));
    Ok(record.is_some_and(|record| record[10..12] == u16::MAX.to_le_bytes()))
}

/// Bits of a mode that have the type of a file, and the types.
const TYPE_MASK: u32 = 0o170_000;
const FILE_TYPE: u32 = 0o100_000;
const LINK_TYPE: u32 = 0o120_000;

fn zip_error(error: ZipError) -> UnpackError {
    let error = match error {
        ZipError::Io(error) => error,
        other => io::Error::other(other),
    };
    ArchiveError::Unreadable(error).into()
}

fn refused(path: &[u8], reason: &'static str) -> ArchiveError {
    ArchiveError::Entry { path: String::from_utf8_lossy(path).into_owned(), reason }
}
