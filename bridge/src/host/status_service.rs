//! The service that receives view steps: `pulumirpc.ResourceStatus` (docs/spec/provider-protocol.md#2.2).

use std::sync::Arc;

use pulumi_proto::rpc::resource_status_server::{ResourceStatus, ResourceStatusServer};
use pulumi_proto::rpc::{PublishViewStepsRequest, PublishViewStepsResponse};
use tonic::{Request, Response, Status, async_trait};

use super::connection_guard::EndpointLimits;
use crate::provider::grpc::ResourceStatusTokens;

/// Returns the service, which passes published view steps to `tokens`.
pub(super) fn service(
    tokens: Arc<ResourceStatusTokens>,
    limits: EndpointLimits,
) -> ResourceStatusServer<impl ResourceStatus> {
    ResourceStatusServer::new(Service(tokens)).max_decoding_message_size(limits.request)
}

struct Service(Arc<ResourceStatusTokens>);

#[async_trait]
impl ResourceStatus for Service {
    async fn publish_view_steps(
        &self,
        request: Request<PublishViewStepsRequest>,
    ) -> Result<Response<PublishViewStepsResponse>, Status> {
        self.0.publish(request.into_inner())?;
        Ok(Response::new(PublishViewStepsResponse {}))
    }
}
