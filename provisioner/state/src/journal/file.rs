//! Open file of a journal.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bridge::fs::{Access, FileError, calls, write_atomically};
use serde::de::IgnoredAny;
use tracing::{debug_span, trace};

use super::closing::{Closing, FileEnd};
use super::encode::write_close;
use super::error::JournalError;
use super::flusher::{Flusher, has_name};
use super::folder::{JournalFolders, JournalPlace};
use crate::receipt::{Receipt, Waits};
use crate::store::StackReference;

/// Open file of a journal.
#[derive(Debug)]
pub(super) struct JournalFile {
    pub(super) path: PathBuf,
    pub(super) place: JournalPlace,
    /// Number of lines of the run in the file, the first line of the file excluded.
    pub(super) lines: usize,
    /// `true` if the last line is a `close` line.
    pub(super) is_closed: bool,
    file: Arc<File>,
    length: u64,
    flusher: Flusher,
    /// `true` if the end of the file may be a part of a line.
    is_torn: bool,
}

impl JournalFile {
    /// Creates the file of a journal in the folder of the backend, and writes its first lines.
    ///
    /// # Errors
    /// [`JournalError::Path`]; there is no file then, except a part of its first lines, if it could not be removed.
    pub(super) fn create(
        folders: &JournalFolders,
        stack: &StackReference,
        name: &str,
        content: &[u8],
        lines: usize,
    ) -> Result<Self, JournalError> {
        let path = folders.create(JournalPlace::BACKEND, stack)?.join(name);
        let opened = calls::open(OpenOptions::new().read(true).append(true).create_new(true).mode(0o600), &path);
        let mut created = Self::opened(JournalPlace::BACKEND, path, opened, 0, 0)?;
        if let Err(error) = created.append(content, lines) {
            // The first line is not complete: no operation has begun.
            calls::remove_file(&created.path).ok();
            return Err(error);
        }
        Ok(created)
    }

    /// Writes a journal anew as a whole, and replaces the file that has its name. The content has `lines` lines of the
    /// run, and a `close` line if it is closed.
    ///
    /// # Errors
    /// [`JournalError::Path`].
    pub(super) fn rewrite(
        folders: &JournalFolders,
        place: JournalPlace,
        stack: &StackReference,
        name: &str,
        content: &[u8],
        lines: usize,
        is_closed: bool,
    ) -> Result<Self, JournalError> {
        let path = folders.create(place, stack)?.join(name);
        write_atomically(&path, content, Access::Private)?;
        let opened = calls::open(OpenOptions::new().read(true).append(true), &path);
        let rewritten = Self::opened(place, path, opened, content.len() as u64, lines)?;
        Ok(Self { is_closed, ..rewritten })
    }

    fn opened(
        place: JournalPlace,
        path: PathBuf,
        opened: io::Result<File>,
        length: u64,
        lines: usize,
    ) -> Result<Self, JournalError> {
        let file = Arc::new(opened.map_err(FileError::of("open", &path))?);
        let flusher = Flusher::start(Arc::clone(&file), path.clone(), lines);
        Ok(Self { path, place, lines, is_closed: false, file, length, flusher, is_torn: false })
    }

    /// Appends complete lines in one call. After a failed write the file is shortened to its previous length.
    ///
    /// # Errors
    /// [`JournalError::Path`].
    pub(super) fn append(&mut self, content: &[u8], lines: usize) -> Result<(), JournalError> {
        if let Err(error) = calls::write_all(&self.file, &self.path, content) {
            self.is_torn = calls::truncate(&self.file, &self.path, self.length).is_err();
            return Err(FileError::of("write", &self.path)(error).into());
        }
        self.length += content.len() as u64;
        self.lines += lines;
        trace!(lines, bytes = content.len(), "journal appended");
        self.flusher.wake(self.lines);
        Ok(())
    }

    /// Completes what waits for lines of this file, which another file has on the disk.
    pub(super) fn supersede(&self) {
        self.flusher.supersede();
    }

    /// Returns the receipt for the written lines, which is complete once they are on the disk.
    pub(super) fn receipt(&self, stack: StackReference) -> Receipt {
        Receipt::of_line(stack, self.lines, self.flusher.hurry(), Waits::default())
    }

    /// Appends the line that closes the journal, and flushes the file.
    ///
    /// # Errors
    /// [`JournalError::Path`].
    pub(super) fn close(&mut self, line: &[u8]) -> Result<(), JournalError> {
        self.append(line, 0)?;
        self.is_closed = true;
        self.flush()
    }

    fn flush(&self) -> Result<(), JournalError> {
        let flushed = debug_span!("journal flush").in_scope(|| calls::sync_data(&self.file, &self.path));
        flushed.map_err(FileError::of("flush", &self.path))?;
        self.flusher.mark_flushed();
        Ok(())
    }

    /// Returns whether the file still has its name.
    pub(super) fn exists(&self) -> bool {
        has_name(&self.file, &self.path).unwrap_or(false)
    }

    /// Checks that lines can be appended: the file was not removed, it ends after a line, and it could be flushed. Costs
    /// less than [`Self::check`], because it is asked before every append, and does not see that the file was moved.
    ///
    /// # Errors
    /// The reason why the journal has to be written anew.
    pub(super) fn check_open(&self) -> Result<(), JournalError> {
        let path = || self.path.clone();
        if !self.file.metadata().is_ok_and(|metadata| metadata.nlink() > 0) {
            return Err(JournalError::Removed { path: path() });
        }
        if self.is_torn || self.flusher.has_failed() {
            return Err(JournalError::Unflushed { path: path() });
        }
        Ok(())
    }

    /// Checks that the file still has its name, and that lines can be appended.
    ///
    /// # Errors
    /// The reason why the journal has to be written anew.
    pub(super) fn check(&self) -> Result<(), JournalError> {
        if self.exists() { self.check_open() } else { Err(JournalError::Removed { path: self.path.clone() }) }
    }

    /// Checks that the file of this name contains all lines that were written, and that they are on the disk.
    ///
    /// # Errors
    /// [`JournalError`] if a line is missing or damaged.
    pub(super) fn verify(&self) -> Result<(), JournalError> {
        self.check()?;
        self.flush()?;
        // Reading needs no further descriptor, which may be what is missing.
        let mut content = String::new();
        let mut file = &*self.file;
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut content));
        read.map_err(FileError::of("read", &self.path))?;
        let complete = content.lines().filter(|line| serde_json::from_str::<IgnoredAny>(line).is_ok()).count();
        if content.len() as u64 == self.length && complete == 1 + self.lines + usize::from(self.is_closed) {
            Ok(())
        } else {
            Err(JournalError::Unflushed { path: self.path.clone() })
        }
    }
}

/// Appends the line that closes the journal.
pub(crate) fn append_close_line(path: &Path, end: FileEnd, closing: &Closing) -> Result<(), JournalError> {
    let failed = || FileError::of("write", path);
    let file = calls::open(OpenOptions::new().append(true), path).map_err(failed())?;
    let mut text = Vec::new();
    if end == FileEnd::InLine {
        text.push(b'\n');
    }
    write_close(&mut text, closing);
    calls::write_all(&file, path, &text).and_then(|()| calls::sync_data(&file, path)).map_err(failed())?;
    Ok(())
}
