//! Who reads an agent's stream: the preset's own filters, or the user's in their place.

use std::os::unix::net::UnixStream;

use super::display::DisplayRoute;
use crate::presets::{Compiled, Preset, ToolCalls};
use crate::reply::child;
use crate::reply::decode::{Filters, Slot};
use crate::reply::filter::CompileError;
use crate::reply::verdict::{Asides, Readers};

/// The filters of an agent, resolved. The display filter is not among them where the user has one, see
/// [`super::display`].
#[derive(Debug, Clone)]
pub struct ReaderPlan {
    /// The preset's filters.
    pub preset: Compiled,
    /// The preset has filters at all.
    pub preset_reads: bool,
    /// The user's response filter, in jq.
    pub response: Option<String>,
    /// The user's result filter, in jq.
    pub result: Option<String>,
    /// The preset's display filter is in force.
    pub preset_displays: bool,
    /// How the stream tells of tool calls.
    pub tool_calls: ToolCalls,
    /// The agent's runs end with an event of their own.
    pub has_final: bool,
    /// What its exit codes and its stderr mean.
    pub asides: Asides,
}

/// All that reads an agent, resolved.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Who reads its stream.
    pub readers: ReaderPlan,
    /// Who renders it for the live display.
    pub display: DisplayRoute,
    /// Shell command that prints its account's balance, and the pipeline that finds the number of dollars in that.
    pub balance: Option<(String, String)>,
    /// What it costs can be known.
    pub reports_cost: bool,
}

impl Reading {
    /// By the preset alone.
    pub fn of(preset: &Preset) -> Result<Self, CompileError> {
        let readers = ReaderPlan::of(preset)?;
        let asks = !preset.usage_cmd.is_empty();
        Ok(Self {
            display: if readers.preset_displays { DisplayRoute::Preset } else { DisplayRoute::Raw },
            readers,
            balance: asks.then(|| (preset.usage_cmd.to_owned(), preset.usage_parser.to_owned())),
            reports_cost: preset.reports_cost,
        })
    }
}

impl ReaderPlan {
    /// The preset's own filters and nothing else.
    pub fn of(preset: &Preset) -> Result<Self, CompileError> {
        Ok(Self {
            preset: preset.compile()?,
            preset_reads: preset.is_read(),
            response: None,
            result: None,
            preset_displays: preset.is_displayed(),
            tool_calls: preset.tool_calls,
            has_final: preset.has_final,
            asides: preset.asides,
        })
    }

    /// The filters for one attempt; the user's run in children of their own, and are waited for until the other end of
    /// `wanted` is closed.
    pub(super) fn filters(&self, wanted: &UnixStream) -> Filters {
        let mut filters = self.preset.filters();
        if let Some(program) = &self.response {
            filters.response = Slot::Elsewhere(child::spawn(program, wanted));
        }
        if let Some(program) = &self.result {
            filters.result = Slot::Elsewhere(child::spawn(program, wanted));
        }
        if !self.preset_displays {
            filters.display = Slot::Off;
        }
        filters
    }

    /// Whether a filter picks the assistant's own text from the output.
    pub(super) fn reads_text(&self) -> bool {
        self.response.is_some() || self.preset_reads
    }

    /// Whose filters decide about the outcome of an attempt.
    pub(super) fn in_force(&self) -> Readers {
        if self.response.is_some() || self.result.is_some() {
            Readers::User
        } else if self.preset_reads {
            Readers::Preset
        } else {
            Readers::Nobody
        }
    }
}
