//! `ralph resume`: a loop that holds or waits goes on; one whose process is gone is started again.

use std::collections::HashSet;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::control::{Answer, ask, not_yet, noun};
use super::output::{Said, warn};
use super::plain_loop::count as number;
use super::target;
use crate::agent::pane::done::DonePattern;
use crate::cli::ResumeArgs;
use crate::engine::outcome::{Outcome, Status};
use crate::engine::stop::{Change, Request};
use crate::record::lookup::Loop;
use crate::record::state::{Pending, State};
use crate::text::count;

const RESUME: &str = "--resume";
const RESUME_LIMIT: &str = "--resume-limit";

/// `ralph resume`.
pub(super) fn run(args: &ResumeArgs) -> anyhow::Result<u8> {
    let limit = args.max_iterations.as_deref().map(number).transpose()?;
    let (here, loops) = target::loops(&args.target)?;
    let running: Vec<&Loop> = loops.iter().filter(|found| found.alive().is_some()).collect();
    if !running.is_empty() {
        for found in running {
            go_on(found, limit)?.iter().for_each(Said::print);
        }
        return Ok(0);
    }
    let states = || loops.iter().filter_map(|found| Some((found, found.state.as_deref().ok()?)));
    let mut cut_off: Vec<(&Loop, &State)> = states().filter(|(_, state)| state.was_interrupted()).collect();
    // Branches that one command line has built are built by it again.
    let mut commands = HashSet::new();
    cut_off.retain(|(_, state)| commands.insert((&state.argv, &state.cwd, &state.setup.started_from)));
    match (cut_off.as_slice(), states().next()) {
        ([(found, state)], _) => start_again(found, state, limit),
        ([_, _, ..], _) => {
            let names: Vec<&str> = cut_off.iter().map(|(found, _)| found.name.as_str()).collect();
            bail!("several loops were cut off here: {}: name the one to resume", names.join(", "))
        }
        ([], Some((found, state))) => match limit.filter(|_| has_reached_its_limit(state)) {
            Some(limit) => start_again(found, state, Some(left_of(limit, &found.name, state)?)),
            None => bail!(
                "loop '{}' has come to its end ({}): start it again, or give it a new allowance with '{}'",
                found.name,
                state.word(),
                shown(&with_resume(&state.argv, None))
            ),
        },
        ([], None) => match loops.iter().find_map(|found| found.state.as_ref().err()) {
            Some(why) => bail!("nothing to resume: {why}"),
            None => bail!("nothing to resume in {}: there is no loop", here.root().display()),
        },
    }
}

/// Whether a loop has ended because it had run as often as it might, with or without proof of what it did.
fn has_reached_its_limit(state: &State) -> bool {
    let ended_by = |outcome: Outcome| state.exit_reason.as_deref() == Some(outcome.word());
    ended_by(Outcome::MaxIterations) || ended_by(Outcome::Unproven)
}

/// What a loop has left that has reached its limit, under a new one.
fn left_of(limit: u64, name: &str, state: &State) -> anyhow::Result<u64> {
    let begun = state.tally.iteration - state.tally.allowance_from.min(state.tally.iteration);
    match limit.checked_sub(begun) {
        None | Some(0) => bail!("loop '{name}' has run {begun} iterations: --max-iterations has to be more"),
        Some(left) => Ok(left),
    }
}

/// Has a living loop go by a new limit, and lets it go on.
pub(super) fn go_on(found: &Loop, limit: Option<u64>) -> anyhow::Result<Vec<Said>> {
    let mut said = Vec::new();
    let Some(state) = found.alive() else { return Ok(said) };
    let name = &found.name;
    let holds = state.holds();
    if let Some(change) = change(name, state, limit)? {
        match ask(found, Request::Change(change), &|_| true)? {
            Answer::Taken(_) => {}
            Answer::Pending => said.push(not_yet(found)),
            Answer::Over => {
                bail!("loop '{name}' ended before it could be changed: see 'ralph status {name}'")
            }
        }
    }
    if let Some(limit) = limit {
        said.push(Said::Answer(format!("loop '{name}' runs at most {} now", count::of(limit, "iteration"))));
        if state.status == Status::Running && !holds {
            return Ok(said);
        }
    }
    said.push(release(found, state, holds)?);
    Ok(said)
}

