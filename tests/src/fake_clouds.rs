//! Fake providers of two clouds: they check inputs against the shapes in the SDK packages, and return outputs.
//!
//! Input: calls over gRPC, and `tests/goldens/clouds` (the shapes in the packages on PyPI; an interop suite compares
//! both). Output: replies, and a record of the calls. Excluded: the requests that a core type has to make.

use std::collections::BTreeMap;
use std::sync::Arc;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc;
use pulumi_proto::rpc::diff_response::DiffChanges;
use pulumi_proto::rpc::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use serde::Deserialize;
use tonic::{Request, Response, Status};

use crate::rec::{Call, CallRecorder, RequestJson};
use crate::service::{Reply, decode_properties, encode_properties, type_and_name};

const AWS: &str = include_str!("../goldens/clouds/aws.json");
const GCP: &str = include_str!("../goldens/clouds/gcp.json");

/// Inputs whose change replaces a resource. SDKs do not contain this information.
const REPLACE_KEYS: [(&str, &[&str]); 9] = [
    ("aws:iam/accessKey:AccessKey", &["user"]),
    ("aws:s3/bucket:Bucket", &["bucket"]),
    ("aws:s3/bucketCorsConfigurationV2:BucketCorsConfigurationV2", &["bucket"]),
    ("aws:s3/bucketOwnershipControls:BucketOwnershipControls", &["bucket"]),
    ("aws:s3/bucketPolicy:BucketPolicy", &["bucket"]),
    ("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", &["bucket"]),
    ("gcp:serviceaccount/account:Account", &["accountId"]),
    ("gcp:storage/bucket:Bucket", &["name", "location"]),
    ("gcp:storage/bucketIAMMember:BucketIAMMember", &["bucket", "role", "member"]),
];

/// Shapes in an SDK package.
#[derive(Clone, Debug, Deserialize)]
pub struct PackageShape {
    /// Version of the package.
    pub version: String,
    /// Shape of the provider resource.
    pub provider: ResourceShape,
    /// Shapes of resources, by type.
    pub resources: BTreeMap<String, ResourceShape>,
}

/// Shape of a resource in an SDK package.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceShape {
    inputs: BTreeMap<String, Field>,
    #[serde(default)]
    outputs: BTreeMap<String, String>,
    /// Outputs that the SDK keeps secret.
    pub secret_outputs: Vec<String>,
    /// Former types of the resource.
    pub aliases: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Field {
    #[serde(rename = "type")]
    kind: Kind,
    required: bool,
    /// True if an SDK may send the property as a JSON text.
    #[serde(default)]
    json: bool,
    /// True if the SDK marks the property as secret.
    #[serde(default)]
    secret: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Kind {
    Scalar(String),
    List { list: Box<Kind> },
    Map { map: Box<Kind> },
    Object { object: BTreeMap<String, Field> },
}

/// Returns the packages by name.
pub fn packages() -> BTreeMap<&'static str, PackageShape> {
    let read = |text| serde_json::from_str(text).expect("the recorded shapes are JSON");
    BTreeMap::from([("aws", read(AWS)), ("gcp", read(GCP))])
}

impl ResourceShape {
    /// Returns the inputs that the SDK marks as secret.
    pub fn secret_inputs(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().filter(|(_, field)| field.secret).map(|(name, _)| name.as_str())
    }

    /// Returns the check failures of inputs, each with its property path.
    fn check_inputs(&self, inputs: &PropertyMap) -> Vec<(String, String)> {
        let mut failures = Vec::new();
        check_fields(&self.inputs, inputs, "", &mut failures);
        failures
    }

    /// Returns the outputs of a resource: its inputs, and a value for each other output of the type string.
    fn outputs(&self, name: &str, mut inputs: PropertyMap) -> PropertyMap {
        for (output, kind) in &self.outputs {
            if kind == "string" && !inputs.contains_key(output) {
                inputs.insert(output.clone(), format!("{name}.{output}").into());
            }
        }
        inputs
    }
}

fn check_fields(
    fields: &BTreeMap<String, Field>,
    values: &PropertyMap,
    parent_path: &str,
    failures: &mut Vec<(String, String)>,
) {
    for (name, field) in fields.iter().filter(|(name, field)| field.required && !values.contains_key(*name)) {
        failures.push((format!("{parent_path}{name}"), format!("missing; its type is {:?}", field.kind)));
    }
    for (name, value) in values {
        let path = format!("{parent_path}{name}");
        match fields.get(name) {
            None => failures.push((path, "no such property".to_owned())),
            Some(field) => {
                // SDKs of other languages send some properties as JSON texts; Go's SDK does not. Providers accept both.
                let json = without_secret(value)
                    .as_str()
                    .filter(|_| field.json)
                    .and_then(|text| serde_json::from_str(text).ok());
                check(&field.kind, json.as_ref().map(scalar).as_ref().unwrap_or(value), &path, failures);
            }
        }
    }
}

