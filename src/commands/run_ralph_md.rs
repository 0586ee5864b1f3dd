//! `ralph run TARGET`: the loop over a RALPH.md.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, bail};
use clap::Args as _;

use super::output::{print_as_it_is, remark};
use super::plain_loop::count_or_none;
use crate::cli::RunArgs;
use crate::cli::user_args::{UserArg, own_names};
use crate::engine::context::Context;
use crate::engine::event::LoopIdentity;
use crate::engine::inbox::Inbox;
use crate::engine::outcome::Outcome;
use crate::engine::source::Source as _;
use crate::engine::tally::Given;
use crate::files::theirs::PromptText;
use crate::job::Refused;
use crate::job::agent_choice;
use crate::job::launch::launch_behind_walls;
use crate::job::preflight::{Preflight, limits};
use crate::job::ready::run_id;
use crate::job::signals::Signals;
use crate::job::variables::agent_env;
use crate::job::workspace::{Workspace, open_loop};
use crate::prompt::front_matter::Document;
use crate::settings::Verb;
use crate::source::ralph_md::RalphMd;
use crate::text::nearest::nearest;
use crate::view::plain::Frame;
use crate::view::run_lines::RunLines;

/// The file of a folder that is a target.
pub(super) const FILE: &str = "RALPH.md";
const MODE: &str = "run";

/// Whether the target is a RALPH.md or its folder: the parser knows, because the words after it are for the file.
#[expect(clippy::unnecessary_wraps, reason = "other targets are looked up")]
pub(super) fn is_meant(args: &RunArgs) -> anyhow::Result<bool> {
    Ok(args.is_ralph_md)
}

/// `ralph run` of a RALPH.md.
pub(super) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let limit = args.max_iterations.as_deref().map(count_or_none).transpose()?.flatten();
    if args.tasks.prompt.is_some() {
        bail!("the prompt of a RALPH.md is in it: leave -p out");
    }
    if args.flags.place.agent.given.iter().any(|(key, _)| *key == "agent.provider") {
        bail!(
            "the agent of a run is the line 'agent:' of its RALPH.md: change it there, and leave --agent out"
        );
    }
    let workspace = open_loop(Verb::Run, &args.flags)?;
    let call = workspace.called(Verb::Run, &args.flags);
    let Workspace { project, settings } = &workspace;
    let path = path_of(args.target.as_deref(), project.cwd())?;
    let file = PromptText::at(path.clone());
    let reserved = own_names(&RunArgs::augment_args(clap::Command::new(MODE)));
    let (document, command) = RalphMd::read(&file, &reserved).map_err(|message| anyhow!(message))?;

    let run = run_id();
    let limits = limits(args.flags.resume_limit.or(limit), settings);
    let env = agent_env(call, &limits, project);
    let name = name_of(&path);
    let preset = agent_choice::of_call(&command, settings)?.preset;
    let source = RalphMd {
        name: name.clone(),
        max_iterations: limits.max_iterations,
        args: values(&document, &args.user_args, &reserved)?,
        reserved,
        // What its commands run may be what an agent has written.
        launch: launch_behind_walls((project, settings), preset, env, &run)?.0,
        file,
    };
    if args.dry_run {
        let agent = agent_choice::of_call(&command, settings)?;
        // Only the prompt is on stdout.
        remark(&format!("the agent would be started as: {}", agent.command_line()));
        return dry_run(source);
    }
    let mut preflight = Preflight::of_command(call, limit, command)?;
    preflight.limits.failed_end = Outcome::StoppedOnError;
    if preflight.limits.idle.is_some() && !project.in_git() {
        bail!("--idle needs a git repository to see what changed: run 'git init' here, or leave it out");
    }
    let mut ready = preflight.ready(project, &run, [])?;
    ready.logs_into(args.log_dir.as_ref())?;
    ready.name = name;
    ready.run(source, Frame::Lines(RunLines::default()))
}

/// The RALPH.md of the target, which is a path if it has a `/`, ends in `.md`, or exists.
fn path_of(target: Option<&Path>, cwd: &Path) -> anyhow::Result<PathBuf> {
    let Some(target) = target.filter(|target| !target.as_os_str().is_empty()) else {
        bail!(
            "TARGET is missing: name a RALPH.md or its folder, as in 'ralph run fix'; 'ralph init fix/RALPH.md' writes one"
        );
    };
    let path = cwd.join(target);
    if path.is_dir() {
        return Ok(path.join(FILE));
    }
    // A name without an existing file means a missing folder.
    let names_file = target.extension().is_some() || path.symlink_metadata().is_ok();
    Ok(if names_file { path } else { path.join(FILE) })
}

