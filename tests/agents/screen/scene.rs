//! What is played on a screen: the words of one attempt, taken apart.

use anyhow::Context as _;

/// One step of a scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A dialog before the input line.
    Ask(Dialog),
    /// It takes so many seconds to start.
    Slow(u64),
    /// It is gone at once, with this code.
    Gone(u8),
    /// On the alternate screen.
    Alternate,
    /// Without a frame: what is typed is echoed behind a mark, and no more.
    Plain,
    /// A spinner turns for so many seconds.
    Spin(u64),
    /// Nothing moves for so many seconds.
    Silent(u64),
    /// Nothing moves for so many seconds, while a child uses the processor.
    Burn(u64),
    /// So many lines.
    Loud(u64),
    /// Until there is this file.
    Until(Manner, String),
    Say(String),
    /// The prompt is added to this file.
    Keep(String),
    /// A file is made and committed.
    Commit(String),
    /// A process that is left behind.
    Child,
    Exit(u8),
    Signal(i32),
    /// What ralph's scripted agent plays.
    Play(String),
}

/// What is seen of an agent that waits for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// A spinner turns.
    Spin,
    /// Nothing moves.
    Silent,
    /// Line after line.
    Loud,
}

/// What is asked before there is an input line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialog {
    Theme,
    Trust,
    Login,
}

impl Step {
    /// The steps of one attempt; nothing said: it works, and waits for the next prompt.
    pub(super) fn read(scene: &str) -> anyhow::Result<Vec<Self>> {
        scene.split(';').map(Self::one).collect()
    }

    fn one(text: &str) -> anyhow::Result<Self> {
        fn number<N: std::str::FromStr<Err = std::num::ParseIntError>>(text: &str) -> anyhow::Result<N> {
            text.parse().with_context(|| format!("'{text}' is no number"))
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(match words[..] {
            ["theme"] => Self::Ask(Dialog::Theme),
            ["trust"] => Self::Ask(Dialog::Trust),
            ["login"] => Self::Ask(Dialog::Login),
            ["slow", time] => Self::Slow(number(time)?),
            ["gone", code] => Self::Gone(number(code)?),
            ["alternate"] => Self::Alternate,
            ["plain"] => Self::Plain,
            ["spin", time] => Self::Spin(number(time)?),
            ["silent", time] => Self::Silent(number(time)?),
            ["burn", time] => Self::Burn(number(time)?),
            ["loud", lines] => Self::Loud(number(lines)?),
            ["spin", "until", file] => Self::Until(Manner::Spin, file.to_owned()),
            ["silent", "until", file] => Self::Until(Manner::Silent, file.to_owned()),
            ["loud", "until", file] => Self::Until(Manner::Loud, file.to_owned()),
            ["say", ref words @ ..] => Self::Say(words.join(" ")),
            ["keep", file] => Self::Keep(file.to_owned()),
            ["commit", ref words @ ..] => Self::Commit(words.join(" ")),
            ["child"] => Self::Child,
            ["exit", code] => Self::Exit(number(code)?),
            ["signal", signal] => Self::Signal(number(signal)?),
            _ => Self::Play(text.trim().to_owned()),
        })
    }
}
