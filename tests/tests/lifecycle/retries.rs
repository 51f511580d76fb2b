//! Tests of calls that are repeated because the plugin asks for it (RetryInfo).

use std::time::Duration;

use engine::events::Outcome;
use state::{OperationKind, Snapshot};

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, VIEWS, yield_until_idle};
use crate::program::{ProgramResource, get, patient_get, provider, resource};
use crate::run::entry;

fn busy(attempts: usize) -> CallFailure {
    CallFailure::Busy { attempts, seconds: 1 }
}

/// Returns a resource whose calls have a time limit.
fn within(seconds: u64, name: &str) -> ProgramResource {
    resource(name).edit_goal(move |goal| {
        let limit = Some(Duration::from_secs(seconds));
        (goal.custom_timeouts.create, goal.custom_timeouts.delete) = (limit, limit);
    })
}

#[tokio::test(start_paused = true)]
async fn queries_are_repeated_without_a_declaration() {
    let (cloud, state) = deploy(&[provider("p"), resource("a").provider("p").input("v", "1")]).await;
    cloud.add("theirs");
    for call in ["configure p", "check a", "diff a", "read b"] {
        cloud.fail(call, busy(2));
    }
    let program = [provider("p"), resource("a").provider("p").input("v", "2"), get("b", "theirs").provider("p")];
    let ended = cloud.up(&state, &program).run_on_paused_clock().await.expect(Outcome::Succeeded);
    for call in ["configure p", "check a", "diff a", "read theirs"] {
        assert_eq!(ended.call_count(call), 3, "{call}: {:?}", ended.calls);
    }
    assert_eq!(ended.changes(), ["update a-1"]);
    let mut retries = ended.retries;
    retries.sort();
    let expected =
        ["Check a", "Configure p", "Diff a", "Read b"].map(|call| [format!("{call} 2"), format!("{call} 3")]);
    assert_eq!(retries, expected.concat());
}

/// Shows: engine.md#repeated-calls "Check, Diff, Read, Invoke, Configure | always"
/// Shows: engine.md#repeated-calls "Create, Update, Delete | with `retry: { mutations: true }`"
#[tokio::test(start_paused = true)]
async fn mutations_are_repeated_only_with_a_declaration() {
    let before = [resource("a").input("v", "1"), resource("b")];
    let after = [resource("a").input("v", "2"), resource("c")];
    for is_declared in [false, true] {
        let (cloud, state) = deploy(&before).await;
        for call in ["create c", "update a-1", "delete b-1"] {
            cloud.fail(call, busy(1));
        }
        if is_declared {
            cloud.allow_repeated_mutations();
        }
        let run = cloud.up(&state, &after).continue_on_error();
        let ended = run.run_on_paused_clock().await;
        let ended = ended.expect(if is_declared { Outcome::Succeeded } else { Outcome::Failed });
        let attempts = 1 + usize::from(is_declared);
        for call in ["create c", "update a-1", "delete b-1"] {
            assert_eq!(ended.call_count(call), attempts, "{call}: {:?}", ended.calls);
        }
        assert_eq!(ended.retries.len(), if is_declared { 3 } else { 0 }, "{:?}", ended.retries);
        assert_eq!(ended.state.pending_operations.len(), 0);
    }
}

