//! Tests of gRPC over our own connection, against servers with valid and invalid replies.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bridge::launch::{CallError, Connection, Loss, MAX_MESSAGE, Procedure};
use h2::server::SendResponse;
use prost::Message as _;
use pulumi_proto::rpc;
use tokio::io::DuplexStream;
use tonic::codegen::Bytes;
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tonic::{Code, Status};

struct GetPluginInfo;

impl Procedure for GetPluginInfo {
    const PATH: &'static str = "/pulumirpc.ResourceProvider/GetPluginInfo";
    type Request = rpc::PluginInfo;
    type Reply = rpc::PluginInfo;
}

type Requests = Arc<Mutex<Vec<(Request<()>, Vec<u8>)>>>;

/// Starts a server that handles each request with `handler`. Returns a connection to it and its received requests.
fn server(handler: impl Fn(SendResponse<Bytes>) + Clone + Send + Sync + 'static) -> (Connection, Requests) {
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    let connection = Connection::new(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve(far, Arc::clone(&seen), handler.clone()));
        async { Ok(near) }
    });
    (connection, requests)
}

async fn serve(far: DuplexStream, seen: Requests, handler: impl Fn(SendResponse<Bytes>)) {
    let mut connection = h2::server::handshake(far).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (head, mut body) = request.into_parts();
        let seen = Arc::clone(&seen);
        // The body arrives only while the connection is polled, so it is read in another task.
        tokio::spawn(async move {
            let mut bytes = Vec::new();
            while let Some(Ok(data)) = body.data().await {
                bytes.extend_from_slice(&data);
                body.flow_control().release_capacity(data.len()).unwrap();
            }
            seen.lock().unwrap().push((Request::from_parts(head, ()), bytes));
        });
        handler(respond);
    }
}

fn headers<const N: usize>(fields: [(&'static str, &'static str); N]) -> HeaderMap {
    fields.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).into_iter().collect()
}

/// Returns a handler that sends these frames, then the trailers if there are any.
fn body(frames: Vec<Vec<u8>>, trailers: Option<HeaderMap>) -> impl Fn(SendResponse<Bytes>) + Clone {
    move |mut respond| {
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        for frame in &frames {
            stream.send_data(frame.clone().into(), false).unwrap();
        }
        match &trailers {
            Some(trailers) => stream.send_trailers(trailers.clone()).unwrap(),
            None => stream.send_data(Bytes::new(), true).unwrap(),
        }
    }
}

fn info(version: &str) -> rpc::PluginInfo {
    rpc::PluginInfo { version: version.to_owned() }
}

fn framed(message: &rpc::PluginInfo) -> Vec<u8> {
    let bytes = message.encode_to_vec();
    [&[0][..], &u32::try_from(bytes.len()).unwrap().to_be_bytes(), &bytes].concat()
}

fn ok() -> Option<HeaderMap> {
    Some(headers([("grpc-status", "0")]))
}

/// Shows: performance.md#calls-of-plugins "Calls use an HTTP/2 connection of our own"
#[tokio::test]
async fn call_sends_a_grpc_request() {
    let (connection, requests) = server(body(vec![framed(&info("1.2.3"))], ok()));
    assert_eq!(connection.call::<GetPluginInfo>(&info("ours")).await.unwrap(), info("1.2.3"));
    let (head, bytes) = requests.lock().unwrap().pop().unwrap();
    assert_eq!((head.method().as_str(), head.uri().path()), ("POST", GetPluginInfo::PATH));
    let header = |name: &str| head.headers().get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!((header("te"), header("content-type")), ("trailers".into(), "application/grpc".into()));
    assert!(header("user-agent").starts_with("sc/"), "{head:?}");
    assert_eq!(bytes, framed(&info("ours")));
}

#[tokio::test]
async fn message_is_decoded_from_pieces_of_any_size() {
    let message = info(&"v".repeat(70_000));
    for size in [1, 4, 6, 16_384] {
        let pieces = framed(&message).chunks(size).map(<[u8]>::to_vec).collect();
        let (connection, _) = server(body(pieces, ok()));
        assert_eq!(connection.call::<GetPluginInfo>(&message).await.unwrap(), message, "{size}");
    }
}

