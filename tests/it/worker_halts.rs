//! What agents in panes stop at when they have their prompt, as real ones show it: questions, refused logins, usage limits. The
//! agents are scripts that show recorded screens.

use std::fs;
use std::path::Path;

use crate::scratch::wait_for;
use crate::workers::Tmux;

/// Takes a prompt as claude does, and counts the attempts in `$attempt`.
const BEGIN: &str = r"
echo >>attempts; attempt=$(wc -l <attempts)
printf '❯ '; read -r _; clear
";

/// What claude shows, in words of the shell.
fn shows(name: &str) -> String {
    let screens = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens/claude");
    let screen = screens.join(name).with_extension("txt");
    assert!(screen.is_file(), "{}", screen.display());
    format!("printf %s \"$(cat '{}')\"", screen.display())
}

impl Tmux {
    fn of(agent: &str, body: &str) -> Self {
        let tmux = Self::new();
        // A line break would be Enter to a script.
        tmux.scratch.write("prompt.md", "Do the thing.");
        tmux.scratch.agent(agent, body);
        tmux
    }

    fn attempts(&self) -> usize {
        self.scratch.read_if_there("attempts").lines().count()
    }
}

const SPAWN: &str = "spawn --name w --prompt-file prompt.md --inactivity-timeout 1";

#[test]
fn a_refused_login_ends_the_loop_and_says_how_to_log_in() {
    let tmux = Tmux::of("claude", &format!("{BEGIN}{}; sleep 600", shows("not-logged-in-200x50")));
    let run = tmux.run(&format!("{SPAWN} -n 5 -- claude"));
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stderr.contains("w reported an error: Not logged in"), "{run:?}");
    assert!(run.stderr.contains("to log in, run 'claude' and log in, or set ANTHROPIC_API_KEY"), "{run:?}");
    assert_eq!((tmux.attempts(), &tmux.state()["total_failures"]), (1, &1.into()));
    assert_eq!(tmux.state()["exit_reason"], "failed");
    tmux.assert_nothing_left();
}

/// Codex waits for its network by itself, without an end, and counts the seconds.
#[test]
fn an_agent_that_waits_for_its_network_is_ended_and_waited_for() {
    let body = r#"
echo >>attempts; attempt=$(wc -l <attempts)
printf '› \n\n  m · /x\n'; read -r _; clear
[ $attempt = 2 ] && { echo '• Done.'; exit 0; }
for ((second = 1; ; second++)); do
    clear
    echo "• Reconnecting... waiting for network (${second}s • esc to interrupt)"
    echo '  └ Connection failed: error sending request'
    sleep 0.2
done"#;
    for limits in ["--inactivity-timeout 1", "--inactivity-timeout 60 --timeout 3s"] {
        let tmux = Tmux::of("codex", body);
        let spawn = format!("spawn --name w --prompt-file prompt.md {limits} --backoff 0.2 -n 1 -- codex");
        let run = tmux.run(&spawn);
        assert_eq!(run.code, Some(0), "{limits}: {run:?}");
        assert!(run.stderr.contains("no connection to the provider; waiting until"), "{limits}: {run:?}");
        let state = tmux.state();
        assert_eq!(
            (tmux.attempts(), &state["current_iteration"], &state["total_failures"]),
            (2, &1.into(), &0.into()),
            "{limits}: {run:?}"
        );
        tmux.assert_nothing_left();
    }
}

