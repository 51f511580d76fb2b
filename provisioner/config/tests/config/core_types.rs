//! Decoding and checks of core types, with a type that exists only in tests.

use config::diagnostics::{Code, Diagnostic};
use config::tree::Node;
use config::types::{CoreConfig, CoreType, Decoded, TextHandle, TypeOrigin, TypeTable, decode};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::repository::Files;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Pond {
    /// Owner of the pond.
    owner: Option<TextHandle>,
    depth: i64,
    frozen: bool,
    depth_text: String,
    fish: Vec<Fish>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Fish {
    Carp,
    Trout,
}

impl CoreConfig for Pond {
    const TYPE: &'static str = "pond";
    const ORIGIN: TypeOrigin = TypeOrigin::Own;
    const PROVIDER: &'static str = "water";
    const OUTPUTS: &'static [&'static str] = &["water", "depth"];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        if decoded.config.depth < 0 {
            let span = node.get_path(["depth"]).map(|node| node.span);
            diagnostics.push(Diagnostic::error(Code("pond"), span, "a pond has a depth"));
        }
    }
}

fn ponds(config: &str) -> Files {
    Files::sections(&format!(
        "resources: {{ resources: {{ e: {{ resources: {{ a: {{ type: pond }}, b: {{ type: pond, config: {{ {config} }} }} }} }} }} }}\n"
    ))
    .types(pond_types())
}

/// Returns a table with one type, `pond`.
pub(crate) fn pond_types() -> TypeTable {
    TypeTable::new([CoreType::of::<Pond>()])
}

#[test]
fn scalars_of_typed_config_are_read_as_in_go() {
    let files = ponds(
        "owner: 'by ${resource:a.water} ${secret:s}', depth: 024, frozen: yes, depthText: '1.0', fish: [carp, ~]",
    );
    let stack = files.secrets("values: { s: x }").stack();
    let mut diagnostics = Vec::new();
    let decoded = decode::<Pond>(&stack.environments[0].resources[1].config, &mut diagnostics).unwrap();
    assert_eq!(diagnostics, []);
    let Pond { owner, depth, frozen, depth_text, fish } = &decoded.config;
    assert_eq!((*depth, *frozen, depth_text.as_str(), fish.len()), (20, true, "1.0", 1));
    let (text, _) = decoded.text(owner.unwrap());
    assert!(text.secret);
    assert_eq!(text.references().map(ToString::to_string).collect::<Vec<_>>(), ["${resource:a.water}"]);
}

#[test]
fn each_error_in_config_is_reported_at_its_line() {
    let messages = ponds(
        "ownr: x, depth: deep, frozen: 'true', depthText: 1.0, fish: [crap, { a: b }], owner: '${resource:a.watr}'",
    )
    .messages();
    insta::assert_snapshot!(messages, @r#"
    warning[unknown-key]: the key `ownr` is ignored
     --> .sc/stacks/s/server.yaml:6:91
      |
    6 | resources: { resources: { e: { resources: { a: { type: pond }, b: { type: pond, config: { ownr: x, depth: deep, frozen: 'true', depth...
      |                                                                                           ^^^^
      |
      = hint: did you mean `owner`?
      = hint: the keys are owner, depth, frozen, depthText, fish

    error[wrong-kind]: expected a whole number, found a text
     --> .sc/stacks/s/server.yaml:6:107
      |
    6 | resources: { resources: { e: { resources: { a: { type: pond }, b: { type: pond, config: { ownr: x, depth: deep, frozen: 'true', depth...
      |                                                                                                           ^^^^

    error[wrong-kind]: expected `true` or `false`, found a text
     --> .sc/stacks/s/server.yaml:6:121
      |
    6 | resources: { resources: { e: { resources: { a: { type: pond }, b: { type: pond, config: { ownr: x, depth: deep, frozen: 'true', depth...
      |                                                                                                                         ^^^^^^
      |
      = hint: write it without quotes

    warning[rewritten-scalar]: "1.0" is read as "1"
     --> .sc/stacks/s/server.yaml:6:140
      |
    6 | ...nd, config: { ownr: x, depth: deep, frozen: 'true', depthText: 1.0, fish: [crap, { a: b }], owner: '${resource:a.watr}' } } } } } }
      |                                                                   ^^^
      |
      = hint: put the value in quotes to keep it as it is written

    error[unknown-value]: "crap" is not a valid value
     --> .sc/stacks/s/server.yaml:6:152
      |
    6 | ...{ ownr: x, depth: deep, frozen: 'true', depthText: 1.0, fish: [crap, { a: b }], owner: '${resource:a.watr}' } } } } } }
      |                                                                   ^^^^
      |
      = hint: did you mean `carp`?
      = hint: the values are carp, trout

    error[unknown-property]: the core type "pond" has no "watr"
     --> .sc/stacks/s/server.yaml:6:177
      |
    6 | ...'true', depthText: 1.0, fish: [crap, { a: b }], owner: '${resource:a.watr}' } } } } } }
      |                                                            ^^^^^^^^^^^^^^^^^^
      |
      = hint: did you mean `water`?
      = hint: it has water, depth
    "#);
    insta::assert_snapshot!(ponds("depth: -1, depthText: '${resource:a.depth}'").messages(), @r"
    error[misplaced-reference]: a reference to another resource is not allowed here
     --> .sc/stacks/s/server.yaml:6:113
      |
    6 | ...d }, b: { type: pond, config: { depth: -1, depthText: '${resource:a.depth}' } } } } } }
      |                                                          ^^^^^^^^^^^^^^^^^^^^^
    ");
    insta::assert_snapshot!(ponds("depth: -1").messages(), @r"
    error[pond]: a pond has a depth
     --> .sc/stacks/s/server.yaml:6:98
      |
    6 | resources: { resources: { e: { resources: { a: { type: pond }, b: { type: pond, config: { depth: -1 } } } } } }
      |                                                                                                  ^^
    ");
}

