//! Events during the download of a package.

use std::time::{Duration, Instant};

/// Minimum time between two `Received` events of one attempt. A restart is reported without delay.
const RECEIVED_INTERVAL: Duration = Duration::from_millis(50);

/// Receiver of events. Must not fail or block.
pub trait FetchEvents: Send + Sync {
    /// Receives one event.
    fn emit(&self, event: FetchEvent);
}

/// Event during the download of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchEvent {
    /// Another run fetches the package, and this one waits for it.
    Waiting,
    /// A download has started.
    Started {
        /// Name of the downloaded item.
        name: String,
        /// Length in bytes, if known.
        bytes: Option<u64>,
    },
    /// Bytes have arrived. Fewer bytes than before mean that the download has started again.
    Received {
        /// Number of bytes since the start.
        bytes: u64,
    },
    /// The package is built.
    Building,
    /// Line that a build has printed.
    BuildOutput(String),
    /// The download has ended.
    Ended {
        /// True if all bytes arrived.
        complete: bool,
    },
    /// Information for the user.
    Note(String),
    /// Warning for the user.
    Warning(String),
}

/// Discards all events.
impl FetchEvents for () {
    fn emit(&self, _: FetchEvent) {}
}

/// Download in progress. Emits [`FetchEvent::Ended`] when it is dropped.
pub(super) struct Progress<'a> {
    events: &'a dyn FetchEvents,
    received: u64,
    last_emitted: Instant,
    complete: bool,
}

impl<'a> Progress<'a> {
    pub(super) fn start(events: &'a dyn FetchEvents, name: &str, bytes: Option<u64>) -> Self {
        events.emit(FetchEvent::Started { name: name.to_owned(), bytes });
        Self { events, received: 0, last_emitted: Instant::now(), complete: false }
    }

    /// Resets the number of received bytes, because the download starts again.
    pub(super) fn restart(&mut self) {
        if self.received > 0 {
            self.received = 0;
            self.events.emit(FetchEvent::Received { bytes: 0 });
        }
    }

    /// Adds received bytes.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.received += bytes;
        if self.last_emitted.elapsed() >= RECEIVED_INTERVAL {
            self.last_emitted = Instant::now();
            self.events.emit(FetchEvent::Received { bytes: self.received });
        }
    }

    /// Marks the download as complete and ends it.
    pub(super) fn done(mut self) {
        self.complete = true;
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.events.emit(FetchEvent::Ended { complete: self.complete });
    }
}
