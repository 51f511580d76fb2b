//! The other side of the connection: an engine as small as can be, with the plugin on a loopback port.

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

/// A running plugin, its root, and what it logged. Everything ends with the value.
pub(crate) struct Host {
    pub(crate) provider: ResourceProviderClient<Channel>,
    pub(crate) companion: PluginClient<Channel>,
    pub(crate) root: PathBuf,
    logged: Arc<Mutex<Vec<LogRequest>>>,
    _folder: tempfile::TempDir,
    _tasks: JoinSet<()>,
}

impl Host {
    /// A plugin that has said hello and is configured with a fresh root, as an engine does it.
    pub(crate) async fn configured() -> Self {
        let mut host = Self::started().await;
        host.configure(true).await.unwrap();
        host
    }

    /// A plugin that nobody has spoken to.
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
        const LIMIT: usize = 400 * 1024 * 1024;
        let provider = ResourceProviderClient::new(channel.clone());
        Self {
            provider: provider.max_decoding_message_size(LIMIT).max_encoding_message_size(LIMIT),
            companion: PluginClient::new(channel),
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

    /// Check; `Err` are the failures, `property: reason`.
    pub(crate) async fn check(&mut self, kind: &str, news: &PropertyMap) -> Result<PropertyMap, Vec<String>> {
        let request = CheckRequest { urn: urn(kind), news: wire(news), olds: wire(&bag([])), ..Default::default() };
        let answer = self.provider.check(request).await.unwrap().into_inner();
        if answer.failures.is_empty() { Ok(ours(answer.inputs)) } else { Err(shown(answer.failures)) }
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

    /// Create; id and outputs.
    pub(crate) async fn create(&mut self, kind: &str, inputs: &PropertyMap) -> Result<(String, PropertyMap), Status> {
        let request = CreateRequest { urn: urn(kind), properties: wire(inputs), ..Default::default() };
        let answer = self.provider.create(request).await?.into_inner();
        Ok((answer.id, ours(answer.properties)))
    }

    /// Create of a preview; the outputs.
    pub(crate) async fn preview(&mut self, kind: &str, inputs: &PropertyMap) -> PropertyMap {
        let request = CreateRequest { urn: urn(kind), properties: wire(inputs), preview: true, ..Default::default() };
        ours(self.provider.create(request).await.unwrap().into_inner().properties)
    }

    /// Read; inputs and outputs. Without known inputs and outputs it is an import.
    pub(crate) async fn read(
        &mut self,
        kind: &str,
        id: &str,
        known: Option<(&PropertyMap, &PropertyMap)>,
    ) -> Option<(PropertyMap, PropertyMap)> {
        let (inputs, properties) =
            known.map_or((None, wire(&bag([]))), |(inputs, outputs)| (wire(inputs), wire(outputs)));
        let request = ReadRequest { id: id.into(), urn: urn(kind), inputs, properties, ..Default::default() };
        let answer = self.provider.read(request).await.unwrap().into_inner();
        assert_eq!(answer.id.is_empty(), answer.properties.is_none());
        answer.properties.map(|outputs| (ours(answer.inputs), ours(Some(outputs))))
    }

    pub(crate) async fn delete(&mut self, kind: &str, id: &str) -> Result<(), Status> {
        let request = DeleteRequest { id: id.into(), urn: urn(kind), ..Default::default() };
        self.provider.delete(request).await.map(Response::into_inner)
    }

    /// `SEVERITY message` of each line so far.
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

pub(crate) fn ours(bag: Option<Bag>) -> PropertyMap {
    decode(&bag.unwrap(), &DecodeOptions::EVERYTHING).unwrap()
}

pub(crate) fn shown(failures: Vec<CheckFailure>) -> Vec<String> {
    failures.into_iter().map(|failure| format!("{}: {}", failure.property, failure.reason)).collect()
}
