//! Scripted provider as a gRPC service.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prost::Message as _;
use prost_types::Struct;
use pulumi_proto::property::wire::Bag;
use pulumi_proto::rpc;
use pulumi_proto::rpc::resource_provider_server::ResourceProvider;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Response, Status};

use super::call_recorder::{Call, CallRecorder};
use super::parameters::ParameterizedPackage;
use super::request_json::RequestJson;
use super::rules;
use super::script::{Behaviour, Hang, Script, ScriptedCreate, ScriptedDiff, ScriptedRead, ScriptedUpdate};
use crate::service::Reply;

/// Instance of the scripted provider. Instances share their recorder.
#[derive(Debug)]
pub struct ScriptedProvider {
    call_recorder: Arc<dyn CallRecorder>,
    /// Number of calls that hang.
    hanging_calls: AtomicU32,
    /// Token that the first Cancel cancels.
    cancelled: CancellationToken,
    /// Number of calls that a scripted status has failed, by RPC and URN.
    failed_calls: Mutex<BTreeMap<(&'static str, String), u32>>,
    package: ParameterizedPackage,
}

impl ScriptedProvider {
    /// Creates an instance that is not configured.
    pub fn new(call_recorder: Arc<dyn CallRecorder>) -> Self {
        Self {
            call_recorder,
            hanging_calls: AtomicU32::new(0),
            cancelled: CancellationToken::new(),
            failed_calls: Mutex::default(),
            package: ParameterizedPackage::default(),
        }
    }

    fn script(&self) -> Result<Script, Status> {
        self.call_recorder.script().map_err(Status::unknown)
    }

    fn behaviour(&self, urn: &str) -> Result<Behaviour, Status> {
        Ok(self.script()?.resources.remove(name_of(urn)).unwrap_or_default())
    }

    fn record(&self, rpc: &str, request: &impl RequestJson, error: Option<&Status>) {
        if self.call_recorder.is_recording() {
            let error =
                error.map(|status| format!("rpc error: code = {:?} desc = {}", status.code(), status.message()));
            self.call_recorder.record(Call { rpc: rpc.to_owned(), request: request.request_json(), error });
        }
    }

    /// Records the call, and returns an error if `fails` is set.
    fn record_result(&self, rpc: &str, request: &impl RequestJson, fails: bool) -> Result<(), Status> {
        let error = fails.then(|| Status::unknown(format!("rec: {rpc} fails")));
        self.record(rpc, request, error.as_ref());
        error.map_or(Ok(()), Err)
    }

    /// Records the call, and returns its scripted status, if the script has one that is not used up.
    fn fail_with_status(
        &self,
        rpc: &'static str,
        urn: &str,
        request: &impl RequestJson,
        behaviour: &Behaviour,
    ) -> Result<(), Status> {
        let Some(scripted) = behaviour.statuses.get(rpc) else { return Ok(()) };
        let mut failed = self.failed_calls.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = failed.entry((rpc, urn.to_owned())).or_default();
        if scripted.times > 0 && *failed >= scripted.times {
            return Ok(());
        }
        *failed += 1;
        let status = scripted.status();
        self.record(rpc, request, Some(&status));
        Err(status)
    }

    /// Holds a recorded call until Cancel, or for ever.
    async fn hang(&self, behaviour: &Behaviour, call: Hang) {
        if behaviour.hang == Some(call) {
            self.wait(behaviour.deaf).await;
        }
    }

