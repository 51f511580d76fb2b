//! Compares registrations with those of the Go program, which were recorded at Pulumi's resource monitor.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bridge::provider::Alias;
use engine::Goal;
use provisioner::registry::provision::ProvisionTable;
use provisioner::registry::types;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use serde_json::{Map, Value, json};

use crate::fake::{FakeDeployment, StackProgram};

/// Converts a value to the format of the recording.
fn to_recorded_value(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::Bool(value) => (*value).into(),
        PropertyValue::String(text) => text.as_str().into(),
        PropertyValue::List(items) => items.iter().map(to_recorded_value).collect(),
        PropertyValue::Map(map) => members(map),
        PropertyValue::Secret(secret) => json!({ "secret": to_recorded_value(secret.expose()) }),
        other => panic!("{other:?}"),
    }
}

fn members(map: &PropertyMap) -> Value {
    map.iter().map(|(key, value)| (key.clone(), to_recorded_value(value))).collect::<Map<_, _>>().into()
}

fn names<'u>(urns: impl IntoIterator<Item = &'u Urn>) -> Value {
    let mut names: Vec<&str> = urns.into_iter().map(Urn::name).collect();
    names.sort_unstable();
    names.into()
}

/// Converts a goal to the format of the recording, without empty members.
fn registration(goal: &Goal) -> Value {
    let former = goal.aliases.iter().map(|alias| match alias {
        Alias::Spec { type_token: Some(former), .. } => Value::from(former.as_str()),
        other => panic!("{other:?}"),
    });
    let dependencies = goal.property_dependencies.iter().map(|(name, urns)| (name.clone(), names(urns)));
    let members = [
        ("type", goal.type_token.as_str().into()),
        ("name", goal.name.as_str().into()),
        ("custom", goal.custom.into()),
        ("inputs", members(&goal.inputs)),
        ("propertyDependencies", dependencies.collect::<Map<_, _>>().into()),
        ("dependencies", names(&goal.dependencies)),
        ("provider", goal.provider.as_ref().map_or("", |provider| provider.urn.name()).into()),
        ("additionalSecretOutputs", goal.additional_secret_outputs.clone().into()),
        ("aliases", former.collect()),
        ("version", goal.version.as_deref().unwrap_or_default().into()),
        ("import", ResourceId::text(goal.import_id.as_ref()).into()),
        ("parent", goal.parent.as_ref().map_or("", Urn::name).into()),
    ];
    let empty = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    members
        .into_iter()
        .filter(|(_, value)| !empty(value))
        .map(|(key, value)| (key.to_owned(), value))
        .collect::<Map<_, _>>()
        .into()
}

/// Converts a recorded provider registration to that of a Pulumi YAML program, whose state is the expected state.
/// Booleans are sent as JSON texts, which the provider accepts as well. Secret inputs make the outputs secret, so
/// `additionalSecretOutputs` is omitted.
fn to_yaml_registration(mut registration: Value) -> Value {
    if registration["type"].as_str().unwrap().starts_with("pulumi:providers:") {
        registration.as_object_mut().unwrap().remove("additionalSecretOutputs");
        for input in registration["inputs"].as_object_mut().unwrap().values_mut().filter(|input| input.is_boolean()) {
            *input = input.to_string().into();
        }
    }
    registration
}

/// Removes the secret mark of a value. The marks of `additionalSecretOutputs` are added by the engine, which this test
/// does not run.
fn without_secret_mark(value: &Value) -> &Value {
    value.get("secret").unwrap_or(value)
}

#[tokio::test]
async fn registrations_match_recordings_of_go_program() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/simple-container/registrations/cases.json");
    let cases: Vec<Value> = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let server = case["server"].as_str().unwrap();
        let subject = StackProgram::complete(server, "", types::built_in_types(), ProvisionTable::built_in());
        let mut deployment = FakeDeployment::default();
        for (resource, outputs) in case["outputs"].as_object().unwrap() {
            for (property, value) in outputs.as_object().unwrap() {
                deployment = deployment.with(resource, property, value.as_str().unwrap());
            }
        }
        subject.run(&deployment).await;

        let goals = deployment.goals.lock().unwrap();
        let actual: BTreeMap<&str, Value> =
            goals.iter().filter(|goal| goal.custom).map(|goal| (goal.name.as_str(), registration(goal))).collect();
        let expected = case["registrations"].as_array().unwrap();
        let expected: BTreeMap<&str, Value> =
            expected.iter().map(|goal| (goal["name"].as_str().unwrap(), to_yaml_registration(goal.clone()))).collect();
        assert_eq!(actual.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{name}");
        for (key, recorded) in &expected {
            assert_eq!(actual[key], *recorded, "{name}: {key}");
        }

        let outputs = deployment.stack_outputs.lock().unwrap();
        let actual = members(outputs.as_ref().unwrap());
        let (actual, expected) = (actual.as_object().unwrap(), case["exports"].as_object().unwrap());
        assert_eq!(actual.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{name}");
        for (key, output) in expected {
            assert_eq!(without_secret_mark(&actual[key]), without_secret_mark(output), "{name}: {key}");
            assert!(output.get("secret").is_none() || actual[key].get("secret").is_some(), "{name}: {key} is secret");
        }
    }
    assert_eq!(cases.len(), 10);
}
