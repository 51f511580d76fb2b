//! Connections to plugins over the loopback interface.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::Connection;
use crate::process::Process;

/// Returns a connection to a port of the loopback interface. It is opened on first use and again after it was closed,
/// but never once the process has exited: another process may listen on the port then.
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
            Ok(stream)
        }
    })
}
