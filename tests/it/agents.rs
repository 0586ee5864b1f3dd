//! How agents are started, their inputs, and the results of real streams.

use std::fs;
use std::path::Path;

use crate::scratch::{CLAUDE_RESULT, Run, Scratch, claude_says, claude_text, says};

const DONE: (i32, &str) = (0, "completion signal detected");
const MORE: (i32, &str) = (0, "max iterations reached");
const REPLAN: (i32, &str) = (3, "replan signal detected");
const FAILED: (i32, &str) = (4, "agent failure, not retried");
const NO_MODEL: (i32, &str) = (4, "agent does not have the model");
const NO_CREDIT: (i32, &str) = (4, "account is out of credit");
const AUTH: (i32, &str) = (4, "agent is not logged in");
const OVERLOAD: (i32, &str) = (4, "provider is overloaded for too long");
const LIMIT: (i32, &str) = (4, "usage limit is too far away");
const UNREACHED: (i32, &str) = (4, "no connection to the provider for too long");

/// Plays a recording through the real binary, as the agent on PATH.
fn play(agent: &str, case: &str, (code, reason): (i32, &str)) -> Run {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(agent).join(case);
    let file = |extension: &str| format!("{}.{extension}", recording.display());
    let exit: serde_json::Value = serde_json::from_slice(&fs::read(file("exit.json")).unwrap()).unwrap();
    let scratch = Scratch::new();
    let stderr = file("stderr");
    scratch.agent(
        agent,
        &format!(
            "cat > /dev/null; cat '{}'; [ ! -e '{stderr}' ] || cat '{stderr}' >&2; exit {}",
            file("ndjson"),
            exit["exit"]
        ),
    );
    let mut command = scratch.ralph("prompt p.md 1 --max-retries 0 --agent");
    // A limit is waited for by design, at most this long.
    let run = Scratch::finish(command.arg(agent).env("RALPH_MAX_LIMIT_WAIT", "1s"));
    assert_eq!(run.code, Some(code), "{agent}/{case}: {run:?}");
    assert!(run.stdout.contains(&format!("Exit Reason: {reason}\n")), "{agent}/{case}: {run:?}");
    assert!(!run.stderr.contains(r#"{"type""#), "{agent}/{case}: the display shows JSON: {run:?}");
    assert_eq!(
        scratch.bytes(".ralph/last_agent_output"),
        fs::read(file("ndjson")).unwrap(),
        "{agent}/{case}"
    );
    run
}

/// Plays every recording of an agent.
fn play_all(agent: &str, cases: &[(&str, (i32, &str))]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(agent);
    let mut recorded: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".ndjson")?.to_owned()))
        .collect();
    recorded.sort();
    assert_eq!(
        recorded,
        cases.iter().map(|(case, _)| *case).collect::<Vec<_>>(),
        "every recording of {agent}"
    );
    for (case, expected) in cases {
        play(agent, case, *expected);
    }
}

#[test]
fn recordings_of_claude() {
    play_all(
        "claude",
        &[
            ("background_bash", DONE),
            ("complete", DONE),
            ("complete+partial", DONE),
            ("e401", AUTH),
            ("e429long", LIMIT),
            ("empty", FAILED),
            ("flaky429", DONE),
            ("hang+int", FAILED),
            ("loop+budget", FAILED),
            ("loop+turns2", FAILED),
            ("midtext", MORE),
            ("multi", MORE),
            ("nosigil", MORE),
            ("not_logged_in", AUTH),
            ("oauth401", AUTH),
            ("overload529", OVERLOAD),
            ("refusal", FAILED),
            ("replan", REPLAN),
            ("schedule_wakeup", DONE),
            ("sleep+term", FAILED),
            ("think", MORE),
            ("tool", DONE),
            ("tool+root", FAILED),
            ("toolsigil", MORE),
            ("unified429+oauth", LIMIT),
        ],
    );
}

#[test]
fn recordings_of_codex() {
    play_all(
        "codex",
        &[
            ("complete", DONE),
            ("content_filter", FAILED),
            ("e401", AUTH),
            ("e429", LIMIT),
            ("empty", FAILED),
            ("limit_near", LIMIT),
            ("maxtok", FAILED),
            ("midtext", MORE),
            ("multi", MORE),
            ("nosigil", MORE),
            ("replan", REPLAN),
            ("sleep+int", FAILED),
            ("think", MORE),
            ("tool", DONE),
            ("toolsigil", MORE),
        ],
    );
}

