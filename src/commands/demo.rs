//! `ralph demo`: the real loop, planning and building in a scratch repository with the scripted agent, then three parallel
//! branches, one of which has a task that cannot be done; with `--tasks` a feature from its brief to its last task, and with `--jobs`
//! agents side by side, whose work comes into each other's way.
//!
//! Needs git and nothing else: no agent, network, key or repository. The loops are children of this process, started
//! as a user would start them, so the demo shows what ralph really does.

use super::output::print_for_people;
use crate::files::atomic;
use crate::platform::calls::ignored_signals;
use crate::process::REPOSITORY_VARIABLES;
use crate::process::short::output_within;
use crate::prompt;
use crate::script_agent::{PACE_VARIABLE, PLAY_VARIABLE};
use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SPEC: &str = include_str!("demo/greeting.md");
const README: &str = include_str!("demo/README.md");
const AGENTS: &str = include_str!("demo/AGENTS.md");
const CONFIG: &str = include_str!("demo/config");
const BRANCHES: &str = include_str!("demo/branches.md");
/// The length of the usage limit that all branches meet first, in seconds.
const LIMIT: &str = "limit 2";
/// The exit code of a build with a failed branch.
const ONE_FAILED: u8 = 4;
/// `.ralph/ralph` belongs to this machine, not to the project.
const IGNORED: &str = "/.ralph/ralph\n";

/// What has to pass before anything lands.
const CHECK: &str = "cat check.sh | sh";
/// The list of tasks.
const LIST: &str = "TODO.md";

/// Milliseconds between two events of the agent, if a person watches.
const PACE: &str = "100";

/// How often the end of a loop is checked.
const LOOK: Duration = Duration::from_millis(20);
/// The time limit for git, and for the program that the agent has built.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);

/// Runs the demo in `dir` (made when missing, empty otherwise) or in a new folder that is kept.
///
/// Returns the exit code: 0 when both loops ended well and what they built works, else the code of the loop that did
/// not. `quiet` shows neither the display nor any explanation, and waits nowhere.
pub fn run(dir: Option<&Path>, tasks: bool, jobs: Option<u8>, quiet: bool) -> anyhow::Result<u8> {
    let ralph = std::env::current_exe().context("cannot find the running ralph executable")?;
    // Checked before the folder is made, which would block the next try.
    git(Path::new("/"), &["--version"])?;
    let repo = scratch_folder(dir)?;
    set_up(&repo, &ralph)?;
    let stage = Stage { ralph, repo, quiet };
    let place = stage.repo.display();
    stage.say(&format!("A scratch repository with a spec and the agent `script`: {place}"));
    let signals = Signals::listen()?;
    let steps = match jobs {
        Some(jobs) => vec![stage.import_tasks()?, side_by_side(jobs)],
        None if tasks => TASKS.map(Step::from).to_vec(),
        None => PLAN_AND_BUILD.map(Step::from).to_vec(),
    };
    for Step { shown, words, what } in steps {
        stage.say(&format!("\n$ ralph {shown}     # {what}\n"));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let is_loop = words[0] != "task";
        let code = signals.wait(if is_loop { stage.loop_command(&words) } else { stage.command(&words) })?;
        if code != 0 {
            stage.say(&format!(
                "\n`ralph {}` ended with exit code {code}; everything is kept in {place}",
                words[0]
            ));
            return Ok(code);
        }
    }
    let greeting = stage.prove()?;
    stage.say(&format!("\nIt works. `sh greet.sh Ada` says: {}\n", greeting.trim_end()));
    if tasks {
        stage.tell_tasks()?;
    } else {
        let code = stage.build_branches(&signals)?;
        if code != ONE_FAILED {
            return Ok(code.max(1));
        }
    }
    stage.close(tasks);
    Ok(0)
}

/// One command of the demo.
#[derive(Clone)]
struct Step {
    /// Its command line, as a user would write it.
    shown: String,
    words: Vec<String>,
    what: &'static str,
}

