//! `ralph spawn` and `ralph run NAME`: interactive agents in windows of a real tmux, in a loop. The agent is that of
//! `tests/agents`, with a screen like a real one's.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::processes::send;
use crate::scratch::{Run, Scratch, agent_on_screen, executable, finish, wait_for};

/// A project with a prompt, and a tmux server of its own, which ends with it.
pub(crate) struct Tmux {
    pub(crate) scratch: Scratch,
}

impl Tmux {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        scratch.write("prompt.md", "Do the thing. Say THE WORDS when it is done.\n");
        Self { scratch }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.scratch.outside().join("tmux")
    }

    pub(crate) fn ralph(&self, args: &str) -> Command {
        let mut command = self.scratch.ralph(args);
        command.env("RALPH_TMUX_SOCKET", self.socket()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &str) -> Run {
        finish(self.ralph(args).spawn().unwrap())
    }

    /// A worker `w` whose agent plays this, one attempt after the other.
    pub(crate) fn worker(&self, plays: &str, args: &str) -> Command {
        let mut command = self.ralph(&format!("spawn --name w --prompt-file prompt.md {args} --"));
        command.args(agent_on_screen()).env("RALPH_SCRIPT_PLAY", plays);
        command
    }

    pub(crate) fn spawn(&self, plays: &str, args: &str) -> Run {
        finish(self.worker(plays, args).spawn().unwrap())
    }

    pub(crate) fn start(&self, plays: &str, args: &str) -> Child {
        self.worker(plays, args).spawn().unwrap()
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.scratch.home().join("state/ralph/loops/w")
    }

    pub(crate) fn state(&self) -> Value {
        serde_json::from_slice(&fs::read(self.folder().join("state.json")).unwrap()).unwrap()
    }

    /// The iterations log without its times.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder().join("iterations.log")).unwrap_or_default();
        text.lines().filter_map(|line| Some(line.split_once(' ')?.1.to_owned())).collect()
    }

    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let output = self.scratch.command("tmux").arg("-S").arg(self.socket()).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until the pane shows these words.
    pub(crate) fn wait_for_screen(&self, words: &str) {
        wait_for(words, || self.tmux(&["capture-pane", "-p", "-t", "w"]).contains(words).then_some(()));
    }

    pub(crate) fn assert_nothing_left(&self) {
        self.scratch.await_nothing_left();
        assert_eq!(self.tmux(&["list-sessions"]), "");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn each_iteration_is_a_fresh_agent_with_the_prompt_as_it_is_now() {
    let tmux = Tmux::new();
    let run = tmux.spawn("keep first; exit 0,keep second; exit 0", "-n 2");
    assert_eq!(run.code, Some(0), "{run:?}");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], "spawned w (tmux: w:w) [ralph mode: iteration 1/2]", "{run:?}");
    assert_eq!(lines[1], "[ralph] w: starting iteration 1/2");
    assert!(lines[2].starts_with("[ralph] w: iteration 1 completed (exit: 0, duration: "), "{run:?}");
    assert_eq!(lines[3], "[ralph] w: starting iteration 2/2");
    assert_eq!(lines.last(), Some(&"[ralph] w: loop complete after 2 iterations"));
    let log = tmux.log();
    assert_eq!((log[0].as_str(), log.len()), ("[START] iteration 1/2", 5), "{log:?}");
    assert!(log[1].starts_with("[END] iteration 1 exit=0 duration="), "{log:?}");
    assert_eq!(log[4], "[DONE] loop complete after 2 iterations reason=max_iterations");
    let state = tmux.state();
    assert_eq!(
        (&state["status"], &state["exit_reason"], &state["current_iteration"]),
        (&"stopped".into(), &"max_iterations".into(), &2.into())
    );
    tmux.assert_nothing_left();
}

