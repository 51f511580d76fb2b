//! Renames whose process ends before any of their file operations.

use std::path::Path;

use bridge::fs::faults::{Errno, Fault, InjectedFault};

use super::super::super::*;
use crate::store::HistoryEntry;
use crate::store::compliance::{EMPTY, SECOND, holder, save, stack};
use crate::store::tests::{file_store, resume};

const RENAMED: &str = r#"{"version":3,"checkpoint":{"stack":"renamed"}}"#;

fn west() -> StackReference {
    StackReference::new("shore", "west").unwrap()
}

/// Folder of a store with a stack that has a previous checkpoint and two updates.
static WITH_HISTORY: tokio::sync::OnceCell<tempfile::TempDir> = tokio::sync::OnceCell::const_new();

/// Returns a store with a stack that has a previous checkpoint and two updates.
async fn store_with_history(folder: &Path) -> StateStore {
    let written = WITH_HISTORY.get_or_init(|| async {
        let written = tempfile::tempdir().unwrap();
        write_history(written.path()).await;
        written
    });
    copy_files(written.await.path(), folder);
    file_store(folder).await.unwrap()
}

/// Copies the files of a folder, and of the folders in it.
fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let (source, target) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if source.is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_files(&source, &target);
        } else {
            std::fs::copy(&source, &target).unwrap();
        }
    }
}

async fn write_history(folder: &Path) {
    let store = file_store(folder).await.unwrap();
    for (text, update) in [(EMPTY, "{\"n\":1}"), (SECOND, "{\"n\":2}")] {
        save(&store, "dev", text).await.unwrap();
        store.archive(&stack("dev"), &HistoryEntry::new(update)).await.unwrap();
    }
}

/// Lets all calls that change files in a folder fail after the first ones, as if the process had ended.
pub(super) fn end_after(folder: &Path, calls: usize) -> InjectedFault {
    Fault { folder: folder.to_owned(), at: calls + 1, error: Errno::IO, lasts: true }.inject()
}

/// Returns the number of calls of a rename that change files.
async fn calls_of_a_rename() -> usize {
    let folder = tempfile::tempdir().unwrap();
    let store = store_with_history(folder.path()).await;
    let counted = end_after(folder.path(), usize::MAX - 1);
    let mut rename = store.begin_rename(&stack("dev"), &west(), &holder(1)).await.unwrap();
    store.rename(&mut rename, RENAMED, &Expected::Any).await.unwrap();
    store.finish_rename(rename).await.unwrap();
    counted.calls()
}

/// Renames the stack. The process ends after this number of calls that change files.
async fn rename_until(folder: &Path, operations: usize) -> Result<(), StoreError> {
    let store = store_with_history(folder).await;
    let _end = end_after(folder, operations);
    let mut rename = store.begin_rename(&stack("dev"), &west(), &holder(1)).await?;
    store.rename(&mut rename, RENAMED, &Expected::Any).await?;
    store.finish_rename(rename).await
}

/// Removes the locks of a process that has ended, as the next command does, and resumes its rename.
async fn take_over(store: &StateStore, asked: &StackReference, pid: u32) -> Result<Option<StackRename>, StoreError> {
    for name in [stack("dev"), west()] {
        let locks = store.locks(&name).await?;
        store.break_locks(&name, &locks).await?;
    }
    resume(store, asked, &holder(pid)).await
}

