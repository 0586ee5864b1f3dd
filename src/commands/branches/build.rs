//! `ralph loop build`: every unfinished branch of the plan, each in its own loop, side by side.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};

use super::kept_plan::{self, KeptPlan, take_claims_of_killed_back};
use super::planned::{self, Planned};
use super::requests;
use super::tree::{Tracked, Tree, worktree_identity};
use super::{dry_run, limit_of, preflight, refuse_inside_a_branch, template};
use crate::cli::LoopBuildArgs;
use crate::commands::output::remark;
use crate::commands::report;
use crate::commands::side_by_side::{SideBySide, ceiling, counts, lost};
use crate::commands::target::count;
use crate::engine::event::{LoopIdentity, Stamped};
use crate::engine::fact::Fact;
use crate::engine::inbox::Inbox;
use crate::engine::outcome::Outcome;
use crate::engine::places::{Places, Ticket};
use crate::files::{FileError, theirs};
use crate::git;
use crate::git::pull_request::{PullRequest, kept_as};
use crate::job::Refused;
use crate::job::agent_choice;
use crate::job::preflight::Preflight;
use crate::job::ready::{Ready, kept, own_command_line, run_id};
use crate::job::resume::Resume;
use crate::job::variables::prompt_names;
use crate::job::workspace::{Workspace, open_loop};
use crate::parallel::{self, Fate};
use crate::platform::identity::ProcessIdentity;
use crate::project::{BRANCH_PLAN, Project};
use crate::prompt;
use crate::record::lock::Lock;
use crate::record::recorder;
use crate::record::report::RunReport;
use crate::record::retention;
use crate::record::run_folder::{self, RunStart};
use crate::settings::Verb;
use crate::source::branch::main_plan::MainPlan;
use crate::source::branch::{Branch, Facts, Made, Publisher, about};
use crate::source::prompt_file::{Plan, PromptFile, REPLAN_BRANCHES, Text};
use crate::text::terminal::message;
use crate::view::View;
use crate::view::branch_table::{BranchRow, Built, json, table};
use crate::view::person_lines::TaskCounter;
use crate::view::report::text;
use crate::view::screen::Screen;

pub(super) const VERB: &str = "loop build";
/// How many branches are built at once, unless the user says.
const JOBS: usize = 8;

/// `ralph loop build`.
pub(super) fn run(args: &LoopBuildArgs, names: &[String]) -> anyhow::Result<u8> {
    let flags = &args.shared.flags;
    if flags.name.is_some() {
        bail!("--name is not for 'loop build': each loop is called after its branch");
    }
    let jobs = args.jobs.as_deref().map(|word| count(word, "--jobs")).transpose()?;
    let limit = limit_of(&args.shared)?;
    let workspace = open_loop(Verb::LoopBuild, flags)?;
    let Workspace { project, settings } = &workspace;
    // 'ralph resume' names one of those that the command line is about.
    let names = flags.resume_only.as_ref().map_or(names, std::slice::from_ref);
    project.require_git()?;
    refuse_inside_a_branch(project.root())?;
    if args.dry_run {
        let agent = agent_choice::of_settings(settings, project)?;
        let branches = planned::chosen(project, settings, names)?;
        branches.iter().filter_map(|branch| branch.doubt.as_deref()).for_each(remark);
        let lost = planned::lost(project, &branches);
        lost.iter().map(|(_, why)| why.as_str()).for_each(remark);
        return dry_run::show(project, &agent.command_line(), &branches, flags.json);
    }
    let preflight = preflight(workspace.called(Verb::LoopBuild, flags), &args.shared, limit)?;
    // Mistakes in the plan are reported before git is called; changes by agents of a killed run are undone first.
    if !kept_plan::is_there(project) {
        planned::chosen(project, settings, names)?;
    }
    let text = template(&args.shared, project, "PROMPT_build.md", prompt::BRANCH_BUILD);
    PromptFile::new(text.clone(), Plan::None, BTreeMap::default(), REPLAN_BRANCHES)
        .read()
        .map_err(Refused::from)?;
    let identity = worktree_identity(project, settings);
    git::identity::check(&identity)?;
    git::identity::try_signature(project.root(), &identity)?;

    let lock = take_project(project)?;
    take_claims_of_killed_back(project)?.iter().for_each(|notice| remark(notice));
    // Read again: what was built until a moment ago is done now.
    let mut branches = planned::chosen(project, settings, names)?;
    branches.iter().filter_map(|branch| branch.doubt.as_deref()).for_each(remark);
    let remote = git::remote::remote(project.root(), settings.git.forge);
    let requests = requests::fetch(project.root(), remote.as_ref(), &identity, &mut branches)?;
    let run = run_id();
    let plan = MainPlan::new(project.branch_plan());
    let (mut housekeeping, mut kept_plan) = (None, None);
    if branches.iter().any(Planned::is_open) {
        let command = own_command_line(&settings.secrets);
        RunStart::now(&run, VERB, &command, ProcessIdentity::of_self()?).write(project)?;
        kept_plan = Some(KeptPlan::of(project, &run, &plan)?);
        housekeeping = Some(retention::tidy(project, &run, kept(settings)));
    }
    let open_branches = branches.iter().filter(|branch| branch.is_open()).count();
    let jobs = if args.sequential { 1 } else { jobs.unwrap_or(JOBS) };
    let building = Building {
        workspace: &workspace,
        shared: SideBySide::begin(&workspace, flags, run, lock, None)?,
        preflight,
        text,
        trees: git::trees::list(project.root())?,
        remote,
        requests,
        identity,
        tracked: Tracked::default(),
        making: Mutex::default(),
        plan: Arc::new(plan),
        places: Places::new(jobs.min(open_branches.max(1))),
        branches: &branches,
        lost: if names.is_empty() { planned::lost(project, &branches) } else { Vec::new() },
        kept_plan: Mutex::new(kept_plan),
    };
    if flags.detached && open_branches > 0 {
        building.shared.leave_terminal(flags)?;
    }
    let code = building.run();
    drop(housekeeping);
    Ok(code)
}

