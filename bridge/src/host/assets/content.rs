//! What assets and archives point to: files, folders, URLs, packed archives.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use flate2::read::MultiGzDecoder;
use pulumi_proto::property::AssetContent;
use pulumi_proto::property::hash::member_name;
use reqwest::Url;
use tokio::runtime::Handle;

use super::AssetError;

/// What Pulumi keeps beside files, and never counts as content.
const BOOKKEEPING: &str = ".pulumi";
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
const RETRIES: usize = 4;

/// Bytes, and how many there are.
pub(super) struct Blob<'a> {
    /// Where they come from, for messages.
    pub(super) place: String,
    pub(super) size: u64,
    pub(super) content: Source<'a>,
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

/// What the path of an archive leads to.
pub(super) enum Place {
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
    pub(super) fn asset<'a>(&self, content: &'a AssetContent) -> Result<Blob<'a>, AssetError> {
        match content {
            AssetContent::Elided => Err(AssetError::Elided),
            AssetContent::Text(text) => Ok(Blob {
                place: "a text".to_owned(),
                size: text.len() as u64,
                content: Source::Bytes(text.as_bytes()),
            }),
            AssetContent::Path(path) => file(&self.folder.join(path)),
            AssetContent::Uri(uri) => self.fetch(&url(uri)?),
        }
    }

    /// What an archive's path leads to. Its name decides, as it does for providers.
    pub(super) fn archive(&self, path: &str) -> Result<Place, AssetError> {
        let path = self.folder.join(path);
        if let Some(kind) = Kind::of(&path.to_string_lossy()) {
            return Ok(Place::Packed(kind, file(&path)?));
        }
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Place::Folder(path)),
            Ok(_) => Err(AssetError::NoArchive(path.display().to_string())),
            Err(error) => Err(unreadable(path.display(), error)),
        }
    }

    /// The packed archive that a URL points to.
    pub(super) fn archive_at(&self, uri: &str) -> Result<(Kind, Blob<'static>), AssetError> {
        let url = url(uri)?;
        let kind = Kind::of(url.path()).ok_or_else(|| AssetError::NoArchive(shown(&url)))?;
        Ok((kind, self.fetch(&url)?))
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

fn file(path: &Path) -> Result<Blob<'static>, AssetError> {
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

/// Everything a URL has, in a file without a name.
async fn download(url: &Url) -> Result<File, String> {
    let client = reqwest::Client::builder().connect_timeout(CONNECT_LIMIT).read_timeout(SILENCE_LIMIT);
    let client = client.build().map_err(|error| error.to_string())?;
    let backoff =
        ExponentialBuilder::new().with_min_delay(Duration::from_millis(100)).with_max_times(RETRIES).with_jitter();
    let once = || async {
        let mut answer = client.get(url.clone()).send().await.map_err(lost)?;
        let status = answer.status();
        if !status.is_success() {
            return Err(Missed { again: status.is_server_error(), problem: format!("it was answered {status}") });
        }
        let kept = |error: io::Error| Missed { again: false, problem: format!("it cannot be kept: {error}") };
        let mut file = tempfile::tempfile().map_err(kept)?;
        while let Some(piece) = answer.chunk().await.map_err(lost)? {
            file.write_all(&piece).map_err(kept)?;
        }
        file.rewind().map_err(kept)?;
        Ok(file)
    };
    once.retry(backoff).when(|missed: &Missed| missed.again).await.map_err(|missed| missed.problem)
}

struct Missed {
    again: bool,
    problem: String,
}

fn lost(error: reqwest::Error) -> Missed {
    let error = error.without_url();
    let mut problem = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        problem = format!("{problem}: {error}");
        cause = error.source();
    }
    Missed { again: true, problem }
}

/// The files below a folder as members of an archive, in the order of a walk: names, and where they are. Links to files
/// count as files, links to folders not at all.
pub(super) fn files_below(folder: &Path) -> Result<Vec<(String, String)>, AssetError> {
    let mut found = Vec::new();
    walk(folder, "", &mut found)?;
    Ok(found)
}

fn walk(path: &Path, name: &str, found: &mut Vec<(String, String)>) -> Result<(), AssetError> {
    if path.file_name().is_some_and(|name| name == BOOKKEEPING) {
        return Ok(());
    }
    let lost = |error| unreadable(path.display(), error);
    let what = fs::symlink_metadata(path).map_err(lost)?;
    if what.is_dir() {
        let entries = fs::read_dir(path).map_err(lost)?;
        let mut names: Vec<_> =
            entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<_>>().map_err(lost)?;
        names.sort();
        for entry in names {
            let text =
                entry.to_str().ok_or_else(|| unreadable(path.join(&entry).display(), "its name is not UTF-8"))?;
            let name = if name.is_empty() { text.to_owned() } else { format!("{name}/{text}") };
            walk(&path.join(text), &name, found)?;
        }
    } else if !what.is_symlink() || !fs::metadata(path).map_err(lost)?.is_dir() {
        let path = path.to_str().ok_or_else(|| unreadable(path.display(), "its path is not UTF-8"))?;
        found.push((name.to_owned(), path.to_owned()));
    }
    Ok(())
}

/// Hands out each file of a packed archive, in its order, by its cleaned name.
pub(super) fn each_packed(
    kind: Kind,
    packed: Blob<'_>,
    mut take: impl FnMut(&str, Blob<'_>) -> Result<(), AssetError>,
) -> Result<(), AssetError> {
    let Blob { place, content, .. } = packed;
    match kind {
        Kind::Tar => each_of_tar(&place, content, &mut take),
        Kind::TarGzip => each_of_tar(&place, MultiGzDecoder::new(content), &mut take),
        Kind::Zip => each_of_zip(&place, content, &mut take),
    }
}

fn each_of_tar(
    place: &str,
    content: impl Read,
    take: &mut impl FnMut(&str, Blob<'_>) -> Result<(), AssetError>,
) -> Result<(), AssetError> {
    let lost = |error: io::Error| unreadable(place, error);
    let mut archive = tar::Archive::new(content);
    for entry in archive.entries().map_err(lost)? {
        let mut entry = entry.map_err(lost)?;
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !kind.is_file() {
            return Err(unreadable(place, format!("its entry {name:?} is neither a file nor a folder")));
        }
        let size = entry.size();
        take(
            &member_name("", &name),
            Blob { place: place.to_owned(), size, content: Source::Stream(Box::new(&mut entry)) },
        )?;
    }
    Ok(())
}

fn each_of_zip(
    place: &str,
    content: Source<'_>,
    take: &mut impl FnMut(&str, Blob<'_>) -> Result<(), AssetError>,
) -> Result<(), AssetError> {
    let Source::File(file) = content else { return Err(unreadable(place, "it is no file")) };
    let mut archive = zip::ZipArchive::new(file).map_err(|error| unreadable(place, error))?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| unreadable(place, error))?;
        if entry.is_dir() {
            continue;
        }
        let name = entry.name().map_err(|error| unreadable(place, error))?.into_owned();
        let size = entry.size();
        take(
            &member_name("", &name),
            Blob { place: place.to_owned(), size, content: Source::Stream(Box::new(&mut entry)) },
        )?;
    }
    Ok(())
}
