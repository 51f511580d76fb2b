//! Store in a container of Azure Blob Storage, against `azurite`.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cloud::azblob::{AzblobUrl, open_azblob};
use state::store::{Durability, ObjectError, ObjectErrorKind, Objects, OutageReport, WriteCondition, WriteError};
use tests::azurite::{ACCOUNT, Azurite, KEY};

use crate::objects::check_objects;

const LIMIT: u64 = 1024 * 1024;

/// Variables of the key of the account.
pub(crate) const KEYS: [(&str, &str); 2] = [("AZURE_STORAGE_ACCOUNT", ACCOUNT), ("AZURE_STORAGE_KEY", KEY)];

pub(crate) fn url(path: &str, host: &str) -> String {
    format!("azblob://{path}?domain={host}&protocol=http")
}

fn open_with(url: &str, variables: &[(&str, &str)]) -> Arc<dyn Objects> {
    let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment: BTreeMap<_, _> = environment.collect();
    open_azblob(&AzblobUrl::parse(url).unwrap(), &environment, OutageReport::default()).unwrap()
}

pub(crate) fn open(server: &Azurite, path: &str) -> Arc<dyn Objects> {
    open_with(&url(path, server.host()), &KEYS)
}

async fn write(objects: &dyn Objects, key: &str) {
    objects.write(key, b"{}".to_vec().into(), &WriteCondition::Missing, Durability::Immediate).await.unwrap();
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

/// Shows: state.md#in-azure-blob-storage "A conditional write compares the ETag in the service."
#[tokio::test]
async fn container_has_the_properties_of_a_store() {
    let server = Azurite::start("reef").unwrap();
    check_objects(open(&server, "reef")).await;
}

#[tokio::test]
async fn prefix_of_a_container_has_the_properties_of_a_store() {
    let server = Azurite::start("reef").unwrap();
    let outside = open(&server, "reef");
    for key in ["team/a", "team/ab/c.json", "team/c.json"] {
        write(&*outside, key).await;
    }
    let objects = open(&server, "reef/team/a/");
    let location = format!("azblob://reef/team/a?storage_account={ACCOUNT}&domain={}", server.host());
    assert_eq!(objects.location(), location);
    assert_eq!(objects.list_all("").await.unwrap(), []);
    check_objects(Arc::clone(&objects)).await;
    let all: Vec<_> = outside.list_all("team").await.unwrap().into_iter().map(|object| object.name).collect();
    assert!(all.iter().filter(|name| !name.starts_with("a/")).eq(["a", "ab/c.json", "c.json"]), "{all:?}");
    assert_eq!(all.len(), objects.list_all("").await.unwrap().len() + 3);
}

#[tokio::test]
async fn blob_has_the_name_and_the_content_type_of_pulumi() {
    let server = Azurite::start("reef").unwrap();
    let objects = open(&server, "reef/50%25 %22off%22%3F");
    write(&*objects, "a.json").await;
    objects.copy("a.json", "b.json").await.unwrap();
    let printed = server
        .node(
            "for await (const blob of service.getContainerClient('reef').listBlobsFlat())\n    \
             console.log(blob.name, blob.properties.contentType)",
        )
        .unwrap();
    let name = "50__0x25__ __0x22__off__0x22____0x3f__";
    let kind = "text/plain; charset=utf-8";
    assert_eq!(printed, format!("{name}/a.json {kind}\n{name}/b.json {kind}\n"));
}

/// Shows: state.md#in-azure-blob-storage "Requests are signed with the first of: the key of the account"
/// Shows: state.md#in-azure-blob-storage "A shared access signature needs the permissions read, create, write, delete and list"
#[tokio::test]
async fn signature_with_the_documented_permissions_needs_no_others() {
    let server = Azurite::start("reef").unwrap();
    let signature = |permissions: &str| {
        let lines = format!(
            "const permissions = azure.ContainerSASPermissions.parse({permissions:?});\n\
             const expiresOn = new Date(Date.now() + 3600e3);\n\
             const values = {{ containerName: 'reef', permissions, expiresOn }};\n\
             console.log(azure.generateBlobSASQueryParameters(values, key).toString())"
        );
        server.node(&lines).unwrap().trim().to_owned()
    };
    let environment = |signature: &str| {
        [
            ("AZURE_STORAGE_ACCOUNT", ACCOUNT.to_owned()),
            ("AZURE_STORAGE_SAS_TOKEN", signature.to_owned()),
            ("AZURE_STORAGE_DOMAIN", server.host().to_owned()),
            ("AZURE_STORAGE_PROTOCOL", "http".to_owned()),
        ]
    };
    let open = |signature: &str| {
        let variables = environment(signature);
        open_with("azblob://reef", &variables.each_ref().map(|(name, value)| (*name, value.as_str())))
    };
    check_objects(open(&signature("rcwdl"))).await;
    // Appending to a blob is none of the operations.
    let objects = open(&signature("a"));
    let mut texts = Vec::new();
    for error in &failures(&*objects).await {
        assert_eq!(error.kind, ObjectErrorKind::Denied, "{}", text(error));
        texts.push(text(error).replace(server.host(), "HOST"));
    }
    assert!(texts.iter().all(|text| !text.contains("sig=")), "{texts:?}");
    assert!(texts[1].contains("the signature must allow create (c) and write (w)"), "{texts:?}");

    let string = format!("BlobEndpoint={}/{ACCOUNT};SharedAccessSignature={}", server.url(), signature("rcwdl"));
    let variables = [("AZURE_STORAGE_CONNECTION_STRING", string.as_str()), ("AZURE_STORAGE_ACCOUNT", ACCOUNT)];
    assert!(!open_with("azblob://reef", &variables).list_all("").await.unwrap().is_empty());
    let string = format!("BlobEndpoint={}/{ACCOUNT};AccountName={ACCOUNT};AccountKey={KEY};", server.url());
    let objects = open_with("azblob://reef", &[("AZURE_STORAGEBLOB_CONNECTIONSTRING", &string)]);
    assert!(!objects.list_all("").await.unwrap().is_empty());
}

#[tokio::test]
async fn missing_container_is_reported_by_each_operation() {
    let server = Azurite::start("reef").unwrap();
    for error in failures(&*open(&server, "atoll")).await {
        assert_eq!(error.kind, ObjectErrorKind::NoStore, "{}", text(&error));
    }
    let error = open(&server, "atoll/team").read("a.json", LIMIT).await.unwrap_err();
    let text = text(&error).replace(server.host(), "HOST");
    let expected = "cannot read azblob://atoll/team/a.json: there is no container `atoll` in the account `devstoreaccount1` at \
                    HOST: create it, or correct the URL (ContainerNotFound: The specified container does not exist.";
    assert!(text.starts_with(expected), "{text}");
}

/// For a wrong signature, the server has the code of a missing permission.
#[tokio::test]
async fn wrong_key_is_reported_by_each_operation() {
    let server = Azurite::start("reef").unwrap();
    let variables = [("AZURE_STORAGE_ACCOUNT", ACCOUNT), ("AZURE_STORAGE_KEY", "aGlkZGVu")];
    for error in failures(&*open_with(&url("reef", server.host()), &variables)).await {
        assert_eq!(error.kind, ObjectErrorKind::Denied, "{}", text(&error));
        assert!(text(&error).contains("check that it is a key of the account `devstoreaccount1`"), "{error:?}");
        assert!(!text(&error).contains("aGlkZGVu") && !text(&error).contains("SharedKey"), "{}", text(&error));
    }
}

#[tokio::test]
async fn host_without_a_server_is_reported_within_seconds() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let objects = open_with(&url("reef", &format!("127.0.0.1:{port}")), &KEYS);
    for failed in [objects.read("a.json", LIMIT).await.map(drop), objects.remove("a.json").await] {
        let started = Instant::now();
        let error = failed.unwrap_err();
        assert_eq!(error.kind, ObjectErrorKind::Unreachable);
        assert!(text(&error).contains("failed: Connection refused (os error 111); check the network"), "{error:?}");
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
