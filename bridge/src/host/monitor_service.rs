//! The resource monitor service `pulumirpc.ResourceMonitor` for component plugins: converts its messages to calls of
//! [`Monitor`] (docs/spec/provider-protocol.md#2.3; docs/spec/engine-semantics.md#2.1).
//!
//! Rejects features that need callbacks into a program (transforms, hooks, state migrations), and packages that extend another
//! one.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use pulumi_proto::duration::Timeouts;
use pulumi_proto::property::wire::{Bag, DecodeOptions, Unknowns, decode, decode_value};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use pulumi_proto::rpc::resource_monitor_server::{ResourceMonitor, ResourceMonitorServer};
use pulumi_proto::rpc::{
    self, CallResponse, Callback, DeploymentInfo, ExistsResourceRequest, ExistsResourceResponse, ReadResourceRequest,
    ReadResourceResponse, RegisterPackageRequest, RegisterPackageResponse, RegisterResourceHookRequest,
    RegisterResourceOutputsRequest, RegisterResourceRequest, RegisterResourceResponse, ResourceCallRequest,
    ResourceInvokeRequest, ResourceInvokeResponse, ResourceMonitorFeature, SupportsFeatureRequest,
    SupportsFeatureResponse,
};
use pulumi_proto::urn::Urn;
use tonic::service::Routes;
use tonic::{Request, Response, Status, async_trait};

use super::assets::{self, AssetAccess};
use super::connection_guard::{Caller, ConnectionGuard};
use super::endpoint::Endpoint;
use super::monitor::{
    FunctionCall, MethodCall, Monitor, ProviderSelection, ResourceOutcome, ResourceRead, ResourceRegistration,
};
use super::monitor_messages::{
    AcceptedValues, aborted, add_dependencies, failures, non_empty, parse_alias, parse_field, parse_optional,
    parse_timeout, parse_type_token, parse_urns, result_of, without_outputs,
};
use super::registered_packages::RegisteredPackages;
use crate::launch::MAX_MESSAGE;
use crate::provider::{Alias, ResourceOptions};

/// Supported features, by the names that SDKs use in SupportsFeature. All other features are unsupported.
const FEATURES: [(&str, ResourceMonitorFeature); 8] = [
    ("secrets", ResourceMonitorFeature::Secrets),
    ("resourceReferences", ResourceMonitorFeature::ResourceReferences),
    ("outputValues", ResourceMonitorFeature::OutputValues),
    ("aliasSpecs", ResourceMonitorFeature::AliasSpecs),
    ("replacementTrigger", ResourceMonitorFeature::ReplacementTrigger),
    ("deletedWith", ResourceMonitorFeature::DeletedWith),
    ("replaceWith", ResourceMonitorFeature::ReplaceWith),
    ("parameterization", ResourceMonitorFeature::Parameterization),
];

/// Running server of a resource monitor. Dropping it stops the service.
#[derive(Debug)]
pub struct MonitorEndpoint(Endpoint);

impl MonitorEndpoint {
    /// Starts the service on a free port of the loopback interface. `directory` is the working directory of the
    /// plugins, against which relative paths of assets are resolved. `guard` decides which connections are accepted.
    ///
    /// # Errors
    /// I/O error if no port can be opened.
    pub async fn serve(monitor: Arc<dyn Monitor>, directory: PathBuf, guard: Arc<ConnectionGuard>) -> io::Result<Self> {
        let service =
            ResourceMonitorServer::new(Service { monitor, directory, packages: RegisteredPackages::default() });
        let service = service.max_decoding_message_size(guard.limits().request).max_encoding_message_size(MAX_MESSAGE);
        Endpoint::serve(Routes::new(service), guard).await.map(Self)
    }

    /// Returns the address for Construct and Call, `host:port`.
    pub fn address(&self) -> String {
        self.0.address()
    }
}

/// Returns the limits on the assets of the plugin that sends a request.
fn access_of<T>(request: &Request<T>) -> Option<Arc<AssetAccess>> {
    request.extensions().get::<Caller>().and_then(|caller| caller.access.clone())
}

struct Service {
    monitor: Arc<dyn Monitor>,
    directory: PathBuf,
    packages: RegisteredPackages,
}

#[async_trait]
impl ResourceMonitor for Service {
    async fn get_deployment_info(&self, _: Request<()>) -> Result<Response<DeploymentInfo>, Status> {
        let run = self.monitor.run().clone();
        Ok(Response::new(DeploymentInfo {
            project: run.project,
            stack: run.stack,
            organization: run.organization,
            config: run.config,
            config_secret_keys: run.config_secret_keys,
            dry_run: run.dry_run,
            parallel: run.parallel,
            supported_features: FEATURES.iter().map(|(_, feature)| i32::from(*feature)).collect(),
        }))
    }

