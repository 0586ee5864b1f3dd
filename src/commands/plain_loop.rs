//! `ralph plan`, `ralph build`, `ralph prompt FILE`: the loop over one prompt file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};

use crate::cli::{LoopArgs, LoopFlags, PromptArgs};
use crate::files::theirs::PromptText;
use crate::job::Refused;
use crate::job::preflight::Preflight;
use crate::job::ready::run_id;
use crate::job::variables::prompt_names;
use crate::job::workspace::{Workspace, open_loop};
use crate::project::Project;
use crate::prompt;
use crate::record::state_read::{self, Extent, Found};
use crate::reply::sigil::COMPLETE;
use crate::settings::{Settings, Verb};
use crate::source::built_plan::BuiltPlan;
use crate::source::prompt_file::{Plan, PromptFile, REPLAN, Text};
use crate::view::plain::Frame;

/// `ralph plan`.
pub(super) fn plan(args: &LoopArgs) -> anyhow::Result<u8> {
    let limit = iterations(&[&args.iterations[..], &args.max_iterations].concat())?;
    run(Verb::Plan, None, limit, &args.flags)
}

/// `ralph build`.
pub(super) fn build(args: &LoopArgs) -> anyhow::Result<u8> {
    let limit = iterations(&[&args.iterations[..], &args.max_iterations].concat())?;
    run(Verb::Build, None, limit, &args.flags)
}

/// `ralph prompt`.
pub(super) fn prompt(args: PromptArgs) -> anyhow::Result<u8> {
    let by_flag = args.max_iterations.into_iter().map(OsString::from);
    let (file, limit) = file_and_iterations(args.file_and_iterations.into_iter().chain(by_flag).collect())?;
    run(Verb::Prompt, Some(&file), limit, &args.flags)
}

/// The one number on the command line, alone or by its flag.
fn iterations(words: &[String]) -> anyhow::Result<Option<u64>> {
    match words {
        [] => Ok(None),
        [word] => count(word).map(Some),
        [first, second, ..] => {
            bail!("at most one number of iterations is possible, but '{first}' and '{second}' were given")
        }
    }
}

/// A number of iterations.
pub(super) fn count(word: &str) -> anyhow::Result<u64> {
    match word.parse() {
        Ok(0) | Err(_) => {
            bail!(
                "'{word}' is not a number of iterations: give a whole number from 1, as in 'ralph build 20'"
            )
        }
        Ok(count) => Ok(count),
    }
}

/// A number of iterations; 0 means no limit.
pub(super) fn count_or_none(word: &str) -> anyhow::Result<Option<u64>> {
    if word == "0" { Ok(None) } else { count(word).map(Some) }
}

/// The prompt file, and the number before or after it.
fn file_and_iterations(words: Vec<OsString>) -> anyhow::Result<(PathBuf, Option<u64>)> {
    let looks_like_count = |word: &OsString| {
        word.to_str().is_some_and(|text| !text.is_empty() && text.chars().all(|char| char.is_ascii_digit()))
    };
    let mut words = words;
    if words.len() == 2 && looks_like_count(&words[0]) && !looks_like_count(&words[1]) {
        words.swap(0, 1);
    }
    let mut words = words.into_iter();
    let file = words.next().ok_or_else(|| anyhow!("no prompt file given, as in 'ralph prompt review.md'"))?;
    let rest: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    Ok((file.into(), iterations(&rest)?))
}

/// Runs one of the three modes; `file` is the prompt of mode `prompt`.
fn run(verb: Verb, file: Option<&Path>, limit: Option<u64>, flags: &LoopFlags) -> anyhow::Result<u8> {
    let workspace = open_loop(verb, flags)?;
    let Workspace { project, settings } = &workspace;
    project.require_git()?;
    let limit = limit.or_else(|| limit_it_had(project, verb).filter(|_| flags.resume));
    let preflight = Preflight::of_settings(workspace.called(verb, flags), limit)?;
    if verb != Verb::Prompt {
        require_specs(project.root(), settings)?;
    }
    let source = source(&preflight, file)?;
    let mut ready = preflight.ready(project, &run_id(), [])?;
    if verb == Verb::Plan {
        // The validation command is for code.
        ready.validated_by(None);
    }
    ready.run(source, Frame::Blocks)
}

/// The limit of the last loop here, if that is resumed. Other problems of its state are reported when it is resumed.
fn limit_it_had(project: &Project, verb: Verb) -> Option<u64> {
    match state_read::read(&project.state(), Extent::Whole) {
        Ok(Found::State(state)) if state.setup.verb == verb.words() => state.max_iterations,
        _ => None,
    }
}

pub(super) fn require_specs(root: &Path, settings: &Settings) -> anyhow::Result<()> {
    let specs = root.join(&settings.specs_dir);
    if !specs.is_dir() {
        bail!(
            "specs directory not found: {}: create it and describe there what to build, or set SPECS_DIR; \
             'ralph init' does the first",
            specs.display()
        );
    }
    Ok(())
}

/// The prompt of a mode: from the ralph dir, or the built-in one.
fn own_prompt(project: &Project, mode: &str) -> Text {
    let path = project.prompt(mode);
    match (path.exists(), mode) {
        (true, _) => Text::File(PromptText::at(path)),
        (false, "plan") => Text::BuiltIn(prompt::PLAN),
        (false, _) => Text::BuiltIn(prompt::BUILD),
    }
}

/// The source of prompts, checked: a mistake that would end the loop at once is refused here.
fn source(preflight: &Preflight<'_>, file: Option<&Path>) -> anyhow::Result<PromptFile> {
    let (project, mode) = (&preflight.call.workspace.project, preflight.call.mode());
    let text = match file {
        Some(path) => Text::File(PromptText::at(project.cwd().join(path))),
        None => own_prompt(project, mode),
    };
    let plan = match mode {
        "build" => Plan::Built(BuiltPlan::new(project.implementation_plan())),
        "plan" => Plan::Written(project.implementation_plan()),
        _ => Plan::None,
    };
    let names = prompt_names(preflight.call, &preflight.limits, project);
    let source = PromptFile::new(text, plan, names, REPLAN);
    source.check_plan().map_err(Refused::from)?;
    let template = source.read().map_err(Refused::from)?;
    if mode == "prompt" && !template.contains(COMPLETE) {
        bail!(
            "prompt file {} does not mention {COMPLETE}: tell the agent to answer with it when all is done, or \
             the loop could only end at its limit",
            file.unwrap_or(Path::new("")).display()
        );
    }
    Ok(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_and_only_a_good_one() {
        let read =
            |words: &[&str]| iterations(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&["20"]).unwrap(), Some(20));
        for bad in [&["abc"][..], &["-1"], &["0"], &["1", "2"], &["1.5"], &[""], &["99999999999999999999"]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_number_may_stand_before_or_behind_the_file() {
        let read = |words: &[&str]| file_and_iterations(words.iter().map(OsString::from).collect());
        assert_eq!(read(&["a.md", "3"]).unwrap(), ("a.md".into(), Some(3)));
        assert_eq!(read(&["3", "a.md"]).unwrap(), ("a.md".into(), Some(3)));
        assert_eq!(read(&["3"]).unwrap(), ("3".into(), None));
        assert!(read(&["a.md", "b.md"]).is_err());
        assert!(read(&["a.md", "1", "2"]).is_err());
    }
}
