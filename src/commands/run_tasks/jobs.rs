//! `ralph run --jobs N`: many agents on one graph, each in a work tree of its own; what they finish lands on one branch.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::member::{Member, Told};
use super::{Run, many};
use crate::commands::branches::{refuse_inside_a_branch, worktree_identity};
use crate::commands::errand::Errands;
use crate::commands::own_call::own_call;
use crate::commands::report;
use crate::commands::side_by_side::{SideBySide, ceiling, counts, lost};
use crate::commands::target::count;
use crate::engine::event::{LoopIdentity, Stamped};
use crate::engine::fact::Fact;
use crate::engine::inbox::Inbox;
use crate::engine::outcome::{End, Outcome};
use crate::git;
use crate::git::GitError;
use crate::git::identity::{CommitIdentity, agent_env, configure, prepare};
use crate::git::landing::{self, Trunk};
use crate::git::trees::{CheckedOut, checked_out};
use crate::graph::postgres::PostgresStore;
use crate::graph::{Holder, Scope};
use crate::inspection::Ground;
use crate::job::Refused;
use crate::job::launch::launch_behind_walls;
use crate::job::ready::{Ready, kept, own_command_line, place_of, run_id, validation};
use crate::landing::{Courier, Exchange, Gate, LandedRequest, Lander, OpenGraph, Pusher, Rules, Style, Team};
use crate::parallel::{self, Fate};
use crate::platform::identity::ProcessIdentity;
use crate::project::Project;
use crate::record::recorder;
use crate::record::retention;
use crate::record::run_folder::{self, GATE, JOBS, RunStart};
use crate::settings::Settings;
use crate::settings::proof_level::LandingStyle;
use crate::side_command::ValidationCommand;
use crate::source::tasks::{Lane, Places, Target, Tasks};
use crate::threads;
use crate::view::View;
use crate::view::branch_table::{BranchRow, json};
use crate::view::person_lines::TaskCounter;
use crate::view::screen::Screen;

/// At most this many agents at once.
const MOST: usize = 64;

/// How long an attempt on a graph that many machines work on may go on after SIGTERM.
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// How long what runs beside the jobs has to end after them.
const LEAVE: Duration = Duration::from_secs(1);

/// How many jobs there are, and where their work lands.
pub(super) struct Plan {
    pub(super) jobs: usize,
    pub(super) trunk: Trunk,
    /// The user has named the branch.
    is_named: bool,
    batch: usize,
}

/// What the command line and the settings say about jobs; `None`: one in the user's checkout. Mistakes are refused.
pub(super) fn plan(
    args: &super::RunArgs,
    settings: &Settings,
    project: &Project,
    is_shared: bool,
) -> anyhow::Result<Option<Plan>> {
    let flags = &args.tasks;
    let of_settings = usize::try_from(settings.task_jobs).unwrap_or(usize::MAX);
    let (jobs, place) = match flags.jobs.as_deref() {
        Some(word) => (count(word, "--jobs").unwrap_or(0), format!("--jobs {word}")),
        None => {
            (of_settings, format!("execution.jobs {of_settings} ({})", place_of(settings, "execution.jobs")))
        }
    };
    if jobs == 0 || jobs > MOST {
        bail!("{place}: give a whole number from 1 to {MOST}");
    }
    let batch = match flags.batch.as_deref() {
        Some(word) => count(word, "--batch")?,
        None => usize::try_from(settings.landing.batch).unwrap_or(usize::MAX),
    };
    let named = flags.onto.as_ref().or(settings.landing.onto.as_ref());
    if jobs == 1 && named.is_none() && !is_shared {
        return Ok(None);
    }
    if args.flags.name.is_some() {
        bail!("--name is not for jobs that land: each is called after its work tree");
    }
    project.require_git()?;
    git::require_version(git::OLDEST_TO_LAND)?;
    refuse_inside_a_branch(project.root())?;
    let root = project.root();
    let Some(head) = git::head(root) else {
        bail!("{}: there is no commit yet, and work trees need one: commit something first", root.display());
    };
    let name = match named {
        Some(name) => name.strip_prefix("refs/heads/").unwrap_or(name).to_owned(),
        None => match checked_out(root)? {
            CheckedOut::Branch(name) => name,
            _ => bail!(
                "HEAD is on no branch ({head:.10}), so that nothing can land: 'git switch BRANCH', or name one with --onto"
            ),
        },
    };
    if git::refs::branch_commit(root, &name).is_none() {
        let what = match git::refs::base_commit(root, &name) {
            Some(_) if name.contains('/') => {
                let short = name.rsplit('/').next().unwrap_or_default();
                format!("that is no branch here; make one with 'git branch {short} {name}', and name that")
            }
            Some(_) => "that is a commit and no branch: name a branch".to_owned(),
            None => "there is no such branch: 'git branch' lists them".to_owned(),
        };
        let place = match flags.onto {
            Some(_) => format!("--onto {name}"),
            None => format!("landing.onto {name} ({})", place_of(settings, "landing.onto")),
        };
        bail!("{place}: {what}");
    }
    let trunk =
        Trunk::new(root, &name).sparing(&project.worktrees().strip_prefix(root).unwrap_or(root).join(JOBS));
    Ok(Some(Plan { jobs, trunk, is_named: flags.onto.is_some(), batch }))
}

