//! Client of the engine, for log messages.

use std::sync::OnceLock;
use std::time::Duration;

use pulumi_proto::rpc::engine_client::EngineClient;
use pulumi_proto::rpc::{LogRequest, LogSeverity};
use tonic::transport::{Channel, Endpoint};

/// Time limit for sending a log message.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Client of the engine, created when its address is set. Log messages that cannot be sent are dropped.
#[derive(Default)]
pub(crate) struct Engine(OnceLock<EngineClient<Channel>>);

impl Engine {
    /// Sets the address, `host:port`. Later calls have no effect: arguments, Handshake and Attach have the same
    /// address.
    ///
    /// # Errors
    /// An error for an invalid address.
    pub(crate) fn set_address(&self, address: &str) -> Result<(), tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
        self.0.get_or_init(|| EngineClient::new(endpoint.connect_lazy()));
        Ok(())
    }

    /// Logs a message for developers.
    pub(crate) async fn debug(&self, urn: &str, message: &str) {
        self.log(LogSeverity::Debug, urn, message).await;
    }

    /// Logs a message for users.
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
        tokio::time::timeout(TIMEOUT, client.log(line)).await.ok();
    }
}
