//! Releases on GitHub and on servers with the same REST API: `GET /repos/OWNER/NAME/releases/{tags/TAG,latest}` and
//! `GET /repos/OWNER/NAME/releases/assets/ID`.

use std::time::{Duration, SystemTime};

use backon::{ExponentialBuilder, Retryable as _};
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use octocrab::Octocrab;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use prost::bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::redirect;
use serde::Deserialize;
use tracing::debug;
use url::Url;

use super::address::{is_below, without_credentials};
use super::error::FetchError;
use super::web::{self, chain};
use crate::error::cut;
use crate::fs::FileError;
use crate::plugin::{GithubReleaseSource, Sha256Digest, SourceToken, is_loopback, is_plain_text};
use crate::speed::{SpeedWindow, TooSlow};

/// Maximum number of redirects of a request.
const MAX_REDIRECTS: usize = 10;
/// Maximum length of a JSON response, in bytes.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
/// Limit of the time for a JSON response, with its redirects.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);
const GITHUB_API: &str = "https://api.github.com";

/// Repository and the address of its API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Base URL of the API, without a slash at its end.
    pub api: String,
    /// `owner/name`.
    pub name: String,
}

impl Repository {
    /// Returns the repository that a source declares.
    ///
    /// # Errors
    /// [`FetchError::InvalidAddress`].
    pub fn of(source: &GithubReleaseSource) -> Result<Self, FetchError> {
        let refused = |address: &str, reason: &str| FetchError::InvalidAddress {
            address: without_credentials(address),
            reason: reason.to_owned(),
        };
        let written = source.repository.as_str();
        let web = written.starts_with("https://").then(|| Url::parse(written)).transpose();
        let web = web.map_err(|error| refused(written, &error.to_string()))?;
        let name = web.as_ref().map_or(written, |url| url.path().trim_start_matches('/'));
        let api = match (&source.api_url, &web) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, None) => GITHUB_API.to_owned(),
            (None, Some(url)) if holds_credentials(url) => return Err(refused(written, CREDENTIALS)),
            (None, Some(url)) if matches!(url.host_str(), Some("github.com" | "www.github.com")) => {
                GITHUB_API.to_owned()
            }
            (None, Some(url)) => format!("{}/api/v3", url.origin().ascii_serialization()),
        };
        let reason = match Url::parse(&api) {
            Err(error) => error.to_string(),
            Ok(url) if holds_credentials(&url) => CREDENTIALS.to_owned(),
            Ok(url) if !matches!(url.scheme(), "https" | "http") => "it is neither https nor http".to_owned(),
            Ok(url) if url.query().is_some() || url.fragment().is_some() => "it has a query".to_owned(),
            Ok(_) => {
                let name = name.trim_end_matches('/').trim_end_matches(".git").to_owned();
                return Ok(Self { api, name });
            }
        };
        Err(refused(&api, &reason))
    }
}

/// Reason for the refusal of an address with a user or a password.
const CREDENTIALS: &str = "it contains credentials; set source.token instead";

fn holds_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Release of a repository.
#[derive(Clone, Debug, Deserialize)]
pub struct Release {
    /// Tag of the release.
    #[serde(rename = "tag_name")]
    pub tag: String,
    /// Files of the release.
    #[serde(default)]
    pub assets: Vec<Asset>,
}

/// File of a release.
#[derive(Clone, Debug, Deserialize)]
pub struct Asset {
    id: u64,
    /// Name of the file.
    pub name: String,
    /// Length in bytes.
    pub size: u64,
    /// Digest that the server publishes, with its algorithm: `sha256:…`. Not all servers publish one.
    #[serde(default)]
    digest: Option<String>,
    /// State of its upload: `uploaded` if the upload is complete. Not all servers report one.
    #[serde(default)]
    state: Option<String>,
}

impl Asset {
    /// Returns the state of an upload that is not complete; `None` if it is complete, or if the server reports no state.
    pub fn incomplete_state(&self) -> Option<&str> {
        self.state.as_deref().filter(|state| *state != "uploaded")
    }

    /// Returns the SHA-256 digest that the server publishes, if any.
    pub fn digest(&self) -> Option<Sha256Digest> {
        self.digest.as_deref()?.strip_prefix("sha256:")?.parse().ok()
    }
}

/// Body of a response.
type Body = BoxBody<Bytes, BodyError>;

/// Error while a body is received.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    TooSlow(#[from] TooSlow),
}

