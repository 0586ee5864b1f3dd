//! Reports that tests make, and the renders of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anstream::adapter::strip_str;
use chrono::{DateTime, FixedOffset, TimeDelta};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::history::{History, HistoryRun, table};
use super::markdown::markdown;
use super::next::{Known, advise};
use super::*;
use crate::engine::budget::{Budget, Spent};
use crate::engine::tally::Tally;
use crate::record::report::{AttemptReport, IterationReport, VERSION};
use crate::view::next_step::Merges;

/// A project without a remote, whose plan has no other branches than the report.
const KNOWN: Known<'_> = Known { merges: MERGES, has_whole_plan: true, spent: &|_| None };
const MERGES: Merges =
    Merges { runs: PathBuf::new(), opened_by: None, unmerged: None, published: BTreeSet::new() };

/// So many seconds after midnight of a certain day.
pub(super) fn at(seconds: i64) -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-01-31T00:00:00+00:00").unwrap() + TimeDelta::seconds(seconds)
}

pub(super) fn attempt(from: i64, duration_s: f64, status: &str) -> AttemptReport {
    AttemptReport {
        retry: 0,
        started_at: at(from),
        status: Some(status.to_owned()),
        failure: None,
        duration_s: Some(duration_s),
        cost_usd: None,
        input_tokens: None,
        output_tokens: None,
        tool_calls: 0,
        head_before: None,
        head_after: None,
        said: None,
    }
}

pub(super) fn iteration(number: u64, attempts: Vec<AttemptReport>) -> IterationReport {
    IterationReport { number, task: None, attempts, validation: None }
}

/// A loop that is done and did nothing else.
pub(super) fn loop_named(name: &str) -> LoopReport {
    LoopReport {
        run: "r".to_owned(),
        mode: "build".to_owned(),
        agent: "script".to_owned(),
        end: "done".to_owned(),
        exit_reason: Some("complete".to_owned()),
        exit_code: Some(0),
        started_at: Some(at(0)),
        ended_at: Some(at(0)),
        ..LoopReport::named(name)
    }
}

pub(super) fn report_of(loops: Vec<LoopReport>) -> RunReport {
    RunReport {
        landings: crate::record::report::Landings::default(),
        v: VERSION,
        run: "20260131T000000000000000-1".to_owned(),
        verb: Some("build".to_owned()),
        argv: Vec::new(),
        started_at: Some(at(0)),
        ended_at: Some(at(3_600)),
        is_running: false,
        next: None,
        loops,
        folder: PathBuf::new(),
    }
}

/// `schemas/NAME.schema.json` is what the types say.
fn holds<T: JsonSchema>(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/{name}.schema.json"));
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.into_root_schema_for::<T>().to_value();
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, serde_json::to_string_pretty(&schema).unwrap() + "\n").unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        serde_json::from_str(&committed).is_ok_and(|committed: Value| committed == schema),
        "schemas/{name}.schema.json is not what the types say; run `UPDATE=1 cargo test --lib {name}_schema`"
    );
}

#[test]
fn report_schema_is_what_the_types_say() {
    holds::<RunReport>("report");
}

#[test]
fn history_schema_is_what_the_types_say() {
    holds::<History>("history");
}

#[test]
fn how_much_has_landed_and_what_that_took() {
    let mut report = report_of(vec![loop_named("tasks/1")]);
    assert_eq!(landings(&report), None);
    let what = serde_json::json!({"landed": 7, "returned": 1, "gates": 3, "gate_s": 360.0});
    report.landings = serde_json::from_value(what).unwrap();
    let line = "7 landed · 1 returned (12%) · 3 gate runs (0.38 for each) · gate 6m (10%)";
    assert_eq!(landings(&report).as_deref(), Some(line));
    assert!(markdown(&report).contains(line));
}

/// A night of three branches.
fn night() -> RunReport {
    let work = |commits| Work {
        commits: Some(commits),
        files: Some(1),
        insertions: Some(412),
        deletions: Some(18),
        from: None,
        to: "b".to_owned(),
    };
    let mut done = loop_named("feature/export");
    done.work = Some(work(6));
    done.duration_s = 3_720.0;
    done.cost_usd = Some(4.5);
    done.tasks = Some(TaskCounts { done: 3, failed: 0, total: 3 });
    done.iterations = 3;
    let mut failed = loop_named("feature/login");
    failed.end = "failed".to_owned();
    failed.reason = Some("API error\n\x1b[31m529\x1b[0m | `overloaded`".to_owned());
    failed.duration_s = 60.0;
    failed.notes = vec!["not pushed".to_owned()];
    let mut queued = loop_named("feature/search");
    queued.end = "queued".to_owned();
    queued.reason = Some("waits for feature/login".to_owned());
    let mut report = report_of(vec![done, failed, queued]);
    report.verb = Some("loop build".to_owned());
    report
}

