//! Tests of what a server.yaml says about its list of resources: which are switched off, and which have moved.

use crate::repository::{REC, Repository, Sections};

fn repository(resources: &str, outputs: &'static str) -> Repository {
    Repository::new(Sections { plugins: REC, resources, outputs })
}

fn write(repository: &Repository, resources: &str) {
    repository.write_sections(Sections { plugins: REC, resources, outputs: "" });
}

/// Shows: server-yaml.md#switches "what exists of them is deleted, as if they were removed from the file"
#[test]
fn resource_that_is_switched_off_is_deleted_and_created_again() {
    let resources = "a: { type: rec:index:Thing, enabled: '${env:WITH_A:false}', config: { v: x } }
b: { type: rec:index:Thing, config: { v: '${resource:a.v:none}' }, options: { dependsOn: [a] } }";
    let repository = repository(resources, "v: '${resource:prod/a.v:none}'");
    let run = |with: &str| {
        let mut command = repository.command("provision -S");
        command.env("WITH_A", with);
        let output = repository.start_command(command).output();
        assert!(output.starts_with("exit 0\n"), "{output}");
        output
    };
    let resources =
        || repository.resources().into_iter().filter(|resource| resource.contains("Thing")).collect::<Vec<_>>();
    assert!(run("false").contains("v: \"none\""), "the default counts");
    assert_eq!(resources(), ["b--prod rec:index:Thing b--prod-1"]);
    assert!(run("true").contains("v: \"x\""));
    assert_eq!(resources(), ["a--prod rec:index:Thing a--prod-1", "b--prod rec:index:Thing b--prod-1"]);
    let output = run("false");
    assert!(output.contains("deleted a--prod"), "{output}");
    assert_eq!(resources(), ["b--prod rec:index:Thing b--prod-1"]);
}

