//! Agents behind walls: what they try is refused or works, as the guide says.

use std::fs;
use std::process::Command;

use rexpect::process::PtyProcess;

use crate::scratch::{PLATFORM, Run, Scratch, claude_says, executable};

/// An agent that tries things: each line of `tries` is a name and a script for bash. What came of it is in `tried`, in the work tree,
/// unless the name begins with a dash.
fn trying(tries: &[(&str, &str, bool)]) -> String {
    let each = tries.iter().map(|(name, script, _)| {
        let [works, refused] = ["works", "refused"].map(|word| {
            if name.starts_with('-') { ":".to_owned() } else { format!("echo '{name} {word}' >> tried") }
        });
        format!("if (\n{script}\n) >> said 2>&1; then {works}; else {refused}; fi")
    });
    let all: Vec<String> = each.collect();
    let places = "git_of() { git rev-parse --git-path \"$1\"; }";
    format!("cat > /dev/null\n{places}\n{}\nsay '<promise>COMPLETE</promise>'\nresult", all.join("\n"))
}

/// Checks that each try came out as it should.
fn check(scratch: &Scratch, tries: &[(&str, &str, bool)]) {
    let said = |works: &bool| if *works { "works" } else { "refused" };
    let told = tries.iter().filter(|(name, ..)| !name.starts_with('-'));
    let expected: Vec<String> = told.map(|(name, _, works)| format!("{name} {}", said(works))).collect();
    let found = scratch.read("tried");
    assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{}", scratch.read("said"));
}

/// What an agent tries in a checkout of its own. `$OUT` is the folder around project and home, `$OTHER` a process outside.
const TRIES: &[(&str, &str, bool)] = &[
    ("write-work", "echo x > made && mkdir d && mv made d/ && rm -r d", true),
    ("commit", "echo y > kept && git add kept && git commit -qm work", true),
    ("branch", "git branch side && git tag t", true),
    ("branch-away", "git branch -D side", true),
    ("stash", "echo z >> kept && git stash -q && git stash drop -q", true),
    ("gc", "git gc -q", false),
    ("hook", "echo x > $(git_of hooks)/pre-commit", false),
    ("hooks-away", "h=$(git_of hooks) && mv $h $h-old && mv $h-old $h", false),
    ("git-away", "mv .git old && mv old .git", false),
    ("git-config", "git config a.b c && git config --unset a.b", false),
    ("git-config-file", "echo >> $(git_of config)", false),
    ("git-config-chmod", "chmod 666 $(git_of config)", false),
    ("git-config-times", "touch -d 2020-01-01 $(git_of config)", false),
    ("git-config-new", "c=$(git_of config) && cp $c $c-new && mv $c-new $c", false),
    ("git-exclude", "echo x >> $(git_of info/exclude)", false),
    ("plan", "echo '- [x] more' >> .ralph/implementation_plan.md", true),
    (
        "plan-replaced",
        "cp .ralph/implementation_plan.md .ralph/p && mv .ralph/p .ralph/implementation_plan.md",
        true,
    ),
    ("config-lost", "echo 'AGENT_TYPE=x' > .ralph/config", true),
    ("state", ": >> .ralph/state.toml", false),
    ("records", "l=.ralph/logs && mv $l $l-old && mv $l-old $l", false),
    ("settings", "echo >> ralph.toml", false),
    ("outside", "echo x > $OUT/file", false),
    ("outside-removed", "rm $OUT/precious", false),
    ("outside-link", "ln $OUT/precious hard", false),
    ("outside-by-link", "ln -s $OUT/precious soft; echo x >> soft", false),
    ("outside-proc", "echo x > /proc/$OTHER/cwd/file", false),
    ("outside-root", "cat /proc/$OTHER/root/etc/hostname", false),
    ("etc", "echo x > /etc/x", false),
    ("usr", "echo x > /usr/bin/x", false),
    ("home-lost", "echo x > ~/new", true),
    ("profile", "echo x >> ~/.bashrc", false),
    ("profile-replaced", "rm ~/.bashrc", false),
    ("authorized", "echo x > ~/.ssh/authorized_keys", false),
    ("key", "cat ~/.ssh/id", false),
    ("keys", "ls ~/.ssh", false),
    ("keys-away", "mv ~/.ssh ~/old && mv ~/old ~/.ssh", false),
    ("key-elsewhere", "cat ~/keys/deploy", false),
    ("history", "cat ~/.bash_history", false),
    ("key-by-walls", "cat .ralph/sandbox/*/layers/*/.ssh/id", false),
    ("key-by-descriptor", "cat /proc/self/fd/7/home/.ssh/id", false),
    ("terminals", "test \"$(ls /dev/pts)\" != ptmx", false),
    ("limit", "prlimit --pid $OTHER --nofile=100:100", false),
    ("priority", "renice -n 5 -p $OTHER", false),
    ("own-limit", "ulimit -n 100 && nice -n 5 true", true),
    ("settings-new", "mv ralph.toml old && mv old ralph.toml", false),
    ("other-login", "cat ~/.codex/auth.json", false),
    ("hidden", "cat ~/private/x", false),
    ("shown", "cat ~/.aws/config", true),
    ("env-file", "cat secrets.env", false),
    ("own-state", "echo x > ~/.claude/session", true),
    ("own-file", "echo '{\"new\":1}' > ~/.claude.json.tmp && mv ~/.claude.json.tmp ~/.claude.json", true),
    ("cache", "mkdir -p ~/.cargo/registry/x && echo x > ~/.cache/x", true),
    ("cargo-bin", "echo x > ~/.cargo/bin/x", false),
    ("allowed", "echo x > ~/allowed/x", true),
    (
        "tmp",
        "test -z \"$(find /tmp -maxdepth 1 -name 'of-others*')\" && echo x > /tmp/x && echo x > ${TMPDIR:-/tmp}/y",
        true,
    ),
    ("shm", "echo x > /dev/shm/x", true),
    ("variable", "test -z \"$MY_API_TOKEN$SSH_AUTH_SOCK\"", true),
    ("own-variable", "test -n \"$ANTHROPIC_API_KEY\" && test -n \"$NEEDED_TOKEN\"", true),
    ("signal", "kill -0 $OTHER", false),
    ("kill", "kill -9 $OTHER", false),
    ("environ", "cat /proc/$OTHER/environ", false),
    ("memory", "head -c 1 /proc/$OTHER/mem", false),
    ("mount", "mount -t tmpfs x /mnt", false),
    ("remount", "mount -o remount,rw,bind /", false),
    ("umount", "umount ~/.ssh", false),
    ("nested-mount", "unshare -Um mount -t tmpfs x /mnt", false),
    ("nested-umount", "unshare -Um umount ~/.ssh", false),
    ("enter", "nsenter -t $OTHER -m true", false),
    ("chroot", "chroot / true", false),
    ("device", "mknod x b 8 0", false),
    ("sysctl", "echo 1 > /proc/sys/vm/swappiness", false),
    ("io_uring", "perl -e 'exit(syscall(425, 1, 0) < 0 && $! == 1)' ", false),
    ("keyring", "perl -e 'exit(syscall(250, 0, -3, 0) < 0)'", false),
    (
        "abstract",
        "perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un(\"\\0$ENV{ABSTRACT}\")) or exit 1'",
        false,
    ),
    (
        "own-abstract",
        "perl -MSocket -e 'socket(L, PF_UNIX, SOCK_STREAM, 0); bind(L, pack_sockaddr_un(\"\\0own$$\")) or exit 1; listen(L, 1); socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un(\"\\0own$$\")) or exit 1'",
        true,
    ),
    ("trace", "perl -e 'exit(syscall(101, 16, $ENV{OTHER}, 0, 0) < 0)'", false),
    ("raw-socket", "perl -MSocket -e 'socket(S, PF_INET, SOCK_RAW, 1) or exit 1'", false),
    ("packets", "perl -e 'socket(S, 17, 3, 0x0300) or exit 1'", false),
    (
        "memfd",
        "perl -e '$n = \"x\"; $f = syscall(319, $n, 0); open(I, \"/bin/true\"); open(O, \">&=$f\"); binmode O; undef $/; print O <I>; close I; O->flush; exec \"/proc/self/fd/$f\" or exit 1'",
        true,
    ),
    ("other-tree", "echo x > side-tree/file", false),
    ("other-tree-pointer", "echo 'gitdir: /tmp' > side-tree/.git", false),
    ("part", "echo x > part/file", true),
    ("part-pointer", "echo 'gitdir: /tmp' > part/.git", false),
    ("cluster", "cat $KUBECONFIG", false),
    ("cluster-away", "mv ~/.cache/in ~/.cache/out && mv ~/.cache/out ~/.cache/in", false),
    ("part-away", "mv part away && mv away part", false),
    ("log-link-deep", "l=$(git_of logs/refs/heads/objects) && mkdir -p $l && ln -s ~/.bashrc $l/x", true),
    ("log-link", "l=$(git_of logs/HEAD) && rm -f $l && ln -s ~/.bashrc $l", true),
    ("write-proc", "echo 0 > /proc/self/oom_score_adj", true),
    ("devices", "head -c 1 /dev/urandom > /dev/null && echo > /dev/null", true),
    ("own-child", "sleep 60 & kill $!", true),
    (
        "commondir",
        "c=$(git_of commondir) && mkdir evil && echo ../evil > $c && chmod 555 $(dirname $c)",
        true,
    ),
];

