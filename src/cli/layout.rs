//! Lays out what stands below the options in `--help`, in one place and for the width of the terminal: clap would break the
//! lines of the source a second time, and knows no columns.

use clap::Command;
use rustix::stdio::{stderr, stdout};
use rustix::termios::tcgetwinsize;
use unicode_width::UnicodeWidthStr as _;

use super::help::GROUPS;
use crate::text::wrap::wrapped;

/// Wider lines are hard to read, in cells.
const WIDEST: usize = 100;
/// With less room than this beside a term, in cells, its explanation stands below it.
const LEAST_ROOM: usize = 24;
/// A terminal with less cells has no room for the usage of some verbs.
const SHORT_USAGE: usize = 80;
/// The command whose verbs stand in groups.
const ROOT: &str = "ralph";
/// What clap writes before a usage.
const USAGE_HEAD: &str = "Usage: ";
/// So far are terms indented, and explanations below them, in cells.
const INDENT: usize = 2;
const BELOW: usize = 6;

/// A part of such a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Block {
    /// A paragraph.
    Prose(String),
    /// Terms, mostly commands, each with what it means or nothing.
    Terms(Vec<(String, String)>),
    /// An empty line.
    Gap,
}

/// Takes a text of the source apart. Indented lines are terms, with two blanks or more before what they mean; that may also
/// stand on the next line, indented more. Lines that follow each other are one paragraph, of which one that ends with a
/// colon is the last.
#[must_use]
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            blocks.push(Block::Gap);
        } else if line.starts_with(' ') {
            let is_meaning = line.len() - line.trim_start().len() > BELOW;
            let (term, meaning) = trimmed.split_once("  ").unwrap_or((trimmed, ""));
            let term = (term.to_owned(), meaning.trim().to_owned());
            match blocks.last_mut() {
                Some(Block::Terms(terms)) => match terms.last_mut() {
                    Some((_, missing)) if is_meaning && missing.is_empty() => trimmed.clone_into(missing),
                    _ => terms.push(term),
                },
                _ => blocks.push(Block::Terms(vec![term])),
            }
        } else {
            match blocks.last_mut() {
                Some(Block::Prose(text)) if !text.ends_with(':') => {
                    text.push(' ');
                    text.push_str(trimmed);
                }
                _ => blocks.push(Block::Prose(trimmed.to_owned())),
            }
        }
    }
    blocks
}

/// The command with all texts of its own, and those of its verbs, in lines that the terminal has room for.
pub(super) fn laid_out(command: Command) -> Command {
    let name = command.get_name().to_owned();
    within(command, &name, width())
}

/// Lays out a command that is called like this.
fn within(command: Command, called: &str, width: usize) -> Command {
    let below = command.get_after_help().map(|text| fitted(&text.to_string(), width));
    let usage = command.get_overridden_usage().map(ToString::to_string);
    let usage = usage.or_else(|| (width < SHORT_USAGE).then(|| own_usage(&command, called)));
    let command = match below {
        Some(below) => command.after_help(below),
        None => command,
    };
    let command =
        if called == command.get_name() && called == ROOT { grouped(command, width) } else { command };
    let command = match usage {
        Some(usage) => command.override_usage(usage_within(&usage, width)),
        None => command,
    };
    command.term_width(width).mut_subcommands(|verb| {
        let called = format!("{called} {}", verb.get_name());
        within(verb, &called, width)
    })
}

/// The command of all verbs, with a help that has them in groups: clap knows one list only.
fn grouped(command: Command, width: usize) -> Command {
    let (heading, literal) = (*command.get_styles().get_header(), *command.get_styles().get_literal());
    let about = |name: &&str| {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        ((*name).to_owned(), about.map(ToString::to_string).unwrap_or_default())
    };
    let widest = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or_default();
    let mut parts = Vec::new();
    for (group, names) in GROUPS {
        let mut lines = vec![format!("{heading}{group}:{heading:#}")];
        let mut terms: Vec<(String, String)> = names.iter().map(about).collect();
        // One column for all groups.
        for (name, _) in &mut terms {
            *name = format!("{name:widest$}");
        }
        put_terms(&terms, width, &mut lines);
        for line in lines.iter_mut().skip(1) {
            let name = line
                .strip_prefix("  ")
                .filter(|rest| !rest.starts_with(' '))
                .and_then(|rest| rest.split(' ').next());
            if let Some(name) = name {
                *line = format!("  {literal}{name}{literal:#}{}", &line[2 + name.len()..]);
            }
        }
        parts.push(lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n"));
    }
    let verbs = parts.join("\n\n");
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}\n\n{heading}Options:{heading:#}\n{{options}}{{after-help}}"
    ))
}

/// What clap writes of a command's usage, which it does not break.
fn own_usage(command: &Command, called: &str) -> String {
    let usage = command.clone().bin_name(called).render_usage().to_string();
    usage.strip_prefix(USAGE_HEAD).unwrap_or(&usage).to_owned()
}

/// A text of this form in lines that the terminal has room for.
#[must_use]
pub fn on_terminal(text: &str) -> String {
    fitted(text, width())
}

