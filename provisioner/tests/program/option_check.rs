//! Tests of the properties that options of a resource name.

use std::collections::BTreeMap;

use bridge::host::{InputInfo, NestedObjects, ObjectInfo, PackageTypes, TypeInfo};

use crate::fake::StackProgram;

fn types() -> BTreeMap<String, PackageTypes> {
    let rule = || NestedObjects::Object("p:m:Rule".to_owned());
    let nested = |nested| InputInfo { nested: Some(nested), ..InputInfo::default() };
    let inputs = [
        ("version", InputInfo::default()),
        ("tags", InputInfo::default()),
        ("list", InputInfo::default()),
        ("rule", nested(rule())),
        ("rules", nested(NestedObjects::List(rule().into()))),
    ];
    let outputs = [("version", None), ("status", Some(rule())), ("arn", None)];
    let thing = TypeInfo {
        inputs: inputs.map(|(name, info)| (name.to_owned(), info)).into(),
        outputs: outputs.map(|(name, nested)| (name.to_owned(), nested)).into(),
        ..TypeInfo::default()
    };
    let rule = ObjectInfo { properties: [("port".to_owned(), InputInfo::default())].into() };
    let types = PackageTypes::new([("p:m:T".to_owned(), thing)], [("p:m:Rule".to_owned(), rule)]);
    [("p".to_owned(), types)].into()
}

/// Shows: server-yaml.md#plugins "A name in `ignoreChanges`, `replaceOnChanges` or `additionalSecretOutputs` that the type does not
///   have is an error."
#[test]
fn options_name_properties_that_the_type_has() {
    let subject = StackProgram::resources(
        "
a:
  type: p:m:T
  options:
    ignoreChanges: [version, rule.port, 'rules[0].port', tags.any, arn, '*', versoin]
    replaceOnChanges: ['#initerror', 'list[0]', 'rules[*].prt', status.prt, '[\"no such\"]']
    additionalSecretOutputs: [arn, rule, versionn]
",
        "",
    );
    let findings = subject.program.check_types(&types());
    insta::assert_snapshot!(subject.render(&findings.errors), @r#"
    error[option]: `ignoreChanges` names "versoin", but the type p:m:T has no such property
      --> .sc/stacks/s/server.yaml:10:86
       |
    10 |             ignoreChanges: [version, rule.port, 'rules[0].port', tags.any, arn, '*', versoin]
       |                                                                                      ^^^^^^^
       |
       = hint: did you mean `version`?
       = hint: it has list, rule, rules, tags, version

    error[option]: `replaceOnChanges` names "rules[*].prt", but the type p:m:T has no such property
      --> .sc/stacks/s/server.yaml:11:57
       |
    11 |             replaceOnChanges: ['#initerror', 'list[0]', 'rules[*].prt', status.prt, '["no such"]']
       |                                                         ^^^^^^^^^^^^^^
       |
       = hint: did you mean `port`?
       = hint: it has port

    error[option]: `replaceOnChanges` names "status.prt", but the type p:m:T has no such property
      --> .sc/stacks/s/server.yaml:11:73
       |
    11 |             replaceOnChanges: ['#initerror', 'list[0]', 'rules[*].prt', status.prt, '["no such"]']
       |                                                                         ^^^^^^^^^^
       |
       = hint: did you mean `port`?
       = hint: it has port

    error[option]: `replaceOnChanges` names "[\"no such\"]", but the type p:m:T has no such property
      --> .sc/stacks/s/server.yaml:11:85
       |
    11 |             replaceOnChanges: ['#initerror', 'list[0]', 'rules[*].prt', status.prt, '["no such"]']
       |                                                                                     ^^^^^^^^^^^^^
       |
       = hint: it has list, rule, rules, tags, version

    error[option]: `additionalSecretOutputs` names "rule", but the type p:m:T has no such output
      --> .sc/stacks/s/server.yaml:12:44
       |
    12 |             additionalSecretOutputs: [arn, rule, versionn]
       |                                            ^^^^
       |
       = hint: it has arn, status, version

    error[option]: `additionalSecretOutputs` names "versionn", but the type p:m:T has no such output
      --> .sc/stacks/s/server.yaml:12:50
       |
    12 |             additionalSecretOutputs: [arn, rule, versionn]
       |                                                  ^^^^^^^^
       |
       = hint: did you mean `version`?
       = hint: it has arn, status, version
    "#);
    assert!(subject.program.check_types(&BTreeMap::new()).errors.is_empty(), "without a schema");
}
