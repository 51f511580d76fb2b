//! Writes that a store receives later than they were sent, and clocks of machines that are off.

use state::format::UpdateKind;
use state::store::{Fault, MemoryObjects, Request, StoreError};
use state::{JournalMode, LockSettings, Snapshot, StackAccess, StateError};

use crate::fixture::{creation, resource, update};
use crate::store_journal::{CHECKPOINT, Machine, append, begin, segments, shown, started};

/// Holds the first write of an object of the journal on its way, or all later requests of the run as well.
fn hold_first(objects: &MemoryObjects, number: &'static str, is_stopped: bool) {
    let mut has_held = false;
    objects.set_faults(move |request: &Request| {
        let is_held = request.operation == "write" && request.key.ends_with(number) && !has_held;
        has_held |= is_held;
        match () {
            () if is_held => Fault::Held,
            () if has_held && is_stopped => Fault::NotReached,
            () => Fault::None,
        }
    });
}

/// A write that was held until the journal was sealed and removed meets the seal, and its run repeats it behind that.
#[tokio::test(start_paused = true)]
async fn held_write_of_a_stopped_run_meets_the_seal() {
    let objects = MemoryObjects::default();
    let of_run = objects.clone().with_own_faults();
    let (_machine, run, mut recorder) = started(&of_run).await;
    append(&mut recorder, &[begin(0, &resource("a"))]).await;
    hold_first(&of_run, "/00000001", true);
    let [_, end] = creation(0, 0, resource("a"));
    append(&mut recorder, &[end]).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let other = Machine::new(&objects).await;
    other.open().await.unwrap().release().await.unwrap();
    assert_eq!(segments(&objects).await, [""; 0]);
    assert_eq!(objects.deliver_held(), [""; 0], "the seal has the number");
    let state = other.open().await.unwrap();
    assert_eq!(shown(state.snapshot()), [vec![], vec!["a=".to_owned()]]);
    state.release().await.unwrap();
    // The run goes on.
    of_run.set_faults(|_| Fault::None);
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    drop((run, recorder));
    let state = other.open().await.unwrap();
    assert_eq!(shown(state.snapshot()), [vec![], vec!["a=a".to_owned()]]);
    state.release().await.unwrap();
}

/// A write that the run has repeated arrives again, after the object of the repeated one was removed.
#[tokio::test(start_paused = true)]
async fn held_write_that_arrives_before_the_seal_is_merged_already() {
    let objects = MemoryObjects::default();
    let of_run = objects.clone().with_own_faults();
    hold_first(&of_run, "/00000000", false);
    let (_machine, run, mut recorder) = started(&of_run).await;
    append(&mut recorder, &creation(0, 0, resource("a"))).await;
    append(&mut recorder, &[begin(1, &resource("b"))]).await;
    of_run.set_faults(|_| Fault::NotReached);
    let other = Machine::new(&objects).await;
    let state = other.open().await.unwrap();
    // The user has deleted `a`, and cleared `b`.
    state.close(Snapshot { resources: vec![resource("z")], ..Snapshot::default() }, Some(&update())).await.unwrap();
    assert_eq!(segments(&objects).await, [""; 0]);
    assert_eq!(objects.deliver_held().len(), 1);
    for _ in 0..2 {
        let state = other.open().await.unwrap();
        assert_eq!(shown(state.snapshot()), [vec!["z".to_owned()], vec![]]);
        assert!(state.late().is_empty());
        state.release().await.unwrap();
        assert_eq!(segments(&objects).await, [""; 0]);
    }
    drop((run, recorder));
}

/// A write that the run has repeated arrives again after the run has ended.
#[tokio::test(start_paused = true)]
async fn held_write_that_arrives_after_the_end_of_its_run_blocks_nothing() {
    let objects = MemoryObjects::default();
    hold_first(&objects, "/00000000", false);
    let (machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &creation(0, 0, resource("a"))).await;
    run.close(Snapshot { resources: vec![resource("a")], ..Snapshot::default() }, Some(&update())).await.unwrap();
    assert_eq!(objects.deliver_held().len(), 1);
    for _ in 0..2 {
        let state = machine.open().await.unwrap();
        assert_eq!(shown(state.snapshot()), [vec!["a".to_owned()], vec![]]);
        state.release().await.unwrap();
        assert_eq!(segments(&objects).await, [""; 0]);
    }
}

