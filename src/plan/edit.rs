//! Edits of one section; every other byte of the plan stays unchanged.

use std::ops::Range;

use super::scan::{Block, Field, Label, Outline, PlanLine, TaskLines};
use super::{DONE, OPEN, PlanError, Task};
use crate::text::line;

/// Which ticks count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ticks {
    /// A task is ticked if it is ticked in one of the plans.
    Either,
    /// A task is ticked if it is ticked in the plan that ticks come from.
    From,
}

/// `into` with the ticks of the section `branch` of `from`, and with the tasks that only `from` has, after its own
/// last task; except tasks whose text is among the `known`, which were removed from `into`. Tasks are equal if their
/// texts are; several tasks of the same text are matched in order.
///
/// # Errors
/// If one of the plans does not have exactly one such section, or has a code fence or comment that is never closed.
pub fn merge_tasks(
    from: &str,
    into: &str,
    branch: &str,
    rule: Ticks,
    known: &[String],
) -> Result<String, PlanError> {
    let source = Outline::new(from);
    let given = find(&source, branch).map_err(|PlanError { line, problem }| PlanError {
        line,
        problem: format!("{problem} (in the plan that ticks come from)"),
    })?;
    let target = Outline::new(into);
    let own = find(&target, branch)?;
    let mut edits = Vec::new();
    let mut new: Vec<_> = given.tasks.iter().collect();
    for task in &own.tasks {
        let Some(same) = new.iter().position(|other| other.text == task.text) else { continue };
        let other = new.remove(same);
        let ticked = other.ticked || (rule == Ticks::Either && task.ticked);
        if ticked != task.ticked {
            let mark = if ticked { "x" } else { " " };
            edits.push((task.tick..task.tick + 1, mark.to_owned()));
        }
    }
    let added: Vec<&str> = new
        .into_iter()
        .filter(|task| !known.contains(&task.text))
        .flat_map(|task| &source.lines[task.line..beyond_hidden(&source.lines, task.end + 1)])
        .map(|line| line.raw.trim_end_matches(['\r', '\n']))
        .collect();
    if !added.is_empty() {
        edits.push(insertion(&target.lines, place_for_tasks(&target.lines, own), &added));
    }
    Ok(apply(into, edits))
}

/// The tasks of the section `branch`, even if others have errors.
///
/// # Errors
/// If the plan does not have exactly one such section, or has a code fence or comment that is never closed.
pub fn tasks(text: &str, branch: &str) -> Result<Vec<Task>, PlanError> {
    let outline = Outline::new(text);
    let block = find(&outline, branch)?;
    Ok(block.tasks.iter().map(TaskLines::task).collect())
}

/// Whether the plan has a section `branch`, even if it has errors.
#[must_use]
pub fn has_section(text: &str, branch: &str) -> bool {
    Outline::new(text).sections.iter().any(|block| block.name == branch)
}

/// `text` with `Status: done` in the section `branch`, and `PR: URL` if there is one, after its goal and base;
/// existing lines of these labels are replaced.
///
/// # Errors
/// If the plan does not have exactly one such section, or has a code fence or comment that is never closed.
pub fn mark_done(text: &str, branch: &str, pull_request: Option<&str>) -> Result<String, PlanError> {
    let outline = Outline::new(text);
    let block = find(&outline, branch)?;
    let mut edits = Vec::new();
    let mut missing = Vec::new();
    let mut set = |label: Label, value: &str| {
        let line = format!("{}: {value}", label.word());
        let mut fields = block.fields.iter().filter(|field| field.label == label).peekable();
        if fields.peek().is_none() {
            missing.push(line.clone());
        }
        let says_so = |field: &Field| match label {
            Label::Status => field.value.eq_ignore_ascii_case(value),
            _ => field.value == value,
        };
        let others = fields.filter(|field| !says_so(field));
        edits.extend(others.map(|field| (field.bytes.clone(), line.clone())));
    };
    set(Label::Status, DONE);
    let address = pull_request.and_then(line::first);
    if let Some(address) = address {
        set(Label::PullRequest, address);
    }
    if !missing.is_empty() {
        let is_head = |field: &&Field| matches!(field.label, Label::Goal | Label::Base);
        let last = block.fields.iter().filter(is_head).max_by_key(|field| field.line);
        let prefix = last.map_or("", |field| field.prefix.as_str());
        let at = beyond_hidden(&outline.lines, last.map_or(block.heading, |field| field.end) + 1);
        let new: Vec<String> = missing.into_iter().map(|line| format!("{prefix}{line}")).collect();
        edits.push(insertion(&outline.lines, at, &new.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    Ok(apply(text, edits))
}

/// A plan without changes that agents must not make.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// The text of the plan.
    pub text: String,
    /// The branches whose sections claimed completed work.
    pub claimed: Vec<String>,
    /// The branches whose sections had a line twice that is allowed once.
    pub doubled: Vec<String>,
}

/// `text` without the completions that `before` does not have, in sections whose name `is_meant`: `Status: done`
/// becomes planned, and ticks are removed. In a section that was done `before`, ticks are kept. In all sections,
/// lines that repeat a label more often than `before` are removed.
#[must_use]
pub fn without_claims(text: &str, before: &str, is_meant: &dyn Fn(&str) -> bool) -> Cleared {
    let (outline, before) = (Outline::new(text), Outline::new(before));
    let open = format!("{}: {}", Label::Status.word(), OPEN[0]);
    let (mut edits, mut cleared) = (Vec::new(), Cleared::default());
    for block in &outline.sections {
        let old = before.sections.iter().find(|old| old.name == block.name);
        let surplus = surplus(block, old);
        if !surplus.is_empty() {
            cleared.doubled.push(block.name.clone());
        }
        edits.extend(surplus.iter().map(|field| (lines_of(field, text), String::new())));
        if !is_meant(&block.name) || old.is_some_and(|old| old.fields.iter().any(says_done)) {
            continue;
        }
        let mut ticked: Vec<&str> = old.map(ticked).into_iter().flatten().collect();
        let claims = edits.len();
        let kept = block.fields.iter().filter(|field| !surplus.iter().any(|other| other.line == field.line));
        edits.extend(kept.filter(|field| says_done(field)).map(|field| (field.bytes.clone(), open.clone())));
        for task in block.tasks.iter().filter(|task| task.ticked) {
            match ticked.iter().position(|known| *known == task.text) {
                Some(known) => drop(ticked.remove(known)),
                None => edits.push((task.tick..task.tick + 1, " ".to_owned())),
            }
        }
        if edits.len() > claims {
            cleared.claimed.push(block.name.clone());
        }
    }
    Cleared { text: apply(text, edits), ..cleared }
}

/// The surplus fields of a section: labels that occur more often than allowed and than in the `old` section. Fields
/// with the old values stay.
fn surplus<'b>(block: &'b Block, old: Option<&Block>) -> Vec<&'b Field> {
    let mut surplus = Vec::new();
    for label in Label::ALL {
        let fields = |block: &'b Block| block.fields.iter().filter(move |field| field.label == label);
        let old: Vec<&Field> =
            old.iter().flat_map(|old| &old.fields).filter(|field| field.label == label).collect();
        let is_old = |field: &&Field| old.iter().any(|old| old.value == field.value);
        let (mut kept, new): (Vec<&Field>, Vec<&Field>) = fields(block).partition(is_old);
        kept.extend(new);
        surplus.extend(kept.into_iter().skip(old.len().max(1)));
    }
    surplus
}

