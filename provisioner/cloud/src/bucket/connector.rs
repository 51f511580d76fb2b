//! Connections with deadlines.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::{StatusCode, header};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use reqwest::Certificate;
use reqwest::redirect::Policy;
use state::store::OutageWatch;
use tokio::time::{Instant, timeout};

use super::expected::{ExpectedReply, Verdict};
use super::paced::{PacedBody, receive_beginning, receive_whole};
use super::reply::Reply;
use super::transport::TransportFailure;

/// Limit of the time until there is a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Bytes per second that a content is sent or received at on average, at least.
const SLOWEST: u64 = 64 << 10;
/// Maximum size of a reply that is not the content of an object. A page of a listing has 1,000 names of at most 1,024 bytes.
const MAX_REPLY: usize = 16 << 20;
/// Part of the reply to a failed request that is received.
const MAX_FAILURE: usize = 64 << 10;
/// Time for which a failed request is repeated.
pub(crate) const RETRY_BUDGET: Duration = Duration::from_secs(60);
/// Limits of the time that is waited for a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimits {
    /// Until there is a reply to a request without content.
    reply: Duration,
    /// Over which the lowest speed of a content that is received is averaged.
    window: Duration,
    /// For which a host that has never replied is tried: its name is probably wrong.
    first_contact: Duration,
}

/// Returns how failed requests are repeated: with jitter, for a minute.
pub(crate) fn retry_config() -> RetryConfig {
    // Each pause is random, up to `base` times the one before. With base 2, pauses would not grow on average.
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(8), base: 3.0 };
    RetryConfig { backoff, max_retries: usize::MAX, retry_timeout: RETRY_BUDGET }
}

/// Returns the time after which a request with a content of a size is given up at the latest: its last attempt may begin when
/// the time for repetitions ends.
pub(super) fn longest_request(size: usize) -> Duration {
    RETRY_BUDGET + TimeLimits::default().of_content(size as u64)
}

/// Connector whose clients limit the time and the size of each reply, follow no redirections, refuse replies that are none of
/// a store, and reduce the replies to failed requests to a [`Reply`].
#[derive(Debug, Default)]
pub(crate) struct LimitedConnector {
    limits: TimeLimits,
    certificates: Vec<Certificate>,
    watch: OutageWatch,
}

impl Default for TimeLimits {
    fn default() -> Self {
        let (reply, window) = (Duration::from_secs(30), Duration::from_secs(30));
        Self { reply, window, first_contact: Duration::from_secs(5) }
    }
}

impl TimeLimits {
    /// Returns the time for a request or a reply with a content of a size.
    fn of_content(&self, size: u64) -> Duration {
        self.reply + Duration::from_secs(size / SLOWEST)
    }
}

impl LimitedConnector {
    /// Creates a connector that reports failed attempts.
    pub(crate) fn watched_by(watch: &OutageWatch) -> Self {
        Self { watch: watch.clone(), ..Self::default() }
    }

    /// Trusts certificates (PEM) beside those of the platform.
    ///
    /// # Errors
    /// Returns an error if they are malformed.
    pub(crate) fn trusting(self, bundle: &[u8]) -> reqwest::Result<Self> {
        Ok(Self { certificates: Certificate::from_pem_bundle(bundle)?, ..self })
    }
}

impl HttpConnector for LimitedConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = reqwest::Client::builder()
            .user_agent("sc")
            .connect_timeout(CONNECT_LIMIT)
            .redirect(Policy::none())
            .tls_certs_merge(self.certificates.iter().cloned())
            .build()
            .map_err(|error| object_store::Error::Generic { store: "client", source: error.into() })?;
        let (first_request, has_replied) = (OnceLock::new(), AtomicBool::new(false));
        let (client, limits, watch) = (HttpClient::new(client), self.limits, self.watch.clone());
        Ok(HttpClient::new(LimitedService { client, limits, watch, first_request, has_replied }))
    }
}

#[derive(Debug)]
struct LimitedService {
    client: HttpClient,
    limits: TimeLimits,
    watch: OutageWatch,
    first_request: OnceLock<Instant>,
    has_replied: AtomicBool,
}

#[async_trait]
impl HttpService for LimitedService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.first_request.get_or_init(Instant::now);
        let host = request.uri().authority().map_or_else(String::new, ToString::to_string);
        let expected = ExpectedReply::to(&request);
        let limit = self.limits.of_content(request.body().content_length() as u64);
        let exchange = async {
            let response = self.client.execute(request).await.map_err(|error| Failed::Request(Box::new(error)))?;
            self.receive(response, expected, &host).await
        };
        let failure = match timeout(limit, exchange).await {
            Ok(Ok(response)) => {
                self.has_replied.store(true, Ordering::Relaxed);
                let response = Reply::put_in(response).await?;
                self.note_status(response.status(), &host);
                return Ok(response);
            }
            Ok(Err(Failed::Request(error))) => return Err(self.describe(&error, host)),
            Ok(Err(Failed::Reply(failure))) => HttpError::new(HttpErrorKind::Unknown, failure),
            Err(_) => {
                let failure = TransportFailure::NoReply { host, limit };
                self.watch.attempt_failed(failure.to_string());
                HttpError::new(HttpErrorKind::Timeout, failure)
            }
        };
        Err(failure)
    }
}

/// Reason why a request has no reply that can be used.
enum Failed {
    Request(Box<HttpError>),
    Reply(TransportFailure),
}

