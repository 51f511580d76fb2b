//! Lease of instances: the provider that a run calls for one provider resource.
//!
//! A lease has no instance until a call needs one. CheckConfig and DiffConfig go to an instance that is not configured, because
//! plugins may decode their inputs into the configuration with which they serve. All other calls go to the configured one:
//! an idle one with the same configuration, else the one that replied to CheckConfig, else a new one.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::future::join_all;
use pulumi_proto::urn::Urn;

use super::HostError;
use super::instance::{CheckedConfig, Configuration, Instance};
use super::run::{Plugin, Run};
use super::sharing::{Purpose, SharedInstance};
use crate::error::{Hint as _, cause};
use crate::plugin::Keep;
use crate::provider::{
    CallReply, CallRequest, Capabilities, CheckConfigRequest, CheckReply, CheckRequest, ConfigureRequest,
    ConstructReply, ConstructRequest, CreateReply, CreateRequest, DeleteRequest, DiffConfigRequest, DiffReply,
    DiffRequest, InvokeReply, InvokeRequest, ListReply, ListRequest, Method, ParameterizeReply, ParameterizeRequest,
    Provider, ProviderError, ReadReply, ReadRequest, SchemaRequest, UpdateReply, UpdateRequest,
};

/// Lease of instances of a plugin.
///
/// Pulumi starts one process for each provider resource and keeps it until the end of the run. This host starts a process only when
/// a call needs one, and lends idle ones again. Three facts about plugins limit that:
/// - A plugin may decode what CheckConfig or DiffConfig get into the configuration with which it serves, so that an instance that
///   has been configured never gets either, and an instance that has got them serves nobody else.
/// - A plugin keeps the configuration of its first Configure. Another configuration needs another instance.
/// - A lease that is dropped may have left a call under way, which a next one would meet: the process is killed, not lent again.
///
/// # Invariants
/// No instance receives CheckConfig or DiffConfig after Configure. After CheckConfig it receives DiffConfig of the same provider
/// resource, or of those that share instances, and then at most the Configure of a lease that has called CheckConfig on it.
/// No other lease has an instance of this one, unless it is shared. Closing a lease gives its instances back, and dropping it
/// kills their processes; those of a shared instance, when its last lease ends.
pub(super) struct InstanceLease {
    run: Arc<Run>,
    plugin: Arc<Plugin>,
    state: Mutex<LeaseState>,
}

#[derive(Default)]
struct LeaseState {
    parameters: Option<ParameterizeRequest>,
    /// Instance for CheckConfig and DiffConfig, from the first of them until Configure.
    checking: Option<Arc<SharedInstance>>,
    /// Instance for all other calls.
    serving: Option<Arc<SharedInstance>>,
    is_closed: bool,
}

