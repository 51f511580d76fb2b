//! Lost resources, and restores of earlier states.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use state::format::UpdateKind;
use state::store::CopyKind;
use state::{
    EntryChange, ImportProblem, ResourceState, Restore, StackState, StackView, StateError, StateRecorder as _,
    state_copies,
};

use crate::fixture::{Fixture, creation, holder, resource, secret_resource, update};

const BARE: &str = r#"{"version":0,"checkpoint":{"stack":"organization/reef/dev"}}"#;

/// Replaces the checkpoint without a run, as a tool for files would.
fn overwrite(fixture: &Fixture, text: &str) {
    std::fs::write(checkpoint(fixture), text).unwrap();
}

fn checkpoint(fixture: &Fixture) -> PathBuf {
    fixture.folder.path().join(".pulumi/stacks/reef/dev.json")
}

/// Saves the resources as a run with a history entry does.
async fn run(fixture: &Fixture, resources: &[Arc<ResourceState>]) {
    let state = fixture.open().await.unwrap();
    let mut snapshot = state.snapshot().clone();
    snapshot.resources = resources.to_vec();
    state.close(snapshot, Some(&update())).await.unwrap();
}

async fn unexplained(fixture: &Fixture) -> Option<String> {
    let view = StackView::open(&fixture.access).await.unwrap();
    let state = StackState::open(fixture.access.clone(), &holder()).await.unwrap();
    assert_eq!(view.unexplained_empty.as_ref(), state.unexplained_empty(), "with and without the lock");
    let found = state.unexplained_empty().map(ToString::to_string);
    state.release().await.unwrap();
    found
}

#[tokio::test]
async fn state_that_a_run_has_emptied_is_explained_by_the_history() {
    let fixture = Fixture::new().await;
    assert_eq!(unexplained(&fixture).await, None, "a new stack");
    run(&fixture, &[resource("a"), resource("b")]).await;
    assert_eq!(unexplained(&fixture).await, None);
    run(&fixture, &[]).await;
    assert_eq!(unexplained(&fixture).await, None, "the run in the history has removed the resources");
    run(&fixture, &[]).await;
    assert_eq!(unexplained(&fixture).await, None, "the previous state has no resources either");
    fixture.save(&[]).await;
    fixture.save(&[]).await;
    assert_eq!(unexplained(&fixture).await, None, "nor have the states that no run has saved");
}

#[tokio::test]
async fn empty_state_with_resources_before_it_is_unexplained() {
    let fixture = Fixture::new().await;
    run(&fixture, &[]).await;
    run(&fixture, &[resource("a"), resource("b")]).await;
    run(&fixture, &[resource("a"), resource("b")]).await;
    let backup = checkpoint(&fixture).with_extension("json.bak");
    let expected = |state: &str, resources: &str| {
        Some(format!("{state}, but the previous state {} {resources}", backup.display()))
    };
    let empty = "the state of organization/reef/dev has no resources";
    overwrite(&fixture, BARE);
    assert_eq!(unexplained(&fixture).await, expected(empty, "has 2 resources, and no run in the history removed them"));
    std::fs::remove_file(checkpoint(&fixture)).unwrap();
    let missing = "the checkpoint of organization/reef/dev is missing";
    assert_eq!(
        unexplained(&fixture).await,
        expected(missing, "has 2 resources, and no run in the history removed them")
    );
    std::fs::remove_dir_all(fixture.folder.path().join(".pulumi/history")).unwrap();
    assert_eq!(unexplained(&fixture).await, None, "a stack that was removed or renamed has no history");

    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    fixture.save(&[]).await;
    let found = unexplained(&fixture).await.unwrap();
    assert!(
        found.ends_with("dev.json.bak has 1 resource, and no run in the history removed it"),
        "an edit leaves no history: {found}"
    );
    std::fs::write(checkpoint(&fixture).with_extension("json.bak"), "{}").unwrap();
    let found = unexplained(&fixture).await.unwrap();
    assert!(found.ends_with("dev.json.bak cannot be read"), "{found}");
}