/// [`TRIES`], where these come out otherwise.
fn tries_but(otherwise: &[&str]) -> Vec<(&'static str, &'static str, bool)> {
    assert!(otherwise.iter().all(|other| TRIES.iter().any(|(name, ..)| name == other)));
    TRIES.iter().map(|(name, script, works)| (*name, *script, *works != otherwise.contains(name))).collect()
}

/// A scratch project with things to protect, and what an agent needs to know to attack them.
struct Scene {
    scratch: Scratch,
    other: std::process::Child,
    _terminal: PtyProcess,
    _listener: std::os::unix::net::UnixListener,
    of_others: tempfile::NamedTempFile,
    abstract_name: String,
}

impl Scene {
    fn new() -> Self {
        use std::os::linux::net::SocketAddrExt as _;
        let scratch = Scratch::new();
        let home = scratch.outside().join("home");
        for (file, text) in [
            (".ssh/id", "KEY"),
            (".ssh/config", "IdentityFile ~/keys/deploy\n"),
            ("keys/deploy", "KEY"),
            (".bash_history", "secret"),
            (".bashrc", "# mine\n"),
            (".codex/auth.json", "{}"),
            ("private/x", "secret"),
            (".aws/config", "region"),
            (".claude.json", "{}"),
            (".cache/there", ""),
            (".cargo/bin/cargo", ""),
            ("allowed/there", ""),
            ("elsewhere/precious", "mine"),
            (".cache/in/cluster", "secret"),
        ] {
            let path = home.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        scratch.write("secrets.env", "A=b\n");
        scratch.write(".gitignore", "secrets.env\n");
        scratch.write(
            "ralph.toml",
            "[redact]\nenv_files = [\"secrets.env\"]\n[sandbox]\nhide = [\"~/private\"]\n",
        );
        scratch.git(&["add", "--all"]);
        scratch.git(&["commit", "-qm", "first"]);
        scratch.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./.git", "part"]);
        scratch.git(&["commit", "-qm", "part"]);
        scratch.git(&["worktree", "add", "-q", "side-tree", "-b", "side-tree"]);
        scratch.write(".git/info/exclude", "/side-tree\n/said\n/tried\n");
        let other = Command::new("sleep").arg("600").current_dir(home.join("elsewhere")).spawn().unwrap();
        let mut on_terminal = Command::new("sleep");
        on_terminal.arg("600");
        let terminal = PtyProcess::new(on_terminal).unwrap();
        let abstract_name = format!("ralph-test-{}", scratch.outside().file_name().unwrap().display());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
        let of_others = tempfile::Builder::new().prefix("of-others").tempfile_in("/tmp").unwrap();
        Self { scratch, other, _terminal: terminal, _listener: listener, of_others, abstract_name }
    }

    /// The project is a linked work tree of another checkout.
    fn linked() -> Self {
        let scene = Self::new();
        let (scratch, main) = (&scene.scratch, scene.scratch.outside().join("main"));
        let root = scratch.root();
        scratch.git(&["worktree", "remove", "--force", "side-tree"]);
        scratch.git(&["config", "submodule.part.url", main.join(".git").to_str().unwrap()]);
        fs::rename(&root, &main).unwrap();
        let at_main = ["-C", main.to_str().unwrap()];
        let linked = scratch
            .command("git")
            .current_dir(scratch.outside())
            .args(at_main)
            .args(["worktree", "add"])
            .args(["-q", "-b", "linked"])
            .arg(&root)
            .status()
            .unwrap();
        assert!(linked.success());
        for file in ["p.md", "secrets.env", ".ralph/implementation_plan.md"] {
            scratch.write(file, fs::read(main.join(file)).unwrap());
        }
        scratch.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"]);
        scratch.git(&["worktree", "add", "-q", "side-tree"]);
        scene
    }

    /// Where git has this.
    fn of_git(&self, name: &str) -> std::path::PathBuf {
        self.scratch
            .path(self.scratch.git(&["-c", "safe.directory=*", "rev-parse", "--git-path", name]).trim_end())
    }

    /// Ralph with what its agent needs to know.
    fn ralph(&self, args: &str) -> Command {
        let mut ralph = self.scratch.ralph(args);
        ralph
            .env("OUT", self.scratch.outside().join("home/elsewhere"))
            .env("OTHER", self.other.id().to_string());
        ralph.env("KUBECONFIG", self.scratch.outside().join("home/.cache/in/cluster"));
        ralph.env("ABSTRACT", &self.abstract_name).env("SSH_AUTH_SOCK", "/tmp/agent.sock");
        for name in ["MY_API_TOKEN", "ANTHROPIC_API_KEY", "NEEDED_TOKEN"] {
            ralph.env(name, "abcdefgh12345678");
        }
        ralph.env("RALPH_SANDBOX_ENV", "NEEDED_*").env("RALPH_SANDBOX_SHOW", "~/.aws");
        ralph.env("RALPH_SANDBOX_WRITE", "~/allowed");
        ralph
    }

    /// Ralph with an agent behind walls, and with something that leads past them, open in a shell around it.
    fn attacked(&self) -> Command {
        let ralph = self.ralph("prompt p.md 1 --sandbox on");
        let outside = self.scratch.outside().to_str().unwrap();
        started_by(
            &["/usr/bin/env", "bash", "-c", "exec 7< \"$1\"; shift; exec \"$@\"", "bash", outside],
            &ralph,
        )
    }

    /// Has another user own all of it, and the process that is attacked.
    fn give_to(&mut self, user: &str) {
        let given = Command::new("chown").args(["-R", user]).arg(self.scratch.outside()).status().unwrap();
        assert!(given.success());
        let _ = self.other.kill();
        let _ = self.other.wait();
        let id = user.split(':').next().unwrap();
        let words = [format!("--reuid={id}"), format!("--regid={id}"), "--clear-groups".to_owned()];
        let folder = self.scratch.outside().join("home/elsewhere");
        self.other =
            Command::new("setpriv").args(words).args(["sleep", "600"]).current_dir(folder).spawn().unwrap();
    }

    /// Nothing outside has changed, and what was to be kept was.
    fn is_whole(&mut self) {
        let (scratch, home) = (&self.scratch, self.scratch.outside().join("home"));
        assert_eq!(fs::read_to_string(home.join("elsewhere/precious")).unwrap(), "mine");
        assert!(self.other.try_wait().unwrap().is_none(), "it was killed");
        assert!(self.of_others.path().exists());
        for gone in [
            self.of_git("logs/HEAD"),
            self.of_git("logs/refs/heads/objects/x"),
            home.join("new"),
            home.join(".claude.json.tmp"),
            scratch.path(".ralph/config"),
            scratch.path(".ralph/p"),
        ] {
            assert!(!gone.exists(), "{}", gone.display());
        }
        assert_eq!(fs::read_to_string(home.join(".bashrc")).unwrap(), "# mine\n");
        assert_eq!(fs::read_to_string(home.join(".claude.json")).unwrap(), "{\"new\":1}\n");
        assert!(home.join(".claude/session").is_file());
        assert!(home.join(".cargo/registry/x").is_dir());
        assert!(scratch.read(".ralph/implementation_plan.md").ends_with("- [x] more\n"));
        let left: Vec<_> = fs::read_dir(scratch.path(".ralph/sandbox")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.other.kill();
        let _ = self.other.wait();
    }
}

fn is_well(run: &Run) {
    assert_eq!(run.code, Some(0), "{} {}", run.stdout, run.stderr);
}

#[test]
fn what_an_agent_tries_behind_walls_works_or_is_refused_as_the_guide_says() {
    let mut scene = Scene::new();
    scene.scratch.agent("claude", &trying(TRIES));
    is_well(&Scratch::finish(&mut scene.attacked()));
    check(&scene.scratch, TRIES);
    scene.is_whole();
}

#[test]
fn without_walls_an_agent_can_do_what_its_user_can() {
    let scene = Scene::new();
    let free = [
        ("outside", "echo x > $OUT/file", true),
        ("hook", "echo x > .git/hooks/pre-commit", true),
        ("key", "cat ~/.ssh/id", true),
        ("signal", "kill -0 $OTHER", true),
        ("variable", "test -n \"$MY_API_TOKEN\"", true),
    ];
    scene.scratch.agent("claude", &trying(&free));
    is_well(&Scratch::finish(&mut scene.ralph("prompt p.md 1")));
    check(&scene.scratch, &free);
    assert!(!scene.scratch.path(".ralph/sandbox").exists(), "nothing is made without walls");
}

#[test]
fn in_a_linked_work_tree_the_others_and_the_shared_folder_are_closed() {
    let scene = Scene::new();
    let scratch = &scene.scratch;
    scratch.git(&["worktree", "add", "-q", "../linked"]);
    scratch.git(&["worktree", "add", "-q", "../second"]);
    let tries = [
        ("commit", "echo y > kept && git add kept && git commit -qm work", true),
        ("pointer", "echo x > .git", false),
        ("pointer-away", "rm .git", false),
        ("own-index", "git update-index --refresh", true),
        ("hook", "echo x > $MAIN/.git/hooks/pre-commit", false),
        ("config", "git config a.b c", false),
        ("own-config", "echo x > $(git rev-parse --git-dir)/config.worktree", true),
        ("common", "echo x > $(git rev-parse --git-dir)/commondir", false),
        ("main-index", "rm $MAIN/.git/index", false),
        ("main-head", "echo x > $MAIN/.git/HEAD", false),
        // Below /tmp that is another folder: what is written there is lost.
        ("-main-checkout", "echo x > $MAIN/file", false),
        ("-second", "echo x > $MAIN/../second/file", false),
        ("second-index", "rm $MAIN/.git/worktrees/second/index", false),
    ];
    scratch.agent("claude", &trying(&tries));
    let linked = scratch.outside().join("linked");
    fs::copy(scratch.path("p.md"), linked.join("p.md")).unwrap();
    let mut ralph = scene.ralph("prompt p.md 1 --sandbox on");
    let run = Scratch::finish(ralph.env("MAIN", scratch.root()).current_dir(&linked));
    is_well(&run);
    for name in ["tried", "said"] {
        fs::copy(linked.join(name), scratch.path(name)).unwrap();
    }
    check(scratch, &tries);
    assert!(!scratch.path(".git/worktrees/linked/config.worktree").exists(), "it was to be removed");
    for tree in [scratch.root(), scratch.outside().join("second")] {
        assert!(!tree.join("file").exists());
    }
}

#[test]
fn in_a_linked_work_tree_what_is_tried_comes_out_as_in_a_checkout() {
    let mut scene = Scene::linked();
    // To take a branch away, git writes in the shared folder; and its own folder has that file already.
    let tries = tries_but(&["branch-away", "commondir"]);
    scene.scratch.agent("claude", &trying(&tries));
    is_well(&Scratch::finish(&mut scene.attacked()));
    check(&scene.scratch, &tries);
    scene.is_whole();
}

#[test]
fn without_network_only_its_own_loopback_is_there() {
    let scene = Scene::new();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let reach = format!("exec 3<> /dev/tcp/127.0.0.1/{port}");
    let own = "perl -MSocket -e 'socket(L, PF_INET, SOCK_STREAM, 0); bind(L, pack_sockaddr_in(0, INADDR_LOOPBACK)) or exit 1; listen(L, 1); socket(S, PF_INET, SOCK_STREAM, 0); connect(S, getsockname(L)) or exit 1'";
    let udp = "perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0); send(S, \"x\", 0, pack_sockaddr_in(53, inet_aton(\"192.0.2.1\"))) or exit 1'";
    let tries = [("others", &*reach, false), ("own", own, true), ("udp", udp, false)];
    scene.scratch.agent("claude", &trying(&tries));
    is_well(&Scratch::finish(scene.ralph("prompt p.md 1 --sandbox on").env("RALPH_SANDBOX_NETWORK", "none")));
    check(&scene.scratch, &tries);
    let open = [("others", &*reach, true)];
    fs::remove_file(scene.scratch.path("tried")).unwrap();
    scene.scratch.agent("claude", &trying(&open));
    is_well(&Scratch::finish(&mut scene.ralph("prompt p.md 1 --sandbox on")));
    check(&scene.scratch, &open);
}

#[test]
fn what_proves_the_work_is_behind_walls_too() {
    let scene = Scene::new();
    scene.scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    let validation = "cat ~/.ssh/id; echo x > $OUT/file; echo proven > of-validation; test ! -e $OUT/file";
    for proof in ["place", "base"] {
        let mut ralph = scene.ralph("prompt p.md 1 --sandbox on --proof");
        let run = Scratch::finish(ralph.args([proof, "--validate", validation]));
        is_well(&run);
        assert!(!scene.scratch.outside().join("home/elsewhere/file").exists(), "{proof}");
        let told = "seems refused: ~/elsewhere/file is not writable here (sandbox.write would allow it)";
        assert!(run.stderr.contains(told), "{proof}: {run:?}");
    }
    // Where it does not pass, the next attempt reads of it.
    scene
        .scratch
        .agent("claude", "cat > \"prompt-$RALPH_ITERATION\"\nsay '<promise>COMPLETE</promise>'\nresult");
    let mut ralph = scene.ralph("prompt p.md 2 --sandbox on --proof place --validate");
    Scratch::finish(ralph.arg("! touch ~/elsewhere/x && exit 1"));
    let prompt = scene.scratch.read("prompt-2");
    assert!(prompt.contains("seems refused: ~/elsewhere/x is not writable here"), "{prompt}");
    assert_eq!(scene.scratch.read("of-validation"), "proven\n");
}

/// Starts a program for which the kernel refuses these calls, each with an error: what containers and hardened systems do.
const REFUSING: &str = "import ctypes, os, struct, sys
calls = [tuple(map(int, word.split(':'))) for word in sys.argv[1].split(',')]
code = struct.pack('HBBI', 0x20, 0, 0, 0)
for call, error in calls:
    code += struct.pack('HBBI', 0x15, 0, 1, call) + struct.pack('HBBI', 0x06, 0, 0, 0x50000 | error)
code += struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000)
buffer = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(code) // 8, ctypes.addressof(buffer)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[2], sys.argv[2:])
";
/// The call that enters namespaces, and the first one of Landlock, with the errors of a system that has them not.
#[cfg(target_arch = "x86_64")]
const NAMESPACES: &str = "272:1";
#[cfg(not(target_arch = "x86_64"))]
const NAMESPACES: &str = "97:1";
const LANDLOCK: &str = "444:38";

/// Ralph, started by these words.
fn started_by(words: &[&str], ralph: &Command) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(ralph.get_program()).args(ralph.get_args());
    for (name, value) in ralph.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(folder) = ralph.get_current_dir() {
        command.current_dir(folder);
    }
    command
}

