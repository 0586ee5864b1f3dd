use std::collections::BTreeMap;

use super::*;
use crate::git::identity::CommitIdentity;
use crate::source::prompt_file::{Plan, REPLAN, Text};

fn branch(names: &[(&str, &str)]) -> Branch {
    let names: BTreeMap<String, String> =
        names.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let facts = Facts {
        name: "feature/x".to_owned(),
        goal: "Have ${SPECS_DIR} and {{BASE_BRANCH}}".to_owned(),
        base: "main".to_owned(),
        request: None,
    };
    let publisher = Publisher {
        tree: PathBuf::new(),
        branch: facts.name.clone(),
        base: String::new(),
        base_branch: None,
        remote: None,
        identity: CommitIdentity::default(),
        auto_push: false,
        auto_pr: false,
        is_protected: false,
        mark: String::new(),
        made: Made::default(),
    };
    Branch::new(
        facts,
        PromptFile::new(Text::BuiltIn(""), Plan::None, names, REPLAN),
        (Arc::new(MainPlan::new(PathBuf::new())), PathBuf::new()),
        publisher,
        false,
    )
}

#[test]
fn placeholders_and_variables_are_replaced_in_one_pass() {
    let branch = branch(&[("SPECS_DIR", "specs"), ("TRICK", "{{BRANCH_NAME}}")]);
    assert_eq!(
        branch.fill("{{BRANCH_NAME}} {{ BASE_BRANCH }} ${SPECS_DIR} $TRICK {{OTHER}} {{BRANCH_GOAL}} $HOME"),
        "feature/x main specs {{BRANCH_NAME}} {{OTHER}} Have ${SPECS_DIR} and {{BASE_BRANCH}} $HOME"
    );
}

#[test]
fn a_prompt_that_names_no_branch_is_told_which() {
    let filled = branch(&[]).fill("Do a task of the plan.");
    assert!(filled.starts_with("Do a task of the plan.\n\n## Your branch\n\n"), "{filled}");
    assert!(filled.contains("branch `feature/x`") && filled.contains("## Branch: feature/x"), "{filled}");
}

#[test]
fn a_machine_without_descriptors_does_not_cost_the_ticks() {
    let full = "source::branch::tests::a_machine_without_descriptors_does_not_cost_the_ticks";
    let set_up = || {
        let dir = tempfile::tempdir().unwrap();
        let text = "## Branch: x\nGoal: g\n- [x] t\n";
        std::fs::write(dir.path().join("copy"), text).unwrap();
        std::fs::write(dir.path().join("main"), text.replace("[x]", "[ ]")).unwrap();
        dir
    };
    crate::files::testing::without_descriptors(full, set_up, |dir| {
        let (copy, main) = (dir.path().join("copy"), MainPlan::new(dir.path().join("main")));
        let errors = [
            MainPlan::is_usable(&copy, "x").map(drop),
            main.bring_to(&copy, "x").map(drop),
            main.carry_from(&copy, "x", Ticks::Either, &[]),
        ];
        for error in errors {
            assert!(error.unwrap_err().contains("Too many open files"));
        }
    });
}
