//! Parses a RALPH.md: its front matter, checked, and the prompt below it.

mod yaml;

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::{Error as YamlError, Spanned};

use super::placeholders::{self, Namespace};
use crate::text::duration;

/// The default time limit of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(1);

/// A RALPH.md, read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The words of the agent's command line; at least one.
    pub agent: Vec<String>,
    /// The commands to run before each iteration, in order.
    pub commands: Vec<NamedCommand>,
    /// The names of the user's arguments, in the order of their positions.
    pub args: Vec<String>,
    /// Everything below the front matter.
    pub body: String,
}

/// A command whose output the prompt can show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCommand {
    /// Its name in placeholders.
    pub name: String,
    /// Its words, with placeholders for arguments.
    pub run: Vec<String>,
    /// Its time limit.
    pub timeout: Duration,
}

/// Why a RALPH.md cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}{}: {what}", in_words(*column))]
pub struct Problem {
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1; 0 for the whole line.
    pub column: u64,
    /// The problem, and what to do.
    pub what: String,
}

impl Problem {
    fn at<T>(place: &Spanned<T>, what: impl Into<String>) -> Self {
        let place = place.referenced;
        Self { line: place.line(), column: place.column(), what: what.into() }
    }
}

fn in_words(column: u64) -> String {
    if column == 0 { String::new() } else { format!(", column {column}") }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    agent: Spanned<String>,
    #[serde(default)]
    commands: Option<Vec<RawCommand>>,
    #[serde(default)]
    args: Option<Vec<Spanned<String>>>,
    /// Files of an earlier program have it; it is ignored.
    #[serde(default, rename = "credit")]
    _credit: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCommand {
    name: Spanned<String>,
    run: Spanned<String>,
    timeout: Option<Spanned<String>>,
}

impl Document {
    /// Parses `text`; an argument must not have a name in `reserved`, the flags of ralph.
    pub fn parse(text: &str, reserved: &[String]) -> Result<Self, Problem> {
        let (yaml, body) = split(text)?;
        let raw: Raw = serde_saphyr::from_str(yaml).map_err(|error| yaml_problem(yaml, &error))?;
        let agent = words(&raw.agent, "agent")?;
        let mut names = HashSet::new();
        let commands = raw.commands.unwrap_or_default().into_iter();
        let commands = commands.map(|raw| command(raw, &mut names)).collect::<Result<_, _>>()?;
        let args = args(raw.args.unwrap_or_default(), reserved)?;
        if placeholders::without_comments(body).trim().is_empty() {
            let line = text.lines().count().max(1) as u64;
            let what = "there is no prompt below the front matter: write one".to_owned();
            return Err(Problem { line, column: 0, what });
        }
        Ok(Self { agent, commands, args, body: body.to_owned() })
    }

    /// The names of the arguments that the body or a command uses.
    pub fn used_args(&self) -> impl Iterator<Item = &str> {
        let words = self.commands.iter().flat_map(|command| &command.run);
        let used = words.flat_map(|word| placeholders::used(word)).chain(placeholders::used(&self.body));
        used.filter(|(namespace, _)| *namespace == Namespace::Args).map(|(_, name)| name)
    }
}

/// The YAML, including its opening line so that line numbers match the file, and the body.
pub(crate) fn split(text: &str) -> Result<(&str, &str), Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_mark = |line: &str| line.trim_end() == "---";
    let problem = |what: &str| Problem { line: 1, column: 0, what: what.to_owned() };
    let mut lines = text.split_inclusive('\n');
    let mut end = match lines.next() {
        Some(first) if is_mark(first) => first.len(),
        _ if text.trim().is_empty() => return Err(problem("the file is empty")),
        _ => {
            return Err(problem(
                "there is no front matter: begin with a line '---', a line 'agent: COMMAND' and a line '---'",
            ));
        }
    };
    for line in lines {
        if is_mark(line) {
            return Ok((&text[..end], &text[end + line.len()..]));
        }
        end += line.len();
    }
    Err(problem("the front matter has no end: close it with a line '---'"))
}

/// The problem in `yaml`, as returned by [`split`].
pub(crate) fn yaml_problem(yaml: &str, error: &YamlError) -> Problem {
    yaml::explain(yaml, error)
}

