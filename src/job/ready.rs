//! From a loop that is ready to its exit code.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use anyhow::bail;
use chrono::{DateTime, Local, Utc};
use regex::Regex;

use super::agent_choice;
use super::detached::{self, DETACHED};
use super::launch::{launch, launch_behind_walls};
use super::resume::{ACCEPT_CONFIG, Resume, Resumed, changed_inside, left_over, resume};
use super::signals::{Signals, watch_requests};
use super::tripwire::Surroundings;
use super::workspace::{Call, Workspace};
use super::worktree::GitWorktree;
use crate::engine::agent::Agent;
use crate::engine::board::{Board, LoginLimits};
use crate::engine::context::{Beside, Context, News, Sink};
use crate::engine::event::{LoopIdentity, Stamped};
use crate::engine::fact::{Fact, ProofRecord};
use crate::engine::inbox::{Inbox, Wake};
use crate::engine::outcome::End;
use crate::engine::person::Person;
use crate::engine::places::Ticket;
use crate::engine::policy::Limits;
use crate::engine::run::{Job, run as run_engine};
use crate::engine::source::Source;
use crate::engine::stop::Ask;
use crate::engine::tally::Tally;
use crate::engine::validator::Validator;
use crate::files::FileError;
use crate::git::{self, left_locks};
use crate::inspection::Ground;
use crate::notify::{Hooks, Notifier};
use crate::process::launch::Launch;
use crate::project::Project;
use crate::proof::{Measures, Prover, Reviewed, Terms, held_out_problem};
use crate::record::config_watch::WatchedConfig;
use crate::record::known_limits::KnownLimits;
use crate::record::log_dir::LogDir;
use crate::record::recorder::Recorder;
use crate::record::recovery;
use crate::record::retention::{self, Kept};
use crate::record::state::Setup;
use crate::record::state_read::Extent;
use crate::settings::proof_level::{OnProtected, ProofLevel};
use crate::settings::{Resolved, Settings, Verb};
use crate::side_command::{ValidationCommand, cannot_run, obstacle};
use crate::tell::words;
use crate::text::count;
use crate::text::digest::sha256_of_words;
use crate::text::redact::Redactor;
use crate::text::timestamp;
use crate::view::View;
use crate::view::plain::Frame;

/// A loop that only lacks its work and its records. It has what all loops have in common; verbs set the fields that differ.
pub(crate) struct Ready<'a> {
    /// What starts it.
    pub(crate) call: Call<'a>,
    /// The project of the loop: that of the call, a work tree, or a folder of its own.
    pub(crate) project: &'a Project,
    /// The loop's name.
    pub(crate) name: String,
    /// Its limits.
    pub(crate) limits: Limits,
    /// The assistant's text that ends it.
    pub(crate) done_pattern: Option<Regex>,
    /// Unique id of this run, see [`run_id`]: the run mark of its agent.
    pub(crate) run: String,
    /// Whether it goes on where the last one was cut off.
    pub(crate) resume: Resume,
    /// The name of its agent.
    pub(crate) agent_name: String,
    /// Its agent.
    pub(crate) agent: Box<dyn Agent + 'a>,
    /// Whether its agent works behind walls.
    pub(crate) is_walled: bool,
    /// What proves the work.
    pub(crate) validator: Option<Box<dyn Validator + 'a>>,
    /// Where a fresh agent stands that reviews it, before it counts; `None`: it is not reviewed.
    pub(crate) reviewed_from: Option<Ground>,
    /// What people are told when it starts.
    pub(crate) warning: Option<String>,
    /// Why the user's validation command cannot run here, where it has been looked at and cannot.
    pub(crate) cannot_validate: Option<String>,
    /// The plan, which counts as part of the work tree wherever it lies.
    pub(crate) plan: PathBuf,
    /// What it shares with other loops.
    pub(crate) board: Board,
    /// Its turn among other loops.
    pub(crate) ticket: Option<Ticket>,
    /// Its set-up, for displays; the files of its work and its settings are added when it starts.
    pub(crate) setup: Setup,
    /// The command line that resumes the loop, if it is not the one that started it.
    pub(crate) argv: Option<Vec<String>>,
    /// When the loop began, if that was in an earlier process.
    pub(crate) started: Option<DateTime<Utc>>,
    /// The person who can be asked while it runs.
    pub(crate) person: Option<Box<dyn Person>>,
    /// Listeners besides the records and the view.
    pub(crate) sinks: Vec<Sink<'a>>,
    /// What other parts of the run have done, to be told through this loop.
    pub(crate) news: Option<Beside<'a>>,
    /// The sender of its notices; `None`: one of its own, by the settings.
    pub(crate) notifier: Option<&'a Notifier>,
}

