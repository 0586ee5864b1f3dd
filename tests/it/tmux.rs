//! A tmux server of our own: what is opened, closed, looked at and typed in it, with real tmux.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use ralph::platform::identity::ProcessIdentity;
use ralph::platform::stat::Stat;
use ralph::tmux::paste::{self, Key};
use ralph::tmux::screen::{self, Extent};
use ralph::tmux::{Asks as _, Opening, Screen, Server, TmuxError, Window, Words, window};

use crate::scratch::{Scratch, await_end, executable, wait_for};
use crate::terminal::Terminal;

/// A tmux server of a test's own. It is ended when it is dropped.
pub(crate) struct Tmux {
    pub(crate) scratch: Scratch,
    pub(crate) server: Server,
    socket: PathBuf,
}

impl Tmux {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        let socket = scratch.outside().join("tmux's socket");
        Self { server: Server::new(&socket), socket, scratch }
    }

    /// Opens a window for this program.
    #[track_caller]
    pub(crate) fn open(&self, name: &str, words: &[&str]) -> Window {
        let argv: Vec<OsString> = words.iter().map(Into::into).collect();
        let cwd = self.scratch.root();
        self.server.open(&Opening { name, argv: &argv, cwd: &cwd, size: Opening::SIZE }).unwrap()
    }

    /// Opens a window for a script of bash.
    #[track_caller]
    pub(crate) fn script(&self, name: &str, body: &str) -> Window {
        let path = self.scratch.outside().join("scripts").join(name);
        executable(&path, &format!("#!/usr/bin/env bash\n{body}\n"));
        self.open(name, &["bash", path.to_str().unwrap()])
    }

    /// What the user types into a shell elsewhere: the answer of tmux, and whether it went well.
    pub(crate) fn user(&self, args: &[&str]) -> (bool, String) {
        let mut command = Command::new("tmux");
        let output = command.arg("-S").arg(&self.socket).args(args).env_remove("TMUX").output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Waits until the pane shows what it should.
    #[track_caller]
    pub(crate) fn await_screen(&self, window: &Window, what: &str, is: impl Fn(&Screen) -> bool) -> Screen {
        wait_for(what, || Some(self.look(window)).filter(|screen| is(screen)))
    }

    #[track_caller]
    pub(crate) fn await_line(&self, window: &Window, line: &str) -> Screen {
        self.await_screen(window, line, |screen| screen.lines.iter().any(|shown| shown == line))
    }

    #[track_caller]
    pub(crate) fn look(&self, window: &Window) -> Screen {
        screen::look(&self.server, window, Extent::Visible, false).unwrap()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let (_, pid) = self.user(&["display-message", "-p", "#{pid}"]);
        self.user(&["kill-server"]);
        if let Some(server) = pid.parse().ok().and_then(|pid| ProcessIdentity::of(pid).ok()) {
            await_end(&server);
        }
    }
}

/// The variable of a process in which one test runs alone. It carries a limit like the mark of a run.
pub(crate) const ALONE: &str = "A_TEST_ALONE";

/// Whether we are in a process of our own, in which only the test of this name runs; if not, it is run there, as `prepare`
/// says, and has to pass.
#[track_caller]
pub(crate) fn is_alone(test: &str, prepare: impl FnOnce(&mut Command)) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut own = Command::new("bash");
    own.args(["-c", "ulimit -Sx 123456789; exec 9> \"$OPEN_FILE\"; exec \"$@\"", "bash"])
        .arg(std::env::current_exe().unwrap());
    own.args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ALONE, "1")
        .env("OPEN_FILE", "/dev/null");
    prepare(&mut own);
    let run = own.output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
    false
}

#[track_caller]
fn assert_gone<T: std::fmt::Debug>(result: Result<T, TmuxError>) {
    let error = result.unwrap_err();
    assert!(error.is_gone(), "{error}");
}

