//! Fake providers of clouds: they check inputs against the SDK packages, and return outputs.
//!
//! Input: calls over gRPC, and `provisioner/src/registry/sdk` (what the packages on PyPI say; an interop suite compares
//! both); the script of a test. Output: replies, and a record of the calls. Excluded: the requests that a core type has to make.

mod shapes;

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

pub use shapes::{PackageShape, ResourceShape, packages};

use shapes::Kind;

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
    /// Resources that do not exist, as `TYPE::ID`.
    missing: Vec<String>,
    /// Results of functions, by token, in place of those of [`RESULTS`].
    results: BTreeMap<String, serde_json::Value>,
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
            let (script, resource) = (self.script()?, format!("{token}::{}", request.id));
            if script.missing.contains(&resource) {
                return Ok(Response::new(rpc::ReadResponse::default()));
            }
            let existing = script.existing.get(&resource).map(property);
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
