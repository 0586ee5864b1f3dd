//! The one kind of requirement that the scripted agent can build: `` `PROGRAM.sh WORD…` prints `TEXT` ``.
//!
//! A word in capitals stands for any value, in the text as well. Such a requirement becomes a few lines of a shell
//! script and a line of a script that checks it.

use regex::{NoExpand, Regex};

/// The first lines of every script that we write; a script without them is the user's and is left alone.
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

/// A requirement that can be built.
#[derive(Debug)]
pub(super) struct Program {
    /// The script's file name, in the project root.
    pub(super) file: String,
    words: Vec<String>,
    output: String,
}

impl Program {
    /// Finds the program in a requirement's text; `None` when it is about something else.
    pub(super) fn find(requirement: &str) -> Option<Self> {
        // No character that a shell reads between double quotes, and no tenth word: `$10` is another notation.
        let shape = r#"`(?:sh )?(?:\./)?([\w-]+\.sh)((?: [\w-]+){0,9})` prints `([^`"$\\]+)`"#;
        let found = Regex::new(shape).ok()?.captures(requirement)?;
        let words = found[2].split_whitespace().map(str::to_owned).collect();
        let is_ours = &found[1] == "check.sh";
        (!is_ours).then(|| Self { file: found[1].to_owned(), words, output: found[3].to_owned() })
    }

    /// The lines of the script that fulfil this requirement.
    pub(super) fn lines(&self, title: &str) -> String {
        let mut tests = vec![format!("[ $# -eq {} ]", self.words.len())];
        let mut output = self.output.clone();
        for (number, word) in (1..).zip(&self.words) {
            let has_capitals = word.starts_with(|first: char| first.is_ascii_uppercase());
            if !has_capitals || word.contains(char::is_lowercase) {
                tests.push(format!("[ \"${number}\" = {word} ]"));
                continue;
            }
            // An option is never a value.
            tests.push(format!("[ \"${{{number}#-}}\" = \"${number}\" ]"));
            // A word is nothing but letters, digits, `_` and `-`: no other pattern can come of it.
            if let Ok(name) = Regex::new(&format!(r"\b{word}\b")) {
                let value = format!("${{{number}}}");
                output = name.replace_all(&output, NoExpand(&value)).into_owned();
            }
        }
        let test = tests.join(" && ");
        format!("\n# {title}\nif {test}; then\n  printf '%s\\n' \"{output}\"\n  exit 0\nfi\n")
    }

    /// The line of the checking script that proves this requirement: any value will do, the word itself as well.
    pub(super) fn check(&self) -> String {
        let call = [std::slice::from_ref(&self.file), &self.words[..]].concat().join(" ");
        format!("check \"{}\" {call}\n", self.output)
    }
}
