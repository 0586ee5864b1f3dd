//! Sketches of what is to come, to show that the seams fit it: they go when the real ones come.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Timeouts;
use super::ended::Judging;
use super::message::Message;
use super::preset::ToolCalls;
use super::threads::Served;
use super::watch::{Clocks, Watch};
use crate::engine::agent::{Agent, Attempt};
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::engine::report::Report;
use crate::process::launch::Launch;
use crate::process::supervised::Supervised;
use crate::reply::decode::Item;
use crate::reply::verdict::{Asides, Readers};

fn launch(script: &str, argument: &str) -> Launch {
    let args = ["-c", script, "bash", argument].map(Into::into).into();
    Launch { program: "bash".into(), args, cwd: "/".into(), ..Launch::default() }
}

fn clocks(attempt: &Attempt<'_>) -> Clocks {
    let minute = Duration::from_mins(1);
    let timeouts = Timeouts { attempt: minute, inactivity: minute, grace: minute, background: minute };
    Clocks { tool_calls: ToolCalls::Told, timeouts, loop_over: attempt.deadline }
}

const JUDGING: Judging<'_> = Judging {
    agent: "sketch",
    readers: Readers::User,
    has_final: false,
    asides: Asides::NONE,
    exits_when_told: false,
    login: "",
};

/// An agent without pipes: its screen, here a file, is looked at, and `seen` tells it that it was.
struct Screen {
    script: &'static str,
    screen: PathBuf,
}

impl Agent for Screen {
    fn run(&mut self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, End> {
        let (port, mailbox) = context.open();
        let launch = launch(self.script, &self.screen.to_string_lossy());
        let (supervised, pipes) = Supervised::start(&launch).map_err(super::cannot_start)?;
        let (notes, screen) = (port.clone(), self.screen.clone());
        std::thread::spawn(move || {
            pipes.notes.map(Message::Note).all(|note| notes.post(0, note));
            notes.post(0, Message::NotesEnded);
        });
        std::thread::spawn(move || {
            let mut last = String::new();
            // Until nobody wants to know any more.
            while port.post(0, Message::Items(Vec::new())) {
                let now = std::fs::read_to_string(&screen).unwrap_or_default();
                if now != last {
                    last.clone_from(&now);
                    port.post(now.len(), Message::Items(vec![Item::Text(now)]));
                    std::fs::write(screen.with_extension("seen"), &last).unwrap();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let mut watch = Watch::new(supervised, mailbox, Served::default(), Path::new("/"), clocks(attempt));
        watch.listen(context)?;
        Ok(watch.finish().report(JUDGING, Duration::ZERO))
    }
}

#[test]
fn an_agent_without_pipes_fits() {
    let _: Box<dyn Agent> = Box::new(Screen { script: "top >\"$1\"", screen: PathBuf::new() });
}
