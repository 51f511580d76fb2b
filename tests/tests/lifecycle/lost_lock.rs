//! Runs whose lock was removed: nothing that may change a resource begins.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::sync::Arc;

use engine::events::Outcome;
use state::format::UpdateKind;
use state::secrets::Keyring;
use state::store::{LockHolder, LockLease, MemoryObjects, ObjectStore, StackReference, StateStore as _, StoreOptions};
use state::{JournalFolders, Lease, LockSettings, StackAccess, StackState, StateRecorder as _};

use crate::deploy;
use crate::program::{PROJECT, STACK, remote_component};

/// Returns the lease of a lock that was removed.
async fn lost_lease() -> Lease {
    let store = ObjectStore::open(Arc::new(MemoryObjects::default()), StoreOptions::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let access = StackAccess {
        store: Arc::new(store.clone()),
        stack: StackReference::new(PROJECT, STACK).unwrap(),
        keyring: Arc::new(Keyring::new(None)),
        configured_secrets: None,
        config: Default::default(),
        journals: JournalFolders::of_backend(folder.path()),
        unrecorded: Default::default(),
        locks: LockSettings::default(),
        engine_version: String::new(),
    };
    let holder = LockHolder {
        pid: 1,
        username: String::new(),
        hostname: String::new(),
        process: None,
        lease: Some(LockLease::new(LockLease::DURATION)),
    };
    let state = StackState::open(access.clone(), &holder).await.unwrap();
    let lease = state.recorder(UpdateKind::Update).lease().unwrap();
    store.break_locks(&access.stack, &store.locks(&access.stack).await.unwrap()).await.unwrap();
    access.locks.lost.cancel();
    lease
}

#[tokio::test]
async fn method_is_not_called_once_the_lock_of_the_stack_is_lost() {
    let program = [remote_component("c").input("ask", "a")];
    let (cloud, state) = deploy(&program).await;
    assert_eq!(cloud.called().len(), 1);
    // Nothing is created, so no record precedes the call.
    let ended = cloud.up(&state, &program).lease(lost_lease().await).run().await.expect(Outcome::Failed);
    assert_eq!(cloud.called().len(), 1);
    let refused = "the method was not called: organization/p/s: the lock of this run was removed";
    assert!(ended.errors.iter().any(|error| error.contains(refused)), "{:?}", ended.errors);
}
