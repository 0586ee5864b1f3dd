//! Where the bytes of programs enter: what an agent, a command or a display prints, on its way to prompts, records and
//! screens, is read here and nowhere else. What has to be done to all of it is done here.
//!
//! Two readers of pipes stay outside. [`super::short`] runs commands of ours whose answers (names, commits, versions) are
//! data to decide by: a byte that was changed on the way would make them false. And a filter child, which is our own
//! executable, answers line by line, within a time limit, with what it makes of bytes that came in here already.

use std::io::{self, PipeReader, Read};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};

/// How many bytes one read of a program's output takes at most. More would save few system calls, but what is read
/// would be gone from the processor's cache before it is written and decoded.
const CHUNK: usize = 64 * 1024;

/// Reads `pipe` to its end and hands every chunk to `take`, until `take` answers `false` or the other end of
/// `stop` is closed. A stranger that holds the pipe open can therefore not hold us.
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
