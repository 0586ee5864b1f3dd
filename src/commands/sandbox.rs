//! `ralph sandbox`: what walls would hold for the next agent, and a command behind them.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use rustix::process::{Pid, Signal, getppid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use super::output::{print, print_for_people, warn};
use crate::cli::SandboxArgs;
use crate::job::agent_choice;
use crate::job::workspace::{Workspace, open_with_secrets};
use crate::platform::backend::is_portable;
use crate::platform::calls::{adopt, own_executable, signal_at_parents_death};
use crate::platform::family::Family;
use crate::platform::mark::Mark;
use crate::process::launch::Launch;
use crate::process::walls::{Host, Layer, Plan, Reach};
use crate::sandbox::{Grounds, NoWalls, Walls};
use crate::side_command::refused;
use crate::text::line::escaped;
use crate::text::palette::STRONG;
use crate::threads;

/// How long what a program has left behind may take to die, and how often that is looked at.
const LEFT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);
/// The hidden verb between ralph and the program.
pub const VERB: &str = "__keep";
/// The version of the JSON layout.
const SCHEMA: u32 = 1;

/// `ralph sandbox`.
pub(super) fn run(args: &SandboxArgs) -> anyhow::Result<u8> {
    let Workspace { project, settings } = open_with_secrets(&args.place)?;
    let agent = agent_choice::of_settings(&settings, &project)?;
    let (given, logins) = (settings.exported(), settings.folders_of_accounts());
    let (sandbox, redact) = (&settings.sandbox, &settings.redact);
    let grounds = Grounds {
        settings: sandbox,
        redact,
        project: &project,
        preset: agent.preset,
        given: &given,
        logins: &logins,
    };
    let launch = Launch { cwd: project.cwd().to_owned(), env: given.clone(), ..Launch::default() };
    let (mut walls, partly) = grounds.tried().map_err(alone)?;
    if let Some(partly) = partly {
        warn(&partly);
    }
    if let [program, arguments @ ..] = &*args.command {
        let (program, args) = (program.clone(), arguments.to_vec());
        if let Walls::Ours(enclosure) = &mut walls {
            enclosure.plan.is_bound = true;
        }
        return inside(&walls.around(Launch { program, args, ..launch }));
    }
    let Walls::Ours(enclosure) = walls else {
        let wrapper = &sandbox.wrapper;
        if args.json {
            let report =
                serde_json::json!({ "schema": SCHEMA, "mode": sandbox.mode.word(), "wrapper": wrapper });
            return print(|out| writeln!(out, "{report:#}"));
        }
        let (mode, words) = (sandbox.mode.word(), escaped(&wrapper.join(" ")));
        return print_for_people(|out| {
            writeln!(out, "sandbox.mode is {mode}; sandbox.wrapper starts a program here: {words}")?;
            writeln!(out, "it has started one; what it keeps from one is not known")
        });
    };
    let plan = enclosure.plan_for(&launch.cwd, &|name| launch.variable(name));
    if args.json {
        let report = serde_json::json!({ "schema": SCHEMA, "mode": sandbox.mode.word(), "walls": plan });
        return print(|out| writeln!(out, "{report:#}"));
    }
    let mode = sandbox.mode.word();
    print_for_people(|out| {
        writeln!(out, "sandbox.mode is {mode}; behind walls, a program here")?;
        for (title, places) in titled(&plan) {
            writeln!(out, "{STRONG}{title}{STRONG:#}")?;
            for place in places {
                writeln!(out, "  {}", escaped(&place))?;
            }
        }
        Ok(())
    })
}

/// The error where no loop is meant that could go on without.
fn alone(NoWalls(why): NoWalls) -> anyhow::Error {
    anyhow!("the walls cannot be built here: {why}")
}

