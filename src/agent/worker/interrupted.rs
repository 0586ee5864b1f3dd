//! The tools that an agent leaves running when a person interrupts it: some keep the one that they were waiting for.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::held::Held;
use crate::platform::handle::ProcessHandle;
use crate::platform::identity::ProcessIdentity;
use crate::platform::tree;
use crate::process::ladder::Ladder;
use crate::process::pane::{Pane, PaneError};

/// How long the agent has to end its tools by itself.
const BY_ITSELF: Duration = Duration::from_secs(3);

/// The processes that an agent has started since it got its prompt, in process groups of their own, as agents start their tools.
/// Without the agent's own group: the terminal has sent Ctrl+C to it as well, and servers that the agent keeps (MCP, LSP) are
/// in it.
#[derive(Debug)]
pub struct ToolsAtWork(Vec<ProcessHandle>);

impl ToolsAtWork {
    /// The processes of the worker with this folder and pane. What was started before the prompt is the agent's own, and so is
    /// what was started since in the group of such a process.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn of(folder: &Path, held: &Held) -> Result<Self, PaneError> {
        let Some((pane, _)) = Pane::connect(folder)? else { return Ok(Self(Vec::new())) };
        let given_at = held.given_at.unwrap_or(u64::MAX);
        let (tools, own): (Vec<_>, Vec<_>) =
            tree::descendants(pane.wrapper_pid()).into_iter().partition(|stat| stat.start_ticks > given_at);
        let is_own = |group| own.iter().any(|stat| stat.group == group);
        let tools = tools.into_iter().filter(|stat| !is_own(stat.group));
        // A process that cannot be opened has ended.
        let handle = |pid| ProcessHandle::of(&ProcessIdentity::of(pid).ok()?).ok()?;
        Ok(Self(tools.filter_map(|stat| handle(stat.pid)).collect()))
    }

    /// Ends the processes that the agent does not end by itself, and returns their number.
    #[must_use]
    pub fn end(mut self) -> usize {
        self.await_end(BY_ITSELF);
        let left = self.0.len();
        for signal in [Signal::TERM, Signal::KILL] {
            self.0.iter().for_each(|tool| tool.send(signal));
            self.await_end(Ladder::default().terminate);
        }
        left
    }

    fn await_end(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        // A process that cannot be inspected is left alone.
        self.0.retain(|tool| !tool.ends_by(deadline).unwrap_or(true));
    }
}
