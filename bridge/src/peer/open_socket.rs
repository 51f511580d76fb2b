//! Search for the process that has a socket open, in `/proc`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use super::socket::Owner;
use super::{Peer, find};
use crate::fs::has_own_proc;

/// Processes that listen at an address, as the system shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listening {
    /// A selected process listens there.
    Selected,
    /// Other processes of the account of this process listen there.
    Other,
    /// A process of another account listens there.
    Foreign {
        /// User id of the account.
        uid: u32,
    },
    /// No process listens there.
    None,
}

/// Returns who listens at an IPv4 address of this machine, among the processes that `is_selected` selects by their number
/// and the others. Where the system does not show processes and their sockets, a selected one is assumed.
/// Blocks for milliseconds.
pub(crate) fn listening(address: SocketAddr, is_selected: impl Fn(i32) -> bool) -> Listening {
    let owner = find(|sockets| Some(vec![sockets.listener(address)])).and_then(|owners| owners.into_iter().next());
    let Some(Some(owner)) = owner else {
        return if has_processes() { Listening::None } else { Listening::Selected };
    };
    match owner.peer() {
        Peer::Closed => Listening::None,
        Peer::Foreign { uid } => Listening::Foreign { uid },
        Peer::Own if !has_processes() || is_open_in(owner, is_selected) => Listening::Selected,
        Peer::Own => Listening::Other,
    }
}

/// Returns whether the system shows processes with their open files, by the numbers that they have here.
fn has_processes() -> bool {
    has_own_proc() && fs::read_dir("/proc/self/fd").is_ok_and(|mut entries| entries.next().is_some())
}

/// Returns whether a selected process has a socket open.
fn is_open_in(owner: Owner, is_selected: impl Fn(i32) -> bool) -> bool {
    let target = format!("socket:[{}]", owner.inode);
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_open = |process: i32| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|link| link == Path::new(&target))
    };
    processes.into_iter().filter(|process| is_selected(*process)).any(has_open)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn listener_is_found_in_the_process_that_has_it_open() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(listening(address, |process| process == own), Listening::Selected);
        assert_eq!(listening(address, |process| process != own), Listening::Other);
        drop(listener);
        assert_eq!(listening(address, |_| true), Listening::None);
    }
}
