//! Releases on GitHub and on what speaks its REST API: `GET /repos/OWNER/NAME/releases/{tags/TAG,latest}` and
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
use url::Url;

use super::address::{is_loopback, without_credentials};
use super::error::FetchError;
use super::web::{self, chain};
use crate::fs::PathError;
use crate::plugin::{GithubReleaseSource, Sha256Digest, SourceToken};

/// How often a request is sent elsewhere.
const MOST_REDIRECTS: usize = 10;
/// More bytes than the description of any release has.
const MOST_WORDS: usize = 32 << 20;
const API_OF_GITHUB: &str = "https://api.github.com";

/// A repository, and where its API is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Base URL of the API, without a slash at its end.
    pub api: String,
    /// `owner/name`.
    pub name: String,
}

impl Repository {
    /// The one that a source names.
    ///
    /// # Errors
    /// [`FetchError::Address`].
    pub fn of(source: &GithubReleaseSource) -> Result<Self, FetchError> {
        let refused = |address: &str, reason: &str| FetchError::Address {
            address: without_credentials(address),
            reason: reason.to_owned(),
        };
        let written = source.repository.as_str();
        let web = written.starts_with("https://").then(|| Url::parse(written)).transpose();
        let web = web.map_err(|error| refused(written, &error.to_string()))?;
        let name = web.as_ref().map_or(written, |url| url.path().trim_start_matches('/'));
        let api = match (&source.api_url, &web) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, None) => API_OF_GITHUB.to_owned(),
            (None, Some(url)) if holds_credentials(url) => return Err(refused(written, CREDENTIALS)),
            (None, Some(url)) if matches!(url.host_str(), Some("github.com" | "www.github.com")) => {
                API_OF_GITHUB.to_owned()
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

/// Why an address with a user or a password is refused.
const CREDENTIALS: &str = "it holds credentials; give source.token instead";

fn holds_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// A release.
#[derive(Clone, Debug, Deserialize)]
pub struct Release {
    /// Its tag.
    #[serde(rename = "tag_name")]
    pub tag: String,
    /// Its files.
    #[serde(default)]
    pub assets: Vec<Asset>,
}

/// A file of a release.
#[derive(Clone, Debug, Deserialize)]
pub struct Asset {
    id: u64,
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// Its digest as the server published it: `sha256:…`; absent at servers that do not.
    #[serde(default)]
    digest: Option<String>,
}

impl Asset {
    /// Its digest as the server published it.
    pub fn digest(&self) -> Option<Sha256Digest> {
        self.digest.as_deref()?.strip_prefix("sha256:")?.parse().ok()
    }
}

/// What a server sends.
type Body = BoxBody<Bytes, Broken>;

/// Why no more of it came.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Broken(String);

/// A body that is no longer than it may be.
async fn whole(mut body: Body) -> Result<Vec<u8>, Broken> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame?.into_data() else { continue };
        if whole.len() + bytes.len() > MOST_WORDS {
            return Err(Broken("it says too much".to_owned()));
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(whole)
}

/// The API for one repository.
#[derive(Clone, Debug)]
pub struct Github {
    repository: Repository,
    base: Url,
    authenticated: bool,
    client: Octocrab,
    /// Without the token: for wherever a redirect leads to, and wherever that one leads to.
    stranger: reqwest::Client,
    backoff: ExponentialBuilder,
}

impl Github {
    /// Gets ready to ask. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`FetchError::Token`] where the token would travel in plain text or is none, [`FetchError::Address`].
    pub fn new(repository: Repository, token: Option<&SourceToken>) -> Result<Self, FetchError> {
        let address = |reason: String| FetchError::Address { address: repository.api.clone(), reason };
        let base = Url::parse(&repository.api).map_err(|error| address(error.to_string()))?;
        let host = base.host_str().unwrap_or_default().to_owned();
        // As it is asked for below: the token goes to the very same authority only.
        let known = Octocrab::builder().base_uri(base.as_str().trim_end_matches('/'));
        let mut known = known.map_err(|error| address(chain(&error)))?;
        if let Some(token) = token {
            let unusable = |reason| FetchError::Token { host: host.clone(), reason };
            if base.scheme() != "https" && !is_loopback(&host) {
                return Err(unusable("it would be sent in plain text"));
            }
            if HeaderValue::from_str(token.expose()).is_err() {
                return Err(unusable("it holds characters that no token has"));
            }
            known = known.personal_token(token.expose().to_owned());
        }
        // Redirects are followed below: what decides there is whether the token has been left behind.
        let http = web::client(&host).redirect(redirect::Policy::none());
        let http = http.build().map_err(|error| address(chain(&error)))?;
        let client = known.build_with_reqwest(http.clone()).map_err(|error| address(chain(&error)))?;
        let backoff = web::backoff();
        Ok(Self { repository, base, authenticated: token.is_some(), client, stranger: http, backoff })
    }

    fn host(&self) -> String {
        self.base.host_str().unwrap_or_default().to_owned()
    }

    /// The release of a tag; the latest one that is neither draft nor pre-release for `None`.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn release(&self, tag: Option<&str>) -> Result<Release, FetchError> {
        let name = &self.repository.name;
        let (path, what) = match tag {
            Some(tag) => (format!("tags/{}", encoded(tag)), format!("release {tag} of {name}")),
            None => ("latest".to_owned(), format!("the latest release of {name}")),
        };
        let route = format!("/repos/{name}/releases/{path}");
        let ask = || async {
            let (_, body) = self.get(&route, "application/vnd.github+json", &what).await?;
            let body = whole(body).await.map_err(|Broken(message)| self.network(&what, message))?;
            serde_json::from_slice(&body).map_err(|error| FetchError::Answered {
                what: what.clone(),
                host: self.host(),
                status: 200,
                message: format!("not a release: {error}"),
            })
        };
        ask.retry(self.backoff).when(FetchError::is_transient).await
    }

    /// Downloads an asset, once more from its start where the connection broke. `sink` gets an empty piece at each start.
    ///
    /// # Errors
    /// [`FetchError`], that of `sink` included.
    pub async fn download(
        &self,
        asset: &Asset,
        mut sink: impl FnMut(&[u8]) -> Result<(), PathError> + Send,
    ) -> Result<(), FetchError> {
        let sink = tokio::sync::Mutex::new(&mut sink);
        let try_once = || async { self.download_once(asset, &mut **sink.lock().await).await };
        try_once.retry(self.backoff).when(FetchError::is_transient).await
    }

    async fn download_once(
        &self,
        asset: &Asset,
        sink: &mut (impl FnMut(&[u8]) -> Result<(), PathError> + Send),
    ) -> Result<(), FetchError> {
        let length = |received| FetchError::Length {
            what: asset.name.clone(),
            host: self.host(),
            expected: asset.size,
            received,
        };
        sink(&[])?;
        let route = format!("/repos/{}/releases/assets/{}", self.repository.name, asset.id);
        let (headers, mut body) = self.get(&route, "application/octet-stream", &asset.name).await?;
        let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if let Some(announced) = announced.filter(|announced| *announced != asset.size) {
            return Err(length(announced));
        }
        let mut received = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|Broken(message)| self.network(&asset.name, message))?;
            let Ok(bytes) = frame.into_data() else { continue };
            received += bytes.len() as u64;
            if received > asset.size {
                return Err(length(received));
            }
            sink(&bytes)?;
        }
        if received == asset.size { Ok(()) } else { Err(length(received)) }
    }

    /// Asks for a path of the API and goes wherever it is sent, without the token from the first other host on.
    async fn get(&self, route: &str, accept: &'static str, what: &str) -> Result<(HeaderMap, Body), FetchError> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
        let mut place = Place { url: self.base.clone(), what, trusted: self.authenticated, at_home: true };
        let path = place.url.path().trim_end_matches('/').to_owned() + route;
        place.url.set_path("");
        let mut next = format!("{}{path}", place.url.as_str().trim_end_matches('/'));
        for _ in 0..=MOST_REDIRECTS {
            place.url = Url::parse(&next).map_err(|error| place.network(error.to_string()))?;
            let response = if place.at_home {
                let response = self.client._get_with_headers(place.url.as_str(), Some(headers.clone())).await;
                response
                    .map_err(|error| place.network(chain(&error)))?
                    .map(|body| body.map_err(|error| Broken(chain(&error))).boxed())
            } else {
                let response = self.stranger.get(place.url.clone()).headers(headers.clone()).send().await;
                let response = http::Response::from(response.map_err(|error| place.network(chain(&error)))?);
                response.map(|body| body.map_err(|error| Broken(chain(&error))).boxed())
            };
            let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
            let Some(location) = location else {
                let (head, body) = response.into_parts();
                if head.status.is_success() {
                    return Ok((head.headers, body));
                }
                let words = whole(body).await.unwrap_or_default();
                return Err(place.refused(head.status.as_u16(), &head.headers, &words));
            };
            let target = location.to_str().ok().and_then(|location| place.url.join(location).ok());
            let target = target.ok_or_else(|| place.network("it redirects to what is no address".to_owned()))?;
            if place.url.scheme() == "https" && target.scheme() != "https" {
                return Err(place.network("it redirects from https to http".to_owned()));
            }
            // Beside the API, not below it: what is stored there asks for no token.
            place.at_home &= target.origin() == self.base.origin() && target.path().starts_with(self.base.path());
            next = target.into();
        }
        Err(place.network("it redirects too often".to_owned()))
    }

    fn network(&self, what: &str, message: String) -> FetchError {
        FetchError::Network { what: what.to_owned(), host: self.host(), message }
    }
}

