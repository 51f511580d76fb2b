//! Parameterize of the scripted provider: it serves the package that its parameters name, with the types of its own.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pulumi_proto::rpc::parameterize_request::{Parameters, ParametersArgs, ParametersValue};
use pulumi_proto::rpc::{GetSchemaRequest, ParameterizeRequest, ParameterizeResponse};
use serde_json::json;
use tonic::Status;

/// Package that an instance serves after Parameterize.
#[derive(Debug, Default)]
pub(super) struct ParameterizedPackage(OnceLock<ParameterizeResponse>);

/// Returns the value of the parameters of a package.
fn value_of(name: &str, version: &str) -> Vec<u8> {
    format!("{name}@{version}").into_bytes()
}

impl ParameterizedPackage {
    /// Serves the package of the parameters: a name and a version, or the value of both. A second call is an error, as for a
    /// provider that serves one package in each process.
    pub(super) fn parameterize(&self, request: ParameterizeRequest) -> Result<ParameterizeResponse, Status> {
        let package = match request.parameters {
            Some(Parameters::Args(ParametersArgs { args })) => match &args[..] {
                [name, version] => ParameterizeResponse { name: name.clone(), version: version.clone() },
                _ => return Err(Status::invalid_argument("rec: expected a name and a version")),
            },
            Some(Parameters::Value(ParametersValue { name, version, value })) if value == value_of(&name, &version) => {
                ParameterizeResponse { name, version }
            }
            Some(Parameters::Value(_)) | None => return Err(Status::invalid_argument("rec: another value")),
        };
        match self.0.set(package.clone()) {
            Ok(()) => Ok(package),
            Err(_) => Err(Status::failed_precondition("rec: Parameterize is called twice")),
        }
    }

    /// Returns the schema of the package that a request names, made of that of the provider's own package.
    pub(super) fn schema(&self, request: &GetSchemaRequest, own: &str) -> Result<String, Status> {
        let GetSchemaRequest { subpackage_name: name, subpackage_version: version, .. } = request;
        if name.is_empty() {
            return Ok(own.to_owned());
        }
        if self.0.get().is_none_or(|served| (&served.name, &served.version) != (name, version)) {
            return Err(Status::invalid_argument(format!("rec: {name} {version} is not served")));
        }
        let own = own.replace("\"rec:", &format!("\"{name}:"));
        let schema = serde_json::from_str(&own);
        let mut schema: serde_json::Value = schema.map_err(|error| Status::internal(error.to_string()))?;
        schema["name"] = json!(name);
        schema["version"] = json!(version);
        schema["parameterization"] = json!({
            "baseProvider": { "name": "rec", "version": "1.0.0" },
            "parameter": BASE64.encode(value_of(name, version)),
        });
        Ok(schema.to_string())
    }
}
