//! Tests of stop and abort, of a provider that crashes, and of a full disk.

use engine::RegistrationResult;
use engine::events::Outcome;
use pulumi_proto::resource_id::ResourceId;
use state::{OperationKind, Snapshot};

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, Hold, yield_until_idle};
use crate::program::{get, provider, resource};
use crate::run::{EndedRun, Run};

/// Runs until a call is reached, stops the run, and lets the call end.
pub(crate) async fn stopped_at(run: Run, hold: Hold) -> EndedRun {
    let stop = run.signals().stop;
    let (ended, ()) = tokio::join!(run.run(), async {
        hold.reached().await;
        stop.cancel();
        yield_until_idle().await;
        hold.release();
    });
    ended
}

/// Runs until a call is reached, and aborts the run.
pub(crate) async fn aborted_at(run: Run, hold: Hold) -> EndedRun {
    let signals = run.signals();
    let (ended, ()) = tokio::join!(run.run(), async {
        hold.reached().await;
        signals.stop.cancel();
        yield_until_idle().await;
        signals.abort.cancel();
    });
    ended
}

/// Shows: engine.md#stop-and-abort "The engine makes no further calls for resources, asks the providers to finish
///   (Cancel), and records their replies."
#[tokio::test]
async fn stop_during_create_records_it_and_starts_nothing_else() {
    let cloud = FakeCloud::default();
    let hold = cloud.hold("create a");
    let run = cloud.up(&Snapshot::default(), &[resource("a"), resource("b").depends_on("a")]);
    let ended = stopped_at(run, hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1"]);
    assert_eq!(ended.call_count("check b"), 0);
    assert_eq!(cloud.cancelled("default"), 1);
}

#[tokio::test]
async fn stop_during_check_prevents_diff() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    let hold = cloud.hold("check a");
    let ended = stopped_at(cloud.up(&state, &[resource("a").input("v", "2")]), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.call_count("diff a"), 0);
}

#[tokio::test]
async fn stop_prevents_calls_of_waiting_delete_before_replace() {
    let program = |d: &str| [resource("slow"), resource("a").input("d", d), resource("b").input_from("v", "a")];
    let (cloud, state) = deploy(&program("1")).await;
    let hold = cloud.hold("check slow");
    let ended = stopped_at(cloud.up(&state, &program("2")), hold).await.expect(Outcome::Canceled);
    assert_eq!((ended.call_count("diff b"), ended.changes().len()), (0, 0));
}

#[tokio::test]
async fn stop_between_delete_and_create_leaves_pending_replacement() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1")]).await;
    let hold = cloud.hold("delete a-1");
    let program = [resource("a").input("d", "2")];
    let ended = stopped_at(cloud.up(&state, &program), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1 (pending replacement)"]);
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a"]);
}

#[tokio::test]
async fn stop_during_destroy_cancels_and_keeps_remaining_entries() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").depends_on("a")]).await;
    let hold = cloud.hold("delete b-1");
    let ended = stopped_at(cloud.destroy(&state), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1"]);
}

#[tokio::test]
async fn stop_during_last_step_succeeds() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    let hold = cloud.hold("delete a-1");
    let ended = stopped_at(cloud.up(&state, &[resource("b")]), hold).await;
    assert_eq!(ended.entries(), ["b-1"]);
    assert_eq!(ended.outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn destroy_stopped_before_start_is_cancelled() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    let run = cloud.destroy(&state);
    run.signals().stop.cancel();
    let ended = run.run().await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1"]);
}

#[tokio::test]
async fn stopped_refresh_records_completed_reads_and_is_cancelled() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").depends_on("a")]).await;
    let hold = cloud.hold("read a-1");
    cloud.fail("read a-1", CallFailure::Missing);
    let ended = stopped_at(cloud.refresh(&state).parallel(1), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["b-1"]);
    assert_eq!(ended.call_count("read b-1"), 0);
}

/// Shows: engine.md#stop-and-abort "The run returns at once, and the state lists the calls in progress as pending
///   operations."
/// Shows: engine.md#providers "closed exactly once, after its last call has returned. Only an abort does not wait for
///   that."
#[tokio::test]
async fn abort_during_create_leaves_pending_operation_and_closes_instances() {
    let cloud = FakeCloud::default();
    let hold = cloud.hold("create a");
    let ended = aborted_at(cloud.up(&Snapshot::default(), &[resource("a")]), hold).await.expect(Outcome::Canceled);
    let pending = &ended.state.pending_operations;
    assert_eq!(pending.iter().map(|operation| operation.kind).collect::<Vec<_>>(), [OperationKind::Creating]);
    assert_eq!(cloud.closed(), cloud.boot_count("default"));
}

#[tokio::test]
async fn abort_during_delete_before_replace_keeps_entry() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1")]).await;
    let hold = cloud.hold("delete a-1");
    let ended = aborted_at(cloud.up(&state, &[resource("a").input("d", "2")]), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1"]);
    assert_eq!(ended.state.pending_operations[0].kind, OperationKind::Deleting);
}

