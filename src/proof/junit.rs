//! Reports of tests in the XML of `JUnit`, which the validation command writes in the proof tree: they count where what it prints does
//! not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::counts::{COUNTED, Counts};
use super::protected::is_like;
use crate::engine::validation::Validation;
use crate::files::theirs;
use crate::git;
use crate::text::count;
use crate::text::line::one_line_within;
use crate::text::list::some_of;

/// The longest report, in bytes.
const LONGEST: u64 = 16 << 20;
/// The most reports that are read, and the most entries of folders that are looked at for them.
const MOST: usize = 4096;
const ENTRIES: usize = 200_000;
/// How deep elements lie in each other at most.
const DEEPEST: usize = 64;
/// How many failed tests are named, in how many characters each, and how many reports that are none.
const NAMED: usize = 10;
const NAME: usize = 120;
const WRONG: usize = 3;

/// What reports count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) counts: Counts,
    /// The names of the tests that failed.
    pub(super) failed: Vec<String>,
}

/// Reads the reports that were written in a tree since then, and removes them, so that none counts twice. What was laid out with
/// the tree is older than `since`. Returns lines for the output of the command. `pattern` is a path from the tree's top; `*` stands
/// for any letters but `/`, `**` for any folders.
pub(super) fn lines(tree: &Path, pattern: &str, since: SystemTime) -> String {
    let (mut all, mut wrong, mut number) = (Report::default(), Vec::new(), 0);
    for path in matching(tree, pattern) {
        if git::touched(&path).is_none_or(|touched| touched < since) {
            continue;
        }
        let text = theirs::read(&path, LONGEST).map_err(|error| error.to_string());
        match text.and_then(|text| read(&String::from_utf8_lossy(&text))) {
            Ok(report) => {
                all.counts.add(report.counts);
                all.failed.extend(report.failed);
                number += 1;
            }
            Err(error) => {
                let name = path.strip_prefix(tree).unwrap_or(&path).display().to_string();
                wrong.push(format!("{} ({error})", one_line_within(&name, NAME)));
            }
        }
        // One that stays counts for nothing later: it is older then.
        let _ = fs::remove_file(&path);
    }
    let mut lines = Vec::new();
    if number > 0 {
        let Counts { ran, failed, skipped } = all.counts;
        let names = some_of(all.failed, NAMED);
        let names = if names.is_empty() { names } else { format!("; failed: {names}") };
        let (tests, reports) = (count::of(ran, "test"), count::of(number, "report"));
        lines
            .push(format!("{COUNTED}{tests} ran, {failed} failed, {skipped} skipped, in {reports}{names}\n"));
    } else if wrong.is_empty() {
        lines.push(format!("(no report that proof.junit names, {pattern}, was written by this run)\n"));
    }
    if !wrong.is_empty() {
        lines.push(format!(
            "(not counted, because they are no reports of JUnit: {})\n",
            some_of(wrong, WRONG)
        ));
    }
    lines.concat()
}

/// The files that match a pattern.
fn matching(tree: &Path, pattern: &str) -> BTreeSet<PathBuf> {
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let (mut found, mut left) = (BTreeSet::new(), ENTRIES);
    if !parts.contains(&"..") {
        find(tree, &parts, &mut found, &mut left);
    }
    found
}

fn find(folder: &Path, parts: &[&str], found: &mut BTreeSet<PathBuf>, left: &mut usize) {
    let Some((part, rest)) = parts.split_first() else { return };
    let is_any = *part == "**";
    if is_any {
        find(folder, if rest.is_empty() { &["*"] } else { rest }, found, left);
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if *left == 0 || found.len() == MOST {
            return;
        }
        *left -= 1;
        let name = entry.file_name();
        let is_meant = is_any || is_like(part, &name.to_string_lossy());
        // A link may lead out of the tree.
        let Some(kind) = entry.file_type().ok().filter(|_| is_meant && name != ".git") else { continue };
        if kind.is_dir() && is_any {
            find(&entry.path(), parts, found, left);
        } else if kind.is_dir() {
            find(&entry.path(), rest, found, left);
        } else if kind.is_file() && rest.is_empty() && !is_any {
            found.insert(entry.path());
        }
    }
}

