//! Leases of locks: locks of ended runs are taken over, and a run that has lost its lock begins nothing.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use state::store::{LockHolder, LockLease, StoreError};
use state::{LockSettings, Snapshot, StackAccess, StackState, StackView, StateError, StateRecorder as _};

use crate::fixture::{Fixture, holder, resource, update};

/// Settings that collect the locks which are taken over.
fn collecting(has_ended: fn(&state::store::LockInfo) -> bool) -> (LockSettings, Arc<Mutex<Vec<String>>>) {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&taken);
    let report = Arc::new(move |lock: &state::TakenOverLock| reported.lock().unwrap().push(lock.to_string()));
    (LockSettings { has_ended, report, ..LockSettings::default() }, taken)
}

fn leased(duration: Duration) -> LockHolder {
    LockHolder { lease: Some(LockLease::new(duration)), ..holder() }
}

/// Sets the time of the only lock of the stack back, as if its run had not renewed it since.
fn age_lock(fixture: &Fixture, age: i64) {
    let folder = fixture.folder.path().join(".pulumi/locks/organization/reef/dev");
    let mut entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let lock = entries.find(|path| path.extension().is_some_and(|extension| extension == "json")).unwrap();
    let age_in_future = Duration::from_secs(age.unsigned_abs());
    let now = SystemTime::now();
    let time = if age < 0 { now + age_in_future } else { now - age_in_future };
    std::fs::File::options().write(true).open(lock).unwrap().set_modified(time).unwrap();
}

/// Shows: state.md#locks "after 120 seconds without a renewal, by the clock of the store"
/// Shows: state.md#locks "at once, if its process ran on this host and has ended"
/// Shows: state.md#locks "has no lease and is never taken over"
#[tokio::test]
async fn lock_is_taken_over_after_twice_its_lease_or_once_its_process_has_ended() {
    let minute = Some(LockLease::new(Duration::from_secs(60)));
    let table = [
        (minute.clone(), 119, false, true, None),
        // The clock of a file system may be some milliseconds late.
        (minute.clone(), 122, false, true, Some("its run has not renewed it for 12")),
        (minute.clone(), 0, true, true, Some("its run has ended without releasing it")),
        // A lease from the future, as after the clock of the store was set back.
        (minute.clone(), -3600, false, true, None),
        (minute.clone(), 121, true, false, None),
        (Some(LockLease::new(Duration::from_secs(600))), 121, false, true, None),
        // Locks of other programs have no lease.
        (None, 100_000, true, true, None),
    ];
    for (lease, age, has_ended, takeover, expected) in table {
        let fixture = Fixture::new().await;
        let of_other = LockHolder { lease, ..holder() };
        let _lock = fixture.store.lock(&fixture.stack, &of_other).await.unwrap();
        age_lock(&fixture, age);
        let (settings, taken) = collecting(if has_ended { |_| true } else { |_| false });
        let locks = LockSettings { takeover, ..settings };
        let access = StackAccess { locks, ..fixture.access.clone() };
        let opened = StackState::open(access, &leased(LockLease::DURATION)).await;
        let taken = taken.lock().unwrap().join("");
        match expected {
            Some(reason) => {
                opened.unwrap().release().await.unwrap();
                assert!(taken.starts_with("took over the lock of organization/reef/dev: "), "{taken}");
                assert!(taken.contains(reason) && taken.contains("created by "), "{age}: {taken}");
                assert!(fixture.store.locks(&fixture.stack).await.unwrap().is_empty());
            }
            None => {
                let error = opened.err().unwrap();
                assert!(matches!(error, StateError::Store(StoreError::Locked { .. })), "{age}: {error}");
                assert_eq!(taken, "");
            }
        }
    }
}

#[tokio::test]
async fn each_command_takes_over_the_lock_of_an_ended_run() {
    for command in ["rename", "remove", "view"] {
        let fixture = Fixture::new().await;
        fixture.save(&[]).await;
        let _lock = fixture.store.lock(&fixture.stack, &leased(LockLease::DURATION)).await.unwrap();
        age_lock(&fixture, 200);
        let (locks, taken) = collecting(|_| false);
        let access = StackAccess { locks, ..fixture.access.clone() };
        let (own, west) = (leased(LockLease::DURATION), state::store::StackReference::new("reef", "west").unwrap());
        match command {
            "rename" => {
                let rename = state::rename_stack(&access, &own, &west).await.unwrap();
                access.store.finish_rename(rename).await.unwrap();
            }
            "remove" => state::remove_stack(&access, &own, true, state::store::Backups::Kept).await.unwrap(),
            _ => drop(state::StackView::open(&access).await.unwrap()),
        }
        let is_taken_over = command != "view";
        assert_eq!(taken.lock().unwrap().len(), usize::from(is_taken_over), "{command}");
        assert_eq!(fixture.store.locks(&fixture.stack).await.unwrap().is_empty(), is_taken_over, "{command}");
    }
}

#[tokio::test]
async fn run_whose_lock_was_taken_over_begins_nothing_and_saves_nothing() {
    let fixture = Fixture::new().await;
    fixture.save(&[]).await;
    let lease = Duration::from_millis(30);
    let access = fixture.access.clone();
    let state = StackState::open(access.clone(), &leased(lease)).await.unwrap();
    let lease = state.recorder(state::format::UpdateKind::Update).lease().unwrap();
    lease.confirm().await.unwrap();
    fixture.break_locks().await;
    access.locks.lost.cancelled().await;
    let error = lease.confirm().await.unwrap_err();
    assert!(matches!(error, StateError::Store(StoreError::LockLost { .. })), "{error}");
    assert!(fixture.store.locks(&fixture.stack).await.unwrap().is_empty(), "a removed lock is not created again");
    let error = state.release().await.unwrap_err();
    assert!(matches!(error, StateError::Store(StoreError::LockLost { .. })), "{error}");
}

#[tokio::test]
async fn loss_of_the_lock_after_the_save_leaves_a_complete_state() {
    let fixture = Fixture::new().await;
    let access = fixture.access.clone();
    let state = StackState::open(access.clone(), &leased(LockLease::DURATION)).await.unwrap();
    let snapshot = Snapshot { resources: vec![resource("a")], ..state.snapshot().clone() };
    // As the keeper of the lease does when it finds no lock.
    access.locks.lost.cancel();
    let error = state.close(snapshot, Some(&update())).await.unwrap_err();
    let StateError::NotReleased { source, .. } = &error else { panic!("{error}") };
    assert!(matches!(**source, StoreError::LockLost { .. }), "{source}");
    assert!(!access.has_journal().await.unwrap());
    assert_eq!(state::history(&access).await.unwrap().len(), 1);
    assert_eq!(StackView::open(&access).await.unwrap().snapshot.unwrap().resources.len(), 1);
}

#[tokio::test]
async fn lock_is_renewed_while_its_run_lasts() {
    let fixture = Fixture::new().await;
    let state = StackState::open(fixture.access.clone(), &leased(Duration::from_millis(30))).await.unwrap();
    let first = fixture.store.locks(&fixture.stack).await.unwrap().remove(0);
    loop {
        let renewed = fixture.store.locks(&fixture.stack).await.unwrap().remove(0);
        if renewed.renewed > first.renewed {
            break;
        }
        tokio::task::yield_now().await;
    }
    state.release().await.unwrap();
    assert!(!fixture.access.locks.lost.is_cancelled());
}
