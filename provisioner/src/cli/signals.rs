//! Process signals (interrupt, terminate, hang up). A thread of their own receives them, so that they have an effect even
//! while the runtime is busy, or waits for a file or a pipe.
//!
//! Outside of a session there is nothing to stop: a signal ends the process. In a session the first one stops the
//! operation, the second one aborts it, and the third one ends the process. The second one ends it, too, if the
//! operation does not return in time. At a question nothing runs, so the stop ends the program.
//!
//! A time limit stops and aborts an operation in the same way, so it holds even if the runtime is blocked.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use std::{fmt, io, thread};

use engine::StopSignals;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::display::StopNotice;
use super::exit::Exit;
use super::streams::Echo;

/// Limit on the output that restores the terminal before a signal ends the process.
pub(crate) const RESTORE_LIMIT: Duration = Duration::from_millis(100);
/// Limit on the wait for the runtime to respond to an abort. A runtime that does not is busy, or waits for a file.
const RESPONSE_LIMIT: Duration = Duration::from_secs(1);
/// Limit on an abort: plugins are killed, and the state is saved.
const ABORT_LIMIT: Duration = Duration::from_secs(10);

/// Function that shows the user that the operation is being stopped.
type Notify = Box<dyn Fn(StopNotice) + Send>;
/// Function that is called before a signal ends the process: restores the terminal and prints what is recorded nowhere.
/// Returns the outcome of the process.
type End = Box<dyn FnOnce() -> Exit + Send>;

/// Receiver of the signals of this process.
#[derive(Clone, Default)]
pub(crate) struct SignalReceiver {
    session: Arc<Mutex<Option<ActiveSession>>>,
    /// True while a question waits for its reply.
    is_asking: Arc<AtomicBool>,
    /// True while the question is one for a confirmation: nothing is changed before its reply.
    is_confirming: Arc<AtomicBool>,
    /// Echo of the terminal, which a signal that ends the process switches on again.
    pub(crate) echo: Echo,
    /// Time at which the time limit stops or aborts the operation, if it has one.
    deadline: Arc<watch::Sender<Option<Instant>>>,
}

/// Limit on the time of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeLimit {
    /// Time after which the operation is stopped.
    pub(crate) timeout: Duration,
    /// Time from then on, after which it is aborted.
    pub(crate) grace: Duration,
}

/// Cause of the next step towards the end of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Signal,
    TimeLimit,
}

/// Session that signals stop and abort.
struct ActiveSession {
    signals: StopSignals,
    /// Time between the expiry of the time limit and the abort.
    grace: Duration,
    progress: Progress,
    notify: Notify,
    end: End,
}

/// Progress of an abort, for the thread that waits for it.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Cancelled by the runtime once it has received the abort.
    has_responded: CancellationToken,
    /// Cancelled at the end of the session.
    has_ended: CancellationToken,
    /// Cancelled once the time limit has expired.
    has_timed_out: CancellationToken,
}

/// Effect of a signal.
enum Effect {
    /// The operation is being stopped.
    Stop,
    /// The operation is being aborted.
    Abort(Progress),
    /// The process ends.
    End,
}

