//! Pure prompt transformations, and the built-in prompts.

pub mod authoring;
pub mod front_matter;
pub mod placeholders;
pub mod proof;
pub mod quote;
pub mod review;
pub mod sections;
mod substitute;
pub mod task;
mod template;

pub use substitute::substitute;

/// The built-in prompt of plan mode, used where the ralph dir has no `prompts/plan.md`.
pub const PLAN: &str = include_str!("../../prompts/plan.md");

/// The built-in prompt of build mode, used where the ralph dir has no `prompts/build.md`.
pub const BUILD: &str = include_str!("../../prompts/build.md");

/// The built-in prompt that plans branches, used where the project root has no `PROMPT_plan.md`.
pub const BRANCH_PLAN: &str = include_str!("../../prompts/branch_plan.md");

/// The built-in prompt that builds one branch, used where the project root has no `PROMPT_build.md`.
pub const BRANCH_BUILD: &str = include_str!("../../prompts/branch_build.md");

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    const COMPLETE: &str = "<promise>COMPLETE</promise>";
    const REPLAN: &str = "<promise>REPLAN</promise>";

    #[test]
    fn the_built_in_prompts_name_their_markers_alone_on_a_line() {
        let lines = |prompt: &'static str, marker| prompt.lines().filter(|line| *line == marker).count();
        assert_eq!((lines(PLAN, COMPLETE), lines(BUILD, COMPLETE), lines(BUILD, REPLAN)), (1, 1, 1));
        assert_eq!((lines(BRANCH_PLAN, COMPLETE), lines(BRANCH_BUILD, COMPLETE)), (1, 1));
        for prompt in [PLAN, BRANCH_PLAN, BRANCH_BUILD] {
            assert!(!prompt.contains(REPLAN), "only the plain build mode can ask for a plan");
        }
    }

    #[test]
    fn the_built_in_prompts_use_only_variables_of_the_loop() {
        let value = |name: &str| match name {
            "SPECS_DIR" | "RALPH_HOME" | "ITERATION" => Some(Cow::Borrowed("value")),
            _ => None,
        };
        for prompt in [PLAN, BUILD, BRANCH_PLAN, BRANCH_BUILD] {
            assert!(!substitute(prompt, &value).contains('$'));
            assert!(prompt.lines().count() < 80, "less prompt, more room for work");
        }
    }

    #[test]
    fn the_prompts_for_branches_use_only_what_a_branch_has() {
        assert!(![BRANCH_PLAN, BRANCH_BUILD].concat().contains("RALPH_HOME"), "the plan is at the root");
        let names = ["{{BRANCH_NAME}}", "{{BRANCH_GOAL}}", "{{BASE_BRANCH}}"];
        assert!(names.iter().all(|name| BRANCH_BUILD.contains(name)));
        let rest = names.iter().fold(BRANCH_BUILD.to_owned(), |text, name| text.replace(name, ""));
        assert!(![BRANCH_PLAN, &rest].concat().contains("{{"));
    }

    #[test]
    fn the_form_that_planning_is_shown_is_a_plan() {
        let (_, shown) = BRANCH_PLAN.split_once("```markdown\n").unwrap();
        let (shown, _) = shown.split_once("```\n").unwrap();
        let plan = crate::plan::Plan::parse(shown, &|_| true).unwrap();
        assert_eq!((plan.sections.len(), plan.sections[0].tasks.len()), (1, 2));
    }
}
