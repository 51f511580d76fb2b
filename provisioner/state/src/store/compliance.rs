//! The exam that every store sits.

use std::path::Path;

use super::*;

pub(super) const EMPTY: &str = r#"{"version":3,"checkpoint":{"stack":"organization/reef/dev"}}"#;
pub(super) const SECOND: &str = r#"{"version":3,"checkpoint":{"stack":"second"}}"#;

pub(super) fn stack(name: &str) -> StackReference {
    StackReference::new("reef", name).unwrap()
}

pub(super) fn holder(pid: u32) -> LockHolder {
    LockHolder { pid, username: "ada".to_owned(), hostname: "reefbox".to_owned() }
}

/// Saves as a run does: under the lock.
pub(super) async fn put(store: &dyn StateStore, name: &str, text: &str) -> Result<(), StoreError> {
    let lock = store.lock(&stack(name), &holder(1)).await?;
    let saved = store.save(&lock, text).await;
    store.unlock(lock).await?;
    saved
}

/// Returns the messages of an error and of its causes.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

async fn exam(store: &dyn StateStore) {
    an_absent_stack_is_none(store).await;
    what_was_saved_is_loaded(store).await;
    a_lock_excludes_and_names_its_holder(store).await;
    a_lock_can_be_broken(store).await;
    locks_of_different_stacks_are_apart(store).await;
    who_lost_the_lock_saves_nothing(store).await;
    tags_are_replaced_as_a_whole(store).await;
    a_stack_moves_with_its_history(store).await;
    a_stack_that_is_removed_leaves_nothing_to_list(store).await;
}

async fn an_absent_stack_is_none(store: &dyn StateStore) {
    assert_eq!(store.load(&stack("absent")).await.unwrap(), None);
    assert!(store.locks(&stack("absent")).await.unwrap().is_empty());
    assert!(store.list().await.unwrap().is_empty());
}

async fn what_was_saved_is_loaded(store: &dyn StateStore) {
    for text in [EMPTY, SECOND] {
        put(store, "dev", text).await.unwrap();
        assert_eq!(store.load(&stack("dev")).await.unwrap().as_deref(), Some(text));
    }
    store.archive(&stack("dev"), "{}").await.unwrap();
    put(store, "a.b", EMPTY).await.unwrap();
    assert_eq!(store.list().await.unwrap(), [stack("a.b"), stack("dev")]);
}

async fn a_lock_excludes_and_names_its_holder(store: &dyn StateStore) {
    let lock = store.lock(&stack("dev"), &holder(4711)).await.unwrap();
    let error = store.lock(&stack("dev"), &holder(1)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Locked { holders, .. } if holders.len() == 1));
    let message = error.to_string();
    assert!(message.contains("the stack is currently locked by 1 lock(s)"), "{message}");
    assert!(message.contains("created by ada@reefbox (pid 4711) at 2"), "{message}");
    store.unlock(lock).await.unwrap();
    let again = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    store.unlock(again).await.unwrap();
    assert!(store.locks(&stack("dev")).await.unwrap().is_empty());
}

async fn a_lock_can_be_broken(store: &dyn StateStore) {
    let lost = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    assert_eq!(store.break_locks(&stack("dev")).await.unwrap().len(), 1);
    let lock = store.lock(&stack("dev"), &holder(2)).await.unwrap();
    store.unlock(lost).await.unwrap();
    assert_eq!(store.locks(&stack("dev")).await.unwrap().len(), 1);
    store.unlock(lock).await.unwrap();
}

async fn who_lost_the_lock_saves_nothing(store: &dyn StateStore) {
    let there = store.load(&stack("dev")).await.unwrap();
    let lost = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    store.break_locks(&stack("dev")).await.unwrap();
    let error = store.save(&lost, "{}").await.unwrap_err().to_string();
    assert_eq!(error, "organization/reef/dev: the lock of this run was taken away, and nobody holds it");
    let lock = store.lock(&stack("dev"), &holder(2)).await.unwrap();
    let error = store.save(&lost, "{}").await.unwrap_err().to_string();
    assert!(error.contains("was taken away, and now held by\n  ") && error.contains("(pid 2)"), "{error}");
    store.unlock(lost).await.unwrap();
    store.unlock(lock).await.unwrap();
    assert_eq!(store.load(&stack("dev")).await.unwrap(), there);
}

async fn tags_are_replaced_as_a_whole(store: &dyn StateStore) {
    assert_eq!(store.tags(&stack("dev")).await.unwrap(), Tags::new());
    for tags in [&[("owner", "ada"), ("a<b>", "x & y")][..], &[("owner", "bob")], &[]] {
        let tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        store.set_tags(&stack("dev"), &tags).await.unwrap();
        assert_eq!(store.tags(&stack("dev")).await.unwrap(), tags);
    }
}

