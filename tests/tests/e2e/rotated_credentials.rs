//! Tests of stacks whose recorded credentials do not work any more, with a plugin whose Configure refuses them.

use serde_json::json;

use crate::repository::{Repository, Sections};

const RESOURCES: &str = "bed: { type: rec:index:Thing, config: { v: 1 } }
plant: { type: rec:index:Thing, config: { v: 2 } }";

fn write(repository: &Repository, token: &str, region: &str) {
    let plugins = format!(
        "- {{ name: rec, source: {{ type: local, path: $REC }}, passEnv: [REC_DIR], config: {{ token: {token}, region: {region} }} }}"
    );
    repository.write_sections(Sections { plugins: &plugins, resources: RESOURCES, outputs: "" });
}

/// Returns a repository whose stack was provisioned with the token `old-7`, which the plugin refuses now.
fn rotated() -> Repository {
    let repository = Repository::new(Sections::default());
    write(&repository, "old-7", "north");
    repository.expect_exit(0, "provision -S");
    repository.script(json!({ "provider": { "refused": { "token": "old-7" } } }));
    repository
}

/// Checks that what an output says about the configurations has no values of them.
fn assert_without_values(output: &str) {
    for line in output.lines().filter(|line| line.contains("configuration")) {
        assert!(!line.contains("old-7") && !line.contains("new-8"), "{output}");
    }
}

const READ_WITH_PROGRAM: &str = "the recorded configuration of the provider rec does not work any more: its resources are read \
                                 with that of the program, which differs in token";

/// Shows: engine.md#differences-from-pulumi "A refresh whose recorded configuration does not work any more is repeated
///   with that of the program, if DiffConfig calls the difference no replacement."
#[test]
fn rotated_token_is_read_with_and_recorded_by_the_next_update() {
    let repository = rotated();
    // The file still has the old token.
    let output = repository.expect_exit(1, "refresh");
    assert!(!output.contains(READ_WITH_PROGRAM), "{output}");
    write(&repository, "new-8", "north");
    let mut seen = repository.calls().len();
    for command in ["preview", "refresh", "refresh", "provision --yes"] {
        let output = repository.expect_exit(0, command);
        assert!(output.contains(READ_WITH_PROGRAM), "{command}: {output}");
        assert_without_values(&output);
    }
    assert_eq!(repository.change_calls(&mut seen), [""; 0], "no resource has changed");
    // The update has recorded the new token.
    let output = repository.expect_exit(0, "refresh");
    assert!(!output.contains("does not work any more"), "{output}");
    repository.expect_exit(0, "destroy --parent --yes");
    assert_eq!(repository.change_calls(&mut seen), ["Delete bed--prod", "Delete plant--prod"]);
}

#[test]
fn rotated_token_is_used_for_the_deletes_of_a_destroy_that_refreshes() {
    let repository = rotated();
    write(&repository, "new-8", "north");
    let mut seen = repository.calls().len();
    let output = repository.expect_exit(0, "destroy --parent --yes");
    assert!(output.contains(READ_WITH_PROGRAM), "{output}");
    assert_eq!(repository.change_calls(&mut seen), ["Delete bed--prod", "Delete plant--prod"]);
}

/// Shows: engine.md#differences-from-pulumi "A refresh whose recorded configuration does not work any more is repeated
///   with that of the program, if DiffConfig calls the difference no replacement."
#[test]
fn rotated_token_with_another_region_names_the_keys_and_what_goes_on() {
    let repository = rotated();
    write(&repository, "new-8", "south");
    for command in ["preview", "refresh", "provision --yes", "destroy --parent --yes"] {
        let output = repository.expect_exit(1, command);
        let keys = "the recorded configuration of the provider rec differs from that of the program in region, token";
        assert!(output.contains(keys), "{command}: {output}");
        assert!(output.contains("`sc refresh --run-program`") && output.contains("`sc provision -R -S`"), "{output}");
        assert_without_values(&output);
    }
    let output = repository.expect_exit(0, "refresh --run-program");
    assert_without_values(&output);
}
