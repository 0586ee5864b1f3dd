//! `ralph send` and `ralph interrupt`: types into the pane of a worker.

use std::io::Read as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::find::{self, Worker};
use crate::agent::pane::arrival::Arrival;
use crate::agent::pane::programs::Program;
use crate::agent::worker::interrupted::ToolsAtWork;
use crate::cli::{PaneArgs, SendArgs};
use crate::commands::output::{say, warn};
use crate::text::count;
use crate::tmux::paste::{self, Key};
use crate::tmux::screen::{self, Extent};
use crate::tmux::{TmuxError, Window};

/// The longest text, in bytes.
const MOST: usize = 64 << 10;
/// How long a text may take to show before Enter is pressed all the same: a screen that keeps changing hides it.
const SHOWS: Duration = Duration::from_secs(3);
/// How often the screen is read meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// `ralph send`.
pub(in crate::commands) fn send(args: &SendArgs) -> anyhow::Result<u8> {
    let (name, text) = match (args.all, args.name_and_text.as_slice()) {
        (true, [text]) => (None, text),
        (false, [name, text]) => (Some(name), text),
        (false, [_]) => {
            bail!("what is to be sent is missing: 'ralph send NAME TEXT', or '-' to read it from stdin")
        }
        (true, _) => bail!("too many words for 'ralph send --all': no name, and the text in quotes"),
        (false, _) => {
            bail!("too many words to send: put the text in quotes, as in 'ralph send NAME \"skip that\"'")
        }
    };
    let text = if text == "-" { read_stdin()? } else { text.replace("\r\n", "\n") };
    require_typable(&text)?;
    if let Some(name) = name {
        let worker = find::named(name)?;
        require_no_question(&worker)?;
        return type_to(&worker, &text, !args.no_enter).map(|()| 0);
    }
    let workers = find::running()?;
    if workers.is_empty() {
        bail!("no worker is running: 'ralph ls' lists those there are");
    }
    let mut failed = false;
    for worker in &workers {
        let sent = require_no_question(worker).and_then(|()| type_to(worker, &text, !args.no_enter));
        if let Err(error) = sent {
            warn(&format!("{error:#}"));
            failed = true;
        }
    }
    Ok(u8::from(failed))
}

/// `ralph interrupt`.
pub(in crate::commands) fn interrupt(args: &PaneArgs) -> anyhow::Result<u8> {
    let worker = find::named(&args.name)?;
    let window = worker.living()?;
    let tools = worker.held.as_ref().map(|held| ToolsAtWork::of(&worker.folder(), held)).transpose()?;
    paste::press(window, Key::Interrupt).map_err(|error| worker.told(error))?;
    let ended = tools.map_or(0, ToolsAtWork::end);
    say(&format!("interrupted {}", worker.name));
    if ended > 0 {
        say(&format!("ended what it left at work: {}", count::of(ended as u64, "process")));
    }
    Ok(0)
}

fn read_stdin() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    // One byte more than the limit, to see that there are too many.
    let limit = MOST as u64 + 3;
    std::io::stdin().lock().take(limit).read_to_end(&mut bytes).context("cannot read stdin")?;
    let text = String::from_utf8(bytes).context("what stdin has is not UTF-8")?;
    let text = text.replace("\r\n", "\n");
    // Enter ends its last line.
    Ok(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
}

/// Refuses characters that would do more than be typed.
fn require_typable(text: &str) -> anyhow::Result<()> {
    if text.len() > MOST {
        bail!("the text is longer than {MOST} bytes: write it into a file, and send its name");
    }
    let mut names: Vec<String> =
        text.chars().filter(|char| char.is_control() && !matches!(char, '\n' | '\t')).map(name_of).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    bail!(
        "the text has control characters ({}), which would do something else than to be typed: leave them out \
         ('ralph interrupt NAME' is Ctrl+C)",
        names.join(", ")
    )
}

fn name_of(control: char) -> String {
    match control {
        '\x1b' => "ESC".to_owned(),
        '\0'..='\x1f' => format!("^{}", char::from(control as u8 + b'@')),
        '\x7f' => "DEL".to_owned(),
        other => format!("U+{:04X}", u32::from(other)),
    }
}

fn require_no_question(worker: &Worker) -> anyhow::Result<()> {
    if worker.needs_attention() {
        bail!(
            "worker '{0}' waits for an answer to what stands on its screen (needs_attention): give it with 'ralph attach {0}'",
            worker.name
        );
    }
    Ok(())
}

fn type_to(worker: &Worker, text: &str, enter: bool) -> anyhow::Result<()> {
    let window = worker.living()?;
    let program = worker.state().and_then(|state| Program::of(&state.setup.worker.as_ref()?.command));
    type_into(window, program.unwrap_or(Program::unknown()), text, enter)
        .map_err(|error| worker.told(error))?;
    say(&format!("sent to {}", worker.name));
    Ok(())
}

/// Pastes a text and presses Enter once it shows: an immediate Enter could count as a part of it.
fn type_into(window: &Window, program: &Program, text: &str, enter: bool) -> Result<(), TmuxError> {
    let server = window.server();
    let look = || screen::look(&server, window, Extent::Visible, false);
    let mut arrival = Arrival::new(program, text, &look()?.lines);
    paste::paste(window, text)?;
    if !enter {
        return Ok(());
    }
    let until = Instant::now() + SHOWS;
    while Instant::now() < until && !arrival.has_arrived(&look()?.lines, Instant::now()) {
        std::thread::sleep(LOOK);
    }
    paste::press(window, Key::Enter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_named() {
        assert!(require_typable("a\n\tb é").is_ok());
        let said = require_typable("\x1b[201~\x03\x03\x7f\u{9b}\r").unwrap_err().to_string();
        assert!(said.contains("(DEL, ESC, U+009B, ^C, ^M)"), "{said}");
        assert!(require_typable(&"x".repeat(MOST)).is_ok());
        assert!(require_typable(&"x".repeat(MOST + 1)).is_err());
    }
}
