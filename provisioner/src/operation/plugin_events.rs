//! Events of plugins and of their installation, as events of a run.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bridge::host::{HostEvent, HostEvents, PluginWork};
use bridge::install::FetchEvent;
use bridge::message_text::MessageText;
use engine::events::{
    Activity, ActivityKind, ActivityStage, Download, DownloadStage, Event, EventSink, Message, Severity,
};

/// Plugins whose load was reported, each with its version. All stacks of a command share them.
pub(super) type LoadedPlugins = Arc<Mutex<HashSet<(String, Option<String>)>>>;

/// Returns a receiver of plugin events that emits them as events of the run.
pub(super) fn run_event_sink(events: &Arc<dyn EventSink>, loaded: &LoadedPlugins) -> Arc<dyn HostEvents> {
    let (events, loaded) = (Arc::clone(events), Arc::clone(loaded));
    Arc::new(RunEventSink { events, loaded, downloads: Mutex::default(), builds: Mutex::default() })
}

/// Receiver of plugin events that emits them as events of the run.
struct RunEventSink {
    events: Arc<dyn EventSink>,
    loaded: LoadedPlugins,
    /// Downloads by plugin.
    downloads: Mutex<HashMap<String, Option<Download>>>,
    /// Plugins whose programs are built.
    builds: Mutex<HashSet<String>>,
}

impl RunEventSink {
    fn fetch(&self, plugin: String, event: FetchEvent) {
        let about = |severity, text| Message { plugin: Some(plugin.clone()), ..Message::new(severity, text) };
        let message = match event {
            FetchEvent::Waiting => about(Severity::Info, "waiting for another run that fetches it".into()),
            FetchEvent::Note(text) => about(Severity::Info, text),
            FetchEvent::Warning(text) => about(Severity::Warning, text),
            FetchEvent::Building => {
                self.builds.lock().unwrap_or_else(PoisonError::into_inner).insert(plugin.clone());
                return self.activity(ActivityKind::Build, plugin, ActivityStage::Started);
            }
            FetchEvent::BuildOutput(line) => Message { logged: true, ..about(Severity::Info, line) },
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

    fn activity(&self, kind: ActivityKind, plugin: String, stage: ActivityStage) {
        self.events.emit(Event::Activity(Activity { kind, subject: plugin, stage }));
    }

    fn work(&self, plugin: String, work: PluginWork, ended: bool) {
        let kind = match work {
            PluginWork::Preparing => ActivityKind::Prepare,
            PluginWork::Starting => ActivityKind::Start,
            PluginWork::Configuring => ActivityKind::Configure,
        };
        let is_built = || self.builds.lock().unwrap_or_else(PoisonError::into_inner).remove(&plugin);
        if ended && work == PluginWork::Preparing && is_built() {
            self.activity(ActivityKind::Build, plugin.clone(), ActivityStage::Ended);
        }
        self.activity(kind, plugin, if ended { ActivityStage::Ended } else { ActivityStage::Started });
    }

    /// Returns whether the load of a plugin is the first one of the command.
    fn is_first_load(&self, plugin: &str, version: Option<&str>) -> bool {
        let loaded = (plugin.to_owned(), version.map(str::to_owned));
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(loaded)
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
            HostEvent::Working { plugin, work, ended } => return self.work(plugin, work, ended),
            HostEvent::Loaded { plugin, version, sandbox } => {
                if !self.is_first_load(&plugin, version.as_deref()) {
                    return;
                }
                let version = version.map(|version| format!(" v{version}")).unwrap_or_default();
                let text = MessageText::new(format_args!("Loaded plugin: {plugin}{version}"));
                self.events.emit(Event::Message(Message::new(Severity::Info, text)));
                Message { plugin: Some(plugin), ..Message::new(Severity::Debug, format_args!("sandbox: {sandbox}")) }
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
                hint: Some("if a plugin runs under another account, it must run under that of sc".into()),
                ..Message::new(
                    Severity::Warning,
                    format_args!(
                        "another account of this machine (user id {uid}) tried to call this run; it was refused"
                    ),
                )
            },
            HostEvent::UnverifiedConnection => Message::new(
                Severity::Warning,
                "this system does not report which account opens a connection: other accounts of this machine can call \
                 this run while plugins run",
            ),
            HostEvent::TooManyConnections { limit } => Message {
                hint: Some("a higher limit of open files (`ulimit -n`) allows more connections".into()),
                ..Message::new(
                    Severity::Warning,
                    format_args!("plugins have opened more than {limit} connections to sc; further ones are closed"),
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

    /// Shows: events.md#long-and-many-messages "Only `message` events for texts that a plugin logged or printed are
    ///   dropped"
    /// Shows: events.md#long-and-many-messages "`sc` drops further lines, and a warning tells how many"
    #[test]
    fn only_texts_that_plugins_logged_or_printed_may_be_dropped() {
        let messages = Arc::new(Messages::default());
        let sink = run_event_sink(&(Arc::clone(&messages) as Arc<dyn EventSink>), &LoadedPlugins::default());
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

    #[test]
    fn load_of_a_plugin_is_reported_once_for_all_stacks_of_a_command() {
        let (messages, loaded) = (Arc::new(Messages::default()), LoadedPlugins::default());
        for version in ["1.0.0", "1.0.0", "2.0.0"] {
            let sink = run_event_sink(&(Arc::clone(&messages) as Arc<dyn EventSink>), &loaded);
            let (plugin, version) = ("p".to_owned(), Some(version.to_owned()));
            sink.emit(HostEvent::Loaded { plugin, version, sandbox: "none".to_owned() });
        }
        let messages = messages.0.lock().unwrap();
        let texts: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
        let loads: Vec<&&str> = texts.iter().filter(|text| text.starts_with("Loaded")).collect();
        assert_eq!(loads, [&"Loaded plugin: p v1.0.0", &"Loaded plugin: p v2.0.0"]);
    }
}
