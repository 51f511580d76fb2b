//! In-process provider for all packages that accepts all inputs, and returns them as outputs, with those of the test.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bridge::host::{HostError, ProviderHost, ProviderRequest};
use bridge::provider::Provider;
use pulumi_proto::property::wire::Bag;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc;
use pulumi_proto::rpc::diff_response::DiffChanges;
use pulumi_proto::rpc::resource_monitor_client::ResourceMonitorClient;
use pulumi_proto::rpc::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use tonic::{Request, Response, Status};

use crate::service::{Reply, decode_properties, encode_properties, start_in_memory, type_and_name};

/// Function that returns the id of a new resource and its outputs that are not inputs, for a type, a name and the inputs.
type CreateOutputs = dyn Fn(&str, &str, &PropertyMap) -> (String, PropertyMap) + Send + Sync;

/// Host that starts the provider for any package.
#[derive(Clone)]
pub struct EchoHost {
    outputs: Arc<CreateOutputs>,
    /// Inputs of the existing resources that a program imports, by `TYPE::NAME`.
    pub imported: Arc<BTreeMap<String, PropertyMap>>,
    /// Replies of functions, by token. Other functions return nothing.
    pub replies: Arc<BTreeMap<String, PropertyMap>>,
    /// Compares inputs without their secret marks, as most providers do.
    pub ignores_secret_marks: bool,
}

impl EchoHost {
    /// Creates the host. `outputs` returns the id of a new resource and its outputs that are not inputs, for a type, a name
    /// and the inputs.
    pub fn new(outputs: impl Fn(&str, &str, &PropertyMap) -> (String, PropertyMap) + Send + Sync + 'static) -> Self {
        Self {
            outputs: Arc::new(outputs),
            imported: Arc::default(),
            replies: Arc::default(),
            ignores_secret_marks: false,
        }
    }
}

impl fmt::Debug for EchoHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EchoHost").finish_non_exhaustive()
    }
}

#[async_trait]
impl ProviderHost for EchoHost {
    async fn start_provider(&self, request: &ProviderRequest) -> Result<Arc<dyn Provider>, HostError> {
        let service = ResourceProviderServer::new(EchoProvider(self.clone()));
        Ok(start_in_memory(service, &request.package, request.version.clone()))
    }
}

struct EchoProvider(EchoHost);

impl EchoProvider {
    /// Returns the id of a resource, and all its outputs.
    fn created(&self, urn: &str, inputs: &PropertyMap) -> Result<(String, Option<Bag>), Status> {
        let (token, name) = type_and_name(urn);
        let (id, outputs) = (self.0.outputs)(token, name, inputs);
        let mut properties = inputs.clone();
        properties.extend(outputs);
        Ok((id, Some(encode_properties(&properties)?)))
    }
}

/// Removes the secret marks.
fn without_secrets(value: PropertyValue) -> PropertyValue {
    match value {
        PropertyValue::Secret(secret) => without_secrets(secret.into_exposed()),
        PropertyValue::List(items) => PropertyValue::List(items.into_iter().map(without_secrets).collect()),
        PropertyValue::Map(map) => {
            PropertyValue::Map(map.into_iter().map(|(key, value)| (key, without_secrets(value))).collect())
        }
        value => value,
    }
}

#[tonic::async_trait]
impl ResourceProvider for EchoProvider {
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
        let (old, new) = (decode_properties(request.old_inputs)?, decode_properties(request.news)?);
        let is_equal = match self.0.ignores_secret_marks {
            true => without_secrets(old.into()) == without_secrets(new.into()),
            false => old == new,
        };
        let changes = if is_equal { DiffChanges::DiffNone } else { DiffChanges::DiffSome };
        Ok(Response::new(rpc::DiffResponse { changes: changes.into(), ..rpc::DiffResponse::default() }))
    }

    async fn create(&self, request: Request<rpc::CreateRequest>) -> Reply<rpc::CreateResponse> {
        let request = request.into_inner();
        if request.preview {
            return Ok(Response::new(rpc::CreateResponse { properties: request.properties, ..Default::default() }));
        }
        let (id, properties) = self.created(&request.urn, &decode_properties(request.properties)?)?;
        Ok(Response::new(rpc::CreateResponse { id, properties, ..Default::default() }))
    }

    async fn update(&self, request: Request<rpc::UpdateRequest>) -> Reply<rpc::UpdateResponse> {
        let request = request.into_inner();
        let (_, properties) = self.created(&request.urn, &decode_properties(request.news)?)?;
        Ok(Response::new(rpc::UpdateResponse { properties, ..Default::default() }))
    }

    /// Reads a resource that the program reads, or an existing one that it imports.
    async fn read(&self, request: Request<rpc::ReadRequest>) -> Reply<rpc::ReadResponse> {
        let request = request.into_inner();
        let (token, name) = type_and_name(&request.urn);
        let inputs = self.0.imported.get(&format!("{token}::{name}")).cloned().unwrap_or_default();
        let (_, properties) = self.created(&request.urn, &inputs)?;
        let inputs = Some(encode_properties(&inputs)?);
        Ok(Response::new(rpc::ReadResponse { id: request.id, properties, inputs, ..Default::default() }))
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
