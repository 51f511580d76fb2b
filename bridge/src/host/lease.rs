//! Lease of an instance: the provider that a run calls.
//!
//! The configuration is not known when a lease begins. Until Configure it stands on an instance that is likely to have that
//! configuration, and moves to another one if it has a different one. CheckConfig and DiffConfig depend on no earlier call,
//! so a configured instance can reply to them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pulumi_proto::urn::Urn;

use super::HostError;
use super::instance::{Configuration, Instance};
use super::run::{Plugin, Run};
use crate::error::{Hint as _, cause};
use crate::plugin::Keep;
use crate::provider::{
    CallReply, CallRequest, Capabilities, CheckConfigRequest, CheckReply, CheckRequest, ConfigureRequest,
    ConstructReply, ConstructRequest, CreateReply, CreateRequest, DeleteRequest, DiffConfigRequest, DiffReply,
    DiffRequest, InvokeReply, InvokeRequest, ListReply, ListRequest, Method, ParameterizeReply, ParameterizeRequest,
    Provider, ProviderError, ReadReply, ReadRequest, SchemaRequest, UpdateReply, UpdateRequest,
};

/// Lease of an instance of a plugin.
///
/// # Invariants
/// No other lease has its instance. Closing it gives the instance back; dropping it kills the process.
pub(super) struct Lease {
    run: Arc<Run>,
    plugin: Arc<Plugin>,
    version: Option<String>,
    state: Mutex<LeaseState>,
}

struct LeaseState {
    /// `None` once the instance was given back.
    instance: Option<Arc<Instance>>,
    parameters: Option<ParameterizeRequest>,
}

impl Lease {
    /// Leases an instance for the provider resource with this name.
    pub(super) async fn begin(run: &Arc<Run>, plugin: &Arc<Plugin>, name: &str) -> Result<Arc<Self>, HostError> {
        let is_candidate = |instance: &Instance| match instance.configuration.get() {
            Some(configuration) => (configuration.request.urn.name() == name).then_some(1),
            None => Some(0),
        };
        let idle = run.lease_idle(plugin, is_candidate);
        let instance = match idle {
            Some(instance) => instance,
            None => run.lease_started(plugin).await?,
        };
        let version = instance.provider.version().map(str::to_owned);
        let state = Mutex::new(LeaseState { instance: Some(instance), parameters: None });
        Ok(Arc::new(Self { run: Arc::clone(run), plugin: Arc::clone(plugin), version, state }))
    }

    fn lock(&self) -> MutexGuard<'_, LeaseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the instance; `None` once it was given back.
    pub(super) fn instance(&self) -> Option<Arc<Instance>> {
        self.lock().instance.clone()
    }

    /// Returns whether this is a lease of an instance of a plugin.
    pub(super) fn is_of(&self, plugin: &Arc<Plugin>) -> bool {
        Arc::ptr_eq(&self.plugin, plugin)
    }

    fn open_instance(&self, method: Method) -> Result<Arc<Instance>, ProviderError> {
        self.instance().ok_or_else(|| ProviderError::Failed {
            method,
            message: format!("the plugin {} is closed", self.plugin.name()),
            indeterminate: false,
            source: None,
            details: None,
        })
    }

    /// Returns the instance for a call after Configure. An instance without configuration is not kept after it.
    fn configured_instance(&self, method: Method) -> Result<Arc<Instance>, ProviderError> {
        let instance = self.open_instance(method)?;
        if instance.configuration.get().is_none() {
            instance.use_up();
        }
        Ok(instance)
    }

    /// Returns the instance for a call before Configure: not one that is configured for another provider resource.
    async fn instance_for(&self, urn: &Urn, method: Method) -> Result<Arc<Instance>, ProviderError> {
        let instance = self.open_instance(method)?;
        match instance.configuration.get() {
            Some(configuration) if configuration.request.urn != *urn => self.move_to(None, method).await,
            Some(_) | None => Ok(instance),
        }
    }

    /// Moves to another instance: an idle one with the configuration `wanted`, else one without any. The instance before is
    /// given back.
    async fn move_to(&self, wanted: Option<&Configuration>, method: Method) -> Result<Arc<Instance>, ProviderError> {
        let rank = |instance: &Instance| match instance.configuration.get() {
            Some(configuration) => (wanted == Some(configuration)).then_some(1),
            None => Some(0),
        };
        let idle = self.run.lease_idle(&self.plugin, rank);
        let next = match idle {
            Some(instance) => instance,
            None => self.run.lease_started(&self.plugin).await.map_err(|error| not_started(method, error))?,
        };
        let (before, parameters) = {
            let mut state = self.lock();
            (state.instance.replace(Arc::clone(&next)), state.parameters.clone())
        };
        if let Some(before) = before {
            self.give_back(before).await;
        }
        if let Some(parameters) = parameters.filter(|_| next.is_unconfigured()) {
            next.parameterize(parameters).await?;
        }
        Ok(next)
    }

