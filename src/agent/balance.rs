//! An account's balance, from a command of the agent.

use std::time::Duration;

use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::engine::stop::Urgency;
use crate::process::launch::Launch;
use crate::side_command::{self, Bounds};

/// The time limit of a balance command, and how much of its output is read.
const BOUNDS: Bounds = Bounds { limit: Duration::from_secs(10), room: 64 * 1024, cut_at: Urgency::Now };

/// How to ask for a balance.
#[derive(Debug, Clone)]
pub(super) struct BalanceQuery {
    /// A shell that runs the usage command through the usage parser.
    launch: Launch,
}

impl BalanceQuery {
    /// `command` prints something, `parser` finds the number of dollars in it; both are for `sh`. The rest comes
    /// from the agent's own `launch`.
    #[must_use]
    pub(super) fn new(command: &str, parser: &str, launch: &Launch) -> Self {
        let pipeline = format!("{{ {command}\n}} | {{ {parser}\n}}");
        Self { launch: launch.shell(pipeline) }
    }

    /// Runs the command, and gives up silently: a balance is only nice to know.
    pub(super) fn ask(&self, context: &mut Context<'_>) -> Result<Option<f64>, End> {
        let captured = side_command::run(&self.launch, BOUNDS, context)?;
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
