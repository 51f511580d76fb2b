//! Requests for keys in AWS KMS, with a server of the test in place of the service.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cloud::kms::KeyServices;
use serde_json::{Value, json};
use state::secrets::{KeyFailureKind, KeyService as _};
use tests::http::{HttpServer, Response};

const URL: &str = "awskms://alias/reef?region=eu-north-1";

fn services(variables: &[(&str, &str)]) -> KeyServices {
    let own = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "hidden")];
    let all = own.iter().chain(variables);
    let environment = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    KeyServices { environment, ..KeyServices::default() }
}

/// Service that replies to the first requests with an error, and encrypts by a reversal.
async fn serve(failures: &[(u16, &'static str)]) -> HttpServer {
    let failures = failures.to_vec();
    let count = Arc::new(AtomicUsize::new(0));
    let reply = move |_| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let reply = match failures.get(number) {
            Some((status, error)) => Response::new(*status, *error),
            None => Response::new(200, r#"{"CiphertextBlob":"Y2lwaGVy","Plaintext":"cGxhaW4="}"#),
        };
        ready(reply)
    };
    HttpServer::start(reply).await.unwrap()
}

#[tokio::test]
async fn requests_are_signed_for_the_region_of_the_key() {
    let server = serve(&[]).await;
    let url = server.url();
    let services = services(&[("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), ("AWS_ENDPOINT_URL_KMS", &url)]);
    let key = format!("{URL}&context_team=reef");
    assert_eq!(services.encrypt(&key, b"plain").await.unwrap(), b"cipher");
    assert_eq!(**services.decrypt(&key, b"cipher").await.unwrap(), *b"plain");
    let expected = [
        (
            "TrentService.Encrypt",
            json!({ "KeyId": "alias/reef", "Plaintext": "cGxhaW4=", "EncryptionContext": { "team": "reef" } }),
        ),
        ("TrentService.Decrypt", json!({ "CiphertextBlob": "Y2lwaGVy", "EncryptionContext": { "team": "reef" } })),
    ];
    let requests = server.requests();
    assert_eq!(requests.len(), expected.len());
    for (request, (target, content)) in requests.iter().zip(expected) {
        assert_eq!((&*request.method, &*request.path), ("POST", "/"));
        assert_eq!(request.header("x-amz-target"), Some(target));
        assert_eq!(request.header("content-type"), Some("application/x-amz-json-1.1"));
        assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), content);
        let signature = request.header("authorization").unwrap();
        assert!(signature.starts_with("AWS4-HMAC-SHA256 Credential=AKIATEST/"), "{signature}");
        assert!(signature.contains("/eu-north-1/kms/aws4_request"), "{signature}");
    }
}

#[tokio::test]
async fn requests_are_repeated_while_the_service_may_recover() {
    let throttled = r#"{"__type":"com.amazonaws.kms#ThrottlingException","message":"slow down"}"#;
    let denied = r#"{"__type":"AccessDeniedException","Message":"ada may not"}"#;
    let server = serve(&[(503, "<html>"), (400, throttled), (400, denied)]).await;
    let key = format!("{URL}&endpoint={}", server.url());
    let failure = services(&[]).encrypt(&key, b"plain").await.unwrap_err();
    assert_eq!(failure.to_string(), "access to the key is denied: AccessDeniedException: ada may not");
    assert_eq!(server.requests().len(), 3);
    // The number of attempts of the tools of AWS.
    let server = serve(&[(503, ""); 3]).await;
    let key = format!("{URL}&endpoint={}", server.url());
    let failure = services(&[("AWS_MAX_ATTEMPTS", "2")]).encrypt(&key, b"plain").await.unwrap_err();
    assert_eq!(failure.to_string(), "the key management service failed: HTTP status 503 without an error code");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn endpoint_is_not_one_of_aws_and_another_one() {
    for parameter in ["fips", "dualstack"] {
        let key = format!("{URL}&{parameter}=true&endpoint=http://127.0.0.1:1");
        let failure = services(&[]).encrypt(&key, b"plain").await.unwrap_err();
        assert_eq!(failure.kind, KeyFailureKind::Other);
        assert_eq!(
            failure.to_string(),
            "the key management service failed: `fips` and `dualstack` select endpoints of AWS: remove them, or the \
             endpoint `http://127.0.0.1:1`"
        );
    }
}
