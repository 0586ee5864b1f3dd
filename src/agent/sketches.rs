//! Sketches of what is to come, to show that the seams fit it: they go when the real ones come.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Timeouts;
use super::codec::{Codec, Decoded, Stdin, Turn};
use super::display::DisplayRoute;
use super::ended::{Judging, Traces};
use super::message::Message;
use super::preset::ToolCalls;
use super::threads::{Hold, Served, serve};
use super::watch::{Clocks, Watch};
use crate::engine::agent::{Agent, Attempt};
use crate::engine::context::Context;
use crate::engine::inbox::{Inbox, Wake};
use crate::engine::outcome::End;
use crate::engine::report::{AttemptStatus, Report};
use crate::process::launch::Launch;
use crate::process::supervised::{Pipes, Supervised};
use crate::reply::decode::Item;
use crate::reply::usage::UsageNote;
use crate::reply::verdict::{Asides, Readers};

/// A codec that answers: the agent asks line by line, and says `bye` in the end.
struct Conversation {
    asked: u64,
}

impl Codec for Conversation {
    fn open(&mut self, prompt: &str) -> (Vec<u8>, Stdin) {
        (format!("{prompt}\n").into_bytes(), Stdin::KeepOpen)
    }

    fn read(&mut self, bytes: &[u8], turn: &mut Turn) {
        for line in String::from_utf8_lossy(bytes).lines() {
            if line == "bye" {
                turn.item(Item::Note(Box::new(UsageNote { is_final: true, ..UsageNote::default() })));
                turn.hang_up();
            } else {
                self.asked += 1;
                turn.item(Item::Text(format!("{line};")));
                turn.answer(format!("answer {}\n", self.asked).as_bytes());
            }
        }
    }

    fn finish(&mut self, _: &mut Turn) {}

    fn tally(&self) -> Decoded {
        let mut decoded = Decoded::default();
        decoded.counters.objects = self.asked;
        decoded
    }
}

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

/// An agent that is answered.
struct Answered(&'static str);

impl Agent for Answered {
    fn run(&mut self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, End> {
        let (port, mailbox) = context.open();
        let (supervised, pipes) = Supervised::start(&launch(self.0, "")).map_err(super::cannot_start)?;
        let codec = Box::new(Conversation { asked: 0 });
        let (_patience, wanted) = Hold::new().unwrap();
        let served = serve(pipes, attempt.prompt, codec, &DisplayRoute::Text, &wanted, &port).unwrap();
        let mut watch = Watch::new(supervised, mailbox, served, Path::new("/"), clocks(attempt));
        watch.listen(context)?;
        Ok(watch.finish().report(JUDGING, Duration::ZERO))
    }
}

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
fn a_codec_may_answer_on_stdin_and_hang_up() {
    // Without a supervisor, which is the real program and not this one.
    let script = r#"read -r prompt; for n in 1 2; do echo "$prompt $n?"; read -r answer; done; echo "$answer!"
        read -r answer; echo bye; while read -r line; do :; done"#;
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = bash.spawn().unwrap();
    let (_supervisor, ralph) = UnixStream::pair().unwrap();
    let pipes = Pipes {
        stdin: OwnedFd::from(child.stdin.take().unwrap()).into(),
        stdout: OwnedFd::from(child.stdout.take().unwrap()).into(),
        stderr: OwnedFd::from(child.stderr.take().unwrap()).into(),
        notes: ralph.into(),
    };
    let inbox = Arc::new(Inbox::default());
    let (port, mailbox) = inbox.open();
    let (_patience, wanted) = Hold::new().unwrap();
    let _served =
        serve(pipes, "go", Box::new(Conversation { asked: 0 }), &DisplayRoute::Text, &wanted, &port).unwrap();
    let mut traces = Traces::new(Timeouts::default());
    loop {
        match inbox.listen(&mailbox, Some(Instant::now() + Duration::from_mins(1))) {
            Wake::Message(Message::Items(items)) => items.iter().for_each(|item| traces.item(item)),
            Wake::Message(Message::Decoded(decoded)) => {
                traces.decoded = decoded;
                break;
            }
            Wake::Message(_) => {}
            other => panic!("{other:?}"),
        }
    }
    traces.exit_code = child.wait().unwrap().code();
    let report = traces.report(JUDGING, Duration::ZERO);
    assert_eq!((report.status, report.text.as_str()), (AttemptStatus::Success, "go 1?;go 2?;answer 2!;"));
}

#[test]
fn agents_of_every_kind_fit() {
    let agents: [Box<dyn Agent>; 2] =
        [Box::new(Answered("cat")), Box::new(Screen { script: "top >\"$1\"", screen: PathBuf::new() })];
    assert_eq!(agents.len(), 2);
}
