//! Tests of the check of plugin resources against the schemas of their packages.

use std::collections::BTreeMap;

use bridge::host::{InputInfo, NestedObjects, ObjectInfo, PackageTypes, TypeInfo};
use serde_json::json;

use crate::fake::{FakeDeployment, StackProgram};

fn types() -> BTreeMap<String, PackageTypes> {
    let inputs = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), InputInfo::default())).collect();
    let mut bucket = TypeInfo {
        inputs: inputs(&["acl", "bucketName"]),
        outputs: [("arn".to_owned(), None)].into(),
        ..TypeInfo::default()
    };
    bucket.inputs.insert(
        "size".to_owned(),
        InputInfo { is_required: true, enum_values: vec![json!("small"), json!(2)], ..InputInfo::default() },
    );
    let many: Vec<String> = (0..20).map(|number| format!("property{number}")).collect();
    let many = TypeInfo { inputs: inputs(&many.iter().map(String::as_str).collect::<Vec<_>>()), ..TypeInfo::default() };
    let pair = TypeInfo { is_component: true, outputs: [("sum".to_owned(), None)].into(), ..TypeInfo::default() };
    let marked = TypeInfo { is_component: true, ..TypeInfo::default() };
    let types = [
        ("p:s3/bucket:Bucket", bucket),
        ("p:index/many:Many", many),
        ("p:index:Pair", pair),
        ("p:index:Marked", marked),
        ("pulumi:providers:p", TypeInfo::default()),
    ];
    [("p".to_owned(), types.map(|(token, info)| (token.to_owned(), info)).into_iter().collect())].into()
}

