//! Plays a file: one directive per line, one block per iteration.
//!
//! ```text
//! # Iteration 1: blank lines and lines that start with # are skipped.
//! say I look around.
//! tool read specs/greeting.md
//! write notes/today.md First line\nsecond line
//! append notes/today.md One more line
//! run ls -l
//! commit Start the notes
//! tokens 1200 80
//! cost 0.02
//! ---
//! # Iteration 2 and, being the last block, all later ones.
//! sleep 0.5
//! say Nothing is left.\n<promise>COMPLETE</promise>
//! ```
//!
//! | directive | effect |
//! |---|---|
//! | `say TEXT` | a text event |
//! | `tool NAME [INPUT]` | a tool event; nothing is done |
//! | `write PATH TEXT`, `append PATH TEXT` | writes a file, a newline at the end; folders are made |
//! | `run COMMAND` | `sh -c COMMAND`, its output as a tool result; a failing command does not end the play |
//! | `commit MESSAGE` | commits what `write` and `append` changed since the last commit |
//! | `sleep SECONDS` | waits, fractions allowed |
//! | `cost USD`, `tokens IN OUT` | what the result will say |
//! | `fail MESSAGE` | ends with a result `error` and exit code 1 |
//! | `exit CODE` | ends at once without a result, as a crash does |
//!
//! `\n`, `\t` and `\\` in TEXT and MESSAGE are a newline, a tab and a backslash. `RALPH_ITERATION` chooses the block.
//! A mistake anywhere in the file is told with its line before anything is done.

use super::commit::commit;
use super::{End, Place, Stage};
use anyhow::{Context as _, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug)]
enum Step {
    Say(String),
    Tool { name: String, input: String },
    Write { path: PathBuf, text: String },
    Append { path: PathBuf, text: String },
    Run(String),
    Commit(String),
    Sleep(Duration),
    Cost(f64),
    Tokens { input: u64, output: u64 },
    Fail(String),
    Exit(u8),
}

/// Plays the block of this iteration.
pub(super) fn act(place: &Place, file: &Path, stage: &mut Stage<impl Write>) -> anyhow::Result<End> {
    let name = file.display();
    let Some(text) = place.read(file)? else { bail!("no script at {name}") };
    let blocks = parse(&text).map_err(|(line, mistake)| anyhow::anyhow!("{name}:{line}: {mistake}"))?;
    let block = &blocks[place.iteration.clamp(1, blocks.len()) - 1];
    let mut changed = Vec::new();
    for (line, step) in block {
        if let Some(end) = play(place, step, &mut changed, stage).with_context(|| format!("{name}:{line}"))? {
            return Ok(end);
        }
    }
    Ok(End::Done)
}

/// Does one step; an end when the play stops here. `changed` is what the next commit will hold.
fn play(
    place: &Place,
    step: &Step,
    changed: &mut Vec<PathBuf>,
    stage: &mut Stage<impl Write>,
) -> anyhow::Result<Option<End>> {
    match step {
        Step::Say(text) => stage.text(text)?,
        Step::Tool { name, input } => stage.tool(name, input)?,
        Step::Write { path, text } | Step::Append { path, text } => {
            stage.tool("write", &path.to_string_lossy())?;
            let is_append = matches!(step, Step::Append { .. });
            let before = if is_append { place.read(path)?.unwrap_or_default() } else { String::new() };
            place.write(path, &format!("{before}{text}\n"))?;
            changed.push(path.clone());
        }
        Step::Run(command) => drop(stage.shell(&place.root, command)?),
        Step::Commit(message) => {
            stage.tool("bash", "git commit")?;
            let paths: Vec<&Path> = changed.iter().map(PathBuf::as_path).collect();
            if !commit(place, &paths, message)? {
                bail!("nothing to commit: no `write` or `append` before it changed a file that git tracks");
            }
            changed.clear();
        }
        Step::Sleep(time) => std::thread::sleep(*time),
        Step::Cost(usd) => stage.cost_usd = *usd,
        Step::Tokens { input, output } => (stage.input_tokens, stage.output_tokens) = (*input, *output),
        Step::Fail(message) => return Ok(Some(End::Failed(message.clone()))),
        Step::Exit(code) => return Ok(Some(End::Abrupt(*code))),
    }
    Ok(None)
}

