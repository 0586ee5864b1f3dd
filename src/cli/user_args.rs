//! `ralph run`: the arguments for a RALPH.md, told apart from ralph's own flags.

use std::ffi::OsString;
use std::path::Path;

use clap::Arg;

use super::task_flags::TaskFlags;

/// An argument that the user gives to a RALPH.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserArg {
    /// `--NAME VALUE` or `--NAME=VALUE`.
    Named(String, String),
    /// For the next of the names that the RALPH.md declares.
    Positional(String),
}

/// Splits what follows the verb: ralph's own flags and the target for the parser of `verb`, the rest for the
/// RALPH.md. Own flags are recognised wherever they stand; after `--` everything is positional.
///
/// # Errors
/// In one line, when a named argument has no value or a value is not text.
pub fn split(verb: &clap::Command, rest: Vec<OsString>) -> Result<(Vec<OsString>, Vec<UserArg>), String> {
    let mut own = Vec::new();
    let mut user = Vec::new();
    let mut has_target = false;
    let mut words = rest.into_iter().peekable();
    while let Some(word) = words.next() {
        let Some(text) = word.to_str().map(str::to_owned) else {
            if has_target {
                return Err(not_text(&word));
            }
            has_target = true;
            own.push(word);
            continue;
        };
        if text == "--" {
            for word in words {
                user.push(UserArg::Positional(word.into_string().map_err(|word| not_text(&word))?));
            }
            break;
        } else if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
            if is_own(verb, name) {
                let value_follows = value.is_none() && takes_value(verb, |arg| arg.get_long() == Some(name));
                own.push(word);
                own.extend(words.next_if(|_| value_follows));
            } else if let Some(value) = value {
                user.push(UserArg::Named(name.to_owned(), value.to_owned()));
            } else {
                let value = words.next_if(|next| next.to_str().is_none_or(is_value)).ok_or_else(|| {
                    format!("argument '--{name}' has no value: write '--{name} VALUE' or '--{name}=VALUE'")
                })?;
                user.push(UserArg::Named(
                    name.to_owned(),
                    value.into_string().map_err(|value| not_text(&value))?,
                ));
            }
        } else if text.len() > 1 && text.starts_with('-') {
            own.push(word);
            own.extend(words.next_if(|_| ends_in_option(verb, &text[1..])));
        } else if has_target {
            user.push(UserArg::Positional(text));
        } else {
            has_target = true;
            own.push(word);
        }
    }
    Ok((own, user))
}

/// Whether a target is a path: with a `/`, ending in `.md`, or a folder that holds a RALPH.md.
#[must_use]
pub fn is_path(target: &Path) -> bool {
    let text = target.to_string_lossy();
    text.contains('/') || text.ends_with(".md") || target.join("RALPH.md").symlink_metadata().is_ok()
}

/// Whether a word is a flag that only tasks know.
#[must_use]
pub fn is_about_tasks(word: &OsString) -> bool {
    let name = word.to_str().and_then(|word| word.strip_prefix("--")).unwrap_or_default();
    TaskFlags::NAMES.contains(&name.split('=').next().unwrap_or_default())
}

/// The names that `verb` keeps for itself when it runs a RALPH.md, without their dashes.
pub fn own_names(verb: &clap::Command) -> Vec<String> {
    let longs =
        verb.get_arguments().filter_map(Arg::get_long).filter(|name| !TaskFlags::NAMES.contains(name));
    longs.map(str::to_owned).chain(["help".to_owned()]).collect()
}

fn is_own(verb: &clap::Command, name: &str) -> bool {
    own_names(verb).iter().any(|own| own == name)
}

fn takes_value(verb: &clap::Command, is_it: impl Fn(&Arg) -> bool) -> bool {
    verb.get_arguments().any(|arg| is_it(arg) && arg.get_action().takes_values())
}

/// Whether a cluster of short flags ends in one whose value is the next word.
fn ends_in_option(verb: &clap::Command, cluster: &str) -> bool {
    let option = cluster.chars().position(|short| takes_value(verb, |arg| arg.get_short() == Some(short)));
    option.is_some_and(|at| at + 1 == cluster.chars().count())
}

/// Whether a word can be a value: a flag is none, a negative number is one.
fn is_value(word: &str) -> bool {
    let rest = word.strip_prefix('-');
    rest.is_none_or(|rest| rest.is_empty() || rest.starts_with(|first: char| first.is_ascii_digit()))
}

fn not_text(word: &OsString) -> String {
    format!("argument '{}' is not UTF-8 text", word.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<(String, Vec<UserArg>), String> {
        let cli = crate::cli::Cli::whole();
        let verb = cli.find_subcommand("run").unwrap();
        let (own, user) = split(verb, line.split(' ').map(OsString::from).collect())?;
        Ok((own.join(" ".as_ref()).into_string().unwrap(), user))
    }

    fn named(name: &str, value: &str) -> UserArg {
        UserArg::Named(name.into(), value.into())
    }

    fn positional(value: &str) -> UserArg {
        UserArg::Positional(value.into())
    }

    #[test]
    fn own_flags_are_recognised_on_both_sides() {
        for (line, own, user) in [
            ("loop -n 3 --dir src -s", "loop -n 3 -s", vec![named("dir", "src")]),
            (
                "-sn3 loop a --dir=x=y b --timeout 5",
                "-sn3 loop --timeout 5",
                vec![positional("a"), named("dir", "x=y"), positional("b")],
            ),
            ("--dir src loop", "loop", vec![named("dir", "src")]),
            (
                "loop --timeout=5 -- -n 3 --dir",
                "loop --timeout=5",
                vec![positional("-n"), positional("3"), positional("--dir")],
            ),
            ("loop --level -5 --x=-n", "loop", vec![named("level", "-5"), named("x", "-n")]),
            ("loop -sqt 5 a", "loop -sqt 5", vec![positional("a")]),
            ("loop --help", "loop --help", vec![]),
        ] {
            assert_eq!(run(line).unwrap(), (own.to_owned(), user), "{line}");
        }
    }

    #[test]
    fn a_name_needs_a_value() {
        for line in ["loop --dir", "loop --dir --n", "loop --dir -n 3", "loop --dir -- x"] {
            assert!(run(line).unwrap_err().contains("'--dir' has no value"), "{line}");
        }
        assert!(run("loop --dir=").is_ok());
    }
}
