//! Bytes that a server may send: a connection whose server sends more than its replies can have, or another protocol, ends.
//!
//! The client gives each stream to a connector only if it is to have TLS. A stream without TLS gets one that starts none.

use std::convert::Infallible;
use std::error::Error;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Bytes for what belongs to no reply with rows: the login, notices, settings of the session, confirmations.
pub(super) const SMALL: u64 = 1 << 20;
/// Beginning of what a server of the web sends.
const HTTP: &[u8] = b"HTTP/";

/// Reason why what a server sends cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    /// More bytes than the replies to the requests can have.
    #[error("the server sends more than any reply to the request can have")]
    TooLong,
    /// Reply of a web server.
    #[error("the server speaks HTTP, not the protocol of PostgreSQL")]
    Http,
}

impl Unusable {
    /// Returns whether an error of the client has such a reason.
    pub(super) fn is_cause_of(error: &tokio_postgres::Error) -> bool {
        let mut causes = std::iter::successors(error.source(), |&cause| cause.source());
        causes.any(|cause| {
            cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref).is_some_and(|inner| inner.is::<Self>())
        })
    }
}

/// Number of bytes that may be received on a connection. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Allowance(Arc<Mutex<Allowed>>);

#[derive(Debug)]
struct Allowed {
    /// Number of requests that wait for their replies.
    requests: usize,
    left: u64,
}

impl Allowance {
    /// Allows what a login needs.
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Allowed { requests: 0, left: SMALL })))
    }

    /// Allows the bytes of a reply until the value is dropped.
    pub(super) fn of_reply(&self, bytes: u64) -> ReplyAllowance {
        let mut allowed = self.allowed();
        allowed.requests += 1;
        allowed.left = allowed.left.saturating_add(bytes);
        ReplyAllowance(self.clone())
    }

    fn take(&self, bytes: usize) -> Result<(), Unusable> {
        let mut allowed = self.allowed();
        allowed.left = allowed.left.checked_sub(bytes as u64).ok_or(Unusable::TooLong)?;
        Ok(())
    }

    fn allowed(&self) -> MutexGuard<'_, Allowed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Allowance for the reply to a request.
#[derive(Debug)]
pub(super) struct ReplyAllowance(Allowance);

impl Drop for ReplyAllowance {
    fn drop(&mut self) {
        let mut allowed = self.0.allowed();
        allowed.requests -= 1;
        if allowed.requests == 0 {
            allowed.left = SMALL;
        }
    }
}

/// Stream of which a limited number of bytes is received.
pub(super) struct Limited<S> {
    stream: S,
    allowance: Allowance,
    has_received: bool,
    binding: fn(&S) -> ChannelBinding,
}

impl<S> Limited<S> {
    fn new(stream: S, allowance: Allowance, binding: fn(&S) -> ChannelBinding) -> Self {
        Self { stream, allowance, has_received: false, binding }
    }

    fn check(&mut self, received: &[u8]) -> Result<(), Unusable> {
        let is_first = !std::mem::replace(&mut self.has_received, true);
        if is_first && received.starts_with(HTTP) {
            return Err(Unusable::Http);
        }
        self.allowance.take(received.len())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let received = &buffer.filled()[before..];
        let checked = if received.is_empty() { Ok(()) } else { self.check(received) };
        if checked.is_err() {
            buffer.set_filled(before);
        }
        Poll::Ready(checked.map_err(io::Error::other))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Limited<S> {
    fn channel_binding(&self) -> ChannelBinding {
        (self.binding)(&self.stream)
    }
}

/// Connector that starts no TLS.
#[derive(Clone)]
pub(super) struct PlainConnector(pub(super) Allowance);

impl MakeTlsConnect<Socket> for PlainConnector {
    type Stream = Limited<Socket>;
    type TlsConnect = Self;
    type Error = Infallible;

    fn make_tls_connect(&mut self, _: &str) -> Result<Self, Infallible> {
        Ok(self.clone())
    }
}

impl TlsConnect<Socket> for PlainConnector {
    type Stream = Limited<Socket>;
    type Error = Infallible;
    type Future = Ready<Result<Limited<Socket>, Infallible>>;

    fn connect(self, stream: Socket) -> Self::Future {
        ready(Ok(Limited::new(stream, self.0, |_| ChannelBinding::none())))
    }
}

/// Connector that starts TLS.
#[derive(Clone)]
pub(super) struct TlsConnector(pub(super) MakeRustlsConnect, pub(super) Allowance);

type Secured = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
type Securing = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
type SecuringError = <Securing as TlsConnect<Socket>>::Error;

/// Connector for one host.
pub(super) struct HostTlsConnector(Securing, Allowance);

impl MakeTlsConnect<Socket> for TlsConnector {
    type Stream = Limited<Secured>;
    type TlsConnect = HostTlsConnector;
    type Error = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<HostTlsConnector, Self::Error> {
        let connector = MakeTlsConnect::<Socket>::make_tls_connect(&mut self.0, domain)?;
        Ok(HostTlsConnector(connector, self.1.clone()))
    }
}

impl TlsConnect<Socket> for HostTlsConnector {
    type Stream = Limited<Secured>;
    type Error = SecuringError;
    type Future = Pin<Box<dyn Future<Output = Result<Limited<Secured>, SecuringError>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        let Self(connector, allowance) = self;
        Box::pin(async move {
            let stream = connector.connect(stream).await?;
            Ok(Limited::new(stream, allowance, TlsStream::channel_binding))
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn received_bytes_are_limited_to_those_of_the_replies() {
        let (allowance, endless) = (Allowance::new(), || tokio::io::repeat(b'x'));
        let stream = |allowance: &Allowance| Limited::new(endless(), allowance.clone(), |_| ChannelBinding::none());
        let receive = async |allowance: &Allowance, bytes: u64| {
            let mut content = Vec::new();
            let received = stream(allowance).take(bytes).read_to_end(&mut content).await;
            received.map_err(|error| error.to_string())
        };
        assert_eq!(receive(&allowance, SMALL).await, Ok(SMALL as usize));
        let too_long = Err(Unusable::TooLong.to_string());
        assert_eq!(receive(&allowance, 1).await, too_long);
        let (one, two) = (allowance.of_reply(3 * SMALL), allowance.of_reply(SMALL));
        assert_eq!(receive(&allowance, 4 * SMALL).await, Ok(4 * SMALL as usize));
        drop(one);
        assert_eq!(receive(&allowance, 1).await, too_long);
        drop(two);
        assert_eq!(receive(&allowance, SMALL).await, Ok(SMALL as usize));
    }

    #[tokio::test]
    async fn reply_of_the_web_is_recognised() {
        for (sent, is_web) in [("HTTP/1.1 400 Bad Request", true), ("R\0\0\0\x08", false), ("", false)] {
            let mut stream = Limited::new(sent.as_bytes(), Allowance::new(), |_| ChannelBinding::none());
            let received = stream.read_to_end(&mut Vec::new()).await;
            assert_eq!(received.is_err(), is_web, "{sent}");
        }
    }
}
