//! The thread that starts supervised processes.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Sender};

use super::background::start_thread;
use super::gate;

/// Thread that starts processes until it is dropped.
///
/// The gate requests the signal that Linux sends at the death of its parent (PR_SET_PDEATHSIG). That parent is the
/// *thread* that started the process. A thread of a pool may end at any time, so it must not start one.
#[derive(Debug)]
pub(super) struct Starter(Sender<(Command, Sender<io::Result<Child>>)>);

impl Starter {
    /// Starts the thread.
    pub(super) fn new() -> io::Result<Self> {
        let (sender, requests) = mpsc::channel::<(Command, Sender<io::Result<Child>>)>();
        start_thread("process starter", move || {
            for (mut command, started) in requests {
                // The caller waits for the reply, so the receiver exists.
                started.send(gate::retry_while_busy(|| command.spawn())).ok();
            }
        })?;
        Ok(Self(sender))
    }

    /// Starts a process on the thread, and waits until it is started.
    pub(super) fn spawn(&self, command: Command) -> io::Result<Child> {
        let (sender, started) = mpsc::channel();
        let ended = || io::Error::other("the thread that starts processes has ended");
        self.0.send((command, sender)).map_err(|_| ended())?;
        started.recv().unwrap_or_else(|_| Err(ended()))
    }
}
