//! Decides which connections to the endpoints of a host are accepted: those of the account of this process, up to a
//! limit.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::mem::{Discriminant, discriminant};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::server::Connected;

use super::assets::AssetAccess;
use super::{HostEvent, HostEvents};
use crate::launch::MAX_MESSAGE;
use crate::peer::{self, Peer};

/// Limits of the services that plugins call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointLimits {
    /// Number of open connections to all endpoints of a host. A further one is closed.
    pub connections: usize,
    /// Number of calls that one endpoint answers at once. A further call fails with RESOURCE_EXHAUSTED; it never waits,
    /// because a Construct waits for the registrations of its children.
    pub calls: usize,
    /// Size of a request in bytes. A larger one fails with RESOURCE_EXHAUSTED.
    pub request: usize,
    /// Size of a request to the engine service in bytes. Its largest requests are log messages.
    pub log_request: usize,
}

impl EndpointLimits {
    /// Largest number of connections, with any number of file descriptors.
    const MAX_CONNECTIONS: usize = 1024;

    /// Returns the default limits of a process that may open `descriptors` files, if that number is limited. Connections
    /// use at most half of them, so that the other half is left for the state, the journal and the plugins.
    pub(super) fn for_descriptors(descriptors: Option<u64>) -> Self {
        let half = descriptors.and_then(|count| usize::try_from(count / 2).ok());
        Self {
            connections: half.unwrap_or(Self::MAX_CONNECTIONS).min(Self::MAX_CONNECTIONS),
            calls: 16_384,
            request: MAX_MESSAGE,
            log_request: 16 * 1024 * 1024,
        }
    }
}

impl Default for EndpointLimits {
    /// Returns the limits for the number of files that this process may open.
    fn default() -> Self {
        Self::for_descriptors(rustix::process::getrlimit(rustix::process::Resource::Nofile).current)
    }
}

/// Guard of all endpoints of a host.
///
/// # Invariants
/// A connection of another account is closed before anything is read from it.
pub struct ConnectionGuard {
    limits: EndpointLimits,
    free: Arc<Semaphore>,
    receivers: Mutex<Vec<Receiver>>,
    /// Plugins whose connections a relay passes on, by the address from which it connects.
    relayed: Mutex<HashMap<SocketAddr, Arc<AssetAccess>>>,
}

/// Receiver of events: of each kind once.
struct Receiver {
    events: Weak<dyn HostEvents>,
    reported: Vec<Discriminant<HostEvent>>,
}

impl ConnectionGuard {
    /// Creates a guard without receivers of its events.
    pub fn new(limits: EndpointLimits) -> Self {
        Self {
            limits,
            free: Arc::new(Semaphore::new(limits.connections)),
            receivers: Mutex::default(),
            relayed: Mutex::default(),
        }
    }

    /// Adds a receiver: until it is dropped, it receives each kind of event of the guard once.
    pub fn report_to(&self, events: &Arc<dyn HostEvents>) {
        self.receivers().push(Receiver { events: Arc::downgrade(events), reported: Vec::new() });
    }

    /// Holds the connections from an address of a relay to the access of a plugin, until the result is dropped.
    pub(super) fn hold(self: &Arc<Self>, relay: SocketAddr, access: Arc<AssetAccess>) -> HeldCaller {
        self.relayed().insert(relay, access);
        HeldCaller { guard: Arc::clone(self), relay }
    }

    fn relayed(&self) -> MutexGuard<'_, HashMap<SocketAddr, Arc<AssetAccess>>> {
        self.relayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receivers(&self) -> MutexGuard<'_, Vec<Receiver>> {
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn limits(&self) -> EndpointLimits {
        self.limits
    }

    /// Returns those of the connections of a listener that are accepted, and closes the others. Where the accounts of
    /// their peers cannot be determined, accepts them, and warns the user.
    pub(super) async fn admit(
        &self,
        listener: SocketAddr,
        streams: Vec<TcpStream>,
    ) -> Vec<GuardedConnection<TcpStream>> {
        // A connection whose address is not known any more is closed.
        let known = streams.into_iter().filter_map(|stream| Some((stream.peer_addr().ok()?, stream)));
        let (remotes, streams): (Vec<_>, Vec<_>) = known.unzip();
        // The only error is the end of the runtime, which uses no connection any more.
        let Ok(peers) = tokio::task::spawn_blocking(move || peer::peers(listener, &remotes)).await else {
            return Vec::new();
        };
        let Some(peers) = peers else {
            self.report_once(&HostEvent::UnverifiedConnection);
            return streams.into_iter().filter_map(|stream| self.guarded(stream)).collect();
        };
        let is_own = |peer| match peer {
            Peer::Own => true,
            Peer::Foreign { uid } => {
                self.report_once(&HostEvent::ForeignConnection { uid });
                false
            }
            Peer::Closed => false,
        };
        let own = streams.into_iter().zip(peers).filter(|(_, peer)| is_own(*peer));
        own.filter_map(|(stream, _)| self.guarded(stream)).collect()
    }

