//! Calls of the operating system that change files.
//!
//! Code whose files must survive errors of the disk uses these functions instead of those of the standard library. In
//! builds with debug assertions, tests can make each call fail (`faults`).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

#[cfg(debug_assertions)]
use super::faults;
use super::file_call::FileCall;

/// Fails if a test requests it; never in a build without debug assertions.
pub(super) fn may_fail(call: FileCall, path: &Path) -> io::Result<()> {
    #[cfg(debug_assertions)]
    faults::check(call, path)?;
    let _ = (call, path);
    Ok(())
}

/// Opens or creates a file.
///
/// # Errors
/// The error of the operating system, as for all functions of this module.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    may_fail(FileCall::Open, path)?;
    options.open(path)
}

/// Creates a folder, or a folder and its missing parents.
///
/// # Errors
/// See [`open`].
pub fn create_folder(builder: &DirBuilder, path: &Path) -> io::Result<()> {
    may_fail(FileCall::CreateFolder, path)?;
    builder.create(path)
}

/// Writes to a file. After an error a part of the content may be written, as on a full disk.
///
/// # Errors
/// See [`open`].
pub fn write_all(mut file: &File, path: &Path, content: &[u8]) -> io::Result<()> {
    if let Err(error) = may_fail(FileCall::Write, path) {
        file.write_all(&content[..content.len() / 2])?;
        return Err(error);
    }
    file.write_all(content)
}

/// Shortens a file to a length in bytes.
///
/// # Errors
/// See [`open`].
pub fn truncate(file: &File, path: &Path, length: u64) -> io::Result<()> {
    may_fail(FileCall::Truncate, path)?;
    file.set_len(length)
}

/// Flushes the content of a file to disk.
///
/// # Errors
/// See [`open`].
pub fn sync_data(file: &File, path: &Path) -> io::Result<()> {
    may_fail(FileCall::Sync, path)?;
    file.sync_data()
}

/// Flushes a file or a folder, with its metadata, to disk.
///
/// # Errors
/// See [`open`].
pub fn sync_all(file: &File, path: &Path) -> io::Result<()> {
    may_fail(FileCall::Sync, path)?;
    file.sync_all()
}

/// Renames a file; a file that has the new name is replaced.
///
/// # Errors
/// See [`open`].
#[expect(clippy::disallowed_methods, reason = "the callers rename files that are complete")]
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    may_fail(FileCall::Rename, to)?;
    fs::rename(from, to)
}

/// Links a file under a second name.
///
/// # Errors
/// See [`open`].
pub fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    may_fail(FileCall::Link, to)?;
    fs::hard_link(from, to)
}

/// Copies a file to a new name.
///
/// # Errors
/// See [`open`].
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    may_fail(FileCall::Open, to)?;
    may_fail(FileCall::Write, to)?;
    fs::copy(from, to).map(drop)
}

/// Removes a file.
///
/// # Errors
/// See [`open`].
pub fn remove_file(path: &Path) -> io::Result<()> {
    may_fail(FileCall::Remove, path)?;
    fs::remove_file(path)
}
