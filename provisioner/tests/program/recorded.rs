//! Compares the registrations for a server.yaml with those of the Go program, recorded at a monitor of Pulumi's.

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

use crate::fake::{FakeDeployment, Subject};

/// Converts a value to the format of the recording.
fn spelled(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::Bool(value) => (*value).into(),
        PropertyValue::String(text) => text.as_str().into(),
        PropertyValue::List(items) => items.iter().map(spelled).collect(),
        PropertyValue::Map(map) => members(map),
        PropertyValue::Secret(secret) => json!({ "secret": spelled(secret.expose()) }),
        other => panic!("{other:?}"),
    }
}

fn members(map: &PropertyMap) -> Value {
    map.iter().map(|(key, value)| (key.clone(), spelled(value))).collect::<Map<_, _>>().into()
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

/// Converts a recorded provider registration to that of a Pulumi YAML program, which leaves the state that ours has to
/// equal. Booleans are sent as JSON texts, which the provider accepts as well. Secret inputs make the outputs secret,
/// so `additionalSecretOutputs` is left out.
fn as_yaml_would(mut registration: Value) -> Value {
    if registration["type"].as_str().unwrap().starts_with("pulumi:providers:") {
        registration.as_object_mut().unwrap().remove("additionalSecretOutputs");
        for input in registration["inputs"].as_object_mut().unwrap().values_mut().filter(|input| input.is_boolean()) {
            *input = input.to_string().into();
        }
    }
    registration
}

/// Returns a value without its secret mark. The engine adds the marks of `additionalSecretOutputs`, and there is no
/// engine in this test.
fn bare(value: &Value) -> &Value {
    value.get("secret").unwrap_or(value)
}

#[tokio::test]
async fn every_recorded_server_yaml_registers_what_go_registers() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/simple-container/registrations/cases.json");
    let cases: Vec<Value> = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let server = case["server"].as_str().unwrap();
        let subject = Subject::whole(server, "", types::product(), ProvisionTable::product());
        let mut deployment = FakeDeployment::default();
        for (resource, outputs) in case["outputs"].as_object().unwrap() {
            for (property, value) in outputs.as_object().unwrap() {
                deployment = deployment.with(resource, property, value.as_str().unwrap());
            }
        }
        subject.run(&deployment).await;

        let goals = deployment.goals.lock().unwrap();
        let ours: BTreeMap<&str, Value> =
            goals.iter().filter(|goal| goal.custom).map(|goal| (goal.name.as_str(), registration(goal))).collect();
        let theirs = case["registrations"].as_array().unwrap();
        let theirs: BTreeMap<&str, Value> =
            theirs.iter().map(|goal| (goal["name"].as_str().unwrap(), as_yaml_would(goal.clone()))).collect();
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{name}");
        for (key, expected) in &theirs {
            assert_eq!(ours[key], *expected, "{name}: {key}");
        }

        let outputs = deployment.stack_outputs.lock().unwrap();
        let ours = members(outputs.as_ref().unwrap());
        let (ours, theirs) = (ours.as_object().unwrap(), case["exports"].as_object().unwrap());
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{name}");
        for (key, expected) in theirs {
            assert_eq!(bare(&ours[key]), bare(expected), "{name}: {key}");
            assert!(expected.get("secret").is_none() || ours[key].get("secret").is_some(), "{name}: {key} is secret");
        }
    }
    assert_eq!(cases.len(), 10);
}
