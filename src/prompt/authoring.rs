//! The prompts of agents that write the spec, the plan or the tasks of a feature, and of those that review them. Pure.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::quote::{CHARS_PER_TOKEN, cut, quoted};
use super::template;
use crate::text::line::shell_words;

const SPEC: &str = include_str!("../../prompts/feature_spec.md");
const PLAN: &str = include_str!("../../prompts/feature_plan.md");
const BUILD: &str = include_str!("../../prompts/feature_build.md");
const TASK: &str = include_str!("../../prompts/task_create.md");
const REVIEW: &str = include_str!("../../prompts/review.md");
const INTERVIEW: &str = include_str!("../../prompts/interview.md");
const WRITE_NOW: &str = include_str!("../../prompts/write_now.md");

/// How much of a prompt a document may take, in characters.
const DOCUMENT: usize = 20_000 * CHARS_PER_TOKEN;
/// A longer brief would be cut, in characters.
pub const LONGEST_BRIEF: usize = DOCUMENT;
/// What is said once in a talk, likewise.
const TURN: usize = 8000;
/// What was wrong with the last attempt, likewise.
const FINDINGS: usize = 16_000;

/// What is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// What is wanted of a feature.
    Spec,
    /// How it is built.
    Plan,
    /// The tasks of a feature.
    Tasks,
    /// A task that belongs to no feature, or a few.
    Task,
}

/// Somebody's turn in a talk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// The agent has asked this.
    Agent(String),
    /// The user has answered this.
    User(String),
}

/// What an agent has to know that writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts<'a> {
    /// What it writes.
    pub piece: Piece,
    /// The name of the feature; empty where there is none.
    pub feature: &'a str,
    /// The file it writes, as it can name it; empty where it writes none.
    pub document: &'a str,
    /// How our own executable is called by the agent.
    pub ralph: &'a str,
    /// What the user wants, in their words.
    pub brief: Option<&'a str>,
    /// The spec, where it is not what is written.
    pub spec: Option<&'a str>,
    /// The plan, likewise.
    pub plan: Option<&'a str>,
    /// What was said so far.
    pub talk: &'a [Turn],
    /// The user can be asked.
    pub may_ask: bool,
    /// Why the last attempt did not count.
    pub findings: Option<&'a str>,
    /// Notes of the user.
    pub notes: &'a [String],
}

impl Piece {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Plan => "plan",
            Self::Tasks => "tasks",
            Self::Task => "task",
        }
    }
}

/// The prompt of an agent that writes.
#[must_use]
pub fn authoring_prompt(facts: &Facts<'_>) -> String {
    let template = match facts.piece {
        Piece::Spec => SPEC,
        Piece::Plan => PLAN,
        Piece::Tasks => BUILD,
        Piece::Task => TASK,
    };
    let mut prompt = filled(template, facts);
    let mut add = |section: &str| {
        if !section.trim().is_empty() {
            let _ = write!(prompt, "\n{}\n", section.trim());
        }
    };
    add(&wanted(facts));
    add(&documents(facts));
    add(if facts.may_ask { INTERVIEW } else { WRITE_NOW });
    add(&talk(facts.talk));
    if let Some(findings) = facts.findings {
        add(&format!(
            "## The last attempt did not pass\n\nFor this reason:\n\n{}\n\nFix that, all of it.",
            quoted(findings, FINDINGS)
        ));
    }
    if !facts.notes.is_empty() {
        let lines: Vec<String> =
            facts.notes.iter().map(|note| format!("- {}", note.replace('\n', "\n  "))).collect();
        add(&format!("## Notes from the user\n\n{}", lines.join("\n")));
    }
    prompt
}

/// The prompt of an agent that reviews `text`.
#[must_use]
pub fn review_prompt(facts: &Facts<'_>, text: &str) -> String {
    let mut prompt = filled(REVIEW, facts);
    let title = if facts.piece == Piece::Spec { "The spec" } else { "The plan" };
    let written = format!("## {title}\n\n{}", quoted(text, DOCUMENT));
    for section in [wanted(facts), documents(facts), talk(facts.talk), written] {
        if !section.trim().is_empty() {
            let _ = write!(prompt, "\n{}\n", section.trim());
        }
    }
    prompt
}

fn filled(text: &str, facts: &Facts<'_>) -> String {
    let word = shell_words([&facts.feature.into()]);
    template::filled(text, &|name| {
        Some(Cow::Borrowed(match name {
            "feature" => facts.feature,
            "feature_word" => &word,
            "document" => facts.document,
            "ralph" => facts.ralph,
            "kind" => facts.piece.word(),
            _ => return None,
        }))
    })
}

fn wanted(facts: &Facts<'_>) -> String {
    let brief = facts.brief.map(str::trim).filter(|brief| !brief.is_empty());
    brief.map_or_else(String::new, |brief| format!("## What the user wants\n\n{}", cut(brief, DOCUMENT)))
}

fn documents(facts: &Facts<'_>) -> String {
    let mut section = String::new();
    for (title, text) in [("The spec", facts.spec), ("The plan", facts.plan)] {
        if let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) {
            let _ = write!(section, "## {title}\n\n{}\n\n", cut(text, DOCUMENT));
        }
    }
    section
}

fn talk(turns: &[Turn]) -> String {
    if turns.is_empty() {
        return String::new();
    }
    let mut section = "## What was said so far\n\n".to_owned();
    for turn in turns {
        let (who, text) = match turn {
            Turn::Agent(text) => ("You asked", text),
            Turn::User(text) => ("The user answered", text),
        };
        let _ = write!(section, "**{who}**:\n\n{}\n\n", quoted(text, TURN));
    }
    section
}

#[cfg(test)]
mod tests;