/// What a living loop is to go by from here on; `None`: it is as before.
fn change(name: &str, state: &State, limit: Option<u64>) -> anyhow::Result<Option<Change>> {
    // While it holds, its user may change the file.
    let watching = state.watching().filter(|_| state.holds());
    if let Some(pattern) = watching.as_ref().and_then(|watching| watching.done_pattern.as_deref()) {
        DonePattern::new(pattern).with_context(|| format!("the state.json of worker '{name}'"))?;
    }
    let of_file = state.max_iterations.filter(|_| watching.is_some());
    let change = Change { max_iterations: limit.or(of_file), watching };
    Ok((change != Change::default()).then_some(change))
}

/// Lets a living loop go on.
fn release(found: &Loop, state: &State, holds: bool) -> anyhow::Result<Said> {
    let name = &found.name;
    if state.status == Status::Running && state.tally.in_attempt && !holds {
        return Ok(Said::Warning(format!("{} '{name}' is not paused", noun(state))));
    }
    if state.status == Status::Waiting && state.waiting_until.is_none() && !holds {
        return Ok(Said::Warning(format!("loop '{name}' waits until fewer others are at work")));
    }
    let was = state.status;
    let is_done = |state: &State| {
        let goes_on = was == Status::Running || state.status != was;
        goes_on && state.pending != Some(Pending::Pause)
    };
    Ok(match ask(found, Request::Resume, &is_done)? {
        Answer::Taken(_) if was == Status::Waiting => {
            Said::Answer(format!("resumed ralph loop for {name}: it waits no longer"))
        }
        Answer::Taken(_) => Said::Answer(format!("resumed ralph loop for {name}")),
        Answer::Pending => not_yet(found),
        Answer::Over => bail!("loop '{name}' ended before it could go on: see 'ralph status {name}'"),
    })
}

/// Becomes the loop: its own command line, where it was started, with `--resume`.
fn start_again(found: &Loop, state: &State, limit: Option<u64>) -> anyhow::Result<u8> {
    let argv = with_resume(&state.argv, limit);
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

/// The command line with `--resume`, in front, where no `--` can come before it, and with a new limit.
fn with_resume(argv: &[String], limit: Option<u64>) -> Vec<String> {
    let Some((program, rest)) = argv.split_first() else { return Vec::new() };
    // What an earlier call has put there.
    let (resumed, rest) = match rest {
        [resume, old, rest @ ..] if resume == RESUME && old.starts_with(RESUME_LIMIT) => (Some(old), rest),
        [resume, rest @ ..] if resume == RESUME => (None, rest),
        rest => (None, rest),
    };
    let limit = limit.map(|limit| format!("{RESUME_LIMIT}={limit}")).or_else(|| resumed.cloned());
    let is_there = rest.iter().take_while(|word| *word != "--").any(|word| word == RESUME);
    let resume = (!is_there).then(|| RESUME.to_owned());
    [program.clone()].into_iter().chain(resume).chain(limit).chain(rest.iter().cloned()).collect()
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
            shown(&with_resume(&argv, None))
        };
        assert_eq!(line("ralph build 3"), "ralph --resume build 3");
        assert_eq!(line("ralph build --resume 3"), "ralph build --resume 3");
        assert_eq!(line("ralph run x -- --resume"), "ralph --resume run x -- --resume");
        assert!(with_resume(&[], None).is_empty());
    }

    #[test]
    fn a_new_limit_takes_the_place_of_the_last_one() {
        let line = |limit, text: &str| {
            let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
            with_resume(&argv, limit).join(" ")
        };
        let limited = "ralph --resume --resume-limit=30 build 3";
        assert_eq!(line(Some(30), "ralph build 3"), limited);
        assert_eq!(line(Some(30), "ralph --resume --resume-limit=9 build 3"), limited);
        assert_eq!(line(None, limited), limited);
    }
}
