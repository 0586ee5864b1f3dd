//! `ralph run`: RALPH.md loops.

use std::fs;
use std::process::Stdio;

use crate::scratch::{Run, Scratch, claude_says, executable, finish};

/// Keeps each prompt it gets as `prompt-N` and each command line as `args-N`.
pub(crate) const RECORDER: &str = r#"cat > "prompt-$RALPH_ITERATION"; echo "$@" > "args-$RALPH_ITERATION""#;

/// A project with `fix/RALPH.md`, whose agent `mine` records its prompts.
pub(crate) fn project(front_matter: &str, body: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.agent("mine", RECORDER);
    scratch.write("fix/RALPH.md", format!("---\n{front_matter}\n---\n{body}\n"));
    scratch
}

/// Runs ralph with words of which some hold blanks.
fn run_words(scratch: &Scratch, words: &[&str]) -> Run {
    let mut command = scratch.ralph("run");
    finish(command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

fn script(scratch: &Scratch, path: &str, body: &str) {
    executable(&scratch.path(path), &format!("#!/usr/bin/env bash\n{body}\n"));
}

#[test]
fn everything_is_read_again_before_every_iteration() {
    let scratch = project("agent: mine one\ncommands:\n- name: c\n  run: echo first", "A {{ commands.c }}");
    scratch.write("next", "---\nagent: other two\ncommands:\n- name: d\n  run: echo second\n---\nB {{ commands.c }}{{ commands.d }}\n");
    scratch.agent("mine", &format!("{RECORDER}\nmv next fix/RALPH.md"));
    scratch.agent("other", RECORDER);
    let run = scratch.run("run fix -n 2");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!((scratch.read("prompt-1"), scratch.read("args-1")), ("A first\n".into(), "one\n".into()));
    assert_eq!((scratch.read("prompt-2"), scratch.read("args-2")), ("B second\n".into(), "two\n".into()));
}

#[test]
fn a_limit_of_0_is_none() {
    let scratch = project("agent: mine", "A");
    scratch.agent("mine", &format!("{RECORDER}\n[ ! -e prompt-3 ]"));
    let run = scratch.run("run fix -n 0 --stop-on-error");
    assert!(run.code == Some(4) && scratch.path("prompt-3").exists(), "{run:?}");
    assert!(!scratch.path("prompt-4").exists());
}

#[test]
fn the_prompt_shows_what_commands_print_however_they_end() {
    let scratch = project(
        "agent: mine\nargs: [dir]\ncommands:\n\
         - {name: both, run: sh -c 'echo out; echo err >&2; exit 3'}\n\
         - {name: where, run: pwd}\n\
         - {name: beside, run: './say {{ args.dir }} x{{args.dir}}'}\n\
         - {name: gone, run: no-such-program --x}\n\
         - {name: slow, run: 'sh -c ''echo begun; sleep 60''', timeout: 0.3}\n\
         - {name: braces, run: 'echo ''{{ args.dir }} $(id) {{ x }}'''}",
        "<!-- secret\nnote -->\n[{{ commands.both }}]\n[{{ commands.where }}]\n[{{ commands.beside }}]\n\
         [{{ commands.gone }}]\n[{{ commands.slow }}]\n[{{ commands.braces }}]\n[{{ commands.zzz }}{{ args.zzz }}]\n\
         {{ x }} {{ ralph.name }} {{ ralph.iteration }}/{{ ralph.max_iterations }}\n```\n<!-- kept -->\n```",
    );
    script(&scratch, "fix/say", r#"pwd; printf '<%s>' "$@""#);
    let run = run_words(&scratch, &["fix", "-n", "1", "--dir", "a b {{ args.dir }} 'c"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let root = scratch.root().canonicalize().unwrap();
    let root = root.display();
    let value = "a b {{ args.dir }} 'c";
    let prompt = scratch.read("prompt-1");
    for part in [
        "[out\nerr]\n".to_owned(),
        format!("[{root}]\n"),
        format!("[{root}/fix\n<{value}><x{value}>]\n"),
        "no-such-program".to_owned(),
        "[begun\n[ralph: ended, because it took longer than 0.3s]]\n".to_owned(),
        format!("[{value} $(id) {{{{ x }}}}]\n"),
        "[]\n{{ x }} fix 1/1\n```\n<!-- kept -->\n```\n".to_owned(),
    ] {
        assert!(prompt.contains(&part), "{part:?} is missing:\n{prompt}");
    }
    assert!(!prompt.contains("secret") && prompt.starts_with('['), "{prompt}");
    assert!(run.stderr.contains("command 'gone'") && run.stderr.contains("command 'slow'"), "{run:?}");
}

#[test]
fn a_command_that_floods_is_cut_and_the_cut_is_visible() {
    let scratch = project(
        "agent: mine\ncommands:\n- name: big\n  run: sh -c 'echo begin; head -c 1000000000 /dev/zero | tr \"\\0\" x; echo end'",
        "{{ commands.big }}",
    );
    // It could not hold the output: its address space is smaller.
    let mut limited = scratch.command("bash");
    limited.args(["-c", "ulimit -v 900000; exec \"$0\" run fix -n 1", env!("CARGO_BIN_EXE_ralph")]);
    let run = finish(limited.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(run.code, Some(0), "{run:?}");
    let prompt = scratch.read("prompt-1");
    assert!((1_000_000..1_100_000).contains(&prompt.len()), "{}", prompt.len());
    assert!(prompt.starts_with("begin\nxxx") && prompt.ends_with("xxxend\n"));
    assert!(prompt.contains("bytes left out"));
}

#[test]
fn lines_in_place_of_blocks() {
    let scratch = project("agent: mine", "Do it.");
    scratch.agent("mine", "cat > /dev/null; case $RALPH_ITERATION in 2) exit 7;; 3) exec sleep 60;; esac");
    let run = scratch.run("run -t 1 fix/RALPH.md -n 4");
    assert_eq!(run.code, Some(0), "{run:?}");
    let shape: Vec<String> =
        run.stdout.lines().map(|line| line.split(" (").next().unwrap().to_owned()).collect();
    let expected = [
        "── Iteration 1 ──",
        "✓ Iteration 1 completed",
        "── Iteration 2 ──",
        "✗ Iteration 2 failed with exit code 7",
        "── Iteration 3 ──",
        "⏱ Iteration 3 timed out after 1s",
        "── Iteration 4 ──",
        "✓ Iteration 4 completed",
        "Done: 4 iterations — 2 succeeded, 1 failed, 1 timed out",
    ];
    assert_eq!(shape, expected, "{run:?}");
    let log = scratch.session_log();
    assert!(log.contains("ITERATION 4 COMPLETE\n") && log.contains("SESSION SUMMARY\n"), "{log}");
    let state = scratch.state();
    assert_eq!((state["name"].as_str(), state["mode"].as_str()), (Some("fix"), Some("run")));
}

#[test]
fn the_exit_code_tells_the_truth() {
    let scratch = project("agent: mine", "Do it.");
    scratch.agent("mine", "cat > /dev/null; [ $RALPH_ITERATION = 1 ]");
    let run = scratch.run("run fix -n 2");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.ends_with("Done: 2 iterations — 1 succeeded, 1 failed, 0 timed out\n"), "{run:?}");
    let run = scratch.run("run fix -n 9 --stop-on-error --quiet");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert_eq!(run.stdout, "Done: 2 iterations — 1 succeeded, 1 failed, 0 timed out\n");
}

#[test]
fn a_retry_gets_the_same_prompt_and_counts_once() {
    let scratch = project(
        "agent: mine\ncommands:\n- {name: c, run: sh -c 'echo x >> count; wc -l < count'}",
        "{{ commands.c }}",
    );
    scratch.agent("mine", "cat >> prompts; [ $(wc -l < prompts) = 2 ]");
    let run = scratch.run("run fix -n 1 --max-retries 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(scratch.read("prompts"), "1\n1\n");
    assert!(run.stdout.ends_with("Done: 1 iterations — 1 succeeded, 0 failed, 0 timed out\n"), "{run:?}");
}

#[test]
fn arguments_and_flags_mix_until_two_dashes() {
    let front_matter = "agent: mine\nargs: [dir, focus]";
    let body = "[{{ args.dir }}][{{ args.focus }}][{{ args.free }}]";
    for (words, expected) in [
        (&["fix", "src", "-n", "1", "the parser"][..], "[src][the parser][]\n"),
        (&["-n", "1", "fix", "--focus", "x", "src"], "[src][x][]\n"),
        (&["fix", "--free=a=b", "--dir", "src", "-n1"], "[src][][a=b]\n"),
        (&["fix", "-n", "1", "--", "--dir", "-n"], "[--dir][-n][]\n"),
        (&["--focus", "x", "fix", "--max-iterations=1"], "[][x][]\n"),
    ] {
        let scratch = project(front_matter, body);
        let run = run_words(&scratch, words);
        assert_eq!(run.code, Some(0), "{words:?} {run:?}");
        assert_eq!(scratch.read("prompt-1"), expected, "{words:?}");
        assert!(!scratch.path("prompt-2").exists(), "{words:?}");
    }
}

#[test]
fn what_cannot_work_is_refused_before_anything_starts() {
    let scratch = project("agent: mine\nargs: [dir]", "{{ args.dir }}");
    for (name, front_matter) in [
        ("flag", "agent: mine\nargs:\n- delay"),
        ("key", "agent: mine\ncomands: []"),
        ("none", "args: [a]"),
        ("missing", "agent: no-such-agent"),
    ] {
        scratch.write(&format!("{name}.md"), format!("---\n{front_matter}\n---\nDo it.\n"));
    }
    scratch.write("plain.md", "Do it.\n");
    scratch.write("empty/.keep", "");
    for (args, named) in [
        ("", "TARGET"),
        ("nothing", "'nothing'"),
        ("nothing.md", "nothing.md not found"),
        ("empty", "'empty' is no folder with a RALPH.md"),
        ("empty/", "empty/RALPH.md not found"),
        ("fix a b", "'b'"),
        ("fix --dir", "'--dir' has no value"),
        ("fix --dirr x", "'--dir'"),
        ("fix --dir x --dir y", "twice"),
        ("fix -n 00", "'00'"),
        ("fix -n x", "'x'"),
        ("fix -t 0", "0"),
        ("fix --agent claude", "--agent"),
        ("fix --max-cost 3", "'mine' does not report"),
        ("fix -l fix/RALPH.md", "fix/RALPH.md"),
        ("flag.md", "flag.md line 4, column 3: argument 'delay'"),
        ("key.md", "key.md line 3, column 1: there is no key 'comands'"),
        ("none.md", "none.md line 2, column 1: the key 'agent' is missing"),
        ("plain.md", "plain.md line 1: there is no front matter"),
        ("missing.md", "'no-such-agent' not found on PATH"),
    ] {
        let run = scratch.run(&format!("run {args}"));
        assert_eq!(run.code, Some(1), "{args}: {run:?}");
        let error = run.stderr.strip_suffix('\n').unwrap();
        assert!(error.starts_with("error: ") && !error.contains('\n'), "{args}: {error}");
        assert!(error.contains(named), "{args}: {error}");
        assert!(run.stdout.is_empty() && scratch.session_logs().is_empty(), "{args}: {run:?}");
    }
}

#[test]
fn known_agents_get_their_structured_flags_and_their_sigils_count() {
    let scratch = project("agent: claude -p --verbose", "Do it.");
    scratch.agent("claude", &format!("echo \"$@\" > args\n{}", claude_says("<promise>COMPLETE</promise>")));
    let run = scratch.run("run fix");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(scratch.read("args"), "-p --verbose --output-format stream-json\n");
    assert!(run.stdout.ends_with("Done: 1 iterations — 1 succeeded, 0 failed, 0 timed out\n"), "{run:?}");
    assert!(run.stderr.contains("completion signal detected"), "{run:?}");
    scratch.agent("claude", &claude_says("<promise>REPLAN</promise>"));
    assert_eq!(scratch.run("run fix").code, Some(3));
}

#[test]
fn an_unknown_agent_is_shown_and_never_scanned() {
    let scratch = project("agent: ./my-agent --fast", "Do it.");
    let says =
        r#"echo '<promise>COMPLETE</promise>'; echo '{"type":"result","is_error":true}'; echo "args: $@""#;
    script(&scratch, "my-agent", says);
    let run = scratch.run("run fix -n 2");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("✓ Iteration 2 completed"), "{run:?}");
    assert_eq!(run.stderr.matches("<promise>COMPLETE</promise>\n").count(), 2, "{run:?}");
    assert!(run.stderr.contains("args: --fast\n"), "{run:?}");
}

#[test]
fn an_agent_that_reads_nothing_gets_a_large_prompt() {
    let scratch = project("agent: mine", &"long\n".repeat(500_000));
    scratch.agent("mine", "exit 0");
    assert_eq!(scratch.run("run fix -n 1").code, Some(0));
}

#[test]
fn one_log_file_per_iteration() {
    let scratch = project("agent: mine", "Do it.");
    scratch.agent("mine", "cat > /dev/null; echo out-$RALPH_ITERATION; echo err-$RALPH_ITERATION >&2");
    let run = scratch.run("run fix -n 2 --log-dir some/logs");
    assert_eq!(run.code, Some(0), "{run:?}");
    let mut names: Vec<String> = fs::read_dir(scratch.path("some/logs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 2, "{names:?}");
    for (name, number) in names.iter().zip(["001", "002"]) {
        let stamp = name.strip_prefix(number).and_then(|rest| rest.strip_prefix('_')).unwrap();
        let digits = stamp.strip_suffix(".log").unwrap().replacen('-', "", 1);
        assert!(digits.len() == 14 && digits.chars().all(|char| char.is_ascii_digit()), "{name}");
        let log = scratch.read(&format!("some/logs/{name}"));
        let number = number.trim_start_matches('0');
        let mut lines: Vec<&str> = log.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, [format!("err-{number}"), format!("out-{number}")]);
    }
}

#[test]
fn no_git_is_needed_and_none_is_mentioned() {
    let scratch = project("agent: mine\ncommands:\n- {name: c, run: pwd}", "{{ commands.c }}");
    fs::remove_dir_all(scratch.path(".git")).unwrap();
    fs::remove_dir_all(scratch.path("specs")).unwrap();
    let run = scratch.run("run fix -n 1");
    assert_eq!((run.code, run.stderr.contains("git")), (Some(0), false), "{run:?}");
    assert_eq!(scratch.read("prompt-1").trim(), scratch.root().canonicalize().unwrap().to_str().unwrap());
    let run = scratch.run("run fix --idle 1");
    assert!(run.code == Some(1) && run.stderr.contains("--idle needs a git repository"), "{run:?}");
}

#[test]
fn a_dry_run_shows_the_prompt_and_leaves_nothing_behind() {
    let scratch = project(
        "agent: no-such-agent\nargs: [a]\ncommands:\n- {name: c, run: echo hello}",
        "{{ commands.c }} {{ args.a }}",
    );
    fs::remove_dir_all(scratch.path(".ralph")).unwrap();
    let run = scratch.run("run fix --dry-run x");
    let agent = "the agent would be started as: no-such-agent\n";
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "hello x\n", agent));
    assert!(!scratch.path(".ralph").exists());
}

#[test]
fn json_is_all_there_is_on_stdout() {
    let scratch = project("agent: mine", "Do it.");
    let run = scratch.run("run fix -n 1 --json");
    let events: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = events.last().unwrap();
    assert_eq!(
        (&last["event"], &last["mode"], &last["agent"]),
        (&"loop_ended".into(), &"run".into(), &"mine".into())
    );
}

#[test]
fn a_command_that_takes_too_long_ends_with_all_that_it_started() {
    let scratch = project(
        "agent: mine\ncommands:\n- name: slow\n  run: bash -c 'setsid sleep 300 & touch begun; wait'\n  timeout: 1",
        "{{ commands.slow }}",
    );
    let run = scratch.run("run fix -n 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(scratch.path("begun").exists());
    scratch.assert_nothing_left();
    assert!(scratch.read("prompt-1").contains("longer than 1s"));
}

#[test]
fn starters_are_written_once_and_work() {
    let scratch = Scratch::new();
    scratch.agent("codex", RECORDER);
    for file in ["RALPH.md", "fix/RALPH.md", "PROMPT.md", "ralph.toml"] {
        let run = scratch.run(&format!("init {file}"));
        assert_eq!(run.code, Some(0), "{file}: {run:?}");
        assert!(run.stdout.contains(file), "{file}: {run:?}");
        let run = scratch.run(&format!("init {file}"));
        assert!(run.code == Some(1) && run.stderr.contains("--force"), "{file}: {run:?}");
        assert_eq!(scratch.run(&format!("init {file} --force")).code, Some(0), "{file}");
    }
    assert_eq!(scratch.run("init other.md").code, Some(1));
    for (init, run) in
        [("init -- -x/RALPH.md", "run ./-x --dry-run"), ("init fix/RALPH.md --force", "run fix --dry-run")]
    {
        assert!(scratch.run(init).stdout.contains(&format!("'ralph {run}'")), "{init}");
        assert_eq!(scratch.run(run).code, Some(0), "{run}");
    }
    assert!(scratch.run("run -- -y").stderr.contains("'ralph init ./-y/RALPH.md'"));
    assert!(scratch.read("fix/RALPH.md").contains("agent: codex exec"));
    let run = scratch.run("run fix --dry-run --focus parser");
    assert!(
        run.code == Some(0) && run.stdout.contains("parser") && run.stdout.contains("iteration 1"),
        "{run:?}"
    );
    assert_eq!(scratch.run("config").code, Some(0));
}

#[test]
fn a_missing_argument_is_no_word() {
    let front = "agent: mine\nargs: [a, b]\ncredit: somebody\ncommands:\n- {name: c, run: './say {{ args.a }} {{args.b}} x{{ args.a }}'}";
    let scratch = project(front, "{{ commands.c }}");
    script(&scratch, "fix/say", r#"printf '<%s>' "$@""#);
    for (words, expected) in [
        (&["fix", "-n", "1"][..], "<x>"),
        (&["fix", "-n", "1", "--b", ""], "<><x>"),
        (&["fix", "-n", "1", "--a", "1"], "<1><x1>"),
    ] {
        let run = run_words(&scratch, words);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(scratch.read("prompt-1"), format!("{expected}\n"), "{words:?}");
        fs::remove_dir_all(scratch.path(".ralph")).unwrap();
    }
}

#[test]
fn the_end_by_an_error_has_a_reason_of_its_own() {
    let scratch = project("agent: mine", "x");
    scratch.agent("mine", "exit 3");
    let run = scratch.run("run fix -n 5 -s");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stderr.contains("mine exited with code 3"), "{run:?}");
    let state = scratch.state();
    assert_eq!(
        (state["exit_reason"].as_str(), state["iteration"].as_integer()),
        (Some("stop_on_error"), Some(1))
    );
    assert!(
        scratch.session_log().contains("Exit Reason: an iteration failed\n"),
        "{}",
        scratch.session_log()
    );
}

/// All output of an unknown program is searched, because its text cannot be told apart.
#[test]
fn a_done_pattern_is_looked_for_in_what_an_unknown_agent_prints() {
    let scratch = project("agent: mine", "x");
    scratch.agent("mine", "[ $RALPH_ITERATION = 1 ] && echo 'not yet' || echo 'All tasks are done.'");
    let mut command = scratch.ralph("run fix -n 5");
    let run = Scratch::finish(command.args(["--done-pattern", "tasks are done"]));
    assert_eq!(run.code, Some(0), "{run:?}");
    let state = scratch.state();
    assert_eq!(
        (state["exit_reason"].as_str(), state["iteration"].as_integer()),
        (Some("done_pattern"), Some(2))
    );
}