/// Ralph where these calls are refused.
fn without(calls: &[&str], ralph: &Command) -> Command {
    started_by(&["python3", "-c", REFUSING, &calls.join(",")], ralph)
}

#[test]
fn in_a_container_and_for_another_user_the_walls_are_what_they_are() {
    let is_root = rustix::process::getuid().is_root();
    let container: &[&str] =
        &["unshare", "--user", "--map-root-user", "--mount", "--ipc", "--uts", "--propagation", "private"];
    // Who runs the tests as a user has that case anyway.
    let user: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    for words in [container, user].into_iter().take(if is_root { 2 } else { 1 }) {
        let mut scene = Scene::new();
        scene.scratch.agent("claude", &trying(TRIES));
        if words == user {
            scene.give_to("65534:65534");
        }
        let run = Scratch::finish(&mut started_by(words, &scene.attacked()));
        is_well(&run);
        check(&scene.scratch, TRIES);
        scene.is_whole();
    }
}

/// What comes out otherwise where Landlock stands alone. It cannot protect what is inside of what can be written, and there are no tops
/// and no new folders for temporary files. The names in a folder of keys can be listed, and nothing of it be read.
const ALONE: &[&str] = &[
    "gc",
    "hook",
    "hooks-away",
    "git-away",
    "git-config",
    "git-config-file",
    "git-config-chmod",
    "git-config-times",
    "git-config-new",
    "git-exclude",
    "state",
    "records",
    "settings",
    "settings-new",
    "env-file",
    "other-tree",
    "other-tree-pointer",
    "part-pointer",
    "part-away",
    "cluster",
    "cluster-away",
    "keys",
    "home-lost",
    "own-file",
    "terminals",
    "tmp",
    "write-proc",
];

