//! The supervisor of a program: a process of our own program that starts the gate of the program, and ends with the program
//! and all that the program has started.
//!
//! The supervisor kills by descent from itself: on Linux it is a subreaper, so every process that the program starts is one of its
//! descendants, and no other process is. It kills them when the program exits, and when its socket ends because `sc` has
//! exited or was killed.

use std::ffi::{CStr, OsString};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getppid, kill_process_group, wait, waitid};

use super::background::start_thread;
use super::{descriptors, gate};

/// Argument that runs our program as a supervisor. The process id of `sc`, the path of our program, and the arguments of a
/// gate after the id of its parent follow.
pub(super) const ARGUMENT: &str = "__supervise";

/// Name of the supervisor process. It differs from that of `sc`, and does not contain it, so that `killall sc` and
/// `pkill sc` do not kill both.
pub(super) const NAME: &CStr = c"supervisor";

/// Limit on the time of a supervisor after the end of its socket. A process that belongs to another account cannot be killed.
const EXIT_LIMIT: Duration = Duration::from_secs(3);

/// Message of a supervisor to `sc`: a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The process that becomes the program runs. It leads a group.
    Started(Pid),
    /// The program has ended, with this wait status, and so has all that it has started.
    Ended(i32),
}

impl Reply {
    fn line(self) -> String {
        match self {
            Self::Started(pid) => format!("started {pid}\n"),
            Self::Ended(status) => format!("ended {status}\n"),
        }
    }
}

impl FromStr for Reply {
    type Err = io::Error;

    fn from_str(line: &str) -> io::Result<Self> {
        let reply = match line.trim_end().split_once(' ') {
            Some(("started", pid)) => pid.parse().ok().and_then(Pid::from_raw).map(Self::Started),
            Some(("ended", status)) => status.parse().ok().map(Self::Ended),
            _ => None,
        };
        reply.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// Returns the line that makes a supervisor send a signal to the group of its program.
pub(super) fn signal_request(signal: Signal) -> String {
    format!("signal {}\n", signal.as_raw())
}

/// Program of this supervisor, the leader of a process group.
struct Leader {
    group: Pid,
    /// True once it is reaped. Locked while a signal is sent and while it is reaped: afterwards the number of the group may
    /// belong to another one.
    reaped: Mutex<bool>,
}

/// Runs the supervisor. Its standard input is the socket of `sc`, which sends the output of the program as descriptors.
pub(super) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    if supervise(arguments).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn supervise(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let parent = arguments.next().and_then(|parent| Pid::from_raw(parent.to_str()?.parse().ok()?));
    let (Some(parent), Some(program)) = (parent, arguments.next()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    prepare()?;
    // A parent that died before the request for its signal sends none.
    if getppid() != Some(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let [stdout, stderr] = descriptors::receive(&socket)?;
    let mut command = Command::new(Path::new(&program));
    command.args([gate::ARGUMENT, &std::process::id().to_string()]).args(arguments);
    command.stdin(Stdio::piped()).stdout(stdout).stderr(stderr);
    let mut gate = gate::retry_while_busy(|| command.spawn())?;
    // With it, the output is closed in this process, so that it ends with the program.
    drop(command);
    let leader = Arc::new(Leader { group: Pid::from_child(&gate), reaped: Mutex::new(false) });
    let (requests, of_requests) = (BufReader::new(socket.try_clone()?), Arc::clone(&leader));
    start_thread("requests", move || of_requests.serve(requests))?;
    // The standard input of the program stays open and empty. The gate may have exited; its exit is reported.
    let stdin = gate.stdin.as_mut();
    stdin.map(|stdin| stdin.write_all(b"\n")).transpose().ok();
    // `sc` may have exited; the end of the socket is noticed.
    socket.write_all(Reply::Started(leader.group).line().as_bytes()).ok();
    let status = leader.wait();
    kill_rest();
    socket.write_all(Reply::Ended(status).line().as_bytes())
}

/// Makes all that the program starts a descendant of this process for good, and makes the system continue this process if
/// it is stopped when `sc` dies.
#[cfg(target_os = "linux")]
fn prepare() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?;
    // A process without the name still supervises; the error is ignored.
    rustix::thread::set_name(NAME).ok();
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn prepare() -> io::Result<()> {
    Ok(())
}

impl Leader {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.reaped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) {
        if !*self.lock() {
            // Its processes may have exited; the error is ignored.
            kill_process_group(self.group, signal).ok();
        }
    }

    /// Sends the requested signals. At the end of the requests, or at one that is malformed, kills the program with all that it
    /// has started, and ends this process if that fails.
    fn serve(&self, requests: BufReader<UnixStream>) {
        for line in requests.lines().map_while(Result::ok) {
            let Some(signal) = parse_signal(&line) else { break };
            self.signal(signal);
        }
        self.signal(Signal::KILL);
        #[cfg(target_os = "linux")]
        super::descendants::kill_found(|_, _| true);
        // The main thread goes on, and ends this process. A fixed wait: this is the limit on that.
        std::thread::sleep(EXIT_LIMIT);
        std::process::exit(1)
    }

    /// Waits for the program to exit, kills its group, and reaps it. Returns its wait status. Meanwhile reaps the descendants
    /// that have become children of this process.
    fn wait(&self) -> i32 {
        let mut status = None;
        loop {
            while matches!(waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT), Err(Errno::INTR)) {}
            let mut reaped = self.lock();
            let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            if matches!(waitid(WaitId::Pid(self.group), exited), Ok(Some(_))) {
                kill_process_group(self.group, Signal::KILL).ok();
            }
            let is_left = reap(|child, of_child| {
                if child == self.group {
                    status = Some(of_child);
                }
            });
            *reaped = status.is_some() || !is_left;
            if *reaped {
                return status.unwrap_or_default();
            }
        }
    }
}

/// Kills the processes that have left the group of the program, until none is left, at most for two seconds.
#[cfg(target_os = "linux")]
fn kill_rest() {
    use super::descendants::{LIMIT, PAUSE, kill_found};
    let started = std::time::Instant::now();
    // All descendants have become children, or have one as an ancestor.
    while reap(|_, _| ()) && started.elapsed() < LIMIT {
        // Processes that were started while the others were killed are found by the next search.
        kill_found(|_, _| true);
        // Polls: the exits of descendants that are not children are not reported.
        std::thread::sleep(PAUSE);
    }
}

/// Other systems do not show what has left the group.
#[cfg(not(target_os = "linux"))]
fn kill_rest() {}

/// Reaps all children that have exited. Returns whether this process has any others.
fn reap(mut reaped: impl FnMut(Pid, i32)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((child, status))) => reaped(child, status.as_raw()),
            Ok(None) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

fn parse_signal(request: &str) -> Option<Signal> {
    Signal::from_named_raw(request.strip_prefix("signal ")?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_their_lines() {
        for reply in [Reply::Started(Pid::from_raw(7).unwrap()), Reply::Ended(256)] {
            assert_eq!(reply.line().parse::<Reply>().unwrap(), reply);
        }
        for invalid in ["", "started", "started 0", "started x", "ended ", "hello 7"] {
            assert!(invalid.parse::<Reply>().is_err(), "{invalid}");
        }
        for signal in [Signal::INT, Signal::TERM] {
            assert_eq!(parse_signal(signal_request(signal).trim_end()), Some(signal));
        }
        for invalid in ["", "signal", "signal 0", "signal -1", "signal 9999", "hello 2"] {
            assert_eq!(parse_signal(invalid), None, "{invalid}");
        }
    }
}
