//! Store whose requests fail, get no reply, or meet those of other programs.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::compliance::{EMPTY, SECOND, holder, save, stack};
use super::super::*;
use super::resume;

async fn store() -> (MemoryObjects, StateStore) {
    let objects = MemoryObjects::default();
    let store = StateStore::open(Arc::new(objects.clone()), StoreOptions::default()).await.unwrap();
    objects.take_requests();
    (objects, store)
}

/// Lets all requests after the first `count` fail, as if the process had ended.
fn end_after(objects: &MemoryObjects, count: usize) {
    let mut served = 0;
    objects.set_faults(move |_| {
        served += 1;
        if served <= count { Fault::None } else { Fault::NotReached }
    });
}

/// Lets the first request of an operation on a key have a fault.
fn fail_once(objects: &MemoryObjects, operation: &'static str, key: &'static str, fault: Fault) {
    let mut is_done = false;
    objects.set_faults(move |request| {
        let is_first = !is_done && request.operation == operation && request.key.contains(key);
        is_done |= is_first;
        if is_first { fault } else { Fault::None }
    });
}

fn operations(objects: &MemoryObjects) -> Vec<String> {
    objects.take_requests().into_iter().map(|request| format!("{} {}", request.operation, request.key)).collect()
}

async fn locked_store() -> (MemoryObjects, StateStore, StackLock, Expected) {
    let (objects, store) = store().await;
    save(&store, "dev", EMPTY).await.unwrap();
    let lock = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    let loaded = store.load(&stack("dev")).await.unwrap();
    objects.take_requests();
    (objects, store, lock, Expected::unchanged(loaded.as_ref()))
}

