//! Store in a bucket of S3, against `moto`.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cloud::aws::AwsKeys;
use cloud::s3::{S3Error, S3Url, open_s3};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
use state::store::{Durability, ObjectError, ObjectErrorKind, Objects, OutageReport, WriteCondition, WriteError};
use tests::moto::MotoServer;

use crate::objects::check_objects;

const LIMIT: u64 = 1024 * 1024;

/// Opens a store with keys of the environment, away from the files of the user.
async fn open_with(url: &str, variables: &[(&str, &str)]) -> Result<Arc<dyn Objects>, S3Error> {
    let home = tempfile::tempdir().unwrap();
    let keys = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")];
    let variables = keys.iter().chain(variables).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment: BTreeMap<_, _> = variables.collect();
    open_s3(&S3Url::parse(url, &environment).unwrap(), None, &environment, Some(home.path()), OutageReport::default())
        .await
}

pub(crate) async fn open(server: &MotoServer, path: &str) -> Arc<dyn Objects> {
    open_with(&format!("s3://{path}?endpoint={}&s3ForcePathStyle=true", server.url()), &[]).await.unwrap()
}

pub(crate) fn with_bucket(name: &str) -> MotoServer {
    let server = MotoServer::start().unwrap();
    server.python(&format!("client('s3').create_bucket(Bucket={name:?})")).unwrap();
    server
}

/// Requests each operation, and returns the errors.
async fn failures(objects: &dyn Objects) -> Vec<ObjectError> {
    let written =
        objects.write("a/b.json", b"{}".to_vec().into(), &WriteCondition::Missing, Durability::Immediate).await;
    let written = match written.unwrap_err() {
        WriteError::Request(error) => error,
        WriteError::Condition => panic!("the condition is not met"),
    };
    vec![
        objects.read("a/b.json", LIMIT).await.unwrap_err(),
        written,
        objects.copy("a/b.json", "a/c.json").await.unwrap_err(),
        objects.remove("a/b.json").await.unwrap_err(),
        objects.list("a").await.unwrap_err(),
        objects.list_all("a").await.unwrap_err(),
    ]
}

fn text(error: &ObjectError) -> String {
    format!("{error}: {}", error.source().unwrap())
}

#[tokio::test]
async fn bucket_has_the_properties_of_a_store() {
    let server = with_bucket("reef");
    check_objects(open(&server, "reef").await).await;
}

#[tokio::test]
async fn prefix_of_a_bucket_has_the_properties_of_a_store() {
    let server = with_bucket("reef");
    let outside = open(&server, "reef").await;
    for key in ["team/a", "team/ab/c.json", "team/c.json"] {
        outside.write(key, b"{}".to_vec().into(), &WriteCondition::Missing, Durability::Immediate).await.unwrap();
    }
    let objects = open(&server, "reef/team/a/").await;
    assert_eq!(objects.location(), format!("s3://reef/team/a?endpoint={}", server.url()));
    assert_eq!(objects.list_all("").await.unwrap(), []);
    check_objects(Arc::clone(&objects)).await;
    let all: Vec<_> = outside.list_all("team").await.unwrap().into_iter().map(|object| object.name).collect();
    assert!(all.iter().filter(|name| !name.starts_with("a/")).eq(["a", "ab/c.json", "c.json"]), "{all:?}");
    let inside = objects.list_all("").await.unwrap().len();
    assert_eq!(all.len(), inside + 3);
}

/// The console of S3 makes an object with a slash at its end for each folder.
#[tokio::test]
async fn objects_that_mark_folders_are_not_listed() {
    let server = with_bucket("reef");
    server
        .python("for key in ['locks/', 'locks/a.json', 'locks']: client('s3').put_object(Bucket='reef', Key=key)")
        .unwrap();
    let objects = open(&server, "reef").await;
    for listed in [objects.list("locks").await.unwrap(), objects.list_all("locks").await.unwrap()] {
        assert!(listed.iter().map(|object| object.name.as_str()).eq(["a.json"]), "{listed:?}");
    }
}

