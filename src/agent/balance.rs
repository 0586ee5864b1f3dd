//! An account's balance, as a command of the agent tells it.

use std::time::{Duration, Instant};

use super::message::Message;
use super::{AgentError, Context};
use crate::engine::inbox::Wake;
use crate::engine::stop::Urgency;
use crate::process::capture::capture;
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
        let port = context.inbox.open();
        let launch = self.launch.clone();
        std::thread::spawn(move || {
            let output = capture(&launch, LIMIT, ROOM).ok().map(|captured| captured.stdout);
            port.post(0, Message::Balance(output.and_then(|bytes| dollars(&bytes))))
        });
        let deadline = Instant::now() + LIMIT + Duration::from_secs(1);
        while context.stop.urgency() < Urgency::Now {
            match context.wait(Some(deadline))? {
                Wake::Message(Message::Balance(balance)) => return Ok(balance),
                Wake::Deadline => break,
                _ => {}
            }
        }
        context.inbox.close();
        Ok(None)
    }
}

/// The first number in a command's output; a leading `$` and thousands separators are fine.
fn dollars(output: &[u8]) -> Option<f64> {
    let text = String::from_utf8_lossy(output);
    let word = text.split_whitespace().next()?.trim_start_matches('$').replace(',', "");
    word.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_counts() {
        assert_eq!(dollars(b"9.50\n"), Some(9.5));
        assert_eq!(dollars(b"  $1,234.5 left"), Some(1234.5));
        assert_eq!((dollars(b""), dollars(b"n/a"), dollars(b"inf")), (None, None, None));
    }
}
