//! `ralph diff`: what the work of a loop, a task or a run has changed, shown by git itself.

mod commenting;

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::landings;
use super::output::{print, remark};
use super::report::measured;
use super::report::pick::{self, Picked};
use crate::cli::{DiffArgs, TargetArgs};
use crate::git::range::{self, Difference};
use crate::graph::Landing;
use crate::job::workspace::locate_records;
use crate::project::Project;
use crate::record::report::{LoopReport, RunReport, Work};
use crate::text::line::shell_word;
use crate::text::list::some_of;

/// How many files that git does not know are named.
const UNKNOWN: usize = 3;
/// How many commands for one piece of work are named.
const NAMED: usize = 3;

/// A piece of work, with its name.
struct Piece {
    name: String,
    /// Its commits, and what is not committed yet.
    tree: PathBuf,
    difference: Difference,
}

/// `ralph diff`.
pub(super) fn run(args: &DiffArgs) -> anyhow::Result<u8> {
    let here = locate_records(args.ralph_dir.as_ref())?;
    // On a server it may be another machine's, and of no run here.
    if let Some(id) = args.target.as_deref().filter(|target| target.starts_with("t-"))
        && let Some(landing) = landings::of_task(&here, id)?
    {
        let piece = of_landing(&here, landing);
        if !piece.difference.is_there(&piece.tree) {
            bail!("git does not know the commits of '{id}' here: 'git fetch' brings what has landed");
        }
        return shown(&piece, false, args);
    }
    let picked = pick::run(&here, args.target.as_deref())?;
    let (report, pieces) = chosen(&picked)?;
    if let Some(piece) = pieces.iter().find(|piece| !piece.difference.is_there(&piece.tree)) {
        bail!(
            "git does not know the commits of '{}' any more: its branch was removed, and they with it, or they are of another clone",
            piece.name
        );
    }
    match pieces.as_slice() {
        [] => {
            let before = if args.target.is_none() { earlier(&picked) } else { None };
            let before = before
                .map(|(found, earlier)| format!("; what run {} committed: {}", earlier.run, diffs(&found)));
            bail!(
                "{} committed nothing: 'ralph report {}' says what happened{}",
                what(&picked),
                report.run,
                before.unwrap_or_default()
            )
        }
        [one] => shown(one, picked.task.is_none(), args),
        several if args.stat => stats(several),
        several => {
            let names: Vec<&str> = several.iter().map(|piece| piece.name.as_str()).collect();
            let names = some_of(&names, names.len());
            bail!(
                "run {} has the work of {names}: name one ({}), or give --stat to see how much each is",
                report.run,
                diffs(several)
            )
        }
    }
}

/// Shows a difference, by git in the place of this process, or in the user's editor. `is_of_loop` is false for
/// the work on a task.
fn shown(one: &Piece, is_of_loop: bool, args: &DiffArgs) -> anyhow::Result<u8> {
    if one.difference.to.is_none() {
        tell_unknown(&one.tree);
    }
    if args.comment {
        if !is_of_loop {
            bail!(
                "'{}' is a task, and comments go to the agent of a loop: name the loop that works on it",
                one.name
            );
        }
        let target = TargetArgs { name: Some(one.name.clone()), ralph_dir: args.ralph_dir.clone() };
        return commenting::comment(one, &target, args.json);
    }
    let error = range::diff(&one.tree, &one.difference, args.stat).exec();
    Err(error).context("cannot run git")
}

/// What a task is that lands, or has landed.
fn of_landing(project: &Project, landing: Landing) -> Piece {
    let to = Some(landing.landed.unwrap_or(landing.made.head));
    let difference = Difference { from: Some(landing.made.base), to };
    Piece { name: landing.task, tree: project.root().to_owned(), difference }
}

/// The selected work and its run: the newest one, or the newest that has changed something, because one without changes shows
/// nothing.
fn chosen(picked: &Picked) -> anyhow::Result<(RunReport, Vec<Piece>)> {
    let report = measured(&picked.project, &picked.folder, false)?;
    let found = pieces(picked, &report);
    let is_named = picked.name.is_some() || picked.task.is_some();
    if !found.is_empty() || !is_named {
        return Ok((report, found));
    }
    let Some((found, earlier)) = earlier(picked) else { return Ok((report, found)) };
    remark(&format!(
        "run {} has changed nothing of {}: this is what it was after run {}",
        report.run,
        what(picked),
        earlier.run
    ));
    Ok((earlier, found))
}