fn check(kind: &Kind, value: &PropertyValue, path: &str, failures: &mut Vec<(String, String)>) {
    let is_valid = match (kind, without_secret(value)) {
        (_, PropertyValue::Unknown(_)) => true,
        (Kind::Scalar(kind), value) => match (kind.as_str(), value) {
            ("string", PropertyValue::String(_)) | ("boolean", PropertyValue::Bool(_)) | ("any", _) => true,
            ("integer", PropertyValue::Number(number)) => number.fract() == 0.0,
            ("number", PropertyValue::Number(_)) => true,
            _ => false,
        },
        (Kind::List { list }, PropertyValue::List(items)) => {
            items.iter().enumerate().for_each(|(at, item)| check(list, item, &format!("{path}[{at}]"), failures));
            true
        }
        (Kind::Map { map }, PropertyValue::Map(members)) => {
            members.iter().for_each(|(key, member)| check(map, member, &format!("{path}.{key}"), failures));
            true
        }
        (Kind::Object { object }, PropertyValue::Map(members)) => {
            check_fields(object, members, &format!("{path}."), failures);
            true
        }
        _ => false,
    };
    if !is_valid {
        failures.push((path.to_owned(), format!("its type must be {kind:?}")));
    }
}

/// Returns a value without its secret mark.
fn without_secret(value: &PropertyValue) -> &PropertyValue {
    match value {
        PropertyValue::Secret(secret) => secret.expose(),
        value => value,
    }
}

/// Converts a scalar from JSON.
fn scalar(json: &serde_json::Value) -> PropertyValue {
    match json {
        serde_json::Value::Bool(value) => (*value).into(),
        serde_json::Value::String(text) => text.as_str().into(),
        serde_json::Value::Number(number) => PropertyValue::Number(number.as_f64().unwrap_or(f64::NAN)),
        _ => PropertyValue::Null,
    }
}

/// Fake provider for all packages.
#[derive(Debug)]
pub struct FakeCloudProvider {
    packages: BTreeMap<&'static str, PackageShape>,
    call_recorder: Arc<dyn CallRecorder>,
}

/// Returns the fake provider as a service that records its calls.
pub fn service(call_recorder: Arc<dyn CallRecorder>) -> ResourceProviderServer<FakeCloudProvider> {
    ResourceProviderServer::new(FakeCloudProvider { packages: packages(), call_recorder })
}

impl FakeCloudProvider {
    fn record(&self, rpc: &str, request: &impl RequestJson) {
        self.call_recorder.record(Call { rpc: rpc.to_owned(), request: request.request_json(), error: None });
    }

    fn shape(&self, urn: &str) -> Result<&ResourceShape, Status> {
        let (token, _) = type_and_name(urn);
        let found = match token.strip_prefix("pulumi:providers:") {
            Some(package) => self.packages.get(package).map(|package| &package.provider),
            None => token.split(':').next().and_then(|name| self.packages.get(name)?.resources.get(token)),
        };
        found.ok_or_else(|| Status::not_found(format!("no resource has the type {token}")))
    }

    fn check_request(&self, request: rpc::CheckRequest) -> Reply<rpc::CheckResponse> {
        let mut inputs = decode_properties(request.news.clone())?;
        if type_and_name(&request.urn).0.starts_with("pulumi:providers:") {
            // The engine adds the version.
            inputs.remove("version");
        }
        let failures = self.shape(&request.urn)?.check_inputs(&inputs);
        let failures = failures.into_iter().map(|(property, reason)| rpc::CheckFailure { property, reason }).collect();
        Ok(Response::new(rpc::CheckResponse { inputs: request.news, failures }))
    }
}

#[tonic::async_trait]
impl ResourceProvider for FakeCloudProvider {
    async fn check_config(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        let request = request.into_inner();
        self.record("CheckConfig", &request);
        self.check_request(request)
    }

    async fn diff_config(&self, request: Request<rpc::DiffRequest>) -> Reply<rpc::DiffResponse> {
        self.diff(request).await
    }

    async fn configure(&self, _: Request<rpc::ConfigureRequest>) -> Reply<rpc::ConfigureResponse> {
        let response = rpc::ConfigureResponse { accept_secrets: true, supports_preview: true, ..Default::default() };
        Ok(Response::new(response))
    }

    async fn check(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        let request = request.into_inner();
        self.record("Check", &request);
        self.check_request(request)
    }

