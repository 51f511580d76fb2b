//! Connections to plugins over the loopback interface.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::Connection;
use crate::peer::{Peer, accepting_peer};
use crate::process::Process;

/// Returns a connection to a port of the loopback interface. It is opened on first use and again after it was closed,
/// but never once the process has exited: another process may listen on the port then. Nothing is sent to a process of
/// another account, except root: a supervisor of containers may listen for the plugin.
pub(super) fn loopback_connection(port: u16, process: &Arc<Process>) -> Connection {
    // Weak: a clone of the connection must not keep the process alive.
    let process = Arc::downgrade(process);
    Connection::new(move || {
        let is_running = process.upgrade().is_some_and(|process| process.exit_status().is_none());
        async move {
            if !is_running {
                return Err(io::Error::from(io::ErrorKind::NotConnected));
            }
            let stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.set_nodelay(true)?;
            let (local, remote) = (stream.local_addr()?, stream.peer_addr()?);
            let peer = tokio::task::spawn_blocking(move || accepting_peer(local, remote)).await?;
            refusal(peer).map_or(Ok(stream), |reason| {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("port {port} {reason}")))
            })
        }
    })
}

/// Returns why a connection is not used. Where the system does not tell the account, it is used.
fn refusal(peer: Option<Peer>) -> Option<String> {
    match peer? {
        Peer::Own | Peer::Foreign { uid: 0 } => None,
        Peer::Foreign { uid } => Some(format!("belongs to the user with the id {uid}, not to the user of sc")),
        Peer::Closed => Some("is not open any more".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_account_and_root_are_called() {
        let table = [
            (None, true),
            (Some(Peer::Own), true),
            (Some(Peer::Foreign { uid: 0 }), true),
            (Some(Peer::Foreign { uid: 1000 }), false),
            (Some(Peer::Closed), false),
        ];
        for (peer, is_used) in table {
            assert_eq!(refusal(peer).is_none(), is_used, "{peer:?}");
        }
    }
}
