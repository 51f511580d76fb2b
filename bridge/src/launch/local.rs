//! The connection to a plugin on this machine.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::Connection;
use crate::process::Process;

/// A connection to a port of the loopback interface. It is made when it is first used, again if it was closed, and
/// never once the process has ended: whoever gets the port then is a stranger.
pub(super) fn local(port: u16, process: &Arc<Process>) -> Connection {
    // Weak: a connection that somebody kept must not keep a process alive.
    let process = Arc::downgrade(process);
    Connection::new(move || {
        let lives = process.upgrade().is_some_and(|process| process.exit().is_none());
        async move {
            if !lives {
                return Err(io::Error::from(io::ErrorKind::NotConnected));
            }
            let stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        }
    })
}
