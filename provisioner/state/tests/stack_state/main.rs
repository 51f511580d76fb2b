//! The state of a stack through its life: opened, recorded, closed, killed, recovered.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod arbitrary;
mod crashes;
mod fixture;
mod import;
mod manage;
mod round_trip;
mod run;

use state::secrets::SecretsError;
use state::store::{StateStore as _, StoreError};
use state::{
    Effect, EntryId, ExportedSecrets, OperationId, OperationKind, Record, Snapshot, StackState, StackView, StateError,
    StateRecorder as _, Subject,
};

use fixture::{Fixture, creation, resource, secret_resource};

#[tokio::test]
async fn a_run_that_changes_nothing_writes_no_journal() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a"), resource("b")]).await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder();
    recorder.defer(Record::Change(vec![Effect::Keep(EntryId(0))]));
    recorder.defer(Record::Change(vec![Effect::Keep(EntryId(1))]));
    assert!(fixture.journals().is_empty());
    let snapshot = state.snapshot().clone();
    state.close(snapshot, Some(&fixture::update())).await.unwrap();
    assert!(!fixture.folder.path().join(".sc").exists());
    assert_eq!(fixture.names().await, ["a", "b"]);
    assert!(fixture.store.locks(&fixture.stack).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_run_that_dies_is_recovered_by_the_next_one_without_being_asked() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder();
    recorder.secrets_ready().await.unwrap();
    for record in creation(0, 1, secret_resource("b")) {
        recorder.append(&record).unwrap();
    }
    let begun = Record::Begin {
        operation: OperationId(1),
        kind: OperationKind::Creating,
        subject: Subject::Resource(resource("c")),
    };
    recorder.append(&begun).unwrap();
    drop((state, recorder));

    let error = fixture.open().await.err().unwrap();
    assert!(error.to_string().contains("locked by 1 lock(s)\n  "), "{error}");
    assert!(matches!(error, StateError::Store(StoreError::Locked { .. })));
    fixture.store.break_locks(&fixture.stack).await.unwrap();

    let state = fixture.open().await.unwrap();
    let recovered = state.recovered().unwrap();
    assert_eq!((&recovered.done, recovered.torn), (&[(OperationKind::Creating, 1)].into(), false));
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
async fn each_deployment_of_a_run_numbers_entries_from_what_the_one_before_left() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a"), resource("b"), resource("c")]).await;
    let state = fixture.open().await.unwrap();
    let mut refresh = state.recorder();
    refresh.defer(Record::Change(vec![Effect::Remove(EntryId(0))]));
    drop(refresh);
    let mut update = state.recorder();
    update.defer(Record::Change(vec![Effect::Keep(EntryId(1))]));
    for record in creation(0, 2, resource("d")) {
        update.append(&record).unwrap();
    }
    let mut destroy = state.recorder();
    destroy.append(&Record::Change(vec![Effect::Remove(EntryId(0))])).unwrap();
    drop((state, update, destroy));

    let view = StackView::open(&fixture.access).await.unwrap();
    let names: Vec<_> = view.snapshot.unwrap().resources.iter().map(|state| state.urn.name().to_owned()).collect();
    assert_eq!(names, ["d", "b"], "first a went, then c came to the front, then it went");
    assert_eq!(view.recovered.unwrap().done, [(OperationKind::Creating, 1)].into());
}

