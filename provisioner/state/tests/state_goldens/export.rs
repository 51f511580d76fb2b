//! Exports: the same bytes as those of Pulumi's command line.

use std::sync::Arc;

use state::secrets::Keyring;
use state::store::StateStore;
use state::{ExportedSecrets, StackAccess, StackView};

use crate::case::Case;

fn access(case: &Case, store: StateStore, keyring: Keyring) -> StackAccess {
    StackAccess {
        store,
        keyring: Arc::new(keyring),
        stack: case.stacks().remove(0).0,
        configured_secrets: None,
        config: Default::default(),
        journals: state::JournalFolders::of_backend(case.folder.join("backend")),
        journal_mode: Default::default(),
        unrecorded: Default::default(),
        locks: state::LockSettings::default(),
        begins_anew: false,
        engine_version: "v0.1.0".to_owned(),
    }
}

#[tokio::test]
async fn encrypted_export_needs_no_passphrase() {
    let case = Case::open("exported");
    let access = access(&case, case.store().await.unwrap(), Keyring::new(None));
    let expected = std::fs::read_to_string(case.folder.join("project/export.json")).unwrap();
    assert_eq!(StackView::export(&access, ExportedSecrets::Encrypted).await.unwrap().unwrap(), expected);
}

#[tokio::test]
async fn plaintext_export_needs_the_passphrase() {
    let case = Case::open("exported");
    let keyring = Keyring::new(Some(case.passphrase(&case.stacks().remove(0).0)));
    let access = access(&case, case.store().await.unwrap(), keyring);
    let expected = std::fs::read_to_string(case.folder.join("project/export-show-secrets.json")).unwrap();
    assert_eq!(StackView::export(&access, ExportedSecrets::Plaintext).await.unwrap().unwrap(), expected);
    let without_passphrase = StackAccess { keyring: Arc::new(Keyring::new(None)), ..access };
    assert!(StackView::export(&without_passphrase, ExportedSecrets::Plaintext).await.is_err());
}

/// The numbers of `values` and the features of `features` are exported as they are stored.
#[tokio::test]
async fn deployment_is_exported_as_stored() {
    for name in ["init", "values", "features", "renamed", "cloud"] {
        let case = Case::open(name);
        let access = access(&case, case.store().await.unwrap(), Keyring::new(None));
        let export = StackView::export(&access, ExportedSecrets::Encrypted).await.unwrap().unwrap();
        let export: serde_json::Value = serde_json::from_str(&export).unwrap();
        let stored = access.store.text(&access.stack).await.unwrap().unwrap();
        let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
        assert_eq!(export["deployment"], stored["checkpoint"]["latest"], "{name}");
        assert_eq!((&export["version"], &export["features"]), (&stored["version"], &stored["features"]), "{name}");
    }
}

/// The cloud that has the key is not called: only the whitespace of the deployment changes.
#[tokio::test]
async fn encrypted_export_needs_no_cloud_key() {
    let case = Case::open("cloud");
    let access = access(&case, case.store().await.unwrap(), Keyring::new(None));
    let export = StackView::export(&access, ExportedSecrets::Encrypted).await.unwrap().unwrap();
    let stored = access.store.text(&access.stack).await.unwrap().unwrap();
    let deployment = stored.split_once("\"latest\":").unwrap().1.strip_suffix("}}").unwrap();
    assert_eq!(compact(&export), format!("{{\"version\":3,\"deployment\":{deployment}}}"));
    let error = StackView::export(&access, ExportedSecrets::Plaintext).await.unwrap_err();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    assert!(
        causes.last().unwrap().to_string().contains("secrets manager \"cloud\" of the stack is not supported"),
        "{error}"
    );
}

/// Returns a JSON text without whitespace between its tokens.
fn compact(text: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    let kept = text.chars().filter(|character| {
        let closes_or_opens = *character == '"' && !escaped;
        escaped = inside && *character == '\\' && !escaped;
        inside ^= closes_or_opens;
        inside || !character.is_ascii_whitespace()
    });
    kept.collect()
}
