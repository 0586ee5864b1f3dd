"""What is played, and what has to hold after it."""
import re

from crash_sweep.project import need


class Scenario:
    """What is played: `command` first; then, after the fault, the next start."""

    # Work on threads of their own: the fault may come in any of them.
    threads = False
    # Whose calls can be broken, see `cutter.py`.
    processes = ("loop", "supervisor")
    command = loop = ""
    # What its loops are called.
    loops = ()
    lives_on = False
    again = None

    def prepare(self, project):
        """Makes the project."""

    def next_start(self, project):
        """What a person would do next."""
        code, text = project.ralph(f"resume {self.loop}")
        if code == 0:
            return
        if "no loop" in text:
            self.begin_again(project)
        elif "not written by you" in text:
            # The user's folder could not name it; the message says this.
            project.good(self.command + " --resume")
        else:
            need("come to its end (limit)" in text or "come to its end (done)" in text,
                 f"'ralph resume {self.loop}' ended with {code}:", text[-1500:])

    def begin_again(self, project):
        """What a person would do where the loop before is forgotten, or is not to be resumed."""
        project.began_again = True
        project.good(self.command)

    def check(self, project, before):
        """Whether everything was done once; `before` is what was known right after the fault."""

    def state(self, project):
        """The states of all loops."""
        listed = project.json("status")
        return listed if isinstance(listed, list) else [listed]


class Plan(Scenario):
    """A build loop over a plan: two iterations, each with a commit."""

    name, command, loop, again, loops = "plan", "build 2", "build", "build 1", ("build",)

    def prepare(self, project):
        project.write(".ralph/implementation_plan.md", "- [ ] one\n- [ ] two\n")
        # Each attempt does the first thing that is not done.
        project.agent("for name in one two; do\n  git log --format=%s | grep -qxF $name || { once $name; break; }\ndone\nsay hi\n")

    def check(self, project, before):
        project.assert_committed_once(["one", "two"])
        assert_books(project, self.state(project))


class Proof(Plan):
    """A build loop whose end is proven in a clean checkout."""

    name, command, again, threads = "proof", "build 6 --proof base --validate ./check", "build 1", True

    def prepare(self, project):
        super().prepare(project)
        project.write("check", "#!/bin/sh\ntest -e two.txt\n")
        (project.root / "check").chmod(0o755)
        project.git("add", "check")
        project.git("commit", "-qm", "check")
        project.agent(r"""for name in one two; do
  git log --format=%s | grep -qxF $name || { once $name; sed -i "s/^- .*$name$/- [x] $name/" .ralph/implementation_plan.md; break; }
done
if [ -e two.txt ]; then sed -i 's/^- ... /- [x] /' .ralph/implementation_plan.md; say '<promise>COMPLETE</promise>'; else say more; fi
""")

    def check(self, project, before):
        super().check(project, before)
        (state,) = self.state(project)
        if project.fault == "enospc" and state["status"] == "killed":
            return  # Its end was proven, and there was no room to write that.
        proof = state.get("proof") or {}
        need(proof.get("standing") == "proven" and proof["by"].startswith("clean tree "), "proof:", state)
        need("\nlocked" not in project.git("worktree", "list", "--porcelain"), "a work tree is locked")


class RalphMd(Plan):
    """A RALPH.md loop with two iterations."""

    name, command, loop, again = "ralph-md", "run fix -n 2 --max-retries 1", "fix", "run fix -n 1"
    loops = ("fix",)

    def prepare(self, project):
        super().prepare(project)
        project.write("fix/RALPH.md", "---\nagent: claude -p --output-format stream-json --verbose\n---\nFix it.\n")


TITLES = ["one", "two", "three", "four", "five"]


class Tasks(Scenario):
    """Five tasks, each of them verified by a second agent."""

    name, command, loop, again, loops = "tasks", "run --all", "tasks", "run --all", ("tasks",)
    # The graph is asked on a thread of its own.
    threads = True

    def prepare(self, project):
        project.agent(r"""id=$(sed -n 's/^## Your task: //p' <<< "$prompt")
if grep -q '^# Verify the task' <<< "$prompt"; then echo "verify $id" >> "$HOME/calls"; say 'I looked.\n<verify-pass/>'
else echo "do $id" >> "$HOME/calls"; once "$id"; say "It is done.\n<task-done>$id</task-done>"; fi
""")
        for title in TITLES:
            project.good(f"task add {title}")

    def check(self, project, before):
        tasks = project.json("task list")
        need([task["status"] for task in tasks] == ["done"] * len(TITLES), "tasks:", tasks)
        project.assert_committed_once([task["id"] for task in tasks])
        events, calls = before
        at_work = None
        for event in events:
            if event["event"] == "attempt_started":
                at_work = event.get("about")
            elif event["event"] == "validating" and at_work:
                later = project.calls()[len(calls):]
                need(f"do {at_work}" not in later, f"{at_work} was claimed, and done again: {calls}, then {later}")
        assert_books(project, self.state(project))


