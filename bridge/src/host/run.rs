//! A run's view of the pool: its settings, and how instances of its plugins are started.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;
use tracing::{Instrument as _, debug, debug_span, info_span};

use super::assets::AssetAccess;
use super::attached_plugin::AttachedPlugin;
use super::attaching::attach;
use super::attachment::{Attachment, RootResource, RunLinks};
use super::brokered::EngineOffer;
use super::engine_service::EngineServices;
use super::events::{PluginWork, WorkInProgress};
use super::host_settings::{DeclaredPlugin, HostSettings};
use super::instance::{Instance, ProcessKey, RunId};
use super::load_error::{LoadError, failed_to_load};
use super::monitor_relay::MonitorRelay;
use super::package_types::PackageTypes;
use super::plugin_pool::InstancePool;
use super::pool::{GroupId, NotStarted};
use super::sharing::SharedInstances;
use super::subpackage::Subpackage;
use super::terraform_bridge::{TerraformBridge, without_provider};
use super::{HostError, HostEvent};
use crate::install::{TerraformProviderFolder, VerifiedPackage};
use crate::launch::{LaunchSpec, PluginEnvironment, launch, plugin_environment, process_sandbox, socket_folders};
use crate::plugin::{Dialect, Parameters, PluginUse, Sandbox};
use crate::process::{ProcessSandbox, SandboxSupport};
use crate::provider::grpc::{GrpcProvider, HostInfo, handshake};
use crate::provider::{Capabilities, ParameterizeReply, ParameterizeRequest, Provider as _, ProviderError};

/// A run.
pub(super) struct Run {
    pub(super) id: RunId,
    pub(super) settings: HostSettings,
    /// Terraform providers that only the state names. They stay in the cache.
    recorded_providers: Mutex<Vec<TerraformProviderFolder>>,
    root_resource: RootResource,
    is_stopped: AtomicBool,
}

/// Plugin of a run.
pub(super) struct Plugin {
    pub(super) declared: DeclaredPlugin,
    pub(super) program: Program,
    pub(super) environment: PluginEnvironment,
    /// Instances that this plugin can use.
    pub(super) group: GroupId,
    pub(super) shared: SharedInstances,
    /// Properties that the first instance has returned.
    pub(super) handshake: OnceLock<PluginHandshake>,
    /// Pulumi's bridge of Terraform providers, if the plugin is it.
    pub(super) bridge: Option<TerraformBridge>,
    /// Package that the plugin serves with its parameters, found out at its start.
    pub(super) subpackage: OnceCell<Arc<Subpackage>>,
    /// Types of the package, loaded on first use.
    pub(super) package_types: OnceCell<PackageTypes>,
    /// True once a request for a later version than the declared one was reported.
    pub(super) is_later_version_reported: AtomicBool,
}

/// Properties of a plugin that all its instances have.
#[derive(Clone, Debug)]
pub(super) struct PluginHandshake {
    pub(super) version: Option<String>,
    pub(super) capabilities: Capabilities,
}

/// Program of a plugin.
pub(super) enum Program {
    /// Package that the host starts.
    Package(Arc<VerifiedPackage>),
    /// Process that runs already.
    Attached(AttachedPlugin),
}

impl Plugin {
    fn new(group: GroupId, declared: DeclaredPlugin, program: Program, environment: PluginEnvironment) -> Self {
        let (shared, handshake, package_types) = (SharedInstances::default(), OnceLock::new(), OnceCell::new());
        let (subpackage, is_later_version_reported) = (OnceCell::new(), AtomicBool::new(false));
        Self {
            declared,
            program,
            environment,
            group,
            shared,
            handshake,
            bridge: None,
            subpackage,
            package_types,
            is_later_version_reported,
        }
    }

    /// Returns the package; `None` if the host does not start the plugin.
    pub(super) fn package(&self) -> Option<&VerifiedPackage> {
        match &self.program {
            Program::Package(package) => Some(package),
            Program::Attached(_) => None,
        }
    }

    /// Returns the parameters that the plugin is given: those of its declaration, with the exact version of the provider that is placed for
    /// it.
    pub(super) fn parameters(&self) -> Option<&Parameters> {
        let exact = self.bridge.as_ref().and_then(|bridge| bridge.parameters.as_ref());
        exact.or(self.declared.config.parameters.as_ref())
    }

    pub(super) fn name(&self) -> &str {
        self.declared.config.name.as_str()
    }