#[test]
fn without_namespaces_landlock_and_seccomp_stand_alone_and_that_is_said() {
    let mut scene = Scene::new();
    let tries = tries_but(ALONE);
    scene.scratch.agent("claude", &trying(&tries));
    let run = Scratch::finish(&mut without(&[NAMESPACES], &scene.attacked()));
    is_well(&run);
    check(&scene.scratch, &tries);
    let said = &run.stderr;
    assert!(said.contains("do not hold whole: user namespaces: "), "{run:?}");
    assert!(said.contains("Landlock and seccomp stand alone, so that git's hooks and config"), "{run:?}");
    assert!(scene.other.try_wait().unwrap().is_none(), "it was killed");
    let home = scene.scratch.outside().join("home");
    assert_eq!(fs::read_to_string(home.join("elsewhere/precious")).unwrap(), "mine");
    let left: Vec<_> = fs::read_dir(scene.scratch.path(".ralph/sandbox")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let mut ralph = scene.ralph("prompt p.md 1 --sandbox on");
    let refused = Scratch::finish(&mut without(&[NAMESPACES], ralph.env("RALPH_SANDBOX_NETWORK", "none")));
    assert!(
        refused.code == Some(1) && refused.stderr.contains("sandbox.network = \"none\" needs them"),
        "{refused:?}"
    );
}

#[test]
fn where_no_walls_can_be_built_on_refuses_and_try_says_so() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    let refused =
        Scratch::finish(&mut without(&[NAMESPACES, LANDLOCK], &scratch.ralph("prompt p.md 1 --sandbox on")));
    assert_eq!(refused.code, Some(1), "{} {}", refused.stdout, refused.stderr);
    assert!(
        refused.stderr.contains("walls of the sandbox cannot be built here: user namespaces"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("--sandbox off"), "{}", refused.stderr);
    let tried =
        Scratch::finish(&mut without(&[NAMESPACES, LANDLOCK], &scratch.ralph("prompt p.md 1 --sandbox try")));
    is_well(&tried);
    assert!((tried.stdout + &tried.stderr).contains("agents work without walls"), "it has to be said");
}

#[test]
fn a_command_runs_behind_the_walls_of_this_project() {
    let scratch = Scratch::new();
    let run = |args: &[&str]| Scratch::finish(scratch.ralph("sandbox").args(args));
    assert_eq!(run(&["--", "sh", "-c", "exit 7"]).code, Some(7));
    assert_eq!(run(&["--", "sh", "-c", "kill -9 $$"]).code, Some(137));
    let missing = run(&["--", "no-such-program"]);
    assert_eq!(missing.code, Some(125));
    assert!(missing.stderr.contains("no-such-program"), "{}", missing.stderr);
    assert_eq!(run(&["--", "touch", "/etc/x"]).code, Some(1));
    let mut ralph = scratch.ralph("sandbox -- bash -c");
    ralph.arg("exec 3<> /dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'CONNECT example.org:443 HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3");
    let kept =
        Scratch::finish(ralph.env("RALPH_SANDBOX_NETWORK", "allow").env("RALPH_SANDBOX_HOSTS", "pypi"));
    let told = "example.org:443 cannot be connected to from here (sandbox.hosts would allow it)";
    assert!(kept.stdout.contains("403") && kept.stderr.contains(told), "{kept:?}");
    // Nothing is left of it when ralph is killed, nor when what stands between ralph and the program is.
    for kills_ralph in [true, false] {
        let mut killed = scratch.ralph("sandbox -- sh -c");
        let script = "setsid sleep 600 & echo $$ $! > pids.new; mv pids.new pids; wait";
        let mut killed = killed.arg(script).spawn().unwrap();
        let pids = crate::scratch::wait_for("its program", || fs::read_to_string(scratch.path("pids")).ok());
        fs::remove_file(scratch.path("pids")).unwrap();
        let of_program = |pid: &str| std::path::Path::new("/proc").join(pid);
        if kills_ralph {
            killed.kill().unwrap();
        } else {
            let program = pids.split(' ').next().unwrap();
            let stat = fs::read_to_string(of_program(program).join("stat")).unwrap();
            let parent = stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().to_owned();
            assert_ne!(parent, killed.id().to_string());
            let parent = rustix::process::Pid::from_raw(parent.parse().unwrap()).unwrap();
            rustix::process::kill_process(parent, rustix::process::Signal::KILL).unwrap();
        }
        killed.wait().unwrap();
        let is_gone = || pids.split_whitespace().all(|pid| !of_program(pid).exists());
        crate::scratch::wait_for("its end", || is_gone().then_some(()));
    }
    for left in fs::read_dir(scratch.path(".ralph/sandbox")).unwrap() {
        fs::remove_dir_all(left.unwrap().path()).unwrap();
    }
    let shown = run(&[]);
    is_well(&shown);
    assert!(shown.stdout.contains("can write"), "{}", shown.stdout);
    let json: serde_json::Value = serde_json::from_str(&run(&["--json"]).stdout).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["mode"], "off");
    assert!(!scratch.path(".ralph/sandbox").read_dir().unwrap().any(|_| true), "nothing is left");
}

