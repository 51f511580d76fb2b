//! Random graphs, programs, failures and signals. Each run is checked for the invariants of all runs, and the next
//! run must succeed.
//!
//! `LIFECYCLE_CASES` is the number of cases, `LIFECYCLE_SEED` selects them; a failing case is shrunk and printed.

mod graph;
mod random_plans;
mod random_run;

use std::sync::Arc;
use std::time::Duration;

use engine::events::Outcome;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use state::{PendingOperation, Snapshot};

use self::graph::{Graph, Restriction, Version, graph, readable};
use self::random_run::{Command, RandomRun, random_run};
use crate::fake_cloud::FakeCloud;
use crate::program::ProgramResource;

/// Graph of a stack, and runs that deploy it.
#[derive(Clone)]
struct Case {
    graph: Graph,
    runs: Vec<RandomRun>,
    /// True if the provider returns plain values instead of secrets.
    returns_plain_values: bool,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "before: {:#?}", self.graph.program(Version::Before, Restriction::Unrestricted { run: 0 }))?;
        writeln!(f, "after: {:#?}", self.graph.program(Version::After, Restriction::Unrestricted { run: 0 }))?;
        writeln!(f, "returns plain values: {}", self.returns_plain_values)?;
        self.runs.iter().try_for_each(|random_run| writeln!(f, "{random_run:?}"))
    }
}

fn case() -> impl Strategy<Value = Case> {
    (graph(), prop_oneof![3 => Just(1), 1 => Just(2), 1 => Just(3)])
        .prop_flat_map(|(graph, many)| (Just(graph), prop::collection::vec(random_run(), many), any::<bool>()))
        .prop_map(|(mut graph, runs, returns_plain_values)| {
            // Such a run records the provider of the program for the object that it has found in another account, so the
            // engine takes another entry of the object for another object.
            graph.has_names = !(runs.iter().any(RandomRun::uses_providers_of_program) && graph.uses_providers());
            Case { graph, runs, returns_plain_values }
        })
}

/// Time limit of a case; a case usually takes a tenth of a second.
const CASE_TIME_LIMIT: Duration = Duration::from_secs(30);
/// Time limit of a case with busy calls, on a paused clock.
const BUSY_CASE_TIME_LIMIT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

async fn run_case(case: &Case) {
    let Case { graph, runs, returns_plain_values } = case;
    let cloud = FakeCloud::default();
    cloud.vary_timing();
    cloud.allow_repeated_mutations();
    // Such a run reads and deletes with the providers of the program (docs/engine.md), as in Pulumi: it does not find an
    // object in the account from which the program moves it.
    if runs.iter().any(RandomRun::uses_providers_of_program) {
        cloud.use_global_ids();
    }
    if *returns_plain_values {
        cloud.return_plain_values();
    }
    readable(graph).for_each(|id| cloud.add(&id));
    let first = graph.program(Version::Before, Restriction::AlwaysAccepted);
    let mut state = cloud.up(&Snapshot::default(), &first).run().await.expect(Outcome::Succeeded).state;
    let mut last = first;
    for (number, random_run) in runs.iter().enumerate() {
        if let Command::Up(version) = random_run.command {
            last = graph.program(version, Restriction::AlwaysAccepted);
            readable(graph).for_each(|id| cloud.add(&id));
            cloud.up(&unprotected(&state), &last).preview().run().await.expect(Outcome::Succeeded);
        }
        let run = random_run.prepare(number, &cloud, &state, graph);
        let ended = if random_run.has_busy_calls() { run.run_on_paused_clock().await } else { run.run().await };
        cloud.clear_failures_and_signals();
        for crash in &random_run.crashes {
            let index = usize::from(*crash) % ended.crash_states.len();
            continue_after_crash(&cloud.fork(&ended.cloud_states[index]), &ended.crash_states[index], graph, &last)
                .await;
        }
        state = ended.state;
        cloud.account_for_interruption(&state);
    }
    assert_next_runs_succeed(&cloud, &state, graph, &last).await;
}

