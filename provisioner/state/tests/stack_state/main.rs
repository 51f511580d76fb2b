//! Life of the state of a stack: opening, recording, closing, crash, recovery.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod arbitrary;
mod crashes;
mod ends;
mod fixture;
mod import;
mod interleavings;
mod late_writes;
mod locks;
mod manage;
mod restore;
mod round_trip;
mod run;
mod secrets_providers;
mod store_journal;
mod unmerged;
mod unrecorded;
mod world;

use state::format::{UpdateInfo, UpdateKind};
use state::secrets::SecretsError;
use state::store::{HistoryEntry, StoreError};
use state::{
    Effect, EntryId, ExportedSecrets, OperationId, OperationKind, Record, Snapshot, StackState, StackView, StateError,
    StateRecorder as _, Subject,
};

use fixture::{Fixture, begun, creation, resource, secret_resource};

/// Shows: state.md#the-checkpoint-could-not-be-saved "A run without changes creates no journal."
#[tokio::test]
async fn run_without_changes_writes_no_journal() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a"), resource("b")]).await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder(UpdateKind::Update);
    recorder.defer(Record::Change(vec![Effect::Keep(EntryId(0))]));
    recorder.defer(Record::Change(vec![Effect::Keep(EntryId(1))]));
    assert!(fixture.journals().is_empty());
    let snapshot = state.snapshot().clone();
    state.close(snapshot, Some(&fixture::update())).await.unwrap();
    assert!(!fixture.folder.path().join(".sc").exists());
    assert_eq!(fixture.names().await, ["a", "b"]);
    assert!(fixture.store.locks(&fixture.stack).await.unwrap().is_empty());
}

/// Shows: state.md#a-run "`sc` replays its journal onto the checkpoint, saves the result, and reports it"
#[tokio::test]
async fn next_run_recovers_an_interrupted_run() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder(UpdateKind::Update);
    recorder.wait_for_secrets().await.unwrap();
    for record in creation(0, 1, secret_resource("b")) {
        recorder.append(&record).unwrap();
    }
    let begin = Record::Begin {
        operation: OperationId(1),
        kind: OperationKind::Creating,
        subject: Subject::Resource(resource("c")),
    };
    recorder.append(&begin).unwrap();
    drop((state, recorder));

    let error = fixture.open().await.err().unwrap();
    assert!(error.to_string().contains("locked by 1 lock(s)\n  "), "{error}");
    assert!(matches!(error, StateError::Store(StoreError::Locked { .. })));
    fixture.store.break_locks(&fixture.stack, &fixture.store.locks(&fixture.stack).await.unwrap()).await.unwrap();

    let state = fixture.open().await.unwrap();
    let recovered = state.recovered().unwrap();
    assert_eq!((&recovered.done, recovered.last_record_incomplete), (&[(OperationKind::Creating, 1)].into(), false));
    assert_eq!(recovered.pending, [(OperationKind::Creating, resource("c").urn.clone())]);
    assert_eq!(state.snapshot().resources[0], secret_resource("b"));
    state.release().await.unwrap();
    assert!(fixture.journals().is_empty());
    assert_eq!(fixture.names().await, ["b", "a"]);
    let state = fixture.open().await.unwrap();
    assert!(state.recovered().is_none());
    assert_eq!(state.snapshot().pending_operations.len(), 1);
}

#[tokio::test]
async fn each_deployment_numbers_entries_of_the_previous_snapshot() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a"), resource("b"), resource("c")]).await;
    let state = fixture.open().await.unwrap();
    let mut refresh = state.recorder(UpdateKind::Update);
    refresh.defer(Record::Change(vec![Effect::Remove(EntryId(0))]));
    drop(refresh);
    let mut update = state.recorder(UpdateKind::Update);
    update.defer(Record::Change(vec![Effect::Keep(EntryId(1))]));
    for record in creation(0, 2, resource("d")) {
        update.append(&record).unwrap();
    }
    let mut destroy = state.recorder(UpdateKind::Update);
    destroy.append(&Record::Change(vec![Effect::Remove(EntryId(0))])).unwrap();
    drop((state, update, destroy));

    let view = StackView::open(&fixture.access).await.unwrap();
    let names: Vec<_> = view.snapshot.unwrap().resources.iter().map(|state| state.urn.name().to_owned()).collect();
    assert_eq!(names, ["d", "b"], "a was removed, c moved to the front, c was removed");
    assert_eq!(view.recovered.unwrap().done, [(OperationKind::Creating, 1)].into());
}

