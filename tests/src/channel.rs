//! gRPC service without a socket: server and client in one process, connected by pipes in memory.

use std::convert::Infallible;

use bridge::launch::Connection;
use tokio::io::DuplexStream;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use tonic::transport::Server;

/// Number of bytes that a pipe holds before its writer waits.
const PIPE_CAPACITY: usize = 1 << 20;

/// gRPC service that a tonic server can serve.
pub trait GrpcService:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
    + NamedService
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> GrpcService for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Serves a service in a task of the current runtime, and returns a connection to it.
///
/// The server ends once every clone of the connection is dropped.
pub fn connect_in_memory(service: impl GrpcService) -> Connection {
    let (connections, incoming) = tokio::sync::mpsc::unbounded_channel::<Result<DuplexStream, std::io::Error>>();
    let server = Server::builder().add_service(service).serve_with_incoming(UnboundedReceiverStream::new(incoming));
    tokio::spawn(server);
    Connection::new(move || {
        let (client_end, server_end) = tokio::io::duplex(PIPE_CAPACITY);
        let sent =
            connections.send(Ok(server_end)).map_err(|_| std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        async move { sent.map(|()| client_end) }
    })
}