    async fn diff(&self, request: Request<rpc::DiffRequest>) -> Reply<rpc::DiffResponse> {
        let request = request.into_inner();
        let (token, _) = type_and_name(&request.urn);
        let (old, new) = (decode_properties(request.old_inputs)?, decode_properties(request.news)?);
        let changed: Vec<String> =
            old.keys().chain(new.keys()).filter(|key| old.get(*key) != new.get(*key)).cloned().collect();
        let replace_keys = REPLACE_KEYS.iter().find(|(known, _)| *known == token).map_or(&[][..], |(_, names)| names);
        let replaces: Vec<String> =
            changed.iter().filter(|key| replace_keys.contains(&key.as_str())).cloned().collect();
        let changes = if changed.is_empty() { DiffChanges::DiffNone } else { DiffChanges::DiffSome };
        // A resource with a fixed name cannot exist twice.
        let delete_before_replace = !replaces.is_empty();
        let response = rpc::DiffResponse {
            changes: changes.into(),
            replaces,
            delete_before_replace,
            diffs: changed,
            ..Default::default()
        };
        Ok(Response::new(response))
    }

    async fn create(&self, request: Request<rpc::CreateRequest>) -> Reply<rpc::CreateResponse> {
        let request = request.into_inner();
        if request.preview {
            let properties = request.properties;
            return Ok(Response::new(rpc::CreateResponse { properties, ..Default::default() }));
        }
        self.record("Create", &request);
        let (_, name) = type_and_name(&request.urn);
        let outputs = self.shape(&request.urn)?.outputs(name, decode_properties(request.properties)?);
        let id = format!("{name}-id");
        Ok(Response::new(rpc::CreateResponse {
            id,
            properties: Some(encode_properties(&outputs)?),
            ..Default::default()
        }))
    }

    async fn update(&self, request: Request<rpc::UpdateRequest>) -> Reply<rpc::UpdateResponse> {
        let request = request.into_inner();
        if request.preview {
            return Ok(Response::new(rpc::UpdateResponse { properties: request.news, ..Default::default() }));
        }
        self.record("Update", &request);
        let (_, name) = type_and_name(&request.urn);
        let outputs = self.shape(&request.urn)?.outputs(name, decode_properties(request.news)?);
        Ok(Response::new(rpc::UpdateResponse { properties: Some(encode_properties(&outputs)?), ..Default::default() }))
    }

    /// Returns the recorded inputs and their outputs. An import has no inputs; for it, the location is `EU`.
    async fn read(&self, request: Request<rpc::ReadRequest>) -> Reply<rpc::ReadResponse> {
        let request = request.into_inner();
        let mut inputs = decode_properties(request.inputs)?;
        if inputs.is_empty() {
            self.record(
                "Read",
                &rpc::ReadRequest { urn: request.urn.clone(), id: request.id.clone(), ..Default::default() },
            );
            inputs = PropertyMap::from([
                ("name".to_owned(), request.id.as_str().into()),
                ("location".to_owned(), "EU".into()),
            ]);
        }
        let (_, name) = type_and_name(&request.urn);
        let outputs = self.shape(&request.urn)?.outputs(name, inputs.clone());
        let (inputs, properties) = (Some(encode_properties(&inputs)?), Some(encode_properties(&outputs)?));
        Ok(Response::new(rpc::ReadResponse { id: request.id, inputs, properties, ..Default::default() }))
    }

    async fn delete(&self, request: Request<rpc::DeleteRequest>) -> Reply<()> {
        self.record("Delete", &request.into_inner());
        Ok(Response::new(()))
    }

    /// Returns no version, as the provider serves several packages.
    async fn get_plugin_info(&self, _: Request<()>) -> Reply<rpc::PluginInfo> {
        Ok(Response::new(rpc::PluginInfo::default()))
    }

    async fn cancel(&self, _: Request<()>) -> Reply<()> {
        Ok(Response::new(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(token: &str, inputs: &serde_json::Value) -> Vec<String> {
        fn value(json: &serde_json::Value) -> PropertyValue {
            match json {
                serde_json::Value::Array(items) => items.iter().map(value).collect::<Vec<_>>().into(),
                serde_json::Value::Object(members) => {
                    members.iter().map(|(key, member)| (key.clone(), value(member))).collect::<PropertyMap>().into()
                }
                json => scalar(json),
            }
        }
        let packages = packages();
        let package = &packages[token.trim_start_matches("pulumi:providers:").split(':').next().unwrap()];
        let shape = package.resources.get(token).unwrap_or(&package.provider);
        let inputs = value(inputs);
        shape.check_inputs(inputs.as_map().unwrap()).into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn inputs_that_do_not_match_the_sdk_shape_are_rejected() {
        use serde_json::json;
        let cors = "aws:s3/bucketCorsConfigurationV2:BucketCorsConfigurationV2";
        let rule = json!({ "allowedOrigins": ["x"], "allowedMethods": ["GET"] });
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
        ];
        for (token, inputs, mut expected) in table {
            let mut found = failures(token, &inputs);
            found.sort();
            expected.sort_unstable();
            assert_eq!(found, expected, "{token} {inputs}");
        }
    }
}
