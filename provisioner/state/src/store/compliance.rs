//! Compliance tests that every store has to pass. Compiled for tests only (`testing` in `Cargo.toml`).

#![expect(clippy::unwrap_used, reason = "a test fails with a panic")]

#[cfg(test)]
mod tests;

use jiff::Timestamp;

use super::{
    Backups, CopyKind, Expected, HistoryEntry, LockHolder, LockLease, MigrationDirection, MigrationMark,
    StackReference, StateStore, StoreError, Tags,
};

pub(crate) const EMPTY: &str = r#"{"version":3,"checkpoint":{"stack":"organization/reef/dev"}}"#;
pub(crate) const SECOND: &str = r#"{"version":3,"checkpoint":{"stack":"second"}}"#;

pub(crate) fn stack(name: &str) -> StackReference {
    StackReference::new("reef", name).unwrap()
}

pub(crate) fn holder(pid: u32) -> LockHolder {
    LockHolder { pid, username: "ada".to_owned(), hostname: "reefbox".to_owned(), process: None, lease: None }
}

/// Returns a holder whose lock has a lease.
pub(crate) fn leased(pid: u32) -> LockHolder {
    let lease = LockLease { run: format!("run-{pid}"), has_stored_journal: false, duration: LockLease::DURATION };
    LockHolder { lease: Some(lease), ..holder(pid) }
}

/// Returns the mark of a migration to or from another store.
pub(crate) fn mark(direction: MigrationDirection) -> MigrationMark {
    MigrationMark {
        direction,
        url: "s3://reef".to_owned(),
        location: "s3://reef".to_owned(),
        digest: "d1".to_owned(),
        replaces: None,
        outdated: Vec::new(),
        time: Timestamp::UNIX_EPOCH,
        user: "ada".to_owned(),
        host: "reefbox".to_owned(),
        run: Some("r".to_owned()),
    }
}

/// Saves a checkpoint under the lock, as a run does.
pub(super) async fn save(store: &StateStore, name: &str, text: &str) -> Result<(), StoreError> {
    let lock = store.lock(&stack(name), &holder(1)).await?;
    let saved = store.save(&lock, text, &Expected::Any).await;
    store.unlock(lock).await?;
    saved.map(drop)
}

/// Returns the messages of an error and of its causes.
#[cfg(test)]
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Runs all compliance tests in an empty store.
///
/// # Panics
/// If the store does not keep a promise of [`StateStore`].
pub async fn run(store: &StateStore) {
    missing_stack_loads_as_none(store).await;
    saved_checkpoint_is_loaded(store).await;
    lock_excludes_others_and_names_its_holder(store).await;
    lock_can_be_broken(store).await;
    locks_of_different_stacks_are_independent(store).await;
    removed_lock_is_not_renewed(store).await;
    lock_without_its_lease_stays(store).await;
    lock_of_an_ended_run_is_removed_unless_it_was_renewed(store).await;
    run_that_lost_its_lock_saves_nothing(store).await;
    checkpoint_that_another_program_has_replaced_stays(store).await;
    stack_with_a_mark_is_not_loaded(store).await;
    contents_of_a_stack_are_added_by_their_times(store).await;
    tags_are_replaced_as_a_whole(store).await;
    renamed_stack_keeps_its_history(store).await;
    removed_stack_is_not_listed(store).await;
}

async fn missing_stack_loads_as_none(store: &StateStore) {
    assert_eq!(store.text(&stack("absent")).await.unwrap(), None);
    assert!(store.locks(&stack("absent")).await.unwrap().is_empty());
    assert!(store.list().await.unwrap().is_empty());
}

async fn saved_checkpoint_is_loaded(store: &StateStore) {
    for text in [EMPTY, SECOND] {
        save(store, "dev", text).await.unwrap();
        assert_eq!(store.text(&stack("dev")).await.unwrap().as_deref(), Some(text));
    }
    let copies = store.copies(&stack("dev"), &CopyKind::ALL).await.unwrap();
    assert!(copies[0].kind == CopyKind::Previous && copies[0].name.starts_with("bak"), "{copies:?}");
    assert_eq!(store.read_copy(&copies[0]).await.unwrap(), EMPTY);
    store.archive(&stack("dev"), &HistoryEntry::new("{}")).await.unwrap();
    save(store, "a.b", EMPTY).await.unwrap();
    assert_eq!(store.list().await.unwrap(), [stack("a.b"), stack("dev")]);
}

async fn lock_excludes_others_and_names_its_holder(store: &StateStore) {
    let lock = store.lock(&stack("dev"), &holder(4711)).await.unwrap();
    let error = store.lock(&stack("dev"), &holder(1)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Locked { holders, .. } if holders.len() == 1));
    let message = error.to_string();
    assert!(message.contains("the stack is currently locked by 1 lock(s)"), "{message}");
    assert!(message.contains("created by ada@reefbox (pid 4711) at 2"), "{message}");
    store.unlock(lock).await.unwrap();
    let second = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    store.unlock(second).await.unwrap();
    assert!(store.locks(&stack("dev")).await.unwrap().is_empty());
}

