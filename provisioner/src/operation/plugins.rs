//! Loading of the plugins that a stack declares.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bridge::error::Hint as _;
use bridge::host::{HostError, HostSettings, PackageTypes, PluginHost, ProviderHost as _};
use bridge::message_text::MessageText;
use bridge::plugin::{PluginConfig, PluginName};
use futures_util::future::try_join_all;

use crate::program::{Program, ResolvedPlugins, SchemaFindings};
use crate::registry::recipes;
use crate::schema::Package;
use config::Stack;
use config::diagnostics::{Code, Diagnostic, Severity as DiagnosticSeverity, Span, finish};
use engine::events::{Event, EventSink, Message, Operation, Severity};
use engine::{DeploymentRequest, StopSignals};
use state::Snapshot;

use super::core_packages::LocatedPackage;
use super::declared_plugin::{declared, plugin_init, undeclared};
use super::opening::unserved_resources;
use super::package_request::PackageRequest;
use super::plugin_events::run_event_sink;
use super::undeclared_plugins::UndeclaredUse;
use super::{OperationError, PluginSettings, StackRun};

const PLUGIN_LOAD: Code = Code("plugin-load");

impl StackRun {
    /// Fetches, verifies and starts every enabled plugin once, so that a plugin which cannot start fails the run before
    /// the stack is changed. Returns the plugins that an earlier operation of the run has loaded. `first_instances` is that of
    /// [`HostSettings`].
    pub(super) async fn load_plugins(&self, first_instances: usize) -> Result<Arc<PluginHost>, OperationError> {
        let load = async || {
            let requests: Vec<_> = self.program.undeclared_packages().into_iter().map(PackageRequest::from).collect();
            let provided = self.plugins.provide(requests.clone(), &self.events, &self.signals).await?;
            let settings = self.plugins.host_settings(&self.program.stack().project, &self.events, &self.signals);
            let undeclared = Some(Arc::new(UndeclaredUse::new(self)) as _);
            let settings = HostSettings { first_instances, undeclared, ..settings };
            let host = self.plugins.load(self.program.stack(), provided, &requests, settings, &self.signals).await?;
            self.set_resolved(&host)?;
            Ok(host)
        };
        self.host.get_or_try_init(load).await.cloned()
    }

    /// Tells the program the versions of the plugins, and what their parameters mean. Emits warnings.
    fn set_resolved(&self, host: &PluginHost) -> Result<(), OperationError> {
        let mut versions = host.versions();
        for plugin in self.program.stack().plugins.iter().map(|declared| &declared.plugin) {
            // A process that runs already has no package.
            if let (false, Some(locked)) =
                (versions.contains_key(plugin.name.as_str()), self.plugins.locked_version(plugin))
            {
                versions.insert(plugin.name.to_string(), locked);
            }
        }
        let (errors, warnings): (Vec<_>, Vec<_>) = self
            .program
            .set_resolved(ResolvedPlugins { versions, subpackages: host.subpackages() })
            .into_iter()
            .partition(|found| found.severity == DiagnosticSeverity::Error);
        for warning in warnings {
            self.events.emit(Event::Message(Message::new(Severity::Warning, warning.summary)));
        }
        if errors.is_empty() { Ok(()) } else { Err(OperationError::Types(errors)) }
    }

    /// Loads the packages that only recorded resources need, such as those of a core type that has left the file. Packages of
    /// plugins that the stack declares are not loaded, also if the plugins are disabled.
    ///
    /// # Errors
    /// Returns the errors of [`StackRun::load_plugins`].
    pub(super) async fn load_recorded_packages(
        &self,
        host: &PluginHost,
        recorded: &Snapshot,
    ) -> Result<(), OperationError> {
        let stack = self.program.stack();
        let mut seen = BTreeSet::new();
        let requests: Vec<PackageRequest> = unserved_resources(host, recorded)
            .filter(|(package, _)| !stack.plugins.iter().any(|plugin| plugin.package() == package))
            .filter_map(|(package, urn)| {
                let package = recipes::package(&package).filter(|package| seen.insert(package.name))?;
                let needed_by = format!("the recorded resource {}", urn.name());
                Some(PackageRequest { package, needed_by, span: None })
            })
            .collect();
        if requests.is_empty() {
            return Ok(());
        }
        let provided = self.plugins.provide(requests.clone(), &self.events, &self.signals).await?;
        let adding = host.add(provided.into_iter().map(|config| undeclared(config, stack)).collect());
        tokio::select! {
            added = adding => added.map_err(|failed| load_error(stack, &requests, failed)),
            () = self.signals.stop.cancelled() => Err(OperationError::Stopped),
        }
    }

    /// Ends the plugins that only this run can use. Call it once the last operation of the run has returned.
    pub async fn close(&self) {
        if let Some(host) = self.host.get() {
            host.close().await;
        }
    }

