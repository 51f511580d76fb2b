//! Recorded steps with two outcomes each: that of Pulumi's engine, and that of our engine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use serde_json::Value;
use tests::compare::{ComparisonInput, Scope, compare};
use tests::exceptions::{ExceptionKind, Exceptions};
use tests::program_runner::Concurrency;
use tests::rec::Call;
use tests::scenario::{Op, Outcome, Scenario};
use tests::step_runner;

/// Recordings that rows refer to, with the exceptions listed for them.
struct Recordings {
    scenarios: BTreeMap<String, Scenario>,
    exceptions: Exceptions,
    /// Results of replayed steps. Each step is replayed once, even if several rows refer to it.
    replays: Mutex<BTreeMap<(String, usize), Arc<Once>>>,
}

type Once = OnceLock<Arc<Replay>>;

/// Result of replaying a step.
struct Replay {
    /// Outcome of our engine; `None` if the step is a listed exception, or no run.
    ours: Option<Outcome>,
    differences: Vec<String>,
}

static RECORDINGS: LazyLock<Recordings> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/engine");
    let read = |file: &str| Scenario::read(&folder.join(file)).unwrap_or_else(|error| panic!("{error}"));
    let scenarios = ["situations.jsonl", "components.jsonl"].into_iter().flat_map(read);
    Recordings {
        scenarios: scenarios.map(|scenario| (scenario.name.clone(), scenario)).collect(),
        exceptions: Exceptions::read(&[folder]).unwrap_or_else(|error| panic!("{error}")),
        replays: Mutex::default(),
    }
});

/// Replays steps and compares the outcomes with the recording: `create/0-4, update/2, dbr-chain` (all of its steps).
///
/// Steps that `exceptions.tsv` calls different are not compared.
#[track_caller]
pub(crate) fn assert_replays(steps: &str) {
    for text in steps.split(',').map(str::trim) {
        let (scenario, range) = find(text);
        for index in range {
            let replay = replay(scenario, index);
            assert!(replay.differences.is_empty(), "{}/{index}: {:#?}", scenario.name, replay.differences);
        }
    }
}

/// Replays one step, and checks both the recorded outcome and that of our engine. Of a listed exception only the
/// recorded outcome is checked.
#[track_caller]
pub(crate) fn check_step(step: &str, check: impl Fn(&StepOutcome<'_>)) {
    assert_replays(step);
    let (scenario, mut range) = find(step);
    let (Some(index), None) = (range.next(), range.next()) else { panic!("{step} is not exactly one step") };
    check(&StepOutcome { step, engine: "Pulumi's engine", outcome: &scenario.steps[index].expect });
    if let Some(ours) = &replay(scenario, index).ours {
        check(&StepOutcome { step, engine: "our engine", outcome: ours });
    }
}

/// Finds the steps that a text such as `create/0-4` names.
#[track_caller]
fn find(text: &str) -> (&'static Scenario, std::ops::RangeInclusive<usize>) {
    let (name, steps) = text.split_once('/').map_or((text, None), |(name, steps)| (name, Some(steps)));
    let scenario = RECORDINGS.scenarios.get(name).unwrap_or_else(|| panic!("{name} is not recorded"));
    let number = |text: &str| text.parse::<usize>().unwrap_or_else(|_| panic!("{text:?} is not a step"));
    let range = match steps.map(|steps| steps.split_once('-').unwrap_or((steps, steps))) {
        Some((first, last)) => number(first)..=number(last),
        None => 0..=scenario.steps.len() - 1,
    };
    assert!(range.end() < &scenario.steps.len(), "{text}: there is no such step");
    (scenario, range)
}

fn replay(scenario: &'static Scenario, index: usize) -> Arc<Replay> {
    let mut all = RECORDINGS.replays.lock().unwrap_or_else(PoisonError::into_inner);
    let cell = Arc::clone(all.entry((scenario.name.clone(), index)).or_default());
    drop(all);
    let replay = cell.get_or_init(|| {
        let kind = RECORDINGS.exceptions.get(&scenario.name, index).map(|(kind, _)| kind);
        if kind == Some(ExceptionKind::Different) || scenario.steps[index].op == Op::Taint {
            return Arc::new(Replay { ours: None, differences: Vec::new() });
        }
        let scope = if kind.is_some() { Scope::MoreSecrets } else { Scope::All };
        let sequential = run_with(scenario, index, Concurrency::Sequential, scope);
        if sequential.differences.is_empty() || scenario.steps[index].expect.ok {
            return Arc::new(sequential);
        }
        // Concurrency decides which of several failures comes first.
        Arc::new(run_with(scenario, index, Concurrency::Concurrent, scope))
    });
    Arc::clone(replay)
}

fn run_with(scenario: &Scenario, index: usize, concurrency: Concurrency, scope: Scope) -> Replay {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    let observed = match runtime.block_on(step_runner::run_step(scenario, index, concurrency)) {
        Ok(observed) => observed,
        Err(reason) => return Replay { ours: None, differences: vec![reason] },
    };
    let base = scenario.base(index);
    let differences = compare(&ComparisonInput { step: &scenario.steps[index], base: &base, scope }, &observed.outcome);
    let differences = observed.violations.into_iter().chain(differences.iter().map(ToString::to_string)).collect();
    Replay { ours: Some(observed.outcome), differences }
}

/// Outcome of one step by one of the two engines. Resources are identified by their names.
pub(crate) struct StepOutcome<'a> {
    step: &'a str,
    engine: &'static str,
    outcome: &'a Outcome,
}