/// A command line as a user would write it, its words, and what it is for.
type Shown = (&'static str, &'static [&'static str], &'static str);

const PLAN_AND_BUILD: [Shown; 2] = [
    ("plan 3", &["plan", "3"], "The agent turns the spec into a plan of small tasks"),
    ("build 10", &["build", "10"], "A fresh agent for each task, until the plan is done"),
];

const TASKS: [Shown; 2] = [
    (
        "feature create greeting - < specs/greeting.md",
        &["feature", "create", "greeting", SPEC],
        "Agents write its spec, its plan and its tasks, and review them",
    ),
    ("run greeting", &["run", "greeting"], "A fresh agent for each task, and another one that verifies it"),
];

impl From<Shown> for Step {
    fn from((shown, words, what): Shown) -> Self {
        Self { shown: shown.to_owned(), words: words.iter().map(|&word| word.to_owned()).collect(), what }
    }
}

/// Agents side by side on the tasks of the graph. They all write the same two scripts.
fn side_by_side(jobs: u8) -> Step {
    let shown = format!("run --all --jobs {jobs} --validate '{CHECK}'");
    let words = ["run", "--all", "--jobs", &jobs.to_string(), "--validate", CHECK].map(str::to_owned);
    Step {
        shown,
        words: words.to_vec(),
        what: "Agents side by side; what conflicts is given back, and lands later",
    }
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
        let folder = file.parent().unwrap_or(repo);
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        atomic::write_theirs(&file, text.as_bytes())?;
    }
    let vendored = repo.join(".ralph/ralph");
    // A program, which keeps its mode, in a folder that we have just made.
    fs::copy(ralph, &vendored).with_context(|| format!("cannot write {}", vendored.display()))?;
    git(repo, &["init", "--quiet", "--template="])?;
    git(repo, &["config", "user.name", "ralph demo"])?;
    git(repo, &["config", "user.email", "demo@ralph.invalid"])?;
    git(repo, &["add", "--all"])?;
    git(repo, &["commit", "--quiet", "--message", "A spec, and ralph to build it"])?;
    Ok(())
}

/// What a user could do next.
const MORE_PLANS: &str = "# add a requirement to specs/greeting.md, then
    .ralph/ralph plan && .ralph/ralph build
    # the same with a real agent
    .ralph/ralph plan --agent claude && .ralph/ralph build --agent claude";
const MORE_TASKS: &str = "# another task, then
    .ralph/ralph task create 'Count: `count.sh` prints `one two three`'
    .ralph/ralph run --all
    # the same with a real agent, which asks what you want
    .ralph/ralph feature create counting --agent claude && .ralph/ralph run counting --agent claude";

struct Stage {
    ralph: PathBuf,
    repo: PathBuf,
    quiet: bool,
}

impl Stage {
    /// A command in the repository, as a user would type it.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.ralph);
        // Named, because a vendored ralph would use its own folder.
        command.args(words).args(["--ralph-dir", ".ralph"]).current_dir(&self.repo);
        undisturbed(&mut command);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"RALPH_"))
        {
            command.env_remove(name);
        }
        // The user's own settings of ralph are for real work.
        command.env("XDG_CONFIG_HOME", self.repo.join(".ralph/no-user-settings"));
        command
    }

    /// One loop.
    fn loop_command(&self, words: &[&str]) -> Command {
        let mut command = self.command(words);
        if self.quiet {
            command.arg("--quiet");
        } else if std::env::var_os("CI").is_none() {
            command.env(PACE_VARIABLE, PACE);
        }
        command
    }

    /// Writes the requirements of the spec as a list of tasks, which do not wait for each other.
    fn import_tasks(&self) -> anyhow::Result<Step> {
        let items = SPEC.lines().filter_map(|line| line.strip_prefix("- "));
        let list: Vec<String> = items.map(|item| format!("- [ ] {item}\n")).collect();
        atomic::write_theirs(&self.repo.join(LIST), list.concat().as_bytes())?;
        git(&self.repo, &["add", LIST])?;
        git(&self.repo, &["commit", "--quiet", "--message", "The requirements as tasks"])?;
        let words: Shown =
            ("task import TODO.md", &["task", "import", LIST], "Each requirement is a task of its own");
        Ok(Step::from(words))
    }

    /// Runs what was built and returns the greeting.
    fn prove(&self) -> anyhow::Result<String> {
        let checks = sh(&self.repo, &["check.sh"])?;
        let expected = SPEC.matches("` prints `").count();
        let passed = checks.lines().filter(|line| line.starts_with("ok: ")).count();
        ensure!(passed == expected, "{passed} of {expected} requirements hold in {}", self.repo.display());
        sh(&self.repo, &["greet.sh", "Ada"])
    }

    /// Shows the state of the graph.
    fn tell_tasks(&self) -> anyhow::Result<()> {
        for words in [&["task", "tree"][..], &["journal", "--lines", "2"]] {
            let shown = words.join(" ");
            let ended = output_within(&mut self.command(words), ANSWER_LIMIT);
            let ended = ended.with_context(|| format!("cannot run ralph {shown}"))?;
            self.say(&format!("\n$ ralph {shown}\n\n{}", String::from_utf8_lossy(&ended.stdout).trim_end()));
        }
        Ok(())
    }

    /// Builds three parallel branches, and returns the exit code. They meet a usage limit, and one of them has a task that its agent
    /// cannot do.
    fn build_branches(&self, signals: &Signals) -> anyhow::Result<u8> {
        atomic::write_theirs(&self.repo.join("IMPLEMENTATION_PLAN.md"), BRANCHES.as_bytes())?;
        self.say("$ ralph loop build     # Three branches at once; a usage limit comes in between, and one has a task too many\n");
        let mut command = self.loop_command(&["loop", "build", "--max-errors", "1"]);
        command.env(PLAY_VARIABLE, LIMIT);
        signals.wait(command)
    }

    fn close(&self, tasks: bool) {
        let place = self.repo.display();
        self.say(&format!(
            "\nAll of it is in {place}\nGo on from there:\n    cd {}\n    {}\n\nIn a project of your own:\n    {} init",
            shlex::try_quote(&place.to_string()).unwrap_or_default(),
            if tasks { MORE_TASKS } else { MORE_PLANS },
            self.typed()
        ));
        if self.quiet {
            tell(&format!("demo complete: {place}"));
        }
    }

    /// This program as one would type it where the demo was started.
    fn typed(&self) -> String {
        let is_ours = |folder: PathBuf| {
            folder
                .join("ralph")
                .canonicalize()
                .is_ok_and(|found| Some(found) == self.ralph.canonicalize().ok())
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        if std::env::split_paths(&path).any(is_ours) {
            return "ralph".to_owned();
        }
        let here = std::env::current_dir().unwrap_or_default();
        let near = self.ralph.strip_prefix(&here).map(|near| Path::new(".").join(near));
        let typed = near.unwrap_or_else(|_| self.ralph.clone()).display().to_string();
        shlex::try_quote(&typed).map_or_else(|_| typed.clone(), std::borrow::Cow::into_owned)
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            tell(text);
        }
    }
}

