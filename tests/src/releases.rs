//! Server of GitHub releases: the REST paths that our client requests, and storage on another host that downloads can
//! be redirected to. Builds packages in the published format.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::http::{HttpServer, Request, Response};
use crate::tls::certificates;

/// Server of releases. It ends when it is dropped.
#[derive(Debug)]
pub struct ReleaseServer {
    api: HttpServer,
    storage: HttpServer,
    served: Arc<Mutex<ServerContent>>,
    authority: Option<tempfile::NamedTempFile>,
}

#[derive(Debug, Default)]
struct ServerContent {
    releases: Vec<Release>,
    /// Overriding responses, by a part of the path.
    overrides: BTreeMap<String, Response>,
    /// Overriding responses to one request each, by a part of the path.
    once: Vec<(String, Response)>,
    /// Base URL that downloads are redirected to.
    storage: Option<String>,
    digests: bool,
    /// States of uploads that are not complete, by the names of the assets.
    states: BTreeMap<String, String>,
    /// Number of releases on a page of the list, and whether the pages have links.
    page: Option<(usize, bool)>,
    /// True if the assets have public addresses.
    is_public: bool,
    /// Tokens that are refused.
    refused: Vec<String>,
}

#[derive(Clone, Debug)]
struct Release {
    repository: String,
    tag: String,
    assets: Vec<(String, Vec<u8>)>,
    published_at: Option<String>,
    draft: bool,
    prerelease: bool,
}

