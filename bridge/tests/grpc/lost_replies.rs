//! Replies that cannot be used: the way in which each is lost, and the id that can be read nevertheless.

use std::sync::Arc;

use bridge::launch::{Connection, MAX_MESSAGE};
use bridge::provider::grpc::GrpcProvider;
use bridge::provider::{
    CreateRequest, DeleteRequest, LostReply, Method, Provider, ProviderError, UpdateRequest, Views,
};
use h2::server::SendResponse;
use prost::Message as _;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use pulumi_proto::property::wire::Bag;
use pulumi_proto::property::{SECRET_SIGNATURE, SIGNATURE_KEY, UNKNOWN_STRING};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::{google_rpc, rpc};
use tokio::io::DuplexStream;
use tonic::Status;
use tonic::codegen::Bytes;
use tonic::codegen::http::{HeaderMap, HeaderValue, Response};

use super::{ALL, texts, urn};

/// Reply of a server: sends a response, or none.
type Reply = Arc<dyn Fn(SendResponse<Bytes>) + Send + Sync>;

/// Returns a client of a server that handles each request with `reply`.
fn provider(reply: Reply) -> GrpcProvider {
    let connection = Connection::new(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve(far, Arc::clone(&reply)));
        async { Ok(near) }
    });
    GrpcProvider::new(connection, "rec", Some(ALL), None, None)
}

