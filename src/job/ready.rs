//! From a loop that is ready to its exit code.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, Local, Utc};
use regex::Regex;

use super::preflight::{Preflight, launch};
use super::resume::{Resume, Resumed, changed_inside, resume};
use super::signals::{Signals, watch_requests};
use super::workspace::Workspace;
use super::worktree::GitWorktree;
use crate::agent::factory::Factory;
use crate::cli::LoopFlags;
use crate::engine::agent::Agent;
use crate::engine::board::Board;
use crate::engine::context::{Context, News, Sink};
use crate::engine::event::{LoopIdentity, Stamped};
use crate::engine::inbox::{Inbox, Wake};
use crate::engine::outcome::End;
use crate::engine::person::Person;
use crate::engine::places::Ticket;
use crate::engine::policy::Limits;
use crate::engine::run::{Job, run as run_engine};
use crate::engine::source::Source;
use crate::engine::stop::Ask;
use crate::engine::validator::Validator;
use crate::git::{self, left_locks};
use crate::notify::{Hooks, Notifier};
use crate::process::launch::Launch;
use crate::project::Project;
use crate::record::config_watch::WatchedConfig;
use crate::record::recorder::Recorder;
use crate::record::recovery;
use crate::record::retention::{self, Kept};
use crate::record::state::{Extent, Found, Setup};
use crate::record::worker::Worker;
use crate::settings::{Settings, Verb};
use crate::side_command::ValidationCommand;
use crate::text::digest::sha256_of_words;
use crate::text::redact::Redactor;
use crate::text::timestamp;
use crate::view::View;
use crate::view::plain::Frame;

/// A loop that is ready but for its records.
pub(crate) struct Ready<'a> {
    /// Where things are.
    pub(crate) project: &'a Project,
    /// Which settings hold.
    pub(crate) settings: &'a Settings,
    /// The loop's name.
    pub(crate) name: String,
    /// What starts such a loop.
    pub(crate) verb: Verb,
    /// What ends it.
    pub(crate) limits: Limits,
    /// The assistant's text that ends it.
    pub(crate) done_pattern: Option<Regex>,
    /// Unique id of this run, see [`run_id`].
    pub(crate) run: String,
    /// Whether it goes on where the last one was cut off.
    pub(crate) resume: Resume,
    /// It goes on also where an agent has changed files of settings.
    pub(crate) accepts_config: bool,
    /// What to call who works.
    pub(crate) agent_name: String,
    /// The words that it is started with, without secrets; `None`: the worker has them.
    pub(crate) agent_words: Option<Vec<String>>,
    /// Who works.
    pub(crate) agent: Box<dyn Agent + 'a>,
    /// What on.
    pub(crate) source: Box<dyn Source + 'a>,
    /// What proves the work.
    pub(crate) validator: Option<Box<dyn Validator + 'a>>,
    /// Counts as part of the work tree wherever it lies.
    pub(crate) plan: PathBuf,
    /// What it knows of other loops.
    pub(crate) board: Board,
    /// Its turn among other loops.
    pub(crate) ticket: Option<Ticket>,
    /// The ralph dir of the command line that started it, where that is not the loop's own.
    pub(crate) started_from: Option<PathBuf>,
    /// What a worker is set up with.
    pub(crate) worker: Option<Worker>,
    /// The done pattern as the user wrote it.
    pub(crate) done_words: Option<String>,
    /// Longest time without a sign of life; `None`: as the settings say.
    pub(crate) inactivity: Option<Duration>,
    /// The command line that takes the loop up again, where that is not the one that it was started with.
    pub(crate) argv: Option<Vec<String>>,
    /// When the loop began, where it did so in an earlier process.
    pub(crate) started: Option<DateTime<Utc>>,
    /// Who can be asked while it runs.
    pub(crate) person: Option<Box<dyn Person>>,
    /// Who listens besides the records and the view.
    pub(crate) sinks: Vec<Sink<'a>>,
    /// Who tells others of it; `None`: whom the settings name.
    pub(crate) notifier: Option<&'a Notifier>,
}

impl<'a> Ready<'a> {
    /// A loop of its own in this workspace, validated as the settings say.
    #[must_use]
    pub(crate) fn new(
        workspace: &'a Workspace,
        verb: Verb,
        preflight: &Preflight,
        (agent, run): (Factory, String),
        source: impl Source + 'a,
    ) -> Self {
        let Workspace { project, settings } = workspace;
        Self {
            project,
            settings,
            name: mode(verb).to_owned(),
            verb,
            limits: preflight.limits.clone(),
            done_pattern: preflight.done_pattern.clone(),
            run,
            resume: Resume::No,
            accepts_config: false,
            validator: validator(settings, agent.launch()),
            agent_name: agent.name().to_owned(),
            agent_words: Some(words(agent.launch(), &settings.secrets)),
            agent: Box::new(agent),
            source: Box::new(source),
            plan: project.implementation_plan(),
            board: Board::default(),
            ticket: None,
            started_from: None,
            worker: None,
            done_words: settings.done_pattern.clone(),
            inactivity: None,
            argv: None,
            started: None,
            person: None,
            sinks: Vec::new(),
            notifier: None,
        }
    }

