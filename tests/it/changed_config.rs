//! Settings that changed since a loop began: `ralph resume` reports them, and asks for confirmation if an agent may
//! have changed them.

use crate::policies::{agent, assert_end, attempts, project};
use crate::scratch::{Scratch, Started, wait_for};

const REFUSED: &str =
    "ralph.toml was changed inside an attempt of loop 'prompt': look at it, and go on with --accept-config";
const TOLD: &str = "ralph.toml is not as it was when loop 'prompt' began";
/// A forged setting of an agent.
const TRUE: &str = "printf '[validation]\\ncommand = \"true\"\\n' > ralph.toml\n";

/// A loop at its limit, with a validation that fails; its agent does this.
fn at_limit(body: &str) -> Scratch {
    let scratch = project(&format!("{body}\ncomplete"));
    scratch.write("ralph.toml", "[validation]\ncommand = \"false\"\n");
    let run = scratch.run("prompt p.md 1");
    assert_end(&scratch, &run, 4, "unproven", "failed");
    scratch
}

/// A loop that was killed in its first attempt, which had changed the validation.
fn cut_off() -> Scratch {
    let scratch = project(&format!("{TRUE}touch ../changed; sleep 600"));
    let started = Started::new(&scratch, "prompt p.md 2");
    wait_for("the change", || crate::policies::beside(&scratch, "changed").exists().then_some(()));
    drop(started);
    scratch
}

#[test]
fn what_an_agent_has_changed_is_not_taken_up_unseen() {
    let scratch = at_limit(TRUE);
    for args in ["resume prompt --max-iterations 2", "prompt p.md 1 --resume"] {
        let run = scratch.run(args);
        assert!(run.code == Some(1) && run.stderr.contains(REFUSED), "{run:?}");
        assert_eq!(attempts(&scratch), 1);
    }
    // With the original content, it resumes.
    let changed = scratch.read("ralph.toml");
    scratch.write("ralph.toml", "[validation]\ncommand = \"false\"\n");
    agent(&scratch, "complete");
    let run = scratch.run("resume prompt --max-iterations 2");
    assert!(run.code == Some(4) && !run.stderr.contains(TOLD), "{run:?}");

    let scratch = at_limit(TRUE);
    assert_eq!(scratch.read("ralph.toml"), changed);
    let run = scratch.run("resume prompt --max-iterations 2 --accept-config");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(run.stderr.contains(TOLD), "{run:?}");
}

#[test]
fn who_rewrites_what_a_loop_began_with_has_made_the_records_of_another() {
    let scratch = at_limit(TRUE);
    let state = scratch.state();
    let configs = state["config"].as_array().unwrap();
    let changed = configs.iter().find(|config| config.get("latest").is_some()).unwrap();
    let [began, latest] = ["began", "latest"].map(|key| changed[key].as_str().unwrap());
    let text = scratch
        .read(".ralph/state.toml")
        .replace(began, latest)
        .replace("changed_inside = true", "changed_inside = false");
    scratch.write(".ralph/state.toml", text);
    let run = scratch.run("resume prompt --max-iterations 2");
    assert!(run.code == Some(1) && run.stderr.contains("not written by you on this machine"), "{run:?}");
    assert_eq!(attempts(&scratch), 1);
    let run = scratch.run("prompt p.md 1 --resume");
    assert!(run.code == Some(1) && run.stderr.contains("go on with --accept-config"), "{run:?}");
    assert_eq!(attempts(&scratch), 1);
}

#[test]
fn what_was_accepted_once_says_nothing_about_the_next_time() {
    let scratch = at_limit("echo >> ralph.toml");
    let run = scratch.run("resume prompt --max-iterations 2 --accept-config");
    assert_end(&scratch, &run, 4, "unproven", "failed");
    let run = scratch.run("resume prompt --max-iterations 3");
    assert!(run.code == Some(1) && run.stderr.contains(REFUSED), "{run:?}");
    assert_eq!(attempts(&scratch), 2);
}

