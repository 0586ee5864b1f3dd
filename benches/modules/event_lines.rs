//! How fast events become lines, as `--json` and the events log write them.

use std::time::Duration;

use chrono::Local;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use ralph::engine::event::{Event, LoopIdentity, Stamped};
use ralph::engine::report::{AttemptStatus, Report};
use ralph::engine::tally::Tally;
use ralph::record::event_json::to_lines;
use ralph::reply::show::Show;

/// What an agent said, in pieces of `size` bytes, `together` of them at a time.
#[divan::bench(args = [(10, 1), (10, 100), (1_000, 10), (100_000, 1)])]
fn said(bencher: Bencher<'_, '_>, (size, together): (usize, usize)) {
    let text = "It is \"done\".\n".repeat(size / 14 + 1);
    let shows = vec![Show::Delta(text[..size].to_owned()); together];
    lines(bencher, Event::Shown(&shows));
}

/// The longest event of a loop.
#[divan::bench]
fn attempt_ended(bencher: Bencher<'_, '_>) {
    let (tally, report) = (Tally::default(), Report::given_up(AttemptStatus::Success, Duration::ZERO));
    let head = Some("0123456789012345678901234567890123456789");
    lines(bencher, Event::AttemptEnded { tally: &tally, report: &report, head, changed: Some(true) });
}

fn lines(bencher: Bencher<'_, '_>, event: Event<'_>) {
    let identity = LoopIdentity {
        run: "20260101-000000-4711-deadbeef".into(),
        name: "build".into(),
        mode: "build".into(),
        agent: "claude".into(),
    };
    let stamped = Stamped { at: Local::now(), identity: &identity, event };
    bencher.counter(BytesCount::new(to_lines(&stamped).len())).bench(|| to_lines(black_box(&stamped)));
}
