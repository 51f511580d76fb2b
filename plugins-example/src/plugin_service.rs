//! Optional service `simplecontainer.plugin.v1` for `sc`.

use std::sync::{Arc, Mutex, PoisonError};

use pulumi_proto::plugin_v1::health_check_response;
use pulumi_proto::plugin_v1::plugin_server::Plugin;
use pulumi_proto::plugin_v1::{
    CleanupRequest, CleanupResponse, ComputeProcessorsRequest, ComputeProcessorsResponse, HealthCheckRequest,
    HealthCheckResponse, InitializeRequest, InitializeResponse, PublishedValue, Variable,
};
use pulumi_proto::property::wire::{DecodeOptions, EncodeOptions, Unknowns, decode, encode_value};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use tonic::{Request, Response, Status};

use crate::provider::Shared;
use crate::value::{from_wire, get, is_secret, text};
use crate::{PACKAGE, VERSION, resources};

/// Implementation of the service.
pub(crate) struct PluginService {
    shared: Arc<Shared>,
    /// Request of Initialize, until Cleanup. Its `Debug` shows no secrets.
    init: Mutex<Option<InitializeRequest>>,
}

impl PluginService {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, init: Mutex::new(None) }
    }
}

#[tonic::async_trait]
impl Plugin for PluginService {
    async fn initialize(&self, request: Request<InitializeRequest>) -> Result<Response<InitializeResponse>, Status> {
        {
            let mut init = self.init.lock().unwrap_or_else(PoisonError::into_inner);
            if init.is_some() {
                return Err(Status::failed_precondition("the plugin is initialized already"));
            }
            *init = Some(request.into_inner());
        }
        self.shared.engine.debug("", "initialized").await;
        Ok(Response::new(InitializeResponse {
            name: PACKAGE.to_owned(),
            version: VERSION.to_owned(),
            description: "Folders and files below one root, and random passwords.".to_owned(),
        }))
    }

    async fn health_check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        let mut response = HealthCheckResponse::default();
        match self.shared.root().map_err(|status| status.message().to_owned()).and_then(|root| root.check_usable()) {
            Ok(()) => {
                response.set_status(health_check_response::Status::Serving);
                let init = self.init.lock().unwrap_or_else(PoisonError::into_inner);
                response.message = init.as_ref().and_then(deployment).unwrap_or_default();
            }
            Err(reason) => {
                response.set_status(health_check_response::Status::NotServing);
                response.message = reason;
            }
        }
        Ok(Response::new(response))
    }

    async fn compute_processors(
        &self,
        request: Request<ComputeProcessorsRequest>,
    ) -> Result<Response<ComputeProcessorsResponse>, Status> {
        let request = request.into_inner();
        // Types of other packages are an error.
        let resource = resources::find(&request.resource_type)?;
        let outputs = from_wire(request.outputs, Unknowns::Drop)?;
        let values = outputs.iter().map(|(name, value)| {
            let value = encode_value(value, &EncodeOptions::EVERYTHING);
            let value = value.map_err(|error| Status::internal(error.to_string()))?;
            Ok(PublishedValue { name: name.clone(), value })
        });
        let variable =
            |(suffix, output): &(&str, &str)| self.variable(&request.resource_name, suffix, output, &outputs);
        Ok(Response::new(ComputeProcessorsResponse {
            variables: resource.variables().iter().filter_map(variable).collect(),
            values: values.collect::<Result<_, Status>>()?,
        }))
    }

    async fn cleanup(&self, _: Request<CleanupRequest>) -> Result<Response<CleanupResponse>, Status> {
        self.init.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(Response::new(CleanupResponse {}))
    }
}

impl PluginService {
    /// Returns the environment variable of an output, `None` if the output is unknown.
    fn variable(&self, resource: &str, suffix: &str, output: &str, outputs: &PropertyMap) -> Option<Variable> {
        let value = match get(outputs, output)? {
            // Programs have the working directory of the plugin, so the path must include the root.
            PropertyValue::String(path) if output == "path" => {
                self.shared.root().ok()?.join(path).display().to_string()
            }
            PropertyValue::String(text) => text.clone(),
            _ => return None,
        };
        let name = format!("{}_{suffix}", resource.to_uppercase().replace('-', "_"));
        Some(Variable { name, value, secret: is_secret(outputs, output) })
    }
}

/// Describes the deployment of an Initialize request.
fn deployment(init: &InitializeRequest) -> Option<String> {
    let file = decode(init.config_file.as_ref()?, &DecodeOptions::EVERYTHING).ok()?;
    Some(format!("ready for stack {} of {}", text(&file, "stack")?, text(&file, "project")?))
}
