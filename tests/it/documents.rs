//! Compares lists of the guide and the specs with a real loop.

use std::collections::BTreeSet;
use std::fs;

use ralph::settings::table::TABLE;

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Scratch, wait_for};

const AGENTS: &str = include_str!("../../specs/agents.md");

/// What stands in backticks in the first column of a spec's tables.
fn first_column(spec: &str) -> BTreeSet<String> {
    let rows = spec.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect()
}

#[test]
fn every_file_of_a_loop_is_in_the_guide() {
    let scratch = Scratch::new();
    fs::remove_file(scratch.path(".ralph/implementation_plan.md")).unwrap();
    scratch.agent("claude", r#"while [ ! -e "$HOME/go" ]; do sleep 0.05; done; say ok; result"#);
    let ralph = scratch.start("prompt p.md 1");
    wait_for("an agent", || scratch.path(".ralph/last_agent_output").exists().then_some(()));
    assert_eq!(scratch.run("note kind").code, Some(0));
    fs::write(scratch.outside().join("home/go"), "").unwrap();
    assert_eq!(crate::scratch::finish(ralph).code, Some(0));

    assert_eq!(scratch.run("task add one").code, Some(0));
    let files = include_str!("../../docs/files.md");
    let rows: Vec<&str> = files.lines().filter(|line| line.starts_with("| `")).collect();
    for entry in fs::read_dir(scratch.path(".ralph")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let database = name.starts_with("progress.db").then_some("progress.db");
        let row = format!("`.ralph/{}", database.unwrap_or(&name));
        assert!(rows.iter().any(|line| line.contains(&row)), "docs/files.md has no {row}");
    }
}

#[test]
fn every_variable_of_an_agent_is_in_the_spec() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    project.agent(r#"env | grep -o '^RALPH_[A-Z_]*' >> "$HOME/env"; work; end"#);
    fs::create_dir_all(project.scratch.path("specs")).unwrap();
    for verb in ["loop plan -m 1", "loop build --model opus"] {
        assert_eq!(project.scratch.run(verb).code, Some(0), "{verb}");
    }
    let listed = first_column(AGENTS);
    // Other settings are the user's own variables, here those of the test.
    let is_setting = |name: &str| TABLE.iter().any(|setting| setting.env.contains(&name));
    let env = project.home("env");
    let names = env.lines().filter(|name| listed.contains(*name) || !is_setting(name));
    assert_eq!(names.map(str::to_owned).collect::<BTreeSet<_>>(), listed);
}