/// The byte range of a field's lines.
fn lines_of(field: &Field, text: &str) -> Range<usize> {
    let start = text[..field.bytes.start].rfind('\n').map_or(0, |before| before + 1);
    let end = text[field.bytes.end..].find('\n').map_or(text.len(), |end| field.bytes.end + end + 1);
    start..end
}

/// The texts of the ticked tasks of a section.
fn ticked(block: &Block) -> impl Iterator<Item = &str> {
    block.tasks.iter().filter(|task| task.ticked).map(|task| task.text.as_str())
}

fn says_done(field: &Field) -> bool {
    field.label == Label::Status && field.value.eq_ignore_ascii_case(DONE)
}

/// The only section of this name.
fn find<'o>(outline: &'o Outline, branch: &str) -> Result<&'o Block, PlanError> {
    if let Some(fault) = &outline.unclosed {
        return Err(fault.clone());
    }
    let mut found = outline.sections.iter().filter(|block| block.name == branch);
    let Some(first) = found.next() else {
        let last = outline.lines.len().saturating_sub(1);
        let problem = format!("the plan ends without a section '## Branch: {branch}': put it back");
        return Err(PlanError::at(last, problem));
    };
    match found.next() {
        Some(second) => {
            let problem = format!("branch '{branch}' has a second section: rename one or join them");
            Err(PlanError::at(second.heading, problem))
        }
        None => Ok(first),
    }
}

/// The line before which new tasks are inserted. Indented lines that belong to no task stay above them: after a new
/// task they would become part of it.
fn place_for_tasks(lines: &[PlanLine], block: &Block) -> usize {
    let fields = block.fields.iter().map(|field| field.end);
    let last = block.tasks.last().map(|task| task.end).or_else(|| fields.max()).unwrap_or(block.heading);
    let mut place = last + 1;
    for (index, line) in lines.iter().enumerate().skip(place) {
        let is_blank = line.raw.trim().is_empty();
        if !line.inside && !is_blank && (line.indent == 0 || line.is_heading()) {
            break;
        }
        if line.inside || !is_blank {
            place = index + 1;
        }
    }
    place
}

/// `index`, or the first line after it that is not inside a code fence or comment.
fn beyond_hidden(lines: &[PlanLine], index: usize) -> usize {
    (index..lines.len()).find(|index| !lines[*index].inside).unwrap_or(lines.len())
}

type Edit = (Range<usize>, String);

/// Inserts lines before the line `index`, which may be the end; with the line ends of the line above.
fn insertion(lines: &[PlanLine], index: usize, new: &[&str]) -> Edit {
    let above = &lines[..index];
    let end = if above.iter().rev().any(|line| line.raw.ends_with("\r\n")) { "\r\n" } else { "\n" };
    let at = above.last().map_or(0, |line| line.start + line.raw.len());
    let text = new.join(end);
    let is_whole = above.last().is_none_or(|line| line.raw.ends_with('\n'));
    (at..at, if is_whole { text + end } else { format!("{end}{text}") })
}

/// `text` with all `edits`, which do not overlap.
fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    // An insertion comes before a replacement at the same position.
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut text = text.to_owned();
    for (range, new) in edits.into_iter().rev() {
        text.replace_range(range, &new);
    }
    text
}
