//! Tests of references to outputs that the schema has and the provider did not return, and to items of lists.

use std::collections::BTreeMap;

use bridge::host::{InputInfo, NestedObjects, ObjectInfo, PackageTypes, TypeInfo};
use engine::ProgramEnd;
use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::fake::{FakeDeployment, Run, StackProgram};

/// Returns a type `p:m:A` with the outputs `text`, `texts`, `object`, `objects` and `byName`. An object has `name` and
/// `inner`, an object again.
fn types() -> BTreeMap<String, PackageTypes> {
    let object = || NestedObjects::Object("p:m:Object".to_owned());
    let outputs = [
        ("text", None),
        ("texts", None),
        ("object", Some(object())),
        ("objects", Some(NestedObjects::List(object().into()))),
        ("byName", Some(NestedObjects::Map(object().into()))),
    ];
    let info =
        TypeInfo { outputs: outputs.map(|(name, nested)| (name.to_owned(), nested)).into(), ..TypeInfo::default() };
    let inner = InputInfo { nested: Some(object()), ..InputInfo::default() };
    let properties = [("name".to_owned(), InputInfo::default()), ("inner".to_owned(), inner)].into();
    let types = PackageTypes::new([("p:m:A".to_owned(), info)], [("p:m:Object".to_owned(), ObjectInfo { properties })]);
    [("p".to_owned(), types)].into()
}

fn map(key: &str, value: impl Into<PropertyValue>) -> PropertyValue {
    PropertyValue::Map(PropertyMap::from([(key.to_owned(), value.into())]))
}

/// Registers a resource `a` of a type, and a resource with a list of this text. Returns the item of the list, or the code
/// of the error.
async fn resolve(deployment: FakeDeployment, type_text: &str, text: &str) -> Result<PropertyValue, String> {
    let resources = format!("a: {{ type: '{type_text}' }}\nb: {{ type: 'p:m:B', config: {{ x: ['{text}'] }} }}");
    let subject = StackProgram::resources(&resources, "");
    let result = subject.program.run(&deployment, &deployment).await;
    if result.end == ProgramEnd::Failed {
        return Err(result.diagnostics.iter().map(|diagnostic| diagnostic.code.0).collect());
    }
    match deployment.goal("b--e").inputs.get("x") {
        Some(PropertyValue::List(items)) => Ok(items[0].clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn missing_output_of_the_schema_is_null() {
    let returned = || {
        FakeDeployment { types: types(), ..FakeDeployment::default() }
            .with("a--e", "texts", vec![PropertyValue::from("x"), "y".into()])
            .with("a--e", "objects", vec![map("name", "n"), map("inner", map("name", "m"))])
            .with("a--e", "byName", map("k", map("inner", PropertyValue::Null)))
    };
    let null = Ok(PropertyValue::Null);
    let unknown = Err("unknown-output".to_owned());
    for (path, expected) in [
        ("text", null.clone()),
        ("object", null.clone()),
        ("object.name", null.clone()),
        ("object.inner.name", null.clone()),
        ("object.inner.nam", unknown.clone()),
        ("objects[0].inner", null.clone()),
        ("objects[0].inner.name", null.clone()),
        ("objects[0].inner.nam", unknown.clone()),
        ("byName.k.inner.name", null.clone()),
        ("byName.k.name", null.clone()),
        ("objects[0].name", Ok("n".into())),
        ("objects.0.name", Ok("n".into())),
        ("objects[1].inner.name", Ok("m".into())),
        ("objects.1.inner.name", Ok("m".into())),
        ("texts[1]", Ok("y".into())),
        ("texts.1", Ok("y".into())),
        // A list has only the items that were returned, a map the members.
        ("texts[2]", unknown.clone()),
        ("texts.2", unknown.clone()),
        ("objects[2]", unknown.clone()),
        ("objects[2].name", unknown.clone()),
        ("byName.other", unknown.clone()),
        ("other", unknown.clone()),
    ] {
        assert_eq!(resolve(returned(), "p:m:A", &format!("${{resource:a.{path}}}")).await, expected, "{path}");
    }
    // Without a schema of the type, an output that was not returned is a mistake.
    assert_eq!(resolve(returned(), "p:m:Other", "${resource:a.text}").await, unknown);
    for (text, expected) in [
        ("${resource:a.text:d}", "d"),
        ("x-${resource:a.text}", "x-<nil>"),
        ("x-${resource:a.objects[0].inner}", "x-<nil>"),
    ] {
        assert_eq!(resolve(returned(), "p:m:A", text).await, Ok(expected.into()), "{text}");
    }
}

#[tokio::test]
async fn missing_part_of_a_secret_is_a_secret_null() {
    let deployment = FakeDeployment { types: types(), ..FakeDeployment::default() }.with(
        "a--e",
        "object",
        PropertyValue::secret(map("name", "n")),
    );
    let found = resolve(deployment, "p:m:A", "${resource:a.object.inner}").await;
    assert_eq!(found, Ok(PropertyValue::secret(PropertyValue::Null)));
}

#[tokio::test]
async fn missing_output_is_unknown_in_a_preview_of_a_change_and_null_otherwise() {
    let preview = |unchanged: Vec<&'static str>| FakeDeployment {
        types: types(),
        run: Run::Preview,
        unchanged,
        ..FakeDeployment::default()
    };
    assert_eq!(resolve(preview(Vec::new()), "p:m:A", "${resource:a.text}").await, Ok(PropertyValue::UNKNOWN));
    assert_eq!(resolve(preview(vec!["a--e"]), "p:m:A", "${resource:a.text}").await, Ok(PropertyValue::Null));
}