#[tokio::test]
async fn an_export_holds_what_a_dead_run_left() {
    let fixture = Fixture::new().await;
    assert_eq!(StackView::export(&fixture.access, ExportedSecrets::Sealed).await.unwrap(), None);
    fixture.save(&[resource("a")]).await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder();
    recorder.secrets_ready().await.unwrap();
    for record in creation(0, 1, secret_resource("b")) {
        recorder.append(&record).unwrap();
    }
    drop((state, recorder));
    let sealed = StackView::export(&fixture.access, ExportedSecrets::Sealed).await.unwrap().unwrap();
    assert!(sealed.contains("\"ciphertext\": \"marker:"), "{sealed}");
    let shown = StackView::export(&fixture.access, ExportedSecrets::Shown).await.unwrap().unwrap();
    assert!(shown.contains(r#""plaintext": "\"otter\\u003c7\\u003e\"""#), "{shown}");
}

#[tokio::test]
async fn an_export_holds_what_a_first_run_left_that_died_before_there_was_a_checkpoint() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder();
    recorder.secrets_ready().await.unwrap();
    for record in creation(0, 0, secret_resource("b")) {
        recorder.append(&record).unwrap();
    }
    drop((state, recorder));
    let sealed = StackView::export(&fixture.access, ExportedSecrets::Sealed).await.unwrap().unwrap();
    assert!(sealed.contains("::b\"") && sealed.contains("\"ciphertext\": "), "{sealed}");
}

#[tokio::test]
async fn looking_takes_no_lock_and_writes_nothing() {
    let fixture = Fixture::new().await;
    assert!(StackView::open(&fixture.access).await.unwrap().snapshot.is_none());
    assert!(!fixture.folder.path().join(".pulumi").exists());
    let _at_work = fixture.at_work().await;
    let view = StackView::open(&fixture.access).await.unwrap();
    assert_eq!(view.snapshot.unwrap().resources.len(), 2);
    assert_eq!(view.recovered.unwrap().done, [(OperationKind::Creating, 1)].into());
    assert_eq!(fixture.journals().len(), 1);
}

#[tokio::test]
async fn a_journal_of_another_checkpoint_is_refused_with_both_digests() {
    let fixture = Fixture::new().await;
    let (state, mut recorder) = fixture.at_work().await;
    let subject = Subject::Resource(resource("c"));
    recorder.append(&Record::Begin { operation: OperationId(9), kind: OperationKind::Creating, subject }).unwrap();
    drop((state, recorder));
    fixture.store.break_locks(&fixture.stack).await.unwrap();
    fixture.save(&[resource("somebody went on")]).await;

    let Err(StateError::Conflict(conflict)) = fixture.open().await else { panic!() };
    assert_ne!(conflict.base, conflict.found);
    let told = "\n  it had created urn:pulumi:dev::reef::t:m:T::b with id \"\"\
                \n  it was creating urn:pulumi:dev::reef::t:m:T::c, which may exist";
    assert!(conflict.to_string().ends_with(told), "{conflict}");
    let export = StackView::export(&fixture.access, ExportedSecrets::Sealed).await;
    assert!(matches!(export, Err(StateError::Conflict(_))), "it would lack what the journal holds");
    assert_eq!([&conflict.base, &conflict.found].map(|digest| digest.as_ref().unwrap().len()), [64, 64]);
    assert!(fixture.store.locks(&fixture.stack).await.unwrap().is_empty());
    let view = StackView::open(&fixture.access).await.unwrap();
    assert_eq!(view.conflict, Some(*conflict));
    assert_eq!(view.snapshot.unwrap().resources.len(), 1);
}

#[tokio::test]
async fn who_lost_the_lock_saves_nothing_and_loses_nothing() {
    let fixture = Fixture::new().await;
    let (state, recorder) = fixture.at_work().await;
    fixture.store.break_locks(&fixture.stack).await.unwrap();
    let error = state.close(Snapshot::default(), None).await.unwrap_err();
    assert!(is_lock_lost(&error), "{error}");
    assert_eq!(fixture.journals().len(), 1);
    drop(recorder);

    let state = fixture.open().await.unwrap();
    assert_eq!(state.recovered().unwrap().done, [(OperationKind::Creating, 1)].into());
    assert_eq!(state.snapshot().resources.len(), 2);
}

/// The other run takes the journal for that of a dead one. What is added after that is told, not forgotten.
#[tokio::test]
async fn a_run_that_others_took_for_dead_leaves_what_it_did_since_in_a_journal() {
    let fixture = Fixture::new().await;
    let (state, mut recorder) = fixture.at_work().await;
    fixture.store.break_locks(&fixture.stack).await.unwrap();
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
async fn a_journal_whose_run_had_saved_everything_is_settled() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder();
    for record in creation(0, 0, resource("a")) {
        recorder.append(&record).unwrap();
    }
    let [journal] = &fixture.journals()[..] else { panic!() };
    let copy = fixture.folder.path().join("copy");
    let mut snapshot = state.snapshot().clone();
    snapshot.resources.push(resource("a"));
    std::fs::hard_link(journal, &copy).unwrap();
    state.close(snapshot, None).await.unwrap();
    // As if the process had died before it removed the journal.
    std::fs::rename(&copy, journal).unwrap();

    let state = fixture.open().await.unwrap();
    assert!(state.recovered().is_none());
    assert!(fixture.journals().is_empty());
    assert_eq!(state.snapshot().resources.len(), 1);
}

#[tokio::test]
async fn a_state_that_breaks_the_laws_is_saved_marked_and_reported() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let mut snapshot = state.snapshot().clone();
    snapshot.resources = vec![resource("a"), resource("a")];
    let error = state.close(snapshot, None).await.unwrap_err();
    assert!(matches!(error, StateError::SavedBroken(_)));
    let text = fixture.store.load(&fixture.stack).await.unwrap().unwrap();
    assert!(text.contains("\"metadata\":{\"integrity_error\":{\"version\":"), "{text}");
    assert!(matches!(fixture.open().await, Err(StateError::Integrity(_))));
    assert!(StackView::open(&fixture.access).await.unwrap().breach.is_some());
}