impl LimitedService {
    /// Receives a reply, except for the content of an object, and checks that a store has sent it.
    async fn receive(
        &self,
        response: HttpResponse,
        expected: ExpectedReply,
        host: &str,
    ) -> Result<HttpResponse, Failed> {
        let (mut parts, body) = response.into_parts();
        let request_failed = |error| Failed::Request(Box::new(error));
        if !parts.status.is_success() {
            let content = receive_beginning(body, MAX_FAILURE).await.map_err(request_failed)?;
            return Ok(HttpResponse::from_parts(parts, content.into()));
        }
        let no_store = |reason| Failed::Reply(TransportFailure::NoStore { host: host.to_owned(), reason });
        if expected == ExpectedReply::Object {
            if let Verdict::Other(reason) = ExpectedReply::judge_headers(&parts.headers) {
                return Err(no_store(reason));
            }
            let size = parts.headers.get(header::CONTENT_LENGTH);
            let size = size.and_then(|size| size.to_str().ok()?.parse().ok()).unwrap_or_default();
            let body = PacedBody::new(body, host.to_owned(), self.limits.window, self.limits.of_content(size));
            return Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)));
        }
        // A reply that is cut is repeated with its request.
        let content = receive_whole(body, MAX_REPLY).await.map_err(request_failed)?;
        let too_long = || Failed::Reply(TransportFailure::TooLong { host: host.to_owned(), limit: MAX_REPLY });
        let content = content.ok_or_else(too_long)?;
        match expected.judge(&content) {
            Verdict::Store => {}
            Verdict::Failure => parts.status = StatusCode::INTERNAL_SERVER_ERROR,
            Verdict::Other(reason) => return Err(no_store(reason)),
        }
        Ok(HttpResponse::from_parts(parts, content.into()))
    }

    /// Reports to the watch whether the store works.
    fn note_status(&self, status: StatusCode, host: &str) {
        self.watch.replied();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            self.watch.attempt_failed(format!("{host} replied {status}"));
        }
    }

    fn describe(&self, error: &HttpError, host: String) -> HttpError {
        let failure = TransportFailure::of(error, host);
        self.watch.attempt_failed(failure.to_string());
        let waited = self.first_request.get().map_or(Duration::ZERO, Instant::elapsed);
        let is_first_contact = !self.has_replied.load(Ordering::Relaxed);
        let is_final = matches!(failure, TransportFailure::Certificate { .. })
            || is_first_contact && waited > self.limits.first_contact;
        // Errors of an unknown kind are not repeated.
        let kind = if is_final { HttpErrorKind::Unknown } else { error.kind() };
        HttpError::new(kind, failure)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use object_store::client::HttpRequestBody;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const LIMITS: TimeLimits = TimeLimits {
        reply: Duration::from_millis(200),
        window: Duration::from_millis(200),
        first_contact: Duration::from_millis(200),
    };

    /// Sends a request to a server that sends a text and then nothing more.
    async fn request(reply: &'static str) -> Result<String, HttpError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/reef/a.json", listener.local_addr().unwrap());
        let serve = async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4];
            stream.read_exact(&mut request).await.unwrap();
            stream.write_all(reply.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        };
        let client = connect();
        let request = http::Request::get(uri).body(HttpRequestBody::empty()).unwrap();
        let receive = async {
            let body = client.execute(request).await?.into_body().bytes().await?;
            Ok(String::from_utf8_lossy(&body).into_owned())
        };
        tokio::select! {
            received = receive => received,
            () = serve => panic!("the server does not end"),
        }
    }

    fn connect() -> HttpClient {
        let connector = LimitedConnector { limits: LIMITS, ..LimitedConnector::default() };
        connector.connect(&ClientOptions::new()).unwrap()
    }

    fn failure(error: &HttpError) -> TransportFailure {
        error.source().and_then(|source| source.downcast_ref::<TransportFailure>()).unwrap().clone()
    }

    /// Shows: state.md#in-s3 "A connection may take 10 seconds, a reply 30 plus the time for the upload at 64 KiB/s.
    ///   Failed requests are repeated for a minute"
    #[tokio::test]
    async fn requests_have_deadlines() {
        let silent = request("").await.unwrap_err();
        assert_eq!(silent.kind(), HttpErrorKind::Timeout);
        assert!(matches!(failure(&silent), TransportFailure::NoReply { .. }), "{silent}");

        let half = request("HTTP/1.1 200 X\r\nContent-Length: 4\r\n\r\nab").await.unwrap_err();
        assert_eq!(half.kind(), HttpErrorKind::Timeout);
        assert!(matches!(failure(&half), TransportFailure::TooSlow { .. }), "{half}");

        // The content of an error belongs to the reply.
        let half = request("HTTP/1.1 403 X\r\nContent-Length: 4\r\n\r\nab").await.unwrap_err();
        assert!(matches!(failure(&half), TransportFailure::NoReply { .. }), "{half}");

        let whole = request("HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\nab").await.unwrap();
        assert_eq!(whole, "ab");
    }

    #[tokio::test]
    async fn host_that_has_never_replied_is_tried_for_a_short_time() {
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let client = connect();
        let started = Instant::now();
        loop {
            let request = http::Request::get(format!("http://{address}/")).body(HttpRequestBody::empty()).unwrap();
            let error = client.execute(request).await.unwrap_err();
            assert!(matches!(failure(&error), TransportFailure::Connection { .. }), "{error}");
            match error.kind() {
                HttpErrorKind::Connect => assert!(started.elapsed() < Duration::from_secs(10)),
                kind => break assert_eq!(kind, HttpErrorKind::Unknown),
            }
        }
        assert!(started.elapsed() >= LIMITS.first_contact);
    }
}
