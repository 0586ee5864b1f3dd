//! Notices to a command, a webhook, the desktop and the terminal's bell, and hooks. All are folds over the events,
//! and none delays or fails a loop: each target has a bounded queue and a thread of its own, and errors are reported
//! once, as news that the loop asks for.

mod desktop;
mod format;
mod hooks;
mod lane;
mod message;
mod outbox;
mod program;
mod sender;
mod shared;
mod webhook;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::budget::Budget;
use crate::engine::event::{LoopIdentity, Stamped};
use crate::engine::fact::Fact;
use crate::process::launch::Launch;
use crate::project::Project;
use crate::settings::notify::{Moment, NotifySettings, Target};
use crate::text::redact::Redactor;
use crate::view::waits::Waits;
use lane::Lane;
use message::Message;
use outbox::Outbox;
use shared::Shared;

pub(crate) use desktop::PROGRAM as DESKTOP_PROGRAM;
pub(crate) use hooks::Hooks;
pub(crate) use message::Counts;

/// How long the webhook has at the end of a run; what is left is sent when a loop next starts here.
const LAST_MOMENT: Duration = Duration::from_secs(5);
/// The time limit of a command.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// How long cancelled commands may take to end.
const GONE_WITHIN: Duration = Duration::from_secs(7);

/// Sends notices to the targets of the settings; one for each process.
pub(crate) struct Notifier {
    settings: NotifySettings,
    /// The name of the project.
    project: String,
    /// The secrets to remove from targets' output.
    secrets: Redactor,
    shared: Arc<Shared>,
    lanes: Vec<Lane>,
    waits: Mutex<Waits>,
}

impl Notifier {
    /// Starts the threads. `launch` says where and how commands run.
    pub(crate) fn start(
        settings: &NotifySettings,
        secrets: &Redactor,
        project: &Project,
        launch: &Launch,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let mut lanes = Vec::new();
        let mut add = |lane: std::io::Result<Lane>, target: Target| match lane {
            Ok(lane) => lanes.push(lane),
            Err(error) => shared.word(format!("no notices by {}: {error}", target.word())),
        };
        if settings.has(Target::Command)
            && let Some(command) = &settings.command
        {
            let (command, launch) = (command.clone(), launch.clone());
            add(Lane::of_command(&shared, command, launch, COMMAND_LIMIT), Target::Command);
        }
        if settings.has(Target::Desktop) {
            add(Lane::of_desktop(&shared, launch.clone()), Target::Desktop);
        }
        if settings.has(Target::Webhook)
            && let Some(webhook) = settings.webhook()
        {
            add(Lane::of_webhook(&shared, webhook, Outbox::of(project)), Target::Webhook);
        }
        let (settings, secrets, project) = (settings.clone(), secrets.clone(), name_of(project));
        Self { settings, project, secrets, shared, lanes, waits: Mutex::default() }
    }

    /// Takes one fact of a loop that a verb has started with a budget, and returns whether to ring the bell.
    pub(crate) fn take(&self, started: (&str, Budget), stamped: &Stamped<'_>) -> bool {
        let Some(moment) = message::moment(stamped) else { return false };
        if matches!(stamped.fact, Fact::Waiting { .. })
            && !self.waits.lock().unwrap_or_else(PoisonError::into_inner).meet(stamped)
        {
            return false;
        }
        self.tell(moment, || Message::of(&self.project, started, moment, stamped))
    }

    /// Takes the end of a run of many loops: its line and its results.
    pub(crate) fn take_end(&self, identity: &LoopIdentity, line: &str, counts: Counts) -> bool {
        let moment = if counts.exit_code == 0 { Moment::End } else { Moment::Failure };
        self.tell(moment, || Message::of_many(&self.project, identity, line, counts))
    }

    fn tell(&self, moment: Moment, message: impl FnOnce() -> Message) -> bool {
        let is_told = |lane: &&Lane| self.settings.tells(lane.target(), moment);
        let mut lanes = self.lanes.iter().filter(is_told).peekable();
        if lanes.peek().is_some() {
            let message = message();
            lanes.for_each(|lane| lane.tell(&message));
        }
        self.settings.tells(Target::Bell, moment)
    }

    /// The next thing that the user should know.
    pub(crate) fn word(&self) -> Option<String> {
        self.shared.next_word().map(|word| self.secrets.text(&word).into_owned())
    }

    /// Gives waiting messages a last, bounded time; less once `hurry` says so.
    pub(crate) fn finish(&self, mut hurry: impl FnMut() -> bool) {
        if self.lanes.is_empty() {
            return;
        }
        self.shared.finish();
        self.lanes.iter().for_each(Lane::wake);
        let began = Instant::now();
        self.shared.wait(&mut hurry, || {
            self.lanes.iter().all(|lane| {
                let limit = match lane.target() {
                    Target::Command => COMMAND_LIMIT,
                    Target::Desktop => desktop::LIMIT,
                    Target::Webhook | Target::Bell => LAST_MOMENT,
                };
                lane.is_through() || began.elapsed() >= limit
            })
        });
        self.shared.cancel();
        let commands = || self.lanes.iter().filter(|lane| lane.target() != Target::Webhook);
        commands().for_each(Lane::wake);
        // No command that we have started outlives us.
        let told = Instant::now();
        self.shared.wait(&mut || false, || commands().all(Lane::is_through) || told.elapsed() >= GONE_WITHIN);
        self.lanes.iter().for_each(Lane::tell_what_is_left);
    }
}

/// The result of a test event at one target.
pub(crate) struct Tested {
    /// The target.
    pub(crate) target: Target,
    /// Its name.
    pub(crate) name: String,
    /// The error, if it failed.
    pub(crate) result: Result<(), String>,
}

/// Sends a test event to every target, one after the other; the caller rings the bell. The results contain no
/// secrets.
pub(crate) fn test(
    settings: &NotifySettings,
    secrets: &Redactor,
    project: &Project,
    launch: &Launch,
) -> Vec<Tested> {
    let message = Message::test(&name_of(project));
    let mut tested = Vec::new();
    if let Some(command) = settings.command.as_ref().filter(|_| settings.has(Target::Command)) {
        let result = program::run(&launch.shell(command), &message.line, COMMAND_LIMIT, &false.into());
        let result = result.map(drop).map_err(|failed| failed.why);
        tested.push(Tested { target: Target::Command, name: command.clone(), result });
    }
    if let Some(webhook) = settings.webhook().filter(|_| settings.has(Target::Webhook)) {
        let name = webhook.host().to_owned();
        let result = webhook::Poster::new(webhook).post(&message).into_result();
        tested.push(Tested { target: Target::Webhook, name, result });
    }
    if settings.has(Target::Desktop) {
        let result = desktop::show(launch, &message, &false.into());
        tested.push(Tested { target: Target::Desktop, name: desktop::PROGRAM.to_owned(), result });
    }
    for Tested { name, result, .. } in &mut tested {
        *name = secrets.text(name).into_owned();
        if let Err(why) = result {
            *why = secrets.text(why).into_owned();
        }
    }
    tested
}

fn name_of(project: &Project) -> String {
    project.root().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
