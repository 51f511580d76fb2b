//! Imports: the same result as with Pulumi's command line.

use std::sync::Arc;

use state::secrets::Keyring;
use state::store::{FileUrl, LockHolder, StateStore, StoreOptions};
use state::{ExportedSecrets, OperationKind, StackAccess, StackView, import};

use crate::case::Case;

fn access(case: &Case, store: StateStore, journals: &std::path::Path) -> StackAccess {
    let stack = case.stacks().remove(0).0;
    StackAccess {
        store,
        keyring: Arc::new(Keyring::new(Some(case.passphrase(&stack)))),
        stack,
        configured_secrets: None,
        config: Default::default(),
        journals: state::JournalFolders::of_backend(journals),
        journal_mode: Default::default(),
        unrecorded: Default::default(),
        locks: state::LockSettings::default(),
        begins_anew: false,
        engine_version: "v0.1.0".to_owned(),
    }
}

/// `project/edited.json` is the input of the command line, `backend` its result.
#[tokio::test]
async fn imported_state_equals_that_of_the_command_line() {
    let case = Case::open("imported");
    let folder = tempfile::tempdir().unwrap();
    let url = FileUrl { folder: folder.path().to_owned(), create: false, folder_mode: 0o777, sidecars: true };
    let copy = access(&case, StateStore::open_folder(&url, StoreOptions::default()).await.unwrap(), folder.path());
    let edited = std::fs::read_to_string(case.folder.join("project/edited.json")).unwrap();
    let holder =
        LockHolder { pid: 1, username: "ada".to_owned(), hostname: "reefbox".to_owned(), process: None, lease: None };
    let imported = import(&copy, &holder, &edited, false).await.unwrap();
    assert_eq!((imported.resources, imported.problems), (3, vec![]));
    let dropped: Vec<_> = imported.dropped.iter().map(|(kind, urn)| (*kind, urn.name())).collect();
    assert_eq!(dropped, [(OperationKind::Creating, "ghost")]);

    let original = access(&case, case.store().await.unwrap(), folder.path());
    let export_plaintext = |access: StackAccess| async move {
        StackView::export(&access, ExportedSecrets::Plaintext).await.unwrap().unwrap()
    };
    assert_eq!(export_plaintext(copy.clone()).await, export_plaintext(original).await);
    let stored = copy.store.text(&copy.stack).await.unwrap().unwrap();
    assert!(!stored.contains("plaintext") && stored.matches("\"ciphertext\"").count() >= 5, "{stored}");
    assert!(copy.store.locks(&copy.stack).await.unwrap().is_empty());
}
