//! The plugin host of a run: loads declared plugins and leases their instances.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::future::{join_all, try_join_all};

use super::connection_guard::ConnectionGuard;
use super::events::{PluginWork, WorkInProgress};
use super::host_settings::{CheckedPlugin, DeclaredPlugin, HostSettings};
use super::instance::Instance;
use super::instance_lease::InstanceLease;
use super::load_error::{LoadError, failed_to_load};
use super::package_schema::parse_schema;
use super::package_types::PackageTypes;
use super::parameterization::{check_declared, parameterize};
use super::run::{Plugin, Program, Run};
use super::subpackage::Subpackage;
use super::type_cache::TypeCache;
use super::{HostError, HostEvent, ProviderHost, ProviderRequest};
use crate::install::VerifiedPackage;
use crate::launch::describe_sandbox;
use crate::message_text::MessageText;
use crate::plugin::{Parameters, PluginName, PluginVersion, Sandbox};
use crate::provider::grpc::PluginInit;
use crate::provider::{ParameterizeRequest, Provider, ProviderError};

/// Plugins of a run, whose instances are processes of a pool.
///
/// # Invariants
/// Every instance that the run has leased is known until it is given back. Dropping the host kills those to which the engine
/// has no reference. A process whose start fails is killed.
pub struct PluginHost {
    run: Arc<Run>,
    plugins: Mutex<Vec<Arc<Plugin>>>,
    leases: Mutex<Vec<Arc<InstanceLease>>>,
    /// Held while a plugin that no stack declares is added.
    adding: tokio::sync::Mutex<()>,
}

impl PluginHost {
    /// Resolves and verifies all enabled plugins in parallel. If all succeed, starts the first instances of each, unless the pool
    /// has idle ones, calls Handshake, and waits for one of them. [`PluginHost::start_provider`] leases these instances first.
    /// Finds out which packages plugins with parameters serve.
    ///
    /// # Errors
    /// The names and errors of all plugins that cannot be resolved: no plugin has been executed then. Otherwise those of the
    /// first plugin that does not start.
    ///
    /// # Cancellation
    /// Plugins that are being started stay in the pool.
    pub async fn load(
        settings: HostSettings,
        plugins: Vec<DeclaredPlugin>,
    ) -> Result<Self, Vec<(PluginName, HostError)>> {
        let host = Self::new(settings);
        match host.add(plugins).await {
            Ok(()) => Ok(host),
            Err(failed) => {
                host.close().await;
                Err(failed)
            }
        }
    }

    /// Adds plugins, as [`PluginHost::load`] does. If one fails, none is added.
    ///
    /// # Errors
    /// Returns the errors of [`PluginHost::load`].
    ///
    /// # Cancellation
    /// Plugins that are being started stay in the pool.
    pub async fn add(&self, plugins: Vec<DeclaredPlugin>) -> Result<(), Vec<(PluginName, HostError)>> {
        let mut enabled: Vec<_> = plugins.into_iter().filter(|plugin| plugin.config.enabled).enumerate().collect();
        // The largest download begins first: the others end while it lasts.
        enabled.sort_by_cached_key(|(_, plugin)| Reverse(self.run.settings.sources.locked_size(&plugin.config)));
        let resolve = async |(place, declared): (usize, DeclaredPlugin)| {
            let name = declared.config.name.clone();
            (place, self.run.resolve(declared).await.map(Arc::new).map_err(|error| (name, error)))
        };
        let mut results = join_all(enabled.into_iter().map(resolve)).await;
        results.sort_by_key(|(place, _)| *place);
        let (mut resolved, mut failed) = (Vec::new(), Vec::new());
        for (_, result) in results {
            match result {
                Ok(plugin) => resolved.push(plugin),
                Err(failure) => failed.push(failure),
            }
        }
        if !failed.is_empty() {
            return Err(failed);
        }
        let start = async |plugin: &Arc<Plugin>| {
            let started = self.start_first_instance(plugin).await;
            started.map_err(|error| vec![(plugin.declared.config.name.clone(), error)])
        };
        try_join_all(resolved.iter().map(start)).await?;
        self.lock_plugins().extend(resolved);
        Ok(())
    }

