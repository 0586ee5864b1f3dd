//! aider, which ralph only runs as an interactive program.

use super::Facts;
use super::screens::Means::{Attention, Press};
use super::screens::Sight::Last;
use super::screens::{LOGIN, Program, QUESTION, SETTLED, known};

pub(super) const FACTS: Facts = Facts { presets: &[], screens: Some(SCREENS) };

const SCREENS: Program = Program {
    name: "aider",
    names: &["aider", "aider-chat"],
    not_ready: &[
        known(Last("Login to OpenRouter|[Ee]nter your .*key"), Attention(LOGIN)),
        known(
            Last(
                r"(collection of anonymous analytics|see what.s new|[Rr]un this command|to update|\.gitignore|documentation (url|URL)).*\(Y\)es/\(N\)o.*\[\w+\]:$",
            ),
            Press(&["n", "Enter"], "an offer, declined"),
        ),
        known(Last(r"\(Y\)es/\(N\)o.*:$"), Attention(QUESTION)),
    ],
    ready: &[(Last(r"^([\w-]+( [\w-]+)*)?>$"), SETTLED)],
    input: r"^([\w-]+( [\w-]+)*)?>(\s|$)",
    ..Program::BLANK
};
