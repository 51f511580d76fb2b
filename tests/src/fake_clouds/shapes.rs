//! Shapes of the resources in SDK packages, and the check of inputs against them.

use std::collections::BTreeMap;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use serde::Deserialize;

use super::scalar;

/// Files about the SDKs of all packages.
const SDKS: [&str; 6] = [
    include_str!("../../../provisioner/src/registry/sdk/aws.json"),
    include_str!("../../../provisioner/src/registry/sdk/cloudflare.json"),
    include_str!("../../../provisioner/src/registry/sdk/gcp.json"),
    include_str!("../../../provisioner/src/registry/sdk/kubernetes.json"),
    include_str!("../../../provisioner/src/registry/sdk/mongodbatlas.json"),
    include_str!("../../../provisioner/src/registry/sdk/random.json"),
];

/// Shapes in an SDK package.
#[derive(Clone, Debug, Deserialize)]
pub struct PackageShape {
    name: String,
    /// Version of the package.
    pub version: String,
    /// Shapes of resources, by type; also of the provider.
    pub resources: BTreeMap<String, ResourceShape>,
    /// Functions by token.
    #[serde(default)]
    pub(super) functions: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    types: BTreeMap<String, ObjectShape>,
}

/// Shape of a resource in an SDK package.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceShape {
    inputs: BTreeMap<String, Kind>,
    required: Vec<String>,
    pub(super) outputs: BTreeMap<String, Kind>,
    /// Inputs that the SDK marks as secret.
    pub secret_inputs: Vec<String>,
    /// Outputs that the SDK keeps secret.
    pub secret_outputs: Vec<String>,
}

/// Shape of the objects in inputs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ObjectShape {
    fields: BTreeMap<String, Kind>,
    required: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Kind {
    String,
    Boolean,
    Integer,
    Number,
    Any,
    Asset,
    Array(Box<Kind>),
    Map(Box<Kind>),
    /// Object with the shape of this name.
    Object(String),
    OneOf(Vec<Kind>),
}

/// Returns the packages by name.
pub fn packages() -> BTreeMap<String, PackageShape> {
    let read = |text| serde_json::from_str::<PackageShape>(text).expect("the files about SDKs are JSON");
    SDKS.map(read).into_iter().map(|package| (package.name.clone(), package)).collect()
}

impl PackageShape {
    /// Returns the check failures of the inputs of a resource, each with its property path.
    pub(super) fn check_inputs(&self, token: &str, inputs: &PropertyMap) -> Vec<(String, String)> {
        if self.is_custom_resource(token) {
            return ["apiVersion", "kind"]
                .into_iter()
                .zip(token.split(':').skip(1))
                .filter(|(name, part)| inputs.get(*name).and_then(PropertyValue::as_str) != Some(part))
                .map(|(name, part)| (name.to_owned(), format!("must be {part}")))
                .collect();
        }
        let Some(ResourceShape { inputs: kinds, required, .. }) = self.resources.get(token) else {
            return vec![(String::new(), format!("no resource has the type {token}"))];
        };
        // SDKs of other languages send some inputs of providers as JSON texts; Go's SDK does not. Providers accept both.
        let from_json = |name: &str, value: &PropertyValue| {
            let accepts_json = token.starts_with("pulumi:providers:") && kinds.get(name) != Some(&Kind::String);
            let text = without_secret(value).as_str().filter(|_| accepts_json)?;
            serde_json::from_str(text).ok().as_ref().map(scalar)
        };
        let inputs =
            inputs.iter().map(|(name, value)| (name.clone(), from_json(name, value).unwrap_or_else(|| value.clone())));
        let mut failures = Vec::new();
        self.check_fields((kinds, required), &inputs.collect(), "", &mut failures);
        failures
    }

    /// Returns whether a type is that of a custom resource of Kubernetes, which no SDK has.
    pub(super) fn is_custom_resource(&self, token: &str) -> bool {
        let has_group = token.strip_prefix("kubernetes:").is_some_and(|rest| rest.contains('/'));
        has_group && !self.resources.contains_key(token)
    }

    fn check_fields(
        &self,
        (kinds, required): (&BTreeMap<String, Kind>, &[String]),
        values: &PropertyMap,
        parent_path: &str,
        failures: &mut Vec<(String, String)>,
    ) {
        for name in required.iter().filter(|name| !values.contains_key(*name)) {
            failures.push((format!("{parent_path}{name}"), format!("missing; its type is {:?}", kinds.get(name))));
        }
        for (name, value) in values {
            let path = format!("{parent_path}{name}");
            match kinds.get(name) {
                None => failures.push((path, "no such property".to_owned())),
                Some(kind) => self.check(kind, value, &path, failures),
            }
        }
    }