    /// Checks in parallel that plugins can be resolved, verified and started, and returns the types of their packages in
    /// the same order: none for a plugin whose types are not needed. A plugin whose types are cached is not started,
    /// because it was started before. Configures no plugin. A plugin that fails does not stop the others.
    ///
    /// # Cancellation
    /// Plugins that are being started stay in the pool.
    pub async fn check(settings: HostSettings, plugins: Vec<CheckedPlugin>) -> Vec<Result<PackageTypes, HostError>> {
        let host = Self::new(settings);
        let check = async |checked: CheckedPlugin| {
            let declared = DeclaredPlugin {
                config: checked.config,
                init: PluginInit::default(),
                shares_equal_configurations: false,
            };
            let plugin = Arc::new(host.run.resolve(declared).await?);
            if checked.needs_types {
                return host.types_of(&plugin).await;
            }
            let instance = host.new_instance(&plugin).await?;
            host.run.pool().give_back(&plugin.group, instance, true).await;
            host.subpackage_of(&plugin).await?;
            Ok(PackageTypes::default())
        };
        let checked = join_all(plugins.into_iter().map(check)).await;
        host.close().await;
        checked
    }

    /// Creates a host without plugins.
    fn new(settings: HostSettings) -> Self {
        Self {
            run: Arc::new(Run::new(settings)),
            plugins: Mutex::default(),
            leases: Mutex::default(),
            adding: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the versions of the resolved packages, by the names of their plugins, as far as their sources tell them. That of a
    /// plugin with parameters is what the plugin tells.
    pub fn versions(&self) -> BTreeMap<String, PluginVersion> {
        let version = |plugin: Arc<Plugin>| {
            let version = match plugin.subpackage.get() {
                Some(subpackage) => subpackage.version.parse().ok()?,
                None => plugin.package().and_then(VerifiedPackage::version)?.clone(),
            };
            Some((plugin.name().to_owned(), version))
        };
        self.plugins().into_iter().filter_map(version).collect()
    }

    /// Returns what identifies the resolved packages, by the names of their plugins.
    pub fn package_identities(&self) -> BTreeMap<String, String> {
        let identity = |plugin: &Plugin| plugin.package().map(VerifiedPackage::identity).unwrap_or_default();
        self.plugins().iter().map(|plugin| (plugin.name().to_owned(), identity(plugin))).collect()
    }

    /// Returns the packages that plugins serve with their parameters, by the names of the plugins.
    pub fn subpackages(&self) -> BTreeMap<String, Arc<Subpackage>> {
        let subpackage = |plugin: Arc<Plugin>| Some((plugin.name().to_owned(), Arc::clone(plugin.subpackage.get()?)));
        self.plugins().into_iter().filter_map(subpackage).collect()
    }

    /// Returns true if an enabled plugin serves a package.
    pub fn serves(&self, package: &str) -> bool {
        self.lock_plugins().iter().any(|plugin| plugin.declared.config.package.as_str() == package)
    }

    /// Returns true if an enabled plugin is, without parameters, that of a package.
    pub fn serves_base(&self, package: &str) -> bool {
        self.lock_plugins().iter().any(|plugin| plugin.base_package() == package)
    }

    /// Returns the schemas (GetSchema) of the packages of all enabled plugins as JSON texts; `None` for a plugin
    /// without a schema. Requests them in parallel.
    ///
    /// # Errors
    /// [`HostError`] of the first plugin that does not start or whose GetSchema fails.
    pub async fn schemas(&self) -> Result<BTreeMap<String, Option<String>>, HostError> {
        let mut first = BTreeMap::new();
        for plugin in self.plugins() {
            first.entry(plugin.declared.config.package.to_string()).or_insert(plugin);
        }
        let load_schema =
            async |(package, plugin): (String, Arc<Plugin>)| Ok((package, self.schema_of(&plugin).await?));
        Ok(try_join_all(first.into_iter().map(load_schema)).await?.into_iter().collect())
    }

    /// Ends the run: gives all instances back to the pool, and ends those that only this run can use, in parallel: Cleanup,
    /// Cancel, SIGINT, SIGKILL. Returns once they have ended. No further instances are leased. An abort shortens the waits.
    pub async fn close(&self) {
        self.run.stop();
        let leases = std::mem::take(&mut *self.leases());
        join_all(leases.iter().map(|lease| lease.close())).await;
        self.run.end().await;
    }

    fn lock_plugins(&self) -> MutexGuard<'_, Vec<Arc<Plugin>>> {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plugins(&self) -> Vec<Arc<Plugin>> {
        self.lock_plugins().clone()
    }

    fn leases(&self) -> MutexGuard<'_, Vec<Arc<InstanceLease>>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a lease for a provider resource.
    async fn lease(&self, plugin: &Arc<Plugin>) -> Result<Arc<InstanceLease>, HostError> {
        let lease = InstanceLease::new(&self.run, plugin);
        {
            let mut leases = self.leases();
            leases.retain(|lease| !lease.is_closed());
            leases.push(Arc::clone(&lease));
        }
        // `close` may have taken the leases before.
        match self.run.check_not_stopped(plugin) {
            Ok(()) => Ok(lease),
            Err(error) => {
                lease.close().await;
                Err(error)
            }
        }
    }

    async fn start_first_instance(&self, plugin: &Arc<Plugin>) -> Result<(), HostError> {
        let settings = &self.run.settings;
        for name in &plugin.environment.missing {
            self.run.warn(plugin, format!("the environment variable {name} in passEnv is not set"));
        }
        self.run.warn_of_missing_restrictions(plugin);
        // The host starts no further processes of a plugin that runs already.
        if let Program::Package(_) = plugin.program
            && settings.first_instances > 1
        {
            self.run.start_ahead(plugin, settings.first_instances);
        }
        let instance = self.new_instance(plugin).await?;
        let (found, declared) = (
            instance.provider.version().and_then(|version| version.parse::<PluginVersion>().ok()),
            plugin.package().and_then(VerifiedPackage::version),
        );
        // It has not been used.
        self.run.pool().give_back(&plugin.group, instance, true).await;
        if let (Some(found), Some(declared)) = (&found, declared)
            && found < declared
        {
            self.run.warn(plugin, format!("version {declared} is declared, but the plugin reports version {found}"));
        }
        let version = found.map(|version| version.to_string());
        let sandbox = match plugin.package() {
            Some(_) => describe_sandbox(&plugin.declared.config.sandbox),
            None => describe_sandbox(&Sandbox::None),
        };
        settings.events.emit(HostEvent::Loaded { plugin: plugin.name().to_owned(), version, sandbox });
        self.subpackage_of(plugin).await.map(drop)
    }

    /// Leases an instance that serves the plugin's own package.
    async fn new_instance(&self, plugin: &Arc<Plugin>) -> Result<Arc<Instance>, HostError> {
        self.run.lease(plugin, |instance| instance.rank_for_schema(None)).await
    }

    /// Returns the package that a plugin serves with its parameters; `None` if it has none. Asks a new instance unless the
    /// cache has it.
    async fn subpackage_of(&self, plugin: &Arc<Plugin>) -> Result<Option<Arc<Subpackage>>, HostError> {
        let config = &plugin.declared.config;
        let Some(parameters) = plugin.parameters() else { return Ok(None) };
        let cache = self.type_cache(plugin);
        let load = async || {
            if let Some(cache) = cache.clone()
                && let Some(subpackage) = cache.load_subpackage().await
                && check_declared(&subpackage.name, config).is_ok()
            {
                return Ok(Arc::new(subpackage));
            }
            let subpackage = self.ask_for_subpackage(plugin, parameters).await?;
            if let Some(cache) = cache.clone() {
                cache.store_subpackage(subpackage.clone()).await;
            }
            Ok(Arc::new(subpackage))
        };
        plugin.subpackage.get_or_try_init(load).await.cloned().map(Some)
    }

    /// Asks a new instance for the package that it serves with parameters. The instance ends: it was not started with the value
    /// that the state records. Keeps the types of the package.
    async fn ask_for_subpackage(&self, plugin: &Arc<Plugin>, parameters: &Parameters) -> Result<Subpackage, HostError> {
        let config = &plugin.declared.config;
        let request = ParameterizeRequest::Arguments(parameters.arguments.clone());
        let events = &self.run.settings.events;
        let _working = WorkInProgress::begin(plugin.name(), PluginWork::Starting, |event| events.emit(event));
        let instance = self.run.lease(plugin, |instance| instance.rank_to_parameterize(&request)).await?;
        let parameterized = parameterize(&instance, request, config, self.run.id).await;
        self.run.pool().give_back(&plugin.group, instance, false).await;
        let (subpackage, schema) =
            parameterized.map_err(|error| failed_to_load(config, LoadError::Parameters(error)))?;
        // An error is reported where the types are needed.
        if let Ok(types) = parse_schema(&subpackage.name, &schema) {
            if let Some(cache) = self.type_cache(plugin) {
                cache.store(types.clone()).await;
            }
            plugin.package_types.set(types).ok();
        }
        Ok(subpackage)
    }

    /// Returns the schema of the package of a plugin. An instance that this run has leased replies to it beside other calls.
    async fn schema_of(&self, plugin: &Arc<Plugin>) -> Result<Option<String>, HostError> {
        let subpackage = self.subpackage_of(plugin).await?;
        let parameters = subpackage.as_deref().map(Subpackage::request);
        let request = || subpackage.as_deref().map(Subpackage::schema_request).unwrap_or_default();
        let leased = self
            .leases()
            .iter()
            .filter(|lease| lease.is_of(plugin))
            .find_map(|lease| lease.serving_instance(parameters.as_ref()));
        let schema = match leased {
            Some(instance) => instance.call(instance.provider.schema(request())).await,
            None => {
                let rank = |instance: &Instance| instance.rank_for_schema(parameters.as_ref());
                let instance = self.run.lease(plugin, rank).await?;
                let served = match &parameters {
                    Some(parameters) => self.run.parameterize(plugin, &instance, parameters.clone()).await.map(drop),
                    None => Ok(()),
                };
                let schema = match served {
                    Ok(()) => instance.call(instance.provider.schema(request())).await,
                    Err(error) => Err(error),
                };
                // Also with `keep: never`: GetSchema leaves no trace in an instance.
                let keep = instance.is_reusable();
                self.run.pool().give_back(&plugin.group, instance, keep).await;
                schema
            }
        };
        schema.map_err(|error| schema_call_failed(plugin, error))
    }

    /// Returns the types of the package of a plugin: from the cache, else from the schema that an instance returns.
    async fn types_of(&self, plugin: &Arc<Plugin>) -> Result<PackageTypes, HostError> {
        let package = plugin.declared.config.package.as_str();
        // It may have the types.
        self.subpackage_of(plugin).await?;
        let cache = self.type_cache(plugin);
        let load = async || {
            if let Some(cache) = cache.clone()
                && let Some(types) = cache.load().await
            {
                return Ok(types);
            }
            let schema = self.schema_of(plugin).await?.unwrap_or_else(|| "{}".to_owned());
            let types = parse_schema(package, &schema).map_err(|error| invalid_schema(plugin, error))?;
            if let Some(cache) = cache.clone() {
                cache.store(types.clone()).await;
            }
            Ok(types)
        };
        plugin.package_types.get_or_try_init(load).await.cloned()
    }

    /// Returns the cache for the types of a package; `None` if nothing tells whether the package has changed.
    fn type_cache(&self, plugin: &Plugin) -> Option<TypeCache> {
        let (folder, config) = (self.run.settings.type_cache.as_deref()?, &plugin.declared.config);
        TypeCache::new(folder, config.package.as_str(), plugin.package()?, plugin.parameters())
    }

    /// Returns the plugins that can serve a request. A package that is served after Parameterize comes from the plugin that is declared for
    /// it, else from any plugin that serves the same without parameters.
    fn serving(&self, request: &ProviderRequest) -> Vec<Arc<Plugin>> {
        let plugins = self.plugins();
        let is_declared = |plugin: &Arc<Plugin>| match (&request.subpackage, &plugin.declared.config.parameters) {
            (Some(subpackage), Some(_)) => plugin.declared.config.package.as_str() == subpackage,
            (Some(_), None) => false,
            (None, _) => plugin.declared.config.package.as_str() == request.package,
        };
        let is_base = |plugin: &Arc<Plugin>| request.subpackage.is_some() && plugin.base_package() == request.package;
        let any_declared = plugins.iter().any(is_declared);
        plugins.into_iter().filter(|plugin| if any_declared { is_declared(plugin) } else { is_base(plugin) }).collect()
    }

    /// Returns the plugin for a request: of those that can serve it, the one with the name of the provider resource, else the only one.
    fn find_plugin(&self, request: &ProviderRequest) -> Result<Arc<Plugin>, HostError> {
        let serving = self.serving(request);
        let by_name = serving.iter().find(|plugin| plugin.name() == request.name);
        let found = match (by_name, &serving[..]) {
            (Some(plugin), _) | (None, [plugin]) => plugin,
            (None, []) => return Err(undeclared_package(request)),
            (None, several) => {
                let names: Vec<_> = several.iter().map(|plugin| plugin.name()).collect();
                let message = MessageText::new(format_args!(
                    "several plugins serve the package {:?}: {}",
                    request.package,
                    names.join(", ")
                ));
                return Err(HostError::new(message).with_hint("select one of them with options.provider"));
            }
        };
        // The state may come from another version of the plugin. A later version must support the state of an earlier
        // one.
        let requested = request.version.as_ref().and_then(|version| version.parse::<PluginVersion>().ok());
        if let (Some(requested), Some(declared)) = (requested, found.package().and_then(VerifiedPackage::version))
            && requested > *declared
            && !found.is_later_version_reported.swap(true, Ordering::Relaxed)
        {
            self.run.warn(found, format!("version {requested} is requested, but version {declared} is declared"));
        }
        Ok(Arc::clone(found))
    }
}

#[async_trait]
impl ProviderHost for PluginHost {
    async fn start_provider(&self, request: &ProviderRequest) -> Result<Arc<dyn Provider>, HostError> {
        if let Some(undeclared) = &self.run.settings.undeclared
            && self.serving(request).is_empty()
        {
            // One at a time: a plugin is added once.
            let _adding = self.adding.lock().await;
            if self.serving(request).is_empty()
                && let Some(found) = undeclared.find(request).await
            {
                self.add(vec![found]).await.map_err(|mut failed| match failed.pop() {
                    Some((_, error)) => error,
                    None => undeclared_package(request),
                })?;
            }
        }
        let plugin = self.find_plugin(request)?;
        let lease = self.lease(&plugin).await?;
        if request.subpackage.is_none()
            && let Some(subpackage) = plugin.subpackage.get()
        {
            // The provider resource was recorded before the plugin was declared with parameters.
            lease.set_parameters(subpackage.request());
        }
        Ok(lease)
    }

