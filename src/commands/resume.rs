//! `ralph resume`: a loop that holds or waits goes on; one whose process is gone is started again.

use std::collections::HashSet;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::control::{Answer, ask, not_yet};
use super::output::{say, warn};
use super::target;
use crate::cli::TargetArgs;
use crate::engine::outcome::Status;
use crate::engine::stop::Request;
use crate::record::lookup::Loop;
use crate::record::state::{Pending, State};

const RESUME: &str = "--resume";

/// `ralph resume`.
pub(super) fn run(args: &TargetArgs) -> anyhow::Result<u8> {
    let (here, loops) = target::loops(args)?;
    let running: Vec<&Loop> = loops.iter().filter(|found| found.alive().is_some()).collect();
    if !running.is_empty() {
        running.into_iter().try_for_each(release)?;
        return Ok(0);
    }
    let states = || loops.iter().filter_map(|found| Some((found, found.state.as_deref().ok()?)));
    let mut cut_off: Vec<(&Loop, &State)> = states().filter(|(_, state)| state.was_interrupted()).collect();
    // Branches that one command line has built are built by it again.
    let mut commands = HashSet::new();
    cut_off.retain(|(_, state)| commands.insert((&state.argv, &state.cwd, &state.setup.started_from)));
    match (cut_off.as_slice(), states().next()) {
        ([(found, state)], _) => start_again(found, state),
        ([_, _, ..], _) => {
            let names: Vec<&str> = cut_off.iter().map(|(found, _)| found.name.as_str()).collect();
            bail!("several loops were cut off here: {}: name the one to resume", names.join(", "))
        }
        ([], Some((found, state))) => bail!(
            "loop '{}' has come to its end ({}): start it again, or give it a new allowance with '{}'",
            found.name,
            state.exit_reason.as_deref().unwrap_or("unknown"),
            shown(&with_resume(&state.argv))
        ),
        ([], None) => match loops.iter().find_map(|found| found.state.as_ref().err()) {
            Some(why) => bail!("nothing to resume: {why}"),
            None => bail!("nothing to resume in {}: there is no loop", here.root().display()),
        },
    }
}

/// Lets a living loop go on.
fn release(found: &Loop) -> anyhow::Result<()> {
    let Some(state) = found.alive() else { return Ok(()) };
    let name = &found.name;
    let holds = state.status == Status::Paused || state.pending == Some(Pending::Pause);
    if state.status == Status::Running && state.tally.in_attempt && !holds {
        warn(&format!("loop '{name}' is not paused"));
        return Ok(());
    }
    if state.status == Status::Waiting && state.waiting_until.is_none() && !holds {
        warn(&format!("loop '{name}' waits until fewer others are at work"));
        return Ok(());
    }
    let was = state.status;
    let is_done = |state: &State| {
        let goes_on = was == Status::Running || state.status != was;
        goes_on && state.pending != Some(Pending::Pause)
    };
    match ask(found, Request::Resume, &is_done)? {
        Answer::Taken(_) if was == Status::Waiting => {
            say(&format!("resumed ralph loop for {name}: it waits no longer"));
        }
        Answer::Taken(_) => say(&format!("resumed ralph loop for {name}")),
        Answer::Pending => not_yet(found),
        Answer::Over => bail!("loop '{name}' ended before it could go on: see 'ralph status {name}'"),
    }
    Ok(())
}

/// Becomes the loop: its own command line, where it was started, with `--resume`.
fn start_again(found: &Loop, state: &State) -> anyhow::Result<u8> {
    let argv = with_resume(&state.argv);
    let [program, rest @ ..] = argv.as_slice() else {
        bail!("the command line of loop '{}' is not known: start it by hand with {RESUME}", found.name);
    };
    if !state.cwd.is_dir() {
        bail!("{} is gone, where loop '{}' was started: start it by hand", state.cwd.display(), found.name);
    }
    let line = shown(&argv);
    warn(&format!("starting loop '{}' again in {}: {line}", found.name, state.cwd.display()));
    let exe = std::env::current_exe().context("cannot find our own executable")?;
    let error = Command::new(exe)
        .arg0(program)
        .args(rest)
        .current_dir(&state.cwd)
        // Where the ralph dir is found by the environment or by the executable's place, that may differ here.
        .env("RALPH_DIR", state.setup.started_from.as_deref().unwrap_or(found.project.ralph_dir()))
        .exec();
    Err(error).with_context(|| format!("cannot run {line}"))
}

/// The command line with `--resume`, in front, where no `--` can come before it.
fn with_resume(argv: &[String]) -> Vec<String> {
    let mut argv = argv.to_vec();
    let flags = argv.iter().take_while(|word| *word != "--");
    if !argv.is_empty() && flags.into_iter().all(|word| word != RESUME) {
        argv.insert(1, RESUME.to_owned());
    }
    argv
}

/// A command line as one would type it.
fn shown(argv: &[String]) -> String {
    shlex::try_join(argv.iter().map(String::as_str)).unwrap_or_else(|_| argv.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_is_added_once_and_before_the_users_arguments() {
        let line = |text: &str| {
            let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
            shown(&with_resume(&argv))
        };
        assert_eq!(line("ralph build 3"), "ralph --resume build 3");
        assert_eq!(line("ralph build --resume 3"), "ralph build --resume 3");
        assert_eq!(line("ralph run x -- --resume"), "ralph --resume run x -- --resume");
        assert!(with_resume(&[]).is_empty());
    }
}
