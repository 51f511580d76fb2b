//! Lease of an instance: the provider that a run calls.
//!
//! The configuration is not known when a lease begins. Until Configure it stands on an instance that is likely to have that
//! configuration, and moves to another one if it has a different one. CheckConfig and DiffConfig depend on no earlier call,
//! so a configured instance can reply to them: an idle one, or one that another lease of the run has.
//!
//! Leases of a plugin whose provider resources share instances have the same instance until Configure, and after it with all
//! leases that are configured alike.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pulumi_proto::urn::Urn;
use tokio::sync::{RwLock, RwLockReadGuard};

use super::HostError;
use super::instance::{Configuration, Instance};
use super::pool::Pooled as _;
use super::run::{Plugin, Run};
use super::sharing::SharedInstance;
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
/// No other lease has its instance, unless it is shared. Until Configure, another lease of the run may call an instance that is
/// not shared beside the lease that has it, which waits for such calls before it gives the instance back. Closing a lease gives
/// its instance back, and dropping it kills the process; that of a shared instance, when its last lease ends.
pub(super) struct Lease {
    run: Arc<Run>,
    plugin: Arc<Plugin>,
    version: Option<String>,
    state: Mutex<LeaseState>,
    /// Held for reading by calls of other leases on the instance of this one.
    calls_of_others: RwLock<()>,
}

struct LeaseState {
    source: Source,
    parameters: Option<ParameterizeRequest>,
}

/// Instance that a lease calls.
enum Source {
    /// Instance of this lease.
    Own(Arc<Instance>),
    /// Instance of another lease of the run, which is configured for the same provider resource. Only until Configure.
    Other(Arc<Lease>),
    /// Instance of this lease and others.
    Shared(Arc<SharedInstance>),
    /// No instance: it was given back.
    Closed,
}

impl Lease {
    /// Leases an instance for the provider resource with this name. `other` returns a lease of the run that [`Lease::serves`]
    /// it.
    pub(super) async fn begin(
        run: &Arc<Run>,
        plugin: &Arc<Plugin>,
        name: &str,
        other: impl FnOnce() -> Option<Arc<Self>>,
    ) -> Result<Arc<Self>, HostError> {
        if plugin.declared.shares_instances() {
            return Self::begin_shared(run, plugin).await;
        }
        let is_candidate = |instance: &Instance| match instance.configuration.get() {
            Some(configuration) => (configuration.request.urn.name() == name).then_some(1),
            None => Some(0),
        };
        let idle = run.lease_idle(plugin, is_candidate);
        let (source, version) = match idle {
            Some(instance) => Self::own(instance),
            None => match other() {
                Some(other) => {
                    let version = other.version.clone();
                    (Source::Other(other), version)
                }
                None => Self::own(run.lease_started(plugin).await?),
            },
        };
        Ok(Self::new(run, plugin, source, version))
    }

    async fn begin_shared(run: &Arc<Run>, plugin: &Arc<Plugin>) -> Result<Arc<Self>, HostError> {
        let shared = plugin.shared.any();
        let instance = shared.started(async |wanted| run.lease(plugin, rank_for(wanted)).await).await?;
        let version = instance.provider.version().map(str::to_owned);
        Ok(Self::new(run, plugin, Source::Shared(shared), version))
    }

    fn new(run: &Arc<Run>, plugin: &Arc<Plugin>, source: Source, version: Option<String>) -> Arc<Self> {
        let state = Mutex::new(LeaseState { source, parameters: None });
        let (run, plugin) = (Arc::clone(run), Arc::clone(plugin));
        Arc::new(Self { run, plugin, version, state, calls_of_others: RwLock::default() })
    }

    fn own(instance: Arc<Instance>) -> (Source, Option<String>) {
        let version = instance.provider.version().map(str::to_owned);
        (Source::Own(instance), version)
    }

