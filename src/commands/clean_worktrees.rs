//! `ralph clean --worktrees`: removes the work trees of branches, never the branches, and loses nothing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::output::{say, warn};
use super::pointers;
use crate::cli::CleanArgs;
use crate::git;
use crate::git::keep::{self, Findings};
use crate::git::remove;
use crate::git::save::{Saved, What};
use crate::git::trees::{self, Tree};
use crate::job::workspace;
use crate::project::Project;
use crate::proof;
use crate::record::run_folder::{GATE, JOBS, is_job};
use crate::record::state_read::Extent;
use crate::record::{lookup, newer, of_others, recorder};
use crate::text::line::shell_word;
use crate::text::list::some_of;

/// How many of the ignored files that are removed with a tree are named.
const SHOWN: usize = 5;

/// Why a tree stays.
pub(super) struct Kept {
    /// The reasons, one line each: what it is, and what to do.
    pub(super) reasons: Vec<String>,
    /// Whether `--force` would remove it all the same.
    pub(super) yields: bool,
}

impl From<anyhow::Error> for Kept {
    fn from(error: anyhow::Error) -> Self {
        Self { reasons: vec![format!("{error:#}")], yields: false }
    }
}

/// `ralph clean --worktrees`.
pub(super) fn run(args: &CleanArgs) -> anyhow::Result<u8> {
    let here = workspace::locate(args.target.ralph_dir.as_ref())?;
    here.require_git()?;
    newer::refuse(&here)?;
    let folder = trees_folder(&here)?;
    let all: Vec<Tree> = trees::list(here.root())?
        .into_iter()
        .skip(1) // the main one
        .filter(|tree| tree.path.starts_with(&folder))
        .collect();
    let name = args.target.name.as_deref();
    let meant = match meant(&all, &folder, name) {
        Err(_) if name.is_some_and(|name| proof::trees(&here.proofs()).contains(&here.proof(name))) => {
            Vec::new()
        }
        meant => meant?,
    };
    let mut kept = 0;
    let mut yields = false;
    if !meant.is_empty() {
        // No loop begins here meanwhile.
        here.create_run_dir()?;
        let _lock = recorder::hold(&here, "clean")?;
        for tree in &meant {
            let mut saved = Vec::new();
            let result = clean(&here, tree, &called(tree, &folder), args.force, &mut saved);
            report(&here, tree, &result, &saved);
            if let Err(why) = result {
                kept += 1;
                yields |= why.yields && !args.force;
            }
            remove_empty_parents(&tree.path, &folder);
        }
    }
    if yields {
        say("with --force what would be lost is saved under refs/ralph/keep/, and the trees are removed");
    }
    let strangers = if args.target.name.is_none() { strangers(&folder, &all) } else { Vec::new() };
    for path in &strangers {
        warn(&format!("{} is no work tree of this repository: it is left alone", shown(&here, path)));
    }
    let has_proofs = clean_proofs(&here, args.target.name.as_deref());
    if meant.is_empty() && strangers.is_empty() && !has_proofs {
        say("no worktrees to clean");
    }
    Ok(u8::from(kept > 0))
}

/// Removes the trees in which claims were proven, which hold nothing of their own; of the loop with this name, or all.
/// Returns whether there were any.
fn clean_proofs(here: &Project, name: Option<&str>) -> bool {
    let is_meant = |tree: &PathBuf| name.is_none_or(|name| *tree == here.proof(name));
    let trees: Vec<PathBuf> = proof::trees(&here.proofs()).into_iter().filter(is_meant).collect();
    for tree in &trees {
        match proof::remove_all(here.root(), tree) {
            Ok(true) => say(&format!("removed {}", shown(here, tree))),
            Ok(false) => say(&format!("kept {}:\n  a claim is being proven in it", shown(here, tree))),
            Err(error) => warn(&error.to_string()),
        }
    }
    let orphans = match here.proofs_of_all().filter(|_| name.is_none()) {
        Some(all) => proof::remove_orphans(&all),
        None => Vec::new(),
    };
    for runs in &orphans {
        say(&format!("removed the proof trees of {}, which is gone", runs.display()));
    }
    !trees.is_empty() || !orphans.is_empty()
}

