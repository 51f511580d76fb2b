//! Tests with Pulumi's command line, its YAML host and published providers: Pulumi works on our states, and `sc` on
//! Pulumi's, in folders, in buckets of `moto` and of the stand-in of Google Cloud Storage, in containers of `azurite` and in tables of
//! PostgreSQL.
//!
//! The first test builds Pulumi's programs from their modules, which takes minutes. No registry has the providers random and command:
//! a test that needs one of them is skipped if it is not on PATH, and the last line counts the skipped tests and names the missing
//! programs; with `SC_PEERS=required` the run fails then. `cargo test -p tests --features interop --test interop_cli -- NAME` runs
//! the tests whose names contain NAME.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a test with its own main function")]

mod attaching;
mod checklist;
mod keys;
mod plugins;
mod pulumi;
mod states;
mod stores;
mod twins;
mod types;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use bridge::process::HostEnvironment;

use crate::stores::{Kind, Servers, Stores};

/// Published providers that may be on PATH.
const RANDOM: &str = "pulumi-resource-random";
const COMMAND: &str = "pulumi-resource-command";

/// Variable with the value `required` if a program that is missing fails the run.
const PEERS: &str = "SC_PEERS";

struct Test {
    name: &'static str,
    /// Programs that have to be on PATH.
    needs: &'static [&'static str],
    run: Run,
}

