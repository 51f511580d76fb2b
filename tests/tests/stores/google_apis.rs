//! APIs of Google that are switched on, against a server of the test.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Mutex;

use cloud::google::{ApiError, GoogleCredentials, enable_api};
use tests::http::{HttpServer, Request, Response};

const TOKEN: &str = r#"{"access_token":"ya29.hidden","expires_in":3600,"token_type":"Bearer"}"#;
const OFF: &str = r#"{"state":"DISABLED"}"#;
const STATE: &str = "GET /v1/projects/tide-7/services/redis.googleapis.com";
const ENABLE: &str = "POST /v1/projects/tide-7/services/redis.googleapis.com:enable";
const OPERATION: &str = "GET /v1/operations/acat.p1";

fn line(request: &Request) -> String {
    format!("{} {}", request.method, request.path)
}

/// Switches on an API at a server with these replies, and returns the result and the requests.
async fn enable(replies: &[(u16, &str)]) -> (Result<(), ApiError>, Vec<String>) {
    let replies: VecDeque<_> = replies.iter().map(|(status, body)| Response::new(*status, *body)).collect();
    let replies = Mutex::new(replies);
    let server = HttpServer::start(move |request| {
        let reply = match request.path.as_str() {
            "/token" => Response::new(200, TOKEN),
            _ if request.header("authorization") != Some("Bearer ya29.hidden") => Response::new(401, ""),
            _ => replies.lock().unwrap().pop_front().unwrap_or_else(|| Response::new(500, "no reply is left")),
        };
        async { reply.with("Content-Type", "application/json") }
    });
    let server = server.await.unwrap();
    let account = format!(
        r#"{{"type":"authorized_user","client_id":"id","client_secret":"hidden-secret","refresh_token":"hidden-refresh",
            "token_uri":"{}/token"}}"#,
        server.url()
    );
    let environment = [("CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE".to_owned(), server.url() + "/")].into();
    let account = GoogleCredentials::new(account);
    let result = enable_api("tide-7", "redis.googleapis.com", &account, &environment).await;
    let requests = server.requests().iter().map(line).filter(|request| !request.ends_with("/token")).collect();
    (result, requests)
}

fn text(error: &ApiError) -> String {
    let causes = std::iter::successors(Some(error as &dyn Error), |&cause| cause.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    assert!(!text.contains("hidden") && !format!("{error:?}").contains("hidden"), "{error:?}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn api_that_is_on_is_left_alone() {
    let (result, requests) = enable(&[(200, r#"{"state":"ENABLED"}"#)]).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(requests, [STATE]);
}

#[tokio::test(flavor = "multi_thread")]
async fn api_is_switched_on_and_waited_for() {
    let (running, done) = (r#"{"name":"operations/acat.p1"}"#, r#"{"name":"operations/acat.p1","done":true}"#);
    let (result, requests) = enable(&[(200, OFF), (200, running), (200, running), (200, done)]).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(requests, [STATE, ENABLE, OPERATION, OPERATION]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_repeated_after_an_error_of_the_service() {
    let done = r#"{"name":"operations/noop.DONE_OPERATION","done":true}"#;
    let (result, requests) = enable(&[(503, ""), (200, OFF), (429, ""), (200, done)]).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(requests, [STATE, STATE, ENABLE, ENABLE]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusal_has_the_words_of_the_service() {
    let denied =
        r#"{"error":{"code":403,"message":"Permission denied to enable service","status":"PERMISSION_DENIED"}}"#;
    let (result, requests) = enable(&[(200, OFF), (403, denied)]).await;
    assert_eq!(text(&result.unwrap_err()), "403 Forbidden: Permission denied to enable service");
    assert_eq!(requests, [STATE, ENABLE]);

    let failed = r#"{"name":"operations/acat.p1","done":true,"error":{"code":9,"message":"Billing must be enabled"}}"#;
    let (result, _) = enable(&[(200, OFF), (200, failed)]).await;
    assert_eq!(text(&result.unwrap_err()), "Billing must be enabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_are_none_are_refused() {
    let result = enable_api("p", "s", &GoogleCredentials::new("hidden"), &Default::default()).await;
    let expected = "the credentials of the configuration are invalid: expected the JSON of a service account";
    assert!(text(&result.unwrap_err()).starts_with(expected));
}
