//! Bucket that a Go program reads with `gocloud.dev` and Pulumi's SDK, while a run has the lock: objects, checkpoints, locks,
//! and secrets under a passphrase, under a key in AWS KMS and under one in Azure Key Vault.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};
use tests::azure::Azure;
use tests::azurite::Azurite;
use tests::{commands, sdks};

use crate::life::Repository;
use crate::{azblob, s3};

const SECRET: &str = "pearl <9> & ü";
const STACK: &str = ".pulumi/stacks/tank/reef.json";

/// Report of the program about a bucket; see `interop_state/reader/bucket.go`.
#[derive(Debug, Deserialize)]
struct Found {
    objects: BTreeMap<String, u64>,
    secrets: BTreeMap<String, Vec<String>>,
    locks: Vec<Value>,
    updates: Vec<String>,
}

/// Variables of a program.
type Variables = [(&'static str, String)];

/// Runs the program with the credentials of the bucket, and further variables.
fn read(arguments: &[&str], passphrase: &str, variables: &Variables) -> io::Result<Vec<u8>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_state/reader");
    let mut command = Command::new(sdks::go_program("state-reader", &sources)?);
    command.args(arguments).env_clear().env("PULUMI_CONFIG_PASSPHRASE", passphrase).env("HOME", "/missing");
    command.env("AWS_ACCESS_KEY_ID", "AKIATEST").env("AWS_SECRET_ACCESS_KEY", "test").envs(azblob::KEYS);
    commands::run(command.envs(variables.iter().cloned()))
}

/// Starts a run, and returns it once it is in the Create of the resource `b`.
fn start_until_create(repository: &Repository) -> Child {
    repository.script(&json!({"resources": {"b--prod": {"hang": "create"}}}));
    let is_create =
        |call: &Value| call["rpc"] == "Create" && call["request"]["urn"].as_str().unwrap().ends_with("::b--prod");
    let mut command = repository.command("provision -S");
    repository.start_until(&mut command, "its Create is called", || repository.calls().iter().any(is_create))
}

/// Fills a bucket, and reads it with the program, which needs the variables. `wrong`: passphrase that does not open the state.
fn check_bucket(repository: &Repository, url: &str, wrong: Option<&str>, variables: &Variables) {
    let secrets = json!({"schemaVersion": "1.0", "values": {"pearl": SECRET}});
    fs::write(repository.path(".sc/stacks/reef/secrets.yaml"), secrets.to_string()).unwrap();
    repository.write_things(&[("a", "${secret:pearl}")]);
    repository.sc(0, "provision -S");
    repository.write_things(&[("a", "${secret:pearl}"), ("b", "${secret:pearl}")]);
    let compressed = repository.command("refresh --yes").env("PULUMI_DIY_BACKEND_GZIP", "1").status().unwrap();
    assert!(compressed.success());
    let mut run = start_until_create(repository);
    let found: Found = serde_json::from_slice(&read(&["bucket", url], "hush", variables).unwrap()).unwrap();

    let lock = &found.locks[0];
    assert_eq!((found.locks.len(), lock["pid"].as_u64()), (1, Some(run.id().into())), "{found:#?}");
    assert!(["username", "hostname"].iter().all(|member| lock[member].as_str().is_some_and(|name| !name.is_empty())));
    assert_eq!(found.updates, ["update succeeded", "refresh succeeded"]);
    let quoted = serde_json::to_string(SECRET).unwrap();
    let quoted = quoted.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    // The current checkpoint, the previous one, and their copies.
    for key in [format!("{STACK}.gz"), format!("{STACK}.bak")] {
        let secrets = &found.secrets[&key];
        // The output of the plugin has the secret in it.
        assert!(secrets[0] == quoted && secrets.iter().all(|secret| secret.contains("pearl")), "{key}: {secrets:?}");
    }
    let all = found.objects.keys();
    let copies = all.filter(|key| key.starts_with(".pulumi/backups/") || key.ends_with(".checkpoint.json.gz"));
    assert!(copies.clone().count() >= 3, "{found:#?}");
    assert!(copies.clone().all(|key| !found.secrets[key].is_empty()), "{found:#?}");
    if let Some(wrong) = wrong {
        let error = read(&["bucket", url], wrong, variables).unwrap_err().to_string();
        assert!(error.contains("incorrect passphrase"), "{error}");
    }

    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    run.wait().unwrap();
    let export = repository.path("export.json");
    repository.sc(0, &format!("stack export --file {}", export.display()));
    let found: Value =
        serde_json::from_slice(&read(&["export", export.to_str().unwrap()], "hush", variables).unwrap()).unwrap();
    let secrets = found["secrets"].as_array().unwrap();
    assert_eq!(secrets[0], *quoted, "{found:#}");
    assert!(secrets.iter().all(|secret| secret.as_str().unwrap().contains("pearl")), "{found:#}");
}

/// Shows: state.md#stores "Layout, names, compression, `.bak`, history, backups and tags are the same in each of them"
/// Shows: state.md#state "Each program can read and change what the other wrote."
#[test]
fn bucket_and_export_under_a_passphrase_are_read_by_gocloud_and_the_sdk_of_pulumi() {
    let server = s3::with_bucket("reef");
    let url = format!("s3://reef/team?endpoint={}&s3ForcePathStyle=true&region=us-east-1", server.url());
    check_bucket(&Repository::in_s3(server.url()), &url, Some("another"), &[]);
}

/// Shows: state.md#stores "Layout, names, compression, `.bak`, history, backups and tags are the same in each of them"
#[test]
fn container_in_azure_is_read_by_gocloud_and_the_sdk_of_pulumi() {
    let server = Azurite::start("reef").unwrap();
    let url = azblob::url("reef/team", server.host());
    check_bucket(&Repository::in_azure(server.host()), &url, Some("another"), &[]);
}

/// Shows: state.md#secrets "encrypted by AWS KMS, Google Cloud KMS, Azure Key Vault or HashiCorp Vault, as `pulumi` does. Each program
///   decrypts what the other has encrypted."
#[tokio::test(flavor = "multi_thread")]
async fn container_and_export_under_a_key_of_azure_key_vault_are_read_by_gocloud_and_the_sdk_of_pulumi() {
    let azure = Azure::start(&["reef/state"]).await.unwrap();
    let variables = azure.environment();
    let check = move || {
        let server = Azurite::start("reef").unwrap();
        let entry =
            "{ type: azure-key-vault, config: { keyName: \"azurekeyvault://reef.vault.azure.net/keys/state\" } }";
        let repository = Repository::in_azure(server.host()).with_environment(&variables).with_secrets_provider(entry);
        check_bucket(&repository, &azblob::url("reef/team", server.host()), None, &variables);
    };
    tokio::task::spawn_blocking(check).await.unwrap();
    assert!(azure.take_operations().len() > 2);
}

/// Shows: state.md#stores "Layout, names, compression, `.bak`, history, backups and tags are the same in each of them"
/// Shows: state.md#state "Each program can read and change what the other wrote."
#[test]
fn bucket_and_export_under_a_key_of_aws_kms_are_read_by_gocloud_and_the_sdk_of_pulumi() {
    let server = s3::with_bucket("reef");
    let id = server.python("print(client('kms').create_key()['KeyMetadata']['KeyId'])").unwrap();
    let key = format!("awskms://{}?region=us-east-1&endpoint={}", id.trim(), server.url());
    let entry = format!("{{ type: aws-kms, config: {{ keyName: \"{key}\" }} }}");
    let url = format!("s3://reef/team?endpoint={}&s3ForcePathStyle=true&region=us-east-1", server.url());
    check_bucket(&Repository::in_s3(server.url()).with_secrets_provider(&entry), &url, None, &[]);
}
