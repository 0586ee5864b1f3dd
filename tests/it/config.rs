//! `ralph config` on real terminals, and names in the config that are probably settings.

use crate::scratch::Scratch;
use crate::terminal::Terminal;

/// What is told of the names in the config.
const NEAR_MISS: &str = "MAX_CSOT is no setting, and no prompt uses it: did you mean MAX_COST?";

#[test]
fn config_fits_the_terminal_and_is_whole_in_a_pipe() {
    let scratch = Scratch::new();
    let filter = ".text ".repeat(60);
    scratch.write(".ralph/config", format!("AGENT_TYPE=codex\nAGENT_RESPONSE_FILTER='{filter}'\n"));
    let piped = scratch.run("config").stdout;
    assert!(piped.contains(&filter) && !piped.contains('…'), "{piped}");
    for columns in [45, 60, 80, 200] {
        let terminal = Terminal::start(&scratch.ralph("config"), 50, columns);
        let end = terminal.end();
        // As it was written: what is too wide would be broken on the screen.
        let text = anstream::adapter::strip_str(&end.bytes).to_string();
        for line in text.lines() {
            assert!(line.trim_end().chars().count() <= usize::from(columns), "{columns}: {line}");
        }
        assert_eq!(end.code, Some(0));
        assert!(text.contains(".ralph/config line 2") && text.contains('…'), "{columns}: {text}");
        assert!(text.contains("The agent is started as:"), "{columns}: {text}");
    }
}

#[test]
fn a_name_that_is_close_to_a_setting_is_warned_of_everywhere_once() {
    let scratch = Scratch::new();
    scratch.agent("claude", "exit 1");
    scratch.write("specs/a.md", "x");
    scratch.write(".ralph/config", "MY_OWN=1\nMAX_CSOT=5\nMAX_RETRIES=0\n");
    let expected = format!("warning: .ralph/config line 2: {NEAR_MISS}");
    for args in ["config", "config --json", "plan 1"] {
        let run = scratch.run(args);
        assert_eq!(run.stderr.matches(NEAR_MISS).count(), 1, "{args}: {run:?}");
        assert!(run.stderr.contains(&expected), "{args}: {run:?}");
    }
    let run = scratch.run("doctor");
    assert!(run.stdout.contains(&format!("settings      .ralph/config line 2: {NEAR_MISS}")), "{run:?}");
}

#[test]
fn a_name_that_something_uses_is_no_slip() {
    for (file, text) in [
        (".ralph/prompts/build.md", "Spend ${MAX_CSOT} and say <promise>COMPLETE</promise>"),
        ("PROMPT_build.md", "Spend $MAX_CSOT"),
        (".ralph/config", "MAX_CSOT=5\nMAX_COST=$MAX_CSOT\n"),
    ] {
        let scratch = Scratch::new();
        scratch.write(".ralph/config", "MAX_CSOT=5\n");
        scratch.write(file, text);
        let run = scratch.run("config");
        assert!(run.code == Some(0) && run.stderr.is_empty(), "{file}: {run:?}");
        assert!(!scratch.run("doctor").stdout.contains("MAX_CSOT"), "{file}");
    }
}