/// A shell with job control makes the first program of a pipeline the leader of its group.
#[test]
fn a_command_behind_walls_may_be_the_first_of_a_pipeline() {
    let scratch = Scratch::new();
    for backend in ["linux", "portable"] {
        let script = r#"set -m; "$@" sandbox -- sh -c 'echo said; sleep 600 &' | { cat; echo whole; }"#;
        let mut shell = scratch.command("bash");
        shell.args(["-c", script, "bash", env!("CARGO_BIN_EXE_ralph")]).env(PLATFORM, backend);
        let run = Scratch::finish(&mut shell);
        assert_eq!(run.stdout, "said\nwhole\n", "{backend}: {run:?}");
    }
}

#[test]
fn agents_behind_walls_use_the_verbs_of_their_graph() {
    let scratch = Scratch::new();
    scratch.write("a", "");
    scratch.git(&["add", "--all"]);
    scratch.git(&["commit", "-qm", "first"]);
    is_well(&scratch.run("task add one --description first"));
    let id = "id=$(grep -o 't-[0-9a-f]*' <<< \"$prompt\" | head -1)";
    let script = format!(
        "prompt=$(cat)\n{id}\nralph task add more >> said 2>&1 && ralph task list >> said 2>&1\n\
        sqlite3 .ralph/progress.db 'DELETE FROM tasks' >> said 2>&1 || rm -f .ralph/progress.db >> said 2>&1\n\
        git add --all && git commit -qm \"$id\"\nsay \"<task-done>$id</task-done>\"\nresult"
    );
    scratch.agent("claude", &script);
    let ralph = scratch.outside().join("bin/ralph");
    executable(&ralph, &format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_ralph")));
    for jobs in ["1", "2"] {
        let run = Scratch::finish(
            scratch.ralph("run --all --no-verify --proof place --limit 2 --sandbox on --jobs").arg(jobs),
        );
        let list = scratch.run("task list --all").stdout + &scratch.run("task list --status done").stdout;
        assert!(
            list.contains("more") && list.contains("one"),
            "{jobs}: {list} {} {}",
            run.stdout,
            run.stderr
        );
    }
}

/// A server on this machine that answers each connection with a word.
fn server(word: &'static str) -> u16 {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut head = [0; 4096];
            let length = client.read(&mut head).unwrap();
            let begin =
                String::from_utf8_lossy(&head[..length]).lines().next().unwrap_or_default().to_owned();
            let text = format!("{word} {begin}\n");
            let _ = write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        }
    });
    port
}

