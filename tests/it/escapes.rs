//! Output of a repository or an agent does not control the terminal: no clipboard (OSC 52), no titles, no DCS; and a
//! newline in a value splits no message of one line.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::scratch::{CLAUDE_RESULT, Scratch, claude_text, says, side_by_side};
use crate::terminal::{End, Terminal};

/// Writes the clipboard, sets a title, sends a device control string, rings, and begins a sequence in one byte (C1).
const EVIL: &str = "\x1b]52;c;cGF5bG9hZA==\x07\x1b]0;owned\x1b\\\x1bPq#0\x1b\\\u{9b}2J\x07";

fn assert_harmless(case: &str, shown: &str) {
    for sequence in ["\x1b]", "\x1bP", "\x1b\\", "\x07", "\u{9b}", "\u{9d}"] {
        assert!(!shown.contains(sequence), "{case}: {sequence:?} in {shown:?}");
    }
}

/// Runs ralph on a terminal, which nothing may drive, and as part of a pipe, where its errors are harmless, too.
fn on_terminal(scratch: &Scratch, args: &str) -> End {
    let end = Terminal::start(scratch.ralph(args).env("TERM", "xterm"), 24, 200).end();
    assert_harmless(args, &end.bytes);
    assert_harmless(args, &scratch.run(args).stderr);
    end
}

/// One line, and no more.
fn is_one_line(scratch: &Scratch, args: &str, word: &str) {
    on_terminal(scratch, args);
    let run = scratch.run(args);
    assert_eq!((run.code, run.stderr.lines().count()), (Some(1), 1), "{args}: {run:?}");
    assert!(run.stderr.starts_with("error: ") && run.stderr.contains(word), "{args}: {run:?}");
}

/// `text` as bash reads it back.
fn dollar_quoted(text: &str) -> String {
    let escaped: Vec<String> = text.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("$'{}'", escaped.concat())
}

#[test]
fn logs_of_agents() {
    let scratch = Scratch::new();
    let raw = format!("\x1b[31mred\x1b[0m {EVIL}end");
    let says = says(&[&claude_text(&raw), CLAUDE_RESULT]);
    scratch
        .agent("claude", &format!("echo {} >&2\n{says}\necho {}", dollar_quoted(&raw), dollar_quoted(&raw)));
    let end = on_terminal(&scratch, "prompt p.md 1");
    assert!(end.bytes.contains("end"), "{end:?}");
    for verb in ["logs --agent", "logs --agent --lines 40", "logs --raw", "logs"] {
        on_terminal(&scratch, verb);
    }
    for verb in ["logs --agent", "logs --raw"] {
        let end = on_terminal(&scratch, verb);
        assert!(end.bytes.contains("\x1b[31mred\x1b[0m ") && end.bytes.contains("end"), "{end:?}");
    }
    let run = scratch.run("logs --raw");
    assert!(run.stdout.contains(&raw), "a pipe gets it as it is: {run:?}");
}

#[test]
fn values_of_settings() {
    let value = format!("{EVIL}\nsecond line\rthird");
    for (file, text, args, word) in [
        (".ralph/config", format!("AGENT_TYPE={}\n", dollar_quoted(&value)), "plan 1", "AGENT_TYPE"),
        (".ralph/config", format!("MAX_RETRIES={}\n", dollar_quoted(&value)), "plan 1", "MAX_RETRIES"),
        (
            ".ralph/config",
            format!("AGENT_CLI={}\n", dollar_quoted(&format!("'{value}'"))),
            "plan 1",
            "second line",
        ),
        (
            ".ralph/config",
            format!("DONE_PATTERN={}\n", dollar_quoted(&format!("({value}"))),
            "plan 1",
            "regular expression",
        ),
        (".ralph/config", format!("SPECS_DIR={}\n", dollar_quoted(&value)), "plan 1", "specs directory"),
        (
            "ralph.toml",
            format!("\"{}\" = 1\n", EVIL.escape_default()).replace("\\'", "'"),
            "plan 1",
            "ralph.toml",
        ),
        (
            "ralph.toml",
            "[loop]\n\"max\\u001b]0;x\\u0007\\nretries\" = 1\n".to_owned(),
            "plan 1",
            "ralph.toml",
        ),
        ("ralph.toml", format!("[agent]\ntype = {}\n", "\"\\u001b]0;x\\u0007\\nz\""), "plan 1", "ralph.toml"),
        ("ralph.toml", format!("# {EVIL}\nx = = {EVIL}\n"), "plan 1", "ralph.toml"),
        (
            "fix/RALPH.md",
            format!("---\nagent: \"a\\e]0;x\\ab\"\nwrong{EVIL}: 1\n---\n"),
            "run fix -n 1",
            "RALPH.md",
        ),
        ("IMPLEMENTATION_PLAN.md", format!("## Branch: a{EVIL}\n- [ ] x\n"), "loop build", "PLAN.md"),
    ] {
        let scratch = Scratch::new();
        scratch.agent("claude", "exit 1");
        scratch.write(file, text);
        is_one_line(&scratch, args, word);
    }
}

