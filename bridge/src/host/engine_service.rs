//! The service that plugins call: `pulumirpc.Engine` (provider protocol, section 2.1).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use pulumi_proto::rpc::engine_server::{Engine, EngineServer};
use pulumi_proto::rpc::{
    GetRootResourceRequest, GetRootResourceResponse, LogRequest, LogSeverity, RequirePulumiVersionRequest,
    RequirePulumiVersionResponse, SetRootResourceRequest, SetRootResourceResponse, StartDebuggingRequest,
};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, async_trait};

use super::{HostEvent, HostEvents, LogMessage, Severity};
use crate::launch::MAX_MESSAGE;
use crate::plugin::{PluginVersion, VersionRange};

/// The URN of the root resource that all plugins of a run share; empty at first.
pub(super) type RootResource = Arc<Mutex<String>>;

/// The service for one instance of a plugin, so that its messages are known to be its own. Ends when dropped: that must
/// come after the plugin's own end, or a Go provider shuts itself down.
#[derive(Debug)]
pub(super) struct EngineEndpoint {
    address: SocketAddr,
    server: AbortHandle,
}

impl EngineEndpoint {
    /// Listens on a free port of the loopback interface.
    pub(super) async fn start(
        plugin: &str,
        root_resource: RootResource,
        events: Arc<dyn HostEvents>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let service = Service { plugin: plugin.to_owned(), root_resource, events };
        let service =
            EngineServer::new(service).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE);
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        #[allow(clippy::disallowed_methods, reason = "owned by the value that is returned, which aborts it")]
        let server = tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
        Ok(Self { address, server: server.abort_handle() })
    }

    /// `host:port`, as plugins get it.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for EngineEndpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

struct Service {
    plugin: String,
    root_resource: RootResource,
    events: Arc<dyn HostEvents>,
}

#[async_trait]
impl Engine for Service {
    async fn log(&self, request: Request<LogRequest>) -> Result<Response<()>, Status> {
        let request = request.into_inner();
        let severity = match LogSeverity::try_from(request.severity) {
            Ok(LogSeverity::Debug) => Severity::Debug,
            Ok(LogSeverity::Info) => Severity::Info,
            Ok(LogSeverity::Warning) => Severity::Warning,
            Ok(LogSeverity::Error) => Severity::Error,
            Err(_) => return Err(Status::invalid_argument(format!("unknown severity {}", request.severity))),
        };
        let message = LogMessage {
            severity,
            text: request.message,
            urn: request.urn,
            stream_id: request.stream_id,
            ephemeral: request.ephemeral,
        };
        self.events.emit(HostEvent::Log { plugin: self.plugin.clone(), message });
        Ok(Response::new(()))
    }

    async fn get_root_resource(
        &self,
        _: Request<GetRootResourceRequest>,
    ) -> Result<Response<GetRootResourceResponse>, Status> {
        let urn = self.root_resource.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Response::new(GetRootResourceResponse { urn }))
    }

    async fn set_root_resource(
        &self,
        request: Request<SetRootResourceRequest>,
    ) -> Result<Response<SetRootResourceResponse>, Status> {
        *self.root_resource.lock().unwrap_or_else(PoisonError::into_inner) = request.into_inner().urn;
        Ok(Response::new(SetRootResourceResponse {}))
    }

    async fn start_debugging(&self, _: Request<StartDebuggingRequest>) -> Result<Response<()>, Status> {
        Err(Status::failed_precondition("debugging of plugins is not on"))
    }

    async fn require_pulumi_version(
        &self,
        request: Request<RequirePulumiVersionRequest>,
    ) -> Result<Response<RequirePulumiVersionResponse>, Status> {
        let range = request.into_inner().pulumi_version_range;
        if !range.is_empty() {
            let wanted: VersionRange = range
                .parse()
                .map_err(|error: crate::plugin::PluginValueError| Status::invalid_argument(error.to_string()))?;
            let claimed = PluginVersion::of_pulumi();
            if !wanted.matches(&claimed) {
                let message = format!("plugin {} needs Pulumi {range}, and this is like Pulumi {claimed}", self.plugin);
                return Err(Status::failed_precondition(message));
            }
        }
        Ok(Response::new(RequirePulumiVersionResponse {}))
    }
}
