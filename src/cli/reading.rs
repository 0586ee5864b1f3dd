//! From the words of the command line to a [`Cli`], or to one line that says what is wrong with them.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use super::{Cli, Command, user_args};

impl Cli {
    /// Reads the command line. Options and the number may also stand in front of the verb.
    ///
    /// # Errors
    /// What clap says, including its "errors" for `--help` and `--version`.
    pub fn read(mut argv: Vec<OsString>) -> Result<Self, clap::Error> {
        help_first(&mut argv);
        if let Some(at) = verb_at(&argv) {
            let verb = argv.remove(at);
            let has_verbs_of_its_own = verb == "loop";
            let has_no_number = ["task", "feature", "knowledge"].iter().any(|word| verb == *word);
            argv.insert(1, verb);
            if has_no_number {
                // What stood before it belongs to the verb of its own that follows.
                let before = argv.drain(2..=at).collect::<Vec<_>>();
                let end = argv.iter().position(|word| word == "--").unwrap_or(argv.len());
                argv.splice(end..end, before);
                return Self::try_parse_from(argv);
            }
            if !has_verbs_of_its_own {
                return Self::parse_words(argv);
            }
            match verb_at(&argv[1..]) {
                Some(at) => {
                    let verb = argv.remove(at + 1);
                    argv.insert(2, verb);
                }
                None if Self::lacks_only_a_verb(&argv, 2) => return Err(missing_verb(&["ralph", "loop"])),
                None => {}
            }
            return Self::try_parse_from(argv);
        }
        if Self::lacks_only_a_verb(&argv, 1) {
            return Err(missing_verb(&["ralph"]));
        }
        Self::try_parse_from(argv)
    }

    /// Whether there are options, and they would be good ones with a verb before them.
    fn lacks_only_a_verb(argv: &[OsString], at: usize) -> bool {
        let mut with_verb = argv.to_vec();
        with_verb.insert(argv.len().min(at), "build".into());
        argv.len() > at && Self::try_parse_from(with_verb).is_ok()
    }

    /// Reads a command line whose verb comes first. The arguments for a RALPH.md are not for clap: nobody knows their
    /// names before the file is read.
    fn parse_words(mut argv: Vec<OsString>) -> Result<Self, clap::Error> {
        let root = Self::command();
        let Some(verb) =
            root.find_subcommand("run").filter(|_| argv.get(1).is_some_and(|verb| verb == "run"))
        else {
            return Self::try_parse_from(argv);
        };
        let words = argv.split_off(2);
        let split = user_args::split(verb, words.clone())
            .map_err(|message| clap::Error::raw(ErrorKind::InvalidValue, message));
        // What only tasks know is a RALPH.md's own business.
        let read = split.and_then(|(own, user_args)| {
            let mut cli = Self::try_parse_from([&argv[..], &own].concat())?;
            if let Command::Run(args) = &mut cli.command {
                args.user_args = user_args;
            }
            Ok(cli)
        });
        let target = |cli: &Self| match &cli.command {
            Command::Run(run) => run.target.clone(),
            _ => None,
        };
        if read.as_ref().is_ok_and(|cli| target(cli).is_some_and(|target| user_args::is_path(&target))) {
            return read;
        }
        let names_tasks = || words.iter().any(user_args::is_about_tasks);
        let mut cli = match (Self::try_parse_from([&argv[..], &words].concat()), read) {
            (Ok(cli), _) => cli,
            (Err(_), Err(error)) if !names_tasks() => return Err(error),
            (Err(error), _) => return Err(error),
        };
        if let Command::Run(args) = &mut cli.command {
            args.is_over_tasks = true;
        }
        Ok(cli)
    }
}

/// Makes `help task add` of `task help add`, wherever verbs have verbs of their own.
fn help_first(argv: &mut [OsString]) {
    let root = Cli::command();
    let mut above = &root;
    for at in 1..argv.len() {
        if argv[at] == "help" {
            return argv[1..=at].rotate_right(1);
        }
        match above.find_subcommand(&argv[at]).filter(|verb| verb.has_subcommands()) {
            Some(verb) => above = verb,
            None => return,
        }
    }
}

/// clap's own error for a command that only has verbs.
fn missing_verb(command: &[&str]) -> clap::Error {
    let error = Cli::try_parse_from(command).err();
    error.unwrap_or_else(|| Cli::command().error(ErrorKind::MissingSubcommand, "no mode given"))
}