    /// Returns the package that the plugin serves without parameters, as far as it is known.
    pub(super) fn base_package(&self) -> &str {
        match (&self.declared.config.parameters, self.subpackage.get()) {
            (Some(_), Some(subpackage)) => &subpackage.base_name,
            (Some(_), None) => self.declared.config.names().package.as_str(),
            (None, _) => self.declared.config.package.as_str(),
        }
    }
}

impl Run {
    pub(super) fn new(settings: HostSettings) -> Self {
        settings.pool.connection_guard().report_to(&settings.events);
        Self {
            id: RunId::new_v4(),
            settings,
            recorded_providers: Mutex::default(),
            root_resource: RootResource::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    pub(super) fn pool(&self) -> &InstancePool {
        self.settings.pool.instances()
    }

    /// Resolves and verifies a plugin.
    pub(super) async fn resolve(&self, declared: DeclaredPlugin) -> Result<Plugin, HostError> {
        let settings = &self.settings;
        if let Some(attached) = settings.attached_to(&declared.config) {
            settings.sources.check_use(&declared.config, PluginUse::Attached)?;
            let group = self.pool().group(ProcessKey::of_attached(&declared.config, &settings.directory, self.id));
            let (program, environment) = (Program::Attached(attached.clone()), PluginEnvironment::default());
            let bridge = settings.sources.terraform_bridge(&declared.config, None, &settings.events).await?;
            let plugin = Plugin { bridge, ..Plugin::new(group, declared, program, environment) };
            self.warn(&plugin, attached.message());
            return Ok(plugin);
        }
        let package = Arc::new(settings.sources.resolve(&declared.config, &settings.events).await?);
        let bridge = settings
            .sources
            .terraform_bridge(&declared.config, Some(&package.program_origin()), &settings.events)
            .await?;
        let mut environment = plugin_environment(&declared.config, &settings.project, &settings.environment);
        environment.variables.extend(bridge.iter().map(TerraformBridge::variable));
        let variables = environment.variables.clone();
        let key = ProcessKey::new(&declared.config, &package, variables, &settings.directory, self.id);
        let (group, program) = (self.pool().group(key), Program::Package(package));
        Ok(Plugin { bridge, ..Plugin::new(group, declared, program, environment) })
    }

    /// Places the Terraform provider that a value of parameters names for the bridge, which would ask a registry otherwise: one in a version
    /// of the state, or of a component.
    pub(super) async fn place_provider_of(
        &self,
        plugin: &Plugin,
        request: &ParameterizeRequest,
    ) -> Result<(), HostError> {
        let (Some(bridge), config) = (&plugin.bridge, &plugin.declared.config) else { return Ok(()) };
        let Some(source) = bridge.missing_provider(config, request)? else { return Ok(()) };
        let HostSettings { sources, events, undeclared, .. } = &self.settings;
        let may_place = match undeclared {
            Some(undeclared) => undeclared.may_place(config, &source).await,
            None => false,
        };
        if !may_place {
            return Err(without_provider(config, &source));
        }
        let placed = sources.place_recorded_provider(config, &source, events).await?;
        self.recorded_providers.lock().unwrap_or_else(PoisonError::into_inner).extend(placed);
        Ok(())
    }

    /// Tells an instance which package to serve: see [`Instance::parameterize`]. A process that runs already has got the arguments that the
    /// value stands for, and may refuse to be told twice.
    pub(super) async fn parameterize(
        &self,
        plugin: &Plugin,
        instance: &Instance,
        request: ParameterizeRequest,
    ) -> Result<ParameterizeReply, ProviderError> {
        if let (Program::Attached(_), Some(subpackage)) = (&plugin.program, plugin.subpackage.get())
            && subpackage.request() == request
        {
            let Subpackage { name, version, .. } = &**subpackage;
            let reply = ParameterizeReply { name: name.clone(), version: Some(version.clone()) };
            instance.set_parameterized(request.clone(), reply);
        }
        instance.parameterize(request, self.id).await
    }

    /// Leases the idle instance of a plugin with the highest rank: none that another run alone can use.
    pub(super) fn lease_idle<R: Ord>(
        &self,
        plugin: &Plugin,
        rank: impl Fn(&Instance) -> Option<R>,
    ) -> Option<Arc<Instance>> {
        let is_of_other = |instance: &Instance| instance.run.get().is_some_and(|run| *run != self.id);
        let rank = |instance: &Instance| if is_of_other(instance) { None } else { rank(instance) };
        let instance = self.pool().lease_idle(&plugin.group, rank)?;
        self.attach(plugin, &instance);
        Some(instance)
    }

    /// Leases the idle instance of a plugin with the highest rank, or one that is started now.
    pub(super) async fn lease<R: Ord>(
        self: &Arc<Self>,
        plugin: &Arc<Plugin>,
        rank: impl Fn(&Instance) -> Option<R>,
    ) -> Result<Arc<Instance>, HostError> {
        if let Some(idle) = self.lease_idle(plugin, rank) {
            debug!(plugin = plugin.name(), "leased an idle instance");
            return Ok(idle);
        }
        self.check_not_stopped(plugin)?;
        let started = self.pool().lease_started(&plugin.group, || self.start_of(plugin, Some(self.links())));
        match started.instrument(debug_span!("lease", plugin = plugin.name())).await {
            Ok(instance) => {
                self.attach(plugin, &instance);
                Ok(instance)
            }
            Err(NotStarted::Failed(error)) => Err(error),
            Err(NotStarted::Closed) => Err(stopping(plugin)),
        }
    }

    /// Starts instances of a plugin ahead of their leases, until `count` are idle or starting. Nothing waits for them. A start
    /// that fails is repeated by the first lease that needs the instance, and by one that waits for it already if another start has
    /// succeeded.
    pub(super) fn start_ahead(self: &Arc<Self>, plugin: &Arc<Plugin>, count: usize) {
        // The first instance shows what all of them log and print at their start.
        let links = Cell::new(Some(self.links()));
        self.pool().start_ahead(&plugin.group, count, || self.start_of(plugin, links.take()));
    }

    fn start_of(
        self: &Arc<Self>,
        plugin: &Arc<Plugin>,
        links: Option<RunLinks>,
    ) -> BoxFuture<'static, Result<Instance, HostError>> {
        let (run, plugin) = (Arc::clone(self), Arc::clone(plugin));
        // The start goes on if its caller stops waiting, so it has no parent.
        let span = info_span!(parent: None, "start plugin", plugin = plugin.name());
        Box::pin(async move { run.start(&plugin, links).await }.instrument(span))
    }

    fn attach(&self, plugin: &Plugin, instance: &Instance) {
        plugin.handshake.get_or_init(|| PluginHandshake {
            version: instance.provider.version().map(str::to_owned),
            capabilities: instance.provider.capabilities(),
        });
        instance.attachment.attach(self.links());
        instance.provider.set_abort(self.settings.abort.clone());
    }

    fn links(&self) -> RunLinks {
        RunLinks { events: Arc::clone(&self.settings.events), root_resource: Arc::clone(&self.root_resource) }
    }

    async fn start(&self, plugin: &Plugin, links: Option<RunLinks>) -> Result<Instance, HostError> {
        let (settings, config) = (&self.settings, &plugin.declared.config);
        let _working = WorkInProgress::begin(plugin.name(), PluginWork::Starting, |event| settings.events.emit(event));
        let attachment = Arc::new(Attachment::new(plugin.name(), links));
        // Asked again: a start may come long after the package was resolved.
        if let Program::Package(_) = plugin.program {
            settings.sources.check_policy(config)?;
        }
        let started = match &plugin.program {
            Program::Package(package) => self.launch(plugin, package, attachment).await,
            Program::Attached(attached) => attach(config, attached, attachment, settings).await,
        };
        let instance = started.map_err(|error| failed_to_load(config, error))?;
        // An abort also ends an instance that nobody has leased.
        instance.provider.set_abort(settings.abort.clone());
        Ok(instance)
    }

    async fn launch(
        &self,
        plugin: &Plugin,
        package: &Arc<VerifiedPackage>,
        attachment: Arc<Attachment>,
    ) -> Result<Instance, LoadError> {
        let (settings, config) = (&self.settings, &plugin.declared.config);
        let guard = settings.pool.connection_guard();
        let engine = EngineServices::serve(Arc::clone(&attachment), Arc::clone(&guard)).await;
        let EngineServices { endpoint, routes, status_tokens } = engine.map_err(LoadError::Listen)?;
        let address = endpoint.address();
        let socket_folders = socket_folders(&settings.environment);
        let registrations = match config.dialect {
            Dialect::Register(_) => {
                Some(settings.pool.registrations(&socket_folders).await.map_err(LoadError::ListenForRegistrations)?)
            }
            Dialect::Pulumi | Dialect::GoPlugin(_) => None,
        };
        let relay = match config.sandbox {
            Sandbox::Strict(_) => Some(MonitorRelay::open(Arc::clone(&guard)).await.map_err(LoadError::Listen)?),
            Sandbox::None | Sandbox::Basic => None,
        };
        let endpoints: Vec<u16> =
            [endpoint.port()].into_iter().chain(relay.iter().flat_map(MonitorRelay::ports)).collect();
        let home = settings.environment.get("HOME").map(Path::new);
        let sandbox = process_sandbox(&config.sandbox, &settings.directory, &settings.secret_files, home, &endpoints);
        let sandbox = sandbox.map_err(LoadError::Launch)?;
        let providers = plugin.bridge.iter().flat_map(TerraformBridge::readable);
        let sandbox = sandbox.with_files(providers, []);
        let spec = LaunchSpec {
            plugin: config,
            package,
            directory: settings.directory.clone(),
            environment: plugin.environment.variables.clone(),
            sandbox: sandbox.clone(),
            start_timeout: config.start_timeout,
            sink: Arc::clone(&attachment) as _,
            spawner: &settings.spawner,
            socket_folders,
            registrations,
        };
        let launching = launch(spec, &config.dialect, &address).instrument(debug_span!("launch process"));
        let launched = launching.await.map_err(LoadError::Launch)?;
        if let (Some(relay), Sandbox::Strict(declared), ProcessSandbox::Strict(allowed)) =
            (&relay, &config.sandbox, &sandbox)
        {
            let own = [package.folder(), &settings.directory];
            relay.restrict(AssetAccess::new(declared, allowed, own, launched.process.temporary_folder()));
        }
        let brokered = match launched.broker {
            Some(broker) => EngineOffer::make(broker, routes, guard).await.map_err(LoadError::Listen)?,
            None => None,
        };
        let host_info = HostInfo {
            engine_address: &address,
            program_folder: Some(package.folder()),
            status_tokens: Some(&status_tokens),
        };
        let provider =
            handshake(launched.connection, plugin.name(), Some(launched.process), host_info, settings.limits);
        let provider = provider.instrument(debug_span!("handshake")).await;
        let provider: GrpcProvider = provider.map_err(LoadError::Handshake)?;
        let provider = provider.with_ending(launched.ending);
        if config.dialect != Dialect::Pulumi {
            provider.attach(&address).await.map_err(LoadError::Handshake)?;
        }
        let provider = provider.with_guard((endpoint, Arc::clone(package), launched.kept));
        let instance = Instance::new(provider, attachment, brokered)
            .deregistered_by(launched.deregistered)
            .in_sandbox(config.sandbox.clone(), relay);
        if package.digest().is_none() {
            instance.run.set(self.id).unwrap_or_default();
        }
        Ok(instance)
    }

    /// Emits a warning about a plugin.
    pub(super) fn warn(&self, plugin: &Plugin, message: String) {
        self.settings.events.emit(HostEvent::Warning { plugin: plugin.name().to_owned(), message });
    }

    /// Warns once in each pool of what the sandbox of plugins does not prevent on this system.
    pub(super) fn warn_of_missing_restrictions(&self, plugin: &Plugin) {
        let missing = match plugin.declared.config.sandbox {
            Sandbox::Basic => SandboxSupport::current().missing_in_basic(),
            // A plugin with `strict` is refused instead.
            Sandbox::None | Sandbox::Strict(_) => Vec::new(),
        };
        if !missing.is_empty() && self.settings.pool.is_first_warning_of_sandbox() {
            self.warn(plugin, format!("the sandbox does not prevent on this system: {}", missing.join(", ")));
        }
    }

    /// Starts no further instance.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Returns an error once the run was stopped.
    pub(super) fn check_not_stopped(&self, plugin: &Plugin) -> Result<(), HostError> {
        if self.is_stopped.load(Ordering::Acquire) { Err(stopping(plugin)) } else { Ok(()) }
    }

    /// Ends the idle instances that only this run can use. Returns once they have ended.
    pub(super) async fn end(&self) {
        let is_over = |instance: &Instance| {
            let is_of_run = instance.run.get() == Some(&self.id);
            if !is_of_run {
                instance.attachment.detach_from(&self.root_resource);
            }
            is_of_run
        };
        self.pool().end_idle(is_over).await;
    }
}

/// Returns the error of a plugin that is not started, because its run or the pool ends.
fn stopping(plugin: &Plugin) -> HostError {
    HostError::new(format_args!("plugin {} is not started: the run is stopping", plugin.name()))
}
