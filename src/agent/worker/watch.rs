//! Watches a worker while it runs: whether it is ready, has its prompt, works, stands still, has ended.

use std::time::{Duration, Instant};

use super::judge::{How, Left};
use super::{Taken, WorkerAgent};
use crate::agent::ended::Traces;
use crate::agent::pane::arrival::{Arrival, Standing, Submission};
use crate::agent::pane::halt::{Halt, HaltWatch};
use crate::agent::pane::ready::{ReadyWait, Verdict};
use crate::agent::pane::still::Still;
use crate::agent::pane::text::bare;
use crate::agent::pane::{SETTLED, Since};
use crate::agent::tools::Tools;
use crate::agent::vital_signs::VitalSigns;
use crate::engine::agent::Attempt;
use crate::engine::context::Context;
use crate::engine::fact::Fact;
use crate::engine::inbox::Wake;
use crate::engine::outcome::{End, Outcome};
use crate::engine::stop::Urgency;
use crate::presets::ToolCalls;
use crate::process::ladder::Ladder;
use crate::process::note::SupervisorNote;
use crate::process::pane::{self, Pane};
use crate::text::count;
use crate::tmux::TmuxError;
use crate::tmux::paste::{self, Key};
use crate::tmux::screen::{self, Extent, Screen};

/// How often a screen is read while it should become ready or take a prompt.
const LOOK: Duration = Duration::from_millis(150);
/// How soon a changed screen is read while the agent works.
const SOON: Duration = Duration::from_secs(1);
/// How often a screen is read that waits for a person.
const PATIENT: Duration = Duration::from_secs(2);
/// How long a prompt may take to show in the input line, and after Enter to leave it.
const ARRIVES: Duration = Duration::from_secs(30);
/// How long a screen may take to show whether it has a prompt that was being typed.
const TELLS: Duration = Duration::from_secs(10);
/// How many lines of a screen are reported when it waits for a person.
const TOLD: usize = 20;

/// Messages of small threads.
#[derive(Debug)]
pub(super) enum Message {
    /// A note of the wrapper.
    Note(SupervisorNote),
    /// The wrapper's notes have ended.
    NotesEnded,
    /// There was output in the pane.
    Painted,
    /// Its window was closed, or the pane was moved to another one.
    WindowClosed,
    /// The connection to tmux has ended, with the reason.
    Closed(String),
}