#[test]
fn no_window_is_taken_for_another() {
    let tmux = Tmux::new();
    let longer = tmux.open("ab", &["sleep", "600"]);
    let short = tmux.open("a", &["sleep", "600"]);
    let again = tmux.open("ab", &["sleep", "600"]);
    let dotted = tmux.open("a.b:c", &["sleep", "600"]);
    let names = [&longer, &short, &again, &dotted].map(|window| window.name.as_str());
    assert_eq!(names, ["ab", "a", "ab-2", "a_b_c"]);
    let (_, sessions) = tmux.user(&["list-sessions", "-F", "#{session_name}"]);
    assert_eq!(sessions.lines().count(), 4, "{sessions}");

    window::close(&short).unwrap();
    assert_gone(screen::look(&tmux.server, &short, Extent::Visible, false));
    assert_gone(paste::press(&short, Key::Enter));
    window::close(&short).unwrap();
    for other in [&longer, &again] {
        assert_eq!(tmux.look(other).dead, None);
        window::close(other).unwrap();
    }
    window::close(&dotted).unwrap();
    await_end(&dotted.server);
    window::close(&dotted).unwrap();
    assert_gone(screen::look(&tmux.server, &dotted, Extent::Visible, false));

    // In another server with the same path, the ids have other meanings.
    let later = tmux.open("later", &["sleep", "600"]);
    assert_eq!((&later.session, &later.pane), (&longer.session, &longer.pane));
    window::close(&longer).unwrap();
    assert_gone(paste::paste(&longer, "text"));
    let unaware = Window { server: ProcessIdentity::of_self().unwrap(), ..later.clone() };
    assert_gone(paste::paste(&unaware, "text"));
    assert_gone(tmux.server.renew(&unaware, &["sleep".into(), "1".into()], Path::new("/")));
    window::close(&unaware).unwrap();
    assert_eq!(tmux.look(&later).dead, None);
    assert_eq!(tmux.user(&["list-buffers"]).1, "");
}

#[test]
fn what_the_user_has_opened_stays() {
    let tmux = Tmux::new();
    let window = tmux.open("worker", &["sleep", "600"]);
    let beside = |tmux: &Tmux, args: &[&str]| {
        tmux.user(&[args, &["-d", "-P", "-F", "#{pane_id}", "sleep", "600"]].concat())
    };
    let (_, own) = beside(&tmux, &["new-window", "-t", &window.session]);
    let (_, split) = beside(&tmux, &["split-window", "-t", &window.pane]);
    window::close(&window).unwrap();
    let (_, panes) = tmux.user(&["list-panes", "-s", "-t", "=worker:", "-F", "#{pane_id}"]);
    let mut panes: Vec<&str> = panes.lines().collect();
    panes.sort_unstable();
    assert_eq!(panes, [own.as_str(), &split]);
    // One of the same name is another session.
    let next = tmux.open("worker", &["sleep", "600"]);
    assert_eq!(next.name, "worker-2");
    // What is set for ours is not the user's.
    assert_eq!(tmux.user(&["show-options", "-gv", "history-limit"]).1, "2000");
    let of = |pane: &str, what: &str| tmux.user(&["display-message", "-p", "-t", pane, what]).1;
    assert_eq!(
        (of(&split, "#{remain-on-exit}"), of(&next.pane, "#{history_limit}")),
        ("off".into(), "50000".into())
    );
    window::close(&next).unwrap();
    tmux.user(&["kill-pane", "-t", &split]);
    tmux.user(&["kill-pane", "-t", &own]);
    await_end(&window.server);
}

