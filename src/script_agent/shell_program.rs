//! The one kind of requirement the scripted agent can build: `PROGRAM.sh WORD…` prints `TEXT`.
//!
//! A word in capitals stands for any value, in the text as well. Such a requirement becomes a few lines of a shell
//! script and a line of a script that checks it.

use regex::{Captures, Regex};

/// The first lines of every script we write; without them a script is somebody else's and is left alone.
pub(super) const MARK: &str =
    "#!/bin/sh\n# Grown by ralph's scripted agent, one requirement of the specs at a time.\n";

/// What follows `MARK` in the script that checks the requirements.
pub(super) const CHECKS: &str = r#"# Exit code 0: every requirement holds.
cd "$(dirname "$0")" || exit 1

check() {
  expected=$1
  shift
  actual=$(sh "$@" 2>&1)
  if [ "$actual" = "$expected" ]; then
    echo "ok: $*"
  else
    echo "FAILED: $*: expected '$expected', got '$actual'"
    exit 1
  fi
}

"#;

/// Values for the words in capitals, when a requirement is checked.
const SAMPLES: [&str; 3] = ["Ada", "Grace", "Linus"];

/// A requirement that can be built.
#[derive(Debug)]
pub(super) struct Program {
    /// The script's file name, in the project root.
    pub(super) file: String,
    words: Vec<Word>,
    output: String,
}

#[derive(Debug)]
enum Word {
    Literal(String),
    Any(String),
}

impl Program {
    /// Finds the program in a requirement's text; `None` when it is about something else.
    pub(super) fn find(requirement: &str) -> Option<Self> {
        let shape = r"`(?:sh )?(?:\./)?([A-Za-z0-9_-]+\.sh)((?: [^`]*)?)` prints `([^`]+)`";
        let found = Regex::new(shape).ok()?.captures(requirement)?;
        let capitals = Regex::new(r"^[A-Z][A-Z0-9_]*$").ok()?;
        let word =
            |word: String| if capitals.is_match(&word) { Word::Any(word) } else { Word::Literal(word) };
        let words: Vec<Word> = shlex::split(&found[2])?.into_iter().map(word).collect();
        // Ten arguments would need another notation, and nobody wants them.
        let buildable = words.len() < 10 && &found[1] != "check.sh";
        buildable.then(|| Self { file: found[1].to_owned(), words, output: found[3].to_owned() })
    }

    /// The lines of the script that fulfil this requirement.
    pub(super) fn lines(&self, title: &str) -> String {
        let mut tests = vec![format!("[ $# -eq {} ]", self.words.len())];
        tests.extend((1..).zip(&self.words).map(|(number, word)| match word {
            Word::Literal(text) => format!("[ \"${number}\" = {} ]", quoted(text)),
            // An option is never a value.
            Word::Any(_) => format!("[ \"${{{number}#-}}\" = \"${number}\" ]"),
        }));
        let test = tests.join(" && ");
        let mut printed = vec![];
        let escaped = self.output.replace('\\', r"\\").replace('%', "%%").replace('\'', r"'\''");
        let format = self.with_values(&escaped, |index| {
            printed.push(format!(" \"${}\"", index + 1));
            "%s".to_owned()
        });
        format!("\n# {title}\nif {test}; then\n  printf '{format}\\n'{}\n  exit 0\nfi\n", printed.concat())
    }

    /// The line of the checking script that proves this requirement.
    pub(super) fn check(&self) -> String {
        let sample = |index: usize| SAMPLES[index % SAMPLES.len()].to_owned();
        let expected = self.with_values(&self.output, sample);
        let mut line = format!("check {} {}", quoted(&expected), self.file);
        for (index, word) in self.words.iter().enumerate() {
            line.push(' ');
            line += &match word {
                Word::Literal(text) => quoted(text),
                Word::Any(_) => sample(index),
            };
        }
        line + "\n"
    }

    /// `text` with every word in capitals that is an argument replaced by `value` of its index.
    fn with_values(&self, text: &str, mut value: impl FnMut(usize) -> String) -> String {
        let Ok(capitals) = Regex::new(r"\b[A-Z][A-Z0-9_]*\b") else { return text.to_owned() };
        let replaced = capitals.replace_all(text, |found: &Captures| {
            let is_it = |word: &Word| matches!(word, Word::Any(name) if *name == found[0]);
            self.words.iter().position(is_it).map_or_else(|| found[0].to_owned(), &mut value)
        });
        replaced.into_owned()
    }
}

/// `text` in single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_becomes_lines_and_a_check() {
        let program =
            Program::find("Loud: `./greet.sh --loud NAME` prints `HEY, NAME! 100% \\o/ it's NAME`").unwrap();
        let lines = program.lines("Loud");
        assert_eq!(
            lines,
            r#"
# Loud
if [ $# -eq 2 ] && [ "$1" = '--loud' ] && [ "${2#-}" = "$2" ]; then
  printf 'HEY, %s! 100%% \\o/ it'\''s %s\n' "$2" "$2"
  exit 0
fi
"#
        );
        assert_eq!(program.check(), "check 'HEY, Grace! 100% \\o/ it'\\''s Grace' greet.sh '--loud' Grace\n");
    }

    #[test]
    fn other_requirements_are_not_understood() {
        for text in [
            "Be fast",
            "`greet.sh` is small",
            "`../x.sh` prints `y`",
            "`check.sh` prints `ok`",
            "`a.sh '` prints `b`",
        ] {
            assert!(Program::find(text).is_none(), "{text}");
        }
    }
}
