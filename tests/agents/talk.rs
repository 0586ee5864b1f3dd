//! What only the agent over the Agent Client Protocol can play.

/// One attempt over this protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Talk {
    Read(String),
    Write(String, String),
    /// A command in a terminal: it is waited for, or killed, or left.
    Terminal(Vec<String>, Then),
    /// Leave for a tool of this kind.
    Permission(String),
    /// The turn stops for this reason.
    Stop(String),
    /// What no agent should say.
    Garbage,
    /// Nothing, until the turn is cancelled.
    Wait,
    /// Nothing, and a cancellation is ignored.
    Stubborn,
    /// A good turn, and nothing makes it leave then; it talks on.
    Stay,
    /// Another mode than the one that was chosen, in the middle of the turn.
    LeaveMode,
    /// No modes at all.
    Modeless,
    /// What it says of its login: of this kind.
    Status(String),
    /// A request that is so long.
    Large(usize),
    /// No answer to this method.
    Mute(String),
    /// A process that is left behind.
    Child,
    /// No session without a login.
    Login,
    /// So many requests at once.
    Flood(usize),
    /// One request whose answer has to wait, and others meanwhile.
    Race,
    /// Every answer twice.
    Twice,
}

/// What becomes of a command in a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Wait,
    Kill,
    Leave,
}

impl Talk {
    /// Reads the words of a play.
    pub(super) fn read(words: &[&str]) -> Option<Self> {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Some(match *words {
            ["read", file] => Self::Read(file.to_owned()),
            ["write", file, ref words @ ..] => Self::Write(file.to_owned(), words.join(" ")),
            ["terminal", ref words @ ..] => Self::Terminal(owned(words), Then::Wait),
            ["kill", ref words @ ..] => Self::Terminal(owned(words), Then::Kill),
            ["leave", ref words @ ..] => Self::Terminal(owned(words), Then::Leave),
            ["permission", kind] => Self::Permission(kind.to_owned()),
            ["stop", reason] => Self::Stop(reason.to_owned()),
            ["garbage"] => Self::Garbage,
            ["wait"] => Self::Wait,
            ["stubborn"] => Self::Stubborn,
            ["stay"] => Self::Stay,
            ["leave-mode"] => Self::LeaveMode,
            ["modeless"] => Self::Modeless,
            ["status", kind] => Self::Status(kind.to_owned()),
            ["large", bytes] => Self::Large(bytes.parse().ok()?),
            ["mute", method] => Self::Mute(method.to_owned()),
            ["child"] => Self::Child,
            ["login"] => Self::Login,
            ["flood", count] => Self::Flood(count.parse().ok()?),
            ["race"] => Self::Race,
            ["twice"] => Self::Twice,
            _ => return None,
        })
    }
}
