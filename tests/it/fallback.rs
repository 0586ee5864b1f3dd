//! Another agent goes on where the one that is wanted most cannot.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;

use crate::processes::send;
use crate::scratch::{Run, Scratch, claude_says, codex_says, finish, wait_for};

/// The last words of an agent.
const DONE: &str = "<promise>COMPLETE</promise>";
/// What claude prints when it is not logged in.
const NO_LOGIN: &str = r#"echo '{"type":"assistant","error":"authentication_failed","message":{"model":"<synthetic>","content":[{"type":"text","text":"Not logged in"}]},"parent_tool_use_id":null}'
echo '{"type":"result","subtype":"success","is_error":true,"result":"Not logged in"}'; exit 1"#;

/// What claude prints at its usage limit, which lasts so many seconds more.
fn limit(seconds: u32) -> String {
    format!(
        r#"printf '{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":%s}}}}\n' $(( $(date +%s) + {seconds} ))
echo '{{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your limit"}}'; exit 1"#
    )
}

/// What codex prints that says that its task is done, whose id is in `$id`.
fn codex_is_done() -> String {
    format!("{{\n{}\n}} | sed \"s/ID/$id/\"", codex_says("<task-done>ID</task-done>"))
}

/// Waits until the loop waits.
fn await_wait(scratch: &Scratch) {
    wait_for("a wait", || {
        scratch.read_if_there(".ralph/state.toml").contains("status = \"waiting\"").then_some(())
    });
}

/// A project whose agents do this; each keeps its prompts as `AGENT.N` beside it.
fn project(agents: &[(&str, &str)]) -> Scratch {
    let scratch = Scratch::new();
    for (name, body) in agents {
        let counted = format!(
            "n=$(($(cat ../{name}.n 2> /dev/null || echo 0) + 1)); echo $n > ../{name}.n; cat > ../{name}.$n\n{body}"
        );
        scratch.agent(name, &counted);
    }
    scratch
}

/// How often each of these agents was started.
fn starts<const N: usize>(scratch: &Scratch, agents: [&str; N]) -> [u32; N] {
    agents.map(|name| {
        let text = fs::read_to_string(scratch.outside().join(format!("{name}.n"))).unwrap_or_default();
        text.trim().parse().unwrap_or_default()
    })
}

fn facts(run: &Run, event: &str) -> Vec<Value> {
    let lines = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == event).collect()
}

fn limits(scratch: &Scratch) -> Vec<PathBuf> {
    let Ok(folder) = fs::read_dir(scratch.outside().join("home/state/ralph/limits")) else {
        return Vec::new();
    };
    folder.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some()).collect()
}

#[test]
fn the_next_agent_takes_over_at_a_usage_limit_and_everything_says_so() {
    let scratch = project(&[("claude", &limit(3600)), ("codex", &codex_says(DONE))]);
    let run = scratch.run("prompt p.md 1 --json --agent claude --agent codex --max-retries 0");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(starts(&scratch, ["claude", "codex"]), [1, 1], "no iteration is used up");
    let prompt = |name: &str| fs::read_to_string(scratch.outside().join(name)).unwrap();
    assert_eq!(prompt("claude.1"), prompt("codex.1"));
    let [changed] = &facts(&run, "agent_changed")[..] else { panic!("{run:?}") };
    let told = ["from", "to", "reason", "agent"].map(|key| changed[key].as_str().unwrap());
    assert_eq!(told, ["claude", "codex", "usage_limit", "codex"]);
    assert!(changed["until"].is_string());
    let workers: Vec<Value> = facts(&run, "attempt_ended").iter().map(|line| line["agent"].clone()).collect();
    assert_eq!(workers, ["claude", "codex"]);
    assert!(facts(&run, "waiting").is_empty());

    let status: Value = serde_json::from_str(&scratch.run("status --json").stdout).unwrap();
    assert_eq!(status["agent"], "codex");
    assert!(status["agent_instead"].as_str().unwrap().starts_with("claude has met its usage limit until 2"));
    let report = scratch.run("report");
    assert!(report.stdout.contains("claude 1 attempt, codex 1 attempt (claude has met its"), "{report:?}");
    let report: Value = serde_json::from_str(&scratch.run("report --json").stdout).unwrap();
    let one = &report["loops"][0];
    assert_eq!(
        (&one["agents"]["codex"]["input_tokens"], &one["agents"]["claude"]["attempts"]),
        (&7.into(), &1.into())
    );
    assert_eq!(one["agent_changes"][0]["to"], "codex");
}

