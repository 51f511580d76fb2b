//! What assets and archives point to: files, folders, URLs, packed archives.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use pulumi_proto::property::hash::{EMPTY_ARCHIVE_HASH, EMPTY_ASSET_HASH, member_name};
use pulumi_proto::property::{Archive, ArchiveContent, Asset, AssetContent, PropertyMap};
use tokio::runtime::Handle;
use url::Url;

use super::error::AssetError;
use crate::source::download;

/// What Pulumi keeps beside files, and never counts as content.
const BOOKKEEPING: &str = ".pulumi";
static NOTHING: PropertyMap = PropertyMap::new();

/// Bytes, and how many there are.
pub(super) struct Blob<'a> {
    /// Where they come from, for messages.
    pub(super) place: String,
    pub(super) size: u64,
    pub(super) content: Source<'a>,
}

impl<'a> Blob<'a> {
    fn streamed(place: &str, size: u64, content: impl Read + 'a) -> Self {
        Self { place: place.to_owned(), size, content: Source::Stream(Box::new(content)) }
    }
}

pub(super) enum Source<'a> {
    File(File),
    Bytes(&'a [u8]),
    Stream(Box<dyn Read + 'a>),
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Bytes(bytes) => bytes.read(buffer),
            Self::Stream(stream) => stream.read(buffer),
        }
    }
}

/// How an archive is packed, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tar,
    TarGzip,
    Zip,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        let endings = [
            (".tar", Self::Tar),
            (".tgz", Self::TarGzip),
            (".tar.gz", Self::TarGzip),
            (".zip", Self::Zip),
            (".jar", Self::Zip),
        ];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, kind)| kind)
    }
}

/// What an archive leads to.
pub(super) enum Place<'a> {
    Members(&'a PropertyMap),
    Folder(PathBuf),
    Packed(Kind, Blob<'static>),
}

/// Opens what is asked for, relative paths below one folder. Blocks.
pub(super) struct Files {
    folder: PathBuf,
    runtime: Handle,
}

impl Files {
    /// Within a runtime, which downloads what URLs point to.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, runtime: Handle::current() }
    }

    /// The content of an asset.
    pub(super) fn asset<'a>(&self, asset: &'a Asset) -> Result<Blob<'a>, AssetError> {
        let text = |text: &'a str| Blob {
            place: "a text".to_owned(),
            size: text.len() as u64,
            content: Source::Bytes(text.as_bytes()),
        };
        match &asset.content {
            // Empty ones may be told by their hash alone.
            AssetContent::Elided if asset.hash.as_deref() == Some(EMPTY_ASSET_HASH) => Ok(text("")),
            AssetContent::Elided => Err(AssetError::Elided),
            AssetContent::Text(content) => Ok(text(content)),
            AssetContent::Path(path) => file(&self.folder.join(path)),
            AssetContent::Uri(uri) => self.fetch(&url(uri)?),
        }
    }

    /// What an archive leads to. Of what is a path or a URL the name decides, as it does for providers.
    pub(super) fn archive<'a>(&self, archive: &'a Archive) -> Result<Place<'a>, AssetError> {
        match &archive.content {
            ArchiveContent::Elided if archive.hash.as_deref() == Some(EMPTY_ARCHIVE_HASH) => {
                Ok(Place::Members(&NOTHING))
            }
            ArchiveContent::Elided => Err(AssetError::Elided),
            ArchiveContent::Assets(members) => Ok(Place::Members(members)),
            ArchiveContent::Path(path) => {
                let path = self.folder.join(path);
                match (Kind::of(&path.to_string_lossy()), fs::metadata(&path)) {
                    (Some(kind), _) => Ok(Place::Packed(kind, file(&path)?)),
                    (None, Ok(found)) if found.is_dir() => Ok(Place::Folder(path)),
                    (None, Ok(_)) => Err(AssetError::NoArchive(path.display().to_string())),
                    (None, Err(error)) => Err(unreadable(path.display(), error)),
                }
            }
            ArchiveContent::Uri(uri) => {
                let url = url(uri)?;
                let kind = Kind::of(url.path()).ok_or_else(|| AssetError::NoArchive(shown(&url)))?;
                Ok(Place::Packed(kind, self.fetch(&url)?))
            }
        }
    }

    fn fetch(&self, url: &Url) -> Result<Blob<'static>, AssetError> {
        match url.scheme() {
            "file" => {
                let path = url.to_file_path();
                file(&path.map_err(|()| unreadable(shown(url), "files of other hosts cannot be read"))?)
            }
            "http" | "https" => {
                let content = self.runtime.block_on(download(url));
                opened(shown(url), content.map_err(|problem| unreadable(shown(url), problem))?)
            }
            _ => Err(unreadable(shown(url), "expected a URL that begins with http:, https: or file:")),
        }
    }
}

