//! The only place where bytes of programs enter: the output of agents, commands and displays on its way to prompts,
//! records and screens. Whatever has to be done to all of it is done here.
//!
//! Two readers of pipes are exceptions. [`super::short`] runs our own commands, whose output (names, commits,
//! versions) is data for decisions and must not be changed. And a filter child, which is our own executable, answers
//! line by line, within a time limit, from bytes that came in here already.

use std::io::{self, PipeReader, Read};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};

/// The most bytes of one read. Larger reads would save few system calls, but the data would have left the processor's
/// cache before it is written and decoded.
const CHUNK: usize = 64 * 1024;

/// Reads `pipe` to its end and passes every chunk to `take`, until `take` returns `false` or the other end of `stop`
/// is closed. So a stranger that holds the pipe open cannot block us.
pub fn pump(mut pipe: PipeReader, stop: &UnixStream, mut take: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let mut descriptors = [PollFd::new(&pipe, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut descriptors, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        if descriptors[0].revents().is_empty() {
            return;
        }
        match pipe.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                if !take(&buffer[..count]) {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
