//! The filters of an agent's stream: those of the preset, or the user's in their place.

use std::os::unix::net::UnixStream;

use super::display::DisplayRoute;
use crate::presets::{Compiled, Preset, ToolCalls};
use crate::reply::child;
use crate::reply::decode::{Filters, Slot};
use crate::reply::filter::CompileError;
use crate::reply::verdict::{Asides, Readers};

/// The filters of an agent, resolved. Without the user's display filter, see [`super::display`].
#[derive(Debug, Clone)]
pub struct ReaderPlan {
    /// The preset's filters.
    pub preset: Compiled,
    /// Whether the preset has filters.
    pub preset_reads: bool,
    /// The user's response filter, in jq.
    pub response: Option<String>,
    /// The user's result filter, in jq.
    pub result: Option<String>,
    /// Whether the preset's display filter is used.
    pub preset_displays: bool,
    /// How the stream reports tool calls.
    pub tool_calls: ToolCalls,
    /// Whether the agent's runs end with a final event.
    pub has_final: bool,
    /// The meaning of its exit codes and its stderr.
    pub asides: Asides,
}

/// All filters of an agent, resolved.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The filters of its stream.
    pub readers: ReaderPlan,
    /// The renderer for the live display.
    pub display: DisplayRoute,
    /// The shell command that prints its account's balance, and the pipeline that finds the number of dollars in it.
    pub balance: Option<(String, String)>,
    /// Whether its cost can be known.
    pub reports_cost: bool,
    /// Whether settings may name other filters.
    pub heeds_settings: bool,
}

impl Reading {
    /// The filters of the preset alone.
    pub fn of(preset: &Preset) -> Result<Self, CompileError> {
        let readers = ReaderPlan::of(preset)?;
        let asks = !preset.usage_cmd.is_empty();
        Ok(Self {
            display: if readers.preset_displays { DisplayRoute::Preset } else { DisplayRoute::Raw },
            readers,
            balance: asks.then(|| (preset.usage_cmd.to_owned(), preset.usage_parser.to_owned())),
            reports_cost: preset.reports_cost,
            heeds_settings: false,
        })
    }
}

impl ReaderPlan {
    /// The filters of the preset, and no others.
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

    /// The filters for one attempt; the user's run in child processes, which are awaited until the other end of `wanted` is
    /// closed.
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

    /// Whether a filter selects the assistant's own text from the output.
    pub(super) fn reads_text(&self) -> bool {
        self.response.is_some() || self.preset_reads
    }

    /// Where the filters that decide about an attempt come from.
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
