//! `ralph demo`: the real loop, planning and building in a scratch repository with the scripted agent.
//!
//! Needs git and nothing else: no agent, network, key or repository. The loops are children of this process, started
//! as a user would start them, so what is shown is what ralph does.

use crate::process::REPOSITORY_VARIABLES;
use crate::prompt;
use crate::script_agent::PACE_VARIABLE;
use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, kill_process};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

const SPEC: &str = include_str!("demo/greeting.md");
const README: &str = "\
# Greeting

A scratch project made by `ralph demo`. `specs/greeting.md` says what it shall do; everything else that is not below
`.ralph/` was written by the demo's agent, one task and one commit per iteration.
";
const AGENTS: &str = "\
# For agents

- Plain POSIX shell, nothing to install or build.
- Check everything: `sh check.sh` (written with the first task).
";
const CONFIG: &str = "\
# Settings of this project, one NAME=value per line. `ralph config` shows all of them with their origin.

# The agent of the demo: built in, free, no network. Put claude, codex, gemini … here for real work.
AGENT_TYPE=script

SPECS_DIR=specs
";
/// `.ralph/ralph` is of this machine, not of the project.
const IGNORED: &str = "/.ralph/ralph\n";

/// Milliseconds between two events of the agent, when a person watches.
const PACE: &str = "150";

/// Runs the demo in `dir` (made when missing, empty otherwise) or in a new folder that is kept.
///
/// Returns the exit code: 0 when both loops ended well and what they built works, else the code of the loop that did
/// not. `quiet` shows neither the display nor any explanation, and waits nowhere.
pub fn run(dir: Option<&Path>, quiet: bool) -> anyhow::Result<u8> {
    let ralph = std::env::current_exe().context("cannot find the running ralph executable")?;
    // Asked before the folder is made: what is left in it would be in the way of the next try.
    git(Path::new("/"), &["--version"])?;
    let repo = scratch_folder(dir)?;
    set_up(&repo, &ralph)?;
    let stage = Stage { ralph, repo, quiet };
    let place = stage.repo.display();
    stage.say(&format!("A scratch repository with a spec and the agent `script`: {place}\n"));
    let mut signals = Waiter::new()?;
    for (verb, limit, what) in [
        ("plan", "3", "The agent turns the spec into a plan of small tasks"),
        ("build", "10", "A fresh agent for each task, until the plan is done"),
    ] {
        stage.say(&format!("$ ralph {verb} {limit}     # {what}\n"));
        let code = signals.wait(stage.loop_command(verb, limit))?;
        if code != 0 {
            stage
                .say(&format!("\n`ralph {verb}` ended with exit code {code}; everything is kept in {place}"));
            return Ok(code);
        }
    }
    let greeting = stage.prove()?;
    stage.close(&greeting)?;
    Ok(0)
}

/// An empty folder as an absolute path.
fn scratch_folder(dir: Option<&Path>) -> anyhow::Result<PathBuf> {
    let Some(dir) = dir else {
        let folder = tempfile::Builder::new().prefix("ralph-demo-").tempdir();
        return Ok(folder.context("cannot make a temporary folder: set TMPDIR or name a folder")?.keep());
    };
    let shown = dir.display();
    fs::create_dir_all(dir)
        .with_context(|| format!("cannot make the demo folder {shown}: choose another"))?;
    let mut entries = fs::read_dir(dir).with_context(|| format!("cannot read the demo folder {shown}"))?;
    ensure!(entries.next().is_none(), "the demo folder {shown} is not empty: choose a new one");
    dir.canonicalize().with_context(|| format!("cannot find the demo folder {shown}"))
}

/// A repository with a spec and the vendored layout, in its first commit.
fn set_up(repo: &Path, ralph: &Path) -> anyhow::Result<()> {
    for (name, text) in [
        ("README.md", README),
        ("AGENTS.md", AGENTS),
        ("specs/greeting.md", SPEC),
        (".gitignore", IGNORED),
        (".ralph/config", CONFIG),
        (".ralph/prompts/plan.md", prompt::PLAN),
        (".ralph/prompts/build.md", prompt::BUILD),
    ] {
        let file = repo.join(name);
        file.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&file, text))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let link = repo.join(".ralph/ralph");
    // A ralph that is vendored elsewhere would, through a link, go on working for the project it stands in.
    let is_vendored = ["config", "prompts/plan.md", "prompts/build.md"]
        .iter()
        .any(|name| ralph.with_file_name(name).is_file());
    let linked = if is_vendored { fs::copy(ralph, &link).map(drop) } else { symlink(ralph, &link) };
    linked.with_context(|| format!("cannot make {}", link.display()))?;
    git(repo, &["init", "--quiet", "--template="])?;
    git(repo, &["add", "--all"])?;
    let identity = ["-c", "user.name=ralph demo", "-c", "user.email=demo@ralph.invalid"];
    git(
        repo,
        &[&identity[..], &["commit", "--quiet", "--message", "A spec, and ralph to build it"]].concat(),
    )?;
    Ok(())
}

