//! Migrations between stores of objects, folders and compressions, also those that end after any request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::journal::JournalFolders;
use crate::secrets::Keyring;
use crate::stack_state::{LockSettings, summary};
use crate::store::compliance::{EMPTY, SECOND, holder, stack};
use crate::store::{
    CheckpointCopy, Compression, Fault, FileUrl, HistoryEntry, MemoryObjects, StateStore, StoreOptions, StoredJournals,
};

const THIRD: &str = r#"{"version":3,"checkpoint":{"stack":"third"}}"#;

fn access(store: StateStore, journals: &Path) -> StackAccess {
    StackAccess {
        store,
        stack: stack("dev"),
        keyring: Arc::new(Keyring::new(None)),
        configured_secrets: None,
        config: Default::default(),
        journals: JournalFolders::of_backend(journals),
        journal_mode: Default::default(),
        unrecorded: Default::default(),
        locks: LockSettings::default(),
        begins_anew: false,
        engine_version: "v0.1.0".to_owned(),
    }
}

async fn objects_with(compression: Compression, url: &str) -> (MemoryObjects, StateStore) {
    let objects = MemoryObjects::at(url);
    let options = StoreOptions { compression, ..StoreOptions::default() };
    let store = StateStore::open(Arc::new(objects.clone()), options).await.unwrap();
    (objects, store)
}

/// Returns a migration from one store to another, which have folders for journals.
fn migration(source: &StateStore, target: &StateStore, folder: &Path) -> StackMigration {
    let access = |store: &StateStore| access(store.clone(), &folder.join(crate::digest::digest(&store.location())));
    let (source_url, target_url) = (source.location(), target.location());
    StackMigration { source: access(source), target: access(target), source_url, target_url }
}