async fn lock_can_be_broken(store: &StateStore) {
    let lost = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    let listed = store.locks(&stack("dev")).await.unwrap();
    assert_eq!(store.break_locks(&stack("dev"), &listed).await.unwrap(), listed);
    let lock = store.lock(&stack("dev"), &holder(2)).await.unwrap();
    store.unlock(lost).await.unwrap();
    // The lock was taken after the other one was listed.
    assert_eq!(store.break_locks(&stack("dev"), &listed).await.unwrap(), []);
    assert_eq!(store.locks(&stack("dev")).await.unwrap().len(), 1);
    store.unlock(lock).await.unwrap();
}

async fn removed_lock_is_not_renewed(store: &StateStore) {
    let lock = store.lock(&stack("dev"), &leased(1)).await.unwrap();
    let taken = store.locks(&stack("dev")).await.unwrap();
    // The id of the run is that of the lock.
    let lease = leased(1).lease.map(|lease| LockLease { run: lock.run().to_owned(), ..lease });
    assert_eq!(taken[0].lease(), lease.as_ref());
    store.renew(&lock).await.unwrap();
    store.renew(&lock).await.unwrap();
    let renewed = store.locks(&stack("dev")).await.unwrap();
    assert_eq!(renewed[0].holder, taken[0].holder);
    let (first, last, now) = (taken[0].renewed, renewed[0].renewed, store.now().await.unwrap());
    assert!(first <= last && last.is_none_or(|last| last <= now), "{first:?} {last:?} {now}");
    store.break_locks(&stack("dev"), &renewed).await.unwrap();
    let other = store.lock(&stack("dev"), &holder(2)).await.unwrap();
    let error = store.renew(&lock).await.unwrap_err();
    assert!(matches!(&error, StoreError::LockLost { holders, .. } if holders.len() == 1), "{error}");
    store.unlock(other).await.unwrap();
    assert!(matches!(store.renew(&lock).await, Err(StoreError::LockLost { .. })));
    assert_eq!(store.locks(&stack("dev")).await.unwrap(), []);
}

async fn lock_without_its_lease_stays(store: &StateStore) {
    let lock = store.lock(&stack("dev"), &leased(1)).await.unwrap();
    store.renew(&lock).await.unwrap();
    store.end_lease(&lock).await.unwrap();
    let left = store.locks(&stack("dev")).await.unwrap();
    assert_eq!(left[0].lease(), None);
    assert_eq!(left[0].holder.as_ref().unwrap().0, holder(1));
    store.break_locks(&stack("dev"), &left).await.unwrap();
    assert!(matches!(store.end_lease(&lock).await, Err(StoreError::LockLost { .. })));
    assert_eq!(store.locks(&stack("dev")).await.unwrap(), []);
}

async fn lock_of_an_ended_run_is_removed_unless_it_was_renewed(store: &StateStore) {
    let lock = store.lock(&stack("dev"), &leased(1)).await.unwrap();
    let read = store.locks(&stack("dev")).await.unwrap().remove(0);
    store.renew(&lock).await.unwrap();
    let renewed = store.locks(&stack("dev")).await.unwrap().remove(0);
    if read.renewed != renewed.renewed {
        assert!(!store.remove_ended_lock(&stack("dev"), &read, &leased(2)).await.unwrap());
        store.renew(&lock).await.unwrap();
    }
    let read = store.locks(&stack("dev")).await.unwrap().remove(0);
    assert!(store.remove_ended_lock(&stack("dev"), &read, &leased(2)).await.unwrap());
    assert_eq!(store.locks(&stack("dev")).await.unwrap(), []);
    assert!(matches!(store.renew(&lock).await, Err(StoreError::LockLost { .. })));
    assert_eq!(store.locks(&stack("dev")).await.unwrap(), []);
}

async fn run_that_lost_its_lock_saves_nothing(store: &StateStore) {
    let before = store.text(&stack("dev")).await.unwrap();
    let lost = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    store.break_locks(&stack("dev"), &store.locks(&stack("dev")).await.unwrap()).await.unwrap();
    let error = store.save(&lost, "{}", &Expected::Any).await.unwrap_err().to_string();
    assert_eq!(error, "organization/reef/dev: the lock of this run was removed, and the stack is not locked now");
    let lock = store.lock(&stack("dev"), &holder(2)).await.unwrap();
    let error = store.save(&lost, "{}", &Expected::Any).await.unwrap_err().to_string();
    assert!(error.contains("was removed, and is now held by\n  ") && error.contains("(pid 2)"), "{error}");
    store.unlock(lost).await.unwrap();
    store.unlock(lock).await.unwrap();
    assert_eq!(store.text(&stack("dev")).await.unwrap(), before);
}

