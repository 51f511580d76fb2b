//! The scripted provider as a plugin process.
//!
//! `REC_DIR` names the folder with `script.json`, `calls.jsonl` and `ids.json`; without it the default rules hold and
//! nothing is recorded. Prints its port and serves until SIGTERM or SIGINT. Arguments are accepted and ignored.

use std::io::Write as _;
use std::sync::Arc;

use tests::rec::{Book, FolderBook, NoBook, service};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tonic::transport::server::TcpIncoming;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let book: Arc<dyn Book> = match std::env::var_os("REC_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => Arc::new(FolderBook::new(folder)),
        None => Arc::new(NoBook),
    };
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serve = tonic::transport::Server::builder().add_service(service(book)).serve_with_incoming(incoming);
    // Not a graceful end: a call that hangs would hold it up for ever.
    tokio::select! {
        served = serve => served?,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
