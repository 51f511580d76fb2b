//! Tests of `sc state`: edits of the recorded state.

use serde_json::Value;

use crate::repository::{REC, Repository, Sections};

const THREE: &str = "
    bed: { type: rec:index:Thing, config: { v: '1' } }
    plant: { type: rec:index:Thing, config: { v: '${resource:bed.out}' } }
    stone: { type: rec:index:Thing, config: { v: '1' }, options: { protect: true } }";

fn provisioned() -> Repository {
    let repository = Repository::new(Sections { plugins: REC, resources: THREE, outputs: "" });
    repository.expect_exit(0, "provision");
    repository
}

fn things(repository: &Repository) -> Vec<String> {
    let mut things = repository.resources();
    things.retain(|line| line.contains("rec:index:Thing"));
    things.sort();
    things
}

#[test]
fn state_rm_does_not_delete_resources() {
    let repository = provisioned();
    let mut seen = repository.calls().len();
    insta::assert_snapshot!(repository.expect_rejected("state rm bed--prod --yes"), @r#"
    exit 1
    --- out
    --- err
    error: other resources depend on the selection: plant--prod
      hint: remove these as well, or give --target-dependents
    "#);
    insta::assert_snapshot!(repository.expect_rejected("state rm *one--prod --yes"), @r#"
    exit 1
    --- out
    --- err
    error: protected resources cannot be removed: stone--prod
      hint: unprotect them with `sc state unprotect`, or give --force
    "#);
    insta::assert_snapshot!(repository.expect_rejected("state rm pebble --yes"), @r#"
    exit 1
    --- out
    --- err
    error: no resource of this stack is called pebble
      hint: the resources are: rec, tank-reef, bed--prod, plant--prod, stone--prod
    "#);
    insta::assert_snapshot!(repository.expect_rejected("state rm plant--prod"), @r#"
    exit 2
    --- out
    --- err
      forget plant--prod (rec:index:Thing) plant--prod-1
    error: no terminal to ask for confirmation: Apply these changes to the state of reef? Nothing in the cloud is changed.
      hint: give --yes to proceed without confirmation
    "#);
    insta::assert_snapshot!(repository.expect_exit(0, "state rm bed--prod --target-dependents --yes"), @r#"
    exit 0
    --- out
    --- err
      forget bed--prod (rec:index:Thing) bed--prod-1
      forget plant--prod (rec:index:Thing) plant--prod-1
    made 2 changes to the state of reef
    "#);
    insta::assert_snapshot!(repository.expect_exit(0, "state rm stone--prod --force --yes --json"), @r#"
    exit 0
    --- out
    {"stack":"reef","changes":[{"do":"forget","urn":"urn:pulumi:reef::tank::rec:index:Thing::stone--prod","detail":"stone--prod-1"}]}
    --- err
      forget stone--prod (rec:index:Thing) stone--prod-1
    "#);
    assert_eq!(things(&repository), [""; 0]);
    assert_eq!(repository.calls().len(), seen, "no plugin is called");
    assert!(!repository.is_locked());
    repository.expect_exit(0, "provision");
    assert_eq!(repository.change_calls(&mut seen), ["Create bed--prod", "Create plant--prod", "Create stone--prod"]);
}

#[test]
fn protect_and_unprotect_change_the_state() {
    let repository = provisioned();
    repository.expect_exit(1, "destroy --parent --preview");
    insta::assert_snapshot!(repository.expect_exit(0, "state unprotect --all --yes"), @r#"
    exit 0
    --- out
    --- err
      unprotect stone--prod (rec:index:Thing)
    made 1 change to the state of reef
    "#);
    insta::assert_snapshot!(repository.expect_exit(0, "state unprotect stone--prod --yes"), @r#"
    exit 0
    --- out
    --- err
    nothing to change in the state of reef
    "#);
    assert!(repository.expect_exit(0, "state unprotect --all --yes --json").contains(r#""changes":[]"#));
    repository.expect_exit(0, "state protect bed--prod --yes");
    repository.expect_exit(1, "destroy --parent --preview");
    repository.expect_exit(0, "state unprotect bed--prod --yes");
    repository.expect_exit(0, "destroy --parent --yes -S");
}

#[test]
fn tainted_resource_is_replaced() {
    let repository = provisioned();
    repository.expect_exit(0, "state taint bed--prod plant--prod --yes");
    repository.expect_exit(0, "state untaint plant--prod --yes");
    let mut seen = repository.calls().len();
    repository.expect_exit(0, "provision -S");
    let changes = repository.change_calls(&mut seen);
    assert!(
        changes.contains(&"Create bed--prod".to_owned()) && changes.contains(&"Delete bed--prod".to_owned()),
        "{changes:?}"
    );
    assert!(!changes.contains(&"Create plant--prod".to_owned()), "{changes:?}");
}

#[test]
fn renamed_resource_is_not_replaced() {
    let repository = provisioned();
    let renamed = THREE.replace("bed:", "plot:").replace("resource:bed", "resource:plot");
    repository.write_sections(Sections { plugins: REC, resources: &renamed, outputs: "" });
    insta::assert_snapshot!(repository.expect_exit(0, "state rename bed--prod plot--prod --yes"), @r#"
    exit 0
    --- out
    --- err
      rename bed--prod (rec:index:Thing) to plot--prod
    made 1 change to the state of reef
    "#);
    insta::assert_snapshot!(repository.expect_rejected("state rename plot--prod stone--prod --yes"), @r#"
    exit 1
    --- out
    --- err
    error: there is a resource stone--prod of this type already
      hint: choose another name, or remove that resource from the state first
    "#);
    repository.expect_exit(0, "provision --expect-no-changes");
}

#[test]
fn invalid_state_is_repaired() {
    let repository = provisioned();
    let path = "backend/.pulumi/stacks/tank/reef.json";
    let mut state: Value = serde_json::from_str(&repository.read(path)).unwrap();
    let resources = state["checkpoint"]["latest"]["resources"].as_array_mut().unwrap();
    resources.reverse();
    let plant =
        resources.iter_mut().find(|resource| resource["urn"].as_str().unwrap().ends_with("plant--prod")).unwrap();
    let missing = "urn:pulumi:reef::tank::rec:index:Thing::gone--prod";
    plant["dependencies"].as_array_mut().unwrap().push(missing.into());
    repository.write(path, &state.to_string());
    assert!(repository.expect_rejected("provision").contains("the state is inconsistent"));
    insta::assert_snapshot!(repository.expect_exit(0, "state repair --yes"), @r#"
    exit 0
    --- out
    --- err
      move tank-reef (pulumi:pulumi:Stack)
      move rec (pulumi:providers:rec)
      move bed--prod (rec:index:Thing)
      prune plant--prod (rec:index:Thing) loses its dependency gone--prod
    made 4 changes to the state of reef
    "#);
    insta::assert_snapshot!(repository.expect_exit(0, "state repair --yes"), @r#"
    exit 0
    --- out
    --- err
    nothing to change in the state of reef
    "#);
    repository.expect_exit(0, "provision --expect-no-changes");

    let mut state: Value = serde_json::from_str(&repository.read(path)).unwrap();
    state["checkpoint"]["latest"]["manifest"]["magic"] = "wrong".into();
    repository.write(path, &state.to_string());
    repository.expect_rejected("provision");
    let output = repository.expect_exit(0, "state repair --yes --json");
    assert!(
        output.contains(r#"{"do":"replace","urn":null,"detail":"the checksum of its manifest, \"wrong\""}"#),
        "{output}"
    );
    repository.expect_exit(0, "provision --expect-no-changes");
}
