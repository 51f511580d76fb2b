//! The plugin host: loads declared plugins and starts their instances as processes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::future::{join_all, try_join_all};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::connection_guard::{ConnectionGuard, EndpointLimits};
use super::engine_service::{self, RootResource};
use super::package_schema::parse_schema;
use super::package_types::PackageTypes;
use super::plugin_events::PluginEvents;
use super::type_cache::TypeCache;
use super::{HostError, HostEvent, HostEvents, ProviderHost, ProviderRequest};
use crate::error::Hint;
use crate::install::{FetchEvents, InstallError, PackageSource, VerifiedPackage};
use crate::launch::{LaunchError, LaunchSpec, plugin_environment, pulumi};
use crate::plugin::{PluginConfig, PluginName, PluginSource, PluginVersion};
use crate::process::{HostEnvironment, Spawner};
use crate::provider::grpc::{GrpcProvider, HostInfo, Limits, PluginInit, ResourceStatusTokens, handshake};
use crate::provider::{Provider, ProviderError, SchemaRequest};

/// Plugin declared by a stack.
#[derive(Clone, Debug)]
pub struct DeclaredPlugin {
    /// Entry of the plugin in `plugins`.
    pub config: PluginConfig,
    /// Input of Initialize, which is called directly after Configure if the plugin serves `simplecontainer.plugin.v1`.
    pub init: PluginInit,
}

/// Plugin to check with [`PluginHost::check`].
#[derive(Clone, Debug)]
pub struct CheckedPlugin {
    /// Entry of the plugin in `plugins`.
    pub config: PluginConfig,
    /// True if the types of its package are needed. Its schema may be missing or invalid otherwise.
    pub needs_types: bool,
}

/// Package sources by kind. A kind without a source is not supported.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Source of the kind `local`.
    pub local: Option<Arc<dyn PackageSource>>,
    /// Source of the kind `github-release`.
    pub github_release: Option<Arc<dyn PackageSource>>,
    /// Source of the kind `git`.
    pub git: Option<Arc<dyn PackageSource>>,
}

impl Sources {
    /// Resolves a plugin to its package: finds or fetches the files, and verifies them. Emits [`HostEvent::Fetch`]
    /// meanwhile.
    ///
    /// # Errors
    /// [`HostError`]; the plugin has not been executed.
    ///
    /// # Cancellation
    /// No incomplete package is left.
    pub async fn resolve(
        &self,
        plugin: &PluginConfig,
        events: &Arc<dyn HostEvents>,
    ) -> Result<VerifiedPackage, HostError> {
        let events = PluginEvents { plugin: plugin.name.to_string(), events: Arc::clone(events) };
        self.resolve_package(plugin, &events).await.map_err(|error| failed_to_load(plugin, LoadError::Resolve(error)))
    }

    async fn resolve_package(
        &self,
        plugin: &PluginConfig,
        events: &dyn FetchEvents,
    ) -> Result<VerifiedPackage, InstallError> {
        let source = match &plugin.source {
            PluginSource::Local(_) => &self.local,
            PluginSource::GithubRelease(_) => &self.github_release,
            PluginSource::Git(_) => &self.git,
        };
        match source {
            Some(source) => source.resolve(plugin, events).await,
            None => Err(InstallError::Unsupported { kind: plugin.source.kind() }),
        }
    }
}

/// Settings of a plugin host.
#[derive(Clone)]
pub struct HostSettings {
    /// Name of the project, passed to plugins in their environment.
    pub project: String,
    /// Working directory of the plugins: the root of the repository.
    pub directory: PathBuf,
    /// Environment from which the variables of the plugins are selected.
    pub environment: HostEnvironment,
    /// Spawner of the plugin processes.
    pub spawner: Spawner,
    /// Sources of the packages.
    pub sources: Sources,
    /// Limits on calls to plugins.
    pub limits: Limits,
    /// Signal after which no plugin is waited for: the plugins are interrupted, and killed soon.
    pub abort: CancellationToken,
    /// Folder of the type cache; `None`: schemas are requested again by each host.
    pub type_cache: Option<PathBuf>,
    /// Receiver of the events of the plugins.
    pub events: Arc<dyn HostEvents>,
}

/// Host that runs plugins as processes.
///
/// # Invariants
/// Every instance is in `instances` from the end of its start (Handshake and GetPluginInfo) until the host is closed.
/// Dropping the host kills the instances to which the engine has no reference. A process whose start fails or is
/// cancelled is killed.
pub struct PluginHost {
    settings: HostSettings,
    root_resource: RootResource,
    connection_guard: Arc<ConnectionGuard>,
    plugins: Vec<Plugin>,
    instances: Mutex<Vec<Arc<GrpcProvider>>>,
    is_stopping: AtomicBool,
}

