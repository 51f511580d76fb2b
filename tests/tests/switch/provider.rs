//! In-process provider for all packages of the recordings: adds the recorded outputs, and reports a difference between
//! inputs as a change.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bridge::host::{HostError, ProviderHost, ProviderRequest};
use bridge::provider::Provider;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::rpc;
use pulumi_proto::rpc::diff_response::DiffChanges;
use pulumi_proto::rpc::resource_monitor_client::ResourceMonitorClient;
use pulumi_proto::rpc::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use tests::service::{Reply, decode_properties, encode_properties, start_in_memory, type_and_name};
use tonic::{Request, Response, Status};

/// Host that starts the provider for any package.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedHost {
    /// Recorded outputs, by the name of the resource or `TYPE::NAME`.
    pub(crate) outputs: Arc<BTreeMap<String, PropertyMap>>,
    /// Inputs of the resources that are imported, by `TYPE::NAME`.
    pub(crate) imported: Arc<BTreeMap<String, PropertyMap>>,
    /// Recorded replies of functions, by token.
    pub(crate) replies: Arc<BTreeMap<String, PropertyMap>>,
}

#[async_trait]
impl ProviderHost for RecordedHost {
    async fn start_provider(&self, request: &ProviderRequest) -> Result<Arc<dyn Provider>, HostError> {
        let service = ResourceProviderServer::new(RecordedProvider(self.clone()));
        Ok(start_in_memory(service, &request.package, request.version.clone()))
    }
}

struct RecordedProvider(RecordedHost);

impl RecordedProvider {
    fn outputs(&self, urn: &str) -> PropertyMap {
        let (token, name) = type_and_name(urn);
        let outputs = &self.0.outputs;
        outputs.get(&format!("{token}::{name}")).or_else(|| outputs.get(name)).cloned().unwrap_or_default()
    }
}

#[tonic::async_trait]
impl ResourceProvider for RecordedProvider {
    async fn check_config(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        Ok(Response::new(rpc::CheckResponse { inputs: request.into_inner().news, failures: Vec::new() }))
    }

    async fn diff_config(&self, request: Request<rpc::DiffRequest>) -> Reply<rpc::DiffResponse> {
        self.diff(request).await
    }

    async fn configure(&self, _: Request<rpc::ConfigureRequest>) -> Reply<rpc::ConfigureResponse> {
        let response = rpc::ConfigureResponse {
            accept_secrets: true,
            accept_resources: true,
            supports_preview: true,
            ..rpc::ConfigureResponse::default()
        };
        Ok(Response::new(response))
    }

    async fn check(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        self.check_config(request).await
    }

    async fn diff(&self, request: Request<rpc::DiffRequest>) -> Reply<rpc::DiffResponse> {
        let request = request.into_inner();
        let changes = if request.old_inputs == request.news { DiffChanges::DiffNone } else { DiffChanges::DiffSome };
        Ok(Response::new(rpc::DiffResponse { changes: changes.into(), ..rpc::DiffResponse::default() }))
    }

    async fn create(&self, request: Request<rpc::CreateRequest>) -> Reply<rpc::CreateResponse> {
        let request = request.into_inner();
        if request.preview {
            return Ok(Response::new(rpc::CreateResponse { properties: request.properties, ..Default::default() }));
        }
        let mut properties = decode_properties(request.properties)?;
        properties.extend(self.outputs(&request.urn));
        let id = format!("{}-1", type_and_name(&request.urn).1);
        Ok(Response::new(rpc::CreateResponse {
            id,
            properties: Some(encode_properties(&properties)?),
            ..Default::default()
        }))
    }

    async fn update(&self, request: Request<rpc::UpdateRequest>) -> Reply<rpc::UpdateResponse> {
        Ok(Response::new(rpc::UpdateResponse { properties: request.into_inner().news, ..Default::default() }))
    }

    /// Reads a resource that the program reads, or an existing one that it imports, which has the inputs of the program.
    async fn read(&self, request: Request<rpc::ReadRequest>) -> Reply<rpc::ReadResponse> {
        let request = request.into_inner();
        let (token, name) = type_and_name(&request.urn);
        let inputs = self.0.imported.get(&format!("{token}::{name}")).cloned().unwrap_or_default();
        let mut properties = inputs.clone();
        properties.extend(self.outputs(&request.urn));
        Ok(Response::new(rpc::ReadResponse {
            id: request.id,
            properties: Some(encode_properties(&properties)?),
            inputs: Some(encode_properties(&inputs)?),
            ..Default::default()
        }))
    }

    async fn invoke(&self, request: Request<rpc::InvokeRequest>) -> Reply<rpc::InvokeResponse> {
        let reply = self.0.replies.get(&request.into_inner().tok).cloned().unwrap_or_default();
        Ok(Response::new(rpc::InvokeResponse { r#return: Some(encode_properties(&reply)?), failures: Vec::new() }))
    }

    /// Constructs a component without children.
    async fn construct(&self, request: Request<rpc::ConstructRequest>) -> Reply<rpc::ConstructResponse> {
        let request = request.into_inner();
        let monitor = ResourceMonitorClient::connect(format!("http://{}", request.monitor_endpoint)).await;
        let mut monitor = monitor.map_err(|error| Status::unknown(error.to_string()))?;
        let component = rpc::RegisterResourceRequest {
            r#type: request.r#type,
            name: request.name,
            parent: request.parent,
            dependencies: request.dependencies,
            providers: request.providers,
            accept_secrets: true,
            accept_resources: true,
            ..Default::default()
        };
        let urn = monitor.register_resource(component).await?.into_inner().urn;
        let outputs = rpc::RegisterResourceOutputsRequest { urn: urn.clone(), outputs: None };
        monitor.register_resource_outputs(outputs).await?;
        Ok(Response::new(rpc::ConstructResponse { urn, state: request.inputs, ..Default::default() }))
    }

    async fn delete(&self, _: Request<rpc::DeleteRequest>) -> Reply<()> {
        Ok(Response::new(()))
    }

    async fn cancel(&self, _: Request<()>) -> Reply<()> {
        Ok(Response::new(()))
    }
}
