//! Ports of an instance at which its plugin reaches the resource monitors of the run that uses it. The sandbox `strict` lets a
//! plugin connect only to ports that are known before its start, and a run opens its monitor later.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::stream::{Stream, StreamExt as _};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::assets::AssetAccess;
use super::connection_guard::{ConnectionGuard, GuardedConnection, HeldCaller};
use super::endpoint::connections;

/// Number of ports of an instance. Each monitor gets the next one: a client that keeps its connection to an address, such as
/// that of Node, would make the first call of a phase on a connection to the monitor of the phase before.
const PORTS: usize = 8;

/// Open ports, each of which forwards to the monitor of one phase of a run. Dropping it closes the ports and their
/// connections.
#[derive(Debug)]
pub(super) struct MonitorRelay {
    ports: Vec<Port>,
    /// Number of monitors so far: the last one has the port before.
    monitors: Mutex<usize>,
    access: Access,
}

/// Limits on the assets of the plugin, known once its process runs. Without them, no asset is let through.
type Access = Arc<OnceLock<Arc<AssetAccess>>>;

#[derive(Debug)]
struct Port {
    address: SocketAddr,
    monitor: watch::Sender<Option<String>>,
    _task: JoinSet<()>,
}

impl MonitorRelay {
    /// Opens free ports of the loopback interface, which close all connections until there is a monitor. `guard` decides
    /// which connections are accepted.
    pub(super) async fn open(guard: Arc<ConnectionGuard>) -> io::Result<Self> {
        let (mut ports, access) = (Vec::with_capacity(PORTS), Access::default());
        for _ in 0..PORTS {
            ports.push(Port::open(Arc::clone(&guard), Arc::clone(&access)).await?);
        }
        Ok(Self { ports, monitors: Mutex::new(0), access })
    }

    /// Holds the plugin to this access from now on.
    pub(super) fn restrict(&self, access: AssetAccess) {
        self.access.set(Arc::new(access)).unwrap_or_default();
    }

    pub(super) fn ports(&self) -> impl Iterator<Item = u16> {
        self.ports.iter().map(|port| port.address.port())
    }

    /// Forwards a port to the monitor at an address, unless the last one is forwarded to it. Returns the address of the port.
    pub(super) fn forward_to(&self, monitor: &str) -> String {
        let mut monitors = self.monitors.lock().unwrap_or_else(PoisonError::into_inner);
        let last = monitors.checked_sub(1).map(|last| &self.ports[last % PORTS]);
        if let Some(last) = last.filter(|last| last.monitor.borrow().as_deref() == Some(monitor)) {
            return last.address.to_string();
        }
        let next = &self.ports[*monitors % PORTS];
        *monitors += 1;
        // Connections to an earlier monitor are closed.
        next.monitor.send_replace(Some(monitor.to_owned()));
        next.address.to_string()
    }
}

impl Port {
    async fn open(guard: Arc<ConnectionGuard>, access: Access) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (monitor, target) = watch::channel(None);
        let mut task = JoinSet::new();
        let open = connections(listener, address, Arc::clone(&guard));
        task.spawn(pass_on_all(open, target, guard, access));
        Ok(Self { address, monitor, _task: task })
    }
}

async fn pass_on_all(
    connections: impl Stream<Item = io::Result<GuardedConnection<TcpStream>>>,
    target: watch::Receiver<Option<String>>,
    guard: Arc<ConnectionGuard>,
    access: Access,
) {
    let mut connections = std::pin::pin!(connections);
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            next = connections.next() => match next {
                Some(Ok(connection)) => {
                    let access = access.get().cloned().unwrap_or_default();
                    drop(open.spawn(pass_on(connection, target.clone(), Arc::clone(&guard), access)));
                }
                Some(Err(_)) => {}
                None => return,
            },
            Some(_) = open.join_next() => {}
        }
    }
}

/// Passes the bytes of a connection on in both directions, until a side ends or the port is forwarded to another monitor.
async fn pass_on(
    mut plugin: GuardedConnection<TcpStream>,
    mut target: watch::Receiver<Option<String>>,
    guard: Arc<ConnectionGuard>,
    access: Arc<AssetAccess>,
) {
    let address = target.borrow_and_update().clone();
    let Some(address) = address else { return };
    let Ok((mut monitor, _held)) = connect_as(&address, &guard, access).await else { return };
    // The option only affects speed.
    monitor.set_nodelay(true).unwrap_or_default();
    tokio::select! {
        _ = copy_bidirectional(&mut plugin, &mut monitor) => {}
        _ = target.changed() => {}
    }
}

