//! A cloud in memory, and the provider that manages it.
//!
//! Enters: what a test wants to go wrong, and what it wants to hold up. Leaves: the calls, and the faults: promises that
//! an engine owes to providers whatever the test is about (configured once, closed once, nothing changed in a preview,
//! nothing deleted twice).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bridge::host::{BootRequest, HostError, ProviderHost};
use bridge::provider::{
    CallReply, CallRequest, Capabilities, CheckConfigRequest, CheckFailure, CheckReply, CheckRequest, ConfigureRequest,
    ConstructReply, ConstructRequest, CreateReply, CreateRequest, DeleteRequest, DiffChanges, DiffConfigRequest,
    DiffReply, DiffRequest, InvokeReply, InvokeRequest, ListReply, ListRequest, ParameterizeReply, ParameterizeRequest,
    PartialFailure, Provider, ProviderError, ReadReply, ReadRequest, SchemaRequest, UpdateReply, UpdateRequest,
};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use tokio_util::sync::CancellationToken;

/// How a call goes, if not well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goes {
    /// It fails, and nothing happened.
    Wrong,
    /// It is done, and what came of it does not come up.
    HalfWell,
    /// The plugin dies.
    Down,
    /// Nothing is there (Read).
    Gone,
}

/// A call as it went.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// `create`, `delete`, …
    pub(crate) verb: &'static str,
    /// The resource's name.
    pub(crate) name: String,
    /// Its id, where it has one.
    pub(crate) id: String,
    /// Which instance was asked.
    pub(crate) instance: usize,
    /// When it began and ended, in calls.
    pub(crate) began: usize,
    pub(crate) ended: Option<usize>,
    /// What was sent as the new inputs.
    pub(crate) news: PropertyMap,
}

impl Call {
    /// `create a`, `delete a-1`.
    pub(crate) fn said(&self) -> String {
        match self.verb {
            "delete" | "update" | "read" => format!("{} {}", self.verb, self.id),
            verb => format!("{verb} {}", self.name),
        }
    }
}

/// A cloud in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    clock: usize,
    calls: Vec<Call>,
    script: BTreeMap<String, Goes>,
    holds: BTreeMap<String, Held>,
    instances: Vec<InstanceBook>,
    /// Ids of what there is.
    existing: BTreeSet<String>,
    made: BTreeMap<String, usize>,
    /// What Read finds changed, by id.
    drift: BTreeMap<String, PropertyMap>,
    faults: Vec<String>,
    forgiving: bool,
    restless: bool,
    invoke_refused: bool,
    checked: Vec<CheckRequest>,
    constructed: Vec<ConstructRequest>,
    called: Vec<CallRequest>,
    stop_after: Option<(usize, CancellationToken)>,
}

#[derive(Debug, Default)]
struct InstanceBook {
    name: String,
    configured: usize,
    cancelled: usize,
    closed: usize,
}

#[derive(Clone, Debug, Default)]
struct Held {
    reached: CancellationToken,
    released: CancellationToken,
}

/// A call that waits until the test lets it go on.
#[derive(Clone, Debug)]
pub(crate) struct Hold(Held);

impl Hold {
    /// Waits until the call has begun.
    pub(crate) async fn reached(&self) {
        self.0.reached.cancelled().await;
    }

    /// Whether the call has begun.
    pub(crate) fn is_reached(&self) -> bool {
        self.0.reached.is_cancelled()
    }

    /// Lets it go on.
    pub(crate) fn release(&self) {
        self.0.released.cancel();
    }
}

/// Lets everything that can go on go on.
pub(crate) async fn calm() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

impl World {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call go wrong: `create a`, `delete a-1`, `checkconfig p`.
    pub(crate) fn when(&self, call: &str, goes: Goes) -> &Self {
        self.inner().script.insert(call.to_owned(), goes);
        self
    }

    /// The inputs that it was asked about.
    pub(crate) fn checked(&self) -> Vec<CheckRequest> {
        self.inner().checked.clone()
    }

    /// What its plugin was asked to construct.
    pub(crate) fn constructed(&self) -> Vec<ConstructRequest> {
        self.inner().constructed.clone()
    }

