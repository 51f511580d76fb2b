//! What the schema promises is what is served.

use std::collections::BTreeSet;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::rpc::{GetSchemaRequest, InvokeRequest};
use serde_json::Value;
use tonic::Code;

use super::host::{Host, bag, ours, wire};
use super::{DIRECTORY, FILE, PASSWORD};

async fn schema(host: &mut Host) -> Value {
    let answer = host.provider.get_schema(GetSchemaRequest::default()).await.unwrap().into_inner();
    serde_json::from_str(&answer.schema).unwrap()
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

fn strings(list: &Value) -> BTreeSet<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn names(bag: &PropertyMap) -> BTreeSet<&str> {
    bag.keys().map(String::as_str).collect()
}

/// The type that the schema gives to a value, which may be a secret.
fn fits(spec: &Value, value: &pulumi_proto::property::PropertyValue) -> bool {
    use pulumi_proto::property::PropertyValue;
    match value.without_wrappers() {
        PropertyValue::String(_) => spec["type"] == "string",
        PropertyValue::Number(_) => spec["type"] == "integer",
        PropertyValue::Bool(_) => spec["type"] == "boolean",
        _ => false,
    }
}

#[tokio::test]
async fn every_property_served_is_in_the_schema_and_the_other_way_round() {
    let mut host = Host::configured().await;
    let schema = schema(&mut host).await;
    let least = [
        (DIRECTORY, bag([("path", "a".into())])),
        (FILE, bag([("path", "b".into()), ("content", "x".into())])),
        (PASSWORD, bag([("length", 24.0.into())])),
    ];
    assert_eq!(keys(&schema["resources"]), least.iter().map(|(kind, _)| *kind).collect());
    for (kind, inputs) in least {
        let spec = &schema["resources"][kind];
        assert_eq!(strings(&spec["requiredInputs"]), names(&inputs), "{kind}");
        let checked = host.check(kind, &inputs).await.unwrap();
        assert_eq!(keys(&spec["inputProperties"]), names(&checked), "{kind}");
        let (_, outputs) = host.create(kind, &checked).await.unwrap();
        assert_eq!(keys(&spec["properties"]), names(&outputs), "{kind}");
        assert_eq!(strings(&spec["required"]), names(&outputs), "{kind}");
        for (name, value) in &outputs {
            let property = &spec["properties"][name];
            assert!(fits(property, value), "{kind}.{name}: {property}");
            assert_eq!(property["secret"] == true, value.is_secret(), "{kind}.{name}");
        }
        for (name, spec) in spec["inputProperties"].as_object().unwrap() {
            let given = inputs.contains_key(name);
            assert!(given != spec.get("default").is_some() && fits(spec, &checked[name]), "{kind}.{name}: {spec}");
        }
    }
}

#[tokio::test]
async fn what_the_schema_says_replaces_does_and_nothing_else() {
    let mut host = Host::configured().await;
    let schema = schema(&mut host).await;
    for (kind, spec) in schema["resources"].as_object().unwrap() {
        for (name, property) in spec["inputProperties"].as_object().unwrap() {
            let (old, new) = (bag([(name, "a".into())]), bag([(name, "b".into())]));
            let replaces = !host.diff(kind, &old, &new).await.replaces.is_empty();
            assert_eq!(replaces, property["willReplaceOnChanges"] == true, "{kind}.{name}");
        }
    }
}

#[tokio::test]
async fn everything_is_described_and_functions_are_there() {
    let mut host = Host::configured().await;
    let schema = schema(&mut host).await;
    assert_eq!((&schema["name"], &schema["version"]), (&"files".into(), &env!("CARGO_PKG_VERSION").into()));
    assert_eq!(keys(&schema["config"]["variables"]), ["root"].into());
    assert_eq!(keys(&schema["provider"]["inputProperties"]), ["root"].into());

    std::fs::create_dir_all(&host.root).unwrap();
    std::fs::write(host.root.join("a"), "x").unwrap();
    for (token, spec) in schema["functions"].as_object().unwrap() {
        let request =
            InvokeRequest { tok: token.clone(), args: wire(&bag([("path", "a".into())])), ..Default::default() };
        let answer = host.provider.invoke(request).await.unwrap().into_inner();
        assert_eq!(keys(&spec["outputs"]["properties"]), names(&ours(answer.r#return)), "{token}");
    }
    described("schema", &schema);
}

/// Every object with a type, and everything in a list of things, has a description.
fn described(at: &str, value: &Value) {
    let Value::Object(members) = value else { return };
    let is_property = members.get("type").is_some_and(|kind| kind.is_string() && kind != "object");
    if is_property {
        assert!(members["description"].as_str().is_some_and(|text| text.ends_with('.')), "{at}");
    }
    members.iter().for_each(|(name, member)| described(&format!("{at}.{name}"), member));
}

#[tokio::test]
async fn only_the_schema_that_exists_is_served() {
    let mut host = Host::started().await;
    let requests = [
        GetSchemaRequest { version: 1, ..Default::default() },
        GetSchemaRequest { subpackage_name: "other".into(), ..Default::default() },
    ];
    for request in requests {
        assert_eq!(host.provider.get_schema(request).await.unwrap_err().code(), Code::InvalidArgument);
    }
}