/// Saves a checkpoint, and adds it to the history, as a run does.
async fn save(store: &StateStore, text: &str) {
    let lock = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    store.save(&lock, text, &Expected::Any).await.unwrap();
    store.archive(&stack("dev"), &HistoryEntry::new(format!(r#"{{"of":{text:?}}}"#))).await.unwrap();
    store.unlock(lock).await.unwrap();
}

/// Creates a stack with two runs, a tag and a previous checkpoint.
async fn create(store: &StateStore) {
    save(store, EMPTY).await;
    save(store, SECOND).await;
    store.set_tags(&stack("dev"), &[("owner".to_owned(), "ada".to_owned())].into()).await.unwrap();
}

/// Returns what a store has of the stack: checkpoint, history, tags, and the texts of the copies with their kinds.
async fn contents(store: &StateStore) -> (Option<String>, Vec<HistoryEntry>, Vec<String>, Vec<(CopyKind, String)>) {
    let dev = stack("dev");
    let text = store.read_checkpoint(&dev).await.unwrap().map(|stored| (*stored.text).clone());
    let mut copies = Vec::new();
    let is_dated = |copy: &CheckpointCopy| copy.kind != CopyKind::Previous;
    let found = store.copies(&dev, &CopyKind::ALL).await.unwrap();
    for copy in found.iter().filter(|copy| is_dated(copy)).chain(found.iter().find(|copy| !is_dated(copy))) {
        copies.push((copy.kind, store.read_copy(copy).await.unwrap()));
    }
    let tags = store.tags(&dev).await.unwrap().into_iter().map(|(name, value)| format!("{name}={value}"));
    (text, store.history_entries(&dev).await.unwrap(), tags.collect(), copies)
}

async fn unlock_all(store: &StateStore) {
    store.break_locks(&stack("dev"), &store.locks(&stack("dev")).await.unwrap()).await.unwrap();
}

fn is_migrated<T>(loaded: &Result<T, StoreError>) -> bool {
    matches!(loaded, Err(StoreError::Migrated { .. }))
}

/// Shows: state.md#migration-to-another-store "Tags, history, backups and retained checkpoints are copied, then the
///   checkpoint"
/// Shows: state.md#migration-to-another-store "To move a stack back, let server.yaml name the new store, and migrate to
///   the old one."
#[tokio::test]
async fn stack_moves_with_all_that_the_store_has_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let url = FileUrl { folder: folder.path().join("a"), create: true, folder_mode: 0o777, sidecars: true };
    let in_folder: StateStore = StateStore::open_folder(&url, StoreOptions::default()).await.unwrap();
    let (_, in_gzip) = objects_with(Compression::Gzip, "memory://gzip").await;
    let (_, in_zstd) = objects_with(Compression::Zstd, "memory://zstd").await;
    create(&in_folder).await;
    let created = contents(&in_folder).await;
    let stores = [&in_folder, &in_gzip, &in_zstd, &in_folder];
    for (source, target) in stores.iter().zip(&stores[1..]) {
        let migration = migration(source, target, folder.path());
        let MigrationOutcome::Completed(moved) = migration.run(&holder(1)).await.unwrap() else { panic!() };
        assert_eq!((moved.history_entries, moved.copies, moved.tags), (2, 5, 1));
        assert_eq!(moved.digest, crate::digest::digest(SECOND));
        let found = contents(target).await;
        assert_eq!((&found.0, &found.1, &found.2), (&created.0, &created.1, &created.2));
        assert!(is_migrated(&source.load(&stack("dev")).await));
        assert!(target.load(&stack("dev")).await.unwrap().is_some());
        let mark = summary(&migration.source, &StoredJournals::default()).await.unwrap().mark.unwrap();
        assert_eq!((mark.direction, mark.url), (MigrationDirection::To, target.location()));
        assert!(matches!(migration.run(&holder(1)).await.unwrap(), MigrationOutcome::Earlier(_)));
        for store in [source, target] {
            assert_eq!(store.locks(&stack("dev")).await.unwrap(), []);
        }
    }
    // Nothing was changed elsewhere, so the kept checkpoint was the same and needed no backup.
    assert_eq!(contents(&in_folder).await, created);
}

/// Shows: state.md#migration-to-another-store "Tags, history, backups and retained checkpoints are copied, then the
///   checkpoint"
/// Shows: state.md#migration-to-another-store "To move a stack back, let server.yaml name the new store, and migrate to
///   the old one."
#[tokio::test]
async fn migration_back_replaces_only_the_checkpoint_that_was_left() {
    let folder = tempfile::tempdir().unwrap();
    for is_changed in [false, true] {
        let (left, first) = objects_with(Compression::None, "memory://first").await;
        let (_, second) = objects_with(Compression::None, "memory://second").await;
        create(&first).await;
        migration(&first, &second, folder.path()).run(&holder(1)).await.unwrap();
        save(&second, THIRD).await;
        if is_changed {
            left.put(".pulumi/stacks/reef/dev.json", r#"{"version":3}"#);
        }
        let back = migration(&second, &first, folder.path()).run(&holder(1)).await;
        if is_changed {
            let error = back.unwrap_err();
            assert!(matches!(error, StateError::Migration(MigrationError::TargetChanged { .. })), "{error}");
            assert!(is_migrated(&first.load(&stack("dev")).await));
            assert_eq!(second.text(&stack("dev")).await.unwrap().as_deref(), Some(THIRD));
            continue;
        }
        back.unwrap();
        let (text, entries, _, copies) = contents(&first).await;
        assert_eq!((text.as_deref(), entries.len()), (Some(THIRD), 3));
        let kept = copies.iter().filter(|(kind, text)| *kind == CopyKind::Backup && text == SECOND).count();
        assert_eq!(kept, 2, "the backup of the run, and that of the replaced checkpoint");
        assert!(copies.contains(&(CopyKind::Previous, SECOND.to_owned())));
        assert!(is_migrated(&second.load(&stack("dev")).await));
    }
}

/// Shows: state.md#migration-to-another-store "The stack must have no journal, and the target must be another store and
///   have no other state of it."
/// Shows: state.md#migration-to-another-store "a mark that names the new one: URL (without passwords)"
#[tokio::test]
async fn target_with_another_state_and_the_same_store_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, first) = objects_with(Compression::None, "memory://first").await;
    let (_, second) = objects_with(Compression::None, "memory://second").await;
    let (_, third) = objects_with(Compression::None, "memory://third").await;
    let error = migration(&first, &second, folder.path()).run(&holder(1)).await.unwrap_err();
    assert!(matches!(error, StateError::NoStack(_)), "{error}");
    create(&first).await;
    save(&second, THIRD).await;
    let error = migration(&first, &second, folder.path()).run(&holder(1)).await.unwrap_err();
    assert!(matches!(error, StateError::Migration(MigrationError::TargetExists { .. })), "{error}");
    let error = migration(&first, &first, folder.path()).run(&holder(1)).await.unwrap_err();
    assert!(matches!(error, StateError::Migration(MigrationError::SameStore { .. })), "{error}");
    let lock = third.lock(&stack("dev"), &holder(2)).await.unwrap();
    let error = migration(&first, &third, folder.path()).run(&holder(1)).await.unwrap_err();
    assert!(matches!(error, StateError::Migration(MigrationError::TargetLocked { .. })), "{error}");
    third.unlock(lock).await.unwrap();
    // A migration that has begun from elsewhere.
    third.set_mark(&stack("dev"), Some(&crate::store::compliance::mark(MigrationDirection::From))).await.unwrap();
    let error = migration(&first, &third, folder.path()).run(&holder(1)).await.unwrap_err();
    assert!(matches!(error, StateError::Store(StoreError::Migrated { .. })), "{error}");
    let text = first.text(&stack("dev")).await.unwrap();
    assert_eq!(text.as_deref(), Some(SECOND));
    for store in [&first, &second, &third] {
        assert_eq!(store.locks(&stack("dev")).await.unwrap(), []);
    }
}

/// Migrates a stack, and ends after each request once; the next migration continues. `change` may change the stack in between.
async fn end_after_each_request(migrate_back: bool, change_in_between: bool) {
    let folder = tempfile::tempdir().unwrap();
    let mut outcomes = [0; 3];
    for count in 0.. {
        let (one, first) = objects_with(Compression::None, "memory://first").await;
        let (other, second) = objects_with(Compression::Gzip, "memory://second").await;
        let (mut source, mut target) = (&first, &second);
        create(source).await;
        if migrate_back {
            migration(source, target, folder.path()).run(&holder(1)).await.unwrap();
            (source, target) = (target, source);
            save(source, THIRD).await;
        }
        let created = contents(source).await;
        let migration = migration(source, target, folder.path());
        let run_with = async |requests: usize| {
            let served = Arc::new(AtomicUsize::new(0));
            for objects in [&one, &other] {
                let served = Arc::clone(&served);
                objects.set_faults(move |_| {
                    if served.fetch_add(1, Ordering::Relaxed) < requests { Fault::None } else { Fault::NotReached }
                });
            }
            let is_complete = migration.run(&holder(1)).await.is_ok();
            for objects in [&one, &other] {
                objects.set_faults(|_| Fault::None);
            }
            unlock_all(source).await;
            unlock_all(target).await;
            is_complete
        };
        let is_complete = run_with(count).await;
        let (in_source, in_target) = (source.text(&stack("dev")).await, target.text(&stack("dev")).await);
        let is_equal = async || {
            let (text, entries, tags, copies) = contents(target).await;
            (&text, &entries, &tags) == (&created.0, &created.1, &created.2)
                && created.3.iter().all(|copy| copies.contains(copy))
        };
        match (&in_source, &in_target) {
            (Ok(text), Err(_)) => {
                assert!(is_migrated(&in_target), "after {count}");
                assert_eq!(*text, created.0, "after {count}");
                outcomes[0] += 1;
            }
            // Nothing was copied yet.
            (Ok(text), Ok(None)) if !migrate_back => {
                assert_eq!(*text, created.0, "after {count}");
                assert_eq!(contents(target).await.1, [], "after {count}");
            }
            (Err(_), Err(_)) => {
                assert!(is_migrated(&in_source) && is_migrated(&in_target), "after {count}");
                assert!(is_equal().await, "after {count}");
                outcomes[1] += 1;
            }
            (Err(_), Ok(_)) => {
                assert!(is_migrated(&in_source) && is_equal().await, "after {count}");
                outcomes[2] += 1;
            }
            (Ok(_), Ok(_)) => panic!("after {count}, both can be used: {in_source:?} {in_target:?}"),
        }
        if change_in_between && in_source.is_ok() && in_target.is_err() {
            save(source, r#"{"version":3,"checkpoint":{"stack":"last"}}"#).await;
            // A second attempt ends early, and the stack changes once more.
            run_with(count / 2).await;
            if source.text(&stack("dev")).await.is_ok() {
                save(source, r#"{"version":3,"checkpoint":{"stack":"later"}}"#).await;
            }
        }
        let created = contents(source).await;
        migration.run(&holder(2)).await.unwrap();
        assert!(is_migrated(&source.text(&stack("dev")).await), "after {count}");
        assert_eq!(target.text(&stack("dev")).await.unwrap(), created.0, "after {count}");
        let (_, entries, tags, copies) = contents(target).await;
        assert_eq!((&entries, &tags), (&created.1, &created.2), "after {count}");
        for copy in &created.3 {
            assert!(copies.contains(copy), "after {count}: {copy:?} is missing in {copies:?}");
        }
        let backups_of_kept = copies.iter().filter(|copy| **copy == (CopyKind::Backup, SECOND.to_owned())).count();
        assert_eq!(backups_of_kept, 1 + usize::from(migrate_back), "after {count}");
        if is_complete {
            break;
        }
    }
    assert!(outcomes[0] > 10 && outcomes[1] > 0 && outcomes[2] > 0, "{outcomes:?}");
}

/// Shows: state.md#migration-to-another-store "the stack is used in the old store, and refused in the new one; the next
///   `sc stack migrate` takes the locks over and continues"
/// Shows: state.md#migration-to-another-store "both stores have the same complete state and refuse it: run it again"
#[tokio::test(start_paused = true)]
async fn migration_that_ends_after_any_request_leaves_the_stack_in_one_store_and_is_continued() {
    end_after_each_request(false, false).await;
}

/// Shows: state.md#migration-to-another-store "the stack is used in the old store, and refused in the new one; the next
///   `sc stack migrate` takes the locks over and continues"
/// Shows: state.md#migration-to-another-store "both stores have the same complete state and refuse it: run it again"
#[tokio::test(start_paused = true)]
async fn migration_back_that_ends_after_any_request_is_continued() {
    end_after_each_request(true, false).await;
}

/// Shows: state.md#migration-to-another-store "the stack is used in the old store, and refused in the new one; the next
///   `sc stack migrate` takes the locks over and continues"
/// Shows: state.md#migration-to-another-store "both stores have the same complete state and refuse it: run it again"
#[tokio::test(start_paused = true)]
async fn interrupted_migration_of_a_stack_that_was_changed_since_is_continued() {
    end_after_each_request(false, true).await;
    end_after_each_request(true, true).await;
}
