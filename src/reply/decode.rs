//! The streaming decoder: bytes of an agent's stdout in, [`Item`]s out.
//!
//! Each line is parsed up to twice. First a cheap parse checks that it is a JSON object and reads its `type`; only
//! lines of a type that the filters use are then parsed for jq. Tool output, the bulk of most streams, never gets
//! that far.

use std::sync::Arc;

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

use super::filter::{Input, JqProgram, Output, RunError};
use super::line;
use super::lines::{Lines, StreamLine};
use super::show::Show;
use super::usage::UsageNote;

/// One item found in the stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A piece of the assistant's own text. Pieces are joined without a separator.
    Text(String),
    /// Something for the live display.
    Show(Show),
    /// A report of the agent about its run.
    Note(Box<UsageNote>),
}

/// Counters for a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Lines with a JSON object.
    pub objects: u64,
    /// Other lines, which are skipped.
    pub malformed: u64,
    /// Lines longer than [`MAX_LINE`](super::lines::MAX_LINE); they are skipped.
    pub oversized: u64,
}

/// A filter that runs elsewhere: called with one line, without its newline, it returns the outputs as `jq -r` prints
/// them. After an error, which means that it has died, it is not called again.
pub type Elsewhere = Box<dyn FnMut(&[u8]) -> Result<Vec<String>, String> + Send>;

/// A faster equivalent of all of a preset's programs for a line; `None` to run the programs.
pub type Shortcut = fn(&[u8]) -> Option<Vec<Item>>;

/// Where a filter runs.
pub enum Slot {
    /// There is no such filter.
    Off,
    /// Here: a preset's program; it gets the lines whose type is in [`Filters::types`].
    Here(Arc<JqProgram>),
    /// Elsewhere: a user's filter; it gets every JSON object.
    Elsewhere(Elsewhere),
}

/// The filters of one attempt.
pub struct Filters {
    /// Finds the assistant's own text.
    pub response: Slot,
    /// Renders lines for the live display.
    pub display: Slot,
    /// Finds [`UsageNote`]s.
    pub result: Slot,
    /// The values of `type` that the programs [`Slot::Here`] use.
    pub types: &'static [&'static str],
    /// A faster reader for lines of this `type`, used if all filters are [`Slot::Here`] or the display is off.
    pub shortcut: Option<(&'static str, Shortcut)>,
    /// Finds the ids of finished tool calls, if `result` does not.
    pub tool_results: Option<ToolResults>,
}

/// Lines with tool output, and a pattern for the id of the finished call. The pattern is matched on the raw line, so
/// it has to contain unescaped quotes, which a JSON string never contains.
#[derive(Clone, Debug)]
pub struct ToolResults {
    /// The lines' `type`.
    pub kind: &'static str,
    /// The id is the first group.
    pub id: Regex,
}

/// Decodes one attempt's stdout.
pub struct Decoder {
    filters: Filters,
    lines: Lines,
    counters: Counters,
    dead: Option<String>,
}

impl Filters {
    /// No filters: lines are only counted.
    #[must_use]
    pub fn none() -> Self {
        Self {
            response: Slot::Off,
            display: Slot::Off,
            result: Slot::Off,
            types: &[],
            shortcut: None,
            tool_results: None,
        }
    }

    /// The result of the shortcut for a line, if it applies.
    fn short_cut(&self, kind: &str, line: &[u8]) -> Option<Vec<Item>> {
        let (of, shortcut) = self.shortcut?;
        let ours = matches!(
            (&self.response, &self.display, &self.result),
            (Slot::Here(_), Slot::Here(_) | Slot::Off, Slot::Here(_))
        );
        if of == kind && ours && !line::too_deep(line) { shortcut(line) } else { None }
    }
}