    /// Returns whether this lease has a running instance that is configured for the provider resource with this name, and
    /// serves the plugin's own package.
    pub(super) fn serves(&self, name: &str) -> bool {
        self.instance().is_some_and(|instance| {
            let configured = instance.configuration.get();
            let is_alike = |known: &Configuration| known.request.urn.name() == name && known.parameters.is_none();
            configured.is_some_and(is_alike) && instance.is_alive()
        })
    }

    fn lock(&self) -> MutexGuard<'_, LeaseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the instance of this lease; `None` if it has none, or has given it back.
    pub(super) fn instance(&self) -> Option<Arc<Instance>> {
        match &self.lock().source {
            Source::Own(instance) => Some(Arc::clone(instance)),
            Source::Shared(shared) => shared.instance().cloned(),
            Source::Other(_) | Source::Closed => None,
        }
    }

    fn shared(&self) -> Option<Arc<SharedInstance>> {
        match &self.lock().source {
            Source::Shared(shared) => Some(Arc::clone(shared)),
            Source::Own(_) | Source::Other(_) | Source::Closed => None,
        }
    }

    /// Returns whether the lease was closed.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.lock().source, Source::Closed)
    }

    /// Returns the lease whose instance this one calls, if it is another one.
    fn other(&self) -> Option<Arc<Self>> {
        match &self.lock().source {
            Source::Other(other) => Some(Arc::clone(other)),
            Source::Own(_) | Source::Shared(_) | Source::Closed => None,
        }
    }

    /// Returns whether this is a lease of an instance of a plugin.
    pub(super) fn is_of(&self, plugin: &Arc<Plugin>) -> bool {
        Arc::ptr_eq(&self.plugin, plugin)
    }

    /// Returns the instance of this lease. A lease that calls another one's gets its own.
    async fn open_instance(&self, method: Method) -> Result<Arc<Instance>, ProviderError> {
        if self.other().is_some() {
            return self.move_to(None, method).await;
        }
        self.instance().ok_or_else(|| self.closed_error(method))
    }

    fn closed_error(&self, method: Method) -> ProviderError {
        ProviderError::Failed {
            method,
            message: format!("the plugin {} is closed", self.plugin.name()),
            indeterminate: false,
            source: None,
            details: None,
        }
    }

    /// Returns the instance for a call after Configure. An instance without configuration is not kept after it.
    async fn configured_instance(&self, method: Method) -> Result<Arc<Instance>, ProviderError> {
        let instance = self.open_instance(method).await?;
        if instance.configuration.get().is_none() {
            instance.use_up();
        }
        Ok(instance)
    }

    /// Returns the instance of this lease for a call of another one, if it is configured for the provider resource. The lease
    /// keeps it until the guard is dropped.
    async fn instance_for_other(&self, urn: &Urn) -> Option<(RwLockReadGuard<'_, ()>, Arc<Instance>)> {
        let guard = self.calls_of_others.read().await;
        let instance = self.instance().filter(|_| self.serves(urn.name()))?;
        let is_same = instance.configuration.get().is_some_and(|configured| configured.request.urn == *urn);
        is_same.then_some((guard, instance))
    }

    /// Returns the instance for a call before Configure: not one that is configured for another provider resource.
    async fn instance_for(&self, urn: &Urn, method: Method) -> Result<Arc<Instance>, ProviderError> {
        let instance = self.open_instance(method).await?;
        match instance.configuration.get() {
            Some(configuration) if configuration.request.urn != *urn && self.shared().is_none() => {
                self.move_to(None, method).await
            }
            Some(_) | None => Ok(instance),
        }
    }

    /// Configures the instance that this lease shares, or moves to another one if that has a different configuration.
    async fn configure_shared(&self, current: Arc<SharedInstance>, wanted: Configuration) -> Result<(), ProviderError> {
        let shared = self.plugin.shared.with_configuration(&wanted, &current);
        if !Arc::ptr_eq(&shared, &current) {
            let before = self.replace(Source::Shared(Arc::clone(&shared)));
            self.end_use(before).await;
        }
        // If the lease was closed meanwhile, this is the last use.
        self.end_use(Source::Shared(current)).await;
        let started = shared.started(async |wanted| self.run.lease(&self.plugin, rank_for(wanted)).await).await;
        let configured = match started {
            Ok(instance) => shared.configure(instance, wanted, self.run.id).await,
            Err(error) => Err(not_started(Method::Configure, error)),
        };
        self.end_use(Source::Shared(shared)).await;
        configured
    }

    /// Replaces the source of an open lease, and returns the one before. Returns `source` itself if the lease is closed.
    fn replace(&self, source: Source) -> Source {
        let mut state = self.lock();
        match state.source {
            Source::Closed => source,
            Source::Own(_) | Source::Other(_) | Source::Shared(_) => std::mem::replace(&mut state.source, source),
        }
    }

    /// Gives the instance of a source back, unless other leases use it.
    async fn end_use(&self, source: Source) {
        match source {
            Source::Own(instance) => self.give_back(instance).await,
            Source::Shared(shared) => {
                if let Some(instance) = self.plugin.shared.release(shared) {
                    self.give_back(instance).await;
                }
            }
            Source::Other(_) | Source::Closed => {}
        }
    }

    /// Moves to another instance: an idle one with the configuration `wanted`, else one without any. The instance before is
    /// given back.
    async fn move_to(&self, wanted: Option<&Configuration>, method: Method) -> Result<Arc<Instance>, ProviderError> {
        let rank = |instance: &Instance| match instance.configuration.get() {
            Some(configuration) => (wanted == Some(configuration)).then_some(1),
            None => Some(0),
        };
        let next = self.run.lease(&self.plugin, rank).await.map_err(|error| not_started(method, error))?;
        let parameters = self.lock().parameters.clone();
        self.end_use(self.replace(Source::Own(Arc::clone(&next)))).await;
        if self.is_closed() {
            return Err(self.closed_error(method));
        }
        if let Some(parameters) = parameters.filter(|_| next.is_unconfigured()) {
            next.parameterize(parameters).await?;
        }
        Ok(next)
    }

    async fn give_back(&self, instance: Arc<Instance>) {
        let is_kept = self.plugin.declared.config.keep == Keep::Run;
        // No further call of another lease begins: the instance is not in this lease any more.
        drop(self.calls_of_others.write().await);
        let keep = is_kept && instance.is_reusable() && !self.run.settings.abort.is_cancelled();
        self.run.pool().give_back(&self.plugin.group, instance, keep).await;
    }
}

