//! Plugin for tests of the host. Records each call in a file, and misbehaves as requested by `--fault`.
//!
//! Usage: `plugin [[--fault FAULT]... RECORD] ENGINE_ADDRESS`. RECORD is the file for the calls; default: `x.calls` in
//! the working directory. RECORD.processes has each call with the id of the process. With the cookie of `sc`, it is a go-plugin server, without ENGINE_ADDRESS. If the environment has
//! SC_PLUGIN_HOST, the plugin registers itself there, and ENGINE_ADDRESS is SC_PLUGIN_ENGINE.

#![expect(clippy::disallowed_methods, reason = "a program that only tests start; it panics at the first failure")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that only tests start; it panics at the first failure"
)]

mod go_plugin;
mod registration;

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pulumi_proto::plugin_v1::health_check_response::Status as Health;
use pulumi_proto::plugin_v1::plugin_server::{Plugin, PluginServer};
use pulumi_proto::plugin_v1::{self as v1};
use pulumi_proto::rpc;
use pulumi_proto::rpc::engine_client::EngineClient;
use pulumi_proto::rpc::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tonic::transport::Channel;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, async_trait};

#[derive(Clone)]
struct Provider {
    faults: Vec<String>,
    record: String,
    /// Address of the engine; empty until it is known.
    engine: watch::Receiver<String>,
    cancelled: Arc<Notify>,
    deregistered: Arc<Notify>,
    /// Address of the engine from the last Attach.
    attached: Arc<Mutex<Option<String>>>,
}

impl Provider {
    fn has_fault(&self, fault: &str) -> bool {
        self.faults.iter().any(|known| known == fault)
    }

    async fn engine(&self) -> EngineClient<Channel> {
        let attached = self.attached.lock().unwrap().clone();
        if let Some(address) = attached {
            return EngineClient::connect(format!("http://{address}")).await.unwrap();
        }
        let mut engine = self.engine.clone();
        let known = tokio::time::timeout(Duration::from_secs(5), engine.wait_for(|address| !address.is_empty())).await;
        let address = known.expect("the engine is offered in time").unwrap().clone();
        EngineClient::connect(address).await.unwrap()
    }

    fn record_call(&self, call: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.record).unwrap();
        file.write_all(format!("{call}\n").as_bytes()).unwrap();
        let processes = format!("{}.processes", self.record);
        let mut file = OpenOptions::new().append(true).create(true).open(processes).unwrap();
        file.write_all(format!("{} {call}\n", std::process::id()).as_bytes()).unwrap();
    }
}

type Reply<T> = Result<Response<T>, Status>;

#[async_trait]
impl ResourceProvider for Provider {
    async fn handshake(&self, _: Request<rpc::ProviderHandshakeRequest>) -> Reply<rpc::ProviderHandshakeResponse> {
        if self.has_fault("exit in Handshake") {
            eprintln!("no licence");
            std::process::exit(4);
        }
        if self.has_fault("hang in Handshake") {
            std::future::pending::<()>().await;
        }
        Ok(Response::new(rpc::ProviderHandshakeResponse { accept_secrets: true, ..Default::default() }))
    }

    async fn attach(&self, request: Request<rpc::PluginAttach>) -> Reply<()> {
        if !self.has_fault("implement Attach") {
            return Err(Status::unimplemented("Attach"));
        }
        self.record_call("Attach");
        *self.attached.lock().unwrap() = Some(request.into_inner().address);
        Ok(Response::new(()))
    }

    async fn get_plugin_info(&self, _: Request<()>) -> Reply<rpc::PluginInfo> {
        Ok(Response::new(rpc::PluginInfo { version: "v1.2.3".into() }))
    }

    async fn get_schema(&self, _: Request<rpc::GetSchemaRequest>) -> Reply<rpc::GetSchemaResponse> {
        self.record_call("GetSchema");
        if self.has_fault("fail GetSchema") {
            return Err(Status::internal("not now"));
        }
        if self.has_fault("do not implement GetSchema") {
            // Reply of Pulumi's Python server.
            let message = "Unexpected <class 'NotImplementedError'>: The method 'get_schema' is not implemented";
            return Err(Status::unknown(message));
        }
        let schema = r#"{"resources": {"x:index:Pair": {"isComponent": true}, "x:index:Thing": {}}}"#.to_owned();
        Ok(Response::new(rpc::GetSchemaResponse { schema }))
    }