#[test]
fn recordings_of_the_others() {
    play_all(
        "cline",
        &[
            ("complete", DONE),
            ("complete+stdinonly", FAILED),
            ("e401", AUTH),
            ("empty", FAILED),
            ("replan", REPLAN),
            ("tool", DONE),
            ("toolsigil", MORE),
        ],
    );
    play_all(
        "gemini",
        &[
            ("complete", DONE),
            ("e401", AUTH),
            ("e403", AUTH),
            ("e404", NO_MODEL),
            ("e503", OVERLOAD),
            ("empty", FAILED),
            ("multi", MORE),
            ("no_auth_method", AUTH),
            ("replan", REPLAN),
            ("tool", DONE),
            ("untrusted", FAILED),
        ],
    );
    play_all(
        "opencode",
        &[
            ("complete", DONE),
            ("content_filter", FAILED),
            ("e401", AUTH),
            ("maxtok", FAILED),
            ("multi", MORE),
            ("replan", REPLAN),
            ("tool", DONE),
        ],
    );
    play_all(
        "qwen",
        &[
            ("complete", DONE),
            ("content_filter", MORE),
            ("e401", AUTH),
            ("e403", AUTH),
            ("e404", NO_MODEL),
            ("econtext", FAILED),
            ("empty", FAILED),
            ("maxtok", MORE),
            ("multi", MORE),
            ("nosigil", MORE),
            ("replan", REPLAN),
            ("tool", DONE),
            ("unreachable", UNREACHED),
        ],
    );
}

#[test]
fn recordings_of_droid_pi_and_amp() {
    play_all(
        "droid",
        &[
            ("complete", DONE),
            ("content_filter", FAILED),
            ("cut", UNREACHED),
            ("e401", AUTH),
            ("e403", AUTH),
            ("e404", NO_MODEL),
            ("e429", LIMIT),
            ("econtext", FAILED),
            ("empty", FAILED),
            ("equota", NO_CREDIT),
            ("multi", MORE),
            ("no_such_model", NO_MODEL),
            ("nosigil", MORE),
            ("not_logged_in", AUTH),
            ("replan", REPLAN),
            ("tool", DONE),
            ("unreachable", UNREACHED),
        ],
    );
    play_all(
        "pi",
        &[
            ("complete", DONE),
            ("content_filter", FAILED),
            ("e401", AUTH),
            ("e403", AUTH),
            ("e404", NO_MODEL),
            ("e429", LIMIT),
            ("e503", OVERLOAD),
            ("econtext", FAILED),
            ("empty", FAILED),
            ("equota", NO_CREDIT),
            ("maxtok", FAILED),
            ("multi", MORE),
            ("nosigil", MORE),
            ("replan", REPLAN),
            ("tool", DONE),
        ],
    );
    play_all("amp", &[("complete", FAILED)]);
}

#[test]
fn the_display_tells_what_happened() {
    let run = play("claude", "tool", DONE);
    for text in ["I will run a command.\n", "▸ Bash echo hi\n", "All tasks are finished", "claude-opus-5-5"]
    {
        assert!(run.stderr.contains(text), "{text}: {run:?}");
    }
    assert!(run.stdout.contains("Input Tokens: 2300\nOutput Tokens: 84\nAgent Cost: $0.0033\n"), "{run:?}");

    let run = play("claude", "tool+root", FAILED);
    assert!(run.stderr.contains("IS_SANDBOX=1") && run.stderr.contains("AGENT_ARGS"), "{run:?}");
    let run = play("claude", "flaky429", DONE);
    assert!(run.stderr.contains("↻ the agent tries again, up to 10 times: 429"), "{run:?}");
    let run = play("gemini", "tool", DONE);
    assert!(run.stderr.contains("I will run a command.\n▸ run_shell_command echo hi\n"), "{run:?}");
}

