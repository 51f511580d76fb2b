//! Requests to S3 and the replies to them.

use std::collections::VecDeque;
use std::error::Error as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloud::s3::{S3Url, open_s3};
use state::store::{
    Durability, ObjectError, ObjectErrorKind, Objects, OutageReport, StateStore, StoreOptions, WriteCondition,
    WriteError, compliance,
};
use tests::http::{HttpServer, Request, Response};
use tests::s3_server::S3Server;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::objects::check_objects;

pub(crate) const LIMIT: u64 = 1024;

/// Opens the bucket `reef` at a server, away from the files of the user.
pub(crate) async fn open(url: &str, variables: &[(&str, &str)]) -> Arc<dyn Objects> {
    let home = tempfile::tempdir().unwrap();
    open_in(home.path(), url, variables).await
}

/// Opens the bucket `reef` at a server for a user with a home folder.
pub(crate) async fn open_in(home: &Path, url: &str, variables: &[(&str, &str)]) -> Arc<dyn Objects> {
    let variables = [("AWS_REGION", "us-east-1")].iter().chain(variables);
    let environment = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let url = S3Url::parse(&format!("s3://reef/team?endpoint={url}"), &environment).unwrap();
    open_s3(&url, None, &environment, Some(home), OutageReport::default()).await.unwrap()
}

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "hidden")];

/// Starts a server that sends each response once, in order.
pub(crate) async fn serve(responses: impl IntoIterator<Item = Response>) -> HttpServer {
    let responses: Mutex<VecDeque<_>> = Mutex::new(responses.into_iter().collect());
    let next = move || responses.lock().unwrap().pop_front().unwrap_or_else(|| Response::new(500, "no more responses"));
    HttpServer::start(move |_| std::future::ready(next())).await.unwrap()
}

/// Returns a content as S3 sends it.
pub(crate) fn object(content: &str, tag: &str) -> Response {
    Response::new(200, content).with("ETag", tag).with("Last-Modified", "Thu, 26 Nov 2026 08:00:00 GMT")
}

/// Returns the reply to a failed request, with elements that no message may show.
pub(crate) fn failure(status: u16, code: &str, message: &str) -> Response {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message>\
         <Token-0>hidden</Token-0><AWSAccessKeyId>AKIATEST</AWSAccessKeyId><StringToSign>hidden</StringToSign></Error>"
    );
    Response::new(status, text).with("Content-Type", "application/xml")
}

pub(crate) fn text(error: &ObjectError) -> String {
    let text = format!("{error}: {}", error.source().unwrap());
    assert!(!text.contains("hidden") && !text.contains("AKIATEST"), "{text}");
    text
}

