//! Deaths of a run while it ends. The disk fails at a call and from then on, as if the process had been killed there.

use bridge::fs::faults::{Errno, Fault};
use state::format::{UpdateInfo, UpdateKind, UpdateOrigin, UpdateResult};
use state::store::CopyKind;
use state::{
    Effect, EntryId, OperationId, OperationKind, Record, Snapshot, StackView, StateError, StateRecorder as _, Subject,
    history,
};

use crate::fixture::{Fixture, resource, update};

/// Run that removes the only resource.
#[derive(Clone, Copy, Debug)]
enum Run {
    /// Deletes it.
    Destroy,
    /// Finds that it does not exist. The record is written when the run ends.
    Refresh,
}

impl Run {
    fn kind(self) -> UpdateKind {
        match self {
            Self::Destroy => UpdateKind::Destroy,
            Self::Refresh => UpdateKind::Refresh,
        }
    }

    /// Executes the run, with a fault from a call on after its records; 0 is none.
    async fn execute(self, fixture: &Fixture, at: usize) -> Result<(), StateError> {
        let state = fixture.open().await.unwrap();
        let mut recorder = state.recorder(self.kind());
        let remove = vec![Effect::Remove(EntryId(0))];
        match self {
            Self::Destroy => {
                let operation = OperationId(0);
                let subject = Subject::Entry(EntryId(0));
                recorder.append(&Record::Begin { operation, kind: OperationKind::Deleting, subject }).unwrap();
                recorder.append(&Record::End { operation, effects: remove }).unwrap();
            }
            Self::Refresh => recorder.defer(Record::Change(remove)),
        }
        drop(recorder);
        let snapshot = Snapshot { resources: Vec::new(), ..state.snapshot().clone() };
        let _fault = fail_from(fixture, at);
        state.close(snapshot, Some(&UpdateInfo { kind: self.kind(), ..update() })).await
    }
}

fn fail_from(fixture: &Fixture, at: usize) -> impl Drop + use<> {
    Fault { folder: fixture.folder.path().to_owned(), at, error: Errno::IO, lasts: true }.inject()
}

/// Returns a stack with the resource `a` and one entry in its history.
async fn stack_with_resource() -> Fixture {
    let fixture = Fixture::new().await;
    let state = fixture.open().await.unwrap();
    let snapshot = Snapshot { resources: vec![resource("a")], ..state.snapshot().clone() };
    state.close(snapshot, Some(&update())).await.unwrap();
    fixture
}

/// Opens the stack as the next command does, with a fault from a call on. Returns whether it could be opened.
async fn open_again(fixture: &Fixture, at: usize, context: &str) -> bool {
    fixture.break_locks().await;
    let view = StackView::open(&fixture.access).await.unwrap();
    assert_eq!(view.unexplained_empty, None, "{context}");
    let fault = fail_from(fixture, at);
    let opened = fixture.open().await;
    let Ok(state) = opened else { return false };
    assert_eq!(state.unexplained_empty(), None, "{context}");
    let released = state.release().await.is_ok();
    drop(fault);
    released
}

/// Checks that the history has the run once, with one copy of the checkpoint in the history and one in the backups.
async fn assert_recorded_once(fixture: &Fixture, run: Run, result: Option<UpdateResult>, context: &str) {
    let entries = history(&fixture.access).await.unwrap();
    let kinds: Vec<UpdateKind> = entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [UpdateKind::Update, run.kind()], "{context}");
    assert!(result.is_none_or(|result| entries[1].result == result), "{context}");
    for kind in [CopyKind::History, CopyKind::Backup] {
        assert_eq!(fixture.store.copies(&fixture.stack, &[kind]).await.unwrap().len(), 2, "{kind:?}: {context}");
    }
    assert!(fixture.journals().is_empty(), "{context}");
}

/// A refresh that dies before it has written its records is forgotten.
fn is_forgotten(run: Run, names: &[String]) -> bool {
    matches!(run, Run::Refresh) && !names.is_empty()
}

