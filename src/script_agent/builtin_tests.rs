//! The honest agent in real repositories.

use super::super::testing::{Scratch, git};

const SPEC: &str = "\
# Greeting

## Requirements

- Greet the world: `greet.sh` prints `Hello, world!`
- Greet a person: `greet.sh NAME` prints `Hello, NAME!`
- Greet loudly: `greet.sh --loud NAME`
  prints `HELLO, NAME!!`
";

fn subjects(scratch: &Scratch) -> String {
    git(&scratch.place.root, &["log", "--reverse", "--format=%s"])
}

#[test]
fn plans_builds_one_task_per_run_and_completes() {
    let mut scratch = Scratch::new();
    scratch.write("specs/greeting.md", SPEC);
    scratch.write("specs/README.md", "- not a requirement\n");
    assert!(scratch.act("plan").completes());
    let runs: Vec<bool> = (0..3).map(|_| scratch.act("build").completes()).collect();
    assert_eq!(runs, [false, false, true]);
    assert_eq!(subjects(&scratch), "Plan: 3 new task(s)\nGreet the world\nGreet a person\nGreet loudly\n");
    let status = git(&scratch.place.root, &["status", "--porcelain"]);
    assert_eq!(status, "?? specs/\n", "the user's own files are not committed");
    let output = std::process::Command::new("sh")
        .args(["greet.sh", "--loud", "it's 100%"])
        .current_dir(&scratch.place.root)
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"HELLO, it's 100%!!\n");
    assert_eq!(scratch.read(".ralph/implementation_plan.md").matches("- Status: complete").count(), 3);
}

#[test]
fn what_is_there_is_not_done_twice() {
    let mut scratch = Scratch::new();
    scratch.write("specs/greeting.md", SPEC);
    scratch.act("plan");
    for _ in 0..3 {
        scratch.act("build");
    }
    let built = scratch.read("greet.sh");
    assert!(scratch.act("build").completes());
    assert!(scratch.act("plan").completes());
    assert_eq!(subjects(&scratch).lines().count(), 4, "nothing new, no commit");
    std::fs::remove_file(scratch.path(".ralph/implementation_plan.md")).unwrap();
    scratch.act("plan");
    for _ in 0..3 {
        assert_eq!(scratch.act("build").code, 0);
    }
    assert_eq!(scratch.read("greet.sh"), built);
}

#[test]
fn other_requirements_and_foreign_scripts_are_only_noted() {
    let mut scratch = Scratch::new();
    scratch.write("greet.sh", "echo mine\n");
    scratch.write("specs/a.md", "- Be quick\n- `greet.sh` prints `Hello`\n");
    scratch.act("plan");
    assert!(!scratch.act("build").completes());
    assert!(scratch.act("build").completes());
    assert_eq!(scratch.read("greet.sh"), "echo mine\n");
    let plan = scratch.read(".ralph/implementation_plan.md");
    assert_eq!(plan.matches("- Note: only noted in script-agent-notes.md, no code").count(), 2);
}

#[test]
fn contradictions_are_blocked_and_lead_to_replanning() {
    let mut scratch = Scratch::new();
    scratch.write("specs/a.md", "- A: `x.sh` prints `one`\n- B: `x.sh` prints `two`\n");
    scratch.act("plan");
    scratch.act("build");
    let before = scratch.read("x.sh");
    let second = scratch.act("build");
    assert!(second.said().ends_with("\n<promise>REPLAN</promise>"), "{}", second.said());
    assert_eq!(scratch.read("x.sh"), before);
    assert_eq!(scratch.act("build").said().matches("REPLAN").count(), 1);
    assert_eq!(git(&scratch.place.root, &["status", "--porcelain"]), "?? specs/\n");
}

#[test]
fn failures_are_results() {
    let mut scratch = Scratch::new();
    for (mode, message) in [("plan", "cannot read specs"), ("build", "there is no plan at .ralph/")] {
        let failed = scratch.act(mode);
        assert_eq!((failed.code, failed.result()["status"].as_str()), (1, Some("error")));
        assert!(failed.result()["message"].as_str().unwrap().starts_with(message));
    }
    scratch.write("specs/a.md", "no bullet\n");
    scratch.write(".ralph/implementation_plan.md", "no task\n");
    assert_eq!([scratch.act("plan").code, scratch.act("build").code], [1, 1]);
}

#[test]
fn an_ad_hoc_prompt_changes_nothing() {
    let mut scratch = Scratch::new();
    assert!(scratch.act("prompt").completes());
    assert_eq!(git(&scratch.place.root, &["status", "--porcelain"]), "");
}
