//! Stores of states in buckets and databases.

use config::{AwsAccount, CloudAccount, SecretText, StateStorage};

use crate::repository::Files;

fn server(storage: &str) -> String {
    format!(
        "
provisioner:
  type: pulumi
  config:
    state-storage: {{ {storage} }}
    secrets-provider: {{ type: passphrase, config: {{ passPhrase: hush }} }}
"
    )
}

#[test]
fn bucket_or_database_has_the_url_of_pulumi_and_the_credentials_of_the_file() {
    let keys = |key: &str, secret: &str, region: &str| {
        CloudAccount::Aws(AwsAccount {
            access_key: Some((SecretText::new(key), SecretText::new(secret))),
            region: Some(region.to_owned()),
        })
    };
    let none = CloudAccount::Environment;
    let aws = CloudAccount::Aws(AwsAccount::default());
    let table = [
        ("type: fs, config: { path: \"s3://b/p?region=r\" }", "s3://b/p?region=r", none.clone()),
        ("type: fs, config: { path: \"gs://b\" }", "gs://b", none.clone()),
        ("type: fs, config: { path: \"azblob://c/p?cdn=true\" }", "azblob://c/p?cdn=true", none.clone()),
        ("type: fs, config: { path: \"postgres://ada:pw@h/db\" }", "postgres://ada:pw@h/db", none.clone()),
        ("type: s3-bucket, config: { bucketName: b, provision: true }", "s3://b", aws),
        (
            "type: s3-bucket, config: { bucketName: b, region: r, accessKey: AK, secretAccessKey: SK, account: '1' }",
            "s3://b?region=r",
            keys("AK", "SK", "r"),
        ),
        (
            "type: s3-bucket, config: { bucketName: b, credentials: '${auth:aws}' }",
            "s3://b?region=east",
            keys("A", "S", "east"),
        ),
        ("type: gcp-bucket, config: { name: b, projectId: p }", "gs://b", none),
        (
            "type: gcp-bucket, config: { bucketName: b, name: c, credentials: '${auth:google}' }",
            "gs://b",
            CloudAccount::Google(SecretText::new("{\"type\":\"service_account\"}")),
        ),
    ];
    let secrets = "
auth:
  aws: { type: aws-token, config: { account: '1', accessKey: A, secretAccessKey: S, region: east } }
  google: { type: gcp-service-account, config: { credentials: '{\"type\":\"service_account\"}' } }
";
    for (storage, expected, expected_account) in table {
        let read = Files::server(&server(storage)).secrets(secrets).read(&["s"]);
        assert_eq!(read.messages(), "", "{storage}");
        let storage = &read.loaded.stacks[0].provisioner.state_storage;
        let StateStorage::Remote { url, account, .. } = storage else { panic!("{storage:?}") };
        assert_eq!((url.expose(), account), (expected, &expected_account));
        assert!(!format!("{storage:?}").contains("SK"), "{storage:?}");
    }
}

#[test]
fn bucket_to_create_is_read_with_its_project_and_its_location() {
    let table = [
        ("provision: true, projectId: p, location: EU", Some(("p", Some("EU")))),
        ("provision: true, projectId: p, location: ''", Some(("p", None))),
        ("provision: false, projectId: p, location: EU", None),
        ("projectId: p, location: EU", None),
    ];
    for (settings, expected) in table {
        let read =
            Files::server(&server(&format!("type: gcp-bucket, config: {{ bucketName: b, {settings} }}"))).read(&["s"]);
        assert_eq!(read.messages(), "", "{settings}");
        let storage = &read.loaded.stacks[0].provisioner.state_storage;
        let StateStorage::Remote { new_bucket, .. } = storage else { panic!("{storage:?}") };
        let found = new_bucket.as_ref().map(|bucket| (bucket.project.as_str(), bucket.location.as_deref()));
        assert_eq!(found, expected, "{settings}");
    }
}

#[test]
fn incomplete_bucket_is_reported_with_what_to_write() {
    let table = [
        ("type: s3-bucket", "needs the name of a bucket", "write `config: { bucketName: my-bucket }`"),
        ("type: gcp-bucket, config: { projectId: p }", "needs the name of a bucket", "bucketName: my-bucket"),
        (
            "type: s3-bucket, config: { bucketName: b, accessKey: AK }",
            "an access key of AWS needs both `accessKey` and `secretAccessKey`",
            "",
        ),
        ("type: s3-bucket, config: { bucketName: b, bucket: c }", "the key `bucket` is ignored", "bucketName"),
        ("type: fs, config: { path: \"gs://b\", private: true }", "`private` has no effect", ""),
        (
            "type: gcp-bucket, config: { bucketName: b, provision: true }",
            "`projectId` is missing",
            "or remove `provision` if the bucket exists",
        ),
        ("type: fs, config: { path: \"mem://b\" }", "must be a URL", "`s3://bucket`"),
    ];
    for (storage, expected, hint) in table {
        let messages = Files::server(&server(storage)).messages();
        assert!(messages.contains(expected) && messages.contains(hint), "{storage}: {messages}");
    }
}
