//! The verbs around the loop: init, config, doctor, demo, completions, man, help.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::scratch::{Run, Scratch, claude_says, wait_for};

fn good(scratch: &Scratch, args: &str) -> Run {
    let run = scratch.run(args);
    assert_eq!(run.code, Some(0), "{args}: {run:?}");
    run
}

/// A repository and nothing in it.
fn bare() -> Scratch {
    let scratch = Scratch::new();
    for path in ["specs", ".ralph"] {
        fs::remove_dir_all(scratch.path(path)).unwrap();
    }
    fs::remove_file(scratch.path("p.md")).unwrap();
    scratch
}

#[test]
fn init_sets_a_project_up_so_that_a_loop_runs() {
    let scratch = bare();
    scratch.agent("codex", "exit 0").agent("gemini", "exit 0");
    let run = good(&scratch, "init");
    for text in ["Next:", "ralph plan", "ralph build", "codex", "gemini"] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
    for file in
        [".ralph/config", ".ralph/prompts/plan.md", ".ralph/prompts/build.md", "specs/README.md", "AGENTS.md"]
    {
        assert!(scratch.path(file).is_file(), "{file}");
    }
    assert!(scratch.read(".ralph/config").contains("\nAGENT_TYPE=codex\n"));
    assert!(scratch.read(".git/info/exclude").contains("/.ralph/lock"));
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    let run = scratch.run("plan --agent claude 2");
    assert_eq!(run.code, Some(4), "no plan is written: {run:?}");
    assert!(run.stdout.contains("Exit Reason: not proven") && run.stdout.contains("Total Iterations: 2\n"));
    let told = "there is no plan in ";
    assert!(run.stdout.contains(told), "{run:?}");
    std::fs::create_dir(scratch.path(".ralph/implementation_plan.md")).unwrap();
    let run = scratch.run("plan --agent claude 2");
    assert!(run.code == Some(4) && run.stdout.contains(told), "a folder is no plan: {run:?}");
    std::fs::remove_dir(scratch.path(".ralph/implementation_plan.md")).unwrap();
    let writes = format!(
        "cat > prompt; if grep -q '{told}' prompt; then echo '- [ ] a task' > .ralph/implementation_plan.md; fi\n{}",
        claude_says("<promise>COMPLETE</promise>")
    );
    scratch.agent("claude", &writes);
    let run = good(&scratch, "plan --agent claude");
    assert!(run.stdout.contains("Exit Reason: completion signal detected"), "{run:?}");
    assert!(run.stdout.contains("Total Iterations: 2\n"), "the first one is told in the second: {run:?}");
}

#[test]
fn a_plan_is_proven_by_its_open_tasks_and_not_by_the_tests_of_the_code() {
    let scratch = Scratch::new();
    let says = claude_says("<promise>COMPLETE</promise>");
    scratch.agent("claude", &format!("cat > prompt-$RALPH_ITERATION; {says}"));
    scratch.write(".ralph/implementation_plan.md", "# Plan\n\n- [x] a task\n");
    scratch.write(".ralph/config", "VALIDATION_COMMAND=false\n");
    let run = scratch.run("plan --agent claude 2");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("no task of ") && !run.stdout.contains("the validation failed"), "{run:?}");
    let told = scratch.read("prompt-2");
    assert!(told.contains("It said that all is done, but no task of ") && told.contains("'- [ ]'"), "{told}");
    scratch.agent("claude", &format!("echo '- [ ] another' >> .ralph/implementation_plan.md; {says}"));
    good(&scratch, "plan --agent claude 2");
}

