//! `ralph report` and `ralph history` on runs of the real program.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use ralph::record::report::RunReport;
use serde_json::{Value, json};

use crate::run_folders::{Log, start};
use crate::scratch::{Run, Scratch, Started, claude_says, executable, wait_for};

/// An agent that commits a file, and says so.
fn committing() -> String {
    format!(
        "echo line >> work.txt; git add work.txt; git commit --quiet -m 'A line of work'\n{}",
        claude_says("One line of work is committed. <promise>COMPLETE</promise>")
    )
}

/// A project with one run that is done.
fn with_a_run() -> Scratch {
    let scratch = Scratch::new();
    scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "begin"]);
    scratch.agent("claude", &committing());
    let run = scratch.run("prompt p.md 3 --validate true");
    assert_eq!(run.code, Some(0), "{run:?}");
    scratch
}

fn ok(scratch: &Scratch, args: &str) -> String {
    let run = scratch.run(args);
    assert_eq!(run.code, Some(0), "{args}: {run:?}");
    run.stdout
}

fn json_of(scratch: &Scratch, args: &str) -> Value {
    serde_json::from_str(&ok(scratch, args)).unwrap()
}

/// The folders of runs, oldest first.
fn runs(scratch: &Scratch) -> Vec<PathBuf> {
    let entries = fs::read_dir(scratch.path(".ralph/runs")).unwrap().map(|entry| entry.unwrap().path());
    let mut runs: Vec<PathBuf> = entries.filter(|path| path.join("run.json").exists()).collect();
    runs.sort();
    runs
}

fn id(run: &std::path::Path) -> &str {
    run.file_name().unwrap().to_str().unwrap()
}

fn refused(run: &Run, words: &str) {
    assert_eq!((run.code, &*run.stdout), (Some(1), ""), "{run:?}");
    assert!(run.stderr.starts_with("error: ") && run.stderr.contains(words), "{words}: {}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn a_run_is_told_in_all_forms() {
    let scratch = with_a_run();
    let text = ok(&scratch, "report");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("ralph prompt, 20"), "{text}");
    assert!(lines[1].starts_with("✓ prompt  done  +1 −0  1 commit  "), "{text}");
    assert!(lines[1].ends_with("  $0.01"), "{text}");

    let markdown = ok(&scratch, "report --md");
    assert!(markdown.starts_with("## ralph prompt\n"), "{markdown}");
    assert!(markdown.contains("| `prompt` | **done** |"), "{markdown}");

    let report = json_of(&scratch, "report --json");
    let one = &report["loops"][0];
    assert_eq!(
        (&one["end"], &one["iterations"], &one["work"]["insertions"]),
        (&json!("done"), &json!(1), &json!(1))
    );
    let attempt = &one["iteration_list"][0]["attempts"][0];
    assert_eq!(attempt["said"], "One line of work is committed. <promise>COMPLETE</promise>");
    assert_eq!(one["iteration_list"][0]["validation"]["ok"], true);
    let commit = &one["commit_list"][0];
    assert_eq!((&commit["subject"], &commit["insertions"]), (&json!("A line of work"), &json!(1)));
    assert_eq!(commit["id"], scratch.git(&["rev-parse", "HEAD"]).trim());

    let page = ok(&scratch, "report --html -");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"), "{page}");
    for piece in
        ["A line of work", "One line of work is committed. &lt;promise&gt;", "details class=\"transcript\""]
    {
        assert!(page.contains(piece), "{piece}: {page}");
    }
}

