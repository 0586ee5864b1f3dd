//! One cell of the matrix of faults: a worker whose agent is of some kind, in a window beside the user's own, while another
//! tmux server has a session of the same name. Whatever happens to the worker, both must live on untouched.

use std::process::{Child, Command};

use rustix::process::Signal;

use crate::processes::{describe, send};
use crate::scratch::{Run, finish, side_by_side, wait_for};
use crate::worker_kinds::{KINDS, Kind};
use crate::workers::Tmux;

/// A worker at the moment of the fault.
pub(crate) struct Cell {
    pub(crate) tmux: Tmux,
    pub(crate) kind: &'static Kind,
    fault: &'static str,
    plays: String,
    monitor: Option<Child>,
    /// The iterations that may run.
    last: u64,
    /// The user's pane beside ours, with its process: `%3 4711`. `None`: it is gone with the server.
    user: Option<String>,
    /// All panes of the other server.
    others: String,
}

/// Brings each of these kinds to the moment of the fault, several at a time.
pub(crate) fn each(
    fault: &'static str,
    kinds: impl Fn(&Kind) -> bool,
    next: &[&str],
    check: impl Fn(&mut Cell) + Sync,
) {
    let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| kinds(kind)).collect();
    side_by_side(&kinds, |kind| {
        let mut cell = Cell::start(fault, kind, next);
        // Not before: tmux 3.3a crashes when a window comes in the very moment in which a client in control mode does.
        cell.await_prompt("Do the thing");
        cell.open_users_pane();
        cell.await_moment();
        check(&mut cell);
    });
}

impl Cell {
    fn start(fault: &'static str, kind: &'static Kind, next: &[&str]) -> Self {
        let tmux = Tmux::new();
        let last = kind.iteration() + next.len() as u64;
        let plays = format!("{},{}", kind.plays, next.join(","));
        let monitor = tmux.start(&plays, &format!("-n {last} --inactivity-timeout {}", kind.inactivity));
        let mut cell = Self {
            tmux,
            kind,
            fault,
            plays,
            monitor: Some(monitor),
            last,
            user: None,
            others: String::new(),
        };
        cell.other_server(&["-f", "/dev/null", "new-session", "-d", "-s", "w", "sleep", "600"]);
        cell.others = cell.panes_of_others();
        assert!(cell.others.starts_with("w "), "{}", cell.others);
        cell
    }

    /// Waits until the agent is at work in the iteration that is meant, or the loop waits for its next attempt.
    fn await_moment(&self) {
        self.tmux.scratch.write("beside", "");
        // The state is written after the log.
        let is_booked = || self.tmux.state()["total_failures"] == self.failures();
        wait_for("the moment", || {
            (self.tmux.log().len() >= self.kind.before.len() && is_booked()).then_some(())
        });
        self.assert_log(&[]);
    }

    /// How many failures the iterations log has.
    fn failures(&self) -> usize {
        self.tmux.log().iter().filter(|line| line.contains(" attempt=")).count()
    }

    /// Opens a window of the user's beside ours, which is shown then; where the agent lasts, a pane in our window.
    fn open_users_pane(&mut self) {
        let open = if self.kind.lasts { "split-window" } else { "new-window" };
        let open = [open, "-t", "w:", "-P", "-F", "#{pane_id} #{pane_pid}", "sleep", "600"];
        let user = self.tmux.tmux(&open).trim().to_owned();
        assert!(user.starts_with('%'), "{user}");
        self.user = Some(user);
    }

    /// The prompts that agents got so far.
    pub(crate) fn prompts(&self) -> String {
        self.tmux.scratch.read_if_there("got")
    }

    #[track_caller]
    pub(crate) fn await_prompt(&self, words: &str) {
        wait_for(words, || self.prompts().contains(words).then_some(()));
    }

    pub(crate) fn monitor(&self) -> u32 {
        self.monitor.as_ref().unwrap().id()
    }

    /// Lets the agent come to its end.
    pub(crate) fn release(&self) {
        self.tmux.scratch.write("go", "");
    }

