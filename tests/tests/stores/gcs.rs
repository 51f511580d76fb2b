//! Store in a bucket of Google Cloud Storage, against the stand-in of the harness.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use cloud::gcs::{GcsError, GcsUrl, open_gcs};
use cloud::google::GoogleCredentials;
use state::store::{
    Durability, ObjectError, ObjectErrorKind, Objects, OutageReport, StateStore, StoreOptions, WriteCondition,
    WriteError, compliance,
};
use tests::gcs_server::GcsServer;

use crate::objects::check_objects;

const LIMIT: u64 = 1024 * 1024;
const TOKEN: &str = "ya29.hidden-token";

fn open_with(url: &str, credentials: Option<&str>, variables: &[(&str, &str)]) -> Result<Arc<dyn Objects>, GcsError> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment: BTreeMap<_, _> = variables.collect();
    let credentials = credentials.map(GoogleCredentials::new);
    open_gcs(
        &GcsUrl::parse(url).unwrap(),
        credentials.as_ref(),
        &environment,
        Some(Path::new("/nonexistent")),
        OutageReport::default(),
    )
}

/// Opens a bucket of the stand-in without credentials.
fn open(server: &GcsServer, url: &str) -> Arc<dyn Objects> {
    open_with(url, None, &[("STORAGE_EMULATOR_HOST", &server.url())]).unwrap()
}