#[tokio::test]
async fn export_contains_changes_of_an_interrupted_run() {
    let fixture = Fixture::new().await;
    assert_eq!(StackView::export(&fixture.access, ExportedSecrets::Encrypted).await.unwrap(), None);
    fixture.save(&[resource("a")]).await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder(UpdateKind::Update);
    recorder.wait_for_secrets().await.unwrap();
    for record in creation(0, 1, secret_resource("b")) {
        recorder.append(&record).unwrap();
    }
    drop((state, recorder));
    let encrypted = StackView::export(&fixture.access, ExportedSecrets::Encrypted).await.unwrap().unwrap();
    assert!(encrypted.contains("\"ciphertext\": \"marker:"), "{encrypted}");
    let plaintext = StackView::export(&fixture.access, ExportedSecrets::Plaintext).await.unwrap().unwrap();
    assert!(plaintext.contains(r#""plaintext": "\"otter\\u003c7\\u003e\"""#), "{plaintext}");
}

#[tokio::test]
async fn export_contains_changes_of_an_interrupted_first_run() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder(UpdateKind::Update);
    recorder.wait_for_secrets().await.unwrap();
    for record in creation(0, 0, secret_resource("b")) {
        recorder.append(&record).unwrap();
    }
    drop((state, recorder));
    let encrypted = StackView::export(&fixture.access, ExportedSecrets::Encrypted).await.unwrap().unwrap();
    assert!(encrypted.contains("::b\"") && encrypted.contains("\"ciphertext\": "), "{encrypted}");
}

/// Shows: state.md#a-run "Previews, exports and outputs take no lock and write nothing"
#[tokio::test]
async fn view_takes_no_lock_and_writes_no_files() {
    let fixture = Fixture::new().await;
    assert!(StackView::open(&fixture.access).await.unwrap().snapshot.is_none());
    assert!(!fixture.folder.path().join(".pulumi").exists());
    let _unfinished_run = fixture.unfinished_run().await;
    let view = StackView::open(&fixture.access).await.unwrap();
    assert_eq!(view.snapshot.unwrap().resources.len(), 2);
    assert_eq!(view.recovered.unwrap().done, [(OperationKind::Creating, 1)].into());
    assert_eq!(fixture.journals().len(), 1);
}

/// Shows: state.md#the-state-was-changed-before-the-journal-was-merged "Otherwise the next run refuses to start. It
///   prints the SHA-256 of the checkpoint that the journal starts from and of the current one."
#[tokio::test]
async fn journal_of_another_checkpoint_is_refused_with_both_digests() {
    let fixture = Fixture::new().await;
    let (state, mut recorder) = fixture.unfinished_run().await;
    let subject = Subject::Resource(begun(&resource("c")));
    recorder.append(&Record::Begin { operation: OperationId(9), kind: OperationKind::Creating, subject }).unwrap();
    drop((state, recorder));
    fixture.store.break_locks(&fixture.stack, &fixture.store.locks(&fixture.stack).await.unwrap()).await.unwrap();
    fixture.save(&[resource("from another run")]).await;

    let Err(StateError::Conflict(conflict)) = fixture.open().await else { panic!() };
    assert_ne!(conflict.base, conflict.found);
    let creations = "\n  it had created urn:pulumi:dev::reef::t:m:T::b with id \"b\"\
                \n  it was creating urn:pulumi:dev::reef::t:m:T::c, which may exist";
    assert!(conflict.to_string().ends_with(creations), "{conflict}");
    let export = StackView::export(&fixture.access, ExportedSecrets::Encrypted).await;
    assert!(matches!(export, Err(StateError::Conflict(_))), "the export would lack the records of the journal");
    assert_eq!([&conflict.base, &conflict.found].map(|digest| digest.as_ref().unwrap().len()), [64, 64]);
    assert!(fixture.store.locks(&fixture.stack).await.unwrap().is_empty());
    let view = StackView::open(&fixture.access).await.unwrap();
    assert_eq!(view.conflict, Some(*conflict));
    assert_eq!(view.snapshot.unwrap().resources.len(), 1);
}

/// Shows: state.md#the-lock-of-an-active-run-was-removed "At its end the active run saves nothing, reports who holds
///   the lock now, and fails. Its journal stays."
#[tokio::test]
async fn run_that_lost_its_lock_saves_nothing_and_keeps_its_journal() {
    let fixture = Fixture::new().await;
    let (state, recorder) = fixture.unfinished_run().await;
    fixture.store.break_locks(&fixture.stack, &fixture.store.locks(&fixture.stack).await.unwrap()).await.unwrap();
    let error = state.close(Snapshot::default(), None).await.unwrap_err();
    assert!(is_lock_lost(&error), "{error}");
    assert_eq!(fixture.journals().len(), 1);
    drop(recorder);

    let state = fixture.open().await.unwrap();
    assert_eq!(state.recovered().unwrap().done, [(OperationKind::Creating, 1)].into());
    assert_eq!(state.snapshot().resources.len(), 2);
}

/// Shows: state.md#the-state-was-changed-during-a-run "At its end the run saves nothing and fails."
/// Shows: state.md#the-state-was-changed-during-a-run "If the run has recorded changes, its journal and the lock stay"
#[tokio::test]
async fn run_whose_checkpoint_was_replaced_keeps_its_journal_and_names_the_newest_run() {
    let fixture = Fixture::new().await;
    let (state, recorder) = fixture.unfinished_run().await;
    // A program that does not respect the lock.
    let other = fixture.store.text(&fixture.stack).await.unwrap().unwrap().replace("::a", "::of-another");
    std::fs::write(fixture.store.checkpoint_location(&fixture.stack), &other).unwrap();
    let environment = [("exec.kind", "auto.inline"), ("git.author", "Bea"), ("secret", "no")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let entry = HistoryEntry::new(UpdateInfo { environment, ..fixture::update() }.to_json());
    fixture.store.archive(&fixture.stack, &entry).await.unwrap();

    let error = state.close(Snapshot::default(), Some(&fixture::update())).await.unwrap_err();
    let StateError::Unsaved { kept: Some(_), source, .. } = &error else { panic!("{error}") };
    let message = source.to_string();
    assert!(message.starts_with("organization/reef/dev: another program has changed its state"), "{message}");
    assert!(message.contains("; the newest run in its history: update, ended at "), "{message}");
    assert!(message.ends_with(", exec.kind \"auto.inline\", git.author \"Bea\""), "{message}");
    assert_eq!(fixture.store.text(&fixture.stack).await.unwrap().unwrap(), other);
    assert_eq!((fixture.journals().len(), fixture.store.locks(&fixture.stack).await.unwrap().len()), (1, 1));
    drop(recorder);

    fixture.break_locks().await;
    let Err(StateError::Conflict(conflict)) = fixture.open().await else { panic!("no conflict") };
    assert!(conflict.to_string().contains("it had created urn:pulumi:dev::reef::t:m:T::b"), "{conflict}");
}

/// Another run breaks the lock and recovers the journal. Records that are added later are reported as a conflict.
///
/// Shows: state.md#the-lock-of-an-active-run-was-removed "If another run has already merged or removed the journal of
///   the active run, the active run writes its whole journal again"
#[tokio::test]
async fn run_whose_journal_was_recovered_keeps_later_records_in_a_journal() {
    let fixture = Fixture::new().await;
    let (state, mut recorder) = fixture.unfinished_run().await;
    fixture.store.break_locks(&fixture.stack, &fixture.store.locks(&fixture.stack).await.unwrap()).await.unwrap();
    let other = fixture.open().await.unwrap();
    assert!(fixture.journals().is_empty());
    for record in creation(1, 2, resource("c")) {
        recorder.append(&record).unwrap();
    }
    let error = state.close(Snapshot::default(), None).await.unwrap_err();
    assert!(is_lock_lost(&error), "{error}");
    let holders = std::error::Error::source(&error).unwrap().to_string();
    assert!(holders.contains("now held by\n  ") && holders.contains("created by ada@reefbox"), "{holders}");
    other.release().await.unwrap();

    assert_eq!(fixture.names().await, ["b", "a"]);
    let Err(StateError::Conflict(conflict)) = fixture.open().await else { panic!() };
    let created: Vec<_> = conflict.created.iter().map(|(urn, _)| urn.name()).collect();
    assert_eq!(created, ["b", "c"]);
}

fn is_lock_lost(error: &StateError) -> bool {
    let StateError::Unsaved { source, .. } = error else { return false };
    matches!(&**source, StateError::Store(StoreError::LockLost { .. }))
}

#[tokio::test]
async fn journal_of_a_saved_run_is_removed() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder(UpdateKind::Update);
    for record in creation(0, 0, resource("a")) {
        recorder.append(&record).unwrap();
    }
    let [journal] = &fixture.journals()[..] else { panic!() };
    let copy = fixture.folder.path().join("copy");
    let mut snapshot = state.snapshot().clone();
    snapshot.resources.push(resource("a"));
    std::fs::hard_link(journal, &copy).unwrap();
    state.close(snapshot, None).await.unwrap();
    // Restores the journal, as if the process had died before removing it.
    std::fs::rename(&copy, journal).unwrap();

    let state = fixture.open().await.unwrap();
    assert!(state.recovered().is_none());
    assert!(fixture.journals().is_empty());
    assert_eq!(state.snapshot().resources.len(), 1);
}

/// Shows: state.md#invariants "the state is saved all the same, because no better record of the run exists. Its
///   metadata marks the state as invalid, as `pulumi` does, and the run fails."
#[tokio::test]
async fn state_that_violates_integrity_is_saved_marked_and_reported() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let mut snapshot = state.snapshot().clone();
    snapshot.resources = vec![resource("a"), resource("a")];
    let error = state.close(snapshot, None).await.unwrap_err();
    assert!(matches!(error, StateError::SavedInvalid(_)));
    let text = fixture.store.text(&fixture.stack).await.unwrap().unwrap();
    assert!(text.contains("\"metadata\":{\"integrity_error\":{\"version\":"), "{text}");
    assert!(matches!(fixture.open().await, Err(StateError::Integrity(_))));
    assert!(StackView::open(&fixture.access).await.unwrap().integrity_error.is_some());
}