#[test]
fn the_first_agent_comes_back_when_its_limit_ends() {
    let claude = format!("if [ $n = 1 ]; then {}; fi\n{}", limit(2), claude_says(DONE));
    // It works until the limit of the first one is over.
    let codex = format!(
        "while [ $(date +%s) -lt $(( $(cat ../ends) + 1 )) ]; do sleep 0.1; done\n{}",
        codex_says("More.")
    );
    let claude = format!("[ $n = 1 ] && echo $(( $(date +%s) + 2 )) > ../ends\n{claude}");
    let scratch = project(&[("claude", &claude), ("codex", &codex)]);
    scratch.write("ralph.toml", "agents = ['claude', 'codex']\n");
    let run = scratch.run("prompt p.md 5 --json");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(starts(&scratch, ["claude", "codex"]), [2, 1]);
    let reasons: Vec<Value> =
        facts(&run, "agent_changed").iter().map(|line| line["reason"].clone()).collect();
    assert_eq!(reasons, ["usage_limit", "back"]);
}

#[test]
fn without_a_login_or_credit_the_next_one_goes_on_and_the_last_one_ends_the_loop() {
    let broke = r#"echo '{"type":"turn.failed","error":{"message":"Quota exceeded. Check your plan and billing details."}}'; exit 1"#;
    let scratch = project(&[("claude", NO_LOGIN), ("codex", broke)]);
    let run = scratch.ralph("prompt p.md 3 --json").env("RALPH_AGENTS", "claude, codex").output().unwrap();
    let run = Run {
        code: run.status.code(),
        stdout: String::from_utf8(run.stdout).unwrap(),
        stderr: String::from_utf8(run.stderr).unwrap(),
        elapsed: std::time::Duration::ZERO,
    };
    assert_eq!(facts(&run, "agent_changed").len(), 1, "{run:?}");
    assert_eq!(starts(&scratch, ["claude", "codex"]), [1, 1]);
    let [end] = &facts(&run, "loop_ended")[..] else { panic!("{run:?}") };
    assert_eq!(end["exit_reason"], "out_of_credit", "{end}");
    assert_ne!(run.code, Some(0));
}

#[test]
fn an_overloaded_provider_is_left_after_the_time_for_that() {
    let overloaded = r#"echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"Overloaded"}'; exit 1"#;
    let scratch = project(&[("claude", overloaded), ("codex", &codex_says(DONE))]);
    scratch
        .write("ralph.toml", "agents = ['claude', 'codex']\n[loop]\nfallback_after = '1s'\nbackoff = '1s'\n");
    let run = scratch.run("prompt p.md 1 --json");
    assert_eq!(run.code, Some(0), "{run:?}");
    let [claude, codex] = starts(&scratch, ["claude", "codex"]);
    assert!((2..=3).contains(&claude) && codex == 1, "{claude} {codex} {run:?}");
    assert_eq!(facts(&run, "agent_changed")[0]["reason"], "overload");
}

#[test]
fn a_limit_is_known_to_later_loops_of_that_login_until_the_user_wants_an_attempt() {
    let claude = format!("if [ $n = 1 ]; then {}; fi\n{}", limit(3600), claude_says(DONE));
    let scratch = project(&[("claude", &claude), ("codex", &codex_says(DONE))]);
    assert_eq!(scratch.run("prompt p.md 1 --agent claude --agent codex").code, Some(0));
    assert_eq!(limits(&scratch).len(), 1);
    // Another loop begins with the agent that can work.
    let run = scratch.run("prompt p.md 1 --json --agent claude --agent codex");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(starts(&scratch, ["claude", "codex"]), [1, 2]);
    // One with that agent alone waits; a request to go on is an attempt.
    let alone = scratch.start("prompt p.md 1");
    await_wait(&scratch);
    assert_eq!(scratch.run("resume prompt").code, Some(0));
    let run = finish(alone);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(starts(&scratch, ["claude", "codex"]), [2, 2]);
    assert!(limits(&scratch).is_empty());
}

