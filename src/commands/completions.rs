//! `ralph completions`: the script for a shell; and the hidden verb with which bash, fish and zsh request candidates.
//!
//! Names of loops change at any time, so these scripts contain none: each Tab runs ralph. The shell completes files, because it
//! can quote them.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};

use super::output::print;
use super::{guide, task};
use crate::cli::{Cli, GraphArgs};
use crate::graph::Selection;
use crate::job::workspace::locate;
use crate::presets;
use crate::process::programs::find_program;
use crate::record::lookup::{self, Loop};
use crate::record::state_read::Extent;
use crate::text::line::escaped;
use crate::text::terminal::message;

/// The hidden verb of the scripts: `ralph __complete INDEX WORD...`, INDEX being that of the word at the cursor. It prints a line
/// for each candidate, with its description after a tab.
pub const VERB: &str = "__complete";

/// The most ids of tasks.
const MOST_TASKS: usize = 500;
/// In place of a word: the shell completes names of files.
const FILES: &str = ":files";
const NAME: &str = "ralph";

/// Readline inserts candidates as they are, unless they are names of files: they are quoted here, by the open quote before the
/// cursor.
const BASH: &str = r#"_ralph() {
    local line has_files=
    local quote=${COMP_WORDS[COMP_CWORD]%"$2"}
    local -a words=("${COMP_WORDS[@]}")
    COMPREPLY=()
    case $quote in
        '') words[COMP_CWORD]=${2//\\/} ;;
        \' | \") words[COMP_CWORD]=$2 ;;
        =) quote= ;;
        *) return ;;
    esac
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            has_files=1
        else
            COMPREPLY+=("${line%%$'\t'*}")
        fi
    done < <(RALPH __complete "$COMP_CWORD" "${words[@]}" 2>/dev/null)
    if [[ $has_files ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$2")
        return
    fi
    words=("${COMPREPLY[@]}")
    COMPREPLY=()
    for line in "${words[@]}"; do
        case $quote in
            '') printf -v line %q "$line" ;;
            \') [[ $line != *\'* ]] || continue ;;
            *) [[ $line != *[\"\$\`\\!]* ]] || continue ;;
        esac
        COMPREPLY+=("$line")
    done
}
complete -F _ralph ralph
"#;

const FISH: &str = r#"function __ralph_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l word (commandline --current-token --cut-at-cursor)
    set -l meant (string replace --regex -- '^["\']' '' "$word" | string unescape)
    for line in (RALPH __complete (count $words) $words "$meant" 2>/dev/null)
        if test "$line" = :files
            set -l flag (string match --regex -- '^-[^=]*=' "$word")
            __fish_complete_path (string replace --regex -- '^-[^=]*=' '' "$word") | string replace --regex -- '^' "$flag"
        else
            printf '%s\n' $line
        end
    end
end
complete --command ralph --no-files --keep-order --arguments '(__ralph_complete)'
"#;

const ZSH: &str = r#"#compdef ralph

_ralph() {
    local line
    local -a values
    for line in "${(@f)$(RALPH __complete $((CURRENT - 1)) "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        if [[ $line == :files ]]; then
            compset -P '-*='
            _files
        elif [[ -n $line ]]; then
            values+=("${${${line%%$'\t'*}//\\/\\\\}//:/\\:}:${line#*$'\t'}")
        fi
    done
    (( $#values )) && _describe -V ralph values
}

if [[ $funcstack[1] == _ralph ]]; then
    _ralph "$@"
else
    compdef _ralph ralph
fi
"#;

/// `ralph completions`.
pub(super) fn script(shell: Shell) -> anyhow::Result<u8> {
    let script = match shell {
        Shell::Bash => BASH,
        Shell::Fish => FISH,
        Shell::Zsh => ZSH,
        // These scripts do not run ralph, and know no loops.
        shell => {
            return print(|out| {
                clap_complete::generate(shell, &mut Cli::documented(), NAME, out);
                Ok(())
            });
        }
    };
    print(|out| std::io::Write::write_all(out, script.replace("RALPH", &program()).as_bytes()))
}

/// How a shell calls ralph from any folder: by name, or by its path if it is not on PATH.
fn program() -> String {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let exe = std::env::current_exe().ok().filter(|_| find_program(NAME, &search_path).is_none());
    let exe = exe.and_then(|exe| exe.into_os_string().into_string().ok());
    exe.and_then(|exe| Some(shlex::try_quote(&exe).ok()?.into_owned())).unwrap_or_else(|| NAME.to_owned())
}

/// The hidden verb, and its exit code. It prints no messages: without candidates it prints nothing.
#[must_use]
pub fn answer(rest: &[OsString]) -> i32 {
    let Some((index, words)) = rest.split_first() else { return 1 };
    let Some(index) = index.to_str().and_then(|index| index.parse().ok()) else { return 1 };
    let words = at_cursor(words, index);
    let Some((current, _)) = words.split_last() else { return 1 };
    let mut text = String::new();
    for candidate in candidates(&words, current) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{candidate}");
    }
    i32::from(print(|out| std::io::Write::write_all(out, text.as_bytes())).is_err())
}

/// The words up to the one at the cursor. Bash splits `--agent=co` into three words; the middle one is left out.
fn at_cursor(words: &[OsString], index: usize) -> Vec<OsString> {
    let mut up_to: Vec<OsString> = Vec::new();
    for (at, word) in words.iter().enumerate().take(index + 1) {
        let is_flag = up_to.last().is_some_and(|last| last.to_string_lossy().starts_with("--"));
        match word == "=" && is_flag {
            true if at == index => up_to.push(OsString::new()),
            true => {}
            false => up_to.push(word.clone()),
        }
    }
    if words.len() <= index {
        up_to.push(OsString::new());
    }
    up_to
}

/// The candidates for the last word, each with its description after a tab. Options only if the word begins with a dash, or if
/// nothing else is possible.
fn candidates(words: &[OsString], current: &OsStr) -> Vec<String> {
    let mut definition = with_completers(Cli::documented(), &[]);
    let found = complete(&mut definition, words.to_vec(), words.len() - 1, None).unwrap_or_default();
    let is_option =
        |candidate: &CompletionCandidate| candidate.get_value().to_string_lossy().starts_with('-');
    let wants_options = current.to_string_lossy().starts_with('-') || found.iter().all(is_option);
    let wanted = found.iter().filter(|candidate| wants_options || !is_option(candidate));
    wanted.map(line).collect()
}

fn line(candidate: &CompletionCandidate) -> String {
    let value = candidate.get_value().to_string_lossy();
    if value.ends_with(FILES) {
        return FILES.to_owned();
    }
    let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
    format!("{value}\t{}", help.lines().next().unwrap_or_default())
}

/// The command with candidates for the values of its arguments, and of its verbs.
fn with_completers(command: Command, above: &[&str]) -> Command {
    let name = command.get_name().to_owned();
    let path = [above, &[name.as_str()]].concat();
    command.mut_args(|arg| with_completer(arg, &path)).mut_subcommands(|verb| with_completers(verb, &path))
}

/// Adds the candidates of a verb; `path` is `ralph`, `status`.
fn with_completer(arg: Arg, path: &[&str]) -> Arg {
    let completer = match (path, arg.get_id().as_str()) {
        (_, "agent.provider") | ([_, "init"], "agent") => ArgValueCompleter::new(agents),
        (
            [_, "attach" | "interrupt" | "kill" | "peek" | "send" | "wait"],
            "name" | "names" | "name_and_text",
        ) => ArgValueCompleter::new(|word: &OsStr| loops(word, &|found| is_worker(found))),
        ([_, verb], "name" | "name_and_text") if arg.is_positional() && *verb != "init" => {
            ArgValueCompleter::new(|word: &OsStr| loops(word, &|_| true))
        }
        ([_, "report" | "replay"], "target") => ArgValueCompleter::new(|word: &OsStr| loops(word, &|_| true)),
        ([_, "run"], "target") => ArgValueCompleter::new(targets),
        ([_, "help"], _) => ArgValueCompleter::new(words_of_help),
        ([_, "feature", _], "name") | (_, "feature") => ArgValueCompleter::new(features),
        ([_, "task", ..], "id" | "blocker" | "blocked" | "parent" | "after") | ([_, "journal"], "task") => {
            ArgValueCompleter::new(tasks)
        }
        ([_, "prompt"], _) if arg.is_positional() => ArgValueCompleter::new(files),
        _ if matches!(arg.get_value_hint(), ValueHint::AnyPath) => ArgValueCompleter::new(files),
        _ => return arg,
    };
    arg.add(completer)
}

fn agents(word: &OsStr) -> Vec<CompletionCandidate> {
    beginning(word, presets::names().into_iter().map(str::to_owned))
}

fn files(_: &OsStr) -> Vec<CompletionCandidate> {
    vec![CompletionCandidate::new(FILES)]
}

/// Loops of this project, or of the whole machine if it has none.
fn loops(word: &OsStr, is_meant: &dyn Fn(&Loop) -> bool) -> Vec<CompletionCandidate> {
    let Ok(here) = locate(None) else { return Vec::new() };
    let names = |loops: Vec<Loop>| {
        let names = loops.into_iter().filter(|found| is_meant(found)).map(|found| found.name);
        beginning(word, names)
    };
    let near = names(lookup::of_project(&here, Extent::Head));
    if near.is_empty() { names(lookup::of_machine(&here, Extent::Head)) } else { near }
}

/// Targets of `run`: a RALPH.md or its folder, a feature, a task, a worker.
fn targets(word: &OsStr) -> Vec<CompletionCandidate> {
    let workers = loops(word, &|found| is_worker(found));
    // Without a beginning, ids would hide the files.
    let tasks = if word.is_empty() { Vec::new() } else { tasks(word) };
    features(word).into_iter().chain(tasks).chain(workers).chain(files(word)).collect()
}

/// Features, each with its state.
fn features(word: &OsStr) -> Vec<CompletionCandidate> {
    let found = graph().and_then(|graph| Ok(graph.features()?)).unwrap_or_default();
    let with_word = found.into_iter().map(|feature| (feature.name, feature.status.word().to_owned()));
    explained(word, with_word)
}

/// Ids of tasks, each with its title, in the order of work.
fn tasks(word: &OsStr) -> Vec<CompletionCandidate> {
    let begins = word.to_string_lossy();
    let mut found = Vec::new();
    if let Ok(graph) = graph() {
        // A graph that cannot be read has no candidates.
        let _ = graph.list(&Selection::default(), &mut |task| {
            if task.id.starts_with(&*begins) {
                found.push((task.id, task.title));
            }
            found.len() < MOST_TASKS
        });
    }
    explained(word, found.into_iter())
}

/// The graph of tasks, read-only; an empty one if there is none.
fn graph() -> anyhow::Result<task::Look> {
    task::look(&GraphArgs::default())
}

/// Verbs and pages of the guide.
fn words_of_help(word: &OsStr) -> Vec<CompletionCandidate> {
    let root = Cli::whole();
    let verbs = root.get_subcommands().map(|verb| verb.get_name().to_owned());
    beginning(word, verbs.chain(guide::names().map(str::to_owned)))
}

/// The candidates that begin with the word, each with its description.
fn explained(word: &OsStr, found: impl Iterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let candidate = |(name, about): (String, String)| {
        let [found] = <[_; 1]>::try_from(beginning(word, std::iter::once(name))).ok()?;
        Some(found.help(Some(message(&about).into())))
    };
    found.filter_map(candidate).collect()
}

fn is_worker(found: &Loop) -> bool {
    found.state.as_ref().is_ok_and(|state| state.setup.worker.is_some())
}

/// The candidates that begin with the word, without control and invisible characters, and without those that look like options.
fn beginning(word: &OsStr, names: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    let is_plain = |name: &str| escaped(name) == name && !name.starts_with('-');
    let fits = |name: &String| name.starts_with(&*word) && is_plain(name);
    names.filter(fits).map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(words: &[&str], index: usize) -> Vec<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        at_cursor(&words, index).into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn a_word_that_bash_has_split_is_put_together() {
        assert_eq!(at(&["ralph", "build", "--agent", "=", "co"], 4), ["ralph", "build", "--agent", "co"]);
        assert_eq!(at(&["ralph", "build", "--agent", "="], 3), ["ralph", "build", "--agent", ""]);
        assert_eq!(at(&["ralph", "sta", "build"], 1), ["ralph", "sta"]);
        assert_eq!(at(&["ralph", "status"], 2), ["ralph", "status", ""]);
    }

    fn of(words: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let found = candidates(&words, words.last().unwrap());
        found.into_iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn options_come_where_they_are_asked_for() {
        assert_eq!(of(&["ralph", "bu"]), ["build"]);
        assert!(!of(&["ralph", ""]).iter().any(|word| word.starts_with('-')));
        assert_eq!(of(&["ralph", "loop", "build", "--seq"]), ["--sequential"]);
        assert!(of(&["ralph", "build", ""]).contains(&"--json".to_owned()));
    }

    #[test]
    fn values_are_those_of_their_argument() {
        assert_eq!(of(&["ralph", "build", "--agent", "codex"]), ["codex", "codex-acp"]);
        assert_eq!(of(&["ralph", "init", "--agent", "gem"]), ["gemini", "gemini-acp"]);
        assert_eq!(of(&["ralph", "build", "--agent=scr"]), ["--agent=script"]);
        for words in
            [&["ralph", "prompt", ""][..], &["ralph", "build", "--config", "x"], &["ralph", "run", "f"]]
        {
            assert_eq!(of(words), [FILES], "{words:?}");
        }
        assert_eq!(of(&["ralph", "ls", "--format", ""]), ["table", "json", "names"]);
        assert!(of(&["ralph", "build", "--max-retries", ""]).is_empty());
    }
}