    fn check(&self, kind: &Kind, value: &PropertyValue, path: &str, failures: &mut Vec<(String, String)>) {
        let is_valid = match (kind, without_secret(value)) {
            (_, PropertyValue::Unknown(_))
            | (Kind::Any, _)
            | (Kind::String, PropertyValue::String(_))
            | (Kind::Boolean, PropertyValue::Bool(_))
            | (Kind::Number, PropertyValue::Number(_))
            | (Kind::Asset, PropertyValue::Asset(_) | PropertyValue::Archive(_)) => true,
            (Kind::Integer, PropertyValue::Number(number)) => number.fract() == 0.0,
            (Kind::Array(kind), PropertyValue::List(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.check(kind, item, &format!("{path}[{at}]"), failures);
                }
                true
            }
            (Kind::Map(kind), PropertyValue::Map(members)) => {
                members.iter().for_each(|(key, member)| self.check(kind, member, &format!("{path}.{key}"), failures));
                true
            }
            (Kind::Object(name), PropertyValue::Map(members)) => {
                let ObjectShape { fields, required } = &self.types[name];
                self.check_fields((fields, required), members, &format!("{path}."), failures);
                true
            }
            (Kind::OneOf(kinds), value) => kinds.iter().any(|kind| {
                let mut failures = Vec::new();
                self.check(kind, value, path, &mut failures);
                failures.is_empty()
            }),
            _ => false,
        };
        if !is_valid {
            failures.push((path.to_owned(), format!("its type must be {kind:?}")));
        }
    }
}

/// Returns a value without its secret mark.
fn without_secret(value: &PropertyValue) -> &PropertyValue {
    match value {
        PropertyValue::Secret(secret) => secret.expose(),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_clouds::{package_of, property};

    fn failures(token: &str, inputs: &serde_json::Value) -> Vec<String> {
        let (packages, inputs) = (packages(), property(inputs));
        let failures = packages[package_of(token)].check_inputs(token, inputs.as_map().unwrap());
        failures.into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn inputs_that_do_not_match_the_sdk_shape_are_rejected() {
        use serde_json::json;
        let cors = "aws:s3/bucketCorsConfigurationV2:BucketCorsConfigurationV2";
        let rule = json!({ "allowedOrigins": ["x"], "allowedMethods": ["GET"] });
        let service = |port| json!({ "spec": { "ports": [{ "port": 80, "targetPort": port }] } });
        let table = [
            ("aws:s3/bucket:Bucket", json!({ "bucket": "b", "tags": { "a": "b" } }), vec![]),
            (
                "aws:s3/bucket:Bucket",
                json!({ "bucket": 1, "tags": { "a": true }, "site": 1 }),
                vec!["bucket", "site", "tags.a"],
            ),
            (cors, json!({ "bucket": "b", "corsRules": [rule] }), vec![]),
            (
                cors,
                json!({ "corsRules": [{ "allowedOrigins": "x", "methods": [] }] }),
                vec!["bucket", "corsRules[0].allowedMethods", "corsRules[0].allowedOrigins", "corsRules[0].methods"],
            ),
            ("gcp:storage/bucket:Bucket", json!({ "name": "b" }), vec!["location"]),
            ("pulumi:providers:aws", json!({ "skipRegionValidation": "true", "region": "r" }), vec![]),
            (
                "pulumi:providers:aws",
                json!({ "skipRegionValidation": "\"true\"", "accessKeys": "k" }),
                vec!["accessKeys", "skipRegionValidation"],
            ),
            ("pulumi:providers:aws", json!({ "skipRegionValidation": true }), vec![]),
            ("kubernetes:core/v1:Service", service(json!(80)), vec![]),
            ("kubernetes:core/v1:Service", service(json!("http")), vec![]),
            ("kubernetes:core/v1:Service", service(json!([80])), vec!["spec.ports[0].targetPort"]),
            ("random:index/randomPassword:RandomPassword", json!({ "length": 0.5 }), vec!["length"]),
            ("kubernetes:acid.zalan.do/v1:postgresql", json!({ "apiVersion": "acid.zalan.do/v1" }), vec!["kind"]),
        ];
        for (token, inputs, mut expected) in table {
            let mut found = failures(token, &inputs);
            found.sort();
            expected.sort_unstable();
            assert_eq!(found, expected, "{token} {inputs}");
        }
    }
}
