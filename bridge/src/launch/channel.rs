//! The connection to a plugin on this machine.

use std::io;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::process::Process;

/// A channel to a port of the loopback interface. It connects when it is first used, again if the connection was
/// closed, and never once the process has ended: whoever gets the port then is a stranger.
pub(super) fn channel(port: u16, process: &Arc<Process>) -> Channel {
    // Weak: a channel that somebody kept must not keep a process alive.
    let process = Arc::downgrade(process);
    let connector = tower::service_fn(move |_: Uri| {
        let lives = process.upgrade().is_some_and(|process| process.exit().is_none());
        async move {
            if !lives {
                return Err(io::Error::from(io::ErrorKind::NotConnected));
            }
            let stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        }
    });
    endpoint("http://127.0.0.1").connect_with_connector_lazy(connector)
}

/// The settings of a connection to a plugin, whatever it runs over.
///
/// The windows hold several ordinary messages: a call never waits for the far side to allow more. Error details, with
/// the whole state of a resource, come as one header: hyper's own limit of 16 KiB would lose them.
pub fn endpoint(uri: &'static str) -> Endpoint {
    const MIB: u32 = 1024 * 1024;
    Endpoint::from_static(uri)
        .tcp_nodelay(true)
        .initial_stream_window_size(4 * MIB)
        .initial_connection_window_size(64 * MIB)
        .http2_max_header_list_size(64 * MIB)
}
