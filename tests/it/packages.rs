//! The packages that `scripts/release` makes, here of the ralph under test: what is in them, how they install, and that ralph
//! runs from them as it runs by itself.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use crate::scratch::{Run, Scratch, executable, outside_of_cargo, wait_for};
use crate::terminal::Terminal;

const TARGET: &str = concat!(env!("CARGO_PKG_NAME"), "-", env!("CARGO_PKG_VERSION"));
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Waits for the test, then ends well. Of signals it notes INT and ends by it.
const AGENT: &str = "trap 'echo INT >> $HOME/heard; exit 1' INT; cat > /dev/null; touch $HOME/began
until [ -e $HOME/go ]; do sleep 0.02; done; say hello; result";

/// The names of `packaging/names`, whatever the environment says.
const NAMES: [(&str, &str); 5] = [
    ("REPOSITORY", "https://example.org/ralph"),
    ("CRATE", "ralph"),
    ("NPM_SCOPE", "@owner"),
    ("PYPI", "ralph"),
    ("MAINTAINER", "Owner <owner@example.org>"),
];

/// A clone of this tree as it is, its program, and the packages of it. They are removed by the next run of the tests.
struct Made {
    tree: PathBuf,
    program: PathBuf,
    out: PathBuf,
}

static MADE: LazyLock<Made> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let _ = fs::remove_dir_all(&folder);
    let made = Made { tree: folder.join("tree"), program: folder.join("ralph"), out: folder.join("out") };
    fs::create_dir_all(&made.tree).unwrap();
    // What is not compiled into the program makes it small.
    good(Command::new("strip").args(["-s", env!("CARGO_BIN_EXE_ralph"), "-o"]).arg(&made.program));
    let copy = "git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - | tar -x -C \"$0\"";
    good(Command::new("sh").args(["-c", copy]).arg(&made.tree).current_dir(env!("CARGO_MANIFEST_DIR")));
    made.git(&["init", "--quiet"]);
    made.git(&["add", "--all"]);
    made.git(&["commit", "--quiet", "--message=x"]);
    good(&mut made.release(&made.out));
    made
});

impl Made {
    fn git(&self, args: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]);
        good(git.args(args).current_dir(&self.tree));
    }

    fn release(&self, out: &Path) -> Command {
        let mut release = Command::new(self.tree.join("scripts/release"));
        release.args(["--rehearse", "--target", this_target(), "--program"]).arg(&self.program).arg(out);
        // The crates are there: this program was just built of them.
        release.env("CARGO_NET_OFFLINE", "true").envs(NAMES).stdin(Stdio::null());
        // A release leaves its tree as it was, also where Python keeps what it has compiled.
        release.env_remove("PYTHONDONTWRITEBYTECODE");
        outside_of_cargo(&mut release);
        release
    }

    /// The one file with this beginning and end.
    fn file(&self, begin: &str, end: &str) -> PathBuf {
        let names =
            fs::read_dir(&self.out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names = names.filter(|name| name.starts_with(begin) && name.ends_with(end));
        let name = names.next().unwrap_or_else(|| panic!("no {begin}…{end}"));
        assert_eq!(names.next(), None);
        self.out.join(name)
    }

    /// Unpacks the packages for npm as an installation lays them out; the path that shells call.
    fn npm(&self, root: &Path, names: &[&str]) -> PathBuf {
        let modules = root.join("node_modules/@owner");
        for name in names {
            let to = modules.join(name);
            fs::create_dir_all(&to).unwrap();
            let package = self.out.join(format!("owner-{name}-{VERSION}.tgz"));
            good(
                Command::new("tar")
                    .args(["-xz", "--strip-components=1", "-f"])
                    .arg(package)
                    .arg("-C")
                    .arg(&to),
            );
        }
        let bin = root.join("node_modules/.bin");
        fs::create_dir_all(&bin).unwrap();
        symlink("../@owner/ralph/bin/ralph", bin.join("ralph")).unwrap();
        bin.join("ralph")
    }

    /// Installs the wheel into a new environment of Python; the path that shells call.
    fn pip(&self, venv: &Path) -> PathBuf {
        good(Command::new("python3").args(["-m", "venv"]).arg(venv));
        let mut pip = Command::new(venv.join("bin/pip"));
        good(pip.args(["install", "--no-index", "--quiet"]).arg(self.file("ralph", ".whl")));
        venv.join("bin/ralph")
    }

    /// The bare program, and the ones that npm and pip have put on `PATH`.
    fn on_path(&self, scratch: &Scratch) -> [PathBuf; 3] {
        let folder = scratch.outside();
        let bare = PathBuf::from(env!("CARGO_BIN_EXE_ralph"));
        [bare, self.npm(folder, &["ralph", &package()]), self.pip(&folder.join("venv"))]
    }
}

