//! The provider over gRPC: own types in, generated types out, and back (provider protocol, sections 3 to 6).
//!
//! Enters: a connection to a plugin, with or without its process. Leaves: a [`Provider`]. Never here: how the plugin was
//! started, which call comes next.

mod bags;
mod connect;
mod construct;
mod errors;
mod initialize;
mod limits;
mod procedures;
mod replies;
mod variables;
mod views;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc::{self, list_response};
use pulumi_proto::urn::TypeToken;
use tonic::Status;

use self::bags::{Decoder, Encoder, restore_contents, restore_secrets};
use self::errors::{too_slow, unless_unimplemented};
use self::procedures::{
    Call, Cancel, Check, CheckConfig, Configure, Construct, Create, Delete, Diff, DiffConfig, GetMapping, GetMappings,
    GetSchema, Invoke, List, Parameterize, Read, Update,
};
use self::replies::{autonaming, diff_reply, failures, is_unimplemented_config, restored, schema_text};
use self::views::{Caller, Ticket};
use super::{
    CallReply, CallRequest, Capabilities, CheckConfigRequest, CheckReply, CheckRequest, ConfigureRequest,
    ConstructReply, ConstructRequest, CreateReply, CreateRequest, DeleteRequest, DiffConfigRequest, DiffReply,
    DiffRequest, InvokeReply, InvokeRequest, ListReply, ListRequest, Listed, ParameterizeReply, ParameterizeRequest,
    Provider, ProviderError, ReadReply, ReadRequest, SchemaRequest, UpdateReply, UpdateRequest, Views,
};
use crate::launch::{Connection, LastWords, Procedure};
use crate::process::{OutputStream, Process, describe_exit};

pub use connect::{Announcement, connect};
pub use initialize::{AuthEntry, PluginInit};
pub use limits::Limits;
pub use views::ViewDesk;

/// How long the answer to a call is waited for once the process has ended: it may be in the socket already.
const AFTERLIFE: Duration = Duration::from_secs(1);

/// A provider at the other end of a connection.
///
/// Dropping it kills the plugin's process, if it holds the last reference to it.
pub struct GrpcProvider {
    name: String,
    version: String,
    connection: Connection,
    limits: Limits,
    /// What the handshake or Configure said; empty before.
    capabilities: OnceLock<Capabilities>,
    configured: AtomicBool,
    init: Option<PluginInit>,
    initialized: AtomicBool,
    closed: AtomicBool,
    /// Where views are published: the address of the service, and the desk behind it.
    views: Option<(String, Arc<ViewDesk>)>,
    process: Option<Arc<Process>>,
    /// What has to live as long as the plugin.
    _keep: Option<Box<dyn Any + Send + Sync>>,
}

