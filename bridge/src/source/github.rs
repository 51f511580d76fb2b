//! Releases on GitHub and on servers with the same REST API: `GET /repos/OWNER/NAME/releases/{tags/TAG,latest}` and
//! `GET /repos/OWNER/NAME/releases/assets/ID`.

use std::time::{Duration, SystemTime};

use backon::ExponentialBuilder;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use reqwest::header::{HeaderMap, LINK};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::credentials::Credential;
use super::error::FetchError;
use super::repository::Repository;
use super::request::{ApiClient, Content, RequestTarget};
use super::transfer::Transfer;
use super::web;
use crate::fs::FileError;
use crate::plugin::Sha256Digest;

/// Characters that are encoded in a path of several parts.
pub(super) const IN_PATHS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
/// Number of releases that a page is asked to have, and the number of pages that are asked for: GitHub has no more.
const PAGE_SIZE: usize = 100;
const MAX_PAGES: usize = 100;
/// Number of releases from which on a page may have a next one although its server does not say so: servers shorten pages.
const SMALLEST_PAGE: usize = 30;

/// Release of a repository.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Release {
    /// Tag of the release.
    #[serde(rename = "tag_name")]
    pub tag: String,
    /// Files of the release.
    #[serde(default)]
    pub assets: Vec<Asset>,
    /// True if it is not published.
    #[serde(default)]
    pub draft: bool,
    /// True if its author calls it a pre-release.
    #[serde(default)]
    pub prerelease: bool,
    /// Time of its publication (RFC 3339). Not all servers report it.
    #[serde(default)]
    pub published_at: Option<String>,
}

impl Release {
    /// Returns the time since its publication; `None` if the server does not report it. A time in the future is an age of zero.
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        let published: Timestamp = self.published_at.as_deref()?.parse().ok()?;
        Some(now.duration_since(SystemTime::from(published)).unwrap_or_default())
    }
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
    /// Creates a copy of an asset, which no API has described.
    pub fn of_copy(name: String, size: u64, digest: Option<Sha256Digest>) -> Self {
        Self { id: 0, name, size, digest: digest.map(|digest| digest.to_string()), state: None }
    }

    /// Returns the state of an upload that is not complete; `None` if it is complete, or if the server reports no state.
    pub fn incomplete_state(&self) -> Option<&str> {
        self.state.as_deref().filter(|state| *state != "uploaded")
    }

    /// Returns the SHA-256 digest that the server publishes, if any.
    pub fn digest(&self) -> Option<Sha256Digest> {
        self.digest.as_deref()?.strip_prefix("sha256:")?.parse().ok()
    }
}

/// Limit on requests to the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct RateLimit {
    /// Requests that are left.
    pub remaining: u64,
    /// Requests that are accepted in an hour.
    pub limit: u64,
}

/// Reply about the limits of the API.
#[derive(Deserialize)]
struct RateLimits {
    rate: RateLimit,
}

/// Client of the API for one repository.
#[derive(Clone, Debug)]
pub struct Github {
    repository: Repository,
    api: ApiClient,
    backoff: ExponentialBuilder,
}

impl Github {
    /// Creates a client. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`FetchError::UnusableToken`] if the token is invalid or would be sent in plain text;
    /// [`FetchError::InvalidAddress`].
    pub fn new(repository: Repository, credential: Option<&Credential>) -> Result<Self, FetchError> {
        let api = ApiClient::new(&repository.api, credential)?;
        Ok(Self { repository, api, backoff: web::retry_policy() })
    }

    /// Returns the host of the API.
    pub fn host(&self) -> String {
        self.api.host()
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
        Ok(self.describe(&format!("/repos/{name}/releases/{path}"), &item).await?.1)
    }