#[tokio::test]
async fn invalid_replies_are_errors_with_their_reason() {
    let good = framed(&info("1"));
    let mut compressed = good.clone();
    compressed[0] = 1;
    let mut huge = vec![0];
    huge.extend(u32::try_from(MAX_MESSAGE + 1).unwrap().to_be_bytes());
    let refusal = Some(headers([("grpc-status", "5"), ("grpc-message", "gone%20away")]));
    let cases = [
        (vec![], refusal, "status", "gone away"),
        (vec![], ok(), "not gRPC", "the reply has no message"),
        (vec![good.clone(), good.clone()], ok(), "not gRPC", "the reply has more than one message"),
        (vec![good[..6].to_vec()], ok(), "not gRPC", "the reply ended in the middle of a message"),
        (vec![good], None, "not gRPC", "the reply ended without a status"),
        (vec![compressed], ok(), "not gRPC", "the reply is compressed, which was not requested"),
        (vec![huge], ok(), "too large", "a message of 419430401 bytes is larger than 419430400"),
    ];
    for (frames, trailers, kind, message) in cases {
        let (connection, _) = server(body(frames, trailers));
        let error = connection.call::<GetPluginInfo>(&info("x")).await.unwrap_err();
        let found = match &error {
            CallError::Status(_) => "status",
            CallError::Lost { loss: Loss::NotGrpc(_), .. } => "not gRPC",
            CallError::Lost { loss: Loss::TooLarge(_), .. } => "too large",
            other => panic!("{message}: {other:?}"),
        };
        assert_eq!((found, error.to_string().as_str()), (kind, message));
    }
}

#[tokio::test]
async fn lost_reply_contains_the_bytes_that_were_received() {
    let good = framed(&info("1.2"));
    let mut huge = vec![0];
    huge.extend(u32::try_from(MAX_MESSAGE + 1).unwrap().to_be_bytes());
    huge.extend(b"start");
    let undecodable = [&[0, 0, 0, 0, 3][..], &[0x0a, 0x09, b'x']].concat();
    for (frames, trailers, expected) in [
        (vec![good.clone()], None, &good[5..]),
        (vec![good[..8].to_vec()], ok(), &good[5..8]),
        (vec![good.clone(), good.clone()], ok(), &good[5..]),
        (vec![huge.clone()], ok(), b"start".as_slice()),
        (vec![undecodable.clone()], ok(), &undecodable[5..]),
    ] {
        let (connection, _) = server(body(frames, trailers));
        let error = connection.call::<GetPluginInfo>(&info("x")).await.unwrap_err();
        let CallError::Lost { received, .. } = error else { panic!("{error:?}") };
        assert_eq!(received, expected);
    }
}

fn returned_status<T: std::fmt::Debug>(reply: Result<T, CallError>) -> Status {
    match reply.unwrap_err() {
        CallError::Status(status) => status,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn reply_without_messages_returns_its_status() {
    let (connection, _) = server(|mut respond| {
        let mut response = Response::new(());
        *response.headers_mut() = headers([("grpc-status", "12"), ("grpc-message", "no")]);
        respond.send_response(response, true).unwrap();
    });
    let status = returned_status(connection.call::<GetPluginInfo>(&info("x")).await);
    assert_eq!((status.code(), status.message()), (Code::Unimplemented, "no"));

    let (connection, _) = server(|mut respond| {
        respond.send_response(Response::builder().status(503).body(()).unwrap(), true).unwrap();
    });
    let status = returned_status(connection.call::<GetPluginInfo>(&info("x")).await);
    assert_eq!(
        (status.code(), status.message()),
        (Code::Unavailable, "the reply is not gRPC but HTTP status 503 Service Unavailable")
    );

    let (connection, _) = server(|mut respond| {
        let mut response = Response::builder().status(415).body(()).unwrap();
        response.headers_mut().extend(headers([("grpc-status", "3"), ("grpc-message", "what?")]));
        respond.send_response(response, true).unwrap();
    });
    let status = returned_status(connection.call::<GetPluginInfo>(&info("x")).await);
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "what?"));
}

