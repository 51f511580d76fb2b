//! Tests with Pulumi's command line and published providers, if they are installed: Pulumi works on our states, and
//! `sc` on Pulumi's.
//!
//! No registry has these programs. A test whose programs are not on PATH is skipped; the result is `skipped` if no test
//! is left, and the last line counts the skipped tests and names the missing programs. `cargo test -p tests --features
//! interop --test interop_cli -- NAME` runs the tests whose names contain NAME.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a test with its own main function")]

mod attaching;
mod checklist;
mod plugins;
mod pulumi;
mod states;
mod twins;
mod types;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use bridge::process::HostEnvironment;

/// Programs that may be on PATH.
const PULUMI: &str = "pulumi";
const YAML: &str = "pulumi-language-yaml";
const RANDOM: &str = "pulumi-resource-random";
const COMMAND: &str = "pulumi-resource-command";

struct Test {
    name: &'static str,
    needs: &'static [&'static str],
    run: fn(),
}

macro_rules! test {
    ($needs:expr, $module:ident::$name:ident) => {
        Test { name: stringify!($name), needs: $needs, run: $module::$name }
    };
}

const TESTS: &[Test] = &[
    test!(&[PULUMI], states::pulumi_lists_our_stack),
    test!(&[PULUMI], states::pulumi_exports_our_state),
    test!(&[PULUMI], states::pulumi_decrypts_our_secrets),
    test!(&[PULUMI, YAML], states::pulumi_refreshes_our_state),
    test!(&[PULUMI, YAML], states::pulumi_destroys_our_stack),
    test!(&[PULUMI, YAML], states::equal_pulumi_program_has_no_changes),
    test!(&[PULUMI, YAML], states::sc_continues_from_pulumi_state),
    test!(&[PULUMI, YAML], states::sc_refreshes_and_destroys_pulumi_stack),
    test!(&[PULUMI, YAML], twins::common_changes_have_equal_calls_and_states),
    test!(&[PULUMI, YAML], twins::options_failures_and_drift_have_equal_calls_and_states),
    test!(&[PULUMI, YAML], attaching::pulumi_attaches_to_a_plugin_that_plugin_debug_starts),
    test!(&[PULUMI, YAML], types::both_programs_find_the_same_types),
    test!(&[PULUMI, YAML], checklist::pulumi_destroy_and_rm_leave_only_backups),
    test!(&[PULUMI, YAML], checklist::pulumi_reads_our_history),
    test!(&[PULUMI, YAML], checklist::pulumi_changes_tags_and_name_of_our_stack),
    test!(&[PULUMI, YAML], checklist::sc_uses_secrets_provider_changed_by_pulumi),
    test!(&[PULUMI, YAML], checklist::state_edits_work_on_states_of_the_other_program),
    test!(&[PULUMI, YAML], checklist::state_rejected_by_pulumi_is_rejected),
    test!(&[PULUMI, YAML], checklist::sc_continues_stack_created_by_pulumi_stack_init),
    test!(&[PULUMI, YAML], checklist::compressed_states_are_read_by_the_other_program),
    test!(&[PULUMI, YAML], checklist::plaintext_export_is_imported_by_both_programs),
    test!(&[PULUMI, YAML], checklist::our_lock_blocks_pulumi_until_cancel),
    test!(&[PULUMI, YAML], checklist::pulumi_lock_blocks_sc_until_cancel),
    test!(&[PULUMI, YAML], checklist::concurrent_runs_of_both_programs_exclude_each_other),
    test!(&[PULUMI, YAML], checklist::pulumi_configuration_is_recorded_in_history_and_restored),
    test!(&[PULUMI, YAML], twins::random_steps_have_equal_calls_and_states),
    test!(&[RANDOM], plugins::sc_provisions_with_random_provider),
    test!(&[COMMAND], plugins::sc_provisions_with_command_provider),
    test!(&[PULUMI, YAML, RANDOM, COMMAND], plugins::pulumi_continues_our_stack_with_published_providers),
    test!(&[PULUMI, YAML, RANDOM, COMMAND], plugins::published_providers_lead_to_equal_states),
    test!(&[PULUMI, YAML, RANDOM, COMMAND], plugins::sc_continues_pulumi_stack_with_published_providers),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        TESTS.iter().for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    let filters = filters(&arguments);
    let is_chosen = |test: &&Test| filters.is_empty() || filters.iter().any(|filter| test.name.contains(filter));
    let chosen: Vec<&Test> = TESTS.iter().filter(is_chosen).collect();
    let environment = HostEnvironment::new(std::env::vars_os());
    let started = Instant::now();

    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut failed, mut skipped) = (0, Vec::new(), 0);
    let mut missing = BTreeSet::new();
    for test in &chosen {
        let absent: Vec<&str> =
            test.needs.iter().copied().filter(|need| environment.find_program(need).is_none()).collect();
        if !absent.is_empty() {
            println!("test {} ... ignored, not on PATH: {}", test.name, absent.join(", "));
            skipped += 1;
            missing.extend(absent);
        } else if catch_unwind(AssertUnwindSafe(test.run)).is_ok() {
            println!("test {} ... ok", test.name);
            passed += 1;
        } else {
            println!("test {} ... FAILED", test.name);
            failed.push(test.name);
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
        TESTS.len() - chosen.len(),
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