/// Shows: state.md#a-run "the next run adds the entry that is missing, from the journal"
/// Shows: state.md#a-run "if it dies before that, its journal explains the checkpoint"
#[tokio::test]
async fn run_that_dies_at_any_call_of_its_end_is_in_the_history_once() {
    for run in [Run::Destroy, Run::Refresh] {
        let mut moments = 0;
        for at in 1.. {
            let fixture = stack_with_resource().await;
            let context = format!("{run:?} dies at call {at}");
            let has_ended = run.execute(&fixture, at).await.is_ok();
            assert!(open_again(&fixture, 0, &context).await, "{context}");
            assert!(open_again(&fixture, 0, &context).await, "{context}");
            if !is_forgotten(run, &fixture.names().await) {
                moments += 1;
                assert_recorded_once(&fixture, run, None, &context).await;
            }
            if has_ended {
                break;
            }
        }
        assert!(moments > 10, "{run:?}: {moments} moments");
    }
}

/// Shows: state.md#a-run "the next run adds the entry that is missing, from the journal"
/// Shows: state.md#a-run "if it dies before that, its journal explains the checkpoint"
#[tokio::test]
async fn next_command_that_dies_too_adds_no_second_entry() {
    for run in [Run::Destroy, Run::Refresh] {
        for at in (1..).step_by(13) {
            let mut has_ended = false;
            for again in (1..).step_by(4) {
                let fixture = stack_with_resource().await;
                let context = format!("{run:?} dies at call {at}, the next command at call {again}");
                has_ended = run.execute(&fixture, at).await.is_ok();
                let was_opened = open_again(&fixture, again, &context).await;
                assert!(open_again(&fixture, 0, &context).await, "{context}");
                if !is_forgotten(run, &fixture.names().await) {
                    assert_recorded_once(&fixture, run, None, &context).await;
                }
                if was_opened || has_ended {
                    break;
                }
            }
            if has_ended {
                break;
            }
        }
    }
}

/// Shows: state.md#a-run "The history gets an entry of the interrupted run, with the result `failed`, its message and who had run it."
#[tokio::test]
async fn run_that_was_interrupted_before_its_end_is_in_the_history_as_failed() {
    let fixture = stack_with_resource().await;
    let state = fixture.open().await.unwrap();
    let environment = [("sc.user".to_owned(), "ada".to_owned())].into();
    state.set_origin(UpdateOrigin { message: "drain the reef".to_owned(), environment });
    let mut recorder = state.recorder(UpdateKind::Destroy);
    let subject = Subject::Entry(EntryId(0));
    let operation = OperationId(0);
    recorder.append(&Record::Begin { operation, kind: OperationKind::Deleting, subject }).unwrap();
    recorder.append(&Record::End { operation, effects: vec![Effect::Remove(EntryId(0))] }).unwrap();
    drop((state, recorder));
    for _ in 0..2 {
        assert!(open_again(&fixture, 0, "recovered").await);
    }
    assert_recorded_once(&fixture, Run::Destroy, Some(UpdateResult::Failed), "recovered").await;
    let entry = history(&fixture.access).await.unwrap().pop().unwrap();
    assert_eq!(entry.resource_changes, [("delete".to_owned(), 1)].into());
    assert_eq!(entry.message, "drain the reef");
    let expected = [("exec.kind", "sc"), ("sc.user", "ada")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(entry.environment, expected.into());
}

/// A run does not go on from a merged journal whose entry in the history cannot be written: the journal would contradict what
/// it saves.
#[tokio::test]
async fn merged_journal_without_its_history_does_not_contradict_the_next_state() {
    let fixture = Fixture::new().await;
    let (run, recorder) = fixture.unfinished_run().await;
    drop((run, recorder));
    fixture.break_locks().await;
    let history = fixture.folder.path().join(".pulumi/history");
    std::fs::remove_dir_all(&history).ok();
    std::fs::write(&history, "").unwrap();
    for _ in 0..2 {
        assert!(matches!(fixture.open().await, Err(StateError::HistoryNotWritten { .. })));
    }
    assert_eq!(fixture.names().await, ["b", "a"]);
    std::fs::remove_file(&history).unwrap();
    let state = fixture.open().await.unwrap();
    state.close(Snapshot { resources: vec![resource("a")], ..Snapshot::default() }, Some(&update())).await.unwrap();
    assert_eq!(fixture.names().await, ["a"]);
    fixture.open().await.unwrap().release().await.unwrap();
}
