//! Random acts: a run of the user, with failures and signals during it.

use proptest::prelude::*;
use state::Snapshot;

use super::graph::{Graph, Temper, Version, importable, name};
use crate::run::Run;
use crate::world::{Goes, World};

/// Run of the user.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) does: Does,
    pub(super) preview: bool,
    scope: Reach,
    continue_on_error: bool,
    refresh: bool,
    /// True if the run also runs the program: the later version, unless it is an update.
    by_program: bool,
    parallel: usize,
    gives_up: bool,
    /// Changes to existing resources before the run, by index among them.
    meanwhile: Vec<(u8, Meanwhile)>,
    wrong: Vec<(Wrong, Goes)>,
    signal: Option<Signal>,
    /// Crashes, by index among the records. Each is played in a fork of the world.
    pub(super) deaths: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Up(Version),
    Refresh,
    Destroy,
}

/// Scope of the run, with spots by number.
#[derive(Clone, Debug)]
struct Reach {
    targets: Vec<u8>,
    excludes: Vec<u8>,
    dependents: bool,
    replace: Option<u8>,
    keep_protected: bool,
}

#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    /// The resource drifts in the property with this key.
    Drifts(&'static str),
    /// The resource disappears.
    Vanishes,
}

/// Call that fails: for a spot by number, or for a provider.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Resource(&'static str, u8),
    Provider(&'static str, &'static str),
}

/// Signal after a number of calls.
#[derive(Clone, Copy, Debug)]
enum Signal {
    Stop(usize),
    Abort(usize),
    /// Stop after a number of calls, and abort after a further number.
    Both(usize, usize),
}

fn wrong() -> impl Strategy<Value = (Wrong, Goes)> {
    let verb = prop_oneof![
        4 => Just("create"),
        4 => Just("update"),
        4 => Just("delete"),
        3 => Just("read"),
        1 => Just("check"),
        1 => Just("diff"),
        1 => Just("construct"),
    ];
    let provider = (
        prop_oneof![Just("boot"), Just("checkconfig"), Just("diffconfig"), Just("configure")],
        prop_oneof![Just("p"), Just("q"), Just("default")],
    );
    let which = prop_oneof![
        12 => (verb, any::<u8>()).prop_map(|(verb, spot)| Wrong::Resource(verb, spot)),
        1 => provider.prop_map(|(verb, name)| Wrong::Provider(verb, name)),
        1 => any::<u8>().prop_map(|spot| Wrong::Resource("part", spot)),
    ];
    let goes = prop_oneof![
        6 => Just(Goes::Wrong),
        4 => Just(Goes::HalfWell),
        2 => Just(Goes::Down),
        1 => Just(Goes::Lost),
        1 => Just(Goes::Gone),
    ];
    (which, goes)
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    let does = prop_oneof![
        9 => Just(Does::Up(Version::After)),
        3 => Just(Does::Up(Version::Before)),
        2 => Just(Does::Refresh),
        2 => Just(Does::Destroy),
    ];
    let few = |chance| {
        prop::option::weighted(chance, prop::collection::vec(any::<u8>(), 1..3)).prop_map(Option::unwrap_or_default)
    };
    let reach =
        (few(0.15), few(0.1), any::<bool>(), prop::option::weighted(0.07, any::<u8>()), prop::bool::weighted(0.2))
            .prop_map(|(targets, excludes, dependents, replace, keep_protected)| Reach {
                targets,
                excludes,
                dependents,
                replace,
                keep_protected,
            });
    let meanwhile = prop_oneof![
        2 => prop_oneof![Just("v"), Just("k"), Just("d")].prop_map(Meanwhile::Drifts),
        1 => Just(Meanwhile::Vanishes),
    ];
    let meanwhile = prop_oneof![
        3 => Just(Vec::new()).boxed(),
        1 => prop::collection::vec((any::<u8>(), meanwhile), 1..3).boxed(),
    ];
    let signal = prop_oneof![
        2 => (1..30usize).prop_map(Signal::Stop),
        2 => (1..30usize).prop_map(Signal::Abort),
        1 => (1..30usize, 1..5usize).prop_map(|(stop, abort)| Signal::Both(stop, abort)),
    ];
    let deaths = prop_oneof![
        3 => Just(Vec::new()).boxed(),
        1 => prop::collection::vec(any::<u8>(), 1..3).boxed(),
    ];
    (
        (does, prop::bool::weighted(0.1), reach),
        (any::<bool>(), prop::bool::weighted(0.25), prop::bool::weighted(0.3), prop_oneof![Just(1), Just(2), Just(16)]),
        (prop::bool::weighted(0.03), meanwhile, prop::collection::vec(wrong(), 0..3)),
        (prop::option::weighted(0.25, signal), deaths),
    )
        .prop_map(
            |(
                (does, preview, scope),
                (continue_on_error, refresh, by_program, parallel),
                (gives_up, meanwhile, wrong),
                (signal, deaths),
            )| Act {
                does,
                preview,
                scope,
                continue_on_error,
                refresh,
                by_program,
                parallel,
                gives_up,
                meanwhile,
                wrong,
                signal,
                deaths,
            },
        )
}