#[test]
fn what_was_accepted_by_hand_says_nothing_about_the_next_time_either() {
    for line in ["resume prompt --max-iterations 2 --accept-config", "prompt p.md 1 --resume --accept-config"]
    {
        let scratch = at_limit("echo >> ralph.toml");
        let run = scratch.run(line);
        assert_end(&scratch, &run, 4, "unproven", "failed");
        let argv = scratch.state()["argv"].to_string();
        assert!(!argv.contains("--accept-config"), "{line}: {argv}");
        let run = scratch.run("resume prompt --max-iterations 9");
        assert!(run.code == Some(1) && run.stderr.contains(REFUSED), "{line}: {run:?}");
        assert_eq!(attempts(&scratch), 2, "{line}");
    }
}

#[test]
fn the_front_matter_of_a_ralph_md_is_one_of_the_settings() {
    let scratch = project(
        "cat >> fix/RALPH.md <<< more; sed -i 's/^agent: claude/& --other/' fix/RALPH.md; say hi; ok",
    );
    scratch.write("fix/RALPH.md", "---\nagent: claude\n---\nGo.\n");
    assert_eq!(scratch.run("run fix -n 1").code, Some(0));
    let run = scratch.run("resume fix --max-iterations 2");
    let refused = "the front matter of fix/RALPH.md was changed inside an attempt of loop 'fix'";
    assert!(run.code == Some(1) && run.stderr.contains(refused), "{run:?}");
    // The prompt below may change.
    scratch.write("fix/RALPH.md", "---\nagent: claude\n---\nGo on.\n");
    agent(&scratch, "say hi; ok");
    let run = scratch.run("resume fix --max-iterations 2");
    assert!(run.code == Some(0) && !run.stderr.contains("is not as it was"), "{run:?}");
    scratch.write("fix/RALPH.md", "---\nagent: claude -x\n---\nGo on.\n");
    let run = scratch.run("resume fix --max-iterations 3");
    assert!(
        run.code == Some(0) && run.stderr.contains("the front matter of fix/RALPH.md is not as it was"),
        "{run:?}"
    );
}

#[test]
fn another_validation_or_agent_is_told_wherever_it_comes_from() {
    let scratch = project("say hi; ok");
    assert_eq!(scratch.run("prompt p.md 1 --validate true").code, Some(0));
    let told = |run: &crate::scratch::Run| {
        ["the validation command", "the agent's command line"]
            .map(|what| run.stderr.contains(&format!("{what} is not as it was when loop 'prompt' began")))
    };
    assert_eq!(told(&scratch.run("prompt p.md 1 --resume --validate true")), [false, false]);
    assert_eq!(told(&scratch.run("prompt p.md 1 --resume --validate false")), [true, false]);
    let run = scratch
        .ralph("prompt p.md 1 --resume --validate false")
        .env("RALPH_AGENT_ARGS", "-p --verbose --output-format stream-json --x")
        .output();
    let stderr = String::from_utf8_lossy(&run.unwrap().stderr).into_owned();
    assert!(
        stderr.contains("the agent's command line is not as it was")
            && !stderr.contains("the validation command is"),
        "{stderr}"
    );
}

#[test]
fn what_a_person_has_changed_is_told() {
    let scratch = at_limit(":");
    scratch.write("ralph.toml", "[validation]\ncommand = \"true\"\n");
    let run = scratch.run("resume prompt --max-iterations 2");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(run.stderr.contains(TOLD), "{run:?}");
}

#[test]
fn an_attempt_that_was_cut_off_may_have_changed_it() {
    let scratch = cut_off();
    let run = scratch.run("resume");
    assert!(run.code == Some(1) && run.stderr.contains(REFUSED), "{run:?}");
}

#[test]
fn a_loop_that_starts_afresh_reports_once_what_an_agent_has_changed_before() {
    const COUNTS: &str = "ralph.toml was changed inside an attempt of the last loop 'prompt'";
    let scratch = at_limit(TRUE);
    agent(&scratch, "complete");
    for expected in [1, 0] {
        let run = scratch.run("prompt p.md 1");
        assert_end(&scratch, &run, 0, "complete", "stopped");
        assert_eq!(run.stderr.matches(COUNTS).count(), expected, "{run:?}");
    }
}