fn text_of(report: &RunReport, width: Option<usize>) -> String {
    strip_str(&(text::head(report) + &text::body(report, width))).collect()
}

#[test]
fn a_line_for_each_loop_a_total_and_what_to_type() {
    let mut report = night();
    advise(
        &mut report,
        &Known { merges: Merges { opened_by: Some("gh pr create --head"), ..MERGES }, ..KNOWN },
    );
    let text = text_of(&report, None);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "✓ feature/export  done    3/3  +412 −18  6 commits  1h 2m  $4.50",
            "    → gh pr create --head feature/export",
            "✗ feature/login   failed                            1m",
            "    API error 529 | `overloaded`",
            "    → ralph logs feature/login --agent, then ralph loop build feature/login",
            "· feature/search  queued",
            "    waits for feature/login",
            "    → ralph loop build feature/search",
            "feature/login: not pushed",
            "3 loops: 1 done, 1 failed, 1 queued · +412 −18 · 6 commits · 1h 0m · $4.50",
            "Next: gh pr create --head feature/export",
        ]
    );
    advise(&mut report, &KNOWN);
    assert_eq!(report.loops[0].next.as_deref(), Some("git merge feature/export"));
    for (unmerged, next) in [("feature/export", Some("git merge feature/export")), ("feature/login", None)] {
        let unmerged = Some([unmerged.to_owned()].into());
        advise(&mut report, &Known { merges: Merges { unmerged, ..MERGES }, ..KNOWN });
        let export = report.loops.iter().find(|one| one.name == "feature/export").unwrap();
        assert_eq!(export.next.as_deref(), next);
    }
}

#[test]
fn what_is_not_the_newest_any_more_is_named_by_its_run_and_a_budget_is_raised() {
    let mut report = report_of(vec![loop_named("a b"), loop_named("two")]);
    let run = report.run.clone();
    report.verb = Some("build".to_owned());
    report.loops[0].end = "done".to_owned();
    report.loops[0].work = Some(Work { to: "c".to_owned(), ..Work::default() });
    report.loops[1].end = "failed".to_owned();
    advise(&mut report, &KNOWN);
    assert_eq!(report.loops[0].next, Some(format!("ralph diff {run}")));
    assert_eq!(report.loops[1].next, Some(format!("ralph logs two --agent --run {run}")));

    let budget = Budget { max_cost_usd: Some(4.5), ..Budget::default() };
    let spent = Tally { spent: Spent { cost_usd: Some(4.5), ..Spent::default() }, ..Tally::default() };
    let spent = |one: &LoopReport| (one.name == "two").then(|| (spent.clone(), budget));
    report.verb = Some("loop build".to_owned());
    report.loops[1].end = "budget".to_owned();
    report.loops[1].exit_reason = Some("budget".to_owned());
    advise(&mut report, &Known { spent: &spent, ..KNOWN });
    assert_eq!(report.loops[1].next.as_deref(), Some("ralph loop build two --max-cost 9"));
    assert_eq!(report.next.as_deref(), Some("git merge 'a b'"));
    report.loops.remove(0);
    advise(&mut report, &Known { spent: &spent, ..KNOWN });
    assert_eq!(report.next.as_deref(), Some("ralph loop build --max-cost 9"));
    advise(&mut report, &Known { has_whole_plan: false, spent: &spent, ..KNOWN });
    assert_eq!(
        report.next.as_deref(),
        Some("ralph loop build two --max-cost 9"),
        "no other branch of the plan"
    );
}

