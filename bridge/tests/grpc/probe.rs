//! A provider that writes down what it gets and answers what it was told, byte for byte.

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
type Answer = Result<Vec<u8>, Status>;

#[derive(Clone, Default)]
pub(crate) struct Probe {
    calls: Arc<Mutex<Calls>>,
    answers: Arc<Mutex<HashMap<&'static str, Answer>>>,
    hanging: Arc<Mutex<Vec<&'static str>>>,
    initializable: bool,
}

impl Probe {
    /// One that serves `simplecontainer.plugin.v1` too.
    pub(crate) fn initializable() -> Self {
        Self { initializable: true, ..Self::default() }
    }

    pub(crate) fn answers(&self, method: &'static str, answer: impl Message) -> &Self {
        self.answers.lock().unwrap().insert(method, Ok(answer.encode_to_vec()));
        self
    }

    pub(crate) fn fails(&self, method: &'static str, status: Status) -> &Self {
        self.answers.lock().unwrap().insert(method, Err(status));
        self
    }

    pub(crate) fn hangs(&self, method: &'static str) -> &Self {
        self.hanging.lock().unwrap().push(method);
        self
    }

    /// The names of the calls so far.
    pub(crate) fn methods(&self) -> Vec<&'static str> {
        self.calls.lock().unwrap().iter().map(|(method, _)| *method).collect()
    }

    /// The last request of a method.
    pub(crate) fn last<T: Message + Default>(&self, method: &str) -> T {
        let calls = self.calls.lock().unwrap();
        let (_, request) = calls.iter().rev().find(|(name, _)| *name == method).expect("it was called");
        T::decode(request.as_slice()).unwrap()
    }

    /// A connection to it.
    pub(crate) fn channel(&self) -> Connection {
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

    /// A provider without process, whose handshake said this.
    pub(crate) fn provider(&self, handshake: Option<Capabilities>) -> GrpcProvider {
        GrpcProvider::new(self.channel(), "rec", handshake, Some("1.2.3".to_owned()), None)
    }

    async fn answer<Q: Message, A: Message + Default>(
        &self,
        method: &'static str,
        request: Request<Q>,
    ) -> Result<Response<A>, Status> {
        self.calls.lock().unwrap().push((method, request.into_inner().encode_to_vec()));
        if self.hanging.lock().unwrap().contains(&method) {
            std::future::pending::<Infallible>().await;
        }
        let answer = self.answers.lock().unwrap().get(method).cloned();
        let bytes = answer.unwrap_or_else(|| Ok(Vec::new()))?;
        Ok(Response::new(A::decode(bytes.as_slice()).unwrap()))
    }
}

type Reply<T> = Result<Response<T>, Status>;

#[async_trait]
impl ResourceProvider for Probe {
    async fn handshake(
        &self,
        request: Request<rpc::ProviderHandshakeRequest>,
    ) -> Reply<rpc::ProviderHandshakeResponse> {
        self.answer("Handshake", request).await
    }
    async fn get_plugin_info(&self, request: Request<()>) -> Reply<rpc::PluginInfo> {
        self.answer("GetPluginInfo", request).await
    }
    async fn get_schema(&self, request: Request<rpc::GetSchemaRequest>) -> Reply<rpc::GetSchemaResponse> {
        self.answer("GetSchema", request).await
    }
    async fn check_config(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        self.answer("CheckConfig", request).await
    }
    async fn diff_config(&self, request: Request<rpc::DiffRequest>) -> Reply<rpc::DiffResponse> {
        self.answer("DiffConfig", request).await
    }
    async fn configure(&self, request: Request<rpc::ConfigureRequest>) -> Reply<rpc::ConfigureResponse> {
        self.answer("Configure", request).await
    }
    async fn invoke(&self, request: Request<rpc::InvokeRequest>) -> Reply<rpc::InvokeResponse> {
        self.answer("Invoke", request).await
    }
    async fn call(&self, request: Request<rpc::CallRequest>) -> Reply<rpc::CallResponse> {
        self.answer("Call", request).await
    }
    async fn check(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        self.answer("Check", request).await
    }
    async fn diff(&self, request: Request<rpc::DiffRequest>) -> Reply<rpc::DiffResponse> {
        self.answer("Diff", request).await
    }
    async fn create(&self, request: Request<rpc::CreateRequest>) -> Reply<rpc::CreateResponse> {
        self.answer("Create", request).await
    }
    async fn read(&self, request: Request<rpc::ReadRequest>) -> Reply<rpc::ReadResponse> {
        self.answer("Read", request).await
    }
    async fn update(&self, request: Request<rpc::UpdateRequest>) -> Reply<rpc::UpdateResponse> {
        self.answer("Update", request).await
    }
    async fn delete(&self, request: Request<rpc::DeleteRequest>) -> Reply<()> {
        self.answer("Delete", request).await
    }
    async fn construct(&self, request: Request<rpc::ConstructRequest>) -> Reply<rpc::ConstructResponse> {
        self.answer("Construct", request).await
    }
    async fn cancel(&self, request: Request<()>) -> Reply<()> {
        self.answer("Cancel", request).await
    }
    async fn get_mapping(&self, request: Request<rpc::GetMappingRequest>) -> Reply<rpc::GetMappingResponse> {
        self.answer("GetMapping", request).await
    }

    /// Two results, then what it was told.
    async fn list(&self, request: Request<rpc::ListRequest>) -> Reply<tonic::codegen::BoxStream<rpc::ListResponse>> {
        let last: rpc::ListResponse = self.answer("List", request).await?.into_inner();
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
impl Plugin for Probe {
    async fn initialize(&self, request: Request<v1::InitializeRequest>) -> Reply<v1::InitializeResponse> {
        self.answer("Initialize", request).await
    }
    async fn health_check(&self, request: Request<v1::HealthCheckRequest>) -> Reply<v1::HealthCheckResponse> {
        self.answer("HealthCheck", request).await
    }
    async fn cleanup(&self, request: Request<v1::CleanupRequest>) -> Reply<v1::CleanupResponse> {
        self.answer("Cleanup", request).await
    }
}
