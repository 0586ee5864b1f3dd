//! An account's balance, as a command of the agent tells it.

use std::time::Duration;

use super::beside::run_beside;
use super::{AgentError, Context};
use crate::engine::stop::Urgency;
use crate::process::supervised::Launch;

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(10);
/// How much of its output is looked at, in bytes.
const ROOM: usize = 64 * 1024;

/// How to ask for a balance.
#[derive(Debug, Clone)]
pub struct BalanceQuery {
    /// A shell that runs the usage command through the usage parser.
    launch: Launch,
}

impl BalanceQuery {
    /// `command` prints something, `parser` finds the number of dollars in it; both are for `sh`. The rest comes
    /// from the agent's own `launch`.
    #[must_use]
    pub fn new(command: &str, parser: &str, launch: &Launch) -> Self {
        let pipeline = format!("{{ {command}\n}} | {{ {parser}\n}}");
        let args = vec!["-c".into(), pipeline.into()];
        Self { launch: Launch { program: "sh".into(), args, ..launch.clone() } }
    }

    /// Asks, and gives up silently: a balance is nice to know and nothing else.
    pub(super) fn ask(&self, context: &mut Context<'_>) -> Result<Option<f64>, AgentError> {
        let captured = run_beside(&self.launch, LIMIT, ROOM, Urgency::Now, context)?;
        Ok(captured.ok().and_then(|captured| dollars(&captured.stdout.text())))
    }
}

/// The first number in a command's output; a leading `$` and thousands separators are fine.
fn dollars(text: &str) -> Option<f64> {
    let word = text.split_whitespace().next()?.trim_start_matches('$').replace(',', "");
    word.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_counts() {
        assert_eq!(dollars("9.50\n"), Some(9.5));
        assert_eq!(dollars("  $1,234.5 left"), Some(1234.5));
        assert_eq!((dollars(""), dollars("n/a"), dollars("inf")), (None, None, None));
    }
}