#[derive(Clone, Copy)]
enum Run {
    Once(fn()),
    /// Runs once with each kind of stores.
    InStores(fn(Stores<'_>)),
}

macro_rules! test {
    ($module:ident::$name:ident) => {
        test!(&[], $module::$name)
    };
    ($needs:expr, $module:ident::$name:ident) => {
        Test { name: stringify!($name), needs: $needs, run: Run::Once($module::$name) }
    };
}

macro_rules! test_in_stores {
    ($module:ident::$name:ident) => {
        Test { name: stringify!($name), needs: &[], run: Run::InStores($module::$name) }
    };
}

const TESTS: &[Test] = &[
    test_in_stores!(states::pulumi_lists_our_stack),
    test_in_stores!(states::pulumi_exports_our_state),
    test_in_stores!(states::pulumi_decrypts_our_secrets),
    test_in_stores!(states::pulumi_refreshes_our_state),
    test_in_stores!(states::pulumi_destroys_our_stack),
    test_in_stores!(states::equal_pulumi_program_has_no_changes),
    test_in_stores!(states::sc_continues_from_pulumi_state),
    test_in_stores!(states::sc_refreshes_and_destroys_pulumi_stack),
    test!(twins::common_changes_have_equal_calls_and_states),
    test!(twins::options_failures_and_drift_have_equal_calls_and_states),
    test!(twins::options_that_name_resources_have_equal_calls_and_states),
    test!(twins::assets_and_archives_have_equal_calls_and_states),
    test!(attaching::pulumi_attaches_to_a_plugin_that_plugin_debug_starts),
    test!(types::both_programs_find_the_same_types),
    test_in_stores!(checklist::pulumi_destroy_and_rm_leave_only_backups),
    test_in_stores!(checklist::pulumi_reads_our_history),
    test_in_stores!(checklist::pulumi_changes_tags_and_name_of_our_stack),
    test_in_stores!(checklist::sc_uses_secrets_provider_changed_by_pulumi),
    test_in_stores!(checklist::state_edits_work_on_states_of_the_other_program),
    test_in_stores!(checklist::state_rejected_by_pulumi_is_rejected),
    test_in_stores!(checklist::sc_continues_stack_created_by_pulumi_stack_init),
    test_in_stores!(checklist::compressed_states_are_read_by_the_other_program),
    test_in_stores!(checklist::plaintext_export_is_imported_by_both_programs),
    test_in_stores!(checklist::our_lock_blocks_pulumi_until_cancel),
    test_in_stores!(checklist::pulumi_lock_blocks_sc_until_cancel),
    test_in_stores!(checklist::concurrent_runs_of_both_programs_exclude_each_other),
    test_in_stores!(checklist::pulumi_configuration_is_recorded_in_history_and_restored),
    test_in_stores!(checklist::lock_of_our_killed_run_blocks_pulumi_but_not_sc),
    test_in_stores!(keys::secrets_under_a_key_of_aws_kms_are_used_by_both_programs),
    test_in_stores!(keys::sc_continues_pulumi_stack_under_a_key_of_aws_kms),
    test!(keys::secrets_under_a_key_of_azure_key_vault_are_used_by_both_programs),
    test!(keys::sc_continues_pulumi_stack_under_a_key_of_azure_key_vault),
    test!(twins::random_steps_have_equal_calls_and_states),
    test!(&[RANDOM], plugins::sc_provisions_with_random_provider),
    test!(&[COMMAND], plugins::sc_provisions_with_command_provider),
    test!(&[RANDOM, COMMAND], plugins::pulumi_continues_our_stack_with_published_providers),
    test!(&[RANDOM, COMMAND], plugins::published_providers_lead_to_equal_states),
    test!(&[RANDOM, COMMAND], plugins::sc_continues_pulumi_stack_with_published_providers),
];

/// Test with the kind of its stores.
struct Case {
    name: String,
    test: &'static Test,
    kind: Kind,
}

impl Case {
    fn run(&self, servers: &Servers) {
        match self.test.run {
            Run::Once(run) => run(),
            Run::InStores(run) => run(Stores { servers, kind: self.kind }),
        }
    }
}

fn cases() -> Vec<Case> {
    let case =
        |test: &'static Test, kind: &Kind| Case { name: test.name.to_owned() + kind.suffix(), test, kind: *kind };
    let kinds = |test: &Test| match test.run {
        Run::Once(_) => &[Kind::Folder][..],
        Run::InStores(_) => &Kind::ALL,
    };
    TESTS.iter().flat_map(|test| kinds(test).iter().map(move |kind| case(test, kind))).collect()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut chosen = cases();
    if arguments.iter().any(|argument| argument == "--list") {
        chosen.iter().for_each(|case| println!("{}: test", case.name));
        return ExitCode::SUCCESS;
    }
    let (filters, all) = (filters(&arguments), chosen.len());
    chosen.retain(|case| filters.is_empty() || filters.iter().any(|filter| case.name.contains(filter)));
    let environment = HostEnvironment::new(std::env::vars_os());
    let started = Instant::now();

    println!("\nrunning {} tests", chosen.len());
    let results = run_all(&chosen, &environment);
    let (mut passed, mut failed, mut skipped) = (0, Vec::new(), 0);
    let mut missing = BTreeSet::new();
    for (case, result) in chosen.iter().zip(&results) {
        match result {
            TestResult::Passed => passed += 1,
            TestResult::Failed => failed.push(&*case.name),
            TestResult::Skipped(absent) => {
                skipped += 1;
                missing.extend(absent.iter().copied());
            }
        }
    }
    if !failed.is_empty() {
        println!("\nfailures:\n    {}", failed.join("\n    "));
    }
    let result = match (passed, failed.len(), skipped) {
        (_, 1.., _) => "FAILED",
        // No test ran, so the result must not look like a success.
        (0, _, 1..) => "skipped",
        _ => "ok",
    };
    println!(
        "\ntest result: {result}. {passed} passed; {} failed; {skipped} ignored; 0 measured; {} filtered out; finished in {:.2}s",
        failed.len(),
        all - chosen.len(),
        started.elapsed().as_secs_f64()
    );
    if skipped > 0 {
        let missing: Vec<&str> = missing.into_iter().collect();
        println!("\nSKIPPED {skipped} of {} tests of interop_cli, not on PATH: {}", chosen.len(), missing.join(", "));
    }
    let lacks_peers = skipped > 0 && environment.get(PEERS).is_some_and(|value| value == "required");
    if lacks_peers {
        println!("{PEERS}=required: skipped tests are failures");
    }
    if failed.is_empty() && !lacks_peers { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Result of a test.
enum TestResult {
    Passed,
    Failed,
    /// Programs that are not on PATH.
    Skipped(Vec<&'static str>),
}

/// Runs the tests, several at a time: `RUST_TEST_THREADS`, by default as many as there are processors. Returns their results, in their
/// order.
fn run_all(cases: &[Case], environment: &HostEnvironment) -> Vec<TestResult> {
    let requested = environment.get("RUST_TEST_THREADS").and_then(|text| text.to_str()?.parse().ok());
    let threads = requested.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let (servers, next) = (Servers::default(), AtomicUsize::new(0));
    let results: Vec<OnceLock<TestResult>> = cases.iter().map(|_| OnceLock::new()).collect();
    let take_next = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        cases.get(index).zip(results.get(index))
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((case, result)) = take_next() {
                    result.get_or_init(|| run(case, environment, &servers));
                }
            });
        }
    });
    results.into_iter().map(|result| result.into_inner().unwrap()).collect()
}

/// Runs a test in a thread with its name, and prints its result.
fn run(case: &Case, environment: &HostEnvironment, servers: &Servers) -> TestResult {
    let needs = case.test.needs.iter().copied();
    let absent: Vec<&str> = needs.filter(|need| environment.find_program(need).is_none()).collect();
    let name = &case.name;
    if !absent.is_empty() {
        println!("test {name} ... ignored, not on PATH: {}", absent.join(", "));
        return TestResult::Skipped(absent);
    }
    let has_passed = thread::scope(|scope| {
        let test = thread::Builder::new().name(name.clone()).spawn_scoped(scope, || case.run(servers)).unwrap();
        test.join().is_ok()
    });
    println!("test {name} ... {}", if has_passed { "ok" } else { "FAILED" });
    if has_passed { TestResult::Passed } else { TestResult::Failed }
}

/// Returns the names among the arguments. Flags that every harness receives are accepted and ignored.
fn filters(arguments: &[String]) -> Vec<&str> {
    let mut filters = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--test-threads" | "--skip" | "--format" | "--color" | "-Z" => drop(arguments.next()),
            flag if flag.starts_with('-') => {}
            name => filters.push(name),
        }
    }
    filters
}
