//! The account at the other end of a loopback connection, from the system's list of sockets, and of a Unix socket.
//!
//! Input: the addresses of a connection. Output: a [`Peer`]. Excluded: the decision about the connection.
//!
//! Linux replies to a query for one socket in microseconds (`queries`). Where it does not, as in some containers, the
//! tables of all sockets in `/proc` are read instead (`proc_net`), which takes milliseconds.

mod open_socket;
mod proc_net;
#[cfg(target_os = "linux")]
mod queries;
mod socket;

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use proc_net::ProcNet;
use socket::{Owner, Sockets};
use tokio::net::UnixStream;

pub(crate) use open_socket::{Listening, listening};
pub(crate) use socket::Peer;

/// Number of times that the tables are read for one reply. The system may skip a socket if others open or close while it
/// writes a table.
const READS: usize = 3;

/// Returns the processes at the other ends of connections that `listener` has accepted, in the order of their addresses.
/// `None` if the system does not show the listener as a socket of this account. Blocks for milliseconds.
pub(crate) fn peers(listener: SocketAddr, remotes: &[SocketAddr]) -> Option<Vec<Peer>> {
    let owners = find(|sockets| {
        let is_own = sockets.listener(listener).is_some_and(Owner::is_own);
        is_own.then(|| remotes.iter().map(|remote| sockets.connected(*remote, listener)).collect())
    })?;
    Some(owners.into_iter().map(peer_of).collect())
}

/// Returns the process at the other end of a connection that this process opened to an IPv4 address of the loopback
/// interface. `local` is the address of this end, `remote` that of the other end. `None` if the system does not show this
/// end as a socket of this account. Blocks for milliseconds.
pub(crate) fn accepting_peer(local: SocketAddr, remote: SocketAddr) -> Option<Peer> {
    let owners = find(|sockets| {
        let is_own = sockets.connected(local, remote).is_some_and(Owner::is_own);
        is_own.then(|| vec![accepting_owner(sockets, local, remote)])
    })?;
    owners.into_iter().map(peer_of).next()
}

/// Returns the owner of the other end. A connection that waits to be accepted has no inode yet: it belongs to the socket
/// that listens.
fn accepting_owner(sockets: &dyn Sockets, local: SocketAddr, remote: SocketAddr) -> Option<Owner> {
    let accepted = sockets.connected(remote, local).filter(|owner| owner.inode != 0);
    accepted.or_else(|| sockets.listener(remote))
}

/// Returns the process that listens at, or has connected to, the other end of a Unix socket. A closed socket is not
/// recognised: the system keeps the account that opened it.
///
/// # Errors
/// Returns an error if the system does not show the account.
pub(crate) fn unix_peer(stream: &UnixStream) -> io::Result<Peer> {
    let uid = stream.peer_cred()?.uid();
    Ok(if uid == rustix::process::geteuid().as_raw() { Peer::Own } else { Peer::Foreign { uid } })
}

/// Returns the number of the process that listens at a Unix socket: that which has called `listen`. `None` if the system does
/// not show it, as that of another container.
///
/// # Errors
/// Returns the error of a connection to the socket.
pub(crate) async fn unix_listener(path: &Path) -> io::Result<Option<i32>> {
    Ok(UnixStream::connect(path).await?.peer_cred()?.pid().filter(|process| *process != 0))
}

fn peer_of(owner: Option<Owner>) -> Peer {
    owner.map_or(Peer::Closed, Owner::peer)
}

/// Returns the owners that `find` finds. It returns `None` for a list of sockets that does not show those of this process.
fn find(find: impl Fn(&dyn Sockets) -> Option<Vec<Option<Owner>>>) -> Option<Vec<Option<Owner>>> {
    #[cfg(target_os = "linux")]
    if let Some(found) = queries::Queries::open().and_then(|queries| find(&queries)) {
        return Some(found);
    }
    let mut found = None;
    for _ in 0..READS {
        found = find(&ProcNet::read()).or(found);
        if found.iter().flatten().all(Option::is_some) && found.is_some() {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn socket(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// Shows: security.md#endpoints-that-plugins-call "because the system does not show the account of such a socket"
    #[test]
    #[cfg(target_os = "linux")]
    fn system_shows_own_sockets_until_they_are_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = listener.local_addr().unwrap();
        let client = TcpStream::connect(ours).unwrap();
        let theirs = client.local_addr().unwrap();
        assert_eq!(accepting_peer(theirs, ours), Some(Peer::Own), "not accepted yet");
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(accepting_peer(theirs, ours), Some(Peer::Own));
        assert_eq!(accepting_peer(socket("127.0.0.1:1"), ours), None, "this process has no such socket");
        let remotes = [theirs, socket("127.0.0.1:1"), theirs];
        assert_eq!(peers(ours, &remotes), Some(vec![Peer::Own, Peer::Closed, Peer::Own]));
        assert_eq!(peers(socket("127.0.0.1:1"), &remotes), None, "this process does not listen there");
        drop(client);
        assert_eq!(peers(ours, &[theirs]), Some(vec![Peer::Closed]));
        drop(accepted);
    }

    #[tokio::test]
    async fn unix_socket_shows_the_account_of_both_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let connected = UnixStream::connect(&path).await.unwrap();
        assert_eq!(unix_peer(&connected).unwrap(), Peer::Own, "not accepted yet");
        let (accepted, _) = listener.accept().await.unwrap();
        assert_eq!(unix_peer(&accepted).unwrap(), Peer::Own);
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(unix_listener(&path).await.unwrap(), Some(own));
        drop(listener);
        assert_eq!(unix_listener(&path).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn queries_and_tables_show_the_same_sockets() {
        let Some(queries) = queries::Queries::open() else {
            eprintln!("SKIPPED: the system replies to no queries for sockets");
            return;
        };
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let ours = SocketAddr::new(socket("127.0.0.1:0").ip(), listener.local_addr().unwrap().port());
            let client = TcpStream::connect(ours).unwrap();
            let theirs = client.local_addr().unwrap();
            let owners = |sockets: &dyn Sockets| {
                [sockets.listener(ours), sockets.connected(theirs, ours), accepting_owner(sockets, theirs, ours)]
            };
            let waiting = owners(&queries);
            assert_eq!(waiting, owners(&ProcNet::read()), "{address}");
            let accepted = listener.accept().unwrap();
            let connected = owners(&queries);
            assert_eq!(connected, owners(&ProcNet::read()), "{address}");
            assert!(waiting.iter().chain(&connected).all(|owner| owner.is_some_and(Owner::is_own)), "{address}");
            assert_ne!(waiting[2], connected[2], "the listener, then the accepted socket");
            drop(accepted);
        }
    }
}
