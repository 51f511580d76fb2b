//! The engine's side of the connection: where log lines go.

use std::sync::OnceLock;
use std::time::Duration;

use pulumi_proto::rpc::engine_client::EngineClient;
use pulumi_proto::rpc::{LogRequest, LogSeverity};
use tonic::transport::{Channel, Endpoint};

/// How long a log line may keep an operation waiting.
const LIMIT: Duration = Duration::from_secs(2);

/// An engine, once its address is known. Lines that cannot be delivered are dropped: nothing fails for want of a log.
#[derive(Default)]
pub(crate) struct Engine(OnceLock<EngineClient<Channel>>);

impl Engine {
    /// Learns the address, `host:port`. The first one counts; arguments, Handshake and Attach all name the same.
    ///
    /// # Errors
    /// What is no address.
    pub(crate) fn learn(&self, address: &str) -> Result<(), tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
        self.0.get_or_init(|| EngineClient::new(endpoint.connect_lazy()));
        Ok(())
    }

    /// For developers.
    pub(crate) async fn debug(&self, urn: &str, message: &str) {
        self.log(LogSeverity::Debug, urn, message).await;
    }

    /// For users.
    pub(crate) async fn info(&self, urn: &str, message: &str) {
        self.log(LogSeverity::Info, urn, message).await;
    }

    async fn log(&self, severity: LogSeverity, urn: &str, message: &str) {
        let Some(client) = self.0.get() else { return };
        let line = LogRequest {
            severity: severity.into(),
            message: message.to_owned(),
            urn: urn.to_owned(),
            ..LogRequest::default()
        };
        let mut client = client.clone();
        tokio::time::timeout(LIMIT, client.log(line)).await.ok();
    }
}
