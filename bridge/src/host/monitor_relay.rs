//! Port of an instance at which its plugin reaches the resource monitor of the run that uses it. The sandbox `strict` lets a
//! plugin connect only to ports that are known before its start, and a run opens its monitor later.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures_util::stream::{Stream, StreamExt as _};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::connection_guard::{ConnectionGuard, GuardedConnection};
use super::endpoint::connections;

/// Open port that leads to the monitor of a run. Dropping it closes the port and its connections.
#[derive(Debug)]
pub(super) struct MonitorRelay {
    address: SocketAddr,
    monitor: watch::Sender<Option<String>>,
    _task: JoinSet<()>,
}

impl MonitorRelay {
    /// Opens a free port of the loopback interface, which leads nowhere yet. `guard` decides which connections are
    /// accepted.
    pub(super) async fn open(guard: Arc<ConnectionGuard>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (monitor, target) = watch::channel(None);
        let mut task = JoinSet::new();
        task.spawn(pass_on_all(connections(listener, address, guard), target));
        Ok(Self { address, monitor, _task: task })
    }

    /// Returns the number of the port.
    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Lets the port lead to the monitor at an address. Closes the connections that lead to another one. Returns the
    /// address of the port.
    pub(super) fn lead_to(&self, monitor: &str) -> String {
        self.monitor.send_if_modified(|known| {
            let is_other = known.as_deref() != Some(monitor);
            if is_other {
                *known = Some(monitor.to_owned());
            }
            is_other
        });
        self.address.to_string()
    }
}

async fn pass_on_all(
    connections: impl Stream<Item = io::Result<GuardedConnection<TcpStream>>>,
    target: watch::Receiver<Option<String>>,
) {
    let mut connections = std::pin::pin!(connections);
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            next = connections.next() => match next {
                Some(Ok(connection)) => drop(open.spawn(pass_on(connection, target.clone()))),
                Some(Err(_)) => {}
                None => return,
            },
            Some(_) = open.join_next() => {}
        }
    }
}

/// Passes the bytes of a connection on in both directions, until a side ends or the port leads to another monitor.
async fn pass_on(mut plugin: GuardedConnection<TcpStream>, mut target: watch::Receiver<Option<String>>) {
    let address = target.borrow_and_update().clone();
    let Some(address) = address else { return };
    let Ok(mut monitor) = TcpStream::connect(address).await else { return };
    // The option only affects speed.
    monitor.set_nodelay(true).unwrap_or_default();
    tokio::select! {
        _ = copy_bidirectional(&mut plugin, &mut monitor) => {}
        _ = target.changed() => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

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

    #[tokio::test]
    async fn port_leads_to_one_monitor_after_the_other() {
        let relay = MonitorRelay::open(Arc::default()).await.unwrap();
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port()));
        assert_eq!(reply(&mut connect().await.unwrap()).await, None, "no monitor yet");
        let ((first, _first), (second, _second)) = (server(1).await, server(2).await);
        let address = relay.lead_to(&first);
        let mut stream = TcpStream::connect(&address).await.unwrap();
        assert_eq!(reply(&mut stream).await, Some(1));
        assert_eq!(relay.lead_to(&first), address);
        assert_eq!(reply(&mut stream).await, Some(1), "the same monitor keeps its connections");
        relay.lead_to(&second);
        assert_eq!(stream.read_u8().await.ok(), None, "connections to the monitor before are closed");
        assert_eq!(reply(&mut connect().await.unwrap()).await, Some(2));
        let mut last = connect().await.unwrap();
        assert_eq!(reply(&mut last).await, Some(2));
        drop(relay);
        assert_eq!(last.read_u8().await.ok(), None);
    }
}
