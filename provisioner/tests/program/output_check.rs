//! Tests of the check of references against the outputs in the schema of a plugin.

use std::collections::BTreeMap;

use bridge::host::{InputInfo, NestedObjects, ObjectInfo, PackageTypes, TypeInfo};
use pulumi_proto::property::PropertyValue;

use crate::fake::StackProgram;

fn types() -> BTreeMap<String, PackageTypes> {
    let info = |outputs: &[&str], is_component| TypeInfo {
        outputs: outputs.iter().map(|output| ((*output).to_owned(), None)).collect(),
        is_component,
        ..TypeInfo::default()
    };
    let list = |objects: NestedObjects| NestedObjects::List(objects.into());
    let site = || NestedObjects::Object("p:index:Site".to_owned());
    let opaque = NestedObjects::Object("p:index:Opaque".to_owned());
    let nested = TypeInfo {
        outputs: [("site", site()), ("sites", list(site())), ("opaque", opaque)]
            .map(|(name, nested)| (name.to_owned(), Some(nested)))
            .into(),
        ..TypeInfo::default()
    };
    let errors = InputInfo {
        nested: Some(NestedObjects::Map(NestedObjects::Object("p:index:Page".to_owned()).into())),
        ..InputInfo::default()
    };
    let object = |properties: &[(&str, InputInfo)]| ObjectInfo {
        properties: properties.iter().map(|(name, info)| ((*name).to_owned(), info.clone())).collect(),
    };
    let objects = [
        ("p:index:Site", object(&[("endpoint", InputInfo::default()), ("errors", errors)])),
        ("p:index:Page", object(&[("path", InputInfo::default())])),
    ];
    let types = [
        ("p:index:Thing", info(&["size", "value"], false)),
        ("p:index:Component", info(&["value"], true)),
        ("p:index:WithoutOutputs", info(&[], false)),
        ("p:index:Nested", nested),
    ];
    let types = types.map(|(token, info)| (token.to_owned(), info));
    [("p".to_owned(), PackageTypes::new(types, objects.map(|(token, info)| (token.to_owned(), info))))].into()
}

fn map(key: &str, value: PropertyValue) -> PropertyValue {
    PropertyValue::Map([(key.to_owned(), value)].into())
}

/// Checks a program in which a resource `b` refers to a resource `a`. Returns the codes of the diagnostics. `recorded` has
/// names of recorded resources and outputs, with the recorded values.
fn check(type_text: &str, reference: &str, recorded: &[((&str, &str), PropertyValue)]) -> String {
    let resources =
        format!("a: {{ type: '{type_text}' }}\nb: {{ type: 'p:Unknown', config: {{ x: ['{reference}'] }} }}");
    let recorded_output = |name: &str, output: &str| {
        recorded.iter().find(|(key, _)| *key == (name, output)).map(|(_, value)| value.clone())
    };
    let found = StackProgram::resources(&resources, "").program.check_outputs(&types(), recorded_output);
    found.iter().map(|diagnostic| diagnostic.code.0).collect()
}

/// Shows: server-yaml.md#placeholders "The same applies to a part of an output that is an object with a type in the
///   schema."
#[test]
fn output_that_neither_the_schema_nor_the_state_has_is_an_error() {
    const UNKNOWN: &str = "unknown-output";
    let recorded = [(("b--e", "valeu"), "v".into()), (("a--e", "site"), "v".into())];
    for (type_text, reference) in [
        ("p:Thing", "${resource:a.valeu}"),
        ("p:Thing", "x${resource:a.valeu.k:default}"),
        ("p:Component", "${resource:a.valeu}"),
        ("p:Nested", "${resource:a.site.endpont}"),
        ("p:Nested", "${resource:a.sites.0.endpont}"),
        ("p:Nested", "${resource:a.sites[0].endpont}"),
        ("p:Nested", "${resource:a.sites.endpoint}"),
        ("p:Nested", "${resource:a.site.errors.404.pth}"),
    ] {
        assert_eq!(check(type_text, reference, &recorded), UNKNOWN, "{type_text} {reference}");
    }
    for (type_text, reference, recorded) in [
        ("p:Thing", "${resource:a.value.any.0}", &[] as &[_]),
        ("p:Thing", "${resource:a.id} ${resource:a.urn}", &[]),
        ("p:Thing", "${resource:a.valeu}", &[(("a--e", "valeu"), "v".into())]),
        ("p:Nested", "${resource:a.site.endpont}", &[(("a--e", "site"), map("endpont", "v".into()))]),
        ("p:Nested", "${resource:a.sites.0.endpoint} ${resource:a.site.errors.404.path.any}", &[]),
        ("p:Nested", "${resource:a.sites[0].endpoint}", &[]),
        ("p:Nested", "${resource:a.opaque.any} ${resource:a.sites} ${resource:a.sites.0}", &[]),
        ("p:Component", "${resource:a.value} ${resource:a.urn}", &[]),
        ("p:WithoutOutputs", "${resource:a.valeu}", &[]),
        ("p:Other", "${resource:a.valeu}", &[]),
    ] {
        assert_eq!(check(type_text, reference, recorded), "", "{type_text} {reference} {recorded:?}");
    }
}

#[test]
fn unknown_outputs_are_reported_together_with_suggestions() {
    let subject = StackProgram::resources(
        "a: { type: 'p:Thing' }\nb: { type: 'p:Thing', config: { x: '${resource:a.valeu}' } }\n\
         c: { type: 'p:Nested' }",
        "outputs:\n  o: ${resource:e/a.weight}\n  p: ${resource:b.value}\n  q: ${resource:c.sites.1.endpont}\n  r: ${resource:c.site.errors.x.z}\n",
    );
    let found = subject.program.check_outputs(&types(), |_, _| None);
    insta::assert_snapshot!(subject.render(&found), @r#"
    error[unknown-output]: resource "a" has no output "valeu"
     --> .sc/stacks/s/server.yaml:8:45
      |
    8 |         b: { type: 'p:Thing', config: { x: '${resource:a.valeu}' } }
      |                                             ^^^^^^^^^^^^^^^^^^^
      |
      = note: the schema of the type p:index:Thing has no such output
      = hint: did you mean `value`?

    error[unknown-output]: resource "a" has no output "weight"
      --> .sc/stacks/s/server.yaml:11:6
       |
    11 |   o: ${resource:e/a.weight}
       |      ^^^^^^^^^^^^^^^^^^^^^^
       |
       = note: the schema of the type p:index:Thing has no such output
       = hint: its outputs are size, value, id, urn

    error[unknown-output]: resource "c" has no output "sites.1.endpont"
      --> .sc/stacks/s/server.yaml:13:6
       |
    13 |   q: ${resource:c.sites.1.endpont}
       |      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = note: the schema of the type p:index:Nested has no such output
       = hint: did you mean `endpoint`?

    error[unknown-output]: resource "c" has no output "site.errors.x.z"
      --> .sc/stacks/s/server.yaml:14:6
       |
    14 |   r: ${resource:c.site.errors.x.z}
       |      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = note: the schema of the type p:index:Nested has no such output
       = hint: the object has path
    "#);
}