/// The result of a command with such lines, before that about how it has ended.
pub(super) fn with_lines(found: Validation, lines: &str) -> Validation {
    let at = if found.ok { None } else { found.output.trim_end().rfind('\n').map(|at| at + 1) };
    let (printed, end) = found.output.split_at(at.unwrap_or(found.output.len()));
    let gap = if printed.is_empty() || printed.ends_with('\n') { "" } else { "\n" };
    Validation { output: format!("{printed}{gap}{lines}{end}"), ..found }
}

/// Whether a text is a report, for tests of what others have written.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn reads(text: &str) -> bool {
    read(text).is_ok()
}

/// What became of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Passed,
    Failed,
    Skipped,
}

/// What a report says.
///
/// # Errors
/// Why it is none, in words.
pub(super) fn read(text: &str) -> Result<Report, String> {
    let mut report = Report::default();
    let mut open: Vec<&str> = Vec::new();
    let (mut case, mut has_root, mut rest) = (None, false, text);
    while let Some((_, tag)) = rest.split_once('<') {
        if let Some(after) = tag.strip_prefix("!--") {
            rest = behind(after, "-->")?;
        } else if let Some(after) = tag.strip_prefix("![CDATA[") {
            rest = behind(after, "]]>")?;
        } else if let Some(after) = tag.strip_prefix('?') {
            rest = behind(after, "?>")?;
        } else if tag.starts_with('!') {
            return Err("it declares a type".to_owned());
        } else if let Some(after) = tag.strip_prefix('/') {
            let (name, after) = after.split_once('>').ok_or(CUT)?;
            let name = name.trim_end();
            if open.pop() != Some(name) {
                return Err(format!("'</{}>' closes nothing", one_line_within(name, NAME)));
            }
            ended(name, &mut case, &mut report);
            rest = after;
        } else {
            let Tag { name, attributes, is_empty, after } = Tag::read(tag)?;
            if open.is_empty() && (has_root || !["testsuite", "testsuites"].contains(&name)) {
                return Err(format!("<{}> at its top", one_line_within(name, NAME)));
            }
            has_root = true;
            begun(name, &attributes, &mut case);
            if is_empty {
                ended(name, &mut case, &mut report);
            } else if open.len() == DEEPEST {
                return Err("it is too deep".to_owned());
            } else {
                open.push(name);
            }
            rest = after;
        }
    }
    if has_root && open.is_empty() { Ok(report) } else { Err(CUT.to_owned()) }
}

/// Why a text is no report that has no end.
const CUT: &str = "it has no end";

type Test = Option<(String, Fate)>;

fn begun(name: &str, attributes: &[(&str, &str)], test: &mut Test) {
    let value = |wanted| attributes.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    match (name, test) {
        ("testcase", test) => {
            let class = value("classname").map(|class| format!("{class}.")).unwrap_or_default();
            let name = class + value("name").unwrap_or_default();
            let is_left_out = matches!(value("status"), Some("notrun" | "disabled" | "skipped"));
            *test = Some((name, if is_left_out { Fate::Skipped } else { Fate::Passed }));
        }
        ("failure" | "error", Some((_, fate))) => *fate = Fate::Failed,
        ("skipped" | "disabled", Some((_, fate))) if *fate == Fate::Passed => *fate = Fate::Skipped,
        _ => {}
    }
}

fn ended(name: &str, test: &mut Test, report: &mut Report) {
    if name != "testcase" {
        return;
    }
    let Some((name, fate)) = test.take() else { return };
    let one = |is: Fate| u64::from(fate == is);
    let failed = one(Fate::Failed);
    report.counts.add(Counts { ran: one(Fate::Passed) + failed, failed, skipped: one(Fate::Skipped) });
    if fate == Fate::Failed {
        report.failed.push(one_line_within(&plain(&name), NAME));
    }
}

/// A tag that opens an element, and what follows it.
struct Tag<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
    is_empty: bool,
    after: &'a str,
}

impl<'a> Tag<'a> {
    /// Reads it from behind its `<`.
    fn read(text: &'a str) -> Result<Self, String> {
        let is_end = |char: char| char.is_whitespace() || "=/>\"'<".contains(char);
        let word = |text: &'a str| text.split_at(text.find(is_end).unwrap_or(text.len()));
        let (name, mut rest) = word(text);
        if name.is_empty() {
            return Err("a tag has no name".to_owned());
        }
        let mut attributes = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix("/>") {
                return Ok(Self { name, attributes, is_empty: true, after });
            }
            if let Some(after) = rest.strip_prefix('>') {
                return Ok(Self { name, attributes, is_empty: false, after });
            }
            let (key, after) = word(rest);
            let wrong = || format!("<{}> cannot be read", one_line_within(name, NAME));
            let value = after.trim_start().strip_prefix('=').map(str::trim_start).unwrap_or_default();
            let quote = value.chars().next().filter(|char| ['"', '\''].contains(char) && !key.is_empty());
            let (value, after) = quote.and_then(|quote| value[1..].split_once(quote)).ok_or_else(wrong)?;
            attributes.push((key, value));
            rest = after;
        }
    }
}

