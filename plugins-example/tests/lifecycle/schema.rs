//! Tests of the schema against the behaviour of the plugin.

use std::collections::BTreeSet;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::rpc::{GetSchemaRequest, InvokeRequest};
use serde_json::Value;
use tonic::Code;

use super::host::{Host, bag, decode_bag, wire};
use super::{DIRECTORY, FILE, PASSWORD};

async fn schema(host: &mut Host) -> Value {
    let response = host.provider.get_schema(GetSchemaRequest::default()).await.unwrap().into_inner();
    serde_json::from_str(&response.schema).unwrap()
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

/// Returns true if a value, which may be a secret, has the type in the schema.
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
async fn schema_has_exactly_the_properties_of_the_plugin() {
    let mut host = Host::configured().await;
    let schema = schema(&mut host).await;
    let minimal_inputs = [
        (DIRECTORY, bag([("path", "a".into())])),
        (FILE, bag([("path", "b".into()), ("content", "x".into())])),
        (PASSWORD, bag([("length", 24.0.into())])),
    ];
    assert_eq!(keys(&schema["resources"]), minimal_inputs.iter().map(|(kind, _)| *kind).collect());
    for (kind, inputs) in minimal_inputs {
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
async fn schema_and_diff_agree_on_replacements() {
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
async fn schema_describes_functions_and_all_properties() {
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
        let response = host.provider.invoke(request).await.unwrap().into_inner();
        assert_eq!(keys(&spec["outputs"]["properties"]), names(&decode_bag(response.r#return)), "{token}");
    }
    assert_described("schema", &schema);
}

/// Checks that each scalar property has a description, which ends with a period.
fn assert_described(at: &str, value: &Value) {
    let Value::Object(members) = value else { return };
    let is_property = members.get("type").is_some_and(|kind| kind.is_string() && kind != "object");
    if is_property {
        assert!(members["description"].as_str().is_some_and(|text| text.ends_with('.')), "{at}");
    }
    members.iter().for_each(|(name, member)| assert_described(&format!("{at}.{name}"), member));
}

#[tokio::test]
async fn request_for_another_schema_version_or_subpackage_is_refused() {
    let mut host = Host::started().await;
    let requests = [
        GetSchemaRequest { version: 1, ..Default::default() },
        GetSchemaRequest { subpackage_name: "other".into(), ..Default::default() },
    ];
    for request in requests {
        assert_eq!(host.provider.get_schema(request).await.unwrap_err().code(), Code::InvalidArgument);
    }
}