/// The output matches the types from which the schemas are made.
#[test]
fn what_programs_get_is_what_the_schemas_say() {
    let scratch = with_a_run();
    let printed = json_of(&scratch, "report --json");
    let read: RunReport = serde_json::from_value(printed.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), printed);

    let history = json_of(&scratch, "history --json");
    let schema: Value = serde_json::from_str(include_str!("../../schemas/history.schema.json")).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<String>>();
    assert_eq!(keys(&history[0]), keys(&schema["$defs"]["HistoryRun"]["properties"]));
    assert_eq!(keys(&history[0]["loops"][0]), keys(&schema["$defs"]["HistoryLoop"]["properties"]));
    let schema: Value = serde_json::from_str(include_str!("../../schemas/report.schema.json")).unwrap();
    assert_eq!(keys(&printed), keys(&schema["properties"]));
    assert_eq!(keys(&printed["loops"][0]), keys(&schema["$defs"]["LoopReport"]["properties"]));
    assert_eq!(schema["$id"], "ralph-report-1");
}

#[test]
fn a_run_is_meant_by_its_id_or_by_a_loop() {
    let scratch = with_a_run();
    assert_eq!(scratch.run("prompt p.md 1 --name other").code, Some(0));
    let runs = runs(&scratch);
    let [first, second] = [id(&runs[0]), id(&runs[1])];
    assert_eq!(json_of(&scratch, "report --json")["run"], second);
    assert_eq!(json_of(&scratch, &format!("report {first} --json"))["run"], first);
    assert_eq!(json_of(&scratch, &format!("report {} --json", &first[..24]))["run"], first);
    assert_eq!(json_of(&scratch, "report prompt --json")["run"], first);
    assert_eq!(json_of(&scratch, "report other --json")["run"], second);

    refused(&scratch.run("report nobody"), "no run and no loop is called 'nobody'");
    refused(&scratch.run("report 20010101T000000"), "'ralph history' lists");
    refused(&scratch.run(&format!("report {}", &first[..8])), "give more of the id");

    let history = ok(&scratch, "history");
    let lines: Vec<&str> = history.lines().collect();
    assert_eq!(lines.len(), 3, "{history}");
    assert!(
        lines[0].starts_with("RUN ") && second.starts_with(lines[1].split(' ').next().unwrap()),
        "{history}"
    );
    assert!(lines[1].contains("  prompt   done   1           1"), "{history}");
    assert_eq!(ok(&scratch, "history -n 1").lines().count(), 2);
    assert_eq!(json_of(&scratch, "history --json").as_array().unwrap().len(), 2);
    refused(&scratch.run("history -n 0"), "--lines");
}

#[test]
fn without_a_run_it_is_said() {
    let scratch = Scratch::new();
    refused(&scratch.run("report"), "a loop has to be started first");
    refused(&scratch.run("report --html x.html"), "a loop has to be started first");
    assert!(!scratch.path("x.html").exists());
    let history = scratch.run("history");
    assert!(history.code == Some(0) && history.stdout.is_empty(), "{history:?}");
    assert_eq!(json_of(&scratch, "history --json"), json!([]));
}

#[test]
fn a_run_that_works_or_was_killed_is_told_as_far_as_it_came() {
    let scratch = Scratch::new();
    scratch.agent("claude", "cat > /dev/null; say 'I have begun.'; touch begun; exec sleep 600");
    let started = Started::new(&scratch, "prompt p.md 3");
    wait_for("the agent", || scratch.path("begun").exists().then_some(()));
    let running = json_of(&scratch, "report --json");
    assert_eq!((&running["is_running"], &running["loops"][0]["end"]), (&json!(true), &json!("running")));
    assert!(ok(&scratch, "report").contains("▶ prompt  running"));
    assert!(ok(&scratch, "report --html -").contains("running"));
    // Dropping it kills it.
    drop(started);
    let killed = json_of(&scratch, "report --json");
    assert_eq!((&killed["is_running"], &killed["loops"][0]["end"]), (&json!(false), &json!("killed")));
    assert_eq!(killed["loops"][0]["iteration_list"][0]["attempts"][0]["status"], Value::Null);
    assert!(ok(&scratch, "report").contains("✗ prompt  killed"));
    assert!(ok(&scratch, "history").contains("  killed  "));
}

