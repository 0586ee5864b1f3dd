use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::platform::identity::ProcessIdentity;
use crate::process::programs::find_program;
use crate::record::lock::{Holder, Lock};

struct Scratch {
    guard: tempfile::TempDir,
    options: DoctorOptions,
}

fn scratch() -> Scratch {
    let guard = tempfile::tempdir().unwrap();
    for folder in ["bin", "project"] {
        fs::create_dir_all(guard.path().join(folder)).unwrap();
    }
    let options = DoctorOptions {
        agent: "claude".into(),
        refused: None,
        named_by: None,
        program: Some("claude".into()),
        preset: presets::preset("claude").unwrap(),
        args: Vec::new(),
        started_by: None,
        env: vec![("HOME".into(), guard.path().join("home").into())],
        as_root: false,
        git: GitSettings::default(),
        specs_dir: "specs".into(),
        search_path: guard.path().join("bin").into(),
        timeout: None,
        json: false,
    };
    Scratch { guard, options }
}

impl Scratch {
    /// A path in the project; programs and the home are beside it.
    fn path(&self, name: &str) -> PathBuf {
        let is_beside = ["bin", "home"].iter().any(|beside| name.starts_with(beside));
        if is_beside { self.guard.path().join(name) } else { self.guard.path().join("project").join(name) }
    }

    fn write(&self, name: &str, content: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    fn agent(&self, script: &str) {
        self.write("bin/claude", &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path("bin/claude"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A program that answers `--version`: a real one, because a script that was written a moment ago may still be
    /// held open by a child of a test beside this one, and then it cannot be started.
    fn working_agent(&self) {
        let _ = fs::remove_file(self.path("bin/claude"));
        let git = find_program("git", &std::env::var_os("PATH").unwrap()).unwrap();
        std::os::unix::fs::symlink(git, self.path("bin/claude")).unwrap();
    }

    fn healthy(&self) {
        self.write(".git/HEAD", "ref: refs/heads/main\n");
        self.write("specs/a.md", "x");
        fs::create_dir_all(self.path(".ralph")).unwrap();
        self.working_agent();
    }

    fn project(&self) -> Project {
        Project::locate(&self.path(""), &|_| None, None, None).unwrap()
    }

    fn finding(&self, check: &str) -> Finding {
        examine(&self.project(), &self.options).into_iter().find(|finding| finding.check == check).unwrap()
    }

    fn run(&self, extra: Vec<Finding>) -> (bool, String) {
        let mut out = Vec::new();
        let healthy = run(&self.project(), &self.options, extra, &mut out).unwrap();
        (healthy, String::from_utf8(out).unwrap())
    }
}

#[test]
fn a_healthy_project_passes() {
    let mut scratch = scratch();
    scratch.healthy();
    let (healthy, said) = scratch.run(vec![Finding::ok("filters", "compile")]);
    assert!(healthy, "{said}");
    assert!(said.contains("claude, git version "), "{said}");
    assert!(said.contains("✓") && !said.contains("✗"), "{said}");

    scratch.options.json = true;
    let (_, said) = scratch.run(vec![Finding::fail("filters", "bad", "fix")]);
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&report["schema"], &report["ok"]), (&1.into(), &false.into()));
    let last = report["findings"].as_array().unwrap().last().unwrap();
    assert_eq!(
        *last,
        serde_json::json!({"check": "filters", "status": "fail", "detail": "bad", "fix": "fix"})
    );
}

#[test]
fn an_empty_folder_fails_with_advice_and_stays_empty() {
    let scratch = scratch();
    let (healthy, said) = scratch.run(vec![]);
    assert!(!healthy);
    for advice in ["'git init'", "'ralph init'", "install claude", "set SPECS_DIR"] {
        assert!(said.contains(advice), "{advice} in {said}");
    }
    assert_eq!(fs::read_dir(scratch.path("")).unwrap().count(), 0, "nothing is written");
}

#[test]
fn an_agent_without_a_version_is_a_warning() {
    let mut scratch = scratch();
    for script in ["exit 3", "true", "kill -9 $$"] {
        scratch.agent(script);
        assert_eq!(scratch.finding("agent").status, Health::Warn, "{script}");
    }
    scratch.options.program = Some("../bin/claude".into());
    scratch.working_agent();
    assert_eq!(scratch.finding("agent").status, Health::Ok);
    scratch.options.program = None;
    assert_eq!(scratch.finding("agent").detail, "claude, built in");
}

#[test]
fn prompts_specs_and_ralph_dir_are_looked_at() {
    let scratch = scratch();
    scratch.healthy();
    assert_eq!(scratch.finding("plan prompt").detail, "built in");
    scratch.write(".ralph/prompts/plan.md", " \n");
    assert_eq!(scratch.finding("plan prompt").status, Health::Fail);
    scratch.write(".ralph/prompts/plan.md", "x");
    assert_eq!(scratch.finding("plan prompt").detail, ".ralph/prompts/plan.md");
    fs::create_dir_all(scratch.path(".ralph/prompts/build.md")).unwrap();
    assert_eq!(scratch.finding("build prompt").status, Health::Fail);

    fs::rename(scratch.path("specs/a.md"), scratch.path("specs/README.md")).unwrap();
    assert_eq!(scratch.finding("specs").status, Health::Warn);

    fs::remove_dir_all(scratch.path(".ralph")).unwrap();
    assert_eq!(scratch.finding("ralph dir").status, Health::Warn);
    scratch.write(".ralph", "a file");
    assert_eq!(scratch.finding("ralph dir").status, Health::Fail);
}

#[test]
fn a_running_loop_is_named() {
    let scratch = scratch();
    scratch.healthy();
    let holder =
        Holder { run_id: "r".into(), mode: "build".into(), identity: ProcessIdentity::of_self().unwrap() };
    let _lock = Lock::acquire(&scratch.project().lock(), &holder).unwrap();
    assert!(scratch.finding("lock").detail.contains(&format!("ralph build, pid {}", std::process::id())));
}
