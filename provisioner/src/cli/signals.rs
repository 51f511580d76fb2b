//! Signals as two ways to stop: the first one stops, the second one aborts, the third one leaves.

use std::io;

use tokio_util::sync::CancellationToken;

use super::exit::Exit;

/// The two ways to stop, as every operation takes them.
#[derive(Clone, Debug)]
pub(crate) struct Cancellation {
    /// Start nothing new, let running steps finish, save.
    pub(crate) stop: CancellationToken,
    /// Cancel the providers, record what is pending, save.
    pub(crate) abort: CancellationToken,
}

impl Cancellation {
    pub(crate) fn new() -> Self {
        Self { stop: CancellationToken::new(), abort: CancellationToken::new() }
    }

    /// One step further on the way to stop. Returns what to tell the user, or nothing when no way is left.
    fn escalate(&self) -> Option<&'static str> {
        if !self.stop.is_cancelled() {
            self.stop.cancel();
            return Some("stopping: what has begun is finished first (press Ctrl-C again to abort it)");
        }
        if !self.abort.is_cancelled() {
            self.abort.cancel();
            return Some("aborting: providers are told to cancel; what they leave undone is recorded as pending");
        }
        None
    }
}

/// Waits for signals (interrupt, terminate, hang up) for as long as it is polled. Returns after the third.
pub(crate) async fn listen(cancellation: &Cancellation, tell: impl Fn(&str)) -> Exit {
    let Ok(mut signals) = Signals::new() else {
        // No signal can be caught: they do what they do by default.
        return std::future::pending().await;
    };
    loop {
        signals.next().await;
        match cancellation.escalate() {
            Some(text) => tell(text),
            None => return Exit::Canceled,
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_stops_the_second_aborts_and_the_third_leaves() {
        let cancellation = Cancellation::new();
        let state = || (cancellation.stop.is_cancelled(), cancellation.abort.is_cancelled());
        assert_eq!(state(), (false, false));
        assert!(cancellation.escalate().is_some_and(|text| text.starts_with("stopping")));
        assert_eq!(state(), (true, false));
        assert!(cancellation.escalate().is_some_and(|text| text.starts_with("aborting")));
        assert_eq!(state(), (true, true));
        assert_eq!(cancellation.escalate(), None);
    }
}