#[test]
fn walls_stand_around_the_agent_in_its_window() {
    let tmux = Tmux::new();
    let outside = tmux.scratch.home().join("precious");
    fs::create_dir(&outside).unwrap();
    let tries = "echo x > inside; echo x > $OUT/file || echo held >> inside; echo x > /tmp/file; ls ~/.ssh || echo hidden >> inside
        exec 3<> /dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'CONNECT example.org:443 HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3; exec 3>&-";
    executable(&tmux.scratch.outside().join("bin/tries"), &format!("#!/bin/bash\n{tries}\nexec \"$@\"\n"));
    fs::create_dir(tmux.scratch.home().join(".ssh")).unwrap();
    let mut command = tmux.ralph("spawn --name w --prompt-file prompt.md -n 2 --sandbox on -- tries");
    command
        .args(agent_on_screen())
        .env("RALPH_SCRIPT_PLAY", "keep given; exit 0,keep given; exit 0")
        .env("OUT", &outside)
        .env("RALPH_SANDBOX_NETWORK", "allow")
        .env("RALPH_SANDBOX_HOSTS", "pypi");
    let run = finish(command.spawn().unwrap());
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(tmux.scratch.read("inside"), "x\nheld\nhidden\n");
    assert_eq!(tmux.scratch.read("given").matches("Do the thing.").count(), 2, "{run:?}");
    assert!(!outside.join("file").exists() && fs::read_dir(&outside).unwrap().next().is_none());
    let told = run.stdout + &run.stderr;
    for what in ["seems refused: ~/precious/file is not writable", "example.org:443 cannot be connected to"] {
        assert!(told.contains(what), "{what}: {told}");
    }
    let left = || fs::read_dir(tmux.folder().join("sandbox")).unwrap().next().is_none().then_some(());
    wait_for("the wrapper to clear up", left);
    tmux.assert_nothing_left();
}

