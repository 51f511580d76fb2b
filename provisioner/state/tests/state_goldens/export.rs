//! Exports are those of the command line, to the byte.

use std::sync::Arc;

use state::secrets::Keyring;
use state::store::FileStore;
use state::{ExportedSecrets, StackAccess, StackView};

use crate::case::Case;

fn access(case: &Case, store: FileStore, keyring: Keyring) -> StackAccess {
    StackAccess {
        store: Arc::new(store),
        keyring: Arc::new(keyring),
        stack: case.stacks().remove(0).0,
        configured_secrets: None,
        config: Default::default(),
        journals: case.folder.join("backend"),
        engine_version: "v0.1.0".to_owned(),
    }
}

#[tokio::test]
async fn sealed_without_a_passphrase() {
    let case = Case::open("exported");
    let access = access(&case, case.store().await.unwrap(), Keyring::new(None));
    let theirs = std::fs::read_to_string(case.folder.join("project/export.json")).unwrap();
    assert_eq!(StackView::export(&access, ExportedSecrets::Sealed).await.unwrap().unwrap(), theirs);
}

#[tokio::test]
async fn shown_with_one() {
    let case = Case::open("exported");
    let keyring = Keyring::new(Some(case.passphrase(&case.stacks().remove(0).0)));
    let access = access(&case, case.store().await.unwrap(), keyring);
    let theirs = std::fs::read_to_string(case.folder.join("project/export-show-secrets.json")).unwrap();
    assert_eq!(StackView::export(&access, ExportedSecrets::Shown).await.unwrap().unwrap(), theirs);
}

/// The numbers of `values` and the features of `features` stand as they are stored.
#[tokio::test]
async fn as_stored() {
    for name in ["init", "values", "features", "renamed", "cloud"] {
        let case = Case::open(name);
        let access = access(&case, case.store().await.unwrap(), Keyring::new(None));
        let export = StackView::export(&access, ExportedSecrets::Sealed).await.unwrap().unwrap();
        let export: serde_json::Value = serde_json::from_str(&export).unwrap();
        let stored = access.store.load(&access.stack).await.unwrap().unwrap();
        let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
        assert_eq!(export["deployment"], stored["checkpoint"]["latest"], "{name}");
        assert_eq!((&export["version"], &export["features"]), (&stored["version"], &stored["features"]), "{name}");
    }
}

/// Whoever keeps the key is not asked: not a byte of the deployment changes but the blanks.
#[tokio::test]
async fn without_the_key_where_a_cloud_keeps_it() {
    let case = Case::open("cloud");
    let access = access(&case, case.store().await.unwrap(), Keyring::new(None));
    let export = StackView::export(&access, ExportedSecrets::Sealed).await.unwrap().unwrap();
    let stored = access.store.load(&access.stack).await.unwrap().unwrap();
    let deployment = stored.split_once("\"latest\":").unwrap().1.strip_suffix("}}").unwrap();
    assert_eq!(compact(&export), format!("{{\"version\":3,\"deployment\":{deployment}}}"));
    let shown = StackView::export(&access, ExportedSecrets::Shown).await.unwrap_err();
    let causes = std::iter::successors(Some(&shown as &dyn std::error::Error), |error| error.source());
    assert!(causes.last().unwrap().to_string().contains("kept by \"cloud\", which is not supported"), "{shown}");
}

/// A JSON text without blanks between its tokens.
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