/// The parts of a plan that say something, each with what it says.
fn titled(plan: &Plan) -> Vec<(&'static str, Vec<String>)> {
    let paths = |paths: &[PathBuf]| -> Vec<String> {
        paths
            .iter()
            .filter(|path| path.symlink_metadata().is_ok())
            .map(|path| path.display().to_string())
            .collect()
    };
    let layers = |layer: &Layer| {
        let named = layer.copied.join(", ");
        let kept = if named.is_empty() { String::new() } else { format!(" (kept: {named})") };
        format!("{}{kept}", layer.path.display())
    };
    let network = match &plan.reach {
        Reach::All => vec!["everything".to_owned()],
        Reach::None => vec!["its own loopback, and nothing else".to_owned()],
        Reach::Hosts(hosts) => {
            ["its own loopback".to_owned()].into_iter().chain(hosts.iter().map(Host::to_string)).collect()
        }
    };
    [
        ("can write", paths(&plan.writable)),
        ("but not", paths(&plan.read_only)),
        ("has a top of its own, which is thrown away, in", plan.layers.iter().map(layers).collect()),
        ("has a new, empty", paths(&plan.fresh)),
        ("cannot read", paths(&plan.hidden)),
        ("does not get the variables", plan.unset.clone()),
        ("can connect to", network),
    ]
    .into_iter()
    .filter(|(_, lines)| !lines.is_empty())
    .collect()
}

/// Runs a program behind walls on our terminal; returns its exit code.
fn inside(launch: &Launch) -> anyhow::Result<u8> {
    let enclosed = launch.enclosed()?;
    let launch = enclosed.as_ref().map_or(launch, |(launch, _)| launch);
    let mut words = launch.command_line().cloned();
    let mut command = if is_portable() {
        Command::new(words.next().unwrap_or_default())
    } else {
        let mut keeper = Command::new(own_executable());
        keeper.args([VERB, &std::process::id().to_string()]);
        keeper
    };
    command.args(words).current_dir(&launch.cwd).envs(launch.env.iter().map(|(name, value)| (name, value)));
    let code = tended(&mut command, None)?;
    // What it prints goes to the terminal without us.
    let turned_away = enclosed.as_ref().map(|(_, inside)| inside.turned_away()).unwrap_or_default();
    for refused in refused(&turned_away) {
        warn(&refused.told());
    }
    Ok(code)
}

/// The hidden verb `ralph __keep RALPH PROGRAM [ARGUMENTS]`: runs the program, and ends all of it when the ralph with this pid, our
/// parent, is killed. If this process is killed, that ralph does the same.
#[must_use]
pub fn keep(argv: &[OsString]) -> i32 {
    let [ralph, program, arguments @ ..] = argv else { return 1 };
    let kept = signal_at_parents_death(Signal::USR1).map_err(anyhow::Error::from).and_then(|()| {
        let parent = getppid().filter(|parent| ralph.to_str() == Some(&parent.to_string()));
        // It was killed before the kernel knew that we want to be told.
        if parent.is_none() { Ok(1) } else { tended(Command::new(program).args(arguments), parent) }
    });
    match kept {
        Ok(code) => i32::from(code),
        Err(error) => {
            let _ = super::report_error(&error);
            1
        }
    }
}

/// Runs a program on our terminal and ends what it leaves behind, and all of it when this parent dies; returns its exit code.
fn tended(command: &mut Command, parent: Option<Pid>) -> anyhow::Result<u8> {
    // A Ctrl+C at the terminal is for the program.
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    // What it leaves behind becomes ours, and ends before its folder is removed. Our session is the user's.
    let mark = Mark::of_run(&format!("sandbox-{}", std::process::id()));
    if !is_portable() {
        adopt(true)?;
    }
    let mut asked = Signals::new([SIGTERM, SIGHUP].into_iter().chain(parent.map(|_| SIGUSR1)))?;
    let spawned = if is_portable() { mark.spawn(command) } else { command.spawn() };
    let mut child = spawned.with_context(|| Path::new(command.get_program()).display().to_string())?;
    let pid = Pid::from_child(&child);
    let theirs = mark.clone();
    threads::start(move || {
        for signal in asked.forever() {
            // A user may send this one as well.
            if signal == SIGUSR1 && getppid() != parent {
                end_what_is_left(&theirs);
            } else if signal != SIGUSR1 {
                let _ = kill_process(pid, if signal == SIGHUP { Signal::HUP } else { Signal::TERM });
            }
        }
    })?;
    let status = child.wait()?;
    end_what_is_left(&mark);
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Kills all that the program has left behind.
fn end_what_is_left(mark: &Mark) {
    let mut left = Family::below(std::process::id(), Some(mark.clone()));
    let give_up = Instant::now() + LEFT;
    while !left.is_gone() && Instant::now() < give_up {
        left.kill(|_| false);
        std::thread::sleep(LOOK);
    }
    mark.remove_files();
}