#[test]
fn an_error_without_words_is_named_by_its_kind() {
    let scratch = Scratch::new();
    scratch.agent("claude", &says(&[r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#]));
    let run = scratch.run("prompt p.md 1 --max-retries 0");
    assert_eq!(run.stderr.find("error max turns"), run.stderr.rfind("error max turns"), "once: {run:?}");
}

/// An agent of any name that writes its arguments, one per line, into a file, and then says COMPLETE.
fn reports_arguments() -> String {
    format!("printf '%s\\n' \"$@\" > args.txt\n{}", claude_says("<promise>COMPLETE</promise>"))
}

fn completes(scratch: &Scratch, args: &str) -> Run {
    let run = scratch.run(args);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("Exit Reason: completion signal detected\n"), "{run:?}");
    run
}

#[test]
fn a_preset_has_its_own_arguments() {
    let scratch = Scratch::new();
    scratch.agent("claude", &reports_arguments());
    completes(&scratch, "prompt p.md 1");
    assert_eq!(
        scratch.read("args.txt"),
        "--dangerously-skip-permissions\n--output-format\nstream-json\n--verbose\n-p\n"
    );

    let said = r#"{"type":"agent_event","event":{"type":"content_end","contentType":"text","text":"<promise>COMPLETE</promise>"}}"#;
    let end = r#"{"type":"run_result","finishReason":"completed","text":"","usage":{}}"#;
    scratch.agent("cline", &format!("printf '%s\\n' \"$@\" > args.txt\n{}", says(&[said, end])));
    completes(&scratch, "prompt p.md 1 --agent cline");
    assert_eq!(scratch.read("args.txt"), "--json\nFollow the instructions given on standard input.\n");
    scratch.write(".ralph/config", "AGENT_TYPE=cline\nAGENT_ARGS='--json -P \"my provider\"'\n");
    completes(&scratch, "prompt p.md 1");
    assert_eq!(
        scratch.read("args.txt"),
        "--json\n-P\nmy provider\nFollow the instructions given on standard input.\n"
    );
}

#[test]
fn agent_cli_and_args() {
    let scratch = Scratch::new();
    scratch.agent("my-agent", &reports_arguments());
    for (config, args) in [
        ("AGENT_CLI='my-agent --fast \"two words\"'\nAGENT_ARGS=-p\n", "--fast\ntwo words\n-p\n"),
        ("AGENT_CLI=my-agent\nAGENT_ARGS=\"a 'b  c' \\\"d e\\\" f\\\\ g ''\"\n", "a\nb  c\nd e\nf g\n\n"),
        ("AGENT_CLI=my-agent\nAGENT_ARGS='$HOME $(id) *.md ~'\n", "$HOME\n$(id)\n*.md\n~\n"),
    ] {
        scratch.write(".ralph/config", config);
        completes(&scratch, "prompt p.md 1");
        assert_eq!(scratch.read("args.txt"), args, "{config}");
    }
    scratch.write(".ralph/config", "AGENT_CLI=my-agent\nAGENT_ARGS=\n");
    completes(&scratch, "prompt p.md 1");
    assert!(
        scratch.read("args.txt").starts_with("--dangerously"),
        "an empty override is the preset's default"
    );
}

#[test]
fn agent_cli_may_be_a_path_with_blanks() {
    let scratch = Scratch::new();
    scratch.agent("my-agent", &reports_arguments());
    fs::create_dir(scratch.path("my tools")).unwrap();
    fs::copy(scratch.outside().join("bin/my-agent"), scratch.path("my tools/agent")).unwrap();
    let absolute = scratch.path("my tools/agent");
    for cli in ["my tools/agent", "./my tools/agent", absolute.to_str().unwrap()] {
        scratch.write(".ralph/config", format!("AGENT_CLI='{cli}'\nAGENT_ARGS=-x\n"));
        // The path is the project's, from any folder in it.
        for folder in ["", "specs"] {
            let mut command = scratch.ralph("prompt 1");
            let run = Scratch::finish(command.arg(scratch.path("p.md")).current_dir(scratch.path(folder)));
            assert_eq!(run.code, Some(0), "{cli} from '{folder}': {run:?}");
            assert_eq!(scratch.read("args.txt"), "-x\n");
            fs::remove_file(scratch.path("args.txt")).unwrap();
        }
    }
}

#[test]
fn response_and_result_filters() {
    let scratch = Scratch::new();
    let lines = [r#"{"say":"<promise>COM"}"#, r#"{"say":"PLETE</promise>","price":0.25}"#];
    scratch.agent("my-agent", &says(&lines));
    scratch.write(
        ".ralph/config",
        "AGENT_TYPE=custom\nAGENT_CLI=my-agent\nAGENT_RESPONSE_FILTER='.say'\n\
         AGENT_RESULT_FILTER='select(.price) | {cost_usd: .price, input_tokens: 7, output_tokens: 8}'\n",
    );
    let run = completes(&scratch, "prompt p.md 1");
    assert!(run.stdout.contains("Input Tokens: 7\nOutput Tokens: 8\nAgent Cost: $0.2500\n"), "{run:?}");
    assert!(run.stderr.contains("<promise>COMPLETE</promise>"), "the text is the display: {run:?}");

    scratch.agent("my-agent", &says(&[lines[0], lines[1], r#"{"broken":"out of coffee"}"#]));
    scratch.write(
        ".ralph/config",
        "AGENT_TYPE=custom\nAGENT_CLI=my-agent\nAGENT_RESPONSE_FILTER='jq -r .say'\n\
         AGENT_RESULT_FILTER='select(.broken) | {error: .broken}'\n",
    );
    let run = scratch.run("prompt p.md 1 --max-retries 0");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stderr.contains("out of coffee"), "{run:?}");
}

#[test]
fn a_custom_agent_without_filters_is_judged_by_its_exit_code() {
    let scratch = Scratch::new();
    scratch.agent("my-agent", "cat > /dev/null; echo 'plain words: <promise>COMPLETE</promise>'");
    scratch.write(".ralph/config", "AGENT_TYPE=custom\nAGENT_CLI=my-agent\n");
    let run = scratch.run("prompt p.md 2");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("Exit Reason: max iterations reached\n"), "its text is shown, never scanned");
    assert!(run.stderr.contains("plain words"), "{run:?}");
    scratch.agent("my-agent", "exit 3");
    assert_eq!(scratch.run("prompt p.md 1 --max-retries 0").code, Some(4));
}

#[test]
fn an_unknown_program_is_told_at_the_start_with_what_to_do() {
    let scratch = Scratch::new();
    let notice = "ralph does not know 'my-agent': its words cannot be read, so that COMPLETE does not end this loop; write 'acp:'";
    let notices = |run: &Run| run.stderr.matches(notice).count();
    for prints in
        [r#"{"role":"assistant"}"#, "It is done: <promise>COMPLETE</promise>", "I work.", "{ I work."]
    {
        scratch.agent("my-agent", &format!("cat > /dev/null; echo '{prints}'"));
        for agent in ["my-agent", "my-agent -p"] {
            let run = Scratch::finish(scratch.ralph("prompt p.md 2 --agent").arg(agent));
            assert_eq!((run.code, notices(&run)), (Some(0), 1), "{prints}: {run:?}");
            let (before, _) = run.stderr.split_once(prints).unwrap();
            assert!(before.contains("or set AGENT_FORMAT or AGENT_RESPONSE_FILTER"), "{prints}: {run:?}");
            assert!(!run.stderr.contains("AGENT_FORMAT="), "{prints}: {run:?}");
        }
    }
    scratch.write("fix/RALPH.md", "---\nagent: my-agent\n---\nDo it.\n");
    let run = scratch.run("run fix -n 2");
    assert!(notices(&run) == 1 && !run.stderr.contains("AGENT_FORMAT"), "no settings count there: {run:?}");
    // A user's response filter reads it, a result filter does not.
    for (filter, expected) in [("AGENT_RESPONSE_FILTER=.say", 0), ("AGENT_RESULT_FILTER='{model}'", 1)] {
        scratch.write(".ralph/config", format!("AGENT_TYPE=custom\nAGENT_CLI=my-agent\n{filter}\n"));
        let run = scratch.run("prompt p.md 1");
        assert_eq!(run.stderr.matches("its words cannot be read").count(), expected, "{filter}: {run:?}");
    }
}

#[test]
fn a_program_that_prints_what_a_known_agent_prints_is_read_by_its_filters() {
    let scratch = Scratch::new();
    scratch.agent("my-agent", &claude_says("<promise>COMPLETE</promise>"));
    let offer = "'my-agent' prints what claude prints: AGENT_FORMAT=claude reads it";
    let run = scratch.run("prompt p.md 2 --agent my-agent");
    assert!(run.stdout.contains("Exit Reason: max iterations reached"), "{run:?}");
    assert_eq!(run.stderr.matches(offer).count(), 1, "{run:?}");
    let with = |format: &str, agent: &str| {
        Scratch::finish(scratch.ralph("prompt p.md 2 --agent").arg(agent).env("RALPH_AGENT_FORMAT", format))
    };
    let run = with("claude", "my-agent");
    assert!(run.stdout.contains("Exit Reason: completion signal detected"), "{run:?}");
    assert!(run.stdout.contains("Agent Cost: $") && !run.stderr.contains("cannot be read"), "{run:?}");
    let refused = with("nonsense", "my-agent");
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("AGENT_FORMAT is 'nonsense', and ralph knows the output of these: "),
        "{refused:?}"
    );
    let refused = with("claude", "acp:my-agent");
    assert!(refused.code == Some(1) && refused.stderr.contains("AGENT_FORMAT is about lines"), "{refused:?}");
}

#[test]
fn display_filters() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("one\ntwo <promise>COMPLETE</promise>"));
    let text = r#"select(.type=="assistant") | .message.content[].text"#;
    for (filter, shown) in [
        (format!("{text} | ascii_upcase"), "ONE\nTWO <PROMISE>COMPLETE</PROMISE>\n"),
        (format!("jq -r '{text}'"), "one\ntwo <promise>COMPLETE</promise>\n"),
        (format!("jq -rj --unbuffered '{text}, \"|\"'"), "one\ntwo <promise>COMPLETE</promise>|\n"),
        ("sed -n 's/.*\"type\":\"\\([a-z]*\\)\".*/<\\1>/p' | tr a-z A-Z".to_owned(), "<TEXT>\n<RESULT>\n"),
        ("grep -c . && echo \"$GREETING $RALPH_MODE\"".to_owned(), "2\nhello prompt\n"),
    ] {
        let quoted = shlex::try_quote(&filter).unwrap();
        scratch.write(".ralph/config", format!("export GREETING=hello\nAGENT_DISPLAY_FILTER={quoted}\n"));
        let run = completes(&scratch, "prompt p.md 1");
        assert!(run.stderr.starts_with(shown), "{filter}: {run:?}");
    }
}

#[test]
fn the_environment_of_agents() {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("env > env.txt; pwd >> env.txt\n{}", claude_says("more")));
    scratch.write(
        ".ralph/config",
        "export TOKEN=of-the-config\nPRIVATE=1\nexport EMPTY=\nexport WITH='two words'\nSPECS_DIR=docs/specs\n",
    );
    fs::create_dir_all(scratch.path("docs/specs")).unwrap();
    let mut command = scratch.ralph("plan 2");
    let run = Scratch::finish(command.env("FROM_OUTSIDE", "kept").current_dir(scratch.path("docs")));
    assert_eq!(run.code, Some(0), "{run:?}");
    let env = scratch.read("env.txt");
    for line in [
        "TOKEN=of-the-config",
        "EMPTY=",
        "WITH=two words",
        "FROM_OUTSIDE=kept",
        "RALPH_MODE=plan",
        "RALPH_ITERATION=2",
        "RALPH_HOME=.ralph",
        "RALPH_SPECS_DIR=docs/specs",
        scratch.root().canonicalize().unwrap().to_str().unwrap(),
    ] {
        assert!(env.lines().any(|found| found == line), "{line}: {env}");
    }
    assert!(env.lines().any(|line| line.len() > 10 && line.starts_with("RALPH_RUN=")), "{env}");
    assert!(!env.contains("PRIVATE="), "{env}");
}

/// An agent that keeps the prompt it got.
fn keeps_prompt() -> String {
    format!("cat > got.txt; cat > /dev/null\n{}", claude_says("more"))
}

#[test]
fn the_prompt_arrives_byte_for_byte() {
    let scratch = Scratch::new();
    scratch.agent("claude", &keeps_prompt());
    scratch.write(".ralph/config", "TEST_CMD='make \"test\" $HOME'\nSPECS_DIR=specs\nexport A=1\n");
    scratch.write(
        "p.md",
        "${TEST_CMD} | $TEST_CMD | ${A}$A | ${MODE} ${SPECS_DIR} ${RALPH_HOME} $ITERATION/${MAX_ITERATIONS}\n\
         $HOME $1 $$ $(id) `id` ${HOME} ${HOME:-x} \\$MODE $MODEL ${MODEL} $ {A} 100$ é ✓\t\r\n\
         <promise>COMPLETE</promise> no newline at the end",
    );
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    assert_eq!(
        scratch.read("got.txt"),
        "make \"test\" $HOME | make \"test\" $HOME | 11 | prompt specs .ralph 1/1\n\
         $HOME $1 $$ $(id) `id` ${HOME} ${HOME:-x} \\prompt $MODEL ${MODEL} $ {A} 100$ é ✓\t\r\n\
         <promise>COMPLETE</promise> no newline at the end"
    );
}

#[test]
fn a_large_prompt_arrives_whole() {
    let scratch = Scratch::new();
    scratch.agent("claude", &keeps_prompt());
    let large = format!("<promise>COMPLETE</promise>\n{}", "0123456789 äöü\n".repeat(120_000));
    scratch.write("p.md", &large);
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    assert!(scratch.read("got.txt") == large);

    scratch.agent("claude", &format!("exec < /dev/null\n{}", claude_says("I did not listen.")));
    assert_eq!(
        scratch.run("prompt p.md 1").code,
        Some(0),
        "an agent that does not read is judged by its words"
    );
}

#[test]
fn the_prompt_is_read_again_every_iteration() {
    let scratch = Scratch::new();
    let body = "cat >> got.txt; echo \"<promise>COMPLETE</promise> after $RALPH_ITERATION\" > p.md";
    scratch.agent("claude", &format!("{body}\n{}", claude_says("more")));
    scratch.write("p.md", "<promise>COMPLETE</promise> first\n");
    assert_eq!(scratch.run("prompt p.md 3").code, Some(0));
    let signal = "<promise>COMPLETE</promise>";
    assert_eq!(scratch.read("got.txt"), format!("{signal} first\n{signal} after 1\n{signal} after 2\n"));
}

#[test]
fn a_retry_gets_the_same_prompt() {
    let scratch = Scratch::new();
    scratch.agent("claude", "cat >> got.txt; echo changed > p.md; exit 1");
    scratch.write("p.md", "<promise>COMPLETE</promise> $ITERATION\n");
    assert_eq!(scratch.run("prompt p.md 3 --max-retries 1").code, Some(4));
    assert_eq!(scratch.read("got.txt"), "<promise>COMPLETE</promise> 1\n".repeat(2));
}

#[test]
fn files_lost_while_the_loop_runs() {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("rm p.md\n{}", claude_says("more")));
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("Total Iterations: 1\n") && run.stdout.contains("Exit Code: 1\n"), "{run:?}");
    assert!(run.stderr.contains("p.md not found"), "{run:?}");

    scratch.agent("claude", &format!("rm .ralph/implementation_plan.md\n{}", claude_says("more")));
    let run = scratch.run("build 3");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("Implementation plan not found. Run 'ralph plan' first."), "{run:?}");
    assert!(scratch.session_log().contains("Exit Code: 2\n"));
}