impl<'a> Ready<'a> {
    /// A loop of its own with this agent, its name and its launch, validated as the settings say. `judge` is where a fresh agent
    /// stands that judges its work, if one can.
    #[must_use]
    pub(crate) fn new(
        call: Call<'a>,
        project: &'a Project,
        limits: Limits,
        (agent_name, launch): (String, &Launch),
        agent: impl Agent + 'a,
        judge: Option<Ground>,
    ) -> Self {
        let settings = &call.workspace.settings;
        let words = launch.command_line().map(|word| settings.secrets.word(&word.to_string_lossy()));
        let validation = validation(settings).map(|command| settings.secrets.word(command));
        Self {
            call,
            project,
            name: call.mode().to_owned(),
            limits,
            done_pattern: None,
            run: launch.mark.clone(),
            resume: Resume::No,
            agent_name,
            agent: Box::new(agent),
            is_walled: launch.enclosure.is_some(),
            validator: validator(settings, project, launch, call.workspace.project.root(), judge),
            reviewed_from: None,
            warning: None,
            cannot_validate: cannot_validate(settings, launch),
            plan: project.implementation_plan(),
            board: board(project, settings),
            ticket: None,
            setup: Setup {
                verb: call.verb.words().to_owned(),
                done_pattern: settings.done_pattern.clone(),
                inactivity_timeout: Some(settings.inactivity_timeout.as_secs_f64()),
                agent_digest: Some(digest(words)),
                validation_digest: Some(digest(validation.into_iter())),
                ..Setup::default()
            },
            argv: None,
            started: None,
            person: None,
            sinks: Vec::new(),
            news: None,
            notifier: None,
        }
    }

    /// Has the work proven by `validator`, if any, and not by the user's own command.
    pub(crate) fn validated_by(&mut self, validator: Option<Box<dyn Validator + 'a>>) {
        (self.validator, self.cannot_validate) = (validator, None);
    }

