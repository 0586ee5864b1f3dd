//! `ralph logs --agent`: what agents said and did, attempt by attempt.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use crate::scratch::{Scratch, Started, claude_says, claude_text, finish, wait_for};

/// A project whose agent fails once, and then says what its iteration is.
fn with_a_retry() -> Scratch {
    let scratch = Scratch::new();
    let says = claude_says("This is the second try. <promise>COMPLETE</promise>");
    scratch.agent(
        "claude",
        &format!("if [ ! -e tried ]; then touch tried; echo broken >&2; exit 9; fi\n{says}"),
    );
    let run = scratch.run("prompt p.md 3 --max-retries 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    scratch
}

/// The lines of a transcript without its times.
fn lines(scratch: &Scratch, args: &str) -> Vec<String> {
    let run = scratch.run(args);
    assert_eq!(run.code, Some(0), "{run:?}");
    let untimed = |line: &str| match line.split_once(" · 20") {
        Some((begin, _)) => begin.to_owned(),
        None => line.split(" · ").next().unwrap_or_default().to_owned(),
    };
    run.stdout.lines().map(untimed).collect()
}

#[test]
fn a_transcript_has_every_attempt_or_one() {
    let scratch = with_a_retry();
    let all = lines(&scratch, "logs --agent");
    assert_eq!(all[0], "▶ Iteration 1");
    assert!(all[1].starts_with("✗ Iteration 1 failed after "), "{all:?}");
    assert!(all[1].ends_with(": claude exited with code 9: broken"), "{all:?}");
    assert_eq!(all[3], "▶ Iteration 1, retry 1, attempt 2 of this run");
    assert_eq!(all[4], "This is the second try. <promise>COMPLETE</promise>");
    assert!(all[5].starts_with("✓ Iteration 1 completed in "), "{all:?}");
    assert_eq!((all[6].as_str(), all.len()), ("■ done: completion signal detected", 7));

    assert_eq!(lines(&scratch, "logs --agent --attempt 1"), all[..3]);
    assert_eq!(lines(&scratch, "logs prompt --agent --attempt 2"), all[3..]);
    assert_eq!(lines(&scratch, "logs --agent --lines 2"), all[5..]);
    let raw = |args: &str| scratch.run(&format!("logs --raw {args}")).stdout;
    assert_eq!(raw("--attempt 1") + &raw("--attempt 2"), raw(""));
    assert!(raw("--attempt 2").contains("This is the second try."), "{}", raw("--attempt 2"));
    let run = scratch.run("logs --agent --attempt 3");
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr.ends_with("\nerror: --attempt 3: 'prompt' has made 2 attempts in this run\n"),
        "{run:?}"
    );
    assert!(scratch.run("logs --agent --attempt 0").stderr.contains("whole number"));
}

#[test]
fn the_bytes_of_one_attempt_are_its_own() {
    let scratch = Scratch::new();
    // An agent that looks at the log of its own loop prints what is written there between attempts.
    let looks = r#"[ "$RALPH_ITERATION" = 2 ] && cat .ralph/logs/session-*.log; say "this is $RALPH_ITERATION"; result"#;
    scratch.agent("claude", looks);
    assert_eq!(scratch.run("prompt p.md 3").code, Some(0));
    let said = |args: &str| {
        let run = scratch.run(args);
        assert_eq!(run.code, Some(0), "{args}: {run:?}");
        run.stdout
    };
    let whole = said("logs --agent --raw");
    let parts = [1, 2, 3].map(|number| said(&format!("logs --agent --raw --attempt {number}")));
    assert_eq!(parts.concat(), whole);
    for (part, number) in parts.iter().zip(1..) {
        let text = format!("this is {number}");
        assert!(part.contains(&format!("ITERATION {number}\n")) && part.contains(&text), "{part}");
    }
    assert!(parts[1].contains("this is 1") && !parts[1].contains("this is 3"), "{}", parts[1]);
    assert!(!parts[0].contains("this is 2"), "{}", parts[0]);
    assert!(parts[2].ends_with(&said("logs --raw --attempt 3 --lines 4")));
    for (args, words) in [
        ("logs --raw --attempt 4", "--attempt 4: 'prompt' has made 3 attempts in this run"),
        ("logs --raw --attempt 1 --follow", "leave out --raw, or --attempt"),
    ] {
        let run = scratch.run(args);
        assert!(run.code == Some(1) && run.stderr.contains(words), "{run:?}");
    }

    // What is said of a loop that is forgotten can be typed, and it is not another project's loop that is shown.
    let other = scratch.outside().join("other");
    scratch.git(&["init", "--quiet", other.to_str().unwrap()]);
    fs::copy(scratch.path("p.md"), other.join("p.md")).unwrap();
    let run = Scratch::finish(scratch.ralph("prompt p.md 1").current_dir(&other));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(scratch.run("clean prompt").code, Some(0));
    assert_eq!(said("logs --raw"), whole);
    assert!(said("logs --agent").contains("this is 3") && said("logs prompt --agent").contains("this is 3"));
    assert_eq!(said("logs prompt --raw"), whole);
    assert_eq!(said("logs prompt --raw --attempt 2"), parts[1]);
    let run = scratch.run("logs prompt");
    assert!(run.code == Some(1) && run.stderr.contains("'ralph logs prompt --agent'"), "{run:?}");
}

