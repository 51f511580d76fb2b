//! Runs on a store in memory, whose requests fail or are counted.

use std::sync::Arc;
use std::time::Duration;

use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use super::locking::summarize;
use super::{LockSettings, LockedRun, StackAccess, StackState, resume_rename};
use crate::error::StateError;
use crate::format::{UpdateInfo, UpdateKind, UpdateResult};
use crate::journal::{JournalFolders, JournalMode};
use crate::record::{Effect, EntryId, OperationId, Record, Subject};
use crate::recorder::StateRecorder as _;
use crate::resource::ResourceState;
use crate::secrets::Keyring;
use crate::snapshot::OperationKind;
use crate::state_edit::record_creations;
use crate::store::compliance::{holder, stack};
use crate::store::{Expected, Fault, LockHolder, LockLease, MemoryObjects, RenameOutcome, StateStore, StoreOptions};

async fn access_to(objects: &MemoryObjects, journals: &std::path::Path) -> StackAccess {
    let store = StateStore::open(Arc::new(objects.clone()), StoreOptions::default()).await.unwrap();
    StackAccess {
        store,
        stack: stack("dev"),
        keyring: Arc::new(Keyring::new(None)),
        configured_secrets: None,
        config: Default::default(),
        journals: JournalFolders::of_remote_store(journals, "memory://objects"),
        journal_mode: Default::default(),
        unrecorded: Default::default(),
        locks: LockSettings::default(),
        begins_anew: false,
        engine_version: "v0.1.0".to_owned(),
    }
}

