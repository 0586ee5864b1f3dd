//! Agents of the tests that ralph itself does not have: with `--acp` one over the Agent Client Protocol, else an interactive
//! one on its terminal, which looks like claude. Both can do all that ralph's scripted agent can, because they start it.
//!
//! `RALPH_SCRIPT_PLAY` has what is played, as for that agent, and what only `talk` or `scene` knows.

mod acp;
mod screen;
mod talk;

use anyhow::Context as _;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The name of the environment variable with what is played, one for each attempt of a loop, separated by commas.
const PLAYS: &str = "RALPH_SCRIPT_PLAY";

fn main() -> ExitCode {
    let is_over_acp = std::env::args().any(|arg| arg == "--acp");
    let ended = Attempt::next().and_then(|attempt| {
        if is_over_acp { acp::converse(&attempt).map(|()| 0) } else { screen::show(&attempt) }
    });
    ended.map_or_else(
        |error| {
            // The terminal may be what is gone.
            let _ = writeln!(std::io::stderr(), "{error:#}");
            ExitCode::FAILURE
        },
        ExitCode::from,
    )
}

/// What this attempt plays.
struct Attempt {
    words: String,
    /// How many attempts of the same loop there were before.
    before: usize,
}

impl Attempt {
    fn next() -> anyhow::Result<Self> {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let (plays, run) = (variable(PLAYS), variable("RALPH_RUN"));
        // The one of a worker is its own.
        let home = std::env::var("RALPH_HOME").unwrap_or_else(|_| ".ralph".to_owned());
        let logs = Path::new(&home).join("logs");
        let count = logs.join("agent.count");
        let counted = fs::read_to_string(&count).unwrap_or_default();
        let counted = counted.split_once(' ').filter(|(of, _)| *of == run);
        let before = counted.and_then(|(_, count)| count.parse().ok()).unwrap_or(0);
        if !plays.is_empty() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&logs)?;
            fs::write(&count, format!("{run} {}", before + 1))?;
        }
        Ok(Self { words: plays.split(',').nth(before).unwrap_or_default().trim().to_owned(), before })
    }

    /// Lets ralph's scripted agent play this, and passes its events on.
    fn play(
        &self,
        words: &str,
        prompt: &str,
        mut event: impl FnMut(&Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let ralph = std::env::current_exe()?.with_file_name("../ralph");
        // It counts its own attempts.
        let plays = vec![words; self.before + 1].join(",");
        let mut agent = Command::new(&ralph)
            .arg("__script")
            .env(PLAYS, plays)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", ralph.display()))?;
        agent.stdin.take().context("no stdin")?.write_all(prompt.as_bytes())?;
        for line in BufReader::new(agent.stdout.take().context("no stdout")?).lines() {
            event(&serde_json::from_str(&line?)?)?;
        }
        agent.wait()?;
        Ok(())
    }
}

/// What an event has under this name.
fn text<'a>(event: &'a Value, name: &str) -> &'a str {
    event[name].as_str().unwrap_or_default()
}