/// As tmux is told of all of them, it is told of some that have only begun to connect, and of others that are gone.
#[test]
fn many_workers_begin_at_once_and_lose_their_monitors_at_once() {
    const MANY: usize = 16;
    let tmux = Tmux::new();
    let start = |worker: usize| {
        let mut command = tmux.ralph(&format!("spawn --name w{worker} --prompt-file prompt.md -n 1 --"));
        command.args(agent_on_screen()).env("RALPH_SCRIPT_PLAY", "keep given; spin 600");
        command.spawn().unwrap()
    };
    let workers: Vec<Child> = (0..MANY).map(start).collect();
    let given = || tmux.scratch.read_if_there("given").matches("Do the thing.").count();
    wait_for("every prompt", || (given() == MANY).then_some(()));
    for worker in &workers {
        send(worker.id(), Signal::KILL);
    }
    for worker in workers {
        finish(worker);
    }
    for worker in 0..MANY {
        let run = tmux.run(&format!("kill w{worker}"));
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    tmux.assert_nothing_left();
}

#[test]
fn five_failures_in_a_row_end_the_loop() {
    let tmux = Tmux::new();
    let run = tmux.spawn("exit 3,signal 9,exit 3,exit 3,exit 3,exit 3", "-n 9");
    assert_eq!(run.code, Some(1), "{run:?}");
    let failed: Vec<&str> = run.stdout.lines().filter(|line| line.contains("failed (exit")).collect();
    assert_eq!(failed[0], "[ralph] w: iteration 1 failed (exit: 3), retrying in 1s (attempt 1/5)");
    assert_eq!(failed[1], "[ralph] w: iteration 2 failed (exit: signal 9), retrying in 2s (attempt 2/5)");
    assert!(run.stdout.contains("[ralph] w: 5 consecutive failures, stopping loop"), "{run:?}");
    let log = tmux.log();
    assert!(log.contains(&"[FAIL] iteration 3 exit=3 attempt=3/5 backoff=4s".to_owned()), "{log:?}");
    assert!(log.contains(&"[FAIL] iteration 5 exit=3 attempt=5/5".to_owned()), "{log:?}");
    assert_eq!(tmux.state()["status"], "failed");
    tmux.assert_nothing_left();
}

/// Scripts know the exit code.
#[test]
fn a_worker_whose_last_iteration_failed_ends_with_0_and_says_so_in_its_project() {
    let tmux = Tmux::new();
    tmux.scratch.git(&["add", "prompt.md"]);
    tmux.scratch.git(&["commit", "--quiet", "--message", "Begin"]);
    let run = tmux.spawn("exit 0,exit 3", "-n 2 --worktree --worktree-dir ../trees");
    assert_eq!(run.code, Some(0), "{run:?}");
    let lines: Vec<&str> = run.stdout.lines().rev().take(2).collect();
    let [last, failed] = lines[..] else { panic!("{run:?}") };
    assert_eq!(failed, "[ralph] w: iteration 2 failed (exit: 3)");
    assert_eq!(last, "[ralph] w: loop complete after 2 iterations, the last one failed");
    let why = "the last iteration failed: ";
    let detail = tmux.run("status w").stdout;
    assert!(detail.contains(&format!("\nExit detail: {why}")), "{detail}");
    // Its work tree is elsewhere; it belongs to the project all the same.
    for view in ["", "status", "report"] {
        let told = tmux.run(view).stdout;
        assert!(told.contains("w  ") && told.contains(why), "{view}: {told}");
    }
    assert_eq!(tmux.log().last().unwrap(), "[DONE] loop complete after 2 iterations reason=max_iterations");
    tmux.assert_nothing_left();
}

#[test]
fn a_still_screen_ends_an_iteration_and_is_no_failure() {
    let tmux = Tmux::new();
    let run = tmux.spawn("say first,say second", "-n 2 --inactivity-timeout 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stdout.matches("[ralph] w: inactivity timeout (1s), restarting").count(), 2, "{run:?}");
    let log = tmux.log();
    assert_eq!(log[1], "[TIMEOUT] iteration 1 inactivity_timeout=1s", "{log:?}");
    assert_eq!(
        (&tmux.state()["total_failures"], &tmux.state()["consecutive_failures"]),
        (&0.into(), &0.into())
    );
    tmux.assert_nothing_left();
}

/// The prompt names the words that end the loop; only the agent's count.
#[test]
fn the_done_pattern_is_what_the_agent_says() {
    for (args, plays, iterations) in [
        ("-n 2", "say nothing; exit 0,say THE WORDS; exit 0", 2),
        ("-n 3 --inactivity-timeout 2", "say nothing,say THE WORDS,say nothing", 2),
        ("-n 3 --check-done-continuous", "say THE WORDS,say nothing", 1),
        ("-n 1 --check-done-continuous", "say THE WORDS; exit 7", 1),
    ] {
        let tmux = Tmux::new();
        let mut worker = tmux.worker(plays, args);
        // Before the `--` that ends the options.
        let words: Vec<_> = worker.get_args().map(std::ffi::OsStr::to_owned).collect();
        let at = words.iter().position(|word| word == "--").unwrap();
        let mut command = tmux.ralph("");
        command.args(&words[..at]).args(["--done-pattern", "THE WORDS"]).args(&words[at..]);
        command.env("RALPH_SCRIPT_PLAY", plays);
        worker = command;
        let run = finish(worker.spawn().unwrap());
        assert_eq!(run.code, Some(0), "{args}: {run:?}");
        assert!(run.stdout.contains("[ralph] w: done pattern matched, stopping loop"), "{args}: {run:?}");
        let state = tmux.state();
        assert_eq!(
            (&state["exit_reason"], &state["current_iteration"]),
            (&"done_pattern".into(), &iterations.into())
        );
        tmux.assert_nothing_left();
    }
}

#[test]
fn what_asks_for_a_person_holds_the_loop_until_it_is_answered() {
    let tmux = Tmux::new();
    let ralph = tmux.start("trust; say hello; exit 0", "-n 1 --ready-timeout 2");
    wait_for("attention", || {
        let run = tmux.run("status w --json");
        run.stdout.contains("needs_attention").then_some(())
    });
    assert_eq!(tmux.state()["status"], "needs_attention");
    // A person says yes.
    tmux.tmux(&["send-keys", "-t", "w", "Down"]);
    tmux.tmux(&["send-keys", "-t", "w", "Enter"]);
    let run = finish(ralph);
    assert!(run.stderr.contains("needs attention") && run.stderr.contains("ralph attach w"), "{run:?}");
    tmux.assert_nothing_left();
    // With the flag, there is no question.
    let tmux = Tmux::new();
    let run = tmux.spawn("trust; say hello; exit 0", "-n 1 --trust");
    assert_eq!((run.code, run.stderr.contains("needs attention")), (Some(0), false), "{run:?}");
    tmux.assert_nothing_left();
}

#[test]
fn a_worker_outlives_its_monitor_and_is_taken_up_where_it_stands() {
    let tmux = Tmux::new();
    let mut ralph = tmux.start("spin 1000", "-n 1 --inactivity-timeout 3");
    tmux.wait_for_screen("Do the thing");
    wait_for("the prompt", || {
        fs::read_to_string(tmux.folder().join("pane.json")).unwrap_or_default().contains("yes").then_some(())
    });
    ralph.kill().unwrap();
    ralph.wait().unwrap();
    let run = tmux.run("status w");
    assert!(run.stdout.contains("Exit reason: monitor_disconnected (worker still running)"), "{run:?}");
    assert!(tmux.tmux(&["list-sessions"]).starts_with("w:"), "it works on");
    let ralph = tmux.ralph("run w").spawn().unwrap();
    wait_for("a monitor", || {
        tmux.run("status w --json").stdout.contains("\"status\":\"running\"").then_some(())
    });
    let run = tmux.run("cancel --now w");
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = finish(ralph);
    assert!(run.stderr.contains("resumed in the middle of its iteration"), "{run:?}");
    assert_eq!(tmux.log().iter().filter(|line| line.contains("[START]")).count(), 1, "{:?}", tmux.log());
    tmux.assert_nothing_left();
}

#[test]
fn a_worker_is_given_its_prompt_once_and_watched_later() {
    let tmux = Tmux::new();
    let run = tmux.spawn("silent 2; keep given; exit 0", "-n 1 --no-run");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.starts_with("spawned w (tmux: w:w) [ralph mode: iteration 1/1]"), "{run:?}");
    let run = tmux.run("run w");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("iteration 1 completed (exit: 0"), "{run:?}");
    assert_eq!(tmux.log().iter().filter(|line| line.contains("[START]")).count(), 1, "{:?}", tmux.log());
    tmux.assert_nothing_left();
}

