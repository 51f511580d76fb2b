//! Content of assets and archives: files, folders, URLs and packed archives.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use pulumi_proto::property::hash::{EMPTY_ARCHIVE_HASH, EMPTY_ASSET_HASH, member_name};
use pulumi_proto::property::{Archive, ArchiveContent, Asset, AssetContent, PropertyMap, PropertyValue};
use tokio::runtime::Handle;
use url::Url;

use super::access::AssetAccess;
use super::error::AssetError;
use crate::fs::open_regular;
use crate::source::download;

/// Folder of Pulumi's own files, which is not part of the content.
const PULUMI_FOLDER: &str = ".pulumi";
static NO_MEMBERS: PropertyMap = PropertyMap::new();

/// Content of a file, with its size in bytes.
pub(super) struct Blob<'a> {
    /// Path or redacted URL of the content, for messages.
    pub(super) location: String,
    pub(super) size: u64,
    pub(super) content: Content<'a>,
}

impl<'a> Blob<'a> {
    fn streamed(location: &str, size: u64, content: impl Read + 'a) -> Self {
        Self { location: location.to_owned(), size, content: Content::Stream(Box::new(content)) }
    }
}

pub(super) enum Content<'a> {
    File(File),
    Bytes(&'a [u8]),
    Stream(Box<dyn Read + 'a>),
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Bytes(bytes) => bytes.read(buffer),
            Self::Stream(stream) => stream.read(buffer),
        }
    }
}

/// Format of a packed archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArchiveFormat {
    Tar,
    TarGzip,
    Zip,
}

impl ArchiveFormat {
    /// Returns the format for a file name; `None` if its extension is not supported.
    fn of(name: &str) -> Option<Self> {
        let endings = [
            (".tar", Self::Tar),
            (".tgz", Self::TarGzip),
            (".tar.gz", Self::TarGzip),
            (".zip", Self::Zip),
            (".jar", Self::Zip),
        ];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    }
}

