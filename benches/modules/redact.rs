//! What taking out secrets costs: the same stream from the context to the session log, with and without. `redaction_ratio` says
//! how much longer it takes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use divan::Bencher;
use divan::counter::BytesCount;
use ralph::engine::context::{Context, Listener};
use ralph::engine::event::{LoopIdentity, Stamped, Stream};
use ralph::engine::inbox::Inbox;
use ralph::engine::outcome::End;
use ralph::files::RecordFile;
use ralph::record::session_log::SessionLog;
use ralph::text::redact::Redactor;

const CHUNK: usize = 64 << 10;
const STREAM: usize = 20_000_000;
/// So many variables hold secrets; some machines have a dozen.
const SECRETS: [usize; 3] = [0, 3, 30];

/// Events of an agent whose tools print a lot, as claude writes them.
fn stream() -> Vec<u8> {
    let text = "fn main() { let key = std::env::var(\\\"API_KEY\\\")?; println!(\\\"sk-… {key}\\\"); } // 1234567890 ";
    let line = format!(
        "{{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"content\":\"{}\"}}]}}}}\n",
        text.repeat(20)
    );
    line.repeat(STREAM / line.len()).into_bytes()
}

fn redactor(count: usize) -> Redactor {
    let beginnings = ["sk-ant-api03-", "ghp_", "AKIA", "xoxb-", "eyJhbGciOiJ", "p\"w\\/", "glpat-", ""];
    let secrets: Vec<(String, String)> = (0..count)
        .map(|number| {
            let tail: String = (0..32_usize)
                .map(|at| char::from(b"aB3dE5fG7hJ9kL0mN"[(at * (number + 3) + number) % 17]))
                .collect();
            (format!("SECRET_{number}"), beginnings[number % beginnings.len()].to_owned() + &tail)
        })
        .collect();
    Redactor::new(secrets.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// Keeps what an agent writes.
struct Log(SessionLog);

impl Listener for Log {
    fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), End> {
        Ok(self.0.take(stamped)?)
    }

    fn output(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), End> {
        Ok(self.0.take_raw(stream, bytes)?)
    }
}

/// All of the stream from the context into a log.
fn pass(stream: &[u8], redactor: &Redactor, log: &Path) {
    let log = Log(SessionLog::new(RecordFile::truncate(log).expect("a new file")));
    let identity =
        LoopIdentity { run: "r".into(), name: "n".into(), mode: "build".into(), agent: "claude".into() };
    let mut context =
        Context::new(identity, Arc::new(Inbox::default()), vec![Box::new(log)]).without(redactor);
    for bytes in stream.chunks(CHUNK) {
        context.output(Stream::Stdout, bytes).expect("room on the disk");
    }
}

#[divan::bench(args = SECRETS)]
fn redaction(bencher: Bencher<'_, '_>, secrets: usize) {
    let (stream, redactor) = (stream(), redactor(secrets));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("log");
    bencher.counter(BytesCount::new(stream.len())).bench(|| pass(&stream, &redactor, &log));
}

/// How much longer it takes with secrets than without, the best of many turns of each, one after the other.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn redaction_ratio() {
    let stream = stream();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let redactors = SECRETS.map(redactor);
    let mut best = [Duration::MAX; 3];
    for _ in 0..40 {
        for (redactor, best) in redactors.iter().zip(&mut best) {
            let began = Instant::now();
            pass(&stream, redactor, &folder.path().join("log"));
            *best = began.elapsed().min(*best);
        }
    }
    for (secrets, time) in SECRETS.iter().zip(best).skip(1) {
        println!(
            "redaction with {secrets} secrets: {:.3} of none",
            time.as_secs_f64() / best[0].as_secs_f64()
        );
    }
}