#[test]
fn what_is_half_deleted_or_foreign_is_told_as_far_as_it_is_there() {
    let scratch = with_a_run();
    let run = runs(&scratch).remove(0);
    let told = ok(&scratch, "report");
    // The summary is kept, but not needed.
    fs::write(run.join("summary.json"), "{").unwrap();
    assert_eq!(ok(&scratch, "report"), told);
    fs::remove_file(run.join("summary.json")).unwrap();
    assert_eq!(ok(&scratch, "report"), told);
    // Commits that are gone are not counted.
    let log = fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
    let text = fs::read_to_string(&log).unwrap();
    let head = scratch.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let (first, rest) = text.split_once('\n').unwrap();
    let newer = first.replace("\"v\":1", "\"v\":7");
    let odd =
        format!("{newer}\n[]\n\u{0}\n{first}\n{}{{\"agent\":\"cla", rest.replace(&head, &"0".repeat(40)));
    fs::write(&log, odd).unwrap();
    let report = json_of(&scratch, "report --json");
    assert_eq!(report["loops"][0]["unreadable_lines"], 4);
    assert_eq!(report["loops"][0].get("commit_list"), None);
    assert!(ok(&scratch, "report --html -").contains("4 lines of its events logs could not be read"));
    for gone in ["run.json", "end.json"] {
        fs::remove_file(run.join(gone)).unwrap();
        assert!(ok(&scratch, "report").contains("prompt  done"), "{gone}");
    }
    fs::remove_file(&log).unwrap();
    assert_eq!(json_of(&scratch, "report --json")["loops"], json!([]));
    assert!(ok(&scratch, "report --html -").contains("No loop of it is left."));
}

#[test]
fn a_run_without_its_events_is_told_by_its_start_and_its_end() {
    let scratch = with_a_run();
    let run = runs(&scratch).remove(0);
    // A kept report would be shown instead.
    let told = || {
        let _ = fs::remove_file(run.join("summary.json"));
        ok(&scratch, "report")
    };
    let before = told();
    let log = fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
    fs::remove_file(&log).unwrap();
    assert!(before.contains("prompt  done") && told().contains("prompt  done"), "{before}{}", told());
    assert!(told().contains("1 iteration"), "{}", told());
    assert!(ok(&scratch, "history").contains("  done "), "{}", ok(&scratch, "history"));
    // What is no log in its place is told.
    assert!(scratch.command("mkfifo").arg(&log).status().unwrap().success());
    assert!(told().contains("prompt  done"), "{}", told());
    fs::remove_file(run.join("end.json")).unwrap();
    assert!(told().contains("prompt  killed"), "{}", told());
    assert!(told().contains("its events log cannot be read: it is a FIFO"), "{}", told());
    fs::remove_file(&log).unwrap();
    assert!(told().contains("prompt  killed"), "{}", told());
}