#[tokio::test]
async fn lost_checkpoint_is_unexplained_although_the_previous_one_is_missing_or_empty() {
    for (text, state) in [(None, "the checkpoint of"), (Some(BARE), "the state of")] {
        // The first save has no previous checkpoint; after `pulumi stack init`, the previous one has no resources.
        for has_previous in [false, true] {
            let fixture = Fixture::new().await;
            if has_previous {
                fixture.save(&[]).await;
            }
            run(&fixture, &[resource("a"), resource("b")]).await;
            assert_eq!(checkpoint(&fixture).with_extension("json.bak").exists(), has_previous);
            std::fs::remove_file(checkpoint(&fixture)).unwrap();
            text.into_iter().for_each(|text| overwrite(&fixture, text));
            let history = fixture.store.copies(&fixture.stack, &[CopyKind::History]).await.unwrap().remove(0).location;
            let found = unexplained(&fixture).await.unwrap_or_default();
            let kept = "has 2 resources, and no run in the history removed them";
            let expected = format!("the earlier state {} {kept}", history);
            assert!(found.starts_with(state) && found.ends_with(&expected), "{has_previous}: {found}");

            std::fs::remove_dir_all(fixture.folder.path().join(".pulumi/history")).unwrap();
            let found = unexplained(&fixture).await;
            let is_explained = found.is_none();
            assert_eq!(is_explained, has_previous, "only a backup has resources: {found:?}");
        }
    }
}

#[tokio::test]
async fn state_that_a_run_has_emptied_is_explained_after_the_clock_was_set_back() {
    let fixture = Fixture::new().await;
    run(&fixture, &[resource("a")]).await;
    let history = fixture.store.copies(&fixture.stack, &[CopyKind::History]).await.unwrap().remove(0);
    let history = PathBuf::from(history.location);
    let name = format!("dev-{}.checkpoint.json", 4_000_000_000_000_000_000_u64);
    std::fs::rename(&history, history.with_file_name(name)).unwrap();
    run(&fixture, &[]).await;
    assert_eq!(unexplained(&fixture).await, None);
    let text = std::fs::read_to_string(checkpoint(&fixture)).unwrap();
    overwrite(&fixture, &(text + "\n"));
    assert!(unexplained(&fixture).await.is_some(), "no run has saved this text");
}

#[tokio::test]
async fn state_that_a_recovered_run_has_emptied_is_explained_by_its_journal() {
    let fixture = Fixture::new().await;
    run(&fixture, &[resource("a")]).await;
    fixture.save(&[]).await;
    let state = fixture.open().await.unwrap();
    let [begin, _] = creation(0, 0, resource("b"));
    state.recorder(UpdateKind::Update).append(&begin).unwrap();
    fixture.store.break_locks(&fixture.stack, &fixture.store.locks(&fixture.stack).await.unwrap()).await.unwrap();
    drop(state);
    let state = fixture.open().await.unwrap();
    assert!(state.recovered().is_some());
    assert_eq!(state.unexplained_empty(), None);
    state.release().await.unwrap();
}

async fn restore(fixture: &Fixture, name: &str) -> Result<Restore, StateError> {
    let copies = fixture.store.copies(&fixture.stack, &CopyKind::ALL).await.unwrap();
    let copy = copies.iter().find(|copy| copy.name == name || copy.kind.as_str() == name).unwrap();
    Restore::prepare(&fixture.access, copy).await
}

/// Shows: state.md#restore "The restored state has the bytes of the copy"
/// Shows: state.md#restore "The replaced state becomes the previous one."
#[tokio::test]
async fn previous_state_is_restored_with_its_ciphertexts() {
    let fixture = Fixture::new().await;
    run(&fixture, &[secret_resource("a"), resource("b")]).await;
    let text = std::fs::read_to_string(checkpoint(&fixture)).unwrap();
    run(&fixture, &[resource("b"), resource("c")]).await;
    let encryptions = fixture.marker.encryption_count();
    let restored = restore(&fixture, "bak").await.unwrap();
    let changes: Vec<_> = restored.changes.iter().map(|(change, urn, _)| (*change, urn.name())).collect();
    assert_eq!(changes, [(EntryChange::Added, "a"), (EntryChange::Removed, "c")]);
    assert_eq!((restored.resources, restored.pending_operations), (2, 0));
    restored.apply(&fixture.access, &holder()).await.unwrap();
    assert_eq!(std::fs::read_to_string(checkpoint(&fixture)).unwrap(), text, "the same bytes");
    assert_eq!(fixture.marker.encryption_count(), encryptions);
    assert!(fixture.store.locks(&fixture.stack).await.unwrap().is_empty());

    // The replaced state is the previous one now.
    let back = restore(&fixture, "bak").await.unwrap();
    assert_eq!(back.changes.len(), 2);
    back.apply(&fixture.access, &holder()).await.unwrap();
    assert_eq!(fixture.names().await, ["b", "c"]);
}