#[test]
fn all_of_them_at_their_limit_the_loop_waits_for_the_first_that_comes_back() {
    let codex = format!(
        "if [ $n = 1 ]; then echo '{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"You have hit your usage limit. Try again later.\"}}}}'; exit 1; fi\n{}",
        codex_says(DONE)
    );
    // Where nothing says how long the limit of the second one lasts, it is tried again as if it were alone.
    let scratch = project(&[("claude", &limit(3600)), ("codex", &codex)]);
    let run = scratch.run("prompt p.md 1 --json --agent claude --agent codex");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(starts(&scratch, ["claude", "codex"]), [1, 2]);
    assert_eq!(facts(&run, "waiting").len(), 1, "{run:?}");
    // A known end that is nearer is waited for.
    let claude = format!("if [ $n = 1 ]; then {}; fi\n{}", limit(3), claude_says(DONE));
    let two = format!("if [ \"$CLAUDE_CONFIG_DIR\" ]; then {}; fi\n{claude}", limit(3600));
    let scratch = project(&[("claude", &two)]);
    scratch.write(
        "ralph.toml",
        "agents = ['claude', 'work']\n[[account]]\nname = 'work'\nagent = 'claude'\nenv = { CLAUDE_CONFIG_DIR = '~/w' }\n",
    );
    let run = scratch.run("prompt p.md 1 --json");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(starts(&scratch, ["claude"]), [3]);
    assert_eq!(facts(&run, "agent_changed").len(), 2, "{run:?}");
}

#[test]
fn killed_in_the_middle_it_goes_on_with_the_agent_that_can_work() {
    let codex = format!("if [ $n = 1 ]; then touch ../at-work; sleep 600; fi\n{}", codex_says(DONE));
    let scratch = project(&[("claude", &limit(3600)), ("codex", &codex)]);
    scratch.write("ralph.toml", "agents = ['claude', 'codex']\n");
    let child = scratch.start("prompt p.md 2");
    wait_for("codex", || scratch.outside().join("at-work").exists().then_some(()));
    send(child.id(), Signal::KILL);
    finish(child);
    let run = scratch.run("resume prompt");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(starts(&scratch, ["claude", "codex"]), [1, 2]);
    assert!(scratch.state()["agent"].as_str() == Some("codex"));
}

#[test]
fn what_is_wrong_with_the_list_is_said_at_the_start() {
    let scratch = project(&[("claude", "exit 1")]);
    for (args, said) in [
        ("prompt p.md --agent claude --agent clod", "unknown agent type 'clod'"),
        ("prompt p.md --agent claude --agent codex", "or fix --agent;"),
        ("prompt p.md --agent claude --agent codex --max-cost 1", "codex"),
        ("prompt p.md --agent claude:opus:high --agent gemini:x:high", "agent 'gemini' cannot be"),
    ] {
        let run = scratch.run(args);
        assert!(run.code == Some(1) && run.stderr.contains(said), "{args}: {run:?}");
    }
    assert_eq!(starts(&scratch, ["claude"]), [0]);
}

#[test]
fn an_account_is_another_login_of_the_agent_with_variables_of_its_own() {
    let claude = format!(
        "echo \"$CLAUDE_CONFIG_DIR $ANTHROPIC_API_KEY\" >> ../logins; say \"I use ${{ANTHROPIC_API_KEY:-none}}.\"\nif [ \"$CLAUDE_CONFIG_DIR\" ]; then\n{}\nexit; fi\n{}",
        claude_says(DONE),
        limit(3600)
    );
    let scratch = project(&[("claude", &claude)]);
    scratch.write(
        "ralph.toml",
        "agents = ['claude', 'work:opus']\n[[account]]\nname = 'work'\nagent = 'claude'\n\
         env = { CLAUDE_CONFIG_DIR = '~/work', ANTHROPIC_API_KEY = '$WORK_LOGIN' }\n",
    );
    let run = scratch.run("prompt p.md 1");
    assert!(run.code == Some(1) && run.stderr.contains("takes ANTHROPIC_API_KEY from WORK_LOGIN"), "{run:?}");
    // Neither its form nor the name of the variable tells that it is a secret.
    let key = "correct-horse-battery";
    let run = Scratch::finish(scratch.ralph("prompt p.md 1 --json").env("WORK_LOGIN", key));
    assert_eq!(run.code, Some(0), "{run:?}");
    let logins = fs::read_to_string(scratch.outside().join("logins")).unwrap();
    assert_eq!(logins, format!(" \n{}/home/work {key}\n", scratch.outside().display()));
    assert_eq!(facts(&run, "agent_changed")[0]["to"], "claude@work:opus");
    let logs = scratch.session_log() + &run.stdout;
    assert!(!logs.contains(key) && logs.contains("I use [redacted:WORK_LOGIN]."), "{logs}");
    let doctor = Scratch::finish(scratch.ralph("doctor").env("WORK_LOGIN", key));
    assert!(doctor.stdout.contains("claude: "), "{doctor:?}");
    // The line of a RALPH.md takes none.
    scratch.write("fix/RALPH.md", "---\nagent: work\n---\nDo it.\n");
    let run = Scratch::finish(scratch.ralph("run fix").env("WORK_LOGIN", key));
    assert!(
        run.code == Some(1) && run.stderr.contains("names the account 'work', and takes none"),
        "{run:?}"
    );
    // A phase may name an account, too.
    scratch.write("ralph.toml", scratch.read("ralph.toml") + "[plan]\nagent = 'work'\n");
    Scratch::finish(scratch.ralph("plan 1").env("WORK_LOGIN", key));
    let logins = fs::read_to_string(scratch.outside().join("logins")).unwrap();
    assert!(logins.ends_with(&format!("home/work {key}\n")), "{logins}");
    scratch.write("ralph.toml", "[[account]]\nname = 'work'\nagent = 'clod'\n");
    let run = scratch.run("prompt p.md 1");
    assert!(
        run.code == Some(1) && run.stderr.contains("ralph.toml line 1") && run.stderr.contains("`agent`"),
        "{run:?}"
    );
}

