//! Minimal engine for tests, with the plugin on a loopback port.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use plugins_example::{Plugin, serve};
use pulumi_proto::plugin_v1::plugin_client::PluginClient;
use pulumi_proto::property::wire::{Bag, DecodeOptions, EncodeOptions, decode, encode};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc::engine_server::{Engine, EngineServer};
use pulumi_proto::rpc::resource_provider_client::ResourceProviderClient;
use pulumi_proto::rpc::{
    CheckFailure, CheckRequest, ConfigureRequest, ConfigureResponse, CreateRequest, DeleteRequest, DiffRequest,
    DiffResponse, LogRequest, ReadRequest,
};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

/// Running plugin with its root and its log messages. Dropping it ends the plugin.
pub(crate) struct Host {
    pub(crate) provider: ResourceProviderClient<Channel>,
    pub(crate) plugin_service: PluginClient<Channel>,
    pub(crate) root: PathBuf,
    logged: Arc<Mutex<Vec<LogRequest>>>,
    _folder: tempfile::TempDir,
    _tasks: JoinSet<()>,
}

impl Host {
    /// Starts a plugin and configures it with a new root.
    pub(crate) async fn configured() -> Self {
        let mut host = Self::started().await;
        host.configure(true).await.unwrap();
        host
    }

    /// Starts a plugin without any call.
    pub(crate) async fn started() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut tasks = JoinSet::new();

        let logged = Arc::new(Mutex::new(Vec::new()));
        let engine = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = engine.local_addr().unwrap().to_string();
        let service = EngineServer::new(Recorder(Arc::clone(&logged)));
        tasks.spawn(async move {
            Server::builder().add_service(service).serve_with_incoming(TcpIncoming::from(engine)).await.unwrap();
        });

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let plugin = Plugin::new(Some(&address)).unwrap();
        tasks.spawn(async move { serve(plugin, listener, std::future::pending()).await.unwrap() });

        let channel = Endpoint::from_shared(uri).unwrap().connect().await.unwrap();
        const MAX_MESSAGE: usize = 400 * 1024 * 1024;
        let provider = ResourceProviderClient::new(channel.clone());
        Self {
            provider: provider.max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE),
            plugin_service: PluginClient::new(channel),
            root: folder.path().join("root"),
            logged,
            _folder: folder,
            _tasks: tasks,
        }
    }

    pub(crate) async fn configure(&mut self, accept_secrets: bool) -> Result<ConfigureResponse, Status> {
        let args = wire(&bag([("root", self.root.to_str().unwrap().into())]));
        let request = ConfigureRequest { args, accept_secrets, accept_resources: true, ..Default::default() };
        Ok(self.provider.configure(request).await?.into_inner())
    }

    /// Calls Check. Returns the inputs, or the failures as `property: reason`.
    pub(crate) async fn check(&mut self, kind: &str, news: &PropertyMap) -> Result<PropertyMap, Vec<String>> {
        let request = CheckRequest { urn: urn(kind), news: wire(news), olds: wire(&bag([])), ..Default::default() };
        let response = self.provider.check(request).await.unwrap().into_inner();
        if response.failures.is_empty() { Ok(decode_bag(response.inputs)) } else { Err(describe(response.failures)) }
    }

    pub(crate) async fn diff(&mut self, kind: &str, olds: &PropertyMap, news: &PropertyMap) -> DiffResponse {
        let request = DiffRequest {
            id: "id".into(),
            urn: urn(kind),
            olds: wire(olds),
            old_inputs: wire(olds),
            news: wire(news),
            ..Default::default()
        };
        self.provider.diff(request).await.unwrap().into_inner()
    }

    /// Calls Create. Returns id and outputs.
    pub(crate) async fn create(&mut self, kind: &str, inputs: &PropertyMap) -> Result<(String, PropertyMap), Status> {
        let request = CreateRequest { urn: urn(kind), properties: wire(inputs), ..Default::default() };
        let response = self.provider.create(request).await?.into_inner();
        Ok((response.id, decode_bag(response.properties)))
    }

    /// Calls Create in preview. Returns the outputs.
    pub(crate) async fn preview(&mut self, kind: &str, inputs: &PropertyMap) -> PropertyMap {
        let request = CreateRequest { urn: urn(kind), properties: wire(inputs), preview: true, ..Default::default() };
        decode_bag(self.provider.create(request).await.unwrap().into_inner().properties)
    }

    /// Calls Read. Returns inputs and outputs. Without known inputs and outputs the call is an import.
    pub(crate) async fn read(
        &mut self,
        kind: &str,
        id: &str,
        known: Option<(&PropertyMap, &PropertyMap)>,
    ) -> Option<(PropertyMap, PropertyMap)> {
        let (inputs, properties) =
            known.map_or((None, wire(&bag([]))), |(inputs, outputs)| (wire(inputs), wire(outputs)));
        let request = ReadRequest { id: id.into(), urn: urn(kind), inputs, properties, ..Default::default() };
        let response = self.provider.read(request).await.unwrap().into_inner();
        assert_eq!(response.id.is_empty(), response.properties.is_none());
        response.properties.map(|outputs| (decode_bag(response.inputs), decode_bag(Some(outputs))))
    }

    pub(crate) async fn delete(&mut self, kind: &str, id: &str) -> Result<(), Status> {
        let request = DeleteRequest { id: id.into(), urn: urn(kind), ..Default::default() };
        self.provider.delete(request).await.map(Response::into_inner)
    }

    /// Returns the log messages as `SEVERITY message`.
    pub(crate) fn logged(&self) -> Vec<String> {
        let lines = self.logged.lock().unwrap();
        lines.iter().map(|line| format!("{:?} {}", line.severity(), line.message)).collect()
    }
}

struct Recorder(Arc<Mutex<Vec<LogRequest>>>);

#[tonic::async_trait]
impl Engine for Recorder {
    async fn log(&self, request: Request<LogRequest>) -> Result<Response<()>, Status> {
        self.0.lock().unwrap().push(request.into_inner());
        Ok(Response::new(()))
    }
}

pub(crate) fn urn(kind: &str) -> String {
    format!("urn:pulumi:stack::project::{kind}::name")
}

pub(crate) fn bag<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyMap {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

pub(crate) fn wire(bag: &PropertyMap) -> Option<Bag> {
    Some(encode(bag, &EncodeOptions::EVERYTHING).unwrap())
}

pub(crate) fn decode_bag(bag: Option<Bag>) -> PropertyMap {
    decode(&bag.unwrap(), &DecodeOptions::EVERYTHING).unwrap()
}

pub(crate) fn describe(failures: Vec<CheckFailure>) -> Vec<String> {
    failures.into_iter().map(|failure| format!("{}: {}", failure.property, failure.reason)).collect()
}
