//! Output and fetch progress of a plugin as events of its host.

use std::sync::Arc;

use super::{HostEvent, HostEvents};
use crate::install::{FetchEvent, FetchEvents};
use crate::process::{OutputSink, OutputStream};

/// Emits the output of a plugin and the progress of its fetch as host events.
pub(super) struct PluginEvents {
    pub(super) plugin: String,
    pub(super) events: Arc<dyn HostEvents>,
}

impl OutputSink for PluginEvents {
    fn line(&self, stream: OutputStream, line: &str) {
        self.events.emit(HostEvent::Output { plugin: self.plugin.clone(), stream, line: line.to_owned() });
    }
}

impl FetchEvents for PluginEvents {
    fn emit(&self, event: FetchEvent) {
        self.events.emit(HostEvent::Fetch { plugin: self.plugin.clone(), event });
    }
}