    /// What proves the work, with a review behind it if there is one.
    fn validator(&mut self) -> Option<Box<dyn Validator + 'a>> {
        let Call { workspace: Workspace { settings, .. }, verb, .. } = self.call;
        let inner = self.validator.take();
        let Some(ground) = self.reviewed_from.take() else { return inner };
        let terms = Terms {
            ground,
            rounds: settings.review_rounds,
            papers: if matches!(verb, Verb::Prompt | Verb::Run) {
                Vec::new()
            } else {
                vec![settings.specs_dir.clone().into(), self.project.relative(&self.plan)]
            },
            done_pattern: self.done_pattern.clone(),
        };
        Some(Box::new(Reviewed::new(inner, terms)))
    }

    /// Also writes every attempt's output into this folder of the user's.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(crate) fn logs_into(&mut self, folder: Option<&PathBuf>) -> Result<(), FileError> {
        let folder = folder.map(|folder| LogDir::open(&self.project.cwd().join(folder))).transpose()?;
        self.sinks.extend(folder.map(|folder| -> Sink<'_> { Box::new(folder) }));
        Ok(())
    }

    /// Runs the only loop of this process, as its flags say, and returns its exit code.
    pub(crate) fn run(self, source: impl Source + 'a, frame: Frame) -> anyhow::Result<u8> {
        self.run_to_end(source, frame).map(|end| end.outcome.code())
    }

    /// Runs the only loop of this process, as its flags say, and returns its end.
    pub(crate) fn run_to_end(mut self, source: impl Source + 'a, frame: Frame) -> anyhow::Result<End> {
        let Call { workspace: Workspace { settings, .. }, verb, flags } = self.call;
        if let Some(name) = &flags.name {
            self.name.clone_from(name);
        }
        if flags.resume {
            self.resume = Resume::Asked;
        }
        let inbox = Arc::new(Inbox::default());
        let signals = Signals::listen()?;
        // The agent of a worker completes what it is at.
        signals.allow((verb != Verb::Spawn).then_some(settings.stop_within.unwrap_or(settings.term_grace)));
        signals.join(&inbox);
        let mut view = View::start(flags.json, flags.quiet, frame.for_reader(verb.words()))?;
        for warning in &settings.warnings {
            view.warn(warning);
        }
        let notifier = notifier(self.project, settings);
        let end = Ready { notifier: Some(&notifier), ..self }.run_as(source, &mut view, &inbox)?;
        notifier.finish(|| is_hurried(&inbox));
        while let Some(word) = notifier.word() {
            view.warn(&word);
        }
        view.finish(&inbox);
        Ok(end)
    }

    /// Opens the records and runs the loop to its end.
    pub(crate) fn run_as(
        mut self,
        source: impl Source + 'a,
        view: &mut View,
        inbox: &Arc<Inbox>,
    ) -> anyhow::Result<End> {
        let Self { call: Call { workspace: Workspace { settings, .. }, verb, flags }, project, .. } = self;
        // Nothing could prove what its attempts cost.
        if let Some(why) = self.cannot_validate.take() {
            bail!("{why}");
        }
        let identity = LoopIdentity {
            run: self.run.clone(),
            name: std::mem::take(&mut self.name),
            mode: self.call.mode().to_owned(),
            agent: std::mem::take(&mut self.agent_name),
        };
        let setup = self.setup(&source);
        // Read first: a refused start leaves no session log.
        let mut before = recovery::read(project, &identity.name, Extent::Whole);
        let read_on = before.as_mut().ok().and_then(|(_, read_on)| read_on.as_mut());
        let step = read_on.and_then(|read_on| read_on.step.take());
        let changed_inside = changed_inside(&before, project);
        let left_over = left_over(&before, project, &identity, &setup);
        let at_work = before.as_ref().ok().and_then(|(found, _)| found.state()?.last_at_work());
        let (how, budget) = (self.resume, self.limits.budget);
        let resumed = resume(how, before, project, &identity, (&setup, budget), flags.accept_config)?;
        let (watch, secrets) = (watch_requests(inbox)?, &settings.secrets);
        let argv = self.argv.take().unwrap_or_else(|| own_command_line(secrets));
        let mut recorder = Recorder::open(project, &identity, setup, self.limits.max_iterations, &argv)?;
        // It runs until the loop has ended.
        let _housekeeping =
            (!project.is_of_branch()).then(|| retention::tidy(project, &identity.run, kept(settings)));
        if let Some(started) = self.started {
            recorder.began(started);
        }
        if let Some(step) = step {
            recorder.add_step(&step)?;
        }
        if let Some(warning) = hide_own_files(project) {
            recorder.warn(warning);
        }
        // A loop that goes on has reported it, or needed `--accept-config`.
        let changed_inside = changed_inside.filter(|_| resumed.is_none());
        self.warning.take().into_iter().chain(changed_inside).for_each(|warning| recorder.warn(warning));
        // The processes of the last loop have ended by now.
        for lock in at_work.iter().flat_map(|at_work| left_locks::remove(project.root(), at_work)) {
            recorder.warn(words::left_lock(&project.relative(&lock)));
        }
        recorder.warnings().iter().for_each(|warning| view.warn(warning));
        let (tally, recovered) = match resumed {
            Some(resumed) => shown(resumed, view),
            None => (told_of_notes(left_over, view), None),
        };
        view.log_is(&project.relative(recorder.session_log()));
        // The thread waits for them.
        let requests = recorder.requests();
        let _ = watch.send(Arc::clone(&requests));
        let recorder = RefCell::new(recorder);

        let hooks = Hooks::start(&settings.hooks, launch(project, settings, Vec::new(), &self.run));
        let mut others = self.news.take().unwrap_or_else(|| Box::new(|| None));
        let (notifier, started) = (self.notifier, (verb.words(), self.limits.budget));
        let mut sinks = std::mem::take(&mut self.sinks);
        // Records come first.
        sinks.insert(0, Box::new(&recorder));
        // Branches are many loops, of one process.
        if flags.detached && !project.is_of_branch() {
            let folder = project.run(&identity.run);
            sinks.insert(1, detached::when_begun(folder, identity.name.clone(), flags.json));
        }
        sinks.push(Box::new(|stamped: &Stamped<'_>| {
            hooks.take(stamped);
            view.take(stamped);
            if notifier.is_some_and(|notifier| notifier.take(started, stamped)) {
                view.ring();
            }
            Ok(())
        }));
        let validator = self.validator();
        let job = Job {
            context: Context::new(identity.clone(), Arc::clone(inbox), sinks)
                .kept_by(Box::new(|| recorder.borrow_mut().keep()))
                .without(secrets)
                .beside(Box::new(|| {
                    let notice = || notifier.and_then(Notifier::word).or_else(|| requests.news());
                    others().or_else(|| hooks.news()).or_else(|| notice().map(News::Notice))
                }))
                .with_person(self.person),
            project: project.root().to_owned(),
            limits: self.limits,
            tally,
            recovered,
            delay: settings.delay.unwrap_or_default(),
            done_pattern: self.done_pattern,
            source: Box::new(source),
            validator,
            agent: self.agent,
            worktree: Box::new(GitWorktree::new(project, self.plan, self.is_walled)),
            tripwire: Surroundings::of(project, settings.sandbox.tripwire, &self.run)
                .map(|wire| Box::new(wire) as _),
            board: self.board,
            fallback_after: settings.fallback_after,
            ticket: self.ticket,
        };
        let end = run_engine(job);
        hooks.finish(|| is_hurried(inbox));
        let mut recorder = recorder.into_inner();
        let left = || hooks.news().or_else(|| requests.news().map(News::Notice));
        while let Some(news) = left().map(|news| news.without(secrets)) {
            tell_afterwards(&news, &identity, &mut recorder, view);
        }
        recorder.close();
        Ok(end)
    }

    /// The set-up of the loop, with the files of its work and its settings.
    fn setup(&mut self, source: &dyn Source) -> Setup {
        let prompt_file = source.file().map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        let front_matter = prompt_file.clone().filter(|_| self.call.verb == Verb::Run);
        let config = self.call.workspace.settings.files.iter().cloned().map(WatchedConfig::new);
        let config = config.chain(front_matter.map(WatchedConfig::of_front_matter)).collect();
        Setup { prompt_file, config, ..std::mem::take(&mut self.setup) }
    }
}