impl SignalReceiver {
    /// Starts the thread that receives the signals. Signals that arrive before it runs wait for it: the handlers are set
    /// on return. If the system allows no handlers, signals have their default effect.
    ///
    /// # Errors
    /// The thread or its runtime cannot be started.
    pub(crate) fn start() -> io::Result<Self> {
        let receiver = Self::default();
        let of_thread = receiver.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = {
            let _context = runtime.enter();
            // A file that reaches the limit on its size must be an error of the write (EFBIG), and not the end of the
            // process. The handler does nothing. It is none of the processes that are started: these get the default.
            signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).ok();
            Signals::new()
        };
        if let Ok(signals) = signals {
            let receive = move || runtime.block_on(of_thread.receive(signals));
            thread::Builder::new().name("signals".to_owned()).spawn(receive)?;
        }
        Ok(receiver)
    }

    /// Makes signals, and the time limit from now on, stop and abort an operation until the guard is dropped.
    pub(crate) fn begin_session(
        &self,
        signals: &StopSignals,
        limit: Option<TimeLimit>,
        notify: Notify,
        end: End,
    ) -> SessionGuard {
        let progress = Progress::default();
        let grace = limit.map_or(Duration::MAX, |limit| limit.grace);
        let session = ActiveSession { signals: signals.clone(), grace, progress: progress.clone(), notify, end };
        *self.lock() = Some(session);
        self.deadline.send_replace(limit.and_then(|limit| Instant::now().checked_add(limit.timeout)));
        SessionGuard { receiver: self.clone(), abort: signals.abort.clone(), progress }
    }

    /// Marks that a question waits for its reply, until the guard is dropped. Nothing runs during a question, so a signal is
    /// not reported as a stop.
    pub(crate) fn begin_question(&self) -> QuestionGuard {
        self.is_asking.store(true, Ordering::SeqCst);
        QuestionGuard { is_asking: Arc::clone(&self.is_asking), is_confirming: Arc::clone(&self.is_confirming) }
    }

    /// Marks a question as one for a confirmation, as [`SignalReceiver::begin_question`] does. A signal that ends the process then
    /// says that nothing was changed.
    pub(crate) fn begin_confirmation(&self) -> QuestionGuard {
        self.is_confirming.store(true, Ordering::SeqCst);
        self.begin_question()
    }

    fn lock(&self) -> MutexGuard<'_, Option<ActiveSession>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives signals until one of them ends the process.
    async fn receive(&self, mut signals: Signals) {
        loop {
            let cause = tokio::select! {
                () = signals.next() => Cause::Signal,
                () = self.deadline_expired() => Cause::TimeLimit,
            };
            match self.escalate(cause) {
                Effect::Stop => {}
                Effect::Abort(progress) => tokio::select! {
                    () = progress.has_ended.cancelled() => {}
                    () = signals.next() => self.end_process(),
                    () = progress.is_overdue(RESPONSE_LIMIT, ABORT_LIMIT) => self.end_process(),
                },
                Effect::End => self.end_process(),
            }
        }
    }

    /// Returns once the deadline has passed.
    async fn deadline_expired(&self) {
        let mut deadline = self.deadline.subscribe();
        loop {
            let at = *deadline.borrow_and_update();
            let expired = async {
                match at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = expired => return,
                // The sender is a part of `self`, so this is no error.
                _ = deadline.changed() => {}
            }
        }
    }

    /// Stops the operation, or aborts it if it is being stopped already. The time limit gives an operation that a signal
    /// has stopped its grace, too.
    fn escalate(&self, cause: Cause) -> Effect {
        let session = self.lock();
        let Some(session) = &*session else {
            // The time limit may expire at the moment when the session ends.
            return if cause == Cause::Signal { Effect::End } else { Effect::Stop };
        };
        if cause == Cause::TimeLimit && !session.progress.has_timed_out.is_cancelled() {
            session.progress.has_timed_out.cancel();
            self.deadline.send_replace(Instant::now().checked_add(session.grace));
            if !self.is_asking.load(Ordering::SeqCst) {
                (session.notify)(StopNotice::TimedOut { grace: session.grace });
            }
            session.signals.stop.cancel();
            return Effect::Stop;
        }
        // The notice comes first: the display shows it before the events that the signal causes.
        if !session.signals.stop.is_cancelled() {
            if !self.is_asking.load(Ordering::SeqCst) {
                (session.notify)(StopNotice::Stopping);
            }
            session.signals.stop.cancel();
            return Effect::Stop;
        }
        if !session.signals.abort.is_cancelled() {
            self.deadline.send_replace(None);
            (session.notify)(StopNotice::Aborting);
            session.signals.abort.cancel();
            return Effect::Abort(session.progress.clone());
        }
        Effect::End
    }

    /// Ends the process. The supervisor kills the processes that it has started. A lock of the stack stays, as after a
    /// crash.
    fn end_process(&self) -> ! {
        self.echo.restore();
        if self.is_asking.load(Ordering::SeqCst) {
            // An error means that standard error is closed.
            let text: &[u8] =
                if self.is_confirming.load(Ordering::SeqCst) { b"\nnothing was changed\n" } else { b"\n" };
            within(RESTORE_LIMIT, || io::stderr().write_all(text).unwrap_or_default());
        }
        // The main thread may be busy, so it cannot return the exit code.
        std::process::exit(self.end_session().code().into())
    }

    /// Ends the session, if there is one. Returns the outcome of the process.
    fn end_session(&self) -> Exit {
        let Some(session) = self.lock().take() else { return Exit::Canceled };
        match (session.end)() {
            Exit::Canceled if session.progress.has_timed_out.is_cancelled() => Exit::Failed,
            exit => exit,
        }
    }
}

impl fmt::Debug for SignalReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalReceiver").finish_non_exhaustive()
    }
}

