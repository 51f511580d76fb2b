//! The services on one listener.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pulumi_proto::plugin_v1::plugin_server::PluginServer;
use pulumi_proto::rpc::resource_provider_server::ResourceProviderServer;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::companion::Companion;
use crate::provider::{Provider, Shared};

/// Largest message, both ways: what all of Pulumi's own plugins take.
const MAX_MESSAGE: usize = 400 * 1024 * 1024;

/// How long answers may take to be sent after the end has been asked for. Engines wait 5 s before they kill (provider
/// protocol, section 1.7).
const GRACE: Duration = Duration::from_secs(4);

/// A plugin process's inside.
#[derive(Default)]
pub struct Plugin(Arc<Shared>);

impl Plugin {
    /// A plugin that logs to an engine, `host:port`. Without one it waits for Handshake or Attach to name it.
    ///
    /// # Errors
    /// What is no address. Nobody is called yet.
    pub fn new(engine_address: Option<&str>) -> Result<Self, tonic::transport::Error> {
        let plugin = Self::default();
        if let Some(address) = engine_address {
            plugin.0.engine.learn(address)?;
        }
        Ok(plugin)
    }
}

/// Serves until `shutdown` is done: operations that run then end early, and their answers are still sent.
///
/// # Errors
/// Those of the transport.
pub async fn serve(
    plugin: Plugin,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let shared = plugin.0;
    let provider = ResourceProviderServer::new(Provider(Arc::clone(&shared)))
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let companion = PluginServer::new(Companion::new(Arc::clone(&shared)))
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
        .add_service(companion)
        // Small answers are not held back to be sent with others.
        .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), shutdown);
    // An engine that hangs must not keep the process alive.
    let too_long = async {
        stopping.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = server => served,
        () = too_long => Ok(()),
    }
}
