//! From the plugins that a stack declares to a host that runs them.

use std::sync::Arc;

use bridge::host::{DeclaredPlugin, HostEvent, HostEvents, HostSettings, PluginHost};
use bridge::provider::grpc::{AuthEntry, PluginInit};

use crate::config::{PluginDeclaration, values};
use crate::events::{Event, EventSink, Message, Severity};
use pulumi_proto::property::PropertyValue;

use super::{OperationError, StackRun};

impl StackRun {
    /// Fetches, checks and starts every enabled plugin once: what cannot start fails the run before its stack is touched.
    pub(super) async fn load_plugins(&self) -> Result<Arc<PluginHost>, OperationError> {
        let stack = self.program.stack();
        let declared = stack.plugins.iter().map(|plugin| DeclaredPlugin {
            config: plugin.plugin.clone(),
            init: init(plugin, &stack.project, &stack.name),
        });
        let secrets = Arc::new(ToldSecrets::of(&stack.plugins));
        let settings = HostSettings {
            project: stack.project.clone(),
            directory: self.plugins.directory.clone(),
            environment: self.plugins.environment.clone(),
            spawner: self.plugins.spawner.clone(),
            sources: self.plugins.sources.clone(),
            limits: self.plugins.limits,
            events: Arc::new(Relay { events: Arc::clone(&self.events), secrets: Arc::clone(&secrets) }),
        };
        let loading = PluginHost::load(settings, declared.collect());
        tokio::select! {
            loaded = loading => loaded.map(Arc::new).map_err(|mut error| {
                secrets.mask(&mut error.message);
                OperationError::Plugins(error)
            }),
            // What was started is killed with the future.
            () = self.signals.stop.cancelled() => Err(OperationError::Stopped),
        }
    }
}

/// What a plugin is told when it is initialised: never the profile, which holds keys.
fn init(plugin: &PluginDeclaration, project: &str, stack: &str) -> PluginInit {
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
        config: map(values::plain(&plugin.config).without_wrappers()),
    }
}

/// The secrets that plugins are told: their words may hold them.
struct ToldSecrets(Vec<String>);

impl ToldSecrets {
    /// Shorter texts turn up by chance; masking them would say what they are.
    const SHORTEST: usize = 4;

    fn of(plugins: &[PluginDeclaration]) -> Self {
        let told = plugins.iter().map(|plugin| &plugin.secrets);
        let texts =
            told.flat_map(|told| told.secrets.values().chain(told.auth.values().flat_map(|auth| auth.config.values())));
        let mut texts: Vec<String> = texts.map(|text| text.expose().trim().to_owned()).collect();
        texts.retain(|text| text.len() >= Self::SHORTEST);
        // So that a secret within another one does not spoil it.
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self(texts)
    }

    fn mask(&self, words: &mut String) {
        for text in &self.0 {
            if words.contains(text) {
                *words = words.replace(text, "[secret]");
            }
        }
    }
}

/// Passes on what plugins say as events of the run.
struct Relay {
    events: Arc<dyn EventSink>,
    secrets: Arc<ToldSecrets>,
}

impl HostEvents for Relay {
    fn emit(&self, event: HostEvent) {
        let mut message = match event {
            HostEvent::Loaded { plugin, version } => {
                let version = if version.is_empty() { String::new() } else { format!(" v{version}") };
                Message::new(Severity::Info, format!("Loaded plugin: {plugin}{version}"))
            }
            HostEvent::Log { plugin, message } => Message {
                urn: message.urn.parse().ok(),
                plugin: Some(plugin),
                ephemeral: message.ephemeral,
                ..Message::new(severity(message.severity), message.text)
            },
            HostEvent::Output { plugin, line, .. } => {
                Message { plugin: Some(plugin), ..Message::new(Severity::Debug, line) }
            }
            HostEvent::Warning { plugin, message } => {
                Message { plugin: Some(plugin), ..Message::new(Severity::Warning, message) }
            }
        };
        self.secrets.mask(&mut message.text);
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
