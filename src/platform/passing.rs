//! Open files that are passed to another process over a socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, SendAncillaryBuffer, SendAncillaryMessage, recvmsg, sendmsg,
};

use super::calls::{NO_SIGNAL, NOT_INHERITED};

/// At most this many are passed at once.
pub const MOST: usize = 32;

/// Sends bytes, and open files with them. Returns how many of the bytes were sent.
///
/// # Errors
/// If the other end is closed.
pub fn send(socket: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(files));
    Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, NO_SIGNAL)?)
}

/// Receives bytes, and the open files with them, which no program that we start inherits. Returns how many bytes there are.
///
/// # Errors
/// If the socket is broken.
pub fn receive(socket: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut ancillary, NOT_INHERITED)?;
    let rights = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let files: Vec<OwnedFd> = rights.flatten().collect();
    if NOT_INHERITED.is_empty() {
        for file in &files {
            fcntl_setfd(file, FdFlags::CLOEXEC)?;
        }
    }
    Ok((received.bytes, files))
}