/// What the loops of a run share; usage limits are known to all loops of the user's on this machine.
#[must_use]
pub(crate) fn board(project: &Project, settings: &Settings) -> Board {
    let limits = project.known_limits().map(|folder| -> Arc<dyn LoginLimits> {
        Arc::new(KnownLimits { folder, longest: settings.max_limit_wait })
    });
    Board::with(limits)
}

/// Shows where a loop goes on, and returns what it goes on from.
fn shown(resumed: Resumed, view: &mut View) -> (Tally, Option<Fact<'static>>) {
    view.goes_on(&resumed.from);
    for warning in &resumed.warnings {
        view.warn(warning);
    }
    (resumed.tally, resumed.recovered)
}

/// The tally of a loop that starts afresh; tells of the notes for its first prompt.
fn told_of_notes(tally: Tally, view: &mut View) -> Tally {
    if !tally.notes.is_empty() {
        let count = count::of(tally.notes.len() as u64, "note");
        view.goes_on(&format!("the first prompt has {count} of 'ralph note'"));
    }
    tally
}

/// A digest of words, to compare them without keeping them.
fn digest(words: impl Iterator<Item = String>) -> String {
    sha256_of_words(words.collect::<Vec<_>>().iter().map(String::as_str))
}

/// Reports news that came when the loop was over.
fn tell_afterwards(news: &News, identity: &LoopIdentity, recorder: &mut Recorder, view: &mut View) {
    if let News::Notice(text) = news {
        view.warn(text);
    }
    // An error of writing changes nothing any more.
    let _ = recorder.take_afterwards(Local::now(), identity, &news.fact());
}

/// How much is kept of earlier runs.
pub(crate) fn kept(settings: &Settings) -> Kept {
    let unless_zero = |count: u64| (count > 0).then_some(count);
    Kept { runs: unless_zero(settings.keep_runs), bytes: unless_zero(settings.keep_size) }
}

/// The command line of this process as it is kept: without the secrets, which `ralph resume` puts back, and without
/// flags that speak of this start alone.
pub(crate) fn own_command_line(secrets: &Redactor) -> Vec<String> {
    let words = std::env::args_os().map(|word| secrets.word(&word.to_string_lossy()));
    without_own(words)
}

/// Without `--accept-config` and `--detached` among ralph's own flags; behind `--` stand words of others.
fn without_own(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut is_ours = true;
    words
        .filter(|word| {
            is_ours &= word != "--";
            !is_ours || ![ACCEPT_CONFIG, DETACHED].contains(&word.as_str())
        })
        .collect()
}

/// The sender of notices for the loops of this process, by the settings.
pub(crate) fn notifier(project: &Project, settings: &Settings) -> Notifier {
    Notifier::start(&settings.notify, &settings.secrets, project, &launch(project, settings, Vec::new(), ""))
}

/// Whether the user wants to leave while something is still awaited.
fn is_hurried(inbox: &Inbox) -> bool {
    matches!(
        inbox.wait(Some(Instant::now())),
        Wake::Asked(Ask::Interrupt | Ask::Terminate | Ask::HangUp | Ask::GraceOver)
    )
}