#[test]
fn no_folder_of_a_repository_stands_for_a_loop_outside_of_it() {
    let scratch = with_a_run();
    let outside = scratch.outside().join("outside");
    fs::create_dir(&outside).unwrap();
    let encoded = |path: &str| path.replace('/', "%2F");
    for name in [encoded(outside.to_str().unwrap()), encoded("a/../../../outside"), "..".replace('.', "%2E")]
    {
        let records = scratch.path(&format!(".ralph/runs/branches/{name}"));
        fs::create_dir_all(&records).unwrap();
        fs::copy(scratch.path(".ralph/state.toml"), records.join("state.toml")).unwrap();
    }
    assert_eq!(ok(&scratch, "ls").lines().count(), 2, "{}", ok(&scratch, "ls"));
    ok(&scratch, "clean --all");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_report_outlives_its_loop() {
    let scratch = with_a_run();
    let before = json_of(&scratch, "report --json");
    assert_eq!(scratch.run("clean").code, Some(0));
    let after = json_of(&scratch, "report prompt --json");
    assert_eq!(after["loops"][0]["work"], before["loops"][0]["work"]);
    assert!(ok(&scratch, "history").contains("  prompt   done"));
}

#[test]
fn a_page_is_written_whole_or_not_at_all() {
    let scratch = with_a_run();
    scratch.write("there.html", "mine");
    assert!(ok(&scratch, "report --html there.html").ends_with("/there.html\n"));
    assert!(scratch.read("there.html").starts_with("<!DOCTYPE html>"));
    let names = || fs::read_dir(scratch.root()).unwrap().count();
    let before = names();
    fs::create_dir(scratch.path("folder")).unwrap();
    refused(&scratch.run("report --html folder"), "it is a folder, not a file");
    let nowhere = scratch.run("report --html nowhere/x.html");
    refused(&nowhere, "nowhere/x.html: No such file or directory");
    assert!(
        nowhere.stderr.ends_with(": create its folder\n") && !nowhere.stderr.contains(".tmp"),
        "{nowhere:?}"
    );
    let pipe = scratch.path("pipe");
    assert!(scratch.command("mkfifo").arg(&pipe).status().unwrap().success());
    refused(&scratch.run("report --html pipe"), "pipe");
    assert_eq!(names(), before + 2, "nothing else is left");
    refused(&scratch.run("report --open"), "--html <FILE>");
    refused(&scratch.run("report --html x --md"), "cannot be used with");
    refused(&scratch.run("report --html - --open"), "--open");
}

#[test]
fn a_page_is_opened_in_the_browser_of_the_user() {
    let scratch = with_a_run();
    let browser = scratch.outside().join("bin/my-browser");
    executable(&browser, "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$HOME/opened\"\n");
    let with = |browser: &str| {
        let _ = fs::remove_file(scratch.outside().join("home/opened"));
        let run = Scratch::finish(scratch.ralph("report --html p.html --open").env("BROWSER", browser));
        assert_eq!(run.code, Some(0), "{run:?}");
        (fs::read_to_string(scratch.outside().join("home/opened")).unwrap_or_default(), run.stderr)
    };
    let page = scratch.path("p.html").canonicalize().unwrap_or_else(|_| scratch.root().join("p.html"));
    assert_eq!(
        with("no-such-program:my-browser --new"),
        (format!("--new\n{}\n", page.display()), String::new())
    );
    assert_eq!(with("my-browser %s --x").0, format!("{}\n--x\n", page.display()));

    // One that fails is none; nor is there a desktop.
    for opener in ["xdg-open", "gio", "wslview"] {
        executable(&scratch.outside().join("bin").join(opener), "#!/bin/sh\nexit 3\n");
    }
    let (opened, said) = with("false");
    assert_eq!((&*opened, said.starts_with("warning: no browser could be started")), ("", true), "{said}");
    assert!(scratch.read("p.html").starts_with("<!DOCTYPE html>"));
}

/// Ten thousand iterations make a page that a browser can show.
#[test]
fn a_long_run_is_a_short_page() {
    const RUN: &str = "20260130T220000000000000-1";
    let scratch = Scratch::new();
    let mut log = Log::new("long");
    for number in 0..10_000 {
        log.begin(0, None);
        log.event("text", &json!({ "text": format!("Text {number} {}", "x".repeat(2_000)) }));
        log.event("tool", &json!({ "input": "ls", "name": "bash" }));
        log.end(30, if number % 97 == 0 { "agent-failure" } else { "success" }, None, None);
    }
    log.over("limit", 0, None);
    log.write(&scratch, RUN, "");
    start(&scratch, RUN, "build");
    let page = ok(&scratch, "report --html -");
    assert!(page.len() < 4 << 20, "{}", page.len());
    assert!(
        page.contains("<h4>Iteration 10000</h4>") && page.contains("Left out here: iterations 1 to "),
        "{page:.3000}"
    );
    assert!(page.contains("ralph logs long --agent --run 20260130T220000000000000-1</code>"));
    // A line that the page names does what it says.
    let shown = ok(&scratch, &format!("logs long --agent --run {RUN} --attempt 5000"));
    assert!(shown.contains("Text 4999 "), "{shown:.300}");
}
