//! The tables of all sockets in `/proc`.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::socket::{Owner, Sockets};
use crate::fs::read_regular;

/// Tables of IPv4, and of IPv6 with the sockets that use mapped IPv4 addresses.
const FILES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// Maximum size of a table: that of some 400,000 sockets.
const MAX_BYTES: u64 = 64 << 20;

/// Sockets of the tables, by local and remote address. A socket that listens has the remote address `0.0.0.0:0` or
/// `[::]:0`.
#[derive(Default)]
pub(super) struct ProcNet(HashMap<(SocketAddr, SocketAddr), Owner>);

impl ProcNet {
    /// Reads the tables. Without a table that can be read, the list is empty.
    pub(super) fn read() -> Self {
        let mut sockets = Self::default();
        for file in FILES {
            let text = read_regular(Path::new(file), MAX_BYTES).ok().and_then(|text| String::from_utf8(text).ok());
            sockets.add(&text.unwrap_or_default());
        }
        sockets
    }

    fn add(&mut self, table: &str) {
        for line in table.lines().skip(1) {
            if let Some((addresses, owner)) = socket(line) {
                self.0.entry(addresses).or_insert(owner);
            }
        }
    }
}

impl Sockets for ProcNet {
    fn connected(&self, local: SocketAddr, remote: SocketAddr) -> Option<Owner> {
        self.0.get(&(local, remote)).copied()
    }

    fn listener(&self, address: SocketAddr) -> Option<Owner> {
        let (any, any_v6) = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        [(address.ip(), any), (any, any), (any_v6, any_v6)].into_iter().find_map(|(ip, unconnected)| {
            self.connected(SocketAddr::new(ip, address.port()), SocketAddr::new(unconnected, 0))
        })
    }
}

/// Parses a line of a table: the addresses and the owner of a socket.
fn socket(line: &str) -> Option<((SocketAddr, SocketAddr), Owner)> {
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
    let mut columns = line.split_ascii_whitespace().skip(1);
    let addresses = (address(columns.next()?)?, address(columns.next()?)?);
    let mut columns = columns.skip(4);
    Some((addresses, Owner { uid: columns.next()?.parse().ok()?, inode: columns.nth(1)?.parse().ok()? }))
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
    use super::*;

    /// Lines of a little-endian machine: a listener; a connection of user 1000 to it over mapped addresses; a socket that
    /// its process has closed; a listener at all addresses of user 1001; a connection to it that is not accepted yet.
    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:8F43 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2178 1 0000000000000000
   1: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:8F43 01 00000000:00000000 00:00000000 00000000  1000        0 99 1 0
   2: 0100007F:9C41 0100007F:8F43 05 00000000:00000000 03:00001770 00000000     0        0 0 3 0
   3: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 7 1 0
   4: 0100007F:1F90 0100007F:9C42 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0
";

    fn parsed(text: &str) -> ProcNet {
        let mut sockets = ProcNet::default();
        sockets.add(text);
        sockets
    }

    fn at(port: u16) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn owner_is_found_by_both_addresses() {
        let sockets = parsed(TABLE);
        let cases = [
            (40000, 36675, Some(Owner { uid: 1000, inode: 99 })),
            (40001, 36675, Some(Owner { uid: 0, inode: 0 })),
            (8080, 40002, Some(Owner { uid: 0, inode: 0 })),
            (40002, 36675, None),
            (40000, 1, None),
        ];
        for (local, remote, expected) in cases {
            assert_eq!(sockets.connected(at(local), at(remote)), expected, "{local} {remote}");
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn listener_is_found_at_its_address_and_at_all_addresses() {
        let sockets = parsed(TABLE);
        let cases =
            [(36675, Some(Owner { uid: 0, inode: 2178 })), (8080, Some(Owner { uid: 1001, inode: 7 })), (1, None)];
        for (port, expected) in cases {
            assert_eq!(sockets.listener(at(port)), expected, "{port}");
        }
    }

    #[test]
    fn invalid_lines_have_no_owner() {
        let invalid =
            ["", "x", "h\n 0: 0100007F:1", "h\n 0: zz:1 00:2 01", "h\n 0: 0100007F:0001 0100007F:0002 01 0 0 0 x 0 1"];
        for text in invalid {
            assert!(parsed(text).0.is_empty(), "{text:?}");
        }
    }
}