#[test]
fn sigterm_lets_the_agent_finish() {
    let tmux = Tmux::new();
    let ralph = tmux.start("silent 2; exit 0,exit 0", "-n 5");
    wait_for("the prompt", || {
        fs::read_to_string(tmux.folder().join("pane.json")).unwrap_or_default().contains("yes").then_some(())
    });
    send(ralph.id(), Signal::TERM);
    let run = finish(ralph);
    assert!(run.stdout.contains("received SIGTERM, pausing loop (current agent will complete)"), "{run:?}");
    assert!(run.stdout.contains("iteration 1 completed (exit: 0"), "{run:?}");
    assert_eq!(tmux.state()["status"], "paused");
    tmux.assert_nothing_left();
    let mut again = tmux.ralph("run w --max-iterations 2");
    let run = finish(again.env("RALPH_SCRIPT_PLAY", "silent 2; exit 0,exit 0").spawn().unwrap());
    assert_eq!(run.code, Some(0), "{run:?}");
    tmux.assert_nothing_left();
}

/// Where a worker stands is a file that its user may change while it holds.
#[test]
fn what_was_changed_by_hand_during_a_pause_takes_effect() {
    let tmux = Tmux::new();
    let ralph = tmux.start("silent 2; exit 0,say THE END; exit 0,exit 0", "-n 9 --inactivity-timeout 60");
    wait_for("an iteration", || (tmux.folder().join("state.json").exists()).then_some(()));
    assert_eq!(tmux.run("pause w").code, Some(0));
    wait_for("the pause", || (tmux.state()["status"] == "paused").then_some(()));
    // As editors do: in place, or by another file.
    let path = tmux.folder().join("state.json");
    let change = |name: &str, value: Value| {
        let mut state = tmux.state();
        state[name] = value;
        fs::write(path.with_extension("new"), serde_json::to_vec(&state).unwrap()).unwrap();
        fs::rename(path.with_extension("new"), &path).unwrap();
    };
    change("done_pattern", "(unclosed".into());
    let run = tmux.run("resume w");
    assert!(
        run.code == Some(1) && run.stderr.contains("state.json") && run.stderr.contains("(unclosed"),
        "{run:?}"
    );
    change("done_pattern", "THE END".into());
    change("max_iterations", 7.into());
    assert_eq!(tmux.run("note w hello").code, Some(0));
    assert_eq!(
        (&tmux.state()["done_pattern"], &tmux.state()["max_iterations"]),
        (&"THE END".into(), &7.into())
    );
    assert_eq!(tmux.run("resume w").stdout, "resumed ralph loop for w\n");
    let run = finish(ralph);
    assert!(
        run.stdout.contains("starting iteration 2/7") && run.stdout.contains("done pattern matched"),
        "{run:?}"
    );
    assert_eq!(tmux.state()["exit_reason"], "done_pattern");
    tmux.assert_nothing_left();
}