    /// What ralph prints for this; it has to end with 0.
    #[track_caller]
    pub(crate) fn says(&self, args: &str) -> String {
        let run = self.tmux.run(args);
        assert_eq!(run.code, Some(0), "{args}: {run:?}");
        run.stdout
    }

    /// Waits for the monitor's end.
    #[track_caller]
    pub(crate) fn ends(&mut self, code: i32) -> Run {
        let run = finish(self.monitor.take().unwrap());
        assert_eq!(run.code, Some(code), "{run:?}");
        run
    }

    /// `kill -9` of the monitor. What tmux had to say at that moment keeps its client; a stopped one stands for that.
    pub(crate) fn kill_monitor(&mut self) {
        if self.kind.lasts {
            let client = self.tmux.tmux(&["list-clients", "-F", "#{client_pid}"]);
            send(client.trim().parse().unwrap(), Signal::STOP);
        }
        let mut monitor = self.monitor.take().unwrap();
        monitor.kill().unwrap();
        monitor.wait().unwrap();
    }

    /// Another monitor comes, by `ralph run w` or `ralph resume w`.
    pub(crate) fn take_up(&mut self, by: &str) {
        self.monitor = Some(self.tmux.ralph(by).env("RALPH_SCRIPT_PLAY", &self.plays).spawn().unwrap());
    }

    /// `kill -9` of the wrapper in our pane.
    pub(crate) fn kill_wrapper(&self) {
        let wrappers = self.wrappers();
        assert_eq!(wrappers.len(), 1);
        send(wrappers[0], Signal::KILL);
    }

    /// Waits until there is no wrapper any more, and nothing below it.
    pub(crate) fn await_no_wrapper(&self) {
        wait_for("the end of the wrapper", || self.wrappers().is_empty().then_some(()));
    }

    fn wrappers(&self) -> Vec<u32> {
        let is_wrapper = |pid: &u32| {
            let line = describe(*pid);
            let mut words = line.split(' ').skip(1);
            words.next().is_some_and(|program| program.ends_with("/exe"))
                && words.any(|word| word == "--pane")
        };
        self.tmux.scratch.living().into_iter().filter(is_wrapper).collect()
    }

    /// `kill -9` of the tmux server.
    pub(crate) fn kill_server(&mut self) {
        send(self.server().unwrap(), Signal::KILL);
        self.user = None;
    }

    fn server(&self) -> Option<u32> {
        self.tmux.tmux(&["display-message", "-p", "#{pid}"]).trim().parse().ok()
    }

    /// The iterations log is that of the moment of the fault and then this; each line begins so.
    #[track_caller]
    pub(crate) fn assert_log(&self, after: &[&str]) {
        let log = self.tmux.log();
        let last = format!("/{}", self.last);
        let expected: Vec<String> =
            self.kind.before.iter().chain(after).map(|line| line.replace("/N", &last)).collect();
        let is_so = log.len() == expected.len()
            && log.iter().zip(&expected).all(|(line, begins)| line.starts_with(begins));
        assert!(is_so, "{log:#?}\nare not\n{expected:#?}");
    }

    /// The log after a fault at which the iteration has ended by itself.
    #[track_caller]
    pub(crate) fn assert_log_after_end(&self, after: &[&str]) {
        let lines: Vec<&str> = self.kind.end.iter().chain(after).copied().collect();
        self.assert_log(&lines);
    }

    /// Waits until the state file says this.
    #[track_caller]
    pub(crate) fn await_status(&self, status: &str) {
        wait_for(status, || (self.tmux.state()["status"] == status).then_some(()));
    }

    /// Waits until `ralph status` says this of the program.
    #[track_caller]
    pub(crate) fn await_worker(&self, word: &str) {
        let line = format!("\nWorker status: {word}\n");
        wait_for(word, || self.says("status w").contains(&line).then_some(()));
    }