/// The path of `.worktrees` as git has it: without symbolic links.
fn trees_folder(here: &Project) -> anyhow::Result<PathBuf> {
    let main = trees::list(here.root())?.into_iter().next().map(|tree| tree.path);
    if let Some(main) = main
        && here.root().starts_with(main.join(".worktrees"))
    {
        bail!("{} is a work tree of {1}: run this in {1}", here.root().display(), main.display());
    }
    let folder = here.root().join(".worktrees");
    Ok(fs::canonicalize(&folder).unwrap_or(folder))
}

/// The trees of NAME: the one on that branch, else the one in that folder; all without NAME.
fn meant<'a>(all: &'a [Tree], folder: &Path, name: Option<&str>) -> anyhow::Result<Vec<&'a Tree>> {
    let Some(name) = name else { return Ok(all.iter().collect()) };
    let on_branch = all.iter().find(|tree| tree.branch.as_deref() == Some(name));
    let in_folder = || all.iter().find(|tree| tree.path == folder.join(name));
    if let Some(tree) = on_branch.or_else(in_folder) {
        return Ok(vec![tree]);
    }
    let names: Vec<String> = all.iter().map(|tree| called(tree, folder)).collect();
    let others = if names.is_empty() { "there is none at all".to_owned() } else { names.join(", ") };
    bail!("no worktree of branch '{name}', {}: choose one that is there: {others}", folder.display())
}

/// The name of a tree: its branch, or its folder if it is on none.
fn called(tree: &Tree, folder: &Path) -> String {
    let folder = || tree.path.strip_prefix(folder).unwrap_or(&tree.path).to_string_lossy().into_owned();
    tree.branch.clone().unwrap_or_else(folder)
}

/// What would be removed with a tree, and whether it may be removed. Changes nothing.
pub(super) fn judged(here: &Project, tree: &Tree, force: bool) -> Result<Findings, Kept> {
    let own = git::runtime_patterns(&here.clone().in_tree(&tree.path));
    judge(keep::look(here.root(), tree, &own).map_err(anyhow::Error::from)?, force)
}

/// Removes one tree that was made for a worker, and reports the outcome; whether it is gone.
pub(super) fn remove_one(here: &Project, tree: &Tree, name: &str, force: bool) -> bool {
    let mut saved = Vec::new();
    let result = clean(here, tree, name, force, &mut saved);
    report(here, tree, &result, &saved);
    remove_empty_parents(&tree.path, &here.root().join(".worktrees"));
    result.is_ok()
}

/// Removes one tree that nothing was done in, and reports nothing; whether it is gone.
pub(super) fn remove_silently(here: &Project, tree: &Tree, name: &str) -> bool {
    let removed = clean(here, tree, name, false, &mut Vec::new());
    remove_empty_parents(&tree.path, &here.root().join(".worktrees"));
    removed.is_ok()
}

/// Removes one tree, unless something keeps it.
fn clean(
    here: &Project,
    tree: &Tree,
    name: &str,
    force: bool,
    saved: &mut Vec<Saved>,
) -> Result<Findings, Kept> {
    let project = here.clone().in_tree(&tree.path);
    project.require_no_link().map_err(anyhow::Error::from)?;
    if let Some(running) = running_in(here, &tree.path) {
        return Err(anyhow::anyhow!(running).into());
    }
    if tree.path.ends_with(Path::new(JOBS).join(GATE)) {
        return clean_gate(here, tree);
    }
    let own = git::runtime_patterns(&project);
    let look = || keep::look(here.root(), tree, &own).map_err(anyhow::Error::from);
    if tree.is_gone {
        remove::save_notes(here.root(), tree, name, saved).map_err(anyhow::Error::from)?;
    }
    judge(look()?, force)?;
    // No loop can begin in it from here on, and this lock does not count as a file to keep.
    git::exclude(here.root(), &own).map_err(anyhow::Error::from)?;
    project.create_run_dir().map_err(anyhow::Error::from)?;
    let _lock = recorder::hold(&project, "clean")?;
    let findings = judge(look()?, force)?;
    of_others::keep(&here.of_branch(name, None).in_tree(&tree.path))
        .with_context(|| format!("the records in {} cannot be moved", project.ralph_dir().display()))?;
    remove::remove(here.root(), tree, name, force, saved).map_err(anyhow::Error::from)?;
    pointers::forget_below(here, &tree.path);
    Ok(findings)
}