#[test]
fn a_build_is_not_done_while_a_box_of_its_plan_is_open() {
    let scratch = Scratch::new();
    let plan = ".ralph/implementation_plan.md";
    let says = claude_says("<promise>COMPLETE</promise>");
    scratch.write(plan, "# Plan\n\n- [x] one\n- [ ] two\n  1. [ ] three\n```\n- [ ] code\n```\n");
    scratch.agent("claude", &format!("cat > prompt-$RALPH_ITERATION; {says}"));
    let run = scratch.run("build --agent claude 2 --validate true");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(
        run.stdout.contains("Exit Reason: not proven") && run.stderr.contains("2 tasks of the plan are open"),
        "{run:?}"
    );
    let told = scratch.read("prompt-2");
    let open = "It said that all is done, but 2 tasks of the plan are open\n\n- [ ] two\n- [ ] three\n";
    assert!(told.contains(open) && told.contains("<promise>REPLAN</promise>"), "{told}");
    let status = scratch.run("status build").stdout;
    assert_eq!(status.matches("2 tasks of the plan are open").count(), 1, "{status}");
    assert!(status.contains("\nProof: refuted: 2 tasks of the plan are open"), "{status}");
    // What the next run is told as well.
    scratch.agent("claude", &format!("cat > prompt-last; sed -i 's/\\[ \\]/[x]/' {plan}; {says}"));
    let run = good(&scratch, "build --agent claude 2");
    assert!(run.stdout.contains("Total Iterations: 1\n"), "{run:?}");
}

#[test]
fn at_its_limit_with_a_last_iteration_that_failed_a_loop_has_failed() {
    let scratch = Scratch::new();
    scratch.agent("claude", "exit 7");
    for args in ["build 1 --max-retries 0", "prompt p.md 1 --max-retries 0"] {
        let run = scratch.run(&format!("{args} --agent claude --max-errors 9"));
        assert_eq!(run.code, Some(4), "{run:?}");
        assert!(run.stdout.contains("Exit Reason: max iterations reached, the last one failed"), "{run:?}");
    }
}

#[test]
fn a_second_init_keeps_what_is_there() {
    let scratch = bare();
    good(&scratch, "init --agent claude");
    for file in [".ralph/config", ".ralph/prompts/plan.md", "AGENTS.md", "specs/README.md"] {
        scratch.write(file, "MINE=1\n");
    }
    let before = scratch.snapshot();
    let run = good(&scratch, "init --agent codex");
    assert!(run.stdout.contains("kept"), "{run:?}");
    assert!(scratch.snapshot() == before);

    good(&scratch, "init --force --agent codex");
    assert!(scratch.read(".ralph/config").contains("AGENT_TYPE=codex"));
    assert_ne!(scratch.read(".ralph/prompts/plan.md"), "MINE=1\n");
    assert_eq!(scratch.read("AGENTS.md"), "MINE=1\n", "the project's own files are never replaced");
    assert_eq!(scratch.read("specs/README.md"), "MINE=1\n");
}

#[test]
fn init_refuses_what_cannot_work() {
    let scratch = bare();
    let before = scratch.snapshot();
    let run = scratch.run("init --agent nobody");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.starts_with("error: unknown agent type") && run.stderr.contains("claude"), "{run:?}");
    fs::remove_dir_all(scratch.path(".git")).unwrap();
    let run = scratch.run("init");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("not a git repository"), "{run:?}");
    assert!(scratch.snapshot() == before);
}

