//! The scripted agent in real repositories.

use super::program::Program;
use super::{Agent, Place};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::time::Duration;

const PLAN: &str = ".ralph/implementation_plan.md";
const BRANCHES: &str = "IMPLEMENTATION_PLAN.md";
const SPEC: &str = "\
# Greeting

- Be quick
- Greet the world: `greet.sh` prints `Hello, world!`
- Greet loudly: `greet.sh --loud NAME` prints `HEY, NAME! 100% it's NAME`
";

/// A new git repository.
struct Scratch {
    place: Place,
    _folder: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place {
            root: folder.path().to_owned(),
            mode: String::new(),
            home: ".ralph".into(),
            specs: "specs".into(),
            plans_branches: false,
            branch: None,
            pace: Duration::ZERO,
            plays: None,
            run: String::new(),
        };
        let scratch = Self { place, _folder: folder };
        scratch.run("git init --quiet; git config user.name A; git config user.email a@example.com");
        scratch.run("mkdir specs .ralph");
        scratch.write("specs/greeting.md", SPEC);
        scratch
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.place.root.join(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.place.root.join(path)).unwrap()
    }

    /// What a shell command prints.
    fn run(&self, command: &str) -> String {
        let output = Command::new("sh").args(["-c", command]).current_dir(&self.place.root).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// One run of the agent: whether it said COMPLETE, or its error.
    fn act(&mut self, mode: &str) -> Result<bool, String> {
        mode.clone_into(&mut self.place.mode);
        let mut out = Vec::new();
        let play = self.place.next_play();
        let code = Agent::new(self.place.clone(), &mut out, b"prompt").perform(play);
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let events: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        let [start, .., last, result] = &events[..] else { panic!("{events:?}") };
        assert_eq!((&start["type"], &result["input_tokens"]), (&"start".into(), &2.into()));
        assert_eq!(result["status"], if code == 0 { "ok" } else { "error" });
        let complete =
            last["text"].as_str().is_some_and(|text| text.ends_with("\n\n<promise>COMPLETE</promise>"));
        if code == 0 { Ok(complete) } else { Err(result["message"].as_str().unwrap().to_owned()) }
    }

    fn build_thrice(&mut self) -> [Result<bool, String>; 3] {
        [(); 3].map(|()| self.act("build"))
    }
}

#[test]
fn plans_builds_one_task_per_run_and_completes() {
    let mut scratch = Scratch::new();
    assert_eq!(scratch.act("plan"), Ok(true));
    let plan = scratch.read(PLAN);
    assert!(
        plan.contains("\n## 2. Greet loudly\n- Status: planned\n- Spec: specs/greeting.md\n- Desc"),
        "{plan}"
    );
    assert_eq!(scratch.build_thrice(), [Ok(false), Ok(true), Ok(true)]);
    assert_eq!(scratch.run("sh greet.sh --loud 'a $HOME'"), "HEY, a $HOME! 100% it's a $HOME\n");
    assert_eq!(scratch.act("plan"), Ok(true), "planned once");
    assert_eq!(scratch.read(PLAN), plan.replace("planned", "complete"));
    let subjects = scratch.run("git log --reverse --format=%s");
    assert_eq!(subjects, "Plan: a task for each requirement of the specs\nGreet the world\nGreet loudly\n");
    assert_eq!(
        scratch.run("git status --porcelain"),
        "?? specs/\n",
        "the user's own files are not committed"
    );
}

#[test]
fn builds_its_own_branch_and_leaves_the_plan_uncommitted() {
    let mut scratch = Scratch::new();
    scratch.place.plans_branches = true;
    scratch.write("specs/Tea time.md", "- `tea.sh` prints `Hot`\n");
    assert_eq!(scratch.act("plan"), Ok(true));
    let tea =
        "\n## Branch: tea-time\nGoal: Do what specs/Tea time.md asks for\n\n- [ ] `tea.sh` prints `Hot`\n";
    let plan = scratch.read(BRANCHES);
    assert!(
        plan.contains(tea) && plan.contains("\n## Branch: greeting\n") && !plan.contains("quick"),
        "{plan}"
    );
    scratch.place.branch = Some("greeting".to_owned());
    assert_eq!(scratch.build_thrice(), [Ok(false), Ok(true), Ok(true)]);
    let plan = scratch.read(BRANCHES);
    assert!(plan.contains(tea) && plan.matches("- [x] ").count() == 2, "{plan}");
    assert_eq!(scratch.run("git log --reverse --format=%s"), "Greet the world\nGreet loudly\n");
    assert_eq!(scratch.run("git status --porcelain"), "?? IMPLEMENTATION_PLAN.md\n?? specs/\n");
    scratch.write("specs/greeting.md", "- `greet.sh --bye` prints `Bye`\n");
    assert_eq!(scratch.act("plan"), Ok(true));
    assert!(scratch.read(BRANCHES).contains("\n## Branch: greeting-3\n"), "a later requirement");
}

