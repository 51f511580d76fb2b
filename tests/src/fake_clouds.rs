//! Fake providers of clouds: they check inputs against the SDK packages, and return outputs.
//!
//! Input: calls over gRPC, and `provisioner/src/registry/sdk` (what the packages on PyPI say; an interop suite compares
//! both); the script of a test. Output: replies, and a record of the calls. Excluded: the requests that a core type has to make.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc;
use pulumi_proto::rpc::diff_response::DiffChanges;
use pulumi_proto::rpc::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use serde::Deserialize;
use tonic::{Request, Response, Status};

use crate::rec::{Call, CallRecorder, RequestJson};
use crate::service::{Reply, decode_properties, encode_properties, type_and_name};

/// Files about the SDKs of all packages.
const SDKS: [&str; 6] = [
    include_str!("../../provisioner/src/registry/sdk/aws.json"),
    include_str!("../../provisioner/src/registry/sdk/cloudflare.json"),
    include_str!("../../provisioner/src/registry/sdk/gcp.json"),
    include_str!("../../provisioner/src/registry/sdk/kubernetes.json"),
    include_str!("../../provisioner/src/registry/sdk/mongodbatlas.json"),
    include_str!("../../provisioner/src/registry/sdk/random.json"),
];

/// Inputs whose change replaces a resource. SDKs do not contain this information.
const REPLACE_KEYS: [(&str, &[&str]); 11] = [
    ("aws:iam/accessKey:AccessKey", &["user"]),
    ("aws:s3/bucket:Bucket", &["bucket"]),
    ("aws:s3/bucketCorsConfigurationV2:BucketCorsConfigurationV2", &["bucket"]),
    ("aws:s3/bucketOwnershipControls:BucketOwnershipControls", &["bucket"]),
    ("aws:s3/bucketPolicy:BucketPolicy", &["bucket"]),
    ("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", &["bucket"]),
    ("gcp:kms/cryptoKey:CryptoKey", &["name", "keyRing"]),
    ("gcp:kms/keyRing:KeyRing", &["name", "location"]),
    ("gcp:serviceaccount/account:Account", &["accountId"]),
    ("gcp:storage/bucket:Bucket", &["name", "location"]),
    ("gcp:storage/bucketIAMMember:BucketIAMMember", &["bucket", "role", "member"]),
];