/// Source of the files of an archive.
pub(super) enum ArchiveSource<'a> {
    Members(&'a PropertyMap),
    Folder(PathBuf),
    Packed(ArchiveFormat, Blob<'static>),
}

/// Reader of the content of assets and archives. Resolves relative paths against a folder. Its methods block.
pub(super) struct AssetReader {
    folder: PathBuf,
    access: Option<Arc<AssetAccess>>,
    /// True if all files must be below the folder.
    is_held_to_folder: bool,
    /// Number of bytes that may still be read.
    left: Cell<u64>,
    /// Runtime that downloads URLs.
    runtime: Option<Handle>,
}

impl AssetReader {
    /// Creates a reader, which is held to `access`. Without a Tokio runtime around it, it reads no URLs of other hosts.
    pub(super) fn new(folder: PathBuf, access: Option<Arc<AssetAccess>>) -> Self {
        let left = Cell::new(AssetAccess::max_bytes(access.as_deref()));
        Self { folder, access, is_held_to_folder: false, left, runtime: Handle::try_current().ok() }
    }

    /// Creates a reader of files below a folder.
    pub(super) fn below(folder: &Path) -> Self {
        Self { is_held_to_folder: true, ..Self::new(folder.to_owned(), None) }
    }

    /// Checks that the file of an asset exists, or that its URL can be read. Reads no content.
    pub(super) fn check_place_of_asset(&self, asset: &Asset) -> Result<(), AssetError> {
        match &asset.content {
            AssetContent::Path(path) => self.check_file(&self.folder.join(path)),
            AssetContent::Uri(uri) => self.check_place_of_url(&parse_url(uri)?),
            AssetContent::Text(_) | AssetContent::Elided => Ok(()),
        }
    }

    /// Checks that the file or folder of an archive exists, or that its URL can be read, and its format. Reads no content.
    pub(super) fn check_place_of_archive(&self, archive: &Archive) -> Result<(), AssetError> {
        match &archive.content {
            ArchiveContent::Path(path) => {
                let path = self.folder.join(path);
                match ArchiveFormat::of(&path.to_string_lossy()) {
                    Some(_) => self.check_file(&path),
                    None => self.open_archive(archive).map(drop),
                }
            }
            ArchiveContent::Uri(uri) => {
                let url = parse_url(uri)?;
                match ArchiveFormat::of(url.path()) {
                    Some(_) => self.check_place_of_url(&url),
                    None => Err(AssetError::NotAnArchive(redacted_url(&url))),
                }
            }
            ArchiveContent::Assets(members) => members.values().try_for_each(|member| match member {
                PropertyValue::Asset(asset) => self.check_place_of_asset(asset),
                PropertyValue::Archive(archive) => self.check_place_of_archive(archive),
                _ => Ok(()),
            }),
            ArchiveContent::Elided => Ok(()),
        }
    }

    fn check_file(&self, path: &Path) -> Result<(), AssetError> {
        self.check_path(path)?;
        let found = fs::metadata(path).map_err(|error| unreadable(path.display(), error))?;
        if found.is_dir() {
            return Err(AssetError::Folder(path.display().to_string()));
        }
        if found.is_file() { Ok(()) } else { Err(unreadable(path.display(), "it is not a regular file")) }
    }

    fn check_place_of_url(&self, url: &Url) -> Result<(), AssetError> {
        match url.scheme() {
            "file" => self.check_file(&file_path(url)?),
            "http" | "https" => Ok(()),
            _ => Err(unreadable(redacted_url(url), OTHER_SCHEME)),
        }
    }

    /// Checks the place of an asset whose hash is known, so that `sc` does not read it: its provider will.
    pub(super) fn check_asset(&self, asset: &Asset) -> Result<(), AssetError> {
        match &asset.content {
            AssetContent::Path(path) => self.check_path(&self.folder.join(path)),
            AssetContent::Uri(uri) => self.check_url(&parse_url(uri)?),
            AssetContent::Text(_) | AssetContent::Elided => Ok(()),
        }
    }

    /// Checks the place of an archive whose hash is known, or those of its members.
    pub(super) fn check_archive(&self, archive: &Archive) -> Result<(), AssetError> {
        match &archive.content {
            ArchiveContent::Path(path) => self.check_path(&self.folder.join(path)),
            ArchiveContent::Uri(uri) => self.check_url(&parse_url(uri)?),
            ArchiveContent::Assets(members) => members.values().try_for_each(|member| match member {
                PropertyValue::Asset(asset) => self.check_asset(asset),
                PropertyValue::Archive(archive) => self.check_archive(archive),
                _ => Ok(()),
            }),
            ArchiveContent::Elided => Ok(()),
        }
    }

    fn check_path(&self, path: &Path) -> Result<(), AssetError> {
        if self.access.is_none() && !self.is_held_to_folder {
            return Ok(());
        }
        let real = path.canonicalize().map_err(|error| unreadable(path.display(), error))?;
        if self.is_held_to_folder {
            let folder = self.folder.canonicalize().map_err(|error| unreadable(self.folder.display(), error))?;
            if !real.starts_with(folder) {
                return Err(AssetError::OutsideOfRepository(path.display().to_string()));
            }
        }
        self.access.as_ref().map_or(Ok(()), |access| access.check_path(&real, &path.display().to_string()))
    }

    fn check_url(&self, url: &Url) -> Result<(), AssetError> {
        let Some(access) = &self.access else { return Ok(()) };
        match (url.scheme(), url.to_file_path()) {
            ("file", Ok(path)) => self.check_path(&path),
            _ => access.check_url(url, &redacted_url(url)),
        }
    }

    /// Counts the bytes of a file. A file of an archive counts as one block at least.
    pub(super) fn count(&self, blob: &Blob<'_>) -> Result<(), AssetError> {
        const BLOCK: u64 = 512;
        let left = self.left.get().checked_sub(blob.size.max(BLOCK));
        self.left.set(left.ok_or_else(|| AssetError::TooLarge(blob.location.clone()))?);
        Ok(())
    }

    /// Opens a file.
    pub(super) fn open_file(&self, path: &Path) -> Result<Blob<'static>, AssetError> {
        let location = path.display().to_string();
        // Refused before it is opened, as a folder is, so that the error tells nothing about the file.
        self.check_path(path)?;
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(AssetError::Folder(location)),
            Ok(_) => {}
            Err(error) => return Err(unreadable(location, error)),
        }
        let file = open_regular(path).map_err(|error| unreadable(&location, error))?;
        if let Some(access) = &self.access {
            // The plugin may have changed a link meanwhile: the file that is open decides.
            let opened = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
            access.check_path(&opened.map_err(|error| unreadable(&location, error))?, &location)?;
        }
        file_blob(location, file)
    }

    /// Opens the content of an asset.
    pub(super) fn open_asset<'a>(&self, asset: &'a Asset) -> Result<Blob<'a>, AssetError> {
        let text = |text: &'a str| Blob {
            location: "a text".to_owned(),
            size: text.len() as u64,
            content: Content::Bytes(text.as_bytes()),
        };
        match &asset.content {
            // The content of an asset with the hash of an empty one is known.
            AssetContent::Elided if asset.hash.as_deref() == Some(EMPTY_ASSET_HASH) => Ok(text("")),
            AssetContent::Elided => Err(AssetError::Elided),
            AssetContent::Text(content) => Ok(text(content)),
            AssetContent::Path(path) => self.open_file(&self.folder.join(path)),
            AssetContent::Uri(uri) => self.open_url(&parse_url(uri)?),
        }
    }

    /// Opens an archive. The extension of a path or URL decides about the format, as in Pulumi's providers.
    pub(super) fn open_archive<'a>(&self, archive: &'a Archive) -> Result<ArchiveSource<'a>, AssetError> {
        match &archive.content {
            ArchiveContent::Elided if archive.hash.as_deref() == Some(EMPTY_ARCHIVE_HASH) => {
                Ok(ArchiveSource::Members(&NO_MEMBERS))
            }
            ArchiveContent::Elided => Err(AssetError::Elided),
            ArchiveContent::Assets(members) => Ok(ArchiveSource::Members(members)),
            ArchiveContent::Path(path) => {
                let path = self.folder.join(path);
                self.check_path(&path)?;
                match (ArchiveFormat::of(&path.to_string_lossy()), fs::metadata(&path)) {
                    (Some(format), _) => Ok(ArchiveSource::Packed(format, self.open_file(&path)?)),
                    (None, Ok(found)) if found.is_dir() => Ok(ArchiveSource::Folder(path)),
                    (None, Ok(_)) => Err(AssetError::NotAnArchive(path.display().to_string())),
                    (None, Err(error)) => Err(unreadable(path.display(), error)),
                }
            }
            ArchiveContent::Uri(uri) => {
                let url = parse_url(uri)?;
                let format =
                    ArchiveFormat::of(url.path()).ok_or_else(|| AssetError::NotAnArchive(redacted_url(&url)))?;
                Ok(ArchiveSource::Packed(format, self.open_url(&url)?))
            }
        }
    }

    fn open_url(&self, url: &Url) -> Result<Blob<'static>, AssetError> {
        match url.scheme() {
            "file" => self.open_file(&file_path(url)?),
            "http" | "https" => {
                self.check_url(url)?;
                let ports = self.access.as_deref().map(AssetAccess::ports);
                let runtime = self.runtime.as_ref();
                let runtime = runtime.ok_or_else(|| unreadable(redacted_url(url), "nothing downloads it"))?;
                let content = runtime.block_on(download(url, ports));
                file_blob(redacted_url(url), content.map_err(|problem| unreadable(redacted_url(url), problem))?)
            }
            _ => Err(unreadable(redacted_url(url), OTHER_SCHEME)),
        }
    }
}

