//! File of a download, which is hashed while it is written.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::FetchEvents;
use super::progress::Progress;
use crate::fs::FileError;
use crate::plugin::Sha256Digest;

/// File of a download in progress.
pub(super) struct DownloadFile<'a> {
    path: &'a Path,
    events: &'a dyn FetchEvents,
    name: &'a str,
    /// Length in bytes, if it is known.
    size: Option<u64>,
    /// Progress, once the server has answered: an address without the asset is no download.
    progress: Option<Progress<'a>>,
    /// The file, and the hash of what is in it.
    content: Option<(File, Sha256)>,
}

impl<'a> DownloadFile<'a> {
    /// Begins a download.
    pub(super) fn new(events: &'a dyn FetchEvents, name: &'a str, size: Option<u64>, path: &'a Path) -> Self {
        Self { path, events, name, size, progress: None, content: None }
    }

    /// Writes the next bytes. An empty slice marks the start of an attempt, from the beginning.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        if bytes.is_empty() {
            let file = File::create(self.path).map_err(FileError::of("create", self.path))?;
            self.content = Some((file, Sha256::new()));
            let start = || Progress::start(self.events, self.name, self.size);
            self.progress.get_or_insert_with(start).restart();
            return Ok(());
        }
        if let Some((file, hash)) = &mut self.content {
            file.write_all(bytes).map_err(FileError::of("write", self.path))?;
            hash.update(bytes);
        }
        if let Some(progress) = &mut self.progress {
            progress.advance(bytes.len() as u64);
        }
        Ok(())
    }

    /// Ends a download that is complete, and returns the digest of its bytes.
    pub(super) fn finish(self) -> Sha256Digest {
        if let Some(progress) = self.progress {
            progress.done();
        }
        Sha256Digest::finish(self.content.map_or_else(Sha256::new, |(_, hash)| hash))
    }
}
