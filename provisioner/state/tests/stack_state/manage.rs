//! Renames and removals of stacks.

use state::format::UpdateKind;
use state::store::{Backups, StackCatalog as _, StackReference, StateStore as _, StoreError};
use state::{StackAccess, StackState, StateError, StateRecorder as _, remove_stack, rename_stack};

use crate::fixture::{Fixture, creation, holder, resource, secret_resource};

fn west() -> StackReference {
    StackReference::new("reef", "west").unwrap()
}

/// Leaves the journal of an interrupted run, without a lock.
async fn interrupt(access: &StackAccess) {
    let state = StackState::open(access.clone(), &holder()).await.unwrap();
    let mut recorder = state.recorder(UpdateKind::Update);
    for record in creation(0, 1, resource("b")) {
        recorder.append(&record).unwrap();
    }
    access.store.break_locks(&access.stack, &access.store.locks(&access.stack).await.unwrap()).await.unwrap();
}

/// Renames the stack of the fixture.
async fn rename(fixture: &Fixture) {
    let rename = rename_stack(&fixture.access, &holder(), &west()).await.unwrap();
    fixture.store.finish_rename(rename).await.unwrap();
}

#[tokio::test]
async fn rename_and_remove_are_refused_while_a_run_is_interrupted() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    interrupt(&fixture.access).await;
    let before = fixture.store.load(&fixture.stack).await.unwrap();
    let renamed = rename_stack(&fixture.access, &holder(), &west()).await.unwrap_err();
    assert!(matches!(renamed, StateError::Interrupted { .. }), "{renamed}");
    let removed = remove_stack(&fixture.access, &holder(), true, Backups::Removed).await.unwrap_err();
    assert!(matches!(removed, StateError::Interrupted { .. }), "{removed}");
    assert_eq!(fixture.store.load(&fixture.stack).await.unwrap(), before);
    assert!(fixture.store.locks(&fixture.stack).await.unwrap().is_empty());

    fixture.open().await.unwrap().release().await.unwrap();
    rename(&fixture).await;
    let access = StackAccess { stack: west(), ..fixture.access.clone() };
    let state = StackState::open(access, &holder()).await.unwrap();
    let urns: Vec<_> = state.snapshot().resources.iter().map(|resource| resource.urn.as_str()).collect();
    assert_eq!(urns, ["urn:pulumi:west::reef::t:m:T::b", "urn:pulumi:west::reef::t:m:T::a"]);
}

#[tokio::test]
async fn rename_to_a_stack_with_an_interrupted_run_is_refused() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    interrupt(&StackAccess { stack: west(), ..fixture.access.clone() }).await;
    let refused = rename_stack(&fixture.access, &holder(), &west()).await.unwrap_err();
    assert!(matches!(&refused, StateError::Interrupted { stack, .. } if *stack == west()), "{refused}");
}

#[tokio::test]
async fn rename_is_refused_while_either_name_is_locked() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    for locked in [fixture.stack.clone(), west()] {
        let lock = fixture.store.lock(&locked, &holder()).await.unwrap();
        let refused = rename_stack(&fixture.access, &holder(), &west()).await.unwrap_err();
        assert!(matches!(refused, StateError::Store(StoreError::Locked { .. })), "{refused}");
        fixture.store.unlock(lock).await.unwrap();
    }
    assert_eq!(fixture.names().await, ["a"]);
}

#[tokio::test]
async fn rename_keeps_ciphertexts() {
    let fixture = Fixture::new().await;
    fixture.save(&[secret_resource("a")]).await;
    let encryptions = fixture.marker.encryption_count();
    rename(&fixture).await;
    assert_eq!(fixture.marker.encryption_count(), encryptions);
    let text = fixture.store.load(&west()).await.unwrap().unwrap();
    assert!(text.contains("urn:pulumi:west::reef::t:m:T::a") && text.contains("ciphertext"), "{text}");
}

#[tokio::test]
async fn stack_with_pending_create_is_removed_only_by_force() {
    let fixture = Fixture::new().await;
    fixture.save(&[]).await;
    let state = fixture.open().await.unwrap();
    let [begin, _] = creation(0, 1, resource("b"));
    state.recorder(UpdateKind::Update).append(&begin).unwrap();
    fixture.store.break_locks(&fixture.stack, &fixture.store.locks(&fixture.stack).await.unwrap()).await.unwrap();
    drop(state);
    // The recovery makes the creation a pending operation.
    fixture.open().await.unwrap().release().await.unwrap();
    let refused = remove_stack(&fixture.access, &holder(), false, Backups::Kept).await.unwrap_err();
    assert!(matches!(&refused, StateError::PendingCreates { names, .. } if *names == ["b"]), "{refused}");
    remove_stack(&fixture.access, &holder(), true, Backups::Kept).await.unwrap();
}
