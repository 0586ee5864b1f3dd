//! The pipe: an agent that talks over its stdin and stdout.

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::acp::{self, AcpCodec, Grounds, Wanted};
use super::balance::BalanceQuery;
use super::codec::Codec;
use super::display::DisplayRoute;
use super::ended::Judging;
use super::message::Message;
use super::readers::Reading;
use super::spec::AgentSpec;
use super::threads::{Hold, Served, serve};
use super::watch::{Clocks, Watch};
use super::{Timeouts, add_variables, cannot_start};
use crate::engine::agent::{Agent, Attempt};
use crate::engine::context::Context;
use crate::engine::fact::Fact;
use crate::engine::inbox::Port;
use crate::engine::outcome::End;
use crate::engine::report::{AttemptStatus, Balance, Report};
use crate::presets::{self, Protocol};
use crate::process::launch::Launch;
use crate::process::supervised::{StartError, Supervised};
use crate::reply::decode::Decoder;
use crate::reply::usage::Class;
use crate::reply::verdict::{Failure, Kind};
use crate::text::line::shell_words;

/// From this share of its context on, in percents, a model is likely to forget or to fail.
const FULL: u64 = 80;

/// Where, and how long, an agent works.
#[derive(Debug, Clone)]
pub struct Ground {
    /// Folder, environment and ladder; the agent adds the program.
    pub launch: Launch,
    /// Paths of our own files, which it must not get; one that ends with `*` is a prefix.
    pub ours: Vec<OsString>,
    /// The limits of an attempt.
    pub timeouts: Timeouts,
}

/// An agent behind a pipe, with everything about it resolved.
#[derive(Debug, Clone)]
pub struct PipeAgent {
    /// The agent's specification.
    pub(super) spec: AgentSpec,
    /// The agent's place of work.
    pub(super) ground: Ground,
    /// Whether it must change nothing.
    pub(super) read_only: bool,
    reading: Reading,
    balance: Option<BalanceQuery>,
    /// Whether it was looked for what could read its text, where nothing does.
    has_looked: bool,
}

impl Agent for PipeAgent {
    fn run(&mut self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, End> {
        if let Some(why) = self.spec.preset.longest_prompt.and_then(|limit| limit.refuses(attempt.prompt)) {
            return Ok(self.refusal(&why));
        }
        let is_unread = !self.reading.readers.reads_text() && !self.has_looked;
        if is_unread {
            let name = &self.spec.name;
            let filters = if self.reading.heeds_settings {
                ", or set AGENT_FORMAT or AGENT_RESPONSE_FILTER (ralph help filters)"
            } else {
                ""
            };
            context.notice(&format!(
                "ralph does not know '{name}': its words cannot be read, so that COMPLETE does not end this loop; write 'acp:' \
                 before its command line if it speaks the Agent Client Protocol (ralph help acp){filters}"
            ))?;
        }
        let before = self.ask_balance(context)?;
        let mut report = self.attempt(attempt, context)?;
        if let Some(left) = self.ask_balance(context)? {
            let spent = before.map(|before| before - left).filter(|spent| *spent >= 0.0);
            report.balance = Some(Balance { left, spent });
        }
        if is_unread {
            self.has_looked = true;
            let known = presets::that_prints(report.text.as_bytes());
            if let Some(known) = known.filter(|_| self.reading.heeds_settings) {
                let (name, known) = (&self.spec.name, known.name);
                context
                    .notice(&format!("'{name}' prints what {known} prints: AGENT_FORMAT={known} reads it"))?;
            }
        }
        if let Some(used) = report.usage.context().filter(|used| used.percent() >= FULL) {
            let name = &self.spec.name;
            context.notice(&format!(
                "the context of {name}'s model is nearly full: {used}; smaller tasks leave it more room"
            ))?;
        }
        Ok(report)
    }
}

impl PipeAgent {
    /// An agent with this specification, at this place.
    #[must_use]
    pub fn new(spec: AgentSpec, mut reading: Reading, ground: Ground) -> Self {
        if let DisplayRoute::Shell(shell) = &mut reading.display {
            let Launch { env, mark, ladder, .. } = ground.launch.clone();
            *shell = Launch { env, mark, ladder, ..shell.clone() };
        }
        let query = |(command, parser): &(String, String)| BalanceQuery::new(command, parser, &ground.launch);
        let balance = reading.balance.as_ref().map(query);
        Self { spec, ground, read_only: false, reading, balance, has_looked: false }
    }

