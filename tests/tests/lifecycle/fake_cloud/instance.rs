//! Replies of the cloud's provider.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bridge::provider::{
    CallReply, CallRequest, Capabilities, CheckConfigRequest, CheckFailure, CheckReply, CheckRequest, ConfigureRequest,
    ConstructReply, ConstructRequest, CreateReply, CreateRequest, DeleteRequest, DiffChanges, DiffConfigRequest,
    DiffReply, DiffRequest, ErrorClass, ErrorDetails, InvokeReply, InvokeRequest, ListReply, ListRequest, LostReply,
    Method, ParameterizeReply, ParameterizeRequest, PartialFailure, Provider, ProviderError, ReadReply, ReadRequest,
    SchemaRequest, UpdateReply, UpdateRequest,
};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;

use super::{Account, Call, CallFailure, FakeCloud, Object, REPLACE_VIEWS, views};

/// Instance of the provider.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) cloud: FakeCloud,
    pub(super) number: usize,
}

impl Instance {
    /// Records the start of a call and waits until the test releases it. Returns the number and the failure of the
    /// call.
    async fn begin(
        &self,
        verb: &'static str,
        urn: &pulumi_proto::urn::Urn,
        id: &str,
        news: &PropertyMap,
    ) -> (usize, Option<CallFailure>) {
        let call = Call {
            verb,
            name: urn.name().to_owned(),
            type_token: urn.type_token().to_owned(),
            id: id.to_owned(),
            object: self.object(id),
            instance: self.number,
            started: 0,
            ended: None,
            succeeded: false,
            is_busy: false,
            news: news.clone(),
        };
        let text = call.text();
        let (number, failure, held, turns) = {
            let inner = &mut *self.cloud.inner();
            inner.clock += 1;
            let started = inner.clock;
            inner.calls.push(Call { started, ..call });
            let call_count = inner.calls.len();
            inner.cancellations.iter().filter(|(at, _)| call_count >= *at).for_each(|(_, signal)| signal.cancel());
            let instance = &inner.instances[self.number];
            let needs_no_configuration = matches!(verb, "checkconfig" | "diffconfig" | "configure");
            if instance.closed > 0 {
                inner.violations.push(format!("{text}: instance {} is closed", self.number));
            } else if instance.configured == 0 && !needs_no_configuration {
                inner.violations.push(format!("{text}: instance {} is not configured", self.number));
            } else if instance.configured > 0 && matches!(verb, "checkconfig" | "diffconfig") {
                inner.violations.push(format!("{text}: instance {} is configured", self.number));
            }
            let by_name = format!("{verb} {}", urn.name());
            let failure = inner.failures.get(&text).or_else(|| inner.failures.get(&by_name)).copied();
            let is_refused = inner.refused.iter().any(|(at, key, value)| {
                *at == verb && instance.configuration.get(*key) == Some(&PropertyValue::from(*value))
            });
            let failure = failure.or(is_refused.then_some(CallFailure::Error));
            let failure = match failure {
                Some(CallFailure::Busy { attempts, .. }) => {
                    let busy = inner.calls.iter().filter(|call| call.is_busy && call.text() == text).count();
                    let is_busy = busy < attempts;
                    inner.calls.last_mut().iter_mut().for_each(|call| call.is_busy = is_busy);
                    failure.filter(|_| is_busy)
                }
                failure => failure,
            };
            let loses_reply =
                matches!(failure, Some(CallFailure::Crash | CallFailure::Lost(_) | CallFailure::PartialWithoutId));
            if loses_reply && matches!(verb, "create" | "update" | "delete" | "read") {
                inner.lost_replies += 1;
            }
            let held = inner.holds.get(&text).or_else(|| inner.holds.get(&by_name)).cloned();
            let letters: usize = text.bytes().map(usize::from).sum();
            (inner.calls.len() - 1, failure, held, if inner.varies_timing { (letters + started) % 7 } else { 1 })
        };
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        if let Some(held) = held {
            held.reached.cancel();
            held.released.cancelled().await;
        }
        (number, failure)
    }