struct Plugin {
    declared: DeclaredPlugin,
    package: Arc<VerifiedPackage>,
    /// Instance that was started when the plugin was loaded. `None` once it is in use.
    first_instance: Mutex<Option<Arc<GrpcProvider>>>,
    /// Types of the package, loaded on first use.
    package_types: OnceCell<PackageTypes>,
}

impl PluginHost {
    /// Resolves and verifies all enabled plugins in parallel. If all succeed, starts one instance of each and calls
    /// Handshake. [`PluginHost::start_provider`] returns these instances first.
    ///
    /// # Errors
    /// The names and errors of all plugins that cannot be resolved: no plugin has been executed then. Otherwise those of the
    /// first plugin that does not start. No process is left running.
    ///
    /// # Cancellation
    /// Started processes are killed.
    pub async fn load(
        settings: HostSettings,
        plugins: Vec<DeclaredPlugin>,
    ) -> Result<Self, Vec<(PluginName, HostError)>> {
        let mut host = Self::new(settings);
        let enabled = plugins.into_iter().filter(|plugin| plugin.config.enabled);
        let resolve = async |declared: DeclaredPlugin| {
            let name = declared.config.name.clone();
            host.resolve(declared).await.map_err(|error| (name, error))
        };
        let (mut resolved, mut failed) = (Vec::new(), Vec::new());
        for result in join_all(enabled.map(resolve)).await {
            match result {
                Ok(plugin) => resolved.push(plugin),
                Err(failure) => failed.push(failure),
            }
        }
        if !failed.is_empty() {
            return Err(failed);
        }
        host.plugins = resolved;
        let start = async |plugin: &Plugin| {
            let started = host.start_first_instance(plugin).await;
            started.map_err(|error| vec![(plugin.declared.config.name.clone(), error)])
        };
        try_join_all(host.plugins.iter().map(start)).await?;
        Ok(host)
    }

    /// Checks in parallel that plugins can be resolved, verified and started, and returns the types of their packages in
    /// the same order: none for a plugin whose types are not needed. A plugin whose types are cached is not started,
    /// because it was started before. Configures no plugin. A plugin that fails does not stop the others. No process is
    /// left running.
    ///
    /// # Cancellation
    /// Started processes are killed.
    pub async fn check(settings: HostSettings, plugins: Vec<CheckedPlugin>) -> Vec<Result<PackageTypes, HostError>> {
        let host = Self::new(settings);
        let check = async |checked: CheckedPlugin| {
            let plugin = host.resolve(DeclaredPlugin { config: checked.config, init: PluginInit::default() }).await?;
            if checked.needs_types {
                return host.types_of(&plugin).await;
            }
            host.start_instance(&plugin).await?;
            Ok(PackageTypes::default())
        };
        let checked = join_all(plugins.into_iter().map(check)).await;
        host.close().await;
        checked
    }