#[test]
fn an_agent_that_vanishes_ends_the_loop() {
    let scratch = Scratch::new();
    let agent = scratch.outside().join("bin/claude");
    scratch.agent("claude", &format!("rm '{}'\n{}", agent.display(), claude_says("more")));
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("Exit Reason: agent cannot be started\n"), "{run:?}");
}

#[test]
fn prompts_of_the_ralph_dir_come_before_the_built_in_ones() {
    let scratch = Scratch::new();
    scratch.agent("claude", &keeps_prompt());
    for mode in ["plan 1", "build 1"] {
        assert_eq!(scratch.run(mode).code, Some(0));
        let prompt = scratch.read("got.txt");
        assert!(prompt.contains("<promise>COMPLETE</promise>") && prompt.contains("specs"), "{prompt}");
        assert!(!prompt.contains("${"), "every variable has a value: {prompt}");
    }
    scratch.write(".ralph/prompts/build.md", "Mine: ${MODE}.");
    assert_eq!(scratch.run("build 1").code, Some(0));
    assert_eq!(scratch.read("got.txt"), "Mine: build.");
}

#[test]
fn an_agent_that_says_it_all_and_stays_is_ended() {
    let scratch = Scratch::new();
    let said = claude_text("<promise>COMPLETE</promise>");
    scratch.agent("claude", &format!("{}\nexec sleep 1000", says(&[&said, CLAUDE_RESULT])));
    scratch.write(".ralph/config", "AGENT_GRACE=1\n");
    completes(&scratch, "prompt p.md 1");
    scratch.assert_nothing_left();
}