impl Act {
    /// Prepares the world for the act with this number, and returns the run.
    pub(super) fn stage(&self, act: usize, world: &World, state: &Snapshot, graph: &Graph) -> Run {
        importable(graph, act).for_each(|id| world.add(&id));
        self.disturb(world, graph);
        let program = |version| graph.program(version, Temper::Wild { act });
        let mut run = match self.does {
            Does::Up(version) => world.up(state, &program(version)),
            Does::Refresh if self.by_program => world.refresh_with(state, &program(Version::After)),
            Does::Destroy if self.by_program => world.destroy_with(state, &program(Version::After)),
            Does::Refresh => world.refresh(state),
            Does::Destroy => world.destroy(state),
        };
        run = run.parallel(self.parallel);
        let Reach { targets, excludes, dependents, replace, keep_protected } = &self.scope;
        let name = |number: &u8| name(usize::from(*number) % graph.spots.len());
        run = targets.iter().fold(run, |run, target| run.target(&format!("{}*", name(target))));
        run = excludes.iter().fold(run, |run, exclude| run.exclude(&name(exclude)));
        run = replace.iter().fold(run, |run, replace| run.replace(&format!("{}*", name(replace))));
        for (wanted, option) in [
            (self.preview, Run::preview as fn(Run) -> Run),
            (self.continue_on_error, Run::going_on),
            (self.refresh, Run::refreshing),
            (self.by_program, Run::with_program),
            (self.gives_up, Run::gives_up),
            (*dependents, Run::with_dependents),
            (*keep_protected && self.does == Does::Destroy, Run::keeping_protected),
        ] {
            run = if wanted { option(run) } else { run };
        }
        let signals = run.signals();
        match self.signal {
            Some(Signal::Stop(after)) => world.pull_after(after, signals.stop),
            Some(Signal::Abort(after)) => world.pull_after(after, signals.abort),
            Some(Signal::Both(stop, later)) => {
                world.pull_after(stop, signals.stop);
                world.pull_after(stop + later, signals.abort);
            }
            None => {}
        }
        run
    }

    fn disturb(&self, world: &World, graph: &Graph) {
        for (number, meanwhile) in &self.meanwhile {
            let there: Vec<String> = world
                .existing()
                .into_iter()
                .filter(|id| !id.starts_with("there-") && !id.starts_with("found-"))
                .collect();
            let Some(id) = there.get(usize::from(*number) % there.len().max(1)) else { continue };
            match meanwhile {
                Meanwhile::Drifts(key) => world.drift(id, [((*key).to_owned(), 7.0.into())].into()),
                Meanwhile::Vanishes => world.vanish(id),
            }
        }
        for (wrong, goes) in &self.wrong {
            match wrong {
                Wrong::Resource(verb, number) => {
                    let name = name(usize::from(*number) % graph.spots.len());
                    for name in [format!("{verb} {name}"), format!("{verb} {name}2"), format!("{verb} {name}-child")] {
                        world.when(&name, *goes);
                    }
                }
                Wrong::Provider(verb, name) => drop(world.when(&format!("{verb} {name}"), *goes)),
            }
        }
    }
}