/// Shows: server-yaml.md#moved-resources "which renames it in the state and changes nothing else"
/// Shows: server-yaml.md#moved-resources "Once the move is recorded, `sc` tells that the entry can be removed"
#[test]
fn resource_that_has_moved_is_renamed_and_not_replaced() {
    let thing = "{ type: rec:index:Thing, config: { v: x } }";
    let repository = repository(&format!("web: {thing}"), "");
    repository.expect_exit(0, "provision -S");
    write(&repository, &format!("site: {thing}"));
    let path = ".sc/stacks/reef/server.yaml";
    let moved = "resources:\n  moved: [{ from: prod/web, to: prod/site }]\n  resources:\n";
    repository.write(path, &repository.read(path).replacen("resources:\n  resources:\n", moved, 1));
    insta::assert_snapshot!(repository.expect_exit(0, "preview"), @"
    exit 0
    --- out
      tank-reef      Stack
    → └─ site--prod  rec:Thing  rename     renamed from web--prod

    Preview of reef done in [time]: 1 to rename, 2 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    ");
    let mut after = repository.calls().len();
    repository.expect_exit(0, "provision -S");
    assert_eq!(repository.change_calls(&mut after), [""; 0], "no call changes the resource");
    let things: Vec<_> = repository.resources().into_iter().filter(|resource| resource.contains("Thing")).collect();
    assert_eq!(things, ["site--prod rec:index:Thing web--prod-1"]);
    let output = repository.expect_exit(0, "provision --expect-no-changes -S");
    assert!(output.contains("info: prod/web was moved to prod/site: its entry in `moved` can be removed"), "{output}");
    assert_eq!(output.matches("can be removed").count(), 1, "{output}");
}

/// Shows: server-yaml.md#moved-resources "If the state has both, nothing is changed"
#[test]
fn move_to_a_resource_that_exists_is_refused() {
    let thing = "{ type: rec:index:Thing, config: { v: x } }";
    let repository = repository(&format!("web: {thing}\nsite: {thing}"), "");
    repository.expect_exit(0, "provision -S");
    write(&repository, &format!("site: {thing}"));
    let path = ".sc/stacks/reef/server.yaml";
    let moved = "resources:\n  moved: [{ from: prod/web, to: prod/site }]\n  resources:\n";
    repository.write(path, &repository.read(path).replacen("resources:\n  resources:\n", moved, 1));
    insta::assert_snapshot!(repository.expect_rejected("provision -S"), @"
    exit 1
    --- out
    --- err
    info: Loaded plugin: rec v1.0.0
    error[moved]: the state has both prod/web and prod/site, to which it is moved
      --> .sc/stacks/reef/server.yaml:10:19
       |
    10 |   moved: [{ from: prod/web, to: prod/site }]
       |                   ^^^^^^^^
       |
       = hint: remove the entry from `moved`, so that prod/web is deleted, or remove one of both from the state

    error: the resources of the stack have 1 error; nothing was changed
    ");
}

/// Shows: server-yaml.md#several-resources-of-one-entry "An entry that is removed from the collection deletes its resource, and no other one changes."
/// Shows: server-yaml.md#several-resources-of-one-entry "A single resource that becomes one with `forEach`, or the other way round, has [moved](#moved-resources)"
#[test]
fn resource_of_each_entry_is_registered_and_a_single_one_becomes_one_of_them() {
    let repository = repository("web: { type: rec:index:Thing, config: { v: x } }", "");
    repository.expect_exit(0, "provision -S");
    let each = |entries: &str| {
        format!(
            "web: {{ type: rec:index:Thing, forEach: {entries}, config: {{ v: '${{each:value}}' }} }}
all: {{ type: rec:index:Thing, config: {{ d: '${{resource:web[*].v}}', v: '${{resource:web[eu].id}}' }} }}"
        )
    };
    let moved = |repository: &Repository, resources: &str, list: &str| {
        write(repository, resources);
        let path = ".sc/stacks/reef/server.yaml";
        let moved = format!("resources:\n  moved: {list}\n  resources:\n");
        repository.write(path, &repository.read(path).replacen("resources:\n  resources:\n", &moved, 1));
    };
    let things = || {
        let things = repository.resources().into_iter().filter(|resource| resource.contains("Thing"));
        things.map(|thing| thing.replace(" rec:index:Thing", "")).collect::<Vec<_>>()
    };
    moved(&repository, &each("{ eu: x, us: y }"), "[{ from: prod/web, to: 'prod/web[eu]' }]");
    let mut seen = repository.calls().len();
    repository.expect_exit(0, "provision -S");
    assert_eq!(repository.change_calls(&mut seen), ["Create all--prod", "Create web-us--prod"]);
    assert_eq!(things(), ["web-eu--prod web--prod-1", "web-us--prod web-us--prod-1", "all--prod all--prod-1"]);
    let state = repository.state().to_string();
    assert!(state.contains(r#""d":["x","y"]"#), "{state}");

    moved(&repository, &each("{ eu: x }"), "[]");
    repository.expect_exit(0, "provision -S");
    assert_eq!(repository.change_calls(&mut seen), ["Delete web-us--prod", "Update all--prod"]);
    moved(&repository, "web: { type: rec:index:Thing, config: { v: x } }", "[{ from: 'prod/web[eu]', to: prod/web }]");
    repository.expect_exit(0, "provision -S");
    assert_eq!(repository.change_calls(&mut seen), ["Delete all--prod"]);
    assert_eq!(things(), ["web--prod web--prod-1"]);
}

/// Shows: server-yaml.md#environments-and-stacks "`sc validate --compat` lists what the Go program ignores in the files"
#[test]
fn keys_that_another_program_ignores_are_listed_on_request() {
    let repository = repository("a: { type: rec:index:Thing, enabled: true, config: { v: x } }", "");
    let listed = |arguments: &str| {
        let output = repository.expect_exit(0, arguments);
        output.lines().filter(|line| line.starts_with("warning[compat]")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(listed("validate --no-plugins"), [""; 0]);
    let expected = [
        "warning[compat]: the Go program ignores `plugins`: it has no plugins, and refuses their types",
        "warning[compat]: the Go program ignores `enabled`: it registers a resource that is switched off",
    ];
    assert_eq!(listed("validate --no-plugins --compat")[..2], expected);
}
