//! What the scripted agent plays on request, so that a night with real agents can be rehearsed: refusals, silence, and work
//! that goes on after the result.

use super::{Agent, Event, Place, VERB};
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, own};
use anyhow::{Context as _, bail};
use std::io::ErrorKind::NotFound;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// The name of the environment variable with what is played, one for each attempt of a loop, separated by commas.
pub const PLAY_VARIABLE: &str = "RALPH_SCRIPT_PLAY";

/// A longer count of attempts is none of ours, in bytes.
const LARGEST_COUNT: u64 = 1024;

const PLAYS: &str = "limit [SECONDS], auth, context, overload, offline, hang, background SECONDS, done, failed, verify pass, verify fail, \
                     review pass, review changes, journal WORDS, knowledge WORDS, model NAME, ask WORDS, silence or work";

/// One attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Play {
    /// The usage limit is reached; it ends after so many seconds, if that is said.
    Limit(Option<u64>),
    Auth,
    Context,
    Overload,
    /// There is no connection to the provider.
    Offline,
    /// Nothing more comes.
    Hang,
    /// A task goes on after the result for so many seconds; then the agent works.
    Background(u64),
    /// The task is said to be done, or to have failed, and nothing is done.
    Task(&'static str),
    /// What a verifying or a reviewing agent may say.
    Verdict(&'static str),
    /// This is said besides, before the agent works.
    Besides(&'static str, String),
    /// This is asked of the user, and nothing is done.
    Ask(String),
    /// Nothing of use is said.
    Silence,
    /// Nothing of this: the agent works.
    Work,
}

impl FromStr for Play {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let seconds = |text: &str| {
            text.parse().with_context(|| format!("{PLAY_VARIABLE} has '{text}' in place of seconds"))
        };
        Ok(match words[..] {
            ["limit"] => Self::Limit(None),
            ["limit", time] => Self::Limit(Some(seconds(time)?)),
            ["auth"] => Self::Auth,
            ["context"] => Self::Context,
            ["overload"] => Self::Overload,
            ["offline"] => Self::Offline,
            ["hang"] => Self::Hang,
            ["background", time] => Self::Background(seconds(time)?),
            ["done"] => Self::Task("task-done"),
            ["failed"] => Self::Task("task-failed"),
            ["verify", "pass"] => Self::Verdict("<verify-pass/>"),
            ["verify", "fail"] => Self::Verdict("<verify-fail>as it was told to say</verify-fail>"),
            ["review", "pass"] => Self::Verdict("<review-pass/>"),
            ["review", "changes"] => Self::Verdict("<review-changes>as it was told to say</review-changes>"),
            ["journal", ref words @ ..] => Self::Besides("journal", words.join(" ")),
            ["knowledge", ref words @ ..] => {
                Self::Besides("knowledge tags=\"played\" title=\"Played\"", words.join(" "))
            }
            ["model", name] => Self::Besides("next-model", name.to_owned()),
            ["ask", ref words @ ..] => Self::Ask(words.join(" ")),
            ["silence"] => Self::Silence,
            ["work"] | [] => Self::Work,
            _ => bail!("{PLAY_VARIABLE} has '{}', which is none of {PLAYS}", text.trim()),
        })
    }
}

/// An error with what ralph decides by.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Refusal {
    message: &'static str,
    pub(super) class: &'static str,
    /// Seconds since 1970.
    pub(super) reset_at: Option<u64>,
}

impl Agent<'_> {
    /// Plays what is up for this attempt, and works where nothing is.
    pub(super) fn play(&mut self, play: Play) -> anyhow::Result<()> {
        let refuse = |class, message, reset_at| Err(Refusal { message, class, reset_at }.into());
        match play {
            Play::Work => self.act(),
            Play::Limit(seconds) => {
                let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
                let reset_at = seconds.map(|seconds| now.saturating_add(seconds));
                refuse("limit", "You've hit your usage limit.", reset_at)
            }
            Play::Auth => refuse("auth", "Not logged in", None),
            Play::Context => refuse("context", "The prompt is too long", None),
            Play::Overload => refuse("overload", "529 Overloaded", None),
            Play::Offline => refuse("network", "Connection error: getaddrinfo ENOTFOUND", None),
            Play::Task(name) => {
                let id = self.assigned()?.0;
                self.text(&format!("As I was told to say.\n\n<{name}>{id}</{name}>"))
            }
            Play::Verdict(sigil) => self.text(&format!("As I was told to say.\n\n{sigil}")),
            Play::Besides(opening, words) => {
                let name = opening.split(' ').next().unwrap_or_default();
                self.text(&format!("<{opening}>{words}</{name}>"))?;
                self.act()
            }
            Play::Ask(words) => self.text(&words),
            Play::Silence => self.text("I have nothing to say."),
            Play::Hang => loop {
                std::thread::park();
            },
            Play::Background(seconds) => {
                self.text("A task goes on in the background. I wait for it.")?;
                self.event(&Event::Background { tasks: 1 })?;
                self.result(None)?;
                std::thread::sleep(Duration::from_secs(seconds));
                self.event(&Event::Background { tasks: 0 })?;
                self.act()
            }
        }
    }
}

impl Place {
    /// What this attempt plays. How many attempts of this loop were played before is kept beside its logs.
    pub(super) fn next_play(&self) -> anyhow::Result<Play> {
        let Some(plays) = self.plays.as_deref() else { return Ok(Play::Work) };
        let file = self.count_file();
        let text = match own::read(&file, LARGEST_COUNT) {
            Err(error) if error.kind() == NotFound => String::new(),
            bytes => {
                let bytes = bytes.with_context(|| format!("cannot read {}", file.display()))?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
        };
        let played = text.split_once(' ').filter(|(run, _)| *run == self.run);
        let played = played.and_then(|(_, count)| count.trim().parse().ok()).unwrap_or(0_usize);
        let play = plays.split(',').nth(played).unwrap_or_default().parse()?;
        let folder = file.parent().unwrap_or(&file);
        own::make_folders(folder).map_err(FileError::at(folder))?;
        let count = format!("{} {}\n", self.run, played + 1);
        atomic::write_own(&file, count.as_bytes(), Durability::Atomic)?;
        Ok(play)
    }

    fn count_file(&self) -> PathBuf {
        let home = self.root.join(&self.home);
        let own = if home.ends_with(".ralph") { home } else { home.join(".ralph") };
        own.join("logs").join(VERB.trim_start_matches('_')).with_extension("count")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plays_are_read_and_nothing_else() {
        for (text, play) in [
            ("limit", Play::Limit(None)),
            (" limit  5 ", Play::Limit(Some(5))),
            ("auth", Play::Auth),
            ("context", Play::Context),
            ("overload", Play::Overload),
            ("offline", Play::Offline),
            ("hang", Play::Hang),
            ("background 3", Play::Background(3)),
            ("work", Play::Work),
            ("", Play::Work),
        ] {
            assert_eq!(text.parse::<Play>().unwrap(), play, "{text}");
        }
        for text in ["limit x", "limit -1", "limit 1 2", "background", "auth now", "sleep"] {
            assert!(text.parse::<Play>().is_err(), "{text}");
        }
    }
}