#[test]
fn looking_at_a_project() {
    let scratch = Scratch::new();
    let (value, second) = (format!("{EVIL}\nsecond"), "\nsecond");
    scratch.write(
        ".ralph/config",
        format!("SPECS_DIR={0}\nAGENT_TYPE=script\nDONE_PATTERN={0}\n", dollar_quoted(&value)),
    );
    for args in ["config", "doctor", "status", "ls"] {
        on_terminal(&scratch, args);
    }
    for args in ["config", "doctor"] {
        let run = scratch.run(args);
        assert!(!run.stdout.contains(second), "{args}: {run:?}");
    }
}

#[test]
fn dry_runs_and_plans() {
    let scratch = Scratch::new();
    scratch.write("fix/RALPH.md", format!("---\nagent: claude -p\n---\nDo {EVIL} it.\n"));
    let end = on_terminal(&scratch, "run fix --dry-run");
    assert!(end.bytes.contains("Do ") && end.bytes.contains(" it."), "{end:?}");
    assert!(scratch.run("run fix --dry-run").stdout.contains(EVIL), "a pipe gets what the agent would");

    scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "begin"]);
    scratch.git(&["checkout", "--quiet", "-b", "master"]);
    scratch.agent("claude", "exit 1");
    let plan = format!("## Branch: a\nGoal: g{EVIL}\n- [ ] t{EVIL}\n");
    scratch.write("IMPLEMENTATION_PLAN.md", plan);
    let end = on_terminal(&scratch, "loop build --dry-run");
    assert!(end.bytes.contains("1 of 1 branches"), "{end:?}");
}

#[test]
fn runs_of_a_ralph_md() {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("cat > /dev/null; echo {} >&2; exit 1", dollar_quoted(EVIL)));
    let document = r#"---
agent: claude -p
commands:
  - name: look
    run: "./no\e]0;x\asuch"
---
{{ commands.look }}
"#;
    scratch.write("fix/RALPH.md", document);
    let end = on_terminal(&scratch, "run fix -n 1");
    assert!(end.bytes.contains("such"), "{end:?}");
}

#[test]
fn names_in_the_repository() {
    let scratch = Scratch::new();
    let says = format!("echo '{}'\necho '{CLAUDE_RESULT}'", claude_text("on it"));
    let subject = dollar_quoted(&format!("s{EVIL}"));
    scratch.agent("claude", &format!("echo x >> x; git add x; git commit --quiet -m {subject}\n{says}"));
    scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "begin"]);
    assert_eq!(scratch.run("prompt p.md 2").code, Some(0));
    let end = on_terminal(&scratch, "revert");
    assert!(end.bytes.contains("reverted iteration"), "{end:?}");

    let stranger =
        scratch.path(".worktrees").join(Path::new(OsStr::from_bytes(format!("n{EVIL}\nsecond").as_bytes())));
    fs::create_dir_all(stranger.join("in it")).unwrap();
    let end = on_terminal(&scratch, "clean --worktrees");
    assert!(end.bytes.contains("is no work tree"), "{end:?}");
    let run = scratch.run("clean --worktrees");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
}

#[test]
fn arguments_that_are_quoted_in_errors() {
    let scratch = Scratch::new();
    side_by_side(&["plan", "prompt", "status", "logs", "run"], |verb| {
        let argument = format!("{EVIL}\nsecond");
        let run = Scratch::finish(scratch.ralph(verb).arg(&argument));
        assert_harmless(verb, &run.stderr);
        assert_eq!((run.code, run.stderr.lines().count()), (Some(1), 1), "{verb}: {run:?}");
    });
}