    /// Creates a host without plugins.
    fn new(settings: HostSettings) -> Self {
        let guard = ConnectionGuard::new(EndpointLimits::default(), Some(Arc::clone(&settings.events)));
        Self {
            settings,
            connection_guard: Arc::new(guard),
            root_resource: RootResource::default(),
            plugins: Vec::new(),
            instances: Mutex::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Resolves and verifies a plugin.
    async fn resolve(&self, declared: DeclaredPlugin) -> Result<Plugin, HostError> {
        let package = Arc::new(self.settings.sources.resolve(&declared.config, &self.settings.events).await?);
        Ok(Plugin { declared, package, first_instance: Mutex::new(None), package_types: OnceCell::new() })
    }

    /// Returns true if an enabled plugin serves a package.
    pub fn serves(&self, package: &str) -> bool {
        self.plugins.iter().any(|plugin| plugin.declared.config.package.as_str() == package)
    }

    /// Returns the schemas (GetSchema) of the packages of all enabled plugins as JSON texts; `None` for a plugin
    /// without a schema. Requests them in parallel.
    ///
    /// # Errors
    /// [`HostError`] of the first plugin that does not start or whose GetSchema fails.
    pub async fn schemas(&self) -> Result<BTreeMap<String, Option<String>>, HostError> {
        let mut first = BTreeMap::new();
        for plugin in &self.plugins {
            first.entry(plugin.declared.config.package.to_string()).or_insert(plugin);
        }
        let load_schema = async |(package, plugin): (String, &Plugin)| {
            let request = ProviderRequest { package, name: plugin.name().to_owned(), ..ProviderRequest::default() };
            let provider = self.start_provider(&request).await?;
            let schema = provider.schema(SchemaRequest::default()).await;
            Ok((request.package, schema.map_err(|error| plugin.schema_call_failed(error))?))
        };
        Ok(try_join_all(first.into_iter().map(load_schema)).await?.into_iter().collect())
    }

    /// Stops all instances in parallel: Cleanup, Cancel, SIGINT, SIGKILL. Returns once no process is left. No further
    /// instances are started. An abort shortens the waits.
    pub async fn close(&self) {
        self.is_stopping.store(true, Ordering::Release);
        for plugin in &self.plugins {
            lock(&plugin.first_instance).take();
        }
        let instances = std::mem::take(&mut *lock(&self.instances));
        let close = |provider: &'_ Arc<GrpcProvider>| {
            let provider = provider.clone();
            async move {
                if let Some(message) = provider.unexpected_exit().await {
                    let plugin = provider.name().to_owned();
                    self.settings.events.emit(HostEvent::Warning { plugin, message });
                }
                provider.close().await;
            }
        };
        join_all(instances.iter().map(close)).await;
    }

    async fn start_first_instance(&self, plugin: &Plugin) -> Result<(), HostError> {
        let environment =
            plugin_environment(&plugin.declared.config, &self.settings.project, &self.settings.environment);
        for name in environment.missing {
            self.warn(plugin, format!("the environment variable {name} in passEnv is not set"));
        }
        let provider = self.start_instance(plugin).await?;
        let (found, declared) =
            (provider.version().and_then(|version| version.parse::<PluginVersion>().ok()), plugin.package.version());
        if let (Some(found), Some(declared)) = (&found, declared)
            && found < declared
        {
            self.warn(plugin, format!("version {declared} is declared, but the plugin reports version {found}"));
        }
        let version = found.map(|version| version.to_string());
        self.settings.events.emit(HostEvent::Loaded { plugin: plugin.name().to_owned(), version });
        *lock(&plugin.first_instance) = Some(provider);
        Ok(())
    }

    async fn start_instance(&self, plugin: &Plugin) -> Result<Arc<GrpcProvider>, HostError> {
        let started = self.launch_and_handshake(plugin).await;
        let provider = Arc::new(started.map_err(|error| failed_to_load(&plugin.declared.config, error))?);
        lock(&self.instances).push(provider.clone());
        // The list that `close` took lacks an instance that was started concurrently with `close`.
        if self.is_stopping.load(Ordering::Acquire) {
            provider.close().await;
            return Err(stopping(plugin));
        }
        Ok(provider)
    }

    async fn launch_and_handshake(&self, plugin: &Plugin) -> Result<GrpcProvider, LoadError> {
        let (settings, config) = (&self.settings, &plugin.declared.config);
        let events = settings.events.clone();
        let status_tokens = Arc::new(ResourceStatusTokens::default());
        let engine = engine_service::serve(
            plugin.name(),
            self.root_resource.clone(),
            events.clone(),
            status_tokens.clone(),
            self.connection_guard(),
        );
        let engine = engine.await.map_err(LoadError::Listen)?;
        let address = engine.address();
        let spec = LaunchSpec {
            package: &plugin.package,
            directory: settings.directory.clone(),
            environment: plugin_environment(config, &settings.project, &settings.environment).variables,
            start_timeout: config.start_timeout,
            sink: Arc::new(PluginEvents { plugin: plugin.name().to_owned(), events }),
            spawner: &settings.spawner,
        };
        let launched = pulumi::launch(spec, &address).await.map_err(LoadError::Launch)?;
        let host_info = HostInfo {
            engine_address: &address,
            program_folder: plugin.package.folder(),
            status_tokens: Some(&status_tokens),
        };
        let provider =
            handshake(launched.connection, plugin.name(), Some(launched.process), host_info, settings.limits).await;
        let provider = provider.map_err(LoadError::Handshake)?;
        let provider = provider.with_init(plugin.declared.init.clone()).with_abort(settings.abort.clone());
        Ok(provider.with_guard((engine, plugin.package.clone())))
    }

    /// Returns the types of the package of a plugin: from the cache, else from the schema that an instance returns.
    async fn types_of(&self, plugin: &Plugin) -> Result<PackageTypes, HostError> {
        let package = plugin.declared.config.package.as_str();
        let folder = self.settings.type_cache.as_deref();
        let cache = folder.and_then(|folder| TypeCache::new(folder, package, &plugin.package));
        let load = async || {
            if let Some(cache) = cache.clone()
                && let Some(types) = cache.load().await
            {
                return Ok(types);
            }
            // The first instance returns the schema while it is not in use, so that no other instance is needed.
            let first_instance = lock(&plugin.first_instance).clone();
            let provider = match first_instance {
                Some(provider) => provider,
                None => self.start_instance(plugin).await?,
            };
            let schema = provider.schema(SchemaRequest::default()).await;
            let schema = schema.map_err(|error| plugin.schema_call_failed(error))?;
            let schema = schema.unwrap_or_else(|| "{}".to_owned());
            let types = parse_schema(package, &schema).map_err(|error| plugin.invalid_schema(error))?;
            if let Some(cache) = cache.clone() {
                cache.store(types.clone()).await;
            }
            Ok(types)
        };
        plugin.package_types.get_or_try_init(load).await.cloned()
    }

    /// Returns the plugin for a request: the plugin of the package with the name of the provider resource, else the
    /// only plugin of the package.
    fn find_plugin(&self, request: &ProviderRequest) -> Result<&Plugin, HostError> {
        let of_package =
            || self.plugins.iter().filter(|plugin| plugin.declared.config.package.as_str() == request.package);
        let by_name = of_package().find(|plugin| plugin.name() == request.name);
        let found = match (by_name, of_package().count()) {
            (Some(plugin), _) => plugin,
            (None, 1) => of_package().next().ok_or_else(|| undeclared_package(request))?,
            (None, 0) => return Err(undeclared_package(request)),
            (None, _) => {
                let names: Vec<_> = of_package().map(Plugin::name).collect();
                let message = format!("several plugins serve the package {:?}: {}", request.package, names.join(", "));
                return Err(HostError::new(message).with_hint("select one of them with options.provider"));
            }
        };
        // The state may come from another version of the plugin. A later version must support the state of an earlier
        // one.
        let requested = request.version.as_ref().and_then(|version| version.parse::<PluginVersion>().ok());
        if let (Some(requested), Some(declared)) = (requested, found.package.version())
            && requested > *declared
        {
            self.warn(found, format!("version {requested} is requested, but version {declared} is declared"));
        }
        Ok(found)
    }

    fn warn(&self, plugin: &Plugin, message: String) {
        self.settings.events.emit(HostEvent::Warning { plugin: plugin.name().to_owned(), message });
    }
}

#[async_trait]
impl ProviderHost for PluginHost {
    async fn start_provider(&self, request: &ProviderRequest) -> Result<Arc<dyn Provider>, HostError> {
        let plugin = self.find_plugin(request)?;
        if self.is_stopping.load(Ordering::Acquire) {
            return Err(stopping(plugin));
        }
        let first_instance = lock(&plugin.first_instance).take();
        Ok(match first_instance {
            Some(provider) => provider,
            None => self.start_instance(plugin).await?,
        })
    }

