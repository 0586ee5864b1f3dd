//! Both backends keep hold of what a program starts, and kernels that lack a call get the portable one.

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};
use std::thread;

use ralph::platform::stat::Stat;
use rustix::process::Signal;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::processes::send;
use crate::scratch::{PLATFORM, Run, Scratch};

const DONE: &str = "cat > /dev/null; say '<promise>COMPLETE</promise>'; result";
/// Children that leave their parent, their session and their environment.
const LEFT_BEHIND: &str = r#"
setsid bash -c "$(declare -f note)"'; note; trap "" INT TERM HUP; while :; do sleep 600; done' &
( ( setsid env -i HOME="$HOME" PATH="$PATH" bash -c "$(declare -f note)"'; note; sleep 600; :' & ) & )
until [ "$(wc -l < "$HOME/pids")" -ge 3 ]; do sleep 0.01; done
"#;

#[test]
fn nothing_outlives_the_plays_of_the_doctor() {
    let scratch = Scratch::new();
    // The last one where the state folder cannot be made: its marks are among temporary files.
    for (backend, state) in [("linux", None), ("portable", None), ("portable", Some("/proc/nowhere"))] {
        let mut doctor = scratch.ralph("doctor --supervision --json");
        let run = Scratch::finish(doctor.env(PLATFORM, backend).envs(state.map(|at| ("XDG_STATE_HOME", at))));
        let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((run.code, report["ok"].as_bool()), (Some(0), Some(true)), "{run:?}");
        assert_eq!(report["backend"], backend, "{run:?}");
        let plays = report["plays"].as_array().unwrap();
        assert!(plays.len() >= 8 && plays.iter().all(|play| play["ok"] == true), "{run:?}");
        scratch.await_nothing_left();
    }
    let run = scratch.run("doctor --supervision");
    let block = run.stdout.strip_prefix("```\n").and_then(|rest| rest.strip_suffix("```\n"));
    assert!(block.is_some_and(|block| block.contains("\nok   a killed ralph  ")), "{run:?}");
}

/// A call that a kernel lacks or a sandbox refuses: its number, one of its arguments, and the answer.
type Refused = (i64, Option<(u8, u64)>, i32);

/// Runs a command where calls are refused. The filter holds for one thread and what it starts.
fn where_refused(refused: Refused, mut command: Command) -> Run {
    let (call, argument, errno) = refused;
    let start = move || {
        let condition = |(at, value)| {
            SeccompCondition::new(at, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value).unwrap()
        };
        let rules: Vec<SeccompRule> = argument
            .into_iter()
            .map(|argument| SeccompRule::new(vec![condition(argument)]).unwrap())
            .collect();
        let filter = SeccompFilter::new(
            BTreeMap::from([(call, rules)]),
            SeccompAction::Allow,
            SeccompAction::Errno(errno.unsigned_abs()),
            std::env::consts::ARCH.try_into().unwrap(),
        );
        let program: BpfProgram = filter.unwrap().try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
        Scratch::finish(&mut command)
    };
    thread::spawn(start).join().unwrap()
}

/// The numbers of `pidfd_send_signal` and `pidfd_open`, which all architectures share, and of `prctl`.
const PIDFD_SEND_SIGNAL: i64 = 424;
const PIDFD_OPEN: i64 = 434;
const PRCTL: i64 = if cfg!(target_arch = "x86_64") { 157 } else { 167 };
const SET_CHILD_SUBREAPER: u64 = 36;
const ENOSYS: i32 = 38;
const EPERM: i32 = 1;

#[test]
fn a_kernel_that_lacks_a_call_gets_the_portable_backend() {
    for (refused, name) in [
        ((PIDFD_OPEN, None, ENOSYS), "pidfd_open"),
        ((PIDFD_SEND_SIGNAL, None, EPERM), "pidfd_send_signal"),
        ((PRCTL, Some((0, SET_CHILD_SUBREAPER)), EPERM), "PR_SET_CHILD_SUBREAPER"),
    ] {
        let scratch = Scratch::new();
        scratch.agent("claude", &format!("{LEFT_BEHIND}{DONE}"));
        let mut stranger = scratch.look_alike("claude");
        let ralph = |args| {
            let mut ralph = scratch.ralph(args);
            ralph.env_remove(PLATFORM);
            ralph
        };
        let run = where_refused(refused, ralph("prompt p.md 3"));
        assert_eq!(run.code, Some(0), "{name}: {run:?}");
        scratch.assert_nothing_left();
        stranger.assert_alive();
        // The doctor asks the agent for its version.
        scratch.agent("claude", DONE);
        let doctor = where_refused(refused, ralph("doctor"));
        let first = doctor.stdout.lines().next().unwrap();
        assert!(first.contains("backend portable") && first.contains(name), "{doctor:?}");
        for run in [run, doctor] {
            assert!(!format!("{run:?}").contains("not implemented"), "{name}: {run:?}");
        }
    }
}