fn unreadable(place: impl ToString, problem: impl ToString) -> AssetError {
    AssetError::Unreadable { place: place.to_string(), problem: problem.to_string() }
}

fn url(uri: &str) -> Result<Url, AssetError> {
    // What it is instead of a URL may be secret.
    Url::parse(uri).map_err(|error| unreadable("a URL", error))
}

/// A URL without what may be secret: who asks, and a signature.
fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    // Not every kind of URL can have these.
    shown.set_username("").and_then(|()| shown.set_password(None)).ok();
    shown.to_string()
}

/// The content of a file.
pub(super) fn file(path: &Path) -> Result<Blob<'static>, AssetError> {
    let place = path.display().to_string();
    // Looked at before it is opened: to open a pipe would wait for somebody who writes.
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(AssetError::Folder(place)),
        Ok(found) if !found.is_file() => return Err(unreadable(place, "it is no regular file")),
        Ok(_) => {}
        Err(error) => return Err(unreadable(place, error)),
    }
    let file = File::open(path).map_err(|error| unreadable(&place, error))?;
    opened(place, file)
}

fn opened(place: String, file: File) -> Result<Blob<'static>, AssetError> {
    let size = file.metadata().map_err(|error| unreadable(&place, error))?.len();
    Ok(Blob { place, size, content: Source::File(file) })
}

/// The files below a folder as members of an archive, in the order of a walk: names, and where they are. Links to files
/// count as files, links to folders not at all.
pub(super) fn files_below(folder: &Path) -> Result<Vec<(String, PathBuf)>, AssetError> {
    let mut found = Vec::new();
    walk(folder, "", &mut found)?;
    Ok(found)
}

fn walk(path: &Path, name: &str, found: &mut Vec<(String, PathBuf)>) -> Result<(), AssetError> {
    if path.file_name().is_some_and(|name| name == BOOKKEEPING) {
        return Ok(());
    }
    let lost = |error| unreadable(path.display(), error);
    let what = fs::symlink_metadata(path).map_err(lost)?;
    if what.is_dir() {
        let entries = fs::read_dir(path).map_err(lost)?.map(|entry| Ok(entry?.file_name()));
        let mut names = entries.collect::<io::Result<Vec<_>>>().map_err(lost)?;
        names.sort();
        for entry in names {
            let path = path.join(&entry);
            let entry = entry.to_str().ok_or_else(|| unreadable(path.display(), "its name is not UTF-8"))?;
            let name = if name.is_empty() { entry.to_owned() } else { format!("{name}/{entry}") };
            walk(&path, &name, found)?;
        }
    } else if !what.is_symlink() || !fs::metadata(path).map_err(lost)?.is_dir() {
        found.push((name.to_owned(), path.to_owned()));
    }
    Ok(())
}

/// Takes a file out of a packed archive, by the name that it has there.
type Take<'t> = &'t mut dyn FnMut(&str, Blob<'_>) -> Result<(), AssetError>;

/// Hands out each file of a packed archive, in its order.
pub(super) fn each_packed(kind: Kind, packed: Blob<'_>, take: Take<'_>) -> Result<(), AssetError> {
    let Blob { place, content, .. } = packed;
    match kind {
        Kind::Tar => each_of_tar(&place, content, take),
        Kind::TarGzip => each_of_tar(&place, MultiGzDecoder::new(content), take),
        Kind::Zip => each_of_zip(&place, content, take),
    }
}

fn each_of_tar(place: &str, content: impl Read, take: Take<'_>) -> Result<(), AssetError> {
    let lost = |error: io::Error| unreadable(place, error);
    let mut archive = tar::Archive::new(content);
    for entry in archive.entries().map_err(lost)? {
        let entry = entry.map_err(lost)?;
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !kind.is_file() {
            return Err(unreadable(place, format!("its entry {name:?} is neither a file nor a folder")));
        }
        take(&member_name("", &name), Blob::streamed(place, entry.size(), entry))?;
    }
    Ok(())
}

fn each_of_zip(place: &str, content: Source<'_>, take: Take<'_>) -> Result<(), AssetError> {
    // Its directory is at its end.
    let Source::File(file) = content else { return Err(unreadable(place, "it is no file")) };
    let mut archive = zip::ZipArchive::new(file).map_err(|error| unreadable(place, error))?;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| unreadable(place, error))?;
        if !entry.is_dir() {
            let name = entry.name().map_err(|error| unreadable(place, error))?.into_owned();
            take(&member_name("", &name), Blob::streamed(place, entry.size(), entry))?;
        }
    }
    Ok(())
}