    async fn supports_feature(
        &self,
        request: Request<SupportsFeatureRequest>,
    ) -> Result<Response<SupportsFeatureResponse>, Status> {
        let id = request.into_inner().id;
        let has_support = FEATURES.iter().any(|(name, _)| *name == id);
        Ok(Response::new(SupportsFeatureResponse { has_support }))
    }

    async fn register_resource(
        &self,
        request: Request<RegisterResourceRequest>,
    ) -> Result<Response<RegisterResourceResponse>, Status> {
        let access = access_of(&request);
        let request = request.into_inner();
        let accepted = AcceptedValues {
            secrets: request.accept_secrets,
            resources: request.accept_resources,
            bytes: request.accepts_byte_string,
            partial: request.supports_partial_values,
        };
        let reports = request.supports_result_reporting;
        let mut registration = self.decode_registration(request)?;
        registration.inputs = self.with_hashes(registration.inputs, access).await?;
        let reply = self.monitor.register(registration).await.map_err(aborted)?;
        if reply.outcome == ResourceOutcome::Failed && !reports {
            return Err(Status::unknown(format!("resource {} failed", reply.urn)));
        }
        let dependencies = |(key, urns): (&String, &Vec<Urn>)| {
            let urns = urns.iter().map(Urn::to_string).collect();
            (key.clone(), rpc::register_resource_response::PropertyDependencies { urns })
        };
        Ok(Response::new(RegisterResourceResponse {
            urn: reply.urn.to_string(),
            id: ResourceId::text(reply.id.as_ref()).to_owned(),
            object: Some(accepted.encode(&reply.outputs)?),
            property_dependencies: reply.dependencies.iter().map(dependencies).collect(),
            result: result_of(&reply).into(),
            unknown: reply.outcome == ResourceOutcome::Unknown,
            ..RegisterResourceResponse::default()
        }))
    }

    async fn register_resource_outputs(
        &self,
        request: Request<RegisterResourceOutputsRequest>,
    ) -> Result<Response<()>, Status> {
        let access = access_of(&request);
        let request = request.into_inner();
        let outputs = self.decode_bag("outputs", request.outputs)?;
        let outputs = self.with_hashes(without_outputs(outputs), access).await?;
        self.monitor.register_outputs(parse_field("urn", &request.urn)?, outputs).await.map_err(aborted)?;
        Ok(Response::new(()))
    }