struct Stage {
    ralph: PathBuf,
    repo: PathBuf,
    quiet: bool,
}

impl Stage {
    /// One loop, as a user would start it in the repository.
    fn loop_command(&self, verb: &str, limit: &str) -> Command {
        let mut command = Command::new(&self.ralph);
        // Named, because a vendored ralph would take the folder it stands in.
        command.args([verb, limit, "--ralph-dir", ".ralph"]).current_dir(&self.repo);
        undisturbed(&mut command);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"RALPH_"))
        {
            command.env_remove(name);
        }
        // The user's own settings of ralph are for real work.
        command.env("XDG_CONFIG_HOME", self.repo.join(".ralph/no-user-settings"));
        if self.quiet {
            command.arg("--quiet");
        } else if std::env::var_os("CI").is_none() {
            command.env(PACE_VARIABLE, PACE);
        }
        command
    }

    /// Runs what was built and returns the greeting.
    fn prove(&self) -> anyhow::Result<String> {
        let checks = sh(&self.repo, &["check.sh"])?;
        let expected = SPEC.matches("` prints `").count();
        let passed = checks.lines().filter(|line| line.starts_with("ok: ")).count();
        ensure!(passed == expected, "{passed} of {expected} requirements hold in {}", self.repo.display());
        sh(&self.repo, &["greet.sh", "Ada"])
    }

    fn close(&self, greeting: &str) -> anyhow::Result<()> {
        let commits = git(&self.repo, &["log", "--oneline", "--reverse"])?;
        let place = self.repo.display();
        self.say(&format!("\nIt works. `sh greet.sh Ada` says: {}\n", greeting.trim_end()));
        self.say(&format!("The repository       {place}"));
        if let Some(log) = newest_log(&self.repo) {
            self.say(&format!("The last session     {}", log.display()));
        }
        self.say("The commits          git log");
        commits.lines().for_each(|commit| self.say(&format!("    {commit}")));
        self.say(&format!(
            "\nGo on from here:\n    cd {}\n    \
             # add a requirement to specs/greeting.md, then\n    \
             .ralph/ralph plan && .ralph/ralph build\n    \
             # the same with a real agent\n    \
             .ralph/ralph plan --agent claude && .ralph/ralph build --agent claude\n\n\
             In a project of your own: `ralph init`",
            shlex::try_quote(&place.to_string()).unwrap_or_default()
        ));
        if self.quiet {
            tell(&format!("demo complete: {place}"));
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            tell(text);
        }
    }
}

