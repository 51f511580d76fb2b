//! The run that an instance belongs to while it is leased. What the plugin logs, prints and asks of the Engine service goes
//! to that run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{HostEvent, HostEvents, LogMessage, Severity};
use crate::process::{LogLevel, OutputSink, OutputStream};

/// URN of the root resource, shared by all plugins of a run; empty until a plugin sets it.
pub(super) type RootResource = Arc<Mutex<String>>;

/// Parts of a run that its instances reach.
#[derive(Clone)]
pub(super) struct RunLinks {
    pub(super) events: Arc<dyn HostEvents>,
    pub(super) root_resource: RootResource,
}

/// The run to which an instance is attached. It stays attached after its lease, until the next one begins or the run ends:
/// the last output of a phase arrives late.
pub(super) struct Attachment {
    plugin: String,
    run: Mutex<Option<RunLinks>>,
    has_logged_error: AtomicBool,
}

impl Attachment {
    /// Creates the attachment of an instance that starts. What it logs and prints without a run is dropped.
    pub(super) fn new(plugin: &str, run: Option<RunLinks>) -> Self {
        Self { plugin: plugin.to_owned(), run: Mutex::new(run), has_logged_error: AtomicBool::new(false) }
    }

    /// Attaches the instance to a run.
    pub(super) fn attach(&self, run: RunLinks) {
        *self.lock() = Some(run);
    }

    /// Detaches the instance if it is attached to the run with this root resource: what it logs and prints is dropped until it
    /// is attached again.
    pub(super) fn detach_from(&self, root_resource: &RootResource) {
        self.lock().take_if(|run| Arc::ptr_eq(&run.root_resource, root_resource));
    }

    /// Returns the name of the plugin.
    pub(super) fn plugin(&self) -> &str {
        &self.plugin
    }

    /// Returns whether the plugin has logged an error in any run.
    pub(super) fn has_logged_error(&self) -> bool {
        self.has_logged_error.load(Ordering::Acquire)
    }

    /// Emits an event to the run.
    pub(super) fn emit(&self, event: HostEvent) {
        if matches!(&event, HostEvent::Log { message, .. } if message.severity == Severity::Error) {
            self.has_logged_error.store(true, Ordering::Release);
        }
        // Cloned: the receiver must not be called with the lock held.
        let run = self.lock().clone();
        if let Some(run) = run {
            run.events.emit(event);
        }
    }

    /// Returns the root resource of the run; `None` while the instance is not attached.
    pub(super) fn root_resource(&self) -> Option<RootResource> {
        self.lock().as_ref().map(|run| Arc::clone(&run.root_resource))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<RunLinks>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputSink for Attachment {
    fn line(&self, stream: OutputStream, line: &str) {
        self.emit(HostEvent::Output { plugin: self.plugin.clone(), stream, line: line.to_owned() });
    }

    fn log(&self, level: LogLevel, message: &str) {
        let severity = match level {
            LogLevel::Debug => Severity::Debug,
            LogLevel::Info => Severity::Info,
            LogLevel::Warning => Severity::Warning,
            LogLevel::Error => Severity::Error,
        };
        let message = LogMessage { severity, text: message.to_owned(), urn: None, stream_id: 0, ephemeral: false };
        self.emit(HostEvent::Log { plugin: self.plugin.clone(), message });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Severities(Mutex<Vec<Severity>>);

    impl HostEvents for Severities {
        fn emit(&self, event: HostEvent) {
            if let HostEvent::Log { message, .. } = event {
                self.0.lock().unwrap().push(message.severity);
            }
        }
    }

    #[test]
    fn messages_of_the_log_of_a_process_keep_their_level() {
        let events = Arc::new(Severities::default());
        let links = RunLinks { events: Arc::clone(&events) as _, root_resource: RootResource::default() };
        let attachment = Attachment::new("x", None);
        attachment.log(LogLevel::Info, "dropped");
        assert_eq!(events.0.lock().unwrap().len(), 0);
        attachment.attach(links.clone());
        for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Warning] {
            attachment.log(level, "text");
        }
        assert!(!attachment.has_logged_error());
        attachment.log(LogLevel::Error, "text");
        assert!(attachment.has_logged_error());
        let expected = [Severity::Debug, Severity::Info, Severity::Warning, Severity::Error];
        assert_eq!(*events.0.lock().unwrap(), expected);
        attachment.detach_from(&links.root_resource);
        attachment.log(LogLevel::Info, "dropped");
        assert_eq!(events.0.lock().unwrap().len(), 4);
    }
}