/// Shows: engine.md#repeated-calls "All attempts are one operation in the journal"
#[tokio::test(start_paused = true)]
async fn failure_without_effect_is_one_operation_in_the_journal() {
    let cloud = FakeCloud::default();
    cloud.fail("create a", busy(3)).allow_repeated_mutations();
    let ended = cloud.up(&Snapshot::default(), &[resource("a")]).run_on_paused_clock().await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("create a"), ended.entries()), (4, vec!["a-1".to_owned()]));
    let is_pending = |state: &Snapshot| state.pending_operations.len();
    let mut pending: Vec<usize> = ended.crash_states.iter().map(is_pending).collect();
    pending.dedup();
    // The provider resource, and `a`: one operation each.
    assert_eq!(pending, [0, 1, 0, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn call_that_stays_busy_fails_after_five_repetitions_with_the_words_of_the_plugin() {
    let cloud = FakeCloud::default();
    cloud.fail("create a", busy(99)).allow_repeated_mutations();
    let ended = cloud.up(&Snapshot::default(), &[resource("a")]).run_on_paused_clock().await.expect(Outcome::Failed);
    assert_eq!((ended.call_count("create a"), ended.retries.len()), (6, 5));
    assert_eq!(ended.errors, ["a: Create is busy"]);
    assert_eq!((ended.entries(), ended.state.pending_operations.len()), (Vec::new(), 0));
}

#[tokio::test(start_paused = true)]
async fn attempts_end_with_the_time_limit_of_the_resource() {
    let seconds = |seconds| CallFailure::Busy { attempts: 99, seconds };
    let cloud = FakeCloud::default();
    cloud.fail("create a", seconds(100)).allow_repeated_mutations();
    let ended = cloud.up(&Snapshot::default(), &[within(250, "a")]).run_on_paused_clock().await;
    assert_eq!(ended.expect(Outcome::Failed).call_count("create a"), 3);
    cloud.fail("create a", seconds(365 * 24 * 60 * 60));
    let ended = cloud.up(&Snapshot::default(), &[within(250, "a")]).run_on_paused_clock().await;
    assert_eq!(ended.expect(Outcome::Failed).call_count("create a"), 1);
}

#[tokio::test(start_paused = true)]
async fn stop_ends_the_wait_and_records_the_failure_of_the_last_attempt() {
    let cloud = FakeCloud::default();
    cloud.fail("create a", CallFailure::Busy { attempts: 99, seconds: 200 }).allow_repeated_mutations();
    let run = cloud.up(&Snapshot::default(), &[resource("a"), resource("b").depends_on("a")]);
    let stop = run.signals().stop;
    let started = tokio::time::Instant::now();
    let (ended, ()) = tokio::join!(run.run_on_paused_clock(), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stop.cancel();
    });
    let ended = ended.expect(Outcome::Canceled);
    assert_eq!((started.elapsed().as_secs(), ended.call_count("create a")), (5, 1));
    assert_eq!((ended.errors.as_slice(), ended.call_count("check b")), (&["a: Create is busy".to_owned()][..], 0));
    assert_eq!((ended.entries(), ended.state.pending_operations.len()), (Vec::new(), 0));
}

#[tokio::test(start_paused = true)]
async fn abort_during_the_wait_leaves_one_pending_operation() {
    let cloud = FakeCloud::default();
    cloud.fail("create a", CallFailure::Busy { attempts: 99, seconds: 200 }).allow_repeated_mutations();
    let run = cloud.up(&Snapshot::default(), &[resource("a")]);
    let abort = run.signals().abort;
    let (ended, ()) = tokio::join!(run.run_on_paused_clock(), async {
        tokio::time::sleep(Duration::from_secs(500)).await;
        abort.cancel();
        yield_until_idle().await;
    });
    let ended = ended.expect(Outcome::Canceled);
    assert_eq!(ended.call_count("create a"), 3);
    let pending = &ended.state.pending_operations;
    assert_eq!(pending.iter().map(|operation| operation.kind).collect::<Vec<_>>(), [OperationKind::Creating]);
}

/// Shows: engine.md#repeated-calls "their views are reported once"
#[tokio::test(start_paused = true)]
async fn views_of_a_repeated_call_are_recorded_once() {
    let cloud = FakeCloud::default();
    cloud.fail("create a", busy(2)).allow_repeated_mutations();
    let program = [resource("a").input(VIEWS, "x,y")];
    let ended = cloud.up(&Snapshot::default(), &program).run_on_paused_clock().await.expect(Outcome::Succeeded);
    assert_eq!(ended.call_count("create a"), 3);
    let mut steps = ended.steps.clone();
    steps.retain(|step| step == "create x" || step == "create y");
    assert_eq!(steps, ["create x", "create y"]);
    assert_eq!(entry(&ended.state, "x").view_of.as_ref(), Some(&entry(&ended.state, "a").urn));
    // The root stack, `a` and its two views.
    assert_eq!(ended.counts.values().sum::<usize>(), 4, "{:?}", ended.counts);
}

/// Returns a read of a resource that something else creates within a minute.
fn awaited() -> ProgramResource {
    patient_get("b", "later", Duration::from_secs(60))
}

#[tokio::test(start_paused = true)]
async fn read_waits_for_a_resource_that_something_else_creates() {
    let cloud = FakeCloud::default();
    let run = cloud.up(&Snapshot::default(), &[awaited()]).run_on_paused_clock();
    let (ended, ()) = tokio::join!(run, async {
        tokio::time::sleep(Duration::from_millis(3_500)).await;
        cloud.add("later");
    });
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("read later"), ended.entries()), (5, vec!["later".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn read_of_a_resource_that_never_appears_fails_after_its_patience_and_at_once_in_a_preview() {
    let cloud = FakeCloud::default();
    let ended = cloud.up(&Snapshot::default(), &[awaited()]).run_on_paused_clock().await.expect(Outcome::Failed);
    assert_eq!(ended.call_count("read later"), 61);
    let ended = cloud.up(&Snapshot::default(), &[awaited()]).preview().run_on_paused_clock().await;
    assert_eq!(ended.expect(Outcome::Failed).call_count("read later"), 1);
}

#[tokio::test(start_paused = true)]
async fn stopped_run_does_not_wait_for_a_resource() {
    let cloud = FakeCloud::default();
    let run = cloud.up(&Snapshot::default(), &[awaited()]);
    let stop = run.signals().stop;
    let (ended, ()) = tokio::join!(run.run_on_paused_clock(), async {
        tokio::time::sleep(Duration::from_millis(3_500)).await;
        stop.cancel();
    });
    assert_eq!(ended.call_count("read later"), 5);
}
