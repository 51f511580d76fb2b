//! Process signals: the first one stops the run, the second one aborts it, the third one ends the process.

use std::io;

use engine::StopSignals;

use super::exit::Exit;

/// Stops the run, or aborts it if it is stopping already. Returns the message for the user; `None` if the run is
/// aborted already.
fn escalate(signals: &StopSignals) -> Option<&'static str> {
    if !signals.stop.is_cancelled() {
        signals.stop.cancel();
        return Some("stopping: waiting for running steps to finish (press Ctrl-C again to abort them)");
    }
    if !signals.abort.is_cancelled() {
        signals.abort.cancel();
        return Some("aborting: running steps stay recorded as pending operations");
    }
    None
}

/// Waits for signals (interrupt, terminate, hang up) while it is polled. Returns after the third.
pub(crate) async fn listen(stop_signals: &StopSignals, warn: impl Fn(&str)) -> Exit {
    let Ok(mut signals) = Signals::new() else {
        // Without handlers, signals have their default effect.
        return std::future::pending().await;
    };
    loop {
        signals.next().await;
        match escalate(stop_signals) {
            Some(text) => warn(text),
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
    fn first_signal_stops_second_aborts_third_exits() {
        let signals = StopSignals::default();
        let state = || (signals.stop.is_cancelled(), signals.abort.is_cancelled());
        assert_eq!(state(), (false, false));
        assert!(escalate(&signals).is_some_and(|text| text.starts_with("stopping")));
        assert_eq!(state(), (true, false));
        assert!(escalate(&signals).is_some_and(|text| text.starts_with("aborting")));
        assert_eq!(state(), (true, true));
        assert_eq!(escalate(&signals), None);
    }
}
