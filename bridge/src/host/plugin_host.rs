//! The host of plugins that are processes.

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

use super::engine_service::{self, RootResource};
use super::type_facts::{self, Memory, PackageTypes};
use super::{BootRequest, HostError, HostEvent, HostEvents, ProviderHost};
use crate::error::Hint;
use crate::install::{FetchEvent, FetchEvents, InstallError, PackageSource, VerifiedPackage};
use crate::launch::{LaunchError, LaunchSpec, plugin_environment, pulumi};
use crate::plugin::{PluginConfig, PluginSource, PluginVersion};
use crate::process::{HostEnvironment, OutputSink, OutputStream, Spawner};
use crate::provider::grpc::{Announcement, GrpcProvider, Limits, PluginInit, ViewDesk, connect};
use crate::provider::{Provider, ProviderError, SchemaRequest};

/// A plugin as a stack declares it.
#[derive(Clone, Debug)]
pub struct DeclaredPlugin {
    /// Its entry in `plugins`.
    pub config: PluginConfig,
    /// What it is told right after Configure, if it serves `simplecontainer.plugin.v1`.
    pub init: PluginInit,
}

/// Where packages come from, by kind of source. What is absent is not supported.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// For `local`.
    pub local: Option<Arc<dyn PackageSource>>,
    /// For `github-release`.
    pub github_release: Option<Arc<dyn PackageSource>>,
    /// For `git`.
    pub git: Option<Arc<dyn PackageSource>>,
}

impl Sources {
    /// Gets the package of a plugin and checks it. What happens meanwhile is told as [`HostEvent::Fetch`].
    ///
    /// # Errors
    /// [`HostError`]; nothing of the plugin has been executed then.
    ///
    /// # Cancellation
    /// Nothing half-made is left.
    pub async fn fetch(
        &self,
        plugin: &PluginConfig,
        events: &Arc<dyn HostEvents>,
    ) -> Result<VerifiedPackage, HostError> {
        let relay = Relay { plugin: plugin.name.to_string(), events: Arc::clone(events) };
        self.resolve(plugin, &relay).await.map_err(|error| failed_to_load(plugin, LoadError::Resolve(error)))
    }