#[test]
fn options_that_name_missing_or_several_resources_are_errors() {
    let plugin = "plugins: [{ name: p, source: { type: local, path: ./p } }]\n";
    let options = "replaceWith: [nowhere], deletedWith: b, replacementTrigger: '${resource:gone.id}'";
    let resources = format!("a: {{ type: 'p:m:T', options: {{ {options} }} }}, b: {{ type: pond, config: {{}} }}");
    let text = format!(
        "{}{plugin}resources: {{ resources: {{ e: {{ resources: {{ {resources} }} }} }} }}\n",
        crate::repository::PROVISIONER
    );
    insta::assert_snapshot!(ponds("").with(".sc/stacks/s/server.yaml", &text).messages(), @r#"
    error[unknown-resource]: resource "nowhere" referenced by "a" is not defined in env "e"
     --> .sc/stacks/s/server.yaml:7:90
      |
    7 | resources: { resources: { e: { resources: { a: { type: 'p:m:T', options: { replaceWith: [nowhere], deletedWith: b, replacementTrigger...
      |                                                                                          ^^^^^^^

    error[option]: `deletedWith` names "b", which is several resources
     --> .sc/stacks/s/server.yaml:7:113
      |
    7 | resources: { resources: { e: { resources: { a: { type: 'p:m:T', options: { replaceWith: [nowhere], deletedWith: b, replacementTrigger...
      |                                                                                                                 ^
      |
      = hint: name a resource of a plugin; "b" is of the core type "pond"

    error[unknown-resource]: resource "gone" referenced by "a" is not defined in env "e"
     --> .sc/stacks/s/server.yaml:7:137
      |
    7 | ...eWith: [nowhere], deletedWith: b, replacementTrigger: '${resource:gone.id}' } }, b: { type: pond, config: {} } } } } }
      |                                                           ^^^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn single_resource_options_are_rejected_on_core_type() {
    let files = ponds("");
    let messages = files
        .with(
            ".sc/stacks/s/server.yaml",
            &format!(
                "{}resources: {{ resources: {{ e: {{ resources: {{ a: {{ type: pond, options: {{ protect: true, import: x }} }} }} }} }} }}\n",
                crate::repository::PROVISIONER
            ),
        )
        .messages();
    insta::assert_snapshot!(messages, @r#"
    error[option]: `import` cannot be set on the core type "pond"
     --> .sc/stacks/s/server.yaml:6:88
      |
    6 | resources: { resources: { e: { resources: { a: { type: pond, options: { protect: true, import: x } } } } } }
      |                                                                                        ^^^^^^
      |
      = hint: core types take protect, retainOnDelete, dependsOn, customTimeouts
    "#);
}

#[test]
fn core_type_has_json_schema() {
    let schema = CoreType::of::<Pond>().schema();
    assert_eq!(schema.pointer("/properties/owner/description").unwrap(), "Owner of the pond.");
    assert_eq!(schema.pointer("/properties/depth/type").unwrap(), "integer");
}
