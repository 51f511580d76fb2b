//! Server of all services on one listener.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pulumi_proto::plugin_v1::plugin_server::PluginServer;
use pulumi_proto::rpc::resource_provider_server::ResourceProviderServer;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::plugin_service::PluginService;
use crate::provider::{Provider, Shared};

/// Maximum size of a message in both directions, the limit of Pulumi's own plugins.
const MAX_MESSAGE: usize = 400 * 1024 * 1024;

/// Time limit for sending responses after the shutdown has started. Engines kill the process after 5 s
/// (docs/spec/provider-protocol.md#1.7).
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(4);

/// Plugin, without its process.
#[derive(Default)]
pub struct Plugin(Arc<Shared>);

impl Plugin {
    /// Creates a plugin that logs to the engine at `host:port`. Without an address, Handshake or Attach sets it.
    ///
    /// # Errors
    /// An error for an invalid address. The engine is not called yet.
    pub fn new(engine_address: Option<&str>) -> Result<Self, tonic::transport::Error> {
        let plugin = Self::default();
        if let Some(address) = engine_address {
            plugin.0.engine.set_address(address)?;
        }
        Ok(plugin)
    }
}

/// Serves until `shutdown` is done. Running operations are then cancelled, and their responses are still sent.
///
/// # Errors
/// Errors of the transport.
pub async fn serve(
    plugin: Plugin,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let shared = plugin.0;
    let provider = ResourceProviderServer::new(Provider(Arc::clone(&shared)))
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let plugin_service = PluginServer::new(PluginService::new(Arc::clone(&shared)))
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let stopping = CancellationToken::new();
    let shutdown = async {
        shutdown.await;
        shared.cancelled.cancel();
        stopping.cancel();
    };
    let server = Server::builder()
        .add_service(provider)
        .add_service(plugin_service)
        // Sends small responses without delay.
        .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), shutdown);
    // The process must end even if the engine does not close its connection.
    let timed_out = async {
        stopping.cancelled().await;
        tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
    };
    tokio::select! {
        served = server => served,
        () = timed_out => Ok(()),
    }
}
