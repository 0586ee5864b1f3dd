//! How fast an agent's bytes reach the session log, in chunks as they come out of a pipe.

use std::io::Write as _;

use divan::Bencher;
use divan::counter::BytesCount;
use ralph::engine::event::Stream;
use ralph::files::RecordFile;
use ralph::record::session_log::SessionLog;

const CHUNK: usize = 64 << 10;
const STREAM: usize = 20_000_000;

/// Lines of this many bytes; every tenth chunk is followed by a complaint on stderr.
#[divan::bench(args = [100, 10_000, 10_000_000])]
fn session_log(bencher: Bencher<'_, '_>, line: usize) {
    let stream = format!("{}\n", "x".repeat(line - 1)).repeat(STREAM / line);
    let folder = tempfile::tempdir().expect("a temporary folder");
    bencher.counter(BytesCount::new(stream.len())).bench(|| {
        let file = RecordFile::truncate(&folder.path().join("log")).expect("a new file");
        let mut log = SessionLog::new(file);
        for (number, bytes) in stream.as_bytes().chunks(CHUNK).enumerate() {
            log.take_raw(Stream::Stdout, bytes).expect("room on the disk");
            if number % 10 == 0 {
                log.take_raw(Stream::Stderr, b"warning: slow\n").expect("room on the disk");
            }
        }
    });
}

/// What the disk takes at best.
#[divan::bench]
fn plain_writes(bencher: Bencher<'_, '_>) {
    let stream = "x".repeat(STREAM);
    let folder = tempfile::tempdir().expect("a temporary folder");
    bencher.counter(BytesCount::new(stream.len())).bench(|| {
        let mut file = std::fs::File::create(folder.path().join("log")).expect("a new file");
        stream.as_bytes().chunks(CHUNK).for_each(|bytes| file.write_all(bytes).expect("room on the disk"));
    });
}