/// Checks that exactly one of the names has the stack, with its whole history, and that nothing else is left.
async fn check_one_stack(store: &StateStore, step: usize) -> StackReference {
    let stacks = store.list().await.unwrap();
    let [name] = &stacks[..] else { panic!("after {step} operations: {stacks:?}") };
    let other = if *name == stack("dev") { west() } else { stack("dev") };
    let expected = if *name == stack("dev") { SECOND } else { RENAMED };
    assert_eq!(store.text(name).await.unwrap().as_deref(), Some(expected), "after {step} operations");
    assert_eq!(store.history(name).await.unwrap(), ["{\"n\":1}", "{\"n\":2}"], "after {step} operations");
    assert_eq!(store.history(&other).await.unwrap(), [""; 0], "after {step} operations");
    let copies = store.copies(name, &CopyKind::ALL).await.unwrap();
    assert_eq!(copies.iter().filter(|copy| copy.kind == CopyKind::History).count(), 2, "after {step} operations");
    for name in [name, &other] {
        assert!(store.locks(name).await.unwrap().is_empty(), "{name} is locked after {step} operations");
    }
    let intents =
        std::fs::read_dir(Path::new(&store.objects.location_of(".sc/renames"))).into_iter().flatten().flatten();
    let intents = intents.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "json"));
    let intents: Vec<_> = intents.map(|entry| std::fs::read_to_string(entry.path())).collect();
    assert!(intents.is_empty(), "after {step} operations: {intents:?}");
    name.clone()
}

/// Shows: state.md#interrupted-renames "the next command of `sc` on the old or the new name undoes or completes the
///   rename"
#[tokio::test]
async fn rename_that_ends_before_any_file_operation_is_completed_or_undone_by_the_next_command() {
    let mut outcomes = Vec::new();
    for operations in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let is_complete = rename_until(folder.path(), operations).await.is_ok();
        let store = file_store(folder.path()).await.unwrap();
        let asked = if operations % 2 == 0 { stack("dev") } else { west() };
        if let Some(rename) = take_over(&store, &asked, 2).await.unwrap() {
            assert_ne!(rename.outcome, RenameOutcome::Pending);
            store.finish_rename(rename).await.unwrap();
        }
        outcomes.push(check_one_stack(&store, operations).await == west());
        if is_complete {
            break;
        }
    }
    assert!(outcomes.len() > 20, "the file operations are counted: {}", outcomes.len());
    let completed = outcomes.iter().position(|completed| *completed).unwrap();
    assert!(completed > 5 && outcomes[completed..].iter().all(|completed| *completed), "{outcomes:?}");
}

#[tokio::test]
async fn resume_that_ends_before_any_file_operation_is_resumed_again() {
    let calls = calls_of_a_rename().await;
    for operations in [calls / 4, calls / 2, calls * 3 / 4] {
        for second in (0..calls / 2).step_by(4) {
            let folder = tempfile::tempdir().unwrap();
            rename_until(folder.path(), operations).await.unwrap_err();
            let store = file_store(folder.path()).await.unwrap();
            let end = end_after(folder.path(), second);
            if let Ok(Some(rename)) = take_over(&store, &west(), 2).await {
                store.finish_rename(rename).await.ok();
            }
            drop(end);
            let store = file_store(folder.path()).await.unwrap();
            if let Some(rename) = take_over(&store, &stack("dev"), 3).await.unwrap() {
                store.finish_rename(rename).await.unwrap();
            }
            check_one_stack(&store, operations * 100 + second).await;
        }
    }
}

/// Returns a store whose rename has written the new checkpoint, and not removed the old one.
async fn interrupted(folder: &Path) -> StateStore {
    for operations in 0.. {
        let trial = tempfile::tempdir().unwrap();
        rename_until(trial.path(), operations).await.unwrap_err();
        let store = file_store(trial.path()).await.unwrap();
        if store.list().await.unwrap().len() == 2 {
            rename_until(folder, operations).await.unwrap_err();
            break;
        }
    }
    file_store(folder).await.unwrap()
}

#[tokio::test]
async fn rename_is_not_resumed_while_its_process_may_run() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_with_history(folder.path()).await;
    let rename = store.begin_rename(&stack("dev"), &west(), &holder(1)).await.unwrap();
    for name in [stack("dev"), west()] {
        let error = resume(&store, &name, &holder(2)).await.unwrap_err();
        assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    }
    assert!(resume(&store, &stack("other"), &holder(2)).await.unwrap().is_none());
    store.finish_rename(rename).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let store = interrupted(folder.path()).await;
    let elsewhere = LockHolder { hostname: "other".to_owned(), ..holder(2) };
    let error = resume(&store, &stack("dev"), &elsewhere).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "the process may run on its host: {error}");
    store.break_locks(&stack("dev"), &store.locks(&stack("dev")).await.unwrap()).await.unwrap();
    let rename = resume(&store, &stack("dev"), &elsewhere).await.unwrap().unwrap();
    store.finish_rename(rename).await.unwrap();
    check_one_stack(&store, 0).await;
}

