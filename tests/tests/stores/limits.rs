//! Replies that a client must not wait for, keep or believe: without an end, too slow, or not from a store.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::path::Path;
use std::sync::Arc;

use cloud::gcs::{GcsUrl, open_gcs};
use cloud::kms::KeyServices;
use cloud::postgres::{PostgresObjects, PostgresUrl};
use state::secrets::{KeyFailureKind, KeyService as _};
use state::store::{Durability, ObjectError, ObjectErrorKind, Objects, OutageReport, WriteCondition, WriteError};
use tests::google_kms::TOKEN;
use tests::http::{HttpServer, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::s3;

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "hidden")];
const PAGE: &str = "<!DOCTYPE html><html><body>Please log in</body></html>";

/// Opens the bucket `reef` at a server, as one of Amazon and as one of Google.
async fn both(url: &str) -> [Arc<dyn Objects>; 2] {
    let environment = [("STORAGE_EMULATOR_HOST".to_owned(), url.to_owned())].into();
    let gcs = GcsUrl::parse("gs://reef/team").unwrap();
    let gcs = open_gcs(&gcs, None, &environment, Some(Path::new("/nonexistent")), OutageReport::default()).unwrap();
    [s3::open(url, &KEYS).await, gcs]
}

/// Returns an error with its cause, with the host of a server as `HOST`.
fn text(error: &ObjectError, url: &str) -> String {
    format!("{error}: {}", error.source().unwrap()).replace(url.trim_start_matches("http://"), "HOST")
}

/// Server that sends a beginning to each client, and then a text again and again, as long as the client receives it.
struct EndlessServer {
    port: u16,
    _task: JoinSet<()>,
}

impl EndlessServer {
    async fn start(beginning: &'static [u8], repeated: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                clients.spawn(async move { drop(send_endlessly(client, beginning, repeated).await) });
            }
        });
        Self { port, _task: task }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

async fn send_endlessly(client: TcpStream, beginning: &[u8], repeated: &str) -> io::Result<()> {
    let mut client = BufReader::new(client);
    let mut request = [0; 8];
    client.read_exact(&mut request).await?;
    client.write_all(beginning).await?;
    let repeated = repeated.repeat(1000);
    loop {
        client.write_all(repeated.as_bytes()).await?;
    }
}

/// Shows: state.md#stores "What a store sends is limited"
#[tokio::test(flavor = "multi_thread")]
async fn reply_without_an_end_is_given_up() {
    let head = b"HTTP/1.1 200 X\r\nContent-Length: 10995116277760\r\n\r\n<ListBucketResult>";
    let server = EndlessServer::start(head, "<Contents><Key>team/a/k</Key><Size>1</Size></Contents>").await;
    for objects in both(&server.url()).await {
        for error in [objects.list("a").await.unwrap_err(), objects.list_all("a").await.unwrap_err()] {
            assert_eq!(error.kind, ObjectErrorKind::Other);
            let text = text(&error, &server.url());
            assert!(text.contains(": HOST sent more than 16777216 bytes in reply; check "), "{text}");
        }
        let error = objects.copy("a", "b").await.unwrap_err();
        assert!(text(&error, &server.url()).contains("HOST sent more than 16777216 bytes"), "{error:?}");
    }
    // The reply to a failed request: its beginning says what has failed.
    let head = b"HTTP/1.1 403 X\r\n\r\n<Error><Code>AccessDenied</Code><Message>No.</Message>";
    let server = EndlessServer::start(head, "<More>x</More>").await;
    for objects in both(&server.url()).await {
        let error = objects.read("a", s3::LIMIT).await.unwrap_err();
        assert_eq!(error.kind, ObjectErrorKind::Denied, "{error:?}");
    }
}

/// Shows: state.md#stores "a page of a proxy or of a login is neither an empty listing nor a lock that is gone"
#[tokio::test(flavor = "multi_thread")]
async fn web_page_with_success_is_no_reply_of_a_store() {
    for head in ["text/html; charset=utf-8", "text/plain"] {
        let page = move || {
            let page = Response::new(200, PAGE).with("Content-Type", head);
            page.with("ETag", "\"1\"").with("Last-Modified", "Thu, 26 Nov 2026 08:00:00 GMT")
        };
        let server = HttpServer::start(move |_| std::future::ready(page())).await.unwrap();
        for objects in both(&server.url()).await {
            let mut errors = vec![
                objects.list("a").await.unwrap_err(),
                objects.list_all("a").await.unwrap_err(),
                objects.copy("a", "b").await.map(drop).unwrap_err(),
                objects.remove("a").await.unwrap_err(),
            ];
            match objects.write("a", b"{}".to_vec().into(), &WriteCondition::Missing, Durability::Immediate).await {
                Err(WriteError::Request(error)) => errors.push(error),
                written => panic!("{written:?}"),
            }
            if head.starts_with("text/html") {
                errors.push(objects.read("a", s3::LIMIT).await.unwrap_err());
            }
            for error in errors {
                assert_eq!(error.kind, ObjectErrorKind::Other, "{error:?}");
                let text = text(&error, &server.url());
                assert!(text.contains(": HOST did not reply as a store of objects does: it sent "), "{text}");
                assert!(text.contains("; check ") && !text.contains("log in"), "{text}");
            }
        }
        // Nothing is repeated.
        let expected = if head.starts_with("text/html") { 12 } else { 10 };
        assert_eq!(server.requests().len(), expected);
    }
}