#[test]
fn config_shows_every_setting_and_its_origin() {
    let scratch = Scratch::new();
    scratch.write(".ralph/config", "AGENT_TYPE=codex\nMINE=1\n");
    scratch.write("ralph.toml", "[loop]\nmax_retries = 7\n");
    let mut command = scratch.ralph("config --json");
    let run = Scratch::finish(command.env("RALPH_SPECS_DIR", "elsewhere"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    let text = json.to_string();
    for name in ["AGENT_TYPE", "MAX_RETRIES", "SPECS_DIR", "AGENT_TIMEOUT", "DEFAULT_MAX_ITERATIONS"] {
        assert!(text.contains(&format!("\"{name}\"")), "{name}: {text}");
    }
    let run = Scratch::finish(scratch.ralph("config --agent claude").env("RALPH_SPECS_DIR", "elsewhere"));
    let row = |name: &str| run.stdout.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(row("AGENT_TYPE").contains("claude") && row("AGENT_TYPE").contains("--agent"), "{run:?}");
    assert!(row("MAX_RETRIES").contains('7') && row("MAX_RETRIES").contains("ralph.toml"), "{run:?}");
    assert!(
        row("SPECS_DIR").contains("elsewhere") && row("SPECS_DIR").contains("RALPH_SPECS_DIR"),
        "{run:?}"
    );
    assert!(row("DEFAULT_MAX_ITERATIONS").contains("default"), "{run:?}");
    good(&scratch, "config --agent codex");
}

#[test]
fn doctor_tells_good_from_bad() {
    let scratch = Scratch::new();
    scratch.agent("claude", "echo '9.9.9 (Claude Code)'");
    good(&scratch, "init");
    let before = scratch.snapshot();
    // Root, as whom some run these tests, is refused by claude.
    let healthy = |args: &str| {
        let run = Scratch::finish(scratch.ralph(args).env("IS_SANDBOX", "1"));
        assert_eq!(run.code, Some(0), "{args}: {run:?}");
        run
    };
    let run = healthy("doctor");
    assert!(run.stdout.contains("9.9.9"), "{run:?}");
    let findings = |run: &Run| -> Value { serde_json::from_str(&run.stdout).unwrap() };
    let report = findings(&healthy("doctor --json"));
    assert_eq!(report["ok"], true);
    let checks: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|finding| finding["check"].as_str())
        .collect();
    for check in ["git", "repository", "ralph dir", "agent", "disk", "specs", "filters"] {
        assert!(checks.iter().any(|found| found.contains(check)), "{check}: {checks:?}");
    }
    assert!(scratch.snapshot() == before, "a doctor leaves no traces");

    scratch.write(".ralph/config", "AGENT_TYPE=codex\nAGENT_RESPONSE_FILTER='.a |'\n");
    fs::remove_dir_all(scratch.path("specs")).unwrap();
    let run = scratch.run("doctor");
    assert_eq!(run.code, Some(1), "{run:?}");
    for text in ["codex", "PATH", "AGENT_RESPONSE_FILTER", "column", "specs"] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
    let run = scratch.run("doctor --json");
    assert_eq!(run.code, Some(1), "{run:?}");
    let report = findings(&run);
    assert_eq!(report["ok"], false);
    for finding in report["findings"].as_array().unwrap() {
        assert!(finding["status"] == "ok" || finding["fix"].is_string(), "{finding}: what to do?");
    }
}

/// A bad config, or none of the things a loop needs, is what a doctor is for.
#[test]
fn doctor_is_of_use_where_nothing_works() {
    let scratch = bare();
    fs::remove_dir_all(scratch.path(".git")).unwrap();
    let run = scratch.run("doctor");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("git init"), "{run:?}");

    let scratch = Scratch::new();
    scratch.write(".ralph/config", "AGENT_TYPE=$(oops)\n");
    let run = scratch.run("doctor");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(format!("{}{}", run.stdout, run.stderr).contains("line 1"), "{run:?}");

    scratch.write(".ralph/config", "AGENT_TYPE=nobody\n");
    let run = scratch.run("doctor");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("nobody") && run.stdout.contains("claude"), "{run:?}");
}

#[test]
fn completions_man_help_and_version() {
    let scratch = Scratch::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = good(&scratch, &format!("completions {shell}"));
        // Some ask ralph at each Tab, others know all options.
        let asks = run.stdout.contains("ralph __complete");
        assert!(asks || run.stdout.contains("inactivity-timeout"), "{shell}");
    }
    let run = good(&scratch, "man");
    assert!(run.stdout.contains(".TH ralph 1"), "{run:?}");
    for text in [".SH RALPH PLAN", ".SH RALPH BUILD", "inactivity", "Exit codes"] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
    let run = good(&scratch, "--version");
    assert!(run.stdout.starts_with(concat!("ralph ", env!("CARGO_PKG_VERSION"), " (")), "{run:?}");
    good(&scratch, "-V");
    let version: serde_json::Value =
        serde_json::from_str(&good(&scratch, "--version --json").stdout).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"), "{version}");
    assert!(version["target"].as_str().unwrap().starts_with(std::env::consts::ARCH), "{version}");
    assert!(
        ["libc", "backend", "tier", "commit", "date"].iter().all(|key| version.get(key).is_some()),
        "{version}"
    );
    for verb in ["plan", "build", "prompt", "init", "config", "doctor", "demo", "completions", "man"] {
        for help in ["--help", "-h"] {
            let run = good(&scratch, &format!("{verb} {help}"));
            assert!(run.stdout.contains("Usage: ralph") && run.stderr.is_empty(), "{verb}: {run:?}");
        }
        assert!(good(&scratch, "--help").stdout.contains(&format!("  {verb}")), "{verb}");
        good(&scratch, &format!("help {verb}"));
        good(&scratch, &format!("--help {verb}"));
    }
}