/// Where a request has got to.
struct Place<'a> {
    url: Url,
    what: &'a str,
    /// Whether the API was shown a token.
    trusted: bool,
    /// Whether this still is the API.
    at_home: bool,
}

impl Place<'_> {
    fn host(&self) -> String {
        self.url.host_str().unwrap_or_default().to_owned()
    }

    fn network(&self, message: String) -> FetchError {
        FetchError::Network { what: self.what.to_owned(), host: self.host(), message }
    }

    /// What an answer means that is not what was asked for.
    fn refused(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> FetchError {
        #[derive(Deserialize)]
        struct Said {
            message: String,
        }
        let (what, host, authenticated) = (self.what.to_owned(), self.host(), self.trusted);
        let text = String::from_utf8_lossy(body);
        let said = serde_json::from_slice::<Said>(body).map_or(text.into_owned(), |said| said.message);
        let message = first_line(&said);
        let header = |name| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
        let limited = header("x-ratelimit-remaining") == Some(0) || headers.contains_key(RETRY_AFTER);
        match status {
            // No token of ours would change what another host says.
            _ if !self.at_home => FetchError::Answered { what, host, status, message },
            404 => FetchError::NotFound { what, host, authenticated },
            403 | 429 if limited || status == 429 => {
                let now = SystemTime::now();
                let wait = header(RETRY_AFTER.as_str()).map(|seconds| now + Duration::from_secs(seconds.min(86_400)));
                let reset = header("x-ratelimit-reset").map(|at| {
                    // A date in a far future is somebody's mistake.
                    SystemTime::UNIX_EPOCH + Duration::from_secs(at.min(u64::from(u32::MAX)))
                });
                FetchError::RateLimited { host, message, reset: wait.or(reset), authenticated }
            }
            401 | 403 => FetchError::Refused { what, host, status, message, authenticated },
            _ => FetchError::Answered { what, host, status, message },
        }
    }
}