/// Continues from the state after a crash, in a fork of the fake cloud.
async fn continue_after_crash(cloud: &FakeCloud, state: &Snapshot, graph: &Graph, program: &[ProgramResource]) {
    cloud.account_for_interruption(state);
    assert_next_runs_succeed(cloud, state, graph, program).await;
}

/// Checks that the next run succeeds, that the run after it makes no changes, and that a destroy deletes all
/// resources.
async fn assert_next_runs_succeed(cloud: &FakeCloud, state: &Snapshot, graph: &Graph, program: &[ProgramResource]) {
    readable(graph).for_each(|id| cloud.add(&id));
    let mut recovered = cloud.up(&unprotected(state), program).run().await;
    // A Create that meets a Delete of the object that it takes over asks for another run.
    let asks_for_another_run = |error: &String| error.ends_with("run the command again to create it");
    if recovered.outcome == Outcome::Failed && recovered.errors.iter().all(asks_for_another_run) {
        recovered = cloud.up(&unprotected(&recovered.state), program).run().await;
    }
    let recovered = recovered.expect(Outcome::Succeeded);
    let again = cloud.up(&recovered.state, program).run().await.expect(Outcome::Succeeded);
    assert_eq!(again.changes(), [""; 0], "a second run makes no changes");
    let destroyed = cloud.destroy(&again.state).run().await.expect(Outcome::Succeeded);
    assert_eq!(destroyed.state.resources.len(), 0);
    assert_eq!(cloud.managed(), [""; 0], "undeleted resources");
}

/// Returns a state without protection, and without pending operations except creates whose id is known, as after `sc
/// state unprotect` and a check of the other pending creates by the user.
fn unprotected(state: &Snapshot) -> Snapshot {
    let mut state = state.clone();
    state.pending_operations.retain(PendingOperation::is_create_with_id);
    let pending = state.pending_operations.iter_mut().map(|operation| &mut operation.resource);
    for entry in state.resources.iter_mut().chain(pending).filter(|entry| entry.protect) {
        Arc::make_mut(entry).protect = false;
    }
    state
}

/// Number of independent streams of cases.
const STREAMS: u64 = 8;
/// Default number of cases, unless `LIFECYCLE_CASES` is set.
const CASES: u32 = 1000;

/// Shows: engine.md#stop-and-abort "Every prefix of the journal is a valid state."
#[test]
fn random_runs_keep_state_valid_and_next_run_recovers() {
    let cases = std::env::var("LIFECYCLE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let seed: u64 = std::env::var("LIFECYCLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64).min(STREAMS);
    // The cases do not depend on the number of processors.
    let run_streams = |first: u64| {
        let mut streams = (first..STREAMS).step_by(usize::try_from(workers).expect("the number of workers is small"));
        streams.try_for_each(|stream| try_cases(cases.div_ceil(STREAMS as u32), [seed, stream]))
    };
    println!("LIFECYCLE_SEED={seed}");
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|first| scope.spawn(move || run_streams(first))).collect();
        let ends = threads.into_iter().map(|thread| thread.join().expect("failures are caught"));
        let failures: Vec<String> = ends.filter_map(Result::err).collect();
        assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    });
}

fn try_cases(cases: u32, seed: [u64; 2]) -> Result<(), String> {
    let config = ProptestConfig {
        cases,
        max_shrink_iters: 20_000,
        // Shrinking a hanging case takes long: a large failing case in time is better than a small one too late.
        max_shrink_time: 120_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let bytes: Vec<u8> = seed.iter().chain(&[0, 0]).flat_map(|part| part.to_le_bytes()).collect();
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let result = TestRunner::new_with_rng(config, random).run(&case(), |case| {
        let is_busy = case.runs.iter().any(RandomRun::has_busy_calls);
        let limit = if is_busy { BUSY_CASE_TIME_LIMIT } else { CASE_TIME_LIMIT };
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(is_busy).build().expect("the runtime can be created");
        let finished = runtime.block_on(async { tokio::time::timeout(limit, run_case(&case)).await });
        prop_assert!(finished.is_ok(), "the case hangs");
        Ok(())
    });
    result.map_err(|failure| failure.to_string())
}