#[test]
fn nothing_of_ours_is_in_the_environment_of_a_server() {
    let test = "tmux::nothing_of_ours_is_in_the_environment_of_a_server";
    let scratch = Scratch::new();
    let lock = scratch.outside().join("lock");
    let prepare = |own: &mut Command| {
        own.env("OPEN_FILE", &lock)
            .env("RALPH_RUN", "run")
            .env("RALPH_SUPERVISOR", "1")
            .env("RALPH_SECRET", "s")
            .env("THEIRS", "kept");
        own.env("TMUX", "/nowhere,1,0").env("TMUX_PANE", "%77");
    };
    if !is_alone(test, prepare) {
        return;
    }
    let tmux = Tmux::new();
    let window = tmux.open("worker", &["sleep", "600"]);
    let read = |pid: &str, what: &str| std::fs::read_to_string(format!("/proc/{pid}/{what}")).unwrap();
    let server = window.server.pid.to_string();
    let limits = |pid: &str| {
        let limits = read(pid, "limits");
        limits.lines().find(|line| line.starts_with("Max file locks")).unwrap().to_owned()
    };
    assert!(limits("self").contains("123456789"), "we carry the mark of a run around us, and still do");
    assert!(!limits(&server).contains("123456789"));
    let (_, pane) = tmux.user(&["display-message", "-p", "-t", &window.pane, "#{pane_pid}"]);
    for pid in [&server, &pane] {
        let environment = read(pid, "environ");
        let mut names = environment.split('\0');
        assert!(
            !names.clone().any(|entry| entry.starts_with("RALPH_") || entry.ends_with("%77")),
            "{environment}"
        );
        assert!(names.any(|entry| entry == "THEIRS=kept"));
    }
    assert_eq!(std::fs::read_link(format!("/proc/{server}/cwd")).unwrap(), Path::new("/"));
    let open = |pid: &str| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok()).collect::<Vec<_>>()
    };
    let lock = PathBuf::from(std::env::var_os("OPEN_FILE").unwrap());
    assert!(open("self").contains(&lock) && !open(&server).contains(&lock), "a lock would be held for ever");
    let stat = Stat::read(window.server.pid).unwrap();
    assert_eq!(stat.session, stat.pid);
    for args in [["show-environment", "-g"].as_slice(), &["show-environment", "-t", &window.session]] {
        let (_, variables) = tmux.user(args);
        assert!(!variables.contains("RALPH_"), "{variables}");
    }
    // Nor do the user's own windows have it.
    tmux.user(&["new-window", "-d", "-t", &window.session, "sleep", "600"]);
    let (_, own) = tmux.user(&["list-panes", "-s", "-F", "#{pane_pid}"]);
    assert_eq!(own.lines().count(), 2);
    assert!(own.lines().all(|pid| !read(pid, "environ").contains("RALPH_")));
}

#[test]
fn a_server_by_name_is_the_users_and_not_the_default_one() {
    let name = format!("ralph-test-{}", std::process::id());
    let server = Server::new(&name);
    let argv = ["sleep", "600"].map(OsString::from);
    let opening = Opening { name: "a", argv: &argv, cwd: Path::new("/"), size: (70, 20) };
    let window = server.open(&opening).unwrap();
    assert!(window.socket.ends_with(&name), "{window:?}");
    assert_eq!(screen::look(&server, &window, Extent::Visible, false).unwrap().size, (70, 19 + 1));
    assert_eq!(window.server(), Server::new(&window.socket));
    window::close(&window).unwrap();
    await_end(&window.server);
    std::fs::remove_file(&window.socket).unwrap();
}

#[test]
fn a_tmux_that_will_not_do_is_told() {
    let Some(wanted) = std::env::var_os("WANTED") else {
        let scratch = Scratch::new();
        let folders = ["none", "old"].map(|name| scratch.outside().join(name));
        for folder in &folders {
            std::fs::create_dir(folder).unwrap();
            std::os::unix::fs::symlink(which("bash"), folder.join("bash")).unwrap();
        }
        executable(&folders[1].join("tmux"), "#!/bin/sh\necho tmux 2.9a\n");
        for folder in &folders {
            is_alone("tmux::a_tmux_that_will_not_do_is_told", |own| {
                own.env("PATH", folder).env("WANTED", folder);
            });
        }
        return;
    };
    let argv = ["sleep", "600"].map(OsString::from);
    let opening = Opening { name: "a", argv: &argv, cwd: Path::new("/"), size: Opening::SIZE };
    let error = Server::new("/nowhere/at/all").open(&opening).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("apt-get install tmux") && said.contains("brew install tmux"), "{said}");
    if Path::new(&wanted).ends_with("old") {
        assert!(said.starts_with("tmux is too old: this is 'tmux 2.9a'"), "{said}");
    } else {
        assert!(matches!(error, TmuxError::Missing), "{said}");
    }
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file()).unwrap()
}

