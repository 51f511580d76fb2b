//! The account at the other end of a loopback connection, from the system's tables of sockets.
//!
//! Input: the addresses of a connection. Output: a [`Peer`]. Excluded: the decision about the connection.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::fs::read_regular;

/// Process at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A process of the account of this process.
    Own,
    /// A process of another account.
    Foreign {
        /// User id of the account.
        uid: u32,
    },
    /// No process: the socket is closed. Its requests may still wait in the connection. The tables show user id 0 for
    /// some of these sockets, whichever account opened them.
    Closed,
}

/// Tables of the TCP sockets of this network namespace: IPv4, and IPv6 with the sockets that use mapped IPv4 addresses.
const SOCKET_FILES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// Maximum size of a table: that of some 400,000 sockets.
const MAX_TABLE_BYTES: u64 = 64 << 20;

/// Number of times that the tables are read for one connection. The system may skip a socket if others open or close
/// while it writes a table.
const READS: usize = 3;

/// Remote address of a socket that is not connected, and its form in the table of IPv6.
const UNCONNECTED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
const UNCONNECTED_V6: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

/// Returns the processes at the other ends of connections that `listener` has accepted, in the order of their addresses.
/// `None` if the tables do not show the listener as a socket of this account, as in a system without tables. Blocks while
/// the system writes the tables, which takes milliseconds, once for all connections.
pub(crate) fn peers(listener: SocketAddr, remotes: &[SocketAddr]) -> Option<Vec<Peer>> {
    let mut missing: HashSet<_> = remotes.iter().copied().collect();
    let (mut own, mut found) = (None, HashMap::new());
    in_tables(|table| {
        for socket in sockets(table) {
            if socket.local == listener && socket.remote == UNCONNECTED {
                own = Some(socket.owner);
            } else if socket.remote == listener && missing.remove(&socket.local) {
                found.insert(socket.local, socket.owner.peer());
            }
        }
        own.filter(|_| missing.is_empty())
    });
    own.filter(|owner| owner.peer() == Peer::Own)?;
    Some(remotes.iter().map(|remote| found.get(remote).copied().unwrap_or(Peer::Closed)).collect())
}

/// Returns the process at the other end of a connection that this process opened to an IPv4 address of the loopback
/// interface. `local` is the address of this end, `remote` that of the other end. `None` if the tables do not show this
/// end as a socket of this account. Blocks while the system writes the tables.
pub(crate) fn accepting_peer(local: SocketAddr, remote: SocketAddr) -> Option<Peer> {
    let (mut own, mut other) = (None, None);
    in_tables(|table| {
        own = own.or_else(|| owner(table, local, remote));
        other = other.or_else(|| accepting_owner(table, local, remote));
        own.and(other)
    });
    own.filter(|owner| owner.peer() == Peer::Own)?;
    Some(other.map_or(Peer::Closed, Owner::peer))
}