const OTHER_SCHEME: &str = "expected a URL that begins with http:, https: or file:";

fn file_path(url: &Url) -> Result<PathBuf, AssetError> {
    url.to_file_path().map_err(|()| unreadable(redacted_url(url), "files of other hosts cannot be read"))
}

fn unreadable(location: impl ToString, problem: impl ToString) -> AssetError {
    AssetError::Unreadable { location: location.to_string(), problem: problem.to_string() }
}

fn parse_url(uri: &str) -> Result<Url, AssetError> {
    // The message does not contain the text: it may be a secret.
    Url::parse(uri).map_err(|error| unreadable("a URL", error))
}

/// Returns a URL without the parts that may be secret: user name, password, query and fragment.
fn redacted_url(url: &Url) -> String {
    let mut redacted = url.clone();
    redacted.set_query(None);
    redacted.set_fragment(None);
    // Some kinds of URLs cannot have a user name; the error is ignored.
    redacted.set_username("").and_then(|()| redacted.set_password(None)).ok();
    redacted.to_string()
}

fn file_blob(location: String, file: File) -> Result<Blob<'static>, AssetError> {
    let size = file.metadata().map_err(|error| unreadable(&location, error))?.len();
    Ok(Blob { location, size, content: Content::File(file) })
}

/// Lists the files below a folder as members of an archive: names and paths, in depth-first order. Links to files count
/// as files; links to folders are skipped.
pub(super) fn list_files(folder: &Path) -> Result<Vec<(String, PathBuf)>, AssetError> {
    let mut found = Vec::new();
    walk(folder, "", &mut found)?;
    Ok(found)
}

