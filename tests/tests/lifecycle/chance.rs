//! Random graphs, programs, failures and signals, held to what every run owes.
//!
//! `LIFECYCLE_CASES` says how many; a failing case prints its seed and is kept in `proptest-regressions`.

use std::time::Duration;

use proptest::prelude::*;
use provisioner::deployment::StopSignals;
use provisioner::events::Outcome;
use provisioner::state::Snapshot;

use crate::program::{Thing, group, provider, remote, thing};
use crate::run::Ended;
use crate::world::{Goes, World};

const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

/// One resource in one program.
#[derive(Clone, Debug)]
struct Node {
    present: bool,
    /// Its input is this value under this key: `v` updates, `k` replaces, `d` replaces and deletes first.
    key: &'static str,
    value: u8,
    /// What it refers to, and how.
    edges: Vec<(usize, Edge)>,
    explicit_provider: bool,
    component: bool,
    /// A component that its plugin makes.
    remote: bool,
    within: Option<usize>,
    renamed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Edge {
    Input(&'static str),
    After,
    ReplaceWith,
}

fn node(index: usize) -> impl Strategy<Value = Node> {
    let edge = prop_oneof![
        3 => prop_oneof![Just("v1"), Just("k1"), Just("d1")].prop_map(Edge::Input),
        2 => Just(Edge::After),
        1 => Just(Edge::ReplaceWith),
    ];
    let edges = prop::collection::vec((0..index.max(1), edge), 0..3);
    (
        prop::bool::weighted(0.85),
        prop_oneof![Just("v"), Just("k"), Just("d")],
        0..3u8,
        edges,
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.3),
        prop::option::weighted(0.2, 0..index.max(1)),
        prop::bool::weighted(0.15),
    )
        .prop_map(move |(present, key, value, edges, explicit_provider, component, remote, within, renamed)| {
            Node {
                present,
                key,
                value,
                edges: if index == 0 { Vec::new() } else { edges },
                explicit_provider,
                component,
                remote,
                within: within.filter(|_| index > 0),
                renamed,
            }
        })
}

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    (0..NAMES.len()).map(node).collect::<Vec<_>>()
}

/// What may change from one program to the next: values, references, presence, names. What a name stands for does not.
fn changed(before: &[Node], after: &[Node]) -> Vec<Node> {
    let keep = |(old, new): (&Node, &Node)| Node { component: old.component, remote: old.remote, ..new.clone() };
    before.iter().zip(after).map(keep).collect()
}

/// A program. `rename` lets the marked ones have another name, with an alias.
fn program(nodes: &[Node], provider_value: u8, provider_key: &str, rename: bool) -> Vec<Thing> {
    let name = |index: usize| match nodes.get(index) {
        Some(node) if node.renamed && rename => format!("{}2", NAMES[index]),
        _ => NAMES[index].to_owned(),
    };
    let mut things = vec![provider("p").with(provider_key, f64::from(provider_value))];
    for (index, node) in nodes.iter().enumerate().filter(|(_, node)| node.present) {
        let mut made = match (node.component, node.remote) {
            (true, true) => remote(&name(index)),
            (true, false) => group(&name(index)),
            (false, _) => thing(&name(index)),
        };
        made = made.with(node.key, f64::from(node.value));
        for (target, edge) in node.edges.iter().filter(|(target, _)| nodes[*target].present) {
            made = match edge {
                Edge::Input(key) if !nodes[*target].component && !node.component => made.of(key, &name(*target)),
                Edge::ReplaceWith if !node.component => made.replace_with(&name(*target)),
                Edge::Input(_) | Edge::After | Edge::ReplaceWith => made.after(&name(*target)),
            };
        }
        if let Some(parent) = node.within.filter(|parent| nodes[*parent].present && nodes[*parent].component) {
            made = made.within(&name(parent));
        }
        if node.explicit_provider && !node.component {
            made = made.by("p");
        }
        if rename {
            made = made.was(NAMES[index]).was_free();
        }
        things.push(made);
    }
    things
}