#[test]
fn jobs_share_what_they_learn_and_a_verifying_agent_is_replaced_as_well() {
    let task = |name: &str, looks: &str, does: &str| {
        format!(
            "id=$(sed -n 's/^## Your task: //p' ../{name}.$n)\nif grep -q '^# Verify the task' ../{name}.$n; then\n{looks}\nelse\n{does}\nfi"
        )
    };
    let claude = task("claude", &limit(3600), "say \"<task-done>$id</task-done>\"; result");
    let done = codex_is_done();
    let codex = task("codex", &codex_says("<verify-pass/>"), &done);
    let scratch = project(&[("claude", &claude), ("codex", &codex)]);
    scratch.git(&["commit", "--allow-empty", "-qm", "begin"]);
    scratch.write("ralph.toml", "agents = ['claude', 'codex']\n");
    for title in ["one", "two"] {
        assert_eq!(scratch.run(&format!("task add {title}")).code, Some(0));
    }
    let run = scratch.run("run --all");
    assert_eq!(run.code, Some(0), "{run:?}");
    let [claude, codex] = starts(&scratch, ["claude", "codex"]);
    assert_eq!((claude, codex), (2, 3), "{run:?}");
}

#[test]
fn agents_that_cannot_verify_are_waited_for_and_not_asked_in_turn() {
    let task = |name: &str, limit: &str| {
        format!(
            "id=$(sed -n 's/^## Your task: //p' ../{name}.$n)\nif grep -q '^# Verify the task' ../{name}.$n; then\n{limit}; exit 1\nfi\n\
             say \"<task-done>$id</task-done>\"; result"
        )
    };
    let limited = r#"echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your limit"}'"#;
    let scratch = project(&[("claude", &task("claude", limited))]);
    scratch.git(&["commit", "--allow-empty", "-qm", "begin"]);
    scratch.write("ralph.toml", "agents = ['claude:one', 'claude:two']\n");
    assert_eq!(scratch.run("task add one").code, Some(0));
    let child = scratch.start("run --all");
    await_wait(&scratch);
    let began = starts(&scratch, ["claude"]);
    assert!(began[0] <= 4, "{began:?}");
    send(child.id(), Signal::INT);
    let run = finish(child);
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(run.elapsed < std::time::Duration::from_mins(1));
    assert!(starts(&scratch, ["claude"])[0] <= 4);
}

#[test]
fn an_agent_that_has_to_be_waited_for_itself_is_next_and_does_not_go_on() {
    let scratch =
        project(&[("claude", &format!("if [ $n = 1 ]; then\n{}\nfi\n{}", limit(7200), limit(3600)))]);
    scratch.write("ralph.toml", "agents = ['claude:one', 'claude:two']\n");
    let child = scratch.start("prompt p.md 1 --max-limit-wait 3h");
    await_wait(&scratch);
    send(child.id(), Signal::INT);
    let run = finish(child);
    assert!(run.stderr.contains("claude:two goes on"), "it can work: {run:?}");
    // The limit of the second one ends earlier, so that it stays; a new loop knows both, and waits for that one.
    let child = scratch.start("prompt p.md 1 --max-limit-wait 3h");
    await_wait(&scratch);
    send(child.id(), Signal::INT);
    let run = finish(child);
    assert!(run.stderr.contains(": claude:two is next") && !run.stderr.contains("goes on"), "{run:?}");
    assert_eq!(starts(&scratch, ["claude"]), [2]);
}

