//! The processes of a scratch project, and the files that must be correct after they have ended.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use ralph::platform::stat::Stat;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::scratch::{Run, Scratch, wait_for};

impl Scratch {
    /// The home of everything that runs in this project.
    pub(crate) fn home(&self) -> PathBuf {
        self.root().with_file_name("home")
    }

    /// A foreign process that looks like one of our agents: the same script with the same arguments.
    pub(crate) fn look_alike(&self, agent: &str) -> LookAlike {
        let mut command = self.command(self.root().with_file_name("bin").join(agent));
        command.args("--dangerously-skip-permissions --output-format stream-json --verbose -p".split(' '));
        command.env("LOOK_ALIKE", "1").env("RALPH_RUN", "somebody-else").env("HOME", "/");
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        LookAlike(command.spawn().unwrap())
    }

    /// The living processes of this project: all that carry its `HOME`, including ralph, and all that called `note`.
    pub(crate) fn living(&self) -> Vec<u32> {
        let home = format!("HOME={}", self.home().display());
        let carries = |pid: u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == home.as_bytes())
        };
        let ours = Stat::all().filter(|stat| !stat.is_dead() && carries(stat.pid));
        let mut living: Vec<u32> = ours.map(|stat| stat.pid).collect();
        let noted = fs::read_to_string(self.home().join("pids")).unwrap_or_default();
        living.extend(noted.lines().filter_map(|line| {
            let (pid, since) = line.split_once(' ')?;
            let process = Stat::read(pid.parse().ok()?)?;
            (!process.is_dead() && process.start_ticks.to_string() == since).then_some(process.pid)
        }));
        living
    }

    /// Nothing that was started for this project is left.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.living().into_iter().map(describe).collect::<Vec<_>>(), [""; 0]);
    }

    /// Waits until nothing is left: when ralph itself was killed, its supervisor needs its time.
    #[track_caller]
    pub(crate) fn await_nothing_left(&self) {
        wait_for("the end of all processes", || self.living().is_empty().then_some(()));
    }

    /// Waits until as many processes as this have called `note`.
    #[track_caller]
    pub(crate) fn await_noted(&self, count: usize) {
        wait_for("the agent's processes", || {
            let noted = fs::read_to_string(self.home().join("pids")).ok()?;
            (noted.lines().count() >= count).then_some(())
        });
    }

    /// The events log of the newest session; empty while there is none.
    pub(crate) fn events(&self) -> String {
        let newest = self.session_logs().pop().unwrap_or_default();
        fs::read_to_string(newest.with_extension("events.jsonl")).unwrap_or_default()
    }

    /// Asks ralph to stop and waits until it has received that: two signals at once would count as one.
    #[track_caller]
    pub(crate) fn ask_to_stop(&self, ralph: u32, signal: Signal) {
        let heard = |scratch: &Self| scratch.events().matches(r#""event":"asked""#).count();
        let before = heard(self);
        send(ralph, signal);
        wait_for("ralph to hear the signal", || (heard(self) > before).then_some(()));
    }

    /// The files tell how `run` ended, and agree about it.
    #[track_caller]
    pub(crate) fn assert_true_files(&self, run: &Run, status: &str) {
        let state = self.state();
        let code = i64::from(run.code.unwrap());
        assert_eq!(state["active"].as_bool(), Some(false), "{state}");
        assert_eq!(state["status"].as_str(), Some(status), "{state}");
        assert_eq!(state["exit_code"].as_integer(), Some(code), "{state}");

        let log = self.session_log();
        assert!(log.contains(&format!("\nExit Code: {code}\n")), "{}", tail(&log));
        assert_eq!(
            log.matches("\nEnd Time: ").count(),
            log.matches("\nStart Time: ").count(),
            "{}",
            tail(&log)
        );

        let lines = self.read(".ralph/iterations.log");
        let ends = ["[END]", "[FAIL]", "[TIMEOUT]"].map(|tag| lines.matches(tag).count());
        assert_eq!(lines.matches("[START]").count(), ends.iter().sum::<usize>(), "{lines}");
        assert!(lines.lines().last().unwrap().contains(" [DONE] "), "{lines}");
    }
}

/// A foreign process. It is ended, with its children, when this is dropped.
pub(crate) struct LookAlike(Child);

impl LookAlike {
    #[track_caller]
    pub(crate) fn assert_alive(&mut self) {
        assert!(self.0.try_wait().unwrap().is_none(), "a stranger was ended");
    }
}

impl Drop for LookAlike {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Sends a signal to a process that is known to live.
#[track_caller]
pub(crate) fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// The supervisors below the process with this pid.
pub(crate) fn supervisors_of(ralph: u32) -> Vec<u32> {
    let below = Stat::all().filter(|stat| stat.ppid == ralph && !stat.is_dead());
    below.map(|stat| stat.pid).filter(|pid| describe(*pid).contains(" __supervise")).collect()
}

/// Reads ralph's stderr up to a line that contains `words`, and continues reading, so that ralph never blocks.
#[track_caller]
pub(crate) fn await_stderr(ralph: &mut Child, words: &str) {
    let mut lines = BufReader::new(ralph.stderr.take().unwrap()).lines();
    let found = lines.by_ref().any(|line| line.unwrap().contains(words));
    assert!(found, "ralph never said: {words}");
    std::thread::spawn(move || lines.for_each(drop));
}

/// A process's pid and command line, for messages.
pub(crate) fn describe(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
}

/// The last part of a long text, for messages.
pub(crate) fn tail(text: &str) -> &str {
    text.char_indices().rev().nth(3000).map_or(text, |(start, _)| &text[start..])
}
