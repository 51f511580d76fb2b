//! Recorded steps with two outcomes each: that of Pulumi's engine, and that of ours.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use serde_json::Value;
use tests::compare::{Situation, compare};
use tests::drive;
use tests::exceptions::Exceptions;
use tests::player::Pace;
use tests::rec::Call;
use tests::scenario::{Op, Outcome, Scenario};

/// Recordings that rows refer to, with the exceptions listed for them.
struct Book {
    scenarios: BTreeMap<String, Scenario>,
    exceptions: Exceptions,
    /// Played steps. Each step is played once, even if several rows refer to it.
    played: Mutex<BTreeMap<(String, usize), Arc<Once>>>,
}

type Once = OnceLock<Arc<Played>>;

/// Result of playing a step.
struct Played {
    /// Outcome of our engine; `None` if the step is a listed exception, or is no run.
    ours: Option<Outcome>,
    differences: Vec<String>,
}

static BOOK: LazyLock<Book> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/engine");
    let read = |file: &str| Scenario::read(&folder.join(file)).unwrap_or_else(|error| panic!("{error}"));
    let scenarios = ["situations.jsonl", "components.jsonl"].into_iter().flat_map(read);
    Book {
        scenarios: scenarios.map(|scenario| (scenario.name.clone(), scenario)).collect(),
        exceptions: Exceptions::read(&[folder]).unwrap_or_else(|error| panic!("{error}")),
        played: Mutex::default(),
    }
});

/// Plays steps and compares them with the recording: `create/0-4, update/2, dbr-chain` (all of its steps).
///
/// Steps in `exceptions.tsv` are not compared.
#[track_caller]
pub(crate) fn plays(steps: &str) {
    for text in steps.split(',').map(str::trim) {
        let (scenario, range) = find(text);
        for index in range {
            let played = play(scenario, index);
            assert!(played.differences.is_empty(), "{}/{index}: {:#?}", scenario.name, played.differences);
        }
    }
}

/// Plays one step, and checks both the recorded outcome and that of our engine. Of a listed exception only the recorded
/// outcome is checked.
#[track_caller]
pub(crate) fn see(step: &str, check: impl Fn(&Seen<'_>)) {
    plays(step);
    let (scenario, mut range) = find(step);
    let (Some(index), None) = (range.next(), range.next()) else { panic!("{step} is not one step") };
    check(&Seen { step, whose: "Pulumi's engine", outcome: &scenario.steps[index].expect });
    if let Some(ours) = &play(scenario, index).ours {
        check(&Seen { step, whose: "our engine", outcome: ours });
    }
}

#[track_caller]
fn find(text: &str) -> (&'static Scenario, std::ops::RangeInclusive<usize>) {
    let (name, steps) = text.split_once('/').map_or((text, None), |(name, steps)| (name, Some(steps)));
    let scenario = BOOK.scenarios.get(name).unwrap_or_else(|| panic!("{name} is not recorded"));
    let number = |text: &str| text.parse::<usize>().unwrap_or_else(|_| panic!("{text:?} is no step"));
    let range = match steps.map(|steps| steps.split_once('-').unwrap_or((steps, steps))) {
        Some((first, last)) => number(first)..=number(last),
        None => 0..=scenario.steps.len() - 1,
    };
    assert!(range.end() < &scenario.steps.len(), "{text}: there is no such step");
    (scenario, range)
}

fn play(scenario: &'static Scenario, index: usize) -> Arc<Played> {
    let mut all = BOOK.played.lock().unwrap_or_else(PoisonError::into_inner);
    let cell = Arc::clone(all.entry((scenario.name.clone(), index)).or_default());
    drop(all);
    let played = cell.get_or_init(|| {
        let listed = BOOK.exceptions.reason(&scenario.name, index).is_some();
        if listed || scenario.steps[index].op == Op::Taint {
            return Arc::new(Played { ours: None, differences: Vec::new() });
        }
        let one_by_one = at_pace(scenario, index, Pace::OneByOne);
        if one_by_one.differences.is_empty() || scenario.steps[index].expect.ok {
            return Arc::new(one_by_one);
        }
        // Concurrency decides which of several failures comes first.
        Arc::new(at_pace(scenario, index, Pace::AtOnce))
    });
    Arc::clone(played)
}

fn at_pace(scenario: &Scenario, index: usize, pace: Pace) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    let observed = match runtime.block_on(drive::run(scenario, index, pace)) {
        Ok(observed) => observed,
        Err(reason) => return Played { ours: None, differences: vec![reason] },
    };
    let base = scenario.base(index);
    let differences = compare(&Situation { step: &scenario.steps[index], base: &base }, &observed.outcome);
    let differences = observed.faults.into_iter().chain(differences.iter().map(ToString::to_string)).collect();
    Played { ours: Some(observed.outcome), differences }
}

/// Outcome of one step by one of the two engines. Resources are called by their names.
pub(crate) struct Seen<'a> {
    step: &'a str,
    whose: &'static str,
    outcome: &'a Outcome,
}

impl Seen<'_> {
    /// Returns the calls about a resource, in order: `Check → Diff → Check° → Create(preview)`. `Check°` has no olds; a
    /// call with `(fails)` returned an error.
    pub(crate) fn calls(&self, name: &str) -> String {
        let calls = self.outcome.calls.iter().filter(|call| name_of(call) == name);
        calls.map(spelled).collect::<Vec<_>>().join(" → ")
    }

    /// Returns all calls of some kinds, in order: `Delete b → Delete a`.
    pub(crate) fn order(&self, rpcs: &[&str]) -> String {
        let calls = self.outcome.calls.iter().filter(|call| rpcs.contains(&call.rpc.as_str()));
        calls.map(|call| format!("{} {}", spelled(call), name_of(call))).collect::<Vec<_>>().join(" → ")
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
    pub(crate) fn complains_of(&self, name: &str) -> bool {
        self.outcome.errors.iter().any(|(urn, _)| last_part(urn) == name)
    }
}

impl Drop for Seen<'_> {
    #[allow(clippy::print_stderr, reason = "the harness shows it beside the panic")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("looking at what {} did in {}", self.whose, self.step);
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

fn spelled(call: &Call) -> String {
    let is_fresh = |olds: &Value| olds.as_object().is_some_and(serde_json::Map::is_empty);
    let fresh = if call.rpc == "Check" && is_fresh(&call.request["olds"]) { "°" } else { "" };
    let preview = if call.request.get("preview").is_some() { "(preview)" } else { "" };
    let fails = if call.error.is_some() { "(fails)" } else { "" };
    format!("{}{fresh}{preview}{fails}", call.rpc)
}
