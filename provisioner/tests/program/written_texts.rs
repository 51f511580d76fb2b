//! Tests of scalars that are read as numbers where the schema has texts.

use std::collections::BTreeMap;

use bridge::host::{InputInfo, NestedObjects, ObjectInfo, PackageTypes, TypeInfo, ValueKind};
use pulumi_proto::property::PropertyValue;

use crate::fake::{FakeDeployment, StackProgram};

fn types() -> BTreeMap<String, PackageTypes> {
    let kind = |kind| InputInfo { kind: Some(kind), ..InputInfo::default() };
    let nested = InputInfo { nested: Some(NestedObjects::Object("p:m:Rule".to_owned())), ..InputInfo::default() };
    let inputs = [
        ("version", kind(ValueKind::Text)),
        ("size", kind(ValueKind::Plain)),
        ("tags", kind(ValueKind::Map(ValueKind::Text.into()))),
        ("list", kind(ValueKind::List(ValueKind::Text.into()))),
        ("any", InputInfo::default()),
        ("rule", nested),
    ];
    let thing = TypeInfo { inputs: inputs.map(|(name, info)| (name.to_owned(), info)).into(), ..TypeInfo::default() };
    let rule = ObjectInfo { properties: [("port".to_owned(), kind(ValueKind::Text))].into() };
    let types = PackageTypes::new([("p:m:T".to_owned(), thing)], [("p:m:Rule".to_owned(), rule)]);
    [("p".to_owned(), types)].into()
}

const VALUES: &str = "
a:
  type: p:m:T
  config:
    version: 1.30
    size: 1.30
    tags: { a: 1e3, b: 012, c: 80, d: yes, e: 2024-01-01 }
    list: [12345678901234567890, 0.50]
    any: { x: 1.30, y: 012 }
    rule: { port: 1.0 }
";

fn warnings(types: &BTreeMap<String, PackageTypes>) -> Vec<String> {
    let findings = StackProgram::resources(VALUES, "").program.check_types(types);
    assert_eq!(findings.errors, []);
    let place = |property: Option<String>| property.unwrap_or_default();
    findings
        .warnings
        .into_iter()
        .map(|found| format!("{} {}", place(found.message.property), found.message.text))
        .collect()
}

/// Shows: server-yaml.md#values "is sent as it is written if the schema of the plugin says"
#[tokio::test]
async fn number_that_loses_its_text_is_sent_as_written_where_the_schema_has_a_text() {
    let subject = StackProgram::resources(VALUES, "");
    let text = |text: &str| PropertyValue::from(text);
    for (types, version, tag, item, port) in [
        (types(), text("1.30"), text("1e3"), text("12345678901234567890"), text("1.0")),
        (BTreeMap::new(), 1.3.into(), 1000.0.into(), 12345678901234567890.0.into(), 1.0.into()),
    ] {
        let deployment = FakeDeployment { types, ..FakeDeployment::default() };
        subject.run(&deployment).await;
        let inputs = deployment.goal("a--e").inputs;
        let (PropertyValue::Map(tags), PropertyValue::List(list)) = (&inputs["tags"], &inputs["list"]) else {
            panic!()
        };
        let PropertyValue::Map(rule) = &inputs["rule"] else { panic!() };
        assert_eq!((&inputs["version"], &tags["a"], &list[0], &rule["port"]), (&version, &tag, &item, &port));
        // A number that keeps its text, and one where the schema has a number or says nothing.
        assert_eq!((&inputs["size"], &tags["c"], &tags["b"]), (&1.3.into(), &80.0.into(), &text("012")));
        let PropertyValue::Map(any) = &inputs["any"] else { panic!() };
        assert_eq!((&any["x"], &any["y"]), (&1.3.into(), &text("012")));
    }
}

/// Shows: server-yaml.md#values "the plugin has no schema, there is a warning: quote a text"
#[test]
fn surprising_reading_is_reported_where_the_schema_does_not_say_that_it_is_a_text() {
    let number =
        |path: &str, written: &str, sent: &str| format!("{path} `{written}` is a number, and is sent as {sent}");
    let ambiguous =
        |path: &str, text: &str| format!("{path} `{text}` is read as text; YAML 1.1 reads it as something else");
    assert_eq!(warnings(&types()), [number("any.x", "1.30", "1.3"), ambiguous("any.y", "012")]);
    assert_eq!(
        warnings(&BTreeMap::new()),
        [
            number("version", "1.30", "1.3"),
            number("size", "1.30", "1.3"),
            number("tags.a", "1e3", "1000"),
            ambiguous("tags.b", "012"),
            ambiguous("tags.d", "yes"),
            ambiguous("tags.e", "2024-01-01"),
            "list[0] the number is too large to be exact: integers beyond 2^53 lose their last digits".to_owned(),
            number("list[1]", "0.50", "0.5"),
            number("any.x", "1.30", "1.3"),
            ambiguous("any.y", "012"),
            number("rule.port", "1.0", "1"),
        ]
    );
}
