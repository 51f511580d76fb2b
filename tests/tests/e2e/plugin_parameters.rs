//! Tests of plugins with `parameters`: the scripted plugin serves the package `reef` with the types of its own.

use std::fs;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::repository::{Repository, Sections};

const A: &str = "a: { type: reef:index:Thing, config: { v: x } }";

/// Returns a repository whose plugin `reef` has more keys. The plugin takes parameters.
fn repository(keys: &str) -> Repository {
    let plugins = declaration(keys);
    let repository =
        Repository::new(Sections { plugins: &plugins, resources: A, outputs: "v: '${resource:prod/a.v}'" });
    repository.script(json!({"provider": {"parameters": true}}));
    repository
}

fn declaration(keys: &str) -> String {
    format!(
        "- name: reef
  source: {{ type: local, path: $REC }}
  passEnv: [REC_DIR]
  config: {{ region: north }}
  {keys}
"
    )
}

fn declare(repository: &Repository, keys: &str) {
    let plugins = declaration(keys);
    repository.write_sections(Sections { plugins: &plugins, resources: A, outputs: "v: '${resource:prod/a.v}'" });
}

/// Returns the requests of one RPC since the first `seen` calls.
fn requests(repository: &Repository, rpc: &str, seen: usize) -> Vec<Value> {
    let text = repository.read("rec/calls.jsonl");
    let calls = text.lines().skip(seen).map(|line| serde_json::from_str::<Value>(line).unwrap());
    calls.filter(|call| call["rpc"] == rpc).map(|call| call["request"].clone()).collect()
}

fn provider(repository: &Repository) -> Value {
    let state = repository.state();
    let resources = state["checkpoint"]["latest"]["resources"].as_array().unwrap().clone();
    resources.into_iter().find(|resource| resource["type"] == "pulumi:providers:reef").unwrap()
}

fn arguments(texts: &[&str]) -> Value {
    json!({"args": {"args": texts}})
}

/// `cmVlZkAwLjI3LjE=` is `reef@0.27.1`.
fn value() -> Value {
    json!({"value": {"name": "reef", "version": "0.27.1", "value": "cmVlZkAwLjI3LjE="}})
}

