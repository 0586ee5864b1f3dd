"""A project in a folder of its own, the program run in it, and what the program left there."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

# No step of a point may take longer.
PATIENCE = 60
# What a killed ralph has started is gone after this time.
ORPHANS = 10

# What agents begin with: `once NAME` commits NAME, unless an earlier attempt has; `say TEXT` answers with it.
AGENT = r"""#!/usr/bin/env bash
prompt=$(cat)
once() { git log --format=%s | grep -qxF "$1" || { echo "$1" > "$1.txt"; git add "$1.txt" && git commit -qm "$1"; } || exit 1; }
say() {
    echo >> "$HOME/answers"
    printf '{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"%s"}]},"parent_tool_use_id":null}\n' "$1"
    echo '{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":5}}'
}
"""


class Failed(Exception):
    """What does not hold at a point."""


def need(condition, *words):
    if not condition:
        raise Failed(" ".join(str(word) for word in words))


class Project:
    """A project with a home and an agent of its own, below a folder of its own."""

    def __init__(self, folder, ralph, fault=None):
        self.folder, self.fault = folder, fault
        # Words before the next command only.
        self.before_next = []
        # Not all that was written is there, of these runs and of the state.
        self.lost_power, self.runs_cut_off = False, set()
        # The loop before the last one was not resumed, and nothing of it counts for the last one.
        self.began_again = False
        self.root, self.home = folder / "project", folder / "home"
        for path in [self.root, self.home, folder / "bin"]:
            path.mkdir(parents=True)
        (folder / "bin/ralph").symlink_to(ralph)
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        self.env = {name: value for name, value in os.environ.items() if name.startswith("TESTS_OF_RALPH_")} | {
            "PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1",
            "RALPH_AGENT_INTERRUPT_WAIT": "0.5", "RALPH_AGENT_TERMINATE_WAIT": "0.5",
            "RALPH_TMUX_SOCKET": str(folder / "tmux"),
        } | {f"GIT_{who}_{what}": value for who in ["AUTHOR", "COMMITTER"]
             for what, value in [("NAME", "Test"), ("EMAIL", "test@example.com")]}
        self.git("init", "-q", "-b", "main")
        (self.root / "specs").mkdir()
        self.write("code.txt", "code\n")
        self.git("add", ".")
        self.git("commit", "-qm", "Begin")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def agent(self, body, begin=AGENT):
        path = self.folder / "bin/claude"
        path.write_text(begin + body)
        path.chmod(0o755)

    def run(self, words, prefix=()):
        """Runs a program to its end: its exit code and what it has printed, first to stdout."""
        out, errors = self.folder / "out", self.folder / "errors"
        with open(out, "wb") as stdout, open(errors, "wb") as stderr:
            child = subprocess.Popen([*prefix, *words], cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, stdout=stdout,
                                     stderr=stderr)
            try:
                code = child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.end_all()
                child.wait()
                raise Failed(f"{words} did not end within {PATIENCE} s: {errors.read_text(errors='replace')[-600:]}") from None
        self.printed = out.read_text(errors="replace")
        text = self.printed + errors.read_text(errors="replace")
        need("panicked at" not in text, words, text[-1500:])
        return code, text

    def ralph(self, args):
        prefix, self.before_next = self.before_next, []
        return self.run(["ralph", *args.split()], prefix)

    def cut_next(self, spec):
        """Has the next start of ralph run below `cutter.py`."""
        kept = self.folder / "kept"
        kept.mkdir(exist_ok=True)
        spec = {"list": str(self.folder / "calls"), "keep": str(kept)} | spec
        self.before_next = [sys.executable, str(pathlib.Path(__file__).with_name("cutter.py")), json.dumps(spec)]

    def listed(self):
        """The calls that were listed then, and whether the fault came."""
        *calls, last = map(json.loads, (self.folder / "calls").read_text().splitlines())
        return calls, last["was_cut"]

    def good(self, args):
        code, text = self.ralph(args)
        need(code == 0, f"'ralph {args}' ended with {code}:", text[-1500:])
        return text

    def json(self, args):
        self.good(args + " --json")
        return json.loads(self.printed)

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.root, env=self.env, check=True, capture_output=True, text=True).stdout

    def processes(self):
        """Everything that runs in this home, whoever started it: pid and command line."""
        mark, found = f"HOME={self.home}\0".encode(), {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if mark in (entry / "environ").read_bytes() + b"\0":
                        words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                        found[int(entry.name)] = words
                except OSError:
                    pass  # It has ended meanwhile, or is a zombie.
        return found

    def end_all(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def await_no_process(self, when):
        until = time.monotonic() + ORPHANS
        while found := self.processes():
            need(time.monotonic() < until, f"{when}: left after {ORPHANS} s:", found)
            time.sleep(0.02)

    def events(self):
        """The whole lines of all events logs, in the order of their runs, and how these ended."""
        lines, logs = [], self.root.glob(".ralph/runs/*/**/*.events.jsonl")
        for folder in sorted({log.parent for log in logs}):
            logs = [path.read_bytes() for path in [*sorted(folder.glob("*.events.jsonl")), *folder.glob("end.json")]]
            for line in [line for log in logs for line in log.split(b"\n")]:
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    pass  # Cut off by the fault, or what stands behind the last one.
        return lines

    def calls(self):
        return self.kept_by_agents("calls")

    def kept_by_agents(self, name):
        path = self.home / name
        return path.read_text().splitlines() if path.exists() else []

    def litter(self):
        """What is ralph's or git's and should not outlive who made it."""
        paths = [path for top in [self.root, self.home] for path in top.rglob("*")]
        return [str(path.relative_to(self.folder)) for path in paths
                if path.name.endswith(".tmp") or path.name.startswith(".ralph-")
                or path.name.endswith(".lock") and ".git" in path.parts and not self.lost_power]

    def await_makers(self):
        """Waits until who made temporary files is gone: an ended process keeps its number until its parent has asked for its end."""
        until = time.monotonic() + ORPHANS
        makers = re.findall(r"\.ralph-[0-9a-f]+-(\d+)-", " ".join(self.litter()))
        while any(os.path.exists(f"/proc/{maker}") for maker in makers) and time.monotonic() < until:
            time.sleep(0.02)

    def assert_committed_once(self, names, range="main"):
        subjects = self.git("log", "--format=%s", range).splitlines()
        for name in names:
            need(subjects.count(name) == 1, f"{name} is committed {subjects.count(name)} times:", subjects)