#[test]
fn a_usage_limit_is_waited_for_and_takes_no_iteration() {
    let body = format!(
        "{BEGIN}[ $attempt = 2 ] && exit 0; echo \"  ⎿  You've hit your limit · resets in 2s\"; echo; sleep 600"
    );
    let tmux = Tmux::of("claude", &body);
    let run = tmux.run(&format!("{SPAWN} -n 1 -- claude"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let state = tmux.state();
    assert_eq!(
        (tmux.attempts(), &state["current_iteration"], &state["total_failures"]),
        (2, &1.into(), &0.into())
    );
    tmux.assert_nothing_left();

    fs::remove_file(tmux.scratch.path("attempts")).unwrap();
    tmux.scratch.agent("claude", &format!("{BEGIN}{}; sleep 600", shows("limit-far-200x50")));
    let run = tmux.run(&format!("{SPAWN} -n 3 --replace --max-limit-wait 1s -- claude"));
    assert_eq!((run.code, tmux.attempts()), (Some(4), 1), "{run:?}");
    tmux.assert_nothing_left();
}

#[test]
fn a_question_holds_the_loop_until_it_is_answered() {
    for question in ["asks-command-200x50", "asks-edit-200x50", "asks-question-200x50", "auto-mode-200x50"] {
        let body = format!("{BEGIN}{}; read -r _; clear; echo '● It goes on.'; exit 0", shows(question));
        let tmux = Tmux::of("claude", &body);
        let run = tmux.ralph(&format!("{SPAWN} -n 1 -- claude")).spawn().unwrap();
        wait_for(question, || (tmux.state_word() == "needs_attention").then_some(()));
        let refused = tmux.run("send w text");
        assert_eq!(refused.code, Some(1), "{refused:?}");
        tmux.tmux(&["send-keys", "-t", "w", "Enter"]);
        let run = crate::scratch::finish(run);
        assert_eq!((run.code, tmux.attempts()), (Some(0), 1), "{question}: {run:?}");
        assert!(run.stderr.contains("answer it with 'ralph attach w'"), "{question}: {run:?}");
        let log = tmux.log();
        assert!(log[1].starts_with("[END] iteration 1 exit=0"), "{question}: {log:?}");
        tmux.assert_nothing_left();
    }
}

#[test]
fn an_agent_whose_tools_do_not_see_gits_configuration_commits_all_the_same() {
    let body = "printf 'Type your message\n> '; read -r _; \
                echo \"$GIT_AUTHOR_NAME <$GIT_COMMITTER_EMAIL>\" >who; exit 0";
    let tmux = Tmux::of("gemini", body);
    let run = tmux.run(&format!("{SPAWN} -n 1 -- gemini"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let who = tmux.scratch.read("who");
    assert!(who.len() > 5 && !who.contains("<>"), "{who}");
    tmux.assert_nothing_left();
}

#[test]
fn what_a_worker_has_run_is_among_the_runs_of_its_project() {
    let tmux = Tmux::of("claude", &format!("{BEGIN}echo '● Done.'; exit 0"));
    let run = tmux.run(&format!("{SPAWN} -n 1 -- claude"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let status = tmux.scratch.git(&["status", "--porcelain", "--untracked-files=all"]);
    assert!(!status.contains("runs") && !status.contains("logs"), "{status}");
    assert_eq!(tmux.run("logs w --agent").stdout.matches("● Done.").count(), 1);
    let cleaned = tmux.run("clean w");
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    assert!(!tmux.folder().exists());
    let history = tmux.run("history");
    assert!(history.stdout.contains("spawn"), "{history:?}");
    let report = tmux.run("report w");
    assert_eq!(report.code, Some(0), "{report:?}");
    assert!(tmux.run("logs w --agent").stdout.contains("● Done."));
    // The next one of the name adds to them.
    tmux.run(&format!("{SPAWN} -n 1 -- claude"));
    let runs = fs::read_dir(tmux.scratch.path(".ralph/runs")).unwrap().count();
    assert_eq!(runs, 2);
}

#[test]
fn what_an_interrupted_agent_leaves_at_work_is_ended() {
    let body = format!(
        "{BEGIN}trap 'touch interrupted' INT; setsid sleep 600 & echo $! >tool; sleep 601 & echo $! >server; while [ ! -e go ]; do sleep 1; echo .; done; exit 0"
    );
    let tmux = Tmux::of("claude", &body);
    let run = tmux.ralph("spawn --name w --prompt-file prompt.md -n 1 -- claude").spawn().unwrap();
    let (tool, server) = wait_for("the tools", || {
        let pid = |file| tmux.scratch.read_if_there(file).trim().parse::<u32>().ok();
        Some((pid("tool")?, pid("server")?))
    });
    let said = tmux.run("interrupt w");
    assert_eq!(said.stdout, "interrupted w\nended what it left at work: 1 process\n", "{said:?}");
    // It may not be reaped yet.
    wait_for("the tool's end", || (!Path::new(&format!("/proc/{tool}")).exists()).then_some(()));
    assert!(Path::new(&format!("/proc/{server}")).exists());
    wait_for("the interrupt", || tmux.scratch.path("interrupted").exists().then_some(()));
    assert_eq!(tmux.state_word(), "running");
    tmux.scratch.write("go", "");
    let run = crate::scratch::finish(run);
    assert_eq!(run.code, Some(0), "{run:?}");
    tmux.assert_nothing_left();
}

impl Tmux {
    fn state_word(&self) -> String {
        let state = fs::read(self.folder().join("state.json")).unwrap_or_default();
        let state: serde_json::Value = serde_json::from_slice(&state).unwrap_or_default();
        state["status"].as_str().unwrap_or_default().to_owned()
    }
}