/// Returns an error and its causes, with the address of the server as `HOST`, and checks that it has no token.
fn text(server: &GcsServer, error: &ObjectError) -> String {
    let causes = std::iter::successors(Some(error as &dyn Error), |&cause| cause.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    assert!(!text.contains("hidden") && !format!("{error:?}").contains("hidden"), "{error:?}");
    text.replace(server.url().trim_start_matches("http://"), "HOST")
}

#[tokio::test(flavor = "multi_thread")]
async fn store_in_a_bucket_is_compliant() {
    let server = GcsServer::start(None).await.unwrap();
    let store = StateStore::open(open(&server, "gs://reef/team"), StoreOptions::default()).await.unwrap();
    compliance::run(&store).await;
}

/// Shows: state.md#in-google-cloud-storage "A conditional write compares the generation of the object."
#[tokio::test(flavor = "multi_thread")]
async fn bucket_has_the_properties_of_a_store() {
    let server = GcsServer::start(None).await.unwrap();
    check_objects(open(&server, "gs://reef")).await;
    check_objects(open(&server, "gs://reef/team/a%20b")).await;
    assert_eq!(open(&server, "gs://reef").location(), format!("gs://reef?emulator={}", server.url()));
    assert!(server.requests().iter().all(|request| request.header("authorization").is_none()));
}

/// Shows: state.md#in-google-cloud-storage "Credentials are the first of: those of `server.yaml`"
/// Shows: state.md#in-google-cloud-storage "An emulator, whose address is `STORAGE_EMULATOR_HOST`, gets only the first
///   three."
#[tokio::test(flavor = "multi_thread")]
async fn object_has_the_key_and_the_content_type_of_pulumi() {
    let server = GcsServer::start(None).await.unwrap();
    let host = server.url().replace("http://", "");
    // Credentials of the machine are not even read for an emulator.
    let variables = [("STORAGE_EMULATOR_HOST", &*host), ("GOOGLE_APPLICATION_CREDENTIALS", "/missing.json")];
    let objects = open_with("gs://reef/team", None, &variables).unwrap();
    let content = b"version: 1\n".to_vec();
    let content_type = "text/plain; charset=utf-8";
    objects
        .write(".pulumi/meta.yaml", content.clone().into(), &WriteCondition::Missing, Durability::Immediate)
        .await
        .unwrap();
    objects.copy(".pulumi/meta.yaml", ".pulumi/copy.yaml").await.unwrap();
    for key in ["team/.pulumi/meta.yaml", "team/.pulumi/copy.yaml"] {
        assert_eq!(server.object(key), Some((content_type.to_owned(), content.clone())), "{key}");
    }
}

/// Shows: state.md#in-google-cloud-storage "Credentials are the first of: those of `server.yaml`"
/// Shows: state.md#in-google-cloud-storage "An emulator, whose address is `STORAGE_EMULATOR_HOST`, gets only the first
///   three."
#[tokio::test(flavor = "multi_thread")]
async fn token_of_the_credentials_is_sent_with_each_request() {
    let server = GcsServer::start(Some(TOKEN)).await.unwrap();
    let emulator = server.url();
    let user = format!(
        r#"{{"type":"authorized_user","client_id":"id","client_secret":"hidden-secret","refresh_token":"hidden-refresh",
            "token_uri":"{emulator}/token"}}"#
    );
    let address = ("STORAGE_EMULATOR_HOST", emulator.as_str());
    let stores = [
        open_with("gs://reef", Some(&user), &[address]),
        open_with("gs://reef", None, &[address, ("GOOGLE_CREDENTIALS", &user)]),
        open_with("gs://reef", None, &[address, ("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)]),
    ];
    for objects in stores {
        let objects = objects.unwrap();
        let version =
            objects.write("a", b"1".to_vec().into(), &WriteCondition::None, Durability::Immediate).await.unwrap();
        assert_eq!(objects.read("a", LIMIT).await.unwrap().unwrap().version, version);
        assert!(objects.copy("a", "b").await.unwrap());
        assert_eq!(objects.list("").await.unwrap().len(), 2);
        objects.remove("b").await.unwrap();
    }
    let requests = server.requests();
    let tokens = requests.iter().filter(|request| request.path == "/token").count();
    assert_eq!(tokens, 2, "of {} requests", requests.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_request_has_a_kind_and_the_words_of_the_service() {
    use ObjectErrorKind::{Credentials, Denied, NoStore, Other, Unreachable};
    let server = GcsServer::start(Some(TOKEN)).await.unwrap();
    let emulator = server.url();
    let address = ("STORAGE_EMULATOR_HOST", emulator.as_str());
    let token = ("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN);
    let missing = format!(
        r#"{{"type":"authorized_user","client_id":"id","client_secret":"hidden","refresh_token":"hidden",
            "token_uri":"{emulator}/reef/missing"}}"#
    );
    let objects = |url, credentials, variables: &[(&str, &str)]| open_with(url, credentials, variables).unwrap();
    let rows = [
        (objects("gs://missing", None, &[address, token]), NoStore),
        (objects("gs://reef", None, &[address]), Credentials),
        (objects("gs://reef", None, &[address, ("GOOGLE_OAUTH_ACCESS_TOKEN", "hidden")]), Credentials),
        (objects("gs://reef", Some(&missing), &[address]), Credentials),
        (objects("gs://reef", None, &[("STORAGE_EMULATOR_HOST", "store.invalid")]), Unreachable),
    ];
    let mut messages = Vec::new();
    for (objects, kind) in rows {
        let error = objects.read("a.json", LIMIT).await.unwrap_err();
        messages.push(text(&server, &error));
        assert_eq!(error.kind, kind, "{error:?}");
    }
    let objects = objects("gs://reef", None, &[address, token]);
    let denied = "deployer@reef.iam.gserviceaccount.com does not have storage.objects.create access";
    let faults = [(403, "AccessDenied", denied, Denied), (400, "InvalidArgument", "Invalid argument.", Other)];
    for (status, code, message, kind) in faults {
        server.fail_next(1, status, code, message);
        let written =
            objects.write("a.json", b"{}".to_vec().into(), &WriteCondition::Missing, Durability::Immediate).await;
        let Err(WriteError::Request(error)) = written else { panic!("{written:?}") };
        assert_eq!(error.kind, kind, "{error:?}");
        messages.push(text(&server, &error));
    }
    insta::assert_snapshot!(messages.join("\n"), @"
    cannot read gs://missing/a.json: there is no bucket `missing` at HOST: create it, or correct the URL (NoSuchBucket: The specified bucket does not exist.)
    cannot read gs://reef/a.json: the bucket `reef` needs credentials, and the request is anonymous (AuthenticationRequired: Authentication required.)
    cannot read gs://reef/a.json: the credentials of GOOGLE_OAUTH_ACCESS_TOKEN are refused or have expired (AuthenticationRequired: Invalid Credentials.)
    cannot read gs://reef/a.json: the credentials of the configuration: failed to refresh user access token, body=<<?xml version='1.0' encoding='UTF-8'?><Error><Code>AuthenticationRequired</Code><Message>Authentication required.</Message></Error>>: HTTP status client error (401 X) for url (http://HOST/reef/missing)
    cannot read gs://reef/a.json: the name of store.invalid cannot be resolved: failed to lookup address information: Name or service not known; check the network, `universe_domain` and STORAGE_EMULATOR_HOST
    cannot write gs://reef/a.json: the credentials of GOOGLE_OAUTH_ACCESS_TOKEN do not allow it: it needs storage.objects.create and storage.objects.delete (AccessDenied: deployer@reef.iam.gserviceaccount.com does not have storage.objects.create access)
    cannot write gs://reef/a.json: InvalidArgument: Invalid argument.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn throttled_request_is_repeated() {
    let server = GcsServer::start(None).await.unwrap();
    let objects = open(&server, "gs://reef");
    for (status, code) in [(429, "SlowDown"), (503, "ServiceUnavailable"), (500, "InternalError")] {
        server.fail_next(2, status, code, "Try again.");
        let written = objects.write(code, b"{}".to_vec().into(), &WriteCondition::Missing, Durability::Immediate).await;
        assert!(written.is_ok(), "{written:?}");
        server.fail_next(2, status, code, "Try again.");
        assert_eq!(objects.read(code, LIMIT).await.unwrap().unwrap().content, b"{}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn token_that_expires_meanwhile_is_reported() {
    let server = GcsServer::start(Some(TOKEN)).await.unwrap();
    let emulator = server.url();
    let variables = [("STORAGE_EMULATOR_HOST", emulator.as_str()), ("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)];
    let objects = open_with("gs://reef", None, &variables).unwrap();
    objects.write("a", b"1".to_vec().into(), &WriteCondition::Missing, Durability::Immediate).await.unwrap();
    server.set_token("other");
    let error = objects.read("a", LIMIT).await.unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::Credentials);
    assert!(text(&server, &error).contains("GOOGLE_OAUTH_ACCESS_TOKEN are refused or have expired"), "{error:?}");
}