fn lines(requests: &[Request]) -> Vec<String> {
    requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

#[tokio::test]
async fn stand_in_of_s3_is_a_compliant_store() {
    let server = S3Server::start(Duration::ZERO).await.unwrap();
    check_objects(open(&server.url(), &KEYS).await).await;
    let server = S3Server::start(Duration::ZERO).await.unwrap();
    let objects = open(&server.url(), &KEYS).await;
    compliance::run(&StateStore::open(objects, StoreOptions::default()).await.unwrap()).await;
}

/// Shows: state.md#in-s3 "A connection may take 10 seconds, a reply 30 plus the time for the upload at 64 KiB/s. Failed
///   requests are repeated for a minute"
#[tokio::test]
async fn throttled_requests_are_repeated() {
    let slow = || failure(503, "SlowDown", "Reduce your request rate.");
    let server = serve([slow(), Response::new(500, ""), object("{}", "\"1\"")]).await;
    let objects = open(&server.url(), &KEYS).await;
    let read = objects.read("a.json", LIMIT).await.unwrap().unwrap();
    assert_eq!((read.content.as_slice(), read.version.tag.as_deref()), (b"{}".as_slice(), Some("\"1\"")));
    assert_eq!(read.modified.to_string(), "2026-11-26T08:00:00Z");
    assert_eq!(lines(&server.requests()), vec!["GET /reef/team/a.json"; 3]);
}

#[tokio::test]
async fn throttled_write_keeps_its_condition() {
    let server = serve([failure(503, "SlowDown", "Wait."), Response::new(200, "").with("ETag", "\"1\"")]).await;
    let objects = open(&server.url(), &KEYS).await;
    let version =
        objects.write("a.json", b"{}".to_vec().into(), &WriteCondition::Missing, Durability::Immediate).await.unwrap();
    assert_eq!(version.tag.as_deref(), Some("\"1\""));
    for request in server.requests() {
        assert_eq!((request.method.as_str(), request.header("if-none-match")), ("PUT", Some("*")));
        assert_eq!(request.body, b"{}");
        assert!(request.header("authorization").unwrap().starts_with("AWS4-HMAC-SHA256 Credential=AKIATEST/"));
    }
    assert_eq!(server.requests().len(), 2);
}

/// The store has written, and its reply is lost: the repetition finds the object.
#[tokio::test]
async fn write_whose_reply_is_lost_may_find_its_own_object() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = async move {
        for reply in [None, Some("HTTP/1.1 412 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n{}") {
                request.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(reply.unwrap_or_default().as_bytes()).await.unwrap();
        }
    };
    let server = tokio::spawn(serve);
    let objects = open(&format!("http://{address}"), &KEYS).await;
    let written = objects.write("a.json", b"{}".to_vec().into(), &WriteCondition::Missing, Durability::Immediate).await;
    assert!(matches!(written, Err(WriteError::Condition)), "{written:?}");
    server.await.unwrap();
}

#[tokio::test]
async fn content_that_ends_early_is_continued() {
    let mut cut = object("0123", "\"1\"");
    cut.content_length = Some(10);
    let rest = Response { status: 206, ..object("456789", "\"1\"") }.with("Content-Range", "bytes 4-9/10");
    let server = serve([cut, rest]).await;
    let read = open(&server.url(), &KEYS).await.read("a.json", LIMIT).await.unwrap().unwrap();
    assert_eq!(read.content, b"0123456789");
    assert_eq!(server.requests()[1].header("range"), Some("bytes=4-9"));
}

#[tokio::test]
async fn content_that_changes_while_it_is_read_is_read_again() {
    let mut cut = object("0123", "\"1\"");
    cut.content_length = Some(10);
    let other = Response { status: 206, ..object("XXXXXX", "\"2\"") }.with("Content-Range", "bytes 4-9/10");
    let server = serve([cut, other, object("abc", "\"2\"")]).await;
    let read = open(&server.url(), &KEYS).await.read("a.json", LIMIT).await.unwrap().unwrap();
    assert_eq!((read.content.as_slice(), read.version.tag.as_deref()), (b"abc".as_slice(), Some("\"2\"")));
}

#[tokio::test]
async fn list_that_ends_early_is_repeated() {
    let page = "<ListBucketResult><Contents><Key>team/a/x.json</Key><Size>2</Size><LastModified>2026-11-26T08:00:00.000Z\
         </LastModified><ETag>\"1\"</ETag></Contents></ListBucketResult>";
    let mut cut = Response::new(200, &page[..60]);
    cut.content_length = Some(page.len());
    let server = serve([cut, Response::new(200, page)]).await;
    let listed = open(&server.url(), &KEYS).await.list("a").await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].name.as_str(), listed[0].modified.to_string().as_str()), ("x.json", "2026-11-26T08:00:00Z"));
    assert_eq!(lines(&server.requests()), vec!["GET /reef?delimiter=%2F&list-type=2&prefix=team%2Fa%2F"; 2]);
}

