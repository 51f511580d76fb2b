//! Fingerprints of packages in the cache, and of local files with a checksum: what the file system says about each file, so that a
//! start finds a changed file without reading any.
//!
//! ```text
//! fingerprint 1 <time at which it was begun>
//! download <digest>                            archive with exactly these files
//! <digest> <mark> <inode> <size> <mode> <time of modification> <time of change> <path>
//! end
//! ```
//! On the file systems of Linux and macOS, a program cannot set a time of change (`ctime`), so a file with other content has another
//! one, whatever its time of modification says. A file that has changed in the same step of the clock in which the fingerprint was begun may change once more in
//! that step, without a trace: it is *unsettled*, and is read again, as git does for its index.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::InstallError;
use super::file_digests::{FileDigests, FileEntry, FileKind, GIT_FOLDER, is_left_out};
use crate::fs::{FileError, check_trusted};
use crate::plugin::Sha256Digest;

const FIRST_WORDS: &str = "fingerprint 1 ";
const DOWNLOAD: &str = "download ";
const END: &str = "end\n";
/// Limit on the wait until the clock of the file system has moved on. Its steps have some milliseconds.
const CLOCK_LIMIT: Duration = Duration::from_millis(50);
const CLOCK_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Time of the file system: seconds and nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileTime(i64, i64);

impl FileTime {
    /// Returns the time of the file system of a folder, once it is later than the last change of a file below `package`, or after a
    /// limit, and whether `files` are what the file system shows: it may not tell upper and lower case apart, or give all files one
    /// mode. Creates a file in the folder.
    pub(super) fn after_changes_of(
        package: &Path,
        files: Option<&FileDigests>,
        folder: &Path,
    ) -> Result<(Self, bool), InstallError> {
        let (mut newest, mut count, mut are_shown) = (None, 0, true);
        FingerprintScope::Package.visit(package, &mut |path, metadata| {
            newest = newest.max(Some(Self::of_change(metadata)));
            count += 1;
            let kind = if metadata.is_symlink() { FileKind::Link } else { FileKind::of_mode(metadata.mode()) };
            are_shown &= files.and_then(|files| files.entry(path)).is_some_and(|file| file.kind == kind);
            Ok(())
        })?;
        are_shown &= files.is_some_and(|files| files.paths().count() == count);
        let mut waited = Duration::ZERO;
        loop {
            let now = Self::now(folder)?;
            if Some(now) > newest || waited >= CLOCK_LIMIT {
                return Ok((now, are_shown));
            }
            std::thread::sleep(CLOCK_POLL_INTERVAL);
            waited += CLOCK_POLL_INTERVAL;
        }
    }

    /// Returns the time of the file system of a folder. Creates a file in it.
    pub(super) fn now(folder: &Path) -> Result<Self, InstallError> {
        let path = folder.join("clock");
        let file = File::create(&path).map_err(FileError::of("create", &path))?;
        file.set_len(1).and_then(|()| file.set_len(0)).map_err(FileError::of("write", &path))?;
        Ok(Self::of_change(&file.metadata().map_err(FileError::of("read", &path))?))
    }

    fn of_change(metadata: &Metadata) -> Self {
        Self(metadata.ctime(), metadata.ctime_nsec())
    }

    fn parse(text: &str) -> Option<Self> {
        let (seconds, nanoseconds) = text.split_once('.')?;
        Some(Self(seconds.parse().ok()?, nanoseconds.parse().ok()?))
    }
}

impl std::fmt::Display for FileTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// Files that a fingerprint covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FingerprintScope<'a> {
    /// All files of a package in the cache, which no other user can have changed.
    Package,
    /// Files of a local folder that a checksum covers.
    LocalFolder,
    /// File of a folder, by its name.
    File(&'a str),
}

impl FingerprintScope<'_> {
    /// Returns what the file system says about each file.
    pub(super) fn statuses(self, folder: &Path) -> Result<BTreeMap<String, FileStatus>, InstallError> {
        let mut statuses = BTreeMap::new();
        self.visit(folder, &mut |path, metadata| {
            statuses.insert(path.to_owned(), FileStatus::of(metadata));
            Ok(())
        })?;
        Ok(statuses)
    }

    /// Calls a function for each file and link, with its path below a folder.
    fn visit(
        self,
        folder: &Path,
        each: &mut impl FnMut(&str, &Metadata) -> Result<(), InstallError>,
    ) -> Result<(), InstallError> {
        let Self::File(name) = self else { return self.visit_below(folder, folder, each) };
        let path = folder.join(name);
        each(name, &path.metadata().map_err(FileError::of("read", &path))?)
    }

    fn visit_below(
        self,
        root: &Path,
        folder: &Path,
        each: &mut impl FnMut(&str, &Metadata) -> Result<(), InstallError>,
    ) -> Result<(), InstallError> {
        let check = |path: &Path, metadata: &Metadata| match self {
            Self::Package => check_trusted(path, metadata).map_err(InstallError::from),
            Self::LocalFolder | Self::File(_) => Ok(()),
        };
        check(folder, &folder.symlink_metadata().map_err(FileError::of("read", folder))?)?;
        for member in fs::read_dir(folder).map_err(FileError::of("list", folder))? {
            let member = member.map_err(FileError::of("list", folder))?;
            let path: PathBuf = member.path();
            let kind = member.file_type().map_err(FileError::of("read", &path))?;
            let is_left_out = match self {
                Self::LocalFolder => is_left_out(root, &path, kind),
                Self::Package | Self::File(_) => kind.is_dir() && member.file_name() == GIT_FOLDER,
            };
            if is_left_out {
                continue;
            }
            if kind.is_dir() {
                self.visit_below(root, &path, each)?;
                continue;
            }
            let metadata = member.metadata().map_err(FileError::of("read", &path))?;
            check(&path, &metadata)?;
            let inside = path.strip_prefix(root).unwrap_or(&path);
            let reason = "its name is not UTF-8";
            let inside = inside.to_str().ok_or_else(|| InstallError::NotHashable { path: path.clone(), reason })?;
            each(inside, &metadata)?;
        }
        Ok(())
    }
}

