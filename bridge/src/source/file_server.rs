//! Static file servers with copies of releases: any server that answers GET.

use backon::{ExponentialBuilder, Retryable as _};
use percent_encoding::utf8_percent_encode;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderValue, RANGE};
use url::Url;

use super::address::without_credentials;
use super::error::FetchError;
use super::github::IN_PATHS;
use super::request::{ApiClient, RequestTarget, Response, adjust, report};
use super::transfer::Transfer;
use super::web;
use crate::fs::FileError;
use crate::plugin::is_plain_text;
use crate::speed::SpeedWindow;

/// Client of a static file server. It sends no credentials.
#[derive(Clone, Debug)]
pub struct FileServer {
    base: Url,
    api: ApiClient,
    backoff: ExponentialBuilder,
}

impl FileServer {
    /// Creates a client for the files below a URL. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The errors of [`FileServer::check_address`].
    pub fn new(address: &str) -> Result<Self, FetchError> {
        let base = Self::check_address(address)?;
        let api = ApiClient::new(base.as_str(), None)?;
        Ok(Self { base, api, backoff: web::retry_policy() })
    }

    /// Checks the address of a server, and returns it parsed.
    ///
    /// # Errors
    /// [`FetchError::InvalidAddress`] if it is not https, except on this machine, or has more than a host and a path.
    pub fn check_address(address: &str) -> Result<Url, FetchError> {
        let refused = |reason: &str| FetchError::InvalidAddress {
            address: without_credentials(address),
            reason: reason.to_owned(),
        };
        let base = Url::parse(address).map_err(|error| refused(&error.to_string()))?;
        if !matches!(base.scheme(), "https" | "http") {
            return Err(refused("it is not https"));
        }
        if is_plain_text(address) {
            return Err(refused("it is not encrypted"));
        }
        let has_login = !base.username().is_empty() || base.password().is_some();
        if has_login || base.query().is_some() || base.fragment().is_some() {
            return Err(refused("it has more than a host and a path"));
        }
        Ok(base)
    }

    /// Returns the host of the server.
    pub fn host(&self) -> String {
        self.api.host()
    }

    /// Returns the content of a file of a few megabytes at most; `None` if the server does not have it.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn content(&self, path: &str) -> Result<Option<Vec<u8>>, FetchError> {
        let content = found(self.api.read(&self.target(path, path), "*/*", self.backoff).await)?;
        Ok(content.map(|content| content.body))
    }

    /// Returns the length of a file in bytes; `None` if the server does not have it, or does not say.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn size(&self, path: &str) -> Result<Option<u64>, FetchError> {
        let first_byte = HeaderMap::from_iter([(RANGE, HeaderValue::from_static("bytes=0-0"))]);
        let request = || async {
            let mut window = SpeedWindow::start();
            self.api.get(self.target(path, path), &first_byte, &mut window).await
        };
        let retried = request.retry(self.backoff).when(FetchError::is_transient);
        let Some(Response { headers, .. }) = found(retried.adjust(adjust).notify(report).await)? else {
            return Ok(None);
        };
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let of_range = text(CONTENT_RANGE).and_then(|range| range.rsplit_once('/')?.1.parse().ok());
        Ok(of_range.or_else(|| text(CONTENT_LENGTH)?.parse().ok()))
    }

    /// Downloads a file, whose length may be known, and goes on after a transient error. `sink` receives an empty slice where it starts from the
    /// beginning. Returns false if the server does not have it.
    ///
    /// # Errors
    /// [`FetchError`], including an error of `sink`.
    pub async fn download(
        &self,
        path: &str,
        size: Option<u64>,
        sink: impl FnMut(&[u8]) -> Result<(), FileError> + Send,
    ) -> Result<bool, FetchError> {
        let transfer = Transfer { api: &self.api, start: self.target(path, path), item: path, size };
        Ok(found(transfer.run(self.backoff, sink).await)?.is_some())
    }

    fn target<'a>(&self, path: &str, item: &'a str) -> RequestTarget<'a> {
        let mut url = self.base.clone();
        let below = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{below}/{}", utf8_percent_encode(path, IN_PATHS)));
        RequestTarget::public(url, item)
    }
}

/// Returns `None` for a file that the server does not have.
fn found<T>(result: Result<T, FetchError>) -> Result<Option<T>, FetchError> {
    match result {
        Err(FetchError::NotFound { .. }) => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn address_is_encrypted_and_has_no_more_than_a_path() {
        for (address, reason) in [
            ("https://mirror.example/plugins", None),
            ("http://127.0.0.1:8080/plugins/", None),
            ("http://mirror.example/plugins", Some("it is not encrypted")),
            ("ftp://mirror.example", Some("it is not https")),
            ("https://me:word@mirror.example", Some("it has more than a host and a path")),
            ("https://mirror.example/?a", Some("it has more than a host and a path")),
            ("mirror", Some("relative URL without a base")),
        ] {
            let error = FileServer::new(address).err().map(|error| error.to_string());
            assert_eq!(error.is_some(), reason.is_some(), "{address}");
            assert!(error.unwrap_or_default().ends_with(reason.unwrap_or_default()), "{address}");
        }
    }

    #[tokio::test]
    async fn path_is_below_the_address() {
        let server = FileServer::new("https://mirror.example/plugins/").unwrap();
        let target = server.target("github.com/acme/reef/sdk/v1 #2/a.tar.gz", "a");
        assert_eq!(target.url(), "https://mirror.example/plugins/github.com/acme/reef/sdk/v1%20%232/a.tar.gz");
    }
}