async fn checkpoint_that_another_program_has_replaced_stays(store: &StateStore) {
    let read = store.load(&stack("dev")).await.unwrap();
    let lock = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    let saved = store.save(&lock, EMPTY, &Expected::unchanged(read.as_ref())).await.unwrap();
    for outdated in [Expected::unchanged(read.as_ref()), Expected::Missing] {
        let error = store.save(&lock, "{}", &outdated).await.unwrap_err().to_string();
        assert!(error.contains("dev: another program has changed its state"), "{error}");
        assert!(error.ends_with(" after this run had read it"), "{error}");
        let removed = store.remove(&lock, Backups::Kept, &outdated).await;
        assert!(matches!(removed, Err(StoreError::Replaced { .. })), "{removed:?}");
        let copies = store.copies(&stack("dev"), &[CopyKind::Previous]).await.unwrap();
        let restored = store.restore(&lock, &copies[0], "{}", &outdated).await;
        assert!(matches!(restored, Err(StoreError::Replaced { .. })), "{restored:?}");
    }
    assert_eq!(store.text(&stack("dev")).await.unwrap().as_deref(), Some(EMPTY));
    let saved = store.save(&lock, SECOND, &Expected::Revision(saved)).await.unwrap();
    store.save(&lock, EMPTY, &Expected::Revision(saved)).await.unwrap();
    store.unlock(lock).await.unwrap();
    let mut rename = store.begin_rename(&stack("dev"), &stack("other"), &holder(1)).await.unwrap();
    let renamed = store.rename(&mut rename, "{}", &Expected::Missing).await;
    assert!(matches!(renamed, Err(StoreError::Replaced { .. })), "{renamed:?}");
    store.finish_rename(rename).await.unwrap();
    assert_eq!(store.text(&stack("other")).await.unwrap(), None);
    let absent = store.lock(&stack("absent"), &holder(1)).await.unwrap();
    let removed = store.save(&absent, "{}", &Expected::unchanged(read.as_ref())).await;
    assert!(matches!(removed, Err(StoreError::Replaced { written: None, .. })), "{removed:?}");
    store.unlock(absent).await.unwrap();
}

async fn stack_with_a_mark_is_not_loaded(store: &StateStore) {
    let dev = stack("dev");
    let stored = store.text(&dev).await.unwrap();
    assert_eq!(store.mark(&dev).await.unwrap(), None);
    for direction in [MigrationDirection::From, MigrationDirection::To] {
        store.set_mark(&dev, Some(&mark(direction))).await.unwrap();
        assert_eq!(store.mark(&dev).await.unwrap(), Some(mark(direction)));
        let error = store.load(&dev).await.unwrap_err();
        assert!(matches!(&error, StoreError::Migrated { mark_location, .. } if !mark_location.is_empty()), "{error}");
        assert_eq!(store.read_checkpoint(&dev).await.unwrap().map(|kept| kept.into_text()), stored);
        assert!(store.load(&stack("a.b")).await.unwrap().is_some(), "the mark is that of one stack");
        let absent = stack("absent");
        store.set_mark(&absent, Some(&mark(direction))).await.unwrap();
        assert!(matches!(store.load(&absent).await, Err(StoreError::Migrated { .. })));
        store.set_mark(&absent, None).await.unwrap();
    }
    assert_eq!(store.list().await.unwrap(), [stack("a.b"), dev.clone()]);
    for _ in 0..2 {
        store.set_mark(&dev, None).await.unwrap();
    }
    assert_eq!(store.text(&dev).await.unwrap(), stored);
}

