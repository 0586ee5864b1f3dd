use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::engine::budget::Spent;
use crate::engine::event::Unwritten;
use crate::engine::fact::Word;
use crate::engine::tally::Tally;
use crate::record::event_line::EventLine;

fn identity() -> LoopIdentity {
    LoopIdentity { run: "r".into(), name: "build".into(), mode: "build".into(), agent: "claude".into() }
}

fn ended(name: &str, outcome: Outcome, tally: &Tally) -> BranchRow {
    let identity = identity();
    let mut row = BranchRow::new(name);
    let fact = Fact::loop_ended(outcome, Some("d"), tally, Duration::from_secs(725), None);
    let unwritten = Unwritten::Outcome(outcome);
    row.take(&Stamped { unwritten, ..Stamped::new(Local::now(), &identity, tally, &fact) });
    row
}

fn rows() -> Vec<BranchRow> {
    let tally = Tally {
        iteration: 12,
        failed: 2,
        spent: Spent { cost_usd: Some(0.424), ..Spent::default() },
        ..Tally::default()
    };
    let mut done = ended("fix-a", Outcome::Complete, &tally);
    done.commits = Some(7);
    done.pull_request = Some("https://example.org/o/r/pull/12".into());
    let mut limit =
        ended("feature/login", Outcome::MaxIterations, &Tally { iteration: 20, ..Tally::default() });
    limit.commits = Some(19);
    limit.notes.push("not pushed: no remote 'origin'\nsecond line\x07".into());
    let failed = ended("日本", Outcome::Breaker, &Tally { iteration: 3, failed: 3, ..Tally::default() });
    let mut waiting = BranchRow::new("fix-b");
    waiting.built = Built::WaitingFor("日本".into());
    vec![done, limit, failed, waiting, BranchRow::new("docs")]
}

fn without_colours(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn the_table_is_aligned_and_says_what_is_not_done() {
    assert_eq!(
        without_colours(&table(&rows(), None)),
        "\
BRANCH         RESULT            ITERATIONS     TIME   COST   COMMITS  PULL REQUEST / REASON
fix-a          done              12 (2 failed)  12m5s  $0.42  7        https://example.org/o/r/pull/12
feature/login  limit             20             12m5s  -      19       d
日本           failed            3 (3 failed)   12m5s  -      -        d
fix-b          waiting for 日本  -              -      -      -        -
docs           not started       -              -      -      -        -
feature/login: not pushed: no remote 'origin' second line
"
    );
    assert!(table(&rows(), None).contains("  \x1b[32mdone  "), "{:?}", table(&rows(), None));
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let table = |width| without_colours(&table(&rows(), Some(width)));
    for width in [45, 60, 80, 200] {
        let text = table(width);
        let too_wide: Vec<&str> = text.lines().filter(|line| line.width() > width).collect();
        assert!(too_wide.is_empty(), "{width}: {too_wide:?}");
        // Whatever has no column of its own is told below.
        assert!(text.contains("feature/login: d\n") || text.contains("19       d\n"), "{text}");
        assert!(text.contains("fix-a") && text.contains("done") && text.contains("limit"), "{text}");
    }
}

#[test]
fn what_nobody_knows_takes_no_room() {
    assert_eq!(
        without_colours(&table(&[BranchRow::new("fix-a")], None)),
        "BRANCH  RESULT\nfix-a   not started\n"
    );
    let failed = ended("fix-a", Outcome::AgentMissing, &Tally { iteration: 1, ..Tally::default() });
    let mut done = ended("fix-b", Outcome::Idle, &Tally { iteration: 4, ..Tally::default() });
    done.built = Built::Done;
    let text = without_colours(&table(&[failed, done], None));
    assert_eq!(
        text,
        "\
BRANCH  RESULT  ITERATIONS  TIME   REASON
fix-a   error   1           12m5s  d
fix-b   done    4           12m5s  -
"
    );
    assert!(text.lines().all(|line| line.width() < 80));
}

#[test]
fn an_outcome_says_what_became_of_the_branch() {
    for (outcome, built) in [
        (Outcome::Complete, Built::Done),
        (Outcome::DonePattern, Built::Done),
        (Outcome::Idle, Built::Unfinished),
        (Outcome::MaxIterations, Built::Unfinished),
        (Outcome::Cancelled, Built::Unfinished),
        (Outcome::Interrupted, Built::Unfinished),
        (Outcome::LastFailed, Built::Failed),
        (Outcome::RecordFailed, Built::Failed),
    ] {
        assert_eq!(ended("b", outcome, &Tally::default()).built, built, "{outcome:?}");
    }
}

#[test]
fn the_line_for_programs_says_the_same() {
    let (identity, rows) = (identity(), rows());
    let line = json(&identity, 4, &rows);
    let read = EventLine::read(&line).unwrap();
    assert_eq!(read.write().unwrap(), line);
    let Fact::BuildEnded { branches, exit_code: 4 } = read.fact else { panic!("{line}") };
    let results: Vec<&Word<BranchResult>> = branches.iter().map(|branch| &branch.result).collect();
    let expected = [
        BranchResult::Done,
        BranchResult::Unfinished,
        BranchResult::Failed,
        BranchResult::Waiting,
        BranchResult::NotStarted,
    ];
    assert_eq!(results, expected.map(Word::Known).iter().collect::<Vec<_>>());
    assert_eq!(
        (branches[3].waiting_for.as_deref(), branches[0].waiting_for.as_deref()),
        (Some("日本"), None)
    );
    assert_eq!((branches[0].iterations, branches[4].iterations), (Some(12), None));
    assert_eq!(branches[1].notes, rows[1].notes);
}