/// Returns the next bytes of a body, or `None` at its end.
async fn next_bytes(body: &mut Body, window: &mut SpeedWindow) -> Result<Option<Bytes>, BodyError> {
    while let Some(frame) = window.limit(body.frame()).await? {
        if let Ok(bytes) = frame?.into_data() {
            window.record(bytes.len());
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// Reads a body into memory, up to [`MAX_RESPONSE_BYTES`].
async fn read_body(mut body: Body, window: &mut SpeedWindow) -> Result<Vec<u8>, BodyError> {
    let mut content = Vec::new();
    while let Some(bytes) = next_bytes(&mut body, window).await? {
        if content.len() + bytes.len() > MAX_RESPONSE_BYTES {
            return Err(BodyError::Failed("the response is too long".to_owned()));
        }
        content.extend_from_slice(&bytes);
    }
    Ok(content)
}

/// Client of the API for one repository.
#[derive(Clone, Debug)]
pub struct Github {
    repository: Repository,
    base: Url,
    authenticated: bool,
    client: Octocrab,
    /// Client without the token, for redirects to other hosts.
    client_without_token: reqwest::Client,
    backoff: ExponentialBuilder,
}

impl Github {
    /// Creates a client. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`FetchError::UnusableToken`] if the token is invalid or would be sent in plain text;
    /// [`FetchError::InvalidAddress`].
    pub fn new(repository: Repository, token: Option<&SourceToken>) -> Result<Self, FetchError> {
        let address = |reason: String| FetchError::InvalidAddress { address: repository.api.clone(), reason };
        let base = Url::parse(&repository.api).map_err(|error| address(error.to_string()))?;
        let host = base.host_str().unwrap_or_default().to_owned();
        // The same base address as in `get`: octocrab sends the token to this authority only.
        let builder = Octocrab::builder().base_uri(base.as_str().trim_end_matches('/'));
        let mut builder = builder.map_err(|error| address(chain(&error)))?;
        if let Some(token) = token {
            let unusable = |reason| FetchError::UnusableToken { host: host.clone(), reason };
            if base.scheme() != "https" && !is_loopback(&host) {
                return Err(unusable("it would be sent in plain text"));
            }
            if HeaderValue::from_str(token.expose()).is_err() {
                return Err(unusable("it contains invalid characters"));
            }
            builder = builder.personal_token(token.expose().to_owned());
        }
        // `get` follows redirects, so that it can stop sending the token.
        let http = web::client(&host).redirect(redirect::Policy::none());
        let http = http.build().map_err(|error| address(chain(&error)))?;
        let client = builder.build_with_reqwest(http.clone()).map_err(|error| address(chain(&error)))?;
        let backoff = web::retry_policy();
        Ok(Self { repository, base, authenticated: token.is_some(), client, client_without_token: http, backoff })
    }

    /// Returns the host of the API.
    pub fn host(&self) -> String {
        self.base.host_str().unwrap_or_default().to_owned()
    }

    /// Returns the release of a tag, or the latest release that is neither draft nor pre-release for `None`.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn release(&self, tag: Option<&str>) -> Result<Release, FetchError> {
        let name = &self.repository.name;
        let (path, item) = match tag {
            Some(tag) => (format!("tags/{}", encode_tag(tag)), format!("release {tag} of {name}")),
            None => ("latest".to_owned(), format!("the latest release of {name}")),
        };
        let route = format!("/repos/{name}/releases/{path}");
        let received = || async {
            let mut window = SpeedWindow::start();
            let (_, body) = self.get(&route, "application/vnd.github+json", &item, &mut window).await?;
            read_body(body, &mut window).await.map_err(|error| self.body_error(&item, error))
        };
        let request = || async {
            let body = tokio::time::timeout(RESPONSE_TIMEOUT, received()).await.unwrap_or_else(|_| {
                let reason = format!("the response was not complete after {} seconds", RESPONSE_TIMEOUT.as_secs());
                Err(FetchError::TooSlow { item: item.clone(), host: self.host(), reason })
            })?;
            serde_json::from_slice(&body).map_err(|error| FetchError::UnexpectedStatus {
                item: item.clone(),
                host: self.host(),
                status: 200,
                message: format!("not a release: {error}"),
                retry_after: None,
            })
        };
        let retried = request.retry(self.backoff).when(FetchError::is_transient);
        retried.adjust(adjust).notify(report).await
    }

    /// Downloads an asset, and starts again after a transient error. `sink` receives an empty slice at each start.
    ///
    /// # Errors
    /// [`FetchError`], including an error of `sink`.
    pub async fn download(
        &self,
        asset: &Asset,
        mut sink: impl FnMut(&[u8]) -> Result<(), FileError> + Send,
    ) -> Result<(), FetchError> {
        let sink = tokio::sync::Mutex::new(&mut sink);
        let try_once = || async { self.download_once(asset, &mut **sink.lock().await).await };
        let retried = try_once.retry(self.backoff).when(FetchError::is_transient);
        retried.adjust(adjust).notify(report).await
    }

    async fn download_once(
        &self,
        asset: &Asset,
        sink: &mut (impl FnMut(&[u8]) -> Result<(), FileError> + Send),
    ) -> Result<(), FetchError> {
        let length_mismatch = |received| FetchError::LengthMismatch {
            item: asset.name.clone(),
            host: self.host(),
            expected: asset.size,
            received,
        };
        sink(&[])?;
        let route = format!("/repos/{}/releases/assets/{}", self.repository.name, asset.id);
        let mut window = SpeedWindow::start();
        let (headers, mut body) = self.get(&route, "application/octet-stream", &asset.name, &mut window).await?;
        let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if let Some(announced) = announced.filter(|announced| *announced != asset.size) {
            return Err(length_mismatch(announced));
        }
        let mut received = 0;
        loop {
            let next = next_bytes(&mut body, &mut window).await;
            let Some(bytes) = next.map_err(|error| self.body_error(&asset.name, error))? else { break };
            received += bytes.len() as u64;
            if received > asset.size {
                return Err(length_mismatch(received));
            }
            sink(&bytes)?;
        }
        if received == asset.size { Ok(()) } else { Err(length_mismatch(received)) }
    }

    /// Sends a GET request to a path of the API and follows redirects. After a redirect to another host the token is no
    /// longer sent.
    async fn get(
        &self,
        route: &str,
        accept: &'static str,
        item: &str,
        window: &mut SpeedWindow,
    ) -> Result<(HeaderMap, Body), FetchError> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
        let mut current =
            RequestTarget { url: self.base.clone(), item, authenticated: self.authenticated, is_api: true };
        let path = current.url.path().trim_end_matches('/').to_owned() + route;
        current.url.set_path("");
        let mut next = format!("{}{path}", current.url.as_str().trim_end_matches('/'));
        for _ in 0..=MAX_REDIRECTS {
            current.url = Url::parse(&next).map_err(|error| current.network_error(error.to_string()))?;
            let response = if current.is_api {
                let response = self.client._get_with_headers(current.url.as_str(), Some(headers.clone()));
                let response = window.limit(response).await.map_err(|error| self.body_error(item, error.into()))?;
                response
                    .map_err(|error| current.network_error(chain(&error)))?
                    .map(|body| body.map_err(|error| BodyError::Failed(chain(&error))).boxed())
            } else {
                let response = self.client_without_token.get(current.url.clone()).headers(headers.clone()).send();
                let response = window.limit(response).await.map_err(|error| self.body_error(item, error.into()))?;
                let response = http::Response::from(response.map_err(|error| current.network_error(chain(&error)))?);
                response.map(|body| body.map_err(|error| BodyError::Failed(chain(&error))).boxed())
            };
            let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
            let Some(location) = location else {
                let (head, body) = response.into_parts();
                if head.status.is_success() {
                    return Ok((head.headers, body));
                }
                let content = read_body(body, window).await.unwrap_or_default();
                return Err(current.response_error(head.status.as_u16(), &head.headers, &content));
            };
            let redirect = location.to_str().ok().and_then(|location| current.url.join(location).ok());
            let redirect =
                redirect.ok_or_else(|| current.network_error("it redirects to an invalid address".to_owned()))?;
            if current.url.scheme() == "https" && redirect.scheme() != "https" {
                return Err(current.network_error("it redirects from https to http".to_owned()));
            }
            // A base address that is not encrypted has a checksum, or was accepted as insecure.
            if is_plain_text(redirect.as_str()) && !is_plain_text(self.base.as_str()) {
                return Err(current.network_error("it redirects to an address that is not encrypted".to_owned()));
            }
            // A path of the same host that is outside the API does not receive the token either.
            current.is_api &= is_below(&self.base, &redirect);
            next = redirect.into();
        }
        Err(current.network_error("it redirects too often".to_owned()))
    }

    fn body_error(&self, item: &str, error: BodyError) -> FetchError {
        let (item, host) = (item.to_owned(), self.host());
        match error {
            BodyError::Failed(message) => FetchError::Network { item, host, message },
            BodyError::TooSlow(error) => FetchError::TooSlow { item, host, reason: error.to_string() },
        }
    }
}

/// Current target of a request that follows redirects.
struct RequestTarget<'a> {
    url: Url,
    item: &'a str,
    /// True if the token was sent to the API.
    authenticated: bool,
    /// True if no redirect has left the API.
    is_api: bool,
}

