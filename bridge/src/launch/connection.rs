//! HTTP/2 to a plugin.
//!
//! In place of tonic's channel, which passes every call through a queue and three tasks: here the caller writes its
//! request into the connection itself and reads the answer from it, and the one task there is moves the bytes.
//! `docs/performance.md` compares the two.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use h2::client::{self, ResponseFuture, SendRequest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tonic::codegen::http::Request;
use tonic::codegen::{Bytes, StdError};

/// Windows hold several ordinary messages: a call never waits for the far side to allow more.
const STREAM_WINDOW: u32 = 4 * MIB;
const CONNECTION_WINDOW: u32 = 64 * MIB;
/// Error details, with the whole state of a resource, come as one header.
const HEADERS: u32 = 64 * MIB;
/// How many calls go out before the far side has said how many it takes.
const FIRST_CALLS: usize = 100;
const MIB: u32 = 1024 * 1024;

/// A connection that is made when it is first used, and again when it was lost. Clones share it; it is closed with the
/// last one.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    dial: Dial,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Takes requests, as long as the connection does.
    sender: Option<SendRequest<Bytes>>,
    /// Move the bytes. One that takes no more requests goes on until its last call has ended.
    drivers: JoinSet<()>,
}

type Dial = Box<dyn Fn() -> BoxFuture<'static, io::Result<Box<dyn Stream>>> + Send + Sync>;

/// Bytes in both directions.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// No connection came about.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect")]
struct NotConnected(#[source] StdError);

impl Connection {
    /// A connection over what `dial` gives, which is asked whenever there is none.
    pub fn new<F, S>(dial: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let dial: Dial = Box::new(move || {
            let stream = dial();
            Box::pin(async move { Ok(Box::new(stream.await?) as Box<dyn Stream>) })
        });
        Self(Arc::new(Shared { dial, state: Mutex::default() }))
    }

    /// What takes a request, on a new connection if the one there was takes no more.
    async fn sender(&self) -> Result<SendRequest<Bytes>, StdError> {
        let mut state = self.0.state.lock().await;
        while state.drivers.try_join_next().is_some() {}
        if let Some(sender) = &state.sender
            && let Ok(sender) = sender.clone().ready().await
        {
            return Ok(sender);
        }
        // Should dialling fail, the next call tries again.
        state.sender = None;
        let stream = (self.0.dial)().await.map_err(|error| NotConnected(error.into()))?;
        let mut settings = client::Builder::new();
        settings.initial_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
        settings.max_header_list_size(HEADERS).enable_push(false).initial_max_send_streams(FIRST_CALLS);
        let (sender, connection) = settings.handshake(stream).await.map_err(|error| NotConnected(error.into()))?;
        // Its calls learn how it ended.
        state.drivers.spawn(async move { drop(connection.await) });
        state.sender = Some(sender.clone());
        Ok(sender)
    }

    /// Begins a stream: the head and the whole body of a request. What comes back is read from the future.
    pub(super) async fn send(&self, head: Request<()>, body: Bytes) -> Result<ResponseFuture, StdError> {
        let mut sender = self.sender().await?;
        let (response, mut stream) = sender.send_request(head, false)?;
        // The connection holds it until it is sent: nothing is gained by waiting for its windows.
        // Where it takes none, there is an answer already, or the reason why there will be none.
        stream.send_data(body, true).ok();
        Ok(response)
    }
}