/// One attempt while it runs.
pub(super) struct Watch<'a> {
    agent: &'a WorkerAgent,
    taken: Taken,
    prompt: &'a str,
    too_long: Instant,
    loop_over: Option<Instant>,
    still: Still,
    halts: HaltWatch,
    /// Since when it waits for a person, and what for. The clocks are stopped meanwhile.
    asks: Option<(Instant, &'static str)>,
    /// `None`: it may stand still without a limit.
    vital_signs: Option<VitalSigns>,
    tools: Tools,
    program: u32,
    /// When the screen is read next.
    look_at: Option<Instant>,
    /// When it is nudged.
    nudge_at: Option<Instant>,
    /// When the wrapper must have ended everything.
    closing: Option<Instant>,
    left: Left,
    /// Whether the last note of the wrapper has come.
    is_gone: bool,
    /// Whether no note can come any more.
    notes_are_over: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        agent: &'a WorkerAgent,
        taken: Taken,
        attempt: &'a Attempt<'_>,
        began: Instant,
    ) -> Self {
        let inactivity = agent.timeouts.inactivity;
        Self {
            too_long: began + agent.timeouts.attempt,
            loop_over: attempt.deadline,
            still: Still::new(inactivity, began),
            halts: HaltWatch::new(attempt.prompt),
            asks: None,
            vital_signs: None,
            tools: Tools::new(0, 0),
            program: 0,
            look_at: Some(began),
            nudge_at: None,
            closing: None,
            left: Left::default(),
            is_gone: false,
            notes_are_over: false,
            prompt: attempt.prompt,
            agent,
            taken,
        }
    }

    /// Waits until the program takes a prompt, and returns its screen. `None`: it has ended, or is being ended.
    pub(super) fn wait_until_ready(&mut self, context: &mut Context<'_>) -> Result<Option<Vec<String>>, End> {
        let mut wait = ReadyWait::new(self.agent.trust);
        let mut until = Instant::now() + self.agent.ready_timeout;
        let mut wants: Option<String> = None;
        loop {
            let now = Instant::now();
            let Some(screen) = self.look(now) else { return Ok(None) };
            let verdict = wait.look(&self.agent.screens, &screen.lines, now);
            if let Verdict::Attention { what } = &verdict {
                if wants.as_ref() != Some(what) {
                    context.tell(Fact::NeedsAttention { screen: self.wish(what, &screen.lines).into() })?;
                    wants = Some(what.clone());
                }
            } else if verdict != Verdict::NotYet && wants.take().is_some() {
                context.tell(Fact::AttentionOver)?;
                until = now + self.agent.ready_timeout;
            }
            match verdict {
                Verdict::Ready => return Ok(Some(screen.lines)),
                Verdict::Answer { keys, what } => {
                    context.notice(&format!("answered for {}: {what}", self.agent.name))?;
                    self.lose_on_error(|window| paste::press_keys(window, &keys));
                }
                Verdict::NotYet | Verdict::Attention { .. } => {}
            }
            if wants.is_none() && now >= until {
                self.end(How::NotReady(self.agent.ready_timeout));
            }
            self.step(context, now + if wants.is_some() { PATIENT } else { LOOK })?;
            if self.closing.is_some() || self.is_over(Instant::now()) {
                return Ok(None);
            }
        }
    }

    fn wish(&self, what: &str, lines: &[String]) -> String {
        // Rules and frames are no text.
        let shown = lines.iter().filter(|line| !bare(line).is_empty()).cloned().collect::<Vec<_>>();
        let shown = shown[shown.len().saturating_sub(TOLD)..].join("\n");
        format!("{what}; answer it with 'ralph attach {}':\n{shown}", self.agent.name)
    }

    /// Searches for a prompt that was being typed when ralph was killed, until the screen has shown its place for long enough.
    /// `None`: the program has ended, or is being ended.
    pub(super) fn find_prompt(&mut self, context: &mut Context<'_>) -> Result<Option<Standing>, End> {
        let arrival = Arrival::new(self.agent.screens.program(), self.prompt, &[]);
        let (mut wait, mut seen) = (ReadyWait::new(false), None);
        let until = Instant::now() + TELLS;
        loop {
            let now = Instant::now();
            let Some(screen) = self.look(now) else { return Ok(None) };
            let is_ready = wait.look(&self.agent.screens, &screen.lines, now) == Verdict::Ready;
            let whole = self.capture(Extent::Whole, true).map(|whole| whole.lines).unwrap_or_default();
            let standing = arrival.standing(&screen.lines, &whole);
            let is_certain = match standing {
                Standing::Typed | Standing::Submitted => true,
                // The earlier output of an alternate screen is lost.
                Standing::Absent => is_ready && !screen.is_alternate,
                Standing::Unclear => false,
            };
            if is_certain && Since::update(&mut seen, standing, now) >= SETTLED {
                return Ok(Some(standing));
            }
            if now >= until {
                return Ok(Some(Standing::Unclear));
            }
            self.step(context, now + LOOK)?;
            if self.closing.is_some() {
                return Ok(None);
            }
        }
    }

    /// Ends the attempt, which fails: the prompt is not given.
    pub(super) fn give_up(&mut self) {
        self.end(How::Unclear);
    }

    /// Pastes the prompt, `before` being the program's screen, and presses Enter. `false`: it has ended, or is being ended.
    pub(super) fn give_prompt(&mut self, context: &mut Context<'_>, before: &[String]) -> Result<bool, End> {
        let mut arrival = Arrival::new(self.agent.screens.program(), self.prompt, before);
        Ok(self.type_prompt(context, &mut arrival)? && self.press_enter(context, arrival)?)
    }

    /// Presses Enter after a prompt that is in the input line. `false`: it has ended, or is being ended.
    pub(super) fn submit_prompt(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        let arrival = Arrival::new(self.agent.screens.program(), self.prompt, &[]);
        self.press_enter(context, arrival)
    }

    fn type_prompt(&mut self, context: &mut Context<'_>, arrival: &mut Arrival) -> Result<bool, End> {
        let prompt = self.prompt;
        let removed = u64::try_from(paste::typable(prompt).1).unwrap_or_default();
        if removed > 0 {
            let removed = count::of(removed, "control character");
            context.notice(&format!("left out of the prompt: {removed}"))?;
        }
        self.lose_on_error(|window| paste::paste(window, prompt).map(drop));
        if !self.wait_for(context, |screen, now| arrival.has_arrived(screen, now))? {
            // If it has ended, its note says how.
            if !self.is_over(Instant::now()) {
                self.end(How::NoArrival);
            }
            return Ok(false);
        }
        // Some programs take an immediate Enter for part of the text.
        let enter_at = Instant::now() + self.agent.screens.program().pause;
        while Instant::now() < enter_at {
            self.step(context, enter_at)?;
        }
        Ok(self.closing.is_none() && !self.is_over(Instant::now()))
    }

    fn press_enter(&mut self, context: &mut Context<'_>, mut arrival: Arrival) -> Result<bool, End> {
        let mut enter = true;
        let mut done = |watch: &mut Self, screen: &[String], now: Instant| {
            if enter {
                enter = false;
                arrival.enter(screen, now);
                watch.lose_on_error(|window| paste::press(window, Key::Enter));
                return false;
            }
            match arrival.submission(screen, now) {
                Submission::Submitted => true,
                Submission::Waiting => false,
                Submission::EnterAgain => {
                    enter = true;
                    false
                }
            }
        };
        let until = Instant::now() + ARRIVES;
        while Instant::now() < until {
            let now = Instant::now();
            let Some(screen) = self.look(now) else { return Ok(false) };
            if done(self, &screen.lines, now) {
                return Ok(true);
            }
            self.step(context, now + LOOK)?;
            if self.closing.is_some() {
                return Ok(false);
            }
        }
        context.notice(&format!("{} does not show that it has begun with its prompt", self.agent.name))?;
        Ok(true)
    }

    /// Reads the screen until it is as wanted; `false` if that never happens.
    fn wait_for(
        &mut self,
        context: &mut Context<'_>,
        mut is_so: impl FnMut(&[String], Instant) -> bool,
    ) -> Result<bool, End> {
        let until = Instant::now() + ARRIVES;
        while Instant::now() < until {
            let now = Instant::now();
            let Some(screen) = self.look(now) else { return Ok(false) };
            if is_so(&screen.lines, now) {
                return Ok(true);
            }
            self.step(context, now + LOOK)?;
            if self.closing.is_some() {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Watches until nothing of the agent is left.
    ///
    /// # Errors
    /// When a record cannot be written, or the agent must be left alone; it goes on then.
    pub(super) fn listen(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        let now = Instant::now();
        let timeouts = self.agent.timeouts;
        let wrapper = self.taken.pane.as_ref().map_or(0, Pane::wrapper_pid);
        self.tools = Tools::new(wrapper, self.program);
        if !timeouts.inactivity.is_zero() {
            let (cwd, window) = (&self.agent.launch.cwd, timeouts.inactivity);
            self.vital_signs = Some(VitalSigns::new(wrapper, self.program, cwd, window, ToolCalls::Told));
        }
        self.still = Still::new(timeouts.inactivity, now);
        self.nudge_at = self.agent.heartbeat.as_ref().map(|(every, _)| now + *every);
        while !self.is_over(Instant::now()) {
            let next = self.next_deadline();
            self.step(context, next)?;
            self.look_at_the_clock(context, Instant::now())?;
        }
        Ok(())
    }

    /// Waits once, at most until `deadline`.
    fn step(&mut self, context: &mut Context<'_>, deadline: Instant) -> Result<(), End> {
        match context.listen(&self.taken.mailbox, Some(deadline))? {
            Wake::Message(message) => self.take(message),
            Wake::Slept(gap) => self.shift(gap),
            Wake::Asked(_) | Wake::Poked | Wake::Deadline => {}
        }
        if context.detaches() && self.closing.is_none() {
            return Err(Outcome::Detached.into());
        }
        match context.urgency() {
            Urgency::None | Urgency::AfterAttempt => {}
            Urgency::Now => self.end(How::Interrupted),
            Urgency::AtOnce => {
                self.end(How::Interrupted);
                if let Some(pane) = &mut self.taken.pane {
                    pane.kill();
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Note(SupervisorNote::Started(pid)) => self.program = pid,
            Message::Note(SupervisorNote::Exited(code)) => self.left.exit_code = Some(code),
            Message::Note(SupervisorNote::Signaled(signal)) => self.left.signal = Some(signal),
            Message::Note(SupervisorNote::Refused(errno)) => {
                let why = std::io::Error::from_raw_os_error(errno);
                self.left.refused = Some(format!("its program cannot be started: {why}"));
                self.is_gone = true;
            }
            Message::Note(SupervisorNote::TurnedAway(times, host)) => {
                *self.left.turned_away.hosts.entry(host).or_default() += times;
            }
            Message::Note(SupervisorNote::Gone(_) | SupervisorNote::Spared) => self.is_gone = true,
            Message::NotesEnded => self.notes_are_over = true,
            Message::Painted => {
                self.look_at.get_or_insert_with(|| Instant::now() + SOON);
            }
            Message::WindowClosed => self.look_at = Some(Instant::now()),
            Message::Closed(why) => {
                self.taken.control = None;
                // A user may have detached all clients, or moved the pane to another session.
                if self.closing.is_none() && self.agent.attach_again(&mut self.taken) {
                    self.look_at = Some(Instant::now());
                    return;
                }
                // The wrapper notices that as well, and ends its program.
                self.left.lost.get_or_insert(format!("tmux is gone: {why}"));
                self.end(How::Lost);
            }
        }
    }

    /// The screen; `None`: it cannot be read any more.
    fn look(&mut self, now: Instant) -> Option<Screen> {
        if self.is_over(now) {
            return None;
        }
        match self.capture(Extent::Visible, false) {
            Ok(screen) => Some(screen),
            Err(error) => {
                self.left.lost.get_or_insert_with(|| error.to_string());
                self.end(How::Lost);
                None
            }
        }
    }

    fn capture(&self, extent: Extent, joined: bool) -> Result<Screen, TmuxError> {
        let window = &self.taken.window;
        match &self.taken.control {
            Some(control) => screen::look(control, window, extent, joined),
            None => screen::look(&window.server(), window, extent, joined),
        }
    }

    fn lose_on_error(&mut self, act: impl FnOnce(&crate::tmux::Window) -> Result<(), TmuxError>) {
        if let Err(error) = act(&self.taken.window) {
            self.left.lost.get_or_insert_with(|| error.to_string());
            self.end(How::Lost);
        }
    }

    /// Whether there is nothing more to wait for.
    fn is_over(&self, now: Instant) -> bool {
        self.is_gone || self.notes_are_over || self.closing.is_some_and(|until| now >= until)
    }

    fn next_deadline(&self) -> Instant {
        if let Some(until) = self.closing {
            return until;
        }
        let signs = self.vital_signs.as_ref().map(VitalSigns::next_look);
        let of_work =
            if self.asks.is_some() { [None; 3] } else { [self.nudge_at, signs, Some(self.too_long)] };
        let all = [self.look_at, self.loop_over].into_iter().chain(of_work).flatten();
        // While it waits for a person it is read repeatedly.
        all.min().unwrap_or_else(|| Instant::now() + PATIENT)
    }

    fn look_at_the_clock(&mut self, context: &mut Context<'_>, now: Instant) -> Result<(), End> {
        if self.closing.is_some() || self.is_over(now) {
            return Ok(());
        }
        if self.look_at.is_some_and(|at| now >= at) {
            self.look_at = None;
            self.look_at_the_screen(context, now)?;
        }
        if self.loop_over.is_some_and(|deadline| now >= deadline) {
            self.end(How::Interrupted);
        }
        if self.asks.is_some() || self.closing.is_some() {
            return Ok(());
        }
        if self.nudge_at.is_some_and(|at| now >= at) {
            self.nudge(now);
        }
        if now >= self.too_long {
            self.end(How::TimedOut);
        } else if let Some(signs) = &mut self.vital_signs
            && let Some(evidence) = signs.look(now, &self.tools, &Traces::default())
        {
            // A reason to stop is checked first, however short the time is.
            let Some(screen) = self.look(now) else { return Ok(()) };
            if self.halts.glimpse(&self.agent.screens, &screen.lines).is_some() {
                return self.look_at_the_screen(context, now);
            }
            if let Some(words) = self.agent.screens.offline(&screen.lines) {
                self.end(How::Reported(words));
                return Ok(());
            }
            self.left.evidence = self.still.looked_at(&[&evidence]);
            self.end(How::Still);
        }
        Ok(())
    }

    fn look_at_the_screen(&mut self, context: &mut Context<'_>, now: Instant) -> Result<(), End> {
        let Some(screen) = self.look(now) else { return Ok(()) };
        self.still.see(&screen.lines, now);
        // While it waits for its network, it only counts the seconds.
        if self.still.duration(now).is_zero()
            && self.agent.screens.offline(&screen.lines).is_none()
            && let Some(signs) = &mut self.vital_signs
        {
            signs.output();
        }
        // Text on an alternate screen does not scroll away, and is lost with it.
        if let Some(done) = &self.agent.done
            && (self.agent.continuous || screen.is_alternate)
            && done.find(&screen.lines, self.prompt).is_some()
        {
            self.left.is_done = true;
            if self.agent.continuous {
                self.end(How::Done);
            }
        }
        self.look_for_halt(context, &screen.lines, now)
    }

    /// An error that ended its turn ends the attempt; a question holds the loop until it is answered.
    fn look_for_halt(
        &mut self,
        context: &mut Context<'_>,
        lines: &[String],
        now: Instant,
    ) -> Result<(), End> {
        let halt = self.halts.look(&self.agent.screens, lines, now);
        let asks = match &halt {
            Some((Halt::Question(what), true)) => Some(*what),
            _ => None,
        };
        match (self.asks, asks) {
            (Some((_, before)), Some(what)) if before == what => {}
            (_, Some(what)) => {
                context.tell(Fact::NeedsAttention { screen: self.wish(what, lines).into() })?;
                self.asks.get_or_insert((now, what)).1 = what;
            }
            // It was just repainted.
            (Some(_), None) if halt.is_some() => {}
            (Some((since, _)), None) => {
                self.asks = None;
                self.too_long += now.saturating_duration_since(since);
                if let Some(signs) = &mut self.vital_signs {
                    signs.output();
                }
                context.tell(Fact::AttentionOver)?;
            }
            (None, None) => {}
        }
        match halt {
            Some((Halt::Error(words), true)) => self.end(How::Reported(words)),
            Some(_) => self.look_at = Some(now + if self.asks.is_some() { PATIENT } else { SOON }),
            None => {}
        }
        Ok(())
    }

    fn nudge(&mut self, now: Instant) {
        let Some((every, message)) = &self.agent.heartbeat else { return };
        self.nudge_at = Some(now + *every);
        // Enter would answer its question.
        let Some(screen) = self.look(now) else { return };
        if self.halts.glimpse(&self.agent.screens, &screen.lines).is_some() {
            return;
        }
        self.lose_on_error(|window| {
            paste::type_text(window, message)?;
            paste::press(window, Key::Enter)
        });
    }

    fn shift(&mut self, gap: Duration) {
        self.too_long += gap;
        self.still.shift(gap);
        if let Some(signs) = &mut self.vital_signs {
            signs.shift(gap);
        }
        self.closing = self.closing.map(|until| until + gap);
        self.nudge_at = self.nudge_at.map(|at| at + gap);
        self.asks = self.asks.map(|(since, what)| (since + gap, what));
    }

    /// Starts the ladder. The pane's output is kept first: an alternate screen is lost with its program.
    fn end(&mut self, how: How) {
        if self.closing.is_some() {
            return;
        }
        self.left.how = Some(how);
        // A lost screen cannot be kept.
        let _ = self.keep_transcript();
        self.closing = Some(Instant::now() + Ladder::default().limit());
        match &mut self.taken.pane {
            Some(pane) => pane.stop(),
            None => self.notes_are_over = true,
        }
    }

    fn keep_transcript(&mut self) -> Result<(), TmuxError> {
        if self.left.transcript.is_empty() {
            self.left.transcript = self.capture(Extent::Whole, true)?.lines;
        }
        Ok(())
    }

    /// Ends what is left, and returns the evidence.
    pub(super) fn finish(mut self, mark: &str) -> Left {
        if let Err(error @ (TmuxError::Gone(_) | TmuxError::Closed(_))) = self.keep_transcript()
            && self.left.has_ended_by_itself()
            && self.taken.pane.is_some()
        {
            // It has ended because of that, before we knew of it; with any exit code, that is a loss.
            self.left.how = Some(How::Lost);
            self.left.lost = Some(error.to_string());
        }
        drop(self.taken.control.take());
        // Closed, so that no thread waits for room in it.
        drop(self.taken.mailbox);
        match self.taken.pane.take() {
            Some(pane) => pane.finish(self.is_gone, mark),
            None if !self.is_gone => {
                let _ = pane::sweep(mark);
            }
            None => {}
        }
        self.left
    }
}