#[test]
fn the_loss_of_the_server_is_a_failure_and_leaves_nothing() {
    let tmux = Tmux::new();
    let ralph = tmux.start("spin 1000,exit 0", "-n 2");
    tmux.wait_for_screen("Do the thing");
    tmux.tmux(&["kill-server"]);
    let run = finish(ralph);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.stdout.contains("iteration 1 failed") && run.stdout.contains("iteration 2 completed"),
        "{run:?}"
    );
    tmux.assert_nothing_left();
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let tmux = Tmux::new();
    let refused = |args: &str, command: &[&str], words: &str| {
        let run = finish(tmux.ralph(&format!("spawn {args} --")).args(command).spawn().unwrap());
        assert_eq!(run.code, Some(1), "{args}: {run:?}");
        assert!(run.stderr.contains(words), "{words}: {run:?}");
    };
    let bash = &["bash"][..];
    refused("--name w --prompt-file missing.md -n 1", bash, "prompt file not found: missing.md");
    refused("--name ../w --prompt-file prompt.md -n 1", bash, "is no name of a worker");
    refused("--name w --prompt-file prompt.md -n 0", bash, "'0' is not a number of iterations");
    refused("--name w --prompt-file prompt.md -n 1", &["my-agent"], "--ready-pattern");
    refused("--name w --prompt-file prompt.md -n 1 --done-pattern (?=x)", bash, "(?=x)");
    assert!(!tmux.folder().exists());
    tmux.assert_nothing_left();
}

#[test]
fn a_command_that_never_began_leaves_no_worker() {
    let tmux = Tmux::new();
    tmux.scratch.agent("claude", "echo 'no key is set' >&2; exit 4");
    let mut command = tmux.ralph("spawn --name w --prompt-file prompt.md -n 3 --");
    let run = finish(command.arg("claude").spawn().unwrap());
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("w ended with code 4 before it could take its prompt"), "{run:?}");
    assert!(run.stderr.contains("no key is set"), "{run:?}");
    assert!(!tmux.folder().exists() && !tmux.run("ls").stdout.contains('w'), "{:?}", tmux.run("ls"));
    tmux.assert_nothing_left();
}

#[test]
fn a_name_that_is_taken_needs_a_word() {
    let tmux = Tmux::new();
    assert_eq!(tmux.spawn("exit 0", "-n 1").code, Some(0));
    let run = tmux.spawn("exit 0", "-n 1");
    assert!(
        run.code == Some(1) && run.stderr.contains("--replace") && run.stderr.contains("ralph run w"),
        "{run:?}"
    );
    assert!(run.stderr.starts_with("error: worker 'w' already exists: "), "{run:?}");
    let run = tmux.spawn("exit 0,exit 0", "-n 1 --replace");
    assert!(run.code == Some(0) && run.stdout.starts_with("replaced existing worker w\n"), "{run:?}");
    let run = tmux.spawn("exit 0,exit 0,exit 0", "-n 1 --clean-state");
    assert!(run.code == Some(0) && run.stdout.starts_with("cleared ralph state for w\n"), "{run:?}");
    tmux.assert_nothing_left();
}

#[test]
fn a_work_tree_is_used_again_and_its_work_is_never_lost() {
    let tmux = Tmux::new();
    tmux.scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "Begin"]);
    let run = tmux.spawn("commit first; exit 0,commit second; exit 0", "-n 2 --worktree");
    assert_eq!(run.code, Some(0), "{run:?}");
    let commits = tmux.scratch.git(&["log", "--format=%s", "w"]);
    assert!(commits.lines().count() >= 3, "{commits}");
    let tree = tmux.scratch.path(".worktrees/w");
    fs::write(tree.join("dirty"), "work").unwrap();
    let run = tmux.spawn("exit 0", "-n 1 --worktree --replace");
    assert!(
        run.code == Some(1) && run.stderr.contains("--force-dirty") && tree.join("dirty").exists(),
        "{run:?}"
    );
    let run = tmux.spawn("exit 0", "-n 1 --worktree --replace --force-dirty");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(tmux.scratch.git(&["for-each-ref", "refs/ralph/keep"]).contains("refs/ralph/keep/w/"));
    tmux.assert_nothing_left();
}

