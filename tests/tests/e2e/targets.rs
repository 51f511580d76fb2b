//! Tests of parts of a stack: `--target`, `--exclude`, `--replace` and related options.

use crate::repository::{REC, Repository, Sections};

const THREE: &str = "
    bed: { type: rec:index:Thing, config: { v: '1' } }
    plant: { type: rec:index:Thing, config: { v: '${resource:bed.out}' } }
    stone: { type: rec:index:Thing, config: { v: '1' } }";

fn repository() -> Repository {
    Repository::new(Sections { plugins: REC, resources: THREE, outputs: "" })
}

fn describe(repository: &Repository, resources: &str) {
    repository.describe(Sections { plugins: REC, resources, outputs: "" });
}

fn things(repository: &Repository) -> Vec<String> {
    let things = repository.resources().into_iter().filter(|line| line.contains("rec:index:Thing"));
    let mut names: Vec<String> = things.map(|line| line.split("--").next().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn targets_alone_are_touched() {
    let repository = repository();
    let mut seen = 0;
    // Neither the target nor the refresh before requires the resource to be recorded.
    repository.ends(0, "provision --target bed--prod");
    assert_eq!(things(&repository), ["bed"]);
    repository.ends(0, "provision -t stone--prod");
    assert_eq!(things(&repository), ["bed", "stone"]);
    repository.ends(0, "provision");
    assert_eq!(things(&repository), ["bed", "plant", "stone"]);
    repository.deeds(&mut seen);

    describe(&repository, &THREE.replace("'1'", "'2'"));
    repository.ends(0, "provision -S --target *one--prod");
    assert_eq!(repository.deeds(&mut seen), ["Update stone--prod"]);
    repository.ends(0, "provision -S --target urn:pulumi:reef::tank::rec:index:Thing::bed--prod --target-dependents");
    assert_eq!(repository.deeds(&mut seen), ["Update bed--prod", "Update plant--prod"]);
    repository.ends(0, "provision --expect-no-changes");
}

#[test]
fn all_but_what_is_excluded_is_touched() {
    let repository = repository();
    repository.ends(0, "provision --exclude stone--prod");
    assert_eq!(things(&repository), ["bed", "plant"]);
    repository.ends(0, "destroy --parent --yes --exclude plant--prod");
    // The dependency `bed` of the excluded resource stays, too.
    assert_eq!(things(&repository), ["bed", "plant"]);
    repository.ends(0, "destroy --parent --yes --exclude bed--prod");
    assert_eq!(things(&repository), ["bed"]);
}

#[test]
fn what_is_named_to_be_replaced_is_replaced() {
    let repository = repository();
    repository.ends(0, "provision");
    let mut seen = 0;
    repository.deeds(&mut seen);
    repository.ends(0, "provision -S --replace stone--prod");
    assert_eq!(repository.deeds(&mut seen), ["Create stone--prod", "Delete stone--prod"]);
    describe(&repository, &THREE.replace("'1'", "'2'"));
    repository.ends(0, "provision -S --target-replace stone--prod");
    assert_eq!(repository.deeds(&mut seen), ["Create stone--prod", "Delete stone--prod"]);
    insta::assert_snapshot!(repository.refused("preview --replace pebble--prod"), @r#"
    exit 1
    --- out
    Preview of reef failed after [time]: no changes
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    error: no resource of this stack is called pebble--prod
      hint: give a name as `sc preview` shows it, or a URN as `sc stack export` has it
    "#);
}

#[test]
fn what_hangs_on_a_target_is_not_deleted_unasked() {
    let repository = repository();
    repository.ends(0, "provision");
    insta::assert_snapshot!(repository.sc("destroy --parent --yes -S --target bed--prod"), @r#"
    exit 1
    --- out
    Destroy of reef failed after [time]: 1 failed, 3 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Destroying reef
    error: plant--prod (rec:Thing): plant--prod would have to go with a target that it depends on
      hint: add --target 'urn:pulumi:reef::tank::rec:index:Thing::plant--prod' or --target-dependents
    "#);
    assert_eq!(things(&repository), ["bed", "plant", "stone"]);
    repository.ends(0, "destroy --parent --yes --target bed--prod --target-dependents");
    assert_eq!(things(&repository), ["stone"]);
}

#[test]
fn what_is_protected_can_be_left_out_of_a_destroy() {
    let repository = repository();
    describe(
        &repository,
        &THREE.replace("'${resource:bed.out}' }", "'${resource:bed.out}' }, options: { protect: true }"),
    );
    repository.ends(0, "provision");
    repository.ends(0, "destroy --parent --yes --exclude-protected");
    assert_eq!(things(&repository), ["bed", "plant"]);
}

#[test]
fn a_name_that_nothing_has_is_told() {
    let repository = repository();
    insta::assert_snapshot!(repository.refused("preview --target bad--prod"), @r#"
    exit 1
    --- out
    + tank-reef  Stack                 create
    + └─ rec     pulumi:providers:rec  create

    Preview of reef failed after [time]: 2 to create, 3 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    error: no resource of this stack is called bad--prod
      hint: give a name as `sc preview` shows it, or a URN as `sc stack export` has it
    "#);
    repository.ends(0, "provision");
    insta::assert_snapshot!(repository.sc("refresh --target bad--prod"), @r#"
    exit 1
    --- out
    Refresh of reef failed after [time]: no changes
    --- err
    info: Loaded plugin: rec v1.0.0
    Refreshing reef
    error: no resource of this stack is called bad--prod
      hint: give a name as `sc preview` shows it, or a URN as `sc stack export` has it
    "#);
    insta::assert_snapshot!(repository.sc("destroy --parent --yes -S --target bad--prod"), @r#"
    exit 1
    --- out
    Destroy of reef failed after [time]: no changes
    --- err
    info: Loaded plugin: rec v1.0.0
    Destroying reef
    error: no resource of this stack is called bad--prod
      hint: give a name as `sc preview` shows it, or a URN as `sc stack export` has it
    "#);
    assert_eq!(things(&repository).len(), 3);
}

#[test]
fn an_exclude_that_names_nothing_keeps_everything_from_being_deleted() {
    let repository = repository();
    repository.ends(0, "provision");
    for slip in ["pedble*", "urn:*stone--prod", "stone"] {
        repository.ends(1, &format!("destroy --parent --yes -S --exclude {slip}"));
        repository.ends(1, &format!("provision --exclude {slip}"));
    }
    assert_eq!(things(&repository).len(), 3);
}

#[test]
fn what_is_gone_can_be_named_all_the_same() {
    let repository = repository();
    repository.ends(0, "provision");
    repository.script(serde_json::json!({"resources": {"stone--prod": {"read": "gone"}}}));
    repository.ends(0, "provision --target-replace stone--prod --target-dependents");
    assert_eq!(things(&repository).len(), 3);
    repository.ends(0, "preview --replace stone--prod");
    insta::assert_snapshot!(repository.refused("provision --target-dependents"), @r"
    exit 2
    --- out
    --- err
    error: --target-dependents needs a target
      hint: name one with --target
    ");
}

#[test]
fn names_are_those_of_one_stack() {
    let repository = repository();
    repository.describe_stack(
        "shore",
        crate::repository::PROVISIONER,
        Sections { plugins: REC, ..Sections::default() },
    );
    insta::assert_snapshot!(repository.refused("provision --target bed--prod"), @r#"
    exit 2
    --- out
    --- err
    error: the resources of one stack can be named, and 2 are asked for
      hint: say which one: -s STACK
    "#);
    repository.ends(0, "provision -s reef --target bed--prod");
    insta::assert_snapshot!(repository.refused("provision --target a --exclude b"), @r#"
    exit 2
    --- out
    --- err
    error: the argument '--target <RESOURCE>' cannot be used with '--exclude <RESOURCE>'

    Usage: sc provision --target <RESOURCE>

    For more information, try '--help'.
    "#);
}