/// How many cells a line has: as many as the terminal, and no more than can be read with ease.
fn width() -> usize {
    // Stdout may be a pipe to a pager on the same terminal.
    let sizes = [tcgetwinsize(stdout()), tcgetwinsize(stderr())];
    let told = sizes.into_iter().flatten().map(|size| usize::from(size.ws_col));
    told.filter(|cells| *cells > 0).map(|cells| cells.min(WIDEST)).next().unwrap_or(WIDEST)
}

fn usage_within(usage: &str, width: usize) -> String {
    let head = USAGE_HEAD.len();
    let lines = wrapped(usage, width.saturating_sub(head).max(1), usize::MAX);
    lines.join(&format!("\n{:head$}", ""))
}

fn fitted(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for block in blocks(text) {
        match block {
            Block::Prose(text) => lines.extend(wrapped(&text, width.max(1), usize::MAX)),
            Block::Terms(terms) => put_terms(&terms, width, &mut lines),
            Block::Gap => lines.push(String::new()),
        }
    }
    lines.join("\n")
}

/// Terms in one column and what they mean in the next, where there is room for both.
fn put_terms(terms: &[(String, String)], width: usize, lines: &mut Vec<String>) {
    let widest = terms.iter().filter(|(_, meaning)| !meaning.is_empty()).map(|(term, _)| term.width()).max();
    let column = INDENT + widest.unwrap_or_default() + 2;
    let room = width.checked_sub(column).filter(|room| *room >= LEAST_ROOM);
    for (term, meaning) in terms {
        let (room, indent) = match room {
            Some(room) if !meaning.is_empty() => (room, column),
            _ => (width.saturating_sub(BELOW).max(1), BELOW),
        };
        let mut meanings = wrapped(meaning, room, usize::MAX).into_iter();
        if indent == column {
            let first = meanings.next().unwrap_or_default();
            lines.push(format!("{:INDENT$}{term:1$}{first}", "", column - INDENT));
        } else {
            let broken = wrapped(term, width.saturating_sub(BELOW).max(1), usize::MAX);
            let put = |(at, line): (usize, &String)| {
                format!("{:1$}{line}", "", if at == 0 { INDENT } else { BELOW })
            };
            lines.extend(broken.iter().enumerate().map(put));
        }
        lines.extend(meanings.filter(|line| !line.is_empty()).map(|line| format!("{:indent$}{line}", "")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    /// Each verb's name with its help at this width.
    fn helps(width: usize) -> Vec<(String, String)> {
        fn collect(command: &mut Command, above: &str, helps: &mut Vec<(String, String)>) {
            let name = format!("{above} {}", command.get_name());
            helps.push((name.clone(), command.render_help().to_string()));
            command.get_subcommands_mut().for_each(|verb| collect(verb, &name, helps));
        }
        let mut helps = Vec::new();
        let mut root = within(Cli::documented(), "ralph", width);
        root.build();
        collect(&mut root, "", &mut helps);
        assert!(helps.len() > 40, "{}", helps.len());
        helps
    }

    #[test]
    fn each_verb_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let root = Cli::documented();
        let mut known: Vec<&str> = root.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
        let (_, help) = helps(100).swap_remove(0);
        assert!(
            help.contains("\n\nStart:\n  plan         Turn the specs") && !help.contains("alias"),
            "{help}"
        );
        assert!(help.contains("\n\nOptions:\n  -h, --help"), "{help}");
    }

    #[test]
    fn no_help_is_wider_than_the_terminal() {
        for width in [45, 60, 80, 100] {
            for (verb, help) in helps(width) {
                for line in help.lines() {
                    assert!(line.width() <= width, "{verb} at {width}: {line}");
                }
            }
        }
    }

    /// A line that is broken although the next word had room has been broken before.
    #[test]
    fn nothing_is_wrapped_twice() {
        for width in [60, 80, 100] {
            for (verb, help) in helps(width) {
                for pair in help.lines().collect::<Vec<_>>().windows(2) {
                    let [line, next] = pair else { unreachable!() };
                    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                    let word = next.split(' ').next().unwrap_or_default();
                    let had_room = line.width() + 1 + word.width() <= width;
                    let is_over = line.ends_with(':');
                    assert!(
                        !(is_prose(line) && is_prose(next) && had_room) || is_over,
                        "{verb} at {width}:\n{line}\n{next}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_a_term_means_stays_in_its_column() {
        let text = "Examples:\n  ralph a     One two three four seventeen six\n  ralph bb x  Seven";
        let wide =
            "Examples:\n  ralph a     One two three four\n              seventeen six\n  ralph bb x  Seven";
        assert_eq!(fitted(text, 39), wide);
        let narrow =
            "Examples:\n  ralph a\n      One two three four\n      seventeen six\n  ralph bb x\n      Seven";
        assert_eq!(fitted(text, 24), narrow);
    }

    #[test]
    fn the_lines_of_the_source_are_no_lines_of_a_paragraph() {
        let text = "One\ntwo.\n\nExample:\n  ralph\n  ralph a\n            Two\nThree";
        let prose = |text: &str| Block::Prose(text.to_owned());
        let terms = Block::Terms(vec![("ralph".into(), String::new()), ("ralph a".into(), "Two".into())]);
        assert_eq!(blocks(text), [prose("One two."), Block::Gap, prose("Example:"), terms, prose("Three")]);
    }
}
