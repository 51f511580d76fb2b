//! Runs scenarios on all processors, each step in its own runtime.

use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tests::compare::{ComparisonInput, Scope, compare};
use tests::exceptions::{ExceptionKind, Exceptions};
use tests::program_runner::Concurrency;
use tests::scenario::{Op, Scenario};
use tests::step_runner;

/// Scenario, with the differences of each of its steps.
pub(crate) struct ScenarioResult<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) steps: Vec<Vec<String>>,
    /// Steps that are listed because of more secrets, and differ in something else as well.
    pub(crate) beside_secrets: Vec<usize>,
}

/// Runs scenarios, and returns their results in the same order.
pub(crate) fn run_all<'a>(scenarios: &[&'a Scenario], exceptions: &Exceptions) -> Vec<ScenarioResult<'a>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let all = |index| differences(scenario, index, Scope::All);
                    let steps = (0..scenario.steps.len()).map(all).collect();
                    let has_more_secrets = |index: &usize| {
                        let exception = exceptions.get(&scenario.name, *index);
                        exception.is_some_and(|(kind, _)| kind == ExceptionKind::MoreSecrets)
                    };
                    let listed = (0..scenario.steps.len()).filter(has_more_secrets);
                    let differs = |index: &usize| !differences(scenario, *index, Scope::MoreSecrets).is_empty();
                    let beside_secrets = listed.filter(differs).collect();
                    done.lock().unwrap().push(ScenarioResult { scenario, steps, beside_secrets });
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|result| scenarios.iter().position(|scenario| std::ptr::eq(*scenario, result.scenario)));
    done
}

fn differences(scenario: &Scenario, index: usize, scope: Scope) -> Vec<String> {
    let step = &scenario.steps[index];
    if step.op == Op::Taint {
        // A taint edits the state without a run; the steps after it start from the recorded state.
        return Vec::new();
    }
    let sequential = differences_with(scenario, index, Concurrency::Sequential, scope);
    if !step.runs_program() || step.interrupt.is_some() || (step.expect.ok && !sequential.is_empty()) {
        return sequential;
    }
    if step.expect.ok {
        // Concurrency must make no difference.
        let concurrent = differences_with(scenario, index, Concurrency::Concurrent, scope);
        return concurrent.into_iter().map(|text| format!("(concurrent) {text}")).collect();
    }
    // Concurrency decides which of several failures comes first: one of both runs must match the recording.
    if sequential.is_empty() || differences_with(scenario, index, Concurrency::Concurrent, scope).is_empty() {
        Vec::new()
    } else {
        sequential
    }
}

fn differences_with(scenario: &Scenario, index: usize, concurrency: Concurrency, scope: Scope) -> Vec<String> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(step_runner::run_step(scenario, index, concurrency))
    };
    let step_run = match std::panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(step_run)) => step_run,
        Ok(Err(reason)) => return vec![reason],
        Err(_) => return vec!["the engine panicked".to_owned()],
    };
    let base = scenario.base(index);
    let input = ComparisonInput { step: &scenario.steps[index], base: &base, scope };
    let differences = compare(&input, &step_run.outcome);
    step_run.violations.into_iter().chain(differences.iter().map(ToString::to_string)).collect()
}