async fn contents_of_a_stack_are_added_by_their_times(store: &StateStore) {
    let copied = StackReference::new("copied", "dev").unwrap();
    let times = [1_788_242_409_123_456_789, 1_788_242_409_123_456_790];
    let times = times.map(|time| Timestamp::from_nanosecond(time).unwrap());
    let entries = times.map(|time| HistoryEntry { time, update: format!(r#"{{"endTime":"{time}"}}"#) });
    for _ in 0..2 {
        for entry in entries.iter().rev() {
            store.add_history_entry(&copied, entry).await.unwrap();
        }
    }
    assert_eq!(store.history_entries(&copied).await.unwrap(), entries);
    let kinds = [CopyKind::History, CopyKind::Backup, CopyKind::Retained, CopyKind::Previous];
    for kind in kinds {
        store.add_copy(&copied, kind, times[0], EMPTY).await.unwrap();
        store.add_copy(&copied, kind, times[0], SECOND).await.unwrap();
    }
    for kind in kinds {
        let copies = store.copies(&copied, &[kind]).await.unwrap();
        assert_eq!(copies.len(), 1, "{copies:?}");
        assert!(kind == CopyKind::Previous || copies[0].time == times[0], "{copies:?}");
        assert_eq!(store.read_copy(&copies[0]).await.unwrap(), SECOND, "{kind:?}");
    }
    assert_eq!(store.read_checkpoint(&copied).await.unwrap().map(|copied| copied.into_text()), None);
    let lock = store.lock(&copied, &holder(1)).await.unwrap();
    store.save(&lock, EMPTY, &Expected::Missing).await.unwrap();
    store.remove(&lock, Backups::Removed, &Expected::Any).await.unwrap();
    store.unlock(lock).await.unwrap();
}

async fn tags_are_replaced_as_a_whole(store: &StateStore) {
    assert_eq!(store.tags(&stack("dev")).await.unwrap(), Tags::new());
    for tags in [&[("owner", "ada"), ("a<b>", "x & y")][..], &[("owner", "bob")], &[]] {
        let tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        store.set_tags(&stack("dev"), &tags).await.unwrap();
        assert_eq!(store.tags(&stack("dev")).await.unwrap(), tags);
    }
}

async fn renamed_stack_keeps_its_history(store: &StateStore) {
    let (from, to) = (stack("dev"), StackReference::new("shore", "west").unwrap());
    let mut rename = store.begin_rename(&from, &stack("a.b"), &holder(1)).await.unwrap();
    let taken = store.rename(&mut rename, SECOND, &Expected::Any).await.unwrap_err();
    assert_eq!(taken.to_string(), "there is a stack organization/reef/a.b already");
    store.finish_rename(rename).await.unwrap();
    assert!(store.resume_rename(&from, &holder(1)).await.unwrap().is_none());
    let mut rename = store.begin_rename(&from, &to, &holder(1)).await.unwrap();
    for name in [&from, &to] {
        assert!(matches!(store.lock(name, &holder(2)).await, Err(StoreError::Locked { .. })));
    }
    store.rename(&mut rename, EMPTY, &Expected::Any).await.unwrap();
    store.finish_rename(rename).await.unwrap();
    for name in [&from, &to] {
        assert!(store.locks(name).await.unwrap().is_empty());
    }
    assert_eq!(store.list().await.unwrap(), [stack("a.b"), to.clone()]);
    let refused = store.text(&from).await.unwrap_err();
    let reason = "organization/reef/dev is now organization/shore/west: ada@reefbox renamed it at ";
    assert!(refused.to_string().starts_with(reason), "{refused}");
    assert!(store.refuse_taken_mark(&from).await.is_ok(), "the name is free");
    store.remove_renamed_mark(&from).await.unwrap();
    assert_eq!(store.text(&from).await.unwrap(), None);
    assert_eq!(store.text(&to).await.unwrap().as_deref(), Some(EMPTY));
    assert_eq!(store.history(&from).await.unwrap(), [""; 0]);
    assert_eq!(store.history(&to).await.unwrap(), ["{}"]);
}

async fn removed_stack_is_not_listed(store: &StateStore) {
    let west = StackReference::new("shore", "west").unwrap();
    store.set_tags(&west, &[("owner".to_owned(), "ada".to_owned())].into()).await.unwrap();
    let lock = store.lock(&west, &holder(1)).await.unwrap();
    store.remove(&lock, Backups::Kept, &Expected::Any).await.unwrap();
    store.unlock(lock).await.unwrap();
    assert_eq!(store.list().await.unwrap(), [stack("a.b")]);
    assert_eq!(store.tags(&west).await.unwrap(), Tags::new());
    assert_eq!(store.history(&west).await.unwrap(), [""; 0]);
    let lost = store.lock(&stack("a.b"), &holder(1)).await.unwrap();
    store.break_locks(&stack("a.b"), &store.locks(&stack("a.b")).await.unwrap()).await.unwrap();
    assert!(matches!(store.remove(&lost, Backups::Kept, &Expected::Any).await, Err(StoreError::LockLost { .. })));
    let mut lost = store.begin_rename(&stack("a.b"), &west, &holder(1)).await.unwrap();
    store.break_locks(&stack("a.b"), &store.locks(&stack("a.b")).await.unwrap()).await.unwrap();
    assert!(matches!(store.rename(&mut lost, EMPTY, &Expected::Any).await, Err(StoreError::LockLost { .. })));
    store.finish_rename(lost).await.unwrap();
}

async fn locks_of_different_stacks_are_independent(store: &StateStore) {
    let first = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    let second = store.lock(&stack("prod"), &holder(1)).await.unwrap();
    for lock in [first, second] {
        store.unlock(lock).await.unwrap();
    }
}
