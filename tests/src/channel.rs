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
const PIPE: usize = 1 << 20;

/// gRPC service that a tonic server can serve.
pub trait Served:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
    + NamedService
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Served for S where
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
pub fn in_memory(service: impl Served) -> Connection {
    let (dial, listen) = tokio::sync::mpsc::unbounded_channel::<Result<DuplexStream, std::io::Error>>();
    let server = Server::builder().add_service(service).serve_with_incoming(UnboundedReceiverStream::new(listen));
    tokio::spawn(server);
    Connection::new(move || {
        let (near, far) = tokio::io::duplex(PIPE);
        let sent = dial.send(Ok(far)).map_err(|_| std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        async move { sent.map(|()| near) }
    })
}