    /// Returns all releases of the repository, with those that are not published, as far as the token shows them: all pages.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn releases(&self) -> Result<Vec<Release>, FetchError> {
        let name = &self.repository.name;
        let item = format!("the releases of {name}");
        let mut releases = Vec::new();
        for page in 1..=MAX_PAGES {
            let route = format!("/repos/{name}/releases?per_page={PAGE_SIZE}&page={page}");
            let (headers, found): (_, Vec<Release>) = self.describe(&route, &item).await?;
            let count = found.len();
            releases.extend(found);
            let has_next = match headers.get(LINK).map(|link| link.to_str().unwrap_or_default()) {
                Some(link) => link.contains("rel=\"next\""),
                None => count >= SMALLEST_PAGE,
            };
            if !has_next {
                break;
            }
        }
        Ok(releases)
    }

    /// Returns the limit on requests; `None` for a server without one. The request does not count.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn rate_limit(&self) -> Result<Option<RateLimit>, FetchError> {
        match self.describe::<RateLimits>("/rate_limit", "the limit on requests").await {
            Ok((_, limits)) => Ok(Some(limits.rate)),
            // The server has none.
            Err(FetchError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns what a path of the API describes, and the headers of the response. Repeats the request after a transient error.
    async fn describe<T: DeserializeOwned>(&self, route: &str, item: &str) -> Result<(HeaderMap, T), FetchError> {
        let target = self.api.target(route, item);
        let expected = ("application/vnd.github+json", "a release");
        let (described, Content { headers, .. }) = self.api.read_json(&target, expected, self.backoff).await?;
        Ok((headers, described))
    }

    /// Returns whether the repository has public addresses of assets, which need no request to the API.
    pub fn has_public_addresses(&self) -> bool {
        self.repository.web.is_some()
    }

    /// Downloads an asset from the API, and goes on after a transient error. `sink` receives an empty slice where it starts from the
    /// beginning.
    ///
    /// # Errors
    /// [`FetchError`], including an error of `sink`.
    pub async fn download(
        &self,
        asset: &Asset,
        sink: impl FnMut(&[u8]) -> Result<(), FileError> + Send,
    ) -> Result<(), FetchError> {
        let route = format!("/repos/{}/releases/assets/{}", self.repository.name, asset.id);
        let start = self.api.target(&route, &asset.name);
        Transfer { api: &self.api, start, item: &asset.name, size: Some(asset.size) }.run(self.backoff, sink).await
    }

    /// Downloads an asset from its public address, without credentials, as [`Github::download`] does from the API.
    ///
    /// # Errors
    /// [`FetchError`]: [`FetchError::NotFound`] and [`FetchError::AccessDenied`] if it is not public, or if the repository has no public
    /// addresses.
    pub async fn download_public(
        &self,
        tag: &str,
        (name, size): (&str, Option<u64>),
        sink: impl FnMut(&[u8]) -> Result<(), FileError> + Send,
    ) -> Result<(), FetchError> {
        let not_found = || FetchError::NotFound { item: name.to_owned(), host: self.host(), credential: None };
        let web = self.repository.web.as_ref().ok_or_else(not_found)?;
        let address =
            format!("{web}/{}/releases/download/{}/{}", self.repository.name, encode_tag(tag), encode_tag(name));
        let url = Url::parse(&address).map_err(|_| not_found())?;
        let start = RequestTarget::public(url, name);
        Transfer { api: &self.api, start, item: name, size }.run(self.backoff, sink).await
    }
}

/// Percent-encodes a tag for a path. Slashes stay: they are part of tags such as `sdk/v1.2.3`.
fn encode_tag(tag: &str) -> PercentEncode<'_> {
    utf8_percent_encode(tag, IN_PATHS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_of_a_release_is_that_of_its_publication() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        for (published, age) in [
            (Some("1970-01-01T00:00:40Z"), Some(960)),
            (Some("1970-01-01T01:00:00+01:00"), Some(1_000)),
            (Some("1970-01-02T00:00:00Z"), Some(0)),
            (Some("yesterday"), None),
            (None, None),
        ] {
            let release = Release { published_at: published.map(str::to_owned), ..Release::default() };
            assert_eq!(release.age(now).map(|age| age.as_secs()), age, "{published:?}");
        }
    }

    #[test]
    fn tag_is_percent_encoded() {
        assert_eq!(encode_tag("v1.2.3-rc~1").to_string(), "v1.2.3-rc~1");
        assert_eq!(encode_tag("sdk/v1 #?%é").to_string(), "sdk/v1%20%23%3F%25%C3%A9");
    }
}