#[test]
fn a_state_that_an_agent_has_written_says_nothing_about_what_it_changed() {
    let forged = [
        ("changed_inside = true", "changed_inside = false"),
        ("in_attempt = true", "in_attempt = false"),
        ("version = 1", "version = 1\n# as it was"),
    ];
    for (from, to) in forged {
        let scratch = if from.starts_with("in_attempt") { cut_off() } else { at_limit(TRUE) };
        let text = scratch.read(".ralph/state.toml");
        assert!(text.contains(from), "{text}");
        scratch.write(".ralph/state.toml", text.replace(from, to));
        for args in ["resume prompt --max-iterations 2", "prompt p.md 1 --resume"] {
            let run = scratch.run(args);
            let refused = "ralph.toml is not as it was when loop 'prompt' began, and .ralph/state.toml is not as ralph has written";
            assert!(run.code == Some(1) && run.stderr.contains(refused), "{to}: {run:?}");
            assert_eq!(attempts(&scratch), 1);
        }
        // Booking the end of a dead loop does not seal it either.
        let _ = scratch.run("cancel");
        let run = scratch.run("prompt p.md 1 --resume");
        assert!(run.code == Some(1) && run.stderr.contains("--accept-config"), "{to}: {run:?}");
        agent(&scratch, "complete");
        let run = scratch.run("prompt p.md 1 --resume --accept-config");
        assert!(run.code == Some(0) && run.stderr.contains(TOLD), "{to}: {run:?}");
    }
}

#[test]
fn a_state_that_was_lost_says_nothing_about_what_an_agent_changed() {
    let scratch = at_limit(TRUE);
    std::fs::remove_file(scratch.path(".ralph/state.toml")).unwrap();
    let run = scratch.run("prompt p.md 1 --resume");
    assert!(run.code == Some(1) && run.stderr.contains("go on with --accept-config"), "{run:?}");
    assert_eq!(attempts(&scratch), 1);
    // Without a change, there is no question.
    scratch.write("ralph.toml", "[validation]\ncommand = \"false\"\n");
    let run = scratch.run("prompt p.md 1 --resume");
    assert!(run.code == Some(4) && attempts(&scratch) == 2, "{run:?}");
}

#[test]
fn a_loop_under_another_name_in_the_state_is_not_that_of_a_clone() {
    let scratch = at_limit(TRUE);
    let text = scratch.read(".ralph/state.toml").replace("changed_inside = true", "changed_inside = false");
    scratch.write(".ralph/state.toml", text.replace("name = \"prompt\"", "name = \"other\""));
    let run = scratch.run("prompt p.md 1 --resume");
    assert!(run.code == Some(1) && run.stderr.contains("go on with --accept-config"), "{run:?}");
    assert_eq!(attempts(&scratch), 1);
}

#[test]
fn what_an_attempt_changed_that_was_cut_off_is_known_when_the_loop_was_ended_since() {
    let scratch = cut_off();
    assert_eq!(scratch.run("cancel").code, Some(0));
    let run = scratch.run("prompt p.md 1 --resume");
    assert!(run.code == Some(1) && run.stderr.contains(REFUSED), "{run:?}");
}

#[test]
fn lines_that_an_agent_adds_to_the_log_end_no_attempt() {
    let end = r#"sed -n 's/"event":"attempt_started".*/"event":"attempt_ended"/p' .ralph/runs/*/*.events.jsonl | tail -n 1"#;
    let line = r#","balance":null,"changed":null,"complete":false,"duration_s":0.1,"elapsed_s":0.1,"exit_code":0,"failure":null,
        "head":null,"iteration":1,"means":"continue","replan":false,"retry":0,"signal":null,"skipped_lines":0,
        "spent":{"input_tokens":0,"output_tokens":0},"status":"success","unproven":true,
        "usage":{"input_tokens":0,"output_tokens":0}}"#
        .replace("\n        ", "");
    let scratch = project(&format!(
        "{TRUE}echo \"$({end})\"'{line}' >> .ralph/runs/*/*.events.jsonl; touch ../changed; sleep 600"
    ));
    let started = Started::new(&scratch, "prompt p.md 2");
    wait_for("the change", || crate::policies::beside(&scratch, "changed").exists().then_some(()));
    drop(started);
    let run = scratch.run("resume");
    assert!(run.code == Some(1) && run.stderr.contains(REFUSED), "{run:?}");
    let run = scratch.run("cancel");
    assert!(
        format!("{run:?}").contains("1 attempt that it had not booked is counted"),
        "the line is one of ours: {run:?}"
    );
    let run = scratch.run("prompt p.md 1 --resume");
    assert!(run.code == Some(1) && run.stderr.contains(REFUSED), "{run:?}");
}