#[tokio::test]
async fn object_above_the_limit_is_not_received() {
    let mut large = object("0", "\"1\"");
    large.content_length = Some(1025);
    let server = serve([large]).await;
    let error = open(&server.url(), &KEYS).await.read("a.json", LIMIT).await.unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::TooLarge);
    assert_eq!(text(&error), "cannot read s3://reef/team/a.json: it has 1025 bytes; the limit is 1024");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn final_replies_are_not_repeated_and_show_no_credentials() {
    let redirect = || failure(301, "PermanentRedirect", "Use the endpoint.").with("x-amz-bucket-region", "eu-west-1");
    let cases = [
        (
            redirect(),
            ObjectErrorKind::Other,
            "the bucket `reef` is in the region `eu-west-1`, not in `us-east-1`: add `region=eu-west-1` to its URL \
             (PermanentRedirect: Use the endpoint.)",
        ),
        (
            redirect().with("Location", "http://127.0.0.1:9/"),
            ObjectErrorKind::Other,
            "the bucket `reef` is in the region `eu-west-1`, not in `us-east-1`: add `region=eu-west-1` to its URL \
             (PermanentRedirect: Use the endpoint.)",
        ),
        (
            failure(403, "AccessDenied", "Access Denied"),
            ObjectErrorKind::Denied,
            "the credentials of AWS (environment, profile `default`) do not allow it: it needs s3:GetObject and s3:ListBucket \
             (AccessDenied: Access Denied)",
        ),
        (
            failure(403, "SignatureDoesNotMatch", "Check your key."),
            ObjectErrorKind::Credentials,
            "the credentials of AWS (environment, profile `default`) have a secret key that does not belong to the access key \
             (SignatureDoesNotMatch: Check your key.)",
        ),
        (
            failure(403, "RequestTimeTooSkewed", "The difference is too large."),
            ObjectErrorKind::Other,
            "the clock of this machine is wrong: set it (RequestTimeTooSkewed: The difference is too large.)",
        ),
        (
            Response::new(404, "<html>Not here</html>"),
            ObjectErrorKind::Other,
            "HOST is no store of objects, or not at this path (the reply is 404 Not Found, without a code of the store)",
        ),
        (
            Response::new(200, "no ETag"),
            ObjectErrorKind::Other,
            "the reply has no version of the object (ETag): it is not from a store",
        ),
    ];
    for (response, kind, expected) in cases {
        let server = serve([response]).await;
        let error = open(&server.url(), &KEYS).await.read("a.json", LIMIT).await.unwrap_err();
        let text = text(&error).replace(server.url().trim_start_matches("http://"), "HOST");
        assert_eq!((text, error.kind), (format!("cannot read s3://reef/team/a.json: {expected}"), kind));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn missing_object_is_none_and_ends_conditions() {
    let missing = || failure(404, "NoSuchKey", "The specified key does not exist.");
    let server = serve([missing(), missing(), missing(), missing()]).await;
    let objects = open(&server.url(), &KEYS).await;
    assert!(objects.read("a.json", LIMIT).await.unwrap().is_none());
    assert!(!objects.copy("a.json", "b.json").await.unwrap());
    objects.remove("a.json").await.unwrap();
    let version = state::store::ObjectVersion { tag: Some("\"1\"".to_owned()), generation: None };
    let written =
        objects.write("a.json", Vec::new().into(), &WriteCondition::Unchanged(version), Durability::Immediate).await;
    assert!(matches!(written, Err(WriteError::Condition)), "{written:?}");
    assert_eq!(server.requests()[3].header("if-match"), Some("\"1\""));
}

/// Shows: state.md#in-s3 "A service that replies that it has no conditional writes is refused, and so is one that
///   ignores conditions"
#[tokio::test]
async fn store_without_conditional_writes_is_reported() {
    let server = serve([failure(501, "NotImplemented", "A header you provided implies functionality.")]).await;
    let objects = open(&server.url(), &KEYS).await;
    let written = objects.write("a.json", Vec::new().into(), &WriteCondition::Missing, Durability::Immediate).await;
    let Err(WriteError::Request(error)) = written else { panic!("{written:?}") };
    assert_eq!(error.kind, ObjectErrorKind::Unsupported);
    assert_eq!(
        text(&error),
        "cannot write s3://reef/team/a.json: the store lacks a function that is needed, such as conditional writes (If-Match, \
         If-None-Match): use another store (NotImplemented: A header you provided implies functionality.)"
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn anonymous_requests_have_no_signature() {
    let server = serve([object("{}", "\"1\"")]).await;
    let objects = open(&format!("{}&anonymous=true", server.url()), &KEYS).await;
    assert!(objects.read("a.json", LIMIT).await.unwrap().is_some());
    assert_eq!(server.requests()[0].header("authorization"), None);
}