/// Shows: state.md#stores "A listing whose pages name one as the next that was received before, and one that lacks its
///   end, is an error."
#[tokio::test(flavor = "multi_thread")]
async fn listing_with_a_repeated_or_missing_token_is_an_error() {
    let page = |rest: &str| {
        format!(
            "<ListBucketResult>{rest}<Contents><Key>team/a/x</Key><Size>1</Size><ETag>\"1\"</ETag>\
             <LastModified>2026-11-26T08:00:00Z</LastModified></Contents></ListBucketResult>"
        )
    };
    let cases = [
        (
            "<IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken>",
            "the listing does not end: after 2 pages, the store names a page as the next one that it has sent before",
            2,
        ),
        (
            "<IsTruncated>true</IsTruncated>",
            "HOST did not reply as a store of objects does: it sent a part of a list, and not how to get the rest",
            1,
        ),
    ];
    for (rest, expected, requests) in cases {
        let page = page(rest);
        let server = HttpServer::start(move |_| std::future::ready(Response::new(200, page.clone()))).await.unwrap();
        for (number, objects) in both(&server.url()).await.into_iter().enumerate() {
            let text = text(&objects.list("a").await.unwrap_err(), &server.url());
            assert!(text.contains(expected), "{text}");
            assert_eq!(server.requests().len(), (number + 1) * requests);
        }
    }
    // The last page of some stores has an empty token.
    let last = page("<IsTruncated>false</IsTruncated><NextContinuationToken></NextContinuationToken>");
    let server = HttpServer::start(move |_| std::future::ready(Response::new(200, last.clone()))).await.unwrap();
    for objects in both(&server.url()).await {
        assert_eq!(objects.list("a").await.unwrap().len(), 1);
    }
}

fn postgres(port: u16) -> PostgresObjects {
    let url = format!("postgres://ada:hidden@127.0.0.1:{port}/reef?sslmode=disable");
    PostgresObjects::new(PostgresUrl::parse(&url, &BTreeMap::new(), None).unwrap(), OutageReport::default())
}

/// Shows: state.md#stores "What a store sends is limited"
#[tokio::test(flavor = "multi_thread")]
async fn server_that_sends_no_end_or_no_protocol_of_postgres_is_refused() {
    let hint = "check the host and the port of the URL, and a proxy on the way";
    let cases: [(&'static [u8], &'static str, &str); 3] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "<html>", "the server speaks HTTP, not the protocol of PostgreSQL"),
        // A row that never ends, after the login.
        (
            b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05ID\x7f\xff\xff\xff",
            "xxxxxxxx",
            "the server sends more than any reply to the request can have",
        ),
        // Notifications without an end, after the login.
        (
            b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I",
            "A\0\0\0\x0c\0\0\0\x01c\0p\0",
            "the server sends more than any reply to the request can have",
        ),
    ];
    for (beginning, repeated, expected) in cases {
        let server = EndlessServer::start(beginning, repeated).await;
        let objects = postgres(server.port);
        for error in [objects.list("a").await.unwrap_err(), objects.read("a", 1).await.unwrap_err()] {
            assert_eq!(error.kind, ObjectErrorKind::Other, "{error:?}");
            assert_eq!(error.source().unwrap().to_string(), format!("{expected}; {hint}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_of_no_key_service_are_errors() {
    let endless = EndlessServer::start(b"HTTP/1.1 200 X\r\n\r\n{\"", "xxxxxxxx").await;
    let page = HttpServer::start(|_| std::future::ready(Response::new(200, PAGE))).await.unwrap();
    let empty = HttpServer::start(|_| std::future::ready(Response::new(200, "{}"))).await.unwrap();
    let mut texts = Vec::new();
    for url in [endless.url(), page.url(), empty.url()] {
        let variables = [
            ("AWS_ACCESS_KEY_ID", "AKIATEST"),
            ("AWS_SECRET_ACCESS_KEY", "hidden"),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN),
            ("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS", &url),
        ];
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let services = KeyServices { environment, ..KeyServices::default() };
        for key in [
            format!("awskms://alias/reef?region=us-east-1&endpoint={url}"),
            "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k".to_owned(),
        ] {
            let failure = services.encrypt(&key, b"data key").await.unwrap_err();
            assert_eq!(failure.kind, KeyFailureKind::Other, "{failure}");
            texts.push(failure.to_string());
        }
    }
    insta::assert_snapshot!(texts.join("\n"), @"
    the key management service failed: the reply is none of AWS KMS (response error: length limit exceeded): check the endpoint, and a proxy or login page on the way
    the key management service failed: 127.0.0.1 did not reply as a service of Google Cloud does: it sent more than 4 MiB; check a proxy or login page on the way
    the key management service failed: the reply is none of AWS KMS (it cannot be parsed): check the endpoint, and a proxy or login page on the way
    the key management service failed: 127.0.0.1 did not reply as a service of Google Cloud does: it sent no JSON; check a proxy or login page on the way
    the key management service failed: the reply is none of AWS KMS (it has no ciphertext): check the endpoint, and a proxy or login page on the way
    the key management service failed: the reply has no ciphertext: it is not one of Cloud KMS
    ");
}
