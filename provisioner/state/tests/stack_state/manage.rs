//! Renames, removals and summaries of stacks.

use bridge::fs::faults::{Errno, Fault};
use state::format::UpdateKind;
use state::store::{Backups, StackReference, StoreError};
use state::{
    LockedRun, OperationId, OperationKind, Record, StackAccess, StackState, StackView, StateError, StateRecorder as _,
    Subject, remove_stack, rename_stack, summary,
};

use crate::fixture::{Fixture, begun, creation, holder, resource, secret_resource};

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
    let before = fixture.store.text(&fixture.stack).await.unwrap();
    let renamed = rename_stack(&fixture.access, &holder(), &west()).await.unwrap_err();
    assert!(matches!(renamed, StateError::Interrupted { .. }), "{renamed}");
    let removed = remove_stack(&fixture.access, &holder(), true, Backups::Removed).await.unwrap_err();
    assert!(matches!(removed, StateError::Interrupted { .. }), "{removed}");
    assert_eq!(fixture.store.text(&fixture.stack).await.unwrap(), before);
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

/// Shows: state.md#stack-commands "Secrets keep their ciphertext, so a reference to a resource inside a secret keeps
///   the old name"
#[tokio::test]
async fn rename_keeps_ciphertexts() {
    let fixture = Fixture::new().await;
    fixture.save(&[secret_resource("a")]).await;
    let encryptions = fixture.marker.encryption_count();
    rename(&fixture).await;
    assert_eq!(fixture.marker.encryption_count(), encryptions);
    let text = fixture.store.text(&west()).await.unwrap().unwrap();
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

/// Returns the texts of the intents that renames have left. The next command finds them.
fn intents(fixture: &Fixture) -> Vec<String> {
    let intents = std::fs::read_dir(fixture.folder.path().join(".sc/renames")).into_iter().flatten();
    let paths = intents.map(|entry| entry.unwrap().path());
    let intents = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    intents.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Shows: state.md#interrupted-renames "its error says that the next command completes or undoes it"
#[tokio::test]
async fn rename_that_could_not_be_undone_says_that_the_next_command_does_it() {
    let mut pending = 0;
    for at in 1.. {
        let fixture = Fixture::new().await;
        fixture.save(&[resource("a")]).await;
        let folder = fixture.folder.path().to_owned();
        let fault = Fault { folder, at, error: Errno::IO, lasts: true }.inject();
        let renamed = rename_stack(&fixture.access, &holder(), &west()).await;
        drop(fault);
        let Err(error) = renamed else { break };
        let (intents, is_reported) = (intents(&fixture), matches!(error, StateError::RenamePending { .. }));
        assert!(is_reported <= !intents.is_empty(), "call {at}: {error:?}");
        let has_begun = intents.iter().any(|intent| !intent.contains("\"locking\""));
        assert!(has_begun <= is_reported, "call {at}: {error:?}");
        pending += usize::from(has_begun);
    }
    assert!(pending > 5, "{pending}");
}

#[tokio::test]
async fn summary_counts_the_pending_operations_of_an_interrupted_run() {
    let fixture = Fixture::new().await;
    let (state, mut recorder) = fixture.unfinished_run().await;
    for (index, kind) in [(7, OperationKind::Creating), (8, OperationKind::Importing)] {
        let subject = Subject::Resource(begun(&resource(&format!("c{index}"))));
        recorder.append(&Record::Begin { operation: OperationId(index), kind, subject }).unwrap();
    }
    drop((state, recorder));
    let summary = summary(&fixture.access, &Default::default()).await.unwrap();
    assert_eq!((summary.resources, summary.pending_operations, summary.pending_creates), (Some(2), 2, 1));
    assert!(summary.is_interrupted);
    let lock = summary.lock.unwrap();
    assert_eq!((lock.by.as_deref(), lock.run), (Some("ada@reefbox"), LockedRun::Unknown));
}

#[tokio::test]
async fn view_without_secrets_needs_no_key() {
    let fixture = Fixture::new().await;
    fixture.save(&[secret_resource("a")]).await;
    let keyring = std::sync::Arc::new(state::secrets::Keyring::new(None));
    let access = StackAccess { keyring, configured_secrets: None, ..fixture.access.clone() };
    assert!(StackView::open(&access).await.is_err());
    let snapshot = StackView::open_without_secrets(&access).await.unwrap().snapshot.unwrap();
    let entry = &snapshot.resources[0];
    let secrets = entry.inputs.values().chain(entry.outputs.values()).filter(|value| value.is_secret());
    assert!(secrets.count() > 0, "a display masks the value");
}
