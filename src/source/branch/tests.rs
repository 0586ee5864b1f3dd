use std::collections::BTreeMap;

use super::*;
use crate::git::identity::CommitIdentity;
use crate::source::prompt_file::{REPLAN, Text};

fn branch(names: &[(&str, &str)]) -> Branch {
    let names: BTreeMap<String, String> =
        names.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let facts = Facts {
        name: "feature/x".to_owned(),
        goal: "Have ${SPECS_DIR} and {{BASE_BRANCH}}".to_owned(),
        base: "main".to_owned(),
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
        PromptFile::new(Text::BuiltIn(""), None, names, REPLAN),
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