/// Removes the tree in which the work of jobs is gated: nothing in it is anybody's work.
fn clean_gate(here: &Project, tree: &Tree) -> Result<Findings, Kept> {
    let jobs = lookup::of_project(here, Extent::Head);
    if let Some(job) = jobs.iter().find(|job| is_job(&job.name) && job.alive().is_some()) {
        let why =
            format!("'{}' is running, and lands through it: end it first, with 'ralph cancel'", job.name);
        return Err(anyhow::anyhow!(why).into());
    }
    git::clean_tree::remove(here.root(), &tree.path).map_err(anyhow::Error::from)?;
    Ok(Findings::default())
}

fn running_in(here: &Project, path: &Path) -> Option<String> {
    let is_there = |other: &&lookup::Loop| {
        let project = &other.project;
        other.alive().is_some() && (project.root().starts_with(path) || project.run_dir().starts_with(path))
    };
    let name = &lookup::of_machine(here, Extent::Head).iter().find(is_there)?.name.clone();
    let quoted = shell_word(name);
    Some(format!("loop '{name}' is running in it: end it first, with 'ralph cancel {quoted}'"))
}

/// Whether the tree may be removed; with `force` only what cannot be saved keeps it.
fn judge(findings: Findings, force: bool) -> Result<Findings, Kept> {
    let keeping = findings.reasons.iter().filter(|reason| !(force && reason.can_be_saved()));
    let reasons: Vec<String> = keeping.map(ToString::to_string).collect();
    if reasons.is_empty() {
        return Ok(findings);
    }
    let yields = findings.reasons.iter().all(keep::Reason::can_be_saved);
    Err(Kept { reasons, yields })
}

/// Reports the result for a tree.
fn report(here: &Project, tree: &Tree, result: &Result<Findings, Kept>, saved: &[Saved]) {
    let path = shown(here, &tree.path);
    match result {
        Ok(findings) => {
            let branch = tree.branch.as_ref();
            let stays = branch.map_or_else(String::new, |branch| format!("; branch {branch} stays"));
            say(&format!("removed {path}{stays}"));
            if !findings.ignored.is_empty() {
                say(&format!("  ignored files went with it: {}", some_of(&findings.ignored, SHOWN)));
            }
        }
        Err(Kept { reasons, .. }) => {
            say(&format!("kept {path}:"));
            for reason in reasons {
                say(&format!("  {reason}"));
            }
        }
    }
    for Saved { reference, what } in saved {
        match what {
            What::Commit { id, subject } => {
                say(&format!("  saved commit {id:.10} '{subject}', which only this tree knew"));
                say(&format!("    get it back with: git switch -c NAME {reference}"));
            }
            What::Files { is_staged_apart, is_raw } => {
                say("  saved what was not committed, as a commit on top of the others");
                say(&format!("    as a branch:       git switch -c NAME {reference}"));
                say(&format!("    only the files:    git checkout {reference} -- :/"));
                if *is_raw {
                    say(&format!("    byte for byte:     git cat-file blob {reference}:PATH"));
                }
                if *is_staged_apart {
                    say(&format!("    what was staged:   git checkout {reference}^2 -- :/"));
                }
            }
        }
    }
}

/// A path relative to the project.
fn shown(here: &Project, path: &Path) -> String {
    here.relative(path).display().to_string()
}

/// Removes the folders above a removed tree, up to `.worktrees`, unless they have other contents.
fn remove_empty_parents(path: &Path, folder: &Path) {
    let parents = path.ancestors().skip(1).take_while(|parent| *parent != folder);
    if path.starts_with(folder) && !path.exists() {
        for parent in parents {
            // If one is not empty, those above are not either.
            if fs::remove_dir(parent).is_err() {
                break;
            }
        }
    }
}

/// Files in `.worktrees` that belong to no tree. Empty folders are removed.
fn strangers(folder: &Path, trees: &[Tree]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let is_tree = |tree: &Tree| tree.path == path;
        let leads_to_one = |tree: &Tree| tree.path.starts_with(&path) && tree.path.exists();
        if trees.iter().any(is_tree) {
            continue;
        }
        if trees.iter().any(leads_to_one) {
            found.extend(strangers(&path, trees));
        } else if fs::remove_dir(&path).is_err() {
            // Unless it is an empty folder of a removed tree.
            found.push(path);
        }
    }
    found
}