#[tokio::test]
async fn save_sends_three_requests_and_the_end_of_a_run_three_more() {
    let (objects, store, lock, expected) = locked_store().await;
    store.save(&lock, SECOND, &expected).await.unwrap();
    let checkpoint = ".pulumi/stacks/reef/dev.json";
    let saved = [
        "list .pulumi/locks/organization/reef/dev".to_owned(),
        format!("copy {checkpoint}"),
        format!("write {checkpoint}"),
    ];
    assert_eq!(operations(&objects), saved);
    store.archive(&stack("dev"), &HistoryEntry::new("{}")).await.unwrap();
    assert_eq!(operations(&objects).len(), 3);
    store.unlock(lock).await.unwrap();
    assert_eq!(operations(&objects).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn folders_of_copies_are_listed_at_the_same_time() {
    let latency = std::time::Duration::from_secs(1);
    let objects = MemoryObjects::default().with_latency(latency);
    let store = StateStore::open(Arc::new(objects.clone()), StoreOptions::default()).await.unwrap();
    let started = tokio::time::Instant::now();
    store.copies(&stack("dev"), &CopyKind::ALL).await.unwrap();
    assert_eq!((started.elapsed(), objects.take_requests().len() - 2), (latency, 3));
}

/// Shows: state.md#stores "A write whose reply was lost is not taken for the write of another program"
#[tokio::test(start_paused = true)]
async fn checkpoint_whose_write_got_no_reply_is_saved_once() {
    for fault in [Fault::LostReply, Fault::NotReached] {
        let (objects, store, lock, expected) = locked_store().await;
        fail_once(&objects, "write", "dev.json", fault);
        let saved = store.save(&lock, SECOND, &expected).await.unwrap();
        assert_eq!(store.text(&stack("dev")).await.unwrap().as_deref(), Some(SECOND), "{fault:?}");
        // The revision is that of the stored object: the next save is not taken for that of another program.
        store.save(&lock, EMPTY, &Expected::Revision(saved)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn checkpoint_of_another_program_stays_even_if_the_first_write_got_no_reply() {
    for fault in [Fault::LostReply, Fault::NotReached] {
        let (objects, store, lock, expected) = locked_store().await;
        let other = objects.clone();
        let mut is_done = false;
        objects.set_faults(move |request| {
            let is_write = request.operation == "write" && !is_done;
            is_done |= is_write;
            if is_write { fault } else { Fault::None }
        });
        // Another program writes between the request and its repetition: the paused clock runs ahead to the first delay.
        let (saved, ()) = tokio::join!(store.save(&lock, SECOND, &expected), async {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            if fault == Fault::NotReached {
                other.put(".pulumi/stacks/reef/dev.json", r#"{"version":3}"#);
            }
        });
        match fault {
            Fault::LostReply => drop(saved.unwrap()),
            _ => assert!(matches!(saved, Err(StoreError::Replaced { written: Some(_), .. })), "{saved:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn store_that_is_unreachable_fails_the_save_and_changes_nothing() {
    let (objects, store, lock, expected) = locked_store().await;
    end_after(&objects, 2);
    let error = store.save(&lock, SECOND, &expected).await.unwrap_err();
    assert!(matches!(error, StoreError::Request(ObjectError { kind: ObjectErrorKind::Unreachable, .. })), "{error}");
    assert_eq!(error.to_string(), "cannot read memory://objects/.pulumi/stacks/reef/dev.json");
    objects.set_faults(|_| Fault::None);
    assert_eq!(store.text(&stack("dev")).await.unwrap().as_deref(), Some(EMPTY));
    store.save(&lock, SECOND, &expected).await.unwrap();
}

#[tokio::test]
async fn lock_whose_write_got_no_reply_is_held_or_removed() {
    let (objects, store) = store().await;
    fail_once(&objects, "write", "locks", Fault::NotReached);
    assert!(store.lock(&stack("dev"), &holder(1)).await.is_err());
    assert!(store.locks(&stack("dev")).await.unwrap().is_empty());
    fail_once(&objects, "write", "locks", Fault::LostReply);
    let leased = LockHolder { lease: Some(LockLease::new(LockLease::DURATION)), ..holder(1) };
    let lock = store.lock(&stack("dev"), &leased).await.unwrap();
    for fault in [Fault::LostReply, Fault::None, Fault::NotReached, Fault::None] {
        fail_once(&objects, "write", "locks", fault);
        assert_eq!(store.renew(&lock).await.is_ok(), fault != Fault::NotReached, "{fault:?}");
    }
    // A release that was carried out can be repeated.
    fail_once(&objects, "remove", "locks", Fault::LostReply);
    let lock_again = lock.duplicate();
    assert!(store.unlock(lock).await.is_err());
    store.unlock(lock_again).await.unwrap();
}

/// Shows: state.md#stores "A run that ends after any request leaves the old checkpoint or the new one."
#[tokio::test(start_paused = true)]
async fn run_that_ends_after_any_request_leaves_the_old_checkpoint_or_the_new_one() {
    let mut outcomes = BTreeSet::new();
    for compression in Compression::ALL {
        for count in 0.. {
            let (objects, store, lock, expected) = locked_store().await;
            let options = StoreOptions { compression, ..store.options };
            let mut store = store;
            store.options = options;
            end_after(&objects, count);
            let entry = HistoryEntry::new("{}");
            let ended = async {
                store.save(&lock, SECOND, &expected).await?;
                store.archive(&stack("dev"), &entry).await
            };
            let is_complete = ended.await.is_ok();
            objects.set_faults(|_| Fault::None);
            let text = store.text(&stack("dev")).await.unwrap();
            assert!([EMPTY, SECOND].contains(&text.as_deref().unwrap()), "{compression:?} after {count}: {text:?}");
            outcomes.insert(text);
            if is_complete {
                break;
            }
        }
    }
    assert_eq!(outcomes.len(), 2);
}

/// Shows: state.md#stores "A run that ends after any request leaves the old checkpoint or the new one."
#[tokio::test(start_paused = true)]
async fn rename_that_ends_after_any_request_is_completed_or_undone() {
    let west = StackReference::new("shore", "west").unwrap();
    let mut names = BTreeSet::new();
    for count in 0.. {
        let (objects, store) = store().await;
        save(&store, "dev", EMPTY).await.unwrap();
        store.archive(&stack("dev"), &HistoryEntry::new("{}")).await.unwrap();
        end_after(&objects, count);
        let is_complete = async {
            let mut rename = store.begin_rename(&stack("dev"), &west, &holder(1)).await?;
            store.rename(&mut rename, SECOND, &Expected::Any).await?;
            store.finish_rename(rename).await
        };
        let is_complete = is_complete.await.is_ok();
        objects.set_faults(|_| Fault::None);
        // The first lock is taken before the intent is written, and released after the last step.
        if !store.locks(&stack("dev")).await.unwrap().is_empty() {
            for name in [&stack("dev"), &west] {
                let held = resume(&store, name, &holder(2)).await;
                assert!(matches!(&held, Ok(None) | Err(StoreError::Locked { .. })), "after {count}: {held:?}");
            }
        }
        for name in [&stack("dev"), &west] {
            store.break_locks(name, &store.locks(name).await.unwrap()).await.unwrap();
        }
        if let Some(rename) = resume(&store, &west, &holder(2)).await.unwrap() {
            store.finish_rename(rename).await.unwrap();
        }
        let stacks = store.list().await.unwrap();
        assert_eq!(stacks.len(), 1, "after {count}: {stacks:?}");
        let text = if stacks[0] == west { SECOND } else { EMPTY };
        assert_eq!(store.text(&stacks[0]).await.unwrap().as_deref(), Some(text), "after {count}");
        assert_eq!(store.history(&stacks[0]).await.unwrap().len(), 1, "after {count}");
        for name in [&stack("dev"), &west] {
            assert!(store.locks(name).await.unwrap().is_empty(), "after {count}");
        }
        // The old name has a mark once the stack has the new one.
        let own: Vec<String> = objects.keys().into_iter().filter(|key| key.starts_with(".sc/")).collect();
        let expected = if stacks[0] == west { &[".sc/moved/reef/dev.json"][..] } else { &[] };
        assert_eq!(own, expected, "after {count}");
        names.insert(stacks);
        if is_complete {
            break;
        }
    }
    assert_eq!(names.len(), 2);
}

#[tokio::test]
async fn objects_have_the_keys_of_the_command_line() {
    let (objects, store) = store().await;
    save(&store, "dev", EMPTY).await.unwrap();
    save(&store, "dev", SECOND).await.unwrap();
    store.set_tags(&stack("dev"), &[("owner".to_owned(), "ada".to_owned())].into()).await.unwrap();
    store.archive(&stack("dev"), &HistoryEntry::new("{}")).await.unwrap();
    let without_time = |key: String| {
        let digits = |text: &str| text.len() == 19 && text.bytes().all(|byte| byte.is_ascii_digit());
        key.split_inclusive(['.', '-'])
            .map(|part| {
                let bare = part.trim_end_matches(['.', '-']);
                if digits(bare) { part.replace(bare, "NS") } else { part.to_owned() }
            })
            .collect::<String>()
    };
    let expected = [
        ".pulumi/backups/reef/dev/dev.NS.json",
        ".pulumi/history/reef/dev/dev-NS.checkpoint.json",
        ".pulumi/history/reef/dev/dev-NS.history.json",
        ".pulumi/meta.yaml",
        ".pulumi/stacks/reef/dev.json",
        ".pulumi/stacks/reef/dev.json.bak",
        ".pulumi/stacks/reef/dev.pulumi-tags",
    ];
    assert_eq!(objects.keys().into_iter().map(without_time).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn layout_is_found_in_metadata_and_in_stacks_without_project() {
    let open = |objects: &MemoryObjects, legacy_stores| {
        let options = StoreOptions { legacy_stores, ..StoreOptions::default() };
        StateStore::open(Arc::new(objects.clone()), options)
    };
    let table = [
        (".pulumi/meta.yaml", "version: 1\n", Ok(Layout::Projects)),
        (".pulumi/meta.yaml", "version: 0\n", Ok(Layout::Legacy)),
        (".pulumi/stacks/dev.json", EMPTY, Ok(Layout::Legacy)),
        (".pulumi/stacks/reef/dev.json", EMPTY, Ok(Layout::Projects)),
        (".pulumi/meta.yaml", "version: 2\n", Err("memory://objects/.pulumi/meta.yaml has layout version 2, which")),
        (".pulumi/meta.yaml", "", Err("memory://objects/.pulumi/meta.yaml is damaged")),
    ];
    for (key, text, expected) in table {
        let objects = MemoryObjects::default();
        objects.put(key, text);
        match (open(&objects, LegacyStores::Accepted).await, expected) {
            (Ok(store), Ok(layout)) => assert_eq!(store.layout, layout, "{text}"),
            (Err(error), Err(start)) => assert!(error.to_string().starts_with(start), "{error}"),
            (result, _) => panic!("{text}: {result:?}"),
        }
        if expected == Ok(Layout::Legacy) {
            let refused = open(&objects, LegacyStores::Refused).await.unwrap_err();
            assert_eq!(refused.to_string(), "memory://objects has the old layout without projects");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lock_of_a_failed_attempt_does_not_prevent_saving() {
    let (objects, store, lock, expected) = locked_store().await;
    let attempt = ".pulumi/locks/organization/reef/dev/about-to-lock.tmp";
    objects.put(attempt, "");
    let error = store.save(&lock, EMPTY, &expected).await.unwrap_err();
    assert!(matches!(&error, StoreError::Locked { holders, .. } if holders.len() == 1), "{error}");
    // The failed attempt removes its lock during the second delay.
    let (saved, removed) = tokio::join!(store.save(&lock, EMPTY, &expected), async {
        tokio::time::sleep(std::time::Duration::from_millis(40)).await;
        objects.remove(attempt).await
    });
    removed.unwrap();
    saved.unwrap();
}
