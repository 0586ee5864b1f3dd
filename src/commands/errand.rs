//! Verbs of an agent whose graph is on a server, or beyond its walls: its loop carries them out, which alone can open that graph. The
//! agent has the address of the loop's socket in the place of the server's.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::attempt;
use super::graph_file::{FEATURE_VARIABLE, SCHEME, STORE_VARIABLE};
use super::output;
use super::own_call::with_words;
use crate::cli::{self, Cli};
use crate::platform::calls::own_executable;
use crate::platform::mark::RUN_MARK;
use crate::platform::socket;
use crate::process::short;
use crate::project::Project;
use crate::threads;

/// The most that is sent and answered, in bytes.
const MOST: u64 = 64 << 20;
/// The longest that a verb may take.
const LIMIT: Duration = Duration::from_mins(2);
/// How long a client has to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an agent wants to have done.
#[derive(Serialize, Deserialize)]
struct Errand {
    /// The words of the command line, without the program.
    words: Vec<String>,
    /// What was read from stdin.
    stdin: String,
    /// The feature that new tasks are for.
    feature: Option<String>,
}

/// What came of it.
#[derive(Serialize, Deserialize)]
struct Done {
    code: u8,
    stdout: String,
    stderr: String,
}

/// Whether a verb is one that a loop carries out for its agent: those of the graph that are for agents at all.
fn is_for_loops(command: &cli::Command) -> bool {
    use cli::Command::{Feature, Journal, Knowledge, Task};
    let is_of_graph = matches!(command, Task { .. } | Feature { .. } | Journal(_) | Knowledge { .. });
    is_of_graph && attempt::is_allowed(command)
}

/// The socket that is named in the place of a server, as by the `--store` that agents are told of: some strip the environment.
fn loop_of_agent() -> Option<PathBuf> {
    let mut words = std::env::args_os();
    let named = words.find(|word| word == "--store").and_then(|_| words.next());
    let address = named.or_else(|| std::env::var_os(STORE_VARIABLE))?.into_string().ok()?;
    address.strip_prefix(SCHEME).map(PathBuf::from)
}

/// Sends a verb to the loop of this agent, if there is one that carries it out; returns the exit code.
///
/// # Errors
/// If the loop does not answer.
pub(super) fn send(command: &cli::Command) -> anyhow::Result<Option<u8>> {
    let Some(path) = loop_of_agent().filter(|_| is_for_loops(command)) else { return Ok(None) };
    let words: Result<Vec<String>, OsString> =
        std::env::args_os().skip(1).map(OsString::into_string).collect();
    let words = words.map_err(|word| anyhow!("{}: that is no text", word.display()))?;
    let mut stdin = String::new();
    if words.iter().any(|word| word == "-" || word.ends_with("=-") || word == "-d-") {
        std::io::stdin().take(MOST).read_to_string(&mut stdin).context("stdin")?;
    }
    let feature = std::env::var(FEATURE_VARIABLE).ok();
    let done = ask(&path, &Errand { words, stdin, feature })
        .context("the loop that has started this agent does not answer, and only it can open the graph")?;
    output::pass(&done.stdout, &done.stderr)?;
    Ok(Some(done.code))
}

fn ask(path: &Path, errand: &Errand) -> anyhow::Result<Done> {
    let mut stream = socket::connect(path)?;
    stream.set_read_timeout(Some(LIMIT + PATIENCE))?;
    serde_json::to_writer(&mut stream, errand)?;
    stream.write_all(b"\n")?;
    Ok(serde_json::from_reader(stream.take(MOST))?)
}

/// The run, the address of its graph if that is on a server, and the project.
type How = (String, Option<String>, PathBuf);

/// The socket of one loop; its agents cannot reach it any more when this is dropped.
pub(super) struct Errands {
    path: PathBuf,
}

impl Errands {
    /// Listens in a folder that is this user's alone, for the agents of this run in a project, with the address of their graph.
    ///
    /// # Errors
    /// If there can be no socket.
    pub(super) fn listen(
        folder: &Path,
        run: &str,
        project: &Path,
        store: Option<String>,
    ) -> anyhow::Result<Self> {
        let path = folder.join(format!("{run}.socket"));
        let listener = socket::listen(&path).with_context(|| path.display().to_string())?;
        let how = Arc::new((run.to_owned(), store, project.to_owned()));
        threads::start(move || {
            // It ends with the process: a client may come until then.
            for stream in listener.incoming().flatten() {
                let how = Arc::clone(&how);
                // Without a thread the client finds its connection closed.
                let _ = threads::start(move || {
                    let _ = answer(&stream, &how);
                });
            }
        })?;
        Ok(Self { path })
    }

    /// What agents get in the place of the address of a server.
    fn address(&self) -> OsString {
        let mut address = OsString::from(SCHEME);
        address.push(&self.path);
        address
    }

    /// The variable with it.
    pub(super) fn variable(&self) -> (OsString, OsString) {
        (STORE_VARIABLE.into(), self.address())
    }

    /// How an agent's shell calls our executable.
    pub(super) fn call(&self, project: &Project) -> anyhow::Result<String> {
        with_words(project, &["--store".into(), self.address()])
    }
}

impl Drop for Errands {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Reads one errand, and answers what came of it.
fn answer(stream: &UnixStream, how: &How) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(MOST)).read_line(&mut line)?;
    let done = serde_json::from_str(&line).map_err(Into::into).and_then(|errand| carry_out(errand, how));
    let done = done.unwrap_or_else(|error| Done {
        code: 1,
        stdout: String::new(),
        stderr: format!("error: {error:#}\n"),
    });
    serde_json::to_writer(stream, &done)?;
    Ok(())
}

/// Carries an errand out in a process of its own, which refuses what agents may not do.
fn carry_out(errand: Errand, (run, store, project): &How) -> anyhow::Result<Done> {
    let words = without_places(errand.words);
    let argv = std::iter::once("ralph".to_owned()).chain(words.clone()).map(OsString::from);
    let command = Cli::read(argv.collect()).map_err(|error| anyhow!("{}", cli::one_line(&error)))?.command;
    if !is_for_loops(&command) {
        bail!("that is not for agents at work");
    }
    let mut own = Command::new(own_executable());
    own.args(&words).current_dir(project).env(RUN_MARK, run).env("NO_COLOR", "1");
    match store {
        Some(server) => own.env(STORE_VARIABLE, server),
        None => own.env_remove(STORE_VARIABLE),
    };
    own.envs(errand.feature.map(|feature| (FEATURE_VARIABLE, feature)));
    let output = short::output_with(&mut own, errand.stdin.into_bytes(), LIMIT)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(Done { code, stdout: text(&output.stdout), stderr: text(&output.stderr) })
}

/// The words without those that say which graph: that is the loop's.
fn without_places(words: Vec<String>) -> Vec<String> {
    const PLACES: [&str; 2] = ["--store", "--ralph-dir"];
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--" {
            kept.push(word);
            kept.extend(words);
            break;
        }
        if PLACES.contains(&&*word) {
            words.next();
        } else if !PLACES
            .iter()
            .any(|place| word.strip_prefix(place).is_some_and(|rest| rest.starts_with('=')))
        {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_name_another_graph_are_left_out() {
        let of = |text: &str| without_places(text.split(' ').map(str::to_owned).collect()).join(" ");
        assert_eq!(of("--ralph-dir /x task add a --store=postgres://u@h/d -d b"), "task add a -d b");
        assert_eq!(of("task add --store x a -- --store"), "task add a -- --store");
    }
}