/// Where the verb stands: options, their values and the number may stand before it.
fn verb_at(argv: &[OsString]) -> Option<usize> {
    let root = Cli::command();
    let verbs = root.get_subcommands().flat_map(|verb| std::iter::once(verb).chain(verb.get_subcommands()));
    let with_value: Vec<String> = verbs
        .flat_map(clap::Command::get_arguments)
        .filter(|arg| arg.get_action().takes_values())
        .flat_map(|arg| {
            let long = arg.get_long_and_visible_aliases().unwrap_or_default();
            let short = arg.get_short().map(|short| format!("-{short}"));
            long.into_iter().map(|long| format!("--{long}")).chain(short)
        })
        .collect();

    let mut is_value = false;
    for (at, arg) in argv.iter().enumerate().skip(1) {
        let Some(text) = arg.to_str() else { continue };
        if is_value {
            is_value = false;
        } else if text == "--" {
            return None;
        } else if text.starts_with('-') {
            is_value = with_value.iter().any(|option| option == text);
        } else if text.parse::<i64>().is_err() {
            return Some(at);
        }
    }
    None
}

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
            ["loop"] => {
                "no verb given: use 'ralph loop plan' or 'ralph loop build', see 'ralph loop --help'".into()
            }
            verbs => format!("no verb given: 'ralph {} --help' lists them", verbs.join(" ")),
        };
    }
    let text = error.render().to_string();
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
    let help: Vec<&str> = verbs_of_usage(&text).into_iter().chain(["--help"]).collect();
    format!("{}; see 'ralph {}'", line.strip_prefix("error: ").unwrap_or(&line), help.join(" "))
}

/// The verbs in "Usage: ralph loop build [OPTIONS] [N]": they tell whose help is wanted.
fn verbs_of_usage(text: &str) -> Vec<&str> {
    let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage: ralph ")).unwrap_or_default();
    let is_verb = |word: &&str| !word.is_empty() && word.chars().all(|char| char.is_ascii_lowercase());
    usage.split(' ').take_while(is_verb).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The word that is taken for the verb.
    fn verb(line: &str) -> Option<String> {
        let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        verb_at(&argv).map(|at| argv[at].clone().into_string().unwrap())
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_verb_may_stand_behind_its_options() {
        for line in
            ["ralph --agent codex 3 build --json", "ralph --config plan build", "ralph --config=x build"]
        {
            assert_eq!(verb(line).as_deref(), Some("build"), "{line}");
            assert!(Cli::read(line.split(' ').map(OsString::from).collect()).is_ok(), "{line}");
        }
        for line in
            ["ralph --jobs 3 loop -m 2 build", "ralph loop --provider codex build", "ralph -t 5m loop plan"]
        {
            assert_eq!(verb(line).as_deref(), Some("loop"), "{line}");
            assert!(Cli::read(line.split(' ').map(OsString::from).collect()).is_ok(), "{line}");
        }
        for line in ["ralph --ralph-dir task task add title", "ralph --json --ralph-dir x task deps add a b"]
        {
            let read = Cli::read(line.split(' ').map(OsString::from).collect());
            assert!(matches!(read, Ok(Cli { command: Command::Task { .. } })), "{line}: {read:?}");
        }
        let read = Cli::read("ralph --json task add -- --title".split(' ').map(OsString::from).collect());
        assert!(read.is_ok(), "{read:?}");
        assert_eq!((verb("ralph --help"), verb("ralph 3"), verb("ralph -- build")), (None, None, None));
    }

    #[test]
    fn errors_of_clap_fit_on_one_line() {
        let error =
            |line: &str| one_line(&Cli::read(line.split(' ').map(OsString::from).collect()).unwrap_err());
        assert_eq!(
            error("ralph biuld"),
            "unrecognized subcommand 'biuld'; a similar subcommand exists: 'build'; see 'ralph --help'"
        );
        for line in ["ralph", "ralph --quiet", "ralph 3", "ralph --timeout 5m 3"] {
            assert!(error(line).starts_with("no mode given"), "{line}");
        }
        assert!(error("ralph --versoin").contains("'--version'"));
        let missing = error("ralph prompt");
        assert!(missing.ends_with("<FILE [N]>...; see 'ralph prompt --help'"), "{missing}");
        assert!(error("ralph build --jsn").contains("'--json'"));
        for line in ["ralph loop", "ralph loop --quiet", "ralph --jobs 2 loop"] {
            assert!(error(line).starts_with("no verb given"), "{line}");
        }
        assert_eq!(error("ralph task"), "no verb given: 'ralph task --help' lists them");
        assert_eq!(error("ralph task deps"), "no verb given: 'ralph task deps --help' lists them");
        assert!(error("ralph task deps ad").ends_with("see 'ralph task deps --help'"));
        assert!(error("ralph loop build --jsn").ends_with("see 'ralph loop build --help'"));
    }
}
