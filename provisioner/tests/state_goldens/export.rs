//! Exports are those of the command line, to the byte.

use std::sync::Arc;

use provisioner::state::secrets::Keyring;
use provisioner::state::{ExportedSecrets, StackAccess, StackView};

use crate::case::Case;

async fn view(case: &Case) -> StackView {
    let (stack, _) = case.stacks().remove(0);
    let access = StackAccess {
        store: Arc::new(case.store().await.unwrap()),
        keyring: Arc::new(Keyring::new(Some(case.passphrase(&stack)))),
        stack,
        configured_secrets: None,
        journals: case.folder.join("backend"),
        engine_version: "v0.1.0".to_owned(),
    };
    StackView::open(&access).await.unwrap()
}

#[tokio::test]
async fn sealed_and_shown() {
    let case = Case::open("exported");
    let view = view(&case).await;
    for (file, secrets) in
        [("export.json", ExportedSecrets::Sealed), ("export-show-secrets.json", ExportedSecrets::Shown)]
    {
        let theirs = std::fs::read_to_string(case.folder.join("project").join(file)).unwrap();
        assert_eq!(view.export(secrets).await.unwrap(), theirs, "{file}");
    }
}

#[tokio::test]
async fn a_stack_that_was_only_made_exports_what_its_manifest_says() {
    let text = view(&Case::open("init")).await.export(ExportedSecrets::Sealed).await.unwrap();
    assert!(text.starts_with("{\n    \"version\": 3,\n    \"deployment\": {\n        \"manifest\": {\n"), "{text}");
    assert!(text.ends_with("        \"metadata\": {}\n    }\n}\n"), "{text}");
}