#[tokio::test]
async fn damaged_or_missing_state_is_replaced_by_a_copy() {
    for damage in [Some("{}"), Some(""), None] {
        let fixture = Fixture::new().await;
        run(&fixture, &[resource("a")]).await;
        match damage {
            Some(text) => overwrite(&fixture, text),
            None => std::fs::remove_file(checkpoint(&fixture)).unwrap(),
        }
        let restored = restore(&fixture, "history").await.unwrap();
        assert_eq!(restored.current_error.is_some(), damage.is_some());
        assert_eq!(restored.changes.len(), 1);
        restored.apply(&fixture.access, &holder()).await.unwrap();
        assert_eq!(fixture.names().await, ["a"]);
    }
}

#[tokio::test]
async fn restore_of_an_unfit_copy_or_over_a_changed_state_is_refused() {
    let fixture = Fixture::new().await;
    run(&fixture, &[resource("a")]).await;
    run(&fixture, &[resource("b")]).await;
    let prepared = restore(&fixture, "bak").await.unwrap();
    fixture.save(&[resource("c")]).await;
    let error = prepared.apply(&fixture.access, &holder()).await.unwrap_err();
    assert!(matches!(error, StateError::Changed(_)), "{error}");
    assert_eq!(fixture.names().await, ["c"]);

    let previous = checkpoint(&fixture).with_extension("json.bak");
    let text = std::fs::read_to_string(&previous).unwrap();
    for (damaged, is_problem) in [
        ("{}".to_owned(), None),
        (text.replace("urn:pulumi:dev::", "urn:pulumi:prod::"), Some("resources of another stack")),
        (text.replace("::reef::", "::shore::"), Some("resources of another stack")),
        (text.replace(r#""id":"b","#, ""), Some("yet has no id")),
    ] {
        std::fs::remove_file(&previous).unwrap();
        std::fs::write(&previous, damaged).unwrap();
        match (restore(&fixture, "bak").await.err().unwrap(), is_problem) {
            (StateError::Copy { location, .. }, None) => assert_eq!(Path::new(&location), previous),
            (StateError::NotRestorable { source, .. }, Some(message)) => {
                assert!(source.to_string().contains(message), "{source}");
                let is_integrity = matches!(source, ImportProblem::Integrity(_));
                assert_eq!(is_integrity, message.contains("id"));
            }
            (error, _) => panic!("{error}"),
        }
    }
    let copies = state_copies(&fixture.access).await.unwrap();
    let kinds: Vec<_> = copies.iter().map(|copy| (copy.copy.kind, copy.resources)).collect();
    assert!(kinds.contains(&(CopyKind::History, Some(1))) && kinds.contains(&(CopyKind::Backup, Some(1))), "{kinds:?}");
}

#[tokio::test]
async fn restore_is_refused_while_a_run_is_interrupted() {
    let fixture = Fixture::new().await;
    run(&fixture, &[resource("a")]).await;
    let (state, recorder) = fixture.unfinished_run().await;
    drop(recorder);
    let locked = restore(&fixture, "history").await.unwrap().apply(&fixture.access, &holder()).await.unwrap_err();
    assert!(matches!(locked, StateError::Store(_)), "{locked}");
    fixture.store.break_locks(&fixture.stack, &fixture.store.locks(&fixture.stack).await.unwrap()).await.unwrap();
    let refused = restore(&fixture, "history").await.unwrap().apply(&fixture.access, &holder()).await.unwrap_err();
    assert!(matches!(refused, StateError::Interrupted { .. }), "{refused}");
    drop(state);
}