#[test]
fn a_folder_of_work_trees_is_named_and_a_spawn_that_is_taken_back_leaves_none() {
    let tmux = Tmux::new();
    tmux.scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "Begin"]);
    let run = tmux.spawn("exit 0", "-n 1 --worktree --worktree-dir trees");
    let tree = tmux.scratch.path("trees/w");
    assert!(run.code == Some(0) && tree.join(".git").exists(), "{run:?}");
    let args =
        "spawn --name x --prompt-file prompt.md -n 1 --worktree --worktree-dir trees --ready-pattern never";
    let start = || finish(tmux.ralph(args).args(["--", "sh", "-c", "exit 3"]).spawn().unwrap());
    let run = start();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("removed trees/x and branch x, made for it"), "{run:?}");
    assert!(!tmux.scratch.path("trees/x").exists());
    assert_eq!(tmux.scratch.git(&["branch", "--list", "x"]), "");
    // A branch of the user's stays, and so does a tree with something in it.
    tmux.scratch.git(&["branch", "x"]);
    let run = start();
    assert!(run.stderr.contains("removed trees/x, made for it"), "{run:?}");
    let writes = ["--", "sh", "-c", "echo work > new; exit 3"];
    let run = finish(tmux.ralph(args).args(writes).spawn().unwrap());
    assert!(run.stderr.contains("trees/x stays: something was done there"), "{run:?}");
    assert!(
        tmux.scratch.git(&["branch", "--list", "x"]).contains('x')
            && tmux.scratch.path("trees/x/new").exists()
    );
    tmux.assert_nothing_left();
}

#[test]
fn a_prompt_with_quotations_arrives_and_shown_twice_it_is_no_answer() {
    let tmux = Tmux::new();
    tmux.scratch.write(
        "prompt.md",
        "Answer this report:\n\n> It fails.\n>\n> $ cargo test\n$ cargo run\n\nSay THE WORDS when it is done.\n",
    );
    let run = tmux.spawn("say quoted; exit 0", "-n 1");
    assert!(run.code == Some(0) && !run.stderr.contains("does not show"), "{run:?}");
    assert_eq!(tmux.log().last().map(String::as_str).map(|line| line.contains("max_iterations")), Some(true));
    tmux.assert_nothing_left();
}

/// What another terminal asks of a worker that runs.
#[test]
fn a_worker_is_typed_to_waited_for_and_killed() {
    let tmux = Tmux::new();
    let ralph = tmux.start("spin 1000", "-n 1 --inactivity-timeout 60");
    tmux.wait_for_screen("Do the thing");
    wait_for("an iteration", || (tmux.state()["current_iteration"] == 1).then_some(()));
    let run = tmux.run("wait w --timeout 0.1");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), "w: still running (timeout)\n"), "{run:?}");
    assert_eq!(tmux.run("send w more").stdout, "sent to w\n");
    tmux.wait_for_screen("more");
    let waiting = tmux.ralph("wait w").spawn().unwrap();
    let run = tmux.run("kill w");
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "killed w\n", ""));
    assert_eq!(finish(waiting).stdout, "w: exited\n");
    let run = finish(ralph);
    assert_eq!(run.code, Some(0), "{run:?}");
    let state = tmux.state();
    assert_eq!((&state["status"], &state["exit_reason"]), (&"stopped".into(), &"killed".into()));
    tmux.assert_nothing_left();
}

#[test]
fn a_worker_that_is_cleaned_works_on_without_its_loop() {
    let tmux = Tmux::new();
    let ralph = tmux.start("spin 1000", "-n 1 --inactivity-timeout 60");
    tmux.wait_for_screen("Do the thing");
    wait_for("the prompt", || {
        fs::read_to_string(tmux.folder().join("pane.json")).unwrap_or_default().contains("yes").then_some(())
    });
    let run = tmux.run("clean w");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "cleaned ralph state for w\n"), "{run:?}");
    assert_eq!(run.stderr, "warning: worker 'w' is still running (only ralph state removed)\n");
    let run = finish(ralph);
    assert!(run.code == Some(0) && run.stderr.contains("works on by itself"), "{run:?}");
    assert!(!tmux.folder().join("state.json").exists() && !tmux.folder().join("iterations.log").exists());
    assert!(tmux.run("peek w").stdout.contains("Do the thing"));
    assert_eq!(tmux.run("kill w").stdout, "killed w\n");
    assert!(!tmux.folder().exists());
    tmux.assert_nothing_left();
}