    /// Its launch.
    #[must_use]
    pub fn launch(&self) -> Launch {
        let (program, args) = (self.spec.executable(), self.spec.args.clone());
        Launch { program, args, ..self.ground.launch.clone() }
    }

    /// Whether its cost can be known.
    #[must_use]
    pub fn reports_cost(&self) -> bool {
        self.reading.reports_cost
    }

    /// The report for a prompt that is too long, which would be too long again.
    fn refusal(&self, why: &str) -> Report {
        let failure = Failure {
            kind: Kind::PromptTooLong,
            class: Class::Context,
            message: format!("{} {why}", self.spec.name),
            reset_at: None,
        };
        let report = Report::given_up(AttemptStatus::AgentFailure, Duration::ZERO);
        Report { failure: Some(failure), ..report }
    }

    fn ask_balance(&self, context: &mut Context<'_>) -> Result<Option<f64>, End> {
        self.balance.as_ref().map_or(Ok(None), |query| query.ask(context))
    }

    /// The codec for its format.
    fn codec(&self, launch: &Launch, wanted: &UnixStream, port: &Port<Message>) -> Box<dyn Codec> {
        match self.spec.preset.protocol {
            Protocol::Lines => Box::new(Decoder::new(self.reading.readers.filters(wanted))),
            Protocol::Acp => {
                let wanted = Wanted {
                    model: self.spec.model.clone(),
                    read_only: self.read_only,
                    reads_itself: self.spec.preset.reads_itself,
                    is_enclosed: launch.enclosure.is_some() || !launch.wrapper.is_empty(),
                };
                let grounds = Grounds { launch: launch.clone(), ours: self.ground.ours.clone() };
                Box::new(AcpCodec::new(wanted, &grounds, Some(port.clone())))
            }
        }
    }

    /// The limits of an attempt. A session is closed when its turn is over; an agent that stays then never exits by itself.
    fn timeouts(&self) -> Timeouts {
        let usual = self.ground.timeouts;
        match self.spec.preset.protocol {
            Protocol::Lines => usual,
            Protocol::Acp => Timeouts { grace: usual.grace.min(acp::LEAVE), ..usual },
        }
    }

    fn attempt(&self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, End> {
        let mut launch = self.launch();
        add_variables(self.spec.preset, &mut launch);
        launch.env.push(("RALPH_ITERATION".into(), attempt.iteration.to_string().into()));
        // Without a task, a variable of a loop around us must not be passed on.
        let model = self.spec.model.clone().unwrap_or_default();
        launch.env.push(("RALPH_MODEL".into(), model.into()));

        let command = shell_words(launch.command_line());
        context.tell(Fact::AgentStarted { command: (&command).into() })?;
        let started = Instant::now();
        let (port, mailbox) = context.open();
        let (supervised, pipes) = Supervised::start(&launch).map_err(cannot_start)?;
        let serve = || {
            let (patience, wanted) = Hold::new()?;
            let codec = self.codec(&launch, &wanted, &port);
            let served = serve(pipes, attempt.prompt, codec, &self.reading.display, &wanted, &port)?;
            let is_unread = !self.reading.readers.reads_text();
            Ok(Served { patience: Some(patience), is_unread, ..served })
        };
        let served = serve().map_err(|source| cannot_start(StartError::thread(&launch, source)))?;
        drop(port);

        let clocks = Clocks {
            tool_calls: self.reading.readers.tool_calls,
            timeouts: self.timeouts(),
            loop_over: attempt.deadline,
        };
        let mut watch = Watch::new(supervised, mailbox, served, &launch.cwd, clocks);
        let watched = watch.listen(context);
        let traces = watch.finish();
        watched?;
        let judging = Judging {
            agent: &self.spec.name,
            readers: self.reading.readers.in_force(),
            has_final: self.reading.readers.has_final,
            asides: self.reading.readers.asides,
            exits_when_told: self.spec.preset.protocol == Protocol::Acp,
            preset: self.spec.preset,
        };
        Ok(traces.report(judging, started.elapsed()))
    }
}
