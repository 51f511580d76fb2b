//! HTTP/2 connection to a plugin.
//!
//! Replaces tonic's channel, which passes every call through a queue and three tasks. Here the caller writes its
//! request to the connection and reads the reply from it; a single task moves the bytes. `docs/performance.md` compares
//! the two.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use h2::SendStream;
use h2::client::{self, ResponseFuture, SendRequest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tonic::codegen::http::Request;
use tonic::codegen::{Bytes, StdError};

/// Flow control windows in bytes. They hold several ordinary messages, so that a call does not wait for window updates.
const STREAM_WINDOW: u32 = 4 * MIB;
const CONNECTION_WINDOW: u32 = 64 * MIB;
/// Maximum size of the headers in bytes. Error details, which may hold the state of a resource, arrive in one header.
const HEADER_LIMIT: u32 = 64 * MIB;
/// Maximum number of concurrent calls before the server has sent its own maximum.
const INITIAL_MAX_CALLS: usize = 100;
const MIB: u32 = 1024 * 1024;

/// Connection that is opened on first use and again after it was lost. Clones share it; dropping the last clone closes
/// it.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    dial: Dial,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Sender of requests; usable while the connection accepts new streams.
    sender: Option<SendRequest<Bytes>>,
    /// Tasks that move the bytes. A connection that accepts no more requests runs until its last call has ended.
    drivers: JoinSet<()>,
}

type Dial = Box<dyn Fn() -> BoxFuture<'static, io::Result<BoxedStream>> + Send + Sync>;

/// Byte stream of any kind.
pub(crate) type BoxedStream = Box<dyn Stream>;

/// Byte stream in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Connection attempt that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect")]
struct NotConnected(#[source] StdError);

impl Connection {
    /// Returns a connection over the stream that `dial` opens. `dial` is called whenever there is no open stream.
    pub fn new<F, S>(dial: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::of_boxed(move || {
            let stream = dial();
            async move { Ok(Box::new(stream.await?) as BoxedStream) }
        })
    }

    /// Same as [`Connection::new`], for a stream whose kind is decided when it is opened.
    pub(super) fn of_boxed<F>(dial: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<BoxedStream>> + Send + 'static,
    {
        let dial: Dial = Box::new(move || Box::pin(dial()));
        Self(Arc::new(Shared { dial, state: Mutex::default() }))
    }

    /// Returns the sender of requests. Opens a new connection if the current one accepts no more requests.
    async fn sender(&self) -> Result<SendRequest<Bytes>, StdError> {
        let mut state = self.0.state.lock().await;
        while state.drivers.try_join_next().is_some() {}
        if let Some(sender) = &state.sender
            && let Ok(sender) = sender.clone().ready().await
        {
            return Ok(sender);
        }
        // If `dial` fails, the next call dials again.
        state.sender = None;
        let stream = (self.0.dial)().await.map_err(|error| NotConnected(error.into()))?;
        let mut settings = client::Builder::new();
        settings.initial_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
        settings.max_header_list_size(HEADER_LIMIT).enable_push(false).initial_max_send_streams(INITIAL_MAX_CALLS);
        let (sender, connection) = settings.handshake(stream).await.map_err(|error| NotConnected(error.into()))?;
        // The error is dropped: the calls on the connection return it.
        state.drivers.spawn(async move { drop(connection.await) });
        state.sender = Some(sender.clone());
        Ok(sender)
    }

    /// Starts a call by sending the head and the complete body of a request. The returned future resolves to the
    /// response.
    pub(super) async fn send(&self, head: Request<()>, body: Bytes) -> Result<ResponseFuture, StdError> {
        let (response, mut stream) = self.open(head).await?;
        // The connection buffers the body until it is sent, so there is no wait for window updates.
        // If the stream accepts no data, the response future returns the reply or the error.
        stream.send_data(body, true).ok();
        Ok(response)
    }

    /// Starts a call by sending the head of a request. The body is written to the returned stream.
    pub(super) async fn open(&self, head: Request<()>) -> Result<(ResponseFuture, SendStream<Bytes>), StdError> {
        Ok(self.sender().await?.send_request(head, false)?)
    }
}
