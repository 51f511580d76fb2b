//! Tests of components in a server.yaml: their plugin constructs them, and the children use the plugins of the file.

use rustix::process::Signal;
use serde_json::json;

use crate::processes::signal;
use crate::repository::{Repository, Sections};

const PLUGINS: &str = "- { name: comp, source: { type: local, path: $COMP } }
- { name: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR], config: { region: north } }";

const PAIR: &str = "pair: { type: comp:index:Pair, config: { value: 1 } }
after: { type: rec:index:Thing, config: { v: '${resource:pair.last}' } }";

fn repository(resources: &str) -> Repository {
    Repository::new(Sections { plugins: PLUGINS, resources, outputs: "last: '${resource:prod/pair.last}'" })
}

/// Returns the lines that contain a word. Lines about the two plugins have no fixed order.
fn lines_of(output: &str, word: &str) -> String {
    output.lines().filter(|line| line.contains(word)).collect::<Vec<_>>().join("\n")
}

#[test]
fn component_is_created_updated_unchanged_and_destroyed_with_children() {
    let repository = repository(PAIR);
    insta::assert_snapshot!(lines_of(&repository.expect_exit(0, "provision --parallel 1"), "pair--prod"), @r#"
    + ├─ pair--prod         comp:Pair              create
    + │  ├─ pair--prod-one  rec:Thing              create
    + │  └─ pair--prod-two  rec:Thing              create
      + created pair--prod (comp:Pair) ([time])
      + created pair--prod-one (rec:Thing) ([time])
      + created pair--prod-two (rec:Thing) ([time])
    "#);
    let mut seen = 0;
    let created = ["Create after--prod", "Create pair--prod-one", "Create pair--prod-two"];
    assert_eq!(repository.change_calls(&mut seen), created);
    let state = repository.state();
    let resources = state["checkpoint"]["latest"]["resources"].as_array().unwrap();
    let one =
        resources.iter().find(|resource| resource["urn"].as_str().unwrap().ends_with("::pair--prod-one")).unwrap();
    assert!(one["provider"].as_str().unwrap().contains("::rec::"), "children use the declared plugin: {one}");

    repository.expect_exit(0, "provision --expect-no-changes");
    let changed = PAIR.replace("value: 1", "value: 2");
    repository.write_sections(Sections {
        plugins: PLUGINS,
        resources: &changed,
        outputs: "last: '${resource:prod/pair.last}'",
    });
    repository.expect_exit(0, "provision -S");
    assert_eq!(
        repository.change_calls(&mut seen),
        ["Update after--prod", "Update pair--prod-one", "Update pair--prod-two"]
    );
    repository.expect_exit(0, "destroy --parent --yes -S");
    assert_eq!(repository.resources().len(), 0);
    assert_eq!(repository.processes(), []);
}

#[test]
fn rejected_component_is_reported_with_position_and_plugin_message() {
    let repository = repository("pair: { type: comp:index:Nothing, config: { value: 1 } }");
    insta::assert_snapshot!(lines_of(&repository.expect_exit(1, "provision -S"), "Nothing"), @r#"
    ✗ └─ pair--prod  comp:Nothing           failed [time]     unknown component type comp:index:Nothing
    error: pair--prod (comp:Nothing): unknown component type comp:index:Nothing
      14 |         pair: { type: comp:index:Nothing, config: { value: 1 } }
    "#);
    assert_eq!(repository.processes(), []);
}

#[test]
fn failed_child_is_reported_with_the_position_of_its_component() {
    let repository = repository(PAIR);
    repository.script(json!({"resources": {"pair--prod-two": {"create": "error"}}}));
    let output = repository.expect_exit(1, "provision -S");
    insta::assert_snapshot!(format!("{}\n{}", lines_of(&output, "error"), lines_of(&output, "14 |")), @r#"
    error: pair--prod-two (rec:Thing): rec: Create fails
      14 |         pair: { type: comp:index:Pair, config: { value: 1 } }
    "#);
}

#[test]
fn interrupted_component_keeps_created_children() {
    let repository = repository(PAIR);
    repository.script(json!({"resources": {"pair--prod-one": {"hang": "create"}}}));
    let running = repository.start("provision -S");
    repository.wait_until_called("Create pair--prod-one");
    running.signal(Signal::INT);
    let output = running.output();
    assert!(output.starts_with("exit 130\n"), "{output}");
    assert!(!output.contains("error"), "{output}");
    assert!(repository.resources().contains(&"pair--prod-one rec:index:Thing pair--prod-one-1".to_owned()));
    assert_eq!(repository.processes(), []);
    repository.script(json!({}));
    let mut seen = repository.calls().len();
    repository.expect_exit(0, "provision -S");
    assert_eq!(repository.change_calls(&mut seen), ["Create after--prod", "Create pair--prod-two"]);
}

#[test]
fn running_child_is_recorded_if_the_component_plugin_dies() {
    let repository = repository(PAIR);
    repository.script(json!({"resources": {"pair--prod-one": {"hang": "create"}}}));
    let running = repository.start("provision -S");
    repository.wait_until_called("Create pair--prod-one");
    let of_plugin =
        |(_, command): &&(i32, String)| command.contains("pulumi-resource-comp") && !command.starts_with("supervisor ");
    let processes = repository.processes();
    signal(processes.iter().find(of_plugin).unwrap().0, Signal::KILL);
    // A running step is awaited until the user aborts the run.
    running.signal(Signal::INT);
    let output = running.output();
    assert!(output.starts_with("exit 1"), "{output}");
    assert!(repository.resources().contains(&"pair--prod-one rec:index:Thing pair--prod-one-1".to_owned()));
    assert!(!repository.is_locked());
    assert_eq!(repository.processes(), []);
    repository.script(json!({}));
    repository.expect_exit(0, "provision -S");
    repository.expect_exit(0, "provision --expect-no-changes");
}

#[test]
fn provider_option_selects_the_plugin_of_a_component() {
    let plugins = "- { name: one, package: comp, source: { type: local, path: $COMP } }
- { name: two, package: comp, source: { type: local, path: $COMP } }
- { name: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR] }";
    let resources = "pair: { type: comp:index:Pair, config: { value: 1 }, options: { provider: two } }";
    let repository = Repository::new(Sections { plugins, resources, outputs: "" });
    repository.expect_exit(0, "provision -S");
    assert!(repository.resources().iter().any(|line| line.starts_with("pair--prod-two ")));
}
