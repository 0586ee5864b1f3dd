//! What walls have refused, as the loop tells it.

use std::path::Path;

use crate::engine::refused::{Denied, Refused};
use crate::process::walls::{Held, TurnedAway};
use crate::text::line::one_line_within;

/// At most so many are told of one program.
const MOST: usize = 20;

/// The longest path that is shown, in characters.
const LONGEST: usize = 200;

/// All that was refused, the hosts first, which are certain.
pub(crate) fn refused(turned_away: &TurnedAway) -> Vec<Refused> {
    let TurnedAway { hosts, paths } = turned_away;
    let certain = hosts.iter().map(|(place, times)| Refused {
        place: place.clone(),
        seems: false,
        times: *times,
        what: Denied::Connect,
    });
    let seeming = paths.iter().map(|((held, path), times)| {
        let what = match held {
            Held::Hidden => Denied::Read,
            Held::ReadOnly => Denied::Write,
        };
        Refused { place: shown(path), seems: true, times: *times, what }
    });
    // Many hosts do not hide the paths.
    certain.take(MOST / 2).chain(seeming).take(MOST).collect()
}

/// A path as a person writes it. What a program has printed is not believed to be harmless.
fn shown(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| home.len() > 1);
    let shown = match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) if !below.as_os_str().is_empty() => format!("~/{}", below.display()),
        _ => path.display().to_string(),
    };
    one_line_within(&shown, LONGEST)
}