    async fn read_resource(
        &self,
        request: Request<ReadResourceRequest>,
    ) -> Result<Response<ReadResourceResponse>, Status> {
        let access = access_of(&request);
        let request = request.into_inner();
        let accepted = AcceptedValues {
            secrets: request.accept_secrets,
            resources: request.accept_resources,
            bytes: request.accepts_byte_string,
            partial: true,
        };
        let package = self.provider_selection(
            &request.provider,
            request.version,
            request.plugin_download_url,
            &request.package_ref,
        )?;
        if request.id.is_empty() {
            return Err(Status::invalid_argument("id: missing"));
        }
        let properties = self.decode_bag("properties", request.properties)?;
        self.check_assets(&properties, access).await?;
        let read = ResourceRead {
            type_token: parse_type_token("type", &request.r#type)?,
            name: request.name,
            id: ReferenceId::from(request.id.as_str()),
            parent: parse_optional("parent", &request.parent)?,
            properties: without_outputs(properties),
            dependencies: parse_urns("dependencies", &request.dependencies)?,
            package,
            additional_secret_outputs: request.additional_secret_outputs,
        };
        let reply = self.monitor.read(read).await.map_err(aborted)?;
        Ok(Response::new(ReadResourceResponse {
            urn: reply.urn.to_string(),
            properties: Some(accepted.encode(&reply.outputs)?),
            result: result_of(&reply).into(),
            unknown: reply.outcome == ResourceOutcome::Unknown,
            id: ResourceId::text(reply.id.as_ref()).to_owned(),
        }))
    }

    async fn invoke(
        &self,
        request: Request<ResourceInvokeRequest>,
    ) -> Result<Response<ResourceInvokeResponse>, Status> {
        let access = access_of(&request);
        let request = request.into_inner();
        let accepted = AcceptedValues {
            secrets: true,
            resources: request.accept_resources,
            bytes: request.accepts_byte_string,
            partial: true,
        };
        let arguments = self.decode_bag("args", request.args)?;
        self.check_assets(&arguments, access).await?;
        let call = FunctionCall {
            token: parse_type_token("tok", &request.tok)?,
            arguments: without_outputs(arguments),
            package: self.provider_selection(
                &request.provider,
                request.version,
                request.plugin_download_url,
                &request.package_ref,
            )?,
            parent: parse_optional("parent", &request.parent)?,
            depends_on: parse_urns("dependsOn", &request.depends_on)?,
        };
        Ok(Response::new(match self.monitor.invoke(call).await.map_err(aborted)? {
            Some(reply) => ResourceInvokeResponse {
                r#return: Some(accepted.encode(&reply.result)?),
                failures: failures(reply.failures),
                unknown: false,
            },
            None => ResourceInvokeResponse { unknown: true, ..ResourceInvokeResponse::default() },
        }))
    }

    async fn call(&self, request: Request<ResourceCallRequest>) -> Result<Response<CallResponse>, Status> {
        let access = access_of(&request);
        let request = request.into_inner();
        let accepted =
            AcceptedValues { secrets: true, resources: true, bytes: request.accepts_byte_string, partial: true };
        let arguments = self.decode_bag("args", request.args)?;
        self.check_assets(&arguments, access).await?;
        let dependencies = request.arg_dependencies.iter();
        let dependencies =
            dependencies.map(|(key, of_it)| Ok((key.clone(), parse_urns("argDependencies", &of_it.urns)?)));
        let mut dependencies: BTreeMap<String, Vec<Urn>> = dependencies.collect::<Result<_, Status>>()?;
        add_dependencies(&mut dependencies, &arguments);
        let call = MethodCall {
            token: parse_type_token("tok", &request.tok)?,
            arguments,
            argument_dependencies: dependencies,
            package: self.provider_selection(
                &request.provider,
                request.version,
                request.plugin_download_url,
                &request.package_ref,
            )?,
        };
        let reply = self.monitor.call(call).await.map_err(aborted)?;
        let dependencies = |(key, urns): (String, Vec<Urn>)| {
            (key, rpc::call_response::ReturnDependencies { urns: urns.iter().map(Urn::to_string).collect() })
        };
        Ok(Response::new(CallResponse {
            r#return: Some(accepted.encode(&reply.result)?),
            return_dependencies: reply.dependencies.into_iter().map(dependencies).collect(),
            failures: failures(reply.failures),
        }))
    }

    async fn exists_resource(
        &self,
        _: Request<ExistsResourceRequest>,
    ) -> Result<Response<ExistsResourceResponse>, Status> {
        Err(self.unsupported("existence checks of resources (ExistsResource)"))
    }

    async fn register_stack_transform(&self, _: Request<Callback>) -> Result<Response<()>, Status> {
        Err(self.unsupported("transforms"))
    }

    async fn register_stack_invoke_transform(&self, _: Request<Callback>) -> Result<Response<()>, Status> {
        Err(self.unsupported("transforms"))
    }

    async fn register_resource_hook(&self, _: Request<RegisterResourceHookRequest>) -> Result<Response<()>, Status> {
        Err(self.unsupported("resource hooks"))
    }

    async fn register_error_hook(&self, _: Request<rpc::RegisterErrorHookRequest>) -> Result<Response<()>, Status> {
        Err(self.unsupported("resource hooks"))
    }

    async fn register_package(
        &self,
        request: Request<RegisterPackageRequest>,
    ) -> Result<Response<RegisterPackageResponse>, Status> {
        let request = request.into_inner();
        if request.extension.is_some() {
            return Err(self.unsupported("extensions of packages"));
        }
        Ok(Response::new(RegisterPackageResponse { r#ref: self.packages.register(request)? }))
    }

    /// Returns at once: there are no callbacks to wait for.
    async fn signal_and_wait_for_shutdown(&self, _: Request<()>) -> Result<Response<()>, Status> {
        Ok(Response::new(()))
    }
}

impl Service {
    fn decode_registration(&self, request: RegisterResourceRequest) -> Result<ResourceRegistration, Status> {
        if !request.transforms.is_empty() {
            return Err(self.unsupported("transforms"));
        }
        if !request.state_migrations.is_empty() {
            return Err(self.unsupported("state migrations"));
        }
        if !request.env_var_mappings.is_empty() {
            return Err(self.unsupported("environment variable mappings (envVarMappings)"));
        }
        if request.hooks.as_ref().is_some_and(|hooks| *hooks != Default::default()) {
            return Err(self.unsupported("resource hooks"));
        }
        let type_token = parse_type_token("type", &request.r#type)?;
        let mut inputs = self.decode_bag("object", request.object)?;
        let dependencies = parse_urns("dependencies", &request.dependencies)?;
        let mut property_dependencies: BTreeMap<String, Vec<Urn>> = BTreeMap::new();
        if request.property_dependencies.is_empty() && !request.remote {
            property_dependencies.extend(inputs.keys().map(|key| (key.clone(), dependencies.clone())));
        }
        for (key, of_it) in &request.property_dependencies {
            property_dependencies.insert(key.clone(), parse_urns("propertyDependencies", &of_it.urns)?);
        }
        add_dependencies(&mut property_dependencies, &inputs);
        if !request.remote {
            inputs = without_outputs(inputs);
        }
        let timeouts = request.custom_timeouts.unwrap_or_default();
        let trigger = request.replacement_trigger.map(|value| decode_value(&value, &DecodeOptions::EVERYTHING));
        let whole_urns = request.alias_ur_ns.iter().map(|text| parse_field("aliasURNs", text).map(Alias::Urn));
        let options = ResourceOptions {
            aliases: request.aliases.into_iter().map(parse_alias).chain(whole_urns).collect::<Result<_, Status>>()?,
            protect: request.protect,
            additional_secret_outputs: request.additional_secret_outputs,
            custom_timeouts: Timeouts {
                create: parse_timeout("create", &timeouts.create)?,
                update: parse_timeout("update", &timeouts.update)?,
                delete: parse_timeout("delete", &timeouts.delete)?,
                read: parse_timeout("read", &timeouts.read)?,
            },
            deleted_with: parse_optional("deletedWith", &request.deleted_with)?,
            // Old SDKs send only `true`, and do not set `delete_before_replace_defined`.
            delete_before_replace: (request.delete_before_replace_defined || request.delete_before_replace)
                .then_some(request.delete_before_replace),
            ignore_changes: request.ignore_changes,
            replace_on_changes: request.replace_on_changes,
            retain_on_delete: request.retain_on_delete,
            replace_with: parse_urns("replace_with", &request.replace_with)?,
            replacement_trigger: trigger
                .transpose()
                .map_err(|error| Status::invalid_argument(format!("replacement_trigger: {error}")))?
                .flatten()
                .filter(|value| *value != PropertyValue::Null),
        };
        let providers = request.providers.iter();
        Ok(ResourceRegistration {
            type_token,
            name: request.name,
            parent: parse_optional("parent", &request.parent)?,
            custom: request.custom,
            remote: request.remote,
            inputs,
            dependencies,
            property_dependencies,
            package: self.provider_selection(
                &request.provider,
                request.version,
                request.plugin_download_url,
                &request.package_ref,
            )?,
            providers: providers
                .map(|(package, reference)| Ok((package.clone(), parse_field("providers", reference)?)))
                .collect::<Result<_, Status>>()?,
            import_id: ResourceId::new(request.import_id),
            hide_diff: request.hide_diffs,
            options,
        })
    }

    /// Returns the status for an unsupported feature and reports the feature to the user: an SDK may ignore the status
    /// and fail later.
    fn unsupported(&self, feature: &str) -> Status {
        self.monitor.report_unsupported(feature);
        Status::unimplemented(format!("sc does not support {feature} in component plugins"))
    }

    fn provider_selection(
        &self,
        provider: &str,
        version: String,
        download_url: String,
        reference: &str,
    ) -> Result<ProviderSelection, Status> {
        let provider = parse_optional("provider", provider)?;
        if !reference.is_empty() {
            return Ok(ProviderSelection { provider, ..self.packages.get(reference)? });
        }
        let (version, download_url) = (non_empty(version), non_empty(download_url));
        Ok(ProviderSelection { provider, version, download_url, subpackage: None })
    }

    async fn with_hashes(&self, bag: PropertyMap, access: Option<Arc<AssetAccess>>) -> Result<PropertyMap, Status> {
        assets::with_hashes(bag, &self.directory, access).await.map_err(Status::invalid_argument)
    }

    /// Checks the assets that a plugin in the sandbox `strict` sends to another one.
    async fn check_assets(&self, bag: &PropertyMap, access: Option<Arc<AssetAccess>>) -> Result<(), Status> {
        if access.is_some() {
            self.with_hashes(bag.clone(), access).await?;
        }
        Ok(())
    }

    /// Decodes a property map of a request. Outside a preview, unknown values are omitted.
    fn decode_bag(&self, field: &str, bag: Option<Bag>) -> Result<PropertyMap, Status> {
        let unknowns = if self.monitor.run().dry_run { Unknowns::Keep } else { Unknowns::Drop };
        let options = DecodeOptions { unknowns, ..DecodeOptions::EVERYTHING };
        let decoded = bag.map(|bag| decode(&bag, &options)).transpose();
        Ok(decoded.map_err(|error| Status::invalid_argument(format!("{field}: {error}")))?.unwrap_or_default())
    }
}