/// Outputs that are no texts, by type, as JSON. Inputs of these names come first.
const OUTPUTS: [(&str, &str); 6] = [
    ("gcp:container/cluster:Cluster", r#"{ "masterAuth": { "clusterCaCertificate": "Q0E=" } }"#),
    ("gcp:redis/instance:Instance", r#"{ "port": 6379 }"#),
    ("gcp:serviceaccount/key:Key", r#"{ "privateKey": "e30=" }"#),
    (
        "kubernetes:core/v1:Secret",
        r#"{ "data": {
            "password": "bG93LXRpZGUtNg==", "username": "cm9vdA==", "host": "aA==", "port": "NTY3Mg==", "type": "cg==",
            "provider": "cg==", "default_user.conf": "YQ==", "connection_string": "YW1xcDovLw=="
        } }"#,
    ),
    ("kubernetes:core/v1:Service", r#"{ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.5" }] } } }"#),
    (
        "mongodbatlas:index/cluster:Cluster",
        r#"{ "connectionStrings": [{ "standardSrv": "mongodb+srv://reef.example" }], "srvAddress": "mongodb+srv://reef.example" }"#,
    ),
];

/// Results of functions, by token, as JSON.
const RESULTS: [(&str, &str); 2] = [
    ("aws:index/getAvailabilityZones:getAvailabilityZones", r#"{ "names": ["eu-north-1a", "eu-north-1b"] }"#),
    ("cloudflare:index/getZone:getZone", r#"{ "id": "zone-7", "zoneId": "zone-7" }"#),
];

/// Instructions of a test to the provider, in the file `script.json` in the folder of its calls, which is read at each call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Script {
    /// Error of Create, by the name of the resource.
    fail: BTreeMap<String, String>,
    /// Inputs of existing resources, by `TYPE::ID`.
    existing: BTreeMap<String, serde_json::Value>,
    /// Results of functions, by token, in place of those of [`RESULTS`].
    results: BTreeMap<String, serde_json::Value>,
}

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
    functions: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    types: BTreeMap<String, ObjectShape>,
}

/// Shape of a resource in an SDK package.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceShape {
    inputs: BTreeMap<String, Kind>,
    required: Vec<String>,
    outputs: BTreeMap<String, Kind>,
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
enum Kind {
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
    fn check_inputs(&self, token: &str, inputs: &PropertyMap) -> Vec<(String, String)> {
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
    fn is_custom_resource(&self, token: &str) -> bool {
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

impl ResourceShape {
    /// Returns the outputs of a resource: its inputs, those of [`OUTPUTS`], and a value for each other output of the type
    /// string.
    fn outputs(&self, token: &str, name: &str, mut inputs: PropertyMap) -> PropertyMap {
        for (output, value) in constants(&OUTPUTS, token) {
            inputs.entry(output).or_insert(value);
        }
        for (output, kind) in &self.outputs {
            if *kind == Kind::String && !inputs.contains_key(output) {
                inputs.insert(output.clone(), format!("{name}.{output}").into());
            }
        }
        inputs
    }
}

/// Returns the properties of a token in a list.
fn constants(list: &[(&str, &str)], token: &str) -> PropertyMap {
    let text = list.iter().find(|(known, _)| *known == token).map_or("{}", |(_, text)| text);
    let value = serde_json::from_str(text).ok().as_ref().map(property);
    value.as_ref().and_then(PropertyValue::as_map).cloned().unwrap_or_default()
}

/// Converts a value from JSON.
fn property(json: &serde_json::Value) -> PropertyValue {
    match json {
        serde_json::Value::Array(items) => items.iter().map(property).collect::<Vec<_>>().into(),
        serde_json::Value::Object(members) => {
            members.iter().map(|(key, member)| (key.clone(), property(member))).collect::<PropertyMap>().into()
        }
        json => scalar(json),
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

/// Returns the name of the package of a resource type or provider.
pub fn package_of(token: &str) -> &str {
    token.trim_start_matches("pulumi:providers:").split(':').next().unwrap_or(token)
}

/// Fake provider for all packages.
#[derive(Debug)]
pub struct FakeCloudProvider {
    packages: BTreeMap<String, PackageShape>,
    call_recorder: Arc<dyn CallRecorder>,
    script: Option<PathBuf>,
}

/// Returns the fake provider as a service that records its calls. `script` is the path of the [`Script`].
pub fn service(
    call_recorder: Arc<dyn CallRecorder>,
    script: Option<PathBuf>,
) -> ResourceProviderServer<FakeCloudProvider> {
    ResourceProviderServer::new(FakeCloudProvider { packages: packages(), call_recorder, script })
}

impl FakeCloudProvider {
    fn record(&self, rpc: &str, request: &impl RequestJson) {
        self.call_recorder.record(Call { rpc: rpc.to_owned(), request: request.request_json(), error: None });
    }

    /// Returns the script; an empty one if there is no file.
    fn script(&self) -> Result<Script, Status> {
        match self.script.as_ref().map(std::fs::read) {
            Some(Ok(text)) => serde_json::from_slice(&text).map_err(|error| Status::internal(error.to_string())),
            Some(Err(_)) | None => Ok(Script::default()),
        }
    }

    fn package(&self, token: &str) -> Result<&PackageShape, Status> {
        let package = self.packages.get(package_of(token));
        package.ok_or_else(|| Status::not_found(format!("no package has the type {token}")))
    }

    /// Returns the outputs of a resource with these inputs.
    fn outputs(&self, urn: &str, inputs: PropertyMap) -> Result<PropertyMap, Status> {
        let (token, name) = type_and_name(urn);
        let package = self.package(token)?;
        match package.resources.get(token) {
            Some(shape) => Ok(shape.outputs(token, name, inputs)),
            None if package.is_custom_resource(token) => Ok(inputs),
            None => Err(Status::not_found(format!("no resource has the type {token}"))),
        }
    }

    fn check_request(&self, request: rpc::CheckRequest) -> Reply<rpc::CheckResponse> {
        let mut inputs = decode_properties(request.news.clone())?;
        let (token, _) = type_and_name(&request.urn);
        if token.starts_with("pulumi:providers:") {
            // The engine adds the version.
            inputs.remove("version");
        }
        let failures = self.package(token)?.check_inputs(token, &inputs);
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
        if let Some(error) = self.script()?.fail.get(name) {
            return Err(Status::unknown(error));
        }
        let outputs = self.outputs(&request.urn, decode_properties(request.properties)?)?;
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
        let outputs = self.outputs(&request.urn, decode_properties(request.news)?)?;
        Ok(Response::new(rpc::UpdateResponse { properties: Some(encode_properties(&outputs)?), ..Default::default() }))
    }

    /// Returns the recorded inputs and their outputs. Those of an import are in the script, by default a name and the location
    /// `EU`.
    async fn read(&self, request: Request<rpc::ReadRequest>) -> Reply<rpc::ReadResponse> {
        let request = request.into_inner();
        let mut inputs = decode_properties(request.inputs)?;
        let is_import = decode_properties(request.properties)?.is_empty();
        if inputs.is_empty() && is_import {
            self.record(
                "Read",
                &rpc::ReadRequest { urn: request.urn.clone(), id: request.id.clone(), ..Default::default() },
            );
            let (token, _) = type_and_name(&request.urn);
            let script = self.script()?;
            let existing = script.existing.get(&format!("{token}::{}", request.id)).map(property);
            inputs = existing.as_ref().and_then(PropertyValue::as_map).cloned().unwrap_or_else(|| {
                [("name".to_owned(), request.id.as_str().into()), ("location".to_owned(), "EU".into())].into()
            });
        }
        let outputs = self.outputs(&request.urn, inputs.clone())?;
        let (inputs, properties) = (Some(encode_properties(&inputs)?), Some(encode_properties(&outputs)?));
        Ok(Response::new(rpc::ReadResponse { id: request.id, inputs, properties, ..Default::default() }))
    }

    async fn invoke(&self, request: Request<rpc::InvokeRequest>) -> Reply<rpc::InvokeResponse> {
        let request = request.into_inner();
        let package = self.packages.get(package_of(&request.tok));
        if package.is_none_or(|package| !package.functions.contains_key(&request.tok)) {
            return Err(Status::not_found(format!("no function has the token {}", request.tok)));
        }
        let scripted = self.script()?.results.get(&request.tok).map(property);
        let result = scripted.as_ref().and_then(PropertyValue::as_map).cloned();
        let result = encode_properties(&result.unwrap_or_else(|| constants(&RESULTS, &request.tok)))?;
        Ok(Response::new(rpc::InvokeResponse { r#return: Some(result), failures: Vec::new() }))
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
