//! Refused checkpoints, and the messages for them.

use state::format::FormatError;
use state::secrets::{Keyring, Passphrase, SecretsError};
use state::store::StoreError;
use state::{decode_checkpoint, integrity};

use crate::case::Case;

async fn load(name: &str) -> Result<String, StoreError> {
    let case = Case::open(name);
    let (stack, _) = case.stacks().remove(0);
    Ok(case.store().await?.text(&stack).await?.unwrap())
}

async fn refused(text: &str) -> String {
    let keyring = Keyring::new(Some(Passphrase::new("tide-pool 42")));
    let error = decode_checkpoint(text, &keyring).await.err().unwrap();
    let chain = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[tokio::test]
async fn legacy_layout_is_refused() {
    let error = Case::open("legacy").store().await.err().unwrap();
    assert!(matches!(error, StoreError::Legacy(_)));
}

#[tokio::test]
async fn cloud_secrets_manager_is_refused() {
    let error = refused(&load("cloud").await.unwrap()).await;
    assert_eq!(error, "the secrets manager \"cloud\" of the stack is not supported");
}

#[tokio::test]
async fn wrong_or_missing_passphrase_is_reported() {
    let text = load("secrets").await.unwrap();
    let error = decode_checkpoint(&text, &Keyring::new(Some(Passphrase::new("wrong")))).await.err().unwrap();
    assert!(matches!(error, FormatError::Secret(SecretsError::WrongPassphrase)), "{error}");
    let error = decode_checkpoint(&text, &Keyring::new(None)).await.err().unwrap();
    assert!(matches!(error, FormatError::Secret(SecretsError::NoPassphrase)), "{error}");
}

#[tokio::test]
async fn state_without_secrets_needs_no_passphrase() {
    let text = load("up").await.unwrap();
    assert!(decode_checkpoint(&text, &Keyring::new(None)).await.unwrap().checkpoint.snapshot.is_some());
    let wrong = Keyring::new(Some(Passphrase::new("wrong")));
    assert!(decode_checkpoint(&text, &wrong).await.is_ok());
}

#[tokio::test]
async fn wrong_checksum_is_a_violation() {
    let text = load("up").await.unwrap().replace("\"magic\":\"7dff", "\"magic\":\"0dff");
    let keyring = Keyring::new(Some(Passphrase::new("tide-pool 42")));
    let snapshot = decode_checkpoint(&text, &keyring).await.unwrap().checkpoint.snapshot.unwrap();
    let error = integrity::verify(&snapshot).unwrap_err().to_string();
    assert!(error.contains("its manifest: has the checksum \"0dff"), "{error}");
}

/// Shows: state.md#files "`sc` refuses a checkpoint with a format version other than 3 or 4"
#[tokio::test]
async fn unsupported_versions_are_refused() {
    let text = load("up").await.unwrap();
    for (version, message) in [(1, "too old"), (2, "too old"), (5, "newer than the supported ones")] {
        let text = text.replacen("\"version\":3", &format!("\"version\":{version}"), 1);
        assert!(refused(&text).await.contains(message));
    }
    assert!(refused("{\"stack\":\"dev\",\"latest\":{}}").await.contains("version 0, which is too old"));
    assert!(refused("{\"version\":3,").await.starts_with("it is not a checkpoint: EOF"));
}

#[tokio::test]
async fn unknown_feature_is_refused() {
    let text = load("version-4").await.unwrap().replacen("\"taint\"", "\"teleport\"", 1);
    assert_eq!(refused(&text).await, "it uses the feature \"teleport\", which this program does not support");
    let as_version_3 = text.replacen("\"version\":4", "\"version\":3", 1);
    let keyring = Keyring::new(Some(Passphrase::new("tide-pool 42")));
    assert!(decode_checkpoint(&as_version_3, &keyring).await.is_ok(), "features count in version 4 only");
}

#[tokio::test]
async fn parent_after_its_child_is_a_violation() {
    let text = load("up").await.unwrap();
    let keyring = Keyring::new(None);
    let mut snapshot = decode_checkpoint(&text, &keyring).await.unwrap().checkpoint.snapshot.unwrap();
    snapshot.resources.reverse();
    let error = integrity::verify(&snapshot).unwrap_err().to_string();
    assert!(error.contains("its parent urn:pulumi:dev::reef::pulumi:pulumi:Stack::reef-dev comes later"), "{error}");
}

#[tokio::test]
async fn malformed_property_values_are_reported() {
    let values = [
        (r#"{"4dabf18193072939515e22adb298388d":"d0e6a833031e9bbcd3f4e8bde6ca49a4"}"#, "unknown tag"),
        (r#"{"4dabf18193072939515e22adb298388d":7}"#, "not a string"),
        (r#"{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270"}"#, "neither ciphertext"),
        (r#"{"4dabf18193072939515e22adb298388d":"5cf8f73096256a8f31e491e813e4eb8e","urn":"x"}"#, "is not a URN"),
        (r#"{"4dabf18193072939515e22adb298388d":"8ad145fe-0d11-4827-bfd7-1abcbf086f5c","value":"x"}"#, "16 hex"),
    ];
    let text = load("up").await.unwrap();
    for (value, message) in values {
        let error = refused(&text.replace("\"w\":\"deux\"", &format!("\"w\":{value}"))).await;
        assert!(error.contains("::clam: inputs cannot be read"), "{error}");
        assert!(error.contains(message), "{error}");
    }
    let nested = format!("{}1{}", "[".repeat(600), "]".repeat(600));
    assert!(refused(&text.replace("\"deux\"", &nested)).await.contains("values nest deeper than"));
}
