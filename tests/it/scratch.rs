//! A scratch project: its own git repository and home, and agents that are small shell scripts.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use ralph::platform::identity::ProcessIdentity;

use crate::tmux::ALONE;

/// No run of ralph in these tests may take longer, and no wait: the test fails then. Machines can be busy: what takes a
/// second on an idle one has taken a minute.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Functions for an agent: `note` records the process that calls it, so that a test can check whether it is left;
/// `say TEXT` and `result` print claude's output. A look-alike of an agent only waits.
const PRELUDE: &str = r#"
if [ -n "$LOOK_ALIKE" ]; then while sleep 600; do :; done; fi
note() {
    local stat; read -r stat < "/proc/$BASHPID/stat"
    set -- ${stat##*) }
    echo "$BASHPID ${20}" >> "$HOME/pids"
}
say() {
    echo '{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"'"$1"'"}]},"parent_tool_use_id":null}'
}
result() {
    echo '{"type":"result","subtype":"success","is_error":false,"result":"","usage":{"input_tokens":10,"output_tokens":5}}'
}
note
"#;

/// The waits between INT, TERM and KILL in most tests, which need not wait for programs that ignore signals.
const SHORT_LADDER: [(&str, &str); 2] =
    [("RALPH_AGENT_INTERRUPT_WAIT", "0.5"), ("RALPH_AGENT_TERMINATE_WAIT", "0.5")];

/// The path of the program in `tests/agents`, which `cargo test --test it` alone does not build.
static SCRIPTED_AGENT: LazyLock<String> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_BIN_EXE_ralph")).parent().unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--locked", "--example", "scripted-agent"]);
    if folder.ends_with("release") {
        build.arg("--release");
    }
    outside_of_cargo(&mut build);
    assert!(build.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success(), "{build:?}");
    folder.join("examples/scripted-agent").display().to_string()
});

/// The scripted agent over the Agent Client Protocol, as a value of `--agent`.
pub(crate) fn agent_over_acp() -> String {
    format!("acp:{} --acp", *SCRIPTED_AGENT)
}

/// The command of the scripted agent on a terminal. It looks like claude, which is recognised by its option.
pub(crate) fn agent_on_screen() -> [&'static str; 2] {
    [&SCRIPTED_AGENT, "--dangerously-skip-permissions"]
}

/// A scratch project. Its folder is removed when it is dropped.
pub(crate) struct Scratch {
    dir: tempfile::TempDir,
    ladder: &'static [(&'static str, &'static str)],
}

/// The result of a finished run of ralph.
#[derive(Debug)]
pub(crate) struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
}

impl Scratch {
    /// A git repository with `specs/`, an implementation plan and a prompt file `p.md` that may end with COMPLETE.
    pub(crate) fn new() -> Self {
        let scratch = Self { dir: tempfile::tempdir().unwrap(), ladder: &SHORT_LADDER };
        for folder in ["home", "bin", "project/specs", "project/.ralph"] {
            fs::create_dir_all(scratch.dir.path().join(folder)).unwrap();
        }
        scratch.git(&["init", "--quiet", "--initial-branch=main"]);
        scratch.write(".ralph/implementation_plan.md", "- [x] a task\n");
        scratch.write("p.md", "Do it, then say <promise>COMPLETE</promise>.\n");
        scratch
    }

    /// [`new`](Self::new) with the default waits between INT, TERM and KILL, for tests of these.
    pub(crate) fn with_default_ladder() -> Self {
        Self { ladder: &[], ..Self::new() }
    }

    /// The folder around the project, the home and the agents, for files that must not be in the project.
    pub(crate) fn outside(&self) -> &Path {
        self.dir.path()
    }

