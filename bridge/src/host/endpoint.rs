//! Server for the services that plugins call, on a port of the loopback interface.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// Running server of services. Dropping it stops the services.
#[derive(Debug)]
pub(super) struct Endpoint {
    address: SocketAddr,
    server: AbortHandle,
}

impl Endpoint {
    /// Starts the services on a free port of the loopback interface.
    pub(super) async fn serve(services: Routes) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        #[expect(clippy::disallowed_methods, reason = "owned by the value that is returned, which aborts it")]
        let server = tokio::spawn(Server::builder().add_routes(services).serve_with_incoming(incoming));
        Ok(Self { address, server: server.abort_handle() })
    }

    /// Returns the address as plugins receive it, `host:port`.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}
