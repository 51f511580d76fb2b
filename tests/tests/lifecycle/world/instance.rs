//! Replies of the cloud's provider.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use bridge::provider::{
    CallReply, CallRequest, Capabilities, CheckConfigRequest, CheckFailure, CheckReply, CheckRequest, ConfigureRequest,
    ConstructReply, ConstructRequest, CreateReply, CreateRequest, DeleteRequest, DiffChanges, DiffConfigRequest,
    DiffReply, DiffRequest, InvokeReply, InvokeRequest, ListReply, ListRequest, Method, ParameterizeReply,
    ParameterizeRequest, PartialFailure, Provider, ProviderError, ReadReply, ReadRequest, SchemaRequest, UpdateReply,
    UpdateRequest,
};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;

use super::{Call, Goes, RENEWAL, World, views};

/// Instance of the provider.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) world: World,
    pub(super) number: usize,
}

impl Instance {
    /// Records the start of a call and waits as the test demands. Returns the number of the call and its failure.
    async fn begin(
        &self,
        verb: &'static str,
        urn: &pulumi_proto::urn::Urn,
        id: &str,
        news: &PropertyMap,
    ) -> (usize, Option<Goes>) {
        let call = Call {
            verb,
            name: urn.name().to_owned(),
            id: id.to_owned(),
            instance: self.number,
            began: 0,
            ended: None,
            well: false,
            news: news.clone(),
        };
        let said = call.said();
        let (number, goes, held, turns) = {
            let inner = &mut *self.world.inner();
            inner.clock += 1;
            let began = inner.clock;
            inner.calls.push(Call { began, ..call });
            let begun = inner.calls.len();
            inner.stop_after.iter().filter(|(at, _)| begun >= *at).for_each(|(_, signal)| signal.cancel());
            let instance = &inner.instances[self.number];
            let needs_no_configuration = matches!(verb, "checkconfig" | "diffconfig" | "configure");
            if instance.closed > 0 {
                inner.faults.push(format!("{said}: instance {} is closed", self.number));
            } else if instance.configured == 0 && !needs_no_configuration {
                inner.faults.push(format!("{said}: instance {} is not configured", self.number));
            }
            let named = format!("{verb} {}", urn.name());
            let goes = inner.script.get(&said).or_else(|| inner.script.get(&named)).copied();
            let held = inner.holds.get(&said).or_else(|| inner.holds.get(&named)).cloned();
            let letters: usize = said.bytes().map(usize::from).sum();
            (inner.calls.len() - 1, goes, held, if inner.restless { (letters + began) % 7 } else { 1 })
        };
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        if let Some(held) = held {
            held.reached.cancel();
            held.released.cancelled().await;
        }
        (number, goes)
    }

    fn end(&self, call: usize) {
        let inner = &mut *self.world.inner();
        inner.clock += 1;
        inner.calls[call].ended = Some(inner.clock);
    }

    /// Makes a call that may fail and has no effect.
    async fn ask(
        &self,
        verb: &'static str,
        method: Method,
        urn: &pulumi_proto::urn::Urn,
        id: &str,
        news: &PropertyMap,
    ) -> Result<(), ProviderError> {
        let (call, goes) = self.begin(verb, urn, id, news).await;
        self.end(call);
        goes.filter(|goes| *goes != Goes::Gone && *goes != Goes::HalfWell)
            .map_or(Ok(()), |goes| Err(failure(method, goes)))
    }
}

fn failure(method: Method, goes: Goes) -> ProviderError {
    match goes {
        Goes::Down | Goes::Lost => ProviderError::Died {
            plugin: "cloud".to_owned(),
            method,
            reached: true,
            status: "signal 9".to_owned(),
            stderr: Vec::new(),
        },
        _ => ProviderError::Failed {
            method,
            message: format!("{method} went wrong"),
            indeterminate: false,
            source: None,
        },
    }
}

