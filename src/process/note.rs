//! The notes of a supervisor to ralph.

/// A report of the supervisor, one per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupervisorNote {
    /// The program runs with this pid.
    Started(u32),
    /// The program could not be started: the operating system's error number.
    Refused(i32),
    /// The program ended with this exit code.
    Exited(i32),
    /// The program was ended by this signal.
    Signaled(i32),
    /// The walls around the program have kept it so often from this host.
    TurnedAway(u64, String),
    /// Nothing of the program is left, except this many processes that could not be killed.
    Gone(u32),
    /// Nothing of the program is left, except daemons, which are spared: the supervisor ends.
    Spared,
}

impl SupervisorNote {
    /// Whether no note follows.
    #[must_use]
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Gone(_) | Self::Spared)
    }

    /// The note as a line with its newline.
    pub(super) fn to_line(&self) -> String {
        match self {
            Self::Started(pid) => format!("started {pid}\n"),
            Self::Refused(errno) => format!("refused {errno}\n"),
            Self::Exited(code) => format!("exited {code}\n"),
            Self::Signaled(signal) => format!("signaled {signal}\n"),
            Self::TurnedAway(times, host) => format!("away {times} {host}\n"),
            Self::Gone(left) => format!("gone {left}\n"),
            Self::Spared => "spared 0\n".to_owned(),
        }
    }

    /// Reads one line; `None` for anything that is not a note.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.trim_end().split_once(' ')?;
        match word {
            "started" => number.parse().ok().map(Self::Started),
            "refused" => number.parse().ok().map(Self::Refused),
            "exited" => number.parse().ok().map(Self::Exited),
            "signaled" => number.parse().ok().map(Self::Signaled),
            "away" => {
                let (times, host) = number.split_once(' ')?;
                Some(Self::TurnedAway(times.parse().ok()?, host.to_owned()))
            }
            "gone" => number.parse().ok().map(Self::Gone),
            "spared" => Some(Self::Spared),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_survive_the_line() {
        use SupervisorNote::{Exited, Gone, Refused, Signaled, Spared, Started, TurnedAway};
        let away = TurnedAway(3, "example.org:443".to_owned());
        for note in [Started(7), Refused(2), Exited(3), Signaled(9), away, Gone(0), Spared] {
            assert_eq!(SupervisorNote::parse(&note.to_line()), Some(note));
        }
        assert_eq!(SupervisorNote::parse("nonsense"), None);
    }
}