    async fn give_back(&self, instance: Arc<Instance>) {
        let is_kept = self.plugin.declared.config.keep == Keep::Run;
        let keep = is_kept && instance.is_reusable() && !self.run.settings.abort.is_cancelled();
        self.run.pool().give_back(&self.plugin.group, instance, keep).await;
    }
}

/// Returns the error of a call whose instance does not start.
fn not_started(method: Method, error: HostError) -> ProviderError {
    let message = match error.hint() {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    };
    let source = error.into_cause().map(cause);
    ProviderError::Failed { method, message, indeterminate: false, source, details: None }
}

#[async_trait]
impl Provider for Lease {
    fn capabilities(&self) -> Capabilities {
        self.instance().map(|instance| instance.provider.capabilities()).unwrap_or_default()
    }

    fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    fn can_repeat_mutations(&self) -> bool {
        self.plugin.declared.config.retry.mutations
    }

    async fn parameterize(&self, request: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError> {
        const METHOD: Method = Method::Parameterize;
        let instance = self.open_instance(METHOD)?;
        self.lock().parameters = Some(request.clone());
        let instance = match instance.parameters.get() {
            Some((known, _)) if *known == request => instance,
            None if instance.is_unconfigured() => instance,
            Some(_) | None => self.move_to(None, METHOD).await?,
        };
        match instance.parameters.get() {
            Some((_, reply)) => Ok(reply.clone()),
            None => instance.parameterize(request).await,
        }
    }

    async fn schema(&self, request: SchemaRequest) -> Result<Option<String>, ProviderError> {
        let instance = self.open_instance(Method::GetSchema)?;
        instance.call(instance.provider.schema(request)).await
    }

    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        let instance = self.instance_for(&request.urn, Method::CheckConfig).await?;
        instance.call(instance.provider.check_config(request)).await
    }

    async fn diff_config(&self, request: DiffConfigRequest) -> Result<DiffReply, ProviderError> {
        let instance = self.instance_for(&request.urn, Method::DiffConfig).await?;
        instance.call(instance.provider.diff_config(request)).await
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        const METHOD: Method = Method::Configure;
        let instance = self.open_instance(METHOD)?;
        let parameters = self.lock().parameters.clone();
        let wanted = Configuration { parameters, request, init: self.plugin.declared.init.clone() };
        let is_other = instance.configuration.get().is_some_and(|known| *known != wanted);
        let instance = if is_other { self.move_to(Some(&wanted), METHOD).await? } else { instance };
        if instance.configuration.get().is_some() { Ok(()) } else { instance.configure(wanted, self.run.id).await }
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckReply, ProviderError> {
        let instance = self.configured_instance(Method::Check)?;
        instance.call(instance.provider.check(request)).await
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffReply, ProviderError> {
        let instance = self.configured_instance(Method::Diff)?;
        instance.call(instance.provider.diff(request)).await
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateReply, ProviderError> {
        let instance = self.configured_instance(Method::Create)?;
        instance.call(instance.provider.create(request)).await
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadReply, ProviderError> {
        let instance = self.configured_instance(Method::Read)?;
        instance.call(instance.provider.read(request)).await
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateReply, ProviderError> {
        let instance = self.configured_instance(Method::Update)?;
        instance.call(instance.provider.update(request)).await
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        let instance = self.configured_instance(Method::Delete)?;
        instance.call(instance.provider.delete(request)).await
    }

    async fn list(&self, request: ListRequest) -> Result<ListReply, ProviderError> {
        let instance = self.configured_instance(Method::List)?;
        instance.call(instance.provider.list(request)).await
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeReply, ProviderError> {
        let instance = self.configured_instance(Method::Invoke)?;
        instance.call(instance.provider.invoke(request)).await
    }

    async fn call(&self, request: CallRequest) -> Result<CallReply, ProviderError> {
        let instance = self.configured_instance(Method::Call)?;
        instance.call(instance.provider.call(request)).await
    }

    async fn construct(&self, request: ConstructRequest) -> Result<ConstructReply, ProviderError> {
        let instance = self.configured_instance(Method::Construct)?;
        instance.call(instance.provider.construct(request)).await
    }

    async fn mappings(&self, key: &str) -> Result<Option<Vec<String>>, ProviderError> {
        let instance = self.open_instance(Method::GetMappings)?;
        instance.call(instance.provider.mappings(key)).await
    }

    async fn mapping(&self, key: &str, name: &str) -> Result<Option<(String, Vec<u8>)>, ProviderError> {
        let instance = self.open_instance(Method::GetMapping)?;
        instance.call(instance.provider.mapping(key, name)).await
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        match self.instance() {
            Some(instance) => {
                instance.use_up();
                instance.provider.cancel().await
            }
            None => Ok(()),
        }
    }

    async fn close(&self) {
        let instance = self.lock().instance.take();
        if let Some(instance) = instance {
            self.give_back(instance).await;
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("plugin", &self.plugin.name()).finish_non_exhaustive()
    }
}
