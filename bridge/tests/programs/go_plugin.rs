//! The plugin as a go-plugin server in plain text, which knows the engine from its broker only.

use std::path::Path;
use std::sync::Arc;

use pulumi_proto::go_plugin::grpc_broker_server::{GrpcBroker, GrpcBrokerServer};
use pulumi_proto::go_plugin::grpc_controller_server::{GrpcController, GrpcControllerServer};
use pulumi_proto::go_plugin::{ConnInfo, Empty};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::codegen::BoxStream;
use tonic::transport::server::Router;
use tonic::{Request, Response, Status, Streaming, async_trait};

use crate::Provider;

struct Broker {
    provider: Provider,
    engine: Arc<watch::Sender<String>>,
}

#[async_trait]
impl GrpcBroker for Broker {
    /// Takes the first service of the host for the engine. Records the end of the stream, which Go's library does not
    /// survive.
    async fn start_stream(
        &self,
        requests: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<BoxStream<ConnInfo>>, Status> {
        if self.provider.has_fault("serve no broker") {
            return Err(Status::unimplemented("unknown service plugin.GRPCBroker"));
        }
        let (provider, engine) = (self.provider.clone(), Arc::clone(&self.engine));
        tokio::spawn(async move {
            let mut requests = requests.into_inner();
            if provider.has_fault("miss the first announcement") {
                requests.message().await.unwrap();
            }
            while let Ok(Some(service)) = requests.message().await {
                if service.service_id == 1 {
                    engine.send_replace(format!("unix:{}", service.address));
                }
            }
            provider.record_call("end of the broker");
        });
        Ok(Response::new(Box::pin(futures_util::stream::pending())))
    }
}

struct Controller(Provider);

#[async_trait]
impl GrpcController for Controller {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.0.record_call("Shutdown");
        std::process::exit(0);
    }
}

/// Serves until Shutdown.
pub(crate) async fn serve(server: Router, provider: Provider, engine: watch::Sender<String>) {
    let folder = std::env::var_os("PLUGIN_UNIX_SOCKET_DIR").unwrap();
    let socket = Path::new(&folder).join("plugin1");
    let listener = UnixListener::bind(&socket).unwrap();
    println!("1|1|unix|{}|grpc|", socket.display());
    server
        .add_service(GrpcControllerServer::new(Controller(provider.clone())))
        .add_service(GrpcBrokerServer::new(Broker { provider, engine: Arc::new(engine) }))
        .serve_with_incoming(UnixListenerStream::new(listener))
        .await
        .unwrap();
}
