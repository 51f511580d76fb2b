//! Seals of runs that are lost between their save and its mark, or before it.

use state::store::{Fault, MemoryObjects};
use state::{JournalMode, StackAccess, StateError};
use state::format::UpdateKind;

use crate::fixture::{creation, resource};
use crate::store_journal::{CHECKPOINT, Machine, append, begin, segments, shown, started};

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