/// Where not even `/proc` is mounted, a session of its own is still known.
#[test]
fn a_loop_runs_where_no_process_can_be_seen() {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("sleep 600 &\n{DONE}"));
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let script = format!("mount -t tmpfs none /proc && exec {ralph} \"$@\"");
    let run = |args: &[&str]| {
        let mut command = scratch.command("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"]).args(args);
        Scratch::finish(command.env_remove(PLATFORM))
    };
    let loop_run = run(&["prompt", "p.md", "3"]);
    assert_eq!(loop_run.code, Some(0), "{loop_run:?}");
    scratch.assert_nothing_left();
    let doctor = run(&["doctor"]);
    let first = doctor.stdout.lines().next().unwrap_or_default();
    assert!(first.contains("backend portable") && first.contains("/proc"), "{doctor:?}");
}

/// What no backend but that of Linux can hold: a process without a session, an environment or an open file of the
/// program, whose parent was gone before a look. Whether a look comes in between is chance; so all that is
/// certain is checked: nothing that is marked is left, and with Linux nothing at all.
#[test]
fn only_what_drops_every_mark_between_two_looks_can_get_away() {
    let away = r#"
close='for file in /proc/self/fd/*; do file=${file##*/}; [ "$file" -gt 2 ] && eval "exec $file>&-"; done'
for each in 1 2 3 4 5 6 7 8; do
  setsid env -i HOME="$HOME" PATH="$PATH" bash -c "$close; $(declare -f note)
    ( setsid bash -c '$(declare -f note); note; exec sleep 600' & )" > /dev/null 2>&1 < /dev/null &
done
until [ "$(wc -l < "$HOME/pids")" -ge 9 ]; do sleep 0.01; done
"#;
    for backend in ["linux", "portable"] {
        let scratch = Scratch::new();
        scratch.agent("claude", &format!("{away}{LEFT_BEHIND}{DONE}"));
        let run = Scratch::finish(scratch.ralph("prompt p.md 3").env(PLATFORM, backend));
        assert_eq!(run.code, Some(0), "{run:?}");
        let left = scratch.living();
        assert!(left.is_empty() || backend == "portable", "{left:?}: {run:?}");
        let marks = scratch.home().join("state/ralph/marks");
        for pid in left {
            let is_marked = ralph::platform::calls::open_files(pid).any(|file| file.starts_with(&marks));
            let environment = ralph::platform::calls::environment(pid);
            let names_run = environment.windows(10).any(|part| part == b"RALPH_RUN=");
            if Stat::read(pid).is_some_and(|stat| !stat.is_dead()) {
                send(pid, Signal::KILL);
                assert!(!is_marked && !names_run, "{pid} is marked, and was left: {run:?}");
            }
        }
        scratch.await_nothing_left();
    }
}

/// The file that marks a program is gone with it, also after a loop that was killed.
#[test]
fn marks_do_not_pile_up() -> io::Result<()> {
    let scratch = Scratch::new();
    let marks = || std::fs::read_dir(scratch.home().join("state/ralph/marks")).map(Iterator::count);
    let portable = |args| {
        let mut ralph = scratch.ralph(args);
        ralph.env(PLATFORM, "portable");
        ralph
    };
    scratch.agent("claude", "sleep 600");
    let mut ralph = portable("prompt p.md 3").stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    scratch.await_noted(1);
    assert_eq!(marks()?, 1);
    ralph.kill()?;
    ralph.wait()?;
    scratch.await_nothing_left();
    scratch.agent("claude", DONE);
    let run = Scratch::finish(&mut portable("prompt p.md 3"));
    assert_eq!((run.code, marks()?), (Some(0), 0), "{run:?}");
    Ok(())
}