fn half_well(id: &str, outputs: PropertyMap) -> ProviderError {
    let failure = PartialFailure {
        id: ResourceId::new(id),
        inputs: Some(without_id(&outputs)),
        outputs,
        reasons: vec!["not ready".to_owned()],
        refresh_before_update: false,
    };
    ProviderError::Partial { message: "did not come up".to_owned(), failure: Box::new(failure) }
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

/// Compares inputs: a change of `k…` replaces, of `d…` replaces and deletes first, of any other key updates.
fn compare(olds: &PropertyMap, news: &PropertyMap) -> DiffReply {
    let names: BTreeSet<&String> = olds.keys().chain(news.keys()).collect();
    let differs = |name: &&String| match (olds.get(*name), news.get(*name)) {
        (Some(old), Some(new)) => !old.without_wrappers().same_as(&new.without_wrappers()),
        _ => true,
    };
    let diffs: Vec<String> = names.into_iter().filter(differs).cloned().collect();
    let replaces: Vec<String> = diffs.iter().filter(|name| name.starts_with(['k', 'd'])).cloned().collect();
    let vague = olds.contains_key(super::VAGUE) || news.contains_key(super::VAGUE);
    DiffReply {
        changes: match diffs.is_empty() {
            _ if vague => DiffChanges::Unknown,
            true => DiffChanges::None,
            false => DiffChanges::Some,
        },
        delete_before_replace: replaces.iter().any(|name| name.starts_with('d')),
        replaces,
        diffs: if vague { Vec::new() } else { diffs },
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

    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        self.ask("checkconfig", Method::CheckConfig, &request.urn, "", &request.news).await?;
        Ok(CheckReply { inputs: (*request.news).clone(), failures: Vec::new() })
    }

    async fn diff_config(&self, request: DiffConfigRequest) -> Result<DiffReply, ProviderError> {
        self.ask("diffconfig", Method::DiffConfig, &request.urn, "", &request.news).await?;
        Ok(compare(&request.old_inputs, &request.news))
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        self.world.inner().instances[self.number].configured += 1;
        if self.world.inner().instances[self.number].configured > 1 {
            self.world.fault(format!("instance {} is configured twice", self.number));
        }
        self.ask("configure", Method::Configure, &request.urn, "", &request.inputs).await
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckReply, ProviderError> {
        let (call, goes) = self.begin("check", &request.urn, "", &request.news).await;
        self.end(call);
        self.world.inner().checked.push(request.clone());
        let failures = match goes {
            Some(Goes::HalfWell) => {
                vec![CheckFailure { property: Some("v".to_owned()), reason: "not allowed".to_owned() }]
            }
            Some(goes) => return Err(failure(Method::Check, goes)),
            None => Vec::new(),
        };
        Ok(CheckReply { inputs: (*request.news).clone(), failures })
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffReply, ProviderError> {
        let id = ResourceId::text(request.id.as_ref());
        self.ask("diff", Method::Diff, &request.urn, id, &request.news).await?;
        Ok(compare(&request.old_inputs, &request.news))
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateReply, ProviderError> {
        let verb = if request.preview { "preview" } else { "create" };
        let (call, goes) = self.begin(verb, &request.urn, "", &request.inputs).await;
        views::publish(&self.world, &request.urn, &request.views, Some(&request.inputs));
        self.end(call);
        if request.preview {
            let known =
                if request.inputs.contains_key(super::VAGUE) { PropertyMap::new() } else { (*request.inputs).clone() };
            return Ok(CreateReply { outputs: known, ..CreateReply::default() });
        }
        if let Some(goes @ (Goes::Wrong | Goes::Down)) = goes {
            return Err(failure(Method::Create, goes));
        }
        if goes == Some(Goes::Gone) {
            return Err(half_well("", outputs("", &request.inputs)));
        }
        let id = {
            let inner = &mut *self.world.inner();
            // Ids of another world are not used again.
            let first = if inner.forgiving { 100 } else { 0 };
            let made = inner.made.entry(request.urn.name().to_owned()).or_insert(first);
            *made += 1;
            let id = format!("{}-{made}", request.urn.name());
            Arc::make_mut(&mut inner.existing).insert(id.clone(), Some((*request.inputs).clone()));
            inner.calls[call].id.clone_from(&id);
            id
        };
        let outputs = outputs(&id, &request.inputs);
        match goes {
            Some(Goes::HalfWell) => Err(half_well(&id, outputs)),
            Some(goes @ Goes::Lost) => Err(failure(Method::Create, goes)),
            _ => Ok(CreateReply {
                id: ResourceId::new(id),
                outputs,
                refresh_before_update: request.inputs.contains_key(super::FRESH),
            }),
        }
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadReply, ProviderError> {
        let id = ResourceId::text(request.id.as_ref());
        let (call, goes) = self.begin("read", &request.urn, id, &PropertyMap::new()).await;
        self.end(call);
        if let Some(goes @ (Goes::Wrong | Goes::Down | Goes::Lost)) = goes {
            return Err(failure(Method::Read, goes));
        }
        if goes == Some(Goes::Gone) {
            self.world.vanish(id);
        }
        let Some(held) = self.world.moment().existing.get(id).cloned() else {
            return Ok(ReadReply::default());
        };
        let mut inputs = held.or_else(|| request.inputs.as_deref().cloned()).unwrap_or_default();
        inputs.extend(self.world.inner().drift.get(id).cloned().unwrap_or_default());
        views::publish(&self.world, &request.urn, &request.views, Some(&inputs));
        let outputs = outputs(id, &inputs);
        match goes {
            Some(Goes::HalfWell) => Err(half_well(id, outputs)),
            _ => Ok(ReadReply {
                id: request.id.clone(),
                outputs: Some(outputs),
                refresh_before_update: inputs.contains_key(super::FRESH),
                inputs: Some(inputs),
            }),
        }
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateReply, ProviderError> {
        let id = ResourceId::text(request.id.as_ref());
        let verb = if request.preview { "preview-update" } else { "update" };
        let (call, goes) = self.begin(verb, &request.urn, id, &request.news).await;
        match (request.news.get(RENEWAL), &request.views.listener) {
            (Some(renewal), Some(listener)) => {
                let first = matches!(renewal, PropertyValue::String(way) if way == "first");
                views::replace(listener, &request.views, &request.news, first);
            }
            _ => views::publish(&self.world, &request.urn, &request.views, Some(&request.news)),
        }
        self.end(call);
        if request.preview {
            return Ok(UpdateReply { outputs: (*request.news).clone(), refresh_before_update: false });
        }
        {
            let inner = &mut *self.world.inner();
            let done = matches!(goes, None | Some(Goes::HalfWell | Goes::Lost));
            if let Some(held) = Arc::make_mut(&mut inner.existing).get_mut(id) {
                if done {
                    *held = Some((*request.news).clone());
                    inner.drift.remove(id);
                }
            } else if done && inner.vanished.remove(id) {
                // As with a PUT: what is gone is there again.
                let held = Some((*request.news).clone());
                Arc::make_mut(&mut inner.existing).insert(id.to_owned(), held);
                inner.drift.remove(id);
            } else if !inner.forgiving && !inner.vanished.contains(id) {
                inner.faults.push(format!("update of {id}, which is not there"));
            }
        }
        let outputs = outputs(id, &request.news);
        match goes {
            Some(Goes::HalfWell) => Err(half_well(id, outputs)),
            Some(goes) => Err(failure(Method::Update, goes)),
            None => Ok(UpdateReply { outputs, refresh_before_update: request.news.contains_key(super::FRESH) }),
        }
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        let id = ResourceId::text(request.id.as_ref());
        let (call, goes) = self.begin("delete", &request.urn, id, &PropertyMap::new()).await;
        views::publish(&self.world, &request.urn, &request.views, None);
        self.end(call);
        if let Some(goes) = goes {
            if goes == Goes::Lost {
                self.world.vanish(id);
            }
            return Err(failure(Method::Delete, goes));
        }
        let inner = &mut *self.world.inner();
        let was_there = Arc::make_mut(&mut inner.existing).remove(id).is_some();
        if !was_there && !inner.forgiving && !inner.vanished.contains(id) {
            inner.faults.push(format!("delete of {id}, which is not there"));
        }
        inner.calls[call].well = true;
        Ok(())
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeReply, ProviderError> {
        if self.world.inner().invoke_refused {
            let failure = CheckFailure { property: Some("name".to_owned()), reason: "no such thing".to_owned() };
            return Ok(InvokeReply { result: PropertyMap::new(), failures: vec![failure] });
        }
        Ok(InvokeReply { result: (*request.arguments).clone(), failures: Vec::new() })
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.world.inner().instances[self.number].cancelled += 1;
        Ok(())
    }

    async fn close(&self) {
        tokio::task::yield_now().await;
        let inner = &mut *self.world.inner();
        inner.instances[self.number].closed += 1;
        if inner.instances[self.number].closed > 1 {
            inner.faults.push(format!("instance {} is closed twice", self.number));
        }
        let busy = inner.calls.iter().find(|call| call.instance == self.number && call.ended.is_none());
        if let Some(busy) = busy.map(Call::said).filter(|_| inner.stop_after.is_empty() && inner.holds.is_empty()) {
            inner.faults.push(format!("instance {} is closed during {busy}", self.number));
        }
    }

    async fn parameterize(&self, request: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError> {
        let inner = &mut *self.world.inner();
        if inner.instances[self.number].configured > 0 {
            inner.faults.push(format!("instance {} is narrowed after it was configured", self.number));
        }
        inner.parameterized.push(request.clone());
        match request {
            ParameterizeRequest::Value { name, version, .. } => match inner.script.get(&format!("parameterize {name}"))
            {
                Some(Goes::Gone) => Ok(ParameterizeReply { name: "another".to_owned(), version }),
                Some(goes) => Err(failure(Method::Parameterize, *goes)),
                None => Ok(ParameterizeReply { name, version }),
            },
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
        let inner = &mut *self.world.inner();
        inner.called.push((inner.instances[self.number].name.clone(), request));
        Ok(CallReply { result, ..CallReply::default() })
    }

    async fn construct(&self, request: ConstructRequest) -> Result<ConstructReply, ProviderError> {
        let failed = |message: String| ProviderError::Failed {
            method: Method::Construct,
            message,
            indeterminate: false,
            source: None,
        };
        let said = format!("construct {}", request.name);
        self.world.inner().constructed.push(request.clone());
        if self.world.inner().script.contains_key(&said) {
            return Err(failed(format!("{said} fails")));
        }
        tests::comp::one_child(request).await.map_err(|status| failed(status.message().to_owned()))
    }

    async fn mappings(&self, _: &str) -> Result<Option<Vec<String>>, ProviderError> {
        Ok(None)
    }

    async fn mapping(&self, _: &str, _: &str) -> Result<Option<(String, Vec<u8>)>, ProviderError> {
        Ok(None)
    }
}
