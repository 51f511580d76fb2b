//! Work that a run waits for, in progress.

use std::fmt;
use std::sync::Arc;

use engine::events::{Activity, ActivityKind, ActivityStage, Event, EventSink};

/// Work in progress. Emits its end when it is dropped.
pub struct RunningActivity {
    events: Arc<dyn EventSink>,
    kind: ActivityKind,
    subject: String,
}

impl RunningActivity {
    /// Emits the begin of work.
    pub fn begin(events: &Arc<dyn EventSink>, kind: ActivityKind, subject: impl Into<String>) -> Self {
        let activity = Self { events: Arc::clone(events), kind, subject: subject.into() };
        activity.emit(ActivityStage::Started);
        activity
    }

    fn emit(&self, stage: ActivityStage) {
        self.events.emit(Event::Activity(Activity { kind: self.kind, subject: self.subject.clone(), stage }));
    }
}

impl Drop for RunningActivity {
    fn drop(&mut self) {
        self.emit(ActivityStage::Ended);
    }
}

impl fmt::Debug for RunningActivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningActivity").field("kind", &self.kind).field("subject", &self.subject).finish()
    }
}
