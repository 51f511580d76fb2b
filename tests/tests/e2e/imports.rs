//! Tests of imports of existing resources, by command or after a run that crashed during their creation.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::crashes::RECREATES;
use crate::repository::{REC, Repository, Sections};

pub(crate) const TWO: &str = "bed: { type: rec:index:Thing, config: { v: read } }
plant: { type: rec:index:Thing, config: { v: green }, options: { protect: true } }";

pub(crate) fn repository(resources: &str) -> Repository {
    Repository::new(Sections { plugins: REC, resources, outputs: "" })
}

#[test]
fn imported_resources_are_recorded_and_managed() {
    let repository = repository(TWO);
    insta::assert_snapshot!(repository.expect_exit(0, "import bed--prod=bed-7 plant--prod=a=b --parallel 1"), @r#"
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
      + created tank-reef (Stack) ([time])
      + created rec (pulumi:providers:rec) ([time])
      = imported bed--prod (rec:Thing) ([time])
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
    repository.change_calls(&mut seen);
    insta::assert_snapshot!(repository.expect_exit(0, "preview --parallel 1"), @r#"
    exit 0
    --- out
      tank-reef       Stack
    ~ └─ plant--prod  rec:Thing  update     edited here
            ~ v: "read" → "green"

    Preview of reef done in [time]: 1 to update, 3 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    "#);
    repository.expect_exit(0, "provision -S");
    assert_eq!(repository.change_calls(&mut seen), ["Update plant--prod"]);
    repository.expect_exit(1, "destroy --parent --preview");

    // An import with the same id changes nothing; an import with another id is refused.
    repository.expect_exit(0, "import bed--prod=bed-7");
    insta::assert_snapshot!(repository.expect_exit(1, "import bed--prod=bed-8"), @r#"
    exit 1
    --- out
      tank-reef     Stack
    ✗ └─ bed--prod  rec:Thing  failed [time]     bed--prod is recorded already, with the id "bed-7"

    Import of reef failed after [time]: 1 failed, 4 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Importing reef
    error: bed--prod (rec:Thing): bed--prod is recorded already, with the id "bed-7"
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         bed: { type: rec:index:Thing, config: { v: read } }
         |         ^^^
    "#);
    assert_eq!(repository.processes(), []);
}

#[test]
fn failed_import_is_reported_and_other_imports_continue() {
    let repository = repository(TWO);
    repository.script(json!({"resources": {"bed--prod": {"read": "gone"}}}));
    insta::assert_snapshot!(repository.expect_exit(1, "import bed--prod=bed-7 plant--prod=p-1 --parallel 1"), @r#"
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
      + created tank-reef (Stack) ([time])
      + created rec (pulumi:providers:rec) ([time])
    error: bed--prod (rec:Thing): rec:index:Thing "bed-7" does not exist
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         bed: { type: rec:index:Thing, config: { v: read } }
         |         ^^^
      = imported plant--prod (rec:Thing) ([time])
    "#);
    assert_eq!(repository.resources().last().unwrap(), "plant--prod rec:index:Thing p-1");
    insta::assert_snapshot!(repository.expect_rejected("import bad--prod=b"), @r#"
    exit 2
    --- out
    --- err
    error: the stack reef declares no resource bad--prod
      hint: did you mean bed--prod?
    "#);
    insta::assert_snapshot!(repository.expect_rejected("import bed--prod"), @r#"
    exit 2
    --- out
    --- err
    error: invalid value 'bed--prod' for '<RESOURCE=ID>...': expected RESOURCE=ID, such as web--prod=i-0abc123

    For more information, try '--help'.
    "#);
}

#[test]
fn types_are_checked_before_anything_is_read() {
    let repository = repository("bed: { type: rec:index:Thingy, config: { v: read } }");
    insta::assert_snapshot!(repository.expect_rejected("import bed--prod=bed"), @r#"
    exit 1
    --- out
    --- err
    info: Loaded plugin: rec v1.0.0
    error[unknown-resource-type]: unknown resource type "rec:index:Thingy": the schema of plugin rec has no such type
      --> .sc/stacks/reef/server.yaml:13:22
       |
    13 |         bed: { type: rec:index:Thingy, config: { v: read } }
       |                      ^^^^^^^^^^^^^^^^
       |
       = hint: did you mean `rec:Thing`?
       = hint: `sc schema-gen` writes a list of the types of the plugins

    error: the resources of the stack have 1 error; nothing was changed
    "#);
    assert!(!repository.calls().iter().any(|call| call.starts_with("Read")), "{:?}", repository.calls());
}

/// Aborts a run while it creates a resource.
pub(crate) fn abort_a_create(repository: &Repository) {
    repository.script(json!({"resources": {"bed--prod": {"hang": "create", "deaf": true}}}));
    // The log of an earlier run is removed.
    fs::remove_file(repository.path("rec/calls.jsonl")).ok();
    let running = repository.start("provision -S -R --target bed--prod");
    repository.wait_until_called("Create bed--prod");
    running.signal(Signal::INT);
    repository.wait_until_called("Cancel");
    running.signal(Signal::INT);
    running.output();
    repository.script(json!({}));
}

/// Returns a repository with a pending create of an aborted run.
pub(crate) fn with_a_pending_create() -> Repository {
    let repository = repository(TWO);
    abort_a_create(&repository);
    assert!(repository.resources().contains(&"creating bed--prod rec:index:Thing".to_owned()));
    repository
}

#[test]
fn pending_create_is_imported_by_its_id() {
    let repository = with_a_pending_create();
    // A create stays pending if its resource is not found.
    repository.script(json!({"resources": {"bed--prod": {"read": "gone"}}}));
    repository.expect_exit(1, "refresh --import-pending-creates bed--prod=bed--prod-2");
    repository.script(json!({}));
    assert!(repository.resources().contains(&"creating bed--prod rec:index:Thing".to_owned()));
    let output = repository.expect_exit(0, "refresh --import-pending-creates bed--prod=bed--prod-1");
    assert!(output.contains("imported bed--prod"), "{output}");
    assert_eq!(repository.resources().last().unwrap(), "bed--prod rec:index:Thing bed--prod-1");
    insta::assert_snapshot!(repository.expect_rejected("refresh --import-pending-creates plant--prod=x"), @r#"
    exit 1
    --- out
    --- err
    info: Loaded plugin: rec v1.0.0
    error: there is no pending create of plant--prod
      hint: there are no pending creates: omit --import-pending-creates
    "#);
    let mut seen = repository.calls().len();
    repository.expect_exit(0, "provision -S");
    assert_eq!(repository.change_calls(&mut seen), ["Create plant--prod"]);
}

#[test]
fn pending_create_stays_pending_without_user_input() {
    let repository = with_a_pending_create();
    let output = repository.expect_exit(0, "refresh");
    assert!(
        output.contains("warning: bed--prod (rec:Thing): an earlier run was interrupted while creating it"),
        "{output}"
    );
    assert!(repository.resources().contains(&"creating bed--prod rec:index:Thing".to_owned()));
    repository.expect_exit(0, "refresh --clear-pending-creates");
    assert!(!repository.resources().iter().any(|line| line.starts_with("creating")));
}

/// Returns a repository whose run was aborted between the delete and the create of a replacement; `plant` depends on the resource.
fn with_a_pending_replacement() -> Repository {
    let resources = |k: &str| {
        format!(
            "bed: {{ type: rec:index:Thing, config: {{ v: read, k: {k} }}, options: {{ deleteBeforeReplace: true }} }}
plant: {{ type: rec:index:Thing, config: {{ v: '${{resource:bed.id}}' }} }}"
        )
    };
    let repository = repository(&resources("x"));
    repository.expect_exit(0, "provision -S");
    repository.write_sections(Sections { plugins: REC, resources: &resources("y"), outputs: "" });
    abort_a_create(&repository);
    assert!(repository.resources().contains(&"creating bed--prod rec:index:Thing".to_owned()));
    repository
}

/// Shows: engine.md#differences-from-pulumi "A pending create of a replacement whose old resource is deleted already
///   can be imported"
#[test]
fn pending_create_of_a_delete_before_replace_is_imported_in_the_place_of_the_deleted_resource() {
    // A provider with fixed names gives the new resource the id of the deleted one.
    for id in ["bed--prod-2", "bed--prod-1"] {
        let repository = with_a_pending_replacement();
        let output = repository.expect_exit(0, "refresh");
        assert!(output.contains("give its id to the next `sc provision` or `sc refresh`"), "{output}");
        assert!(!output.contains("delete it"), "{output}");
        let output = repository.expect_exit(0, &format!("refresh --import-pending-creates bed--prod={id}"));
        assert!(output.contains("imported bed--prod"), "{output}");
        let resources = repository.resources();
        assert!(!resources.iter().any(|line| line.starts_with("creating")), "{resources:?}");
        assert!(resources.contains(&format!("bed--prod rec:index:Thing {id}")), "{resources:?}");
        // The entries are in a valid order.
        repository.expect_exit(0, "preview -R");
    }
}

/// Shows: engine.md#stop-and-abort "without a terminal, use `--import-pending-creates NAME=ID` or
///   `--clear-pending-creates`"
#[test]
fn cleared_pending_create_of_a_delete_before_replace_is_created_by_the_next_run() {
    let repository = with_a_pending_replacement();
    repository.expect_exit(0, "refresh --clear-pending-creates");
    assert!(!repository.resources().iter().any(|line| line.starts_with("creating")));
    let mut seen = repository.calls().len();
    repository.expect_exit(0, "provision -S");
    let calls = repository.change_calls(&mut seen);
    assert_eq!(calls.iter().filter(|call| *call == "Create bed--prod").count(), 1, "{calls:?}");
    assert!(!calls.iter().any(|call| call.starts_with("Delete")), "{calls:?}");
}

#[test]
fn two_pending_creates_of_one_resource_are_resolved_separately() {
    let repository = with_a_pending_create().with_setting(RECREATES);
    abort_a_create(&repository);
    let pending = || repository.resources().iter().filter(|line| line.starts_with("creating bed--prod")).count();
    assert_eq!(pending(), 2);
    let output = repository.expect_exit(
        1,
        "refresh --import-pending-creates bed--prod=bed--prod-1 --import-pending-creates bed--prod=bed--prod-2",
    );
    assert!(output.contains("it is listed twice, and can be imported only once"), "{output}");
    assert_eq!(pending(), 1, "the other create stays pending");
    assert!(repository.resources().contains(&"bed--prod rec:index:Thing bed--prod-1".to_owned()));
}

#[test]
fn pending_create_is_not_imported_as_the_resource_of_another_entry() {
    let repository = with_a_pending_create();
    repository.expect_exit(0, "provision -S -R --target plant--prod");
    let before = repository.resources();
    assert!(before.contains(&"plant--prod rec:index:Thing plant--prod-1".to_owned()), "{before:?}");
    let mut seen = repository.calls().len();
    let output = repository.expect_exit(1, "refresh --import-pending-creates bed--prod=plant--prod-1");
    assert!(output.contains("is recorded already, as"), "{output}");
    assert_eq!(repository.resources(), before, "the create stays pending, and the resource is recorded once");
    // The resource is recorded with the id that the provider returns, which may be another spelling.
    repository.script(json!({"resources": {"bed--prod": {"read": "newid"}}}));
    repository.expect_exit(0, "refresh --import-pending-creates bed--prod=bed--prod");
    let after = repository.resources();
    let imported = |line: &&String| line.starts_with("bed--prod rec:index:Thing bed--prod-new");
    assert_eq!(after.iter().filter(imported).count(), 1, "{after:?}");
    assert!(!after.iter().any(|line| line.starts_with("creating")), "{after:?}");
    assert_eq!(repository.change_calls(&mut seen), [""; 0]);
}
