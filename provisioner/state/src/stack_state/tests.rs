//! Requests of a run to a store of objects.

use std::sync::Arc;

use super::{LockSettings, StackAccess, StackState, resume_rename};
use crate::format::{UpdateInfo, UpdateKind, UpdateResult};
use crate::journal::JournalFolders;
use crate::secrets::Keyring;
use crate::store::compliance::{holder, stack};
use crate::store::{MemoryObjects, ObjectStore, StoreOptions};

/// Runs on a stack without changes, from the opening of the store to the release of the lock.
async fn run(objects: &MemoryObjects, journals: &std::path::Path) {
    let store = Arc::new(ObjectStore::open(Arc::new(objects.clone()), StoreOptions::default()).await.unwrap());
    let access = StackAccess {
        store,
        stack: stack("dev"),
        keyring: Arc::new(Keyring::new(None)),
        configured_secrets: None,
        config: Default::default(),
        journals: JournalFolders::of_backend(journals),
        unrecorded: Default::default(),
        locks: LockSettings::default(),
        engine_version: "v0.1.0".to_owned(),
    };
    assert!(resume_rename(&access, &holder(1)).await.unwrap().is_none());
    let state = StackState::open(access, &holder(1)).await.unwrap();
    let snapshot = state.snapshot().clone();
    let update = UpdateInfo {
        kind: UpdateKind::Update,
        start_time: 1,
        message: String::new(),
        environment: Default::default(),
        config: Default::default(),
        result: UpdateResult::Succeeded,
        end_time: 2,
        resource_changes: Default::default(),
    };
    state.close(snapshot, Some(&update)).await.unwrap();
}

const RESOURCE: &str = r#"{"version":3,"checkpoint":{"stack":"organization/reef/dev","latest":{"manifest":{},"resources":[
    {"urn":"urn:pulumi:dev::reef::t:m:T::a","custom":true,"id":"a","type":"t:m:T"}]}}}"#;

#[tokio::test]
async fn unchanged_run_sends_at_most_sixteen_requests() {
    let (objects, folder) = (MemoryObjects::default(), tempfile::tempdir().unwrap());
    objects.put(".pulumi/meta.yaml", "version: 1\n");
    objects.put(".pulumi/stacks/reef/dev.json", RESOURCE);
    run(&objects, folder.path()).await;
    let requests = objects.take_requests();
    assert!(requests.len() <= 16, "{requests:#?}");
    assert!(requests.iter().any(|request| request.key == ".sc/moved/reef/dev.json"), "{requests:#?}");
}