    /// Returns the object with an id in the account of the instance.
    fn object(&self, id: &str) -> Object {
        let inner = self.cloud.inner();
        inner.object(id, &inner.instances[self.number].account)
    }

    /// Returns whether a global id contains another account: an import does not find its object.
    fn is_of_other(&self, id: &str) -> bool {
        let inner = self.cloud.inner();
        let owner = inner.owners.get(id).filter(|_| inner.has_global_ids);
        owner.is_some_and(|owner| *owner != inner.instances[self.number].account)
    }

    fn end(&self, call: usize) {
        let inner = &mut *self.cloud.inner();
        inner.clock += 1;
        inner.calls[call].ended = Some(inner.clock);
    }

    /// Handles a call that may fail and has no effect.
    async fn handle(
        &self,
        verb: &'static str,
        method: Method,
        urn: &pulumi_proto::urn::Urn,
        id: &str,
        news: &PropertyMap,
    ) -> Result<(), ProviderError> {
        let (call, failure) = self.begin(verb, urn, id, news).await;
        self.end(call);
        failure
            .filter(|failure| *failure != CallFailure::Missing && *failure != CallFailure::Partial)
            .map_or(Ok(()), |failure| Err(provider_error(method, failure)))
    }
}

fn provider_error(method: Method, failure: CallFailure) -> ProviderError {
    match failure {
        CallFailure::Crash => lost_reply(method, LostReply::PluginExited, ""),
        CallFailure::Lost(lost) => lost_reply(method, lost, ""),
        CallFailure::Unimplemented => ProviderError::Unimplemented { method },
        CallFailure::Busy { seconds, .. } => {
            let retry_after = Some(Duration::from_secs(seconds));
            ProviderError::Failed {
                method,
                message: format!("{method} is busy"),
                indeterminate: false,
                source: None,
                details: Some(Box::new(ErrorDetails { retry_after, ..ErrorDetails::new(ErrorClass::Quota) })),
            }
        }
        _ => ProviderError::Failed {
            method,
            message: format!("{method} went wrong"),
            indeterminate: false,
            source: None,
            details: None,
        },
    }
}

/// Returns the error of a call whose reply is lost, except for the id if it can be read.
fn lost_reply(method: Method, lost: LostReply, id: &str) -> ProviderError {
    match lost {
        LostReply::PluginExited => ProviderError::PluginExited {
            plugin: "cloud".to_owned(),
            method,
            is_sent: true,
            status: "signal 9".to_owned(),
            last_output: Vec::new(),
        },
        lost => ProviderError::ReplyLost {
            method,
            lost,
            message: format!("the provider's reply to {method} is not valid: {lost:?}"),
            id: ResourceId::new(id).filter(|_| keeps_id(lost)),
            source: None,
        },
    }
}

/// Returns whether the id can be read in a reply that is lost in this way.
pub(crate) fn keeps_id(lost: LostReply) -> bool {
    match lost {
        LostReply::PluginExited
        | LostReply::ConnectionLost
        | LostReply::NotGrpc
        | LostReply::TooLarge
        | LostReply::NoId => false,
        LostReply::Undecodable
        | LostReply::UndecodableProperties
        | LostReply::TooDeep
        | LostReply::NoKind
        | LostReply::Unknown
        | LostReply::MalformedValue
        | LostReply::InvalidField => true,
    }
}

/// Returns the failure to initialize a resource. Message and reason quote all texts of the resource, secret or not.
fn partial_failure(id: &str, outputs: PropertyMap) -> ProviderError {
    let texts = outputs.values().map(PropertyValue::without_wrappers);
    let quoted: Vec<String> = texts.filter_map(|value| value.as_str().map(|text| format!("{text:?}"))).collect();
    let quoted = quoted.join(" ");
    let failure = PartialFailure {
        id: ResourceId::new(id),
        inputs: Some(without_id(&outputs)),
        outputs,
        reasons: vec![format!("not ready: {quoted}")],
        refresh_before_update: false,
        details: None,
    };
    ProviderError::Partial { message: format!("did not come up: {quoted}"), failure: Box::new(failure) }
}