/// Runs the jobs, and returns the exit code.
pub(super) fn run(run: Run<'_>, plan: Plan) -> anyhow::Result<u8> {
    let settings = &run.workspace.settings;
    let project = &run.workspace.project;
    let flags = &run.args.flags;
    let lock = recorder::hold(project, run.call.verb.words())?;
    project.create_run_dir()?;
    git::exclude(project.root(), &git::runtime_patterns(project))
        .context("ralph's own files would be committed")?;
    landing::begin(&plan.trunk, plan.is_named).map_err(|error| {
        // Whatever starts workers would do so again.
        let is_for_person = matches!(error, GitError::InTheWay { .. }) && run.graph.server().is_some();
        let outcome = if is_for_person { Outcome::StoreRefused } else { Outcome::GitFailed };
        Refused::from(End::because(outcome, error.to_string()))
    })?;
    let identity = worktree_identity(project, settings);
    if identity != CommitIdentity::default() {
        prepare(project.root())?;
    }
    let id = run_id();
    let exchange = many::exchange(&run, (&plan.trunk, plan.is_named), &identity, &id)?;
    let command = own_command_line(&settings.secrets);
    RunStart::now(&id, run.call.verb.words(), &command, ProcessIdentity::of_self()?).write(project)?;
    let housekeeping = retention::tidy(project, &id, kept(settings));
    let signals = run.graph.server().map(|server| server.signals.clone());
    let shared = SideBySide::begin(run.workspace, flags, id, lock, signals)?;
    if exchange.is_some() {
        // Those who place workers end them without asking.
        shared.signals.allow(Some(settings.stop_within.unwrap_or(STOP_WITHIN)));
    }
    if flags.detached {
        shared.leave_terminal(flags)?;
    }
    let code = Jobs { run, plan, shared, identity, exchange, team: Arc::default() }.work()?;
    drop(housekeeping);
    Ok(code)
}

/// What runs beside the jobs where the graph is on a server.
enum Beside {
    Member(Box<Member>),
    Courier(Courier),
}

impl Beside {
    /// Starts it in a thread of its own; the channel is closed when it has ended.
    fn start(self) -> io::Result<Receiver<()>> {
        let (open, ended) = channel();
        threads::start(move || {
            match self {
                Self::Member(member) => member.run(),
                Self::Courier(courier) => courier.run(),
            }
            drop(open);
        })?;
        Ok(ended)
    }
}

/// What all jobs of a run share.
struct Jobs<'a> {
    run: Run<'a>,
    plan: Plan,
    shared: SideBySide<'a>,
    identity: CommitIdentity,
    team: Arc<Team>,
    /// The remote, where many machines work on the graph.
    exchange: Option<Arc<Exchange>>,
}

