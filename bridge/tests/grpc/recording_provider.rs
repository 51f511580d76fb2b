//! Provider that records its requests and returns the replies set by the test, byte for byte.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bridge::launch::Connection;
use bridge::provider::Capabilities;
use bridge::provider::grpc::GrpcProvider;
use prost::Message;
use pulumi_proto::plugin_v1::plugin_server::{Plugin, PluginServer};
use pulumi_proto::plugin_v1::{self as v1};
use pulumi_proto::rpc;
use pulumi_proto::rpc::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use tonic::transport::Server;
use tonic::{Request, Response, Status, async_trait};

/// The package whose provider resource the tests configure.
pub(crate) const PROVIDER: &str = "urn:pulumi:dev::t::pulumi:providers:rec::main";

type Calls = Vec<(&'static str, Vec<u8>)>;
type Reply = Result<Vec<u8>, Status>;

#[derive(Clone, Default)]
pub(crate) struct RecordingProvider {
    calls: Arc<Mutex<Calls>>,
    replies: Arc<Mutex<HashMap<&'static str, Reply>>>,
    hanging: Arc<Mutex<Vec<&'static str>>>,
    initializable: bool,
}

impl RecordingProvider {
    /// Creates a provider that also serves `simplecontainer.plugin.v1`.
    pub(crate) fn initializable() -> Self {
        Self { initializable: true, ..Self::default() }
    }

    pub(crate) fn reply_with(&self, method: &'static str, reply: impl Message) -> &Self {
        self.replies.lock().unwrap().insert(method, Ok(reply.encode_to_vec()));
        self
    }

    pub(crate) fn fail_with(&self, method: &'static str, status: Status) -> &Self {
        self.replies.lock().unwrap().insert(method, Err(status));
        self
    }

    pub(crate) fn hang_in(&self, method: &'static str) -> &Self {
        self.hanging.lock().unwrap().push(method);
        self
    }

    /// Returns the names of all calls so far.
    pub(crate) fn methods(&self) -> Vec<&'static str> {
        self.calls.lock().unwrap().iter().map(|(method, _)| *method).collect()
    }

    pub(crate) fn last_request<T: Message + Default>(&self, method: &str) -> T {
        let calls = self.calls.lock().unwrap();
        let (_, request) = calls.iter().rev().find(|(name, _)| *name == method).expect("the method was called");
        T::decode(request.as_slice()).unwrap()
    }

    pub(crate) fn connection(&self) -> Connection {
        let (near, far) = tokio::io::duplex(1 << 20);
        let mut server = Server::builder().add_service(
            ResourceProviderServer::new(self.clone())
                .max_decoding_message_size(usize::MAX)
                .max_encoding_message_size(usize::MAX),
        );
        if self.initializable {
            server = server.add_service(PluginServer::new(self.clone()));
        }
        let incoming = tokio_stream::once(Ok::<_, std::io::Error>(far));
        tokio::spawn(server.serve_with_incoming(incoming));
        let near = Mutex::new(Some(near));
        Connection::new(move || {
            let near = near.lock().unwrap().take();
            async move { near.ok_or(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)) }
        })
    }

    /// Returns a client without process. `handshake` holds the capabilities from Handshake; `None` without handshake.
    pub(crate) fn provider(&self, handshake: Option<Capabilities>) -> GrpcProvider {
        GrpcProvider::new(self.connection(), "rec", handshake, Some("1.2.3".to_owned()), None)
    }

    async fn respond<Q: Message, A: Message + Default>(
        &self,
        method: &'static str,
        request: Request<Q>,
    ) -> Result<Response<A>, Status> {
        self.calls.lock().unwrap().push((method, request.into_inner().encode_to_vec()));
        if self.hanging.lock().unwrap().contains(&method) {
            std::future::pending::<Infallible>().await;
        }
        let reply = self.replies.lock().unwrap().get(method).cloned();
        let bytes = reply.unwrap_or_else(|| Ok(Vec::new()))?;
        Ok(Response::new(A::decode(bytes.as_slice()).unwrap()))
    }
}

type RpcResult<T> = Result<Response<T>, Status>;

