//! Events of the session that runs, for warnings that do not come from its work.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bridge::message_text::MessageText;
use engine::events::{Event, EventSink, Message, Severity};

use super::display::LogLines;

/// Sink of the session that runs, if one does. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct SessionEvents {
    sink: Arc<Mutex<Option<Arc<dyn EventSink>>>>,
    log: Arc<Mutex<Option<LogLines>>>,
}

impl SessionEvents {
    /// Sets the sink when a session begins, and removes it before the session ends.
    pub(crate) fn set(&self, sink: Option<Arc<dyn EventSink>>, log: Option<LogLines>) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = log;
        *self.sink.lock().unwrap_or_else(PoisonError::into_inner) = sink;
    }

    /// Returns whether a session runs.
    pub(crate) fn is_running(&self) -> bool {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Emits a warning, which the display shows beside the running steps. Returns `false` if no session runs.
    pub(crate) fn warn(&self, text: &MessageText) -> bool {
        let sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_running = sink.is_some();
        sink.iter().for_each(|sink| sink.emit(Event::Message(Message::new(Severity::Warning, text.clone()))));
        is_running
    }

    /// Shows a line of the log beside the running steps. Returns the line if no session runs.
    pub(crate) fn log(&self, line: String) -> Option<String> {
        match &*self.log.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(log) => log.send(line),
            None => Some(line),
        }
    }
}

impl fmt::Debug for SessionEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionEvents")
    }
}
