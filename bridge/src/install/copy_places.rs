//! Copies of one place, in the folders of plugins and in the mirror: their index, and their files.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::cached_fetcher::CacheSettings;
use super::copies::{CopyFolder, INDEX, Index, names_of_tag, paths_of};
use super::download_file::DownloadFile;
use super::verify::hash_file;
use super::{FetchEvent, FetchEvents, InstallError, run_blocking};
use crate::error::chain;
use crate::fs::{FileError, check_trusted_target, open_regular};
use crate::plugin::{Platform, Sha256Digest};
use crate::source::{FetchError, FileServer};

/// Length of the parts in which a file is copied, in bytes.
const PART: usize = 1 << 16;

/// Folders of plugins and mirror, asked for the copies of one place.
#[derive(Clone, Copy)]
pub(super) struct CopyPlaces<'a> {
    pub(super) settings: &'a CacheSettings,
    /// Host and path of the place: `github.com/acme/reef`.
    pub(super) place: &'a str,
    pub(super) events: &'a dyn FetchEvents,
}

/// File that was copied, and where it is from.
pub(super) struct CopiedFile {
    /// Digest of its bytes.
    pub(super) digest: Sha256Digest,
    /// The folder, or the host of the mirror.
    pub(super) origin: String,
}

impl CopyPlaces<'_> {
    /// Returns the folders with copies of the place, the first one first.
    pub(super) fn folders(&self) -> Vec<CopyFolder> {
        CopyFolder::find(&self.settings.copies.folders, self.place)
    }

    /// Returns a client of the mirror; `None` if there is none, or if no connection may be opened.
    pub(super) fn mirror(&self) -> Result<Option<FileServer>, InstallError> {
        let address = self.settings.copies.mirror.as_deref().filter(|_| !self.settings.is_offline);
        Ok(address.map(FileServer::new).transpose()?)
    }

    /// Returns the path at the mirror of a file of a tag or a commit. A mirror is asked for few names, each of which is a request.
    pub(super) fn mirror_path(&self, tag: &str, name: &str) -> Option<String> {
        let place = paths_of(self.place).into_iter().next().filter(|_| !names_of_tag(tag).is_empty())?;
        Some(format!("{place}/{tag}/{name}"))
    }

    /// Returns the index of the mirror; `None` without one, and if the mirror cannot be asked, which is told.
    pub(super) async fn mirror_index(&self, mirror: &FileServer) -> Result<Option<Index>, InstallError> {
        let Some(path) = paths_of(self.place).into_iter().next() else { return Ok(None) };
        let path = format!("{path}/{INDEX}");
        match mirror.content(&path).await {
            Ok(None) => Ok(None),
            Ok(Some(text)) => {
                let place = || format!("{path} of {}", mirror.host());
                Index::parse(&text).map(Some).ok_or_else(|| InstallError::Index { place: place() })
            }
            Err(error) if error.is_unreachable() => {
                self.warn_of(mirror, &error);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the digest of a file that a folder has and whose index says nothing: nothing else says what it has to be.
    pub(super) async fn digest_of(
        &self,
        folder: &CopyFolder,
        tag: &str,
        name: &str,
        platform: Platform,
    ) -> Result<Option<Sha256Digest>, InstallError> {
        let Some(file) = folder.asset(tag, name, Some(platform)) else { return Ok(None) };
        check_trusted_target(&file)?;
        run_blocking(move || hash_file(&file)).await.map(Some)
    }

    /// Copies a file of a tag or a commit from the first folder that has it, else from the mirror; `None` if neither has it. The caller
    /// verifies it.
    ///
    /// # Errors
    /// [`InstallError::OtherCopy`] if the mirror sends something else.
    pub(super) async fn fetch_file(
        &self,
        tag: &str,
        (name, size): (&str, Option<u64>),
        platform: Option<Platform>,
        to: &Path,
    ) -> Result<Option<CopiedFile>, InstallError> {
        for folder in self.folders() {
            if let Some(file) = folder.asset(tag, name, platform) {
                let digest = self.copy(&file, (name, size), to).await?;
                return Ok(Some(CopiedFile { digest, origin: folder.0.display().to_string() }));
            }
        }
        let (Some(mirror), Some(path)) = (self.mirror()?, self.mirror_path(tag, name)) else { return Ok(None) };
        let mut download = DownloadFile::new(self.events, name, size, to);
        match mirror.download(&path, size, |bytes| download.write(bytes)).await {
            Ok(false) => Ok(None),
            Ok(true) => Ok(Some(CopiedFile { digest: download.finish(), origin: mirror.host() })),
            Err(FetchError::Path(error)) => Err(error.into()),
            Err(error) if error.is_unreachable() => {
                self.warn_of(&mirror, &error);
                Ok(None)
            }
            Err(error) => Err(InstallError::OtherCopy { place: mirror.host(), source: Box::new(error.into()) }),
        }
    }

    /// Copies a file, and returns the digest of the copied bytes.
    async fn copy(
        &self,
        from: &Path,
        (name, size): (&str, Option<u64>),
        to: &Path,
    ) -> Result<Sha256Digest, InstallError> {
        let mut source: File = open_regular(from).map_err(FileError::of("read", from))?;
        let mut download = DownloadFile::new(self.events, name, size, to);
        download.write(&[])?;
        let mut part = vec![0; PART];
        loop {
            let length = source.read(&mut part).map_err(FileError::of("read", from))?;
            if length == 0 {
                return Ok(download.finish());
            }
            download.write(&part[..length])?;
            // Other plugins are prepared meanwhile.
            tokio::task::yield_now().await;
        }
    }

    /// Tells from where a version is.
    pub(super) fn tell(&self, tag: &str, origin: &str) {
        self.events.emit(FetchEvent::Note(format!("{tag} is taken from {origin}")));
    }

    /// Warns that the mirror cannot be asked.
    pub(super) fn warn_of(&self, mirror: &FileServer, error: &FetchError) {
        let text = format!("the mirror {} cannot be asked: {}", mirror.host(), chain(error));
        self.events.emit(FetchEvent::Warning(text));
    }
}
