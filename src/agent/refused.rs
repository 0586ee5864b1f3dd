//! What the walls around an agent have refused.

use std::path::Path;

use crate::engine::event::Stream;
use crate::engine::refused::{Denied, Refused};
use crate::process::supervised::Supervised;
use crate::process::walls::{Held, Inside, Overheard};
use crate::text::line::one_line_within;

/// At most so many are told of one attempt.
const MOST: usize = 20;

/// The longest path that is shown, in characters.
const LONGEST: usize = 200;

/// Listens to what an agent prints of it.
pub(super) struct Refusals {
    stdout: Overheard,
    stderr: Overheard,
}

impl Refusals {
    /// `None`: there are no walls around this agent.
    pub(super) fn of(supervised: &Supervised) -> Option<Self> {
        let inside = supervised.inside()?;
        Some(Self { stdout: inside.overhear(), stderr: inside.overhear() })
    }

    /// Takes what it prints next.
    pub(super) fn take(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.take(bytes),
            Stream::Stderr => self.stderr.take(bytes),
        }
    }

    /// All that was refused, the hosts first, which are certain.
    pub(super) fn end(self, supervised: &Supervised) -> Vec<Refused> {
        let hosts = supervised.inside().map(Inside::refused_hosts).unwrap_or_default();
        let certain = hosts.into_iter().map(|(place, times)| Refused {
            place,
            seems: false,
            times,
            what: Denied::Connect,
        });
        let mut paths = self.stdout.end();
        for (held, times) in self.stderr.end() {
            *paths.entry(held).or_default() += times;
        }
        let seeming = paths.into_iter().map(|((held, path), times)| {
            let what = match held {
                Held::Hidden => Denied::Read,
                Held::ReadOnly => Denied::Write,
            };
            Refused { place: shown(&path), seems: true, times, what }
        });
        certain.chain(seeming).take(MOST).collect()
    }
}

/// A path as a person writes it. What an agent has printed is not believed to be harmless.
fn shown(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| home.len() > 1);
    let shown = match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) if !below.as_os_str().is_empty() => format!("~/{}", below.display()),
        _ => path.display().to_string(),
    };
    one_line_within(&shown, LONGEST)
}
