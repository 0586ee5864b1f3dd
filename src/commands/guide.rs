//! `ralph help`: the verbs, the pages of the guide, and each of them.

mod page;
#[cfg(test)]
mod tables;

use std::io::Write as _;

use anyhow::bail;

use super::output::{print, print_for_people, width};
use crate::cli::Cli;
use crate::text::nearest::meant;
use crate::text::palette::STRONG;

/// The heading of the names of pages.
const PAGES: &str = "Pages of the guide";

/// A page of the guide: a file in `docs/`.
struct Topic {
    /// Its name for users; the file's name without `.md`.
    name: &'static str,
    /// Its subject, in one line.
    about: &'static str,
    text: &'static str,
}

macro_rules! topics {
    ($($name:literal: $about:literal,)*) => {
        &[$(Topic { name: $name, about: $about, text: include_str!(concat!("../../docs/", $name, ".md")) }),*]
    };
}

/// All pages, in the order of the guide.
const TOPICS: &[Topic] = topics! {
    "prompts": "prompts of your own, what is replaced in them, and the words by which an agent ends a loop",
    "ralph-md": "a loop in one file: agent, commands and prompt",
    "branches": "several things at once: a plan of branches, work trees, pull requests",
    "tasks": "the graph of tasks, and how agents work on it",
    "landing": "many agents on one graph of tasks, and how their work lands",
    "many-machines": "one graph of tasks on a server, and workers on as many machines as there are",
    "features": "a feature from an idea to its tasks, written by agents",
    "workers": "interactive agents in windows of tmux",
    "agents": "which agents there are, how they are started, models",
    "acp": "agents over the Agent Client Protocol",
    "filters": "jq programs of your own for what an agent prints",
    "scripted-agent": "a free agent for trying things out and for rehearsing bad nights",
    "limits": "iterations, time, money, tokens, and waiting for usage limits",
    "validation": "a command that checks whether the work is good",
    "stopping": "Ctrl+C, signals, and what becomes of the agent",
    "failures": "what can go wrong, and what ralph does then",
    "watching": "loops on the whole screen, and the keys that steer them",
    "control": "status, logs, notes, pause, resume, cancel, revert, clean",
    "reports": "what happened in a run: reports, a page of it, history, differences, transcripts",
    "notices": "notices by a command, a webhook, the desktop or the bell; hooks; trust",
    "commands": "every verb and every flag",
    "settings": "config files, environment, and every setting",
    "installing": "how to install and update ralph, and where it has been tested",
    "exit-codes": "exit codes, and every way in which a loop can end",
    "files": "every file of ralph's, and where it lies",
    "events": "what --json prints, for programs",
    "walls": "walls around agents: what they can write, read and connect to",
    "safety": "what agents may do, and what to be careful with",
    "troubleshooting": "messages, and what to do about them",
};

/// The names of all pages.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|topic| topic.name)
}

/// `ralph help`, about a verb, a page, or everything.
pub(super) fn help(words: &[String]) -> anyhow::Result<u8> {
    let Some((first, rest)) = words.split_first() else { return overview() };
    if Cli::whole().find_subcommand(first).is_some() {
        return of_verb(words);
    }
    let wanted = first.to_lowercase().replace(['.', '_', ' '], "-");
    match TOPICS.iter().find(|topic| topic.name == wanted) {
        Some(topic) if rest.is_empty() => print(|out| match width() {
            Some(width) => write!(out, "{}", page::render(topic.text, width)),
            None => write!(out, "{}", topic.text),
        }),
        Some(topic) => bail!("'{}' is a page and has no parts: use 'ralph help {}'", topic.name, topic.name),
        None => {
            let root = Cli::whole();
            let verbs = root.get_subcommands().map(clap::Command::get_name);
            let meant = meant(&wanted, verbs.chain(TOPICS.iter().map(|topic| topic.name)));
            bail!("there is no help about '{first}': {meant}'ralph help' lists verbs and pages")
        }
    }
}

/// clap's help of all verbs, and the pages below it.
fn overview() -> anyhow::Result<u8> {
    let verbs = of_line(["ralph", "--help"]).err();
    let pages = match width() {
        Some(width) => page::rows(&pages(), width),
        None => page::rows(&pages(), usize::MAX),
    };
    print_for_people(|out| {
        if let Some(verbs) = verbs {
            let verbs = verbs.render().ansi().to_string();
            // Only their names; the list with their subjects is below.
            let others = verbs.split("\n\n").filter(|part| !part.starts_with(PAGES));
            writeln!(out, "{}", others.collect::<Vec<_>>().join("\n\n"))?;
        }
        write!(out, "{STRONG}{PAGES}{STRONG:#} ('ralph help PAGE' prints one):\n{pages}")
    })
}

/// Names with their subjects.
fn pages() -> Vec<[String; 2]> {
    TOPICS.iter().map(|topic| [topic.name.to_owned(), topic.about.to_owned()]).collect()
}

/// The text of `--help` after the verb, which may be several words.
fn of_verb(words: &[String]) -> anyhow::Result<u8> {
    let root = Cli::whole();
    let (mut verb, mut known) = (&root, vec!["ralph"]);
    for word in words {
        let Some(below) = verb.find_subcommand(word) else {
            let meant = meant(word, verb.get_subcommands().map(clap::Command::get_name));
            let known = known.join(" ");
            bail!("there is no '{known} {word}': {meant}'{known} --help' lists what there is")
        };
        known.push(below.get_name());
        verb = below;
    }
    match of_line(known.into_iter().chain(["--help"])) {
        Err(help) => super::print_help(&help),
        Ok(_) => overview(),
    }
}

/// The command of these words.
fn of_line<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Cli, clap::Error> {
    Cli::read(words.into_iter().map(Into::into).collect())
}