#[tokio::test]
async fn secret_cannot_be_recorded_before_the_key_is_loaded() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder(UpdateKind::Update);
    let record = &creation(0, 0, secret_resource("a"))[0];
    let error = recorder.append(record).unwrap_err();
    assert!(matches!(error, StateError::Secrets(SecretsError::KeyNeeded)));
    assert!(fixture.journals().is_empty());
    recorder.wait_for_secrets().await.unwrap();
    recorder.append(record).unwrap();
    let journal = std::fs::read_to_string(&fixture.journals()[0]).unwrap();
    assert!(journal.contains("\"ciphertext\":\"marker:"), "{journal}");
}

#[tokio::test]
async fn update_writes_history_and_manifest() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let snapshot = state.snapshot().clone();
    state.close(snapshot, Some(&fixture::update())).await.unwrap();
    let text = fixture.store.text(&fixture.stack).await.unwrap().unwrap();
    assert!(text.starts_with(
        "{\"version\":3,\"checkpoint\":{\"stack\":\"organization/reef/dev\",\"latest\":{\"manifest\":{\"time\":\"2"
    ));
    assert!(text.contains("\"version\":\"v0.1.0\""));
    let history = fixture.folder.path().join(".pulumi/history/reef/dev");
    let files: Vec<_> = std::fs::read_dir(history).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.iter().filter(|path| path.extension().unwrap() == "json").count(), 2);
}

