//! Loading of the plugins that a stack declares.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bridge::error::{Hint as _, chain};
use bridge::host::{DeclaredPlugin, HostError, HostEvent, HostEvents, HostSettings, PluginHost};
use bridge::install::{FetchEvent, VerifiedPackage};
use bridge::plugin::PluginConfig;
use bridge::provider::grpc::{AuthEntry, PluginInit};
use futures_util::future::join_all;

use crate::schema::Package;
use config::{PluginDeclaration, SecretText, Stack, values};
use engine::events::{Download, DownloadStage, Event, EventSink, Message, Severity};
use engine::{ConfigEntry, StopSignals};
use pulumi_proto::property::PropertyValue;

use super::{OperationError, PluginSettings, StackRun};

impl StackRun {
    /// Fetches, verifies and starts every enabled plugin once, so that a plugin which cannot start fails the run before
    /// the stack is changed.
    pub(super) async fn load_plugins(&self) -> Result<Arc<PluginHost>, OperationError> {
        self.plugins.load(self.program.stack(), &self.config, &self.events, &self.signals).await
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

/// Secrets to mask in output of plugins and in errors of package sources: secrets that plugins and sources receive, and
/// secrets of the stack's configuration.
struct MaskedSecrets(Vec<String>);

impl MaskedSecrets {
    /// Minimum length in bytes of a masked text. A shorter secret also occurs inside unrelated words; masking it there
    /// would show which text it is.
    const MIN_LENGTH: usize = 4;

    fn of(plugins: &[PluginDeclaration], config: &[ConfigEntry]) -> Self {
        let plugin_secrets = plugins.iter().map(|plugin| &plugin.secrets);
        let texts = plugin_secrets.flat_map(|secrets| {
            secrets.secrets.values().chain(secrets.auth.values().flat_map(|auth| auth.config.values()))
        });
        let of_sources = plugins.iter().flat_map(|plugin| plugin.plugin.source.secrets());
        let of_config = config.iter().filter(|entry| entry.secret).map(|entry| entry.value.as_str());
        let texts = texts.map(SecretText::expose).chain(of_sources).chain(of_config);
        let mut texts: Vec<String> = texts.map(|text| text.trim().to_owned()).collect();
        texts.retain(|text| text.len() >= Self::MIN_LENGTH);
        // Longest first, so that a longer secret is masked before a shorter one that it contains.
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self(texts)
    }

    fn mask(&self, message: &mut String) {
        for text in &self.0 {
            if message.contains(text) {
                *message = message.replace(text, "[secret]");
            }
        }
    }

    /// Masks the secrets in an error and its causes. Causes are immutable, so an error that contains a secret is
    /// replaced by its masked text.
    fn mask_error(&self, error: HostError) -> HostError {
        let text = chain(&error);
        let mut masked = text.clone();
        self.mask(&mut masked);
        if masked == text {
            return error;
        }
        let masked_error = HostError::new(masked);
        match error.hint() {
            Some(hint) => masked_error.with_hint(hint),
            None => masked_error,
        }
    }
}

/// Returns a receiver of plugin events that emits them as events of the run, with masked secrets.
fn run_event_sink(events: &Arc<dyn EventSink>, secrets: &Arc<MaskedSecrets>) -> Arc<dyn HostEvents> {
    Arc::new(RunEventSink { events: Arc::clone(events), secrets: Arc::clone(secrets), downloads: Mutex::default() })
}

/// Enabled plugin of a stack, and the result of its installation.
#[derive(Debug)]
pub struct InstalledPlugin {
    /// Declaration of the plugin.
    pub plugin: PluginConfig,
    /// Verified package, or the error that prevented its installation.
    pub package: Result<VerifiedPackage, HostError>,
}

impl PluginSettings {
    /// Starts every enabled plugin of a stack, returns the schemas of their packages, and stops the plugins. Configures
    /// no plugin.
    ///
    /// # Errors
    /// [`OperationError::Plugins`] if a plugin does not load or a schema cannot be read; [`OperationError::Stopped`] if
    /// the user stopped the operation.
    pub async fn schemas(
        &self,
        stack: &Stack,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<Vec<Package>, OperationError> {
        let host = self.load(stack, &[], events, signals).await?;
        let schemas = tokio::select! {
            result = host.schemas() => result.map_err(|error| {
                OperationError::Plugins(MaskedSecrets::of(&stack.plugins, &[]).mask_error(error))
            }),
            () = signals.stop.cancelled() => Err(OperationError::Stopped),
        };
        host.close().await;
        let read = |(name, text): (String, Option<String>)| {
            let unreadable = |error: schemas::SchemaError| {
                let message = format!("the schema of the package {name} cannot be read");
                OperationError::Plugins(HostError::new(message).with_source(error))
            };
            let schemas = text.as_deref().map(schemas::convert_package).transpose().map_err(unreadable)?;
            Ok(Package { schemas, name })
        };
        schemas?.into_iter().map(read).collect()
    }

    async fn load(
        &self,
        stack: &Stack,
        config: &[ConfigEntry],
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<Arc<PluginHost>, OperationError> {
        let declared = stack.plugins.iter().map(|plugin| DeclaredPlugin {
            config: plugin.plugin.clone(),
            init: plugin_init(plugin, &stack.project, &stack.name),
        });
        let secrets = Arc::new(MaskedSecrets::of(&stack.plugins, config));
        let settings = HostSettings {
            project: stack.project.clone(),
            directory: self.directory.clone(),
            environment: self.environment.clone(),
            spawner: self.spawner.clone(),
            sources: self.sources.clone(),
            limits: self.limits,
            abort: signals.abort.clone(),
            type_cache: Some(self.type_cache.clone()),
            events: run_event_sink(events, &secrets),
        };
        let loading = PluginHost::load(settings, declared.collect());
        tokio::select! {
            loaded = loading => {
                loaded.map(Arc::new).map_err(|error| OperationError::Plugins(secrets.mask_error(error)))
            }
            // Dropping the future kills the started processes.
            () = signals.stop.cancelled() => Err(OperationError::Stopped),
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
        let secrets = Arc::new(MaskedSecrets::of(&stack.plugins, &[]));
        let events = run_event_sink(events, &secrets);
        let resolve = async |plugin: &PluginConfig| {
            let package = self.sources.resolve(plugin, &events).await.map_err(|error| secrets.mask_error(error));
            InstalledPlugin { plugin: plugin.clone(), package }
        };
        let enabled = stack.plugins.iter().map(|declared| &declared.plugin).filter(|plugin| plugin.enabled);
        tokio::select! {
            installed = join_all(enabled.map(resolve)) => Ok(installed),
            // Dropping the future discards incomplete downloads.
            () = signals.stop.cancelled() => Err(OperationError::Stopped),
        }
    }
}

/// Receiver of plugin events that emits them as events of the run, with masked secrets.
struct RunEventSink {
    events: Arc<dyn EventSink>,
    secrets: Arc<MaskedSecrets>,
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
        self.emit_message(message);
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

    fn emit_message(&self, mut message: Message) {
        self.secrets.mask(&mut message.text);
        self.events.emit(Event::Message(message));
    }
}

impl HostEvents for RunEventSink {
    fn emit(&self, event: HostEvent) {
        let message = match event {
            HostEvent::Fetch { plugin, event } => return self.fetch(plugin, event),
            HostEvent::Loaded { plugin, version } => {
                let version = version.map(|version| format!(" v{version}")).unwrap_or_default();
                Message::new(Severity::Info, format!("Loaded plugin: {plugin}{version}"))
            }
            HostEvent::Log { plugin, message } => Message {
                urn: message.urn.and_then(|urn| urn.parse().ok()),
                plugin: Some(plugin),
                ephemeral: message.ephemeral,
                ..Message::new(severity(message.severity), message.text)
            },
            HostEvent::Output { plugin, line, .. } => {
                Message { plugin: Some(plugin), ..Message::new(Severity::Debug, line) }
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
                "this system does not tell which account calls this run: other accounts of this machine can call it while \
                 plugins run",
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
        self.emit_message(message);
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