/// The seal of a run that could not save counts for nothing, also if the store never had a line of the journal.
#[tokio::test(start_paused = true)]
async fn journal_on_the_disk_alone_survives_a_recovery_that_could_not_save() {
    let objects = MemoryObjects::default();
    let machine = Machine::new(&objects).await;
    let machine =
        Machine { access: StackAccess { journal_mode: JournalMode::Local, ..machine.access.clone() }, ..machine };
    let run = machine.open().await.unwrap();
    let mut recorder = run.recorder(UpdateKind::Update);
    append(&mut recorder, &creation(0, 0, resource("a"))).await;
    drop((run, recorder));
    objects.set_faults(|request| {
        let is_save = request.operation == "write" && request.key == CHECKPOINT;
        if is_save { Fault::NotReached } else { Fault::None }
    });
    assert!(matches!(machine.open().await, Err(StateError::Unsaved { .. })));
    objects.set_faults(|_| Fault::None);
    machine.break_locks().await;
    let state = machine.open().await.unwrap();
    assert_eq!(shown(state.snapshot()), [vec!["a".to_owned()], vec![]]);
    state.release().await.unwrap();
}

/// Only the clock of the store counts: it is an hour before or behind that of the machines.
///
/// Shows: state.md#locks "after 120 seconds without a renewal, by the clock of the store"
#[tokio::test(start_paused = true)]
async fn clock_of_a_machine_that_is_off_by_an_hour_changes_no_takeover() {
    for hours in [-1, 1] {
        let objects = MemoryObjects::default();
        objects.move_clock(jiff::SignedDuration::from_hours(hours));
        let (machine, run, mut recorder) = started(&objects).await;
        append(&mut recorder, &[begin(0, &resource("a"))]).await;
        let other = Machine::new(&objects).await;
        let locks = LockSettings::default();
        let other = Machine { access: StackAccess { locks, ..other.access.clone() }, ..other };
        for seconds in [0, 110] {
            objects.move_clock(jiff::SignedDuration::from_secs(seconds));
            let refused = other.open().await.err().unwrap();
            assert!(matches!(refused, StateError::Store(StoreError::Locked { .. })), "{hours}: {refused}");
        }
        objects.move_clock(jiff::SignedDuration::from_secs(11));
        let state = other.open().await.unwrap();
        assert_eq!(shown(state.snapshot()), [vec![], vec!["a=".to_owned()]]);
        state.release().await.unwrap();
        let [_, end] = creation(0, 0, resource("a"));
        append(&mut recorder, &[end]).await;
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        drop((run, recorder, machine));
        let state = other.open().await.unwrap();
        assert_eq!(shown(state.snapshot()), [vec![], vec!["a=a".to_owned()]]);
        state.release().await.unwrap();
    }
}

/// Opens the stack on a machine that is lost after its first save.
async fn open_and_lose_after_save(objects: &MemoryObjects) {
    let of_machine = objects.clone().with_own_faults();
    let machine = Machine::new(&of_machine).await;
    machine.break_locks().await;
    let mut is_saved = false;
    of_machine.set_faults(move |request| {
        let is_lost = is_saved;
        is_saved |= request.operation == "write" && request.key == CHECKPOINT;
        if is_lost { Fault::NotReached } else { Fault::None }
    });
    assert!(machine.open().await.is_err());
}

/// The machine that takes a journal over is lost before it marks it as merged, and so is the next one, after it has adopted what
/// came late.
#[tokio::test(start_paused = true)]
async fn journal_whose_takers_are_lost_after_their_saves_contradicts_no_state() {
    let objects = MemoryObjects::default();
    let (machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &[begin(0, &resource("a")), begin(1, &resource("b"))]).await;
    open_and_lose_after_save(&objects).await;
    let [_, end] = creation(1, 1, resource("b"));
    append(&mut recorder, &[end]).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    drop((run, recorder));
    open_and_lose_after_save(&objects).await;
    let other = Machine::new(&objects).await;
    let locks = other.access.locks.clone();
    let machine = Machine { access: StackAccess { locks, ..machine.access.clone() }, ..machine };
    for machine in [other, machine] {
        machine.break_locks().await;
        let state = machine.open().await.unwrap();
        assert_eq!(shown(state.snapshot()), [vec![], vec!["a=".to_owned(), "b=b".to_owned()]]);
        state.release().await.unwrap();
        assert_eq!(segments(&objects).await, [""; 0]);
    }
}