    /// The project root.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// A path below the project root.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, content: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        let bytes = fs::read(self.path(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A file, empty if it does not exist.
    pub(crate) fn read_if_there(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap_or_default()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = self.command("git").args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Puts an agent on PATH: `name` is the program that a preset starts, `body` a bash script, which begins with
    /// [`PRELUDE`].
    pub(crate) fn agent(&self, name: &str, body: &str) -> &Self {
        let path = self.dir.path().join("bin").join(name);
        executable(&path, &format!("#!/usr/bin/env bash\n{PRELUDE}{body}\n"));
        self
    }

    /// A command in the project root, in its own environment: no settings, identity or agents of the developer.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let home = self.dir.path().join("home");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.dir.path().join("bin").display());
        let mut command = Command::new(program);
        command.current_dir(self.root()).env_clear().env("PATH", path).env("HOME", &home);
        command.env("XDG_STATE_HOME", home.join("state")).env("XDG_CONFIG_HOME", home.join("config"));
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("LANG", "C.UTF-8");
        command.envs(self.ladder.iter().copied()).env("RALPH_RETRY_BACKOFF", "none");
        command.envs(std::env::var_os(PLATFORM).map(|backend| (PLATFORM, backend)));
        outside_of_attempts(&mut command);
        for (name, value) in [("NAME", "Test"), ("EMAIL", "test@example.com")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        command.stdin(Stdio::null());
        command
    }

    /// A command like [`Self::command`] that runs its arguments in a new pid namespace, like a container.
    pub(crate) fn container(&self) -> Command {
        let mut command = self.command("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command
    }

    /// The ralph under test with these arguments, split at blanks.
    pub(crate) fn ralph(&self, args: &str) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_ralph"));
        command.args(args.split_whitespace());
        command
    }

    /// Runs ralph to its end.
    pub(crate) fn run(&self, args: &str) -> Run {
        finish(self.start(args))
    }

    /// Runs any command to its end, with captured output.
    pub(crate) fn finish(command: &mut Command) -> Run {
        Self::finish_within(PATIENCE, command)
    }

    /// [`Self::finish`] for work that needs more time than most.
    pub(crate) fn finish_within(patience: Duration, command: &mut Command) -> Run {
        finish_within(patience, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Starts ralph with captured output.
    pub(crate) fn start(&self, args: &str) -> Child {
        self.ralph(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// A file as bytes.
    pub(crate) fn bytes(&self, relative: &str) -> Vec<u8> {
        fs::read(self.path(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
    }

    /// Every file and folder of the project but git's own, with the content of the files: for tests that nothing
    /// changes.
    pub(crate) fn snapshot(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.file_name().is_some_and(|name| name == ".git") {
                    continue;
                }
                found.push((path.clone(), fs::read(&path).unwrap_or_default()));
                if path.is_dir() {
                    walk(&path, found);
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.root(), &mut found);
        found.sort();
        found
    }

    /// The newest session log.
    pub(crate) fn session_log(&self) -> String {
        let newest = self.session_logs().pop().expect("no session log");
        String::from_utf8_lossy(&fs::read(newest).unwrap()).into_owned()
    }

    /// All session logs, oldest first.
    pub(crate) fn session_logs(&self) -> Vec<PathBuf> {
        let Ok(folder) = fs::read_dir(self.path(".ralph/logs")) else { return Vec::new() };
        let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
        let mut logs: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).filter(is_log).collect();
        logs.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
        logs
    }

    /// The state file.
    pub(crate) fn state(&self) -> toml::Table {
        self.read(".ralph/state.toml").parse().unwrap()
    }
}

/// A started ralph that gets `kill -9` at the end of a test, even if the test fails.
pub(crate) struct Started(Option<Child>);

impl Started {
    pub(crate) fn new(scratch: &Scratch, args: &str) -> Self {
        Self(Some(scratch.start(args)))
    }

    /// Starts a command; its messages go to this file.
    pub(crate) fn into(file: &Path, command: &mut Command) -> Self {
        let file = fs::File::create(file).unwrap();
        Self(Some(command.stdout(Stdio::piped()).stderr(file).spawn().unwrap()))
    }

    /// Starts a command and discards its output.
    pub(crate) fn quietly(command: &mut Command) -> Self {
        Self(Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Run {
        finish(self.0.take().unwrap())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Names the backend that is tested.
pub(crate) const PLATFORM: &str = "RALPH_PLATFORM";

/// Makes a command run as a user's, even if an agent of ralph runs these tests: a debug build reads the variable.
fn outside_of_attempts(command: &mut Command) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if std::env::var_os(ALONE).is_none() {
        let limit = getrlimit(Resource::Locks);
        setrlimit(Resource::Locks, Rlimit { current: limit.maximum, ..limit }).unwrap();
    }
    command.env("TESTS_OF_RALPH_PID", std::process::id().to_string());
}

/// Makes a command that calls cargo run as outside of a test: build scripts of dependencies run again when these variables
/// change, and cargo sets them for tests.
pub(crate) fn outside_of_cargo(command: &mut Command) {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_")) {
        command.env_remove(name);
    }
    command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH").env_remove("OUT_DIR");
}

/// Waits for a started ralph; kills it when it takes too long.
pub(crate) fn finish(child: Child) -> Run {
    finish_within(PATIENCE, child)
}

/// [`finish`] for work that needs more time than most.
pub(crate) fn finish_within(patience: Duration, child: Child) -> Run {
    let started = Instant::now();
    let pid = rustix::process::Pid::from_child(&child);
    let (send, done) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        let late = done.recv_timeout(patience).is_err();
        if late {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        late
    });
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let _ = send.send(());
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let run =
        Run { code: status.code(), stdout: text(stdout), stderr: text(stderr), elapsed: started.elapsed() };
    assert!(!watchdog.join().unwrap(), "ralph did not end within {patience:?}: {run:?}");
    run
}

/// Writes a program through another process: while a thread of ours has a file open for writing, so does every
/// program that another thread is just starting, and such a file cannot be executed.
pub(crate) fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Bash reads a script while it runs it, so a running agent must keep its own copy.
    let _ = fs::remove_file(path);
    let mut install = Command::new("install");
    let mut install =
        install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    install.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(install.wait().unwrap().success(), "{}", path.display());
}

/// Checks several things at a time, in a test that checks many.
pub(crate) fn side_by_side<T: Sync>(things: &[T], check: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for share in things.chunks(things.len().div_ceil(4)) {
            scope.spawn(|| share.iter().for_each(&check));
        }
    });
}

/// Waits until `condition` holds, checking often; fails after a minute.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(started.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The living process whose pid a script wrote into a file, once it is there.
#[track_caller]
pub(crate) fn process_in(path: &Path) -> ProcessIdentity {
    let read = || fs::read_to_string(path).ok()?.trim().parse().ok();
    let pid = wait_for(&format!("a pid in {}", path.display()), read);
    ProcessIdentity::of(pid).unwrap_or_else(|error| panic!("{pid}: {error}"))
}

/// Waits until this process has ended.
#[track_caller]
pub(crate) fn await_end(process: &ProcessIdentity) {
    wait_for("the end of a process", || (!process.is_alive()).then_some(()));
}

/// A stream of claude's that says `text` and ends well, as bash.
pub(crate) fn claude_says(text: &str) -> String {
    says(&[&claude_text(text), CLAUDE_RESULT])
}

/// The output of a codex that says this.
pub(crate) fn codex_says(text: &str) -> String {
    let message = serde_json::json!({"id": "1", "type": "agent_message", "text": text});
    let item = serde_json::json!({"type": "item.completed", "item": message}).to_string();
    says(&[&item, r#"{"type":"turn.completed","usage":{"input_tokens":7,"output_tokens":3}}"#])
}

/// One line of claude's with the assistant's text.
pub(crate) fn claude_text(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!(
        r#"{{"type":"assistant","message":{{"model":"m","content":[{{"type":"text","text":{text}}}]}},"parent_tool_use_id":null}}"#
    )
}

/// The last line of a good run of claude's.
pub(crate) const CLAUDE_RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.01,"usage":{"input_tokens":10,"output_tokens":5}}"#;

/// An agent, as bash, that reads its prompt and prints these lines.
pub(crate) fn says(lines: &[&str]) -> String {
    format!("cat > /dev/null\ncat <<'STREAM'\n{}\nSTREAM", lines.join("\n"))
}
