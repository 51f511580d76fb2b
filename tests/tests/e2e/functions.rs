//! Tests of functions of plugins, which a server.yaml calls.

use serde_json::{Value, json};

use crate::repository::{PROVISIONER, Repository, Sections};

/// Returns a repository with these functions of all environments, and resources of the environment `prod`.
fn repository(functions: &str, resources: &str, rest: &str) -> Repository {
    let repository = Repository::new(Sections::default());
    write(&repository, functions, resources, rest);
    repository
}

fn write(repository: &Repository, functions: &str, resources: &str, rest: &str) {
    let indented = |text: &str, by: usize| text.lines().map(|line| format!("{:by$}{line}\n", "")).collect::<String>();
    let (functions, resources) = (indented(functions, 4), indented(resources, 8));
    repository.write(
        ".sc/stacks/reef/server.yaml",
        &format!(
            "schemaVersion: 1.0\n{PROVISIONER}plugins:
  - {{ name: rec, source: {{ type: local, path: $REC }}, passEnv: [REC_DIR] }}
  - {{ name: off, enabled: false, source: {{ type: local, path: $REC }} }}
resources:
  functions:
{functions}  resources:
    prod:
      resources:
{resources}{rest}"
        ),
    );
}

/// Returns the arguments of the calls of functions after the first `seen` calls of the plugin, each with a mark of a preview.
fn invokes(repository: &Repository, seen: &mut usize) -> Vec<String> {
    let text = repository.read("rec/calls.jsonl");
    let calls: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let invokes = calls[*seen..].iter().filter(|call| call["rpc"] == "Invoke").map(|call| {
        let mark = if call["request"]["preview"] == true { "preview " } else { "" };
        format!("{mark}{}", call["request"]["args"])
    });
    let mut invokes: Vec<String> = invokes.collect();
    *seen = calls.len();
    invokes.sort();
    invokes
}