/// Has git ignore ralph's own files, so that no agent commits them; returns a warning when that fails.
pub(crate) fn hide_own_files(project: &Project) -> Option<String> {
    if !project.in_git() {
        return None;
    }
    let hidden = git::exclude(project.root(), &git::runtime_patterns(project));
    hidden.err().map(|error| format!("ralph's own files may show up in git status: {error}"))
}

/// The command that proves the work, as the settings have it.
pub(crate) fn validation(settings: &Settings) -> Option<&str> {
    settings.validation_command.as_deref().filter(|_| settings.validation_enabled)
}

/// The validator of the settings, for agents that are started with this launch.
fn validator(
    settings: &Settings,
    project: &Project,
    launch: &Launch,
    home: &Path,
    judge: Option<Ground>,
) -> Option<Box<dyn Validator>> {
    let command = validation(settings)?;
    let text = command.to_owned();
    let (shown, place) = (settings.secrets.word(command), place_of(settings, "validation.command"));
    let command = ValidationCommand::new(command, shown, place, settings.validation_timeout, launch);
    let command = command.in_tree_of(home);
    Some(match settings.proof_level {
        ProofLevel::Place => Box::new(command),
        level => {
            let measures = Measures { judge, ..measures(settings, level, text, launch) };
            Box::new(Prover::new(project, command, measures))
        }
    })
}

/// What claims are measured by at this level besides the command.
fn measures(settings: &Settings, level: ProofLevel, command: String, launch: &Launch) -> Measures {
    let prepare = settings.proof_prepare.as_deref().map(|command| {
        let (shown, place) = (settings.secrets.word(command), place_of(settings, "proof.prepare"));
        ValidationCommand::new(command, shown, place, settings.validation_timeout, launch)
    });
    Measures {
        level,
        command,
        protected: settings.proof_protected.clone(),
        on_protected: settings.proof_on_protected,
        prepare,
        carry: settings.proof_carry.clone(),
        held_out: settings.proof_held_out.clone(),
        junit: settings.proof_junit.clone(),
        mutants: settings.proof_mutants,
        limit: settings.proof_limit,
        judge: None,
    }
}

/// What proves the commit of a record again, by its command: where that is the settings' own, with the secrets that the record does
/// not have.
pub(crate) fn prover(
    settings: &Settings,
    project: &Project,
    command: &str,
    run: &str,
    record: &ProofRecord,
) -> anyhow::Result<Prover> {
    let shown = settings.secrets.word(command);
    let command = validation(settings).filter(|own| settings.secrets.word(own) == shown).unwrap_or(command);
    let preset = agent_choice::of_settings(settings, project)?.preset;
    let (launch, _) = launch_behind_walls((project, settings), preset, settings.exported(), run)?;
    let level = ProofLevel::ALL.into_iter().find(|level| level.word() == record.level);
    let asked = record.voice.as_ref().map(|_| OnProtected::Voice);
    let measures = measures(settings, level.unwrap_or(ProofLevel::Base), command.to_owned(), &launch);
    let measures = Measures { on_protected: asked.unwrap_or(settings.proof_on_protected), ..measures };
    let (limit, place) = (settings.validation_timeout, place_of(settings, "validation.command"));
    Ok(Prover::new(project, ValidationCommand::new(command, shown, place, limit, &launch), measures))
}

/// Why the validation command cannot run where the agent does, and where it stands; `None`: nothing is known against it.
pub(crate) fn cannot_validate(settings: &Settings, launch: &Launch) -> Option<String> {
    let command = validation(settings)?;
    if let Some(obstacle) = obstacle(command, launch) {
        let place = place_of(settings, "validation.command");
        return Some(cannot_run(&settings.secrets.word(command), &obstacle, &place));
    }
    let held_out = settings.proof_held_out.as_deref()?;
    let problem = held_out_problem(&launch.cwd, held_out)?;
    Some(format!("proof.held_out ({}): {problem}", place_of(settings, "proof.held_out")))
}

/// Where the user has written a command.
pub(crate) fn place_of(settings: &Settings, key: &str) -> String {
    settings.row(key).map(Resolved::place).unwrap_or_default()
}

/// An id that is unique on this machine: the time in nanoseconds, our pid, and a count in this process.
#[must_use]
pub(crate) fn run_id() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let (now, pid) = (timestamp::exact(chrono::Utc::now()), std::process::id());
    match MADE.fetch_add(1, Ordering::Relaxed) {
        0 => format!("{now}-{pid}"),
        made => format!("{now}-{pid}-{made}"),
    }
}