impl InstanceLease {
    /// Begins a lease, without an instance.
    pub(super) fn new(run: &Arc<Run>, plugin: &Arc<Plugin>) -> Arc<Self> {
        Arc::new(Self { run: Arc::clone(run), plugin: Arc::clone(plugin), state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, LeaseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the instance that serves the package of these parameters, if this lease has one.
    pub(super) fn serving_instance(&self, wanted: Option<&ParameterizeRequest>) -> Option<Arc<Instance>> {
        let state = self.lock();
        let serving = state.serving.as_ref().filter(|_| state.parameters.as_ref() == wanted);
        serving.and_then(|shared| shared.instance()).cloned()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    pub(super) fn is_of(&self, plugin: &Arc<Plugin>) -> bool {
        Arc::ptr_eq(&self.plugin, plugin)
    }

    /// Returns an error once the lease was closed.
    fn check_open(&self, method: Method) -> Result<(), ProviderError> {
        if !self.is_closed() {
            return Ok(());
        }
        let message = format!("the plugin {} is closed", self.plugin.name());
        Err(ProviderError::Failed { method, message, indeterminate: false, source: None, details: None })
    }

    /// Sets the parameters that each instance gets before its first other call.
    pub(super) fn set_parameters(&self, parameters: ParameterizeRequest) {
        self.lock().parameters = Some(parameters);
    }

    fn parameters(&self) -> Option<ParameterizeRequest> {
        self.lock().parameters.clone()
    }

    /// Returns whether provider resources with equal inputs have one instance. A package of many is not shared.
    fn shares_instances(&self) -> bool {
        self.plugin.declared.shares_instances() && self.lock().parameters.is_none()
    }

    /// Returns an instance for CheckConfig and DiffConfig of a provider resource. The caller ends its use after the call.
    async fn checking(&self, urn: &Urn, method: Method) -> Result<(Arc<SharedInstance>, Arc<Instance>), ProviderError> {
        self.check_open(method)?;
        let urn = (!self.shares_instances()).then(|| urn.clone());
        let wanted = CheckedConfig { urn, parameters: self.parameters() };
        let shared = self.plugin.shared.get(Purpose::CheckConfig(wanted.clone()));
        self.end_use(self.replace(|state| &mut state.checking, &shared)).await;
        let start = async || {
            let instance = self.lease(method, |instance| instance.rank_to_check(&wanted)).await?;
            instance.begin_check(wanted.clone(), self.run.id);
            Ok(instance)
        };
        match shared.started(start).await.cloned() {
            Ok(instance) => Ok((shared, instance)),
            Err(error) => {
                self.end_use(Some(shared)).await;
                Err(error)
            }
        }
    }

    /// Returns the instance for all calls but CheckConfig and DiffConfig.
    async fn serving(&self, method: Method) -> Result<Arc<Instance>, ProviderError> {
        self.check_open(method)?;
        let shared = {
            let mut state = self.lock();
            let serving = state.serving.get_or_insert_with(|| SharedInstance::new(Purpose::Unconfigured));
            if let Some(instance) = serving.instance() {
                return Ok(Arc::clone(instance));
            }
            Arc::clone(serving)
        };
        let parameters = self.parameters();
        let start = async || self.lease(method, |instance| instance.rank_to_configure(parameters.as_ref())).await;
        let started = shared.started(start).await.cloned();
        // If the lease was closed meanwhile, this is the last use.
        self.end_use(Some(shared)).await;
        started
    }

    /// Returns the instance for a call after Configure. An instance without configuration is not kept after it.
    async fn configured_instance(&self, method: Method) -> Result<Arc<Instance>, ProviderError> {
        let instance = self.serving(method).await?;
        if instance.configuration.get().is_none() {
            instance.use_up();
        }
        Ok(instance)
    }

    /// Returns the instance that this lease has alone and configures next: the one that it has already, for a repeated
    /// Configure, else a new one, not started yet.
    fn serving_alone(&self, wanted: &Configuration) -> Arc<SharedInstance> {
        let state = self.lock();
        let is_suitable = |instance: &Arc<Instance>| instance.configuration.get().is_none_or(|known| known == wanted);
        let same = state.serving.as_ref().filter(|shared| shared.instance().is_some_and(is_suitable));
        same.cloned().unwrap_or_else(|| SharedInstance::new(Purpose::Serve(wanted.clone())))
    }

    /// Ends the use of the instance for CheckConfig. Returns it if no other lease has it.
    fn take_checked(&self) -> Option<Arc<Instance>> {
        let checking = self.lock().checking.take()?;
        self.plugin.shared.release(checking)
    }

    /// Returns an instance to be configured: an idle one that is configured already, else the one that this lease has checked the
    /// configuration on, else one that has received no CheckConfig.
    async fn start_to_serve(
        &self,
        wanted: &Configuration,
        checked: Option<Arc<Instance>>,
    ) -> Result<Arc<Instance>, ProviderError> {
        let shares = self.shares_instances();
        let idle = self.run.lease_idle(&self.plugin, |instance| instance.is_configured(wanted, shares).then_some(()));
        let instance = match (idle, checked) {
            (None, Some(checked)) if checked.can_be_configured(wanted) => checked,
            (idle, checked) => {
                if let Some(checked) = checked {
                    self.give_back(checked).await;
                }
                match idle {
                    Some(idle) => return Ok(idle),
                    None => {
                        let rank = |instance: &Instance| instance.rank_to_configure(wanted.parameters.as_ref());
                        self.lease(Method::Configure, rank).await?
                    }
                }
            }
        };
        Ok(instance)
    }

    /// Leases the idle instance with the highest rank, or a new one, which is parameterized as this lease is.
    async fn lease(
        &self,
        method: Method,
        rank: impl Fn(&Instance) -> Option<u8>,
    ) -> Result<Arc<Instance>, ProviderError> {
        let leased = self.run.lease(&self.plugin, rank).await;
        let instance = leased.map_err(|error| not_started(method, error))?;
        if let Some(parameters) = self.parameters()
            && let Err(error) = self.run.parameterize(&self.plugin, &instance, parameters).await
        {
            self.give_back(instance).await;
            return Err(error);
        }
        Ok(instance)
    }

    /// Replaces an instance of an open lease, and returns the one before. Returns `shared` itself if the lease is closed.
    fn replace(
        &self,
        slot: impl FnOnce(&mut LeaseState) -> &mut Option<Arc<SharedInstance>>,
        shared: &Arc<SharedInstance>,
    ) -> Option<Arc<SharedInstance>> {
        let mut state = self.lock();
        let shared = Arc::clone(shared);
        if state.is_closed { Some(shared) } else { slot(&mut state).replace(shared) }
    }

    /// Gives an instance back, unless other leases use it.
    async fn end_use(&self, shared: Option<Arc<SharedInstance>>) {
        if let Some(instance) = shared.and_then(|shared| self.plugin.shared.release(shared)) {
            self.give_back(instance).await;
        }
    }

    async fn give_back(&self, instance: Arc<Instance>) {
        // An instance that was neither checked nor configured is not one that a phase has used.
        let is_kept = self.plugin.declared.config.keep == Keep::Run || instance.is_new();
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
impl Provider for InstanceLease {
    fn capabilities(&self) -> Capabilities {
        let instance = {
            let state = self.lock();
            let known = state.serving.as_ref().or(state.checking.as_ref());
            known.and_then(|shared| shared.instance()).cloned()
        };
        match instance {
            Some(instance) => instance.provider.capabilities(),
            None => self.plugin.handshake.get().map(|known| known.capabilities).unwrap_or_default(),
        }
    }

    fn version(&self) -> Option<&str> {
        self.plugin.handshake.get()?.version.as_deref()
    }

    fn can_repeat_mutations(&self) -> bool {
        self.plugin.declared.config.retry.mutations
    }

    async fn parameterize(&self, request: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError> {
        const METHOD: Method = Method::Parameterize;
        self.check_open(METHOD)?;
        self.run.place_provider_of(&self.plugin, &request).await.map_err(|error| not_started(METHOD, error))?;
        self.set_parameters(request.clone());
        // Any instance of the package has the reply. The next call of this lease finds the instance again.
        let leased = self.run.lease(&self.plugin, |instance| instance.rank_to_parameterize(&request)).await;
        let instance = leased.map_err(|error| not_started(METHOD, error))?;
        let reply = self.run.parameterize(&self.plugin, &instance, request).await;
        self.give_back(instance).await;
        reply
    }

    async fn schema(&self, request: SchemaRequest) -> Result<Option<String>, ProviderError> {
        let instance = self.serving(Method::GetSchema).await?;
        instance.call(instance.provider.schema(request)).await
    }

    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        let (shared, instance) = self.checking(&request.urn, Method::CheckConfig).await?;
        let reply = instance.call(instance.provider.check_config(request)).await;
        self.end_use(Some(shared)).await;
        reply
    }

    async fn diff_config(&self, request: DiffConfigRequest) -> Result<DiffReply, ProviderError> {
        let (shared, instance) = self.checking(&request.urn, Method::DiffConfig).await?;
        let reply = instance.call(instance.provider.diff_config(request)).await;
        self.end_use(Some(shared)).await;
        reply
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        self.check_open(Method::Configure)?;
        let wanted = Configuration { parameters: self.parameters(), request, init: self.plugin.declared.init.clone() };
        let shares = self.shares_instances();
        let shared = match shares {
            true => self.plugin.shared.get(Purpose::Serve(wanted.clone())),
            false => self.serving_alone(&wanted),
        };
        self.end_use(self.replace(|state| &mut state.serving, &shared)).await;
        let mut checked = self.take_checked();
        if (shares || shared.instance().is_some())
            && let Some(checked) = checked.take()
        {
            // It stays unconfigured, for the next provider resource or the next phase.
            self.give_back(checked).await;
        }
        let started = shared.started(async || self.start_to_serve(&wanted, checked).await).await.cloned();
        let configured = match started {
            Ok(instance) if shares => shared.configure(&instance, wanted, self.run.id).await,
            Ok(instance) => instance.configure(wanted, self.run.id).await,
            Err(error) => Err(error),
        };
        self.end_use(Some(shared)).await;
        configured
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
        let instance = self.serving(Method::GetMappings).await?;
        instance.call(instance.provider.mappings(key)).await
    }

    async fn mapping(&self, key: &str, name: &str) -> Result<Option<(String, Vec<u8>)>, ProviderError> {
        let instance = self.serving(Method::GetMapping).await?;
        instance.call(instance.provider.mapping(key, name)).await
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        let used: Vec<_> = {
            let state = self.lock();
            let shared = state.serving.iter().chain(&state.checking).filter(|shared| shared.is_first_cancel());
            shared.filter_map(|shared| shared.instance()).cloned().collect()
        };
        used.iter().for_each(|instance| instance.use_up());
        let cancelled = join_all(used.iter().map(|instance| instance.provider.cancel())).await;
        cancelled.into_iter().collect()
    }

    async fn close(&self) {
        let used = {
            let mut state = self.lock();
            state.is_closed = true;
            [state.serving.take(), state.checking.take()]
        };
        join_all(used.map(|shared| self.end_use(shared))).await;
    }
}

impl fmt::Debug for InstanceLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceLease").field("plugin", &self.plugin.name()).finish_non_exhaustive()
    }
}
