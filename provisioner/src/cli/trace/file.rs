//! Files of the log and of the trace: for their owner only, and never behind a link.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use bridge::fs::{Access, FileError, calls};
use rustix::fs::OFlags;

use crate::cli::process::place_to_write;

/// Creates a file, or empties the one that has its name.
///
/// # Errors
/// [`FileError`], also if the path is a link, or is not a file of this user with one name.
pub(super) fn create(folder: &Path, path: &Path) -> Result<File, FileError> {
    let file = append(folder, path)?;
    file.set_len(0).map_err(FileError::of("write", path))?;
    Ok(file)
}

/// Opens a file, which is created if it is missing, to append to it.
///
/// # Errors
/// See [`create`].
pub(super) fn append(folder: &Path, path: &Path) -> Result<File, FileError> {
    let failed = |error| FileError::of("write", path)(error);
    let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::IsADirectory.into()))?;
    let place = place_to_write(folder, path.parent().unwrap_or(Path::new("")))?.join(name);
    // A named pipe without a reader would block the program.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(Access::Private.file_mode()).custom_flags(flags.bits().cast_signed());
    let file = calls::open(&options, &place).map_err(|error| match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::LOOP) => failed(io::Error::other("it is a symbolic link")),
        _ => failed(error),
    })?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() || found.nlink() > 1 || found.uid() != rustix::process::geteuid().as_raw() {
        let reason = "it is not a file of this user that has no other name";
        return Err(failed(io::Error::new(io::ErrorKind::PermissionDenied, reason)));
    }
    if found.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(Access::Private.file_mode())).map_err(failed)?;
    }
    Ok(file)
}
