//! Tests of calls whose requests and replies are both streams, against tonic and against servers that read little.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bridge::launch::{CallError, Connection, MAX_MESSAGE, Procedure, SendError};
use futures_util::{FutureExt as _, StreamExt as _};
use pulumi_proto::go_plugin::ConnInfo;
use pulumi_proto::go_plugin::grpc_broker_server::{GrpcBroker, GrpcBrokerServer};
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::BoxStream;
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status, Streaming};

struct StartStream;

impl Procedure for StartStream {
    const PATH: &'static str = "/plugin.GRPCBroker/StartStream";
    type Request = ConnInfo;
    type Reply = ConnInfo;
}

type Replies = mpsc::Sender<Result<ConnInfo, Status>>;
type Handler = Arc<dyn Fn(Streaming<ConnInfo>, Replies) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

struct Service(Handler);

#[tonic::async_trait]
impl GrpcBroker for Service {
    async fn start_stream(
        &self,
        requests: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<BoxStream<ConnInfo>>, Status> {
        let (replies, stream) = mpsc::channel(1);
        tokio::spawn((self.0)(requests.into_inner(), replies));
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

/// Returns a connection to a server of tonic that handles each call with `handler`.
fn server<F: Future<Output = ()> + Send + 'static>(
    handler: impl Fn(Streaming<ConnInfo>, Replies) -> F + Send + Sync + 'static,
) -> Connection {
    let handler: Handler = Arc::new(move |requests, replies| Box::pin(handler(requests, replies)));
    Connection::new(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        let service = GrpcBrokerServer::new(Service(Arc::clone(&handler))).max_decoding_message_size(MAX_MESSAGE);
        let incoming = futures_util::stream::iter([Ok::<_, std::io::Error>(far)]);
        // A stream of connections that ends stops the server, so it is kept open.
        let incoming = incoming.chain(futures_util::stream::pending());
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
        async { Ok(near) }
    })
}

fn message(id: u32) -> ConnInfo {
    ConnInfo { service_id: id, ..ConnInfo::default() }
}

/// Sends each request back until the requests end.
async fn echo(mut requests: Streaming<ConnInfo>, replies: Replies) {
    while let Ok(Some(request)) = requests.message().await {
        replies.send(Ok(request)).await.unwrap();
    }
}

#[tokio::test]
async fn requests_and_replies_alternate_until_the_requests_end() {
    let connection = server(echo);
    let (mut requests, mut replies) = connection.call_bidirectional::<StartStream>().await.unwrap();
    for id in 0..3 {
        requests.send(&message(id)).await.unwrap();
        assert_eq!(replies.next().await.unwrap(), Some(message(id)));
    }
    requests.finish().await.unwrap();
    assert_eq!(replies.next().await.unwrap(), None);
    assert_eq!(replies.next().await.unwrap(), None, "the end stays the end");
}

#[tokio::test]
async fn server_replies_before_the_first_request_and_after_the_last() {
    let connection = server(|mut requests, replies| async move {
        replies.send(Ok(message(1))).await.unwrap();
        let mut received = 10;
        while let Ok(Some(_)) = requests.message().await {
            received += 1;
        }
        replies.send(Ok(message(received))).await.unwrap();
        replies.send(Err(Status::not_found("no more"))).await.unwrap();
    });
    let (mut requests, mut replies) = connection.call_bidirectional::<StartStream>().await.unwrap();
    assert_eq!(replies.next().await.unwrap(), Some(message(1)));
    requests.send(&message(0)).await.unwrap();
    drop(requests);
    assert_eq!(replies.next().await.unwrap(), Some(message(11)), "dropped requests are ended, not cancelled");
    let error = replies.next().await.unwrap_err();
    let CallError::Status(status) = error else { panic!("{error:?}") };
    assert_eq!((status.code(), status.message()), (Code::NotFound, "no more"));
    assert_eq!(replies.next().await.unwrap(), None);
}

#[tokio::test]
async fn large_messages_pass_in_both_directions() {
    let connection = server(echo);
    let large = ConnInfo { address: "a".repeat(9 * 1024 * 1024), ..ConnInfo::default() };
    let (mut requests, mut replies) = connection.call_bidirectional::<StartStream>().await.unwrap();
    for _ in 0..2 {
        let (sent, received) = tokio::join!(requests.send(&large), replies.next());
        sent.unwrap();
        assert_eq!(received.unwrap().unwrap().address.len(), large.address.len());
    }
}

#[tokio::test]
async fn sender_waits_for_a_server_that_does_not_read() {
    let release = Arc::new(Notify::new());
    let (hold, count) = (Arc::clone(&release), Arc::new(AtomicUsize::new(0)));
    let received = Arc::clone(&count);
    let connection = server(move |mut requests, replies| {
        let (hold, count) = (Arc::clone(&hold), Arc::clone(&count));
        async move {
            hold.notified().await;
            while let Ok(Some(_)) = requests.message().await {
                count.fetch_add(1, Ordering::SeqCst);
            }
            replies.send(Ok(message(7))).await.unwrap();
        }
    });
    let (mut requests, mut replies) = connection.call_bidirectional::<StartStream>().await.unwrap();
    let piece = ConnInfo { address: "a".repeat(64 * 1024), ..ConnInfo::default() };
    let mut sent = 0;
    // The windows of the server hold far less than the 64 MiB of all messages.
    let blocked = loop {
        let mut sending = Box::pin(requests.send(&piece));
        // The tasks of the connection and of the server run until none of them can continue.
        let mut turns = 0;
        let result = loop {
            match sending.as_mut().now_or_never() {
                None if turns < 1000 => {
                    turns += 1;
                    tokio::task::yield_now().await;
                }
                result => break result,
            }
        };
        match result {
            Some(result) => result.unwrap(),
            None => break true,
        }
        sent += 1;
        if sent == 1024 {
            break false;
        }
    };
    assert!(blocked && sent < 64, "{sent} messages of 64 KiB were taken without a reader");
    release.notify_one();
    // The send that was cancelled is completed by the end of the requests.
    requests.finish().await.unwrap();
    assert_eq!(replies.next().await.unwrap(), Some(message(7)));
    assert_eq!(received.load(Ordering::SeqCst), sent + 1);
}

#[tokio::test]
async fn dropped_replies_cancel_the_call_of_the_server() {
    let (cancelled, mut seen) = mpsc::channel(1);
    let connection = server(move |mut requests, replies| {
        let cancelled = cancelled.clone();
        async move {
            // tonic reports a cancelled call as the end of its requests; only a cancelled call closes its replies.
            requests.message().await.ok();
            replies.closed().await;
            cancelled.send(()).await.unwrap();
        }
    });
    let (mut requests, replies) = connection.call_bidirectional::<StartStream>().await.unwrap();
    drop(replies);
    tokio::time::timeout(Duration::from_secs(10), seen.recv()).await.expect("the call is cancelled").unwrap();
    assert!(matches!(requests.send(&message(1)).await, Err(SendError::Ended)));
}

#[tokio::test]
async fn end_of_the_call_is_reported_to_the_sender() {
    let connection = server(|_, replies| async move {
        replies.send(Err(Status::permission_denied("closed"))).await.unwrap();
    });
    let (mut requests, mut replies) = connection.call_bidirectional::<StartStream>().await.unwrap();
    let error = replies.next().await.unwrap_err();
    assert!(matches!(&error, CallError::Status(status) if status.code() == Code::PermissionDenied), "{error:?}");
    // The reset of the server may arrive after its reply.
    while requests.send(&message(1)).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(requests.finish().await, Err(SendError::Ended)));
}

#[tokio::test]
async fn message_above_the_limit_is_refused_and_the_call_continues() {
    let connection = server(echo);
    let (mut requests, mut replies) = connection.call_bidirectional::<StartStream>().await.unwrap();
    let huge = ConnInfo { address: "a".repeat(MAX_MESSAGE), ..ConnInfo::default() };
    let error = requests.send(&huge).await.unwrap_err();
    assert!(matches!(&error, SendError::Refused(status) if status.code() == Code::OutOfRange), "{error:?}");
    requests.send(&message(2)).await.unwrap();
    assert_eq!(replies.next().await.unwrap(), Some(message(2)));
}