impl Progress {
    /// Returns after the limit on the response of the runtime, or, if it responds, after the limit on the abort.
    async fn is_overdue(&self, response_limit: Duration, abort_limit: Duration) {
        if tokio::time::timeout(response_limit, self.has_responded.cancelled()).await.is_ok() {
            tokio::time::sleep(abort_limit).await;
        }
    }
}

/// Guard of a session. Signals end the process once it is dropped.
#[derive(Debug)]
pub(crate) struct SessionGuard {
    receiver: SignalReceiver,
    abort: CancellationToken,
    progress: Progress,
}

impl SessionGuard {
    /// Reports that the runtime responds to an abort. Has to be polled together with the operation.
    pub(crate) async fn respond(&self) -> std::convert::Infallible {
        self.abort.cancelled().await;
        self.progress.has_responded.cancel();
        std::future::pending().await
    }

    /// Returns whether the time limit has expired.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.progress.has_timed_out.is_cancelled()
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        drop(self.receiver.lock().take());
        self.receiver.deadline.send_replace(None);
        self.progress.has_ended.cancel();
    }
}

/// Mark that a question waits for its reply.
#[derive(Debug)]
pub(crate) struct QuestionGuard {
    is_asking: Arc<AtomicBool>,
    is_confirming: Arc<AtomicBool>,
}

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        self.is_asking.store(false, Ordering::SeqCst);
        self.is_confirming.store(false, Ordering::SeqCst);
    }
}

/// Ends the line of a question that has no reply. The terminal has echoed `^C` there.
///
/// # Errors
/// Errors of the terminal.
pub(crate) fn end_question_line() -> io::Result<()> {
    io::stderr().write_all(b"\n")
}

