//! What the disk is asked for: files that are written whole or not at all, and what lies where.
//!
//! Every function works on a name in a folder that is held open ([`crate::root`]). A failure leaves things as they were,
//! and says so by its code: anything but UNKNOWN and INTERNAL means "unchanged" to an engine (provider protocol,
//! section 6.2).

use std::io::{self, Read as _, Write as _};

use cap_std::fs::{Dir, DirBuilder, File, OpenOptions, OpenOptionsExt as _, Permissions, PermissionsExt as _};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use uuid::Uuid;

use crate::root::{RelativePath, leads_out};

/// Longest content that is read: a little less than what fits into a message.
pub(crate) const MAX_CONTENT: u64 = 300 * 1024 * 1024;

/// How the names of our temporary files end.
const TEMPORARY: &str = ".pulumi-files-tmp";

/// A regular file as it was found.
pub(crate) struct Found {
    pub(crate) content: Vec<u8>,
    pub(crate) mode: u32,
}

/// What to do where a file of the name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Fail with `AlreadyExists`.
    Keep,
    /// Put the new one in its place.
    Replace,
}

/// Writes a file beside its place and then moves it there, so that nobody ever sees a part of it.
///
/// # Errors
/// `Interrupted` when cancelled before the move; else those of the system.
pub(crate) fn write(
    folder: &Dir,
    name: &str,
    content: &[u8],
    mode: u32,
    existing: Existing,
    cancelled: &CancellationToken,
) -> io::Result<()> {
    let temporary = format!(".{}{TEMPORARY}", Uuid::new_v4().simple());
    let mut file = folder.open_with(&temporary, OpenOptions::new().write(true).create_new(true).mode(0o600))?;
    let written = write_and_sync(&mut file, content, mode).and_then(|()| {
        if cancelled.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match existing {
            // A link, unlike a rename, does not replace.
            Existing::Keep => folder.hard_link(&temporary, folder, name),
            Existing::Replace => folder.rename(&temporary, folder, name),
        }
    });
    if written.is_err() || existing == Existing::Keep {
        // What cannot be removed is left to `remove_folder`, which knows its name.
        folder.remove_file(&temporary).ok();
    }
    written?;
    // Not every file system can do this; the content itself is on the disk already.
    folder.open(".").and_then(|folder| folder.sync_all()).ok();
    Ok(())
}

