//! Pure prompt transformations, and the built-in prompts.

pub mod front_matter;
pub mod placeholders;
pub mod sections;
mod substitute;

pub use substitute::substitute;

/// The built-in prompt of plan mode, used where the ralph dir has no `prompts/plan.md`.
pub const PLAN: &str = include_str!("../../prompts/plan.md");

/// The built-in prompt of build mode, used where the ralph dir has no `prompts/build.md`.
pub const BUILD: &str = include_str!("../../prompts/build.md");

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
        assert!(!PLAN.contains(REPLAN), "plan mode cannot ask for a plan");
    }

    #[test]
    fn the_built_in_prompts_use_only_variables_of_the_loop() {
        let value = |name: &str| match name {
            "SPECS_DIR" | "RALPH_HOME" | "ITERATION" => Some(Cow::Borrowed("value")),
            _ => None,
        };
        for prompt in [PLAN, BUILD] {
            assert!(!substitute(prompt, &value).contains('$'));
            assert!(prompt.lines().count() < 80, "less prompt, more room for work");
        }
    }
}
