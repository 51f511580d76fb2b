//! Exports are those of the command line, to the byte.

use std::sync::Arc;

use provisioner::state::secrets::Keyring;
use provisioner::state::store::FileStore;
use provisioner::state::{ExportedSecrets, StackAccess, StackView};

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
    for name in ["init", "values", "features", "renamed"] {
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