/// The target of the program under test, which is the one that this test was built for.
fn this_target() -> &'static str {
    match (std::env::consts::ARCH, cfg!(target_env = "musl")) {
        ("aarch64", false) => "aarch64-unknown-linux-gnu",
        ("aarch64", true) => "aarch64-unknown-linux-musl",
        (_, false) => "x86_64-unknown-linux-gnu",
        (_, true) => "x86_64-unknown-linux-musl",
    }
}

/// What npm calls the package for this machine.
fn package() -> String {
    let cpu = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
    format!("ralph-linux-{cpu}-{}", if cfg!(target_env = "musl") { "musl" } else { "glibc" })
}

#[track_caller]
fn good(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

#[track_caller]
fn assert_refused(command: &mut Command, words: &[&str]) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.starts_with("error: "), "{command:?}: {output:?}");
    assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
}

#[test]
fn a_release_has_the_same_bytes_whoever_makes_it() {
    let made = &*MADE;
    let again = made.out.with_file_name("again");
    let mut other = Command::new("sh");
    other.args(["-c", "umask 077; exec \"$@\"", "sh"]);
    let release = made.release(&again);
    other.arg(release.get_program()).args(release.get_args());
    for (name, value) in release.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    good(other.env("TZ", "Pacific/Auckland").env("LANG", "de_DE.UTF-8").env("USER", "x"));

    good(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&again));
    let sums = |folder: &Path| fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    assert_eq!(sums(&made.out), sums(&again));
    let mut names: Vec<String> = sums(&again).lines().map(|line| line[66..].to_owned()).collect();
    names.retain(|name| !["whl", "deb"].contains(&name.rsplit('.').next().unwrap()));
    let mut expected = [
        format!("{TARGET}.crate"),
        format!("{TARGET}.cdx.json"),
        format!("{TARGET}-{}.tar.gz", this_target()),
        format!("owner-ralph-{VERSION}.tgz"),
        format!("owner-{}-{VERSION}.tgz", package()),
        "install.sh".to_owned(),
        "ralph.rb".to_owned(),
    ];
    expected.sort();
    names.sort();
    assert_eq!(names, expected);
    fs::remove_dir_all(again).unwrap();
}

#[test]
fn a_release_whose_names_of_its_version_differ_is_refused() {
    let made = &*MADE;
    let scratch = Scratch::new();
    let tree = scratch.outside().join("tree");
    good(Command::new("git").args(["clone", "--quiet"]).arg(&made.tree).arg(&tree));
    let release = |args: &[&str]| {
        let mut release = Command::new(tree.join("scripts/release"));
        outside_of_cargo(&mut release);
        release.args(args).arg(scratch.outside().join("out"));
        release
    };
    fs::write(tree.join("new"), "").unwrap();
    assert_refused(&mut release(&["--rehearse"]), &["files differ from HEAD", "git status"]);
    fs::remove_file(tree.join("new")).unwrap();
    assert_refused(&mut release(&[]), &[VERSION]);
    assert_refused(&mut release(&["--rehearse", "--target", "x86_64-apple-darwin"]), &["never run on macOS"]);
    assert_refused(
        &mut release(&["--rehearse", "--target", "mips-unknown-linux-gnu"]),
        &["mips", "only for"],
    );

    let manifest = fs::read_to_string(tree.join("Cargo.toml")).unwrap();
    fs::write(tree.join("Cargo.toml"), manifest.replacen(VERSION, "99.0.0", 1)).unwrap();
    let commit =
        ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "--quiet", "--all", "--message=x"];
    good(Command::new("git").args(commit).current_dir(&tree));
    assert_refused(&mut release(&["--rehearse"]), &["99.0.0", "CHANGELOG.md begins with", VERSION]);
    assert_refused(Command::new(tree.join("scripts/release")).arg(&tree), &["is not empty"]);
}

#[cfg(target_env = "gnu")]
#[test]
fn a_program_that_needs_a_newer_glibc_is_refused() {
    let made = &*MADE;
    let mut python = Command::new("python3");
    python.arg("-B").arg(made.tree.join("scripts/packages/make.py")).args([".", VERSION, "0", ".", "."]);
    python.arg(format!("{}={}", this_target(), made.program.display())).envs(NAMES);
    assert_refused(python.env("GLIBC", "2.1"), &[this_target(), "needs glibc 2.", "and 2.1 has to do"]);
}