/// Keeps other loops out of the project, and prepares what all of its work trees share.
fn take_project(project: &Project) -> anyhow::Result<Lock> {
    let lock = recorder::hold(project, VERB)?;
    project.create_run_dir()?;
    let mut patterns = git::runtime_patterns(project);
    // No agent may commit its copy; if the plan is tracked, this has no effect.
    patterns.push(format!("/{BRANCH_PLAN}"));
    git::exclude(project.root(), &patterns).context("ralph's own files would be committed")?;
    git::identity::prepare(project.root())?;
    Ok(lock)
}

/// What all branches of one build share.
struct Building<'a> {
    workspace: &'a Workspace,
    shared: SideBySide<'a>,
    preflight: Preflight<'a>,
    text: Text,
    trees: Vec<git::trees::Tree>,
    remote: Option<git::remote::Remote>,
    /// The pull requests that branches start from, by their numbers.
    requests: HashMap<u64, PullRequest>,
    identity: git::identity::CommitIdentity,
    tracked: Tracked,
    /// Held by the branch whose work tree is being made.
    making: Mutex<()>,
    plan: Arc<MainPlan>,
    places: Arc<Places>,
    branches: &'a [Planned],
    /// Messages about branches without a section, by their names.
    lost: Vec<(String, String)>,
    /// The plan as it was when the build began.
    kept_plan: Mutex<Option<KeptPlan>>,
}