#[test]
fn a_narrow_terminal_gets_what_tells_most() {
    let text: String = strip_str(&text::body(&night(), Some(40))).collect();
    let widest = text.lines().map(unicode_width::UnicodeWidthStr::width).max();
    assert!(widest.is_some_and(|widest| widest <= 40), "{text}");
    assert!(text.contains("feature/export") && text.contains("failed"), "{text}");
    let long = report_of(vec![loop_named(&"n".repeat(5_000))]);
    let text: String = strip_str(&text::body(&long, Some(60))).collect();
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn tasks_stand_for_their_loop() {
    let mut one = loop_named("tasks");
    one.end = "failed".to_owned();
    let task = |id: &str, outcome: Option<&str>, reason: Option<&str>| TaskReport {
        id: id.to_owned(),
        title: format!("Title of {id}"),
        outcome: outcome.map(str::to_owned),
        reason: reason.map(str::to_owned),
        proof: None,
        iterations: 1,
        duration_s: 42.0,
        cost_usd: None,
        work: None,
        next: None,
    };
    one.task_list = vec![
        task("t-1", Some("done"), Some("not told")),
        task("t-2", Some("failed"), Some("the tests fail")),
        task("t-3", None, None),
    ];
    let mut report = report_of(vec![one]);
    advise(
        &mut report,
        &Known {
            merges: Merges { opened_by: Some("gh pr create --head"), ..MERGES },
            spent: &|_| Some(<(Tally, Budget)>::default()),
            ..KNOWN
        },
    );
    let text = text_of(&report, None);
    assert!(text.contains("✓ t-1  done    42s\n    Title of t-1\n✗ t-2"), "{text}");
    assert!(text.contains("    the tests fail\n    → ralph task log t-2\n"), "{text}");
    assert!(!text.contains("not told"), "{text}");
    assert!(
        text.contains("3 tasks: 1 done, 2 failed"),
        "what was at hand stands where its loop does: {text}"
    );
    assert!(text.ends_with("Next: ralph logs tasks --agent\n"), "{text}");
}

#[test]
fn words_of_others_are_code_in_markdown() {
    let mut report = night();
    report.loops[0].pull_request = Some("https://example.com/pull/1".to_owned());
    report.loops[1].pull_request = Some("https://example.com/<script>".to_owned());
    advise(
        &mut report,
        &Known { merges: Merges { opened_by: Some("gh pr create --head"), ..MERGES }, ..KNOWN },
    );
    let text = markdown(&report);
    assert!(text.starts_with("## ralph loop build\n\n2026-01-3"), "{text}");
    assert!(text.contains("| `feature/export` | **done** | 3/3 | +412 −18 | 6 | 1h 2m | $4.50 |"), "{text}");
    assert!(text.contains("`` API error 529 | `overloaded` ``"), "{text}");
    assert!(
        text.contains("; https://example.com/pull/1") || text.contains(": https://example.com/pull/1"),
        "{text}"
    );
    assert!(text.contains("`https://example.com/<script>`"), "{text}");
    assert!(text.ends_with("\nNext: `ralph logs feature/login --agent`\n"), "{text}");
}

#[test]
fn a_history_tells_runs_apart_in_as_little_as_is_needed() {
    let mut reports = vec![night(), report_of(vec![loop_named("build")]), report_of(Vec::new())];
    let ids = ["20260131T000000000000002-9", "20260131T000000000000001-9", "20260130T000000000000001-9"];
    for (report, id) in reports.iter_mut().zip(ids) {
        report.run = id.to_owned();
    }
    let known = ids.map(str::to_owned);
    assert!(
        table(&reports[..1], &known, None).contains(ids[0].split_once('-').unwrap().0),
        "also where others are not shown"
    );
    let text: String = strip_str(&table(&reports, &known, None)).collect();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("RUN  ")
            && lines[0].trim_end().ends_with("ENDED                       ITERATIONS  COMMITS  COST"),
        "{text}"
    );
    assert!(lines[1].starts_with("20260131T000000000000002  "), "{text}");
    assert!(
        lines[1].ends_with("loop build  1 done, 1 failed, 1 queued  3           6        $4.50"),
        "{text}"
    );
    assert!(lines[3].starts_with("20260130T000000  ") && lines[3].contains("  killed  "), "{text}");
    let narrow: String = strip_str(&table(&reports, &known, Some(50))).collect();
    assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
    assert_eq!(table(&[], &known, None), "");
}

#[test]
fn a_history_sums_up_each_run() {
    let run = serde_json::to_value(HistoryRun::from(&night())).unwrap();
    assert_eq!((&run["commits"], &run["iterations"], &run["cost_usd"]), (&6.into(), &3.into(), &4.5.into()));
    assert_eq!(
        run["loops"][1],
        serde_json::json!({ "name": "feature/login", "end": "failed", "proof": null })
    );
    let empty = serde_json::to_value(HistoryRun::from(&report_of(Vec::new()))).unwrap();
    assert_eq!((&empty["cost_usd"], &empty["commits"]), (&Value::Null, &0.into()));
}