/// Shows: server-yaml.md#plugins "A type that the schema lacks and a key of `config` that is no input of the type are
///   errors, with suggestions"
#[test]
fn types_and_properties_that_the_schema_lacks_are_reported_at_once() {
    let subject = StackProgram::resources(
        "
a: { type: 'p:s3:Bucket', config: { bucketname: x, arn: w, acl: z, other: '${resource:b.id}' } }
b: { type: 'p:Mani', config: { any: 1 } }
c: { type: 'p:Many', config: { property_1: 1, ABC: 2 } }
d: { type: 'p:Pair', config: { left: 1 } }
e: { type: 'p:s3/buckett:Buckett' }
",
        "",
    );
    let findings = subject.program.check_types(&types());
    assert!(findings.warnings.is_empty(), "{:?}", findings.warnings);
    insta::assert_snapshot!(subject.render(&findings.errors), @r#"
    error[unknown-property]: the type p:s3:Bucket has no property "bucketname"
     --> .sc/stacks/s/server.yaml:7:45
      |
    7 |         a: { type: 'p:s3:Bucket', config: { bucketname: x, arn: w, acl: z, other: '${resource:b.id}' } }
      |                                             ^^^^^^^^^^
      |
      = hint: did you mean `bucketName`?
      = hint: it has acl, bucketName, size

    error[unknown-property]: the type p:s3:Bucket has no property "arn"
     --> .sc/stacks/s/server.yaml:7:60
      |
    7 |         a: { type: 'p:s3:Bucket', config: { bucketname: x, arn: w, acl: z, other: '${resource:b.id}' } }
      |                                                            ^^^
      |
      = hint: it is an output, which the provider computes

    error[unknown-property]: the type p:s3:Bucket has no property "other"
     --> .sc/stacks/s/server.yaml:7:76
      |
    7 |         a: { type: 'p:s3:Bucket', config: { bucketname: x, arn: w, acl: z, other: '${resource:b.id}' } }
      |                                                                            ^^^^^
      |
      = hint: it has acl, bucketName, size

    error[unknown-resource-type]: unknown resource type "p:Mani": the schema of plugin p has no such type
     --> .sc/stacks/s/server.yaml:8:20
      |
    8 |         b: { type: 'p:Mani', config: { any: 1 } }
      |                    ^^^^^^^^
      |
      = hint: did you mean `p:Many`?
      = hint: `sc schema-gen` writes a list of the types of the plugins

    error[unknown-property]: the type p:Many has no property "property_1"
     --> .sc/stacks/s/server.yaml:9:40
      |
    9 |         c: { type: 'p:Many', config: { property_1: 1, ABC: 2 } }
      |                                        ^^^^^^^^^^
      |
      = hint: did you mean `property1`?
      = hint: it has property0, property1, property10, property11, property12, property13, property14, property15, property16, property17 and 10 more

    error[unknown-property]: the type p:Many has no property "ABC"
     --> .sc/stacks/s/server.yaml:9:55
      |
    9 |         c: { type: 'p:Many', config: { property_1: 1, ABC: 2 } }
      |                                                       ^^^
      |
      = hint: it has property0, property1, property10, property11, property12, property13, property14, property15, property16, property17 and 10 more

    error[unknown-property]: the type p:Pair has no property "left"
      --> .sc/stacks/s/server.yaml:10:40
       |
    10 |         d: { type: 'p:Pair', config: { left: 1 } }
       |                                        ^^^^
       |
       = hint: it has no properties

    error[unknown-resource-type]: unknown resource type "p:s3/buckett:Buckett": the schema of plugin p has no such type
      --> .sc/stacks/s/server.yaml:11:20
       |
    11 |         e: { type: 'p:s3/buckett:Buckett' }
       |                    ^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: did you mean `p:s3:Bucket`?
       = hint: `sc schema-gen` writes a list of the types of the plugins
    "#);
}

#[tokio::test]
async fn type_in_another_case_is_registered_as_the_schema_has_it_with_a_warning() {
    let subject = StackProgram::resources(
        "
a: { type: 'p:s3:bucket', config: { acl: z } }
b: { type: 'p:S3/bucket:Bucket' }
c: { type: 'p:many' }
",
        "",
    );
    let findings = subject.program.check_types(&types());
    assert_eq!(subject.render(&findings.errors), "");
    let warnings = findings.warnings.iter().map(|warning| {
        assert_eq!(warning.code.0, "type-case");
        (warning.message.text.as_str(), warning.message.hint.as_deref().unwrap())
    });
    let expected = [
        (r#"the schema of plugin p spells the type "p:s3:bucket" as "p:s3:Bucket""#, "write `type: p:s3:Bucket`"),
        (
            r#"the schema of plugin p spells the type "p:S3/bucket:Bucket" as "p:s3:Bucket""#,
            "write `type: p:s3:Bucket`",
        ),
        (r#"the schema of plugin p spells the type "p:many" as "p:Many""#, "write `type: p:Many`"),
    ];
    assert_eq!(warnings.collect::<Vec<_>>(), expected);
    let deployment = FakeDeployment { types: types(), ..FakeDeployment::default() };
    subject.run(&deployment).await;
    let token = |name| deployment.goal(name).type_token.as_str().to_owned();
    assert_eq!((token("a--e"), token("c--e")), ("p:s3/bucket:Bucket".to_owned(), "p:index/many:Many".to_owned()));
}

/// Shows: server-yaml.md#plugins "A type in a module that the schema lacks"
/// Shows: server-yaml.md#plugins "a value that the schema's enum lacks are warnings"
#[test]
fn unknown_module_and_unknown_enum_value_are_warnings() {
    let subject = StackProgram::resources(
        "
custom: { type: 'p:example.com/v1:Foo', config: { spec: {} } }
other: { type: 'p:s4:Bucket' }
wrong: { type: 'p:s3:Bucket', config: { size: huge } }
text: { type: 'p:s3:Bucket', config: { size: small } }
number: { type: 'p:s3:Bucket', config: { size: 2 } }
empty: { type: 'p:s3:Bucket', config: { size: null } }
reference: { type: 'p:s3:Bucket', config: { size: '${resource:text.size}' } }
missing: { type: 'p:s3:Bucket' }
marked: { type: 'p:Marked', config: { any: 1 } }
",
        "",
    );
    let findings = subject.program.check_types(&types());
    assert_eq!(subject.render(&findings.errors), "");
    let warnings = findings.warnings.iter().map(|warning| {
        let message = &warning.message;
        let path = message.property.as_ref().map(|property| property.parse().unwrap());
        let span = subject.program.source_of(message.source.unwrap(), path.as_ref()).unwrap();
        (subject.sources.slice(span), message.text.as_str(), message.hint.as_deref())
    });
    let expected = [
        (
            "custom",
            r#"the schema of plugin p has no type "p:example.com/v1:Foo"; its properties are not checked"#,
            None,
        ),
        (
            "other",
            r#"the schema of plugin p has no type "p:s4:Bucket"; its properties are not checked"#,
            Some("did you mean `p:s3:Bucket`?"),
        ),
        (
            "size",
            r#"the type p:s3:Bucket has no value "huge" of the property "size""#,
            Some(r#"the schema has "small", 2"#),
        ),
    ];
    assert_eq!(warnings.collect::<Vec<_>>(), expected);
}

/// Shows: server-yaml.md#plugins "Without a schema, nothing is checked"
#[test]
fn resource_of_a_plugin_without_schema_is_not_checked() {
    let subject = StackProgram::resources("a: { type: 'p:Unknown', config: { any: 1 } }", "");
    let provider_only = [("pulumi:providers:p".to_owned(), TypeInfo::default())].into_iter().collect();
    for types in
        [BTreeMap::new(), [("p".to_owned(), PackageTypes::default())].into(), [("p".to_owned(), provider_only)].into()]
    {
        let findings = subject.program.check_types(&types);
        assert!(findings.errors.is_empty() && findings.warnings.is_empty(), "{findings:?}");
    }
}

/// Shows: server-yaml.md#plugins "so is a key of an object, in lists and maps, too, whose type the schema has"
#[test]
fn properties_of_objects_are_checked_where_the_value_has_their_kind() {
    let object = |token: &str| NestedObjects::Object(format!("p:index:{token}"));
    let nested = |nested| InputInfo { nested: Some(nested), ..InputInfo::default() };
    let mode = InputInfo { enum_values: vec![json!("full")], ..InputInfo::default() };
    let inputs = [
        ("rule".to_owned(), nested(object("Rule"))),
        ("rules".to_owned(), nested(NestedObjects::List(object("Rule").into()))),
        ("named".to_owned(), nested(NestedObjects::Map(object("Rule").into()))),
        ("foreign".to_owned(), nested(object("Missing"))),
    ];
    let gate = TypeInfo { inputs: inputs.into(), ..TypeInfo::default() };
    let rule = [("mode".to_owned(), mode), ("next".to_owned(), nested(object("Rule")))];
    let rule = ObjectInfo { properties: rule.into() };
    let types = PackageTypes::new([("p:index:Gate".to_owned(), gate)], [("p:index:Rule".to_owned(), rule)]);
    let subject = StackProgram::resources(
        "
a:
  type: p:Gate
  config:
    rule: { mod: x, next: { next: { nex: 1 } } }
    rules: [{ mode: none }, { modes: any }, '${resource:b.id}']
    named: { first: { mode: full, other: 1 }, second: text }
    foreign: { any: 1 }
b:
  type: p:Gate
  config: { rule: [{ any: 1 }], rules: { any: 1 }, named: [1], foreign: null }
",
        "",
    );
    let findings = subject.program.check_types(&[("p".to_owned(), types)].into());
    let errors: Vec<String> = findings.errors.iter().map(|error| error.summary.to_string()).collect();
    assert_eq!(
        errors,
        [
            r#"the type p:Gate has no property "rule.mod""#,
            r#"the type p:Gate has no property "rule.next.next.nex""#,
            r#"the type p:Gate has no property "rules[1].modes""#,
            r#"the type p:Gate has no property "named.first.other""#,
        ]
    );
    assert_eq!(findings.errors[0].help, ["did you mean `mode`?", "the object has mode, next"]);
    let warnings: Vec<_> =
        findings.warnings.iter().map(|warning| (&*warning.message.text, warning.message.property.as_deref())).collect();
    assert_eq!(
        warnings,
        [(r#"the type p:Gate has no value "none" of the property "rules[0].mode""#, Some("rules[0].mode"))]
    );
}

/// Shows: server-yaml.md#plugins "a key of a plugin's `config` that is no input of the provider"
#[test]
fn configurations_of_plugins_are_checked() {
    let region = InputInfo { enum_values: vec![json!("north")], ..InputInfo::default() };
    let provider = TypeInfo { inputs: [("region".to_owned(), region)].into(), ..TypeInfo::default() };
    let types = [("pulumi:providers:p".to_owned(), provider), ("p:index:Thing".to_owned(), TypeInfo::default())];
    let types: PackageTypes = types.into_iter().collect();
    let empty: PackageTypes = [("p:index:Thing".to_owned(), TypeInfo::default())].into_iter().collect();
    let subject = StackProgram::server(
        "
plugins:
  - { name: p, source: { type: local, path: p }, config: { regoin: x, region: south } }
  - { name: off, package: p, enabled: false, source: { type: local, path: p }, config: { other: x } }
  - { name: bare, package: b, source: { type: local, path: p }, config: { other: x } }
",
    );
    let packages = [("p", types.clone()), ("off", types), ("bare", empty)];
    let packages = packages.map(|(name, types)| (name.to_owned(), types)).into();
    let findings = subject.program.check_types(&packages);
    insta::assert_snapshot!(subject.render(&findings.errors), @r#"
    error[unknown-property]: the configuration of package p has no property "regoin"
     --> .sc/stacks/s/server.yaml:4:60
      |
    4 |   - { name: p, source: { type: local, path: p }, config: { regoin: x, region: south } }
      |                                                            ^^^^^^
      |
      = hint: did you mean `region`?
      = hint: it has region
    "#);
    let warnings: Vec<_> =
        findings.warnings.into_iter().map(|warning| subject.program.diagnostic_of(warning)).collect();
    insta::assert_snapshot!(subject.render(&warnings), @r#"
    warning[unknown-value]: the configuration of package p has no value "south" of the property "region"
     --> .sc/stacks/s/server.yaml:4:71
      |
    4 |   - { name: p, source: { type: local, path: p }, config: { regoin: x, region: south } }
      |                                                                       ^^^^^^
      |
      = hint: the schema has "north"
    "#);
}