impl Decoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub fn new(filters: Filters) -> Self {
        Self { filters, lines: Lines::default(), counters: Counters::default(), dead: None }
    }

    /// Decodes the next bytes of the stream, cut anywhere.
    pub fn push(&mut self, bytes: &[u8], out: &mut dyn FnMut(Item)) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.take(bytes, |line| self.take(line, out));
        self.lines = lines;
    }

    /// Ends the stream: a last line without a newline counts if it is complete.
    pub fn finish(&mut self, out: &mut dyn FnMut(Item)) {
        std::mem::take(&mut self.lines).finish(|line| self.take(line, out));
    }

    /// The counts so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Name and error of a response or result filter that died: the attempt has failed.
    #[must_use]
    pub fn dead_filter(&self) -> Option<&str> {
        self.dead.as_deref()
    }

    fn take(&mut self, line: StreamLine<'_>, out: &mut dyn FnMut(Item)) {
        match line {
            StreamLine::Whole(line) => self.line(line, out),
            StreamLine::Head(_) => self.counters.oversized += 1,
        }
    }

    fn line(&mut self, line: &[u8], out: &mut dyn FnMut(Item)) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let Some(kind) = line::head(line) else {
            self.counters.malformed += 1;
            return;
        };
        if let Some(items) = self.filters.short_cut(&kind, line) {
            self.counters.objects += 1;
            let shown = matches!(self.filters.display, Slot::Here(_));
            items.into_iter().filter(|item| shown || !matches!(item, Item::Show(_))).for_each(out);
            return;
        }
        let event = if self.filters.types.contains(&&*kind) {
            let Some(event) = Input::parse(line) else {
                self.counters.malformed += 1;
                return;
            };
            Some(event)
        } else {
            None
        };
        self.counters.objects += 1;
        let notes = self.notes(line, &kind, event.as_ref());
        // The message of a text has to be known before the text.
        let (before, after): (Vec<_>, Vec<_>) = notes.into_iter().partition(|note| note.message.is_some());
        before.into_iter().map(|note| Item::Note(Box::new(note))).for_each(&mut *out);
        self.respond(line, event.as_ref(), out);
        self.display(line, event.as_ref(), out);
        after.into_iter().map(|note| Item::Note(Box::new(note))).for_each(out);
    }

    fn respond(&mut self, line: &[u8], event: Option<&Input>, out: &mut dyn FnMut(Item)) {
        let theirs = matches!(self.filters.response, Slot::Elsewhere(_));
        let result = self.filters.response.run(line, event, &mut |output| match output {
            // jq prints `null` for a missing field.
            Output::Text(text) if theirs && text == "null" => {}
            Output::Text(text) => out(Item::Text(text)),
            // A preset's filter prints texts; anything else is a changed format of the agent.
            Output::Json(_) => {}
        });
        if let Err(reason) = result {
            self.dead.get_or_insert(format!("the response filter died: {reason}"));
        }
    }

    fn display(&mut self, line: &[u8], event: Option<&Input>, out: &mut dyn FnMut(Item)) {
        let result = self.filters.display.run(line, event, &mut |output| {
            let show = match output {
                Output::Text(text) => Some(Show::Text(text)),
                Output::Json(json) => Show::from_json(&json),
            };
            if let Some(show) = show {
                out(Item::Show(show));
            }
        });
        if let Err(reason) = result {
            out(Item::Show(Show::Notice(format!("the display filter died and is off: {reason}"))));
        }
    }

    fn notes(&mut self, line: &[u8], kind: &str, event: Option<&Input>) -> Vec<UsageNote> {
        let mut notes = Vec::new();
        let result = self.filters.result.run(line, event, &mut |output| {
            let (Output::Text(json) | Output::Json(json)) = output;
            notes.extend(UsageNote::from_json(&json).map(UsageNote::with_named_reset));
        });
        if let Err(reason) = result {
            self.dead.get_or_insert(format!("the result filter died: {reason}"));
        }
        if let Some(tools) = self.filters.tool_results.as_ref().filter(|tools| tools.kind == kind) {
            for id in tools.id.captures_iter(line).filter_map(|captures| captures.get(1)) {
                let tool_finished = Some(String::from_utf8_lossy(id.as_bytes()).into_owned());
                notes.push(UsageNote { tool_finished, ..UsageNote::default() });
            }
        }
        notes
    }
}