/// Returns the rank of an idle instance for a shared one with the configuration `wanted`.
fn rank_for(wanted: Option<&Configuration>) -> impl Fn(&Instance) -> Option<u8> {
    move |instance| match (instance.configuration.get(), wanted) {
        (Some(configuration), Some(wanted)) => configuration.is_alike(wanted).then_some(1),
        (Some(_), None) => Some(1),
        (None, _) => Some(0),
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
        let instance = self.instance().or_else(|| self.other()?.instance());
        instance.map(|instance| instance.provider.capabilities()).unwrap_or_default()
    }

    fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    fn can_repeat_mutations(&self) -> bool {
        self.plugin.declared.config.retry.mutations
    }

    async fn parameterize(&self, request: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError> {
        const METHOD: Method = Method::Parameterize;
        // A package of many is not shared.
        let instance = match self.shared() {
            Some(_) => self.move_to(None, METHOD).await?,
            None => self.open_instance(METHOD).await?,
        };
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
        let instance = self.open_instance(Method::GetSchema).await?;
        instance.call(instance.provider.schema(request)).await
    }

    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        if let Some(other) = self.other()
            && let Some((_guard, instance)) = other.instance_for_other(&request.urn).await
        {
            return instance.call(instance.provider.check_config(request)).await;
        }
        let instance = self.instance_for(&request.urn, Method::CheckConfig).await?;
        instance.call(instance.provider.check_config(request)).await
    }

    async fn diff_config(&self, request: DiffConfigRequest) -> Result<DiffReply, ProviderError> {
        if let Some(other) = self.other()
            && let Some((_guard, instance)) = other.instance_for_other(&request.urn).await
        {
            return instance.call(instance.provider.diff_config(request)).await;
        }
        let instance = self.instance_for(&request.urn, Method::DiffConfig).await?;
        instance.call(instance.provider.diff_config(request)).await
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        const METHOD: Method = Method::Configure;
        let parameters = self.lock().parameters.clone();
        let wanted = Configuration { parameters, request, init: self.plugin.declared.init.clone() };
        if let Some(shared) = self.shared() {
            return self.configure_shared(shared, wanted).await;
        }
        let instance = match self.instance() {
            Some(instance) if instance.configuration.get().is_none_or(|known| *known == wanted) => instance,
            Some(_) | None => self.move_to(Some(&wanted), METHOD).await?,
        };
        if instance.configuration.get().is_some() { Ok(()) } else { instance.configure(wanted, self.run.id).await }
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckReply, ProviderError> {
        let instance = self.configured_instance(Method::Check).await?;
        instance.call(instance.provider.check(request)).await
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffReply, ProviderError> {
        let instance = self.configured_instance(Method::Diff).await?;
        instance.call(instance.provider.diff(request)).await
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateReply, ProviderError> {
        let instance = self.configured_instance(Method::Create).await?;
        instance.call(instance.provider.create(request)).await
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadReply, ProviderError> {
        let instance = self.configured_instance(Method::Read).await?;
        instance.call(instance.provider.read(request)).await
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateReply, ProviderError> {
        let instance = self.configured_instance(Method::Update).await?;
        instance.call(instance.provider.update(request)).await
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        let instance = self.configured_instance(Method::Delete).await?;
        instance.call(instance.provider.delete(request)).await
    }

    async fn list(&self, request: ListRequest) -> Result<ListReply, ProviderError> {
        let instance = self.configured_instance(Method::List).await?;
        instance.call(instance.provider.list(request)).await
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeReply, ProviderError> {
        let instance = self.configured_instance(Method::Invoke).await?;
        instance.call(instance.provider.invoke(request)).await
    }

    async fn call(&self, mut request: CallRequest) -> Result<CallReply, ProviderError> {
        let instance = self.configured_instance(Method::Call).await?;
        request.run.monitor_endpoint = request.run.monitor_endpoint.map(|monitor| instance.monitor_address(monitor));
        instance.call(instance.provider.call(request)).await
    }

    async fn construct(&self, mut request: ConstructRequest) -> Result<ConstructReply, ProviderError> {
        let instance = self.configured_instance(Method::Construct).await?;
        request.run.monitor_endpoint = request.run.monitor_endpoint.map(|monitor| instance.monitor_address(monitor));
        instance.call(instance.provider.construct(request)).await
    }

    async fn mappings(&self, key: &str) -> Result<Option<Vec<String>>, ProviderError> {
        let instance = self.open_instance(Method::GetMappings).await?;
        instance.call(instance.provider.mappings(key)).await
    }

    async fn mapping(&self, key: &str, name: &str) -> Result<Option<(String, Vec<u8>)>, ProviderError> {
        let instance = self.open_instance(Method::GetMapping).await?;
        instance.call(instance.provider.mapping(key, name)).await
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        if self.shared().is_some_and(|shared| !shared.is_first_cancel()) {
            return Ok(());
        }
        // A lease that calls the instance of another one is cancelled with that one.
        match self.instance() {
            Some(instance) => {
                instance.use_up();
                instance.provider.cancel().await
            }
            None => Ok(()),
        }
    }

    async fn close(&self) {
        let source = std::mem::replace(&mut self.lock().source, Source::Closed);
        self.end_use(source).await;
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("plugin", &self.plugin.name()).finish_non_exhaustive()
    }
}