/// Runs on a stack without changes, from the opening of the store to the release of the lock.
async fn run(objects: &MemoryObjects, journals: &std::path::Path) {
    let access = access_to(objects, journals).await;
    assert!(resume_rename(&access, &holder(1)).await.unwrap().is_none());
    assert!(access.store.move_record(&access.stack).await.unwrap().is_none());
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

/// Shows: state.md#stores "A run without changes sends at most 18 requests to the store"
/// Shows: state.md#migration-to-another-store "Reading the mark costs one request at the time of the checkpoint"
#[tokio::test]
async fn unchanged_run_sends_at_most_eighteen_requests() {
    let (objects, folder) = (MemoryObjects::default(), tempfile::tempdir().unwrap());
    objects.put(".pulumi/meta.yaml", "version: 1\n");
    objects.put(".pulumi/stacks/reef/dev.json", RESOURCE);
    run(&objects, folder.path()).await;
    let requests = objects.take_requests();
    assert!(requests.len() <= 18, "{requests:#?}");
    assert!(requests.iter().any(|request| request.key == ".sc/moved/reef/dev.json"), "{requests:#?}");
}

/// Shows: state.md#recorded-resources "A run that holds a lock is `running` if it has renewed it in time"
#[tokio::test]
async fn lock_is_summarized_by_its_lease_and_by_the_process_of_its_run() {
    let (objects, folder) = (MemoryObjects::default(), tempfile::tempdir().unwrap());
    let access = access_to(&objects, folder.path()).await;
    let ended =
        StackAccess { locks: LockSettings { has_ended: |_| true, ..LockSettings::default() }, ..access.clone() };
    assert_eq!(summarize(&access).await.unwrap(), None);
    let leased = LockHolder { lease: Some(LockLease::new(Duration::from_secs(60))), ..holder(1) };
    for (holder, expected) in [(leased, LockedRun::Active), (holder(1), LockedRun::Unknown)] {
        let lock = access.store.lock(&access.stack, &holder).await.unwrap();
        assert_eq!(summarize(&access).await.unwrap().map(|lock| lock.run), Some(expected));
        assert_eq!(summarize(&ended).await.unwrap().map(|lock| lock.run), Some(LockedRun::Ended));
        access.store.unlock(lock).await.unwrap();
    }
}

/// Other runs take over a lock that is not renewed, and the history of a stack may be long.
///
/// Shows: state.md#interrupted-renames "The locks of a rename that a command completes are renewed until then."
#[tokio::test]
async fn locks_of_a_resumed_rename_are_renewed_until_it_is_completed() {
    let (objects, folder) = (MemoryObjects::default(), tempfile::tempdir().unwrap());
    objects.put(".pulumi/stacks/reef/dev.json", RESOURCE);
    let access = access_to(&objects, folder.path()).await;
    let leased = LockHolder { lease: Some(LockLease::new(Duration::from_millis(30))), ..holder(1) };
    let mut rename = access.store.begin_rename(&stack("dev"), &stack("west"), &leased).await.unwrap();
    // The process ends before the old checkpoint is removed.
    let mut has_ended = false;
    objects.set_faults(move |request| {
        has_ended |= request.operation == "copy";
        if has_ended { Fault::NotReached } else { Fault::None }
    });
    access.store.rename(&mut rename, RESOURCE, &Expected::Any).await.unwrap_err();
    assert_eq!(rename.outcome, RenameOutcome::Pending);
    drop(rename);
    objects.set_faults(|_| Fault::None);

    let slow = objects.clone().with_latency(Duration::from_millis(20));
    let access = access_to(&slow, folder.path()).await;
    let locks = LockSettings { has_ended: |_| true, ..LockSettings::default() };
    let access = StackAccess { locks, ..access };
    objects.take_requests();
    let resumed = resume_rename(&access, &leased).await.unwrap().unwrap();
    assert_eq!(resumed.outcome, RenameOutcome::OldName);
    let requests = objects.take_requests();
    // The first one of each name takes the lock, or renews that of the ended process.
    for name in ["dev", "west"] {
        let folder = format!(".pulumi/locks/organization/reef/{name}/");
        let written =
            requests.iter().filter(|request| request.operation == "write" && request.key.starts_with(&folder));
        assert!(written.count() > 2, "{name}: {requests:#?}");
    }
    access.store.finish_rename(resumed).await.unwrap();
    for name in ["dev", "west"] {
        assert!(access.store.locks(&stack(name)).await.unwrap().is_empty(), "{name}");
    }
}

#[tokio::test]
async fn journal_beside_a_store_of_objects_is_merged_by_a_repair_or_removed_once_its_creations_are_recorded() {
    let (objects, folder) = (MemoryObjects::default(), tempfile::tempdir().unwrap());
    objects.put(".pulumi/stacks/reef/dev.json", RESOURCE);
    // The run is dropped without its end: what it sends to the store could arrive at any time.
    let access = StackAccess { journal_mode: JournalMode::Local, ..access_to(&objects, folder.path()).await };
    let run = StackState::open(access.clone(), &holder(1)).await.unwrap();
    let mut recorder = run.recorder(UpdateKind::Update);
    let urn = Urn::new("dev", "reef", None, "t:m:T", "b");
    let created = ResourceState { id: ResourceId::new("b"), ..ResourceState::new(urn, true) };
    let subject = Subject::Resource(Arc::new(ResourceState { id: None, ..created.clone() }));
    let operation = OperationId(0);
    recorder.append(&Record::Begin { operation, kind: OperationKind::Creating, subject }).unwrap();
    let effects = vec![Effect::Add(EntryId(1), Arc::new(created))];
    recorder.append(&Record::End { operation, effects }).unwrap();
    drop((run, recorder));
    access.store.break_locks(&access.stack, &access.store.locks(&access.stack).await.unwrap()).await.unwrap();
    objects.put(".pulumi/stacks/reef/dev.json", &RESOURCE.replace("::a\"", "::z\""));
    assert!(matches!(StackState::open(access.clone(), &holder(1)).await, Err(StateError::Conflict(_))));

    let state = StackState::open_for_repair(access.clone(), &holder(1)).await.unwrap();
    let mut snapshot = state.snapshot().clone();
    state.unmerged().iter().for_each(|journal| drop(record_creations(&mut snapshot, &journal.creations)));
    state.close(snapshot, None).await.unwrap();
    assert!(!access.has_journal().await.unwrap());
    let state = StackState::open(access, &holder(1)).await.unwrap();
    assert_eq!(state.snapshot().resources.iter().map(|state| state.urn.name()).collect::<Vec<_>>(), ["z", "b"]);
    state.release().await.unwrap();
}