/// Prints lines; a closed stdout is no reason to end the demo.
fn tell(text: &str) {
    let _ = print_for_people(|out| writeln!(out, "{text}"));
}

/// The signals that came: we do not die before the loops.
///
/// Ctrl+C reaches a loop by itself, it is in the same process group; SIGTERM is handed on.
struct Signals {
    interrupt: Arc<AtomicBool>,
    terminate: Arc<AtomicBool>,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let signals = Self { interrupt: Arc::default(), terminate: Arc::default() };
        let ignored = ignored_signals();
        for (signal, flag) in [(SIGINT, &signals.interrupt), (SIGTERM, &signals.terminate)] {
            // What was ignored when we were started stays ignored, here and in the loops.
            if ignored & (1 << (signal - 1)) == 0 {
                signal_hook::flag::register(signal, flag.clone()).context("cannot listen to signals")?;
            }
        }
        Ok(signals)
    }

    /// The exit code of `command`; 130 when a signal came although it ended well.
    fn wait(&self, mut command: Command) -> anyhow::Result<u8> {
        let program = command.get_program().to_owned();
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let status = loop {
            // Only we reap the child: until then its id is its own.
            if let Some(status) = child.try_wait().context("cannot wait for the loop")? {
                break status;
            }
            if self.terminate.swap(false, Ordering::Relaxed) {
                self.interrupt.store(true, Ordering::Relaxed);
                // It may have ended a moment ago.
                let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            }
            std::thread::sleep(LOOK);
        };
        let was_interrupted =
            [&self.interrupt, &self.terminate].iter().any(|flag| flag.load(Ordering::Relaxed));
        let code = exit_code(status);
        Ok(if code == 0 && was_interrupted { 130 } else { code })
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn git(repo: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    printed("git", arguments, repo).context("the demo needs a working git")
}

fn sh(repo: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    printed("sh", arguments, repo).context("what the demo built does not work")
}

/// The output of a command in `repo`; an error with the first line of its stderr (or stdout) if it fails.
fn printed(program: &str, arguments: &[&str], repo: &Path) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    undisturbed(&mut command);
    let ended = output_within(command.args(arguments).current_dir(repo), ANSWER_LIMIT);
    let ended = ended.with_context(|| format!("cannot run {program}"))?;
    let output = String::from_utf8_lossy(&ended.stdout).into_owned();
    if !ended.status.success() {
        let told = String::from_utf8_lossy(&ended.stderr);
        let reason = told.lines().chain(output.lines()).find(|line| !line.trim().is_empty());
        bail!("{program} in {}: {}", repo.display(), reason.unwrap_or("failed without a word"));
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
        let ralph = folder.path().join("ralph");
        fs::write(&ralph, "program").unwrap();
        let repo = scratch_folder(Some(&folder.path().join("new/demo"))).unwrap();
        set_up(&repo, &ralph).unwrap();
        assert_eq!(git(&repo, &["status", "--porcelain"]).unwrap(), "");
        assert_eq!(
            git(&repo, &["ls-files"]).unwrap(),
            ".gitignore\n.ralph/config\n.ralph/prompts/build.md\n.ralph/prompts/plan.md\nAGENTS.md\nREADME.md\nspecs/greeting.md\n"
        );
        assert_eq!(fs::read(repo.join(".ralph/ralph")).unwrap(), b"program");
        assert_eq!(git(&repo, &["log", "--format=%an"]).unwrap(), "ralph demo\n");
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
        let command = stage.loop_command(&["plan", "3"]);
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
        let signals = Signals::listen().unwrap();
        for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)] {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            assert_eq!(signals.wait(command).unwrap(), code);
        }
        assert!(message(signals.wait(Command::new("/no/such/program"))).starts_with("cannot start /no/such"));
    }
}
