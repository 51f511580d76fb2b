//! Fetch progress of a plugin as events of its host.

use std::sync::Arc;

use super::{HostEvent, HostEvents};
use crate::install::{FetchEvent, FetchEvents};

/// Emits the progress of the fetch of a plugin as host events.
pub(super) struct PluginEvents {
    pub(super) plugin: String,
    pub(super) events: Arc<dyn HostEvents>,
}

impl FetchEvents for PluginEvents {
    fn emit(&self, event: FetchEvent) {
        self.events.emit(HostEvent::Fetch { plugin: self.plugin.clone(), event });
    }
}