    /// Checks the resources of plugins against the schemas, if the operation registers them. Emits warnings.
    ///
    /// # Errors
    /// Returns the errors of [`StackRun::check_declared_types`].
    pub(super) async fn check_types(&self, host: &PluginHost, operation: Operation) -> Result<(), OperationError> {
        if self.has_program(operation) { self.check_declared_types(host).await } else { Ok(()) }
    }

    /// Returns whether an operation registers the resources of the stack.
    pub(super) fn has_program(&self, operation: Operation) -> bool {
        let (stack, options) = (self.program.stack(), self.options.deployment.clone());
        let request = DeploymentRequest::new(&stack.name, &stack.project, operation);
        DeploymentRequest { options, ..request }.has_program()
    }

    /// Checks the resources of plugins that the stack declares against the schemas. Emits warnings.
    ///
    /// # Errors
    /// [`OperationError::Types`] if a schema lacks a type or a property; [`OperationError::Schema`] if a schema cannot
    /// be read; [`OperationError::Stopped`] if the user stopped the operation.
    pub(super) async fn check_declared_types(&self, host: &PluginHost) -> Result<(), OperationError> {
        let SchemaFindings { errors, warnings } = self.program.check_types(&self.package_types(host).await?);
        warnings.into_iter().for_each(|warning| self.events.emit(Event::Message(warning.message)));
        if errors.is_empty() { Ok(()) } else { Err(OperationError::Types(errors)) }
    }

    /// Checks the references to outputs of plugin resources against the schemas and what is recorded, if the operation
    /// registers the resources.
    ///
    /// # Errors
    /// Returns the errors of [`StackRun::check_declared_types`].
    pub(super) async fn check_outputs(
        &self,
        host: &PluginHost,
        operation: Operation,
        recorded: &Snapshot,
    ) -> Result<(), OperationError> {
        if !self.has_program(operation) {
            return Ok(());
        }
        let recorded_output = |name: &str, output: &str| {
            let mut named = recorded.resources.iter().filter(|resource| resource.urn.name() == name);
            named.find_map(|resource| resource.outputs.get(output)).cloned()
        };
        let errors = self.program.check_outputs(&self.package_types(host).await?, recorded_output);
        if errors.is_empty() { Ok(()) } else { Err(OperationError::Types(errors)) }
    }

    /// Returns the types of the packages that the program needs, by plugin.
    async fn package_types(&self, host: &PluginHost) -> Result<BTreeMap<String, PackageTypes>, OperationError> {
        let load = async |plugin: String| host.package_types(&plugin).await.map(|types| (plugin, types));
        let types = tokio::select! {
            types = try_join_all(self.program.plugins_with_package_types().into_iter().map(load)) => types,
            () = self.signals.stop.cancelled() => return Err(OperationError::Stopped),
        };
        Ok(types.map_err(OperationError::Schema)?.into_iter().collect())
    }
}

