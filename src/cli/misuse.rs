//! What is wrong with a command line, in one line: what, and what to do.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use super::Cli;
use super::MAX_ITERATIONS;
use crate::text::list::some_of;
use crate::text::nearest::nearest;

/// Verbs of other programs, with what does the same here.
const OTHER_WORDS: [(&str, &str); 4] = [
    ("stop", "'ralph cancel' ends a loop, 'ralph pause' lets it hold"),
    (
        "start",
        "'ralph build' or 'ralph run TARGET' starts a loop, 'ralph resume' goes on with one that was cut off",
    ),
    ("task rm", "'ralph task delete ID' deletes one"),
    ("task remove", "'ralph task delete ID' deletes one"),
];
/// So many verbs are named that have a flag.
const OWNERS: usize = 3;

/// An error of clap's as one line: what, and what to do.
#[must_use]
pub fn one_line(error: &clap::Error) -> String {
    if matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let text = error.render().to_string();
        return match verbs_of_usage(&text).as_slice() {
            [] => "no mode given: use 'ralph plan', 'ralph build' or 'ralph prompt FILE', see 'ralph --help'"
                .into(),
            verbs => format!("no verb given: 'ralph {} --help' lists them", verbs.join(" ")),
        };
    }
    let text = error.render().to_string();
    let verbs = verbs_of_usage(&text);
    let meant = other_word(error, &verbs).or_else(|| flag_of_others(error, &verbs));
    if let Some(meant) = meant.or_else(|| unknown(error, &verbs)) {
        return format!("{meant}; see '{}'", [&["ralph"], &verbs[..], &["--help"]].concat().join(" "));
    }
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let words = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let mut line = String::new();
    for word in words {
        let tip = word.strip_prefix("tip: ");
        if !line.is_empty() {
            line.push_str(if tip.is_some() { "; " } else { " " });
        }
        line.push_str(tip.unwrap_or(word));
    }
    let help: Vec<&str> = verbs.into_iter().chain(["--help"]).collect();
    format!("{}; see 'ralph {}'", line.strip_prefix("error: ").unwrap_or(&line), help.join(" "))
}

/// The verbs in "Usage: ralph loop build [OPTIONS] [N]": they tell whose help is wanted.
fn verbs_of_usage(text: &str) -> Vec<&str> {
    let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage: ralph ")).unwrap_or_default();
    let is_verb = |word: &&str| !word.is_empty() && word.chars().all(|char| char.is_ascii_lowercase());
    usage.split(' ').take_while(is_verb).collect()
}

/// For a verb that other programs have: what is meant.
fn other_word(error: &clap::Error, verbs: &[&str]) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let whole = [verbs, &[word]].concat().join(" ");
    let (word, meant) = OTHER_WORDS.iter().find(|(other, _)| *other == word || *other == whole)?;
    Some(format!("there is no 'ralph {word}': {meant}"))
}

/// For a verb or a flag that there is not: the nearest one.
fn unknown(error: &clap::Error, verbs: &[&str]) -> Option<String> {
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let root = Cli::whole();
    let here = verbs.iter().try_fold(&root, |command, verb| command.find_subcommand(verb))?;
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = of(ContextKind::InvalidSubcommand)?;
            let known = here.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
            let meant = nearest(word, known);
            let meant =
                meant.map_or_else(String::new, |name| format!("; a similar subcommand exists: '{name}'"));
            Some(format!("unrecognized subcommand '{word}'{meant}"))
        }
        ErrorKind::UnknownArgument => {
            let word = of(ContextKind::InvalidArg)?;
            let known = here.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long);
            let meant =
                word.strip_prefix("--").and_then(|word| nearest(word, known)).map(|name| format!("--{name}"));
            let meant = meant.as_deref().or_else(|| of(ContextKind::SuggestedArg));
            let meant =
                meant.map_or_else(String::new, |name| format!("; a similar argument exists: '{name}'"));
            Some(format!("unexpected argument '{word}' found{meant}"))
        }
        _ => None,
    }
}

/// For a flag that the verb does not have and others do: whose it is.
fn flag_of_others(error: &clap::Error, verbs: &[&str]) -> Option<String> {
    let Some(ContextValue::String(flag)) =
        error.get(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument)
    else {
        return None;
    };
    let root = Cli::whole();
    let owners = owners(&root, flag);
    let here = verbs.iter().try_fold(&root, |command, verb| command.find_subcommand(verb));
    let is_count = |arg: &Arg| arg.get_id() == MAX_ITERATIONS || arg.get_long() == Some("max-iterations");
    let has_count = here.is_some_and(|here| here.get_arguments().any(is_count));
    if has_count && owners.iter().any(|(_, arg)| is_count(arg)) {
        return Some(format!(
            "{flag} belongs to other verbs: 'ralph {}' calls it --max-iterations",
            verbs.join(" ")
        ));
    }
    let names: Vec<String> = owners.iter().map(|(name, _)| format!("'ralph {name}'")).collect();
    let whose = some_of(&names, OWNERS);
    (!names.is_empty()).then(|| format!("{flag} belongs to {whose}: leave it out, or use that verb"))
}

