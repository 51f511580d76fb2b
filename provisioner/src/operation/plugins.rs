//! Loading of the plugins that a stack declares.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bridge::error::{Hint as _, chain};
use bridge::host::{
    DeclaredPlugin, HostError, HostEvent, HostEvents, HostSettings, PackageTypes, PluginHost, ProviderHost as _,
};
use bridge::install::{FetchEvent, InstallError, VerifiedPackage, local_digest};
use bridge::plugin::{PluginConfig, PluginName, Sha256Digest};
use bridge::provider::grpc::{AuthEntry, PluginInit};
use futures_util::future::{join_all, try_join_all};

use crate::program::SchemaFindings;
use crate::schema::Package;
use config::diagnostics::{Code, Diagnostic, Span, finish};
use config::{PluginDeclaration, Stack, values};
use engine::events::{Download, DownloadStage, Event, EventSink, Message, Operation, Severity};
use engine::{DeploymentOptions, StopSignals};
use pulumi_proto::property::PropertyValue;
use state::Snapshot;

use super::{OperationError, PluginSettings, StackRun};

const PLUGIN_LOAD: Code = Code("plugin-load");

impl StackRun {
    /// Fetches, verifies and starts every enabled plugin once, so that a plugin which cannot start fails the run before
    /// the stack is changed. Returns the plugins that an earlier operation of the run has loaded.
    pub(super) async fn load_plugins(&self) -> Result<Arc<PluginHost>, OperationError> {
        let load = || self.plugins.load(self.program.stack(), &self.events, &self.signals);
        self.host.get_or_try_init(load).await.cloned()
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
    fn has_program(&self, operation: Operation) -> bool {
        let (stack, run_program) = (self.program.stack(), self.options.run_program);
        let options = DeploymentOptions::new(&stack.name, &stack.project, operation);
        DeploymentOptions { run_program, ..options }.has_program()
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

/// Returns the input of a plugin's Initialize. It never includes the profile, which holds keys.
fn plugin_init(plugin: &PluginDeclaration, project: &str, stack: &str) -> PluginInit {
    let map = |value: PropertyValue| match value {
        PropertyValue::Map(map) => map,
        _ => Default::default(),
    };
    let secrets = &plugin.secrets;
    PluginInit {
        project: project.to_owned(),
        stack: stack.to_owned(),
        secrets: secrets.secrets.iter().map(|(name, text)| (name.clone(), text.expose().to_owned())).collect(),
        auth: secrets
            .auth
            .iter()
            .map(|(name, auth)| {
                let fields = auth.config.iter().map(|(key, text)| (key.clone(), text.expose().into()));
                (name.clone(), AuthEntry { kind: auth.kind.as_str().to_owned(), config: fields.collect() })
            })
            .collect(),
        config: map(values::evaluate_constant(&plugin.config).without_wrappers()),
    }
}

/// Returns a receiver of plugin events that emits them as events of the run.
fn run_event_sink(events: &Arc<dyn EventSink>) -> Arc<dyn HostEvents> {
    Arc::new(RunEventSink { events: Arc::clone(events), downloads: Mutex::default() })
}

/// Enabled plugin of a stack, and the result of its installation.
#[derive(Debug)]
pub struct InstalledPlugin {
    /// Declaration of the plugin.
    pub plugin: PluginConfig,
    /// Verified package, or the error that prevented its installation.
    pub package: Result<VerifiedPackage, HostError>,
    /// Digest by which a `checksum` pins the package, or the reason why it cannot be pinned; `None` if it was not
    /// installed.
    pub digest: Result<Option<Sha256Digest>, InstallError>,
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
        let host = self.load(stack, events, signals).await?;
        let schemas = tokio::select! {
            result = host.schemas() => result.map_err(unlocated),
            () = signals.stop.cancelled() => Err(OperationError::Stopped),
        };
        host.close().await;
        let read = |(name, text): (String, Option<String>)| {
            let unreadable = |error: schemas::SchemaError| {
                let message = format!("the schema of the package {name} cannot be read");
                unlocated(HostError::new(message).with_source(error))
            };
            let schemas = text.as_deref().map(schemas::convert_package).transpose().map_err(unreadable)?;
            Ok(Package { schemas, name })
        };
        schemas?.into_iter().map(read).collect()
    }

    async fn load(
        &self,
        stack: &Stack,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<Arc<PluginHost>, OperationError> {
        let declared = stack.plugins.iter().map(|plugin| DeclaredPlugin {
            config: plugin.plugin.clone(),
            init: plugin_init(plugin, &stack.project, &stack.name),
        });
        let loading = PluginHost::load(self.host_settings(&stack.project, events, signals), declared.collect());
        tokio::select! {
            loaded = loading => loaded.map(Arc::new).map_err(|failed| load_error(stack, failed)),
            // What is being started stays in the pool, which its owner closes.
            () = signals.stop.cancelled() => Err(OperationError::Stopped),
        }
    }

    /// Returns the settings of a host for the plugins of a project.
    pub(super) fn host_settings(
        &self,
        project: &str,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> HostSettings {
        HostSettings {
            project: project.to_owned(),
            directory: self.directory.clone(),
            environment: self.environment.clone(),
            spawner: self.spawner.clone(),
            sources: self.sources.clone(),
            limits: self.limits,
            abort: signals.abort.clone(),
            type_cache: Some(self.type_cache.clone()),
            events: run_event_sink(events),
            pool: self.pool.clone(),
            attached: self.attached.clone(),
        }
    }

    /// Fetches and verifies all enabled plugins of a stack concurrently, without starting them. A plugin that fails
    /// does not stop the other plugins.
    ///
    /// # Errors
    /// [`OperationError::Stopped`] if the user stopped the operation.
    pub async fn install(
        &self,
        stack: &Stack,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<Vec<InstalledPlugin>, OperationError> {
        let events = run_event_sink(events);
        let resolve = async |plugin: &PluginConfig| {
            let package = self.sources.resolve(plugin, &events).await;
            let digest = match &package {
                Ok(package) if package.digest().is_none() => local_digest(&self.directory, plugin).await,
                Ok(package) => Ok(package.digest()),
                Err(_) => Ok(None),
            };
            InstalledPlugin { plugin: plugin.clone(), package, digest }
        };
        let enabled = stack.plugins.iter().map(|declared| &declared.plugin).filter(|plugin| plugin.enabled);
        tokio::select! {
            installed = join_all(enabled.map(resolve)) => Ok(installed),
            // Dropping the future discards incomplete downloads.
            () = signals.stop.cancelled() => Err(OperationError::Stopped),
        }
    }
}

/// Returns the error of a plugin without the position of its declaration.
fn unlocated(error: HostError) -> OperationError {
    OperationError::Plugins { error, found: Vec::new() }
}

/// Returns the error of plugins that were not loaded, with the positions of their declarations.
pub(super) fn load_error(stack: &Stack, mut failed: Vec<(PluginName, HostError)>) -> OperationError {
    let span = |name: &PluginName| {
        stack.plugins.iter().find(|plugin| plugin.plugin.name == *name).map(|plugin| plugin.name_span)
    };
    if failed.len() == 1 {
        let (name, error) = failed.swap_remove(0);
        // The error of the operation has the causes and the hint.
        let found = vec![Diagnostic::error(PLUGIN_LOAD, span(&name), error.to_string())];
        return OperationError::Plugins { error, found };
    }
    let mut found = failed.iter().map(|(name, error)| plugin_error(span(name), error)).collect();
    finish(&mut found);
    OperationError::SeveralPlugins(found)
}

/// Returns the error of a plugin that was not loaded.
pub(super) fn plugin_error(name_span: Option<Span>, error: &HostError) -> Diagnostic {
    let diagnostic = Diagnostic::error(PLUGIN_LOAD, name_span, chain(error));
    match error.hint() {
        Some(hint) => diagnostic.help(hint),
        None => diagnostic,
    }
}

/// Receiver of plugin events that emits them as events of the run.
struct RunEventSink {
    events: Arc<dyn EventSink>,
    /// Downloads by plugin.
    downloads: Mutex<HashMap<String, Option<Download>>>,
}

impl RunEventSink {
    fn fetch(&self, plugin: String, event: FetchEvent) {
        let about = |severity, text| Message { plugin: Some(plugin.clone()), ..Message::new(severity, text) };
        let message = match event {
            FetchEvent::Waiting => about(Severity::Info, "waiting for another run that fetches it".to_owned()),
            FetchEvent::Warning(text) => about(Severity::Warning, text),
            FetchEvent::Started { name, bytes } => {
                return self.download(plugin.clone(), |known| {
                    let stage = DownloadStage::Started;
                    *known = Some(Download { plugin, name, received: 0, total: bytes, stage });
                });
            }
            FetchEvent::Received { bytes } => {
                return self.download(plugin, |known| {
                    if let Some(download) = known {
                        (download.received, download.stage) = (bytes, DownloadStage::Running);
                    }
                });
            }
            FetchEvent::Ended { complete } => {
                return self.download(plugin, |known| {
                    if let Some(download) = known {
                        download.stage = if complete { DownloadStage::Done } else { DownloadStage::Failed };
                        download.received = download.total.filter(|_| complete).unwrap_or(download.received);
                    }
                });
            }
        };
        self.events.emit(Event::Message(message));
    }

    /// Updates and emits the progress of a plugin's download.
    fn download(&self, plugin: String, change: impl FnOnce(&mut Option<Download>)) {
        let mut downloads = self.downloads.lock().unwrap_or_else(PoisonError::into_inner);
        let known = downloads.entry(plugin).or_default();
        change(known);
        if let Some(download) = known {
            self.events.emit(Event::Download(download.clone()));
        }
    }
}

impl HostEvents for RunEventSink {
    fn emit(&self, event: HostEvent) {
        let message = match event {
            HostEvent::Fetch { plugin, event } => return self.fetch(plugin, event),
            HostEvent::Loaded { plugin, version, sandbox } => {
                let version = version.map(|version| format!(" v{version}")).unwrap_or_default();
                let text = format!("Loaded plugin: {plugin}{version}");
                self.events.emit(Event::Message(Message::new(Severity::Info, text)));
                Message { plugin: Some(plugin), ..Message::new(Severity::Debug, format!("sandbox: {sandbox}")) }
            }
            HostEvent::Log { plugin, message } => Message {
                urn: message.urn.and_then(|urn| urn.parse().ok()),
                plugin: Some(plugin),
                ephemeral: message.ephemeral,
                logged: true,
                ..Message::new(severity(message.severity), message.text)
            },
            HostEvent::Output { plugin, line, .. } => {
                Message { plugin: Some(plugin), logged: true, ..Message::new(Severity::Debug, line) }
            }
            HostEvent::ForeignConnection { uid } => Message {
                hint: Some("if a plugin runs under another account, it must run under that of sc".to_owned()),
                ..Message::new(
                    Severity::Warning,
                    format!("another account of this machine (user id {uid}) tried to call this run; it was refused"),
                )
            },
            HostEvent::UnverifiedConnection => Message::new(
                Severity::Warning,
                "this system does not report which account opens a connection: other accounts of this machine can call \
                 this run while plugins run",
            ),
            HostEvent::TooManyConnections { limit } => Message {
                hint: Some("a higher limit of open files (`ulimit -n`) allows more connections".to_owned()),
                ..Message::new(
                    Severity::Warning,
                    format!("plugins have opened more than {limit} connections to sc; further ones are closed"),
                )
            },
            HostEvent::Warning { plugin, message } => {
                Message { plugin: Some(plugin), ..Message::new(Severity::Warning, message) }
            }
        };
        self.events.emit(Event::Message(message));
    }
}

fn severity(severity: bridge::host::Severity) -> Severity {
    match severity {
        bridge::host::Severity::Debug => Severity::Debug,
        bridge::host::Severity::Info => Severity::Info,
        bridge::host::Severity::Warning => Severity::Warning,
        bridge::host::Severity::Error => Severity::Error,
    }
}

#[cfg(test)]
mod tests {
    use bridge::host::{LogMessage, Severity as LogSeverity};
    use bridge::process::OutputStream;

    use super::*;

    #[derive(Default)]
    struct Messages(Mutex<Vec<Message>>);

    impl EventSink for Messages {
        fn emit(&self, event: Event) {
            if let Event::Message(message) = event {
                self.0.lock().unwrap().push(message);
            }
        }
    }

    #[test]
    fn only_texts_that_plugins_logged_or_printed_may_be_dropped() {
        let messages = Arc::new(Messages::default());
        let sink = RunEventSink { events: Arc::clone(&messages) as Arc<dyn EventSink>, downloads: Mutex::default() };
        let plugin = || "p".to_owned();
        let text = "x".to_owned();
        let severity = LogSeverity::Info;
        let message = LogMessage { severity, text: text.clone(), urn: None, stream_id: 0, ephemeral: false };
        sink.emit(HostEvent::Log { plugin: plugin(), message });
        sink.emit(HostEvent::Output { plugin: plugin(), stream: OutputStream::Stdout, line: text.clone() });
        sink.emit(HostEvent::Warning { plugin: plugin(), message: text });
        sink.emit(HostEvent::Fetch { plugin: plugin(), event: FetchEvent::Waiting });
        let logged: Vec<bool> = messages.0.lock().unwrap().iter().map(|message| message.logged).collect();
        assert_eq!(logged, [true, true, false, false]);
    }
}