/// The newest other run with the selected work, and that work.
fn earlier(picked: &Picked) -> Option<(Vec<Piece>, RunReport)> {
    let older = picked.project.all_runs().unwrap_or_default();
    let older = older.iter().filter(|folder| **folder != picked.folder);
    let reports = older.filter_map(|folder| measured(&picked.project, folder, false).ok());
    reports.map(|earlier| (pieces(picked, &earlier), earlier)).find(|(found, _)| !found.is_empty())
}

/// The commands that show these, one by one.
fn diffs(pieces: &[Piece]) -> String {
    some_of(pieces.iter().map(|piece| format!("'ralph diff {}'", shell_word(&piece.name))), NAMED)
}

/// Files that git does not know are only named.
fn tell_unknown(tree: &Path) {
    let unknown = range::unknown_files(tree);
    if !unknown.is_empty() {
        remark(&format!("not shown, since git does not know it yet: {}", some_of(&unknown, UNKNOWN)));
    }
}

fn what(picked: &Picked) -> String {
    let name = picked.task.as_ref().or(picked.name.as_ref());
    name.map_or_else(|| "this run".to_owned(), |name| format!("'{name}'"))
}

/// The selected work.
fn pieces(picked: &Picked, report: &RunReport) -> Vec<Piece> {
    let project = &picked.project;
    let is_meant = |one: &&LoopReport| picked.name.as_ref().is_none_or(|name| one.name == *name);
    let loops = report.loops.iter().filter(is_meant);
    if let Some(id) = &picked.task {
        // Several jobs may have worked on it: what lands is one.
        if let Ok(Some(landing)) = landings::of_task(project, id) {
            return vec![of_landing(project, landing)];
        }
        let tasks = loops.flat_map(|one| &one.task_list).filter(|task| task.id == *id);
        return tasks.filter_map(|task| Some(piece(project, &task.id, task.work.as_ref()?))).collect();
    }
    loops.filter_map(|one| of_loop(picked, one, report)).collect()
}

/// The changes of a loop: a branch against its base, any other loop against its first commit; while it runs, with what is not
/// committed yet.
fn of_loop(picked: &Picked, one: &LoopReport, report: &RunReport) -> Option<Piece> {
    let project = &picked.project;
    let tree = project.worktree(&one.name);
    let is_of_branch = report.is_of_branches();
    let tree = if is_of_branch && tree.is_dir() { tree } else { project.root().to_owned() };
    if report.is_running && one.is_at_work() {
        let from = one.iteration_list.first()?.attempts.first()?.head_before.clone();
        return Some(Piece { name: one.name.clone(), tree, difference: Difference { from, to: None } });
    }
    let work = one.work.as_ref()?;
    let from =
        if is_of_branch && picked.name.is_some() { base(project, one, work) } else { work.from.clone() };
    let difference = Difference { from, to: Some(work.to.clone()) };
    Some(Piece { name: one.name.clone(), tree: project.root().to_owned(), difference })
}

/// The first commit of a branch in the oldest of its runs that are kept.
fn base(project: &Project, one: &LoopReport, work: &Work) -> Option<String> {
    let runs = project.all_runs().unwrap_or_default();
    // The oldest is the first to be looked at.
    let reports = runs.iter().rev().filter_map(|folder| measured(project, folder, false).ok());
    let before = reports.flat_map(|run| run.loops).filter(|before| before.name == one.name);
    let mut from = before.filter_map(|before| before.work?.from);
    from.find(|from| range::is_ancestor(project.root(), from, &work.to)).or_else(|| work.from.clone())
}

fn piece(project: &Project, name: &str, work: &Work) -> Piece {
    let difference = Difference { from: work.from.clone(), to: Some(work.to.clone()) };
    Piece { name: name.to_owned(), tree: project.root().to_owned(), difference }
}

/// The size of the changes of each piece of work.
fn stats(pieces: &[Piece]) -> anyhow::Result<u8> {
    let mut text = Vec::new();
    for piece in pieces {
        let output = range::diff(&piece.tree, &piece.difference, true).output().context("cannot run git")?;
        writeln!(text, "{}", piece.name)?;
        text.extend_from_slice(&output.stdout);
    }
    print(|out| out.write_all(&text))
}