#[derive(Clone)]
struct Case {
    before: Vec<Node>,
    after: Vec<Node>,
    provider: (u8, u8, &'static str),
    wrong: Vec<(&'static str, usize, Goes)>,
    going_on: bool,
    refreshing: bool,
    parallel: usize,
    stop_after: Option<usize>,
    abort_after: Option<usize>,
    target: Option<usize>,
    rename: bool,
    crash: bool,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (old, new, key) = self.provider;
        writeln!(f, "before: {:#?}", program(&self.before, old, key, false))?;
        writeln!(f, "after: {:#?}", program(&self.after, new, key, self.rename))?;
        let wrong = self.wrong.iter().map(|(verb, index, goes)| (verb, NAMES[*index], goes)).collect::<Vec<_>>();
        writeln!(f, "wrong: {wrong:?}, going on: {}, refreshing: {}", self.going_on, self.refreshing)?;
        writeln!(f, "parallel: {}, stop: {:?}, abort: {:?}", self.parallel, self.stop_after, self.abort_after)?;
        write!(f, "target: {:?}, crash: {}", self.target.map(|target| NAMES[target]), self.crash)
    }
}

fn case() -> impl Strategy<Value = Case> {
    let verb = prop_oneof![Just("create"), Just("update"), Just("delete"), Just("read")];
    let goes = prop_oneof![3 => Just(Goes::Wrong), 2 => Just(Goes::HalfWell), 1 => Just(Goes::Down)];
    let provider = (0..2u8, 0..2u8, prop_oneof![Just("v"), Just("k"), Just("d")]);
    let signal = || prop::option::weighted(0.15, 1..30usize);
    (
        (nodes(), nodes(), provider, prop::collection::vec((verb, 0..NAMES.len(), goes), 0..4)),
        (any::<bool>(), prop::bool::weighted(0.3), prop_oneof![Just(1), Just(2), Just(16)], signal(), signal()),
        (prop::option::weighted(0.15, 0..NAMES.len()), any::<bool>(), any::<bool>()),
    )
        .prop_map(
            |(
                (before, after, provider, wrong),
                (going_on, refreshing, parallel, stop_after, abort_after),
                (target, rename, crash),
            )| Case {
                after: changed(&before, &after),
                before,
                provider,
                wrong,
                going_on,
                refreshing,
                parallel,
                stop_after,
                abort_after,
                target,
                rename,
                crash,
            },
        )
}

/// How long a case may take that takes a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(30);

async fn play(case: &Case) {
    let world = World::default();
    world.be_restless();
    let (old_value, new_value, provider_key) = case.provider;
    let first = program(&case.before, old_value, provider_key, false);
    let second = program(&case.after, new_value, provider_key, case.rename);
    let stood = world.up(&Snapshot::default(), &first).go().await.expect(Outcome::Succeeded);

    let preview = world.up(&stood.state, &second).preview().go().await;
    preview.expect(Outcome::Succeeded);

    for (verb, index, goes) in &case.wrong {
        world.when(&format!("{verb} {}", NAMES[*index]), *goes);
    }
    let mut run = world.up(&stood.state, &second).parallel(case.parallel);
    if case.going_on {
        run = run.going_on();
    }
    if case.refreshing {
        run = run.refreshing();
    }
    if let Some(target) = case.target {
        run = run.target(NAMES[target]);
    }
    let StopSignals { stop, abort } = run.signals();
    if let Some(after) = case.stop_after {
        world.pull_after(after, stop);
    } else if let Some(after) = case.abort_after {
        world.pull_after(after, abort);
    }
    let disturbed = run.go().await;
    let aborted = case.stop_after.is_none() && case.abort_after.is_some();
    world.calm_down();

    // Whatever happened: the next run mends it, the one after has nothing to do, and nothing is left behind.
    let mended = settle(&world, &disturbed, &second, aborted).await;
    if !aborted {
        assert_eq!(owned(&mended), world.existing(), "what there is and what is recorded");
    }
    let destroyed = world.destroy(&mended.state).go().await.expect(Outcome::Succeeded);
    assert_eq!(destroyed.state.resources.len(), 0);

    if case.crash {
        for prefix in &disturbed.prefixes {
            let world = World::default();
            world.be_restless();
            world.forgive();
            let mut base = prefix.clone();
            base.pending_operations.clear();
            let ended = world.up(&base, &second).after_a_loss().go().await.expect(Outcome::Succeeded);
            let again = world.up(&ended.state, &second).after_a_loss().go().await.expect(Outcome::Succeeded);
            assert_eq!(again.changes(), [""; 0]);
        }
    }
}

async fn settle(world: &World, disturbed: &Ended, program: &[Thing], aborted: bool) -> Ended {
    let mut base = disturbed.state.clone();
    base.pending_operations.clear();
    if aborted {
        world.forgive();
    }
    let mended = world.up(&base, program).after_a_loss().go().await.expect(Outcome::Succeeded);
    let again = world.up(&mended.state, program).after_a_loss().go().await.expect(Outcome::Succeeded);
    assert_eq!(again.changes(), [""; 0], "a second run has nothing to do");
    again
}

fn owned(ended: &Ended) -> std::collections::BTreeSet<String> {
    let resources = ended.state.resources.iter().filter(|state| state.custom && !state.is_provider());
    resources.map(|state| state.id.clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("LIFECYCLE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300),
        max_shrink_iters: 2000,
        // A case that hangs takes its time: better a large one that is told than a small one that nobody waits for.
        max_shrink_time: 60_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_every_state_is_sound_and_the_next_run_mends_it(case in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let played = runtime.block_on(async { tokio::time::timeout(PATIENCE, play(&case)).await });
        prop_assert!(played.is_ok(), "it hangs");
    }
}