#[tokio::test]
async fn content_type_and_encryption_are_those_that_are_given() {
    let server = with_bucket("reef");
    let url = format!("s3://reef?endpoint={}&s3ForcePathStyle=true&ssetype=aws:kms&kmskeyid=alias/state", server.url());
    let objects = open_with(&url, &[]).await.unwrap();
    objects.write("a.json", b"{}".to_vec().into(), &WriteCondition::None, Durability::Immediate).await.unwrap();
    objects.copy("a.json", "b.json").await.unwrap();
    let printed = server
        .python(
            "for key in ['a.json', 'b.json']:\n    reply = client('s3').head_object(Bucket='reef', Key=key)\n    \
             print(reply['ContentType'], reply['ServerSideEncryption'], reply['SSEKMSKeyId'])",
        )
        .unwrap();
    assert_eq!(printed, "text/plain; charset=utf-8 aws:kms alias/state\n".repeat(2));
}

#[tokio::test]
async fn versioned_bucket_with_object_lock_is_written_and_cleared() {
    let server = MotoServer::start().unwrap();
    server.python("client('s3').create_bucket(Bucket='reef', ObjectLockEnabledForBucket=True)").unwrap();
    let url = format!(
        "s3://reef?endpoint={}&s3ForcePathStyle=true&request_checksum_calculation=when_supported",
        server.url()
    );
    check_objects(open_with(&url, &[]).await.unwrap()).await;
}

#[tokio::test]
async fn missing_bucket_is_reported_by_each_operation() {
    let server = MotoServer::start().unwrap();
    for error in failures(&*open(&server, "reef").await).await {
        assert_eq!(error.kind, ObjectErrorKind::NoStore, "{}", text(&error));
    }
    let error = open(&server, "reef/team").await.read("a.json", LIMIT).await.unwrap_err();
    let host = server.url().trim_start_matches("http://").to_owned();
    assert_eq!(
        text(&error).replace(&host, "HOST"),
        "cannot read s3://reef/team/a.json: there is no bucket `reef` at HOST: create it, or correct the URL (NoSuchBucket: \
         The specified bucket does not exist)"
    );
}

#[tokio::test]
async fn invalid_keys_and_missing_permissions_are_reported() {
    let server = with_bucket("reef");
    let keys = server
        .python(
            "iam = client('iam')\niam.create_user(UserName='ada')\n\
             key = iam.create_access_key(UserName='ada')['AccessKey']\n\
             print(key['AccessKeyId'], key['SecretAccessKey'])",
        )
        .unwrap();
    server.python("post('/moto-api/reset-auth', '0')").unwrap();
    let (access_key, secret_key) = keys.trim().split_once(' ').unwrap();

    let error = open(&server, "reef").await.read("a.json", LIMIT).await.unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::Credentials, "{}", text(&error));
    assert!(
        text(&error).contains("(environment, profile `default`) have an access key that does not exist"),
        "{}",
        text(&error)
    );

    let url = format!("s3://reef?endpoint={}&s3ForcePathStyle=true", server.url());
    let url = S3Url::parse(&url, &BTreeMap::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    for (secret, kind) in [(secret_key, ObjectErrorKind::Denied), ("wrong", ObjectErrorKind::Credentials)] {
        let keys = AwsKeys::new(access_key, secret).with_region("us-east-1");
        let objects =
            open_s3(&url, Some(&keys), &BTreeMap::new(), Some(home.path()), OutageReport::default()).await.unwrap();
        for error in failures(&*objects).await {
            let text = text(&error);
            assert_eq!(error.kind, kind, "{text}");
            assert!(text.contains("keys of the configuration"), "{text}");
            assert!(!text.contains(access_key) && !text.contains(secret), "{text}");
        }
    }
}

/// Shows: state.md#in-s3 "The user needs these permissions"
#[tokio::test]
async fn user_with_the_documented_permissions_needs_no_others() {
    let (_, documented) = include_str!("../../../docs/state.md").split_once("### In S3").unwrap();
    let (_, policy) = documented.split_once("```json").unwrap();
    let (policy, _) = policy.split_once("```").unwrap();
    let server = with_bucket("reef");
    let lines = format!(
        "iam = client('iam')\niam.create_user(UserName='ada')\n\
         iam.put_user_policy(UserName='ada', PolicyName='state', PolicyDocument={policy:?})\n\
         key = iam.create_access_key(UserName='ada')['AccessKey']\n\
         print(key['AccessKeyId'], key['SecretAccessKey'])"
    );
    let keys = server.python(&lines).unwrap();
    server.python("post('/moto-api/reset-auth', '0')").unwrap();
    let (access_key, secret_key) = keys.trim().split_once(' ').unwrap();
    let keys = AwsKeys::new(access_key, secret_key).with_region("us-east-1");
    let open = |prefix: &str| {
        let url = format!("s3://reef/{prefix}?endpoint={}&s3ForcePathStyle=true", server.url());
        let url = S3Url::parse(&url, &BTreeMap::new()).unwrap();
        let keys = keys.clone();
        async move { open_s3(&url, Some(&keys), &BTreeMap::new(), None, OutageReport::default()).await.unwrap() }
    };
    check_objects(open("team").await).await;

    let error = open("others").await.read("a.json", LIMIT).await.unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::Denied, "{}", text(&error));
}