#[tokio::test]
async fn error_of_a_lost_call_has_a_source() {
    let (connection, _) = server(|mut respond| respond.send_reset(h2::Reason::INTERNAL_ERROR));
    let error = connection.call::<GetPluginInfo>(&info("x")).await.unwrap_err();
    let CallError::Lost { loss: Loss::Connection(status), .. } = error else { panic!("{error:?}") };
    assert!(std::error::Error::source(&status).is_some(), "{status:?}");
}

/// Shows: performance.md#calls-of-plugins "A connection that is lost is made again."
#[tokio::test]
async fn connection_is_shared_and_reopened_after_it_was_lost() {
    let dialled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&dialled);
    let servers = Arc::new(Mutex::new(Vec::new()));
    let running = Arc::clone(&servers);
    let connection = Connection::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
        let (near, far) = tokio::io::duplex(1 << 16);
        let respond = body(vec![framed(&info("1"))], ok());
        running.lock().unwrap().push(tokio::spawn(serve(far, Requests::default(), respond)));
        async { Ok(near) }
    });
    for _ in 0..3 {
        connection.clone().call::<GetPluginInfo>(&info("x")).await.unwrap();
    }
    assert_eq!(dialled.load(Ordering::SeqCst), 1);

    let server = servers.lock().unwrap().pop().unwrap();
    server.abort();
    server.await.unwrap_err();
    // The first call may fail because of the lost connection; the next one uses a new connection.
    connection.call::<GetPluginInfo>(&info("x")).await.ok();
    connection.call::<GetPluginInfo>(&info("x")).await.unwrap();
    assert_eq!(dialled.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn refused_connection_is_an_error_with_its_cause() {
    let connection = Connection::new(|| async { Err::<DuplexStream, _>(io::ErrorKind::ConnectionRefused.into()) });
    let error = connection.call::<GetPluginInfo>(&info("x")).await.unwrap_err();
    let CallError::NotSent(status) = error else { panic!("{error:?}") };
    assert_eq!(status.message(), "cannot connect");
    let causes = format!("{:?}", std::error::Error::source(&status));
    assert!(causes.contains("ConnectionRefused"), "{causes}");
}

#[tokio::test]
async fn call_in_flight_completes_on_a_connection_that_is_shutting_down() {
    let dialled = Arc::new(AtomicUsize::new(0));
    let (count, hold) = (Arc::clone(&dialled), Arc::new(tokio::sync::Notify::new()));
    let (release, shut) = (Arc::clone(&hold), Arc::new(tokio::sync::Notify::new()));
    let accepted = Arc::clone(&shut);
    let connection = Connection::new(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            tokio::spawn(serve_once(far, Arc::clone(&accepted), Arc::clone(&hold)));
        } else {
            tokio::spawn(serve(far, Requests::default(), body(vec![framed(&info("new"))], ok())));
        }
        async { Ok(near) }
    });
    let old = connection.clone();
    let in_flight = tokio::spawn(async move { old.call::<GetPluginInfo>(&info("x")).await });
    shut.notified().await;
    // A call that is sent before the GOAWAY frame arrives fails, so it is repeated.
    let mut next = Err(CallError::Status(Status::unknown("not called")));
    while next.is_err() {
        next = connection.call::<GetPluginInfo>(&info("x")).await;
    }
    assert_eq!((next.unwrap(), dialled.load(Ordering::SeqCst)), (info("new"), 2));
    release.notify_one();
    assert_eq!(in_flight.await.unwrap().unwrap(), info("old"));
}

/// Accepts one request, starts a graceful shutdown, notifies `accepted`, and replies once `hold` is notified.
async fn serve_once(far: DuplexStream, accepted: Arc<tokio::sync::Notify>, hold: Arc<tokio::sync::Notify>) {
    let mut connection = h2::server::handshake(far).await.unwrap();
    let (_, respond) = connection.accept().await.unwrap().unwrap();
    connection.graceful_shutdown();
    tokio::spawn(async move {
        hold.notified().await;
        body(vec![framed(&info("old"))], ok())(respond);
    });
    accepted.notify_one();
    while connection.accept().await.is_some() {}
}