fn without_id(outputs: &PropertyMap) -> PropertyMap {
    outputs.iter().filter(|(key, _)| *key != "id").map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn outputs(id: &str, inputs: &PropertyMap) -> PropertyMap {
    let mut outputs = inputs.clone();
    if !id.is_empty() {
        outputs.insert("id".to_owned(), id.into());
    }
    outputs
}

/// Returns an input as a secret, with its name.
fn as_secret(inputs: &PropertyMap, name: &str) -> Option<(String, PropertyValue)> {
    inputs.get(name).map(|value| (name.to_owned(), PropertyValue::secret(value.without_wrappers())))
}

/// Compares inputs: a change of `k…` replaces, of `d…` replaces and deletes first, of any other key updates.
fn diff_inputs(olds: &PropertyMap, news: &PropertyMap) -> DiffReply {
    let names: BTreeSet<&String> = olds.keys().chain(news.keys()).collect();
    let differs = |name: &&String| match (olds.get(*name), news.get(*name)) {
        (Some(old), Some(new)) => !old.without_wrappers().same_as(&new.without_wrappers()),
        _ => true,
    };
    let diffs: Vec<String> = names.into_iter().filter(differs).cloned().collect();
    let replaces: Vec<String> = diffs.iter().filter(|name| name.starts_with(['k', 'd'])).cloned().collect();
    let is_unknown = olds.contains_key(super::UNKNOWN_DIFF) || news.contains_key(super::UNKNOWN_DIFF);
    DiffReply {
        changes: match diffs.is_empty() {
            _ if is_unknown => DiffChanges::Unknown,
            true => DiffChanges::None,
            false => DiffChanges::Some,
        },
        delete_before_replace: replaces.iter().any(|name| name.starts_with('d')),
        replaces,
        diffs: if is_unknown { Vec::new() } else { diffs },
        ..DiffReply::default()
    }
}

#[async_trait]
impl Provider for Instance {
    fn capabilities(&self) -> Capabilities {
        Capabilities { accept_secrets: true, supports_preview: true, ..Capabilities::default() }
    }

    fn version(&self) -> Option<&str> {
        Some("1.0.0")
    }

    fn can_repeat_mutations(&self) -> bool {
        self.cloud.inner().can_repeat_mutations
    }

    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        self.handle("checkconfig", Method::CheckConfig, &request.urn, "", &request.news).await?;
        Ok(CheckReply { inputs: (*request.news).clone(), failures: Vec::new() })
    }

    async fn diff_config(&self, request: DiffConfigRequest) -> Result<DiffReply, ProviderError> {
        self.handle("diffconfig", Method::DiffConfig, &request.urn, "", &request.news).await?;
        Ok(diff_inputs(&request.old_inputs, &request.news))
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        self.cloud.inner().instances[self.number].account = Account::of_configuration(&request.inputs);
        self.cloud.inner().instances[self.number].configured += 1;
        self.cloud.inner().instances[self.number].configuration = (*request.inputs).clone();
        if self.cloud.inner().instances[self.number].configured > 1 {
            self.cloud.add_violation(format!("instance {} is configured twice", self.number));
        }
        let reply = self.handle("configure", Method::Configure, &request.urn, "", &request.inputs).await;
        if matches!(&reply, Err(error) if error.details().retry_after.is_some()) {
            self.cloud.inner().instances[self.number].configured -= 1;
        }
        reply
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckReply, ProviderError> {
        let (call, failure) = self.begin("check", &request.urn, "", &request.news).await;
        self.end(call);
        self.cloud.inner().checked.push(request.clone());
        let failures = match failure {
            Some(CallFailure::Partial) => {
                vec![CheckFailure { property: Some("v".to_owned()), reason: "not allowed".to_owned() }]
            }
            Some(failure) => return Err(provider_error(Method::Check, failure)),
            None => Vec::new(),
        };
        let mut inputs = (*request.news).clone();
        inputs.extend(as_secret(&request.news, super::CHECKED_SECRET));
        Ok(CheckReply { inputs: self.cloud.returned(inputs), failures })
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffReply, ProviderError> {
        let id = ResourceId::text(request.id.as_ref());
        self.handle("diff", Method::Diff, &request.urn, id, &request.news).await?;
        Ok(diff_inputs(&request.old_inputs, &request.news))
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateReply, ProviderError> {
        let verb = if request.preview { "preview" } else { "create" };
        let (call, failure) = self.begin(verb, &request.urn, "", &request.inputs).await;
        views::publish(&self.cloud, &request.urn, &request.views, Some(&request.inputs));
        self.end(call);
        if request.preview {
            let known = if request.inputs.contains_key(super::UNKNOWN_DIFF) {
                PropertyMap::new()
            } else {
                (*request.inputs).clone()
            };
            return Ok(CreateReply { outputs: self.cloud.returned(known), ..CreateReply::default() });
        }
        if let Some(failure @ (CallFailure::Error | CallFailure::Crash | CallFailure::Busy { .. })) = failure {
            return Err(provider_error(Method::Create, failure));
        }
        if failure == Some(CallFailure::PartialWithoutId) {
            let mut outputs = outputs("", &request.inputs);
            outputs.insert("token".to_owned(), PropertyValue::secret("issued-token".into()));
            return Err(partial_failure("", outputs));
        }
        let id = {
            let inner = &mut *self.cloud.inner();
            // Ids of another cloud are not used again.
            let first = if inner.allows_missing { 100 } else { 0 };
            let counter = inner.id_counters.entry(request.urn.name().to_owned()).or_insert(first);
            *counter += 1;
            let named = request.inputs.get(super::NAMED).and_then(PropertyValue::as_str);
            // One name in two types is two objects.
            let named = named.map(|named| match request.urn.type_token().rsplit(':').next() {
                Some("Thing") | None => named.to_owned(),
                Some(other) => format!("{named}:{other}"),
            });
            let account = inner.instances[self.number].account.clone();
            let id = match named {
                Some(named) if inner.has_global_ids => format!("{named}{account}"),
                Some(named) => named,
                None => format!("{}-{counter}", request.urn.name()),
            };
            let object = inner.object(&id, &account);
            inner.owners.insert(id.clone(), account);
            // An object that is created again, or taken over, has the new inputs.
            inner.drift.remove(&id);
            Arc::make_mut(&mut inner.existing).insert(object.clone(), Some((*request.inputs).clone()));
            let call = &mut inner.calls[call];
            (call.id, call.object, call.succeeded) = (id.clone(), object, failure.is_none());
            id
        };
        let outputs = self.cloud.returned(outputs(&id, &request.inputs));
        match failure {
            Some(CallFailure::Partial) => Err(partial_failure(&id, outputs)),
            Some(CallFailure::Lost(lost)) => Err(lost_reply(Method::Create, lost, &id)),
            _ => Ok(CreateReply {
                id: ResourceId::new(id),
                outputs,
                refresh_before_update: request.inputs.contains_key(super::REFRESH_BEFORE_UPDATE),
            }),
        }
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadReply, ProviderError> {
        let id = ResourceId::text(request.id.as_ref());
        let (call, failure) = self.begin("read", &request.urn, id, &PropertyMap::new()).await;
        self.end(call);
        let id = id.strip_prefix(super::SPELLING).unwrap_or(id);
        let object = self.object(id);
        if request.inputs.is_none() && (self.cloud.inner().finds_nothing_by_id || self.is_of_other(id)) {
            return Ok(ReadReply::default());
        }
        if let Some(
            failure @ (CallFailure::Error
            | CallFailure::Unimplemented
            | CallFailure::Crash
            | CallFailure::Lost(_)
            | CallFailure::Busy { .. }),
        ) = failure
        {
            return Err(provider_error(Method::Read, failure));
        }
        if failure == Some(CallFailure::Missing) {
            self.cloud.inner().vanish(&object);
        }
        let is_blind = self.cloud.inner().is_blind;
        let Some(held) = self.cloud.state().existing.get(&object).filter(|_| !is_blind).cloned() else {
            return Ok(ReadReply::default());
        };
        let mut inputs = held.or_else(|| request.inputs.as_deref().cloned()).unwrap_or_default();
        inputs.extend(self.cloud.inner().drift.get(id).cloned().unwrap_or_default());
        // A Read that decides whether two entries name one object is not recorded, and neither are its views.
        if request.views.listener.is_some() {
            views::publish(&self.cloud, &request.urn, &request.views, Some(&inputs));
        }
        let inputs = self.cloud.returned(inputs);
        let outputs = outputs(id, &inputs);
        match failure {
            Some(CallFailure::Partial) => Err(partial_failure(id, outputs)),
            _ => Ok(ReadReply {
                id: ResourceId::new(id),
                outputs: Some(outputs),
                refresh_before_update: inputs.contains_key(super::REFRESH_BEFORE_UPDATE),
                inputs: Some(inputs),
            }),
        }
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateReply, ProviderError> {
        let id = ResourceId::text(request.id.as_ref());
        let verb = if request.preview { "preview-update" } else { "update" };
        let (call, failure) = self.begin(verb, &request.urn, id, &request.news).await;
        match (request.news.get(REPLACE_VIEWS), &request.views.listener) {
            (Some(renewal), Some(listener)) => {
                let first = matches!(renewal, PropertyValue::String(way) if way == "first");
                views::replace(listener, &request.views, &request.news, first);
            }
            _ => views::publish(&self.cloud, &request.urn, &request.views, Some(&request.news)),
        }
        self.end(call);
        if request.preview {
            let outputs = self.cloud.returned((*request.news).clone());
            return Ok(UpdateReply { outputs, refresh_before_update: false });
        }
        let object = self.object(id);
        {
            let inner = &mut *self.cloud.inner();
            inner.calls[call].succeeded = failure.is_none();
            let done = matches!(failure, None | Some(CallFailure::Partial | CallFailure::Lost(_)));
            if let Some(held) = Arc::make_mut(&mut inner.existing).get_mut(&object) {
                if done {
                    *held = Some((*request.news).clone());
                    inner.drift.remove(id);
                }
            } else if done && inner.vanished.remove(&object) {
                // Like a PUT, the update creates the missing resource again.
                let held = Some((*request.news).clone());
                Arc::make_mut(&mut inner.existing).insert(object, held);
                inner.drift.remove(id);
            } else if !inner.allows_missing && !inner.vanished.contains(&object) {
                inner.violations.push(format!("update of {object}, which does not exist"));
            }
        }
        let outputs = self.cloud.returned(outputs(id, &request.news));
        match failure {
            Some(CallFailure::Partial) => Err(partial_failure(id, outputs)),
            Some(failure) => Err(provider_error(Method::Update, failure)),
            None => Ok(UpdateReply {
                outputs,
                refresh_before_update: request.news.contains_key(super::REFRESH_BEFORE_UPDATE),
            }),
        }
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        let id = ResourceId::text(request.id.as_ref());
        let (call, failure) = self.begin("delete", &request.urn, id, &PropertyMap::new()).await;
        views::publish(&self.cloud, &request.urn, &request.views, None);
        self.end(call);
        let object = self.object(id);
        if let Some(failure) = failure {
            if matches!(failure, CallFailure::Lost(_)) {
                self.cloud.inner().vanish(&object);
            }
            return Err(provider_error(Method::Delete, failure));
        }
        let inner = &mut *self.cloud.inner();
        if inner.refuses_deletes_in_use && inner.is_in_use(&object) {
            return Err(provider_error(Method::Delete, CallFailure::Error));
        }
        let existed = Arc::make_mut(&mut inner.existing).remove(&object).is_some();
        if !existed && !inner.allows_missing && !inner.vanished.contains(&object) {
            inner.violations.push(format!("delete of {object}, which does not exist"));
        }
        inner.calls[call].succeeded = true;
        Ok(())
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeReply, ProviderError> {
        if self.cloud.inner().rejects_invokes {
            let failure = CheckFailure { property: Some("name".to_owned()), reason: "not found".to_owned() };
            return Ok(InvokeReply { result: PropertyMap::new(), failures: vec![failure] });
        }
        Ok(InvokeReply { result: (*request.arguments).clone(), failures: Vec::new() })
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.cloud.inner().instances[self.number].cancelled += 1;
        Ok(())
    }

    async fn close(&self) {
        tokio::task::yield_now().await;
        let inner = &mut *self.cloud.inner();
        inner.instances[self.number].closed += 1;
        if inner.instances[self.number].closed > 1 {
            inner.violations.push(format!("instance {} is closed twice", self.number));
        }
        let running_call = inner.calls.iter().find(|call| call.instance == self.number && call.ended.is_none());
        if let Some(running_call) =
            running_call.map(Call::text).filter(|_| inner.cancellations.is_empty() && inner.holds.is_empty())
        {
            inner.violations.push(format!("instance {} is closed during {running_call}", self.number));
        }
    }

    async fn parameterize(&self, request: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError> {
        let inner = &mut *self.cloud.inner();
        if inner.instances[self.number].configured > 0 {
            inner.violations.push(format!("instance {} received Parameterize after Configure", self.number));
        }
        inner.parameterized.push(request.clone());
        match request {
            ParameterizeRequest::Value { name, version, .. } => {
                match inner.failures.get(&format!("parameterize {name}")) {
                    Some(CallFailure::OtherPackage) => Ok(ParameterizeReply { name: "another".to_owned(), version }),
                    Some(failure) => Err(provider_error(Method::Parameterize, *failure)),
                    None => Ok(ParameterizeReply { name, version }),
                }
            }
            ParameterizeRequest::Arguments(_) => Err(ProviderError::Unimplemented { method: Method::Parameterize }),
        }
    }

    async fn schema(&self, _: SchemaRequest) -> Result<Option<String>, ProviderError> {
        Ok(None)
    }

    async fn list(&self, _: ListRequest) -> Result<ListReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::List })
    }

    async fn call(&self, request: CallRequest) -> Result<CallReply, ProviderError> {
        let result = (*request.arguments).clone();
        let inner = &mut *self.cloud.inner();
        inner.called.push((inner.instances[self.number].name.clone(), request));
        Ok(CallReply { result, ..CallReply::default() })
    }

    async fn construct(&self, request: ConstructRequest) -> Result<ConstructReply, ProviderError> {
        let failed = |message: String| ProviderError::Failed {
            method: Method::Construct,
            message,
            indeterminate: false,
            source: None,
            details: None,
        };
        let text = format!("construct {}", request.name);
        self.cloud.inner().constructed.push(request.clone());
        let failure = self.cloud.inner().failures.get(&text).copied();
        let secret = as_secret(&request.inputs, super::CONSTRUCTED_SECRET);
        let construct = async {
            let reply = tests::comp::construct_with_child(request).await;
            let mut reply = reply.map_err(|status| failed(status.message().to_owned()))?;
            reply.state.extend(secret);
            Ok::<_, ProviderError>(reply)
        };
        match failure {
            None => construct.await,
            Some(CallFailure::Lost(lost)) => {
                construct.await?;
                Err(lost_reply(Method::Construct, lost, ""))
            }
            Some(_) => Err(failed(format!("{text} fails"))),
        }
    }

    async fn mappings(&self, _: &str) -> Result<Option<Vec<String>>, ProviderError> {
        Ok(None)
    }

    async fn mapping(&self, _: &str, _: &str) -> Result<Option<(String, Vec<u8>)>, ProviderError> {
        Ok(None)
    }
}
