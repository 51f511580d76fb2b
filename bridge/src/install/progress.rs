//! What is told while a package is fetched.

use std::time::{Duration, Instant};

/// How often it is told how much has arrived.
const INTERVAL: Duration = Duration::from_millis(50);

/// Takes what happens while a package is fetched. May not fail, block or steer.
pub trait FetchEvents: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: FetchEvent);
}

/// What happens while a package is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchEvent {
    /// Somebody else fetches it already.
    Waiting,
    /// A download begins.
    Started {
        /// The name of what is downloaded.
        what: String,
        /// How long it is, if that is known.
        bytes: Option<u64>,
    },
    /// So much has arrived since it began. Less than before: it began again.
    Received {
        /// Bytes.
        bytes: u64,
    },
    /// The download is over.
    Ended {
        /// Whether all of it arrived.
        complete: bool,
    },
    /// Something the user should know.
    Warning(String),
}

/// Nobody listens.
impl FetchEvents for () {
    fn emit(&self, _: FetchEvent) {}
}

/// A download that is under way. It ends with this value.
pub(super) struct Progress<'a> {
    events: &'a dyn FetchEvents,
    received: u64,
    told: Instant,
    complete: bool,
}

impl<'a> Progress<'a> {
    pub(super) fn start(events: &'a dyn FetchEvents, what: &str, bytes: Option<u64>) -> Self {
        events.emit(FetchEvent::Started { what: what.to_owned(), bytes });
        Self { events, received: 0, told: Instant::now(), complete: false }
    }

    /// It begins again.
    pub(super) fn restart(&mut self) {
        if self.received > 0 {
            self.received = 0;
            self.events.emit(FetchEvent::Received { bytes: 0 });
        }
    }

    /// So many more bytes have arrived.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.received += bytes;
        if self.told.elapsed() >= INTERVAL {
            self.told = Instant::now();
            self.events.emit(FetchEvent::Received { bytes: self.received });
        }
    }

    /// All of it has arrived.
    pub(super) fn done(mut self) {
        self.complete = true;
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.events.emit(FetchEvent::Ended { complete: self.complete });
    }
}
