//! A socket and its owner, as the system shows them.

use std::net::SocketAddr;

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
    /// No process: the socket is closed. Its requests may still wait in the connection. The system shows user id 0 for
    /// some of these sockets, whichever account opened them.
    Closed,
}

/// Owner of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) uid: u32,
    /// Inode of the socket; 0 if no process has it open.
    pub(super) inode: u64,
}

impl Owner {
    pub(super) fn peer(self) -> Peer {
        match self {
            Self { inode: 0, .. } => Peer::Closed,
            Self { uid, .. } if uid == rustix::process::geteuid().as_raw() => Peer::Own,
            Self { uid, .. } => Peer::Foreign { uid },
        }
    }

    pub(super) fn is_own(self) -> bool {
        self.peer() == Peer::Own
    }
}

/// List of the TCP sockets of this network namespace.
pub(super) trait Sockets {
    /// Returns the owner of the socket that is connected from `local` to `remote`, both IPv4 addresses.
    fn connected(&self, local: SocketAddr, remote: SocketAddr) -> Option<Owner>;

    /// Returns the owner of the socket that accepts connections to an IPv4 address: the one that listens at the most
    /// specific address.
    fn listener(&self, address: SocketAddr) -> Option<Owner>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_socket_has_no_owner_with_any_user_in_the_list() {
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
}