impl ReleaseServer {
    /// Starts a server without releases.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start() -> io::Result<Self> {
        let served: Arc<Mutex<ServerContent>> = Arc::default();
        let serve = |respond: fn(&mut ServerContent, &Request) -> Response| {
            let served = Arc::clone(&served);
            HttpServer::start(move |request| {
                let response = respond(&mut served.lock().unwrap_or_else(PoisonError::into_inner), &request);
                async move { response }
            })
        };
        let (api, storage) = (serve(respond_api).await?, serve(respond_storage).await?);
        Ok(Self { api, storage, served, authority: None })
    }

    /// Starts a server with TLS, which serves the assets at their public addresses as well. The certificate is that of an authority of
    /// its own: see [`ReleaseServer::authority`].
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start_tls() -> io::Result<Self> {
        let served: Arc<Mutex<ServerContent>> = Arc::default();
        served.lock().unwrap_or_else(PoisonError::into_inner).is_public = true;
        // Also this machine, for Linux, and not a loopback address: clients use a proxy for it.
        let (issuer, acceptor) = certificates(&["127.0.0.1", "0.0.0.0"])?;
        let authority = tempfile::NamedTempFile::new()?;
        std::fs::write(authority.path(), issuer)?;
        let serve = |respond: fn(&mut ServerContent, &Request) -> Response| {
            let served = Arc::clone(&served);
            let respond = move |request: Request| {
                let response = respond(&mut served.lock().unwrap_or_else(PoisonError::into_inner), &request);
                async move { response }
            };
            HttpServer::start_tls(respond, acceptor.clone())
        };
        let (api, storage) = (serve(respond_api).await?, serve(respond_storage).await?);
        Ok(Self { api, storage, served, authority: Some(authority) })
    }

    /// Returns the file with the certificate of the authority, in PEM.
    pub fn authority(&self) -> Option<&Path> {
        self.authority.as_ref().map(tempfile::NamedTempFile::path)
    }

    /// Returns the base URL of the server.
    pub fn url(&self) -> String {
        self.api.url()
    }

    /// Removes the public addresses of the assets, as in a private repository.
    pub fn make_private(&self) {
        self.lock().is_public = false;
    }

    /// Returns the base URL of the API: `source.apiUrl`.
    pub fn api_url(&self) -> String {
        format!("{}/api/v3", self.api.url())
    }

    /// Publishes a release; the last one is the latest.
    pub fn publish(&self, repository: &str, tag: &str, assets: &[(&str, &[u8])]) {
        let assets = assets.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        let (repository, tag) = (repository.to_owned(), tag.to_owned());
        let (published_at, draft, prerelease) = (None, false, false);
        self.lock().releases.push(Release { repository, tag, assets, published_at, draft, prerelease });
    }

    /// Sets the time of the publication of a release (RFC 3339).
    pub fn set_published(&self, tag: &str, time: &str) {
        self.of_tag(tag, |release| release.published_at = Some(time.to_owned()));
    }

    /// Makes a release a draft, which is not published.
    pub fn set_draft(&self, tag: &str) {
        self.of_tag(tag, |release| release.draft = true);
    }

    /// Makes a release a pre-release.
    pub fn set_prerelease(&self, tag: &str) {
        self.of_tag(tag, |release| release.prerelease = true);
    }

    /// Replaces the content of an asset.
    pub fn replace_asset(&self, tag: &str, name: &str, content: &[u8]) {
        self.of_tag(tag, |release| {
            release.assets.iter_mut().filter(|(known, _)| known == name).for_each(|(_, old)| *old = content.to_vec());
        });
    }

    /// Removes a release.
    pub fn remove_release(&self, tag: &str) {
        // The others keep their ids.
        self.of_tag(tag, |release| release.repository.clear());
    }

    fn of_tag(&self, tag: &str, change: impl Fn(&mut Release)) {
        self.lock().releases.iter_mut().filter(|release| release.tag == tag).for_each(change);
    }

    /// Limits the number of releases on a page of the list. `links`: pages name the next one.
    pub fn set_page(&self, size: usize, links: bool) {
        self.lock().page = Some((size, links));
    }

    /// Refuses requests with a token.
    pub fn refuse_token(&self, token: &str) {
        self.lock().refused.push(format!("Bearer {token}"));
    }

    /// Removes all releases.
    pub fn remove_releases(&self) {
        self.lock().releases.clear();
    }

    /// Overrides the response to every request whose path contains this text.
    pub fn override_response(&self, path: &str, response: Response) {
        self.lock().overrides.insert(path.to_owned(), response);
    }

    /// Overrides the response to the next request whose path contains this text.
    pub fn override_once(&self, path: &str, response: Response) {
        self.lock().once.push((path.to_owned(), response));
    }

    /// Removes all overriding responses.
    pub fn clear_overrides(&self) {
        self.lock().overrides.clear();
    }

    /// Redirects downloads to storage on another host.
    pub fn redirect_downloads(&self) {
        self.lock().storage = Some(self.storage.url());
    }

    /// Adds digests to the descriptions of assets.
    pub fn add_digests(&self) {
        self.lock().digests = true;
    }

    /// Sets the state of the upload of assets with a name; `uploaded` is that of a complete one.
    pub fn set_state(&self, asset: &str, state: &str) {
        self.lock().states.insert(asset.to_owned(), state.to_owned());
    }

    /// Returns the requests to the API.
    pub fn requests(&self) -> Vec<Request> {
        self.api.requests()
    }

    /// Returns the requests to the storage.
    pub fn storage_requests(&self) -> Vec<Request> {
        self.storage.requests()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ServerContent> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn respond_api(served: &mut ServerContent, request: &Request) -> Response {
    if let Some(at) = served.once.iter().position(|(part, _)| request.path.contains(part.as_str())) {
        return served.once.remove(at).1;
    }
    if let Some((_, response)) = served.overrides.iter().find(|(part, _)| request.path.contains(part.as_str())) {
        return response.clone();
    }
    if request.header("authorization").is_some_and(|sent| served.refused.iter().any(|refused| refused == sent)) {
        return Response::new(401, r#"{"message": "Bad credentials"}"#);
    }
    let not_found = || Response::new(404, r#"{"message": "Not Found"}"#);
    let Some(path) = request.path.strip_prefix("/api/v3/repos/") else {
        let public = served.is_public.then(|| public_asset(served, &request.path)).flatten();
        return public.map_or_else(not_found, |bytes| respond_bytes(request, bytes));
    };
    if let Some((repository, query)) = path.split_once("/releases?") {
        return respond_list(served, repository, query);
    }
    let Some((repository, rest)) = path.split_once("/releases/") else { return not_found() };
    let mut of_repository = served.releases.iter().enumerate().filter(|(_, release)| release.repository == repository);
    if let Some(id) = rest.strip_prefix("assets/") {
        return match (asset(served, id), &served.storage) {
            (Some(_), Some(storage)) => Response::new(302, "").with("Location", format!("{storage}/{id}?sig=s3cret")),
            (Some(bytes), None) => respond_bytes(request, bytes).with("Content-Type", "application/octet-stream"),
            (None, _) => not_found(),
        };
    }
    let release = match rest.strip_prefix("tags/") {
        Some(tag) => of_repository.find(|(_, release)| release.tag == tag),
        None if rest == "latest" => of_repository.rfind(|(_, release)| !release.draft && !release.prerelease),
        None => None,
    };
    let Some((at, release)) = release else { return not_found() };
    let body = describe(served, at, release);
    Response::new(200, body.to_string()).with("Content-Type", "application/json")
}

/// Returns a page of the releases of a repository, the newest first.
fn respond_list(served: &ServerContent, repository: &str, query: &str) -> Response {
    let parameter =
        |name: &str| query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
    let (page, size): (usize, usize) = (parameter("page").unwrap_or(1), parameter("per_page").unwrap_or(30));
    let (size, links) = served.page.map_or((size, true), |(limit, links)| (size.min(limit), links));
    let releases = served.releases.iter().enumerate().rev().filter(|(_, release)| release.repository == repository);
    let releases: Vec<_> = releases.map(|(at, release)| describe(served, at, release)).collect();
    let start = (size * (page - 1)).min(releases.len());
    let end = (start + size).min(releases.len());
    let response = Response::new(200, serde_json::Value::from(releases[start..end].to_vec()).to_string());
    let next = format!("<https://api.example/repos/{repository}/releases?page={}>; rel=\"next\"", page + 1);
    let last = format!("<https://api.example/repos/{repository}/releases?page=1>; rel=\"first\"");
    match (links, end < releases.len()) {
        (true, true) => response.with("Link", format!("{next}, {last}")),
        (true, false) if page > 1 => response.with("Link", last),
        _ => response,
    }
}

fn describe(served: &ServerContent, at: usize, release: &Release) -> serde_json::Value {
    let assets: Vec<serde_json::Value> = release
        .assets
        .iter()
        .enumerate()
        .map(|(index, (name, bytes))| {
            let digest = served.digests.then(|| format!("sha256:{}", sha256(bytes)));
            let state = served.states.get(name).map_or("uploaded", String::as_str);
            serde_json::json!({
                "id": at * 100 + index, "name": name, "size": bytes.len(), "digest": digest, "state": state
            })
        })
        .collect();
    let Release { tag, published_at, draft, prerelease, .. } = release;
    serde_json::json!({
        "tag_name": tag, "assets": assets, "draft": draft, "prerelease": prerelease, "published_at": published_at
    })
}

fn respond_storage(served: &mut ServerContent, request: &Request) -> Response {
    let id = request.path.trim_start_matches('/').split('?').next().unwrap_or_default();
    asset(served, id).map_or_else(|| Response::new(404, "<Error/>"), |bytes| respond_bytes(request, bytes))
}

/// Returns an asset by its public address: `/OWNER/NAME/releases/download/TAG/ASSET`.
fn public_asset(served: &ServerContent, path: &str) -> Option<Vec<u8>> {
    let (repository, rest) = path.trim_start_matches('/').split_once("/releases/download/")?;
    let (tag, name) = rest.rsplit_once('/')?;
    let release = served.releases.iter().find(|release| release.repository == repository && release.tag == tag)?;
    Some(release.assets.iter().find(|(known, _)| known == name)?.1.clone())
}

/// Returns the response with bytes, or with those from a byte on if the client has the beginning of the same content.
fn respond_bytes(request: &Request, bytes: Vec<u8>) -> Response {
    let tag = format!("\"{}\"", sha256(&bytes));
    let start = request.header("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let start: usize = start.filter(|_| request.header("if-range") == Some(&tag)).unwrap_or(0);
    let length = bytes.len();
    let response = match start {
        0 => Response::new(200, bytes),
        start => Response::new(206, &bytes[start.min(length)..])
            .with("Content-Range", format!("bytes {start}-{}/{length}", length.saturating_sub(1))),
    };
    response.with("ETag", tag)
}

fn asset(served: &ServerContent, id: &str) -> Option<Vec<u8>> {
    let id: usize = id.parse().ok()?;
    Some(served.releases.get(id / 100)?.assets.get(id % 100)?.1.clone())
}

/// Returns the SHA-256 digest of bytes, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Kind of an archive entry.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// File with a mode and content.
    File(u32, &'a [u8]),
    /// Folder.
    Folder,
    /// Symbolic link to a target.
    Link(&'a str),
    /// Hard link to a target.
    HardLink(&'a str),
    /// Device, by the type byte of its header.
    Device(u8),
    /// Metadata about the next entry, by the type byte of its header.
    Metadata(u8, &'a [u8]),
}

/// Returns a `tar.gz` with these entries. Their paths are not checked.
///
/// # Errors
/// Returns the errors of the archive writer, which writes to memory.
pub fn tar_gz(entries: &[(&str, Entry<'_>)]) -> io::Result<Vec<u8>> {
    let gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(gz);
    for (path, entry) in entries {
        let mut header = tar::Header::new_ustar();
        let content: &[u8] = match entry {
            Entry::File(_, content) | Entry::Metadata(_, content) => content,
            _ => &[],
        };
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        // The tar library refuses paths that tests need, so the name is written into the header.
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        let link = |header: &mut tar::Header, target: &str| {
            header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        };
        match entry {
            Entry::File(mode, _) => header.set_mode(*mode),
            Entry::Folder => header.set_entry_type(tar::EntryType::Directory),
            Entry::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                link(&mut header, target);
            }
            Entry::HardLink(target) => {
                header.set_entry_type(tar::EntryType::Link);
                link(&mut header, target);
            }
            Entry::Device(kind) | Entry::Metadata(kind, _) => header.set_entry_type(tar::EntryType::new(*kind)),
        }
        header.set_cksum();
        archive.append(&header, content)?;
    }
    archive.into_inner()?.finish()
}