async fn serve(far: DuplexStream, reply: Reply) {
    let mut connection = h2::server::handshake(far).await.unwrap();
    while let Some(Ok((_, respond))) = connection.accept().await {
        reply(respond);
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
}

/// Returns a reply with these bytes and trailers.
fn raw(bytes: Vec<u8>, trailers: Option<HeaderMap>) -> Reply {
    Arc::new(move |mut respond| {
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        stream.send_data(bytes.clone().into(), trailers.is_none()).unwrap();
        if let Some(trailers) = &trailers {
            stream.send_trailers(trailers.clone()).unwrap();
        }
    })
}

fn ok() -> Option<HeaderMap> {
    Some([("grpc-status".parse().unwrap(), HeaderValue::from_static("0"))].into_iter().collect())
}

fn message(bytes: &[u8]) -> Reply {
    raw(framed(bytes), ok())
}

fn created(id: &str, properties: Bag) -> Vec<u8> {
    rpc::CreateResponse { id: id.into(), properties: Some(properties), ..Default::default() }.encode_to_vec()
}

/// Returns a partial failure with a detail of these bytes.
fn partial_failure(detail: Vec<u8>) -> Reply {
    let type_url = "type.googleapis.com/pulumirpc.ErrorResourceInitFailed".to_owned();
    let details = vec![prost_types::Any { type_url, value: detail }];
    let status = google_rpc::Status { code: 2, message: "not ready".into(), details };
    let status = Status::with_details(tonic::Code::Unknown, "not ready", status.encode_to_vec().into());
    let mut trailers = HeaderMap::new();
    status.add_header(&mut trailers).unwrap();
    Arc::new(move |mut respond| {
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        stream.send_trailers(trailers.clone()).unwrap();
    })
}

fn failed(id: &str, properties: Bag) -> Vec<u8> {
    rpc::ErrorResourceInitFailed { id: id.into(), properties: Some(properties), ..Default::default() }.encode_to_vec()
}

fn bag(value: Value) -> Bag {
    Struct { fields: [("a".to_owned(), value)].into() }.into()
}

/// Returns nested lists, encoded without recursion.
fn nested(depth: usize) -> Bag {
    let mut value = Value { kind: Some(Kind::BoolValue(true)) }.encode_to_vec();
    let field = |tag: u8, bytes: &[u8]| {
        let mut field = vec![tag << 3 | 2];
        prost::encoding::encode_varint(bytes.len() as u64, &mut field);
        field.extend_from_slice(bytes);
        field
    };
    for _ in 0..depth {
        // `Value.list_value`, and `ListValue.values`.
        value = field(6, &field(1, &value));
    }
    let entry = [field(1, b"a"), field(2, &value)].concat();
    Bag::from_encoded(field(1, &entry))
}

/// Returns properties with a text that is not UTF-8.
fn not_utf8() -> Bag {
    // Field 3 of `Value` is its text.
    Bag::from_encoded([&[0x0a, 8, 0x0a, 1, b'a', 0x12, 3, 0x1a, 1, 0xff][..]].concat())
}

/// Returns properties that cannot be used, each with the way in which their reply is lost.
fn unusable_properties() -> Vec<(Bag, LostReply)> {
    let text = |text: &str| Value { kind: Some(Kind::StringValue(text.to_owned())) };
    let secret = Struct { fields: [(SIGNATURE_KEY.to_owned(), text(SECRET_SIGNATURE))].into() };
    let list = ListValue { values: vec![text(UNKNOWN_STRING)] };
    vec![
        (not_utf8(), LostReply::UndecodableProperties),
        (nested(100_000), LostReply::TooDeep),
        (bag(Value { kind: None }), LostReply::NoKind),
        (bag(text(UNKNOWN_STRING)), LostReply::Unknown),
        (bag(Value { kind: Some(Kind::ListValue(list)) }), LostReply::Unknown),
        (bag(Value { kind: Some(Kind::StructValue(secret)) }), LostReply::MalformedValue),
    ]
}

fn create() -> CreateRequest {
    CreateRequest { urn: urn(), inputs: Arc::default(), timeout: None, preview: false, views: Views::default() }
}

/// Shows: engine.md#failures "The id is read even if the rest of the reply cannot be decoded."
#[tokio::test]
async fn each_unusable_reply_to_create_is_lost_with_the_id_that_can_be_read() {
    let good = created("i", texts([("a", "1")]));
    let mut compressed = framed(&good);
    compressed[0] = 1;
    let mut too_large = vec![0];
    too_large.extend(u32::try_from(MAX_MESSAGE + 1).unwrap().to_be_bytes());
    let http_error: Reply = Arc::new(|mut respond| {
        respond.send_response(Response::builder().status(502).body(()).unwrap(), true).unwrap();
    });
    let mut cases = vec![
        (
            Arc::new(|mut respond: SendResponse<Bytes>| respond.send_reset(h2::Reason::CANCEL)) as Reply,
            LostReply::ConnectionLost,
            "",
        ),
        (raw(framed(&good), None), LostReply::NotGrpc, "i"),
        (raw(framed(&good)[..9].to_vec(), ok()), LostReply::NotGrpc, "i"),
        (raw(framed(&good)[..7].to_vec(), ok()), LostReply::NotGrpc, ""),
        (raw([framed(&good), framed(&good)].concat(), ok()), LostReply::NotGrpc, "i"),
        (raw(compressed, ok()), LostReply::NotGrpc, ""),
        (raw(Vec::new(), ok()), LostReply::NotGrpc, ""),
        (http_error, LostReply::NotGrpc, ""),
        (raw(too_large, ok()), LostReply::TooLarge, ""),
        // The id, then a field that is longer than the message.
        (message(&[0x0a, 1, b'i', 0x12, 9]), LostReply::Undecodable, "i"),
        // An id that is not UTF-8.
        (message(&[0x0a, 1, 0xff]), LostReply::Undecodable, ""),
        (message(&created("", texts([("a", "1")]))), LostReply::NoId, ""),
        (partial_failure(failed("", texts([("a", "1")]))), LostReply::NoId, ""),
        // The id, then a reason that is not UTF-8.
        (partial_failure(vec![0x0a, 1, b'i', 0x1a, 1, 0xff]), LostReply::Undecodable, "i"),
    ];
    for (properties, lost) in unusable_properties() {
        cases.push((message(&created("i", properties.clone())), lost, "i"));
        cases.push((partial_failure(failed("i", properties)), lost, "i"));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (index, (reply, lost, id)) in cases.into_iter().enumerate() {
        let error = provider(reply).create(create()).await.unwrap_err();
        assert_eq!(error.lost_reply(Method::Create), Some(lost), "case {index}: {error:?}");
        assert_eq!(ResourceId::text(error.id_in_lost_reply()), id, "case {index}: {error:?}");
        seen.insert(lost);
    }
    // The exit of a process is tested in `failures.rs`, an invalid field in `replies.rs`.
    let elsewhere = [LostReply::PluginExited, LostReply::InvalidField];
    let missing = LostReply::ALL.into_iter().filter(|lost| !seen.contains(lost) && !elsewhere.contains(lost));
    assert_eq!(missing.collect::<Vec<_>>(), []);
}

/// Shows: engine.md#stop-and-abort "An id that is not UTF-8 cannot be recorded: the error of the Create quotes it"
#[tokio::test]
async fn id_that_is_not_utf8_is_quoted() {
    for reply in [message(&[0x0a, 2, b'i', 0xff]), partial_failure(vec![0x0a, 2, b'i', 0xff])] {
        let error = provider(reply).create(create()).await.unwrap_err();
        assert_eq!(error.id_in_lost_reply(), None);
        assert!(error.to_string().contains(r#"the id of the resource is "i\xff", which is not UTF-8"#), "{error}");
    }
}

#[tokio::test]
async fn unusable_replies_to_update_and_delete_are_lost() {
    let update = || UpdateRequest {
        urn: urn(),
        id: ResourceId::new("i"),
        olds: Arc::default(),
        old_inputs: Arc::default(),
        news: Arc::default(),
        timeout: None,
        ignore_changes: Vec::new(),
        preview: false,
        views: Views::default(),
    };
    for (properties, lost) in unusable_properties() {
        let reply = rpc::UpdateResponse { properties: Some(properties), ..Default::default() }.encode_to_vec();
        let error = provider(message(&reply)).update(update()).await.unwrap_err();
        assert_eq!(error.lost_reply(Method::Update), Some(lost), "{error:?}");
    }
    let delete = DeleteRequest {
        urn: urn(),
        id: ResourceId::new("i"),
        outputs: Arc::default(),
        old_inputs: Arc::default(),
        timeout: None,
        views: Views::default(),
    };
    let error = provider(raw(framed(&[]), None)).delete(delete).await.unwrap_err();
    assert_eq!(error.lost_reply(Method::Delete), Some(LostReply::NotGrpc), "{error:?}");
}

#[tokio::test]
async fn request_that_was_not_sent_is_no_lost_reply() {
    let refused = Connection::new(|| async { Err::<DuplexStream, _>(std::io::ErrorKind::ConnectionRefused.into()) });
    let error = GrpcProvider::new(refused, "rec", Some(ALL), None, None).create(create()).await.unwrap_err();
    assert_eq!((error.lost_reply(Method::Create), error.is_indeterminate()), (None, false), "{error:?}");
    assert!(matches!(error, ProviderError::Failed { .. }));
}
