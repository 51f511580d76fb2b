//! Bucket of Google Cloud Storage that is created for a store, against a server of the test.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;

use cloud::gcs::{CreateBucketError, GcsUrl, NewBucket, create_bucket};
use cloud::google::GoogleCredentials;
use serde_json::Value;
use tests::http::{HttpServer, Request, Response};

const TOKEN: &str = "ya29.hidden-token";
const MISSING: (u16, &str) = (404, r#"{"error":{"code":404,"message":"The specified bucket does not exist."}}"#);
const FOUND: (u16, &str) = (200, r#"{"name":"new-state"}"#);
const GET: &str = "GET /storage/v1/b/new-state";
const POST: &str = "POST /storage/v1/b?project=tide-7";

fn line(request: &Request) -> String {
    format!("{} {}", request.method, request.path)
}

/// Creates a bucket at a server with these replies. Returns the result, the requests, and the body of the last one.
async fn create(
    location: Option<&str>,
    replies: &[(u16, &str)],
) -> (Result<bool, CreateBucketError>, Vec<String>, Value) {
    let replies: VecDeque<_> = replies.iter().map(|(status, body)| Response::new(*status, *body)).collect();
    let replies = Mutex::new(replies);
    let server = HttpServer::start(move |request| {
        let reply = match request.header("authorization") {
            Some("Bearer ya29.hidden-token") => {
                replies.lock().unwrap().pop_front().unwrap_or_else(|| Response::new(400, "no reply is left"))
            }
            _ => Response::new(401, ""),
        };
        async { reply }
    });
    let server = server.await.unwrap();
    let environment = [
        ("STORAGE_EMULATOR_HOST".to_owned(), server.url()),
        ("GOOGLE_OAUTH_ACCESS_TOKEN".to_owned(), TOKEN.to_owned()),
    ];
    let url = GcsUrl::parse("gs://new-state").unwrap();
    let bucket = NewBucket { project: "tide-7", location };
    let result = create_bucket(&url, &bucket, None, &environment.into(), Some(Path::new("/nonexistent"))).await;
    let requests = server.requests();
    let body = serde_json::from_slice(&requests.last().unwrap().body).unwrap_or_default();
    (result, requests.iter().map(line).collect(), body)
}

/// Shows: server-yaml.md#sections "the first `sc provision` or import creates the bucket if there is none, with the
///   requests of Simple Container"
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_those_of_the_go_program() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/simple-container/registrations/cases.json");
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let recorded = |name: &str| {
        let name = format!("gcp-bucket as state storage: {name}");
        cases.iter().find(|case| case["name"] == *name).unwrap()["http"].as_array().unwrap().clone()
    };
    let absent = recorded("provision, the bucket is not there");
    let (result, requests, body) = create(Some("EU"), &[MISSING, FOUND]).await;
    assert!(result.unwrap());
    assert_eq!(requests, [GET, POST]);
    for request in &absent {
        let path = request["path"].as_str().unwrap().split(['?', '&']).next().unwrap();
        let expected = format!("{} {path}", request["method"].as_str().unwrap());
        assert!(requests.iter().any(|request| request.split('?').next() == Some(&expected)), "{expected}");
    }
    // The empty list of rules is an addition of the Go client.
    let sent = absent.iter().find(|request| request["method"] == "POST").unwrap()["body"].as_object().unwrap();
    for (name, value) in sent.iter().filter(|(name, _)| *name != "lifecycle") {
        assert_eq!(body[name], *value, "{name}");
    }
    assert_eq!(recorded("provision, the bucket is there").len(), 1);
    let (result, requests, _) = create(Some("EU"), &[FOUND]).await;
    assert!(!result.unwrap());
    assert_eq!(requests, [GET]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_that_another_run_creates_meanwhile_is_used() {
    let (result, requests, body) = create(None, &[MISSING, (409, "{}"), FOUND]).await;
    assert!(!result.unwrap());
    assert_eq!((requests, body), (vec![GET.to_owned(), POST.to_owned(), GET.to_owned()], Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_without_readable_attributes_is_left_to_the_store() {
    let (result, requests, _) = create(None, &[(403, "{}")]).await;
    assert!(!result.unwrap());
    assert_eq!(requests, [GET]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusal_has_the_words_of_the_service() {
    let denied = r#"{"error":{"code":403,"message":"denied to storage.buckets.create"}}"#;
    let (result, requests, body) = create(None, &[MISSING, (403, denied)]).await;
    assert_eq!(result.unwrap_err().to_string(), "403 Forbidden: denied to storage.buckets.create");
    assert_eq!((requests, body), (vec![GET.to_owned(), POST.to_owned()], serde_json::json!({ "name": "new-state" })));
    // The name of the bucket belongs to someone else.
    let (result, ..) = create(None, &[MISSING, (409, "{}"), (403, denied)]).await;
    assert!(result.is_err());
    let credentials = GoogleCredentials::new("hidden");
    let (url, bucket) = (GcsUrl::parse("gs://new-state").unwrap(), NewBucket { project: "p", location: None });
    let error = create_bucket(&url, &bucket, Some(&credentials), &Default::default(), None).await.unwrap_err();
    assert!(!error.to_string().contains("hidden"), "{error}");
}