impl Slot {
    /// Runs the filter on one line; `event` is the parsed line, if programs use lines of its type. After an error,
    /// which means that the filter has died, it stays off.
    fn run(&mut self, line: &[u8], event: Option<&Input>, out: &mut dyn FnMut(Output)) -> Result<(), String> {
        let result = match self {
            Self::Off => Ok(()),
            Self::Here(program) => match event.map_or(Ok(()), |event| program.run(event, out)) {
                Err(RunError::Halted(code)) => Err(RunError::Halted(code).to_string()),
                // As in jq, an error concerns only this line.
                Ok(()) | Err(RunError::Failed(_)) => Ok(()),
            },
            Self::Elsewhere(call) => {
                call(line).map(|outputs| outputs.into_iter().for_each(|text| out(Output::Text(text))))
            }
        };
        if result.is_err() {
            *self = Self::Off;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elsewhere(outputs: impl Fn(&[u8]) -> Result<Vec<String>, String> + Send + 'static) -> Slot {
        Slot::Elsewhere(Box::new(outputs))
    }

    fn decode(filters: Filters, stream: &str) -> (Vec<Item>, Decoder) {
        let (mut decoder, mut items) = (Decoder::new(filters), Vec::new());
        decoder.push(stream.as_bytes(), &mut |item| items.push(item));
        decoder.finish(&mut |item| items.push(item));
        (items, decoder)
    }

    #[test]
    fn a_filter_elsewhere_sees_every_object_and_nothing_else() {
        let echo = |line: &[u8]| Ok(vec![String::from_utf8_lossy(line).into_owned()]);
        let (items, decoder) = decode(
            Filters { response: elsewhere(echo), ..Filters::none() },
            "{\"a\":1}\nno\n{\"type\":\"x\"}",
        );
        let text = |text: &str| Item::Text(text.into());
        assert_eq!(items, [text("{\"a\":1}"), text("{\"type\":\"x\"}")]);
        assert_eq!(decoder.counters(), Counters { objects: 2, malformed: 1, oversized: 0 });
    }

    #[test]
    fn text_from_elsewhere_is_shown_as_it_is() {
        let json = |_: &[u8]| Ok(vec!["{\"error\":\"x\"}".to_owned(), String::new()]);
        let (items, _) = decode(Filters { display: elsewhere(json), ..Filters::none() }, "{}");
        let show = |text: &str| Item::Show(Show::Text(text.into()));
        assert_eq!(items, [show("{\"error\":\"x\"}"), show("")]);
    }

    #[test]
    fn notes_from_elsewhere_are_read_as_json() {
        let note = |_: &[u8]| Ok(vec![r#"{"final":true}"#.to_owned(), "null".to_owned(), "noise".to_owned()]);
        let (items, _) = decode(Filters { result: elsewhere(note), ..Filters::none() }, "{}");
        assert_eq!(items, [Item::Note(Box::new(UsageNote { is_final: true, ..UsageNote::default() }))]);
    }

    #[test]
    fn a_dead_display_is_dropped_with_one_notice() {
        let dead = |_: &[u8]| Err("it took too long".to_owned());
        let (items, decoder) = decode(Filters { display: elsewhere(dead), ..Filters::none() }, "{}\n{}\n{}");
        let notice = "the display filter died and is off: it took too long";
        assert_eq!(items, [Item::Show(Show::Notice(notice.into()))]);
        assert_eq!(decoder.dead_filter(), None);
    }

    #[test]
    fn a_dead_response_or_result_filter_is_named() {
        let dead = || elsewhere(|_: &[u8]| Err("it exited".to_owned()));
        let (_, decoder) = decode(Filters { result: dead(), ..Filters::none() }, "{}\n{}");
        assert_eq!(decoder.dead_filter(), Some("the result filter died: it exited"));
        let halt = Slot::Here(Arc::new(JqProgram::compile("halt").unwrap()));
        let (_, decoder) =
            decode(Filters { response: halt, types: &["x"], ..Filters::none() }, r#"{"type":"x"}"#);
        assert_eq!(decoder.dead_filter(), Some("the response filter died: the filter called halt(0)"));
    }
}
