//! Connections with deadlines.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use http_body::{Body, Frame, SizeHint};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use reqwest::Certificate;
use reqwest::redirect::Policy;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::reply::Reply;

/// Limit of the time until there is a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Bytes per second that a content is sent at, at least.
const SLOWEST_UPLOAD: u64 = 64 << 10;
/// Time for which a failed request is repeated.
const RETRY_BUDGET: Duration = Duration::from_secs(60);
/// Limits of the time that is waited for a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimits {
    /// Until there is a reply to a request without content.
    reply: Duration,
    /// Between two parts of a content that is received.
    idle: Duration,
    /// For which a host that has never replied is tried: its name is probably wrong.
    first_contact: Duration,
}

/// Reason why there is no reply, or no whole one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransportFailure {
    /// A deadline has passed.
    #[error("{host} did not reply within {} s", .limit.as_secs())]
    NoReply {
        /// Host with its port.
        host: String,
        /// The deadline.
        limit: Duration,
    },
    /// The rest of a content did not come.
    #[error("no more data came within {} s", .0.as_secs())]
    Stalled(Duration),
    /// The certificate of the host is not trusted.
    #[error("the certificate of {host} is not trusted: {reason}")]
    Certificate {
        /// Host with its port.
        host: String,
        /// Words of the TLS implementation.
        reason: String,
    },
    /// The name of the host has no address.
    #[error("the name of {host} cannot be resolved: {reason}")]
    Name {
        /// Host with its port.
        host: String,
        /// Words of the resolver.
        reason: String,
    },
    /// Any other failure of the connection.
    #[error("the connection to {host} failed: {reason}")]
    Connection {
        /// Host with its port.
        host: String,
        /// Words of the client.
        reason: String,
    },
}

/// Returns how failed requests are repeated: with jitter, for a minute.
pub(crate) fn retry_config() -> RetryConfig {
    // Each pause is random, up to `base` times the one before. With base 2, pauses would not grow on average.
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(8), base: 3.0 };
    RetryConfig { backoff, max_retries: usize::MAX, retry_timeout: RETRY_BUDGET }
}

/// Connector whose clients have a deadline for each request and each part of a reply, follow no redirections, and reduce
/// the replies to failed requests to a [`Reply`].
#[derive(Debug, Default)]
pub(crate) struct LimitedConnector {
    limits: TimeLimits,
    certificates: Vec<Certificate>,
}

impl Default for TimeLimits {
    fn default() -> Self {
        let (reply, idle) = (Duration::from_secs(30), Duration::from_secs(30));
        Self { reply, idle, first_contact: Duration::from_secs(5) }
    }
}

impl LimitedConnector {
    /// Trusts certificates (PEM) beside those of the platform.
    ///
    /// # Errors
    /// Returns an error if they are malformed.
    pub(crate) fn trusting(bundle: &[u8]) -> reqwest::Result<Self> {
        Ok(Self { certificates: Certificate::from_pem_bundle(bundle)?, ..Self::default() })
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
        let client = HttpClient::new(client);
        Ok(HttpClient::new(LimitedService { client, limits: self.limits, first_request, has_replied }))
    }
}

#[derive(Debug)]
struct LimitedService {
    client: HttpClient,
    limits: TimeLimits,
    first_request: OnceLock<Instant>,
    has_replied: AtomicBool,
}

#[async_trait]
impl HttpService for LimitedService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.first_request.get_or_init(Instant::now);
        let host = request.uri().authority().map_or_else(String::new, ToString::to_string);
        let is_object_read = request.method() == http::Method::GET
            && !request.uri().query().is_some_and(|query| query.contains("list-type="));
        let limit = self.limits.reply + Duration::from_secs(request.body().content_length() as u64 / SLOWEST_UPLOAD);
        let exchange = async {
            let (parts, body) = self.client.execute(request).await?.into_parts();
            let body = if is_object_read && parts.status.is_success() {
                let limit = self.limits.idle;
                HttpResponseBody::new(IdleLimitedBody { body, limit, deadline: Box::pin(sleep(limit)) })
            } else {
                // A reply that is cut is repeated with its request.
                body.bytes().await?.into()
            };
            Ok(HttpResponse::from_parts(parts, body))
        };
        match timeout(limit, exchange).await {
            Ok(Ok(response)) => {
                self.has_replied.store(true, Ordering::Relaxed);
                Reply::put_in(response).await
            }
            Ok(Err(error)) => Err(self.describe(&error, host)),
            Err(_) => Err(HttpError::new(HttpErrorKind::Timeout, TransportFailure::NoReply { host, limit })),
        }
    }
}

impl LimitedService {
    fn describe(&self, error: &HttpError, host: String) -> HttpError {
        let failure = TransportFailure::of(error, host);
        let waited = self.first_request.get().map_or(Duration::ZERO, Instant::elapsed);
        let is_first_contact = !self.has_replied.load(Ordering::Relaxed);
        let is_final = matches!(failure, TransportFailure::Certificate { .. })
            || is_first_contact && waited > self.limits.first_contact;
        // Errors of an unknown kind are not repeated.
        let kind = if is_final { HttpErrorKind::Unknown } else { error.kind() };
        HttpError::new(kind, failure)
    }
}

impl TransportFailure {
    fn of(error: &HttpError, host: String) -> Self {
        let mut reason = error.to_string();
        let mut is_name = false;
        let mut current: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(cause) = current {
            if let Some(tls @ rustls::Error::InvalidCertificate(_)) = tls_error(cause) {
                return Self::Certificate { host, reason: tls.to_string() };
            }
            reason = cause.to_string();
            is_name |= reason.contains("dns error");
            current = cause.source();
        }
        if is_name { Self::Name { host, reason } } else { Self::Connection { host, reason } }
    }
}

/// Returns the error of TLS in an I/O error: it is not part of the chain.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => tls_error(io.get_ref()?),
        None => error.downcast_ref(),
    }
}

/// Content that fails if its next part does not come in time.
#[derive(Debug)]
struct IdleLimitedBody {
    body: HttpResponseBody,
    limit: Duration,
    deadline: Pin<Box<Sleep>>,
}

impl Body for IdleLimitedBody {
    type Data = <HttpResponseBody as Body>::Data;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            let next = Instant::now() + self.limit;
            self.deadline.as_mut().reset(next);
        } else if self.deadline.as_mut().poll(context).is_ready() {
            let stalled = HttpError::new(HttpErrorKind::Timeout, TransportFailure::Stalled(self.limit));
            return Poll::Ready(Some(Err(stalled)));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use object_store::client::HttpRequestBody;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const LIMITS: TimeLimits = TimeLimits {
        reply: Duration::from_millis(200),
        idle: Duration::from_millis(200),
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

    #[tokio::test]
    async fn requests_have_deadlines() {
        let silent = request("").await.unwrap_err();
        assert_eq!(silent.kind(), HttpErrorKind::Timeout);
        assert!(matches!(failure(&silent), TransportFailure::NoReply { .. }), "{silent}");

        let half = request("HTTP/1.1 200 X\r\nContent-Length: 4\r\n\r\nab").await.unwrap_err();
        assert_eq!((half.kind(), failure(&half)), (HttpErrorKind::Timeout, TransportFailure::Stalled(LIMITS.idle)));

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