impl GrpcProvider {
    /// A provider whose handshake is over: `handshake` is what it said, `None` if it has none and says the same in its
    /// answer to Configure. `version` is what GetPluginInfo answered. With its `process`, every call in flight fails
    /// with [`ProviderError::Died`] when that ends.
    pub fn new(
        connection: Connection,
        name: impl Into<String>,
        handshake: Option<Capabilities>,
        version: impl Into<String>,
        process: Option<Arc<Process>>,
    ) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            connection,
            limits: Limits::default(),
            capabilities: handshake.map_or_else(OnceLock::new, OnceLock::from),
            configured: AtomicBool::new(false),
            init: None,
            initialized: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            views: None,
            process,
            _keep: None,
        }
    }

    /// The same provider, with other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The same provider, which is handed this right after Configure, if it serves `simplecontainer.plugin.v1`.
    #[must_use]
    pub fn with_init(self, init: PluginInit) -> Self {
        Self { init: Some(init), ..self }
    }

    /// The same provider, which keeps something alive as long as itself: the service that it calls, its files.
    #[must_use]
    pub fn keeping(self, keep: impl Any + Send + Sync) -> Self {
        Self { _keep: Some(Box::new(keep)), ..self }
    }

    /// Name of the plugin.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the plugin ended, and its last words, if it ended without having been closed.
    pub async fn premature_end(&self) -> Option<String> {
        let process = self.process.as_ref()?;
        if process.exit().is_none() || self.closed.load(Ordering::Acquire) {
            return None;
        }
        let (status, last_words) = self.last_words(process).await;
        Some(format!("it ended by itself ({status}){last_words}"))
    }

    fn encoder(&self, method: &'static str) -> Encoder {
        Encoder { method, capabilities: self.capabilities() }
    }

    /// The right to publish views during a call, and the address and token that say so in its request: empty for none.
    /// `sent` are the bags that the plugin gets to see.
    fn ticket(&self, views: &Views, preview: bool, sent: [&PropertyMap; 2]) -> (Option<Ticket>, String, String) {
        let Some(((address, desk), listener)) = self.views.as_ref().zip(views.listener.as_ref()) else {
            return Default::default();
        };
        let plain = !self.capabilities().accept_secrets;
        let secret = plain && sent.iter().any(|bag| bag.values().any(PropertyValue::contains_secrets));
        let ticket = desk.ticket(Caller { listener: Arc::clone(listener), preview, secret });
        let token = ticket.token().to_owned();
        (Some(ticket), address.clone(), token)
    }

    /// Makes a call that fails as a whole or not at all.
    async fn call<P: Procedure>(&self, request: &P::Request) -> Result<P::Reply, ProviderError> {
        self.attempt(P::NAME, None, self.connection.call::<P>(request)).await
    }

    /// Makes a call that may leave a resource behind although it fails; the decoder is for what is said of it.
    async fn call_with_parts<P: Procedure>(
        &self,
        decoder: &Decoder,
        request: &P::Request,
    ) -> Result<P::Reply, ProviderError> {
        self.attempt(P::NAME, Some(decoder), self.connection.call::<P>(request)).await
    }

    /// Makes a call that ought to be quick.
    async fn call_within<P: Procedure>(
        &self,
        limit: Duration,
        request: &P::Request,
    ) -> Result<P::Reply, ProviderError> {
        let answer = tokio::time::timeout(limit, self.call::<P>(request)).await;
        answer.unwrap_or_else(|_| Err(too_slow(P::NAME, limit)))
    }

    /// Awaits a call and watches the process meanwhile: a code alone does not tell a dead plugin from a failed call.
    async fn attempt<T>(
        &self,
        method: &'static str,
        partial: Option<&Decoder>,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, ProviderError> {
        let Some(process) = &self.process else {
            return call.await.map_err(|status| errors::from_status(method, &status, partial));
        };
        // What listens on the port of a dead plugin is a stranger.
        if process.exit().is_some() {
            return Err(self.died(method, process, false).await);
        }
        tokio::pin!(call);
        let answer = tokio::select! {
            biased;
            answer = &mut call => answer,
            _ = process.exited() => match tokio::time::timeout(AFTERLIFE, call).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(_)) | Err(_) => return Err(self.died(method, process, true).await),
            },
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(status) if errors::is_lost_connection(&status) => {
                // The connection of a dying process ends before the process does.
                match tokio::time::timeout(AFTERLIFE, process.exited()).await {
                    Ok(_) => Err(self.died(method, process, true).await),
                    Err(_) => Err(errors::lost_connection(method, &status)),
                }
            }
            Err(status) => Err(errors::from_status(method, &status, partial)),
        }
    }

    /// `reached`: the call may have reached the plugin before it ended.
    async fn died(&self, method: &'static str, process: &Process, reached: bool) -> ProviderError {
        let (status, last_words) = self.last_words(process).await;
        ProviderError::Died { plugin: self.name.clone(), method, reached, status, stderr: last_words.0 }
    }

    async fn last_words(&self, process: &Process) -> (String, LastWords) {
        let status = describe_exit(process.exited().await);
        process.drained().await;
        let mut last_words = process.last_lines(OutputStream::Stderr);
        if last_words.is_empty() {
            last_words = process.last_lines(OutputStream::Stdout);
            // Its port was no word of farewell.
            if last_words.first().is_some_and(|line| line.trim().parse::<u16>().is_ok()) {
                last_words.remove(0);
            }
        }
        (status, LastWords(last_words))
    }
}