/// `ralph … | head -1` with a reader that is gone before the first word.
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let scratch = Scratch::new();
    scratch.agent("claude", "echo 1.0");
    for args in [
        "init",
        "config",
        "config --json",
        "doctor",
        "doctor --json",
        "completions bash",
        "man",
        "--help",
        "plan --help",
        "--version",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        // Root, as whom some run these tests, is refused by claude.
        let mut command = scratch.ralph(args);
        let child = command.env("IS_SANDBOX", "1").stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let run = crate::scratch::finish(child);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args}");
    }
    assert!(scratch.path("AGENTS.md").is_file(), "init did all of its work");
}

#[test]
fn demo_runs_the_whole_loop() {
    let scratch = bare();
    let before = scratch.snapshot();
    let run = good(&scratch, "demo ../demo --quiet");
    let demo = scratch.outside().join("demo");
    assert_eq!(run.stdout.matches("Exit Reason: completion signal detected\n").count(), 2, "{run:?}");
    for row in ["count    done    1 ", "weather  failed  1 (1 failed) ", "yes      done    1 "] {
        assert!(run.stdout.contains(row), "{row}: {run:?}");
    }
    assert!(
        run.stdout.contains(&format!("demo complete: {}", demo.canonicalize().unwrap().display())),
        "{run:?}"
    );
    let log = scratch.command("git").args(["log", "--oneline"]).current_dir(&demo).output().unwrap();
    assert!(String::from_utf8(log.stdout).unwrap().lines().count() > 3, "plan and tasks are commits");
    let status = scratch.command("git").args(["status", "--porcelain"]).current_dir(&demo).output().unwrap();
    assert_eq!(String::from_utf8(status.stdout).unwrap(), "");
    assert!(scratch.snapshot() == before, "the folder it was started in is not concerned");

    let run = scratch.run("demo ../demo --quiet");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.starts_with("error: ") && run.stderr.contains("not empty"), "{run:?}");
    scratch.write("a-file", "");
    let run = scratch.run("demo a-file");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.starts_with("error: ") && run.stderr.contains("a-file"), "{run:?}");
}

