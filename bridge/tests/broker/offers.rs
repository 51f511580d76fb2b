//! The host as the side that accepts: services behind sockets of the host, with and without TLS.

use std::sync::Arc;

use bridge::host::{BrokeredServer, ConnectionGuard};
use bridge::launch::{CallError, Connection, HostIdentity, Procedure};
use pulumi_proto::go_plugin::Empty;
use pulumi_proto::go_plugin::grpc_controller_server::{GrpcController, GrpcControllerServer};
use tokio::net::UnixStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use super::{message, plugin};

pub(crate) struct Shutdown;

impl Procedure for Shutdown {
    const PATH: &'static str = "/plugin.GRPCController/Shutdown";
    type Request = Empty;
    type Reply = Empty;
}

struct Controller;

#[tonic::async_trait]
impl GrpcController for Controller {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }
}

fn services() -> Routes {
    Routes::new(GrpcControllerServer::new(Controller))
}

async fn call_at(path: String) -> Result<Empty, CallError> {
    let connection = Connection::new(move || UnixStream::connect(path.clone()));
    connection.call::<Shutdown>(&Empty {}).await
}

#[tokio::test]
async fn offered_services_are_announced_and_served_until_they_are_dropped() {
    let mut plugin = plugin(None).await;
    let guard = Arc::new(ConnectionGuard::default());
    let first = BrokeredServer::offer(&plugin.broker, services(), Arc::clone(&guard)).await.unwrap();
    let second = BrokeredServer::offer(&plugin.broker, services(), guard).await.unwrap();
    assert_eq!((first.id(), second.id()), (1, 2), "the host counts from 1");
    let folder = plugin.folder.path().to_owned();
    for id in [1, 2] {
        let announced = plugin.received.recv().await.unwrap();
        assert_eq!(announced, message(id, "unix", folder.join(format!("host{id}")).to_str().unwrap()));
        call_at(announced.address).await.unwrap();
    }
    drop(first);
    let path = folder.join("host1").display().to_string();
    assert!(matches!(call_at(path).await, Err(CallError::NotSent(_))));
    assert!(!folder.join("host1").exists() && folder.join("host2").exists());
}

#[tokio::test]
async fn services_of_both_sides_may_have_the_same_number() {
    let mut plugin = plugin(None).await;
    let server = BrokeredServer::offer(&plugin.broker, services(), Arc::default()).await.unwrap();
    // The plugin announces the socket of the host as its own service: a server that both can call.
    let announced = plugin.received.recv().await.unwrap();
    plugin.announce(announced).await;
    let connection = plugin.broker.dial(server.id()).await.unwrap();
    connection.call::<Shutdown>(&Empty {}).await.unwrap();
}

#[tokio::test]
async fn plain_client_is_refused_where_tls_was_agreed() {
    let (host, other) = (HostIdentity::generate().unwrap(), HostIdentity::generate().unwrap());
    let field = |identity: &HostIdentity| {
        identity.certificate_pem().lines().filter(|line| !line.starts_with('-')).collect::<String>()
    };
    // Both certificates are of this kind, so the test can take either side.
    let of_host = host.with_plugin_certificate(&field(&other)).unwrap();
    let of_plugin = other.with_plugin_certificate(&field(&host)).unwrap();
    let stranger = HostIdentity::generate().unwrap().with_plugin_certificate(&field(&host)).unwrap();

    let mut plugin = plugin(Some(of_host)).await;
    let _server = BrokeredServer::offer(&plugin.broker, services(), Arc::default()).await.unwrap();
    let path = plugin.received.recv().await.unwrap().address;
    assert!(call_at(path.clone()).await.is_err(), "plain text");
    for (tls, is_served) in [(of_plugin, true), (stranger, false)] {
        let path = path.clone();
        let connection = Connection::new(move || {
            let (path, tls) = (path.clone(), tls.clone());
            async move { tls.connect(UnixStream::connect(path).await?).await }
        });
        assert_eq!(connection.call::<Shutdown>(&Empty {}).await.is_ok(), is_served);
    }
}
