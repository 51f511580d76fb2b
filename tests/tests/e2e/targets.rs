//! Tests of resource selection: `--target`, `--exclude`, `--replace` and related options.

use crate::repository::{REC, Repository, Sections};

const THREE: &str = "
    bed: { type: rec:index:Thing, config: { v: '1' } }
    plant: { type: rec:index:Thing, config: { v: '${resource:bed.out}' } }
    stone: { type: rec:index:Thing, config: { v: '1' } }";

fn repository() -> Repository {
    Repository::new(Sections { plugins: REC, resources: THREE, outputs: "" })
}

fn write_sections(repository: &Repository, resources: &str) {
    repository.write_sections(Sections { plugins: REC, resources, outputs: "" });
}

fn things(repository: &Repository) -> Vec<String> {
    let things = repository.resources().into_iter().filter(|line| line.contains("rec:index:Thing"));
    let mut names: Vec<String> = things.map(|line| line.split("--").next().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn only_targets_are_changed() {
    let repository = repository();
    let mut seen = 0;
    // A target need not be recorded yet, neither for the update nor for the refresh before it.
    repository.expect_exit(0, "provision --target bed--prod");
    assert_eq!(things(&repository), ["bed"]);
    repository.expect_exit(0, "provision -t stone--prod");
    assert_eq!(things(&repository), ["bed", "stone"]);
    repository.expect_exit(0, "provision");
    assert_eq!(things(&repository), ["bed", "plant", "stone"]);
    repository.change_calls(&mut seen);

    write_sections(&repository, &THREE.replace("'1'", "'2'"));
    repository.expect_exit(0, "provision -S --target *one--prod");
    assert_eq!(repository.change_calls(&mut seen), ["Update stone--prod"]);
    repository
        .expect_exit(0, "provision -S --target urn:pulumi:reef::tank::rec:index:Thing::bed--prod --target-dependents");
    assert_eq!(repository.change_calls(&mut seen), ["Update bed--prod", "Update plant--prod"]);
    repository.expect_exit(0, "provision --expect-no-changes");
}

#[test]
fn excluded_resources_are_not_changed() {
    let repository = repository();
    repository.expect_exit(0, "provision --exclude stone--prod");
    assert_eq!(things(&repository), ["bed", "plant"]);
    repository.expect_exit(0, "destroy --parent --yes --exclude plant--prod");
    // The dependency `bed` of the excluded resource stays, too.
    assert_eq!(things(&repository), ["bed", "plant"]);
    repository.expect_exit(0, "destroy --parent --yes --exclude bed--prod");
    assert_eq!(things(&repository), ["bed"]);
}

#[test]
fn replace_option_replaces_unchanged_resources() {
    let repository = repository();
    repository.expect_exit(0, "provision");
    let mut seen = 0;
    repository.change_calls(&mut seen);
    repository.expect_exit(0, "provision -S --replace stone--prod");
    assert_eq!(repository.change_calls(&mut seen), ["Create stone--prod", "Delete stone--prod"]);
    write_sections(&repository, &THREE.replace("'1'", "'2'"));
    repository.expect_exit(0, "provision -S --target-replace stone--prod");
    assert_eq!(repository.change_calls(&mut seen), ["Create stone--prod", "Delete stone--prod"]);
    insta::assert_snapshot!(repository.expect_rejected("preview --replace pebble--prod"), @r#"
    exit 1
    --- out
    Preview of reef failed after [time]: no changes
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    error: no resource of this stack is called pebble--prod
      hint: give a name from `sc preview`, or a URN from `sc stack export`
    "#);
}

/// Shows: engine.md#targets-and-excludes "If a dependent of a target would have to be deleted too, the run deletes
///   nothing and fails, unless `--target-dependents` is given."
#[test]
fn dependents_of_a_target_are_not_deleted_without_target_dependents() {
    let repository = repository();
    repository.expect_exit(0, "provision");
    insta::assert_snapshot!(repository.sc("destroy --parent --yes -S --target bed--prod"), @r#"
    exit 1
    --- out
    Destroy of reef failed after [time]: 1 failed, 3 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Destroying reef
    error: plant--prod (rec:Thing): plant--prod would have to be deleted with a target that it depends on
      hint: add --target urn:pulumi:reef::tank::rec:index:Thing::plant--prod or --target-dependents
    "#);
    assert_eq!(things(&repository), ["bed", "plant", "stone"]);
    repository.expect_exit(0, "destroy --parent --yes --target bed--prod --target-dependents");
    assert_eq!(things(&repository), ["stone"]);
}

#[test]
fn exclude_protected_keeps_protected_resources_in_destroy() {
    let repository = repository();
    write_sections(
        &repository,
        &THREE.replace("'${resource:bed.out}' }", "'${resource:bed.out}' }, options: { protect: true }"),
    );
    repository.expect_exit(0, "provision");
    repository.expect_exit(0, "destroy --parent --yes --exclude-protected");
    assert_eq!(things(&repository), ["bed", "plant"]);
}

#[test]
fn unknown_target_name_is_reported() {
    let repository = repository();
    insta::assert_snapshot!(repository.expect_rejected("preview --target bad--prod"), @r#"
    exit 1
    --- out
    + tank-reef  Stack                 create
    + └─ rec     pulumi:providers:rec  create

    Preview of reef failed after [time]: 2 to create, 3 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    error: no resource of this stack is called bad--prod
      hint: did you mean bed--prod?
    "#);
    repository.expect_exit(0, "provision");
    insta::assert_snapshot!(repository.sc("refresh --target bad--prod"), @r#"
    exit 1
    --- out
    Refresh of reef failed after [time]: no changes
    --- err
    info: Loaded plugin: rec v1.0.0
    Refreshing reef
    error: no resource of this stack is called bad--prod
      hint: did you mean bed--prod?
    "#);
    insta::assert_snapshot!(repository.sc("destroy --parent --yes -S --target bad--prod"), @r#"
    exit 1
    --- out
    Destroy of reef failed after [time]: no changes
    --- err
    info: Loaded plugin: rec v1.0.0
    Destroying reef
    error: no resource of this stack is called bad--prod
      hint: did you mean bed--prod?
    "#);
    assert_eq!(things(&repository).len(), 3);
}

/// Shows: engine.md#targets-and-excludes "every exclude, must match a resource in the state or in the stack. Otherwise
///   the run fails, before any deletion"
#[test]
fn exclude_without_a_match_prevents_all_deletes() {
    let repository = repository();
    repository.expect_exit(0, "provision");
    for unmatched in ["pedble*", "urn:*stone--prod", "stones"] {
        repository.expect_exit(1, &format!("destroy --parent --yes -S --exclude {unmatched}"));
        repository.expect_exit(1, &format!("provision --exclude {unmatched}"));
    }
    assert_eq!(things(&repository).len(), 3);
}

#[test]
fn resource_that_no_longer_exists_can_be_targeted() {
    let repository = repository();
    repository.expect_exit(0, "provision");
    repository.script(serde_json::json!({"resources": {"stone--prod": {"read": "gone"}}}));
    repository.expect_exit(0, "provision --target-replace stone--prod --target-dependents");
    assert_eq!(things(&repository).len(), 3);
    repository.expect_exit(0, "preview --replace stone--prod");
    insta::assert_snapshot!(repository.expect_rejected("provision --target-dependents"), @r"
    exit 2
    --- out
    --- err
    error: --target-dependents requires a target
      hint: give one with --target
    ");
}

#[test]
fn resources_can_be_selected_in_one_stack_only() {
    let repository = repository();
    repository.write_stack("shore", crate::repository::PROVISIONER, Sections { plugins: REC, ..Sections::default() });
    insta::assert_snapshot!(repository.expect_rejected("provision --target bed--prod"), @r#"
    exit 2
    --- out
    --- err
    error: resources can be selected in one stack only, but 2 stacks are selected
      hint: select one stack with -s STACK
    "#);
    repository.expect_exit(0, "provision -s reef --target bed--prod");
    insta::assert_snapshot!(repository.expect_rejected("provision --target a --exclude b"), @r#"
    exit 2
    --- out
    --- err
    error: the argument '--target <RESOURCE>' cannot be used with '--exclude <RESOURCE>'

    Usage: sc provision --target <RESOURCE>

    For more information, try '--help'.
    "#);
}
