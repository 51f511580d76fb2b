//! Where plugins reach what is served to them: a port of the loopback interface.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// Services that plugins call. They end when it is dropped.
#[derive(Debug)]
pub(super) struct Endpoint {
    address: SocketAddr,
    server: AbortHandle,
}

impl Endpoint {
    /// Serves on a free port of the loopback interface.
    pub(super) async fn serve(services: Routes) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        #[allow(clippy::disallowed_methods, reason = "owned by the value that is returned, which aborts it")]
        let server = tokio::spawn(Server::builder().add_routes(services).serve_with_incoming(incoming));
        Ok(Self { address, server: server.abort_handle() })
    }

    /// `host:port`, as plugins get it.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}