impl RequestTarget<'_> {
    fn host(&self) -> String {
        self.url.host_str().unwrap_or_default().to_owned()
    }

    fn network_error(&self, message: String) -> FetchError {
        FetchError::Network { item: self.item.to_owned(), host: self.host(), message }
    }

    /// Returns the error that a response without success status means.
    fn response_error(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> FetchError {
        #[derive(Deserialize)]
        struct ErrorBody {
            message: String,
        }
        let (item, host, authenticated) = (self.item.to_owned(), self.host(), self.authenticated);
        let text = String::from_utf8_lossy(body);
        let message = serde_json::from_slice::<ErrorBody>(body).map_or(text.into_owned(), |error| error.message);
        let message = first_line(&message);
        let header = |name| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
        let asked = web::retry_after(headers, SystemTime::now());
        let limited = header("x-ratelimit-remaining") == Some(0) || headers.contains_key(RETRY_AFTER);
        match status {
            // The token is not for this host: a hint about it would mislead.
            _ if !self.is_api => FetchError::UnexpectedStatus { item, host, status, message, retry_after: asked },
            404 => FetchError::NotFound { item, host, authenticated },
            403 | 429 if limited || status == 429 => {
                let now = SystemTime::now();
                let reset = header("x-ratelimit-reset").map(|at| {
                    // Bounded, because an invalid value would overflow.
                    SystemTime::UNIX_EPOCH + Duration::from_secs(at.min(u64::from(u32::MAX)))
                });
                let reset = asked.map(|asked| now + asked).or(reset);
                let retry_after = asked.or_else(|| reset?.duration_since(now).ok());
                FetchError::RateLimited { host, message, reset, retry_after, authenticated }
            }
            401 | 403 => FetchError::AccessDenied { item, host, status, message, authenticated },
            _ => FetchError::UnexpectedStatus { item, host, status, message, retry_after: asked },
        }
    }
}

