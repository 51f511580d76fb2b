//! Runs scenarios on all processors, each step in a runtime of its own.

use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tests::compare::{Situation, compare};
use tests::drive;
use tests::player::Pace;
use tests::scenario::{Op, Scenario};

/// Scenario, with the differences of each of its steps.
pub(crate) struct Held<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) steps: Vec<Vec<String>>,
}

/// Runs scenarios, and returns their results in the same order.
pub(crate) fn run_all<'a>(scenarios: &[&'a Scenario]) -> Vec<Held<'a>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let steps = (0..scenario.steps.len()).map(|index| differences(scenario, index)).collect();
                    done.lock().unwrap().push(Held { scenario, steps });
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|held| scenarios.iter().position(|scenario| std::ptr::eq(*scenario, held.scenario)));
    done
}

fn differences(scenario: &Scenario, index: usize) -> Vec<String> {
    let step = &scenario.steps[index];
    if step.op == Op::Taint {
        // A taint edits the state without a run; the steps after it start from the recorded state.
        return Vec::new();
    }
    let one_by_one = at_pace(scenario, index, Pace::OneByOne);
    if !step.plays_program() || step.interrupt.is_some() || (step.expect.ok && !one_by_one.is_empty()) {
        return one_by_one;
    }
    if step.expect.ok {
        // Concurrency must make no difference.
        let at_once = at_pace(scenario, index, Pace::AtOnce);
        return at_once.into_iter().map(|text| format!("(with many at once) {text}")).collect();
    }
    // Concurrency decides which of several failures comes first: one of both paces must match the recording.
    if one_by_one.is_empty() || at_pace(scenario, index, Pace::AtOnce).is_empty() { Vec::new() } else { one_by_one }
}

fn at_pace(scenario: &Scenario, index: usize, pace: Pace) -> Vec<String> {
    let observe = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(drive::run(scenario, index, pace))
    };
    let observed = match std::panic::catch_unwind(AssertUnwindSafe(observe)) {
        Ok(Ok(observed)) => observed,
        Ok(Err(reason)) => return vec![reason],
        Err(_) => return vec!["the engine panicked".to_owned()],
    };
    let base = scenario.base(index);
    let situation = Situation { step: &scenario.steps[index], base: &base };
    let differences = compare(&situation, &observed.outcome);
    observed.faults.into_iter().chain(differences.iter().map(ToString::to_string)).collect()
}
