//! Keys of server.yaml in the wrong place: a slip must not remove resources from a stack in silence.

use crate::repository::{Files, PROVISIONER};
use crate::schema_agreement::{Reported, disagreement};

const PLUGIN: &str = "plugins: [{ name: p, source: { type: local, path: p } }]\n";

/// Returns the diagnostics of sections without their places: the headings and the hints, a line each.
fn diagnostics(sections: &str) -> Vec<String> {
    let messages = Files::sections(&format!("{PLUGIN}{sections}")).messages();
    let shown = messages.lines().filter(|line| line.contains("]: ") || line.contains("= hint: "));
    shown.map(|line| line.trim().to_owned()).collect()
}

/// Shows: server-yaml.md#files "A key that means nothing is an error at the top of the file, in `resources`, below a
///   resource, in `plugins` and in `options`; the hint names the level or the key that was meant."
#[test]
fn missing_or_misspelled_level_is_a_mistake() {
    let resource = "a: { type: 'p:m:T' }";
    let table = [
        (
            format!("resources: {{ resources: {{ {resource} }} }}"),
            "error[missing-level]: `a` is a resource in the place of an environment\n\
             = hint: write `resources.resources.ENVIRONMENT.resources.a`",
        ),
        (
            format!("resources: {{ resources: {{ resources: {{ {resource} }} }} }}"),
            "error[missing-level]: `resources` is in the place of an environment\n\
             = hint: write `resources.resources.ENVIRONMENT.resources.KEY`",
        ),
        (
            format!("resources: {{ prod: {{ resources: {{ {resource} }} }} }}"),
            "error[unknown-key]: `resources` has no key `prod`\n\
             = hint: write `resources.resources.prod.resources`",
        ),
        (
            format!("resources: {{ {resource} }}"),
            "error[unknown-key]: `resources` has no key `a`\n\
             = hint: write `resources.resources.ENVIRONMENT.resources.a`",
        ),
        (
            format!("resources: {{ resource: {{ prod: {{ resources: {{ {resource} }} }} }} }}"),
            "error[unknown-key]: `resources` has no key `resource`\n\
             = hint: did you mean `resources`?\n\
             = hint: environments are declared below `resources.resources`",
        ),
        (
            format!("resources: {{ resources: {{ prod: {{ resource: {{ {resource} }} }} }} }}"),
            "error[unknown-key]: an environment has no key `resource`\n\
             = hint: did you mean `resources`?\n\
             = hint: the keys are template, resources and inherit; a resource needs a `type`",
        ),
        (
            format!("resource: {{ resources: {{ prod: {{ resources: {{ {resource} }} }} }} }}"),
            "error[unknown-key]: server.yaml has no key `resource`\n\
             = hint: did you mean `resources`?\n\
             = hint: the keys are schemaVersion, provisioner, secrets, cicd, templates, resources, variables, plugins, \
             outputs; a key that begins with `x-` is ignored",
        ),
        (
            format!("environments: {{ prod: {{ resources: {{ {resource} }} }} }}"),
            "error[unknown-key]: server.yaml has no key `environments`\n\
             = hint: environments are declared below `resources.resources`",
        ),
    ];
    for (sections, expected) in table {
        assert_eq!(diagnostics(&sections).join("\n"), expected, "{sections}");
    }
}

#[test]
fn unknown_key_of_a_resource_is_a_mistake() {
    let keys = "the keys are type, name, config, inherit, options; what the resource is made of stands in `config`";
    let table = [
        ("protect: true", "= hint: write `options: { protect: … }`".to_owned()),
        ("dependsOn: [b]", "= hint: write `options: { dependsOn: … }`".to_owned()),
        ("properties: {}", "= hint: did you mean `config`?".to_owned()),
        ("confg: {}", format!("= hint: did you mean `config`?\n= hint: {keys}")),
        ("dependson: [b]", format!("= hint: did you mean `dependsOn`?\n= hint: {keys}")),
        ("colour: red", format!("= hint: {keys}")),
    ];
    for (key, expected) in table {
        let sections =
            format!("resources: {{ resources: {{ e: {{ resources: {{ a: {{ type: 'p:m:T', {key} }} }} }} }} }}");
        let name = key.split(':').next().unwrap();
        let expected = format!("error[unknown-key]: a resource has no key `{name}`\n{expected}");
        assert_eq!(diagnostics(&sections).join("\n"), expected, "{key}");
    }
}

/// Shows: server-yaml.md#files "At the top, keys may stand for other uses"
#[test]
fn keys_for_other_uses_are_accepted_at_the_top() {
    for sections in [
        "x-common: { a: 1 }",
        ".hidden: 1",
        "common: &common { a: 1 }\noutputs: { x: *common }",
        "common: { a: &deep 1 }\noutputs: { x: *deep }",
    ] {
        assert_eq!(diagnostics(sections), [""; 0], "{sections}");
    }
    assert_eq!(diagnostics("common: &common { a: 1 }")[0], "error[unknown-key]: server.yaml has no key `common`");
}

#[test]
fn other_version_of_the_format_is_a_mistake() {
    for version in ["1.0", "'1.0'", "1", "''", ""] {
        assert_eq!(diagnostics(&format!("schemaVersion: {version}")), [""; 0], "{version}");
    }
    assert_eq!(
        diagnostics("schemaVersion: 2.0"),
        [
            "error[schema-version]: the version 2.0 of the format is not supported",
            "= hint: this program reads version 1.0"
        ]
    );
}

#[test]
fn second_document_is_a_warning() {
    let messages = Files::sections("outputs: { a: 1 }\n---\nresources: {}\n").messages();
    insta::assert_snapshot!(messages, @r"
    warning[yaml-document]: only the first document of a file is read
     --> .sc/stacks/s/server.yaml:7:1
      |
    7 | ---
      | ^^^ the second document begins here
      |
      = hint: remove this line, or move the second document to a file of its own
    ");
}

/// Shows: server-yaml.md#in-an-editor "The schema is stricter than `sc`: it refuses the keys and kinds of values that
///   `sc` refuses"
#[test]
fn disagreement_of_reader_and_schema_is_found() {
    let (accepted, refused) = (Reported { any: false, of_schema: false }, Reported { any: true, of_schema: true });
    let good = format!("{}outputs: {{ a: 1 }}\n", PROVISIONER);
    let bad = good.replace("outputs", "ouputs");
    assert_eq!(disagreement(&good, accepted), None);
    assert_eq!(disagreement(&bad, refused), None);
    assert!(disagreement(&bad, accepted).unwrap().starts_with("only the schema refuses"));
    assert!(disagreement(&good, refused).unwrap().starts_with("only the reader refuses"));
}
