//! Signs of life of an agent that says nothing: a ten-minute test run is no hang.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::ended::Traces;
use super::tools::Tools;
use crate::git;
use crate::presets::ToolCalls;
use crate::process::tree;

/// Tools that use more than this share of a core are at work.
const BUSY: f64 = 0.05;

/// What is known about the silence of one agent.
#[derive(Debug)]
pub(super) struct VitalSigns {
    supervisor: u32,
    agent: u32,
    cwd: PathBuf,
    window: Duration,
    tool_calls: ToolCalls,
    /// The latest sign of life, by both clocks: deadlines follow the one, file times the other.
    latest: Instant,
    latest_time: SystemTime,
    /// When it wrote something for the last time.
    spoke: Instant,
    /// CPU seconds of the tools at this moment, no earlier than the latest sign of life by more than a look.
    sample: Option<(Instant, f64)>,
}

impl VitalSigns {
    pub(super) fn new(
        supervisor: u32,
        agent: u32,
        cwd: &Path,
        window: Duration,
        tool_calls: ToolCalls,
    ) -> Self {
        let (latest, latest_time) = (Instant::now(), SystemTime::now());
        let (cwd, spoke, sample) = (cwd.to_owned(), latest, None);
        Self { supervisor, agent, cwd, window, tool_calls, latest, latest_time, spoke, sample }
    }

    /// The agent wrote something.
    pub(super) fn output(&mut self) {
        self.spoke = Instant::now();
        self.alive(self.spoke);
    }

    fn alive(&mut self, now: Instant) {
        self.latest = now;
        self.latest_time = SystemTime::now();
        self.sample = None;
    }

    /// When to look next: twice in a silent window, so that there are two samples of the CPU time to compare.
    pub(super) fn next_look(&self) -> Instant {
        let half = if self.sample.is_none() { self.window / 2 } else { self.window };
        self.latest + half
    }

    pub(super) fn shift(&mut self, gap: Duration) {
        self.latest += gap;
        self.latest_time += gap;
        self.spoke += gap;
        self.sample = None;
    }

    /// Looks, if it is time to. An answer means that there was no sign of life for a whole window, and says what
    /// was looked at.
    pub(super) fn look(&mut self, now: Instant, tools: &Tools, traces: &Traces) -> Option<String> {
        if now < self.next_look() {
            return None;
        }
        let cpu = tree::tools_cpu_seconds(self.supervisor, self.agent);
        let Some((since, before)) = self.sample else {
            self.sample = Some((now, cpu));
            return None;
        };
        let used = (cpu - before).max(0.0);
        let busy = used > BUSY * now.duration_since(since).as_secs_f64();
        let tool_in_flight = match self.tool_calls {
            ToolCalls::Told => traces.has_tool_in_flight(),
            // A server would be one for ever.
            ToolCalls::ToldWhenOver => tools.any_but_servers(),
        };
        // Nor is anything else waited for that long by an agent that says nothing.
        let is_open = traces.has_open_end() && now < self.spoke + traces.timeouts.background;
        // The look at the files is the dearest one and therefore the last.
        if tool_in_flight
            || is_open && tools.any_but_servers()
            || busy
            || git::changed_since(&self.cwd, self.latest_time).is_some()
        {
            self.alive(now);
            return None;
        }
        let tool = match self.tool_calls {
            ToolCalls::Told if traces.has_open_end() => "no tool call in flight but what is not waited for",
            ToolCalls::Told => "no tool call in flight",
            ToolCalls::ToldWhenOver => "no process of a tool",
        };
        Some(format!("no output, {tool}, {used:.1} s of CPU used by its tools, no file written"))
    }
}