#[test]
fn what_tmux_refuses_is_told() {
    let tmux = Tmux::new();
    let error = Server::new(tmux.scratch.outside().join("no/such/socket"))
        .open(&Opening {
            name: "a",
            argv: &["a".into(), "b".into()],
            cwd: Path::new("/"),
            size: Opening::SIZE,
        })
        .unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
    let window = tmux.open("worker", &["sleep", "600"]);
    let error = tmux.server.ask(&[Words::new(["no-such-command"])]).unwrap_err();
    assert!(error.to_string().contains("unknown command: no-such-command"), "{error}");
    let one = Opening { name: "a", argv: &["sleep".into()], cwd: Path::new("/"), size: Opening::SIZE };
    assert!(matches!(tmux.server.open(&one), Err(TmuxError::Input(_))));
    let long = "x".repeat(paste::MOST + 1);
    assert!(paste::paste(&window, &long).unwrap_err().to_string().contains("1048576 is the most"));
}

#[test]
fn screens_are_text() {
    let tmux = Tmux::new();
    let window = tmux.script(
        "worker",
        r"printf '\e[31mred\e[0m \e[1mé日本\e[0m   \n'; printf 'x%.0s' {1..250}; printf '\nend\n\n'; printf 'at'; read -r
        printf '\e[?1049h\e[2J\e[Hother screen'; read -r; printf '\e[?1049l'; read -r; exit 7",
    );
    let screen = tmux.await_line(&window, "at");
    assert_eq!(screen.lines, ["red é日本", &"x".repeat(200), &"x".repeat(50), "end", "", "at"]);
    assert_eq!((screen.cursor, screen.size, screen.is_alternate), ((2, 5), (200, 50), false));
    let joined = screen::look(&tmux.server, &window, Extent::Whole, true).unwrap();
    assert_eq!(joined.lines, ["red é日本", &"x".repeat(250), "end", "", "at"]);

    paste::press(&window, Key::Enter).unwrap();
    let other = tmux.await_screen(&window, "the alternate screen", |screen| screen.is_alternate);
    assert_eq!(other.lines, ["other screen"]);
    // The user is scrolling back; keys still go to the program.
    tmux.user(&["copy-mode", "-t", &window.pane]);
    assert!(tmux.look(&window).is_in_mode);
    paste::press(&window, Key::Enter).unwrap();
    tmux.await_screen(&window, "the first screen", |screen| !screen.is_alternate);
    assert!(tmux.look(&window).is_in_mode, "the user is not disturbed");
    paste::press(&window, Key::Enter).unwrap();
    let last = tmux.await_screen(&window, "its end", |screen| screen.dead.is_some());
    assert_eq!(last.lines[..6], screen.lines[..], "the last screen is still there, and nothing on it");
    assert_gone(paste::paste(&window, "text"));

    // Another program in its place begins with nothing.
    tmux.server
        .renew(&window, &["bash".into(), "-c".into(), "pwd; sleep 600".into()], Path::new("/usr"))
        .unwrap();
    let screen = tmux.await_line(&window, "/usr");
    assert_eq!((screen.lines.len(), screen.scrolled, screen.dead), (1, 0, None));
}

#[test]
fn a_mark_finds_its_place() {
    let tmux = Tmux::new();
    let window = tmux.script(
        "worker",
        r#"stty -echo; seq 100; while read -r from to; do
        [ "$from" = clear ] && printf '\e[3J\e[H\e[2J' || seq $from $to; echo done $to; done"#,
    );
    let more = |words: &str, done: &str| {
        paste::type_text(&window, words).unwrap();
        paste::press(&window, Key::Enter).unwrap();
        tmux.await_line(&window, done);
    };
    let since = |mark| screen::since(&tmux.server, &window, mark, true).unwrap().lines;
    tmux.await_line(&window, "100");
    let early = screen::mark(&tmux.server, &window).unwrap();
    let shown = tmux.look(&window);
    assert_eq!(since(&early), shown.lines, "nothing has scrolled by since");
    more("1000 3000", "done 3000");
    let all = since(&early);
    assert_eq!((all[0].as_str(), all.len()), (shown.lines[0].as_str(), shown.lines.len() + 2001 + 1));
    let late = screen::mark(&tmux.server, &window).unwrap();
    more("4000 4100", "done 4100");
    assert_eq!(since(&late).last().unwrap(), "done 4100");
    assert!(since(&late).len() < 200 && since(&late).contains(&"4000".to_owned()));

    // More than tmux keeps: all that is left.
    more("10000 70000", "done 70000");
    for mark in [&early, &late] {
        let all = since(mark);
        assert!(all.len() > 40_000 && all.last().unwrap() == "done 70000", "{}", all.len());
    }
    // What was there is gone, and there is more now than there was above the mark.
    more("clear x", "done x");
    more("20000 25000", "done 25000");
    let all = since(&late);
    assert!(all.contains(&"20000".to_owned()), "{:?}", &all[..3]);
}