/// Three branches, of which one fails; a limit that all of them meet; the table; and what can be typed where it was started.
#[test]
fn the_demo_ends_with_the_table_and_a_next_step_that_can_be_typed() {
    let scratch = bare();
    let exe = std::path::Path::new(env!("CARGO_BIN_EXE_ralph"));
    let mut command = scratch.ralph("demo");
    command.arg(scratch.outside().join("demo")).current_dir(exe.parent().unwrap().parent().unwrap());
    let run = Scratch::finish(command.env("CI", "1"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let typed = format!("./{}/ralph init\n", exe.parent().unwrap().file_name().unwrap().display());
    let after = |text: &str, word: &str| {
        let (_, rest) = text.split_once(word).unwrap_or_else(|| panic!("{word}: {run:?}"));
        rest.to_owned()
    };
    let words =
        ["$ ralph plan 3", "$ ralph build 10", "It works.", "$ ralph loop build", "\nweather  failed "];
    let last = words.into_iter().fold(run.stdout.clone(), |text, word| after(&text, word));
    assert!(last.ends_with(&format!("\nIn a project of your own:\n    {typed}")), "{run:?}");
    assert_eq!(run.stderr.matches("usage limit reached; waiting").count(), 1, "{run:?}");
    let typed = Scratch::finish(scratch.command("sh").args(["-c", "exec \"$0\" init"]).arg(exe));
    assert_eq!(typed.code, Some(0), "{typed:?}");
}

#[test]
fn the_demo_of_tasks_brings_a_feature_from_its_brief_to_done() {
    let scratch = bare();
    let mut command = scratch.ralph("demo ../demo --tasks");
    let run = Scratch::finish(command.env("CI", "1"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let demo = scratch.outside().join("demo");
    let tasks = scratch.ralph("task list --feature greeting --json").current_dir(&demo).output().unwrap();
    let tasks: serde_json::Value = serde_json::from_slice(&tasks.stdout).unwrap();
    let done = |task: &serde_json::Value| task["status"] == "done" && task["verification_status"] == "passed";
    assert_eq!(tasks.as_array().unwrap().len(), 4, "{tasks}");
    assert!(tasks.as_array().unwrap().iter().all(done), "{tasks}");
    for text in
        ["spec of greeting: .ralph/features/greeting/spec.md", "4 tasks: t-", "has passed its verification"]
    {
        assert!(run.stderr.contains(text), "{text}: {run:?}");
    }
    for text in ["$ ralph task tree", "\u{2713} t-", "It works. `sh greet.sh Ada` says: Hello, Ada!"] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
    let log = scratch.command("git").args(["log", "--oneline"]).current_dir(&demo).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&log.stdout).lines().count(), 5, "one commit for each task");
}

#[test]
fn the_demo_of_jobs_lands_what_was_in_each_others_way() {
    let scratch = bare();
    let run = Scratch::finish(scratch.ralph("demo ../demo --tasks --jobs 3").env("CI", "1"));
    assert_eq!(run.code, Some(0), "{run:?}");
    for text in
        ["could not land, and goes back: it conflicts with what has landed", "waits to land on master"]
    {
        assert!(run.stderr.contains(text), "{text}: {run:?}");
    }
    for text in ["4 landed", "4 tasks: 4 done", "It works. `sh greet.sh Ada` says: Hello, Ada!"] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
    let refused = scratch.run("demo ../other --jobs 3");
    assert!(refused.code == Some(1) && refused.stderr.contains("--tasks"), "{refused:?}");
    assert!(scratch.run("demo ../other --tasks --jobs 9").stderr.contains("--jobs"));
}

/// What the first try left behind must not refuse the second, with git.
#[test]
fn a_demo_without_git_makes_no_folder() {
    let scratch = bare();
    let run = Scratch::finish(scratch.ralph("demo ../demo --quiet").env("PATH", scratch.outside()));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("git"), "{run:?}");
    assert!(!scratch.outside().join("demo").exists());
}

#[test]
fn a_demo_that_is_told_to_end_ends_its_loop_first() {
    let scratch = bare();
    let demo = scratch.start("demo ../demo");
    let log = scratch.outside().join("demo/.ralph/last_agent_output");
    wait_for("an agent", || fs::read_to_string(&log).ok().filter(|output| !output.is_empty()));
    rustix::process::kill_process(rustix::process::Pid::from_child(&demo), rustix::process::Signal::TERM)
        .unwrap();
    let run = crate::scratch::finish(demo);
    assert!(run.code == Some(130) && run.stdout.contains("Exit Reason: terminated\n"), "{run:?}");
    assert!(run.stdout.contains("`ralph plan` ended with exit code 130; everything is kept in "), "{run:?}");
}

#[test]
fn the_scripted_agent_works_in_a_project_of_the_users_own() {
    let scratch = Scratch::new();
    fs::remove_file(scratch.path(".ralph/implementation_plan.md")).unwrap();
    scratch.write("specs/hello.md", "# Hello\n\n- `sh hello.sh` prints `hello`\n");
    let run = scratch.run("plan 1 --agent script");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("Status: success\n"), "{run:?}");
}

#[test]
fn a_build_is_not_done_while_a_task_of_its_plan_is_not_complete() {
    let scratch = Scratch::new();
    scratch.write(
        ".ralph/implementation_plan.md",
        "## 1. One\n- Status: complete\n\n## 2. Two\n- Status: planned\n",
    );
    let completes = "sed -i 's/planned/complete/' .ralph/implementation_plan.md";
    let says = claude_says("<promise>COMPLETE</promise>");
    let body = format!("cat > prompt-$RALPH_ITERATION; [ $RALPH_ITERATION = 1 ] || {completes}; {says}");
    scratch.agent("claude", &body);
    let run = good(&scratch, "build --agent claude 3");
    assert!(run.stdout.contains("Total Iterations: 2\n"), "{run:?}");
    let told = scratch.read("prompt-2");
    assert!(told.contains("1 task of the plan is open\n\n- 2. Two (Status: planned)\n"), "{told}");
}

