//! From the words of the command line to a [`Cli`].

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _};

use super::layout::laid_out;
use super::setting_flags::defaults_of;
use super::{Cli, Command, user_args};
use crate::settings::Verb;

impl Cli {
    /// Reads the command line. Options and the number may also stand in front of the verb.
    ///
    /// # Errors
    /// What clap says, including its "errors" for `--help` and `--version`.
    pub fn read(mut argv: Vec<OsString>) -> Result<Self, clap::Error> {
        help_first(&mut argv);
        let mut definition = Self::command();
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
                return Self::of_words(&mut definition, &argv);
            }
            if !has_verbs_of_its_own {
                number_by_flag(&mut argv, 2);
                return Self::parse_words(&mut definition, argv);
            }
            let mut options_at = 2;
            if let Some(at) = verb_at(&argv[1..]) {
                let verb = argv.remove(at + 1);
                argv.insert(2, verb);
                options_at = 3;
            }
            number_by_flag(&mut argv, options_at);
            return Self::of_words(&mut definition, &argv);
        }
        Self::of_words(&mut definition, &argv).map_err(|error| {
            let is_all = error.use_stderr() && Self::lacks_only_a_verb(&mut definition, &argv);
            if is_all { missing_verb(&mut definition) } else { error }
        })
    }

    /// The definition with the arguments of all verbs; [`CommandFactory::command`] defines them when they are asked for.
    #[must_use]
    pub fn whole() -> clap::Command {
        let mut definition = Self::command();
        definition.build();
        definition
    }

    /// The definition with all that help says. What holds without a flag depends on the verb, and takes as long to
    /// find out as all the rest.
    #[must_use]
    pub fn documented() -> clap::Command {
        with_defaults(Self::whole(), "")
    }

    /// What `ralph -h` prints, in colour.
    #[must_use]
    pub fn short_help() -> String {
        laid_out(Self::command()).render_help().ansi().to_string()
    }

    /// Reads a command line as clap does, with help that fits the terminal; that is made only where it is wanted.
    fn of_words(definition: &mut clap::Command, argv: &[OsString]) -> Result<Self, clap::Error> {
        match Self::matched(definition, argv) {
            Err(error) if error.kind() == ErrorKind::DisplayHelp => {
                Self::matched(&mut laid_out(Self::documented()), argv)
            }
            read => read.map_err(|error| with_usage(error, definition, argv)),
        }
    }

    fn matched(definition: &mut clap::Command, argv: &[OsString]) -> Result<Self, clap::Error> {
        let mut matches = definition.try_get_matches_from_mut(argv)?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(definition))
    }

    /// Whether there are options, and they would be good ones with a verb before them.
    fn lacks_only_a_verb(definition: &mut clap::Command, argv: &[OsString]) -> bool {
        let mut with_verb = argv.to_vec();
        with_verb.insert(1.min(argv.len()), "build".into());
        argv.len() > 1 && Self::matched(definition, &with_verb).is_ok()
    }

    /// Reads a command line whose verb comes first. The arguments for a RALPH.md are not for clap: their
    /// names are unknown before the file is read.
    fn parse_words(definition: &mut clap::Command, mut argv: Vec<OsString>) -> Result<Self, clap::Error> {
        let verb =
            definition.find_subcommand("run").filter(|_| argv.get(1).is_some_and(|verb| verb == "run"));
        let Some(mut verb) = verb.cloned() else { return Self::of_words(definition, &argv) };
        verb.build();
        let words = argv.split_off(2);
        let split = user_args::split(&verb, words.clone())
            .map_err(|message| clap::Error::raw(ErrorKind::InvalidValue, message));
        // What only tasks know is a RALPH.md's own business.
        let read = split.and_then(|(own, user_args)| {
            let mut cli = Self::of_words(definition, &[&argv[..], &own].concat())?;
            if let Command::Run(args) = &mut cli.command {
                (args.user_args, args.is_ralph_md) = (user_args, true);
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
        match (Self::of_words(definition, &[&argv[..], &words].concat()), read) {
            (Err(_), Err(error)) if !names_tasks() => Err(error),
            (cli, _) => cli,
        }
    }
}

/// Makes `help task add` of `task help add`, wherever verbs have verbs of their own.
fn help_first(argv: &mut [OsString]) {
    if argv.iter().all(|word| word != "help") {
        return;
    }
    let root = Cli::whole();
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

/// The error with the usage of its verb: for a value that is wrong or missing, clap names none.
fn with_usage(mut error: clap::Error, definition: &mut clap::Command, argv: &[OsString]) -> clap::Error {
    if !error.use_stderr() || error.get(ContextKind::Usage).is_some() {
        return error;
    }
    let mut verb = definition;
    for word in &argv[1..] {
        if verb.find_subcommand(word).is_none() {
            break;
        }
        verb = verb.find_subcommand_mut(word).expect("it was there just now");
    }
    error.insert(ContextKind::Usage, ContextValue::StyledStr(verb.render_usage()));
    error
}

/// clap's own error for a command that only has verbs.
fn missing_verb(definition: &mut clap::Command) -> clap::Error {
    let error = Cli::matched(definition, &["ralph".into()]).err();
    error.unwrap_or_else(|| definition.error(ErrorKind::MissingSubcommand, "no mode given"))
}

/// The verbs below a command, their flags with what holds without them.
fn with_defaults(command: clap::Command, above: &str) -> clap::Command {
    command.mut_subcommands(|verb| {
        let words = format!("{above}{}", verb.get_name());
        let of_loops = match &*words {
            "feature spec" | "feature plan" | "feature build" | "feature create" | "task create" => {
                Some(Verb::Feature)
            }
            words => Verb::ALL.into_iter().find(|verb| verb.words() == words),
        };
        let verb = match of_loops {
            Some(of_loops) => verb.mut_args(defaults_of(of_loops)),
            None => verb,
        };
        with_defaults(verb, &format!("{words} "))
    })
}

/// The verbs that have the number of iterations as a flag only; the others take the word itself.
const NUMBER_BY_FLAG: [&str; 3] = ["loop", "run", "spawn"];

/// Gives a bare number its flag, where the verb has none that stands alone. For a RALPH.md, numbers behind it are values of its
/// own; for a run over tasks, a number that stands there alone is what it is about.
fn number_by_flag(argv: &mut [OsString], options_at: usize) {
    let Some(verb) = argv.get(1).and_then(|verb| NUMBER_BY_FLAG.into_iter().find(|known| verb == known))
    else {
        return;
    };
    let is_number = |at: &usize| {
        argv[*at]
            .to_str()
            .is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if !(options_at..argv.len()).any(|at| is_number(&at)) {
        return;
    }
    let bare = bare_words(argv, options_at);
    let target = bare.iter().copied().find(|at| !is_number(at));
    let is_about_all = argv.iter().any(|word| word == "--all");
    let numbers: Vec<usize> = match target {
        Some(target) if verb == "run" && user_args::is_path(argv[target].as_ref()) => {
            bare.into_iter().filter(|at| *at < target && is_number(at)).collect()
        }
        None if verb == "run" && !is_about_all => Vec::new(),
        _ => bare.into_iter().filter(is_number).collect(),
    };
    for at in numbers {
        let mut word = OsString::from("--max-iterations=");
        word.push(&argv[at]);
        argv[at] = word;
    }
}

/// Where words stand from here on that are neither options nor their values.
fn bare_words(argv: &[OsString], from: usize) -> Vec<usize> {
    let with_value = options_with_value();
    let mut is_value = false;
    let mut bare = Vec::new();
    for (at, arg) in argv.iter().enumerate().skip(from) {
        let text = arg.to_string_lossy();
        if std::mem::take(&mut is_value) {
            continue;
        }
        match &*text {
            "--" => break,
            text if text.starts_with('-') => is_value = with_value.iter().any(|option| option == text),
            _ => bare.push(at),
        }
    }
    bare
}

/// The options of all verbs that have a value.
fn options_with_value() -> Vec<String> {
    let root = Cli::whole();
    let verbs = root.get_subcommands().flat_map(|verb| std::iter::once(verb).chain(verb.get_subcommands()));
    verbs
        .flat_map(clap::Command::get_arguments)
        .filter(|arg| arg.get_action().takes_values())
        .flat_map(|arg| {
            let long = arg.get_long().into_iter().chain(arg.get_all_aliases().unwrap_or_default());
            let short = arg.get_short().into_iter().chain(arg.get_all_short_aliases().unwrap_or_default());
            let short = short.map(|short| format!("-{short}")).collect::<Vec<_>>();
            long.map(|long| format!("--{long}")).chain(short)
        })
        .collect()
}

/// Where the verb stands: options, their values and the number may stand before it.
fn verb_at(argv: &[OsString]) -> Option<usize> {
    let is_word = |text: &str| !text.starts_with('-') && text.parse::<i64>().is_err();
    let first = argv.iter().skip(1).position(|arg| arg.to_str().is_some_and(is_word))? + 1;
    if first == 1 {
        return Some(first);
    }
    let with_value = options_with_value();
    let mut is_value = false;
    for (at, arg) in argv.iter().enumerate().skip(1) {
        let Some(text) = arg.to_str() else { continue };
        if is_value {
            is_value = false;
        } else if text == "--" {
            return None;
        } else if text.starts_with('-') {
            is_value = with_value.iter().any(|option| option == text);
        } else if is_word(text) {
            return Some(at);
        }
    }
    None
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
        Cli::whole().debug_assert();
    }

    #[test]
    fn the_verb_may_stand_behind_its_options() {
        for line in [
            "ralph --agent codex 3 build --json",
            "ralph 3 --agent codex build",
            "ralph --config plan build",
            "ralph --config=x build",
        ] {
            assert_eq!(verb(line).as_deref(), Some("build"), "{line}");
            assert!(Cli::read(line.split(' ').map(OsString::from).collect()).is_ok(), "{line}");
        }
        for line in
            ["ralph --jobs 3 loop -m 2 build", "ralph loop --agent codex build", "ralph -t 5m loop plan"]
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
    fn a_bare_number_is_the_flag_of_verbs_that_have_one_only() {
        for (line, expected) in [
            ("ralph loop 5", "ralph loop --max-iterations=5"),
            ("ralph loop build 5 a", "ralph loop build --max-iterations=5 a"),
            ("ralph loop plan --timeout 5 7", "ralph loop plan --timeout 5 --max-iterations=7"),
            ("ralph run t-1 5", "ralph run t-1 --max-iterations=5"),
            ("ralph run --all 5", "ralph run --all --max-iterations=5"),
            ("ralph run --all --limit 5", "ralph run --all --limit 5"),
            ("ralph run 5", "ralph run 5"),
            ("ralph run 5 fix/RALPH.md 7", "ralph run --max-iterations=5 fix/RALPH.md 7"),
            ("ralph spawn 5 -- sleep 7", "ralph spawn --max-iterations=5 -- sleep 7"),
            ("ralph build 5", "ralph build 5"),
        ] {
            let mut argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let options_at = if line.starts_with("ralph loop ") && !line.ends_with("loop 5") { 3 } else { 2 };
            number_by_flag(&mut argv, options_at);
            assert_eq!(argv.join(" ".as_ref()), expected);
        }
        for line in [
            "ralph 5 loop build",
            "ralph loop 5",
            "ralph build -n 5",
            "ralph prompt p.md --max-iterations 5",
            "ralph run --limit 5",
        ] {
            assert!(Cli::read(line.split(' ').map(OsString::from).collect()).is_ok(), "{line}");
        }
    }
}
