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
    ReqwestConnector,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::reply::Reply;

/// Limit of the time until there is a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Limit of the time until there is a reply to a request without content.
const REPLY_LIMIT: Duration = Duration::from_secs(30);
/// Limit of the time between two parts of a content that is received.
const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// Bytes per second that a content is sent at, at least.
const SLOWEST_UPLOAD: u64 = 64 << 10;
/// Time for which a failed request is repeated.
const RETRY_BUDGET: Duration = Duration::from_secs(60);
/// Time for which a host that has never replied is tried: its name is probably wrong.
const FIRST_CONTACT_BUDGET: Duration = Duration::from_secs(5);

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

/// Returns the options of a client whose deadlines are those of [`LimitedConnector`].
pub(crate) fn client_options() -> ClientOptions {
    ClientOptions::new().with_connect_timeout(CONNECT_LIMIT).with_timeout_disabled()
}

/// Returns how failed requests are repeated: with jitter, for a minute.
pub(crate) fn retry_config() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(8), base: 2.0 };
    RetryConfig { backoff, max_retries: 100, retry_timeout: RETRY_BUDGET }
}

/// Connector whose clients have a deadline for each request and each part of a reply, and reduce the replies to failed
/// requests to a [`Reply`].
#[derive(Debug)]
pub(crate) struct LimitedConnector;

impl HttpConnector for LimitedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        let service = LimitedService { client, first_request: OnceLock::new(), has_replied: AtomicBool::new(false) };
        Ok(HttpClient::new(service))
    }
}

#[derive(Debug)]
struct LimitedService {
    client: HttpClient,
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
        let limit = REPLY_LIMIT + Duration::from_secs(request.body().content_length() as u64 / SLOWEST_UPLOAD);
        let exchange = async {
            let (parts, body) = self.client.execute(request).await?.into_parts();
            let body = if is_object_read && parts.status.is_success() {
                HttpResponseBody::new(IdleLimitedBody { body, deadline: Box::pin(sleep(IDLE_LIMIT)) })
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
            || is_first_contact && waited > FIRST_CONTACT_BUDGET;
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
            self.deadline.as_mut().reset(Instant::now() + IDLE_LIMIT);
        } else if self.deadline.as_mut().poll(context).is_ready() {
            let stalled = HttpError::new(HttpErrorKind::Timeout, TransportFailure::Stalled(IDLE_LIMIT));
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