impl PluginSettings {
    /// Starts every enabled plugin of a stack, and returns the schemas of their packages. Configures no plugin.
    ///
    /// # Errors
    /// [`OperationError::Plugins`] or [`OperationError::SeveralPlugins`] if plugins do not load, the former if a schema
    /// cannot be read; [`OperationError::Stopped`] if the user stopped the operation.
    pub async fn schemas(
        &self,
        stack: &Stack,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<Vec<Package>, OperationError> {
        let schemas = self.schema_texts(stack, events, signals).await;
        let read = |(name, text): (String, Option<String>)| {
            let unreadable = |error: schemas::SchemaError| {
                let message = MessageText::new(format_args!("the schema of the package {name} cannot be read"));
                unlocated(HostError::new(message).with_source(error))
            };
            let schemas = text.as_deref().map(schemas::convert_package).transpose().map_err(unreadable)?;
            Ok(Package { schemas, name })
        };
        schemas?.into_iter().map(read).collect()
    }

    /// Starts every enabled plugin of a stack, and returns the schemas of their packages as they are: JSON texts by the name of the package;
    /// `None` for a package without a schema. Configures no plugin.
    ///
    /// # Errors
    /// Returns the errors of [`PluginSettings::schemas`].
    pub async fn schema_texts(
        &self,
        stack: &Stack,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<BTreeMap<String, Option<String>>, OperationError> {
        let settings = self.host_settings(&stack.project, events, signals);
        let host = self.load(stack, Vec::new(), &[], settings, signals).await?;
        let schemas = tokio::select! {
            result = host.schemas() => result.map_err(unlocated),
            () = signals.stop.cancelled() => Err(OperationError::Stopped),
        };
        host.close().await;
        schemas
    }

    /// Locates or downloads all packages that the programs of a command need and no plugin declares, before the first stack is
    /// changed. Emits where they are taken from.
    ///
    /// # Errors
    /// [`OperationError::Packages`] if packages cannot be installed; [`OperationError::DownloadDeclined`];
    /// [`OperationError::Stopped`] if the user stopped the operation.
    pub async fn provide_packages(
        &self,
        programs: &[Program],
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<Vec<PluginConfig>, OperationError> {
        let requests = programs.iter().flat_map(Program::undeclared_packages).map(PackageRequest::from).collect();
        self.provide(requests, events, signals).await
    }

    /// Returns the packages that the programs of a command need and no plugin declares, as plugins. Downloads none.
    ///
    /// # Errors
    /// [`OperationError::Packages`] if a name cannot be used.
    pub fn undeclared_packages(&self, programs: &[Program]) -> Result<Vec<PluginConfig>, OperationError> {
        let requests = programs.iter().flat_map(Program::undeclared_packages).map(PackageRequest::from);
        Ok(self.packages.plugins(requests)?)
    }

    /// Returns the packages that a program needs and no plugin declares, and where they are. Downloads none.
    ///
    /// # Errors
    /// [`OperationError::Packages`] if the cache cannot be used.
    pub async fn locate_packages(&self, program: &Program) -> Result<Vec<LocatedPackage>, OperationError> {
        Ok(self.packages.locate(program, |package| self.is_attached(package)).await?)
    }

    async fn provide(
        &self,
        requests: Vec<PackageRequest>,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<Vec<PluginConfig>, OperationError> {
        Ok(self.packages.provide(requests, |package| self.is_attached(package), events, signals).await?)
    }

    /// Loads the plugins of a stack, and packages that no plugin declares, with the requests for them.
    async fn load(
        &self,
        stack: &Stack,
        provided: Vec<PluginConfig>,
        requests: &[PackageRequest],
        settings: HostSettings,
        signals: &StopSignals,
    ) -> Result<Arc<PluginHost>, OperationError> {
        let of_stack = stack
            .plugins
            .iter()
            .map(|plugin| declared(plugin.plugin.clone(), plugin_init(plugin, &stack.project, &stack.name)));
        let all = of_stack.chain(provided.into_iter().map(|config| undeclared(config, stack))).collect();
        let loading = PluginHost::load(settings, all);
        tokio::select! {
            loaded = loading => loaded.map(Arc::new).map_err(|failed| load_error(stack, requests, failed)),
            // What is being started stays in the pool, which its owner closes.
            () = signals.stop.cancelled() => Err(OperationError::Stopped),
        }
    }

    pub(super) fn host_settings(
        &self,
        project: &str,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> HostSettings {
        HostSettings {
            project: project.to_owned(),
            directory: self.directory.clone(),
            secret_files: self.secret_files.clone(),
            environment: self.environment.clone(),
            spawner: self.spawner.clone(),
            sources: self.sources.clone(),
            limits: self.limits,
            abort: signals.abort.clone(),
            type_cache: Some(self.type_cache.clone()),
            first_instances: 1,
            events: run_event_sink(events, &self.loaded),
            pool: self.pool.clone(),
            attached: self.attached.clone(),
            undeclared: None,
        }
    }
}

/// Returns the error of a plugin without the position of its declaration.
fn unlocated(error: HostError) -> OperationError {
    OperationError::Plugins { error, found: Vec::new() }
}

/// Returns the error of plugins that were not loaded, with the positions of their declarations, or of the requests for their
/// packages.
pub(super) fn load_error(
    stack: &Stack,
    requests: &[PackageRequest],
    failed: Vec<(PluginName, HostError)>,
) -> OperationError {
    load_error_in(&[stack], requests, failed)
}

/// Returns the error of plugins that several stacks may declare: see [`load_error`]. The first declaration counts.
pub(super) fn load_error_in(
    stacks: &[&Stack],
    requests: &[PackageRequest],
    mut failed: Vec<(PluginName, HostError)>,
) -> OperationError {
    let requested = |name: &PluginName| requests.iter().find(|request| request.package.name == name.as_str())?.span;
    let span = |name: &PluginName| {
        let declared = stacks.iter().flat_map(|stack| &stack.plugins).find(|plugin| plugin.plugin.name == *name);
        declared.map(|plugin| plugin.name_span).or_else(|| requested(name))
    };
    if failed.len() == 1 {
        let (name, error) = failed.swap_remove(0);
        // The error of the operation has the causes and the hint.
        let found = vec![Diagnostic::error(PLUGIN_LOAD, span(&name), MessageText::of(&error))];
        return OperationError::Plugins { error, found };
    }
    let mut found = failed.iter().map(|(name, error)| plugin_error(span(name), error)).collect();
    finish(&mut found);
    OperationError::SeveralPlugins(found)
}

/// Returns the error of a plugin that was not loaded.
pub(super) fn plugin_error(name_span: Option<Span>, error: &HostError) -> Diagnostic {
    let diagnostic = Diagnostic::error(PLUGIN_LOAD, name_span, MessageText::chain(error));
    match error.hint() {
        Some(hint) => diagnostic.help(hint),
        None => diagnostic,
    }
}