    fn directory(&self) -> &Path {
        &self.run.settings.directory
    }

    fn connection_guard(&self) -> Arc<ConnectionGuard> {
        self.run.settings.pool.connection_guard()
    }

    async fn package_types(&self, plugin: &str) -> Result<PackageTypes, HostError> {
        match self.plugins().iter().find(|known| known.name() == plugin) {
            Some(plugin) => self.types_of(plugin).await,
            None => Ok(PackageTypes::default()),
        }
    }
}

impl fmt::Debug for PluginHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plugins = self.plugins();
        let plugins: Vec<_> = plugins.iter().map(|plugin| plugin.name()).collect();
        f.debug_struct("PluginHost").field("plugins", &plugins).finish_non_exhaustive()
    }
}

fn schema_call_failed(plugin: &Plugin, error: ProviderError) -> HostError {
    without_schema(format!("cannot get the schema of plugin {}", plugin.name())).with_source(error)
}

fn invalid_schema(plugin: &Plugin, error: serde_json::Error) -> HostError {
    without_schema(format!("the schema of plugin {} is invalid", plugin.name())).with_source(error)
}

fn without_schema(message: String) -> HostError {
    let hint = "sc needs the schema to find secret properties and components; report this to the author of the plugin";
    HostError::new(message).with_hint(hint)
}

fn undeclared_package(request: &ProviderRequest) -> HostError {
    let ProviderRequest { package, subpackage, .. } = request;
    let Some(subpackage) = subpackage else {
        let message = MessageText::new(format_args!("no enabled plugin serves the package {package:?}"));
        return HostError::new(message).with_hint("declare it in plugins, or enable it");
    };
    let message = MessageText::new(format_args!(
        "no enabled plugin serves the package {subpackage:?}, which the plugin {package:?} serves with parameters"
    ));
    HostError::new(message).with_hint("declare it in plugins, with its `parameters`, or enable it")
}
