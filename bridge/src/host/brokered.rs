//! Servers of the host that a go-plugin server dials through its broker (docs/spec/plugin-hosts.md#A.10).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt as _};
use tokio::net::{UnixListener, UnixStream};
use tonic::service::Routes;

use super::connection_guard::{ConnectionGuard, GuardedConnection};
use super::endpoint::{CHECKED_TOGETHER, RunningServer, opened};
use crate::fs::calls::remove_file;
use crate::launch::{BoxedStream, Broker, BrokerError, MutualTls};

/// Limit on the TLS handshake of a connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Limit on an announcement that is repeated.
const ANNOUNCE_LIMIT: Duration = Duration::from_secs(1);

/// Reason why services are not offered.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    /// The socket cannot be opened.
    #[error("cannot open the socket {}", path.display())]
    Socket {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The plugin cannot be informed.
    #[error(transparent)]
    Broker(#[from] BrokerError),
}

/// Engine service under the number 1, for a plugin that wants no other port than its broker. Dropping it ends the broker
/// of the plugin.
#[derive(Debug)]
pub(super) struct EngineOffer {
    server: BrokeredServer,
    broker: Broker,
}

impl EngineOffer {
    /// Offers the services of the engine as the first ones of the host. Returns `None` if the plugin serves no broker.
    ///
    /// # Errors
    /// Returns the error of the socket.
    pub(super) async fn make(
        broker: Broker,
        services: Routes,
        guard: Arc<ConnectionGuard>,
    ) -> io::Result<Option<Self>> {
        match BrokeredServer::offer(&broker, services, guard).await {
            Ok(server) => Ok(Some(Self { server, broker })),
            Err(OfferError::Broker(_)) => Ok(None),
            Err(OfferError::Socket { source, .. }) => Err(source),
        }
    }

    /// Announces the services once more: Go's library forgets an announcement that is not dialled within five seconds. Has
    /// no effect on a plugin that has dialled, or reads no announcements.
    pub(super) async fn announce(&self) {
        let announcement = self.broker.announce(self.server.id, &self.server.path);
        tokio::time::timeout(ANNOUNCE_LIMIT, announcement).await.ok();
    }
}

/// Services that the host offers to one plugin through its broker, at a Unix socket in the private folder of the broker.
/// Dropping it stops them and removes the socket.
#[derive(Debug)]
pub struct BrokeredServer {
    id: u32,
    path: PathBuf,
    _server: RunningServer,
}

impl BrokeredServer {
    /// Serves services under the next number of the host, and announces them to the plugin. With TLS, the plugin must
    /// present the certificate in its handshake line. `guard` decides which connections are accepted, and has the limit
    /// on calls.
    ///
    /// # Errors
    /// [`OfferError`].
    pub async fn offer(broker: &Broker, services: Routes, guard: Arc<ConnectionGuard>) -> Result<Self, OfferError> {
        let id = broker.next_id();
        let path = broker.folder().join(format!("host{id}"));
        let listener = UnixListener::bind(&path);
        let listener = listener.map_err(|source| OfferError::Socket { path: path.clone(), source })?;
        let calls = guard.limits().calls;
        let connections = connections(listener, guard, broker.tls().cloned());
        let server = Self { id, path, _server: RunningServer::start(services, calls, connections) };
        broker.announce(id, &server.path).await?;
        Ok(server)
    }

    /// Returns the number of the services, by which the plugin dials them.
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for BrokeredServer {
    fn drop(&mut self) {
        // The folder is removed with its content after the end of the plugin, so an error leaves nothing behind.
        remove_file(&self.path).unwrap_or_default();
    }
}

/// Returns the accepted connections of a listener, after their TLS handshake. Never ends. Handshakes run side by side, so
/// that one that makes no progress does not delay the others.
fn connections(
    listener: UnixListener,
    guard: Arc<ConnectionGuard>,
    tls: Option<MutualTls>,
) -> impl Stream<Item = io::Result<GuardedConnection<BoxedStream>>> {
    let opened = opened(listener, |listener| Box::pin(async { Ok(listener.accept().await?.0) }));
    let prepare = move |stream| {
        let (guard, tls) = (Arc::clone(&guard), tls.clone());
        async move { prepare(stream, &guard, tls.as_ref()).await.map(Ok) }
    };
    opened.map(prepare).buffer_unordered(CHECKED_TOGETHER).filter_map(std::future::ready)
}

/// Returns a connection that is accepted; `None` for one of another account, or without the certificate of the plugin.
async fn prepare(
    stream: UnixStream,
    guard: &ConnectionGuard,
    tls: Option<&MutualTls>,
) -> Option<GuardedConnection<BoxedStream>> {
    let permit = guard.admit_unix(&stream)?;
    let stream: BoxedStream = match tls {
        Some(tls) => Box::new(tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await.ok()?.ok()?),
        None => Box::new(stream),
    };
    Some(GuardedConnection::new(stream, permit))
}
