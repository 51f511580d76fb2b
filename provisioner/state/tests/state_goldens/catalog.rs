//! Stacks are renamed and tagged as the command line does it, to the byte.

use std::path::Path;
use std::sync::Arc;

use state::secrets::Keyring;
use state::store::{
    Backups, FileOptions, FileStore, FileUrl, LegacyStores, LockHolder, StackCatalog as _, StackReference,
    StateStore as _,
};
use state::{StackAccess, StateError, remove_stack, rename_stack};

use crate::case::Case;

/// A copy of the backend of a case, and the way to one of its stacks. There is no key.
async fn copied(case: &Case, stack: &StackReference) -> (tempfile::TempDir, FileStore, StackAccess) {
    let folder = tempfile::tempdir().unwrap();
    copy(&case.folder.join("backend"), folder.path());
    let url = FileUrl { folder: folder.path().to_owned(), create: false, folder_mode: 0o777, sidecars: true };
    let options = FileOptions { legacy_stores: LegacyStores::Accepted, ..FileOptions::default() };
    let store = FileStore::open_with(&url, options).await.unwrap();
    let access = StackAccess {
        store: Arc::new(store.clone()),
        keyring: Arc::new(Keyring::new(None)),
        stack: stack.clone(),
        configured_secrets: None,
        config: Default::default(),
        journals: folder.path().to_owned(),
        engine_version: "v0.1.0".to_owned(),
    };
    (folder, store, access)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, target) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).unwrap();
        if path.is_dir() { copy(&path, &target) } else { _ = std::fs::copy(&path, &target).unwrap() }
    }
}

fn holder() -> LockHolder {
    LockHolder { pid: 1, username: "ada".to_owned(), hostname: "reefbox".to_owned() }
}

fn stack(name: &str) -> StackReference {
    StackReference::new("reef", name).unwrap()
}

/// The checkpoint before the command line renamed it is its backup; what it made of it is the checkpoint.
#[tokio::test]
async fn a_renamed_stack_is_what_the_command_line_makes_of_it() {
    let case = Case::open("renamed");
    let (folder, store, access) = copied(&case, &stack("dev")).await;
    let stacks = folder.path().join(".pulumi/stacks/reef");
    let theirs = std::fs::read_to_string(stacks.join("west.json")).unwrap();
    std::fs::remove_file(stacks.join("west.json")).unwrap();
    std::fs::copy(stacks.join("dev.json.bak"), stacks.join("dev.json")).unwrap();

    rename_stack(&access, &holder(), &stack("west")).await.unwrap();
    assert_eq!(store.load(&stack("west")).await.unwrap().unwrap(), theirs);
    assert_eq!(store.load(&stack("dev")).await.unwrap(), None);
    assert!(store.locks(&stack("dev")).await.unwrap().is_empty());
}

#[tokio::test]
async fn whatever_the_command_line_writes_comes_back_as_it_was_after_two_renames() {
    for entry in std::fs::read_dir(Case::root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // That of `imported` is escaped for HTML; without projects names have other rules.
        if [".md", "imported", "legacy"].iter().any(|other| name.ends_with(other)) {
            continue;
        }
        let case = Case::open(&name);
        for (there, _) in case.stacks() {
            let (_folder, store, access) = copied(&case, &there).await;
            store.break_locks(&there).await.unwrap();
            let before = store.load(&there).await.unwrap();
            let elsewhere = StackReference::new("shore", "elsewhere").unwrap();
            rename_stack(&access, &holder(), &elsewhere).await.unwrap();
            assert_eq!(store.load(&there).await.unwrap(), None, "{name}");
            let access = StackAccess { stack: elsewhere, ..access };
            rename_stack(&access, &holder(), &there).await.unwrap();
            assert_eq!(store.load(&there).await.unwrap(), before, "{name}");
        }
    }
}

#[tokio::test]
async fn tags_are_those_of_the_command_line() {
    let case = Case::open("two-stacks");
    let (folder, store, access) = copied(&case, &stack("dev")).await;
    let tags = store.tags(&access.stack).await.unwrap();
    let known = [("a<b>", "x & y"), ("owner", "ada")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(tags, known.into());
    let file = folder.path().join(".pulumi/stacks/reef/dev.pulumi-tags");
    let theirs = std::fs::read_to_string(&file).unwrap();
    store.set_tags(&access.stack, &tags).await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), theirs);
    store.set_tags(&access.stack, &Default::default()).await.unwrap();
    assert!(!file.exists());

    let case = Case::open("legacy");
    let (_folder, store, access) = copied(&case, &stack("dev")).await;
    assert_eq!(store.tags(&access.stack).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_stack_with_resources_is_removed_only_by_force() {
    let case = Case::open("two-stacks");
    let (folder, store, access) = copied(&case, &stack("prod")).await;
    let error = remove_stack(&access, &holder(), false, Backups::Kept).await.unwrap_err();
    assert!(matches!(error, StateError::NotEmpty { .. }), "{error}");
    remove_stack(&access, &holder(), true, Backups::Kept).await.unwrap();
    assert_eq!(store.list().await.unwrap(), [stack("dev")]);
    let stacks = std::fs::read_dir(folder.path().join(".pulumi/stacks/reef")).unwrap();
    let mut of_prod: Vec<_> = stacks.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    of_prod.retain(|name| name.starts_with("prod") && !name.ends_with(".attrs"));
    assert_eq!(of_prod.len(), 4, "the last one and three that were retained: {of_prod:?}");
    let gone = remove_stack(&access, &holder(), true, Backups::Kept).await.unwrap_err();
    assert!(matches!(gone, StateError::NoStack(_)), "{gone}");

    let (_folder, _, access) = copied(&Case::open("init"), &stack("dev")).await;
    remove_stack(&access, &holder(), false, Backups::Kept).await.unwrap();
}