/// Returns the pause before a request is repeated; `None` if it is not.
fn adjust(error: &FetchError, backoff: Option<Duration>) -> Option<Duration> {
    error.retry_delay(backoff?)
}

fn report(error: &FetchError, pause: Duration) {
    debug!(%error, ?pause, "request is repeated");
}

/// Returns the first line of a message, cut after 200 bytes: a proxy may respond with an HTML page.
fn first_line(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    cut(line, 200).into_owned()
}

/// Percent-encodes a tag for a path. Slashes stay: they are part of tags such as `sdk/v1.2.3`.
fn encode_tag(tag: &str) -> PercentEncode<'_> {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
    utf8_percent_encode(tag, ENCODED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(repository: &str, api_url: Option<&str>) -> GithubReleaseSource {
        let release = GithubReleaseSource::new(repository.into(), "v1.0.0".into());
        GithubReleaseSource { api_url: api_url.map(Into::into), ..release }
    }

    #[test]
    fn api_url_is_derived_from_the_repository() {
        let cases = [
            ("acme/reef", None, "https://api.github.com", "acme/reef"),
            ("https://github.com/acme/reef", None, "https://api.github.com", "acme/reef"),
            ("https://github.com/acme/reef.git", None, "https://api.github.com", "acme/reef"),
            ("https://git.reef.example/acme/reef/", None, "https://git.reef.example/api/v3", "acme/reef"),
            ("https://git.reef.example:8443/acme/reef", None, "https://git.reef.example:8443/api/v3", "acme/reef"),
            ("acme/reef", Some("http://127.0.0.1:99/api/"), "http://127.0.0.1:99/api", "acme/reef"),
        ];
        for (repository, api, base, name) in cases {
            let found = Repository::of(&source(repository, api)).unwrap();
            assert_eq!((found.api.as_str(), found.name.as_str()), (base, name));
        }
    }

    #[test]
    fn invalid_api_url_is_refused_without_showing_credentials() {
        for api in [
            "ftp://reef.example",
            "reef.example",
            "https://me:word@reef.example",
            "ftp://me:word@h",
            "https://me:word@h:99999",
            "https://reef.example?a=b",
        ] {
            let error = Repository::of(&source("acme/reef", Some(api))).unwrap_err();
            assert!(matches!(error, FetchError::InvalidAddress { .. }), "{api}: {error}");
            assert!(!error.to_string().contains("word"), "{error}");
        }
        let error = Repository::of(&source("https://me:word@git.reef.example/acme/reef", None)).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"cannot use the address "https://git.reef.example/acme/reef": it contains credentials; set source.token instead"#
        );
    }

    #[test]
    fn tag_is_percent_encoded() {
        assert_eq!(encode_tag("v1.2.3-rc~1").to_string(), "v1.2.3-rc~1");
        assert_eq!(encode_tag("sdk/v1 #?%é").to_string(), "sdk/v1%20%23%3F%25%C3%A9");
    }
}