impl Jobs<'_> {
    fn settings(&self) -> &Settings {
        &self.run.workspace.settings
    }

    fn project(&self) -> &Project {
        &self.run.workspace.project
    }

    /// Works and lands until all is done, shows the results, and returns the exit code.
    fn work(&self) -> anyhow::Result<u8> {
        self.settings().warnings.iter().for_each(|warning| self.shared.screen.warn(warning));
        if let Some(why) = self.exchange.as_ref().and_then(|exchange| exchange.aside()) {
            self.shared.screen.warn(&why);
        }
        let pusher = self.pusher()?;
        // An agent of a run that was killed may have had the trunk checked out.
        landing::detach_all(self.project().root(), &self.project().worktrees().join(JOBS))?;
        let mut lander = self.lander(pusher.is_some())?;
        if self.plan.is_named {
            lander.adopt()?;
        }
        let count = self.plan.jobs;
        self.shared.screen.expect(count);
        let mut member = self.member();
        if let Some(member) = &mut member {
            let team = Arc::clone(&self.team);
            self.shared.board.ask_by(move || team.ask_report());
            // The first prompts have what others have found out.
            member.report();
        }
        // Also while no loop hears of it.
        let team = Arc::clone(&self.team);
        self.shared.signals.when_leaving(move || team.hurry());
        let fates = thread::scope(|scope| {
            pusher.map(|pusher| threads::start_in(scope, || pusher.run())).transpose()?;
            // What they ask may be away; nothing waits for that.
            let beside =
                [member.map(|member| Beside::Member(Box::new(member))), self.courier().map(Beside::Courier)];
            let ended: Vec<Receiver<()>> =
                beside.into_iter().flatten().map(Beside::start).collect::<io::Result<_>>()?;
            threads::start(|| lander.run())?;
            let fates = parallel::run(&vec![None; count], &|place| self.job(place), &|_| true);
            self.team.finish();
            let until = Instant::now() + LEAVE;
            for one in ended {
                let _ = one.recv_timeout(until.saturating_duration_since(Instant::now()));
            }
            io::Result::Ok(fates)
        })?;
        let (rows, codes): (Vec<BranchRow>, Vec<u8>) = { fates.into_iter().enumerate() }
            .map(|(place, fate)| match fate {
                Fate::Ran(result) => result,
                Fate::Lost(why) => {
                    let name = name_of(place);
                    self.shared.screen.warn(&format!("{name}: {why}"));
                    lost(&name, why)
                }
                Fate::NotStarted => (BranchRow::new(&name_of(place)), Outcome::Interrupted.code()),
            })
            .unzip();
        // The worst comes first in their order: interrupted, git, agent, everything else.
        let code = codes.into_iter().max().unwrap_or_default();
        self.show(code, &rows);
        Ok(code)
    }

    fn show(&self, code: u8, rows: &[BranchRow]) {
        let identity = LoopIdentity {
            run: self.shared.id.clone(),
            name: JOBS.to_owned(),
            mode: self.run.call.mode().to_owned(),
            agent: self.run.preflight.agent_name().to_owned(),
        };
        let end = json(&identity, code, rows);
        if let Err(error) = run_folder::write_end(self.project(), &self.shared.id, &end) {
            self.shared.screen.warn(&error.to_string());
        }
        if let Some(text) =
            report::tasks_of_jobs(self.project(), &self.project().run(&self.shared.id), Screen::width())
        {
            self.shared.screen.say(&text);
        }
        self.shared.screen.say_json(&end);
        self.shared.close(Some((&identity, &end, counts(code, rows))));
    }

    /// One job until it ends; with its exit code.
    fn job(&self, place: usize) -> (BranchRow, u8) {
        let name = name_of(place);
        let width = name_of(self.plan.jobs - 1).chars().count();
        let counter = TaskCounter(Box::new(|| None));
        let mut view = self.shared.screen.branch((self.run.call.verb.words(), place), &name, width, counter);
        let row = RefCell::new(BranchRow::new(&name));
        let ended = self.run_job((place, &name), &mut view, &row);
        self.team.leave(place);
        let mut row = row.into_inner();
        let end = ended.unwrap_or_else(|error| self.shared.refused(&error, &mut view, &mut row));
        self.team.end(&end);
        (row, end.outcome.code())
    }

    fn run_job(
        &self,
        (place, name): (usize, &str),
        view: &mut View,
        row: &RefCell<BranchRow>,
    ) -> anyhow::Result<End> {
        let main = self.project();
        let tree = main.of_branch(name, Some(&self.shared.id));
        self.lay(&tree, name)?;
        let run = run_id();
        let inbox = Arc::new(Inbox::default());
        self.shared.signals.join(&inbox);
        self.team.join(place, &inbox);
        let errands = self.errands(&run)?;
        let mut env = self.env();
        env.extend(errands.as_ref().map(Errands::variable));
        let ready = self.run.preflight.ready(&tree, &run, env)?;
        let asks = self.run.asks;
        let is_verified = asks || ready.validator.is_some();
        let places = Places {
            ground: Ground {
                root: tree.root().to_owned(),
                in_git: true,
                looks_only: asks && self.run.preflight.can_look_only(),
            },
            ralph: match &errands {
                Some(errands) => errands.call(main)?,
                None => own_call(main, Some(&main.graph_dir()))?,
            },
            ..self.run.places.clone()
        };
        let target = self.target(&run, places)?;
        let lane = self.lane(place, &tree, name)?;
        let source = Tasks::new(self.run.graph.asked()?, target, is_verified, Some(lane));
        let mut ready = Ready {
            name: name.to_owned(),
            board: self.shared.board.join(),
            notifier: Some(&self.shared.notifier),
            news: Some(Box::new(move || self.team.news(place))),
            sinks: vec![Box::new(|stamped: &Stamped<'_>| {
                if let Fact::AttemptStarted { .. } = stamped.fact {
                    self.shared.keep_lock()?;
                }
                row.borrow_mut().take(stamped);
                Ok(())
            })],
            ..ready
        };
        ready.logs_into(self.run.args.log_dir.as_ref())?;
        ready.validator = Some(Box::new(source.verifier(ready.validator.take(), asks)));
        ready.setup.started_from = Some(main.ralph_dir().to_owned());
        ready.run_as(source, view, &inbox)
    }

    /// While so many finished tasks wait to land, no other one begins: those of all machines are counted.
    fn room(&self) -> usize {
        if self.exchange.is_some() { self.plan.jobs.max(self.plan.batch) } else { self.plan.jobs }
    }

    /// What a job works on.
    fn target(&self, run: &str, places: Places) -> anyhow::Result<Target> {
        Ok(Target {
            scope: self.run.scope.clone(),
            holder: Holder::of_self(run).context("cannot tell which process this is")?,
            retries: self.run.retries,
            models: self.run.models.clone(),
            places,
            trunk: Some((self.plan.trunk.clone(), self.room())),
        })
    }

    /// Where a job works, and its work lands.
    fn lane(&self, place: usize, tree: &Project, name: &str) -> anyhow::Result<Lane> {
        let limits = &self.run.preflight.limits;
        Ok(Lane {
            team: Arc::clone(&self.team),
            trunk: self.plan.trunk.clone(),
            root: self.project().root().to_owned(),
            tree: tree.root().to_owned(),
            name: name.to_owned(),
            limit: limits.max_iterations,
            breaker: limits.breaker,
            prepare: self.preparation(tree)?,
            is_gated_alike: self.settings().landing.command.is_none(),
            kept: RefCell::default(),
            place,
            has_told: Cell::default(),
            exchange: self.exchange.clone(),
            idle: Cell::default(),
        })
    }

    /// Makes the work tree of a job, if there is none.
    fn lay(&self, tree: &Project, name: &str) -> anyhow::Result<()> {
        tree.require_no_link()?;
        let root = self.project().root();
        let tip = self.plan.trunk.tip().ok_or_else(|| self.plan.trunk.tip_is_gone())?;
        if landing::add(root, tree.root(), &tip)? {
            landing::put(root, tree.root(), Some(name), &tip)?;
        }
        if self.identity != CommitIdentity::default() {
            configure(tree.root(), &self.identity)?;
        }
        Ok(())
    }

    /// Where the agents of a loop send their verbs, if they cannot open the graph.
    fn errands(&self, run: &str) -> anyhow::Result<Option<Errands>> {
        self.run.errands(run, &self.project().run(&self.shared.id))
    }

    fn env(&self) -> Vec<(OsString, OsString)> {
        let mut env = self.run.env.clone();
        env.push(ceiling(self.project()));
        env.extend(agent_env(&self.identity));
        env
    }

    /// The lander of this run, with its own view of the graph. `pushes`: a pusher waits for it.
    fn lander(&self, pushes: bool) -> anyhow::Result<Lander> {
        let (settings, main) = (self.settings(), self.project());
        let store = self.run.graph.landed_on(self.team.hurries())?;
        let holder = Holder::of_self(&self.shared.id).context("cannot tell which process this is")?;
        let command = settings.landing.command.as_deref().or(validation(settings));
        let gate = match command {
            None => {
                self.shared
                    .screen
                    .warn("there is no validation command: what agents finish lands without a gate");
                None
            }
            Some(command) => {
                let tree = main.of_branch(&format!("{JOBS}/{GATE}"), Some(&self.shared.id));
                self.lay(&tree, GATE)?;
                let key =
                    if settings.landing.command.is_some() { "landing.command" } else { "validation.command" };
                let gate = self.command(command, key, &tree)?;
                let (prepare, secrets) = (self.preparation(&tree)?, settings.secrets.clone());
                Some(Gate::new(main.root(), tree.root().to_owned(), gate, prepare, secrets))
            }
        };
        let rules = Rules {
            batch: self.plan.batch,
            retries: settings.landing.retries,
            pushes,
            lease: self.run.graph.lead(),
            style: match settings.landing.style {
                LandingStyle::Merge => Style::Merge,
                LandingStyle::Rebase => Style::Rebase,
            },
        };
        let place = (main.root().to_owned(), agent_env(&self.identity));
        let scope: Scope = self.run.scope.clone();
        Ok(Lander::new(
            store,
            Arc::clone(&self.team),
            self.plan.trunk.clone(),
            place,
            (holder, scope),
            gate,
            rules,
        )
        .through(self.exchange.clone()))
    }

    /// This run among the workers of a graph on a server.
    fn member(&self) -> Option<Member> {
        let server = self.run.graph.server()?;
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Some(Member {
            store: server.known(),
            team: Arc::clone(&self.team),
            board: self.shared.board.join(),
            signals: self.shared.signals.clone(),
            run: self.shared.id.clone(),
            machine,
            logs: self.project().run(&self.shared.id).to_string_lossy().into_owned(),
            login: self.run.preflight.login().to_owned(),
            told: Told::default(),
            heard: 0,
            before: None,
            knowledge: self.run.places.documents.join("knowledge"),
            found: Vec::new(),
            known: BTreeSet::new(),
        })
    }

    /// What brings commits to the remote while agents work, where other machines may have to go on from them.
    fn courier(&self) -> Option<Courier> {
        let (exchange, server) = (self.exchange.clone()?, self.run.graph.server()?);
        let address = server.address.clone();
        let graph: OpenGraph = Box::new(move || Box::new(PostgresStore::at(address.clone())));
        Some(Courier { team: Arc::clone(&self.team), exchange, graph, every: server.lease.renewal() })
    }

    /// What pushes, if that is wanted and there is a remote.
    fn pusher(&self) -> anyhow::Result<Option<Pusher>> {
        let (settings, root) = (self.settings(), self.project().root());
        if !settings.landing.push || self.exchange.is_some() {
            return Ok(None);
        }
        let Some(remote) = git::remote::remote_of(root, self.plan.trunk.name(), settings.git.forge) else {
            self.shared
                .screen
                .warn("landing.push is on, but the repository has no remote: nothing is pushed");
            return Ok(None);
        };
        let is_protected = settings.git.protected_branches.iter().any(|name| name == self.plan.trunk.name());
        Ok(Some(Pusher {
            team: Arc::clone(&self.team),
            trunk: self.plan.trunk.clone(),
            root: root.to_owned(),
            remote,
            identity: self.identity.clone(),
            aside: is_protected.then(|| "it is protected (git.protected_branches)".to_owned()),
            request: settings.git.auto_pr.then(|| LandedRequest::new(&self.shared.id)),
            graph: self.run.graph.landed_on(self.team.hurries())?,
        }))
    }

    /// A command of the settings in a work tree.
    fn command(&self, command: &str, key: &str, tree: &Project) -> anyhow::Result<ValidationCommand> {
        let settings = self.settings();
        // What agents have written runs there.
        let (preset, exports) = (self.run.preflight.preset(), settings.exported());
        let (launch, _) = launch_behind_walls((tree, settings), preset, exports, &self.shared.id)?;
        let shown = settings.secrets.word(command);
        let (limit, place) = (settings.validation_timeout, place_of(settings, key));
        Ok(ValidationCommand::new(command, shown, place, limit, &launch).in_tree_of(self.project().root()))
    }

    fn preparation(&self, tree: &Project) -> anyhow::Result<Option<ValidationCommand>> {
        let command = self.settings().task_prepare.as_deref();
        command.map(|command| self.command(command, "execution.prepare", tree)).transpose()
    }
}

fn name_of(place: usize) -> String {
    format!("{JOBS}/{}", place + 1)
}
