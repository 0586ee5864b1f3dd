//! Signals and requests as messages: a thread of its own puts each kind into the loop's inbox.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::agent::Message;
use crate::engine::inbox::Inbox;
use crate::engine::stop::Ask;
use crate::record::requests;

/// How often requests from other terminals are looked for.
const LOOK: Duration = Duration::from_millis(200);

/// From here on Ctrl+C, SIGTERM and SIGHUP are requests to the loop. A signal that was ignored when we were
/// started (`nohup`, `&` in a script) stays ignored.
pub(super) fn listen(inbox: &Arc<Inbox<Message>>) -> std::io::Result<()> {
    let ignored = ignored_signals();
    let wanted: Vec<i32> =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0).collect();
    let mut signals = Signals::new(&wanted)?;
    let inbox = Arc::clone(inbox);
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let request = if signal == SIGINT { Ask::Interrupt } else { Ask::Terminate };
            inbox.ask(request);
        }
    });
    Ok(())
}

/// The set of ignored signals, bit N-1 for signal N, as the kernel tells it; empty where it does not.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

/// From here on requests that other terminals leave in `folder` for `run` reach the loop.
pub(super) fn watch_requests(folder: PathBuf, run: String, inbox: &Arc<Inbox<Message>>) {
    let inbox = Arc::clone(inbox);
    std::thread::spawn(move || {
        loop {
            for request in requests::take(&folder, &run) {
                inbox.ask(Ask::Request(request));
            }
            std::thread::sleep(LOOK);
        }
    });
}
