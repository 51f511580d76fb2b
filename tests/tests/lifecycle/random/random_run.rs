//! Random runs, with failures and signals.

use bridge::provider::LostReply;
use proptest::prelude::*;
use state::Snapshot;

use super::graph::{Graph, Restriction, Version, importable, name};
use crate::fake_cloud::{CallFailure, FakeCloud};
use crate::run::Run;

/// Run with random options, failures and signals.
#[derive(Clone, Debug)]
pub(super) struct RandomRun {
    pub(super) command: Command,
    pub(super) preview: bool,
    scope: ScopeOptions,
    continue_on_error: bool,
    refresh: bool,
    /// True if the run also runs the program: the later version, unless it is an update.
    run_program: bool,
    parallel: usize,
    program_fails: bool,
    /// True if each Read answers that the resource does not exist, and the approval of missing resources is refused.
    is_blind: bool,
    /// Changes to existing resources before the run, by index among them.
    external_changes: Vec<(u8, ExternalChange)>,
    failing_calls: Vec<(FailingCall, CallFailure)>,
    signal: Option<Signal>,
    /// Crashes, by index among the records. Each is run in a fork of the fake cloud.
    pub(super) crashes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Up(Version),
    Refresh,
    Destroy,
}

/// Scope of the run, with resources by number.
#[derive(Clone, Debug)]
struct ScopeOptions {
    targets: Vec<u8>,
    excludes: Vec<u8>,
    dependents: bool,
    replace: Option<u8>,
    keep_protected: bool,
}

#[derive(Clone, Copy, Debug)]
enum ExternalChange {
    /// The resource drifts in the property with this key.
    Drift(&'static str),
    /// The resource disappears.
    Disappearance,
}

/// Call that fails: for a resource by number, or for a provider.
#[derive(Clone, Copy, Debug)]
enum FailingCall {
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

fn failing_call() -> impl Strategy<Value = (FailingCall, CallFailure)> {
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
        12 => (verb, any::<u8>()).prop_map(|(verb, index)| FailingCall::Resource(verb, index)),
        1 => provider.prop_map(|(verb, name)| FailingCall::Provider(verb, name)),
        1 => any::<u8>().prop_map(|index| FailingCall::Resource("view", index)),
    ];
    let failure = prop_oneof![
        6 => Just(CallFailure::Error),
        4 => Just(CallFailure::Partial),
        2 => Just(CallFailure::Crash),
        1 => Just(CallFailure::Lost(LostReply::PluginExited)),
        2 => Just(CallFailure::Lost(LostReply::TooDeep)),
        1 => Just(CallFailure::Missing),
        2 => (1..9_usize, 0..3_u64).prop_map(|(attempts, seconds)| CallFailure::Busy { attempts, seconds }),
    ];
    (which, failure)
}

pub(super) fn random_run() -> impl Strategy<Value = RandomRun> {
    let command = prop_oneof![
        9 => Just(Command::Up(Version::After)),
        3 => Just(Command::Up(Version::Before)),
        2 => Just(Command::Refresh),
        2 => Just(Command::Destroy),
    ];
    let few = |chance| {
        prop::option::weighted(chance, prop::collection::vec(any::<u8>(), 1..3)).prop_map(Option::unwrap_or_default)
    };
    let scope =
        (few(0.15), few(0.1), any::<bool>(), prop::option::weighted(0.07, any::<u8>()), prop::bool::weighted(0.2))
            .prop_map(|(targets, excludes, dependents, replace, keep_protected)| ScopeOptions {
                targets,
                excludes,
                dependents,
                replace,
                keep_protected,
            });
    let external_change = prop_oneof![
        2 => prop_oneof![Just("v"), Just("k"), Just("d")].prop_map(ExternalChange::Drift),
        1 => Just(ExternalChange::Disappearance),
    ];
    let external_changes = prop_oneof![
        3 => Just(Vec::new()).boxed(),
        1 => prop::collection::vec((any::<u8>(), external_change), 1..3).boxed(),
    ];
    let signal = prop_oneof![
        2 => (1..30usize).prop_map(Signal::Stop),
        2 => (1..30usize).prop_map(Signal::Abort),
        1 => (1..30usize, 1..5usize).prop_map(|(stop, abort)| Signal::Both(stop, abort)),
    ];
    let crashes = prop_oneof![
        3 => Just(Vec::new()).boxed(),
        1 => prop::collection::vec(any::<u8>(), 1..3).boxed(),
    ];
    (
        (command, prop::bool::weighted(0.1), scope),
        (any::<bool>(), prop::bool::weighted(0.25), prop::bool::weighted(0.3), prop_oneof![Just(1), Just(2), Just(16)]),
        (
            prop::bool::weighted(0.03),
            prop::bool::weighted(0.05),
            external_changes,
            prop::collection::vec(failing_call(), 0..3),
        ),
        (prop::option::weighted(0.25, signal), crashes),
    )
        .prop_map(
            |(
                (command, preview, scope),
                (continue_on_error, refresh, run_program, parallel),
                (program_fails, is_blind, external_changes, failing_calls),
                (signal, crashes),
            )| RandomRun {
                command,
                preview,
                scope,
                continue_on_error,
                refresh,
                run_program,
                parallel,
                program_fails,
                is_blind,
                external_changes,
                failing_calls,
                signal,
                crashes,
            },
        )
}

impl RandomRun {
    /// Prepares the fake cloud for the run with this number, and returns the run.
    pub(super) fn prepare(&self, number: usize, cloud: &FakeCloud, state: &Snapshot, graph: &Graph) -> Run {
        importable(graph, number).for_each(|id| cloud.add(&id));
        self.inject_changes_and_failures(cloud, graph);
        let program = |version| graph.program(version, Restriction::Unrestricted { run: number });
        let mut run = match self.command {
            Command::Up(version) => cloud.up(state, &program(version)),
            Command::Refresh if self.run_program => cloud.refresh_with(state, &program(Version::After)),
            Command::Destroy if self.run_program => cloud.destroy_with(state, &program(Version::After)),
            Command::Refresh => cloud.refresh(state),
            Command::Destroy => cloud.destroy(state),
        };
        run = run.parallel(self.parallel);
        let ScopeOptions { targets, excludes, dependents, replace, keep_protected } = &self.scope;
        let name = |number: &u8| name(usize::from(*number) % graph.resources.len());
        run = targets.iter().fold(run, |run, target| run.target(&format!("{}*", name(target))));
        run = excludes.iter().fold(run, |run, exclude| run.exclude(&name(exclude)));
        run = replace.iter().fold(run, |run, replace| run.replace(&format!("{}*", name(replace))));
        for (is_set, option) in [
            (self.preview, Run::preview as fn(Run) -> Run),
            (self.continue_on_error, Run::continue_on_error),
            (self.refresh, Run::refresh_first),
            (self.run_program, Run::run_program),
            (self.program_fails, Run::fail_program),
            (*dependents, Run::with_dependents),
            (*keep_protected && self.command == Command::Destroy, Run::exclude_protected),
        ] {
            run = if is_set { option(run) } else { run };
        }
        // A run that reads each resource when the program registers it is approved before it starts.
        if self.is_blind && !self.run_program && !self.preview {
            cloud.blind();
            run = run.refuse_missing();
        }
        let signals = run.signals();
        match self.signal {
            Some(Signal::Stop(after)) => cloud.cancel_after(after, signals.stop),
            Some(Signal::Abort(after)) => cloud.cancel_after(after, signals.abort),
            Some(Signal::Both(stop, later)) => {
                cloud.cancel_after(stop, signals.stop);
                cloud.cancel_after(stop + later, signals.abort);
            }
            None => {}
        }
        run
    }