#[test]
fn a_build_whose_plan_is_gone_at_the_end_says_so() {
    for (loses, words) in [
        ("rm .ralph/implementation_plan.md", "there is no plan any more in "),
        (": > .ralph/implementation_plan.md", "there is no plan any more in "),
    ] {
        let scratch = Scratch::new();
        scratch.agent("claude", &format!("{loses}\n{}", claude_says("<promise>COMPLETE</promise>")));
        let run = good(&scratch, "build 2 --agent claude");
        assert!(run.stderr.contains(&format!("the agent says so, and {words}")), "{loses}: {run:?}");
        assert!(scratch.run("report").stdout.contains(words), "{loses}");
    }
}

#[test]
fn tasks_that_are_gone_from_the_plan_are_not_done() {
    const PLAN: &str = "# Plan\n- [ ] Add the flag\n- [ ] Document it\n";
    let path = ".ralph/implementation_plan.md";
    let complete = claude_says("<promise>COMPLETE</promise>");
    for (loses, is_restored) in [
        ("rm", true),
        ("truncate -s 0", true),
        ("sed -i '2,$d'", false),
        ("sed -i '2i <!--'", false),
        (r"sed -i '2s/^- /```\n- /'", false),
    ] {
        let scratch = Scratch::new();
        scratch.write(path, PLAN);
        scratch.agent("claude", &format!("cat > prompt-$RALPH_ITERATION; {loses} {path}\n{complete}"));
        let run = scratch.run("build 2 --agent claude");
        assert_eq!(run.code, Some(4), "{loses}: {run:?}");
        let words = "2 tasks of the plan are gone from it without being ticked: Add the flag, Document it";
        assert!(run.stdout.contains(words), "{loses}: {run:?}");
        let told = scratch.read("prompt-2");
        let list = format!("{words}\n\n- Add the flag\n- Document it\n\nWrite these back");
        assert!(told.contains(&list), "{told}");
        assert_eq!(run.stderr.contains("it is restored"), is_restored, "{loses}: {run:?}");
    }
    // What an agent has ticked, a later one may remove.
    let scratch = Scratch::new();
    scratch.write(path, PLAN);
    let first = "sed -i 's/\\[ ] Add the flag/[x] ~~Add the flag~~ (1a2b3c)/'";
    let second = "sed -i '/Add/d; s/\\[ ] Doc/[x] Doc/'";
    let more = claude_says("more");
    scratch.agent(
        "claude",
        &format!(
            "if [ $RALPH_ITERATION = 1 ]; then {first} {path}\n{more}\nelse {second} {path}\n{complete}\nfi"
        ),
    );
    let run = good(&scratch, "build 3 --agent claude");
    assert!(run.stdout.contains("Total Iterations: 2\n"), "{run:?}");
    // A later process of the loop knows what an earlier one has lost, until it is back.
    let scratch = Scratch::new();
    scratch.write(path, PLAN);
    let loses = format!("sed -i '/Add/d' {path}\n{more}");
    let claims = format!("sed -i 's/\\[ ] Doc/[x] Doc/' {path}\n{complete}");
    let writes_back = format!("echo '- [x] Add the flag' >> {path}\n{complete}");
    scratch.agent(
        "claude",
        &format!("case $RALPH_ITERATION in 1) {loses}\n;; 2) {claims}\n;; *) {writes_back}\n;; esac"),
    );
    good(&scratch, "build 1 --agent claude");
    let run = scratch.run("resume build --max-iterations 2");
    let words = "1 task of the plan is gone from it without being ticked: Add the flag";
    assert!(run.code == Some(4) && run.stdout.contains(words), "{run:?}");
    good(&scratch, "resume build --max-iterations 3");
}
