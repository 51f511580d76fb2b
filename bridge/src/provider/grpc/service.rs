//! Implementation of the [`Provider`] trait by calls of `pulumirpc.ResourceProvider`: one method for each RPC.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use pulumi_proto::duration;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::rpc::{self, list_response};
use pulumi_proto::urn::TypeToken;

use super::bags::{Decoder, restore_contents, restore_secrets};
use super::client::GrpcProvider;
use super::errors::none_if_unimplemented;
use super::procedures::{
    Call, Cancel, Check, CheckConfig, Configure, Construct, Create, Delete, Diff, DiffConfig, GetMapping, GetMappings,
    GetSchema, Invoke, List, Parameterize, Read, Update,
};
use super::replies::{
    autonaming, diff_reply, failures, is_unimplemented_config, schema_text, with_secrets_marked,
    with_unimplemented_read,
};
use super::{construct, variables, views};
use crate::provider::{
    CallReply, CallRequest, Capabilities, CheckConfigRequest, CheckReply, CheckRequest, ConfigureRequest,
    ConstructReply, ConstructRequest, CreateReply, CreateRequest, DeleteRequest, DiffConfigRequest, DiffReply,
    DiffRequest, InvokeReply, InvokeRequest, ListReply, ListRequest, ListedResource, Method, ParameterizeReply,
    ParameterizeRequest, Provider, ProviderError, ReadReply, ReadRequest, SchemaRequest, UpdateReply, UpdateRequest,
};

/// Time between SIGINT and SIGKILL after an abort. A process that does not respond, such as a stopped one, needs all of
/// it; a run closes its providers twice at most, and its abort takes less than two seconds.
const ABORT_GRACE: Duration = Duration::from_millis(500);

#[async_trait]
impl Provider for GrpcProvider {
    fn capabilities(&self) -> Capabilities {
        self.known_capabilities()
    }

    fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    async fn parameterize(&self, request: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError> {
        use rpc::parameterize_request::{Parameters, ParametersArgs, ParametersValue};
        let parameters = match request {
            ParameterizeRequest::Arguments(args) => Parameters::Args(ParametersArgs { args }),
            ParameterizeRequest::Value { name, version, value } => {
                Parameters::Value(ParametersValue { name, version: version.unwrap_or_default(), value })
            }
        };
        let request = rpc::ParameterizeRequest { parameters: Some(parameters) };
        let reply = self.call::<Parameterize>(&request).await?;
        let version = Some(reply.version).filter(|version| !version.is_empty());
        Ok(ParameterizeReply { name: reply.name, version })
    }

    async fn schema(&self, request: SchemaRequest) -> Result<Option<String>, ProviderError> {
        let request = rpc::GetSchemaRequest {
            // The Node and Python servers reject other versions.
            version: 0,
            subpackage_name: request.subpackage_name.unwrap_or_default(),
            subpackage_version: request.subpackage_version.unwrap_or_default(),
        };
        schema_text(self.call::<GetSchema>(&request).await)
    }

    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        const METHOD: Method = Method::CheckConfig;
        let encoder = self.encoder(METHOD);
        let message = rpc::CheckRequest {
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            olds: encoder.encode_config(&request.olds)?,
            news: encoder.encode_config(&request.news)?,
            ..Default::default()
        };
        let reply = self.call_within::<CheckConfig>(self.limits.check_config, &message).await;
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) if is_unimplemented_config(&request.urn, &error) => {
                return Ok(CheckReply { inputs: (*request.news).clone(), failures: Vec::new() });
            }
            Err(error) => return Err(error),
        };
        let mut inputs = Decoder::new(METHOD, true).decode_bag(reply.inputs)?;
        // CheckConfig sends secrets in plain text, independent of the capabilities.
        restore_secrets(Capabilities::default(), &request.news, &mut inputs);
        Ok(CheckReply { inputs, failures: failures(reply.failures) })
    }

    async fn diff_config(&self, request: DiffConfigRequest) -> Result<DiffReply, ProviderError> {
        const METHOD: Method = Method::DiffConfig;
        let encoder = self.encoder(METHOD);
        let message = rpc::DiffRequest {
            id: String::new(),
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            olds: encoder.encode_config(&request.olds)?,
            news: encoder.encode_config(&request.news)?,
            old_inputs: encoder.encode_config(&request.old_inputs)?,
            ignore_changes: request.ignore_changes,
        };
        let reply = self.call_within::<DiffConfig>(self.limits.check_config, &message).await;
        match reply {
            Ok(reply) => diff_reply(METHOD, reply),
            Err(error) if is_unimplemented_config(&request.urn, &error) => Ok(DiffReply::default()),
            Err(error) => Err(error),
        }
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        const METHOD: Method = Method::Configure;
        let package = TypeToken::new(request.urn.type_token());
        let package = package.provider_package().unwrap_or_default();
        let message = rpc::ConfigureRequest {
            args: self.encoder(METHOD).encode_configure_args(&request.inputs)?,
            variables: variables::variables(package, &request.inputs),
            accept_secrets: true,
            accept_resources: true,
            sends_old_inputs: true,
            sends_old_inputs_to_delete: true,
            id: Some(request.id.as_str().to_owned()),
            urn: Some(request.urn.to_string()),
            name: Some(request.urn.name().to_owned()),
            r#type: Some(request.urn.type_token().to_owned()),
        };
        if self.configured.swap(true, Ordering::AcqRel) {
            let message = format!("an instance of plugin {} can be configured only once", self.name);
            return Err(ProviderError::Failed {
                method: METHOD,
                message,
                indeterminate: false,
                source: None,
                details: None,
            });
        }
        let reply = self.call_within::<Configure>(self.limits.configure, &message).await;
        if let Err(error) = &reply
            && error.details().retry_after.is_some()
        {
            self.configured.store(false, Ordering::Release);
        }
        let reply = reply?;
        // Capabilities from the handshake take precedence.
        self.capabilities.get_or_init(|| Capabilities {
            accept_secrets: reply.accept_secrets,
            accept_resources: reply.accept_resources,
            accept_outputs: reply.accept_outputs,
            accept_byte_strings: false,
            supports_preview: reply.supports_preview,
            supports_autonaming: reply.supports_autonaming_configuration,
        });
        self.initialize().await
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckReply, ProviderError> {
        const METHOD: Method = Method::Check;
        let encoder = self.encoder(METHOD);
        let capabilities = encoder.capabilities;
        let message = rpc::CheckRequest {
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            olds: encoder.encode_check(&request.olds, request.preview)?,
            news: encoder.encode_check(&request.news, request.preview)?,
            random_seed: request.random_seed.to_vec(),
            autonaming: request.autonaming.filter(|_| capabilities.supports_autonaming).map(autonaming),
            old_outputs: None,
        };
        let reply = self.call::<Check>(&message).await?;
        let mut inputs = Decoder::new(METHOD, request.preview).decode_bag(reply.inputs)?;
        restore_secrets(capabilities, &request.news, &mut inputs);
        Ok(CheckReply { inputs, failures: failures(reply.failures) })
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffReply, ProviderError> {
        const METHOD: Method = Method::Diff;
        let encoder = self.encoder(METHOD);
        let message = rpc::DiffRequest {
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            id: ResourceId::text(request.id.as_ref()).to_owned(),
            olds: encoder.encode_recorded(&request.olds, request.allow_unknowns)?,
            old_inputs: encoder.encode_recorded(&request.old_inputs, request.allow_unknowns)?,
            news: encoder.encode_diff_news(&request.news, request.allow_unknowns)?,
            ignore_changes: request.ignore_changes,
        };
        let reply = self.call::<Diff>(&message).await?;
        diff_reply(METHOD, reply)
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateReply, ProviderError> {
        const METHOD: Method = Method::Create;
        let encoder = self.encoder(METHOD);
        let sent = [&*request.inputs; 2];
        let (_token, resource_status_address, resource_status_token) =
            self.resource_status_token(&request.views, request.preview, sent);
        let message = rpc::CreateRequest {
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            properties: encoder.encode_news(&request.inputs, request.preview)?,
            timeout: duration::to_seconds(request.timeout),
            preview: request.preview,
            resource_status_address,
            resource_status_token,
        };
        let decoder = Decoder::new(METHOD, request.preview);
        let reply = self.call_with_partial_failure::<Create>(&decoder, &message).await;
        let reply = reply
            .map_err(|error| with_secrets_marked(error, encoder.capabilities, &request.inputs, &request.inputs))?;
        let id = ResourceId::new(reply.id);
        if id.is_none() && !request.preview {
            return Err(ProviderError::created_without_id());
        }
        let outputs = decoder.decode_bag(reply.properties);
        let mut outputs = outputs.map_err(|error| error.with_id(id.clone()))?;
        restore_secrets(encoder.capabilities, &request.inputs, &mut outputs);
        Ok(CreateReply { id, outputs, refresh_before_update: reply.refresh_before_update })
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadReply, ProviderError> {
        const METHOD: Method = Method::Read;
        let encoder = self.encoder(METHOD);
        let known_outputs = request.outputs.unwrap_or_default();
        let known_inputs = request.inputs.as_deref();
        let (_token, resource_status_address, resource_status_token) =
            self.resource_status_token(&request.views, false, [&known_outputs, known_inputs.unwrap_or(&known_outputs)]);
        let message = rpc::ReadRequest {
            id: ResourceId::text(request.id.as_ref()).to_owned(),
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            // An import sends an empty property map: Node fails on a missing one.
            properties: encoder.encode_recorded(&known_outputs, false)?,
            inputs: known_inputs.map(|inputs| encoder.encode_recorded(inputs, false)).transpose()?.flatten(),
            timeout: duration::to_seconds(request.timeout),
            resource_status_address,
            resource_status_token,
            old_views: views::encode_recorded_views(&encoder, &request.views.recorded)?,
        };
        let decoder = Decoder::new(METHOD, false);
        let reply = self.call_with_partial_failure::<Read>(&decoder, &message).await.map_err(with_unimplemented_read);
        let known_inputs = request.inputs.clone().unwrap_or_default();
        let reply =
            reply.map_err(|error| with_secrets_marked(error, encoder.capabilities, &known_inputs, &known_outputs))?;
        let mut outputs = decoder.decode_optional_bag(reply.properties)?;
        let mut inputs = decoder.decode_optional_bag(reply.inputs)?;
        if let Some(outputs) = &mut outputs {
            restore_secrets(encoder.capabilities, &known_outputs, outputs);
            restore_contents(&known_inputs, outputs);
        }
        if let Some(inputs) = &mut inputs {
            restore_secrets(encoder.capabilities, &known_inputs, inputs);
            restore_contents(&known_inputs, inputs);
        }
        let id = ResourceId::new(reply.id);
        Ok(ReadReply { id, outputs, inputs, refresh_before_update: reply.refresh_before_update })
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateReply, ProviderError> {
        const METHOD: Method = Method::Update;
        let encoder = self.encoder(METHOD);
        let (_token, resource_status_address, resource_status_token) =
            self.resource_status_token(&request.views, request.preview, [&request.old_inputs, &request.news]);
        let message = rpc::UpdateRequest {
            id: ResourceId::text(request.id.as_ref()).to_owned(),
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            olds: encoder.encode_recorded(&request.olds, false)?,
            old_inputs: encoder.encode_recorded(&request.old_inputs, false)?,
            news: encoder.encode_news(&request.news, request.preview)?,
            timeout: duration::to_seconds(request.timeout),
            ignore_changes: request.ignore_changes,
            preview: request.preview,
            resource_status_address,
            resource_status_token,
            old_views: views::encode_recorded_views(&encoder, &request.views.recorded)?,
        };
        let decoder = Decoder::new(METHOD, request.preview);
        let reply = self.call_with_partial_failure::<Update>(&decoder, &message).await;
        let reply =
            reply.map_err(|error| with_secrets_marked(error, encoder.capabilities, &request.news, &request.news))?;
        let mut outputs = decoder.decode_bag(reply.properties)?;
        restore_secrets(encoder.capabilities, &request.news, &mut outputs);
        Ok(UpdateReply { outputs, refresh_before_update: reply.refresh_before_update })
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        const METHOD: Method = Method::Delete;
        let encoder = self.encoder(METHOD);
        let (_token, resource_status_address, resource_status_token) =
            self.resource_status_token(&request.views, false, [&request.old_inputs, &request.outputs]);
        let message = rpc::DeleteRequest {
            id: ResourceId::text(request.id.as_ref()).to_owned(),
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            properties: encoder.encode_recorded(&request.outputs, false)?,
            old_inputs: encoder.encode_recorded(&request.old_inputs, false)?,
            timeout: duration::to_seconds(request.timeout),
            resource_status_address,
            resource_status_token,
            old_views: views::encode_recorded_views(&encoder, &request.views.recorded)?,
        };
        self.call::<Delete>(&message).await
    }

    async fn list(&self, request: ListRequest) -> Result<ListReply, ProviderError> {
        const METHOD: Method = Method::List;
        let message = rpc::ListRequest {
            token: request.token,
            query: self.encoder(METHOD).encode_arguments(&request.query)?,
            limit: request.limit.map_or(0, |limit| limit.get().into()),
            page_size: request.page_size.map_or(0, |size| size.get().into()),
            continuation_token: request.continuation_token.unwrap_or_default(),
        };
        // `await_call` covers the whole page, so that an exit of the process is detected until the last message.
        let page = async {
            let mut replies = self.connection.call_streaming::<List>(&message).await?;
            let mut results = Vec::new();
            while let Some(reply) = replies.next().await? {
                match reply.response {
                    Some(list_response::Response::Result(result)) => {
                        results.push(ListedResource { id: result.id, name: result.name });
                    }
                    Some(list_response::Response::Computed(_)) => return Ok(ListReply::Computed),
                    Some(list_response::Response::Continuation(continuation)) => {
                        let token = Some(continuation.continuation_token).filter(|token| !token.is_empty());
                        return Ok(ListReply::Page { results, continuation_token: token });
                    }
                    None => {}
                }
            }
            Ok(ListReply::Page { results, continuation_token: None })
        };
        self.await_call(METHOD, None, page).await
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeReply, ProviderError> {
        const METHOD: Method = Method::Invoke;
        let encoder = self.encoder(METHOD);
        let message = rpc::InvokeRequest {
            tok: request.token,
            args: encoder.encode_arguments(&request.arguments)?,
            preview: request.preview,
        };
        let reply = self.call::<Invoke>(&message).await?;
        if !reply.failures.is_empty() {
            return Ok(InvokeReply { result: Default::default(), failures: failures(reply.failures) });
        }
        let mut result = Decoder::new(METHOD, false).decode_bag(reply.r#return)?;
        if !encoder.capabilities.accept_secrets && request.arguments.values().any(PropertyValue::contains_secrets) {
            result = result.into_iter().map(|(key, value)| (key, PropertyValue::secret(value))).collect();
        }
        Ok(InvokeReply { result, failures: Vec::new() })
    }

    async fn call(&self, request: CallRequest) -> Result<CallReply, ProviderError> {
        let dry_run = request.run.dry_run;
        let message = construct::call_message(&self.encoder(Method::Call), request)?;
        let reply = self.call::<Call>(&message).await?;
        construct::call_reply(&Decoder::for_component(Method::Call, dry_run), reply)
    }

    async fn construct(&self, request: ConstructRequest) -> Result<ConstructReply, ProviderError> {
        let dry_run = request.run.dry_run;
        let message = construct::construct_message(&self.encoder(Method::Construct), request)?;
        let reply = self.call::<Construct>(&message).await?;
        construct::construct_reply(&Decoder::for_component(Method::Construct, dry_run), reply)
    }

    async fn mappings(&self, key: &str) -> Result<Option<Vec<String>>, ProviderError> {
        let request = rpc::GetMappingsRequest { key: key.to_owned() };
        let reply = self.call::<GetMappings>(&request).await;
        Ok(none_if_unimplemented(reply)?.map(|reply| reply.providers))
    }

    async fn mapping(&self, key: &str, provider: &str) -> Result<Option<(String, Vec<u8>)>, ProviderError> {
        let request = rpc::GetMappingRequest { key: key.to_owned(), provider: provider.to_owned() };
        let reply = self.call::<GetMapping>(&request).await;
        let mapping = none_if_unimplemented(reply)?.map(|reply| (reply.provider, reply.data));
        Ok(mapping.filter(|(_, data)| !data.is_empty()))
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        let reply = self.call_within::<Cancel>(self.limits.cancel, &());
        none_if_unimplemented(reply.await).map(drop)
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if self.is_left_running || self.process.as_ref().is_some_and(|process| process.exit_status().is_some()) {
            return;
        }
        let shut_down = async {
            self.cleanup().await;
            // The process is stopped below even if Cancel fails.
            self.cancel().await.ok();
            if let Some(process) = &self.process {
                self.ending.end(process, self.limits.exit).await;
            }
        };
        let abort = self.abort.lock().unwrap_or_else(PoisonError::into_inner).clone();
        tokio::select! {
            () = shut_down => {}
            () = abort.cancelled() => {
                if let Some(process) = &self.process {
                    self.ending.abort(process, self.limits.exit.min(ABORT_GRACE)).await;
                }
            }
        }
    }
}
