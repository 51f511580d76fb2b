//! Lower limit for the speed of what is received.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

/// Minimum speed in bytes per second, averaged over a window.
pub const MIN_SPEED: u64 = 1024;
/// Time over which the speed of a download is averaged.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Number of intervals of a window. Bytes of one interval count as received at its beginning.
const INTERVALS: u32 = 60;

/// Error of content that came slower than the limit, for the time of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("less than {MIN_SPEED} bytes per second were received for {} seconds", .0.as_secs())]
pub struct TooSlow(Duration);

/// Sliding window over the received bytes of one download or reply.
#[derive(Debug)]
pub struct SpeedWindow {
    started: Instant,
    window: Duration,
    /// Times and numbers of bytes, oldest first.
    received: VecDeque<(Instant, u64)>,
}

impl SpeedWindow {
    /// Starts the window of a download that begins now.
    pub fn start() -> Self {
        Self::of(WINDOW)
    }

    /// Starts a window of another length for what is received from now on.
    pub fn of(window: Duration) -> Self {
        Self::new(Instant::now(), window)
    }

    fn new(started: Instant, window: Duration) -> Self {
        Self { started, window, received: VecDeque::new() }
    }

    /// Waits for the next part.
    ///
    /// # Errors
    /// [`TooSlow`] once the speed has fallen below the limit.
    pub async fn limit<T>(&self, next: impl Future<Output = T>) -> Result<T, TooSlow> {
        tokio::time::timeout_at(self.deadline(), next).await.map_err(|_| TooSlow(self.window))
    }

    /// Counts received bytes.
    pub fn record(&mut self, bytes: usize) {
        self.record_at(Instant::now(), bytes as u64);
    }

    fn record_at(&mut self, now: Instant, bytes: u64) {
        while self.received.front().is_some_and(|(time, _)| *time + self.window <= now) {
            self.received.pop_front();
        }
        match self.received.back_mut() {
            Some((time, sum)) if now < *time + self.window / INTERVALS => *sum += bytes,
            _ => self.received.push_back((now, bytes)),
        }
    }

    /// Returns the time at which the speed falls below the limit if nothing more is received.
    pub fn deadline(&self) -> Instant {
        let required = MIN_SPEED * self.window.as_secs().max(1);
        let mut left: u64 = self.received.iter().map(|(_, bytes)| bytes).sum();
        let earliest = self.started + self.window;
        if left < required {
            return earliest;
        }
        for (time, bytes) in &self.received {
            left -= bytes;
            if left < required {
                return earliest.max(*time + self.window);
            }
        }
        earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the second at which a download is aborted. Each item is a second and the bytes received then.
    fn aborted_at(received: impl IntoIterator<Item = (u64, u64)>) -> u64 {
        let start = Instant::now();
        let (mut window, mut last) = (SpeedWindow::new(start, WINDOW), start);
        for (second, bytes) in received {
            let now = start + Duration::from_secs(second);
            if window.deadline() < now {
                break;
            }
            window.record_at(now, bytes);
            last = now;
        }
        (window.deadline().max(last) - start).as_secs()
    }

    /// Shows: plugins.md#slow-downloads "A download that is slower than 1 KiB/s, averaged over 60 seconds, is aborted"
    #[test]
    fn download_below_the_limit_for_the_whole_window_is_aborted() {
        let every_second = |bytes: u64| (0..600).map(move |second| (second, bytes));
        assert_eq!(aborted_at([]), 60, "nothing is received");
        assert_eq!(aborted_at(every_second(1023)), 60);
        // The last bytes arrive at second 599 and leave the window one by one.
        assert_eq!(aborted_at(every_second(1024)), 600);
        assert!(aborted_at(every_second(2048)) > 600);
        // A burst keeps the download alive for one window only, however large it is.
        assert_eq!(aborted_at([(0, 1 << 30)]), 60);
        assert_eq!(aborted_at([(30, 1 << 30)]), 90);
        assert_eq!(aborted_at([(0, 1 << 30), (59, 100), (118, 100)]), 60);
        assert_eq!(aborted_at([(0, 60 << 10), (45, 60 << 10)]), 105);
        // A fast beginning does not excuse a slow rest.
        assert_eq!(aborted_at((0..100).map(|second| (second, 1 << 20)).chain((100..900).map(|s| (s, 10)))), 159);
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_parts() {
        let start = Instant::now();
        let mut window = SpeedWindow::new(start, WINDOW);
        for millisecond in 0..200_000 {
            window.record_at(start + Duration::from_millis(millisecond), 1);
        }
        assert!(window.received.len() <= INTERVALS as usize + 1, "{}", window.received.len());
    }

    #[tokio::test]
    async fn wait_for_a_stalled_download_ends() {
        let window = SpeedWindow::new(Instant::now(), Duration::from_millis(1));
        window.limit(std::future::pending::<()>()).await.unwrap_err();
        // A part that has arrived is never refused.
        assert_eq!(window.limit(std::future::ready(1)).await.unwrap(), 1);
    }
}