/// Shows: server-yaml.md#functions "a run calls a function once for equal arguments, and in `provision`, the update uses the results of its preview"
/// Shows: server-yaml.md#functions "if a resource in the arguments or in `dependsOn` would be created or changed, the function is not called"
#[test]
fn preview_calls_what_it_can_and_the_update_uses_its_results() {
    let resources = "a: { type: rec:index:Thing, config: { v: x } }
b: { type: rec:index:Thing, config: { v: '${function:one.result.x}', w: '${function:late.result.x}' } }";
    let functions =
        "one: { function: rec:get, arguments: { x: 1 } }\ntwo: { function: rec:index:get, arguments: { x: 1 } }";
    let repository = repository(functions, resources, "outputs: { late: '${function:late.result}' }\n");
    let path = ".sc/stacks/reef/server.yaml";
    let late =
        "    prod:\n      functions: { late: { function: rec:index:get, arguments: { x: '${resource:a.v}' } } }\n";
    repository.write(path, &repository.read(path).replace("    prod:\n", late));
    let mut seen = 0;
    insta::assert_snapshot!(repository.expect_exit(0, "preview"), @r#"
    exit 0
    --- out
    + tank-reef   Stack                 create
    + ├─ rec      pulumi:providers:rec  create
    + ├─ a--prod  rec:Thing             create
      │     + v: "x"
    + └─ b--prod  rec:Thing             create
            + v: 1
            + w: <computed>

    Outputs:
      + late: <computed>

    Preview of reef done in [time]: 4 to create
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    "#);
    assert_eq!(invokes(&repository, &mut seen), [r#"preview {"x":1}"#]);
    let output = repository.expect_exit(0, "provision --yes");
    assert!(output.contains("  + late:\n    + x: \"x\"\n"), "{output}");
    assert_eq!(invokes(&repository, &mut seen), [r#"preview {"x":1}"#, r#"{"x":"x"}"#]);
    let state = repository.state().to_string();
    assert!(state.contains(r#""v":1"#) && state.contains(r#""w":"x""#), "{state}");
    let b = &repository.state()["checkpoint"]["latest"]["resources"][3];
    assert!(b["dependencies"].to_string().contains("::a--prod"), "{b}");
    // Nothing changes, so the preview calls both.
    repository.expect_exit(0, "provision --yes --expect-no-changes");
    assert_eq!(invokes(&repository, &mut seen), [r#"preview {"x":"x"}"#, r#"preview {"x":1}"#]);
    repository.expect_exit(0, "refresh --yes");
    repository.expect_exit(0, "destroy --parent --yes");
    assert_eq!(invokes(&repository, &mut seen), [""; 0]);
}

/// Shows: server-yaml.md#functions "A failed call ends the run with an error at the line of the function, with what the plugin says."
#[test]
fn failed_call_is_an_error_at_the_line_of_the_function() {
    let resources = "a: { type: rec:index:Thing, config: { v: '${function:one.result.x}' } }";
    let repository = repository("one: { function: rec:index:get, arguments: { x: 1 } }", resources, "");
    let status = json!({ "code": 5, "message": "no such zone" });
    repository.script(json!({ "resources": { "rec:index:get": { "statuses": { "Invoke": status } } } }));
    insta::assert_snapshot!(repository.expect_rejected("preview"), @"
    exit 1
    --- out
    + tank-reef  Stack                 create
    + └─ rec     pulumi:providers:rec  create

    Preview of reef failed after [time]: 2 to create
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    error: plugin rec: no such zone
      at .sc/stacks/reef/server.yaml:12:5
         |
      12 |     one: { function: rec:index:get, arguments: { x: 1 } }
         |     ^^^
    ");
    repository.script(json!({ "resources": { "rec:index:get": { "checkFailures": ["x"] } } }));
    insta::assert_snapshot!(repository.expect_rejected("preview"), @"
    exit 1
    --- out
    + tank-reef  Stack                 create
    + └─ rec     pulumi:providers:rec  create

    Preview of reef failed after [time]: 2 to create
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    error: plugin rec: property x: rec: not allowed
      at .sc/stacks/reef/server.yaml:12:50
         |
      12 |     one: { function: rec:index:get, arguments: { x: 1 } }
         |                                                  ^
    ");
}

/// Shows: server-yaml.md#functions "A secret among the arguments makes the whole result secret."
#[test]
fn result_of_a_secret_is_secret_and_a_large_one_is_accepted() {
    let resources =
        "a: { type: rec:index:Thing, config: { v: '${function:one.result.x}', w: '${function:two.result.x}' } }";
    let functions = "one: { function: rec:index:get, arguments: { x: 'of ${secret:token}' } }\ntwo: { function: rec:index:get, arguments: { x: 2 } }";
    let repository = repository(functions, resources, "outputs: { v: '${function:one.result.x}' }\n");
    repository.write(".sc/stacks/reef/secrets.yaml", "values: { token: squid }\n");
    repository.script(json!({ "resources": { "rec:index:get": { "padding": 50 << 20 } } }));
    let output = repository.expect_exit(0, "provision --yes");
    assert!(output.contains("v: [secret]") && !output.contains("squid"), "{output}");
    let state = repository.state().to_string();
    assert!(!state.contains("squid") && state.contains(r#""w":2"#), "{state}");
}

/// Shows: server-yaml.md#functions "A plugin that is disabled is a mistake at the function that needs it."
/// Shows: server-yaml.md#functions "an unknown function, an unknown or missing argument, and a part that the result does not have are mistakes at their lines"
#[test]
fn mistakes_are_reported_before_anything_is_changed() {
    let thing = "a: { type: rec:index:Thing, config: { v: '${function:one.result}', w: '${function:two.reslut}' } }";
    let repository = repository("one: { function: off:index:get }\ntwo: { function: rec:index:get }", thing, "");
    insta::assert_snapshot!(repository.expect_rejected("provision -S"), @r#"
    exit 1
    --- out
    --- err
    error[unknown-function]: unknown function "off:index:get": no enabled plugin serves the package "off"
      --> .sc/stacks/reef/server.yaml:12:22
       |
     9 |   - { name: off, enabled: false, source: { type: local, path: [bin]/pulumi-resource-rec } }
       |             --- this plugin is disabled
    ...
    12 |     one: { function: off:index:get }
       |                      ^^^^^^^^^^^^^
       |
       = hint: set `enabled: true` to use it

    error: the configuration has an error; nothing was changed
    "#);
    write(
        &repository,
        "one: { function: rec:index:gte }\ntwo: { function: rec:index:get, arguments: { y: 1 } }",
        thing,
        "",
    );
    insta::assert_snapshot!(repository.expect_rejected("provision -S"), @r#"
    exit 1
    --- out
    --- err
    info: Loaded plugin: rec v1.0.0
    error[unknown-function]: unknown function "rec:index:gte": the schema of plugin rec has no such function
      --> .sc/stacks/reef/server.yaml:12:22
       |
    12 |     one: { function: rec:index:gte }
       |                      ^^^^^^^^^^^^^

    error[unknown-property]: the function rec:get has no argument "y"
      --> .sc/stacks/reef/server.yaml:13:50
       |
    13 |     two: { function: rec:index:get, arguments: { y: 1 } }
       |                                                  ^
       |
       = hint: it has x

    error: the resources of the stack have 2 errors; nothing was changed
    "#);
    insta::assert_snapshot!(repository.expect_rejected("validate"), @r#"
    exit 1
    --- out
    3 mistakes
    --- err
    error[unknown-function]: unknown function "rec:index:gte": the schema of plugin rec has no such function
      --> .sc/stacks/reef/server.yaml:12:22
       |
    12 |     one: { function: rec:index:gte }
       |                      ^^^^^^^^^^^^^
       |
       = hint: did you mean `rec:get`?

    error[unknown-property]: the function rec:get has no argument "y"
      --> .sc/stacks/reef/server.yaml:13:50
       |
    13 |     two: { function: rec:index:get, arguments: { y: 1 } }
       |                                                  ^
       |
       = hint: it has x

    error[unknown-output]: function "two" has no result "reslut"
      --> .sc/stacks/reef/server.yaml:17:80
       |
    17 |         a: { type: rec:index:Thing, config: { v: '${function:one.result}', w: '${function:two.reslut}' } }
       |                                                                                ^^^^^^^^^^^^^^^^^^^^^^
       |
       = note: the schema of the function rec:index:get has no such result
       = hint: did you mean `result`?
    "#);
    let mutual = "one: { function: rec:get, arguments: { x: '${function:two}' } }\ntwo: { function: rec:get, arguments: { x: '${function:one}' } }";
    write(&repository, mutual, thing, "");
    insta::assert_snapshot!(repository.expect_rejected("validate --no-plugins"), @"
    exit 1
    --- out
    1 mistake
    --- err
    error[dependency-cycle]: dependency cycle: function one -> function two -> function one
      --> .sc/stacks/reef/server.yaml:13:48
       |
    13 |     two: { function: rec:get, arguments: { x: '${function:one}' } }
       |                                                ^^^^^^^^^^^^^^^
    ");
}

/// Shows: server-yaml.md#functions-that-decide "Such a function is called first, in previews and runs of the program alike"
/// Shows: server-yaml.md#functions-that-decide "A failed call changes nothing."
#[test]
fn result_decides_which_resources_there_are() {
    let functions = |names: &str, on: &str| {
        format!(
            "zones: {{ function: rec:get, arguments: {{ x: {names} }} }}\nswitch: {{ function: rec:get, arguments: {{ x: {on} }} }}"
        )
    };
    let resources =
        "web: { type: rec:index:Thing, forEach: '${function:zones.result.x}', config: { v: '${each:value}' } }
db: { type: rec:index:Thing, enabled: '${function:switch.result.x}', config: { v: x } }
all: { type: rec:index:Thing, config: { d: '${resource:web[*].v}', v: '${resource:db.v:none}' } }";
    let repository = repository(&functions("[eu, us]", "false"), resources, "");
    let things = || {
        let things = repository.resources().into_iter().filter(|resource| resource.contains("Thing"));
        let mut names: Vec<_> = things.map(|thing| thing.split(' ').next().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let mut seen = 0;
    let output = repository.expect_exit(0, "preview");
    assert!(output.contains("web-eu--prod") && output.contains("5 to create"), "{output}");
    assert_eq!(invokes(&repository, &mut seen), [r#"preview {"x":["eu","us"]}"#, r#"preview {"x":false}"#]);
    repository.expect_exit(0, "provision --yes");
    assert_eq!(invokes(&repository, &mut seen), [r#"preview {"x":["eu","us"]}"#, r#"preview {"x":false}"#]);
    assert_eq!(things(), ["all--prod", "web-eu--prod", "web-us--prod"]);
    repository.expect_exit(0, "provision --yes --expect-no-changes");
    write(&repository, &functions("[us]", "true"), resources, "");
    repository.expect_exit(0, "provision --yes");
    assert_eq!(things(), ["all--prod", "db--prod", "web-us--prod"]);
    repository.script(json!({ "resources": { "rec:index:get": { "statuses": { "Invoke": { "code": 5, "message": "no such zone" } } } } }));
    let output = repository.expect_rejected("provision --yes");
    for expected in [
        "error[function]: no such zone",
        "--> .sc/stacks/reef/server.yaml:1",
        "= note: the plugin rec says so",
        "error: functions do not say what the stack consists of; nothing was changed",
    ] {
        assert!(output.contains(expected), "{expected}: {output}");
    }
    write(&repository, &functions("['${resource:prod/db.v}']", "true"), resources, "");
    let output = repository.expect_rejected("validate");
    assert!(output.contains("a function of all environments refers to no resource"), "{output}");
}

/// Shows: server-yaml.md#functions-that-decide "A plugin cannot be configured with what it serves itself."
#[test]
fn plugin_is_configured_with_the_result_of_another_one() {
    let repository =
        repository("token: { function: rec:get, arguments: { x: tide }, options: { provider: rec } }", "", "");
    let path = ".sc/stacks/reef/server.yaml";
    let second = "  - { name: two, package: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR], config: { zone: '${function:token.result.x}' } }\n";
    repository.write(path, &repository.read(path).replace("  - { name: off,", &format!("{second}  - {{ name: off,")));
    repository.expect_exit(0, "provision --yes");
    let state = repository.state().to_string();
    assert!(state.contains(r#""zone":"tide""#), "{state}");
    repository.write(path, &repository.read(path).replace("provider: rec }", "provider: two }"));
    let output = repository.expect_rejected("provision --yes");
    assert!(
        output.contains("the plugin \"two\" serves function \"token\", so its `config` cannot depend on it"),
        "{output}"
    );
}