#[test]
fn where_hosts_are_named_these_are_reached_and_no_others() {
    let scene = Scene::new();
    let (named, other) = (server("named"), server("other"));
    let proxy = "exec 3<> /dev/tcp/127.0.0.1/${HTTP_PROXY##*:}";
    let ask = |request: &str, wanted: &str| {
        format!("{proxy}; printf '{request}\\r\\n\\r\\n' >&3; timeout 10 cat <&3 | grep -a '{wanted}'")
    };
    let tunnel = |place: &str| ask(&format!("CONNECT {place} HTTP/1.1"), "^HTTP/1.1 200");
    let tries = [
        ("direct", format!("exec 3<> /dev/tcp/127.0.0.1/{named}; printf 'GET /x HTTP/1.1\\r\\n\\r\\n' >&3; timeout 10 cat <&3 | grep 'named GET /x'"), true),
        ("plain", ask(&format!("GET http://127.0.0.1:{named}/y HTTP/1.1"), "named GET /y"), true),
        ("through", format!("{proxy}; printf 'CONNECT 127.0.0.1:{named} HTTP/1.1\\r\\n\\r\\nGET /z HTTP/1.0\\r\\n\\r\\n' >&3; timeout 10 cat <&3 | grep 'named GET /z'"), true),
        ("other-direct", format!("exec 3<> /dev/tcp/127.0.0.1/{other}"), false),
        ("other", tunnel(&format!("127.0.0.1:{other}")), false),
        ("other-again", tunnel(&format!("127.0.0.1:{other}")), false),
        ("other-name", tunnel("example.org:443"), false),
        ("other-port", tunnel("api.anthropic.com:22"), false),
        ("private", tunnel("localhost.anywhere.example:443"), false),
        ("metadata", tunnel("169.254.169.254:80"), false),
        ("nonsense", ask("hello", "^HTTP/1.1 200"), false),
        ("own", "perl -MSocket -e 'socket(L, PF_INET, SOCK_STREAM, 0); bind(L, pack_sockaddr_in(0, INADDR_LOOPBACK)) or exit 1; listen(L, 1); socket(S, PF_INET, SOCK_STREAM, 0); connect(S, getsockname(L)) or exit 1'".to_owned(), true),
        ("no-proxy", "test \"$no_proxy\" = localhost,127.0.0.1,::1".to_owned(), true),
    ];
    let tries: Vec<(&str, &str, bool)> =
        tries.iter().map(|(name, script, works)| (*name, &**script, *works)).collect();
    scene.scratch.agent("claude", &trying(&tries));
    let mut ralph = scene.ralph("prompt p.md 1 --sandbox on");
    ralph.env("RALPH_SANDBOX_NETWORK", "allow").env("RALPH_SANDBOX_HOSTS", format!("127.0.0.1:{named} pypi"));
    let run = Scratch::finish(&mut ralph);
    is_well(&run);
    check(&scene.scratch, &tries);
    // It is told once, with how often.
    let told =
        format!("127.0.0.1:{other} cannot be connected to from here, 2 times (sandbox.hosts would allow it)");
    assert_eq!(run.stderr.matches(&told).count(), 1, "{run:?}");
    assert!(
        run.stderr.contains("169.254.169.254:80") && !run.stderr.contains(&format!(":{named} cannot")),
        "{run:?}"
    );
    for (hosts, proxy, why) in
        [("http://x", "", "'http://x' is no host"), ("pypi", "http://p:1", "HTTPS_PROXY names a proxy")]
    {
        let mut ralph = scene.ralph("prompt p.md 1 --sandbox on");
        ralph
            .env("RALPH_SANDBOX_NETWORK", "allow")
            .env("RALPH_SANDBOX_HOSTS", hosts)
            .env("HTTPS_PROXY", proxy);
        let refused = Scratch::finish(&mut ralph);
        assert!(refused.code == Some(1) && refused.stderr.contains(why), "{refused:?}");
    }
}