/// Prints a line; a closed stdout is no reason to end the demo.
fn tell(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn newest_log(repo: &Path) -> Option<PathBuf> {
    let logs = fs::read_dir(repo.join(".ralph/logs")).ok()?.flatten().map(|entry| entry.path());
    logs.filter(|path| path.extension().is_some_and(|extension| extension == "log")).max()
}

/// Waits for children without dying before them.
///
/// Ctrl+C reaches the loop by itself, it is in the same process group; SIGTERM is handed on.
struct Waiter {
    signals: Signals,
    interrupted: bool,
}

impl Waiter {
    fn new() -> anyhow::Result<Self> {
        // What was ignored when we were started stays ignored, here and in the loops.
        let heeded = [SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal));
        let signals = Signals::new(heeded.chain([SIGCHLD])).context("cannot listen to signals")?;
        Ok(Self { signals, interrupted: false })
    }

    /// The exit code of `command`; 130 when a signal came although it ended well.
    fn wait(&mut self, mut command: Command) -> anyhow::Result<u8> {
        let program = command.get_program().to_owned();
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let mut signals = self.signals.forever();
        let status = loop {
            // Nobody but us reaps the child: until then its id is its own.
            if let Some(status) = child.try_wait().context("cannot wait for the loop")? {
                break status;
            }
            let signal = signals.next();
            self.interrupted |= matches!(signal, Some(SIGINT | SIGTERM));
            if let (Some(SIGTERM), Some(pid)) = (signal, child.id().try_into().ok().and_then(Pid::from_raw)) {
                // It may have ended a moment ago.
                let _ = kill_process(pid, rustix::process::Signal::TERM);
            }
        };
        let code = exit_code(status);
        Ok(if code == 0 && self.interrupted { 130 } else { code })
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

fn git(repo: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.args(arguments);
    printed(command, repo).context("the demo needs a working git")
}

fn sh(repo: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("sh");
    command.args(arguments);
    printed(command, repo).context("what the demo built does not work")
}

/// What `command` printed in `repo`, an error with the first line of its stderr (or stdout) when it failed.
fn printed(mut command: Command, repo: &Path) -> anyhow::Result<String> {
    undisturbed(&mut command);
    let program = command.get_program().to_owned();
    let ended = command.current_dir(repo).stdin(std::process::Stdio::null()).output();
    let ended = ended.with_context(|| format!("cannot start {}", program.display()))?;
    let output = String::from_utf8_lossy(&ended.stdout).into_owned();
    if !ended.status.success() {
        let told = String::from_utf8_lossy(&ended.stderr);
        let reason = told.lines().chain(output.lines()).find(|line| !line.trim().is_empty());
        bail!("{} in {}: {}", program.display(), repo.display(), reason.unwrap_or("failed without a word"));
    }
    Ok(output)
}

/// Keeps the caller's repository (we may run in a hook), signing, hooks and ignore rules out of the scratch repository.
fn undisturbed(command: &mut Command) {
    for name in REPOSITORY_VARIABLES.into_iter().chain(["GIT_CEILING_DIRECTORIES"]) {
        command.env_remove(name);
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: anyhow::Result<impl std::fmt::Debug>) -> String {
        format!("{:#}", result.unwrap_err())
    }

    #[test]
    fn sets_up_a_clean_repository_with_the_vendored_layout() {
        let folder = tempfile::tempdir().unwrap();
        let repo = scratch_folder(Some(&folder.path().join("new/demo"))).unwrap();
        set_up(&repo, Path::new("/bin/true")).unwrap();
        assert_eq!(git(&repo, &["status", "--porcelain"]).unwrap(), "");
        assert_eq!(
            git(&repo, &["ls-files"]).unwrap(),
            ".gitignore\n.ralph/config\n.ralph/prompts/build.md\n.ralph/prompts/plan.md\nAGENTS.md\nREADME.md\nspecs/greeting.md\n"
        );
        assert_eq!(fs::read_link(repo.join(".ralph/ralph")).unwrap(), Path::new("/bin/true"));
        assert_eq!(git(&repo, &["log", "--format=%an"]).unwrap(), "ralph demo\n");
    }

    #[test]
    fn a_vendored_ralph_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let ralph = folder.path().join("ralph");
        fs::write(&ralph, "program").unwrap();
        fs::write(folder.path().join("config"), "").unwrap();
        let repo = scratch_folder(Some(&folder.path().join("demo"))).unwrap();
        set_up(&repo, &ralph).unwrap();
        assert!(!repo.join(".ralph/ralph").is_symlink());
        assert_eq!(fs::read(repo.join(".ralph/ralph")).unwrap(), b"program");
    }

    #[test]
    fn refuses_a_folder_that_holds_something() {
        let folder = tempfile::tempdir().unwrap();
        assert!(scratch_folder(Some(folder.path())).is_ok(), "empty is fine");
        let file = folder.path().join("file");
        fs::write(&file, "mine").unwrap();
        assert!(message(scratch_folder(Some(folder.path()))).ends_with("is not empty: choose a new one"));
        assert!(message(scratch_folder(Some(&file))).starts_with("cannot make the demo folder"));
    }

    #[test]
    fn the_loop_starts_with_a_clean_environment() {
        let stage = Stage { ralph: "/bin/ralph".into(), repo: "/repo".into(), quiet: true };
        let command = stage.loop_command("plan", "3");
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["plan", "3", "--ralph-dir", ".ralph", "--quiet"]);
        assert!(command.get_envs().all(|(name, value)| name != PACE_VARIABLE || value.is_none()));
    }

    #[test]
    fn unbuilt_work_is_not_called_proven() {
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage { ralph: "ralph".into(), repo: folder.path().into(), quiet: true };
        assert!(message(stage.prove()).starts_with("what the demo built does not work: sh in "));
        fs::write(folder.path().join("check.sh"), "echo ok: one\n").unwrap();
        assert!(message(stage.prove()).starts_with("1 of 4 requirements hold in "));
    }

    #[test]
    fn exit_codes_are_passed_on() {
        let mut waiter = Waiter::new().unwrap();
        for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)] {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            assert_eq!(waiter.wait(command).unwrap(), code);
        }
        assert!(message(waiter.wait(Command::new("/no/such/program"))).starts_with("cannot start /no/such"));
    }
}