#[tokio::test]
async fn changed_secrets_manager_reencrypts_all_secrets() {
    let fixture = Fixture::new().await;
    fixture.save(&[secret_resource("a")]).await;
    let encryptions = fixture.marker.encryption_count();
    let state = fixture.open().await.unwrap();
    let snapshot = state.snapshot().clone();
    state.close(snapshot, None).await.unwrap();
    assert_eq!(fixture.marker.encryption_count(), encryptions, "unchanged secrets are not encrypted again");

    let (access, other) = fixture.with_other_key();
    let state = StackState::open(access, &fixture::holder()).await.unwrap();
    let snapshot = state.snapshot().clone();
    state.close(snapshot, None).await.unwrap();
    assert_eq!(other.encryption_count(), 1);
    let text = fixture.store.text(&fixture.stack).await.unwrap().unwrap();
    assert!(text.contains("\"secrets_providers\":{\"type\":\"marker\",\"state\":{\"name\":\"other\"}}"), "{text}");
}

/// Shows: state.md#the-journal "Any other unreadable line stops the recovery."
#[tokio::test]
async fn malformed_journal_line_is_reported_with_its_number() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder(UpdateKind::Update);
    for record in creation(0, 0, resource("a")) {
        recorder.append(&record).unwrap();
    }
    drop((state, recorder));
    fixture.store.break_locks(&fixture.stack, &fixture.store.locks(&fixture.stack).await.unwrap()).await.unwrap();
    let path = fixture.journals().remove(0);
    let journal = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, journal.replacen("{\"begin\"", "{\"bgein\"", 1)).unwrap();
    let error = fixture.open().await.err().unwrap().to_string();
    assert!(error.starts_with("line 2 of the journal "), "{error}");
    std::fs::write(&path, journal.replacen("{\"journal\":1", "{\"journal\":2", 1)).unwrap();
    assert!(fixture.open().await.err().unwrap().to_string().contains("format version 2"));
}