impl Building<'_> {
    /// Builds everything, shows the results, and returns the exit code.
    fn run(&self) -> u8 {
        self.workspace.settings.warnings.iter().for_each(|warning| self.shared.screen.warn(warning));
        let open: Vec<usize> =
            (0..self.branches.len()).filter(|&which| self.branches[which].is_open()).collect();
        // The bases as places among the unfinished branches.
        let after: Vec<Option<usize>> = open
            .iter()
            .map(|&which| open.iter().position(|&other| Some(other) == self.branches[which].after))
            .collect();
        // Branches begin in the order of the plan, whichever work tree is ready first.
        (0..open.len()).filter(|&place| after[place].is_none()).for_each(|place| self.places.expect(place));
        self.shared.screen.expect(open.len());
        let cells = |which: &usize| message(&self.branches[*which].section.name).chars().count();
        let width = open.iter().map(cells).max();
        let fates = parallel::run(
            &after,
            &|place| self.branch(&self.branches[open[place]], place, width.unwrap_or_default()),
            &|(row, _): &(BranchRow, u8)| row.built == Built::Done && self.shared.signals.count() == 0,
        );
        let mut fates = fates.into_iter();
        let was_stopped = self.shared.signals.count() > 0;
        let lost = self.lost.iter().map(|(name, why)| {
            let notes = vec![why.clone()];
            (BranchRow { built: Built::Unfinished, notes, ..BranchRow::new(name) }, 1)
        });
        // The others are not part of this build: their records have how they stand.
        let meant = self.branches.iter().filter(|branch| branch.is_meant);
        let planned = meant.map(|branch| Self::row(branch, &mut fates, was_stopped));
        let (mut rows, codes): (Vec<BranchRow>, Vec<u8>) = planned.chain(lost).unzip();
        self.take_claims_back(&rows);
        self.note_changed_since_done(&mut rows);
        // The worst comes first in their order: interrupted, git, agent, everything else.
        let code = codes.into_iter().max().unwrap_or_default();
        self.show(code, &rows, open.is_empty());
        code
    }

    /// Reopens sections that agents of other branches have marked as done, if their branch has not begun. For other branches, our
    /// records have the result.
    fn take_claims_back(&self, rows: &[BranchRow]) {
        let open = self.branches.iter().filter(|branch| !branch.section.is_done);
        let mut names: HashSet<&str> = open.map(|branch| branch.section.name.as_str()).collect();
        for row in rows.iter().filter(|row| row.built == Built::Done || row.end.is_some()) {
            names.remove(row.name.as_str());
        }
        match self.plan.take_claims_back(&|name| names.contains(name)) {
            Ok(notice) => {
                if let Some(notice) = notice {
                    self.shared.screen.warn(&notice);
                }
                if let Some(kept) = self.kept_plan.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    kept.remove();
                }
            }
            Err(why) => self.shared.screen.warn(&why),
        }
    }

    /// Adds a note to a finished branch whose commits have changed since: an agent of another branch may have done that.
    fn note_changed_since_done(&self, rows: &mut [BranchRow]) {
        for row in rows.iter_mut().filter(|row| row.built == Built::Done) {
            let Some(commit) =
                row.head.as_ref().filter(|commit| self.tip(&row.name).as_ref() != Some(commit))
            else {
                continue;
            };
            let note =
                format!("has changed since it was done at {commit:.9}: look at that before you merge it");
            row.notes.push(note);
        }
    }

    /// The commit that a branch names.
    fn tip(&self, name: &str) -> Option<String> {
        git::refs::base_commit(self.workspace.project.root(), &format!("refs/heads/{name}"))
    }

    /// The result of a branch, and its exit code; `fates` are those of the unfinished branches, in their order.
    fn row(
        branch: &Planned,
        fates: &mut impl Iterator<Item = Fate<(BranchRow, u8)>>,
        was_stopped: bool,
    ) -> (BranchRow, u8) {
        let name = &branch.section.name;
        if branch.section.is_done {
            let pull_request = branch.section.pull_request.clone();
            return (BranchRow { built: Built::Done, pull_request, ..BranchRow::new(name) }, 0);
        }
        match fates.next() {
            Some(Fate::Ran(result)) => result,
            Some(Fate::Lost(why)) => lost(name, why),
            Some(Fate::NotStarted) | None if was_stopped => {
                (BranchRow::new(name), Outcome::Interrupted.code())
            }
            Some(Fate::NotStarted) | None => {
                (BranchRow { built: Built::WaitingFor(branch.base.clone()), ..BranchRow::new(name) }, 0)
            }
        }
    }

    fn show(&self, code: u8, rows: &[BranchRow], was_all_done: bool) {
        let identity = LoopIdentity {
            run: self.shared.id.clone(),
            name: VERB.to_owned(),
            mode: self.preflight.call.mode().to_owned(),
            agent: self.preflight.agent_name().to_owned(),
        };
        let end = json(&identity, code, rows);
        if !was_all_done && let Err(error) = self.record(&end) {
            self.shared.screen.warn(&error.to_string());
        }
        let width = Screen::width();
        let report = if was_all_done || width.is_none() { None } else { self.report() };
        self.shared
            .screen
            .say(&report.map_or_else(|| table(rows, width), |report| text::body(&report, width)));
        if was_all_done && self.lost.is_empty() {
            let which = if self.branches.iter().all(|branch| branch.is_meant) { "All" } else { "These" };
            self.shared.screen.say(&format!(
                "{which} branches are done; delete a line 'Status: done' to build that branch again.\n"
            ));
        }
        self.shared.screen.say_json(&end);
        let ended = (&identity, end.as_str(), counts(code, rows));
        self.shared.close(Some(ended).filter(|_| !was_all_done));
    }

    /// Keeps the results of all branches, in one line.
    fn record(&self, end: &str) -> Result<(), FileError> {
        run_folder::write_end(&self.workspace.project, &self.shared.id, end)
    }

    /// The report of the run, as of `ralph report`; `None` if it cannot be read.
    fn report(&self) -> Option<RunReport> {
        let project = &self.workspace.project;
        report::gathered(project, &project.run(&self.shared.id), false).ok()
    }

    /// One branch from its work tree to its pull request; with its exit code.
    fn branch(&self, branch: &Planned, place: usize, width: usize) -> (BranchRow, u8) {
        let name = &branch.section.name;
        let mut view = self.shared.screen.branch((VERB, place), name, width, self.task_counter(name));
        let mut row = BranchRow::new(name);
        let ticket = Ticket::new(&self.places, place);
        match self.build(branch, ticket, &mut view, &mut row) {
            Ok(code) => (row, code),
            Err(error) => {
                let end = self.shared.refused(&error, &mut view, &mut row);
                (row, end.outcome.code())
            }
        }
    }

    /// Counts the tasks of a branch in the main plan.
    fn task_counter(&self, name: &str) -> TaskCounter {
        let (plan, name) = (self.workspace.project.branch_plan(), name.to_owned());
        TaskCounter(Box::new(move || {
            let text = String::from_utf8(theirs::read(&plan, theirs::MAX_TEXT).ok()?).ok()?;
            report::tasks_of_branch(&text, &name)
        }))
    }

    fn build(
        &self,
        branch: &Planned,
        ticket: Ticket,
        view: &mut View,
        row: &mut BranchRow,
    ) -> anyhow::Result<u8> {
        let section = &branch.section;
        let run = run_id();
        let Some(tree) = self.tree(branch)? else { return Ok(Outcome::Interrupted.code()) };
        let mut source = self.source(branch, &tree, &run);
        let inbox = Arc::new(Inbox::default());
        self.shared.signals.join(&inbox);
        let mut ready = Ready {
            name: section.name.clone(),
            resume: Resume::ByItself,
            plan: tree.project.branch_plan(),
            board: self.shared.board.join(),
            ticket: Some(ticket),
            notifier: Some(&self.shared.notifier),
            sinks: vec![Box::new(|stamped: &Stamped<'_>| {
                if let Fact::AttemptStarted { .. } = stamped.fact {
                    self.shared.keep_lock()?;
                }
                row.take(stamped);
                Ok(())
            })],
            ..self.preflight.ready(&tree.project, &run, self.env(&section.name))?
        };
        ready.setup.started_from = Some(self.workspace.project.ralph_dir().to_owned());
        let end = ready.run_as(&mut source, view, &inbox)?;
        let is_done = source.is_done();
        let publisher = source.into_publisher();
        row.commits = publisher.commits();
        let Made { pull_request, notes, .. } = publisher.made;
        row.pull_request = pull_request;
        let secrets = &self.workspace.settings.secrets;
        row.notes.extend(notes.iter().map(|note| secrets.text(note).into_owned()));
        if is_done {
            row.built = Built::Done;
        }
        // Repeated below the table: the first message may have scrolled away.
        row.notes.extend(end.detail.filter(|_| end.outcome == Outcome::GitFailed));
        Ok(end.outcome.code())
    }

    /// The source of a branch's work.
    fn source(&self, branch: &Planned, tree: &Tree, run: &str) -> Branch {
        let section = &branch.section;
        let request = self.request(branch);
        let facts = Facts {
            name: section.name.clone(),
            goal: section.goal.clone(),
            base: request.map_or_else(|| branch.base.clone(), |request| kept_as(request.number)),
            request: request
                .zip(self.remote.as_ref())
                .map(|(request, remote)| about(request, remote.home.forge())),
        };
        let mut names = prompt_names(self.preflight.call, &self.preflight.limits, &tree.project);
        names.insert("BRANCH_NAME".to_owned(), section.name.clone());
        Branch::new(
            facts,
            PromptFile::new(self.text.clone(), Plan::None, names, REPLAN_BRANCHES),
            (Arc::clone(&self.plan), tree.project.branch_plan()),
            self.publisher(branch, tree, run),
            tree.was_killed,
        )
    }

    /// The pull request that a branch starts from.
    fn request(&self, branch: &Planned) -> Option<&PullRequest> {
        self.requests.get(&branch.request?)
    }

    /// The work tree of a branch; `None` when the user wants to leave instead.
    fn tree(&self, branch: &Planned) -> anyhow::Result<Option<Tree>> {
        // One at a time, as git requires, so that no branch waits for those that have not begun.
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if self.shared.signals.count() > 0 {
            return Ok(None);
        }
        let places = (&self.workspace.project, self.shared.id.as_str());
        Tree::prepare(places, branch, &self.trees, &self.identity, &self.tracked).map(Some)
    }

    fn env(&self, branch: &str) -> Vec<(OsString, OsString)> {
        let mut env = vec![("RALPH_BRANCH".into(), branch.into()), ceiling(&self.workspace.project)];
        env.extend(git::identity::agent_env(&self.identity));
        env
    }

    fn publisher(&self, branch: &Planned, tree: &Tree, run: &str) -> Publisher {
        let name = &branch.section.name;
        let git = &self.workspace.settings.git;
        Publisher {
            tree: tree.project.root().to_owned(),
            branch: name.clone(),
            base: tree.start.clone(),
            base_branch: match self.request(branch) {
                Some(request) => Some(request.target().to_owned()),
                None => git::refs::base_branch(self.workspace.project.root(), &branch.base),
            },
            remote: self.remote.clone(),
            identity: self.identity.clone(),
            auto_push: git.auto_push,
            auto_pr: git.auto_pr,
            is_protected: git.protected_branches.contains(name),
            mark: run.to_owned(),
            made: Made::default(),
        }
    }
}