/// `attach -d` detaches all other clients, and a pane may be moved: neither affects the agent.
#[test]
fn a_user_may_detach_what_watches_and_move_the_pane() {
    let tmux = Tmux::new();
    let ralph = tmux.start("keep a; silent until go; exit 0,keep b; exit 0", "-n 2 --inactivity-timeout 60");
    wait_for("the prompt", || {
        fs::read_to_string(tmux.folder().join("pane.json")).unwrap_or_default().contains("yes").then_some(())
    });
    let clients = || tmux.tmux(&["list-clients", "-F", "#{client_pid}"]);
    let before = wait_for("a client", || Some(clients()).filter(|clients| !clients.is_empty()));
    tmux.tmux(&["detach-client", "-s", "w"]);
    wait_for("another client", || Some(clients()).filter(|now| !now.is_empty() && *now != before));
    tmux.tmux(&["new-session", "-d", "-s", "mine", "sleep 600"]);
    tmux.tmux(&["join-pane", "-d", "-s", "w:", "-t", "mine:"]);
    wait_for("a client there", || {
        tmux.tmux(&["list-clients", "-F", "#{client_session}"]).contains("mine").then_some(())
    });
    tmux.scratch.write("go", "");
    let run = finish(ralph);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.stdout.contains("iteration 1 completed (exit: 0")
            && run.stdout.contains("iteration 2 completed (exit: 0"),
        "{run:?}"
    );
    assert!(tmux.tmux(&["list-sessions", "-F", "#{session_name}"]).contains("mine"), "the user's own stays");
    tmux.tmux(&["kill-server"]);
}

/// Until Enter, nothing has been given.
#[test]
fn a_monitor_that_is_killed_before_enter_has_given_nothing() {
    for moment in [0, 300, 600, 900, 1_200] {
        let tmux = Tmux::new();
        let play = "keep got; silent until go; exit 0";
        let mut ralph = tmux.start(&format!("{play},{play}"), "-n 1 --inactivity-timeout 60");
        wait_for("the pane", || tmux.folder().join("pane.json").exists().then_some(()));
        std::thread::sleep(std::time::Duration::from_millis(moment));
        ralph.kill().unwrap();
        ralph.wait().unwrap();
        tmux.scratch.write("go", "");
        let mut again = tmux.ralph("run w");
        let run = finish(again.env("RALPH_SCRIPT_PLAY", format!("{play},{play}")).spawn().unwrap());
        assert_eq!(run.code, Some(0), "{moment}: {run:?}");
        let got = tmux.scratch.read("got");
        assert_eq!(got.matches("Do the thing").count(), 1, "{moment}: {got}\n{run:?}");
        tmux.assert_nothing_left();
    }
}

#[test]
fn a_program_that_cannot_be_started_leaves_no_worker() {
    let tmux = Tmux::new();
    let mut command = tmux.ralph("spawn --name w --prompt-file prompt.md -n 3 --ready-pattern > --");
    let run = finish(command.arg("/nonexistent/claude").spawn().unwrap());
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("w was not started: its program cannot be started: No such file"), "{run:?}");
    assert!(!tmux.folder().exists());
    tmux.assert_nothing_left();
}

/// The files were cleaned up: the loop continues, and leaves nothing.
#[test]
fn a_folder_that_is_removed_by_hand_is_survived() {
    let tmux = Tmux::new();
    let ralph = tmux.start("keep a; silent until go; exit 0,keep b; exit 0", "-n 2 --inactivity-timeout 60");
    wait_for("the prompt", || {
        fs::read_to_string(tmux.folder().join("pane.json")).unwrap_or_default().contains("yes").then_some(())
    });
    fs::remove_dir_all(tmux.folder()).unwrap();
    tmux.scratch.write("go", "");
    let run = finish(ralph);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("iteration 2 completed (exit: 0"), "{run:?}");
    tmux.assert_nothing_left();
}
