//! A provider as a plugin process: prints its port and serves until it is told to end.

use std::convert::Infallible;
use std::io::Write as _;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// No port, or a standard output that is gone.
pub async fn serve<S>(service: S) -> Result<(), Box<dyn std::error::Error>>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serve = tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming);
    // Not a graceful end: a call that hangs would hold it up for ever.
    tokio::select! {
        served = serve => served?,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