async fn a_stack_moves_with_its_history(store: &dyn StateStore) {
    let (from, to) = (stack("dev"), StackReference::new("shore", "west").unwrap());
    let lock = store.lock(&from, &holder(1)).await.unwrap();
    let taken = store.rename(&lock, &stack("a.b"), SECOND).await.unwrap_err();
    assert_eq!(taken.to_string(), "there is a stack organization/reef/a.b already");
    store.rename(&lock, &to, EMPTY).await.unwrap();
    store.unlock(lock).await.unwrap();
    assert_eq!(store.list().await.unwrap(), [stack("a.b"), to.clone()]);
    assert_eq!(store.load(&from).await.unwrap(), None);
    assert_eq!(store.load(&to).await.unwrap().as_deref(), Some(EMPTY));
    assert_eq!(store.history(&from).await.unwrap(), [""; 0]);
    assert_eq!(store.history(&to).await.unwrap(), ["{}"]);
}

async fn a_stack_that_is_removed_leaves_nothing_to_list(store: &dyn StateStore) {
    let west = StackReference::new("shore", "west").unwrap();
    store.set_tags(&west, &[("owner".to_owned(), "ada".to_owned())].into()).await.unwrap();
    let lock = store.lock(&west, &holder(1)).await.unwrap();
    store.remove(&lock, Backups::Kept).await.unwrap();
    store.unlock(lock).await.unwrap();
    assert_eq!(store.list().await.unwrap(), [stack("a.b")]);
    assert_eq!(store.tags(&west).await.unwrap(), Tags::new());
    assert_eq!(store.history(&west).await.unwrap(), [""; 0]);
    let lost = store.lock(&stack("a.b"), &holder(1)).await.unwrap();
    store.break_locks(&stack("a.b")).await.unwrap();
    assert!(matches!(store.remove(&lost, Backups::Kept).await, Err(StoreError::LockLost { .. })));
    assert!(matches!(store.rename(&lost, &west, EMPTY).await, Err(StoreError::LockLost { .. })));
}

async fn locks_of_different_stacks_are_apart(store: &dyn StateStore) {
    let first = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    let second = store.lock(&stack("prod"), &holder(1)).await.unwrap();
    for lock in [first, second] {
        store.unlock(lock).await.unwrap();
    }
}

pub(super) fn url(folder: &Path) -> FileUrl {
    FileUrl { folder: folder.to_owned(), create: false, folder_mode: 0o777, sidecars: true }
}

pub(super) async fn file_store(folder: &Path) -> Result<FileStore, StoreError> {
    FileStore::open(&url(folder)).await
}

pub(super) async fn compressing_store(folder: &Path, compression: Compression) -> FileStore {
    FileStore::open_with(&url(folder), FileOptions { compression, ..FileOptions::default() }).await.unwrap()
}

#[tokio::test]
async fn the_store_in_memory_passes() {
    exam(&MemoryStore::default()).await;
}

#[tokio::test]
async fn the_store_in_files_passes() {
    let folder = tempfile::tempdir().unwrap();
    exam(&file_store(folder.path()).await.unwrap()).await;
}

#[tokio::test]
async fn the_store_in_compressed_files_passes() {
    for compression in Compression::ALL {
        let folder = tempfile::tempdir().unwrap();
        exam(&compressing_store(folder.path(), compression).await).await;
    }
}

#[tokio::test]
async fn the_store_in_memory_refuses_a_state_that_breaks_the_laws() {
    let misordered = r#"{"version":3,"checkpoint":{"latest":{"resources":[
        {"urn":"urn:pulumi:s::p::t:m:T::a","custom":true,"type":"t:m:T","parent":"urn:pulumi:s::p::t:m:T::b"}]}}}"#;
    let error = with_causes(&put(&MemoryStore::default(), "dev", misordered).await.unwrap_err());
    assert!(error.contains("is missing from the state"), "{error}");
}

#[tokio::test]
async fn of_many_who_lock_at_once_at_most_one_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    let dev = stack("dev");
    for _ in 0..10 {
        let holders: Vec<_> = (1..=8).map(holder).collect();
        let tries = futures_util::future::join_all(holders.iter().map(|holder| store.lock(&dev, holder))).await;
        let mut held: Vec<_> = tries.into_iter().filter_map(Result::ok).collect();
        assert!(held.len() <= 1);
        assert_eq!(store.locks(&dev).await.unwrap().len(), held.len());
        if let Some(lock) = held.pop() {
            store.unlock(lock).await.unwrap();
        }
    }
}