/// Returns the owner of the other end in a table. A connection that waits to be accepted has no inode yet: it belongs
/// to the socket that listens at the most specific address.
fn accepting_owner(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<Owner> {
    let accepted = owner(table, remote, local).filter(|owner| owner.inode != 0);
    let listening = |ip| owner(table, SocketAddr::new(ip, remote.port()), UNCONNECTED);
    let any = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    accepted.or_else(|| [remote.ip()].into_iter().chain(any).find_map(listening))
}

/// Returns what is found in the tables of the system.
fn in_tables<T>(mut find: impl FnMut(&str) -> Option<T>) -> Option<T> {
    let read = |path: &str| String::from_utf8(read_regular(Path::new(path), MAX_TABLE_BYTES).ok()?).ok();
    (0..READS).find_map(|_| SOCKET_FILES.iter().filter_map(|path| read(path)).find_map(|table| find(&table)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    uid: u32,
    inode: u64,
}

impl Owner {
    fn peer(self) -> Peer {
        match self {
            Self { inode: 0, .. } => Peer::Closed,
            Self { uid, .. } if uid == rustix::process::geteuid().as_raw() => Peer::Own,
            Self { uid, .. } => Peer::Foreign { uid },
        }
    }
}

/// Socket in a table.
struct Socket {
    local: SocketAddr,
    remote: SocketAddr,
    owner: Owner,
}

/// Returns the owner of the socket with this local and this remote address in a table.
fn owner(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<Owner> {
    sockets(table).find(|socket| (socket.local, socket.remote) == (local, remote)).map(|socket| socket.owner)
}

/// Returns the sockets in a table.
fn sockets(table: &str) -> impl Iterator<Item = Socket> {
    table.lines().skip(1).filter_map(|line| {
        // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
        let mut columns = line.split_ascii_whitespace().skip(1);
        let (local, remote) = (address(columns.next()?)?, address(columns.next()?)?);
        let remote = if remote == UNCONNECTED_V6 { UNCONNECTED } else { remote };
        let mut columns = columns.skip(4);
        let owner = Owner { uid: columns.next()?.parse().ok()?, inode: columns.nth(1)?.parse().ok()? };
        Some(Socket { local, remote, owner })
    })
}

/// Parses an address of a table: 32-bit words in the byte order of the machine, and the port, in hexadecimal. Returns
/// a mapped IPv4 address as IPv4.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let bytes: Vec<[u8; 4]> = (0..ip.len()).step_by(8).map(word).collect::<Option<_>>()?;
    let ip = match bytes.as_flattened() {
        short if short.len() == 4 => IpAddr::from(<[u8; 4]>::try_from(short).ok()?),
        long => IpAddr::from(<[u8; 16]>::try_from(long).ok()?).to_canonical(),
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Lines of a little-endian machine: a listener; a connection of user 1000 to it over mapped addresses; a socket that
    /// its process has closed; a listener at all addresses of user 1001; a connection to it that is not accepted yet; a
    /// connection that user 1002 has accepted.
    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:8F43 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2178 1 0000000000000000
   1: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:8F43 01 00000000:00000000 00:00000000 00000000  1000        0 99 1 0
   2: 0100007F:9C41 0100007F:8F43 05 00000000:00000000 03:00001770 00000000     0        0 0 3 0
   3: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 7 1 0
   4: 0100007F:1F90 0100007F:9C42 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0
   5: 0100007F:8F43 0100007F:9C43 01 00000000:00000000 00:00000000 00000000  1002        0 8 1 0
";

    fn socket(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn owner_is_found_by_both_addresses() {
        let ours = socket("127.0.0.1:36675");
        let table = [
            (ours, socket("0.0.0.0:0"), Some(Owner { uid: 0, inode: 2178 })),
            (socket("127.0.0.1:40000"), ours, Some(Owner { uid: 1000, inode: 99 })),
            (socket("127.0.0.1:40001"), ours, Some(Owner { uid: 0, inode: 0 })),
            (socket("127.0.0.1:40002"), ours, None),
            (socket("127.0.0.1:40000"), socket("127.0.0.1:1"), None),
        ];
        for (local, remote, expected) in table {
            assert_eq!(owner(TABLE, local, remote), expected, "{local} {remote}");
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn connection_belongs_to_who_accepted_it_or_else_to_who_listens() {
        let table = [
            ("127.0.0.1:40003", "127.0.0.1:36675", Some(1002)),
            ("127.0.0.1:40002", "127.0.0.1:8080", Some(1001)),
            ("127.0.0.1:50000", "127.0.0.1:8080", Some(1001)),
            ("127.0.0.1:50000", "127.0.0.1:36675", Some(0)),
            ("127.0.0.1:50000", "127.0.0.1:40000", None),
        ];
        for (local, remote, expected) in table {
            let found = accepting_owner(TABLE, socket(local), socket(remote)).map(|owner| owner.uid);
            assert_eq!(found, expected, "{local} {remote}");
        }
    }

    #[test]
    fn closed_socket_has_no_owner_with_any_user_in_the_table() {
        let own = rustix::process::geteuid().as_raw();
        let table = [
            (Owner { uid: own, inode: 1 }, Peer::Own),
            (Owner { uid: own, inode: 0 }, Peer::Closed),
            (Owner { uid: own + 1, inode: 1 }, Peer::Foreign { uid: own + 1 }),
            (Owner { uid: own + 1, inode: 0 }, Peer::Closed),
        ];
        for (owner, expected) in table {
            assert_eq!(owner.peer(), expected, "{owner:?}");
        }
    }

    #[test]
    fn broken_lines_have_no_owner() {
        let table =
            ["", "x", "h\n 0: 0100007F:1", "h\n 0: zz:1 00:2 01", "h\n 0: 0100007F:0001 0100007F:0002 01 0 0 0 x 0 1"];
        for text in table {
            assert_eq!(owner(text, socket("127.0.0.1:1"), socket("127.0.0.1:2")), None, "{text:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn tables_of_the_system_show_own_sockets_until_they_are_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = listener.local_addr().unwrap();
        let client = TcpStream::connect(ours).unwrap();
        let (accepted, theirs) = listener.accept().unwrap();
        let remotes = [theirs, socket("127.0.0.1:1"), theirs];
        assert_eq!(peers(ours, &remotes), Some(vec![Peer::Own, Peer::Closed, Peer::Own]));
        assert_eq!(peers(socket("127.0.0.1:1"), &remotes), None, "this process does not listen there");
        assert_eq!(accepting_peer(theirs, ours), Some(Peer::Own));
        assert_eq!(accepting_peer(socket("127.0.0.1:1"), ours), None, "this process has no such socket");
        drop(client);
        assert_eq!(peers(ours, &[theirs]), Some(vec![Peer::Closed]));
        drop(accepted);
    }
}