    async fn resolve(&self, plugin: &PluginConfig, events: &dyn FetchEvents) -> Result<VerifiedPackage, InstallError> {
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

/// What a host works with.
#[derive(Clone)]
pub struct HostSettings {
    /// Name of the project, which plugins find in their environment.
    pub project: String,
    /// Working directory of the plugins: the root of the repository.
    pub directory: PathBuf,
    /// The environment that they get a part of.
    pub environment: HostEnvironment,
    /// What starts them.
    pub spawner: Spawner,
    /// Where they come from.
    pub sources: Sources,
    /// How long they may take.
    pub limits: Limits,
    /// A folder to remember in what schemas say of types; without one every host asks anew.
    pub type_facts: Option<PathBuf>,
    /// Who listens to them.
    pub events: Arc<dyn HostEvents>,
}

/// Runs plugins as processes.
///
/// # Invariants
/// Every instance is on the list from its start to the end of the host, and dropping the host kills what it lists.
pub struct PluginHost {
    settings: HostSettings,
    root_resource: RootResource,
    plugins: Vec<Plugin>,
    live: Mutex<Vec<Arc<GrpcProvider>>>,
    ending: AtomicBool,
}

struct Plugin {
    declared: DeclaredPlugin,
    package: Arc<VerifiedPackage>,
    /// The instance that was started when the plugin was loaded, until somebody boots one.
    waiting: Mutex<Option<Arc<GrpcProvider>>>,
    /// Asked for once.
    type_facts: OnceCell<PackageTypes>,
}

impl PluginHost {
    /// Resolves and verifies every enabled plugin, all at once; and when all are what was declared, starts each and asks
    /// who it is. These instances serve first.
    ///
    /// # Errors
    /// [`HostError`] of the first plugin that fails. Nothing of any plugin was executed if that was one of resolving;
    /// no process is left in any case.
    ///
    /// # Cancellation
    /// What was started is killed.
    pub async fn load(settings: HostSettings, plugins: Vec<DeclaredPlugin>) -> Result<Self, HostError> {
        let enabled = plugins.into_iter().filter(|plugin| plugin.config.enabled);
        let resolve = |declared: DeclaredPlugin| async {
            let package = settings.sources.fetch(&declared.config, &settings.events).await?;
            let package = Arc::new(package);
            Ok(Plugin { declared, package, waiting: Mutex::new(None), type_facts: OnceCell::new() })
        };
        let plugins = try_join_all(enabled.map(resolve)).await?;
        let host = Self {
            settings,
            root_resource: RootResource::default(),
            plugins,
            live: Mutex::default(),
            ending: AtomicBool::new(false),
        };
        try_join_all(host.plugins.iter().map(|plugin| host.start_first(plugin))).await?;
        Ok(host)
    }

    /// Whether an enabled plugin serves a package.
    pub fn serves(&self, package: &str) -> bool {
        self.plugins.iter().any(|plugin| plugin.declared.config.package.as_str() == package)
    }

    /// The packages that enabled plugins serve, each with its schema (GetSchema) as JSON text, or `None` where its plugin
    /// has none. All are asked at once.
    ///
    /// # Errors
    /// [`HostError`] of the first that does not start or fails to answer.
    pub async fn schemas(&self) -> Result<BTreeMap<String, Option<String>>, HostError> {
        let mut first = BTreeMap::new();
        for plugin in &self.plugins {
            first.entry(plugin.declared.config.package.to_string()).or_insert(plugin);
        }
        let ask = async |(package, plugin): (String, &Plugin)| {
            let request = BootRequest { package, name: plugin.name().to_owned(), ..BootRequest::default() };
            let provider = self.boot(&request).await?;
            let schema = provider.schema(SchemaRequest::default()).await;
            Ok((request.package, schema.map_err(|error| plugin.does_not_say_its_schema(error))?))
        };
        Ok(try_join_all(first.into_iter().map(ask)).await?.into_iter().collect())
    }

    /// Asks every instance to end what it is doing (Cancel), all at once; calls in flight still answer. Nothing is booted
    /// from now on.
    pub async fn abort(&self) {
        self.ending.store(true, Ordering::Release);
        let live = lock(&self.live).clone();
        // Who cannot cancel goes on until it is closed.
        drop(join_all(live.iter().map(|provider| provider.cancel())).await);
    }

    /// Ends every instance, all at once: Cleanup, Cancel, SIGINT, SIGKILL. Returns once no process is left. Nothing is
    /// booted from now on.
    pub async fn close(&self) {
        self.ending.store(true, Ordering::Release);
        for plugin in &self.plugins {
            lock(&plugin.waiting).take();
        }
        let live = std::mem::take(&mut *lock(&self.live));
        let end = |provider: &'_ Arc<GrpcProvider>| {
            let provider = provider.clone();
            async move {
                if let Some(message) = provider.premature_end().await {
                    let plugin = provider.name().to_owned();
                    self.settings.events.emit(HostEvent::Warning { plugin, message });
                }
                provider.close().await;
            }
        };
        join_all(live.iter().map(end)).await;
    }

    async fn start_first(&self, plugin: &Plugin) -> Result<(), HostError> {
        let environment =
            plugin_environment(&plugin.declared.config, &self.settings.project, &self.settings.environment);
        for name in environment.missing {
            self.warn(plugin, format!("passEnv names {name}, which is not set"));
        }
        let provider = self.start(plugin).await?;
        let (found, declared) =
            (provider.version().and_then(|version| version.parse::<PluginVersion>().ok()), plugin.package.version());
        if let (Some(found), Some(declared)) = (&found, declared)
            && found < declared
        {
            self.warn(plugin, format!("version {declared} is declared, but the plugin says that it is {found}"));
        }
        let version = found.map(|version| version.to_string());
        self.settings.events.emit(HostEvent::Loaded { plugin: plugin.name().to_owned(), version });
        *lock(&plugin.waiting) = Some(provider);
        Ok(())
    }

    async fn start(&self, plugin: &Plugin) -> Result<Arc<GrpcProvider>, HostError> {
        let started = self.try_start(plugin).await;
        let provider = Arc::new(started.map_err(|error| failed_to_load(&plugin.declared.config, error))?);
        lock(&self.live).push(provider.clone());
        // Who started while the end began is not on the list that is being ended.
        if self.ending.load(Ordering::Acquire) {
            provider.close().await;
            return Err(ending(plugin));
        }
        Ok(provider)
    }

    async fn try_start(&self, plugin: &Plugin) -> Result<GrpcProvider, LoadError> {
        let (settings, config) = (&self.settings, &plugin.declared.config);
        let events = settings.events.clone();
        let views = Arc::new(ViewDesk::default());
        let engine = engine_service::serve(plugin.name(), self.root_resource.clone(), events.clone(), views.clone());
        let engine = engine.await.map_err(LoadError::Listen)?;
        let address = engine.address();
        let spec = LaunchSpec {
            package: &plugin.package,
            directory: settings.directory.clone(),
            environment: plugin_environment(config, &settings.project, &settings.environment).variables,
            start_timeout: config.start_timeout,
            sink: Arc::new(Relay { plugin: plugin.name().to_owned(), events }),
            spawner: &settings.spawner,
        };
        let launched = pulumi::launch(spec, &address).await.map_err(LoadError::Launch)?;
        let announcement =
            Announcement { engine_address: &address, program_folder: plugin.package.folder(), views: Some(&views) };
        let provider =
            connect(launched.connection, plugin.name(), Some(launched.process), announcement, settings.limits).await;
        let provider = provider.map_err(LoadError::Handshake)?;
        Ok(provider.with_init(plugin.declared.init.clone()).keeping((engine, plugin.package.clone())))
    }

    /// The plugin that a request means: by the name of its provider resource among those of the package, else the only
    /// one of the package.
    fn find(&self, request: &BootRequest) -> Result<&Plugin, HostError> {
        let of_package =
            || self.plugins.iter().filter(|plugin| plugin.declared.config.package.as_str() == request.package);
        let by_name = of_package().find(|plugin| plugin.name() == request.name);
        let found = match (by_name, of_package().count()) {
            (Some(plugin), _) => plugin,
            (None, 1) => of_package().next().ok_or_else(|| undeclared(request))?,
            (None, 0) => return Err(undeclared(request)),
            (None, _) => {
                let names: Vec<_> = of_package().map(Plugin::name).collect();
                let message = format!("several plugins serve the package {:?}: {}", request.package, names.join(", "));
                return Err(HostError::new(message).with_hint("say which one with options.provider"));
            }
        };
        // A state may have been made with another version. A later one has to cope with what an earlier one left.
        let wanted = request.version.as_ref().and_then(|version| version.parse::<PluginVersion>().ok());
        if let (Some(wanted), Some(declared)) = (wanted, found.package.version())
            && wanted > *declared
        {
            self.warn(found, format!("version {wanted} is asked for, and {declared} is declared"));
        }
        Ok(found)
    }

    fn warn(&self, plugin: &Plugin, message: String) {
        self.settings.events.emit(HostEvent::Warning { plugin: plugin.name().to_owned(), message });
    }
}

#[async_trait]
impl ProviderHost for PluginHost {
    async fn boot(&self, request: &BootRequest) -> Result<Arc<dyn Provider>, HostError> {
        let plugin = self.find(request)?;
        if self.ending.load(Ordering::Acquire) {
            return Err(ending(plugin));
        }
        let waiting = lock(&plugin.waiting).take();
        Ok(match waiting {
            Some(provider) => provider,
            None => self.start(plugin).await?,
        })
    }

