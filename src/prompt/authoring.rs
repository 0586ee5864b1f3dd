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

/// The most characters of a document in a prompt.
const DOCUMENT: usize = 20_000 * CHARS_PER_TOKEN;
/// The most characters of a brief.
pub const LONGEST_BRIEF: usize = DOCUMENT;
/// The most characters of one turn of a talk.
const TURN: usize = 8000;
/// The most characters of the findings about the last attempt.
const FINDINGS: usize = 16_000;

/// A piece to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// The requirements of a feature.
    Spec,
    /// How to build it.
    Plan,
    /// The tasks of a feature.
    Tasks,
    /// One or a few tasks without a feature.
    Task,
}

/// A turn of a talk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// A question of the agent.
    Agent(String),
    /// An answer of the user.
    User(String),
}

/// The facts for a writing agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The piece to write.
    pub piece: Piece,
    /// The name of the feature; empty without one.
    pub feature: &'a str,
    /// The file to write, as the agent can name it; empty for tasks.
    pub document: &'a str,
    /// The agent's command line for our own executable.
    pub ralph: &'a str,
    /// The user's request.
    pub brief: Option<&'a str>,
    /// The spec, unless it is the piece.
    pub spec: Option<&'a str>,
    /// The plan, unless it is the piece.
    pub plan: Option<&'a str>,
    /// The talk so far.
    pub talk: &'a [Turn],
    /// Whether the agent may ask the user.
    pub may_ask: bool,
    /// Why the last attempt was rejected.
    pub findings: Option<&'a str>,
    /// Notes of the user.
    pub notes: &'a [String],
}

impl Piece {
    /// The piece as one word.
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

/// The prompt of a writing agent.
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