#[test]
fn all_waits_of_all_agents_count_for_the_longest_wait() {
    let limited = limit(2);
    let scratch = project(&[("claude", &limited)]);
    scratch.write("ralph.toml", "agents = ['claude:one', 'claude:two']\n");
    let run = scratch.run("prompt p.md 1 --json --max-limit-wait 5s");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(starts(&scratch, ["claude"])[0] <= 10, "{run:?}");
}

#[test]
fn the_limit_of_a_verifying_agent_is_its_own_and_known_to_others() {
    let task = "id=$(sed -n 's/^## Your task: //p' ../codex.$n)";
    let done = codex_is_done();
    let scratch = project(&[("codex", &format!("{task}\n{done}")), ("claude", &limit(3600))]);
    scratch.git(&["commit", "--allow-empty", "-qm", "begin"]);
    scratch.write("ralph.toml", "[agent]\nprovider = 'codex'\n[verify]\nagent = 'claude'\n");
    assert_eq!(scratch.run("task add one").code, Some(0));
    let child = scratch.start("run --all");
    await_wait(&scratch);
    send(child.id(), Signal::INT);
    finish(child);
    let [known] = &limits(&scratch)[..] else { panic!("{:?}", limits(&scratch)) };
    assert!(fs::read_to_string(known).unwrap().contains("\"claude/"));
}

#[test]
fn another_agent_given_to_a_loop_that_waited_works_at_once() {
    let scratch = project(&[("claude", &limit(3600)), ("codex", &codex_says(DONE))]);
    let child = scratch.start("prompt p.md 3");
    await_wait(&scratch);
    send(child.id(), Signal::KILL);
    finish(child);
    let run = scratch.run("prompt p.md 3 --resume --agent codex");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(starts(&scratch, ["claude", "codex"]), [1, 1]);
}

#[test]
fn no_loop_ends_for_an_outage_while_another_agent_can_work() {
    let overloaded = r#"echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"Overloaded"}'; exit 1"#;
    let in_work = format!(
        r#"echo '{{"type":"assistant","message":{{"model":"m","content":[{{"type":"tool_use","id":"1","name":"Bash","input":{{"command":"ls"}}}}]}},"parent_tool_use_id":null}}'
{overloaded}"#
    );
    for (claude, args) in
        [(&*in_work, "prompt p.md 1 --max-retries 0"), (overloaded, "prompt p.md 1 --max-limit-wait 1s")]
    {
        let scratch = project(&[("claude", claude), ("codex", &codex_says(DONE))]);
        scratch.write("ralph.toml", "agents = ['claude', 'codex']\n");
        let run = scratch.run(args);
        assert_eq!(run.code, Some(0), "{args}: {run:?}");
        assert_eq!(starts(&scratch, ["claude", "codex"]), [1, 1], "{args}: {run:?}");
    }
}

#[test]
fn agents_that_are_all_overloaded_are_waited_for_with_pauses() {
    let overloaded = r#"echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"Overloaded"}'; exit 1"#;
    let scratch = project(&[("claude", overloaded)]);
    scratch.write(
        "ralph.toml",
        "agents = ['claude:one', 'claude:two']\n[loop]\nfallback_after = '1s'\nbackoff = '1s'\nmax_limit_wait = '8s'\n",
    );
    let run = scratch.run("prompt p.md 1 --json");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(starts(&scratch, ["claude"])[0] <= 8, "{:?} {run:?}", starts(&scratch, ["claude"]));
}

#[test]
fn a_limit_is_waited_for_beside_an_agent_that_has_no_login() {
    for agents in ["['claude', 'work']", "['work', 'claude']"] {
        let two = format!("if [ \"$CLAUDE_CONFIG_DIR\" ]; then\n{NO_LOGIN}\nfi\n{}", limit(7200));
        let scratch = project(&[("claude", &two)]);
        let account = "[[account]]\nname = 'work'\nagent = 'claude'\nenv = { CLAUDE_CONFIG_DIR = '~/w' }\n";
        scratch.write("ralph.toml", format!("agents = {agents}\n{account}"));
        let child = scratch.start("prompt p.md 1");
        await_wait(&scratch);
        send(child.id(), Signal::INT);
        assert_eq!(finish(child).code, Some(130));
        assert_eq!(starts(&scratch, ["claude"]), [2], "{agents}");
    }
}