/// Connects to a monitor, which holds the connection to the access of the plugin.
async fn connect_as(
    monitor: &str,
    guard: &Arc<ConnectionGuard>,
    access: Arc<AssetAccess>,
) -> io::Result<(TcpStream, HeldCaller)> {
    let monitor = monitor.parse().map_err(io::Error::other)?;
    let socket = TcpSocket::new_v4()?;
    // The monitor looks the address up when it accepts the connection, which may be before `connect` returns.
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let held = guard.hold(socket.local_addr()?, access);
    Ok((socket.connect(monitor).await?, held))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tonic::transport::server::Connected as _;

    use super::*;

    /// Server that replies to each byte with its own.
    async fn server(own: u8) -> (String, JoinSet<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                open.spawn(async move {
                    while stream.read_u8().await.is_ok() {
                        stream.write_u8(own).await.unwrap();
                    }
                });
            }
        });
        (address, task)
    }

    async fn reply(stream: &mut TcpStream) -> Option<u8> {
        stream.write_u8(0).await.ok()?;
        stream.read_u8().await.ok()
    }

    /// Shows: hosting.md#sandbox "and to the ports that `sc` has opened for it"
    #[tokio::test]
    async fn each_monitor_has_a_port_of_its_own_until_all_are_used() {
        let relay = MonitorRelay::open(Arc::default()).await.unwrap();
        let unused = SocketAddr::from((Ipv4Addr::LOCALHOST, relay.ports().next().unwrap()));
        assert_eq!(reply(&mut TcpStream::connect(unused).await.unwrap()).await, None, "no monitor yet");
        let ((first, _first), (second, _second)) = (server(1).await, server(2).await);
        let address = relay.forward_to(&first);
        let mut stream = TcpStream::connect(&address).await.unwrap();
        assert_eq!(reply(&mut stream).await, Some(1));
        assert_eq!(relay.forward_to(&first), address);
        let other = relay.forward_to(&second);
        assert_ne!(other, address);
        assert_eq!(reply(&mut TcpStream::connect(&other).await.unwrap()).await, Some(2));
        assert_eq!(reply(&mut stream).await, Some(1), "connections to the monitor before are kept");
        drop(relay);
        assert_eq!(stream.read_u8().await.ok(), None);
    }

    /// Shows: hosting.md#sandbox "and to the ports that `sc` has opened for it"
    #[tokio::test]
    async fn port_that_is_used_again_closes_its_connections() {
        let relay = MonitorRelay::open(Arc::default()).await.unwrap();
        let (first, _first) = server(1).await;
        let address = relay.forward_to(&first);
        let mut stream = TcpStream::connect(&address).await.unwrap();
        assert_eq!(reply(&mut stream).await, Some(1));
        let others: Vec<String> = (1..=PORTS).map(|other| relay.forward_to(&format!("127.0.0.1:{other}"))).collect();
        assert_eq!(others.last(), Some(&address));
        assert_eq!(stream.read_u8().await.ok(), None);
    }

    /// The monitor sees who sends an asset by the connection of the relay.
    ///
    /// Shows: hosting.md#assets-of-strict-plugins "Those of a component with `strict` are refused, also with a hash,
    ///   unless the component may read them itself"
    #[tokio::test]
    async fn connection_of_a_relay_is_held_to_the_access_of_its_plugin() {
        let guard: Arc<ConnectionGuard> = Arc::default();
        let relay = MonitorRelay::open(Arc::clone(&guard)).await.unwrap();
        relay.restrict(AssetAccess::default());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let monitor = listener.local_addr().unwrap();
        let mut accepted = Box::pin(connections(listener, monitor, guard));
        let address = relay.forward_to(&monitor.to_string());
        for (address, expected) in [(address, true), (monitor.to_string(), false)] {
            let _stream = TcpStream::connect(address).await.unwrap();
            let connection = accepted.next().await.unwrap().unwrap();
            assert_eq!(connection.connect_info().access.is_some(), expected);
        }
    }
}