/// The verbs that have a flag and show it, each with its own; in place of all verbs of a group, the group.
fn owners(root: &Command, flag: &str) -> Vec<(String, Arg)> {
    let mut owners = Vec::new();
    for verb in root.get_subcommands() {
        let below: Vec<&Command> = verb.get_subcommands().collect();
        let having: Vec<(&Command, &Arg)> =
            below.iter().filter_map(|command| Some((*command, shown(command, flag)?))).collect();
        let name = verb.get_name();
        match (shown(verb, flag), having.as_slice()) {
            (Some(arg), _) => owners.push((name.to_owned(), arg.clone())),
            (None, [(_, arg), ..]) if having.len() == below.len() => {
                owners.push((name.to_owned(), (*arg).clone()));
            }
            (None, some) => owners.extend(
                some.iter().map(|(command, arg)| (format!("{name} {}", command.get_name()), (*arg).clone())),
            ),
        }
    }
    owners
}

/// The argument of that name, as in `--jobs` or `-j`, that the help of a verb shows, by this name or another.
fn shown<'a>(command: &'a Command, flag: &str) -> Option<&'a Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set()).find(|arg| {
        if let Some(long) = flag.strip_prefix("--") {
            return arg.get_long() == Some(long)
                || arg.get_all_aliases().is_some_and(|names| names.contains(&long));
        }
        let aliases = arg.get_all_short_aliases().unwrap_or_default();
        arg.get_short().into_iter().chain(aliases).any(|short| flag == format!("-{short}"))
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn errors_of_clap_fit_on_one_line() {
        let error =
            |line: &str| one_line(&Cli::read(line.split(' ').map(OsString::from).collect()).unwrap_err());
        assert_eq!(
            error("ralph biuld"),
            "unrecognized subcommand 'biuld'; a similar subcommand exists: 'build'; see 'ralph --help'"
        );
        for (line, expected) in [
            ("ralph stauts", "unrecognized subcommand 'stauts'; a similar subcommand exists: 'status'; see"),
            ("ralph zzz", "unrecognized subcommand 'zzz'; see 'ralph --help'"),
            ("ralph task lsit", "unrecognized subcommand 'lsit'; a similar subcommand exists: 'list'; see"),
            ("ralph build --yolo", "unexpected argument '--yolo' found; see 'ralph build --help'"),
            (
                "ralph build --tiemout 5m",
                "unexpected argument '--tiemout' found; a similar argument exists: '--timeout'; see",
            ),
        ] {
            assert!(error(line).starts_with(expected), "{line}: {}", error(line));
        }
        for line in ["ralph", "ralph --quiet", "ralph 3", "ralph --timeout 5m 3"] {
            assert!(error(line).starts_with("no mode given"), "{line}");
        }
        assert!(error("ralph --versoin").contains("'--version'"));
        let missing = error("ralph prompt");
        assert!(missing.ends_with("<FILE [N]>...; see 'ralph prompt --help'"), "{missing}");
        assert!(error("ralph build --jsn").contains("'--json'"));
        let lacks_value = error("ralph feature create x --max-cost");
        assert!(
            lacks_value.ends_with("none was supplied; see 'ralph feature create --help'"),
            "{lacks_value}"
        );
        assert_eq!(error("ralph task"), "no verb given: 'ralph task --help' lists them");
        assert_eq!(error("ralph task deps"), "no verb given: 'ralph task deps --help' lists them");
        assert!(error("ralph task deps ad").ends_with("see 'ralph task deps --help'"));
        assert!(error("ralph loop build --jsn").ends_with("see 'ralph loop build --help'"));
    }

    #[test]
    fn a_flag_of_another_verb_says_whose_it_is() {
        let error =
            |line: &str| one_line(&Cli::read(line.split(' ').map(OsString::from).collect()).unwrap_err());
        let told = "--sequential belongs to 'ralph loop build': leave it out, or use that verb; see 'ralph build --help'";
        for line in ["ralph build --sequential", "ralph --sequential build"] {
            assert_eq!(error(line), told, "{line}");
        }
        for line in ["ralph plan -j3", "ralph plan --jobs=3", "ralph --jobs 3 plan"] {
            assert!(
                error(line).contains(" belongs to 'ralph run', 'ralph loop build', 'ralph demo':"),
                "{line}"
            );
        }
        assert!(error("ralph --jobs 3").ends_with("; see 'ralph --help'"));
        assert!(error("ralph build --unlimited").starts_with("--unlimited belongs to 'ralph loop':"));
        assert!(error("ralph send --json x").contains(" more: leave it out"));
        for line in [
            "ralph build --limit 5",
            "ralph plan --max 5",
            "ralph prompt p.md -m 5",
            "ralph resume build -m 5",
            "ralph loop build --limit 5",
            "ralph loop plan --limit 5",
        ] {
            assert!(error(line).contains("calls it --max-iterations"), "{line}");
        }
        assert!(error("ralph build --nonsense").starts_with("unexpected argument"));
    }

    #[test]
    fn verbs_of_other_programs_suggest_what_is_meant() {
        for (word, meant) in [("stop", "ralph cancel"), ("start", "ralph resume")] {
            let line = ["ralph", word, "x"].map(OsString::from).to_vec();
            let error = one_line(&Cli::read(line).unwrap_err());
            assert!(error.starts_with(&format!("there is no 'ralph {word}': ")), "{error}");
            assert!(error.contains(meant) && error.ends_with("; see 'ralph --help'"), "{error}");
        }
    }
}
