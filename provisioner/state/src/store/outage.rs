//! Outages of a store: requests that are tried again and again are reported while they still are.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Time after which a request without a reply is reported.
const PATIENCE: Duration = Duration::from_secs(4);
/// Bytes per second that the content of a request is expected to be sent at. A slower one is reported.
const EXPECTED_SPEED: u64 = 1 << 20;

/// Request to a store that has had no usable reply for a while, and is still tried. `Display` says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Requested operation, such as `read` or `write`.
    pub operation: &'static str,
    /// Location of the object or of the folder.
    pub location: String,
    /// Reason why the last attempt failed; `None` if the first attempt has no reply yet.
    pub reason: Option<String>,
    /// Time since the begin of the request.
    pub waited: Duration,
    /// Time after which the request fails at the latest.
    pub left: Duration,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, location, reason, waited, left } = self;
        write!(f, "cannot {operation} {location} yet: ")?;
        match reason {
            Some(reason) => f.write_str(reason)?,
            None => write!(f, "no reply for {} s", waited.as_secs())?,
        }
        write!(f, "; the request is tried for up to {} s more", left.as_secs_f64().round())
    }
}

/// Receiver of the outages of stores. `Default` discards them.
#[derive(Clone)]
pub struct OutageReport(Arc<dyn Fn(&Outage) + Send + Sync>);

impl OutageReport {
    /// Creates a receiver.
    pub fn new(report: impl Fn(&Outage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }
}

impl Default for OutageReport {
    fn default() -> Self {
        Self::new(|_| ())
    }
}

impl fmt::Debug for OutageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutageReport")
    }
}

/// Watch over the requests to one store. An outage is reported once, however many requests wait in it, and again for
/// requests that begin after one of them was given up.
#[derive(Clone, Debug, Default)]
pub struct OutageWatch {
    report: OutageReport,
    state: Arc<Mutex<WatchState>>,
}

#[derive(Debug, Default)]
struct WatchState {
    is_reported: bool,
    /// The store has replied before. A client gives a host that never has up soon, and the error follows.
    has_replied: bool,
    /// Reason why the last attempt of a request failed, since the last reply.
    reason: Option<String>,
}

impl OutageWatch {
    /// Creates the watch of a store.
    pub fn new(report: OutageReport) -> Self {
        Self { report, state: Arc::default() }
    }

    /// Remembers why an attempt failed that will be repeated.
    pub fn attempt_failed(&self, reason: String) {
        self.state().reason = Some(reason);
    }

    /// Forgets why an attempt failed: the store has replied.
    pub fn replied(&self) {
        let mut state = self.state();
        (state.has_replied, state.reason) = (true, None);
    }

    /// Waits for a request with a content of a size, and reports it if it is still tried after a few seconds. `limit` is the
    /// time after which it fails at the latest.
    pub async fn watch<T>(
        &self,
        (operation, location): (&'static str, impl Fn() -> String),
        size: usize,
        limit: Duration,
        request: impl Future<Output = T>,
    ) -> T {
        let began = Instant::now();
        let mut request = pin!(request);
        tokio::select! {
            biased;
            replied = &mut request => return replied,
            () = sleep(PATIENCE + Duration::from_secs(size as u64 / EXPECTED_SPEED)) => {}
        }
        let reason = {
            let mut state = self.state();
            let is_first = !std::mem::replace(&mut state.is_reported, true);
            let is_given_up_soon = state.reason.is_some() && !state.has_replied;
            (is_first && !is_given_up_soon).then(|| state.reason.clone())
        };
        if let Some(reason) = reason {
            let (waited, location) = (began.elapsed(), location());
            let left = limit.saturating_sub(waited);
            (self.report.0)(&Outage { operation, location, reason, waited, left });
        }
        let _over = OutageOver(self);
        request.await
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the report of an outage once the request has a result or is dropped: the next one is reported again.
struct OutageOver<'w>(&'w OutageWatch);

impl Drop for OutageOver<'_> {
    fn drop(&mut self) {
        self.0.state().is_reported = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(90);

    /// Seconds from the beginning, and the text of each report.
    type Reports = Arc<Mutex<Vec<(u64, String)>>>;

    fn collecting() -> (OutageWatch, Reports) {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let (reported, began) = (Arc::clone(&reports), Instant::now());
        let report = move |outage: &Outage| {
            reported.lock().unwrap().push((began.elapsed().as_secs(), outage.to_string()));
        };
        (OutageWatch::new(OutageReport::new(report)), reports)
    }

    async fn request(watch: &OutageWatch, key: &str, size: usize, seconds: u64) {
        let location = || format!("s3://reef/{key}");
        watch.watch(("write", location), size, LIMIT, sleep(Duration::from_secs(seconds))).await;
    }

    /// Shows: state.md#stores "After four seconds without a usable reply a warning names the request, the reason, and
    ///   the time for which this request is still tried"
    #[tokio::test(start_paused = true)]
    async fn outage_is_reported_within_five_seconds_with_the_time_left() {
        let (watch, reports) = collecting();
        request(&watch, "fast", 0, 3).await;
        assert_eq!(*reports.lock().unwrap(), []);
        request(&watch, "silent", 0, 90).await;
        watch.attempt_failed("the connection to host:1 failed: refused".to_owned());
        // The address may be wrong.
        request(&watch, "unknown", 0, 10).await;
        watch.replied();
        watch.attempt_failed("the connection to host:1 failed: refused".to_owned());
        request(&watch, "refused", 0, 90).await;
        // A large content takes its time.
        request(&watch, "large", 100 << 20, 90).await;
        let expected = [
            (7, "cannot write s3://reef/silent yet: no reply for 4 s; the request is tried for up to 86 s more"),
            (
                107,
                "cannot write s3://reef/refused yet: the connection to host:1 failed: refused; the request is tried for up to 86 s more",
            ),
        ];
        assert_eq!(*reports.lock().unwrap(), expected.map(|(second, text)| (second, text.to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn outage_is_reported_once_for_all_requests_that_wait_in_it() {
        let (watch, reports) = collecting();
        tokio::join!(request(&watch, "a", 0, 60), request(&watch, "b", 0, 60), async {
            sleep(Duration::from_secs(10)).await;
            request(&watch, "c", 0, 40).await;
        });
        assert_eq!(reports.lock().unwrap().len(), 1);
        watch.attempt_failed("busy".to_owned());
        watch.replied();
        request(&watch, "d", 0, 60).await;
        let reports = reports.lock().unwrap();
        assert_eq!(reports.len(), 2);
        assert!(reports[1].1.contains("no reply for 4 s"), "the reason of an earlier outage is forgotten: {reports:?}");
    }
}