#[test]
fn what_was_refused_is_told_counted_and_in_the_next_prompt() {
    let scene = Scene::new();
    let scratch = &scene.scratch;
    let script = "cat > \"prompt-$RALPH_ITERATION\"\nout=$(touch ~/.cargo/bin/x ~/elsewhere/y 2>&1; cat ~/.ssh/id 2>&1; ./tracked.sh 2>&1)\n\
        touch ~/elsewhere/y >&2\nsay \"${out//$'\\n'/\\\\n}\"\n\
        [ \"$RALPH_ITERATION\" = 1 ] || say '<promise>COMPLETE</promise>'\nresult";
    scratch.write("tracked.sh", "not executable");
    scratch.agent("claude", script);
    let run = Scratch::finish(&mut scene.ralph("prompt p.md 2 --sandbox on"));
    is_well(&run);
    let told = [
        "seems refused: ~/.ssh/id cannot be read here (sandbox.show would allow it)",
        "seems refused: ~/.cargo/bin/x is not writable here (sandbox.write would allow it)",
        "seems refused: ~/elsewhere/y is not writable here, 2 times (sandbox.write would allow it)",
    ];
    for line in told {
        assert_eq!(run.stderr.matches(line).count(), 2, "{line}: {run:?}");
        assert!(!scratch.read("prompt-1").contains(line));
        assert!(scratch.read("prompt-2").contains(&format!("- {line}\n")), "{}", scratch.read("prompt-2"));
    }
    let events = crate::jobs::events(scratch, "refused");
    assert_eq!(events.len(), 6, "{events:?}");
    assert_eq!((&events[0]["what"], &events[0]["times"]), (&"read".into(), &1.into()), "{events:?}");
    let report = scratch.run("report");
    assert!(
        report.stdout.contains("behind walls: ") && report.stdout.contains("~/.cargo/bin/x is not writable"),
        "{report:?}"
    );
    let json: serde_json::Value = serde_json::from_str(&scratch.run("report --json").stdout).unwrap();
    assert_eq!(json["loops"][0]["refused"].as_array().unwrap().len(), 3, "{json}");
}

#[test]
fn what_a_gate_is_refused_is_in_what_the_next_agent_reads() {
    let scene = Scene::new();
    let scratch = &scene.scratch;
    let id = crate::run_tasks::add(scratch, "task");
    let script = format!(
        "n=$(($(cat \"$TMPDIR_OF_TEST/n\" 2> /dev/null) + 1)); cat > \"prompt-of-$n\"; echo $n > work; git add work; git commit -qm work\n\
        say '<task-done>{id}</task-done>'; result"
    );
    scratch.agent("claude", &script.replace("$TMPDIR_OF_TEST", "$OUT/../allowed"));
    let mut ralph = scene.ralph("run --all --no-verify --proof place --onto main --limit 2 --sandbox on");
    ralph.env("RALPH_LANDING_COMMAND", "touch ~/elsewhere/x");
    let run = Scratch::finish(&mut ralph);
    let prompts = run.stdout.clone() + &run.stderr + &scratch.run(&format!("task show {id}")).stdout;
    assert!(prompts.contains("seems refused: ~/elsewhere/x is not writable here"), "{prompts}");
}

