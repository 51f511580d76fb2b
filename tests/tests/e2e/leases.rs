//! Number of starts and configurations of plugins by a command.

use crate::repository::{REC, Repository, Sections};

const THINGS: &str =
    "a: { type: 'rec:index:Thing', config: { v: 1 } }\nb: { type: 'rec:index:Thing', config: { v: 2 } }";

/// Returns how often the plugin was started.
fn starts(repository: &Repository) -> usize {
    std::fs::read_to_string(repository.path("rec/starts")).map_or(0, |text| text.lines().count())
}

/// Runs commands, and returns how often each one starts the plugin and configures it.
fn starts_and_configurations(plugins: &str, commands: &[&str]) -> Vec<(usize, usize)> {
    let repository = Repository::new(Sections { plugins, resources: THINGS, outputs: "" });
    let counts = || {
        let configurations = repository.calls().iter().filter(|call| call.starts_with("Configure")).count();
        (starts(&repository), configurations)
    };
    let count = |command: &&str| {
        let before = counts();
        repository.expect_exit(0, command);
        let after = counts();
        (after.0 - before.0, after.1 - before.1)
    };
    commands.iter().map(count).collect()
}

/// Shows: hosting.md#what-is-kept-when "Refresh, preview and update of a run use the same instance if they configure it
///   alike"
/// Shows: hosting.md#what-is-kept-when "Configure is then not sent again."
#[test]
fn plugin_is_configured_once_per_command_unless_its_id_is_new_and_has_an_unconfigured_process() {
    let commands = ["provision", "provision", "preview", "refresh --yes", "provision -S", "destroy --parent --yes"];
    // The preview of the first provision has no id for the provider yet. The later ones check the configuration beside the
    // process that their refresh has configured.
    let expected = [(2, 2), (2, 1), (2, 1), (1, 1), (2, 1), (1, 1)];
    assert_eq!(starts_and_configurations(REC, &commands), expected);
}

/// Shows: hosting.md#what-is-kept-when "each phase then starts processes of its own"
#[test]
fn plugin_that_is_never_kept_is_started_and_configured_for_each_phase() {
    let plugins = REC.replace("passEnv", "keep: never, passEnv");
    // Refresh, preview and update.
    assert_eq!(starts_and_configurations(&plugins, &["provision", "provision"]), [(2, 2), (3, 3)]);
}

/// Shows: hosting.md#what-is-kept-when "One that was asked for its schema only serves the next stack of the command, if
///   its package has a checksum or was fetched"
/// Shows: hosting.md#what-is-kept-when "A local plugin without a checksum is never kept for another run"
#[test]
fn one_process_serves_the_schemas_of_many_stacks() {
    let repository = Repository::new(Sections { plugins: "[]", resources: "", outputs: "" });
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_pulumi-resource-rec"));
    let checksum = bridge::plugin::Sha256Digest::of(std::fs::read(program).unwrap());
    let plugin = format!("{{ type: local, path: $REC, checksum: '{checksum}' }}, passEnv: [REC_DIR]");
    for number in 0..50 {
        let plugins = format!("- {{ name: rec, source: {plugin} }}");
        let sections = Sections { plugins: &plugins, resources: "", outputs: "" };
        repository.write_stack(&format!("s{number}"), "provisioner: { inherit: reef }\n", sections);
    }
    repository.expect_exit(0, "schema-gen schemas");
    assert_eq!(starts(&repository), 1);
}
