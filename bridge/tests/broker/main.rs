//! Tests of the broker of go-plugin, against a plugin in the same process that serves the broker as the library does.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod offers;
mod sequences;

use std::sync::Arc;

use bridge::launch::{Broker, Connection, MutualTls};
use futures_util::StreamExt as _;
use pulumi_proto::go_plugin::ConnInfo;
use pulumi_proto::go_plugin::grpc_broker_server::{GrpcBroker, GrpcBrokerServer};
use tempfile::TempDir;
use tokio::sync::{Mutex, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::BoxStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// Broker of a plugin, as the plugin sees it.
struct Plugin {
    /// Messages to the host; dropping it ends the stream.
    announcements: Option<mpsc::Sender<Result<ConnInfo, Status>>>,
    /// Messages of the host; closed when the host ends its side.
    received: mpsc::Receiver<ConnInfo>,
    folder: TempDir,
    broker: Broker,
}

impl Plugin {
    async fn announce(&self, message: ConnInfo) {
        self.announcements.as_ref().unwrap().send(Ok(message)).await.unwrap();
    }
}

fn message(id: u32, network: &str, address: &str) -> ConnInfo {
    ConnInfo { service_id: id, network: network.to_owned(), address: address.to_owned(), knock: None }
}

/// Ends of the stream for the service.
struct Ends {
    announcements: mpsc::Receiver<Result<ConnInfo, Status>>,
    received: mpsc::Sender<ConnInfo>,
}

struct Service(Arc<Mutex<Option<Ends>>>);

#[tonic::async_trait]
impl GrpcBroker for Service {
    async fn start_stream(
        &self,
        requests: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<BoxStream<ConnInfo>>, Status> {
        // Only the first stream carries messages.
        let Some(ends) = self.0.lock().await.take() else { return Err(Status::unknown("broker closed")) };
        let mut requests = requests.into_inner();
        tokio::spawn(async move {
            while let Ok(Some(message)) = requests.message().await {
                ends.received.send(message).await.unwrap();
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(ends.announcements))))
    }
}

/// Starts a plugin whose broker the host has opened.
async fn plugin(tls: Option<MutualTls>) -> Plugin {
    let (announcements, messages) = mpsc::channel(16);
    let (received_sender, received) = mpsc::channel(16);
    let ends = Arc::new(Mutex::new(Some(Ends { announcements: messages, received: received_sender })));
    let connection = Connection::new(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        let incoming = futures_util::stream::iter([Ok::<_, std::io::Error>(far)]);
        let incoming = incoming.chain(futures_util::stream::pending());
        let service = GrpcBrokerServer::new(Service(Arc::clone(&ends)));
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
        async { Ok(near) }
    });
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::open(&connection, folder.path(), tls).await.unwrap();
    Plugin { announcements: Some(announcements), received, folder, broker }
}
