//! The engine service, which plugins call: `pulumirpc.Engine` (docs/spec/provider-protocol.md#2.1).

use std::io;
use std::sync::{Arc, PoisonError};

use pulumi_proto::rpc::engine_server::{Engine, EngineServer};
use pulumi_proto::rpc::{
    GetRootResourceRequest, GetRootResourceResponse, LogRequest, LogSeverity, RequirePulumiVersionRequest,
    RequirePulumiVersionResponse, SetRootResourceRequest, SetRootResourceResponse, StartDebuggingRequest,
};
use tonic::service::Routes;
use tonic::{Request, Response, Status, async_trait};

use super::attachment::{Attachment, RootResource};
use super::connection_guard::ConnectionGuard;
use super::endpoint::Endpoint;
use super::{HostEvent, LogMessage, Severity, status_service};
use crate::plugin::{PluginVersion, VersionRange};
use crate::provider::grpc::ResourceStatusTokens;

/// Engine and resource status services for one instance of a plugin. Each instance has its own, which identify the plugin of
/// a log message, and serve the run that the instance is attached to.
pub(super) struct EngineServices {
    /// Port of the services. Drop it after the exit of the plugin: a Go provider exits when the engine service ends.
    pub(super) endpoint: Endpoint,
    /// Services, to be served elsewhere, too.
    pub(super) routes: Routes,
    /// Tokens of the calls that may publish views.
    pub(super) status_tokens: Arc<ResourceStatusTokens>,
}

impl EngineServices {
    /// Serves the services at a free port.
    ///
    /// # Errors
    /// Returns an error if the port cannot be opened.
    pub(super) async fn serve(attachment: Arc<Attachment>, guard: Arc<ConnectionGuard>) -> io::Result<Self> {
        let (status_tokens, limits) = (Arc::<ResourceStatusTokens>::default(), guard.limits());
        let service = EngineServer::new(Service(attachment)).max_decoding_message_size(limits.log_request);
        let status = status_service::service(Arc::clone(&status_tokens), limits);
        let routes = Routes::new(service).add_service(status);
        Ok(Self { endpoint: Endpoint::serve(routes.clone(), guard).await?, routes, status_tokens })
    }
}

struct Service(Arc<Attachment>);

impl Service {
    fn root_resource(&self) -> Result<RootResource, Status> {
        self.0.root_resource().ok_or_else(|| Status::failed_precondition("no run uses this plugin"))
    }
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
            urn: Some(request.urn).filter(|urn| !urn.is_empty()),
            stream_id: request.stream_id,
            ephemeral: request.ephemeral,
        };
        self.0.emit(HostEvent::Log { plugin: self.0.plugin().to_owned(), message });
        Ok(Response::new(()))
    }

    async fn get_root_resource(
        &self,
        _: Request<GetRootResourceRequest>,
    ) -> Result<Response<GetRootResourceResponse>, Status> {
        let urn = self.root_resource()?.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Response::new(GetRootResourceResponse { urn }))
    }

    async fn set_root_resource(
        &self,
        request: Request<SetRootResourceRequest>,
    ) -> Result<Response<SetRootResourceResponse>, Status> {
        *self.root_resource()?.lock().unwrap_or_else(PoisonError::into_inner) = request.into_inner().urn;
        Ok(Response::new(SetRootResourceResponse {}))
    }

    async fn start_debugging(&self, _: Request<StartDebuggingRequest>) -> Result<Response<()>, Status> {
        Err(Status::failed_precondition("debugging of plugins is not enabled"))
    }

    async fn require_pulumi_version(
        &self,
        request: Request<RequirePulumiVersionRequest>,
    ) -> Result<Response<RequirePulumiVersionResponse>, Status> {
        let range = request.into_inner().pulumi_version_range;
        if !range.is_empty() {
            let required: VersionRange = range
                .parse()
                .map_err(|error: crate::plugin::PluginValueError| Status::invalid_argument(error.to_string()))?;
            let supported = PluginVersion::of_pulumi();
            if !required.matches(&supported) {
                let message = format!(
                    "plugin {} requires Pulumi {range}, but sc is compatible with Pulumi {supported}",
                    self.0.plugin()
                );
                return Err(Status::failed_precondition(message));
            }
        }
        Ok(Response::new(RequirePulumiVersionResponse {}))
    }
}
