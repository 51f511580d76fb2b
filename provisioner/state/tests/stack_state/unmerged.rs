//! Journals that start from another checkpoint than the current one.

use std::fs;

use state::state_edit::record_creations;
use state::store::{Backups, StackReference};
use state::{
    OperationId, OperationKind, Record, RecoveredRun, StackState, StackView, StateError, StateRecorder as _, Subject,
    UnmergedJournal,
};

use crate::fixture::{Fixture, begun, creation, holder, resource};

/// Leaves the journal of a run that has created `b`, and saves another state with these resources.
async fn unmerged(names: &[&str]) -> Fixture {
    let fixture = Fixture::new().await;
    drop(fixture.unfinished_run().await);
    fixture.break_locks().await;
    fixture.save(&names.iter().map(|name| resource(name)).collect::<Vec<_>>()).await;
    fixture
}

async fn repair(fixture: &Fixture) -> StackState {
    StackState::open_for_repair(fixture.access.clone(), &holder()).await.unwrap()
}

fn is_conflict<T>(result: &Result<T, StateError>) -> bool {
    matches!(result, Err(StateError::Conflict(_)))
}

/// Shows: state.md#the-state-was-changed-before-the-journal-was-merged "If the state records every resource that the
///   journal has as created, with its URN and id, and the outcome of each Create is known, the next run removes the
///   journal"
#[tokio::test]
async fn journal_whose_creations_are_recorded_is_removed_by_the_next_run() {
    let fixture = unmerged(&["b", "c"]).await;
    let view = StackView::open(&fixture.access).await.unwrap();
    assert_eq!((view.conflict, view.obsolete.len(), view.recovered.is_some()), (None, 1, false));
    assert_eq!(fixture.journals().len(), 1, "a view writes nothing");
    let state = fixture.open().await.unwrap();
    assert_eq!((state.obsolete().len(), state.recovered().is_some()), (1, false));
    assert_eq!(state.obsolete(), view.obsolete);
    assert!(fixture.journals().is_empty());
    state.release().await.unwrap();
    assert_eq!(fixture.names().await, ["b", "c"]);
}

#[tokio::test]
async fn journal_with_a_creation_that_is_missing_or_unfinished_stays() {
    let fixture = unmerged(&["c"]).await;
    assert!(is_conflict(&fixture.open().await));

    let fixture = Fixture::new().await;
    let (state, mut recorder) = fixture.unfinished_run().await;
    let subject = Subject::Resource(begun(&resource("c")));
    recorder.append(&Record::Begin { operation: OperationId(9), kind: OperationKind::Creating, subject }).unwrap();
    drop((state, recorder));
    fixture.break_locks().await;
    fixture.save(&[resource("b"), resource("c")]).await;
    assert!(is_conflict(&fixture.open().await), "c may exist twice");
    assert_eq!(fixture.journals().len(), 1);
}

#[tokio::test]
async fn removal_of_a_stack_and_other_changes_without_a_run_accept_a_obsolete_journal() {
    let fixture = unmerged(&["b"]).await;
    let to = StackReference::new("reef", "west").unwrap();
    let rename = state::rename_stack(&fixture.access, &holder(), &to).await.unwrap();
    fixture.access.store.finish_rename(rename).await.unwrap();
    assert!(fixture.journals().is_empty());

    let fixture = unmerged(&["b"]).await;
    state::remove_stack(&fixture.access, &holder(), true, Backups::Kept).await.unwrap();
    assert!(fixture.journals().is_empty());
    let fixture = unmerged(&["c"]).await;
    assert!(is_conflict(&state::remove_stack(&fixture.access, &holder(), true, Backups::Kept).await));
    assert_eq!(fixture.journals().len(), 1);
}

/// Shows: state.md#state-edits "records what a journal has that cannot be merged, and removes the journal"
/// Shows: state.md#the-state-was-changed-before-the-journal-was-merged "The journal is removed after the state is
///   saved"
#[tokio::test]
async fn repair_removes_the_journal_after_the_state_is_saved() {
    let fixture = unmerged(&["c"]).await;
    let state = repair(&fixture).await;
    let [UnmergedJournal { path, creations }] = &state.unmerged()[..] else { panic!() };
    assert_eq!(fixture.journals(), std::slice::from_ref(path));
    let mut snapshot = state.snapshot().clone();
    assert_eq!(record_creations(&mut snapshot, creations).len(), 1);
    // Killed before the save, and killed after it: the journal is there.
    state.release().await.unwrap();
    assert!(is_conflict(&fixture.open().await));
    let copy = fixture.folder.path().join("copy");
    fs::hard_link(path, &copy).unwrap();
    let state = repair(&fixture).await;
    state.close(snapshot, None).await.unwrap();
    assert!(fixture.journals().is_empty());
    assert_eq!(fixture.names().await, ["c", "b"]);
    fs::rename(&copy, path).unwrap();
    let state = fixture.open().await.unwrap();
    assert_eq!(state.obsolete().len(), 1);
    state.release().await.unwrap();
    assert_eq!(fixture.names().await, ["c", "b"]);
}

/// Shows: state.md#the-state-was-changed-before-the-journal-was-merged "A journal that its run continues to write is
///   not removed."
#[tokio::test]
async fn journal_that_grows_during_a_repair_stays() {
    let fixture = Fixture::new().await;
    let (run, mut recorder) = fixture.unfinished_run().await;
    fixture.break_locks().await;
    fixture.save(&[resource("z")]).await;
    let state = repair(&fixture).await;
    let snapshot = state.snapshot().clone();
    // The run has lost its lock, and has not ended.
    for record in creation(1, 2, resource("c")) {
        recorder.append(&record).unwrap();
    }
    state.close(snapshot, None).await.unwrap();
    drop((run, recorder));
    let Err(StateError::Conflict(conflict)) = fixture.open().await else { panic!("the journal was removed") };
    assert_eq!(conflict.created.len(), 2);
}

#[tokio::test]
async fn repair_merges_the_journal_of_this_checkpoint_and_keeps_the_lock_of_a_live_run_away() {
    // Two runs have started from the same checkpoint: the first has lost its lock.
    let fixture = Fixture::new().await;
    drop(fixture.unfinished_run().await);
    fixture.break_locks().await;
    let journal = fixture.journals().remove(0);
    let hidden = fixture.folder.path().join("hidden");
    fs::rename(&journal, &hidden).unwrap();
    let run = fixture.open().await.unwrap();
    let mut recorder = run.recorder(state::format::UpdateKind::Update);
    for record in creation(0, 1, resource("b")) {
        recorder.append(&record).unwrap();
    }
    fs::rename(&hidden, &journal).unwrap();
    let locked = StackState::open_for_repair(fixture.access.clone(), &holder()).await;
    assert!(matches!(locked, Err(StateError::Store(_))), "the run is active");
    drop((run, recorder));
    fixture.break_locks().await;
    assert_eq!(fixture.journals().len(), 2);
    // Both have created b, as far as the ids tell.
    let state = fixture.open().await.unwrap();
    let done = state.recovered().map(|RecoveredRun { done, .. }| done.clone());
    assert_eq!((done, state.obsolete().len()), (Some([(OperationKind::Creating, 1)].into()), 1));
    assert!(fixture.journals().is_empty());
}
