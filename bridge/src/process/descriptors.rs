//! Descriptors that `sc` sends to a supervisor: the output of the program, which the supervisor does not hold open.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// Number of descriptors: standard output and standard error.
const COUNT: usize = 2;

/// Sends descriptors, with one byte.
pub(super) fn send(socket: &UnixStream, descriptors: [BorrowedFd<'_>; COUNT]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(COUNT))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket.as_fd(), &[IoSlice::new(b"\n")], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives descriptors, which are closed when a program is executed.
pub(super) fn receive(socket: &UnixStream) -> io::Result<[OwnedFd; COUNT]> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(COUNT))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::empty())?;
    let mut received = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            received.extend(descriptors);
        }
    }
    for descriptor in &received {
        fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    received.try_into().map_err(|_| io::ErrorKind::UnexpectedEof.into())
}
