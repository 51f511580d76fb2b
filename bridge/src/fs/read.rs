//! Bounded reads of regular files.

use std::fmt;
use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::FileError;

/// Maximum size of a document, in bytes: a manifest, settings, a lock, an entry of a history or of a cache.
pub const MAX_DOCUMENT_BYTES: u64 = 4 * 1024 * 1024;

/// Reason why a file is not read although the system allows it.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("it is {0}, not a regular file")]
    NotRegular(&'static str),
    #[error("it is larger than {}", Size(*.0))]
    TooLarge(u64),
}

/// Number of bytes as text, in the largest unit that divides it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.into_iter().find(|(unit, _)| self.0 > 0 && self.0.is_multiple_of(*unit)) {
            Some((unit, name)) => write!(f, "{} {name}", self.0 / unit),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// Opens a regular file, or a link to one, for reading. Returns without waiting: a named pipe is refused.
///
/// # Errors
/// An I/O error; of kind `InvalidInput` if the path leads to anything but a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    without_waiting(&mut options);
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(ErrorKind::InvalidInput, Refusal::NotRegular(kind_name(kind))))
}

/// Sets the options so that opening a named pipe does not wait for a process at its other end. Regular files ignore the setting.
pub(crate) fn without_waiting(options: &mut OpenOptions) {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
}

fn kind_name(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a named pipe"
    } else {
        "a device"
    }
}

/// Reads to the end. Reserves memory as the content arrives.
///
/// # Errors
/// An I/O error; of kind `FileTooLarge` if there are more than `limit` bytes, of which at most one more is read.
pub fn read_to_limit(source: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    source.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > limit { Err(too_large(limit)) } else { Ok(content) }
}

fn too_large(limit: u64) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, Refusal::TooLarge(limit))
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// The errors of [`open_regular`] and [`read_to_limit`]. A file that is too large is not read.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_open(open_regular(path)?, limit, Vec::new())
}

/// Reads an open regular file of at most `limit` bytes to its end, into the memory of `content`, whose bytes are dropped.
///
/// # Errors
/// The errors of [`read_to_limit`]. A file that is too large is not read.
pub fn read_open(file: File, limit: u64, mut content: Vec<u8>) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    if size > limit {
        return Err(too_large(limit));
    }
    content.clear();
    // One more byte, so that the end is found without growing.
    content.reserve_exact(usize::try_from(size + 1).unwrap_or_default());
    file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > limit { Err(too_large(limit)) } else { Ok(content) }
}

/// Reads a regular file of at most `limit` bytes. Returns `None` if it does not exist.
///
/// # Errors
/// [`FileError`] if the file exists and cannot be read, is larger, or is not a regular file.
pub fn read_if_exists(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
    match read_regular(path, limit) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::of("read", path)(error)),
    }
}

/// Reads a file that the user names, which may be a pipe or another stream, to its end.
///
/// # Errors
/// [`FileError`] if the file cannot be read, or has more than `limit` bytes.
#[expect(clippy::disallowed_methods, reason = "the user names the file: waiting for the writer of a pipe is intended")]
pub fn read_named(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    File::open(path).and_then(|file| read_to_limit(file, limit)).map_err(FileError::of("read", path))
}

/// Converts a content to text.
///
/// # Errors
/// An I/O error of kind `InvalidData` if the content is not UTF-8.
pub fn utf8(content: Vec<u8>) -> io::Result<String> {
    String::from_utf8(content).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(ErrorKind::InvalidData, format!("it is not UTF-8: its byte {at} is part of no character"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_if_exists(&path, 5).unwrap().unwrap(), b"12345");
        assert_eq!(read_named(&path, 5).unwrap(), b"12345");
        for error in [read_if_exists(&path, 4).unwrap_err(), read_named(&path, 4).unwrap_err()] {
            assert_eq!(
                crate::error::chain(&error),
                format!("cannot read {}: it is larger than 4 bytes", path.display())
            );
        }
        assert_eq!(read_if_exists(&folder.path().join("missing"), 5).unwrap(), None);
    }

    #[test]
    fn endless_source_is_read_up_to_the_limit() {
        let error = read_to_limit(io::repeat(0), 3 << 20).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::FileTooLarge, "it is larger than 3 MiB"));
    }

    #[test]
    fn sparse_file_above_the_limit_is_refused_without_reading_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read_if_exists(&path, 4 << 30).unwrap_err();
        assert!(crate::error::chain(&error).ends_with("it is larger than 4 GiB"));
    }

    #[test]
    fn pipes_folders_and_devices_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        let cases = [
            (pipe.as_path(), "it is a named pipe, not a regular file"),
            (link.as_path(), "it is a named pipe, not a regular file"),
            (folder.path(), "it is a folder, not a regular file"),
            (Path::new("/dev/zero"), "it is a device, not a regular file"),
        ];
        for (path, expected) in cases {
            assert_eq!(read_regular(path, 10).unwrap_err().to_string(), expected, "{}", path.display());
        }
    }

    #[test]
    fn named_pipe_of_the_user_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "content").unwrap()
        });
        assert_eq!(read_named(&pipe, 100).unwrap(), b"content");
        writer.join().unwrap();
    }
}