    /// The methods that its plugin was asked for.
    pub(crate) fn called(&self) -> Vec<CallRequest> {
        self.inner().called.clone()
    }

    /// Forgets what was to go wrong.
    pub(crate) fn mend(&self) -> &Self {
        self.inner().script.clear();
        self
    }

    /// Makes a call wait.
    pub(crate) fn hold(&self, call: &str) -> Hold {
        let held = Held::default();
        self.inner().holds.insert(call.to_owned(), held.clone());
        Hold(held)
    }

    /// Makes a Read find something else.
    pub(crate) fn drift(&self, id: &str, inputs: PropertyMap) {
        self.inner().drift.insert(id.to_owned(), inputs);
    }

    /// Makes functions refuse their arguments.
    pub(crate) fn refuse_invokes(&self) {
        self.inner().invoke_refused = true;
    }

    /// Deletes of what is not there are no faults: the state did not come from this world.
    pub(crate) fn forgive(&self) {
        self.inner().forgiving = true;
    }

    /// Calls take turns in an order that hangs on their names.
    pub(crate) fn be_restless(&self) {
        self.inner().restless = true;
    }

    /// Pulls a signal when so many calls more have begun.
    pub(crate) fn pull_after(&self, calls: usize, signal: CancellationToken) {
        let mut inner = self.inner();
        let at = inner.calls.len() + calls;
        inner.stop_after = Some((at, signal));
    }

    /// Forgets what was to go wrong and which signal was to be pulled.
    pub(crate) fn calm_down(&self) {
        let mut inner = self.inner();
        inner.script.clear();
        inner.stop_after = None;
    }

    /// Puts something there.
    pub(crate) fn add(&self, id: &str) {
        self.inner().existing.insert(id.to_owned());
    }

    /// Ids of what there is.
    pub(crate) fn existing(&self) -> BTreeSet<String> {
        self.inner().existing.clone()
    }

    /// All calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.inner().calls.clone()
    }

    /// How often a call was made, in all runs.
    pub(crate) fn count(&self, said: &str) -> usize {
        self.inner().calls.iter().filter(|call| call.said() == said).count()
    }

    /// How often instances of a provider resource were started.
    pub(crate) fn boots(&self, name: &str) -> usize {
        self.inner().instances.iter().filter(|instance| instance.name == name).count()
    }

    /// How many instances were cancelled by a call of its own, and how many closed.
    pub(crate) fn closed(&self) -> usize {
        self.inner().instances.iter().filter(|instance| instance.closed > 0).count()
    }

    /// How many instances of a provider resource were asked to come to an end.
    pub(crate) fn cancelled(&self, name: &str) -> usize {
        self.inner().instances.iter().filter(|instance| instance.name == name && instance.cancelled > 0).count()
    }

    /// Broken promises, once a run has ended.
    pub(crate) fn faults(&self) -> Vec<String> {
        let inner = self.inner();
        let mut faults = inner.faults.clone();
        for (number, instance) in inner.instances.iter().enumerate() {
            if instance.closed == 0 {
                faults.push(format!("instance {number} of {} was not closed", instance.name));
            }
        }
        faults
    }

    fn fault(&self, text: String) {
        self.inner().faults.push(text);
    }
}

#[async_trait]
impl ProviderHost for World {
    async fn boot(&self, request: &BootRequest) -> Result<Arc<dyn Provider>, HostError> {
        let key = format!("boot {}", request.name);
        let (number, goes) = {
            let mut inner = self.inner();
            inner.instances.push(InstanceBook { name: request.name.clone(), ..InstanceBook::default() });
            (inner.instances.len() - 1, inner.script.get(&key).copied())
        };
        if goes.is_some() {
            self.inner().instances[number].closed = 1;
            return Err(HostError { message: format!("{} cannot be started", request.name), hint: String::new() });
        }
        Ok(Arc::new(Instance { world: self.clone(), number }))
    }
}

/// One instance of the provider.
#[derive(Debug)]
struct Instance {
    world: World,
    number: usize,
}