/// Enough of a message to understand it: a proxy may answer with a whole page.
fn first_line(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line[..line.floor_char_boundary(200)].to_owned()
}

/// Encodes a tag as part of a path. Slashes stay: they are part of tags such as `sdk/v1.2.3`.
fn encoded(tag: &str) -> PercentEncode<'_> {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
    utf8_percent_encode(tag, ENCODED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(repository: &str, api_url: Option<&str>) -> GithubReleaseSource {
        GithubReleaseSource {
            repository: repository.into(),
            version: "v1.0.0".into(),
            platform: None,
            checksum: None,
            asset: None,
            token: None,
            api_url: api_url.map(Into::into),
        }
    }

    #[test]
    fn the_api_follows_from_the_repository() {
        let table = [
            ("acme/reef", None, "https://api.github.com", "acme/reef"),
            ("https://github.com/acme/reef", None, "https://api.github.com", "acme/reef"),
            ("https://github.com/acme/reef.git", None, "https://api.github.com", "acme/reef"),
            ("https://git.reef.example/acme/reef/", None, "https://git.reef.example/api/v3", "acme/reef"),
            ("https://git.reef.example:8443/acme/reef", None, "https://git.reef.example:8443/api/v3", "acme/reef"),
            ("acme/reef", Some("http://127.0.0.1:99/api/"), "http://127.0.0.1:99/api", "acme/reef"),
        ];
        for (repository, api, base, name) in table {
            let found = Repository::of(&source(repository, api)).unwrap();
            assert_eq!((found.api.as_str(), found.name.as_str()), (base, name));
        }
    }

    #[test]
    fn other_addresses_are_refused_and_none_shows_credentials() {
        for api in [
            "ftp://reef.example",
            "reef.example",
            "https://me:word@reef.example",
            "ftp://me:word@h",
            "https://me:word@h:99999",
            "https://reef.example?a=b",
        ] {
            let error = Repository::of(&source("acme/reef", Some(api))).unwrap_err();
            assert!(matches!(error, FetchError::Address { .. }), "{api}: {error}");
            assert!(!error.to_string().contains("word"), "{error}");
        }
        let error = Repository::of(&source("https://me:word@git.reef.example/acme/reef", None)).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"cannot use the address "https://git.reef.example/acme/reef": it holds credentials; give source.token instead"#
        );
    }

    #[test]
    fn a_tag_is_one_part_of_a_path() {
        assert_eq!(encoded("v1.2.3-rc~1").to_string(), "v1.2.3-rc~1");
        assert_eq!(encoded("sdk/v1 #?%é").to_string(), "sdk/v1%20%23%3F%25%C3%A9");
    }
}