#[async_trait]
impl ResourceProvider for RecordingProvider {
    async fn handshake(
        &self,
        request: Request<rpc::ProviderHandshakeRequest>,
    ) -> RpcResult<rpc::ProviderHandshakeResponse> {
        self.respond("Handshake", request).await
    }
    async fn get_plugin_info(&self, request: Request<()>) -> RpcResult<rpc::PluginInfo> {
        self.respond("GetPluginInfo", request).await
    }
    async fn get_schema(&self, request: Request<rpc::GetSchemaRequest>) -> RpcResult<rpc::GetSchemaResponse> {
        self.respond("GetSchema", request).await
    }
    async fn check_config(&self, request: Request<rpc::CheckRequest>) -> RpcResult<rpc::CheckResponse> {
        self.respond("CheckConfig", request).await
    }
    async fn diff_config(&self, request: Request<rpc::DiffRequest>) -> RpcResult<rpc::DiffResponse> {
        self.respond("DiffConfig", request).await
    }
    async fn configure(&self, request: Request<rpc::ConfigureRequest>) -> RpcResult<rpc::ConfigureResponse> {
        self.respond("Configure", request).await
    }
    async fn invoke(&self, request: Request<rpc::InvokeRequest>) -> RpcResult<rpc::InvokeResponse> {
        self.respond("Invoke", request).await
    }
    async fn call(&self, request: Request<rpc::CallRequest>) -> RpcResult<rpc::CallResponse> {
        self.respond("Call", request).await
    }
    async fn check(&self, request: Request<rpc::CheckRequest>) -> RpcResult<rpc::CheckResponse> {
        self.respond("Check", request).await
    }
    async fn diff(&self, request: Request<rpc::DiffRequest>) -> RpcResult<rpc::DiffResponse> {
        self.respond("Diff", request).await
    }
    async fn create(&self, request: Request<rpc::CreateRequest>) -> RpcResult<rpc::CreateResponse> {
        self.respond("Create", request).await
    }
    async fn read(&self, request: Request<rpc::ReadRequest>) -> RpcResult<rpc::ReadResponse> {
        self.respond("Read", request).await
    }
    async fn update(&self, request: Request<rpc::UpdateRequest>) -> RpcResult<rpc::UpdateResponse> {
        self.respond("Update", request).await
    }
    async fn delete(&self, request: Request<rpc::DeleteRequest>) -> RpcResult<()> {
        self.respond("Delete", request).await
    }
    async fn construct(&self, request: Request<rpc::ConstructRequest>) -> RpcResult<rpc::ConstructResponse> {
        self.respond("Construct", request).await
    }
    async fn cancel(&self, request: Request<()>) -> RpcResult<()> {
        self.respond("Cancel", request).await
    }
    async fn get_mapping(&self, request: Request<rpc::GetMappingRequest>) -> RpcResult<rpc::GetMappingResponse> {
        self.respond("GetMapping", request).await
    }

    /// Returns two results and then the reply set by the test.
    async fn list(
        &self,
        request: Request<rpc::ListRequest>,
    ) -> RpcResult<tonic::codegen::BoxStream<rpc::ListResponse>> {
        let last: rpc::ListResponse = self.respond("List", request).await?.into_inner();
        let result = |id: &str| rpc::ListResponse {
            response: Some(rpc::list_response::Response::Result(rpc::list_response::Result {
                id: id.into(),
                name: format!("name of {id}"),
            })),
        };
        let stream = tokio_stream::iter([Ok(result("a")), Ok(result("b")), Ok(last)]);
        Ok(Response::new(Box::pin(stream)))
    }
}

#[async_trait]
impl Plugin for RecordingProvider {
    async fn initialize(&self, request: Request<v1::InitializeRequest>) -> RpcResult<v1::InitializeResponse> {
        self.respond("Initialize", request).await
    }
    async fn health_check(&self, request: Request<v1::HealthCheckRequest>) -> RpcResult<v1::HealthCheckResponse> {
        self.respond("HealthCheck", request).await
    }
    async fn cleanup(&self, request: Request<v1::CleanupRequest>) -> RpcResult<v1::CleanupResponse> {
        self.respond("Cleanup", request).await
    }
}
