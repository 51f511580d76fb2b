//! Tests with Pulumi's command line and published providers, if they are installed: Pulumi works on our states, and
//! `sc` on Pulumi's, in folders, in buckets of `moto` and in tables of PostgreSQL.
//!
//! No registry has these programs. A test whose programs are not on PATH is skipped; the result is `skipped` if no test
//! is left, and the last line counts the skipped tests and names the missing programs. `cargo test -p tests --features
//! interop --test interop_cli -- NAME` runs the tests whose names contain NAME.

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
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use bridge::process::HostEnvironment;

use crate::stores::{Kind, Servers, Stores};

/// Programs that may be on PATH.
const PULUMI: &str = "pulumi";
const YAML: &str = "pulumi-language-yaml";
const RANDOM: &str = "pulumi-resource-random";
const COMMAND: &str = "pulumi-resource-command";

struct Test {
    name: &'static str,
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
    ($needs:expr, $module:ident::$name:ident) => {
        Test { name: stringify!($name), needs: $needs, run: Run::Once($module::$name) }
    };
}

macro_rules! test_in_stores {
    ($needs:expr, $module:ident::$name:ident) => {
        Test { name: stringify!($name), needs: $needs, run: Run::InStores($module::$name) }
    };
}

const TESTS: &[Test] = &[
    test_in_stores!(&[PULUMI], states::pulumi_lists_our_stack),
    test_in_stores!(&[PULUMI], states::pulumi_exports_our_state),
    test_in_stores!(&[PULUMI], states::pulumi_decrypts_our_secrets),
    test_in_stores!(&[PULUMI, YAML], states::pulumi_refreshes_our_state),
    test_in_stores!(&[PULUMI, YAML], states::pulumi_destroys_our_stack),
    test_in_stores!(&[PULUMI, YAML], states::equal_pulumi_program_has_no_changes),
    test_in_stores!(&[PULUMI, YAML], states::sc_continues_from_pulumi_state),
    test_in_stores!(&[PULUMI, YAML], states::sc_refreshes_and_destroys_pulumi_stack),
    test!(&[PULUMI, YAML], twins::common_changes_have_equal_calls_and_states),
    test!(&[PULUMI, YAML], twins::options_failures_and_drift_have_equal_calls_and_states),
    test!(&[PULUMI, YAML], attaching::pulumi_attaches_to_a_plugin_that_plugin_debug_starts),
    test!(&[PULUMI, YAML], types::both_programs_find_the_same_types),
    test_in_stores!(&[PULUMI, YAML], checklist::pulumi_destroy_and_rm_leave_only_backups),
    test_in_stores!(&[PULUMI, YAML], checklist::pulumi_reads_our_history),
    test_in_stores!(&[PULUMI, YAML], checklist::pulumi_changes_tags_and_name_of_our_stack),
    test_in_stores!(&[PULUMI, YAML], checklist::sc_uses_secrets_provider_changed_by_pulumi),
    test_in_stores!(&[PULUMI, YAML], checklist::state_edits_work_on_states_of_the_other_program),
    test_in_stores!(&[PULUMI, YAML], checklist::state_rejected_by_pulumi_is_rejected),
    test_in_stores!(&[PULUMI, YAML], checklist::sc_continues_stack_created_by_pulumi_stack_init),
    test_in_stores!(&[PULUMI, YAML], checklist::compressed_states_are_read_by_the_other_program),
    test_in_stores!(&[PULUMI, YAML], checklist::plaintext_export_is_imported_by_both_programs),
    test_in_stores!(&[PULUMI, YAML], checklist::our_lock_blocks_pulumi_until_cancel),
    test_in_stores!(&[PULUMI, YAML], checklist::pulumi_lock_blocks_sc_until_cancel),
    test_in_stores!(&[PULUMI, YAML], checklist::concurrent_runs_of_both_programs_exclude_each_other),
    test_in_stores!(&[PULUMI, YAML], checklist::pulumi_configuration_is_recorded_in_history_and_restored),
    test_in_stores!(&[PULUMI, YAML], checklist::lock_of_our_killed_run_blocks_pulumi_but_not_sc),
    test_in_stores!(&[PULUMI, YAML], keys::secrets_under_a_key_of_aws_kms_are_used_by_both_programs),
    test_in_stores!(&[PULUMI, YAML], keys::sc_continues_pulumi_stack_under_a_key_of_aws_kms),
    test!(&[PULUMI, YAML], twins::random_steps_have_equal_calls_and_states),
    test!(&[RANDOM], plugins::sc_provisions_with_random_provider),
    test!(&[COMMAND], plugins::sc_provisions_with_command_provider),
    test!(&[PULUMI, YAML, RANDOM, COMMAND], plugins::pulumi_continues_our_stack_with_published_providers),
    test!(&[PULUMI, YAML, RANDOM, COMMAND], plugins::published_providers_lead_to_equal_states),
    test!(&[PULUMI, YAML, RANDOM, COMMAND], plugins::sc_continues_pulumi_stack_with_published_providers),
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
    let servers = Servers::default();
    let environment = HostEnvironment::new(std::env::vars_os());
    let started = Instant::now();

    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut failed, mut skipped) = (0, Vec::new(), 0);
    let mut missing = BTreeSet::new();
    for case in &chosen {
        let name = &*case.name;
        let absent: Vec<&str> =
            case.test.needs.iter().copied().filter(|need| environment.find_program(need).is_none()).collect();
        if !absent.is_empty() {
            println!("test {name} ... ignored, not on PATH: {}", absent.join(", "));
            skipped += 1;
            missing.extend(absent);
        } else if catch_unwind(AssertUnwindSafe(|| case.run(&servers))).is_ok() {
            println!("test {name} ... ok");
            passed += 1;
        } else {
            println!("test {name} ... FAILED");
            failed.push(name);
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
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