#[test]
fn what_leads_out_of_the_work_is_watched_without_walls_too() {
    let scene = Scene::new();
    let scratch = &scene.scratch;
    scratch.git(&["worktree", "add", "-q", "../second"]);
    scratch.git(&["branch", "spare"]);
    scratch.agent(
        "claude",
        "cat > /dev/null; echo 'rm -rf /' >> ~/.bashrc; git config core.hooksPath /x; echo x > .git/hooks/pre-commit
        git -C ../second switch -q spare; git config branch.main.remote x; git config --unset core.bare
        say '<promise>COMPLETE</promise>'; result",
    );
    let run = Scratch::finish(&mut scene.ralph("prompt p.md 3"));
    is_well(&run);
    let home = scratch.outside().join("home");
    let told = |path: std::path::PathBuf, what: &str| {
        let line = format!("tripwire: {} {what} during this attempt, and not by ralph", path.display());
        assert_eq!(run.stderr.matches(&line).count(), 1, "{line}: {run:?}");
        let rest = run.stderr.split(&line).nth(1).unwrap().lines().next().unwrap();
        rest.rsplit_once(" is kept as ").map(|(_, kept)| fs::read_to_string(kept).unwrap())
    };
    assert_eq!(told(home.join(".bashrc"), "was changed").unwrap(), "# mine\n");
    assert!(!told(scratch.path(".git/config"), "was changed").unwrap().contains("hooksPath"));
    assert_eq!(told(scratch.path(".git/hooks/pre-commit"), "was made"), None);
    assert!(told(scratch.path(".git/worktrees/second/HEAD"), "was changed").unwrap().contains("second"));
    assert!(!run.stderr.contains("index"), "its entries are as they were: {run:?}");

    // What ralph itself makes and removes meanwhile is no matter.
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    for _ in 0..3 {
        let mut ralph = scene.ralph("prompt p.md 3 --validate true");
        let run = Scratch::finish(ralph.env("RALPH_SANDBOX_TRIPWIRE", "stop"));
        assert!(run.code == Some(0) && !run.stderr.contains("tripwire"), "{run:?}");
    }
    scratch
        .agent("claude", &format!("echo more >> ~/.bashrc; {}", claude_says("<promise>COMPLETE</promise>")));
    fs::write(home.join(".bashrc"), "# mine\n").unwrap();
    let mut ralph = scene.ralph("prompt p.md 3 --validate true");
    let run = Scratch::finish(ralph.env("RALPH_SANDBOX_TRIPWIRE", "stop"));
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("something beside the work was changed"), "{run:?}");
    assert!(!run.stdout.contains("proven"), "nothing is judged by what it may have changed: {run:?}");
    let mut ralph = scene.ralph("prompt p.md 3");
    fs::write(home.join(".bashrc"), "# mine\n").unwrap();
    let run = Scratch::finish(ralph.env("RALPH_SANDBOX_TRIPWIRE", "off"));
    assert!(run.code == Some(0) && !run.stderr.contains("tripwire"), "{run:?}");
}

#[test]
fn words_of_the_user_s_own_stand_before_agents_and_what_proves_their_work() {
    let scratch = Scratch::new();
    scratch.agent(
        "claude",
        &format!("echo \"agent $BOXED\" >> boxed; {}", claude_says("<promise>COMPLETE</promise>")),
    );
    executable(
        &scratch.outside().join("bin/box"),
        "#!/bin/sh\n[ \"$1\" = --in ] || exit 9\nshift\nBOXED=yes exec \"$@\"\n",
    );
    let run = |wrapper: &str, args: &str| {
        Scratch::finish(scratch.ralph(args).env("RALPH_SANDBOX_WRAPPER", wrapper))
    };
    let mut ralph = scratch.ralph("prompt p.md 1 --sandbox on --proof place --validate");
    ralph.arg("echo \"validation $BOXED\" >> boxed").env("RALPH_SANDBOX_WRAPPER", "box --in");
    is_well(&Scratch::finish(&mut ralph));
    assert_eq!(scratch.read("boxed"), "agent yes\nvalidation yes\n");
    let boxed = run("box --in", "sandbox -- printenv BOXED");
    assert_eq!((boxed.code, &*boxed.stdout), (Some(0), "yes\n"));
    assert!(run("box --in", "sandbox").stdout.contains("what it keeps from one is not known"));
    for wrapper in ["box", "no-such-box"] {
        let refused = run(wrapper, "prompt p.md 1 --sandbox on");
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("sandbox.wrapper: a trial of"), "{refused:?}");
        let tried = run(wrapper, "prompt p.md 1 --sandbox try");
        assert!(tried.code == Some(0) && tried.stderr.contains("agents work without walls"), "{tried:?}");
    }
}

#[test]
fn a_project_may_tighten_its_walls_without_trust_and_not_loosen_them() {
    let scratch = Scratch::new();
    let user = scratch.outside().join("home/config/ralph");
    fs::create_dir_all(&user).unwrap();
    let mode = |of_user: &str, of_project: &str| {
        fs::write(user.join("ralph.toml"), format!("[sandbox]\nmode = \"{of_user}\"\nnetwork = \"allow\"\n"))
            .unwrap();
        scratch.write("ralph.toml", format!("[sandbox]\nmode = \"{of_project}\"\nnetwork = \"all\"\n"));
        let shown = scratch.run("config --json").stdout;
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let rows = shown.as_array().unwrap();
        let of = |key: &str| {
            let row = rows.iter().find(|row| row["key"] == key).unwrap();
            row["value"].as_str().unwrap().to_owned()
        };
        assert_eq!(of("sandbox.network"), "allow", "that would loosen them");
        of("sandbox.mode")
    };
    assert_eq!(mode("off", "on"), "on");
    assert_eq!(mode("try", "on"), "on");
    assert_eq!(mode("on", "off"), "on");
    assert_eq!(mode("on", "try"), "on");
    assert_eq!(mode("off", "try"), "try");
}