#[tokio::test]
async fn a_secret_needs_the_key_before_it_is_recorded() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder();
    let record = &creation(0, 0, secret_resource("a"))[0];
    let error = recorder.append(record).unwrap_err();
    assert!(matches!(error, StateError::Secrets(SecretsError::KeyNeeded)));
    assert!(fixture.journals().is_empty());
    recorder.secrets_ready().await.unwrap();
    recorder.append(record).unwrap();
    let journal = std::fs::read_to_string(&fixture.journals()[0]).unwrap();
    assert!(journal.contains("\"ciphertext\":\"marker:"), "{journal}");
}

#[tokio::test]
async fn an_update_leaves_its_history_and_a_manifest_of_ours() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let snapshot = state.snapshot().clone();
    state.close(snapshot, Some(&fixture::update())).await.unwrap();
    let text = fixture.store.load(&fixture.stack).await.unwrap().unwrap();
    assert!(text.starts_with(
        "{\"version\":3,\"checkpoint\":{\"stack\":\"organization/reef/dev\",\"latest\":{\"manifest\":{\"time\":\"2"
    ));
    assert!(text.contains("\"version\":\"v0.1.0\""));
    let history = fixture.folder.path().join(".pulumi/history/reef/dev");
    let files: Vec<_> = std::fs::read_dir(history).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.iter().filter(|path| path.extension().unwrap() == "json").count(), 2);
}

#[tokio::test]
async fn another_key_seals_everything_again() {
    let fixture = Fixture::new().await;
    fixture.save(&[secret_resource("a")]).await;
    let sealed = fixture.marker.sealed();
    let state = fixture.open().await.unwrap();
    let snapshot = state.snapshot().clone();
    state.close(snapshot, None).await.unwrap();
    assert_eq!(fixture.marker.sealed(), sealed, "unchanged secrets are written as they were");

    let (access, other) = fixture.with_other_key();
    let state = StackState::open(access, &fixture::holder()).await.unwrap();
    let snapshot = state.snapshot().clone();
    state.close(snapshot, None).await.unwrap();
    assert_eq!(other.sealed(), 1);
    let text = fixture.store.load(&fixture.stack).await.unwrap().unwrap();
    assert!(text.contains("\"secrets_providers\":{\"type\":\"marker\",\"state\":{\"name\":\"other\"}}"), "{text}");
}

#[tokio::test]
async fn damage_inside_a_journal_is_told_with_its_line() {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder();
    for record in creation(0, 0, resource("a")) {
        recorder.append(&record).unwrap();
    }
    drop((state, recorder));
    fixture.store.break_locks(&fixture.stack).await.unwrap();
    let path = fixture.journals().remove(0);
    let journal = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, journal.replacen("{\"begin\"", "{\"bgein\"", 1)).unwrap();
    let error = fixture.open().await.err().unwrap().to_string();
    assert!(error.starts_with("line 2 of the journal "), "{error}");
    std::fs::write(&path, journal.replacen("{\"journal\":1", "{\"journal\":2", 1)).unwrap();
    assert!(fixture.open().await.err().unwrap().to_string().contains("format version 2"));
}
