//! The journal: one entry for each attempt at a task.

use std::fmt::Write as _;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::prompt::quote::{CHARS_PER_TOKEN, NOT_INSTRUCTIONS, quoted, quoted_line};

/// How many entries of its own run a prompt shows, and how many of earlier runs.
pub const SHOWN: usize = 5;
/// How many files of an attempt are kept.
pub const MOST_FILES: usize = 50;
/// The most characters of the journal in a prompt.
const ROOM: usize = 3000 * CHARS_PER_TOKEN;
/// The most characters of one note.
const NOTE: usize = 1500;
const LINE: usize = 200;

/// The outcome of a task in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Became {
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// It will be retried.
    Retried,
    /// It stayed as it was: no report, or no end.
    Blocked,
    /// The loop was asked to stop.
    Interrupted,
}

impl Became {
    /// All values.
    pub const ALL: [Self; 5] = [Self::Done, Self::Failed, Self::Retried, Self::Blocked, Self::Interrupted];

    /// The outcome as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Retried => "retried",
            Self::Blocked => "blocked",
            Self::Interrupted => "interrupted",
        }
    }
}

/// An attempt at a task. Its JSON is stable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The id of the run.
    pub run_id: String,
    /// The number of the iteration, from 1.
    pub iteration: u64,
    /// The task's id.
    pub task_id: String,
    /// Its title at that time.
    pub title: String,
    /// The name of its feature.
    pub feature: Option<String>,
    /// The outcome of the task in it.
    pub outcome: Became,
    /// The model, if it is known.
    pub model: Option<String>,
    /// How long the attempt took, in seconds.
    pub duration_secs: f64,
    /// Its cost in US dollars; `None` if the agent does not report it.
    pub cost_usd: Option<f64>,
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The files that it changed, from git, at most [`MOST_FILES`].
    pub files_modified: Vec<String>,
    /// The agent's own notes.
    pub notes: String,
    /// The reason of the outcome, from ralph or the verifying agent; may be empty.
    pub reason: String,
    /// When it ended.
    pub created_at: DateTime<Utc>,
}

/// Entries as a section of a prompt, the most important first; what exceeds the limit is left out. Empty without
/// entries.
#[must_use]
pub fn rendered(entries: &[JournalEntry]) -> String {
    let mut text = format!("## Run Journal\n\n{NOT_INSTRUCTIONS}\n");
    let mut room = ROOM;
    let mut any = false;
    for entry in entries {
        let block = block(entry);
        let length = block.chars().count();
        if length > room {
            break;
        }
        room -= length;
        text.push_str(&block);
        any = true;
    }
    if any { text } else { String::new() }
}

fn block(entry: &JournalEntry) -> String {
    let mut text = format!("\n### Iteration {} [{}]\n\n", entry.iteration, entry.outcome.word());
    // Writing to a String cannot fail.
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "- **{name}**: {value}");
        }
    };
    line("Task", &format!("{} {}", entry.task_id, quoted_line(&entry.title, LINE)));
    line("Model", &quoted_line(entry.model.as_deref().unwrap_or_default(), LINE));
    let cost = entry.cost_usd.map_or_else(String::new, |cost| format!(" | **Cost**: ${cost:.4}"));
    let duration = Duration::try_from_secs_f64(entry.duration_secs).unwrap_or_default();
    line("Duration", &format!("{:.1}s{cost}", duration.as_secs_f64()));
    line("Files", &quoted_line(&entry.files_modified.join(", "), 2 * LINE));
    for (name, words) in [("Reason", &entry.reason), ("Notes", &entry.notes)] {
        let words = quoted(words, NOTE);
        if !words.is_empty() {
            line(name, &format!("\n\n{words}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    impl JournalEntry {
        /// An entry for tests.
        pub(crate) fn example() -> Self {
            Self {
                run_id: "run-00000001".into(),
                iteration: 3,
                task_id: "t-1a2b3c".into(),
                title: "Parse the header".into(),
                feature: Some("parser".into()),
                outcome: Became::Done,
                model: Some("opus".into()),
                duration_secs: 1.25,
                cost_usd: Some(1.1155),
                input_tokens: 10,
                output_tokens: 5,
                files_modified: vec!["src/a.rs".into(), "src/b.rs".into()],
                notes: "It is\n# done".into(),
                reason: String::new(),
                created_at: DateTime::UNIX_EPOCH,
            }
        }
    }

    #[test]
    fn an_entry_as_the_next_agent_reads_it() {
        assert_eq!(
            rendered(&[JournalEntry::example()]),
            format!(
                "## Run Journal\n\n{NOT_INSTRUCTIONS}\n\n### Iteration 3 [done]\n\n\
                 - **Task**: t-1a2b3c Parse the header\n- **Model**: opus\n- **Duration**: 1.2s | **Cost**: $1.1155\n\
                 - **Files**: src/a.rs, src/b.rs\n- **Notes**: \n\n> It is\n> \\# done\n\n"
            )
        );
        let bare = JournalEntry {
            model: None,
            cost_usd: None,
            files_modified: Vec::new(),
            notes: String::new(),
            duration_secs: -1.0,
            ..JournalEntry::example()
        };
        assert!(rendered(&[bare]).ends_with("Parse the header\n- **Duration**: 0.0s\n"));
        assert_eq!(rendered(&[]), "");
    }

    #[test]
    fn what_has_no_room_is_left_out() {
        let entry = JournalEntry { notes: "长".repeat(100_000), ..JournalEntry::example() };
        let text = rendered(&vec![entry; 50]);
        let blocks = text.matches("### Iteration").count();
        assert!((5..20).contains(&blocks), "{blocks}");
        assert!(text.chars().count() <= ROOM + 200);
    }
}