fn behind<'a>(text: &'a str, end: &str) -> Result<&'a str, String> {
    text.split_once(end).map(|(_, after)| after).ok_or_else(|| CUT.to_owned())
}

/// The text of a value.
fn plain(value: &str) -> String {
    let known = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    known.iter().fold(value.to_owned(), |text, (name, char)| text.replace(name, char))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::clock;

    const REPORT: &str = "<?xml version='1.0'?>\n<!-- <testcase> -->\n<testsuites><testsuite name=\"a\" tests=\"5\">
        <testcase classname=\"a.B\" name=\"c &lt; d\" time=\"0.1\"/>
        <testcase name='e > f' classname=\"a.B\"><failure message=\"no\"><![CDATA[</testcase>]]></failure></testcase>
        <testcase name=\"g\"><error/><skipped/></testcase>
        <testcase name=\"h\"><skipped message=\"later\"/></testcase>
        <testcase name=\"i\" status=\"notrun\"/>
        <system-out>printed</system-out>
        </testsuite></testsuites>\n";

    #[test]
    fn tests_are_counted_and_failed_ones_named() {
        let report = read(REPORT).unwrap();
        assert_eq!(report.counts, Counts { ran: 3, failed: 2, skipped: 2 });
        assert_eq!(report.failed, ["a.B.e > f", "g"]);
        assert_eq!(read("<testsuite/>"), Ok(Report::default()));
    }

    #[test]
    fn what_is_no_report_counts_nothing() {
        let deep = "<testsuite>".repeat(100);
        let cut = &REPORT[..REPORT.len() / 2];
        for text in [
            "",
            "tests",
            "<html></html>",
            "<testsuite>",
            "<testsuite></testcase>",
            "<testsuite a></testsuite>",
            "<testsuite a=\"></testsuite>",
            "<testsuite/><testsuite/>",
            "<!DOCTYPE x [<!ENTITY a 'b'>]><testsuite/>",
            "<",
            "<testsuite><>",
            "<testsuite><!-- ",
            deep.as_str(),
            cut,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_lines_stand_before_how_a_command_has_ended() {
        let found = |ok, output: &str| Validation { ok, output: output.to_owned(), ..Validation::default() };
        for (ok, output, expected) in [
            (true, "", "x\n"),
            (true, "a\n", "a\nx\n"),
            (false, "a\n(exit code 1)", "a\nx\n(exit code 1)"),
            (false, "cannot start", "cannot start\nx\n"),
        ] {
            assert_eq!(with_lines(found(ok, output), "x\n").output, expected);
        }
    }

    #[test]
    fn reports_of_this_run_count_once() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("old/reports/a.xml", "<testsuite><testcase name='old'/></testsuite>");
        let since = clock::after_all_files();
        for name in ["reports/a.xml", "x/y/reports/b.xml", "x/reports/c.txt", "reports/deeper/d.xml"] {
            write(name, REPORT);
        }
        write("x/reports/wrong.xml", "<testsuite>");
        let lines = |pattern: &str, since| lines(dir.path(), pattern, since);
        assert!(lines("reports/*.txt", since).contains("(no report that proof.junit names, reports/*.txt,"));
        assert!(lines("../**", since).contains("no report"));
        let all = lines("**/reports/*.xml", since);
        assert!(
            all.starts_with("JUnit: 6 tests ran, 4 failed, 4 skipped, in 2 reports; failed: a.B.e > f, g, "),
            "{all}"
        );
        assert!(all.contains("x/reports/wrong.xml (it has no end)"), "{all}");
        assert!(lines("**/reports/*.xml", since).contains("no report"), "they are gone");
        assert!(lines("./reports/**", since).starts_with("JUnit: 3 tests ran"));
        assert!(dir.path().join("old/reports/a.xml").exists());
    }
}