#[tokio::test]
async fn interrupted_rename_keeps_the_stack_that_another_program_has_changed() {
    const CHANGED: &str = r#"{"version":3,"checkpoint":{"stack":"changed"}}"#;
    for (changed, expected) in [(&["dev"][..], Some("dev")), (&["west"], Some("west")), (&["dev", "west"], None)] {
        let folder = tempfile::tempdir().unwrap();
        let store = interrupted(folder.path()).await;
        for name in changed {
            let name = if *name == "dev" { stack("dev") } else { west() };
            store.break_locks(&name, &store.locks(&name).await.unwrap()).await.unwrap();
            let lock = store.lock(&name, &holder(3)).await.unwrap();
            store.save(&lock, CHANGED, &Expected::Any).await.unwrap();
            store.unlock(lock).await.unwrap();
        }
        let resumed = take_over(&store, &stack("dev"), 2).await;
        let Some(expected) = expected else {
            assert!(matches!(resumed, Err(StoreError::BothNames { .. })));
            assert_eq!(store.list().await.unwrap().len(), 2);
            continue;
        };
        store.finish_rename(resumed.unwrap().unwrap()).await.unwrap();
        let stacks = store.list().await.unwrap();
        assert_eq!(stacks.iter().map(StackReference::stack).collect::<Vec<_>>(), [expected]);
        assert_eq!(store.text(&stacks[0]).await.unwrap().as_deref(), Some(CHANGED));
    }
}

#[tokio::test]
async fn rename_with_one_failed_call_is_undone_or_completed_at_once() {
    let (mut undone, mut completed) = (0, 0);
    for at in 1..=calls_of_a_rename().await {
        let folder = tempfile::tempdir().unwrap();
        let store = store_with_history(folder.path()).await;
        let fault = Fault { folder: folder.path().to_owned(), at, error: Errno::IO, lasts: false }.inject();
        let begun = store.begin_rename(&stack("dev"), &west(), &holder(1)).await;
        let mut is_finished = begun.is_err();
        if let Ok(mut rename) = begun {
            let renamed = store.rename(&mut rename, RENAMED, &Expected::Any).await;
            let expected = if renamed.is_ok() { RenameOutcome::NewName } else { RenameOutcome::OldName };
            assert_eq!(rename.outcome, expected, "{:?}", fault.failed());
            is_finished = store.finish_rename(rename).await.is_ok();
        }
        assert_eq!(fault.failed().len(), 1);
        let failed = fault.failed();
        drop(fault);
        if !is_finished {
            continue;
        }
        match check_one_stack(&store, at).await == west() {
            true => completed += 1,
            false => undone += 1,
        }
        let left: Vec<_> = std::fs::read_dir(folder.path().join(".sc/renames")).into_iter().flatten().collect();
        assert!(left.is_empty(), "{failed:?}: {left:?}");
    }
    assert!(undone > 5 && completed > 5, "{undone} undone, {completed} completed");
}

#[tokio::test]
async fn stack_that_another_program_begins_under_the_old_name_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_with_history(folder.path()).await;
    let mut rename = store.begin_rename(&stack("dev"), &west(), &holder(1)).await.unwrap();
    store.rename(&mut rename, RENAMED, &Expected::Any).await.unwrap();
    store.finish_rename(rename).await.unwrap();
    assert!(matches!(store.text(&stack("dev")).await, Err(StoreError::Migrated { .. })));
    std::fs::copy(
        folder.path().join(".pulumi/stacks/shore/west.json"),
        folder.path().join(".pulumi/stacks/reef/dev.json"),
    )
    .unwrap();
    assert_eq!(store.text(&stack("dev")).await.unwrap().as_deref(), Some(RENAMED));
}