/// The words of a command line.
fn words(line: &Spanned<String>, key: &str) -> Result<Vec<String>, Problem> {
    let words = placeholders::split_words(&line.value)
        .ok_or_else(|| Problem::at(line, format!("'{key}' has a quote that is not closed")))?;
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        return Err(Problem::at(line, format!("'{key}' names no program: give it a command")));
    }
    Ok(words)
}

fn command(raw: RawCommand, names: &mut HashSet<String>) -> Result<NamedCommand, Problem> {
    check_name(&raw.name, "a command")?;
    if !names.insert(raw.name.value.clone()) {
        let what = format!("there are two commands named '{}': rename one", raw.name.value);
        return Err(Problem::at(&raw.name, what));
    }
    let run = words(&raw.run, "run")?;
    let others = placeholders::used(&raw.run.value).find(|(namespace, _)| *namespace == Namespace::Commands);
    if let Some((_, other)) = others {
        let what = format!("a command cannot use the output of another, '{other}': run both in one script");
        return Err(Problem::at(&raw.run, what));
    }
    let timeout = match &raw.timeout {
        None => COMMAND_TIMEOUT,
        Some(text) => {
            duration::parse(&text.value).map_err(|error| Problem::at(text, format!("timeout: {error}")))?
        }
    };
    Ok(NamedCommand { name: raw.name.value, run, timeout })
}

fn args(raw: Vec<Spanned<String>>, reserved: &[String]) -> Result<Vec<String>, Problem> {
    let mut names = Vec::with_capacity(raw.len());
    for name in raw {
        check_name(&name, "an argument")?;
        if reserved.contains(&name.value) {
            let what = format!("argument '{0}' is named like ralph's own --{0}: rename it", name.value);
            return Err(Problem::at(&name, what));
        }
        if names.contains(&name.value) {
            let what = format!("there are two arguments named '{}': rename one", name.value);
            return Err(Problem::at(&name, what));
        }
        names.push(name.value);
    }
    Ok(names)
}

