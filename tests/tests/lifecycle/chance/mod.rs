//! Random graphs, programs, failures and signals. Each run is checked for the promises of all runs, and the run after
//! it must succeed.
//!
//! `LIFECYCLE_CASES` is the number of cases, `LIFECYCLE_SEED` selects them; a failing case is shrunk and printed.

mod act;
mod graph;

use std::sync::Arc;
use std::time::Duration;

use engine::events::Outcome;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use state::Snapshot;

use self::act::{Act, Does, act};
use self::graph::{Graph, Temper, Version, graph, readable};
use crate::program::Thing;
use crate::world::World;

/// Stack, with the acts that are played on it.
#[derive(Clone)]
struct Case {
    graph: Graph,
    acts: Vec<Act>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "before: {:#?}", self.graph.program(Version::Before, Temper::Wild { act: 0 }))?;
        writeln!(f, "after: {:#?}", self.graph.program(Version::After, Temper::Wild { act: 0 }))?;
        self.acts.iter().try_for_each(|act| writeln!(f, "{act:?}"))
    }
}

fn case() -> impl Strategy<Value = Case> {
    (graph(), prop_oneof![3 => Just(1), 1 => Just(2), 1 => Just(3)])
        .prop_flat_map(|(graph, many)| (Just(graph), prop::collection::vec(act(), many)))
        .prop_map(|(graph, acts)| Case { graph, acts })
}

/// Time limit of a case; a case usually takes a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(30);

async fn play(case: &Case) {
    let Case { graph, acts } = case;
    let world = World::default();
    world.be_restless();
    readable(graph).for_each(|id| world.add(&id));
    let first = graph.program(Version::Before, Temper::Calm);
    let mut state = world.up(&Snapshot::default(), &first).go().await.expect(Outcome::Succeeded).state;
    let mut last = first;
    for (number, act) in acts.iter().enumerate() {
        if let Does::Up(version) = act.does {
            last = graph.program(version, Temper::Calm);
            readable(graph).for_each(|id| world.add(&id));
            world.up(&unprotected(&state), &last).preview().go().await.expect(Outcome::Succeeded);
        }
        let ended = act.stage(number, &world, &state, graph).go().await;
        world.calm_down();
        for death in &act.deaths {
            let moment = usize::from(*death) % ended.prefixes.len();
            after_death(&world.fork(&ended.moments[moment]), &ended.prefixes[moment], graph, &last).await;
        }
        state = ended.state;
        world.reckon(&state);
    }
    settle(&world, &state, graph, &last).await;
}

/// Continues from the state after a crash, in a fork of the world.
async fn after_death(world: &World, state: &Snapshot, graph: &Graph, program: &[Thing]) {
    world.reckon(state);
    settle(world, state, graph, program).await;
}

/// Checks that the next run succeeds, that the run after it changes nothing, and that a destroy leaves no resource
/// behind.
async fn settle(world: &World, state: &Snapshot, graph: &Graph, program: &[Thing]) {
    readable(graph).for_each(|id| world.add(&id));
    let mended = world.up(&unprotected(state), program).go().await.expect(Outcome::Succeeded);
    let again = world.up(&mended.state, program).go().await.expect(Outcome::Succeeded);
    assert_eq!(again.changes(), [""; 0], "a second run has nothing to do");
    let destroyed = world.destroy(&again.state).go().await.expect(Outcome::Succeeded);
    assert_eq!(destroyed.state.resources.len(), 0);
    let at_large = world.at_large();
    let left: Vec<String> = world.existing().into_iter().filter(|id| !at_large.contains(id)).collect();
    assert_eq!(left, [""; 0], "left behind");
}

/// Returns a state without pending operations and protection, as a user leaves it who has checked the pending creations
/// and wants to delete everything.
fn unprotected(state: &Snapshot) -> Snapshot {
    let mut state = state.clone();
    state.pending_operations.clear();
    for entry in &mut state.resources {
        if entry.protect {
            Arc::make_mut(entry).protect = false;
        }
    }
    state
}

/// Number of independent streams of cases.
const STREAMS: u64 = 8;
/// Default number of cases, unless `LIFECYCLE_CASES` is set.
const CASES: u32 = 1000;

#[test]
fn whatever_happens_every_state_is_sound_and_the_next_run_mends_it() {
    let wanted = std::env::var("LIFECYCLE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let seed: u64 = std::env::var("LIFECYCLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64).min(STREAMS);
    // The cases do not depend on the number of processors.
    let some = |first: u64| {
        let mut streams = (first..STREAMS).step_by(usize::try_from(workers).expect("a few"));
        streams.try_for_each(|stream| try_cases(wanted.div_ceil(STREAMS as u32), [seed, stream]))
    };
    println!("LIFECYCLE_SEED={seed}");
    std::thread::scope(|scope| {
        let tries: Vec<_> = (0..workers).map(|first| scope.spawn(move || some(first))).collect();
        for tried in tries {
            if let Err(failure) = tried.join().expect("failures are caught") {
                panic!("{failure}");
            }
        }
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
    let tried = TestRunner::new_with_rng(config, random).run(&case(), |case| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        let played = runtime.block_on(async { tokio::time::timeout(PATIENCE, play(&case)).await });
        prop_assert!(played.is_ok(), "it hangs");
        Ok(())
    });
    tried.map_err(|failure| failure.to_string())
}