/// Facts that the file system has about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStatus {
    inode: u64,
    size: u64,
    mode: u32,
    modified: FileTime,
    changed: FileTime,
}

impl FileStatus {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.size(),
            mode: metadata.mode(),
            modified: FileTime(metadata.mtime(), metadata.mtime_nsec()),
            changed: FileTime::of_change(metadata),
        }
    }
}

/// Fingerprint of a package.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// Time at which it was begun: each file was read after it, or hashed before it by the process that wrote it.
    begun: FileTime,
    /// Digests of archives with exactly these files.
    pub(super) downloads: Vec<Sha256Digest>,
    statuses: BTreeMap<String, FileStatus>,
    digests: FileDigests,
}

impl Fingerprint {
    /// Takes the fingerprint of files that were read after the time `begun`, or hashed before it while they were written.
    ///
    /// # Errors
    /// [`InstallError`]; [`InstallError::NotHashable`] if the files are not those of `digests`.
    pub(super) fn take(
        scope: FingerprintScope<'_>,
        folder: &Path,
        digests: FileDigests,
        begun: FileTime,
        downloads: Vec<Sha256Digest>,
    ) -> Result<Self, InstallError> {
        let statuses = scope.statuses(folder)?;
        if !digests.paths().eq(statuses.keys().map(String::as_str)) {
            let reason = "files were added or removed while it was read";
            return Err(InstallError::NotHashable { path: folder.to_owned(), reason });
        }
        Ok(Self { begun, downloads, statuses, digests })
    }

    /// Returns the digests of the files.
    pub(super) fn into_digests(self) -> FileDigests {
        self.digests
    }

    /// Compares files with the fingerprint, and reads none. Returns `true` if nothing has changed, and no file is
    /// unsettled.
    ///
    /// # Errors
    /// [`InstallError`]: [`InstallError::Trust`] if another user could have changed a file or folder of the package.
    pub(super) fn is_current(&self, scope: FingerprintScope<'_>, folder: &Path) -> Result<bool, InstallError> {
        let (mut count, mut is_current) = (0, true);
        scope.visit(folder, &mut |path, metadata| {
            count += 1;
            is_current &= self.settled(path, metadata);
            Ok(())
        })?;
        Ok(is_current && count == self.statuses.len())
    }

    /// Returns whether one of the files is a link.
    pub(super) fn has_links(&self) -> bool {
        let mut entries = self.digests.paths().filter_map(|path| self.digests.entry(path));
        entries.any(|file| file.kind == FileKind::Link)
    }

    /// Returns whether the file system says the same about all files as before.
    pub(super) fn has(&self, statuses: &BTreeMap<String, FileStatus>) -> bool {
        self.statuses == *statuses
    }

    /// Returns the known digest of a file, unless it has changed or is unsettled.
    pub(super) fn known(&self, path: &str, metadata: &Metadata) -> Option<FileEntry> {
        self.settled(path, metadata).then(|| self.digests.entry(path)).flatten()
    }

    fn settled(&self, path: &str, metadata: &Metadata) -> bool {
        let status = FileStatus::of(metadata);
        status.changed < self.begun && self.statuses.get(path) == Some(&status)
    }

    /// Returns the text of the fingerprint.
    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{FIRST_WORDS}{}\n", self.begun);
        for download in &self.downloads {
            writeln!(text, "{DOWNLOAD}{}", download.to_hex()).expect("a text can always be extended");
        }
        for (path, status) in &self.statuses {
            let Some(FileEntry { digest, kind }) = self.digests.entry(path) else { continue };
            let FileStatus { inode, size, mode, modified, changed } = status;
            let (digest, mark) = (digest.to_hex(), kind.mark());
            writeln!(text, "{digest} {mark} {inode} {size} {mode:o} {modified} {changed} {path}")
                .expect("a text can always be extended");
        }
        text + END
    }

    /// Reads the text of a fingerprint; `None` if it is malformed, incomplete, or of another version.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_prefix(FIRST_WORDS)?.strip_suffix(END)?.split_terminator('\n');
        let begun = FileTime::parse(lines.next()?)?;
        let (mut downloads, mut statuses, mut digests) = (Vec::new(), BTreeMap::new(), FileDigests::default());
        for line in lines {
            if let Some(download) = line.strip_prefix(DOWNLOAD) {
                downloads.push(download.parse().ok()?);
                continue;
            }
            let mut words = line.splitn(8, ' ');
            let mut word = || words.next();
            let digest = word()?.parse().ok()?;
            let kind = FileKind::of_mark(word()?)?;
            let (inode, size) = (word()?.parse().ok()?, word()?.parse().ok()?);
            let mode = u32::from_str_radix(word()?, 8).ok()?;
            let (modified, changed) = (FileTime::parse(word()?)?, FileTime::parse(word()?)?);
            let path = word()?;
            statuses.insert(path.to_owned(), FileStatus { inode, size, mode, modified, changed });
            digests.insert(path.to_owned(), FileEntry { digest, kind });
        }
        Some(Self { begun, downloads, statuses, digests })
    }
}