/// Keeps what is typed, up to a `!`, in a file. A terminal gives a few bytes at a time: a shell that starts a program for
/// each of them would need minutes on a busy machine.
const READER: &str = r#"stty -echo -icanon; printf "$1"; echo ready
exec python3 -c '
import os, sys, time
with open(sys.argv[1], "ab", 0) as kept:
    text = b""
    while b"!" not in text:
        text = os.read(0, 65536)
        kept.write(text)
time.sleep(600)
' "$2""#;

#[test]
fn a_megabyte_is_pasted_with_and_without_brackets() {
    let tmux = Tmux::new();
    let line = "It is a line of \u{e9} text that is rather long, and there is a tab\t.\n";
    let mut text = line.repeat((paste::MOST - 100) / line.len());
    text.push_str("\x1b[201~\x03the end!");
    for (name, asks, before, after) in
        [("brackets", r"\e[?2004h", "\x1b[200~", "\x1b[201~"), ("none", "", "", "")]
    {
        let got = tmux.scratch.outside().join(name);
        let path = tmux.scratch.outside().join("reader");
        executable(&path, &format!("#!/usr/bin/env bash\n{READER}\n"));
        let window = tmux.open(name, &["bash", path.to_str().unwrap(), asks, got.to_str().unwrap()]);
        tmux.await_line(&window, "ready");
        assert_eq!(paste::paste(&window, &text).unwrap(), 2);
        let expected = format!("{before}{}{after}", text.replace(['\x1b', '\x03'], ""));
        wait_for("all of it", || {
            let read = std::fs::read(&got).unwrap_or_default();
            (read.len() == expected.len() || read.len() + after.len() == expected.len()).then_some(())
        });
        let read = std::fs::read_to_string(&got).unwrap();
        assert!(expected.starts_with(&read), "{name}: {}…", &read[..200]);
    }
    assert_eq!(tmux.user(&["list-buffers"]).1, "");
}

#[test]
fn a_program_without_brackets_gets_it_as_if_typed() {
    let tmux = Tmux::new();
    let window = tmux.script(
        "worker",
        "trap 'echo interrupted' INT; while :; do read -r line && echo \"read: $line\"; done",
    );
    assert_eq!(paste::paste(&window, "one\ntwo; $(x)\r\nthree\r").unwrap(), 1);
    tmux.await_line(&window, "read: two; $(x)");
    assert!(!tmux.look(&window).lines.contains(&"read: three".to_owned()));
    paste::press(&window, Key::Enter).unwrap();
    tmux.await_line(&window, "read: three");
    assert_eq!(paste::type_text(&window, "").unwrap(), 0);
    assert_eq!(paste::type_text(&window, "four;").unwrap(), 0);
    paste::press(&window, Key::Enter).unwrap();
    tmux.await_line(&window, "read: four;");
    paste::press(&window, Key::Interrupt).unwrap();
    tmux.await_screen(&window, "an interrupt", |screen| {
        screen.lines.iter().any(|line| line.ends_with("interrupted"))
    });
}

#[test]
fn a_user_attaches_and_their_terminal_has_its_size() {
    let tmux = Tmux::new();
    let window = tmux.script("worker.1", "echo shown; while sleep 0.1; do stty size; done");
    let other = tmux.open("other", &["sleep", "600"]);
    tmux.await_line(&window, "50 200");
    let mut attach = window::attach(&window);
    attach.current_dir("/").env("TERM", "xterm").env("PATH", std::env::var_os("PATH").unwrap());
    let mut terminal = Terminal::start(&attach, 30, 90);
    terminal.wait_for("the pane", |screen| screen.contains("29 90") && screen.contains(" worker.1 "));
    assert_eq!(tmux.look(&window).size, (90, 29));
    // The prefix of tmux, and the key to leave.
    terminal.press("\x02d");
    assert_eq!(terminal.end().code, Some(0));
    window::close(&window).unwrap();
    assert_eq!(tmux.look(&other).dead, None);
}
