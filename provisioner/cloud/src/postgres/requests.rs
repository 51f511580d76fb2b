//! Requests over one connection, which is made on first use and made again after a loss.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use futures_util::TryStreamExt as _;
use state::store::{ListingTooLong, MAX_NAMES, ObjectErrorKind, OutageReport, OutageWatch};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::connection::Connection;
use super::failure::Failure;
use super::url::PostgresUrl;

/// Pauses between repetitions, before jitter.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Time that is left to the reply to a statement that the server has aborted because it took too long.
const REPLY_TIME: Duration = Duration::from_secs(5);

/// Time limits of requests.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimits {
    /// Limit of connecting, with login; the URL's `connect_timeout` has priority.
    pub connect: Duration,
    /// Limit of one request after it was sent. The server aborts a statement five seconds earlier.
    pub request: Duration,
    /// Time after which a failed request is not repeated any more.
    pub repeat: Duration,
    /// The same before the first connection: a wrong host or port must not take a minute to be reported.
    pub repeat_first_connection: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            request: Duration::from_secs(35),
            repeat: Duration::from_secs(60),
            repeat_first_connection: Duration::from_secs(5),
        }
    }
}

/// Request that a loss of its reply allows to repeat, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repetition {
    /// Repeated.
    Allowed,
    /// Repeated only if the server has certainly not carried it out.
    IfWithoutEffect,
}

/// Statement with what messages and limits need to know of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statement<'s> {
    /// Requested operation, such as `read`.
    pub(super) operation: &'static str,
    /// Key of the object, or folder.
    pub(super) key: &'s str,
    pub(super) text: &'s str,
    pub(super) repetition: Repetition,
    /// Bytes that are sent.
    pub(super) size: usize,
    /// Bytes that the reply may have.
    pub(super) reply: u64,
}

/// Sends requests.
pub(super) struct Requests {
    url: PostgresUrl,
    limits: TimeLimits,
    watch: OutageWatch,
    /// Held while connecting, so that all requests wait for the same connection.
    state: Mutex<State>,
    was_connected: AtomicBool,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Last attempt to connect, if it failed, and its time.
    failure: Option<(Instant, Failure)>,
}

impl Requests {
    pub(super) fn new(url: PostgresUrl, limits: TimeLimits, outages: OutageReport) -> Self {
        let (watch, state) = (OutageWatch::new(outages), Mutex::default());
        Self { url, limits, watch, state, was_connected: AtomicBool::new(false) }
    }

    pub(super) fn url(&self) -> &PostgresUrl {
        &self.url
    }

    /// Returns the location of an object, or of the store for an empty key.
    pub(super) fn location_of(&self, key: &str) -> String {
        let location = self.url.location();
        if key.is_empty() { location.to_owned() } else { format!("{key} in {location}") }
    }

    /// Sends a statement and returns its rows. Repeats it with growing pauses as long as that is allowed and useful, and reports
    /// it if that takes long.
    pub(super) async fn query(
        &self,
        statement: Statement<'_>,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Failure> {
        let described = (statement.operation, || self.location_of(statement.key));
        let limit = if self.was_connected.load(Ordering::Relaxed) {
            self.limits.repeat + self.limits.request
        } else {
            self.limits.repeat_first_connection + self.connect_limit()
        };
        self.watch.watch(described, statement.size, limit, self.repeat(statement, parameters)).await
    }

    async fn repeat(
        &self,
        statement: Statement<'_>,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Failure> {
        let began = Instant::now();
        let pauses = ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .without_max_times();
        let is_repeated = |failure: &Failure| {
            let is_allowed = statement.repetition == Repetition::Allowed || !failure.may_have_effect;
            self.watch.attempt_failed(failure.to_string());
            failure.is_transient && is_allowed && began.elapsed() < self.repeat_limit(failure)
        };
        let replied = (|| self.attempt(statement, parameters)).retry(pauses).when(is_repeated).await;
        if replied.is_ok() {
            self.watch.replied();
        }
        replied
    }

    /// Returns the limit of connecting, with login.
    fn connect_limit(&self) -> Duration {
        self.url.connect_timeout.unwrap_or(self.limits.connect)
    }

    fn repeat_limit(&self, failure: &Failure) -> Duration {
        // A server that replies has the right address.
        let is_found = self.was_connected.load(Ordering::Relaxed) || failure.is_reply;
        if is_found { self.limits.repeat } else { self.limits.repeat_first_connection }
    }

    async fn attempt(
        &self,
        statement: Statement<'_>,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Failure> {
        let connection = self.connection().await?;
        let allowance = connection.allowance.of_reply(statement.reply);
        let rows = async {
            let parameters = parameters.iter().map(|(value, kind)| (*value, kind.clone()));
            let received = connection.client().query_typed_raw(statement.text, parameters).await?;
            let (mut received, mut rows) = (pin!(received), Vec::new());
            while let Some(row) = received.try_next().await? {
                rows.push(row);
                if rows.len() > MAX_NAMES {
                    break;
                }
            }
            Ok(rows)
        };
        let reply = timeout(self.limits.request, rows).await;
        drop(allowance);
        let failure = match reply {
            Ok(Ok(rows)) if rows.len() > MAX_NAMES => {
                Failure::unusable(ObjectErrorKind::TooLarge, ListingTooLong::Names.to_string(), None)
            }
            Ok(Ok(rows)) => return Ok(rows),
            Ok(Err(error)) => connection.failure(&error),
            Err(_) => Failure::timeout(format!("no reply within {:?}", self.limits.request)),
        };
        if failure.ends_connection {
            self.discard(&connection).await;
        }
        Err(failure)
    }

    /// Returns the connection, or makes one. An attempt that fails fails all requests that waited for it: one after the
    /// other, they would wait much longer than their limit.
    async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let began = Instant::now();
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.as_ref().filter(|connection| !connection.client().is_closed()) {
            return Ok(Arc::clone(connection));
        }
        if let Some((_, failure)) = state.failure.as_ref().filter(|(time, _)| *time >= began) {
            return Err(failure.clone());
        }
        let limit = self.connect_limit();
        let opened = timeout(limit, Connection::open(&self.url, self.limits.request.saturating_sub(REPLY_TIME))).await;
        let timed_out = |_| Failure::no_connection(format!("no connection within {limit:?}"));
        let opened = opened.map_err(timed_out).flatten();
        match opened {
            Ok(connection) => {
                let connection = Arc::new(connection);
                self.was_connected.store(true, Ordering::Relaxed);
                *state = State { connection: Some(Arc::clone(&connection)), failure: None };
                Ok(connection)
            }
            Err(failure) => {
                // The request itself was not sent.
                let failure = failure.without_effect();
                *state = State { connection: None, failure: Some((Instant::now(), failure.clone())) };
                Err(failure)
            }
        }
    }

    /// Forgets a connection; requests that still wait on it fail by themselves.
    async fn discard(&self, connection: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            state.connection = None;
        }
    }
}

/// Returns the failure of data that the server sent and that no state can be.
pub(super) fn unexpected_data(words: impl Into<String>) -> Failure {
    Failure::lasting(ObjectErrorKind::Other, words, None)
}