    async fn wait(&self, deaf: bool) {
        self.hanging_calls.fetch_add(1, Ordering::SeqCst);
        self.call_recorder.report_hanging_call();
        if deaf {
            std::future::pending::<()>().await;
        }
        self.cancelled.cancelled().await;
        self.hanging_calls.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Decodes a bag.
fn decode_bag(bag: Option<Bag>) -> Result<Option<Struct>, Status> {
    bag.map(|bag| bag.open().map_err(|error| Status::invalid_argument(error.to_string()))).transpose()
}

/// Decodes bags that no reply depends on, as a provider on an official SDK decodes all that it receives.
fn decode_all<const N: usize>(bags: [&Option<Bag>; N]) -> Result<(), Status> {
    bags.into_iter().try_for_each(|bag| decode_bag(bag.clone()).map(drop))
}

/// Returns the name in a URN.
fn name_of(urn: &str) -> &str {
    urn.rsplit_once("::").map_or(urn, |(_, name)| name)
}

/// Returns the error for a resource that exists but failed to initialise.
fn partial(behaviour: &Behaviour, id: &str, properties: Option<Bag>, inputs: Option<Bag>) -> Status {
    const MESSAGE: &str = "rec: initialisation failed";
    let detail = rpc::ErrorResourceInitFailed {
        id: id.to_owned(),
        properties,
        inputs,
        reasons: vec![behaviour.init_error.clone().unwrap_or_else(|| "rec: not ready".to_owned())],
        ..Default::default()
    };
    let detail = prost_types::Any {
        type_url: "type.googleapis.com/pulumirpc.ErrorResourceInitFailed".to_owned(),
        value: detail.encode_to_vec(),
    };
    let status = pulumi_proto::google_rpc::Status {
        code: Code::Unknown.into(),
        message: MESSAGE.to_owned(),
        details: vec![detail],
    };
    Status::with_details(Code::Unknown, MESSAGE, status.encode_to_vec().into())
}

fn check_failures(properties: &[String]) -> Vec<rpc::CheckFailure> {
    let failure =
        |property: &String| rpc::CheckFailure { property: property.clone(), reason: "rec: not allowed".to_owned() };
    properties.iter().map(failure).collect()
}

#[tonic::async_trait]
impl ResourceProvider for ScriptedProvider {
    async fn get_plugin_info(&self, _: Request<()>) -> Reply<rpc::PluginInfo> {
        Ok(Response::new(rpc::PluginInfo { version: "1.0.0".to_owned() }))
    }

    async fn get_schema(&self, request: Request<rpc::GetSchemaRequest>) -> Reply<rpc::GetSchemaResponse> {
        let schema = self.script()?.provider.schema.unwrap_or_else(|| super::SCHEMA.to_owned());
        let schema = self.package.schema(&request.into_inner(), &schema)?;
        Ok(Response::new(rpc::GetSchemaResponse { schema }))
    }

    async fn parameterize(&self, request: Request<rpc::ParameterizeRequest>) -> Reply<rpc::ParameterizeResponse> {
        if !self.script()?.provider.parameters {
            return Err(Status::unimplemented("rec: Parameterize"));
        }
        let request = request.into_inner();
        self.record("Parameterize", &request, None);
        self.package.parameterize(request).map(Response::new)
    }

    async fn check_config(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        let request = request.into_inner();
        self.record("CheckConfig", &request, None);
        let failures = check_failures(&self.script()?.provider.check_failures);
        Ok(Response::new(rpc::CheckResponse { inputs: request.news, failures }))
    }

    async fn diff_config(&self, request: Request<rpc::DiffRequest>) -> Reply<rpc::DiffResponse> {
        let request = request.into_inner();
        self.record("DiffConfig", &request, None);
        let script = self.script()?.provider;
        if script.diff.is_some() {
            return Ok(Response::new(rpc::DiffResponse::default()));
        }
        let behaviour = Behaviour { delete_before_replace: script.delete_before_replace, ..Behaviour::default() };
        let (old, new) =
            (decode_bag(request.old_inputs)?.unwrap_or_default(), decode_bag(request.news)?.unwrap_or_default());
        Ok(Response::new(rules::compare(&old, &new, rules::CONFIG_REPLACES, &behaviour)))
    }

    async fn configure(&self, request: Request<rpc::ConfigureRequest>) -> Reply<rpc::ConfigureResponse> {
        let (script, request) = (self.script()?.provider, request.into_inner());
        let urn = request.urn.clone().unwrap_or_default();
        self.fail_with_status("Configure", &urn, &request, &self.behaviour(&urn)?)?;
        let configuration = decode_bag(request.args.clone())?.unwrap_or_default();
        let is_refused = |(name, value): (&String, &String)| {
            configuration.fields.get(name).is_some_and(|known| *known == rules::text(value.as_str()))
        };
        let fails = script.configure.is_some() || script.refused.iter().any(is_refused);
        self.record_result("Configure", &request, fails)?;
        if script.hang {
            self.wait(false).await;
        }
        tokio::time::sleep(Duration::from_millis(script.configure_delay)).await;
        Ok(Response::new(rpc::ConfigureResponse {
            accept_secrets: script.accept_secrets.unwrap_or(true),
            supports_preview: script.supports_preview.unwrap_or(true),
            accept_resources: true,
            accept_outputs: true,
            supports_autonaming_configuration: script.autonaming,
        }))
    }

    async fn check(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        let request = request.into_inner();
        let behaviour = self.behaviour(&request.urn)?;
        self.fail_with_status("Check", &request.urn, &request, &behaviour)?;
        self.record_result("Check", &request, behaviour.check.is_some())?;
        self.hang(&behaviour, Hang::Check).await;
        decode_all([&request.olds])?;
        let mut inputs = decode_bag(request.news)?.unwrap_or_default();
        for (name, value) in &behaviour.defaults {
            inputs.fields.entry(name.clone()).or_insert_with(|| rules::value_from_json(value));
        }
        Ok(Response::new(rpc::CheckResponse {
            inputs: Some(inputs.into()),
            failures: check_failures(&behaviour.check_failures),
        }))
    }

    async fn diff(&self, request: Request<rpc::DiffRequest>) -> Reply<rpc::DiffResponse> {
        let request = request.into_inner();
        let behaviour = self.behaviour(&request.urn)?;
        self.fail_with_status("Diff", &request.urn, &request, &behaviour)?;
        self.record_result("Diff", &request, behaviour.diff == Some(ScriptedDiff::Error))?;
        decode_all([&request.olds])?;
        let (old, new) = (decode_bag(request.old_inputs)?, decode_bag(request.news)?);
        Ok(Response::new(rules::resource_diff(old.as_ref(), new.as_ref(), &request.ignore_changes, &behaviour)))
    }

    async fn create(&self, request: Request<rpc::CreateRequest>) -> Reply<rpc::CreateResponse> {
        let request = request.into_inner();
        let behaviour = self.behaviour(&request.urn)?;
        let inputs = decode_bag(request.properties.clone())?;
        if request.preview {
            self.record("Create", &request, None);
            let properties = Some(rules::outputs("", inputs.as_ref(), true).into());
            return Ok(Response::new(rpc::CreateResponse { properties, ..Default::default() }));
        }
        self.fail_with_status("Create", &request.urn, &request, &behaviour)?;
        if behaviour.create == Some(ScriptedCreate::Error) {
            self.record_result("Create", &request, true)?;
        }
        let mut id = self.call_recorder.next_id(name_of(&request.urn));
        let delay = self.script()?.provider.create_delay;
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        let is_preview = behaviour.create == Some(ScriptedCreate::Unusable);
        let properties: Option<Bag> = Some(rules::outputs(&id, inputs.as_ref(), is_preview).into());
        let error = match behaviour.create {
            Some(ScriptedCreate::Partial) => {
                Some(partial(&behaviour, &id, properties.clone(), request.properties.clone()))
            }
            Some(ScriptedCreate::PartialNoid) => {
                Some(partial(&behaviour, "", properties.clone(), request.properties.clone()))
            }
            Some(ScriptedCreate::Noid) => {
                id.clear();
                None
            }
            Some(ScriptedCreate::Error | ScriptedCreate::Unusable) | None => None,
        };
        self.call_recorder.set_exists(&id, true);
        self.record("Create", &request, error.as_ref());
        if let Some(error) = error {
            return Err(error);
        }
        self.hang(&behaviour, Hang::Create).await;
        let refresh_before_update = behaviour.refresh_before_update;
        Ok(Response::new(rpc::CreateResponse { id, properties, refresh_before_update }))
    }

    async fn read(&self, request: Request<rpc::ReadRequest>) -> Reply<rpc::ReadResponse> {
        let request = request.into_inner();
        let behaviour = self.behaviour(&request.urn)?;
        self.fail_with_status("Read", &request.urn, &request, &behaviour)?;
        self.record_result("Read", &request, behaviour.read == Some(ScriptedRead::Error))?;
        self.hang(&behaviour, Hang::Read).await;
        if behaviour.read == Some(ScriptedRead::Gone) || !self.call_recorder.exists(&request.id) {
            return Ok(Response::new(rpc::ReadResponse::default()));
        }
        let (mut id, mut properties, mut inputs) =
            (request.id, decode_bag(request.properties)?, decode_bag(request.inputs)?);
        let is_empty = |bag: &Option<Struct>| bag.as_ref().is_none_or(|bag| bag.fields.is_empty());
        if inputs.is_none() || (is_empty(&inputs) && is_empty(&properties)) {
            // In an import or a get, the actual state has v = "read".
            inputs = Some(Struct { fields: [("v".to_owned(), rules::text("read"))].into() });
            properties = Some(rules::outputs(&id, inputs.as_ref(), false));
        }
        if !behaviour.drift.is_empty() {
            let drift = behaviour.drift.iter().map(|(name, value)| (name.clone(), rules::value_from_json(value)));
            inputs.get_or_insert_default().fields.extend(drift);
            properties = Some(rules::outputs(&id, inputs.as_ref(), false));
        }
        let (properties, mut inputs) = (properties.map(Bag::from), inputs.map(Bag::from));
        match behaviour.read {
            Some(ScriptedRead::Partial) => return Err(partial(&behaviour, &id, properties, inputs)),
            Some(ScriptedRead::Newid) => id.push_str("-new"),
            Some(ScriptedRead::Noinputs) => inputs = None,
            Some(ScriptedRead::Error | ScriptedRead::Gone) | None => {}
        }
        let refresh_before_update = behaviour.refresh_before_update;
        Ok(Response::new(rpc::ReadResponse { id, properties, inputs, refresh_before_update }))
    }

    async fn update(&self, request: Request<rpc::UpdateRequest>) -> Reply<rpc::UpdateResponse> {
        let request = request.into_inner();
        let behaviour = self.behaviour(&request.urn)?;
        if !request.preview {
            self.fail_with_status("Update", &request.urn, &request, &behaviour)?;
        }
        decode_all([&request.olds, &request.old_inputs])?;
        let inputs = decode_bag(request.news.clone())?;
        let properties: Option<Bag> = Some(rules::outputs(&request.id, inputs.as_ref(), request.preview).into());
        let error = match behaviour.update.filter(|_| !request.preview) {
            Some(ScriptedUpdate::Error) => Some(Status::unknown("rec: Update fails")),
            Some(ScriptedUpdate::Partial) => {
                Some(partial(&behaviour, &request.id, properties.clone(), request.news.clone()))
            }
            None => None,
        };
        self.record("Update", &request, error.as_ref());
        if let Some(error) = error {
            return Err(error);
        }
        if !request.preview {
            self.hang(&behaviour, Hang::Update).await;
        }
        let refresh_before_update = behaviour.refresh_before_update;
        Ok(Response::new(rpc::UpdateResponse { properties, refresh_before_update }))
    }

    async fn delete(&self, request: Request<rpc::DeleteRequest>) -> Reply<()> {
        let request = request.into_inner();
        let behaviour = self.behaviour(&request.urn)?;
        self.fail_with_status("Delete", &request.urn, &request, &behaviour)?;
        self.record_result("Delete", &request, behaviour.delete.is_some())?;
        decode_all([&request.properties, &request.old_inputs])?;
        self.hang(&behaviour, Hang::Delete).await;
        self.call_recorder.set_exists(&request.id, false);
        Ok(Response::new(()))
    }

    async fn invoke(&self, request: Request<rpc::InvokeRequest>) -> Reply<rpc::InvokeResponse> {
        let request = request.into_inner();
        let behaviour = self.behaviour(&request.tok)?;
        self.fail_with_status("Invoke", &request.tok, &request, &behaviour)?;
        self.record("Invoke", &request, None);
        let arguments = decode_bag(request.args)?.unwrap_or_default();
        let result = prost_types::Value { kind: Some(prost_types::value::Kind::StructValue(arguments)) };
        let padding =
            (behaviour.padding > 0).then(|| ("padding".to_owned(), rules::text("x".repeat(behaviour.padding))));
        let fields = padding.into_iter().chain([("result".to_owned(), result)]).collect();
        let failures = check_failures(&behaviour.check_failures);
        Ok(Response::new(rpc::InvokeResponse { r#return: Some(Struct { fields }.into()), failures }))
    }

    async fn cancel(&self, _: Request<()>) -> Reply<()> {
        // Every plugin receives a Cancel at its end; only one that meets a hanging call is recorded.
        if self.hanging_calls.load(Ordering::SeqCst) > 0 {
            self.record("Cancel", &(), None);
        }
        self.cancelled.cancel();
        Ok(Response::new(()))
    }
}