/// The name of the loop: the folder of a RALPH.md, else the file without its ending.
fn name_of(path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let named = if path.file_name().is_some_and(|file| file == FILE) {
        // The folder as it was given: a link has a name of its own.
        let folder = path.parent().unwrap_or(path);
        let given = folder.file_name().filter(|_| !folder.ends_with(".") && !folder.ends_with(".."));
        given.or_else(|| real.parent().and_then(Path::file_name))
    } else {
        path.file_stem()
    };
    named.map_or_else(|| MODE.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The user's arguments by name: positional ones take the remaining declared names, in their order.
fn values(
    document: &Document,
    given: &[UserArg],
    reserved: &[String],
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for arg in given {
        let UserArg::Named(name, value) = arg else { continue };
        let known = || document.args.iter().map(String::as_str).chain(document.used_args());
        if !known().any(|known| known == name) {
            let meant = nearest(name, known().chain(reserved.iter().map(String::as_str)));
            let advice = match meant {
                Some(meant) => format!("did you mean '--{meant}'?"),
                None => "declare it under 'args:' there, or leave it out".to_owned(),
            };
            bail!("the RALPH.md has no argument '--{name}': {advice}");
        }
        if values.insert(name.clone(), value.clone()).is_some() {
            bail!("argument '--{name}' is given twice: give it once");
        }
    }
    let left: Vec<&String> = document.args.iter().filter(|name| !values.contains_key(*name)).collect();
    let mut left = left.into_iter();
    for arg in given {
        let UserArg::Positional(value) = arg else { continue };
        let Some(name) = left.next() else {
            let declared = match document.args.as_slice() {
                [] => "none".to_owned(),
                args => args.join(", "),
            };
            let number = value.parse::<u64>().map_or_else(
                |_| String::new(),
                |number| format!("; as a limit of iterations it is '-n {number}'"),
            );
            bail!(
                "there is no place for the argument '{value}': the RALPH.md declares {declared} under 'args:'{number}"
            );
        };
        values.insert(name.clone(), value.clone());
    }
    Ok(values)
}

/// Prints the prompt of the first iteration. The commands run for it.
fn dry_run(mut source: RalphMd) -> anyhow::Result<u8> {
    let inbox = Arc::new(Inbox::default());
    Signals::listen()?.join(&inbox);
    let identity = LoopIdentity {
        run: source.launch.mark.clone(),
        name: source.name.clone(),
        mode: MODE.to_owned(),
        agent: String::new(),
    };
    let mut context = Context::new(identity, inbox, Vec::new());
    let work = source.next(1, &Given::default(), &mut context);
    if let Some(outcome) = context.stopped_by() {
        return Ok(outcome.code());
    }
    let mut prompt = work.map_err(Refused::from)?.prompt;
    if !prompt.ends_with('\n') {
        prompt.push('\n');
    }
    // Including colours of commands, as the agent would get it.
    print_as_it_is(&prompt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(args: &str) -> Document {
        let text = format!("---\nagent: x\nargs: [{args}]\n---\n{{{{ args.dir }}}} {{{{ args.more }}}}\n");
        Document::parse(&text, &[]).unwrap()
    }

    fn named(name: &str, value: &str) -> UserArg {
        UserArg::Named(name.into(), value.into())
    }

    fn positional(value: &str) -> UserArg {
        UserArg::Positional(value.into())
    }

    #[test]
    fn positions_take_the_names_that_are_left() {
        let given = [positional("a"), named("dir", "src"), positional("b"), named("more", "m")];
        let values = values(&document("dir, focus, level"), &given, &[]).unwrap();
        let expected = [("dir", "src"), ("focus", "a"), ("level", "b"), ("more", "m")];
        assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn arguments_that_have_no_place_are_refused() {
        let refused = |args: &str, given: &[UserArg]| {
            values(&document(args), given, &["timeout".to_owned()]).unwrap_err().to_string()
        };
        assert!(refused("focus", &[named("fucos", "x")]).contains("did you mean '--focus'?"));
        assert!(refused("focus", &[named("timeuot", "x")]).contains("did you mean '--timeout'?"));
        assert!(refused("focus", &[named("zzz", "x")]).contains("no argument '--zzz'"));
        assert!(refused("", &[positional("x")]).contains("declares none"));
        assert!(refused("a", &[positional("x"), positional("y")]).contains("'y'"));
        assert!(refused("a", &[named("a", "1"), named("a", "2")]).contains("twice"));
    }

    #[test]
    fn targets() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        std::fs::create_dir(cwd.join("fix")).unwrap();
        std::fs::write(cwd.join("loop"), "").unwrap();
        let path = |target: &str| {
            path_of(Some(Path::new(target)), &cwd).map(|path| path.strip_prefix(&cwd).unwrap().to_owned())
        };
        assert_eq!(path("fix").unwrap(), Path::new("fix/RALPH.md"));
        assert_eq!(path("fix/").unwrap(), Path::new("fix/RALPH.md"));
        assert_eq!(path("loop").unwrap(), Path::new("loop"));
        assert_eq!(path("gone.md").unwrap(), Path::new("gone.md"));
        assert_eq!(path("gone/it").unwrap(), Path::new("gone/it/RALPH.md"));
        assert!(path_of(None, &cwd).unwrap_err().to_string().contains("TARGET"));
        let name = |path: &str| name_of(&cwd.join(path));
        assert_eq!((name("fix/RALPH.md"), name("a/b.md")), ("fix".into(), "b".into()));
        assert_eq!(name("fix/./RALPH.md"), "fix");
    }
}