    /// Returns the permit of a connection to a Unix socket; `None` if it is not accepted, and is to be closed.
    pub(super) fn admit_unix(&self, stream: &UnixStream) -> Option<OwnedSemaphorePermit> {
        match peer::unix_peer(stream) {
            Ok(Peer::Own) => self.permit(),
            Ok(Peer::Foreign { uid }) => {
                self.report_once(&HostEvent::ForeignConnection { uid });
                None
            }
            Ok(Peer::Closed) | Err(_) => None,
        }
    }

    /// Returns a connection that counts as open, and closes it if there are too many.
    fn guarded(&self, stream: TcpStream) -> Option<GuardedConnection<TcpStream>> {
        let permit = self.permit()?;
        // The option only affects speed.
        stream.set_nodelay(true).unwrap_or_default();
        let access = stream.peer_addr().ok().and_then(|address| self.relayed().get(&address).cloned());
        let connection = GuardedConnection::new(stream, permit);
        Some(GuardedConnection { caller: Caller { access, ..connection.caller }, ..connection })
    }

    /// Returns the permit of one more open connection; `None` if there are too many.
    fn permit(&self) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok();
        if permit.is_none() {
            let limit = self.limits.connections;
            self.report_once(&HostEvent::TooManyConnections { limit });
        }
        permit
    }

    fn report_once(&self, event: &HostEvent) {
        let kind = discriminant(event);
        let mut unreported = Vec::new();
        self.receivers().retain_mut(|receiver| {
            let Some(events) = receiver.events.upgrade() else { return false };
            if !receiver.reported.contains(&kind) {
                receiver.reported.push(kind);
                unreported.push(events);
            }
            true
        });
        unreported.iter().for_each(|events| events.emit(event.clone()));
    }
}

impl Default for ConnectionGuard {
    fn default() -> Self {
        Self::new(EndpointLimits::default())
    }
}

impl fmt::Debug for ConnectionGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionGuard")
            .field("limits", &self.limits)
            .field("free", &self.free)
            .finish_non_exhaustive()
    }
}

/// Accepted connection. It counts as open until it is dropped.
#[derive(Debug)]
pub(super) struct GuardedConnection<S> {
    stream: S,
    caller: Caller,
    _permit: OwnedSemaphorePermit,
}

/// Opener of a connection: an extension of each request.
#[derive(Clone, Debug, Default)]
pub(super) struct Caller {
    /// Number of the process, if the system shows it.
    pub(super) process: Option<i32>,
    /// Limits on the assets of a plugin in the sandbox `strict`.
    pub(super) access: Option<Arc<AssetAccess>>,
}

/// Address of a relay whose connections are held to the access of a plugin.
#[derive(Debug)]
pub(super) struct HeldCaller {
    guard: Arc<ConnectionGuard>,
    relay: SocketAddr,
}

impl Drop for HeldCaller {
    fn drop(&mut self) {
        self.guard.relayed().remove(&self.relay);
    }
}

impl<S> GuardedConnection<S> {
    /// Returns a connection that counts as open by its permit.
    pub(super) fn new(stream: S, permit: OwnedSemaphorePermit) -> Self {
        Self { stream, caller: Caller::default(), _permit: permit }
    }

    /// Sets the process that opened the connection.
    pub(super) fn with_process(self, process: Option<i32>) -> Self {
        Self { caller: Caller { process, ..self.caller }, ..self }
    }
}

impl<S> Connected for GuardedConnection<S> {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedConnection<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedConnection<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_file_descriptors_is_kept_for_state_journal_and_plugins() {
        let table = [(None, 1024), (Some(256), 128), (Some(1024), 512), (Some(1_048_576), 1024), (Some(1), 0)];
        for (descriptors, connections) in table {
            assert_eq!(EndpointLimits::for_descriptors(descriptors).connections, connections, "{descriptors:?}");
        }
    }
}
