//! Random graphs with a saved plan: the planned run does what an unplanned one does; the run of another program never does what the
//! plan lacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::PlanGuard;
use engine::events::Outcome;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use provisioner::plan::StepKinds;
use state::Snapshot;

use super::graph::{Graph, Restriction, Version, graph, readable};
use super::unprotected;
use crate::fake_cloud::FakeCloud;
use crate::plans::{assert_planned, enforcer, planned};

/// Default number of graphs, unless `LIFECYCLE_CASES` is set.
const CASES: u32 = 300;

/// Returns a cloud and the state of the first version of a graph.
async fn deployed(graph: &Graph) -> (FakeCloud, Snapshot) {
    let cloud = FakeCloud::default();
    cloud.vary_timing();
    cloud.allow_repeated_mutations();
    readable(graph).for_each(|id| cloud.add(&id));
    let program = graph.program(Version::Before, Restriction::AlwaysAccepted);
    let state = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Succeeded).state;
    readable(graph).for_each(|id| cloud.add(&id));
    (cloud, unprotected(&state))
}

/// Returns whether a run of the first version by a plan of the second one was refused.
async fn run_case(graph: &Graph) -> bool {
    let (cloud, state) = deployed(graph).await;
    let [before, after] =
        [Version::Before, Version::After].map(|version| graph.program(version, Restriction::AlwaysAccepted));
    let plan = planned(&cloud, &state, &after).await;
    let kinds = StepKinds::of(&plan.resources);
    let run = cloud.fork(&cloud.state()).up(&state, &after).guard(enforcer(plan.clone(), false));
    let ended = run.run().await.expect(Outcome::Succeeded);
    assert_planned(&kinds, &state, &ended);
    let run = cloud.fork(&cloud.state()).up(&state, &before);
    let guard = enforcer(plan, true);
    let ended = run.guard(Arc::clone(&guard) as Arc<dyn PlanGuard>).run().await;
    assert_planned(&kinds, &state, &ended);
    ended.outcome == Outcome::Failed
}

#[test]
fn planned_run_does_what_the_plan_has_and_nothing_else() {
    let cases = std::env::var("LIFECYCLE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let config =
        ProptestConfig { cases, failure_persistence: None, max_shrink_time: 60_000, ..ProptestConfig::default() };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let refused = AtomicUsize::new(0);
    let result = TestRunner::new_with_rng(config, random).run(&graph(), |mut graph| {
        // What the cloud returns for a resource that is taken over depends on the time.
        graph.has_names = false;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be created");
        if runtime.block_on(run_case(&graph)) {
            refused.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(refused.load(Ordering::Relaxed) > 0, "most graphs have two versions that differ");
}