/// Code that writes to stdout or stderr sanitises its output: two modules do that, and the others do not write to a
/// terminal.
#[test]
fn no_other_module_writes_to_the_terminal() {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
                continue;
            }
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let writes = ["io::stdout()", "io::stderr()", "anstream::std", "println!", "print!("];
            if writes.iter().any(|word| code.contains(word)) {
                found.push(path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string());
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found.sort();
    let expected = [
        "src/commands/output.rs",
        // The whole screen, which is a terminal.
        "src/commands/watch/events.rs",
        "src/commands/watch/marker.rs",
        "src/commands/watch/mod.rs",
        "src/commands/watch/sights.rs",
        // Before its loop has a view, to the process that has started it.
        "src/job/detached.rs",
        // It reads the terminal for which the view writes.
        "src/job/terminal.rs",
        // To ralph, by a pipe, and the guard beside it, which has that pipe.
        "src/process/supervisor.rs",
        "src/process/supervisor/guard.rs",
        // In the place of the program that it could not become.
        "src/process/walls/inside.rs",
        "src/process/walls/nowhere.rs",
        "src/reply/child.rs",
        "src/script_agent/mod.rs",
        "src/view/terminal.rs",
    ];
    assert_eq!(found, expected);
}

/// Characters that cannot be seen: a zero-width space, a soft hyphen, an order turned round, a tag.
const UNSEEN: &str = "a\u{200b}b\u{ad}c\u{202e}d\u{e0041}e";
/// [`UNSEEN`] as shown to users, and the part that fits into a table.
const SEEN: &str = "a\\u{200b}b\\u{ad}c\\u{202e}d\\u{e0041}e";
const BEGINS: &str = "a\\u{200b}b\\u{ad}c";

#[test]
fn what_cannot_be_seen_shows_as_an_escape() {
    let scratch = Scratch::new();
    let says = format!(
        "echo '{}'\necho '{CLAUDE_RESULT}'",
        claude_text(&format!("{UNSEEN} <promise>COMPLETE</promise>"))
    );
    scratch.agent("claude", &says);
    let shows = |command: &mut std::process::Command| {
        let end = Terminal::start(command.env("TERM", "xterm"), 40, 200).end();
        let unseen = ['\u{200b}', '\u{ad}', '\u{202e}', '\u{e0041}'];
        assert!(end.bytes.contains(BEGINS) && !end.bytes.contains(unseen), "{command:?}: {end:?}");
    };
    shows(scratch.ralph("prompt p.md 1 --name").arg(UNSEEN));
    for args in ["", "status", "ls", "report", "logs --agent"] {
        shows(&mut scratch.ralph(args));
    }
    assert_eq!(
        Scratch::finish(
            scratch.ralph("task add").arg(format!("t {}", UNSEEN.replace('\u{202e}', "\\u{202e}")))
        )
        .code,
        Some(0)
    );
    for args in ["task list", "task tree"] {
        shows(&mut scratch.ralph(args));
    }
    scratch.write("ralph.toml", format!("[hooks]\non_end = 'echo {UNSEEN}'\n"));
    let hooks = scratch.run("trust").stdout;
    assert!(hooks.contains(SEEN), "wherever it goes: {hooks}");
    let page = scratch.run("report --html -").stdout;
    assert!(page.contains(SEEN) && !page.contains('\u{200b}'), "{page}");
}

#[test]
fn names_of_branches_and_folders_that_cannot_be_seen_show_as_escapes() {
    let scratch = Scratch::new();
    scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "begin"]);
    scratch.git(&["checkout", "--quiet", "-b", "master"]);
    scratch.agent("claude", "cat > /dev/null; until [ -e \"$HOME/go\" ]; do sleep 0.02; done; exit 1");
    scratch.write("IMPLEMENTATION_PLAN.md", "## Branch: a\u{200b}b\nGoal: g\n- [ ] t\n");
    let mut command = scratch.ralph("loop build --max-retries 0");
    let terminal = Terminal::start(command.env("TERM", "xterm"), 40, 200);
    terminal.wait_for("the status line", |screen| screen.contains("thinking"));
    fs::write(scratch.home().join("go"), "").unwrap();
    let end = terminal.end();
    assert!(end.bytes.contains("a\\u{200b}b") && !end.bytes.contains('\u{200b}'), "{end:?}");

    let folder = scratch.outside().join("p\nq\u{202e}");
    fs::create_dir(&folder).unwrap();
    for args in ["trust", "trust --remove"] {
        let said = Scratch::finish(scratch.ralph(args).current_dir(&folder)).stdout;
        assert!(said.contains("p\\nq\\u{202e} ") && said.lines().count() == 1, "{said:?}");
    }
}