#[test]
fn what_git_ignores_is_not_committed() {
    let mut scratch = Scratch::new();
    scratch.write(".git/info/exclude", ".ralph\ngreet.sh\n");
    scratch.act("plan").unwrap();
    scratch.act("build").unwrap();
    assert_eq!(scratch.run("git ls-files"), "check.sh\n");
}

#[test]
fn failures_are_results() {
    let mut scratch = Scratch::new();
    let fails = |scratch: &mut Scratch, mode: &str, why: &str| {
        let error = scratch.act(mode).unwrap_err();
        assert!(error.contains(why), "{error}");
    };
    fails(&mut scratch, "build", "there is no plan at .ralph/implementation_plan.md: plan first");
    scratch.act("plan").unwrap();
    scratch.write("greet.sh", "echo mine\n");
    fails(&mut scratch, "build", "greet.sh was not written by ralph: rename it");
    assert_eq!(scratch.read("greet.sh"), "echo mine\n");
    scratch.write(PLAN, "- Status: planned\n- Description: Be quick\n");
    fails(&mut scratch, "build", "prints `TEXT`, not: Be quick");
    scratch.write(PLAN, "- [ ] Be quick\n");
    fails(&mut scratch, "build", "the plan has no task");

    scratch.run("rm check.sh .ralph/*");
    scratch.write("specs/greeting.md", "- A: `x.sh` prints `one`\n- B: `x.sh` prints `two`\n");
    scratch.act("plan").unwrap();
    scratch.act("build").unwrap();
    fails(&mut scratch, "build", "sh check.sh failed: FAILED: x.sh: expected 'two', got 'one'");

    scratch.write("specs/greeting.md", "- Be quick\n");
    fails(&mut scratch, "plan", "no requirement that I can build in specs/*.md");
    scratch.run("rm -r specs");
    fails(&mut scratch, "plan", "cannot read specs");
    scratch.write(BRANCHES, "## Branch: b\nGoal: g\n- [ ] t\n");
    scratch.place.branch = Some("a".to_owned());
    fails(&mut scratch, "build", "has no section '## Branch: a'");
}

#[test]
fn an_ad_hoc_prompt_changes_nothing() {
    let mut scratch = Scratch::new();
    assert_eq!(scratch.act("prompt"), Ok(true));
    assert_eq!(scratch.run("git status --porcelain"), "?? specs/\n");
}

#[test]
fn only_programs_are_understood() {
    for text in [
        "Be fast",
        "`greet.sh` is small",
        "`../x.sh` prints `y`",
        "`check.sh` prints `x`",
        "`a.sh '` prints `b`",
    ] {
        assert!(Program::find(text).is_none(), "{text}");
    }
}

#[test]
fn what_is_no_file_is_refused_by_name_and_a_link_of_ours_is_not_followed() {
    for (path, kind) in [("specs/greeting.md", "a FIFO"), (PLAN, "a FIFO")] {
        let mut scratch = Scratch::new();
        scratch.run(&format!("rm -f {path}; mkfifo {path}"));
        let error = scratch.act("plan").unwrap_err();
        assert!(error.contains(path) && error.contains(kind), "{error}");
    }
    let mut scratch = Scratch::new();
    scratch.place.plays = Some("overload".to_owned());
    scratch.write("mine", "mine");
    scratch.run("mkdir .ralph/logs; ln -s ../../mine .ralph/logs/script.count");
    let mut out = Vec::new();
    let play = scratch.place.next_play();
    assert_ne!(Agent::new(scratch.place.clone(), &mut out, b"prompt").perform(play), 0);
    let error = String::from_utf8(out).unwrap();
    assert!(error.contains("script.count") && error.contains("a symbolic link"), "{error}");
    assert_eq!(scratch.read("mine"), "mine");
}

#[test]
fn a_plan_that_is_a_link_stays_one() {
    let mut scratch = Scratch::new();
    scratch.write("plan of mine", "# Mine\n");
    scratch.run(&format!("ln -s '../plan of mine' {PLAN}"));
    scratch.act("plan").unwrap();
    assert!(scratch.place.root.join(PLAN).is_symlink());
    assert!(scratch.read("plan of mine").starts_with("# Mine\n\n## 1. "));
}
