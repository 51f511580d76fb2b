//! Tests of imports of existing resources, by command or after a run that crashed during their creation.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::repository::{REC, Repository, Sections};

const TWO: &str = "bed: { type: rec:index:Thing, config: { v: read } }
plant: { type: rec:index:Thing, config: { v: green }, options: { protect: true } }";

fn repository(resources: &str) -> Repository {
    Repository::new(Sections { plugins: REC, resources, outputs: "" })
}

#[test]
fn what_exists_is_recorded_and_then_managed_as_if_it_had_been_made_here() {
    let repository = repository(TWO);
    insta::assert_snapshot!(repository.ends(0, "import bed--prod=bed-7 plant--prod=a=b --parallel 1"), @r#"
    exit 0
    --- out
    + tank-reef       Stack                 created [time]
    + ├─ rec          pulumi:providers:rec  created [time]
    = ├─ bed--prod    rec:Thing             imported [time]
      │     + v: "read"
    = └─ plant--prod  rec:Thing             imported [time]
            + v: "read"

    Import of reef done in [time]: 2 created, 2 imported
    --- err
    info: Loaded plugin: rec v1.0.0
    Importing reef
      + creating tank-reef (Stack)
      + created tank-reef (Stack) ([time])
      + creating rec (pulumi:providers:rec)
      + created rec (pulumi:providers:rec) ([time])
      = importing bed--prod (rec:Thing)
      = imported bed--prod (rec:Thing) ([time])
      = importing plant--prod (rec:Thing)
      = imported plant--prod (rec:Thing) ([time])
    "#);
    assert_eq!(
        repository.resources(),
        [
            "tank-reef pulumi:pulumi:Stack",
            "rec pulumi:providers:rec [id]",
            "bed--prod rec:index:Thing bed-7",
            "plant--prod rec:index:Thing a=b",
        ]
    );
    let mut seen = 0;
    repository.deeds(&mut seen);
    insta::assert_snapshot!(repository.ends(0, "preview --parallel 1"), @r#"
    exit 0
    --- out
      tank-reef       Stack
    ~ └─ plant--prod  rec:Thing  update
            ~ v: "read" → "green"

    Preview of reef done in [time]: 1 to update, 3 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    "#);
    repository.ends(0, "provision -S");
    assert_eq!(repository.deeds(&mut seen), ["Update plant--prod"]);
    repository.ends(1, "destroy --parent --preview");

    // An import with the same id changes nothing; an import with another id is refused.
    repository.ends(0, "import bed--prod=bed-7");
    insta::assert_snapshot!(repository.ends(1, "import bed--prod=bed-8"), @r#"
    exit 1
    --- out
      tank-reef     Stack
    ✗ └─ bed--prod  rec:Thing  failed [time]     bed--prod is recorded already, with the id "bed-7"

    Import of reef failed after [time]: 1 failed, 4 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Importing reef
      = importing bed--prod (rec:Thing)
    error: bed--prod (rec:Thing): bed--prod is recorded already, with the id "bed-7"
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         bed: { type: rec:index:Thing, config: { v: read } }
         |         ^^^
      ✗ failed to import bed--prod (rec:Thing)
    "#);
    assert_eq!(repository.processes(), []);
}

#[test]
fn what_cannot_be_imported_is_told_and_stops_nothing_else() {
    let repository = repository(TWO);
    repository.script(json!({"resources": {"bed--prod": {"read": "gone"}}}));
    insta::assert_snapshot!(repository.ends(1, "import bed--prod=bed-7 plant--prod=p-1 --parallel 1"), @r#"
    exit 1
    --- out
    + tank-reef       Stack                 created [time]
    + ├─ rec          pulumi:providers:rec  created [time]
    ✗ ├─ bed--prod    rec:Thing             failed [time]     rec:index:Thing "bed-7" does not exist
    = └─ plant--prod  rec:Thing             imported [time]
            + v: "read"

    Import of reef failed after [time]: 1 failed, 2 created, 1 imported
    --- err
    info: Loaded plugin: rec v1.0.0
    Importing reef
      + creating tank-reef (Stack)
      + created tank-reef (Stack) ([time])
      + creating rec (pulumi:providers:rec)
      + created rec (pulumi:providers:rec) ([time])
      = importing bed--prod (rec:Thing)
    error: bed--prod (rec:Thing): rec:index:Thing "bed-7" does not exist
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         bed: { type: rec:index:Thing, config: { v: read } }
         |         ^^^
      ✗ failed to import bed--prod (rec:Thing)
      = importing plant--prod (rec:Thing)
      = imported plant--prod (rec:Thing) ([time])
    "#);
    assert_eq!(repository.resources().last().unwrap(), "plant--prod rec:index:Thing p-1");
    insta::assert_snapshot!(repository.refused("import bad--prod=b"), @r#"
    exit 2
    --- out
    --- err
    error: the stack reef describes no resource bad--prod
      hint: did you mean bed--prod?
    "#);
    insta::assert_snapshot!(repository.refused("import bed--prod"), @r#"
    exit 2
    --- out
    --- err
    error: invalid value 'bed--prod' for '<RESOURCE=ID>...': write it as RESOURCE=ID, such as web--prod=i-0abc123

    For more information, try '--help'.
    "#);
}

/// Aborts a run while it creates a resource.
fn abort_a_creation(repository: &Repository) {
    repository.script(json!({"resources": {"bed--prod": {"hang": "create", "deaf": true}}}));
    // The log of an earlier run is removed.
    fs::remove_file(repository.path("rec/calls.jsonl")).ok();
    let running = repository.start("provision -S -R --target bed--prod");
    repository.until_called("Create bed--prod");
    running.signal(Signal::INT);
    repository.until_called("Cancel");
    running.signal(Signal::INT);
    running.told();
    repository.script(json!({}));
}

/// Returns a repository with a pending creation of an aborted run.
fn with_a_pending_creation() -> Repository {
    let repository = repository(TWO);
    abort_a_creation(&repository);
    assert!(repository.resources().contains(&"creating bed--prod rec:index:Thing".to_owned()));
    repository
}

#[test]
fn what_came_of_a_creation_that_nobody_saw_the_end_of_is_recorded_by_its_id() {
    let repository = with_a_pending_creation();
    // A creation stays pending if its resource is not found.
    repository.script(json!({"resources": {"bed--prod": {"read": "gone"}}}));
    repository.ends(1, "refresh --import-pending-creates bed--prod=bed--prod-2");
    repository.script(json!({}));
    assert!(repository.resources().contains(&"creating bed--prod rec:index:Thing".to_owned()));
    let told = repository.ends(0, "refresh --import-pending-creates bed--prod=bed--prod-1");
    assert!(told.contains("imported bed--prod"), "{told}");
    assert_eq!(repository.resources().last().unwrap(), "bed--prod rec:index:Thing bed--prod-1");
    insta::assert_snapshot!(repository.refused("refresh --import-pending-creates plant--prod=x"), @r#"
    exit 1
    --- out
    --- err
    info: Loaded plugin: rec v1.0.0
    error: no creation of plant--prod is pending
      hint: nothing is pending: leave it out
    "#);
    let mut seen = repository.calls().len();
    repository.ends(0, "provision -S");
    assert_eq!(repository.deeds(&mut seen), ["Create plant--prod"]);
}

#[test]
fn without_a_word_from_the_user_it_stays_pending() {
    let repository = with_a_pending_creation();
    let told = repository.ends(0, "refresh");
    assert!(
        told.contains("warning: bed--prod (rec:Thing): an earlier run was interrupted while creating it"),
        "{told}"
    );
    assert!(repository.resources().contains(&"creating bed--prod rec:index:Thing".to_owned()));
    repository.ends(0, "refresh --clear-pending-creates");
    assert!(!repository.resources().iter().any(|line| line.starts_with("creating")));
}

#[test]
fn two_creations_of_one_resource_are_settled_one_by_one() {
    let repository = with_a_pending_creation();
    abort_a_creation(&repository);
    let pending = || repository.resources().iter().filter(|line| line.starts_with("creating bed--prod")).count();
    assert_eq!(pending(), 2);
    let told = repository.ends(
        1,
        "refresh --import-pending-creates bed--prod=bed--prod-1 --import-pending-creates bed--prod=bed--prod-2",
    );
    assert!(told.contains("it is named twice, and can be imported once"), "{told}");
    assert_eq!(pending(), 1, "of the other one nobody knows what came");
    assert!(repository.resources().contains(&"bed--prod rec:index:Thing bed--prod-1".to_owned()));
}