    async fn check_config(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        self.record_call("CheckConfig");
        let release = std::path::Path::new(&self.record).with_file_name("release");
        while self.has_fault("wait for the file release in CheckConfig") && !release.exists() {
            // Polls: the test has no other connection to this process.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let inputs = request.into_inner().news;
        Ok(Response::new(rpc::CheckResponse { inputs, ..Default::default() }))
    }

    async fn diff_config(&self, _: Request<rpc::DiffRequest>) -> Reply<rpc::DiffResponse> {
        self.record_call("DiffConfig");
        Ok(Response::new(rpc::DiffResponse::default()))
    }

    async fn parameterize(&self, _: Request<rpc::ParameterizeRequest>) -> Reply<rpc::ParameterizeResponse> {
        self.record_call("Parameterize");
        if !self.has_fault("serve many packages") {
            return Err(Status::unimplemented("Parameterize"));
        }
        Ok(Response::new(rpc::ParameterizeResponse { name: "y".into(), version: "1.0.0".into() }))
    }

    async fn configure(&self, _: Request<rpc::ConfigureRequest>) -> Reply<rpc::ConfigureResponse> {
        self.record_call("Configure");
        let is_first = || std::fs::read_to_string(&self.record).unwrap().matches("Configure\n").count() == 1;
        if self.has_fault("fail the first Configure") && is_first() {
            return Err(Status::unknown("no quota"));
        }
        let mut engine = self.engine().await;
        let message =
            rpc::LogRequest { severity: 2, message: "hello".into(), urn: "u".into(), stream_id: 7, ephemeral: true };
        engine.log(message).await?;
        engine.log(rpc::LogRequest { severity: 9, ..Default::default() }).await.unwrap_err();
        engine.set_root_resource(rpc::SetRootResourceRequest { urn: "root".into() }).await?;
        let urn = engine.get_root_resource(rpc::GetRootResourceRequest {}).await?.into_inner().urn;
        assert_eq!(urn, "root");
        let range = |range: &str| rpc::RequirePulumiVersionRequest { pulumi_version_range: range.into() };
        engine.require_pulumi_version(range("")).await?;
        engine.require_pulumi_version(range(">=3.260.0")).await?;
        engine.require_pulumi_version(range("<3.260.0")).await.unwrap_err();
        engine.start_debugging(rpc::StartDebuggingRequest::default()).await.unwrap_err();
        Ok(Response::new(rpc::ConfigureResponse::default()))
    }

    async fn check(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        self.record_call("Check");
        if self.has_fault("hang in Check") {
            std::future::pending::<()>().await;
        }
        if self.has_fault("deregister in Check") {
            self.deregistered.notify_one();
        }
        if self.has_fault("log an error in Check") {
            let mut engine = self.engine().await;
            let message = rpc::LogRequest { severity: 3, message: "quota".into(), ..Default::default() };
            engine.log(message).await?;
        }
        let inputs = request.into_inner().news;
        Ok(Response::new(rpc::CheckResponse { inputs, ..Default::default() }))
    }

    /// Replies once Cancel is called, or exits if it has the fault `exit in Create`.
    async fn create(&self, _: Request<rpc::CreateRequest>) -> Reply<rpc::CreateResponse> {
        self.record_call("Create");
        if self.has_fault("run sudo in Create") {
            return Err(Status::unknown("sudo: The \"no new privileges\" flag is set"));
        }
        if self.has_fault("exit in Create") {
            eprintln!("panic: index out of range");
            std::process::exit(3);
        }
        if self.has_fault("deregister in Create") {
            self.deregistered.notify_one();
        }
        self.cancelled.notified().await;
        Ok(Response::new(rpc::CreateResponse { id: "cancelled".into(), ..Default::default() }))
    }

    async fn cancel(&self, _: Request<()>) -> Reply<()> {
        self.record_call("Cancel");
        self.cancelled.notify_waiters();
        Ok(Response::new(()))
    }
}

#[async_trait]
impl Plugin for Provider {
    async fn initialize(&self, request: Request<v1::InitializeRequest>) -> Reply<v1::InitializeResponse> {
        self.record_call(&format!("Initialize {:?}", request.into_inner().secrets.keys().collect::<Vec<_>>()));
        Ok(Response::new(v1::InitializeResponse::default()))
    }

    async fn health_check(&self, _: Request<v1::HealthCheckRequest>) -> Reply<v1::HealthCheckResponse> {
        let status = Health::Serving.into();
        Ok(Response::new(v1::HealthCheckResponse { status, message: String::new() }))
    }

    async fn cleanup(&self, _: Request<v1::CleanupRequest>) -> Reply<v1::CleanupResponse> {
        self.record_call("Cleanup");
        Ok(Response::new(v1::CleanupResponse {}))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_go_plugin = std::env::var_os("SC_PLUGIN_COOKIE").is_some();
    let registers = std::env::var_os("SC_PLUGIN_HOST").is_some();
    let address = match (is_go_plugin, registers) {
        (true, _) => String::new(),
        (_, true) => format!("http://{}", std::env::var("SC_PLUGIN_ENGINE").unwrap()),
        _ => format!("http://{}", arguments.pop().unwrap()),
    };
    let record = arguments.pop().unwrap_or_else(|| "x.calls".to_owned());
    let faults = arguments.into_iter().filter(|argument| argument != "--fault").collect();
    let (set_engine, engine) = watch::channel(address);
    let (cancelled, deregistered) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let provider = Provider { faults, record, engine, cancelled, deregistered, attached: Arc::default() };
    let server = Server::builder()
        .add_service(ResourceProviderServer::new(provider.clone()))
        .add_service(PluginServer::new(provider.clone()));
    if is_go_plugin {
        return go_plugin::serve(server, provider, set_engine).await;
    }
    if registers {
        println!("registering");
        return registration::serve(server, provider).await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    println!("ready");
    server.serve_with_incoming(TcpIncoming::from(listener)).await.unwrap();
}