#[tokio::test]
async fn abort_during_check_leaves_no_pending_operation() {
    let cloud = FakeCloud::default();
    let hold = cloud.hold("check a");
    let ended = aborted_at(cloud.up(&Snapshot::default(), &[resource("a")]), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.state.pending_operations.len(), 0);
}

#[tokio::test]
async fn abort_during_refresh_records_nothing() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").depends_on("a")]).await;
    cloud.fail("read a-1", CallFailure::Missing);
    let hold = cloud.hold("read b-1");
    let ended = aborted_at(cloud.refresh(&state), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.entries(), ["a-1", "b-1"]);
}

#[tokio::test]
async fn abort_during_provider_replacement_closes_instances() {
    let program = |k: &str| [provider("p").input("k", k), resource("a").provider("p")];
    let (cloud, state) = deploy(&program("1")).await;
    let hold = cloud.hold("create a");
    aborted_at(cloud.up(&state, &program("2")), hold).await.expect(Outcome::Canceled);
}

/// Shows: engine.md#stop-and-abort "A create whose reply is lost, for instance because the plugin crashed, is also a
///   pending create."
#[tokio::test]
async fn provider_crash_during_create_skips_dependents_and_leaves_pending_operation() {
    let cloud = FakeCloud::default();
    cloud.fail("create a", CallFailure::Crash);
    let program = [resource("a"), resource("b"), resource("c").depends_on("a")];
    let ended = cloud.up(&Snapshot::default(), &program).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.result("a"), RegistrationResult::Failed);
    assert_eq!(ended.result("c"), RegistrationResult::Skipped);
    assert_eq!(ended.entries(), ["b-1"]);
    let pending = &ended.state.pending_operations;
    assert_eq!(pending.iter().map(|operation| operation.kind).collect::<Vec<_>>(), [OperationKind::Creating]);
}

#[tokio::test]
async fn provider_crash_during_check_ends_the_run() {
    let cloud = FakeCloud::default();
    cloud.fail("check a", CallFailure::Crash);
    let ended =
        cloud.up(&Snapshot::default(), &[resource("a")]).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), [""; 0]);
}

/// Shows: engine.md#failures "The call that was to follow is not made."
#[tokio::test]
async fn failed_record_prevents_further_calls() {
    let cloud = FakeCloud::default();
    let program = [resource("a"), resource("b").depends_on("a")];
    let run = cloud.up(&Snapshot::default(), &program).fail_records_after(5);
    let ended = run.continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["create a"]);
}

#[tokio::test]
async fn read_depending_on_failed_resource_is_skipped() {
    let cloud = FakeCloud::default();
    cloud.add("theirs");
    cloud.fail("create a", CallFailure::Error);
    let program = [resource("a"), get("b", "theirs").depends_on("a")];
    let ended = cloud.up(&Snapshot::default(), &program).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.result("b"), RegistrationResult::Skipped);
    assert_eq!(ended.call_count("read theirs"), 0);
}

#[tokio::test]
async fn stop_during_configure_prevents_deletes() {
    let (cloud, state) = deploy(&[provider("p"), resource("a").provider("p")]).await;
    let hold = cloud.hold("configure p");
    let ended = stopped_at(cloud.destroy(&state), hold).await.expect(Outcome::Canceled);
    assert_eq!((ended.changes(), ended.entries()), (Vec::new(), vec!["p".to_owned(), "a-1".to_owned()]));
}

#[tokio::test]
async fn stop_during_configure_prevents_imports() {
    let (cloud, state) = deploy(&[provider("p")]).await;
    cloud.add("a-7");
    let program =
        [provider("p"), resource("a").provider("p").edit_goal(|goal| goal.import_id = ResourceId::new("a-7"))];
    let (hold, run) = (cloud.hold("configure p"), cloud.up(&state, &program));
    let stop = run.signals().stop;
    let (ended, ()) = tokio::join!(run.run(), async {
        hold.reached().await;
        // Registrations that do not need the provider have started.
        yield_until_idle().await;
        stop.cancel();
        yield_until_idle().await;
        hold.release();
    });
    let ended = ended.expect(Outcome::Canceled);
    assert!(ended.calls.iter().all(|call| call.verb != "read"), "{:?}", ended.calls);
    assert!(!ended.entries().contains(&"a-7".to_owned()), "{:?}", ended.entries());
}

#[tokio::test]
async fn stop_during_configure_prevents_delete_before_replace() {
    let (cloud, state) = deploy(&[provider("p"), resource("a").provider("p").input("d", "1")]).await;
    // The old instance is started only for the Delete.
    let program = [provider("q"), resource("a").provider("q").input("d", "2")];
    let hold = cloud.hold("configure p");
    let ended = stopped_at(cloud.up(&state, &program), hold).await.expect(Outcome::Canceled);
    assert_eq!(ended.changes(), [""; 0]);
    assert!(ended.entries().contains(&"a-1".to_owned()), "{:?}", ended.entries());
}