fn check_name(name: &Spanned<String>, kind: &str) -> Result<(), Problem> {
    let good = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if name.value.is_empty() || !name.value.chars().all(good) {
        let what = format!("'{}' is no name for {kind}: use letters, digits, '_' and '-'", name.value);
        return Err(Problem::at(name, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Document, Problem> {
        Document::parse(text, &["timeout".to_owned()])
    }

    fn problem(text: &str) -> String {
        let Problem { line, what, .. } = parse(text).expect_err(text);
        format!("line {line}: {what}")
    }

    #[test]
    fn reads_everything() {
        let text = "---\nagent: claude -p \"a b\"\n\ncommands:\n- name: git-log\n  run: git log --oneline -5\n\
                    - name: t\n  run: ./check {{ args.dir }}/x\n  timeout: 1.5\n- {name: u, run: 'true', timeout: 2m}\n\
                    args: [dir, focus]\n---\n# Prompt\n---\n{{ args.more }}\n";
        let document = parse(text).unwrap();
        assert_eq!(document.agent, ["claude", "-p", "a b"]);
        let commands: Vec<_> = document
            .commands
            .iter()
            .map(|c| (c.name.as_str(), c.run.join("|"), c.timeout.as_millis()))
            .collect();
        let expected = [
            ("git-log", "git|log|--oneline|-5".to_owned(), 60_000),
            ("t", "./check|{{args.dir}}/x".to_owned(), 1_500),
            ("u", "true".to_owned(), 120_000),
        ];
        assert_eq!(commands, expected);
        assert_eq!(document.args, ["dir", "focus"]);
        assert_eq!(document.body, "# Prompt\n---\n{{ args.more }}\n");
        assert_eq!(document.used_args().collect::<Vec<_>>(), ["dir", "more"]);
    }

    #[test]
    fn a_byte_order_mark_and_other_line_ends_do_not_matter() {
        let document = parse("\u{feff}---\r\nagent: x\r\ncommands:\r\nargs:\r\n--- \r\nDo it.\r\n").unwrap();
        assert_eq!((document.agent.join(" "), document.body.as_str()), ("x".into(), "Do it.\r\n"));
        assert_eq!((document.commands.len(), document.args.len()), (0, 0));
    }

    #[test]
    fn problems_name_their_line() {
        for (text, expected) in [
            ("", "line 1: the file is empty"),
            (" \n\n", "line 1: the file is empty"),
            ("# Prompt\n", "line 1: there is no front matter"),
            ("---\nagent: x\n", "line 1: the front matter has no end"),
            ("---\nagent: x\n---\n", "line 3: there is no prompt below the front matter"),
            ("---\nagent: x\n---\n\n<!-- later -->\n", "line 5: there is no prompt below the front matter"),
            ("---\n---\nx", "line 1: the key 'agent' is missing"),
            ("---\nargs: [a]\n---\nx", "line 2: the key 'agent' is missing"),
            ("---\nagent: ''\n---\nx", "line 2: 'agent' names no program"),
            ("---\nagent: \"x 'y\"\n---\nx", "line 2: 'agent' has a quote that is not closed"),
            ("---\nagent: x\nagnet: y\n---\nx", "line 3: there is no key 'agnet': did you mean 'agent'?"),
            (
                "---\nagent: x\ncolour: y\n---\nx",
                "line 3: there is no key 'colour': known are agent, commands, args",
            ),
            ("---\nagent: x\nagent: y\n---\nx", "line 3: the key 'agent' stands here twice"),
            ("---\nagent: x\ncommands:\n- name: a\n---\nx", "line 4: the key 'run' is missing"),
            (
                "---\nagent: x\ncommands:\n- name: a\n  runs: b\n---\nx",
                "line 5: there is no key 'runs': did you mean 'run'?",
            ),
            (
                "---\nagent: x\ncommands:\n- {name: a, run: b}\n- {name: a, run: c}\n---\nx",
                "line 5: there are two commands named 'a'",
            ),
            (
                "---\nagent: x\ncommands:\n- {name: a b, run: b}\n---\nx",
                "line 4: 'a b' is no name for a command",
            ),
            (
                "---\nagent: x\ncommands:\n- {name: a, run: b, timeout: 0}\n---\nx",
                "line 4: timeout: `0` is no time",
            ),
            (
                "---\nagent: x\ncommands:\n- {name: a, run: b, timeout: soon}\n---\nx",
                "line 4: timeout: `soon`",
            ),
            ("---\nagent: x\ncommands:\n- {name: a, run: ''}\n---\nx", "line 4: 'run' names no program"),
            (
                "---\nagent: x\ncommands:\n- {name: a, run: 'b {{ commands.c }}'}\n---\nx",
                "line 4: a command cannot use",
            ),
            ("---\nagent: x\ncommands: ls\n---\nx", "line 3: "),
            ("---\nagent: [x, y]\n---\nx", "line 2: "),
            (
                "---\nagent: x\nargs:\n- timeout\n---\nx",
                "line 4: argument 'timeout' is named like ralph's own --timeout",
            ),
            ("---\nagent: x\nargs: [a, a]\n---\nx", "line 3: there are two arguments named 'a'"),
            ("---\nagent: x\nargs: ['']\n---\nx", "line 3: '' is no name for an argument"),
            ("---\nagent: x\n  bad: y\n---\nx", "line 3: "),
            ("---\nagent: \"x\n---\nx", "line "),
            ("---\n- agent\n---\nx", "line 2: "),
        ] {
            let found = problem(text);
            assert!(found.starts_with(expected) && !found.contains('\n'), "{text:?}: {found}");
        }
    }

    #[test]
    fn the_column_is_told_where_there_is_one() {
        let said = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(said(""), "line 1: the file is empty");
        let twice = said("---\nagent: x\nargs: [a, a]\n---\nx");
        assert!(twice.starts_with("line 3, column 11: there are two arguments"), "{twice}");
    }

    proptest! {
        #[test]
        fn never_panics(text in r"(---\n|agent: x\n|agent|\t|@|%|\x22|commands:\n|- name: a\n|  run: b\n|args: \[a\]\n|[:&*!{}\[\] \n'-]|\PC){0,30}") {
            let _ = parse(&text);
            let _ = parse(&format!("---\nagent: x\n{text}\n---\nbody"));
        }
    }
}
