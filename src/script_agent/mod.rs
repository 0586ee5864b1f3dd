//! The scripted agent, `ralph __script [FILE]`: a program of its own that costs nothing and needs only git.
//!
//! It reads the whole prompt from stdin and prints one JSON object per line:
//!
//! ```json
//! {"type":"start","model":"script","session":"script-4711"}
//! {"type":"text","text":"…"}
//! {"type":"tool","name":"write","input":"greet.sh"}
//! {"type":"tool_result","name":"bash","output":"…","exit_code":0}
//! {"type":"result","status":"ok","message":"","cost_usd":0.0,"input_tokens":12,"output_tokens":34}
//! ```
//!
//! Without FILE it is a small honest agent that edits files and commits them (`builtin`); with FILE it plays what
//! stands there (`played`). The loop tells it its place through `RALPH_MODE`, `RALPH_ITERATION`, `RALPH_HOME` and
//! `RALPH_SPECS_DIR`. With `RALPH_PLAN_FORM=branches` it plans branches, and with `RALPH_BRANCH` it builds that one
//! (`branches`). `RALPH_SCRIPT_PACE` is a pause in milliseconds after each event, for people who watch.

mod branches;
mod builtin;
mod commit;
mod plan_file;
mod played;
mod requirement;
mod shell_program;

use anyhow::Context as _;
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The hidden verb that starts it.
pub const VERB: &str = "__script";

/// The name of the environment variable with the pause after each event, in milliseconds (none: 0).
pub const PACE_VARIABLE: &str = "RALPH_SCRIPT_PACE";

/// Runs the scripted agent in the current directory and returns its exit code: 0 for a result `ok`, 1 for `error`,
/// or what a script's `exit` asks for.
///
/// `args` is what follows the hidden verb: nothing, or the one FILE to play.
#[must_use]
pub fn script_main(args: &[OsString]) -> i32 {
    let mut prompt = Vec::new();
    // A prompt that cannot be read is an empty one: the agent says so in its result.
    let _ = io::stdin().read_to_end(&mut prompt);
    let place = Place::from_environment();
    let mut stage = Stage::new(io::stdout().lock(), place.pace, &prompt);
    match args {
        [] => stage.perform(|stage| builtin::act(&place, &prompt, stage)),
        [file] => stage.perform(|stage| played::act(&place, Path::new(file), stage)),
        _ => stage.perform(|_| anyhow::bail!("`__script` takes at most one FILE, {} given", args.len())),
    }
}

/// Where and for what the agent was started.
struct Place {
    /// The project root; every path of the agent starts here.
    root: PathBuf,
    /// `plan`, `build`, or anything else for an ad-hoc prompt.
    mode: String,
    /// Counted from 1.
    iteration: usize,
    /// The ralph dir, relative to the root.
    home: PathBuf,
    /// The specs folder, relative to the root.
    specs: PathBuf,
    /// Whether plan mode writes a plan of branches.
    plans_branches: bool,
    /// The branch that build mode works on, if it is one.
    branch: Option<String>,
    pace: Duration,
}

impl Place {
    fn from_environment() -> Self {
        let path =
            |name, default: &str| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| default.into()));
        let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
        Self {
            root: PathBuf::from("."),
            mode: std::env::var("RALPH_MODE").unwrap_or_default(),
            iteration: number("RALPH_ITERATION").unwrap_or(1) as usize,
            home: path("RALPH_HOME", ".ralph"),
            specs: path("RALPH_SPECS_DIR", "specs"),
            plans_branches: std::env::var_os("RALPH_PLAN_FORM").is_some_and(|form| form == "branches"),
            branch: std::env::var("RALPH_BRANCH").ok(),
            pace: Duration::from_millis(number(PACE_VARIABLE).unwrap_or(0).into()),
        }
    }

    /// Writes a file below the root, with the folders it stands in.
    fn write(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        let full = self.root.join(path);
        let write = || {
            full.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::fs::write(&full, text)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// The text of a file below the root; `None` when there is no such file.
    fn read(&self, path: &Path) -> anyhow::Result<Option<String>> {
        match std::fs::read_to_string(self.root.join(path)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}

/// How a performance ended, unless it failed.
enum End {
    /// With a result `ok`.
    Done,
    /// With a result `error` that carries this message.
    Failed(String),
    /// With this exit code and no result, as a crash does.
    Abrupt(u8),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    Start { model: &'a str, session: String },
    Text { text: &'a str },
    Tool { name: &'a str, input: &'a str },
    ToolResult { name: &'a str, output: &'a str, exit_code: Option<i32> },
    Result { status: &'a str, message: &'a str, cost_usd: f64, input_tokens: u64, output_tokens: u64 },
}

/// The stream of events, and what the result will say about cost and tokens.
struct Stage<W> {
    out: W,
    pace: Duration,
    cost_usd: f64,
    input_tokens: u64,
    output_tokens: u64,
}

impl<W: Write> Stage<W> {
    fn new(out: W, pace: Duration, prompt: &[u8]) -> Self {
        Self { out, pace, cost_usd: 0.0, input_tokens: tokens(prompt.len()), output_tokens: 0 }
    }

    /// From the start event to the result event and the exit code.
    fn perform(&mut self, act: impl FnOnce(&mut Self) -> anyhow::Result<End>) -> i32 {
        let session = format!("script-{}", std::process::id());
        let end = self.event(&Event::Start { model: "script", session }).and_then(|()| act(self));
        let failure = match end {
            Ok(End::Done) => return i32::from(self.result("ok", "").is_err()),
            Ok(End::Abrupt(code)) => return code.into(),
            Ok(End::Failed(message)) => message,
            Err(error) => format!("{error:#}"),
        };
        // Nobody is left to hear it when stdout is closed; the exit code says it as well.
        let _ = self.result("error", &failure);
        1
    }

    fn text(&mut self, text: &str) -> anyhow::Result<()> {
        self.output_tokens += tokens(text.len());
        self.event(&Event::Text { text })
    }

    fn tool(&mut self, name: &str, input: &str) -> anyhow::Result<()> {
        self.output_tokens += tokens(name.len() + input.len());
        self.event(&Event::Tool { name, input })
    }

    /// Runs `sh -c command` in `root` as a tool; true when it exited with 0.
    fn shell(&mut self, root: &Path, command: &str) -> anyhow::Result<bool> {
        self.tool("bash", command)?;
        let ended = std::process::Command::new("sh")
            .args(["-c", command])
            .current_dir(root)
            .stdin(std::process::Stdio::null())
            .output()
            .context("cannot start sh")?;
        let output = [ended.stdout, ended.stderr].concat();
        let output = String::from_utf8_lossy(&output);
        self.event(&Event::ToolResult { name: "bash", output: &output, exit_code: ended.status.code() })?;
        Ok(ended.status.success())
    }

    fn result(&mut self, status: &str, message: &str) -> anyhow::Result<()> {
        let Self { cost_usd, input_tokens, output_tokens, .. } = *self;
        self.event(&Event::Result { status, message, cost_usd, input_tokens, output_tokens })
    }

    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        let line = serde_json::to_string(event)?;
        writeln!(self.out, "{line}").and_then(|()| self.out.flush()).context("cannot write to stdout")?;
        std::thread::sleep(self.pace);
        Ok(())
    }
}

/// The usual rule of thumb: four bytes of text are one token.
fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

#[cfg(test)]
mod testing;
