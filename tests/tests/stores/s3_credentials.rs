//! Credentials of requests to S3 that expire.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use state::store::{ObjectErrorKind, Objects};
use tests::http::{HttpServer, Response};

use crate::s3::{LIMIT, failure, object, open, serve, text};

/// Starts a server as containers have it, whose access keys are numbered. `validity` is a time with `jiff`'s syntax, such
/// as `1h`.
async fn issue(validity: &str, is_changing: bool) -> HttpServer {
    let expiration = jiff::Timestamp::now() + validity.parse::<jiff::SignedDuration>().unwrap();
    let number = AtomicUsize::new(1);
    let issue = move || {
        let number = number.fetch_add(usize::from(is_changing), Ordering::Relaxed);
        let reply = format!(
            "{{\"AccessKeyId\":\"AKIA{number}\",\"SecretAccessKey\":\"hidden\",\"Token\":\"hidden {number}\",\
             \"Expiration\":\"{expiration:.0}\"}}"
        );
        Response::new(200, reply).with("Content-Type", "application/json")
    };
    HttpServer::start(move |_| std::future::ready(issue())).await.unwrap()
}

async fn open_with(issuer: &HttpServer, server: &HttpServer) -> Arc<dyn Objects> {
    open(&server.url(), &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &format!("{}/role", issuer.url()))]).await
}

/// Returns the access key of each request.
pub(crate) fn access_keys(server: &HttpServer) -> Vec<String> {
    let access_key = |authorization: &str| {
        let (_, rest) = authorization.split_once("Credential=").unwrap();
        rest.split('/').next().unwrap().to_owned()
    };
    server.requests().iter().map(|request| access_key(request.header("authorization").unwrap())).collect()
}

#[tokio::test]
async fn valid_credentials_are_kept() {
    let issuer = issue("1h", true).await;
    let server = serve([object("1", "\"1\""), object("2", "\"2\"")]).await;
    let objects = open_with(&issuer, &server).await;
    for _ in 0..2 {
        objects.read("a.json", LIMIT).await.unwrap().unwrap();
    }
    assert_eq!(access_keys(&server), ["AKIA1", "AKIA1"]);
    assert_eq!(issuer.requests().len(), 1);
}

/// Shows: state.md#in-s3 "They are renewed before they expire, and after a reply that they have expired."
#[tokio::test]
async fn credentials_are_renewed_before_they_expire() {
    let issuer = issue("4m", true).await;
    let server = serve([object("1", "\"1\""), object("2", "\"2\"")]).await;
    let objects = open_with(&issuer, &server).await;
    for _ in 0..2 {
        objects.read("a.json", LIMIT).await.unwrap().unwrap();
    }
    assert_eq!(access_keys(&server), ["AKIA1", "AKIA2"]);
}

/// Shows: state.md#in-s3 "They are renewed before they expire, and after a reply that they have expired."
#[tokio::test]
async fn request_with_an_expired_token_is_repeated_with_a_new_one() {
    let issuer = issue("1h", true).await;
    let expired = failure(400, "ExpiredToken", "The provided token has expired.");
    let server = serve([object("1", "\"1\""), expired, object("2", "\"2\"")]).await;
    let objects = open_with(&issuer, &server).await;
    for _ in 0..2 {
        objects.read("a.json", LIMIT).await.unwrap().unwrap();
    }
    assert_eq!(access_keys(&server), ["AKIA1", "AKIA1", "AKIA2"]);
}

#[tokio::test]
async fn expired_token_is_reported_if_there_is_no_other() {
    let issuer = issue("1h", false).await;
    let server = serve([failure(400, "ExpiredToken", "The provided token has expired.")]).await;
    let error = open_with(&issuer, &server).await.read("a.json", LIMIT).await.unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::Credentials);
    assert_eq!(
        text(&error),
        "cannot read s3://reef/team/a.json: the credentials of AWS (profile `default`, container) have expired (ExpiredToken: \
         The provided token has expired.)"
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn failed_source_of_credentials_is_reported() {
    let issuer = HttpServer::start(|_| std::future::ready(Response::new(403, "no role"))).await.unwrap();
    let server = serve([]).await;
    let error = open_with(&issuer, &server).await.read("a.json", LIMIT).await.unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::Credentials);
    assert_eq!(
        text(&error),
        "cannot read s3://reef/team/a.json: cannot load credentials of AWS (profile `default`, container): Non-success status \
         from HTTP credential provider: StatusCode(403)"
    );
    assert_eq!(server.requests().len(), 0);
}