    /// Runs the only loop of this process, as its flags say, and answers its exit code.
    pub(crate) fn run(self, flags: &LoopFlags, frame: Frame) -> anyhow::Result<u8> {
        self.run_to_end(flags, frame).map(|end| end.outcome.code())
    }

    /// The same, and answers how it ended.
    pub(crate) fn run_to_end(mut self, flags: &LoopFlags, frame: Frame) -> anyhow::Result<End> {
        if let Some(name) = &flags.name {
            self.name.clone_from(name);
        }
        if flags.resume {
            self.resume = Resume::Asked;
        }
        self.accepts_config = flags.accept_config;
        let inbox = Arc::new(Inbox::default());
        Signals::listen()?.join(&inbox);
        let mut view = View::start(flags.json, flags.quiet, frame.for_reader(self.verb.words()))?;
        for warning in &self.settings.warnings {
            view.warn(warning);
        }
        let notifier = notifier(self.project, self.settings);
        let end = Ready { notifier: Some(&notifier), ..self }.run_as(&mut view, &inbox)?;
        notifier.finish(|| is_hurried(&inbox));
        while let Some(word) = notifier.word() {
            view.warn(&word);
        }
        view.finish(&inbox);
        Ok(end)
    }

    /// Opens the records and runs the loop to its end.
    pub(crate) fn run_as(mut self, view: &mut View, inbox: &Arc<Inbox>) -> anyhow::Result<End> {
        let project = self.project;
        let identity = LoopIdentity {
            run: self.run.clone(),
            name: std::mem::take(&mut self.name),
            mode: mode(self.verb).to_owned(),
            agent: std::mem::take(&mut self.agent_name),
        };
        let setup = self.setup();
        // Looked at first: a refused start leaves no session log.
        let mut before = recovery::read(project, &identity.name, Extent::Whole);
        let read_on = before.as_mut().ok().and_then(|(_, read_on)| read_on.as_mut());
        let step = read_on.and_then(|read_on| read_on.step.take());
        let changed_inside = changed_inside(&before, project);
        let at_work = before.as_ref().ok().and_then(|(found, _)| match found {
            Found::State(state) => state.last_at_work(),
            _ => None,
        });
        let resumed = resume(self.resume, before, project, &identity, &setup, self.accepts_config)?;
        let watch = watch_requests(inbox)?;
        let secrets = &self.settings.secrets;
        let argv = self.argv.take().unwrap_or_else(|| own_command_line(secrets));
        let mut recorder = Recorder::open(project, &identity, setup, self.limits.max_iterations, &argv)?;
        // Until the loop has ended.
        let _housekeeping =
            (!project.is_of_branch()).then(|| retention::tidy(project, &identity.run, kept(self.settings)));
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
        if let Some(warning) = changed_inside.filter(|_| resumed.is_none()) {
            recorder.warn(warning);
        }
        // The processes of the last loop have ended by now.
        for lock in at_work.iter().flat_map(|at_work| left_locks::remove(project.root(), at_work)) {
            let lock = project.relative(&lock);
            recorder.warn(format!(
                "removed {}: an agent that was ended inside of git left this lock, and no process holds it",
                lock.display()
            ));
        }
        recorder.warnings().iter().for_each(|warning| view.warn(warning));
        let resumed = resumed.map(|Resumed { tally, recovered, from, warnings }| {
            view.goes_on(&from);
            for warning in &warnings {
                view.warn(warning);
            }
            (tally, recovered)
        });
        let (tally, recovered) = resumed.unwrap_or_default();
        view.log_is(&project.relative(recorder.session_log()));
        // It waits for them.
        let requests = recorder.requests();
        let _ = watch.send(Arc::clone(&requests));
        let recorder = RefCell::new(recorder);

        let hooks = Hooks::start(&self.settings.hooks, launch(project, self.settings, Vec::new(), &self.run));
        let (notifier, started) = (self.notifier, (self.verb.words(), self.limits.budget()));
        let mut sinks = std::mem::take(&mut self.sinks);
        // Records come first.
        sinks.insert(0, Box::new(&recorder));
        sinks.push(Box::new(|stamped: &Stamped<'_>| {
            hooks.take(stamped);
            view.take(stamped);
            if notifier.is_some_and(|notifier| notifier.take(started, stamped)) {
                view.ring();
            }
            Ok(())
        }));
        let job = Job {
            context: Context::new(identity.clone(), Arc::clone(inbox), sinks)
                .kept_by(Box::new(|| recorder.borrow_mut().keep()))
                .without(secrets)
                .beside(Box::new(|| {
                    let notice = || notifier.and_then(Notifier::word).or_else(|| requests.news());
                    hooks.news().or_else(|| notice().map(News::Notice))
                }))
                .with_person(self.person),
            project: project.root().to_owned(),
            limits: self.limits,
            tally,
            recovered,
            delay: self.settings.delay,
            done_pattern: self.done_pattern,
            source: self.source,
            validator: self.validator,
            agent: self.agent,
            worktree: Box::new(GitWorktree::new(project, self.plan)),
            board: self.board,
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

    /// How the loop is set up, for those who look at it.
    fn setup(&mut self) -> Setup {
        let file = self.source.file();
        let prompt_file = file.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        let has_front_matter = self.verb == Verb::Run;
        let front_matter = prompt_file.clone().filter(|_| has_front_matter);
        let config = self.settings.files.iter().cloned().map(WatchedConfig::new);
        let digest = |words: Vec<String>| sha256_of_words(words.iter().map(String::as_str));
        let validation = self.settings.validation_command.as_deref().filter(|_| self.validator.is_some());
        let validation = validation.map(|command| self.settings.secrets.word(command));
        Setup {
            verb: self.verb.words().to_owned(),
            prompt_file,
            done_pattern: self.done_words.take(),
            inactivity_timeout: Some(
                self.inactivity.unwrap_or(self.settings.inactivity_timeout).as_secs_f64(),
            ),
            started_from: self.started_from.take(),
            agent_digest: self.agent_words.take().map(digest),
            validation_digest: Some(digest(validation.into_iter().collect())),
            config: config.chain(front_matter.map(WatchedConfig::of_front_matter)).collect(),
            worker: self.worker.take().map(Box::new),
        }
    }
}

/// What is started, without the secrets in it.
fn words(launch: &Launch, secrets: &Redactor) -> Vec<String> {
    launch.command_line().map(|word| secrets.word(&word.to_string_lossy())).collect()
}

/// Reports what came of something beside the loop when the loop is over.
fn tell_afterwards(news: &News, identity: &LoopIdentity, recorder: &mut Recorder, view: &mut View) {
    if let News::Notice(text) = news {
        view.warn(text);
    }
    // What cannot be written any more changes nothing.
    let _ = recorder.take_afterwards(Local::now(), identity, &news.fact());
}

/// What is kept of earlier runs.
pub(crate) fn kept(settings: &Settings) -> Kept {
    Kept { runs: settings.keep_runs, bytes: settings.keep_size }
}

/// The flag by which a loop goes on although its settings were changed.
pub(crate) const ACCEPT_CONFIG: &str = "--accept-config";

/// The command line of this process as it is kept: without the secrets, which `ralph resume` puts back, and without
/// `--accept-config`, which speaks of this start alone.
pub(crate) fn own_command_line(secrets: &Redactor) -> Vec<String> {
    let words = std::env::args_os().map(|word| secrets.word(&word.to_string_lossy()));
    without_accepting(words)
}

/// Without `--accept-config` among ralph's own flags; behind `--` stand words of others.
fn without_accepting(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut is_ours = true;
    words
        .filter(|word| {
            is_ours &= word != "--";
            !is_ours || word != ACCEPT_CONFIG
        })
        .collect()
}

/// Who tells others of what becomes of the loops of this process, as the settings say.
pub(crate) fn notifier(project: &Project, settings: &Settings) -> Notifier {
    Notifier::start(&settings.notify, &settings.secrets, project, &launch(project, settings, Vec::new(), ""))
}

/// Whether somebody wants to leave while there is still something to wait for.
fn is_hurried(inbox: &Inbox) -> bool {
    matches!(inbox.wait(Some(Instant::now())), Wake::Asked(Ask::Interrupt | Ask::Terminate))
}

/// Enters ralph's own files among those that git ignores, so that no agent commits them; answers a warning when that fails.
pub(crate) fn hide_own_files(project: &Project) -> Option<String> {
    if !project.in_git() {
        return None;
    }
    let hidden = git::exclude(project.root(), &git::runtime_patterns(project));
    hidden.err().map(|error| format!("ralph's own files may show up in git status: {error}"))
}

/// What the settings say about proving the work; it runs where the agent does.
pub(crate) fn validator(settings: &Settings, launch: &Launch) -> Option<Box<dyn Validator>> {
    let command = settings.validation_command.as_ref().filter(|_| settings.validation_enabled)?;
    let shown = settings.secrets.word(command);
    let command = ValidationCommand::new(command, &shown, settings.validation_timeout, launch);
    Some(Box::new(command))
}

/// What prompts and records call a loop of this verb.
fn mode(verb: Verb) -> &'static str {
    verb.words().rsplit(' ').next().unwrap_or_default()
}

/// Unique on this machine: the time in nanoseconds, our pid, and how many this process has made before.
#[must_use]
pub(crate) fn run_id() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let (now, pid) = (timestamp::exact(chrono::Utc::now()), std::process::id());
    match MADE.fetch_add(1, Ordering::Relaxed) {
        0 => format!("{now}-{pid}"),
        made => format!("{now}-{pid}-{made}"),
    }
}
