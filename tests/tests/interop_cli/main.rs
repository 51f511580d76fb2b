//! Tests with Pulumi's command line and published providers, if they are installed: Pulumi works on our states, and
//! `sc` on Pulumi's.
//!
//! No registry has these programs. A test whose programs are not on PATH is skipped; the result is `skipped` if no test
//! is left, and the last line counts the skipped tests and names the missing programs. `cargo test -p tests --features
//! interop --test interop_cli -- NAME` runs the tests whose names contain NAME.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a test with a main of its own")]

mod checklist;
mod plugins;
mod pulumi;
mod states;
mod twins;

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
    test!(&[PULUMI], states::our_stack_is_listed),
    test!(&[PULUMI], states::our_state_is_exported),
    test!(&[PULUMI], states::a_secret_of_ours_is_decrypted),
    test!(&[PULUMI, YAML], states::our_state_is_refreshed),
    test!(&[PULUMI, YAML], states::our_stack_is_destroyed),
    test!(&[PULUMI, YAML], states::the_same_program_has_nothing_to_change_in_our_state),
    test!(&[PULUMI, YAML], states::we_go_on_with_a_state_of_pulumis),
    test!(&[PULUMI, YAML], states::we_refresh_and_destroy_a_stack_of_pulumis),
    test!(&[PULUMI, YAML], twins::a_life_of_ordinary_changes_is_the_same_in_all_hands),
    test!(&[PULUMI, YAML], twins::options_failures_and_drift_are_the_same_in_all_hands),
    test!(&[PULUMI, YAML], checklist::what_pulumi_destroys_and_removes_leaves_only_backups),
    test!(&[PULUMI, YAML], checklist::our_history_is_pulumis),
    test!(&[PULUMI, YAML], checklist::tags_and_the_name_of_a_stack_of_ours_are_pulumis_to_change),
    test!(&[PULUMI, YAML], checklist::a_key_that_pulumi_changes_is_ours_from_then_on),
    test!(&[PULUMI, YAML], checklist::both_change_by_hand_what_the_other_recorded),
    test!(&[PULUMI, YAML], checklist::what_pulumi_refuses_to_read_we_refuse),
    test!(&[PULUMI, YAML], checklist::what_pulumi_has_only_begun_is_ours_to_go_on_with),
    test!(&[PULUMI, YAML], checklist::compressed_stores_of_either_are_read_by_the_other),
    test!(&[PULUMI, YAML], checklist::an_export_in_clear_is_taken_by_either),
    test!(&[PULUMI, YAML], checklist::our_lock_keeps_pulumi_out_until_it_is_cancelled),
    test!(&[PULUMI, YAML], checklist::pulumis_lock_keeps_us_out_until_it_is_cancelled),
    test!(&[PULUMI, YAML], checklist::of_many_that_start_at_once_never_two_win),
    test!(&[PULUMI, YAML], checklist::a_configuration_of_pulumis_is_in_our_history_and_comes_back_from_it),
    test!(&[PULUMI, YAML], twins::random_lives_are_the_same_in_all_hands),
    test!(&[RANDOM], plugins::random_is_a_plugin_of_ours),
    test!(&[COMMAND], plugins::command_is_a_plugin_of_ours),
    test!(&[PULUMI, YAML, RANDOM, COMMAND], plugins::pulumi_goes_on_with_our_random_and_command),
    test!(&[PULUMI, YAML, RANDOM, COMMAND], plugins::stacks_with_published_providers_end_in_equal_states),
    test!(&[PULUMI, YAML, RANDOM, COMMAND], plugins::we_go_on_with_pulumis_random_and_command),
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
