//! The model and its effort: from flags and settings into the agent's command line and the output.

use std::fs;

use serde_json::Value;

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Run, Scratch, claude_says, says};

const KEEP_ARGS: &str = "printf '%s ' \"$@\" > \"args-$RALPH_ITERATION\"\n";

/// A project whose agents keep their arguments.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("{KEEP_ARGS}{}", claude_says("<promise>COMPLETE</promise>")));
    for name in ["codex", "cline", "opencode", "pi", "droid", "gemini", "qwen", "mine"] {
        scratch.agent(name, &format!("{KEEP_ARGS}{}", says(&[r#"{"type":"nothing"}"#])));
    }
    scratch
}

fn args_of(scratch: &Scratch, ralph: &str, env: &[(&str, &str)]) -> String {
    let _ = std::fs::remove_file(scratch.path("args-1"));
    let run = Scratch::finish(scratch.ralph(ralph).envs(env.iter().copied()));
    assert!(scratch.path("args-1").exists(), "{ralph}: {run:?}");
    scratch.read("args-1").trim_end().to_owned()
}

fn refused(run: &Run, words: &[&str]) {
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stderr.starts_with("error: ") && run.stderr.lines().count() == 1, "{run:?}");
    assert!(words.iter().all(|word| run.stderr.contains(word)), "{words:?}: {run:?}");
}

#[test]
fn each_agent_gets_its_own_options() {
    let scratch = scratch();
    for (agent, expected) in [
        (
            "claude",
            "--dangerously-skip-permissions --output-format stream-json --verbose -p --model M --effort low",
        ),
        (
            "codex",
            "exec --json --dangerously-bypass-approvals-and-sandbox -m M -c model_reasoning_effort=low -",
        ),
        ("cline", "--json -m M --thinking low Follow the instructions given on standard input."),
        ("opencode", "run --format json --auto -m M --variant low"),
        ("pi", "-p --mode json --model M --thinking low"),
        ("droid", "exec --auto high --output-format stream-json -m M -r low"),
    ] {
        let line = format!("prompt p.md 1 --max-retries 0 --agent {agent} --model M --effort low");
        assert_eq!(args_of(&scratch, &line, &[]), expected);
    }
    for (agent, expected) in [
        ("gemini", "--output-format stream-json --yolo --skip-trust -m M"),
        ("qwen", "--yolo --output-format stream-json -m M"),
    ] {
        let line = format!("prompt p.md 1 --max-retries 0 --agent {agent} --model M");
        assert_eq!(args_of(&scratch, &line, &[]), expected);
    }
}

#[test]
fn every_verb_takes_them_from_every_source() {
    let scratch = scratch();
    let own = "--dangerously-skip-permissions --output-format stream-json --verbose -p";
    for verb in ["plan 1", "build 1", "prompt p.md 1", "loop plan -m 1"] {
        assert_eq!(
            args_of(&scratch, &format!("{verb} --model M"), &[]),
            format!("{own} --model M"),
            "{verb}"
        );
    }
    scratch.write("ralph.toml", "[agent]\nmodel = 'of-toml'\neffort = 'max'\n");
    assert_eq!(args_of(&scratch, "plan 1", &[]), format!("{own} --model of-toml --effort max"));
    scratch.write(".ralph/config", "AGENT_MODEL=of-config\nAGENT_ARGS='-p --model of-args'\n");
    assert_eq!(args_of(&scratch, "plan 1", &[]), "-p --model of-config --effort max");
    let env = [("RALPH_MODEL", "of-env"), ("RALPH_EFFORT", "high")];
    assert_eq!(args_of(&scratch, "plan 1", &env), "-p --model of-env --effort high");
    assert_eq!(args_of(&scratch, "plan 1 --model M", &env), "-p --model M --effort high");
    // An empty one selects the agent's default.
    let env = [("RALPH_MODEL", ""), ("RALPH_EFFORT", "")];
    assert_eq!(args_of(&scratch, "plan 1", &env), "-p --model of-args");
}

#[test]
fn the_agent_of_a_ralph_md_heeds_the_call_and_no_config_file() {
    let scratch = scratch();
    scratch.write("fix/RALPH.md", "---\nagent: codex exec -m own --json -\n---\nDo it.\n");
    scratch.write(
        ".ralph/config",
        "AGENT_TYPE=claude\nAGENT_MODEL=opus\nAGENT_EFFORT=max\nAGENT_EXTRA_ARGS=-x\n",
    );
    assert_eq!(args_of(&scratch, "run fix -n 1", &[]), "exec -m own --json -");
    let flags = "run fix -n 1 --model M --effort low";
    assert_eq!(args_of(&scratch, flags, &[]), "exec --json -m M -c model_reasoning_effort=low -");
    assert_eq!(args_of(&scratch, "run fix -n 1", &[("RALPH_MODEL", "E")]), "exec --json -m E -");

    // Another agent that replaces it mid-loop gets them, too; one without such an option ends the loop.
    scratch.write("next", "---\nagent: claude -p\n---\nDo it.\n");
    scratch.agent("codex", &format!("{KEEP_ARGS}mv next fix/RALPH.md\n{}", says(&[r#"{"type":"nothing"}"#])));
    let run = scratch.run("run fix -n 2 --model M");
    assert_eq!(scratch.read("args-2"), "-p --output-format stream-json --verbose --model M ", "{run:?}");
    scratch.agent(
        "claude",
        &format!("printf -- '---\\nagent: mine\\n---\\nDo it.\\n' > fix/RALPH.md\n{}", claude_says("more")),
    );
    let run = scratch.run("run fix -n 2 --model M");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stderr.contains("agent 'mine' cannot be told which model to use"), "{run:?}");
}

#[test]
fn an_agent_without_a_way_is_an_error_that_says_so() {
    let scratch = scratch();
    let model = "cannot be told which model to use";
    let effort = "cannot be told how hard to think";
    scratch.agent("amp", "exit 1");
    for (args, words) in [
        ("plan 1 --agent amp --model M", ["'amp'", model, "--model"]),
        ("plan 1 --agent script --model M", ["'script'", model, "--model"]),
        ("build 1 --agent gemini --effort low", ["'gemini'", effort, "--effort"]),
        ("plan 1 --agent mine --effort low", ["'mine'", effort, "--effort"]),
    ] {
        refused(&scratch.run(args), &words);
    }
    scratch.write("fix/RALPH.md", "---\nagent: mine\n---\nDo it.\n");
    refused(&scratch.run("run fix -n 1 --model M"), &["'mine'", model]);
    refused(&scratch.run("run fix --dry-run --model M"), &["'mine'", model]);
    scratch.write(".ralph/config", "\nAGENT_EFFORT=low\n");
    refused(&scratch.run("plan 1 --agent gemini"), &["'gemini'", effort, "config line 2"]);
}

#[test]
fn extra_arguments_stand_before_the_last() {
    let scratch = scratch();
    scratch.write(".ralph/config", "AGENT_EXTRA_ARGS=\"--extra 'two words'\"\n");
    for (agent, expected) in [
        (
            "claude --max-retries 0",
            "--dangerously-skip-permissions --output-format stream-json --verbose -p --extra two words",
        ),
        (
            "codex --max-retries 0",
            "exec --json --dangerously-bypass-approvals-and-sandbox --extra two words -",
        ),
        (
            "cline --model M --max-retries 0",
            "--json --extra two words -m M Follow the instructions given on standard input.",
        ),
    ] {
        assert_eq!(args_of(&scratch, &format!("prompt p.md 1 --agent {agent}"), &[]), expected);
    }
    let none = [("RALPH_AGENT_EXTRA_ARGS", "")];
    assert!(!args_of(&scratch, "prompt p.md 1", &none).contains("extra"));
    scratch.write(".ralph/config", "AGENT_EXTRA_ARGS=\"'\"\n");
    refused(&scratch.run("plan 1"), &["AGENT_EXTRA_ARGS", "quote"]);
}

#[test]
fn the_agent_may_be_a_command_line() {
    let scratch = scratch();
    let with = |agent: &str, more: &str| {
        let mut command = scratch.ralph(&format!("prompt p.md 1 --max-retries 0 {more}"));
        let run = Scratch::finish(command.args(["--agent", agent]));
        (run, scratch.read("args-1").trim_end().to_owned())
    };
    let (run, args) = with("claude -p --model 'a b'", "");
    assert_eq!(args, "-p --model a b --output-format stream-json --verbose");
    assert!(run.stdout.contains("Exit Reason: completion signal detected\n"), "{run:?}");
    // An unknown program runs unchanged and is judged by its exit code.
    let (run, args) = with("mine --yes", "--json");
    assert_eq!((run.code, args.as_str()), (Some(0), "--yes"), "{run:?}");
    let first: Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["agent"], "mine");
    scratch.write(
        ".ralph/config",
        "AGENT_TYPE='codex exec -'\nAGENT_CLI=gone\nAGENT_ARGS=-a\nAGENT_EXTRA_ARGS=-e\n",
    );
    assert_eq!(args_of(&scratch, "prompt p.md 1 --max-retries 0 --model M", &[]), "exec - --json -e -m M");

    for agent in ["cluade", "", "gone --yes", "'open"] {
        let run = Scratch::finish(scratch.ralph("plan 1").args(["--agent", agent]));
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    }
    refused(&scratch.run("plan 1 --agent cluade"), &["'cluade'", "claude", "command line"]);
}

#[test]
fn what_the_agent_gets_is_shown() {
    let scratch = scratch();
    let line = "claude --dangerously-skip-permissions --output-format stream-json --verbose -p --model 'M 1'";
    let config = Scratch::finish(scratch.ralph("config").env("RALPH_MODEL", "M 1"));
    assert!(config.stdout.ends_with(&format!("\nThe agent is started as: {line}\n")), "{config:?}");
    let config = scratch.run("config --agent gemini --effort low");
    assert!(
        config.stdout.contains("\nNo agent can be started: agent 'gemini' cannot be told how"),
        "{config:?}"
    );

    let run = Scratch::finish(scratch.ralph("prompt p.md 1 --json").env("RALPH_MODEL", "M 1"));
    let events: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let started = events.iter().find(|event| event["event"] == "agent_started").unwrap();
    assert_eq!(started["command"], line);
    let status = scratch.run("status prompt");
    assert!(status.stdout.contains(&format!("\nAgent command: {line}\n")), "{status:?}");
    let status: Value = serde_json::from_str(&scratch.run("status --json").stdout).unwrap();
    assert_eq!(status["agent_command"], line);

    scratch.write("fix/RALPH.md", "---\nagent: claude -p\n---\nDo it.\n");
    let run = scratch.run("run fix --dry-run --model M");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Do it.\n"));
    assert!(
        run.stderr.contains("as: claude -p --output-format stream-json --verbose --model M\n"),
        "{run:?}"
    );
}

#[test]
fn branches_are_built_with_the_model() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    project.agent("echo \"$@\" > \"$HOME/args\"; work; end");
    let run = project.scratch.run("loop build --dry-run --model M");
    assert!(run.stdout.ends_with("--verbose -p --model M\n"), "{run:?}");
    let run = project.scratch.run("loop build --dry-run --json --model M");
    let branches: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(branches[0]["agent_command"].as_str().unwrap().ends_with("-p --model M"), "{run:?}");
    let run = project.scratch.run("loop build -m 2 --model M --effort low");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(project.home("args").ends_with("-p --model M --effort low\n"), "{}", project.home("args"));
}

/// An agent in pi's format that says this, and keeps its arguments.
fn pi(scratch: &Scratch, says: &str) {
    let message = format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"{says}"}}]}}"#);
    let script = format!(
        "cat > /dev/null; echo \"$*\" >> \"$HOME/pi\"\n\
         echo '{{\"type\":\"message_end\",\"message\":{message}}}'\n\
         echo '{{\"type\":\"agent_end\",\"messages\":[{message}]}}'"
    );
    scratch.agent("pi", &script);
}

