//! The prompt of a task, read again for every iteration.

use std::path::Path;

use super::Places;
use crate::engine::outcome::{End, Outcome};
use crate::files::theirs;
use crate::git::guard;
use crate::graph::{Details, JournalQuery, Status, Store, Task, Words as Search};
use crate::memory::journal::{self, JournalEntry, SHOWN};
use crate::memory::knowledge::{self, Topic};
use crate::prompt::task::{CORE, Facts, Retry, Words, task_prompt, verification_prompt};

/// The files with a project's knowledge for agents, the usual one first.
const MEMORY_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The inputs of a prompt.
pub(super) struct Briefing<'a> {
    pub(super) graph: &'a dyn Store,
    pub(super) places: &'a Places,
    pub(super) run: &'a str,
    /// The limit of retries from this run's command line, if any.
    pub(super) of_run: Option<u32>,
    /// The models that an agent may ask for.
    pub(super) models: &'a [String],
}

impl Briefing<'_> {
    /// The prompt for the agent that does a task, or for one that only verifies it.
    pub(super) fn prompt(&self, facts: &Facts, only_verifies: bool) -> Result<String, End> {
        if only_verifies {
            return Ok(verification_prompt(facts, None));
        }
        Ok(task_prompt(&self.core()?, facts))
    }

    /// The instructions: the user's, else the built-in ones.
    fn core(&self) -> Result<String, End> {
        let Some(file) = &self.places.core else { return Ok(CORE.to_owned()) };
        let path = file.path();
        match file.text() {
            Ok(text) if !text.trim().is_empty() => Ok(text),
            Ok(_) => Err(lost(path, "it is empty")),
            Err(error) => Err(lost(path, &error.to_string())),
        }
    }

    /// All facts about a task for its prompt, and notices for the user.
    pub(super) fn facts(
        &self,
        task: &Task,
        remarks: Vec<String>,
        notes: &[String],
    ) -> Result<(Facts, Vec<String>), End> {
        let details = self.graph.details(&task.id)?;
        let (spec, plan) = self.documents(&details)?;
        let (knowledge, notices) = self.knowledge(task, details.feature.as_deref());
        let parent = match &task.parent_id {
            Some(id) => Some(words(&self.graph.task(id)?)),
            None => None,
        };
        let mut prerequisites = Vec::new();
        for id in details.blockers.iter().chain(&details.children) {
            let before = self.graph.details(id)?;
            if before.task.status == Status::Done {
                let summary = before.log.iter().rev().find(|line| line.said);
                let text =
                    summary.map_or_else(|| before.task.description.clone(), |line| line.message.clone());
                prerequisites.push(Words { text, ..words(&before.task) });
            }
        }
        let facts = Facts {
            task: words(task),
            parent,
            prerequisites,
            spec,
            plan,
            retry: retry(task, &details, self.of_run),
            unlanded: None,
            remarks,
            logs: said(&details).filter(|line| !notes.contains(line)).collect(),
            feedback: notes.to_vec(),
            journal: self.journal(task)?,
            knowledge,
            ralph: self.places.ralph.clone(),
            memory_file: memory_file(&self.places.ground.root).to_owned(),
            models: self.models.to_vec(),
            feature: details.feature,
        };
        Ok((facts, notices))
    }

    /// The spec and the plan of the task's feature.
    fn documents(&self, details: &Details) -> Result<(Option<String>, Option<String>), End> {
        let Some(name) = &details.feature else { return Ok((None, None)) };
        let feature = self.graph.feature(name)?;
        let read = |path: Option<&String>| match path.map(|path| self.places.documents.join(path)) {
            None => Ok(None),
            Some(path) => theirs::text(&path).map(Some).map_err(|error| lost(&path, &error.to_string())),
        };
        Ok((read(feature.spec_path.as_ref())?, read(feature.plan_path.as_ref())?))
    }

    /// The last attempts of this run, and earlier ones about similar tasks.
    fn journal(&self, task: &Task) -> Result<String, End> {
        let mut entries: Vec<JournalEntry> = Vec::new();
        let run = Some(self.run.to_owned());
        let words = Some(Search::Any(format!("{} {}", task.title, task.description)));
        for query in [
            JournalQuery { run: run.clone(), limit: Some(SHOWN), ..JournalQuery::default() },
            JournalQuery { but_run: run, words, limit: Some(SHOWN), ..JournalQuery::default() },
        ] {
            let mut keep = |entry| {
                entries.push(entry);
                true
            };
            self.graph.journal(&query, &mut keep)?;
        }
        Ok(journal::rendered(&entries))
    }

    fn knowledge(&self, task: &Task, feature: Option<&str>) -> (String, Vec<String>) {
        let (all, notices) = knowledge::read(&self.places.documents.join("knowledge"));
        let text = format!("{}\n{}", task.title, task.description);
        let files = if all.is_empty() || !self.places.ground.in_git {
            Vec::new()
        } else {
            guard::recent(&self.places.ground.root)
        };
        let topic = Topic { text: &text, feature, files: &files };
        (knowledge::rendered(&knowledge::matching(&all, &topic)), notices)
    }
}

fn lost(path: &Path, why: &str) -> End {
    End::because(
        Outcome::PromptLost,
        format!("{}: {why}: restore it, or change what refers to it", path.display()),
    )
}

fn words(task: &Task) -> Words {
    Words { id: task.id.clone(), title: task.title.clone(), text: task.description.clone() }
}

/// The entries of users and agents in the task's log.
fn said(details: &Details) -> impl Iterator<Item = String> + '_ {
    details.log.iter().filter(|line| line.said).map(|line| line.message.clone())
}

/// Why the task is tried again, if it is.
fn retry(task: &Task, details: &Details, of_run: Option<u32>) -> Option<Retry> {
    if task.retry_count == 0 {
        return None;
    }
    // `retry 1 of 3: reason`, as the store writes it.
    let last = details.log.iter().rev().filter(|line| !line.said).find_map(|line| {
        let (count, reason) = line.message.strip_prefix("retry ")?.split_once(": ")?;
        Some((count.rsplit(' ').next()?.parse::<u32>().ok()?, reason.to_owned()))
    });
    let (most, reason) = last.unwrap_or((task.max_retries, String::new()));
    // A retried task has a try left, whatever this run's limit is.
    let of = of_run.unwrap_or(most).max(task.retry_count) + 1;
    Some(Retry { attempt: task.retry_count + 1, of, reason })
}

/// The file in which the project keeps knowledge for every agent.
fn memory_file(root: &Path) -> &'static str {
    MEMORY_FILES.into_iter().find(|name| root.join(name).is_file()).unwrap_or(MEMORY_FILES[0])
}