impl Instance {
    /// Notes a call, and lets it take its time. Returns its number and how it goes.
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
            news: news.clone(),
        };
        let said = call.said();
        let (number, goes, held, turns) = {
            let inner = &mut *self.world.inner();
            inner.clock += 1;
            let began = inner.clock;
            inner.calls.push(Call { began, ..call });
            if let Some((at, signal)) = &inner.stop_after
                && inner.calls.len() >= *at
            {
                signal.cancel();
            }
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

    /// A call that may fail and has no other effect.
    async fn ask(
        &self,
        verb: &'static str,
        method: &'static str,
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

fn failure(method: &'static str, goes: Goes) -> ProviderError {
    match goes {
        Goes::Down => ProviderError::Died {
            plugin: "cloud".to_owned(),
            method,
            reached: true,
            status: "signal 9".to_owned(),
            stderr: Vec::new(),
        },
        _ => ProviderError::Failed { method, message: format!("{method} went wrong"), indeterminate: false },
    }
}

fn half_well(id: &str, outputs: PropertyMap) -> ProviderError {
    let failure = PartialFailure {
        id: id.to_owned(),
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

/// What differs: `k…` replaces, `d…` replaces and the old one goes first, anything else is an update.
fn compare(olds: &PropertyMap, news: &PropertyMap) -> DiffReply {
    let names: BTreeSet<&String> = olds.keys().chain(news.keys()).collect();
    let differs = |name: &&String| match (olds.get(*name), news.get(*name)) {
        (Some(old), Some(new)) => !old.without_wrappers().same_as(&new.without_wrappers()),
        _ => true,
    };
    let diffs: Vec<String> = names.into_iter().filter(differs).cloned().collect();
    let replaces: Vec<String> = diffs.iter().filter(|name| name.starts_with(['k', 'd'])).cloned().collect();
    DiffReply {
        changes: if diffs.is_empty() { DiffChanges::None } else { DiffChanges::Some },
        delete_before_replace: replaces.iter().any(|name| name.starts_with('d')),
        replaces,
        diffs,
        ..DiffReply::default()
    }
}

#[async_trait]
impl Provider for Instance {
    fn capabilities(&self) -> Capabilities {
        Capabilities { accept_secrets: true, supports_preview: true, ..Capabilities::default() }
    }

    fn version(&self) -> &str {
        "1.0.0"
    }

    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        self.ask("checkconfig", "CheckConfig", &request.urn, "", &request.news).await?;
        Ok(CheckReply { inputs: (*request.news).clone(), failures: Vec::new() })
    }

    async fn diff_config(&self, request: DiffConfigRequest) -> Result<DiffReply, ProviderError> {
        self.ask("diffconfig", "DiffConfig", &request.urn, "", &request.news).await?;
        Ok(compare(&request.old_inputs, &request.news))
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        self.world.inner().instances[self.number].configured += 1;
        if self.world.inner().instances[self.number].configured > 1 {
            self.world.fault(format!("instance {} is configured twice", self.number));
        }
        self.ask("configure", "Configure", &request.urn, "", &request.inputs).await
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckReply, ProviderError> {
        let (call, goes) = self.begin("check", &request.urn, "", &request.news).await;
        self.end(call);
        self.world.inner().checked.push(request.clone());
        let failures = match goes {
            Some(Goes::HalfWell) => vec![CheckFailure { property: "v".to_owned(), reason: "not allowed".to_owned() }],
            Some(goes) => return Err(failure("Check", goes)),
            None => Vec::new(),
        };
        Ok(CheckReply { inputs: (*request.news).clone(), failures })
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffReply, ProviderError> {
        self.ask("diff", "Diff", &request.urn, &request.id, &request.news).await?;
        Ok(compare(&request.old_inputs, &request.news))
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateReply, ProviderError> {
        let verb = if request.preview { "preview" } else { "create" };
        let (call, goes) = self.begin(verb, &request.urn, "", &request.inputs).await;
        self.end(call);
        if request.preview {
            return Ok(CreateReply { outputs: (*request.inputs).clone(), ..CreateReply::default() });
        }
        if let Some(goes @ (Goes::Wrong | Goes::Down)) = goes {
            return Err(failure("Create", goes));
        }
        let id = {
            let inner = &mut *self.world.inner();
            // Ids of another world are not given again.
            let first = if inner.forgiving { 100 } else { 0 };
            let made = inner.made.entry(request.urn.name().to_owned()).or_insert(first);
            *made += 1;
            let id = format!("{}-{made}", request.urn.name());
            inner.existing.insert(id.clone());
            inner.calls[call].id.clone_from(&id);
            id
        };
        let outputs = outputs(&id, &request.inputs);
        match goes {
            Some(Goes::HalfWell) => Err(half_well(&id, outputs)),
            _ => Ok(CreateReply { id, outputs, refresh_before_update: false }),
        }
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadReply, ProviderError> {
        let (call, goes) = self.begin("read", &request.urn, &request.id, &PropertyMap::new()).await;
        self.end(call);
        if let Some(goes @ (Goes::Wrong | Goes::Down)) = goes {
            return Err(failure("Read", goes));
        }
        if goes == Some(Goes::Gone) {
            return Ok(ReadReply::default());
        }
        let mut inputs = request.inputs.as_deref().cloned().unwrap_or_default();
        inputs.extend(self.world.inner().drift.get(&request.id).cloned().unwrap_or_default());
        let outputs = outputs(&request.id, &inputs);
        match goes {
            Some(Goes::HalfWell) => Err(half_well(&request.id, outputs)),
            _ => Ok(ReadReply {
                id: request.id,
                outputs: Some(outputs),
                inputs: Some(inputs),
                refresh_before_update: false,
            }),
        }
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateReply, ProviderError> {
        let verb = if request.preview { "preview-update" } else { "update" };
        let (call, goes) = self.begin(verb, &request.urn, &request.id, &request.news).await;
        self.end(call);
        if request.preview {
            return Ok(UpdateReply { outputs: (*request.news).clone(), refresh_before_update: false });
        }
        {
            let inner = &mut *self.world.inner();
            if !inner.forgiving && !inner.existing.contains(&request.id) {
                inner.faults.push(format!("update of {}, which is not there", request.id));
            }
        }
        let outputs = outputs(&request.id, &request.news);
        match goes {
            Some(Goes::HalfWell) => Err(half_well(&request.id, outputs)),
            Some(goes) => Err(failure("Update", goes)),
            None => Ok(UpdateReply { outputs, refresh_before_update: false }),
        }
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        let (call, goes) = self.begin("delete", &request.urn, &request.id, &PropertyMap::new()).await;
        self.end(call);
        if let Some(goes) = goes {
            return Err(failure("Delete", goes));
        }
        let inner = &mut *self.world.inner();
        if !inner.existing.remove(&request.id) && !inner.forgiving {
            inner.faults.push(format!("delete of {}, which is not there", request.id));
        }
        Ok(())
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeReply, ProviderError> {
        if self.world.inner().invoke_refused {
            let failure = CheckFailure { property: "name".to_owned(), reason: "no such thing".to_owned() };
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
        if let Some(busy) = busy.map(Call::said).filter(|_| inner.stop_after.is_none() && inner.holds.is_empty()) {
            inner.faults.push(format!("instance {} is closed during {busy}", self.number));
        }
    }

    async fn parameterize(&self, _: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: "Parameterize" })
    }

    async fn schema(&self, _: SchemaRequest) -> Result<Option<String>, ProviderError> {
        Ok(None)
    }

    async fn list(&self, _: ListRequest) -> Result<ListReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: "List" })
    }

    async fn call(&self, request: CallRequest) -> Result<CallReply, ProviderError> {
        let result = (*request.arguments).clone();
        self.world.inner().called.push(request);
        Ok(CallReply { result, ..CallReply::default() })
    }

    async fn construct(&self, request: ConstructRequest) -> Result<ConstructReply, ProviderError> {
        let failed = |message: String| ProviderError::Failed { method: "Construct", message, indeterminate: false };
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

/// A map of strings.
pub(crate) fn map(members: &[(&str, &str)]) -> PropertyMap {
    members.iter().map(|(key, value)| ((*key).to_owned(), PropertyValue::from(*value))).collect()
}