#[test]
fn npm_installs_ralph_from_files_without_scripts() {
    let made = &*MADE;
    let scratch = Scratch::new();
    scratch.write("package.json", r#"{"name": "x", "version": "1.0.0", "private": true}"#);
    let mut npm = scratch.command("npm");
    npm.args(["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"]);
    npm.arg(made.file(&format!("owner-ralph-{VERSION}"), ".tgz")).arg(made.file("owner-ralph-linux", ".tgz"));
    good(&mut npm);
    let ralph = scratch.path("node_modules/.bin/ralph");
    let said = good(scratch.command(&ralph).arg("--version")).stdout;
    assert!(String::from_utf8_lossy(&said).starts_with(&format!("ralph {VERSION} ")), "{said:?}");
    let run = Scratch::finish(scratch.command(&ralph).args(["build", "--nothing"]));
    assert_eq!(run.code, Some(1), "{run:?}");
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", ralph.parent().unwrap().display());
    let doctor = Scratch::finish(scratch.command(&ralph).arg("doctor").env("PATH", path));
    assert!(doctor.stdout.contains("installed by npm: 'npm install @owner/ralph@latest'"), "{doctor:?}");
    // The machine may have another ralph.
    let others = doctor.stdout.split("PATH also leads to ").nth(1).unwrap_or_default();
    assert!(!others.contains("node_modules/.bin/ralph"), "{others}");
    // pnpm calls it by a script of its own.
    let shim = scratch.outside().join("bin/shim");
    executable(
        &shim,
        &format!(
            "#!/bin/sh\nexec /bin/sh {}/node_modules/@owner/ralph/bin/ralph \"$@\"\n",
            scratch.root().display()
        ),
    );
    good(scratch.command("shim").arg("--version"));
}

#[test]
fn the_launcher_says_what_is_missing() {
    let made = &*MADE;
    let scratch = Scratch::new();
    let alone = made.npm(&scratch.outside().join("alone"), &["ralph"]);
    let words = [&format!("@owner/{}", package()) as &str, "is missing", "--omit=optional"];
    assert_refused(scratch.command(&alone).arg("--version"), &words);

    let uname = scratch.outside().join("bin/uname");
    executable(&uname, "#!/bin/sh\ncase $1 in -s) echo Linux ;; *) echo riscv64 ;; esac\n");
    assert_refused(&mut scratch.command(&alone), &["there is no ralph for riscv64", "from source"]);
    executable(&uname, "#!/bin/sh\necho Darwin\n");
    assert_refused(&mut scratch.command(&alone), &["there is no ralph for Darwin"]);

    // The package of another machine, whose loader this one does not have: as on a system without glibc.
    let (machine, other) = match std::env::consts::ARCH {
        "aarch64" => ("x86_64", "x64"),
        _ => ("aarch64", "arm64"),
    };
    let program = format!("alone/node_modules/@owner/ralph-linux-{other}-glibc/bin/ralph");
    executable(&scratch.outside().join(program), "#!/bin/sh\n");
    executable(&uname, &format!("#!/bin/sh\ncase $1 in -s) echo Linux ;; *) echo {machine} ;; esac\n"));
    assert_refused(&mut scratch.command(&alone), &["needs glibc, and this system has none"]);
    let program = format!("alone/node_modules/@owner/ralph-linux-{other}-musl/bin/ralph");
    executable(&scratch.outside().join(program), "#!/bin/sh\necho static; exit 7\n");
    let run = Scratch::finish(&mut scratch.command(&alone));
    assert_eq!((run.code, &*run.stdout), (Some(7), "static\n"), "{run:?}");
}

/// Waits until the state says that the loop has ended.
fn await_end(scratch: &Scratch) {
    wait_for("the end of the loop", || {
        let state = scratch.read_if_there(".ralph/state.toml").parse::<toml::Table>().ok()?;
        (state.get("active")?.as_bool() == Some(false)).then_some(())
    });
}

/// How a loop ended, as its state says it.
fn ended(scratch: &Scratch) -> String {
    await_end(scratch);
    scratch.await_nothing_left();
    let state = scratch.state();
    format!("{} {} {}", state["status"], state["exit_reason"], state["exit_code"])
}

fn begun(scratch: &Scratch) {
    wait_for("the agent", || scratch.home().join("began").exists().then_some(()));
}

/// Presses Ctrl+C so often, as leader of the session or below a shell; lets the agent go on if that was once. Only the third one ends
/// an agent that hears no signal.
fn pressed(ralph: &Path, below_a_shell: bool, presses: usize) -> String {
    // The agent is to end by the INT, however late it comes to its trap.
    let scratch = Scratch::with_default_ladder();
    let agent = if presses < 3 {
        AGENT.to_owned()
    } else {
        format!("trap '' INT TERM; {}", &AGENT[AGENT.find("cat").unwrap()..])
    };
    scratch.agent("claude", &agent);
    let mut command = scratch.command(if below_a_shell { Path::new("bash") } else { ralph });
    if below_a_shell {
        command.args(["--norc", "--noprofile", "-i", "-c", "\"$R\" prompt p.md 3; exit $?"]).env("R", ralph);
    } else {
        command.args(["prompt", "p.md", "3"]);
    }
    let mut terminal = Terminal::start(&command, 24, 80);
    begun(&scratch);
    if !below_a_shell {
        let exe = fs::read_link(format!("/proc/{}/exe", terminal.pid())).unwrap();
        assert_eq!(exe.file_name(), Some("ralph".as_ref()), "nothing is left of the launcher");
    }
    for press in 1..=presses {
        terminal.press_ctrl_c();
        if press == 3 {
            break;
        }
        wait_for("ralph to hear it", || {
            (scratch.events().matches(r#""event":"asked""#).count() >= press).then_some(())
        });
    }
    if presses == 1 {
        fs::write(scratch.home().join("go"), "").unwrap();
    }
    let ended = ended(&scratch);
    let heard = fs::read_to_string(scratch.home().join("heard")).unwrap_or_default();
    format!("{:?} {ended} {heard}", terminal.end().code)
}

#[test]
fn ctrl_c_is_the_same_from_each_package() {
    let installed = Scratch::new();
    let programs = MADE.on_path(&installed);
    for below_a_shell in [false, true] {
        for presses in 1..=3 {
            let [bare, npm, pip] = programs.each_ref().map(|ralph| pressed(ralph, below_a_shell, presses));
            assert_eq!(bare, npm, "{presses} presses, below a shell: {below_a_shell}");
            assert_eq!(bare, pip, "{presses} presses, below a shell: {below_a_shell}");
            assert_eq!(bare.contains("INT"), presses == 2, "{bare}");
        }
    }
}

#[test]
fn a_closed_terminal_and_ctrl_z_are_the_same_from_each_package() {
    /// Opens a terminal for a program, and closes it when a file is there.
    const CLOSES: &str = "import os, pty, select, sys
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
while not os.path.exists(sys.argv[1]):
    if select.select([terminal], [], [], 0.02)[0]:
        os.read(terminal, 4096)
os.close(terminal)
os.waitpid(child, 0)";
    let installed = Scratch::new();
    let programs = MADE.on_path(&installed);
    for shell in [None, Some("\"$0\" prompt p.md 3; exit $?")] {
        let [bare, npm, pip] = programs.each_ref().map(|ralph| {
            let scratch = Scratch::new();
            scratch.agent("claude", AGENT);
            let mut python = scratch.command("python3");
            python.args(["-c", CLOSES]).arg(scratch.home().join("began"));
            match shell {
                None => python.arg(ralph).args(["prompt", "p.md", "3"]),
                Some(line) => python.args(["bash", "--norc", "--noprofile", "-i", "-c", line]).arg(ralph),
            };
            let mut python = python.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            wait_for("ralph to hear it", || scratch.events().contains(r#""event":"asked""#).then_some(()));
            // Below a shell both the shell and the kernel send a HUP, and the agent may be interrupted by the second.
            fs::write(scratch.home().join("go"), "").unwrap();
            let ended = ended(&scratch);
            python.wait().unwrap();
            ended
        });
        assert_eq!(bare, npm, "{shell:?}");
        assert_eq!(bare, pip, "{shell:?}");
        assert!(bare.contains("terminated"), "{bare}");
    }
    for ralph in &programs {
        let scratch = Scratch::new();
        scratch.agent("claude", AGENT);
        let mut command = scratch.command("bash");
        command.args(["--norc", "--noprofile", "-i"]).env("PS1", "shell> ").env("R", ralph);
        let mut terminal = Terminal::start(&command, 60, 80);
        terminal.wait_for("a shell", |screen| screen.ends_with("shell>"));
        terminal.press("$R prompt p.md 1\r");
        begun(&scratch);
        terminal.press("\x1a");
        terminal.wait_for("the shell", |screen| screen.contains("Stopped") && screen.ends_with("shell>"));
        terminal.press("fg\r");
        fs::write(scratch.home().join("go"), "").unwrap();
        await_end(&scratch);
        terminal.wait_for("the shell again", |screen| screen.ends_with("shell>"));
        terminal.press("exit 3\r");
        assert_eq!(terminal.end().code, Some(3));
        let ended = ended(&scratch);
        assert!(ended.contains("max_iterations"), "{ended}");
    }
}

#[test]
fn pip_installs_the_program_as_a_script() {
    const CHECK: &str = "
import sys
from importlib.metadata import distribution
ralph, file = distribution('ralph'), sys.argv[1]
tags = [line[5:] for line in ralph.read_text('WHEEL').splitlines() if line.startswith('Tag: ')]
assert tags == ['py3-none-' + tag for tag in file[:-4].split('-')[-1].split('.')], (tags, file)
readme = ralph.read_text('METADATA')
assert '](https://example.org/ralph/blob/v' in readme and '](docs/' not in readme, readme
";
    let made = &*MADE;
    let scratch = Scratch::new();
    let ralph = made.pip(&scratch.outside().join("venv"));
    assert_eq!(fs::read(&ralph).unwrap(), fs::read(&made.program).unwrap());
    let wheel = made.file("ralph", ".whl");
    good(Command::new(ralph.with_file_name("python")).args(["-c", CHECK]).arg(wheel.file_name().unwrap()));
    let doctor = Scratch::finish(scratch.command(&ralph).arg("doctor"));
    assert!(doctor.stdout.contains("installed by pip: '"), "{doctor:?}");
    assert!(doctor.stdout.contains("-m pip install --upgrade ralph' updates it"), "{doctor:?}");
}

#[test]
fn the_package_for_debian_has_what_its_policy_asks_for() {
    let made = &*MADE;
    let scratch = Scratch::new();
    let deb = made.file("ralph_", ".deb");
    let mut lintian = Command::new("lintian");
    // What is a warning differs between its versions.
    lintian.args(["--fail-on", "error", "--allow-root"]).arg(&deb);
    good(&mut lintian);
    let root = scratch.outside().join("root");
    good(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(&root));
    for file in [
        "bin/ralph",
        "share/man/man1/ralph.1.gz",
        "share/bash-completion/completions/ralph",
        "share/doc/ralph/copyright",
    ] {
        assert!(root.join("usr").join(file).is_file(), "{file}");
    }
    let completions = fs::read_to_string(root.join("usr/share/zsh/vendor-completions/_ralph")).unwrap();
    assert!(completions.contains("ralph __complete"), "it is called by its name: {completions}");
    let field = |name: &str| {
        let said = good(Command::new("dpkg-deb").arg("--field").arg(&deb).arg(name)).stdout;
        String::from_utf8(said).unwrap()
    };
    assert!(field("Depends").contains("git (>= 1:2.30), libc6 (>= 2."), "{}", field("Depends"));
}

#[test]
fn the_scripts_of_releases_are_sound() {
    let mut shellcheck = Command::new("shellcheck");
    shellcheck.args([
        "-x",
        "packaging/install.sh",
        "packaging/npm/ralph.sh",
        "scripts/release",
        "scripts/keep-release",
    ]);
    good(shellcheck.current_dir(env!("CARGO_MANIFEST_DIR")));
}

fn install(scratch: &Scratch, from: impl AsRef<std::ffi::OsStr>, to: &str) -> Run {
    let mut install = scratch.command("sh");
    install.arg(MADE.out.join("install.sh")).arg("--from").arg(from.as_ref());
    Scratch::finish(install.arg("--to").arg(scratch.outside().join(to)))
}

/// A server that is ended when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_installer_fetches_from_a_server() {
    let scratch = Scratch::new();
    let mut server = scratch.command("python3");
    server.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0", "--directory"]).arg(&MADE.out);
    let mut server = Server(server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    // Serving HTTP on 127.0.0.1 port 41233 (http://127.0.0.1:41233/) ...
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split(['(', ')']).nth(1).unwrap_or_default().to_owned();
    let run = install(&scratch, &address, "fetched");
    let missing = install(&scratch, format!("{address}nowhere"), "other");
    drop(server);
    assert_eq!(run.code, Some(0), "{run:?}");
    let fetched = fs::read(scratch.outside().join("fetched/ralph")).unwrap();
    assert!(fetched == fs::read(&MADE.program).unwrap());
    assert!(missing.code == Some(1) && missing.stderr.contains("cannot fetch"), "{missing:?}");
}

#[test]
fn the_installer_moves_nothing_that_it_has_not_checked() {
    let made = &*MADE;
    let scratch = Scratch::new();
    let home =
        || fs::read_dir(scratch.home()).unwrap().map(|entry| entry.unwrap().path()).collect::<BTreeSet<_>>();
    let before = home();
    let run = install(&scratch, &made.out, "new/bin");
    assert!(run.code == Some(0) && run.stdout.contains("is not on PATH"), "{run:?}");
    assert_eq!(fs::read(scratch.outside().join("new/bin/ralph")).unwrap(), fs::read(&made.program).unwrap());
    assert_eq!(install(&scratch, &made.out, "bin").code, Some(0));
    assert_eq!(home(), before, "it has changed no file of a shell");

    let bad = scratch.outside().join("bad");
    fs::create_dir(&bad).unwrap();
    let archive = format!("{TARGET}-{}.tar.gz", this_target());
    for file in ["SHA256SUMS", &archive] {
        fs::copy(made.out.join(file), bad.join(file)).unwrap();
    }
    let mut content = fs::read(bad.join(&archive)).unwrap();
    content.push(0);
    fs::write(bad.join(&archive), content).unwrap();
    let run = install(&scratch, &bad, "other");
    assert!(
        run.code == Some(1) && run.stderr.contains("is not the one in SHA256SUMS: nothing was installed"),
        "{run:?}"
    );
    assert!(!scratch.outside().join("other").exists());
    fs::write(bad.join("SHA256SUMS"), "").unwrap();
    let run = install(&scratch, &bad, "other");
    assert!(
        run.code == Some(1) && run.stderr.contains(&format!("has no archive of ralph for {}", this_target())),
        "{run:?}"
    );
}

#[test]
fn the_installer_says_what_to_do_where_no_program_starts() {
    const INSIDE: &str = r#"mkdir "$NOEXEC" && mount -t tmpfs -o noexec tmpfs "$NOEXEC" && "$@"
        code=$?; ls -A "$NOEXEC" && exit "$code""#;
    let scratch = Scratch::new();
    let noexec = scratch.outside().join("noexec");
    let run = |variable: &str, to: &Path| {
        let mut inside = scratch.container();
        inside.args(["--mount", "sh", "-c", INSIDE, "sh", "sh"]).arg(MADE.out.join("install.sh"));
        inside.arg("--from").arg(&MADE.out).arg("--to").arg(to).env("NOEXEC", &noexec).env(variable, &noexec);
        let run = Scratch::finish(&mut inside);
        fs::remove_dir(&noexec).unwrap();
        run
    };
    // That of temporary files runs none.
    let installed = run("TMPDIR", &scratch.outside().join("other"));
    assert_eq!(installed.code, Some(0), "{installed:?}");
    let refused = run("UNUSED", &noexec);
    assert!(refused.code == Some(1) && refused.stderr.contains("(mounted noexec), choose"), "{refused:?}");
    assert!(!refused.stdout.contains("ralph"), "nothing is left there: {refused:?}");
}

#[test]
fn the_installer_takes_no_folder_for_the_program_and_needs_no_home() {
    let scratch = Scratch::new();
    let folder = scratch.outside().join("taken/ralph");
    fs::create_dir_all(&folder).unwrap();
    let run = install(&scratch, &MADE.out, "taken");
    assert!(run.code == Some(1) && run.stderr.contains("taken/ralph is a folder: move it away"), "{run:?}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    let installer = |arguments: &[&str]| {
        let mut install = scratch.command("sh");
        install.arg(MADE.out.join("install.sh")).args(arguments).env_remove("HOME");
        Scratch::finish(&mut install)
    };
    let (from, to) = (MADE.out.to_str().unwrap(), scratch.outside().join("homeless"));
    let run = installer(&["--from", from, "--to", to.to_str().unwrap()]);
    assert!(run.code == Some(0) && to.join("ralph").exists(), "{run:?}");
    let run = installer(&["--from", from]);
    assert!(run.code == Some(1) && run.stderr.contains("HOME is not set: choose"), "{run:?}");
    let run = installer(&["--help"]);
    assert!(run.code == Some(0) && run.stdout.contains("sh install.sh [--version VERSION]"), "{run:?}");
}
