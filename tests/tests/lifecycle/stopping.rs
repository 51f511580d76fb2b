//! Tests of stop and abort, of a provider that crashes, and of a full disk.

use engine::RegistrationResult;
use engine::events::Outcome;
use pulumi_proto::resource_id::ResourceId;
use state::{OperationKind, Snapshot};

use crate::program::{get, provider, thing};
use crate::run::{Ended, Run};
use crate::standing;
use crate::world::{Goes, Hold, World, calm};

/// Runs until a call is reached, stops the run, and lets the call end.
pub(crate) async fn stopped_at(run: Run, hold: Hold) -> Ended {
    let stop = run.signals().stop;
    let (ended, ()) = tokio::join!(run.go(), async {
        hold.reached().await;
        stop.cancel();
        calm().await;
        hold.release();
    });
    ended
}

/// Runs until a call is reached, and aborts the run.
pub(crate) async fn aborted_at(run: Run, hold: Hold) -> Ended {
    let signals = run.signals();
    let (ended, ()) = tokio::join!(run.go(), async {
        hold.reached().await;
        signals.stop.cancel();
        calm().await;
        signals.abort.cancel();
    });
    ended
}

#[tokio::test]
async fn a_creation_under_way_when_the_user_stops_is_recorded_and_nothing_follows() {
    let world = World::default();
    let hold = world.hold("create a");
    let run = world.up(&Snapshot::default(), &[thing("a"), thing("b").after("a")]);
    let ended = stopped_at(run, hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1"]);
    assert_eq!(ended.called("check b"), 0);
    assert_eq!(world.cancelled("default"), 1);
}

#[tokio::test]
async fn nothing_is_asked_after_a_check_during_which_the_user_stopped() {
    let (world, state) = standing(&[thing("a")]).await;
    let hold = world.hold("check a");
    let ended = stopped_at(world.up(&state, &[thing("a").with("v", "2")]), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.called("diff a"), 0);
}

#[tokio::test]
async fn a_root_that_waits_for_its_turn_asks_nothing_once_the_user_stopped() {
    let program = |d: &str| [thing("slow"), thing("a").with("d", d), thing("b").of("v", "a")];
    let (world, state) = standing(&program("1")).await;
    let hold = world.hold("check slow");
    let ended = stopped_at(world.up(&state, &program("2")), hold).await.expect(Outcome::Canceled);
    assert_eq!((ended.called("diff b"), ended.changes().len()), (0, 0));
}

#[tokio::test]
async fn stopped_between_its_delete_and_its_create_a_replacement_stays_owed() {
    let (world, state) = standing(&[thing("a").with("d", "1")]).await;
    let hold = world.hold("delete a-1");
    let program = [thing("a").with("d", "2")];
    let ended = stopped_at(world.up(&state, &program), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1 (owed)"]);
    let ended = world.up(&ended.state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a"]);
}

#[tokio::test]
async fn stopped_in_the_middle_of_its_deletes_a_run_is_cancelled_and_the_rest_stays() {
    let (world, state) = standing(&[thing("a"), thing("b").after("a")]).await;
    let hold = world.hold("delete b-1");
    let ended = stopped_at(world.destroy(&state), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1"]);
}

#[tokio::test]
async fn stopped_when_nothing_is_left_to_do_a_run_has_succeeded() {
    let (world, state) = standing(&[thing("a")]).await;
    let hold = world.hold("delete a-1");
    let ended = stopped_at(world.up(&state, &[thing("b")]), hold).await;
    // The provider entry, which no resource refers to any more, is deleted as well.
    assert_eq!(ended.entries(), ["b-1"]);
    assert_eq!(ended.outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn a_destroy_that_is_stopped_before_it_begins_is_no_success() {
    let (world, state) = standing(&[thing("a")]).await;
    let run = world.destroy(&state);
    run.signals().stop.cancel();
    let ended = run.go().await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1"]);
}

#[tokio::test]
async fn a_refresh_that_is_stopped_records_what_it_read_and_is_no_success() {
    let (world, state) = standing(&[thing("a"), thing("b").after("a")]).await;
    let hold = world.hold("read a-1");
    world.when("read a-1", Goes::Gone);
    let ended = stopped_at(world.refresh(&state).parallel(1), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["b-1"]);
    assert_eq!(ended.called("read b-1"), 0);
}

#[tokio::test]
async fn aborted_in_a_creation_it_stays_pending_and_every_instance_is_closed() {
    let world = World::default();
    let hold = world.hold("create a");
    let ended = aborted_at(world.up(&Snapshot::default(), &[thing("a")]), hold).await.expect(Outcome::Canceled);
    let pending = &ended.state.pending_operations;
    assert_eq!(pending.iter().map(|operation| operation.kind).collect::<Vec<_>>(), [OperationKind::Creating]);
    assert_eq!(world.closed(), world.boots("default"));
}

#[tokio::test]
async fn aborted_in_a_delete_before_a_replacement_the_entry_is_as_it_was() {
    let (world, state) = standing(&[thing("a").with("d", "1")]).await;
    let hold = world.hold("delete a-1");
    let ended = aborted_at(world.up(&state, &[thing("a").with("d", "2")]), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1"]);
    assert_eq!(ended.state.pending_operations[0].kind, OperationKind::Deleting);
}

#[tokio::test]
async fn aborted_in_a_check_nothing_is_pending() {
    let world = World::default();
    let hold = world.hold("check a");
    let ended = aborted_at(world.up(&Snapshot::default(), &[thing("a")]), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.state.pending_operations.len(), 0);
}

#[tokio::test]
async fn aborted_in_a_refresh_nothing_that_was_read_is_half_recorded() {
    let (world, state) = standing(&[thing("a"), thing("b").after("a")]).await;
    world.when("read a-1", Goes::Gone);
    let hold = world.hold("read b-1");
    let ended = aborted_at(world.refresh(&state), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1", "b-1"]);
}

#[tokio::test]
async fn aborted_while_a_provider_is_replaced_every_instance_is_closed() {
    let program = |k: &str| [provider("p").with("k", k), thing("a").by("p")];
    let (world, state) = standing(&program("1")).await;
    let hold = world.hold("create a");
    aborted_at(world.up(&state, &program("2")), hold).await.expect(Outcome::Canceled);
}

#[tokio::test]
async fn a_provider_that_dies_in_a_creation_fails_it_and_what_hangs_on_it_and_it_stays_pending() {
    let world = World::default();
    world.when("create a", Goes::Down);
    let program = [thing("a"), thing("b"), thing("c").after("a")];
    let ended = world.up(&Snapshot::default(), &program).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.result("a"), RegistrationResult::Failed);
    assert_eq!(ended.result("c"), RegistrationResult::Skipped);
    assert_eq!(ended.entries(), ["b-1"]);
    let pending = &ended.state.pending_operations;
    assert_eq!(pending.iter().map(|operation| operation.kind).collect::<Vec<_>>(), [OperationKind::Creating]);
}

#[tokio::test]
async fn a_provider_that_dies_in_a_check_ends_the_run() {
    let world = World::default();
    world.when("check a", Goes::Down);
    let ended = world.up(&Snapshot::default(), &[thing("a")]).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_written_down_is_not_done() {
    let world = World::default();
    let program = [thing("a"), thing("b").after("a")];
    let run = world.up(&Snapshot::default(), &program).disk_full_after(5);
    let ended = run.going_on().go().await.expect(Outcome::Failed);
    assert!(ended.changes().len() < 2, "{:?}", ended.changes());
}

#[tokio::test]
async fn nothing_is_read_that_depends_on_what_failed() {
    let world = World::default();
    world.add("theirs");
    world.when("create a", Goes::Wrong);
    let program = [thing("a"), get("b", "theirs").after("a")];
    let ended = world.up(&Snapshot::default(), &program).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.result("b"), RegistrationResult::Skipped);
    assert_eq!(ended.called("read theirs"), 0);
}

#[tokio::test]
async fn nothing_is_deleted_by_a_provider_during_whose_configuration_the_user_stopped() {
    let (world, state) = standing(&[provider("p"), thing("a").by("p")]).await;
    let hold = world.hold("configure p");
    let ended = stopped_at(world.destroy(&state), hold).await.expect(Outcome::Canceled);
    assert_eq!((ended.changes(), ended.entries()), (Vec::new(), vec!["p".to_owned(), "a-1".to_owned()]));
}

#[tokio::test]
async fn nor_is_anything_imported_by_it() {
    let (world, state) = standing(&[provider("p")]).await;
    world.add("a-7");
    let program = [provider("p"), thing("a").by("p").but(|goal| goal.import_id = ResourceId::new("a-7"))];
    let (hold, run) = (world.hold("configure p"), world.up(&state, &program));
    let stop = run.signals().stop;
    let (ended, ()) = tokio::join!(run.go(), async {
        hold.reached().await;
        // Registrations that do not need the provider have started.
        calm().await;
        stop.cancel();
        calm().await;
        hold.release();
    });
    let ended = ended.expect(Outcome::Canceled);
    assert!(ended.calls.iter().all(|call| call.verb != "read"), "{:?}", ended.calls);
    assert!(!ended.entries().contains(&"a-7".to_owned()), "{:?}", ended.entries());
}

#[tokio::test]
async fn nor_is_anything_deleted_by_it_before_a_replacement() {
    let (world, state) = standing(&[provider("p"), thing("a").by("p").with("d", "1")]).await;
    // The old instance is started only for the Delete.
    let program = [provider("q"), thing("a").by("q").with("d", "2")];
    let hold = world.hold("configure p");
    let ended = stopped_at(world.up(&state, &program), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.changes(), [""; 0]);
    assert!(ended.entries().contains(&"a-1".to_owned()), "{:?}", ended.entries());
}
