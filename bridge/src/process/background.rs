//! Threads that are not joined, and their wait for a child process.
//!
//! Length: the program, its supervision and the supervisor use them, and import each other in this order.

use std::{io, thread};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Starts a thread that is not joined.
pub(super) fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Waits for a child process to exit. It stays a zombie, so that its number is not used again.
pub(super) fn wait_without_reaping(child: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(child), options), Err(Errno::INTR)) {}
}