fn write_and_sync(file: &mut File, content: &[u8], mode: u32) -> io::Result<()> {
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Reads a regular file. `None` if there is none: nothing of the name, or something else.
pub(crate) fn read(folder: &Dir, name: &str) -> io::Result<Option<Found>> {
    let metadata = match folder.symlink_metadata(name) {
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut content = Vec::new();
    folder.open(name)?.take(MAX_CONTENT + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_CONTENT {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {MAX_CONTENT} bytes")));
    }
    Ok(Some(Found { content, mode: permission_bits(&metadata) }))
}

/// Removes a regular file; what is not there, or is something else, is not ours and counts as removed.
pub(crate) fn remove_file(folder: &Dir, name: &str) -> io::Result<()> {
    match folder.symlink_metadata(name) {
        Ok(metadata) if metadata.is_file() => folder.remove_file(name),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates a folder, with exactly this mode.
pub(crate) fn create_folder(folder: &Dir, name: &str, mode: u32) -> io::Result<()> {
    folder.create_dir_with(name, &DirBuilder::new())?;
    // Apart, because what is asked for at creation is cut by the process's umask.
    folder.set_permissions(name, Permissions::from_mode(mode)).inspect_err(|_| drop(folder.remove_dir(name)))
}

/// The mode of a folder; `None` if there is none: nothing of the name, or something else.
pub(crate) fn folder_mode(folder: &Dir, name: &str) -> io::Result<Option<u32>> {
    match folder.symlink_metadata(name) {
        Ok(metadata) if metadata.is_dir() => Ok(Some(permission_bits(&metadata))),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives a folder a mode.
pub(crate) fn set_folder_mode(folder: &Dir, name: &str, mode: u32) -> io::Result<()> {
    folder.set_permissions(name, Permissions::from_mode(mode))
}

/// How the removal of a folder ended.
pub(crate) enum Removal {
    /// It is gone, or was.
    Gone,
    /// Something is in it; the name of that.
    Holds(String),
}

/// Removes an empty folder. What a write of ours left behind when the process was killed does not count.
pub(crate) fn remove_folder(folder: &Dir, name: &str) -> io::Result<Removal> {
    if folder_mode(folder, name)?.is_none() {
        return Ok(Removal::Gone);
    }
    let inside = folder.open_dir(name)?;
    for entry in inside.entries()? {
        let entry = entry?.file_name();
        let entry = entry.to_string_lossy();
        if !entry.ends_with(TEMPORARY) {
            return Ok(Removal::Holds(entry.into_owned()));
        }
        inside.remove_file(entry.as_ref())?;
    }
    folder.remove_dir(name)?;
    Ok(Removal::Gone)
}

fn permission_bits(metadata: &cap_std::fs::Metadata) -> u32 {
    metadata.permissions().mode() & 0o7777
}

/// Reads a mode: three octal digits, or four of which the first is 0. `needed` are bits that must be set.
pub(crate) fn parse_mode(text: &str, needed: u32) -> Option<u32> {
    let digits = if text.len() == 4 { text.strip_prefix('0')? } else { text };
    if digits.len() != 3 || !digits.bytes().all(|digit| matches!(digit, b'0'..=b'7')) {
        return None;
    }
    u32::from_str_radix(digits, 8).ok().filter(|mode| mode & needed == needed)
}

/// Writes a mode as Check does.
pub(crate) fn show_mode(mode: u32) -> String {
    format!("{mode:04o}")
}

/// The answer to a call that the disk refused. `doing` names what was tried: "write the file".
pub(crate) fn refused(doing: &str, path: &RelativePath, error: &io::Error) -> Status {
    let path = path.as_str();
    if leads_out(error) {
        return Status::permission_denied(format!("cannot {doing} {path}: a symbolic link leads out of the root"));
    }
    let message = format!("cannot {doing} {path}: {error}");
    match error.kind() {
        io::ErrorKind::NotFound => Status::not_found(message),
        io::ErrorKind::PermissionDenied => Status::permission_denied(message),
        io::ErrorKind::Interrupted => Status::aborted(format!("cancelled; {path} is as it was")),
        _ => Status::failed_precondition(message),
    }
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;

    use super::*;

    fn folder() -> (tempfile::TempDir, Dir) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(temporary.path(), ambient_authority()).unwrap();
        (temporary, folder)
    }

    fn names(folder: &Dir) -> Vec<String> {
        folder.entries().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_written_with_its_mode_and_without_leftovers() {
        let (_keep, folder) = folder();
        let go_on = CancellationToken::new();
        write(&folder, "a", b"one", 0o640, Existing::Keep, &go_on).unwrap();
        write(&folder, "a", b"two", 0o400, Existing::Replace, &go_on).unwrap();
        let found = read(&folder, "a").unwrap().unwrap();
        assert_eq!((found.content.as_slice(), found.mode), (&b"two"[..], 0o400));
        assert_eq!(names(&folder), ["a"]);
    }

    #[test]
    fn what_exists_is_kept_unless_it_is_to_be_replaced() {
        let (_keep, folder) = folder();
        folder.write("a", "theirs").unwrap();
        let error = write(&folder, "a", b"ours", 0o600, Existing::Keep, &CancellationToken::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(folder.read_to_string("a").unwrap(), "theirs");
        assert_eq!(names(&folder), ["a"]);
    }

    #[test]
    fn a_cancelled_write_changes_nothing() {
        let (_keep, folder) = folder();
        folder.write("a", "old").unwrap();
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let error = write(&folder, "a", b"new", 0o600, Existing::Replace, &cancelled).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert_eq!(folder.read_to_string("a").unwrap(), "old");
        assert_eq!(names(&folder), ["a"]);
    }

    #[test]
    fn a_folder_goes_only_when_nothing_but_our_own_leftovers_is_in_it() {
        let (_keep, folder) = folder();
        create_folder(&folder, "d", 0o750).unwrap();
        assert_eq!(folder_mode(&folder, "d").unwrap(), Some(0o750));
        folder.write(format!("d/.0{TEMPORARY}"), "").unwrap();
        folder.write("d/theirs", "").unwrap();
        assert!(matches!(remove_folder(&folder, "d").unwrap(), Removal::Holds(name) if name == "theirs"));
        folder.remove_file("d/theirs").unwrap();
        assert!(matches!(remove_folder(&folder, "d").unwrap(), Removal::Gone));
        assert!(matches!(remove_folder(&folder, "d").unwrap(), Removal::Gone));
        assert_eq!(names(&folder), [""; 0]);
    }

    #[test]
    fn modes_are_three_octal_digits_or_four_from_zero() {
        assert_eq!(parse_mode("644", 0), Some(0o644));
        assert_eq!(parse_mode("0600", 0o400), Some(0o600));
        for bad in ["", "64", "0o644", "1644", "00644", "888", "rw-", "+44", "0044"] {
            assert_eq!(parse_mode(bad, 0o400), None, "{bad}");
        }
        assert_eq!(show_mode(0o44), "0044");
    }
}
