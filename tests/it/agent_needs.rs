//! Needs of some agents besides a prompt on their stdin: an argument, an identity for git.

use std::fs;

use crate::scratch::{Run, Scratch, says};

const CLINE_SAYS: [&str; 2] = [
    r#"{"type":"agent_event","event":{"type":"content_end","contentType":"text","text":"<promise>COMPLETE</promise>"}}"#,
    r#"{"type":"run_result","finishReason":"completed","text":"","usage":{}}"#,
];
const GEMINI_SAYS: [&str; 2] = [
    r#"{"type":"message","role":"assistant","content":"<promise>COMPLETE</promise>","delta":true}"#,
    r#"{"type":"result","status":"success","stats":{"input_tokens":1,"output_tokens":1}}"#,
];

#[test]
fn cline_in_a_ralph_md_gets_its_argument() {
    let scratch = Scratch::new();
    // Like the real one, it does not accept a prompt on stdin alone.
    let insists = "[[ \"${!#}\" = *input.* || \"$*\" = *mine* ]] || { echo 'requires a prompt argument' >&2; exit 1; }\n";
    let keeps = "printf '%s\\n' \"$@\" > args.txt\n";
    scratch.agent("cline", &format!("{keeps}{insists}{}", says(&CLINE_SAYS)));
    for (agent, args) in [
        ("cline", "--json\nFollow the instructions given on standard input.\n"),
        (
            "cline --json -m gpt --data-dir 'a b'",
            "--json\n-m\ngpt\n--data-dir\na b\nFollow the instructions given on standard input.\n",
        ),
        ("cline 'Do mine.' -m gpt", "Do mine.\n-m\ngpt\n--json\n"),
    ] {
        scratch.write("fix/RALPH.md", format!("---\nagent: {agent}\n---\nDo it.\n"));
        let run = scratch.run("run fix -n 1");
        assert_eq!(run.code, Some(0), "{agent}: {run:?}");
        assert!(run.stderr.contains("completion signal"), "{agent}: {run:?}");
        assert_eq!(scratch.read("args.txt"), args, "{agent}");
    }
}

#[test]
fn cline_runs_its_commands_itself_unless_its_user_says_otherwise() {
    let scratch = Scratch::new();
    let keeps = "echo \"$CLINE_SESSION_BACKEND_MODE\" >> ../mode.txt\n";
    scratch.agent("cline", &format!("{keeps}{}", says(&CLINE_SAYS)));
    assert_eq!(run(&scratch, "prompt p.md 1 --agent cline", &[]).code, Some(0));
    run(&scratch, "prompt p.md 1 --agent cline", &[("CLINE_SESSION_BACKEND_MODE", "hub")]);
    scratch.write(".ralph/config", "export CLINE_SESSION_BACKEND_MODE=remote\n");
    run(&scratch, "prompt p.md 1 --agent cline", &[]);
    let modes = fs::read_to_string(scratch.root().parent().unwrap().join("mode.txt")).unwrap();
    assert_eq!(modes, "local\nhub\nremote\n");
}

/// An agent that commits as gemini's tools do, and keeps its variables.
fn commits_without_configuration(name: &str, scratch: &Scratch, says: &str) {
    let commit = "env | grep ^GIT_ > env.txt\nexport GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1\n\
                  git -c user.useConfigOnly=true commit --quiet --allow-empty -m done\n";
    scratch.agent(name, &format!("{commit}{says}"));
}

/// A run without an identity in the environment.
fn run(scratch: &Scratch, args: &str, env: &[(&str, &str)]) -> Run {
    let mut command = scratch.ralph(args);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env_remove(format!("GIT_{who}_NAME")).env_remove(format!("GIT_{who}_EMAIL"));
    }
    let run = Scratch::finish(command.envs(env.iter().copied()));
    assert_eq!(run.code, Some(0), "{run:?}");
    run
}

fn authors(scratch: &Scratch) -> String {
    scratch.git(&["log", "-1", "--format=%an %ae %cn %ce"])
}

#[test]
fn an_agent_that_hides_gits_configuration_commits_as_its_user() {
    let scratch = Scratch::new();
    fs::write(
        scratch.outside().join("home/.gitconfig"),
        "[user]\nname = José <x\nemail = me@example.org\n[user]\nuseConfigOnly = true\n",
    )
    .unwrap();
    commits_without_configuration("gemini", &scratch, &says(&GEMINI_SAYS));
    run(&scratch, "prompt p.md 1 --agent gemini", &[]);
    // git itself takes the bracket out of the name.
    assert_eq!(authors(&scratch), "José x me@example.org José x me@example.org\n");
    assert!(!scratch.read("env.txt").contains("DATE"), "{}", scratch.read("env.txt"));

    // What is set already stays, one by one.
    run(
        &scratch,
        "prompt p.md 1 --agent gemini",
        &[("GIT_AUTHOR_NAME", "Set"), ("GIT_COMMITTER_EMAIL", "c@d")],
    );
    assert_eq!(authors(&scratch), "Set me@example.org José x c@d\n");
    scratch.write(".ralph/config", "export GIT_AUTHOR_EMAIL=of@config\n");
    run(&scratch, "prompt p.md 1 --agent gemini", &[]);
    assert_eq!(authors(&scratch), "José x of@config José x me@example.org\n");
    fs::remove_file(scratch.path(".ralph/config")).unwrap();

    // The agent of a RALPH.md gets it, too, and the repository's own identity precedes the user's.
    scratch.git(&["config", "user.name", "Local"]);
    scratch.write("fix/RALPH.md", "---\nagent: gemini --yolo\n---\nDo it.\n");
    run(&scratch, "run fix -n 1", &[]);
    assert_eq!(authors(&scratch), "Local me@example.org Local me@example.org\n");

    // Other agents see git's configuration, and get no variables.
    let others = "env | grep ^GIT_ > env.txt\n".to_owned() + &crate::scratch::claude_says("more");
    scratch.agent("claude", &others);
    run(&scratch, "prompt p.md 1", &[]);
    assert!(!scratch.read("env.txt").contains("NAME"), "{}", scratch.read("env.txt"));
}

#[test]
fn without_an_identity_it_is_started_all_the_same() {
    let scratch = Scratch::new();
    scratch.git(&["config", "user.useConfigOnly", "true"]);
    scratch.agent("gemini", &format!("env > env.txt\n{}", says(&GEMINI_SAYS)));
    run(&scratch, "prompt p.md 1 --agent gemini", &[]);
    assert!(!scratch.read("env.txt").contains("GIT_AUTHOR"), "{}", scratch.read("env.txt"));
}

#[test]
fn the_identity_of_a_branch_comes_first() {
    let plan = crate::branch_project::plan(&[("one", 1)]);
    let project = crate::branch_project::BranchProject::without_remote(&plan);
    let scratch = &project.scratch;
    fs::write(scratch.outside().join("home/.gitconfig"), "[user]\nname = Me\nemail = me@example.org\n")
        .unwrap();
    let commit = "export GIT_CONFIG_GLOBAL=/dev/null\nsed -i 's/\\[ \\]/[x]/' IMPLEMENTATION_PLAN.md\n\
                  git commit --quiet --allow-empty -m done\n";
    scratch.agent("gemini", &format!("{commit}{}", says(&GEMINI_SAYS)));
    scratch.write("ralph.toml", "[git.worktree]\nname = 'Bot'\n");
    run(scratch, "loop build -m 1 --agent gemini", &[]);
    let log = scratch.git(&["log", "-1", "--format=%an %ae %cn %ce", "one"]);
    assert_eq!(log, "Bot me@example.org Bot me@example.org\n");
}