fn walk(path: &Path, name: &str, found: &mut Vec<(String, PathBuf)>) -> Result<(), AssetError> {
    if path.file_name().is_some_and(|name| name == PULUMI_FOLDER) {
        return Ok(());
    }
    let failed = |error| unreadable(path.display(), error);
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        let entries = fs::read_dir(path).map_err(failed)?.map(|entry| Ok(entry?.file_name()));
        let mut names = entries.collect::<io::Result<Vec<_>>>().map_err(failed)?;
        names.sort();
        for entry in names {
            let path = path.join(&entry);
            let entry = entry.to_str().ok_or_else(|| unreadable(path.display(), "its name is not UTF-8"))?;
            let name = if name.is_empty() { entry.to_owned() } else { format!("{name}/{entry}") };
            walk(&path, &name, found)?;
        }
    } else if !metadata.is_symlink() || !fs::metadata(path).map_err(failed)?.is_dir() {
        found.push((name.to_owned(), path.to_owned()));
    }
    Ok(())
}

/// Callback for a file in a packed archive: its name in the archive, and its content.
type Visitor<'t> = &'t mut dyn FnMut(&str, Blob<'_>) -> Result<(), AssetError>;

/// Calls `visit` with each file of a packed archive, in the order of the archive.
pub(super) fn for_each_packed(format: ArchiveFormat, packed: Blob<'_>, visit: Visitor<'_>) -> Result<(), AssetError> {
    let Blob { location, content, .. } = packed;
    match format {
        ArchiveFormat::Tar => for_each_in_tar(&location, content, visit),
        ArchiveFormat::TarGzip => for_each_in_tar(&location, MultiGzDecoder::new(content), visit),
        ArchiveFormat::Zip => for_each_in_zip(&location, content, visit),
    }
}

fn for_each_in_tar(location: &str, content: impl Read, visit: Visitor<'_>) -> Result<(), AssetError> {
    let failed = |error: io::Error| unreadable(location, error);
    let mut archive = tar::Archive::new(content);
    for entry in archive.entries().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !kind.is_file() {
            return Err(unreadable(location, format!("its entry {name:?} is neither a file nor a folder")));
        }
        visit(&member_name("", &name), Blob::streamed(location, entry.size(), entry))?;
    }
    Ok(())
}

fn for_each_in_zip(location: &str, content: Content<'_>, visit: Visitor<'_>) -> Result<(), AssetError> {
    // The directory of a zip archive is at its end, so that it must be a file.
    let Content::File(file) = content else { return Err(unreadable(location, "it is not a file")) };
    let mut archive = zip::ZipArchive::new(file).map_err(|error| unreadable(location, error))?;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| unreadable(location, error))?;
        if !entry.is_dir() {
            let name = entry.name().map_err(|error| unreadable(location, error))?.into_owned();
            visit(&member_name("", &name), Blob::streamed(location, entry.size(), entry))?;
        }
    }
    Ok(())
}
