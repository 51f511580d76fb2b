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

/// Returns the lines with a word. Other lines are about the two plugins, whose order is that of their starts.
fn lines_of(told: &str, word: &str) -> String {
    told.lines().filter(|line| line.contains(word)).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_component_is_made_with_its_children_changed_left_alone_and_destroyed() {
    let repository = repository(PAIR);
    insta::assert_snapshot!(lines_of(&repository.ends(0, "provision --parallel 1"), "pair--prod"), @r#"
    + ├─ pair--prod         comp:Pair              create
    + │  ├─ pair--prod-one  rec:Thing              create
    + │  └─ pair--prod-two  rec:Thing              create
      + creating pair--prod (comp:Pair)
      + created pair--prod (comp:Pair) ([time])
      + creating pair--prod-one (rec:Thing)
      + created pair--prod-one (rec:Thing) ([time])
      + creating pair--prod-two (rec:Thing)
      + created pair--prod-two (rec:Thing) ([time])
    "#);
    let mut seen = 0;
    let made = ["Create after--prod", "Create pair--prod-one", "Create pair--prod-two"];
    assert_eq!(repository.deeds(&mut seen), made);
    let state = repository.state();
    let resources = state["checkpoint"]["latest"]["resources"].as_array().unwrap();
    let one =
        resources.iter().find(|resource| resource["urn"].as_str().unwrap().ends_with("::pair--prod-one")).unwrap();
    assert!(one["provider"].as_str().unwrap().contains("::rec::"), "children use the declared plugin: {one}");

    repository.ends(0, "provision --expect-no-changes");
    let changed = PAIR.replace("value: 1", "value: 2");
    repository.describe(Sections {
        plugins: PLUGINS,
        resources: &changed,
        outputs: "last: '${resource:prod/pair.last}'",
    });
    repository.ends(0, "provision -S");
    assert_eq!(repository.deeds(&mut seen), ["Update after--prod", "Update pair--prod-one", "Update pair--prod-two"]);
    repository.ends(0, "destroy --parent --yes -S");
    assert_eq!(repository.resources().len(), 0);
    assert_eq!(repository.processes(), []);
}

#[test]
fn a_component_that_its_plugin_refuses_is_told_with_its_place_and_the_plugins_words() {
    let repository = repository("pair: { type: comp:index:Nothing, config: { value: 1 } }");
    insta::assert_snapshot!(lines_of(&repository.ends(1, "provision -S"), "Nothing"), @r#"
    error: pair--prod (comp:Nothing): there is no component comp:index:Nothing
      14 |         pair: { type: comp:index:Nothing, config: { value: 1 } }
    "#);
    assert_eq!(repository.processes(), []);
}

#[test]
fn a_child_that_fails_is_told_with_the_place_of_its_component() {
    let repository = repository(PAIR);
    repository.script(json!({"resources": {"pair--prod-two": {"create": "error"}}}));
    let told = repository.ends(1, "provision -S");
    insta::assert_snapshot!(format!("{}\n{}", lines_of(&told, "error"), lines_of(&told, "14 |")), @r#"
    error: pair--prod-two (rec:Thing): rec: Create fails
      14 |         pair: { type: comp:index:Pair, config: { value: 1 } }
    "#);
}

#[test]
fn an_interrupt_in_the_middle_of_a_component_keeps_what_was_made() {
    let repository = repository(PAIR);
    repository.script(json!({"resources": {"pair--prod-one": {"hang": "create"}}}));
    let running = repository.start("provision -S");
    repository.until_called("Create pair--prod-one");
    running.signal(Signal::INT);
    let told = running.told();
    assert!(told.starts_with("exit 130\n"), "{told}");
    assert!(!told.contains("error"), "{told}");
    assert!(repository.resources().contains(&"pair--prod-one rec:index:Thing pair--prod-one-1".to_owned()));
    assert_eq!(repository.processes(), []);
    repository.script(json!({}));
    let mut seen = repository.calls().len();
    repository.ends(0, "provision -S");
    assert_eq!(repository.deeds(&mut seen), ["Create after--prod", "Create pair--prod-two"]);
}

#[test]
fn a_component_plugin_that_dies_is_named_and_its_child_under_way_is_recorded() {
    let repository = repository(PAIR);
    repository.script(json!({"resources": {"pair--prod-one": {"hang": "create"}}}));
    let running = repository.start("provision -S");
    repository.until_called("Create pair--prod-one");
    let of_plugin = |(_, command): &&(i32, String)| command.contains("pulumi-resource-comp");
    let processes = repository.processes();
    signal(processes.iter().find(of_plugin).unwrap().0, Signal::KILL);
    // A running step is awaited until the user aborts the run.
    running.signal(Signal::INT);
    let told = running.told();
    assert!(told.starts_with("exit 1"), "{told}");
    assert!(repository.resources().contains(&"pair--prod-one rec:index:Thing pair--prod-one-1".to_owned()));
    assert!(!repository.is_locked());
    assert_eq!(repository.processes(), []);
    repository.script(json!({}));
    repository.ends(0, "provision -S");
    repository.ends(0, "provision --expect-no-changes");
}

#[test]
fn one_of_several_plugins_of_a_package_makes_a_component() {
    let plugins = "- { name: one, package: comp, source: { type: local, path: $COMP } }
- { name: two, package: comp, source: { type: local, path: $COMP } }
- { name: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR] }";
    let resources = "pair: { type: comp:index:Pair, config: { value: 1 }, options: { provider: two } }";
    let repository = Repository::new(Sections { plugins, resources, outputs: "" });
    repository.ends(0, "provision -S");
    assert!(repository.resources().iter().any(|line| line.starts_with("pair--prod-two ")));
}
