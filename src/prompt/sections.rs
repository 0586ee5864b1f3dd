//! Sections that the loop adds to a prompt: the failed validation of the last iteration, and the user's notes.

use std::fmt::Write as _;

use crate::text::head_and_tail::head_and_tail;

/// How many bytes of a validation's output are in the prompt.
const ROOM: usize = 64 * 1024;

/// Why the work of the last iteration is not proven.
#[derive(Debug, Clone, Copy)]
pub enum Unproven<'a> {
    /// The validation command failed, and printed this.
    Failed(&'a str),
    /// The validation command could not be started, or something in it, and printed this.
    CannotRun(&'a str),
    /// The agent claimed that all is done; this text of ours says why that is wrong.
    Refuted(&'a str),
}

/// `prompt` with sections about unproven work, about what walls have refused, and with the user's notes, if there are any.
#[must_use]
pub fn with_sections(
    prompt: String,
    unproven: Option<Unproven<'_>>,
    refused: &[String],
    notes: &[String],
) -> String {
    let mut prompt = prompt;
    let mut section = |title: &str, body: &str| {
        let gap = if prompt.ends_with('\n') { "\n" } else { "\n\n" };
        // Writing to a String cannot fail.
        let _ = writeln!(prompt, "{gap}## {title}\n\n{body}");
    };
    match unproven {
        Some(Unproven::Failed(output) | Unproven::CannotRun(output)) => {
            let what = if matches!(unproven, Some(Unproven::CannotRun(_))) {
                "The validation cannot run after the previous iteration: something that it starts is missing, or cannot be executed."
            } else {
                "The validation failed after the previous iteration."
            };
            let output = head_and_tail(output, ROOM);
            let fence = fence_for(&output);
            section(
                "Validation error of the previous iteration",
                &format!(
                    "{what} It printed:\n\n{fence}\n{}\n{fence}\n\n\
                     Fix this first, before you do anything else.",
                    output.trim_end_matches('\n')
                ),
            );
        }
        Some(Unproven::Refuted(why)) => section(
            "The previous iteration is not done",
            &format!("It said that all is done, but {}", head_and_tail(why, ROOM).trim_end_matches('\n')),
        ),
        None => {}
    }
    let list = |lines: &[String]| {
        let lines = lines.iter().map(|line| format!("- {}", line.replace('\n', "\n  ")));
        lines.collect::<Vec<_>>().join("\n")
    };
    if !refused.is_empty() {
        section(
            "What was refused",
            &format!(
                "The previous agent met walls that stand around you, too:\n\n{}\n\nWork without that. Only the user can allow it.",
                list(refused)
            ),
        );
    }
    if !notes.is_empty() {
        section("Notes from the user", &list(notes));
    }
    prompt
}

/// A code fence longer than any run of backticks inside `text`.
fn fence_for(text: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_add_adds_nothing() {
        assert_eq!(with_sections("Do it.".into(), None, &[], &[]), "Do it.");
    }

    #[test]
    fn sections_stand_under_their_own_headings() {
        let text = with_sections(
            "Do it.".into(),
            Some(Unproven::Failed("a ``` b\n")),
            &["/x is not writable here".into()],
            &["look\nhere".into(), "too".into()],
        );
        let expected = "Do it.\n\n## Validation error of the previous iteration\n\n\
                        The validation failed after the previous iteration. It printed:\n\n\
                        ````\na ``` b\n````\n\nFix this first, before you do anything else.\n\n\
                        ## What was refused\n\nThe previous agent met walls that stand around you, too:\n\n\
                        - /x is not writable here\n\nWork without that. Only the user can allow it.\n\n\
                        ## Notes from the user\n\n- look\n  here\n- too\n";
        assert_eq!(text, expected);
    }
}
