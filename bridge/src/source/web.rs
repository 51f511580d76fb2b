//! HTTP requests: time limits, retries, messages of errors.

use std::error::Error;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::time::{Duration, SystemTime};

use backon::{ExponentialBuilder, Retryable as _};
use httpdate::parse_http_date;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, StatusCode};
use url::Url;

use super::error::MAX_RETRY_AFTER;
use crate::error::chain_with;
use crate::plugin::is_loopback;
use crate::speed::{SpeedWindow, TooSlow};

/// Time limit for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time of a server that is shown.
const MAX_ASKED: Duration = Duration::from_secs(86_400);
/// Maximum number of retries after a transient error.
const MAX_RETRIES: usize = 3;

/// Returns the builder of a client for a host. Loopback hosts are reached without a proxy. Requests have no time limit
/// after the connection is established: a [`SpeedWindow`] has to limit them.
pub(super) fn client(host: &str) -> ClientBuilder {
    let client = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT);
    if is_loopback(host) { client.no_proxy() } else { client }
}

pub(super) fn retry_policy() -> ExponentialBuilder {
    ExponentialBuilder::new().with_min_delay(Duration::from_millis(100)).with_max_times(MAX_RETRIES).with_jitter()
}

/// Largest size of a download, in bytes, and the greatest number of redirects.
const MAX_DOWNLOAD: u64 = 1 << 30;
const MAX_REDIRECTS: usize = 10;

/// Returns the policy for redirects: to `ports` only, if they are limited.
fn redirects(ports: Option<Vec<u16>>) -> Policy {
    let Some(ports) = ports else { return Policy::limited(MAX_REDIRECTS) };
    Policy::custom(move |attempt| match attempt.url().port_or_known_default() {
        Some(port) if !ports.contains(&port) => {
            attempt.error(format!("it redirects to port {port}, which is not in `ports` of the plugin"))
        }
        _ if attempt.previous().len() > MAX_REDIRECTS => attempt.error("it redirects too often"),
        _ => attempt.follow(),
    })
}

/// Downloads a URL into an unnamed temporary file and returns the file, positioned at its start.
///
/// Redirects are followed to `ports` only, if there are any.
///
/// # Errors
/// A message that does not contain the URL: the download has failed, or is larger than 1 GiB.
pub(crate) async fn download(url: &Url, ports: Option<&[u16]>) -> Result<File, String> {
    let client = client(url.host_str().unwrap_or_default()).redirect(redirects(ports.map(<[u16]>::to_vec)));
    let client = client.build().map_err(|error| chain(&error))?;
    let network_error = |error: reqwest::Error| DownloadError::of(!error.is_redirect(), chain(&error));
    let download_once = || async {
        let mut window = SpeedWindow::start();
        let too_slow = |error: TooSlow| DownloadError::of(false, error.to_string());
        let mut response =
            window.limit(client.get(url.clone()).send()).await.map_err(too_slow)?.map_err(network_error)?;
        let status = response.status();
        if !status.is_success() {
            let asked = retry_after(response.headers(), SystemTime::now());
            let is_transient = status.is_server_error() || (status == StatusCode::TOO_MANY_REQUESTS && asked.is_some());
            let error = DownloadError::of(is_transient, format!("the server returned {status}"));
            return Err(DownloadError { retry_after: asked, ..error });
        }
        let write_error =
            |error: io::Error| DownloadError::of(false, format!("cannot write it to a temporary file: {error}"));
        let mut file = tempfile::tempfile().map_err(write_error)?;
        let mut left = MAX_DOWNLOAD;
        while let Some(chunk) = window.limit(response.chunk()).await.map_err(too_slow)?.map_err(network_error)? {
            window.record(chunk.len());
            left = left
                .checked_sub(chunk.len() as u64)
                .ok_or_else(|| DownloadError::of(false, "it is larger than 1 GiB".to_owned()))?;
            file.write_all(&chunk).map_err(write_error)?;
        }
        file.rewind().map_err(write_error)?;
        Ok(file)
    };
    download_once
        .retry(retry_policy())
        .when(|error: &DownloadError| error.is_transient)
        .adjust(|error, backoff| match error.retry_after {
            Some(asked) => backoff.filter(|_| asked <= MAX_RETRY_AFTER).map(|backoff| backoff.max(asked)),
            None => backoff,
        })
        .await
        .map_err(|error| error.message)
}

struct DownloadError {
    is_transient: bool,
    /// Time after which the server asks for the next request, if it does.
    retry_after: Option<Duration>,
    message: String,
}

impl DownloadError {
    fn of(is_transient: bool, message: String) -> Self {
        Self { is_transient, retry_after: None, message }
    }
}

/// Returns the time after which a server asks for the next request, a day at most: `Retry-After` has seconds or a date. A date in the past
/// asks for no time.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = text.parse().ok().map(Duration::from_secs);
    let asked = seconds.or_else(|| Some(parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()));
    asked.map(|asked| asked.min(MAX_ASKED))
}

/// Returns an error and its causes in one line, as [`chain`](crate::error::chain) does, without the URLs that they
/// quote: a query may hold a signature, which works like a password.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    chain_with(error, |error| match error.downcast_ref::<reqwest::Error>() {
        Some(error) if error.url().is_some() => error.to_string().split(" for url").next().map(str::to_owned),
        // The message of an octocrab error only repeats that a cause exists.
        None if error.is::<octocrab::Error>() => None,
        _ => Some(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_asks_to_wait_for_seconds_or_until_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let asked = |text: &'static str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, reqwest::header::HeaderValue::from_static(text))]);
            retry_after(&headers, now).map(|asked| asked.as_secs())
        };
        let table = [
            ("7", Some(7)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:49:42 GMT", Some(5)),
            ("Sunday, 06-Nov-94 08:49:42 GMT", Some(5)),
            ("Sun Nov  6 08:49:42 1994", Some(5)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Tue, 06 Nov 1990 08:49:37 GMT", Some(0)),
            ("Sat, 06 Nov 2094 08:49:37 GMT", Some(86_400)),
            ("999999999999", Some(86_400)),
            ("soon", None),
            ("-1", None),
        ];
        for (text, expected) in table {
            assert_eq!(asked(text), expected, "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