#[async_trait]
impl Provider for GrpcProvider {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.get().copied().unwrap_or_default()
    }

    fn version(&self) -> &str {
        &self.version
    }

    async fn parameterize(&self, request: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError> {
        use rpc::parameterize_request::{Parameters, ParametersArgs, ParametersValue};
        let parameters = match request {
            ParameterizeRequest::Arguments(args) => Parameters::Args(ParametersArgs { args }),
            ParameterizeRequest::Value { name, version, value } => {
                Parameters::Value(ParametersValue { name, version, value })
            }
        };
        let request = rpc::ParameterizeRequest { parameters: Some(parameters) };
        let reply = self.call::<Parameterize>(&request).await?;
        Ok(ParameterizeReply { name: reply.name, version: reply.version })
    }

    async fn schema(&self, request: SchemaRequest) -> Result<Option<String>, ProviderError> {
        let request = rpc::GetSchemaRequest {
            // Node's and Python's servers refuse every other one.
            version: 0,
            subpackage_name: request.subpackage_name,
            subpackage_version: request.subpackage_version,
        };
        schema_text(self.call::<GetSchema>(&request).await)
    }

    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        const METHOD: &str = "CheckConfig";
        let encoder = self.encoder(METHOD);
        let message = rpc::CheckRequest {
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            olds: encoder.config(&request.olds)?,
            news: encoder.config(&request.news)?,
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
        let mut inputs = Decoder::new(METHOD, true).bag(reply.inputs)?;
        // They travelled plain, whatever the provider takes otherwise.
        restore_secrets(Capabilities::default(), &request.news, &mut inputs);
        Ok(CheckReply { inputs, failures: failures(reply.failures) })
    }

    async fn diff_config(&self, request: DiffConfigRequest) -> Result<DiffReply, ProviderError> {
        const METHOD: &str = "DiffConfig";
        let encoder = self.encoder(METHOD);
        let message = rpc::DiffRequest {
            id: String::new(),
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            olds: encoder.config(&request.olds)?,
            news: encoder.config(&request.news)?,
            old_inputs: encoder.config(&request.old_inputs)?,
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
        const METHOD: &str = "Configure";
        let package = TypeToken::new(request.urn.type_token());
        let package = package.provider_package().unwrap_or_default();
        let message = rpc::ConfigureRequest {
            args: self.encoder(METHOD).configuration(&request.inputs)?,
            variables: variables::variables(package, &request.inputs),
            accept_secrets: true,
            accept_resources: true,
            sends_old_inputs: true,
            sends_old_inputs_to_delete: true,
            id: Some(request.id),
            urn: Some(request.urn.to_string()),
            name: Some(request.urn.name().to_owned()),
            r#type: Some(request.urn.type_token().to_owned()),
        };
        if self.configured.swap(true, Ordering::AcqRel) {
            let message = format!("an instance of plugin {} has one configuration and got it already", self.name);
            return Err(ProviderError::Failed { method: METHOD, message, indeterminate: false });
        }
        let reply = self.call_within::<Configure>(self.limits.configure, &message).await?;
        // What the handshake said counts more.
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
        const METHOD: &str = "Check";
        let encoder = self.encoder(METHOD);
        let capabilities = encoder.capabilities;
        let message = rpc::CheckRequest {
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            olds: encoder.checked(&request.olds, request.preview)?,
            news: encoder.checked(&request.news, request.preview)?,
            random_seed: request.random_seed.to_vec(),
            autonaming: request.autonaming.filter(|_| capabilities.supports_autonaming).map(autonaming),
            old_outputs: None,
        };
        let reply = self.call::<Check>(&message).await?;
        let mut inputs = Decoder::new(METHOD, request.preview).bag(reply.inputs)?;
        restore_secrets(capabilities, &request.news, &mut inputs);
        Ok(CheckReply { inputs, failures: failures(reply.failures) })
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffReply, ProviderError> {
        const METHOD: &str = "Diff";
        let encoder = self.encoder(METHOD);
        let message = rpc::DiffRequest {
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            id: request.id,
            olds: encoder.recorded(&request.olds, request.allow_unknowns)?,
            old_inputs: encoder.recorded(&request.old_inputs, request.allow_unknowns)?,
            news: encoder.wanted_elided(&request.news, request.allow_unknowns)?,
            ignore_changes: request.ignore_changes,
        };
        let reply = self.call::<Diff>(&message).await?;
        diff_reply(METHOD, reply)
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateReply, ProviderError> {
        const METHOD: &str = "Create";
        let encoder = self.encoder(METHOD);
        let sent = [&*request.inputs; 2];
        let (_ticket, resource_status_address, resource_status_token) =
            self.ticket(&request.views, request.preview, sent);
        let message = rpc::CreateRequest {
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            properties: encoder.wanted(&request.inputs, request.preview)?,
            timeout: request.timeout,
            preview: request.preview,
            resource_status_address,
            resource_status_token,
        };
        let decoder = Decoder::new(METHOD, request.preview);
        let reply = self.call_with_parts::<Create>(&decoder, &message).await;
        let reply = reply.map_err(|error| restored(error, encoder.capabilities, &request.inputs, &request.inputs))?;
        if reply.id.is_empty() && !request.preview {
            let reason = "a created resource has no id".to_owned();
            return Err(ProviderError::Protocol { method: METHOD, reason });
        }
        let mut outputs = decoder.bag(reply.properties)?;
        restore_secrets(encoder.capabilities, &request.inputs, &mut outputs);
        Ok(CreateReply { id: reply.id, outputs, refresh_before_update: reply.refresh_before_update })
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadReply, ProviderError> {
        const METHOD: &str = "Read";
        let encoder = self.encoder(METHOD);
        let known_outputs = request.outputs.unwrap_or_default();
        let known_inputs = request.inputs.as_deref();
        let (_ticket, resource_status_address, resource_status_token) =
            self.ticket(&request.views, false, [&known_outputs, known_inputs.unwrap_or(&known_outputs)]);
        let message = rpc::ReadRequest {
            id: request.id,
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            // An import sends an empty bag, never none: Node fails on that.
            properties: encoder.recorded(&known_outputs, false)?,
            inputs: known_inputs.map(|inputs| encoder.recorded(inputs, false)).transpose()?.flatten(),
            timeout: request.timeout,
            resource_status_address,
            resource_status_token,
            old_views: views::known(&encoder, &request.views.known)?,
        };
        let decoder = Decoder::new(METHOD, false);
        let reply = self.call_with_parts::<Read>(&decoder, &message).await;
        let known_inputs = request.inputs.clone().unwrap_or_default();
        let reply = reply.map_err(|error| restored(error, encoder.capabilities, &known_inputs, &known_outputs))?;
        let mut outputs = decoder.optional(reply.properties)?;
        let mut inputs = decoder.optional(reply.inputs)?;
        if let Some(outputs) = &mut outputs {
            restore_secrets(encoder.capabilities, &known_outputs, outputs);
            restore_contents(&known_inputs, outputs);
        }
        if let Some(inputs) = &mut inputs {
            restore_secrets(encoder.capabilities, &known_inputs, inputs);
            restore_contents(&known_inputs, inputs);
        }
        Ok(ReadReply { id: reply.id, outputs, inputs, refresh_before_update: reply.refresh_before_update })
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateReply, ProviderError> {
        const METHOD: &str = "Update";
        let encoder = self.encoder(METHOD);
        let (_ticket, resource_status_address, resource_status_token) =
            self.ticket(&request.views, request.preview, [&request.old_inputs, &request.news]);
        let message = rpc::UpdateRequest {
            id: request.id,
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            olds: encoder.recorded(&request.olds, false)?,
            old_inputs: encoder.recorded(&request.old_inputs, false)?,
            news: encoder.wanted(&request.news, request.preview)?,
            timeout: request.timeout,
            ignore_changes: request.ignore_changes,
            preview: request.preview,
            resource_status_address,
            resource_status_token,
            old_views: views::known(&encoder, &request.views.known)?,
        };
        let decoder = Decoder::new(METHOD, request.preview);
        let reply = self.call_with_parts::<Update>(&decoder, &message).await;
        let reply = reply.map_err(|error| restored(error, encoder.capabilities, &request.news, &request.news))?;
        let mut outputs = decoder.bag(reply.properties)?;
        restore_secrets(encoder.capabilities, &request.news, &mut outputs);
        Ok(UpdateReply { outputs, refresh_before_update: reply.refresh_before_update })
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        const METHOD: &str = "Delete";
        let encoder = self.encoder(METHOD);
        let (_ticket, resource_status_address, resource_status_token) =
            self.ticket(&request.views, false, [&request.old_inputs, &request.outputs]);
        let message = rpc::DeleteRequest {
            id: request.id,
            urn: request.urn.to_string(),
            name: request.urn.name().to_owned(),
            r#type: request.urn.type_token().to_owned(),
            properties: encoder.recorded(&request.outputs, false)?,
            old_inputs: encoder.recorded(&request.old_inputs, false)?,
            timeout: request.timeout,
            resource_status_address,
            resource_status_token,
            old_views: views::known(&encoder, &request.views.known)?,
        };
        self.call::<Delete>(&message).await
    }

    async fn list(&self, request: ListRequest) -> Result<ListReply, ProviderError> {
        const METHOD: &str = "List";
        let message = rpc::ListRequest {
            token: request.token,
            query: self.encoder(METHOD).arguments(&request.query)?,
            limit: request.limit,
            page_size: request.page_size,
            continuation_token: request.continuation_token,
        };
        // The whole page is one attempt: the process is watched until its last message.
        let page = async {
            let mut answers = self.connection.call_streaming::<List>(&message).await?;
            let mut results = Vec::new();
            while let Some(answer) = answers.next().await? {
                match answer.response {
                    Some(list_response::Response::Result(result)) => {
                        results.push(Listed { id: result.id, name: result.name });
                    }
                    Some(list_response::Response::Computed(_)) => return Ok(ListReply::Computed),
                    Some(list_response::Response::Continuation(continuation)) => {
                        let continuation_token = continuation.continuation_token;
                        return Ok(ListReply::Page { results, continuation_token });
                    }
                    None => {}
                }
            }
            Ok(ListReply::Page { results, continuation_token: String::new() })
        };
        self.attempt(METHOD, None, page).await
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeReply, ProviderError> {
        const METHOD: &str = "Invoke";
        let encoder = self.encoder(METHOD);
        let message = rpc::InvokeRequest {
            tok: request.token,
            args: encoder.arguments(&request.arguments)?,
            preview: request.preview,
        };
        let reply = self.call::<Invoke>(&message).await?;
        if !reply.failures.is_empty() {
            return Ok(InvokeReply { result: Default::default(), failures: failures(reply.failures) });
        }
        let mut result = Decoder::new(METHOD, false).bag(reply.r#return)?;
        if !encoder.capabilities.accept_secrets && request.arguments.values().any(PropertyValue::contains_secrets) {
            result = result.into_iter().map(|(key, value)| (key, PropertyValue::secret(value))).collect();
        }
        Ok(InvokeReply { result, failures: Vec::new() })
    }

    async fn call(&self, request: CallRequest) -> Result<CallReply, ProviderError> {
        let dry_run = request.run.dry_run;
        let message = construct::call_message(&self.encoder("Call"), request)?;
        let reply = self.call::<Call>(&message).await?;
        construct::call_reply(&Decoder::of_component("Call", dry_run), reply)
    }

    async fn construct(&self, request: ConstructRequest) -> Result<ConstructReply, ProviderError> {
        let dry_run = request.run.dry_run;
        let message = construct::construct_message(&self.encoder("Construct"), request)?;
        let reply = self.call::<Construct>(&message).await?;
        construct::construct_reply(&Decoder::of_component("Construct", dry_run), reply)
    }

    async fn mappings(&self, key: &str) -> Result<Option<Vec<String>>, ProviderError> {
        let request = rpc::GetMappingsRequest { key: key.to_owned() };
        let reply = self.call::<GetMappings>(&request).await;
        Ok(unless_unimplemented(reply)?.map(|reply| reply.providers))
    }

    async fn mapping(&self, key: &str, provider: &str) -> Result<Option<(String, Vec<u8>)>, ProviderError> {
        let request = rpc::GetMappingRequest { key: key.to_owned(), provider: provider.to_owned() };
        let reply = self.call::<GetMapping>(&request).await;
        let mapping = unless_unimplemented(reply)?.map(|reply| (reply.provider, reply.data));
        Ok(mapping.filter(|(_, data)| !data.is_empty()))
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        let reply = self.call_within::<Cancel>(self.limits.cancel, &());
        unless_unimplemented(reply.await).map(drop)
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if self.process.as_ref().is_some_and(|process| process.exit().is_some()) {
            return;
        }
        self.cleanup().await;
        // It is ended in any case.
        self.cancel().await.ok();
        if let Some(process) = &self.process {
            process.stop(self.limits.exit).await;
        }
    }
}

impl fmt::Debug for GrpcProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcProvider")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("process", &self.process.as_ref().map(|process| process.id()))
            .finish_non_exhaustive()
    }
}