    fn directory(&self) -> &Path {
        &self.settings.directory
    }

    async fn type_facts(&self, plugin: &str) -> Result<PackageTypes, HostError> {
        let Some(plugin) = self.plugins.iter().find(|known| known.name() == plugin) else {
            return Ok(PackageTypes::new());
        };
        let package = plugin.declared.config.package.as_str();
        let folder = self.settings.type_facts.as_deref();
        let memory = folder.and_then(|folder| Memory::new(folder, package, &plugin.package));
        let ask = async || {
            if let Some(memory) = memory.clone()
                && let Some(types) = memory.recall().await
            {
                return Ok(types);
            }
            // Who waits to be booted can say it; nobody else is started for that alone as long as one does.
            let waiting = lock(&plugin.waiting).clone();
            let provider = match waiting {
                Some(provider) => provider,
                None => self.start(plugin).await?,
            };
            let schema = provider.schema(SchemaRequest::default()).await;
            let schema = schema.map_err(|error| plugin.does_not_say_its_schema(error))?;
            let schema = schema.unwrap_or_else(|| "{}".to_owned());
            let types = type_facts::read(package, &schema).map_err(|error| plugin.unreadable_schema(error))?;
            if let Some(memory) = memory.clone() {
                memory.remember(types.clone()).await;
            }
            Ok(types)
        };
        plugin.type_facts.get_or_try_init(ask).await.cloned()
    }
}

impl fmt::Debug for PluginHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plugins: Vec<_> = self.plugins.iter().map(Plugin::name).collect();
        f.debug_struct("PluginHost").field("plugins", &plugins).finish_non_exhaustive()
    }
}

impl Plugin {
    fn does_not_say_its_schema(&self, error: ProviderError) -> HostError {
        without_schema(format!("plugin {} does not say its schema", self.name())).with_source(error)
    }

    fn unreadable_schema(&self, error: serde_json::Error) -> HostError {
        without_schema(format!("the schema of plugin {} cannot be read", self.name())).with_source(error)
    }

    fn name(&self) -> &str {
        self.declared.config.name.as_str()
    }
}

/// Passes on what a plugin writes, and what happens while it is fetched.
struct Relay {
    plugin: String,
    events: Arc<dyn HostEvents>,
}

impl OutputSink for Relay {
    fn line(&self, stream: OutputStream, line: &str) {
        self.events.emit(HostEvent::Output { plugin: self.plugin.clone(), stream, line: line.to_owned() });
    }
}

impl FetchEvents for Relay {
    fn emit(&self, event: FetchEvent) {
        self.events.emit(HostEvent::Fetch { plugin: self.plugin.clone(), event });
    }
}

/// Why a plugin is not loaded.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error("failed to resolve plugin binary")]
    Resolve(#[source] InstallError),
    #[error("failed to connect to plugin: cannot listen for its calls")]
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
    let hint = "nothing is known of the plugin's types without it, not what is secret either; its author can mend that";
    HostError::new(message).with_hint(hint)
}

fn ending(plugin: &Plugin) -> HostError {
    HostError::new(format!("plugin {} is not started: the run is ending", plugin.name()))
}

fn undeclared(request: &BootRequest) -> HostError {
    let message = format!("no enabled plugin serves the package {:?}", request.package);
    HostError::new(message).with_hint("declare it in plugins, or enable it")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