#[tokio::test]
async fn missing_keys_are_reported_with_the_chain() {
    let server = with_bucket("reef");
    let url = format!("s3://reef?endpoint={}&s3ForcePathStyle=true&region=us-east-1", server.url());
    let home = tempfile::tempdir().unwrap();
    let environment = BTreeMap::from([("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned())]);
    let url = S3Url::parse(&url, &environment).unwrap();
    let objects = open_s3(&url, None, &environment, Some(home.path()), OutageReport::default()).await.unwrap();
    for error in failures(&*objects).await {
        assert_eq!(error.kind, ObjectErrorKind::Credentials);
        assert!(
            text(&error).contains(": no credentials of AWS; tried in this order: environment:"),
            "{}",
            text(&error)
        );
    }
}

#[tokio::test]
async fn host_without_a_server_is_reported_within_seconds() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("s3://reef?endpoint=http://127.0.0.1:{port}&s3ForcePathStyle=true");
    let started = Instant::now();
    let error = open_with(&url, &[]).await.unwrap().read("a.json", LIMIT).await.unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::Unreachable);
    assert_eq!(
        text(&error).replace(&port.to_string(), "PORT"),
        "cannot read s3://reef/a.json: the connection to 127.0.0.1:PORT failed: Connection refused (os error 111); check \
         the network and the endpoint of the bucket"
    );
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[tokio::test]
async fn host_without_an_address_is_reported() {
    let error =
        open_with("s3://reef?endpoint=https://s3.reef.invalid", &[]).await.unwrap().list("a").await.unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::Unreachable);
    assert!(text(&error).contains("the name of reef.s3.reef.invalid cannot be resolved"), "{}", text(&error));
}

/// Starts a server with the bucket `reef`, whose certificate is from an issuer of the test: `issuer.pem` in the folder.
pub(crate) fn with_certificate(folder: &Path) -> MotoServer {
    let path = |name: &str| folder.join(name);
    let (issuer_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut issuer = CertificateParams::new(Vec::<String>::new()).unwrap();
    issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    issuer.distinguished_name.push(DnType::CommonName, "Issuer of the reef");
    fs::write(path("issuer.pem"), issuer.self_signed(&issuer_key).unwrap().pem()).unwrap();
    let issuer = rcgen::Issuer::new(issuer, issuer_key);
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    fs::write(path("server.pem"), certificate.pem()).unwrap();
    fs::write(path("server.key"), key.serialize_pem()).unwrap();
    let server = MotoServer::start_tls(&path("server.pem"), &path("server.key")).unwrap();
    server.python("client('s3').create_bucket(Bucket='reef')").unwrap();
    server
}

#[tokio::test]
async fn certificate_is_trusted_only_with_the_bundle_of_its_issuer() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_certificate(folder.path());
    let url = format!("s3://reef?endpoint={}&s3ForcePathStyle=true", server.url());
    let error = open_with(&url, &[]).await.unwrap().list("a").await.unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::Other, "{}", text(&error));
    let host = server.url().trim_start_matches("https://").to_owned();
    assert_eq!(
        text(&error).replace(&host, "HOST"),
        "cannot list s3://reef/a: the certificate of HOST is not trusted: invalid peer certificate: UnknownIssuer; name the \
         file of its issuer in AWS_CA_BUNDLE, if it is your own"
    );
    let bundle = folder.path().join("issuer.pem");
    let objects = open_with(&url, &[("AWS_CA_BUNDLE", bundle.to_str().unwrap())]).await.unwrap();
    assert_eq!(objects.list("a").await.unwrap(), []);
}