/// Shows: plugins.md#parameters "Every instance that a run configures is started with this value"
#[test]
fn package_of_the_parameters_is_provisioned_with_the_recorded_value() {
    let repository = repository("parameters: [reef, 0.27.1]");
    insta::assert_snapshot!(repository.expect_exit(0, "preview"), @r#"
    exit 0
    --- out
    + tank-reef   Stack                  create
    + ├─ reef     pulumi:providers:reef  create
      │     + region: "north"
      │     + version: "0.27.1"
    + └─ a--prod  reef:Thing             create
            + v: "x"

    Outputs:
      + v: "x"

    Preview of reef done in [time]: 3 to create
    --- err
    info: Loaded plugin: reef v1.0.0
    Previewing update of reef
    "#);
    repository.expect_exit(0, "provision");
    let recorded = provider(&repository);
    let internal = json!({"name": "rec", "version": "1.0.0", "parameterization": "cmVlZkAwLjI3LjE="});
    assert_eq!(recorded["inputs"], json!({"__internal": internal, "region": "north", "version": "0.27.1"}));
    assert_eq!(recorded["outputs"], json!({"region": "north", "version": "0.27.1"}));
    assert_eq!(
        repository.resources(),
        ["tank-reef pulumi:pulumi:Stack", "reef pulumi:providers:reef [id]", "a--prod reef:index:Thing a--prod-1"]
    );
    for rpc in ["CheckConfig", "Configure"] {
        for request in requests(&repository, rpc, 0) {
            let inputs = if rpc == "Configure" { &request["args"] } else { &request["news"] };
            assert_eq!(*inputs, json!({"region": "north", "version": "0.27.1"}), "{rpc}");
        }
    }
    let seen = repository.calls().len();
    repository.expect_exit(0, "provision --expect-no-changes -S");
    let sent = requests(&repository, "Parameterize", seen);
    assert!(sent.iter().filter(|request| **request == arguments(&["reef", "0.27.1"])).count() == 1, "{sent:?}");
    assert!(sent.iter().all(|request| *request == value() || *request == arguments(&["reef", "0.27.1"])), "{sent:?}");
    assert!(sent.contains(&value()), "{sent:?}");
    let seen = repository.calls().len();
    repository.expect_exit(0, "refresh");
    repository.expect_exit(0, "destroy --parent --yes -S");
    assert!(requests(&repository, "Parameterize", seen).contains(&value()));
    assert_eq!(repository.resources().len(), 0);
    assert_eq!(repository.processes(), []);
}

/// Shows: plugins.md#parameters "and is cached with the package"
#[test]
fn parameters_are_sent_once_for_a_package_with_a_checksum() {
    let repository = repository("parameters: [reef, 0.27.1]");
    let digest = hex::encode(Sha256::digest(fs::read(env!("CARGO_BIN_EXE_pulumi-resource-rec")).unwrap()));
    let path = ".sc/stacks/reef/server.yaml";
    let pinned = repository.read(path).replace("type: local,", &format!("type: local, checksum: {digest},"));
    repository.write(path, &pinned);
    repository.expect_exit(0, "validate");
    assert_eq!(requests(&repository, "Parameterize", 0), [arguments(&["reef", "0.27.1"])]);
    let seen = repository.calls().len();
    repository.expect_exit(0, "validate");
    assert_eq!(repository.calls().len(), seen, "nothing is started");
    repository.expect_exit(0, "provision -S");
    repository.expect_exit(0, "provision --expect-no-changes");
    let sent = requests(&repository, "Parameterize", seen);
    assert!(!sent.is_empty() && sent.iter().all(|request| *request == value()), "{sent:?}");
}

/// Shows: plugins.md#parameters "Other parameters change the inputs of the provider resource"
#[test]
fn other_parameters_change_the_provider_resource() {
    let repository = repository("parameters: [reef, 0.27.1]");
    repository.expect_exit(0, "provision -S");
    declare(&repository, "parameters: [reef, 0.28.0]");
    insta::assert_snapshot!(repository.expect_exit(0, "provision -S"), @r#"
    exit 0
    --- out
      tank-reef  Stack
    ~ └─ reef    pulumi:providers:reef  updated [time]
            ~ version: "0.27.1" → "0.28.0"

    Outputs:
        v: "x"

    Update of reef done in [time]: 1 updated, 2 unchanged
    --- err
    info: Loaded plugin: reef v1.0.0
    Updating reef
      ~ updated reef (pulumi:providers:reef) ([time])
    "#);
    let internal = json!({"name": "rec", "version": "1.0.0", "parameterization": "cmVlZkAwLjI4LjA="});
    assert_eq!(
        provider(&repository)["inputs"],
        json!({"__internal": internal, "region": "north", "version": "0.28.0"})
    );
    repository.expect_exit(0, "provision --expect-no-changes -S");
}

#[test]
fn types_and_schemas_are_those_of_the_package() {
    let repository = repository("parameters: [reef, 0.27.1]");
    let schema = repository.expect_exit(0, "plugin schema reef");
    assert!(schema.contains("\"reef:index:Thing\"") && !schema.contains("\"rec:index:Thing\""), "{schema}");
    repository.expect_exit(0, "schema-gen out");
    assert!(repository.read("out/reef/index.json").contains("Thing"), "{:?}", repository.names("out"));
    declare(&repository, "parameters: [reef, 0.27.1]\n  package: reef");
    repository.expect_exit(0, "import a--prod=a-7");
    assert_eq!(provider(&repository)["inputs"]["version"], "0.27.1");
    let resources = "a: { type: reef:index:Thin, config: { v: x } }
b: { type: reef:index:Thing, config: { wv: x } }";
    let plugins = declaration("parameters: [reef, 0.27.1]");
    repository.write_sections(Sections { plugins: &plugins, resources, outputs: "" });
    insta::assert_snapshot!(repository.expect_exit(1, "validate"), @r#"
    exit 1
    --- out
    2 mistakes
    --- err
    error[unknown-resource-type]: unknown resource type "reef:index:Thin": the schema of plugin reef has no such type
      --> .sc/stacks/reef/server.yaml:17:20
       |
    17 |         a: { type: reef:index:Thin, config: { v: x } }
       |                    ^^^^^^^^^^^^^^^
       |
       = hint: did you mean `reef:Thing`?
       = hint: `sc schema-gen` writes a list of the types of the plugins

    error[unknown-property]: the type reef:Thing has no property "wv"
      --> .sc/stacks/reef/server.yaml:18:48
       |
    18 |         b: { type: reef:index:Thing, config: { wv: x } }
       |                                                ^^
       |
       = hint: it has d, k, labels, links, note, of, public, size, v, w and 1 more
    "#);
    let resources = "c: { type: reef:index:Thing, config: { v: x }, options: { version: 0.27.2 } }";
    repository.write_sections(Sections { plugins: &plugins, resources, outputs: "" });
    insta::assert_snapshot!(repository.expect_exit(1, "preview"), @r#"
    exit 1
    --- out
    --- err
    info: Loaded plugin: reef v1.0.0
    error[package]: version 0.27.2 is not that of the plugin "reef"
      --> .sc/stacks/reef/server.yaml:17:76
       |
     8 |   - name: reef
       |           ---- the plugin is version 0.27.1
    ...
    17 |         c: { type: reef:index:Thing, config: { v: x }, options: { version: 0.27.2 } }
       |                                                                            ^^^^^^

    error: the resources of the stack have 1 error; nothing was changed
    "#);
    repository.write_sections(Sections {
        plugins: &plugins,
        resources: &resources.replace("27.2", "27.1"),
        outputs: "",
    });
    repository.expect_exit(0, "preview");
}

/// Shows: plugins.md#parameters "The name of the plugin, or its `package`, is that of this package"
#[test]
fn parameters_that_do_not_serve_the_declared_package_are_refused() {
    let repository = repository("parameters: [coral, 0.27.1]");
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r#"
    exit 1
    --- out
    --- err
    info: Loaded plugin: reef v1.0.0
    error[plugin-load]: failed to load plugin reef
     --> .sc/stacks/reef/server.yaml:8:11
      |
    8 |   - name: reef
      |           ^^^^

    error: failed to load plugins: failed to load plugin reef: with its parameters it serves the package "coral", and it is declared as "reef"
      hint: write `name: coral`, or `package: coral` beside the name
    "#);
    let plugins = declaration("package: pond\n  parameters: [coral, 0.27.1]");
    repository.write_sections(Sections { plugins: &plugins, ..Sections::default() });
    let output = repository.expect_rejected("provision");
    assert!(output.contains("hint: write `package: coral`\n"), "{output}");
    declare(&repository, "parameters: [reef]");
    insta::assert_snapshot!(repository.expect_rejected("provision"), @"
    exit 1
    --- out
    --- err
    info: Loaded plugin: reef v1.0.0
    error[plugin-load]: failed to load plugin reef
     --> .sc/stacks/reef/server.yaml:8:11
      |
    8 |   - name: reef
      |           ^^^^

    error: failed to load plugins: failed to load plugin reef: it does not accept its parameters: rec: expected a name and a version
    ");
    declare(&repository, "parameters: [reef, next]");
    let output = repository.expect_rejected("validate");
    let message = "its reply to Parameterize has \"next\" as version of the package reef, which is no semantic version";
    assert!(output.contains(message), "{output}");
    repository.script(json!({}));
    insta::assert_snapshot!(repository.expect_rejected("provision"), @"
    exit 1
    --- out
    --- err
    info: Loaded plugin: reef v1.0.0
    error[plugin-load]: failed to load plugin reef
     --> .sc/stacks/reef/server.yaml:8:11
      |
    8 |   - name: reef
      |           ^^^^

    error: failed to load plugins: failed to load plugin reef: it takes no parameters
      hint: remove `parameters` from its declaration
    ");
    assert_eq!(repository.processes(), []);
}

/// Shows: plugins.md#parameters "a plugin that serves the same without parameters is declared, or one with other parameters"
#[test]
fn component_uses_a_package_with_parameters_that_is_not_declared() {
    let comp = "- { name: comp, source: { type: local, path: $COMP } }\n";
    let resources = "pond: { type: comp:index:Reef, config: { value: 1 } }";
    let rec = "- { name: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR] }";
    let other = "- { name: pond, source: { type: local, path: $REC }, passEnv: [REC_DIR], parameters: [pond, 1.0.0] }";
    for base in [rec, other] {
        let plugins = format!("{comp}{base}");
        let repository = Repository::new(Sections { plugins: &plugins, resources, outputs: "" });
        repository.script(json!({"provider": {"parameters": true}}));
        repository.expect_exit(0, "provision");
        let recorded = provider(&repository);
        assert!(recorded["urn"].as_str().unwrap().ends_with("::pulumi:providers:reef::default_0_27_1"), "{recorded}");
        let internal = json!({"name": "rec", "version": "1.0.0", "parameterization": "cmVlZkAwLjI3LjE="});
        assert_eq!(recorded["inputs"], json!({"__internal": internal, "version": "0.27.1"}));
        repository.expect_exit(0, "provision --expect-no-changes");
        repository.expect_exit(0, "destroy --parent --yes");
        assert_eq!(repository.resources().len(), 0);
    }
    let repository = Repository::new(Sections { plugins: comp, resources, outputs: "" });
    let output = repository.expect_exit(1, "provision -S --offline");
    assert!(output.contains("a component needs the plugin rec 1.0.0, a release of pulumi/pulumi-rec"), "{output}");
    assert!(output.contains("--offline permits no request for the package"), "{output}");
    let disabled = format!("{comp}{rec}").replace("passEnv", "enabled: false, passEnv");
    repository.write_sections(Sections { plugins: &disabled, resources, outputs: "" });
    let output = repository.expect_exit(1, "provision -S --offline");
    let message = "no enabled plugin serves the package \"reef\", which the plugin \"rec\" serves with parameters";
    assert!(output.contains(message), "{output}");
}