impl StepOutcome<'_> {
    /// Returns the calls about a resource, in order: `Check → Diff → Check° → Create(preview)`. `Check°` has no olds; a
    /// call with `(fails)` returned an error.
    pub(crate) fn calls(&self, name: &str) -> String {
        let calls = self.outcome.calls.iter().filter(|call| name_of(call) == name);
        calls.map(call_text).collect::<Vec<_>>().join(" → ")
    }

    /// Returns all calls of some kinds, in order: `Delete b → Delete a`.
    pub(crate) fn order(&self, rpcs: &[&str]) -> String {
        let calls = self.outcome.calls.iter().filter(|call| rpcs.contains(&call.rpc.as_str()));
        calls.map(|call| format!("{} {}", call_text(call), name_of(call))).collect::<Vec<_>>().join(" → ")
    }

    /// Returns the first request of a kind about a resource.
    #[track_caller]
    pub(crate) fn request(&self, rpc: &str, name: &str) -> &Value {
        self.requests(rpc, name).first().copied().unwrap_or_else(|| panic!("there is no {rpc} about {name}"))
    }

    /// Returns all requests of a kind about a resource.
    pub(crate) fn requests(&self, rpc: &str, name: &str) -> Vec<&Value> {
        let calls = self.outcome.calls.iter().filter(|call| call.rpc == rpc && name_of(call) == name);
        calls.map(|call| &call.request).collect()
    }

    /// Returns the steps about a resource: `create-replacement, replace, delete-replaced`.
    pub(crate) fn steps(&self, name: &str) -> String {
        let steps = self.outcome.steps.iter().filter(|(_, urn)| last_part(urn) == name);
        steps.map(|(op, _)| op.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the recorded entries of a name at the end: `a-2, a-1 (delete)`; empty if there are none.
    pub(crate) fn recorded(&self, name: &str) -> String {
        let entry = |entry: &&Value| {
            let mark = match (&entry["delete"], &entry["pendingReplacement"]) {
                (Value::Bool(true), _) => " (delete)",
                (_, Value::Bool(true)) => " (pendingReplacement)",
                _ => "",
            };
            format!("{}{mark}", entry["id"].as_str().unwrap_or(name))
        };
        self.entries(name).iter().map(entry).collect::<Vec<_>>().join(", ")
    }

    /// Returns the first recorded entry of a name.
    #[track_caller]
    pub(crate) fn entry(&self, name: &str) -> &Value {
        self.entries(name).first().copied().unwrap_or_else(|| panic!("{name} is not recorded"))
    }

    fn entries(&self, name: &str) -> Vec<&Value> {
        let entries = self.outcome.state.resources.iter();
        entries.filter(|entry| entry["urn"].as_str().is_some_and(|urn| last_part(urn) == name)).collect()
    }

    /// Returns the kinds of the pending operations at the end.
    pub(crate) fn pending(&self) -> Vec<&str> {
        self.outcome.state.pending_operations.iter().filter_map(|operation| operation["type"].as_str()).collect()
    }

    /// Returns whether the operation succeeded.
    pub(crate) fn succeeded(&self) -> bool {
        self.outcome.ok
    }

    /// Returns whether an error about a resource was reported.
    pub(crate) fn has_error(&self, name: &str) -> bool {
        self.outcome.errors.iter().any(|(urn, _)| last_part(urn) == name)
    }
}

impl Drop for StepOutcome<'_> {
    #[expect(clippy::print_stderr, reason = "the harness shows it beside the panic")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("while checking {} in {}", self.engine, self.step);
        }
    }
}

fn name_of(call: &Call) -> &str {
    let text = |name: &str| call.request.get(name).and_then(Value::as_str);
    text("urn").map(last_part).or_else(|| text("tok")).unwrap_or_default()
}

fn last_part(urn: &str) -> &str {
    urn.rsplit("::").next().unwrap_or_default()
}

fn call_text(call: &Call) -> String {
    let is_empty = |olds: &Value| olds.as_object().is_some_and(serde_json::Map::is_empty);
    let without_olds = if call.rpc == "Check" && is_empty(&call.request["olds"]) { "°" } else { "" };
    let preview = if call.request.get("preview").is_some() { "(preview)" } else { "" };
    let fails = if call.error.is_some() { "(fails)" } else { "" };
    format!("{}{without_olds}{preview}{fails}", call.rpc)
}