/// The steps of one iteration, each with its line number.
type Block = Vec<(usize, Step)>;

/// Reads the whole file; a mistake comes with its line number.
fn parse(text: &str) -> Result<Vec<Block>, (usize, String)> {
    let mut blocks = Vec::new();
    let mut block = Block::new();
    let mut last = 1;
    for (number, line) in (1..).zip(text.lines()) {
        last = number;
        let line = line.trim();
        if line == "---" {
            blocks.push(filled(std::mem::take(&mut block), number)?);
        } else if !line.is_empty() && !line.starts_with('#') {
            block.push((number, directive(line).map_err(|mistake| (number, mistake))?));
        }
    }
    blocks.push(filled(block, last)?);
    Ok(blocks)
}

fn filled(block: Block, line: usize) -> Result<Block, (usize, String)> {
    let mistake = "this block has no directive; `sleep 0` is one that does nothing";
    if block.is_empty() { Err((line, mistake.into())) } else { Ok(block) }
}

fn directive(line: &str) -> Result<Step, String> {
    let (verb, rest) = split_word(line);
    let two = || Some(split_word(rest)).filter(|(first, second)| !first.is_empty() && !second.is_empty());
    let (step, form) = match verb {
        "say" => (text(rest).map(Step::Say), "TEXT"),
        "tool" => {
            let (name, input) = split_word(rest);
            (text(name).map(|name| Step::Tool { name, input: input.into() }), "NAME [INPUT]")
        }
        "write" => {
            let parts = two().map(|(path, text)| (PathBuf::from(path), unescaped(text)));
            (parts.map(|(path, text)| Step::Write { path, text }), "PATH TEXT")
        }
        "append" => {
            let parts = two().map(|(path, text)| (PathBuf::from(path), unescaped(text)));
            (parts.map(|(path, text)| Step::Append { path, text }), "PATH TEXT")
        }
        // The shell has escapes of its own.
        "run" => ((!rest.is_empty()).then(|| Step::Run(rest.into())), "COMMAND"),
        "commit" => (text(rest).map(Step::Commit), "MESSAGE"),
        "sleep" => {
            let time = rest.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            (time.map(Step::Sleep), "SECONDS")
        }
        "cost" => {
            let usd = rest.parse().ok().filter(|usd: &f64| usd.is_finite() && *usd >= 0.0);
            (usd.map(Step::Cost), "USD")
        }
        "tokens" => {
            let numbers = two().and_then(|(input, output)| Some((input.parse().ok()?, output.parse().ok()?)));
            (numbers.map(|(input, output)| Step::Tokens { input, output }), "IN OUT")
        }
        "fail" => (text(rest).map(Step::Fail), "MESSAGE"),
        "exit" => (rest.parse().ok().map(Step::Exit), "CODE (0 to 255)"),
        _ => {
            let known = "say, tool, write, append, run, commit, sleep, cost, tokens, fail, exit";
            return Err(format!("unknown directive `{verb}`; there are {known}"));
        }
    };
    step.ok_or_else(|| format!("`{line}` does not have the form `{verb} {form}`"))
}