/// Writes to a terminal or a pipe before the end of the process. Waits until the limit at most: it may accept no output.
pub(crate) fn within(limit: Duration, write: impl FnOnce() + Send + 'static) {
    let (written, done) = mpsc::channel();
    let write = move || {
        write();
        // The receiver may have been dropped after the limit; the error is ignored.
        written.send(()).unwrap_or_default();
    };
    if thread::Builder::new().name("last output".to_owned()).spawn(write).is_ok() {
        done.recv_timeout(limit).unwrap_or_default();
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn handlers_are_set_before_the_thread_runs() {
        let _receiver = SignalReceiver::start().unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        let number = |signal: rustix::process::Signal| signal.as_raw().cast_unsigned();
        for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::HUP] {
            assert_ne!(caught & (1 << (number(signal) - 1)), 0, "{signal:?}");
        }
    }

    #[test]
    fn first_signal_stops_second_aborts_third_ends() {
        let (receiver, signals) = (SignalReceiver::default(), StopSignals::default());
        let notices = Arc::new(Mutex::new(Vec::new()));
        let of_session = Arc::clone(&notices);
        let notify = Box::new(move |notice| of_session.lock().unwrap().push(notice));
        let guard = receiver.begin_session(&signals, None, notify, Box::new(|| Exit::Canceled));
        let state = || (signals.stop.is_cancelled(), signals.abort.is_cancelled());
        assert_eq!(state(), (false, false));
        assert!(matches!(receiver.escalate(Cause::Signal), Effect::Stop));
        assert_eq!(state(), (true, false));
        assert!(matches!(receiver.escalate(Cause::Signal), Effect::Abort(_)));
        assert_eq!(state(), (true, true));
        assert!(matches!(receiver.escalate(Cause::Signal), Effect::End));
        assert_eq!(*notices.lock().unwrap(), [StopNotice::Stopping, StopNotice::Aborting]);
        drop(guard);
    }

    #[test]
    fn signal_at_a_question_stops_without_a_notice() {
        let (receiver, signals) = (SignalReceiver::default(), StopSignals::default());
        let notify = Box::new(|notice| panic!("nothing runs, but {notice:?} is shown"));
        let _guard = receiver.begin_session(&signals, None, notify, Box::new(|| Exit::Canceled));
        let question = receiver.begin_question();
        assert!(matches!(receiver.escalate(Cause::Signal), Effect::Stop));
        assert!(signals.stop.is_cancelled());
        drop(question);
        assert!(!receiver.is_asking.load(Ordering::SeqCst));
    }

    /// Shows: engine.md#stop-and-abort "the first Ctrl-C ends the program"
    #[test]
    fn signal_outside_of_a_session_ends_the_process() {
        let (receiver, signals) = (SignalReceiver::default(), StopSignals::default());
        assert!(matches!(receiver.escalate(Cause::Signal), Effect::End));
        drop(receiver.begin_session(&signals, None, Box::new(|_| {}), Box::new(|| Exit::Canceled)));
        assert!(matches!(receiver.escalate(Cause::Signal), Effect::End));
        assert!(!signals.stop.is_cancelled());
    }

    #[test]
    fn session_that_a_signal_ends_decides_the_outcome() {
        let (receiver, signals) = (SignalReceiver::default(), StopSignals::default());
        let guard = receiver.begin_session(&signals, None, Box::new(|_| {}), Box::new(|| Exit::Failed));
        assert_eq!(receiver.end_session(), Exit::Failed);
        assert_eq!(receiver.end_session(), Exit::Canceled, "there is no session");
        drop(guard);
    }

    #[tokio::test]
    async fn abort_is_overdue_at_once_unless_the_runtime_responds() {
        let (receiver, signals) = (SignalReceiver::default(), StopSignals::default());
        let guard = receiver.begin_session(&signals, None, Box::new(|_| {}), Box::new(|| Exit::Canceled));
        let Effect::Stop = receiver.escalate(Cause::Signal) else { panic!("the first signal stops") };
        let Effect::Abort(progress) = receiver.escalate(Cause::Signal) else { panic!("the second signal aborts") };
        // Returns, as nothing has polled the guard.
        progress.is_overdue(Duration::ZERO, Duration::MAX).await;
        assert!(guard.respond().now_or_never().is_none());
        assert!(progress.is_overdue(Duration::ZERO, Duration::MAX).now_or_never().is_none());
        progress.is_overdue(Duration::MAX, Duration::ZERO).await;
    }

    /// Shows: engine.md#stop-and-abort "stops a command that takes longer, and aborts it if it has not ended after a
    ///   further `--stop-grace`"
    #[tokio::test]
    async fn time_limit_stops_and_then_aborts_after_the_grace() {
        let (receiver, signals) = (SignalReceiver::default(), StopSignals::default());
        let notices = Arc::new(Mutex::new(Vec::new()));
        let of_session = Arc::clone(&notices);
        let notify = Box::new(move |notice| of_session.lock().unwrap().push(notice));
        let limit = TimeLimit { timeout: Duration::ZERO, grace: Duration::from_millis(1) };
        let guard = receiver.begin_session(&signals, Some(limit), notify, Box::new(|| Exit::Canceled));
        assert!(!guard.has_timed_out());
        assert!(expires(&receiver).await);
        assert!(matches!(receiver.escalate(Cause::TimeLimit), Effect::Stop));
        assert!(guard.has_timed_out() && signals.stop.is_cancelled() && !signals.abort.is_cancelled());
        assert!(expires(&receiver).await);
        assert!(matches!(receiver.escalate(Cause::TimeLimit), Effect::Abort(_)));
        assert!(signals.abort.is_cancelled());
        assert!(receiver.deadline_expired().now_or_never().is_none());
        assert_eq!(*notices.lock().unwrap(), [StopNotice::TimedOut { grace: limit.grace }, StopNotice::Aborting]);
        assert_eq!(receiver.end_session(), Exit::Failed);
    }

    #[tokio::test]
    async fn time_limit_aborts_what_a_signal_has_stopped_after_the_grace_only() {
        let (receiver, signals) = (SignalReceiver::default(), StopSignals::default());
        let limit = TimeLimit { timeout: Duration::ZERO, grace: Duration::from_secs(3600) };
        let guard = receiver.begin_session(&signals, Some(limit), Box::new(|_| {}), Box::new(|| Exit::Canceled));
        assert!(matches!(receiver.escalate(Cause::Signal), Effect::Stop));
        assert!(!guard.has_timed_out());
        assert!(expires(&receiver).await);
        assert!(matches!(receiver.escalate(Cause::TimeLimit), Effect::Stop));
        assert!(receiver.deadline_expired().now_or_never().is_none(), "the grace has not passed");
        assert!(matches!(receiver.escalate(Cause::Signal), Effect::Abort(_)));
        drop(guard);
        assert!(matches!(receiver.escalate(Cause::TimeLimit), Effect::Stop), "there is no session");
    }

    /// Returns whether the deadline of the time limit passes.
    async fn expires(receiver: &SignalReceiver) -> bool {
        tokio::time::timeout(Duration::from_secs(60), receiver.deadline_expired()).await.is_ok()
    }
}
