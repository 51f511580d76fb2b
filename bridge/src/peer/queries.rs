//! Queries for single sockets, which Linux replies to over a netlink socket (`sock_diag(7)`).

use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::SOCK_DIAG;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, recv, send, socket_with};

use super::socket::{Owner, Sockets};

/// Netlink socket for queries.
pub(super) struct Queries(OwnedFd);

/// Type of a query and of its reply (SOCK_DIAG_BY_FAMILY). An error has another type (NLMSG_ERROR).
const BY_FAMILY: u16 = 20;
/// Flag of a query (NLM_F_REQUEST).
const REQUEST: u16 = 1;
/// State of a socket that listens (TCP_LISTEN).
const LISTEN: u8 = 10;
/// Length of a query: a netlink header and an `inet_diag_req_v2`.
const QUERY: usize = 72;
/// Length of a reply without attributes: a netlink header and an `inet_diag_msg`.
const REPLY: usize = 88;
/// Limit on the wait for a reply. The system replies while the query is sent.
const REPLY_LIMIT: Duration = Duration::from_secs(1);

impl Queries {
    /// Opens the netlink socket. Returns `None` if the system does not allow it.
    pub(super) fn open() -> Option<Self> {
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(SOCK_DIAG)).ok()?;
        set_socket_timeout(&socket, Timeout::Recv, Some(REPLY_LIMIT)).ok()?;
        Some(Self(socket))
    }

    /// Returns the reply to a query for the socket with these addresses, or for one that listens at the local address.
    fn reply(&self, local: SocketAddr, remote: SocketAddr) -> Option<Reply> {
        let (SocketAddr::V4(local), SocketAddr::V4(remote)) = (local, remote) else { return None };
        send(&self.0, &query(local, remote), SendFlags::empty()).ok()?;
        let mut buffer = [0; 1024];
        let (length, _) = recv(&self.0, &mut buffer, RecvFlags::empty()).ok()?;
        Reply::parse(buffer.get(..length)?)
    }
}

impl Sockets for Queries {
    fn connected(&self, local: SocketAddr, remote: SocketAddr) -> Option<Owner> {
        let found = self.reply(local, remote)?;
        (found.state != LISTEN && found.ports == (local.port(), remote.port())).then_some(found.owner)
    }

    fn listener(&self, address: SocketAddr) -> Option<Owner> {
        let found = self.reply(address, SocketAddr::from(([0; 4], 0)))?;
        (found.state == LISTEN && found.ports == (address.port(), 0)).then_some(found.owner)
    }
}

/// Encodes a query. Numbers of netlink are in the byte order of the machine, addresses and ports in that of the network.
fn query(local: SocketAddrV4, remote: SocketAddrV4) -> Vec<u8> {
    let mut query = Vec::with_capacity(QUERY);
    query.extend((QUERY as u32).to_ne_bytes());
    query.extend(BY_FAMILY.to_ne_bytes());
    query.extend(REQUEST.to_ne_bytes());
    // Sequence number and port id: there is one query at a time.
    query.extend([0; 8]);
    // Family, protocol, no extensions, padding, all states.
    let protocol = u32::from(ipproto::TCP.as_raw()) as u8;
    query.extend([AddressFamily::INET.as_raw() as u8, protocol, 0, 0]);
    query.extend(u32::MAX.to_ne_bytes());
    query.extend(local.port().to_be_bytes());
    query.extend(remote.port().to_be_bytes());
    for address in [local.ip(), remote.ip()] {
        query.extend(address.octets());
        query.extend([0; 12]);
    }
    // Any interface, and no cookie (INET_DIAG_NOCOOKIE).
    query.extend([0; 4]);
    query.extend([0xff; 8]);
    query
}

/// Reply to a query.
#[derive(Debug, PartialEq, Eq)]
struct Reply {
    state: u8,
    /// Local and remote port.
    ports: (u16, u16),
    owner: Owner,
}

impl Reply {
    /// Parses a reply. Returns `None` for an error, such as that no socket was found.
    fn parse(message: &[u8]) -> Option<Self> {
        let message: &[u8; REPLY] = message.first_chunk()?;
        let kind = u16::from_ne_bytes([message[4], message[5]]);
        let port = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
        let number = |at: usize| Some(u32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?));
        (kind == BY_FAMILY).then_some(())?;
        let owner = Owner { uid: number(80)?, inode: number(84)?.into() };
        Some(Self { state: message[17], ports: (port(20), port(22)), owner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_without_a_socket_is_none() {
        let mut reply = vec![0; REPLY];
        reply[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        reply[80] = 1;
        assert!(Reply::parse(&reply).is_some());
        assert_eq!(Reply::parse(&reply[..REPLY - 1]), None);
        reply[4] = 2;
        assert_eq!(Reply::parse(&reply), None);
    }
}
