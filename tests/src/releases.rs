//! Server of GitHub releases: the REST paths that our client requests, and storage on another host that downloads can
//! be redirected to. Builds packages in the published format.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::http::{HttpServer, Request, Response};

/// Server of releases. It ends when it is dropped.
#[derive(Debug)]
pub struct ReleaseServer {
    api: HttpServer,
    storage: HttpServer,
    served: Arc<Mutex<ServerContent>>,
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
}

#[derive(Clone, Debug)]
struct Release {
    repository: String,
    tag: String,
    assets: Vec<(String, Vec<u8>)>,
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
        Ok(Self { api, storage, served })
    }

    /// Returns the base URL of the API: `source.apiUrl`.
    pub fn api_url(&self) -> String {
        format!("{}/api/v3", self.api.url())
    }

    /// Publishes a release; the last one is the latest.
    pub fn publish(&self, repository: &str, tag: &str, assets: &[(&str, &[u8])]) {
        let assets = assets.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        self.lock().releases.push(Release { repository: repository.to_owned(), tag: tag.to_owned(), assets });
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
    let not_found = || Response::new(404, r#"{"message": "Not Found"}"#);
    let Some((repository, rest)) =
        request.path.strip_prefix("/api/v3/repos/").and_then(|path| path.split_once("/releases/"))
    else {
        return not_found();
    };
    let mut of_repository = served.releases.iter().enumerate().filter(|(_, release)| release.repository == repository);
    if let Some(id) = rest.strip_prefix("assets/") {
        return match (asset(served, id), &served.storage) {
            (Some(_), Some(storage)) => Response::new(302, "").with("Location", format!("{storage}/{id}?sig=s3cret")),
            (Some(bytes), None) => Response::new(200, bytes).with("Content-Type", "application/octet-stream"),
            (None, _) => not_found(),
        };
    }
    let release = match rest.strip_prefix("tags/") {
        Some(tag) => of_repository.find(|(_, release)| release.tag == tag),
        None if rest == "latest" => of_repository.next_back(),
        None => None,
    };
    let Some((at, release)) = release else { return not_found() };
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
    let body = serde_json::json!({ "tag_name": release.tag, "assets": assets, "draft": false });
    Response::new(200, body.to_string()).with("Content-Type", "application/json")
}

fn respond_storage(served: &mut ServerContent, request: &Request) -> Response {
    let id = request.path.trim_start_matches('/').split('?').next().unwrap_or_default();
    asset(served, id).map_or_else(|| Response::new(404, "<Error/>"), |bytes| Response::new(200, bytes))
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