    fn directory(&self) -> &Path {
        &self.settings.directory
    }

    fn connection_guard(&self) -> Arc<ConnectionGuard> {
        Arc::clone(&self.connection_guard)
    }

    async fn package_types(&self, plugin: &str) -> Result<PackageTypes, HostError> {
        let Some(plugin) = self.plugins.iter().find(|known| known.name() == plugin) else {
            return Ok(PackageTypes::default());
        };
        self.types_of(plugin).await
    }
}

impl fmt::Debug for PluginHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plugins: Vec<_> = self.plugins.iter().map(Plugin::name).collect();
        f.debug_struct("PluginHost").field("plugins", &plugins).finish_non_exhaustive()
    }
}

impl Plugin {
    fn schema_call_failed(&self, error: ProviderError) -> HostError {
        without_schema(format!("cannot get the schema of plugin {}", self.name())).with_source(error)
    }

    fn invalid_schema(&self, error: serde_json::Error) -> HostError {
        without_schema(format!("the schema of plugin {} is invalid", self.name())).with_source(error)
    }

    fn name(&self) -> &str {
        self.declared.config.name.as_str()
    }
}

/// Reason why a plugin is not loaded.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error("failed to resolve plugin binary")]
    Resolve(#[source] InstallError),
    #[error("failed to connect to plugin: cannot start the engine service")]
    Listen(#[source] io::Error),
    #[error("failed to connect to plugin")]
    Launch(#[source] LaunchError),
    #[error("failed to connect to plugin")]
    Handshake(#[source] ProviderError),
}

impl Hint for LoadError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Resolve(error) => error.hint(),
            Self::Launch(error) => error.hint(),
            Self::Listen(_) | Self::Handshake(_) => None,
        }
    }
}

fn failed_to_load(plugin: &PluginConfig, error: LoadError) -> HostError {
    let failed = HostError::new(format!("failed to load plugin {}", plugin.name));
    let failed = match error.hint() {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    };
    failed.with_source(error)
}

fn without_schema(message: String) -> HostError {
    let hint = "sc needs the schema to find secret properties and components; report this to the author of the plugin";
    HostError::new(message).with_hint(hint)
}

fn stopping(plugin: &Plugin) -> HostError {
    HostError::new(format!("plugin {} is not started: the run is stopping", plugin.name()))
}

fn undeclared_package(request: &ProviderRequest) -> HostError {
    let message = format!("no enabled plugin serves the package {:?}", request.package);
    HostError::new(message).with_hint("declare it in plugins, or enable it")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
