//! How everything is asked over HTTP: how long it may take, how often it is tried, how its failures are told.

use std::error::Error;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use reqwest::ClientBuilder;
use url::Url;

use super::address::is_loopback;
use crate::error::chain_with;

/// How long a connection may take to come up.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long a server may be silent. What is large may take as long as it likes.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// How often a request is repeated that another try may help.
const RETRIES: usize = 3;

/// A client for a host.
pub(super) fn client(host: &str) -> ClientBuilder {
    let client = reqwest::Client::builder().connect_timeout(CONNECT_LIMIT).read_timeout(SILENCE_LIMIT);
    if is_loopback(host) { client.no_proxy() } else { client }
}

/// How long to wait before another try.
pub(super) fn backoff() -> ExponentialBuilder {
    ExponentialBuilder::new().with_min_delay(Duration::from_millis(100)).with_max_times(RETRIES).with_jitter()
}

/// Everything that a URL has, in a file without a name that is read from its start.
///
/// # Errors
/// Why there is none, in words without the URL.
pub(crate) async fn download(url: &Url) -> Result<File, String> {
    let client = client(url.host_str().unwrap_or_default()).build().map_err(|error| chain(&error))?;
    let lost = |error: reqwest::Error| Missed { is_transient: true, problem: chain(&error) };
    let once = || async {
        let mut answer = client.get(url.clone()).send().await.map_err(lost)?;
        let status = answer.status();
        if !status.is_success() {
            return Err(Missed {
                is_transient: status.is_server_error(),
                problem: format!("it was answered {status}"),
            });
        }
        let kept = |error: io::Error| Missed { is_transient: false, problem: format!("it cannot be kept: {error}") };
        let mut file = tempfile::tempfile().map_err(kept)?;
        while let Some(piece) = answer.chunk().await.map_err(lost)? {
            file.write_all(&piece).map_err(kept)?;
        }
        file.rewind().map_err(kept)?;
        Ok(file)
    };
    once.retry(backoff()).when(|missed: &Missed| missed.is_transient).await.map_err(|missed| missed.problem)
}

struct Missed {
    is_transient: bool,
    problem: String,
}

/// Returns an error and its causes in one line, as [`chain`](crate::error::chain) does, without the URLs that they quote: a
/// query may hold a signature, which works like a password.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    chain_with(error, |error| match error.downcast_ref::<reqwest::Error>() {
        Some(error) if error.url().is_some() => error.to_string().split(" for url").next().map(str::to_owned),
        // It only says that one of its causes happened.
        None if error.is::<octocrab::Error>() => None,
        _ => Some(error.to_string()),
    })
}