fn args_of_pi(scratch: &Scratch) -> String {
    let kept = scratch.outside().join("home/pi");
    let args = fs::read_to_string(&kept).unwrap_or_default();
    let _ = fs::remove_file(kept);
    args
}

#[test]
fn each_phase_may_have_an_agent_and_a_model_of_its_own() {
    let scratch = scratch();
    pi(&scratch, "<promise>COMPLETE</promise>");
    let claude = "--dangerously-skip-permissions --output-format stream-json --verbose -p";
    scratch.write(
        "ralph.toml",
        "[agent]\nmodel = 'opus'\n[plan]\nagent = 'pi'\neffort = 'high'\n[build]\nmodel = 'small'\n",
    );
    for verb in ["plan 1", "loop plan -m 1"] {
        scratch.run(verb);
        assert_eq!(args_of_pi(&scratch), "-p --mode json --thinking high\n", "{verb}");
    }
    assert_eq!(args_of(&scratch, "build 1", &[]), format!("{claude} --model small"));
    assert_eq!(args_of(&scratch, "build 1 --model M", &[]), format!("{claude} --model M"));
    assert_eq!(args_of(&scratch, "prompt p.md 1", &[]), format!("{claude} --model opus"));
    assert_eq!(args_of(&scratch, "plan 1 --agent claude", &[]), format!("{claude} --model opus"));
    scratch.write("ralph.toml", "[plan]\nagent = 'nothing-there'\n");
    refused(&scratch.run("plan 1"), &["nothing-there"]);
    assert_eq!(args_of(&scratch, "build 1", &[]), claude);
}

#[test]
fn another_agent_may_verify_what_one_has_done() {
    let scratch = crate::jobs::jobs("git rev-parse HEAD > done; git add done; git commit -qm work; done_");
    pi(&scratch, "<verify-pass/>");
    scratch.write("ralph.toml", "[verify]\nagent = 'pi'\nmodel = 'm2'\n");
    let id = crate::run_tasks::add(&scratch, "task");
    let run = scratch.run("run --all --proof place");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(args_of_pi(&scratch), "-p --mode json --model m2 --tools read,bash,grep,find,ls\n", "{run:?}");
    assert_eq!(crate::jobs::attempts(&scratch), 1);
    let shown = scratch.run(&format!("task show {id}"));
    assert!(shown.stdout.contains("done"), "{shown:?}");
    // One that is not there is told before anything is begun.
    scratch.write("ralph.toml", "[verify]\nagent = 'gemini'\n");
    crate::run_tasks::add(&scratch, "another");
    refused(&scratch.run("run --all"), &["agent 'gemini' not found on PATH", "ralph.toml line 2"]);
}
