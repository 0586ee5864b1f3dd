//! Workers as `ralph spawn` leaves them: a program under our wrapper in a pane, and the records of its loop.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use chrono::{DateTime, Utc};
use ralph::agent::worker::held::{Given, Held};
use ralph::engine::event::{LoopIdentity, Stamped};
use ralph::engine::fact::Fact;
use ralph::engine::outcome::Outcome;
use ralph::engine::tally::Tally;
use ralph::files::FileId;
use ralph::platform::identity::ProcessIdentity;
use ralph::process::ladder::Ladder;
use ralph::process::launch::Launch;
use ralph::process::pane;
use ralph::process::pane::Pane;
use ralph::record::lock::Holder;
use ralph::record::state::{Setup, State};
use ralph::record::state_file::StateFile;
use ralph::record::worker::{Worker, WorkerTree};
use ralph::tmux::{Opening, Window};

use crate::scratch::{PATIENCE, Run, Scratch, wait_for};
use crate::tmux::Tmux;

/// When the loops began.
pub(crate) const STARTED: &str = "2026-01-15T10:30:00Z";

/// Workers on a tmux server of their own.
pub(crate) struct Workers {
    pub(crate) tmux: Tmux,
}

/// A process that stands for the monitor of a worker.
pub(crate) struct Monitor(Child);

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Monitor {
    pub(crate) fn end(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Workers {
    pub(crate) fn new() -> Self {
        Self { tmux: Tmux::new() }
    }

    pub(crate) fn scratch(&self) -> &Scratch {
        &self.tmux.scratch
    }

    pub(crate) fn run(&self, args: &str) -> Run {
        self.scratch().run(args)
    }

    /// What ralph prints for this; it has to end with 0.
    #[track_caller]
    pub(crate) fn says(&self, args: &str) -> String {
        let run = self.run(args);
        assert_eq!(run.code, Some(0), "{args}: {run:?}");
        run.stdout
    }

    /// Runs ralph, which has to end with 1, and answers what it says on stderr.
    #[track_caller]
    pub(crate) fn refuses(&self, args: &str) -> String {
        let run = self.run(args);
        assert_eq!(run.code, Some(1), "{args}: {run:?}");
        run.stderr
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.scratch().home().join("state/ralph/loops").join(name)
    }

    pub(crate) fn mark(&self, name: &str) -> String {
        format!("{name} in {}", self.scratch().outside().display())
    }

    /// A worker with this script in its pane; its loop runs, without a monitor.
    #[track_caller]
    pub(crate) fn spawn(&self, name: &str, body: &str) -> Window {
        self.book(name, |_| {});
        self.open(name, body)
    }

    /// Starts a script in a pane of this worker.
    #[track_caller]
    pub(crate) fn open(&self, name: &str, body: &str) -> Window {
        let (scratch, folder) = (self.scratch(), self.folder(name));
        scratch.agent(name, body);
        let command = scratch.command("env");
        let env = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let wait = Duration::from_millis(300);
        let launch = Launch {
            program: scratch.outside().join("bin").join(name).into(),
            cwd: scratch.root(),
            env: env.collect(),
            mark: self.mark(name),
            ladder: Ladder { interrupt: wait, terminate: wait },
            ..Launch::default()
        };
        pane::prepare(&folder, &launch).unwrap();
        let mut argv = vec![env!("CARGO_BIN_EXE_ralph").into()];
        argv.extend(pane::wrapper_args(&folder));
        let opening = Opening { name, argv: &argv, cwd: &scratch.root(), size: Opening::SIZE };
        let window = self.tmux.server.open(&opening).unwrap();
        Pane::await_start(&folder, None, PATIENCE).unwrap();
        let mark = self.mark(name);
        let held = Held {
            window: window.clone(),
            iteration: 7,
            mark,
            given: Given::Yes,
            given_at: None,
            started: Utc::now(),
        };
        held.write(&folder).unwrap();
        window
    }

    /// Writes the state of a worker's loop in its seventh iteration, with changes, and registers it.
    #[track_caller]
    pub(crate) fn book(&self, name: &str, change: impl FnOnce(&mut State)) {
        let folder = self.folder(name);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
        let quoted = |path: &Path| toml::Value::from(path.to_str().unwrap()).to_string();
        let (ralph_dir, root) = (quoted(&folder), quoted(&self.scratch().root()));
        let entry = format!(
            "version = 1\nname = \"{name}\"\nmode = \"spawn\"\nralph_dir = {ralph_dir}\nrun_dir = {ralph_dir}\n\
             project_root = {root}\nrun_id = \"r1\"\ncommand = \"\"\npid = 1\nstarted = \"{STARTED}\"\n"
        );
        let hash = fnv1a(folder.as_os_str().as_encoded_bytes());
        fs::write(self.folder(&format!("{name}@{hash:08x}")), entry).unwrap();
        let mut state = self.state_of(name);
        change(&mut state);
        // Any fact that causes a write.
        write(&folder, state, &Fact::AgentKnown { model: None, session_id: None });
    }

    fn state_of(&self, name: &str) -> State {
        let started: DateTime<Utc> = STARTED.parse().unwrap();
        let root = self.scratch().root();
        let mut tally =
            Tally { iteration: 7, consecutive_errors: 0, failed: 2, in_attempt: true, ..Tally::default() };
        tally.durations.sum = 6.0 * 312.0;
        let mut ended = ProcessIdentity::of_self().unwrap();
        ended.start_ticks += 1;
        let identity =
            LoopIdentity { run: "r1".into(), name: name.into(), mode: "spawn".into(), agent: name.into() };
        State {
            started_at: started,
            last_iteration_at: Some(started + Duration::from_hours(1)),
            last_iteration_ended_at: Some(started + Duration::from_mins(59)),
            max_iterations: Some(10),
            records: Some(self.folder(name)),
            setup: Setup {
                verb: "spawn".into(),
                prompt_file: Some(root.join("p.md")),
                inactivity_timeout: Some(180.0),
                worker: Some(Box::new(Worker {
                    command: vec![name.into()],
                    cwd: root.clone(),
                    tags: vec!["night".into()],
                    socket: "ralph".into(),
                    session: name.into(),
                    ..Worker::default()
                })),
                ..Setup::default()
            },
            argv: vec!["ralph".into(), "spawn".into()],
            cwd: root,
            is_held: false,
            tally,
            ..State::begun(&identity, ended)
        }
    }

    /// Has a process stand for the monitor of this worker.
    #[track_caller]
    pub(crate) fn monitor(&self, name: &str, change: impl FnOnce(&mut State)) -> Monitor {
        let monitor = Monitor(Command::new("sleep").arg("600").spawn().unwrap());
        let identity = ProcessIdentity::of(monitor.0.id()).unwrap();
        self.book(name, |state| {
            state.process = identity.clone();
            change(state);
        });
        let holder = Holder { run_id: "r1".into(), mode: "spawn".into(), identity };
        let lock = self.folder(name).join("lock");
        let id = FileId::of(&fs::File::create(&lock).unwrap()).unwrap();
        let mut content = toml::Table::try_from(&holder).unwrap();
        content.insert("lock_file".to_owned(), toml::Value::try_from(id).unwrap());
        fs::write(lock, content.to_string()).unwrap();
        monitor
    }

    /// Waits for a request to the monitor of this worker, and acts on it; `word` is the request.
    #[track_caller]
    pub(crate) fn obey(&self, name: &str, word: &str, outcome: Outcome, monitor: Monitor) {
        let folder = self.folder(name).join("requests");
        let request = wait_for("a request", || {
            fs::read_dir(&folder).ok()?.flatten().find_map(|entry| {
                let path = entry.path();
                (path.extension()? == "json").then_some(path)
            })
        });
        assert!(fs::read_to_string(&request).unwrap().contains(word));
        let mut state = self.state_of(name);
        state.process = ProcessIdentity::of(monitor.0.id()).unwrap();
        let duration = Duration::from_secs(1);
        let tally = state.tally.clone();
        write(&self.folder(name), state, &Fact::loop_ended(outcome, None, &tally, duration, None));
        fs::remove_file(request).unwrap();
        monitor.end();
    }

    /// The state file.
    #[track_caller]
    pub(crate) fn state(&self, name: &str) -> serde_json::Value {
        serde_json::from_slice(&fs::read(self.folder(name).join("state.json")).unwrap()).unwrap()
    }

    /// Makes a work tree for this worker.
    pub(crate) fn tree(&self, name: &str) -> WorkerTree {
        let scratch = self.scratch();
        scratch.git(&["add", "."]);
        scratch.git(&["commit", "--quiet", "-m", "begin"]);
        let path = scratch.path(".worktrees").join(name);
        scratch.git(&["worktree", "add", "--quiet", "-b", name, path.to_str().unwrap()]);
        WorkerTree { path, branch: name.into() }
    }
}

/// The suffix of a registry entry's name.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Writes a state and books a fact in it.
fn write(folder: &Path, state: State, fact: &Fact<'_>) {
    let (run, name) = (state.run.clone(), state.name.clone());
    let identity = LoopIdentity { run, name, mode: state.mode.clone(), agent: state.agent.clone() };
    let tally = state.tally.clone();
    let mut file = StateFile::new(&folder.join("state.json"), state);
    file.take(&Stamped::new(chrono::Local::now(), &identity, &tally, fact), 0).unwrap();
}
