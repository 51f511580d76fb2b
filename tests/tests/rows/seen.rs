//! Recorded steps, seen twice: as Pulumi's engine did them, and as ours does.

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

/// The recordings that the rows name, and what is listed about them.
struct Book {
    scenarios: BTreeMap<String, Scenario>,
    exceptions: Exceptions,
    /// Every step is played once, however many rows name it.
    played: Mutex<BTreeMap<(String, usize), Arc<Once>>>,
}

type Once = OnceLock<Arc<Played>>;

/// What became of a step.
struct Played {
    /// What our engine did; `None` where the step is listed, or is no run.
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

/// Plays steps and holds them to the recording: `create/0-4, update/2, dbr-chain` (all of its steps).
///
/// What `exceptions.tsv` lists is left out: it counts from the day on which it is taken off the list.
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

/// Plays one step and looks at it twice: at what was recorded, and at what our engine did. Of a step that is listed only
/// the recording is looked at.
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
        // Which of several failures comes first hangs on what was under way.
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

/// One step as one of the two engines did it. Resources are called by their names.
pub(crate) struct Seen<'a> {
    step: &'a str,
    whose: &'static str,
    outcome: &'a Outcome,
}

impl Seen<'_> {
    /// The calls about a resource, in their order: `Check → Diff → Check° → Create(preview)`. `Check°` has no olds, a call
    /// with `(fails)` was answered with an error.
    pub(crate) fn calls(&self, name: &str) -> String {
        let calls = self.outcome.calls.iter().filter(|call| name_of(call) == name);
        calls.map(spelled).collect::<Vec<_>>().join(" → ")
    }

    /// Every call of some kinds, in their order: `Delete b → Delete a`.
    pub(crate) fn order(&self, rpcs: &[&str]) -> String {
        let calls = self.outcome.calls.iter().filter(|call| rpcs.contains(&call.rpc.as_str()));
        calls.map(|call| format!("{} {}", spelled(call), name_of(call))).collect::<Vec<_>>().join(" → ")
    }

    /// The first request of a kind about a resource.
    #[track_caller]
    pub(crate) fn request(&self, rpc: &str, name: &str) -> &Value {
        self.requests(rpc, name).first().copied().unwrap_or_else(|| panic!("there is no {rpc} about {name}"))
    }

    /// All requests of a kind about a resource.
    pub(crate) fn requests(&self, rpc: &str, name: &str) -> Vec<&Value> {
        let calls = self.outcome.calls.iter().filter(|call| call.rpc == rpc && name_of(call) == name);
        calls.map(|call| &call.request).collect()
    }

    /// The steps about a resource: `create-replacement, replace, delete-replaced`.
    pub(crate) fn steps(&self, name: &str) -> String {
        let steps = self.outcome.steps.iter().filter(|(_, urn)| last_part(urn) == name);
        steps.map(|(op, _)| op.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// What is recorded under a name in the end: `a-2, a-1 (delete)`; nothing: an empty text.
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

    /// The first entry of a name in the state.
    #[track_caller]
    pub(crate) fn entry(&self, name: &str) -> &Value {
        self.entries(name).first().copied().unwrap_or_else(|| panic!("{name} is not recorded"))
    }

    fn entries(&self, name: &str) -> Vec<&Value> {
        let entries = self.outcome.state.resources.iter();
        entries.filter(|entry| entry["urn"].as_str().is_some_and(|urn| last_part(urn) == name)).collect()
    }

    /// The kinds of the pending operations in the end.
    pub(crate) fn pending(&self) -> Vec<&str> {
        self.outcome.state.pending_operations.iter().filter_map(|operation| operation["type"].as_str()).collect()
    }

    /// Whether the operation succeeded.
    pub(crate) fn succeeded(&self) -> bool {
        self.outcome.ok
    }

    /// Whether an error was told about a resource.
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
