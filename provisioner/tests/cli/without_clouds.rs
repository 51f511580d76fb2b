//! Tests of a build without the feature `cloud`.

use std::fmt::Write as _;
use std::fs;

use tempfile::TempDir;

use crate::repository::repository;
use crate::state::check;

const PASSPHRASE: &str = "type: passphrase, config: { passPhrase: hush }";
const FOLDER: &str = "type: fs, config: { path: file://backend }";

/// Returns the output of a command on a stack with a store and a secrets provider, and the folder of the repository.
fn with_provisioner(store: &str, secrets: &str, arguments: &[&str]) -> (String, TempDir) {
    let folder = repository("reef", "hush", "");
    let server = format!(
        "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    state-storage: {{ {store} }}
    secrets-provider: {{ {secrets} }}
"
    );
    fs::write(folder.path().join(".sc/stacks/reef/server.yaml"), server).unwrap();
    (check(&folder, arguments), folder)
}

/// Shows: README.md#installation "It reads and checks the same files, and refuses to use a store or a key in a cloud."
#[test]
fn stores_in_clouds_are_refused_and_valid() {
    let stores = [
        ("s3", "type: fs, config: { path: \"s3://reef-state?region=eu-west-1\" }"),
        ("gs", "type: fs, config: { path: gs://reef-state }"),
        ("azblob", "type: fs, config: { path: \"azblob://state?storage_account=reef\" }"),
        ("postgres", "type: fs, config: { path: \"postgres://ada:t0p@db/state\" }"),
        ("s3", "type: s3-bucket, config: { bucketName: reef-state, region: eu-west-1 }"),
        ("gs", "type: gcp-bucket, config: { bucketName: reef-state }"),
    ];
    for (scheme, store) in stores {
        let (validated, _) = with_provisioner(store, PASSPHRASE, &["validate"]);
        assert!(validated.starts_with("exit 0"), "{store}: {validated}");
        let (refused, _) = with_provisioner(store, PASSPHRASE, &["stack", "export"]);
        let expected = format!(
            "exit 1
--- out
--- err
error: the backend of stack reef is at {scheme}://, and this build of sc has no clients of clouds and databases
  hint: use a build with the feature `cloud`, which is on by default, or keep the state in a folder (`file://…`)
"
        );
        assert_eq!(refused, expected, "{store}");
    }
}

/// Shows: README.md#installation "It reads and checks the same files, and refuses to use a store or a key in a cloud."
#[test]
fn keys_in_clouds_are_refused_before_the_first_change_and_valid() {
    let keys = [
        "type: aws-kms, config: { keyName: \"awskms://alias/reef?region=eu-west-1\" }",
        "type: gcp-kms, config: { keyName: gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k }",
    ];
    let mut refusals = String::new();
    for key in keys {
        let (validated, _) = with_provisioner(FOLDER, key, &["validate"]);
        assert!(validated.starts_with("exit 0"), "{key}: {validated}");
        let (refused, folder) = with_provisioner(FOLDER, key, &["provision", "-S"]);
        writeln!(refusals, "{refused}").unwrap();
        assert!(!folder.path().join("backend/.pulumi/stacks").exists(), "{refused}");
    }
    insta::assert_snapshot!(refusals, @r#"
    exit 1
    --- out
    --- err
    error[key]: this key cannot be used
     --> .sc/stacks/reef/server.yaml:6:59
      |
    6 |     secrets-provider: { type: aws-kms, config: { keyName: "awskms://alias/reef?region=eu-west-1" } }
      |                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: the data key of stack organization/reef/reef cannot be encrypted with the key awskms://alias/reef?region=eu-west-1: this build of sc has no clients of key management services: awskms:// needs the feature `cloud`
      hint: use a build with the feature `cloud`, which is on by default, or protect the secrets by a passphrase

    exit 1
    --- out
    --- err
    error[key]: this key cannot be used
     --> .sc/stacks/reef/server.yaml:6:59
      |
    6 |     secrets-provider: { type: gcp-kms, config: { keyName: gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k } }
      |                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: the data key of stack organization/reef/reef cannot be encrypted with the key gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k: this build of sc has no clients of key management services: gcpkms:// needs the feature `cloud`
      hint: use a build with the feature `cloud`, which is on by default, or protect the secrets by a passphrase
    "#);
}
