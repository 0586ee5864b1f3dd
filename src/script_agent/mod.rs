//! The scripted agent, `ralph __script`: a program of its own that costs nothing and needs only git and `sh`. It is the
//! agent of `ralph demo`, and a free one to try ralph with.
//!
//! It reads the whole prompt from stdin and prints one JSON object per line:
//!
//! ```json
//! {"type":"start","model":"script","session":"script-4711"}
//! {"type":"text","text":"…"}
//! {"type":"tool","name":"write","input":"greet.sh"}
//! {"type":"result","status":"ok","message":"","cost_usd":0.0,"input_tokens":12,"output_tokens":34}
//! ```
//!
//! A result that is an error may have a `class` and a `reset_at`. `{"type":"background","tasks":1}` says that so many tasks
//! go on after the result.
//!
//! What it does depends on the variables that ralph gives to every agent, `RALPH_MODE` above all (`work`); only what a task or
//! a feature asks for is read from the prompt (`tasks`). It can also be told to fail in the ways of real agents (`play`).

mod play;
mod program;
mod tasks;
mod work;

use play::{Play, Refusal};

use anyhow::Context as _;
use serde::Serialize;
use std::io::{self, Read as _, Write};
use std::path::PathBuf;
use std::time::Duration;

/// The hidden verb that starts it.
pub const VERB: &str = "__script";

/// The name of the environment variable with the pause after each event, in milliseconds (none: 0), for people who
/// watch.
pub const PACE_VARIABLE: &str = "RALPH_SCRIPT_PACE";

pub use play::PLAY_VARIABLE;

/// Runs the scripted agent in the current directory and returns its exit code: 0 for a result `ok`, 1 for `error`.
#[must_use]
pub fn script_main() -> i32 {
    let place = Place::from_environment();
    let mut prompt = Vec::new();
    // What cannot be read is missed where it is needed.
    let _ = io::stdin().read_to_end(&mut prompt);
    let play = place.next_play();
    Agent::new(place, &mut io::stdout().lock(), &prompt).perform(play)
}

/// Where and for what the agent was started.
#[derive(Clone)]
struct Place {
    /// The project root.
    root: PathBuf,
    /// `plan`, `build`, `tasks`, `feature`, or anything else for an ad-hoc prompt.
    mode: String,
    /// The ralph dir, relative to the root.
    home: PathBuf,
    /// The specs folder, relative to the root.
    specs: PathBuf,
    /// Whether plan mode writes a plan of branches.
    plans_branches: bool,
    /// The branch that build mode works on, if it is one.
    branch: Option<String>,
    /// The pause after each event.
    pace: Duration,
    /// What is played, if anything is.
    plays: Option<String>,
    /// The id of the loop's run.
    run: String,
}

impl Place {
    fn from_environment() -> Self {
        let text = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        Self {
            root: PathBuf::from("."),
            mode: text("RALPH_MODE", ""),
            home: text("RALPH_HOME", ".ralph").into(),
            specs: text("RALPH_SPECS_DIR", "specs").into(),
            plans_branches: text("RALPH_PLAN_FORM", "") == "branches",
            branch: std::env::var("RALPH_BRANCH").ok(),
            pace: Duration::from_millis(text(PACE_VARIABLE, "").parse().unwrap_or(0)),
            plays: std::env::var(PLAY_VARIABLE).ok(),
            run: text("RALPH_RUN", ""),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    Start {
        model: &'a str,
        session: String,
    },
    Text {
        text: &'a str,
    },
    Tool {
        name: &'a str,
        input: &'a str,
    },
    Background {
        tasks: u32,
    },
    Result {
        status: &'a str,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        class: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reset_at: Option<u64>,
        cost_usd: f64,
        input_tokens: u64,
        output_tokens: u64,
    },
}

/// One run: its place, its stream of events, and what the result will say about tokens.
struct Agent<'a> {
    place: Place,
    out: &'a mut dyn Write,
    prompt: String,
    input_tokens: u64,
    output_tokens: u64,
}

impl<'a> Agent<'a> {
    fn new(place: Place, out: &'a mut dyn Write, prompt: &[u8]) -> Self {
        let text = String::from_utf8_lossy(prompt).into_owned();
        Self { place, out, prompt: text, input_tokens: tokens(prompt.len()), output_tokens: 0 }
    }

    /// From the start event to the result event and the exit code.
    fn perform(&mut self, play: anyhow::Result<Play>) -> i32 {
        let session = format!("script-{}", std::process::id());
        let begun = self.event(&Event::Start { model: "script", session });
        let error = begun.and(play).and_then(|play| self.play(play)).err();
        i32::from(self.result(error.as_ref()).is_err() || error.is_some())
    }

    fn result(&mut self, error: Option<&anyhow::Error>) -> anyhow::Result<()> {
        let message = error.map(|error| format!("{error:#}"));
        let refusal = error.and_then(|error| error.downcast_ref::<Refusal>());
        self.event(&Event::Result {
            status: if error.is_none() { "ok" } else { "error" },
            message: message.as_deref().unwrap_or_default(),
            class: refusal.map(|refusal| refusal.class),
            reset_at: refusal.and_then(|refusal| refusal.reset_at),
            cost_usd: 0.0,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
        })
    }

    fn text(&mut self, text: &str) -> anyhow::Result<()> {
        self.output_tokens += tokens(text.len());
        self.event(&Event::Text { text })
    }

    fn tool(&mut self, name: &str, input: &str) -> anyhow::Result<()> {
        self.output_tokens += tokens(name.len() + input.len());
        self.event(&Event::Tool { name, input })
    }

    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        let line = serde_json::to_string(event)?;
        writeln!(self.out, "{line}").and_then(|()| self.out.flush()).context("cannot write to stdout")?;
        std::thread::sleep(self.place.pace);
        Ok(())
    }
}

/// The usual rule of thumb: four bytes of text are one token.
fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

#[cfg(test)]
mod tests;