    /// Returns whether recorded resources are read or deleted with the providers of the program.
    pub(super) fn uses_providers_of_program(&self) -> bool {
        self.run_program && (self.refresh || !matches!(self.command, Command::Up(_)))
    }

    /// Returns whether calls fail as busy, and so may wait before they are repeated.
    pub(super) fn has_busy_calls(&self) -> bool {
        self.failing_calls.iter().any(|(_, failure)| matches!(failure, CallFailure::Busy { .. }))
    }

    fn inject_changes_and_failures(&self, cloud: &FakeCloud, graph: &Graph) {
        for (number, external_change) in &self.external_changes {
            let existing: Vec<String> = cloud
                .existing()
                .into_iter()
                .filter(|id| !id.starts_with("there-") && !id.starts_with("found-"))
                .collect();
            let Some(id) = existing.get(usize::from(*number) % existing.len().max(1)) else { continue };
            match external_change {
                ExternalChange::Drift(key) => cloud.drift(id, [((*key).to_owned(), 7.0.into())].into()),
                ExternalChange::Disappearance => cloud.vanish(id),
            }
        }
        for (failing_call, failure) in &self.failing_calls {
            match failing_call {
                FailingCall::Resource(verb, number) => {
                    let failure = match (*verb, *failure) {
                        ("create", CallFailure::Missing) => CallFailure::PartialWithoutId,
                        (_, failure) => failure,
                    };
                    let name = name(usize::from(*number) % graph.resources.len());
                    for name in [format!("{verb} {name}"), format!("{verb} {name}2"), format!("{verb} {name}-child")] {
                        cloud.fail(&name, failure);
                    }
                }
                FailingCall::Provider(verb, name) => drop(cloud.fail(&format!("{verb} {name}"), *failure)),
            }
        }
    }
}