class TasksAgain(Tasks):
    """Like that, but with the command typed again: that is a loop of its own."""

    name = "tasks-again"

    def next_start(self, project):
        self.begin_again(project)


class Branches(Scenario):
    """Two branches at once, each with two tasks."""

    name, command, again, threads, loops = "branches", "loop build", "loop build", True, ("a", "b")

    def prepare(self, project):
        project.write("IMPLEMENTATION_PLAN.md", "# Plan\n\n" + "".join(
            f"## Branch: {branch}\nGoal: Have {branch}\n\n- [ ] {branch}-1\n- [ ] {branch}-2\n\n" for branch in ["a", "b"]))
        project.agent(r"""open() { sed -n "s/^- \[ \] \($RALPH_BRANCH-[12]\)\$/\1/p" IMPLEMENTATION_PLAN.md | head -1; }
task=$(open)
if [ -n "$task" ]; then once "$task"; sed -i "s/^- \[ \] $task\$/- [x] $task/" IMPLEMENTATION_PLAN.md; fi
if [ -n "$(open)" ]; then say more; else say '<promise>COMPLETE</promise>'; fi
""")

    def next_start(self, project):
        project.good(self.command)

    def check(self, project, before):
        for branch in ["a", "b"]:
            project.assert_committed_once([f"{branch}-1", f"{branch}-2"], branch)
        need("[ ]" not in (project.root / "IMPLEMENTATION_PLAN.md").read_text(), "the plan has open tasks")
        states = self.state(project)
        # A branch that is done is not built again, and a loop that was forgotten stays so.
        names = sorted(state["name"] for state in states)
        need(names == ["a", "b"] or project.fault == "clean" and set(names) <= {"a", "b"}, "states:", states)
        assert_books(project, states)


class CleanWorktrees(Branches):
    """The work trees of two branches that are done, removed."""

    name, command, threads, processes = "clean-worktrees", "clean --worktrees", False, ("loop",)
    loops = ()

    def prepare(self, project):
        super().prepare(project)
        project.good("loop build")

    def check(self, project, before):
        super().check(project, before)
        trees = project.git("worktree", "list").splitlines()
        need(len(trees) == 1 and not list(project.root.glob(".worktrees/*")), "work trees:", trees)


class Worker(Scenario):
    """A worker in a pane of tmux, with two iterations."""

    name, loop, loops, lives_on, processes = "worker", "w", ("w",), True, ("loop", "supervisor", "wrapper")
    command = "spawn --name w --prompt-file prompt.md -n 2 -- claude"
    again = "resume w --max-iterations 3"

    def prepare(self, project):
        project.write("prompt.md", "Do the thing that is to be done.\n")
        project.agent("printf '❯ '; read -r line; echo \"$line\" >> \"$HOME/calls\"\nprintf '● Working.\\n❯ \\n'; sleep 0.2; exit 0\n",
                      "#!/usr/bin/env bash\n")

    def begin_again(self, project):
        project.began_again = True
        code, text = project.ralph(self.command)
        # Its agent may work on without the loop.
        if code != 0 and "already exists" in text:
            project.good(self.command.replace("spawn", "spawn --replace"))

    def check(self, project, before):
        log = (project.home / ".local/state/ralph/loops/w/iterations.log").read_text(errors="replace")
        given = len(project.calls())
        if project.lost_power or project.fault == "clean":
            # Work without any record is done again.
            need(given >= 2, f"the prompt was given {given} times:", log)
        else:
            # Without its wrapper, it is unknown how an agent has ended: that iteration has failed, and may have had no prompt.
            ended, least = (r"\[(END|FAIL)\] iteration {} exit=", 1) if project.fault == "wrapper" else (r"\[END\] iteration {} exit=0 ", 2)
            for iteration in [1, 2]:
                need(len(re.findall(ended.format(iteration), log)) == 1, f"ends of iteration {iteration}:", log)
            need(log.count("reason=max_iterations") <= 1, "ends:", log)
            need(least <= given <= log.count("[START]"), f"the prompt was given {given} times:", log)
        code, sessions = project.run(["tmux", "-S", str(project.folder / "tmux"), "list-sessions"])
        need(code != 0, "panes are left:", sessions)