    /// The state file and `ralph status` agree on this state.
    #[track_caller]
    pub(crate) fn assert_state(&self, status: &str, reason: &str, worker: &str) {
        let state = self.tmux.state();
        let block = self.says("status w");
        let has = |name: &str, value: &str| block.contains(&format!("\n{name}: {value}\n"));
        assert!(has("Status", status) && has("Worker status", worker), "{block}\n{state}");
        assert!(has("Exit reason", reason), "{block}\n{state}");
        assert_eq!(
            state["status"],
            if reason.starts_with("monitor_disconnected") { "running" } else { status }
        );
        let log = self.tmux.log();
        assert_eq!(state["total_failures"], self.failures(), "{state}\n{log:#?}");
        let started = log.iter().rfind(|line| line.starts_with("[START]")).unwrap();
        let iteration = &state["current_iteration"];
        assert!(started.starts_with(&format!("[START] iteration {iteration}/")), "{state}\n{log:#?}");
    }

    /// The next iteration is the last one, and the loop ends well.
    #[track_caller]
    pub(crate) fn assert_completes(&mut self, middle: &[&str]) {
        self.ends(0);
        let k = self.kind.iteration() + 1;
        let rest = [
            format!("[START] iteration {k}/N"),
            format!("[END] iteration {k} exit=0 duration="),
            format!("[DONE] loop complete after {k} iterations reason=max_iterations"),
        ];
        let lines: Vec<&str> = middle.iter().copied().chain(rest.iter().map(String::as_str)).collect();
        self.assert_log(&lines);
        self.assert_state("stopped", "max_iterations", "stopped");
        self.assert_nothing_left();
    }

    /// Nothing but the server, the user's window and, if it lives, the monitor is about.
    #[track_caller]
    pub(crate) fn assert_no_agent(&self) {
        let mut known: Vec<u32> = self.server().into_iter().collect();
        known.extend(self.user.as_ref().map(|user| user.split_once(' ').unwrap().1.parse::<u32>().unwrap()));
        known.extend(self.monitor.as_ref().map(Child::id));
        let left = || self.tmux.scratch.living().into_iter().filter(|pid| !known.contains(pid)).count();
        wait_for("the end of the agent", || (left() == 0).then_some(()));
        self.assert_strangers_live();
    }

    /// The other server and the user's window are as they were.
    #[track_caller]
    pub(crate) fn assert_strangers_live(&self) {
        assert_eq!(self.panes_of_others(), self.others);
        if let Some(user) = &self.user {
            let panes = self.tmux.tmux(&["list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{pane_dead}"]);
            assert!(panes.lines().any(|pane| pane == format!("{user} 0")), "{user} is not in {panes}");
        }
    }

    /// Nothing of ours is left; the user's window is, and with it goes the server.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&mut self) {
        self.assert_no_agent();
        if let Some(user) = self.user.take() {
            let panes = self.tmux.tmux(&["list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"]);
            assert_eq!(panes.trim(), user, "only the user's pane is left");
            self.tmux.tmux(&["kill-pane", "-t", user.split_once(' ').unwrap().0]);
        }
        self.tmux.assert_nothing_left();
        self.assert_strangers_live();
    }

    /// Another server of the user's, which nothing leads to.
    fn other_server(&self, args: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        let output =
            tmux.arg("-S").arg(self.tmux.scratch.outside().join("other")).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn panes_of_others(&self) -> String {
        self.other_server(&[
            "list-panes",
            "-a",
            "-F",
            "#{session_name} #{pane_id} #{pid} #{pane_pid} #{pane_dead}",
        ])
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let living: Vec<String> = self.tmux.scratch.living().into_iter().map(describe).collect();
            eprintln!("{} x {}: {:#?}, {living:#?}", self.kind.name, self.fault, self.tmux.log());
        }
        if let Some(mut monitor) = self.monitor.take() {
            let _ = monitor.kill();
            let output = monitor.wait_with_output();
            if std::thread::panicking() {
                eprintln!("{output:#?}");
            }
        }
        self.other_server(&["kill-server"]);
    }
}
