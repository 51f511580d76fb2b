//! An example of the library as a running plugin, with its messages.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use bridge::launch::{Broker, Connection, HostIdentity, MutualTls, PluginAddress, Procedure, plugin_connection};
use bridge::process::{FirstLine, Process, ProcessSandbox, ProcessSpec, Spawner};
use futures_util::future::BoxFuture;
use prost::Message;
use tempfile::TempDir;
use tests::sdks::go_module_program;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

const MODULE: &str = "github.com/hashicorp/go-plugin";
const VERSION: &str = "v1.8.0";

/// Running example.
pub(crate) struct Example {
    pub(crate) connection: Connection,
    pub(crate) broker: Broker,
    /// Process of the plugin. Dropping it kills the plugin.
    _process: Arc<Process>,
    pub(crate) folder: TempDir,
    /// Fields of the handshake line.
    pub(crate) fields: Vec<String>,
}

/// Returns the program of an example.
pub(crate) fn program(package: &str) -> PathBuf {
    go_module_program(&format!("{MODULE}/examples/{package}"), VERSION).unwrap()
}

impl Example {
    /// Starts an example that offers gRPC, with AutoMTLS or without.
    pub(crate) async fn start(package: &str, versions: &str, has_tls: bool) -> Self {
        let identity = has_tls.then(|| HostIdentity::generate().unwrap());
        let folder = tempfile::Builder::new().prefix("sc").tempdir().unwrap();
        let (process, fields) = launch(package, versions, identity.as_ref(), &folder).await;
        assert_eq!((fields[2].as_str(), fields[4].as_str()), ("unix", "grpc"), "{fields:?}");
        let tls: Option<MutualTls> = identity.map(|host| host.with_plugin_certificate(&fields[5]).unwrap());
        let address = PluginAddress::Unix(fields[3].clone().into());
        let connection = plugin_connection(address, &process, tls.clone());
        let broker = Broker::open(&connection, folder.path(), tls).await.unwrap();
        Self { connection, broker, _process: process, folder, fields }
    }
}

/// Starts an example and returns the fields of its handshake line.
pub(crate) async fn launch(
    package: &str,
    versions: &str,
    identity: Option<&HostIdentity>,
    folder: &TempDir,
) -> (Arc<Process>, Vec<String>) {
    let mut variables = vec![
        ("BASIC_PLUGIN", "hello"),
        ("PLUGIN_PROTOCOL_VERSIONS", versions),
        ("PLUGIN_UNIX_SOCKET_DIR", folder.path().to_str().unwrap()),
    ];
    variables.extend(identity.map(|identity| ("PLUGIN_CLIENT_CERT", identity.certificate_pem())));
    let spec = ProcessSpec {
        program: program(package),
        arguments: Vec::new(),
        directory: folder.path().to_owned(),
        environment: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        sandbox: ProcessSandbox::None,
    };
    let process = Arc::new(Spawner::unsupervised().spawn(&spec, Arc::new(())).unwrap());
    let FirstLine::Line(line) = process.first_line().await else { panic!("no handshake line") };
    (process, line.split('|').map(str::to_owned).collect())
}

/// Defines a message with its fields and numbers.
macro_rules! message {
    ($name:ident { $($field:ident: $kind:ty = $tag:tt $type:tt),* $(,)? }) => {
        #[derive(Clone, PartialEq, Message)]
        pub(crate) struct $name {
            $(#[prost($type, tag = $tag)]
            pub(crate) $field: $kind,)*
        }
    };
}

message!(Empty {});
message!(Key { key: String = "1" string });
message!(Bytes { value: Vec<u8> = "1" bytes });
message!(Put { key: String = "1" string, value: Vec<u8> = "2" bytes });
message!(Integer { value: i64 = "1" int64 });
message!(PutCount { add_server: u32 = "1" uint32, key: String = "2" string, value: i64 = "3" int64 });
message!(Summands { a: i64 = "1" int64, b: i64 = "2" int64 });
message!(StreamerConfig { path: String = "1" string, chunk_size: i64 = "2" int64 });

/// Defines a procedure of an example.
macro_rules! procedure {
    ($name:ident, $path:literal, $request:ty, $reply:ty) => {
        pub(crate) struct $name;

        impl Procedure for $name {
            const PATH: &'static str = $path;
            type Request = $request;
            type Reply = $reply;
        }
    };
}

procedure!(KvPut, "/proto.KV/Put", Put, Empty);
procedure!(KvGet, "/proto.KV/Get", Key, Bytes);
procedure!(CounterPut, "/proto.Counter/Put", PutCount, Empty);
procedure!(CounterGet, "/proto.Counter/Get", Key, Integer);
procedure!(StreamerConfigure, "/proto.StreamerService/Configure", StreamerConfig, Empty);
procedure!(StreamerWrite, "/proto.StreamerService/Write", Bytes, Empty);
procedure!(StreamerRead, "/proto.StreamerService/Read", Empty, Bytes);

/// Service of the host that the bidirectional example calls: adds two numbers.
#[derive(Clone)]
pub(crate) struct AddHelper;

impl NamedService for AddHelper {
    const NAME: &'static str = "proto.AddHelper";
}

impl UnaryService<Summands> for AddHelper {
    type Response = Integer;
    type Future = BoxFuture<'static, Result<Response<Integer>, Status>>;

    fn call(&mut self, request: Request<Summands>) -> Self::Future {
        let Summands { a, b } = request.into_inner();
        Box::pin(async move { Ok(Response::new(Integer { value: a + b })) })
    }
}

impl Service<http::Request<Body>> for AddHelper {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move { Ok(Grpc::new(ProstCodec::default()).unary(Self, request).await) })
    }
}
