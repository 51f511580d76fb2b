//! Connections to the sockets of plugins: Unix sockets, and ports of the loopback interface.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::Connection;
use super::connection::BoxedStream;
use super::tls::MutualTls;
use crate::peer::{Peer, accepting_peer, unix_peer};
use crate::process::Process;

/// Address at which a plugin listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginAddress {
    /// Absolute path of a Unix socket.
    Unix(PathBuf),
    /// Address of the loopback interface.
    Tcp(SocketAddr),
}

impl fmt::Display for PluginAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}

/// Returns a connection to a socket of a plugin, encrypted if `tls` is given. It is opened on first use and again after
/// it was closed, but never once the process has exited: another process may listen at the address then. Nothing is sent
/// to a process of another account, except root: a supervisor of containers may listen for the plugin.
pub fn plugin_connection(address: PluginAddress, process: &Arc<Process>, tls: Option<MutualTls>) -> Connection {
    // Weak: a clone of the connection must not keep the process alive.
    let process = Arc::downgrade(process);
    Connection::of_boxed(move || {
        let is_running = process.upgrade().is_some_and(|process| process.exit_status().is_none());
        let (address, tls) = (address.clone(), tls.clone());
        async move { if is_running { dial(&address, tls.as_ref()).await } else { Err(io::ErrorKind::NotConnected.into()) } }
    })
}

/// Returns a plain-text connection to a socket of a plugin that the host has not started, see [`plugin_connection`].
pub fn attached_connection(address: PluginAddress) -> Connection {
    Connection::of_boxed(move || {
        let address = address.clone();
        async move { dial(&address, None).await }
    })
}

/// Opens a connection to a socket of a plugin, encrypted if `tls` is given.
///
/// # Errors
/// Returns an error if the socket accepts no connection, belongs to another account than that of this process or root,
/// or does not prove to be the plugin's.
pub(super) async fn dial(address: &PluginAddress, tls: Option<&MutualTls>) -> io::Result<BoxedStream> {
    match address {
        PluginAddress::Unix(path) => {
            let stream = UnixStream::connect(path).await?;
            check(Some(unix_peer(&stream)?), || format!("socket {}", path.display()))?;
            encrypted(stream, tls).await
        }
        PluginAddress::Tcp(address) => {
            let stream = match TcpStream::connect(address).await {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    return Err(refused(*address, error).await);
                }
                stream => stream?,
            };
            stream.set_nodelay(true)?;
            let (local, remote) = (stream.local_addr()?, stream.peer_addr()?);
            let peer = tokio::task::spawn_blocking(move || accepting_peer(local, remote)).await?;
            check(peer, || format!("port {}", address.port()))?;
            encrypted(stream, tls).await
        }
    }
}

/// Returns the error of an address that refuses connections. Names the IPv6 address if a process listens there: it is not
/// called, because whoever listens at the same port of another address may be another program.
async fn refused(address: SocketAddr, error: io::Error) -> io::Error {
    let IpAddr::V4(Ipv4Addr::LOCALHOST) = address.ip() else { return error };
    if !listens_at_ipv6(address.port()).await {
        return error;
    }
    let text = format!(
        "connection refused: nothing listens at {address}, to which sc connects as Pulumi does, but [::1]:{} accepts connections; \
         the plugin has to listen at 127.0.0.1",
        address.port()
    );
    io::Error::new(io::ErrorKind::ConnectionRefused, text)
}

/// Returns whether a port of the IPv6 loopback interface accepts connections.
pub(super) async fn listens_at_ipv6(port: u16) -> bool {
    TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.is_ok()
}

async fn encrypted<S>(stream: S, tls: Option<&MutualTls>) -> io::Result<BoxedStream>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    Ok(match tls {
        Some(tls) => Box::new(tls.connect(stream).await?),
        None => Box::new(stream),
    })
}

fn check(peer: Option<Peer>, name: impl FnOnce() -> String) -> io::Result<()> {
    match refusal(peer) {
        None => Ok(()),
        Some(reason) => Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {reason}", name()))),
    }
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

    #[tokio::test]
    async fn port_at_which_a_process_listens_with_ipv6_only_is_named() {
        let Ok(listener) = std::net::TcpListener::bind("[::1]:0") else {
            eprintln!("SKIPPED: there is no IPv6");
            return;
        };
        let port = listener.local_addr().unwrap().port();
        let address = PluginAddress::Tcp((Ipv4Addr::LOCALHOST, port).into());
        let error = dial(&address, None).await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let text = error.to_string();
        assert!(text.contains(&format!("nothing listens at 127.0.0.1:{port}")), "{text}");
        assert!(text.contains(&format!("[::1]:{port} accepts connections")), "{text}");
        drop(listener);
        assert!(!dial(&address, None).await.err().unwrap().to_string().contains("::1"));
    }

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
