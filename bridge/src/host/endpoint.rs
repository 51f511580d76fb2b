//! Server for the services that plugins call, on a port of the loopback interface.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tonic::body::Body;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::{Code, Status};
use tower::ServiceBuilder;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::util::MapResponseLayer;

use super::connection_guard::{ConnectionGuard, GuardedConnection};

/// Pause after the system refused to accept a connection, for instance because no file descriptor is free. There is no
/// signal that one is free again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Largest number of connections that are checked together. They are not counted as open yet.
pub(super) const CHECKED_TOGETHER: usize = 32;

/// Running server of services. Dropping it stops the services.
#[derive(Debug)]
pub(super) struct Endpoint {
    address: SocketAddr,
    _server: RunningServer,
}

impl Endpoint {
    /// Starts the services on a free port of the loopback interface. `guard` decides which connections are accepted, and
    /// has the limit on calls; each service has its limit on the size of a request.
    pub(super) async fn serve(services: Routes, guard: Arc<ConnectionGuard>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let calls = guard.limits().calls;
        let server = RunningServer::start(services, calls, connections(listener, address, guard));
        Ok(Self { address, _server: server })
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the address as plugins receive it, `host:port`.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }
}

/// Task that serves services. Dropping it stops them.
#[derive(Debug)]
pub(super) struct RunningServer(AbortHandle);

impl RunningServer {
    /// Starts services on connections. At most `calls` calls are answered at once.
    pub(super) fn start<S>(
        services: Routes,
        calls: usize,
        connections: impl Stream<Item = io::Result<GuardedConnection<S>>> + Send + 'static,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let limits = ServiceBuilder::new()
            .layer(MapResponseLayer::new(too_large_as_exhausted))
            .layer(LoadShedLayer::new())
            .layer(GlobalConcurrencyLimitLayer::new(calls));
        let server = Server::builder().layer(limits).add_routes(services);
        #[expect(clippy::disallowed_methods, reason = "owned by the value that is returned, which aborts it")]
        let server = tokio::spawn(server.serve_with_incoming(connections));
        Self(server.abort_handle())
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the accepted connections of a listener. Never ends. Those that wait are checked together, so that an account
/// that opens many connections does not delay the others by one check for each.
pub(super) fn connections(
    listener: TcpListener,
    address: SocketAddr,
    guard: Arc<ConnectionGuard>,
) -> impl Stream<Item = io::Result<GuardedConnection<TcpStream>>> {
    let opened = opened(listener, |listener| Box::pin(async { Ok(listener.accept().await?.0) }));
    let admit = move |opened| {
        let guard = Arc::clone(&guard);
        async move { stream::iter(guard.admit(address, opened).await.into_iter().map(Ok)) }
    };
    opened.ready_chunks(CHECKED_TOGETHER).then(admit).flatten()
}

/// Returns the connections that `accept` returns. Never ends.
pub(super) fn opened<L, S>(listener: L, accept: impl Fn(&L) -> BoxFuture<'_, io::Result<S>>) -> impl Stream<Item = S> {
    stream::unfold((listener, accept), |(listener, accept)| async move {
        loop {
            match accept(&listener).await {
                Ok(stream) => return Some((stream, (listener, accept))),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    })
}

/// Replaces the code OUT_OF_RANGE, which tonic uses for a request that is too large, by RESOURCE_EXHAUSTED, which
/// gRPC libraries use for it. The services themselves do not use OUT_OF_RANGE.
fn too_large_as_exhausted(mut response: http::Response<Body>) -> http::Response<Body> {
    let is_too_large =
        Status::from_header_map(response.headers()).is_some_and(|status| status.code() == Code::OutOfRange);
    if is_too_large {
        response.headers_mut().insert(Status::GRPC_STATUS, (Code::ResourceExhausted as i32).into());
    }
    response
}