def verb(name, command, *first, files=()):
    """A short verb: cut off, then typed again. It comes after the verbs `first`, and needs these files."""

    class Verb(Scenario):
        processes = ("loop",)

        def prepare(self, project):
            project.agent("say hi")
            project.write(".ralph/implementation_plan.md", "- [ ] one\n")
            for path, text in files:
                project.write(path, text)
            for args in first:
                project.good(args)

        def next_start(self, project):
            code, text = project.ralph(command)
            need(code == 0 or any(words in text for words in ["already", "no feature", "no loop is called"]), f"'ralph {command}' ended with {code}:", text[-1500:])
            project.good("task list --json")

    Verb.name, Verb.command, Verb.again, Verb.__doc__ = name, command, "build 1", f"ralph {command}"
    return Verb()


SCENARIOS = {scenario.name: scenario for scenario in [
    Tasks(), Plan(), Proof(), TasksAgain(), RalphMd(), Branches(), CleanWorktrees(), Worker(), verb("task-add", "task add one"), verb("init", "init"),
    verb("feature-add", "feature add one", "task add one"), verb("feature-delete", "feature delete one", "feature add one"),
    verb("task-import", "task import .ralph/implementation_plan.md"),
    verb("trust", "trust --yes", files=[("ralph.toml", "[hooks]\non_end = 'true'\n")]),
    verb("clean", "clean build", "build 1"), verb("init-force", "init --force", "init"),
    verb("config-file", "init ralph.toml"),
]}


def assert_books(project, states):
    """Numbers and money are the same in the states of loops, in their events and in reports."""
    need(len({state["name"] for state in states}) == len(states), "states:", states)
    runs = Run.all_of(project)
    for state in states:
        own = [run for run in runs if run.loop == state["name"] and (not project.began_again or run.name == state["run"])]
        assert_numbers(project, [event for run in own for event in run.ended])
        cost, known = own[-1].cost if own else 0, state["cost_usd"] or 0
        told = sum(run.grown for run in own)
        # A power cut may have taken events of what the state has, and the state and the events of what only an end tells.
        if state["run"] not in project.runs_cut_off:
            need(abs(known - cost) < 0.001, f"money of {state['name']}: events {cost}, state {known}")
        need(project.lost_power or abs(told - cost) < 0.001, f"money of {state['name']}: {told} in all runs, {cost} at the end")
    told, grown = sum(run["cost_usd"] or 0 for run in project.json("history")), sum(run.grown for run in runs)
    need(abs(told - grown) < 0.001, f"money: events {grown}, reports {told}")
    answers = len(project.kept_by_agents("answers"))
    need(sum(state["cost_usd"] or 0 for state in states) < 0.25 * answers + 0.001, f"{answers} answers of $0.25, and in the states:", states)


def assert_numbers(project, ended):
    """No iteration has ended well twice, and none is missing."""
    # One whose proof could not be recorded is over as well.
    numbers = [event["iteration"] for event in ended if event["status"] in ["success", "complete-unproven"]]
    need(numbers == sorted(set(numbers)), "iterations that ended well:", numbers)
    if project.fault == "supervisor":
        # An iteration whose supervisor was killed has failed; where there are no retries the next one does what is left.
        numbers = sorted({event["iteration"] for event in ended})
    need(project.lost_power or numbers == list(range(1, len(numbers) + 1)), "iterations that ended well:", numbers)


class Run:
    """What the events of one run of one loop tell of its attempts and its money."""

    def __init__(self, name, loop):
        self.name, self.loop, self.ended, self.before, self.cost = name, loop, [], 0, 0

    @property
    def grown(self):
        """What it has cost itself: a loop that is resumed goes on counting."""
        return self.cost - self.before

    @staticmethod
    def all_of(project):
        runs = {}
        for event in project.events():
            run = runs.setdefault((event["run"], event["loop"]), Run(event["run"], event["loop"]))
            if event["event"] == "loop_started":
                run.before = run.cost = event.get("spent", {}).get("cost_usd", 0)
            elif event["event"] == "loop_ended":
                # A power cut may have left no more of it, and the end stands beside its log as well.
                run.cost = event.get("cost_usd", 0)
            elif event["event"] == "validating" and event.get("spent"):
                run.cost = event["spent"].get("cost_usd", 0)
            elif event["event"] == "attempt_ended":
                run.ended.append(event)
                # With what the agents cost that verify.
                run.cost = event["spent"].get("cost_usd", 0)
        return list(runs.values())
