//! How fast facts become lines, as `--json` and the events log write them.

use std::time::Duration;

use chrono::Local;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use ralph::engine::event::{LoopIdentity, Stamped};
use ralph::engine::fact::Fact;
use ralph::engine::report::{AttemptStatus, Report};
use ralph::engine::tally::Tally;
use ralph::record::event_line::line_of;
use ralph::reply::show::Show;

/// What an agent said, in pieces of `size` bytes, `together` of them at a time.
#[divan::bench(args = [(10, 1), (10, 100), (1_000, 10), (100_000, 1)])]
fn said(bencher: Bencher<'_, '_>, (size, together): (usize, usize)) {
    let text = "It is \"done\".\n".repeat(size / 14 + 1);
    let shows = vec![Show::Delta(text[..size].to_owned()); together];
    lines(bencher, || shows.iter().map(Fact::from));
}

/// The longest fact of a loop.
#[divan::bench]
fn attempt_ended(bencher: Bencher<'_, '_>) {
    let (tally, report) = (Tally::default(), Report::given_up(AttemptStatus::Success, Duration::ZERO));
    let head = Some("0123456789012345678901234567890123456789");
    lines(bencher, || [Fact::attempt_ended(&tally, &report, head, Some(true))]);
}

/// From what the engine has to the lines.
fn lines<'a, F: IntoIterator<Item = Fact<'a>>>(bencher: Bencher<'_, '_>, facts: impl Fn() -> F + Sync) {
    let identity = LoopIdentity {
        run: "20260101-000000-4711-deadbeef".into(),
        name: "build".into(),
        mode: "build".into(),
        agent: "claude".into(),
    };
    let (at, tally) = (Local::now(), Tally::default());
    let lines = || -> String {
        let line = |fact: Fact<'_>| line_of(black_box(&Stamped::new(at, &identity, &tally, &fact)));
        facts().into_iter().map(line).collect()
    };
    bencher.counter(BytesCount::new(lines().len())).bench(lines);
}
