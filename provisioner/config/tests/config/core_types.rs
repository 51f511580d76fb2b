//! The mechanism of core types, with a type that no product has.

use config::diagnostics::{Code, Diagnostic};
use config::tree::Node;
use config::types::{CoreConfig, CoreType, Decoded, TextHandle, TypeTable, decode};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::repository::Files;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Pond {
    /// Who may fish here.
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
    const OUTPUTS: &'static [&'static str] = &["water", "depth"];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        if decoded.config.depth < 0 {
            let span = node.at(["depth"]).map(|node| node.span);
            diagnostics.push(Diagnostic::error(Code("pond"), span, "a pond has a depth"));
        }
    }
}

fn ponds(config: &str) -> Files {
    Files::sections(&format!(
        "resources: {{ resources: {{ e: {{ resources: {{ a: {{ type: pond }}, b: {{ type: pond, config: {{ {config} }} }} }} }} }} }}\n"
    ))
    .types(TypeTable::new([CoreType::of::<Pond>()]))
}

#[test]
fn a_config_is_typed_with_gos_reading_of_scalars() {
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
fn every_mistake_in_a_config_is_told_at_its_line() {
    let words = ponds(
        "ownr: x, depth: deep, frozen: 'true', depthText: 1.0, fish: [crap, { a: b }], owner: '${resource:a.watr}'",
    )
    .words();
    insta::assert_snapshot!(words, @r#"
    error[wrong-kind]: expected a whole number, found a single value
     --> .sc/stacks/s/server.yaml:6:107
      |
    6 | resources: { resources: { e: { resources: { a: { type: pond }, b: { type: pond, config: { ownr: x, depth: deep, frozen: 'true', depth...
      |                                                                                                           ^^^^

    error[wrong-kind]: expected `true` or `false`, found a single value
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

    error[unknown-value]: "crap" is none of the values
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
    insta::assert_snapshot!(ponds("depth: -1, depthText: '${resource:a.depth}'").words(), @r"
    error[misplaced-reference]: a reference to another resource cannot stand here
     --> .sc/stacks/s/server.yaml:6:113
      |
    6 | ...d }, b: { type: pond, config: { depth: -1, depthText: '${resource:a.depth}' } } } } } }
      |                                                          ^^^^^^^^^^^^^^^^^^^^^
    ");
    insta::assert_snapshot!(ponds("depth: -1").words(), @r"
    error[pond]: a pond has a depth
     --> .sc/stacks/s/server.yaml:6:98
      |
    6 | resources: { resources: { e: { resources: { a: { type: pond }, b: { type: pond, config: { depth: -1 } } } } } }
      |                                                                                                  ^^
    ");
}

#[test]
fn only_options_that_suit_several_resources_are_taken() {
    let files = ponds("");
    let words = files
        .with(
            ".sc/stacks/s/server.yaml",
            &format!(
                "{}resources: {{ resources: {{ e: {{ resources: {{ a: {{ type: pond, options: {{ protect: true, import: x }} }} }} }} }} }}\n",
                crate::repository::PROVISIONER
            ),
        )
        .words();
    insta::assert_snapshot!(words, @r#"
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
fn a_type_has_a_schema() {
    let schema = CoreType::of::<Pond>().schema();
    assert_eq!(schema.pointer("/properties/owner/description").unwrap(), "Who may fish here.");
    assert_eq!(schema.pointer("/properties/depth/type").unwrap(), "integer");
}
