//! Signs of life of a silent agent: a ten-minute test run is no hang.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::ended::Traces;
use super::tools::Tools;
use crate::git;
use crate::platform::tree;
use crate::presets::ToolCalls;

/// Tools that use more than this share of a core are working.
const BUSY: f64 = 0.05;

/// The silence of one agent.
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
    /// When it last wrote something.
    spoke: Instant,
    /// The CPU seconds of the tools at this time, which is at most one check before the latest sign of life.
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

    /// When to check next: twice in a silent window, so that two samples of the CPU time can be compared.
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

    /// Checks if it is time to. `Some` means that there was no sign of life for a whole window, and says what was
    /// checked.
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
            // A server would be a sign of life for ever.
            ToolCalls::ToldWhenOver => tools.any_but_servers(),
        };
        // A silent agent does not wait that long for anything else either.
        let is_open = traces.has_open_end() && now < self.spoke + traces.timeouts.background;
        // Checking the files is the most expensive check, and therefore the last.
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
