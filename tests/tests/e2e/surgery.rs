//! Tests of `sc state`: edits of the recorded state.

use serde_json::Value;

use crate::repository::{REC, Repository, Sections};

const THREE: &str = "
    bed: { type: rec:index:Thing, config: { v: '1' } }
    plant: { type: rec:index:Thing, config: { v: '${resource:bed.out}' } }
    stone: { type: rec:index:Thing, config: { v: '1' }, options: { protect: true } }";

fn provisioned() -> Repository {
    let repository = Repository::new(Sections { plugins: REC, resources: THREE, outputs: "" });
    repository.ends(0, "provision");
    repository
}

fn things(repository: &Repository) -> Vec<String> {
    let mut things = repository.resources();
    things.retain(|line| line.contains("rec:index:Thing"));
    things.sort();
    things
}

#[test]
fn what_is_forgotten_is_not_deleted() {
    let repository = provisioned();
    let mut seen = repository.calls().len();
    insta::assert_snapshot!(repository.refused("state rm bed--prod --yes"), @r#"
    exit 1
    --- out
    --- err
    error: needed by plant--prod
      hint: forget these as well, or give --target-dependents
    "#);
    insta::assert_snapshot!(repository.refused("state rm *one--prod --yes"), @r#"
    exit 1
    --- out
    --- err
    error: protected: stone--prod
      hint: `sc state unprotect` lifts that, or give --force
    "#);
    insta::assert_snapshot!(repository.refused("state rm pebble --yes"), @r#"
    exit 1
    --- out
    --- err
    error: no resource of this stack is called pebble
      hint: give a name as `sc preview` shows it, or a URN as `sc stack export` has it
    "#);
    insta::assert_snapshot!(repository.refused("state rm plant--prod"), @r#"
    exit 2
    --- out
    --- err
      forget plant--prod (rec:index:Thing) plant--prod-1
    error: there is no terminal to ask on: Change the state of reef like this? Nothing in the cloud is touched.
      hint: give --yes to go on without being asked
    "#);
    insta::assert_snapshot!(repository.ends(0, "state rm bed--prod --target-dependents --yes"), @r#"
    exit 0
    --- out
    --- err
      forget bed--prod (rec:index:Thing) bed--prod-1
      forget plant--prod (rec:index:Thing) plant--prod-1
    made 2 changes to the state of reef
    "#);
    insta::assert_snapshot!(repository.ends(0, "state rm stone--prod --force --yes --json"), @r#"
    exit 0
    --- out
    {"stack":"reef","changes":[{"do":"forget","urn":"urn:pulumi:reef::tank::rec:index:Thing::stone--prod","detail":"stone--prod-1"}]}
    --- err
      forget stone--prod (rec:index:Thing) stone--prod-1
    "#);
    assert_eq!(things(&repository), [""; 0]);
    assert_eq!(repository.calls().len(), seen, "no plugin is asked");
    assert!(!repository.is_locked());
    repository.ends(0, "provision");
    assert_eq!(repository.deeds(&mut seen), ["Create bed--prod", "Create plant--prod", "Create stone--prod"]);
}

#[test]
fn protection_comes_and_goes() {
    let repository = provisioned();
    repository.ends(1, "destroy --parent --preview");
    insta::assert_snapshot!(repository.ends(0, "state unprotect --all --yes"), @r#"
    exit 0
    --- out
    --- err
      unprotect stone--prod (rec:index:Thing)
    made 1 change to the state of reef
    "#);
    insta::assert_snapshot!(repository.ends(0, "state unprotect stone--prod --yes"), @r#"
    exit 0
    --- out
    --- err
    nothing to change in the state of reef
    "#);
    assert!(repository.ends(0, "state unprotect --all --yes --json").contains(r#""changes":[]"#));
    repository.ends(0, "state protect bed--prod --yes");
    repository.ends(1, "destroy --parent --preview");
    repository.ends(0, "state unprotect bed--prod --yes");
    repository.ends(0, "destroy --parent --yes -S");
}

#[test]
fn what_is_tainted_is_made_anew() {
    let repository = provisioned();
    repository.ends(0, "state taint bed--prod plant--prod --yes");
    repository.ends(0, "state untaint plant--prod --yes");
    let mut seen = repository.calls().len();
    repository.ends(0, "provision -S");
    let deeds = repository.deeds(&mut seen);
    assert!(
        deeds.contains(&"Create bed--prod".to_owned()) && deeds.contains(&"Delete bed--prod".to_owned()),
        "{deeds:?}"
    );
    assert!(!deeds.contains(&"Create plant--prod".to_owned()), "{deeds:?}");
}

#[test]
fn a_resource_with_another_key_keeps_its_life() {
    let repository = provisioned();
    let renamed = THREE.replace("bed:", "plot:").replace("resource:bed", "resource:plot");
    repository.describe(Sections { plugins: REC, resources: &renamed, outputs: "" });
    insta::assert_snapshot!(repository.ends(0, "state rename bed--prod plot--prod --yes"), @r#"
    exit 0
    --- out
    --- err
      rename bed--prod (rec:index:Thing) to plot--prod
    made 1 change to the state of reef
    "#);
    insta::assert_snapshot!(repository.refused("state rename plot--prod stone--prod --yes"), @r#"
    exit 1
    --- out
    --- err
    error: there is a resource stone--prod of this type already
      hint: choose another name, or forget that one first
    "#);
    repository.ends(0, "provision --expect-no-changes");
}

#[test]
fn a_state_that_is_refused_is_repaired() {
    let repository = provisioned();
    let path = "backend/.pulumi/stacks/tank/reef.json";
    let mut state: Value = serde_json::from_str(&repository.read(path)).unwrap();
    let resources = state["checkpoint"]["latest"]["resources"].as_array_mut().unwrap();
    resources.reverse();
    let plant =
        resources.iter_mut().find(|resource| resource["urn"].as_str().unwrap().ends_with("plant--prod")).unwrap();
    let gone = "urn:pulumi:reef::tank::rec:index:Thing::gone--prod";
    plant["dependencies"].as_array_mut().unwrap().push(gone.into());
    repository.write(path, &state.to_string());
    assert!(repository.refused("provision").contains("the state is inconsistent"));
    insta::assert_snapshot!(repository.ends(0, "state repair --yes"), @r#"
    exit 0
    --- out
    --- err
      move tank-reef (pulumi:pulumi:Stack)
      move rec (pulumi:providers:rec)
      move bed--prod (rec:index:Thing)
      prune plant--prod (rec:index:Thing) loses its dependency gone--prod
    made 4 changes to the state of reef
    "#);
    insta::assert_snapshot!(repository.ends(0, "state repair --yes"), @r#"
    exit 0
    --- out
    --- err
    nothing to change in the state of reef
    "#);
    repository.ends(0, "provision --expect-no-changes");

    let mut state: Value = serde_json::from_str(&repository.read(path)).unwrap();
    state["checkpoint"]["latest"]["manifest"]["magic"] = "wrong".into();
    repository.write(path, &state.to_string());
    repository.refused("provision");
    let told = repository.ends(0, "state repair --yes --json");
    assert!(
        told.contains(r#"{"do":"replace","urn":null,"detail":"the checksum of its manifest, \"wrong\""}"#),
        "{told}"
    );
    repository.ends(0, "provision --expect-no-changes");
}
