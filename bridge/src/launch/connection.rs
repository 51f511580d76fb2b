//! HTTP/2 to a plugin, for tonic's clients to call over.
//!
//! In place of tonic's own channel, which passes every call through a queue and three tasks: here the caller writes its
//! request into the connection itself and reads the answer from it, and the one task there is moves the bytes.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use h2::client::{self, SendRequest};
use h2::{RecvStream, SendStream};
use http_body::{Body as _, Frame};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::codegen::{Bytes, Service, StdError};

/// Windows hold several ordinary messages: a call never waits for the far side to allow more.
const STREAM_WINDOW: u32 = 4 * MIB;
const CONNECTION_WINDOW: u32 = 64 * MIB;
/// Error details, with the whole state of a resource, come as one header.
const HEADERS: u32 = 64 * MIB;
const MIB: u32 = 1024 * 1024;

/// A connection that is made when it is first used, and again when it was lost. Clones share it; it is closed once
/// the last one and all calls are gone.
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
    /// Moves the bytes; ends with the connection.
    driver: JoinHandle<()>,
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
            match &*open {
                Some(open) if !open.driver.is_finished() => open.sender.clone(),
                _ => {
                    let new = self.dial().await.map_err(NotConnected)?;
                    open.insert(new).sender.clone()
                }
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
        // Its calls learn how it ended.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Open { sender, driver })
    }

    async fn send(self, request: Request<Body>) -> Result<Response<Answer>, StdError> {
        let (head, body) = request.into_parts();
        let mut sender = self.sender().await?;
        let (response, stream) = sender.send_request(Request::from_parts(head, ()), false)?;
        send_body(stream, body).await?;
        Ok(response.await?.map(|stream| Answer { stream }))
    }
}

/// Requests are one message, which the connection holds until it is sent: nothing is gained by waiting for its windows.
async fn send_body(mut stream: SendStream<Bytes>, mut body: Body) -> Result<(), StdError> {
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(data) = frame?.into_data() {
            let last = body.is_end_stream();
            stream.send_data(data, last)?;
            if last {
                return Ok(());
            }
        }
    }
    Ok(stream.send_data(Bytes::new(), true)?)
}

impl Service<Request<Body>> for Connection {
    type Response = Response<Answer>;
    type Error = StdError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

/// The body of an answer.
pub struct Answer {
    stream: RecvStream,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let stream = &mut self.stream;
        match ready!(stream.poll_data(cx)) {
            Some(Ok(data)) => {
                stream.flow_control().release_capacity(data.len())?;
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                let trailers: Option<HeaderMap> = ready!(stream.poll_trailers(cx))?;
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }
}