#[test]
fn a_transcript_outlives_its_state_and_can_be_of_an_earlier_run() {
    let scratch = with_a_retry();
    let before = lines(&scratch, "logs --agent");
    let first = fs::read_dir(scratch.path(".ralph/runs")).unwrap().next().unwrap().unwrap().file_name();
    let first = first.to_str().unwrap().to_owned();
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    assert_ne!(lines(&scratch, "logs --agent"), before);
    assert_eq!(lines(&scratch, &format!("logs --agent --run {first}")), before);
    assert_eq!(lines(&scratch, &format!("logs {first} --agent")), before);
    let run = scratch.run("logs --agent --run 20260101");
    assert!(run.code == Some(1) && run.stderr.contains("'ralph history' lists"), "{run:?}");
    let run = scratch.run(&format!("logs nobody --agent --run {first}"));
    assert_eq!(run.stderr, format!("error: run {first} has the loops prompt: say which\n"), "{run:?}");

    assert_eq!(scratch.run("clean").code, Some(0));
    assert_eq!(
        lines(&scratch, "logs prompt --agent").last().map(String::as_str),
        Some("■ done: completion signal detected")
    );
    let run = scratch.run("logs nobody --agent");
    assert!(run.code == Some(1) && run.stderr.contains("no loop is called 'nobody'"), "{run:?}");
}

#[test]
fn torn_foreign_and_newer_lines_are_passed_over() {
    let scratch = with_a_retry();
    let whole = lines(&scratch, "logs --agent");
    let logs = scratch.session_logs();
    let events = logs[0].with_extension("events.jsonl").canonicalize().unwrap();
    let text = fs::read_to_string(&events).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let newer = first.replace("\"v\":1", "\"v\":2");
    let odd = format!("{first}\n{newer}\n[]\n\u{0}\u{1f980}\nnoise\n{rest}{{\"agent\":\"cla");
    fs::write(&events, odd).unwrap();
    assert_eq!(lines(&scratch, "logs --agent"), whole);
    // Without any, there is still what the agents wrote.
    fs::remove_file(&events).unwrap();
    assert!(scratch.run("logs --agent").stdout.contains("SESSION SUMMARY"));
}

#[test]
fn what_an_agent_says_is_followed_while_it_says_it_and_its_silence_is_told() {
    let scratch = Scratch::new();
    let wait = |name: &str| format!("while [ ! -e \"$HOME/{name}\" ]; do sleep 0.02; done");
    let says = |text: &str| format!("printf '%s\\n' '{}'", claude_text(text));
    scratch.agent(
        "claude",
        &[
            says("The first."),
            wait("go"),
            says("The second."),
            wait("end"),
            claude_says("<promise>COMPLETE</promise>"),
        ]
        .join("\n"),
    );
    let home = scratch.outside().join("home");
    let ralph = Started::new(&scratch, "prompt p.md 1");
    wait_for("the attempt", || scratch.run("logs --agent").stdout.contains("The first.").then_some(()));

    let path = scratch.outside().join("followed");
    let mut follow = scratch.ralph("logs --agent --follow");
    let follow = follow.stdout(File::create(&path).unwrap()).spawn().unwrap();
    let followed = |text: &str| {
        wait_for(text, || fs::read_to_string(&path).unwrap().contains(text).then_some(()));
    };
    followed("The first.");
    // As if it had said nothing for long.
    let log = scratch.session_logs().pop().unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(12 * 60 + 5);
    File::options().append(true).open(log).unwrap().set_modified(long_ago).unwrap();
    let status = scratch.run("status").stdout;
    let [heads, row] = status.lines().collect::<Vec<_>>()[..] else { panic!("{status}") };
    let at = heads.find("SILENT").unwrap();
    assert!(row[at..].starts_with("12m "), "{status}");

    fs::write(home.join("go"), "").unwrap();
    followed("The second.");
    fs::write(home.join("end"), "").unwrap();
    followed("■ done: completion signal detected");
    assert_eq!((ralph.finish().code, finish(follow).code), (Some(0), Some(0)));
    assert!(!scratch.run("status").stdout.contains("SILENT"));
}
