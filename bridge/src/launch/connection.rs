//! HTTP/2 to a plugin.
//!
//! In place of tonic's channel, which passes every call through a queue and three tasks: here the caller writes its
//! request into the connection itself and reads the answer from it, and the one task there is moves the bytes.

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
const MIB: u32 = 1024 * 1024;

/// A connection that is made when it is first used, and again when it was lost. Clones share it; it is closed with the
/// last one.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    dial: Dial,
    open: Mutex<Option<Open>>,
}

type Dial = Box<dyn Fn() -> BoxFuture<'static, io::Result<Box<dyn Stream>>> + Send + Sync>;

/// Bytes in both directions.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

struct Open {
    sender: SendRequest<Bytes>,
    /// The one task that moves the bytes; it ends with the connection, and the connection with this.
    driver: JoinSet<()>,
}

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
        Self(Arc::new(Shared { dial, open: Mutex::new(None) }))
    }

    /// What takes a request, once it may: the far side limits how many are under way.
    async fn sender(&self) -> Result<SendRequest<Bytes>, StdError> {
        let sender = {
            let mut open = self.0.open.lock().await;
            if open.as_mut().is_some_and(|open| open.driver.try_join_next().is_some()) {
                *open = None;
            }
            match &*open {
                Some(open) => open.sender.clone(),
                None => open.insert(self.dial().await.map_err(NotConnected)?).sender.clone(),
            }
        };
        Ok(sender.ready().await?)
    }

    async fn dial(&self) -> Result<Open, StdError> {
        let stream = (self.0.dial)().await?;
        let mut settings = client::Builder::new();
        settings.initial_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
        settings.max_header_list_size(HEADERS).enable_push(false);
        let (sender, connection) = settings.handshake(stream).await?;
        let mut driver = JoinSet::new();
        // Its calls learn how it ended.
        driver.spawn(async move { drop(connection.await) });
        Ok(Open { sender, driver })
    }

    /// Begins a stream: the head and the whole body of a request. What comes back is read from the future.
    pub(super) async fn send(&self, head: Request<()>, body: Bytes) -> Result<ResponseFuture, StdError> {
        let mut sender = self.sender().await?;
        let (response, mut stream) = sender.send_request(head, false)?;
        // The connection holds it until it is sent: nothing is gained by waiting for its windows.
        stream.send_data(body, true)?;
        Ok(response)
    }
}
