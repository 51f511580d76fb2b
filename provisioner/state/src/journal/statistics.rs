//! Statistics about the segments of a run.

use std::time::Duration;

/// Segments of a run, and the time that each of them took.
#[derive(Clone, Debug, Default)]
pub struct SegmentStatistics {
    /// Time from the first line of a segment to its write, of each one.
    lags: Vec<Duration>,
    /// Time for which calls have waited for the store, in all.
    waited: Duration,
}

impl SegmentStatistics {
    /// Adds a segment that was written.
    pub(super) fn add(&mut self, lag: Duration) {
        self.lags.push(lag);
    }

    /// Sets the time for which calls have waited.
    pub(super) fn with_waits(self, waited: Duration) -> Self {
        Self { waited, ..self }
    }

    /// Returns the number of segments.
    pub fn segments(&self) -> usize {
        self.lags.len()
    }

    /// Returns the time for which calls have waited for the store, in all.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns the median and the maximum of the time from the first line of a segment to its write; `None` without a segment.
    pub fn lags(&self) -> Option<(Duration, Duration)> {
        let mut sorted = self.lags.clone();
        sorted.sort_unstable();
        Some((*sorted.get(sorted.len() / 2)?, *sorted.last()?))
    }
}