/// The first word and the rest without the blanks between.
fn split_word(text: &str) -> (&str, &str) {
    text.split_once([' ', '\t']).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

fn text(escaped: &str) -> Option<String> {
    (!escaped.is_empty()).then(|| unescaped(escaped))
}

/// `\n`, `\t` and `\\` resolved; any other backslash is itself.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let meant = [('n', '\n'), ('t', '\t'), ('\\', '\\')]
            .into_iter()
            .find(|(letter, _)| rest.starts_with(*letter));
        out.push(meant.map_or('\\', |(_, character)| character));
        rest = meant.map_or(rest, |_| &rest[1..]);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scratch, git};
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn each_iteration_plays_its_block_and_the_last_one_repeats() {
        let mut scratch = Scratch::new();
        let script = "# first\nsay one\n\n---\n  say two\\n<promise>COMPLETE</promise>\n";
        assert_eq!(scratch.play(script, 1).said(), "one");
        assert_eq!([2, 3, 99].map(|k| scratch.play(script, k).completes()), [true; 3]);
    }

    #[test]
    fn steps_do_what_they_say() {
        let mut scratch = Scratch::new();
        let script = r"
write a/b.txt one\ttwo\\n
append a/b.txt three
commit Start\n\nBecause.
tool look around here
run cat a/b.txt; echo no >&2; exit 3
tokens 1200 80
cost 0.25
sleep 0.001";
        let played = scratch.play(script, 1);
        assert_eq!(scratch.read("a/b.txt"), "one\ttwo\\n\nthree\n");
        assert_eq!(
            git(&scratch.place.root, &["log", "--format=%B", "--stat=80"]).lines().next(),
            Some("Start")
        );
        assert_eq!(git(&scratch.place.root, &["ls-files"]), "a/b.txt\n");
        let command = "cat a/b.txt; echo no >&2; exit 3";
        let expected = [
            json!({"type": "tool", "name": "look", "input": "around here"}),
            json!({"type": "tool", "name": "bash", "input": command}),
            json!({"type": "tool_result", "name": "bash", "output": "one\ttwo\\n\nthree\nno\n", "exit_code": 3}),
            json!({"type": "result", "status": "ok", "message": "",
                   "cost_usd": 0.25, "input_tokens": 1200, "output_tokens": 80}),
        ];
        assert_eq!(played.events[4..], expected);
        assert_eq!(played.code, 0);
    }

    #[test]
    fn failures_and_crashes() {
        let mut scratch = Scratch::new();
        let failed = scratch.play("say a\nfail out of ideas\nsay never", 1);
        assert_eq!((failed.code, failed.said().as_str()), (1, "a"));
        assert_eq!(failed.result()["message"], "out of ideas");
        let crashed = scratch.play("say a\nexit 7", 1);
        assert_eq!((crashed.code, crashed.result()["type"].as_str()), (7, Some("text")));
        let empty = scratch.play("commit nothing", 1);
        assert!(empty.result()["message"].as_str().unwrap().starts_with("play.script:1: nothing to commit"));
    }

    #[test]
    fn mistakes_are_told_before_anything_is_done() {
        let mut scratch = Scratch::new();
        for (line, mistake) in [
            ("jump high", "unknown directive `jump`"),
            ("say", "`say` does not have the form `say TEXT`"),
            ("write path", "form `write PATH TEXT`"),
            ("sleep -1", "form `sleep SECONDS`"),
            ("cost NaN", "form `cost USD`"),
            ("tokens 1", "form `tokens IN OUT`"),
            ("exit 256", "form `exit CODE"),
            ("---", "this block has no directive"),
        ] {
            let played = scratch.play(&format!("write made yes\n---\n{line}\n"), 1);
            let message = played.result()["message"].as_str().unwrap();
            assert!(message.starts_with("play.script:3: ") && message.contains(mistake), "{message}");
            assert!(!scratch.path("made").exists());
        }
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(text in r"(say|exit|cost|tokens|---|\n|\\|[ \t0-9ne.-]|\PC){0,80}") {
            let _ = parse(&text);
        }

        #[test]
        fn escaping_is_undone(text in r"([nt]|\\|\n|\t|\PC){0,30}") {
            let escaped = text.replace('\\', r"\\").replace('\n', r"\n").replace('\t', r"\t");
            prop_assert_eq!(unescaped(&escaped), text);
        }
    }
}
