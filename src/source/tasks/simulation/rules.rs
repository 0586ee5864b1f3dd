//! The rules of the protocol, each of which can be switched off.

/// A rule. The numbers are those of ARCHITECTURE.md; some have several parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// 1: the server's clock decides leases, and not the clock of each machine.
    ServerClock,
    /// 1: a worker counts its lease from before it has sent the question, not from the answer.
    BeforeSending,
    /// 1: a claim is renewed until the result of its agent is booked, not only while the agent works.
    RenewedUntilBooked,
    /// 2: a booking compares the nonce of a claim, not only its number.
    Nonces,
    /// 2: a lander compares the nonce of what it is about to land with that of what waits then.
    NonceThatWaits,
    /// 2: a booking of a lander compares the holder of the lead, not only its number.
    Holders,
    /// 3: a question without an answer is asked again, with its nonce, and not taken for done.
    AskedAgain,
    /// 4: commits are on the remote before they are booked.
    CommitsFirst,
    /// 4: each claim has a ref of its own, which is never forced.
    OwnRefs,
    /// 4: commits are found where more was pushed to the ref of their claim after they were booked.
    FoundInside,
    /// 5: the tip is never forced: it moves only to what contains it.
    SwappedTip,
    /// 6: the trunk is checked for what has landed, before each landing and before each booking of one.
    TrunkDecides,
    /// 6: nothing lands before it has been handed in for longer than what a failover may lose.
    Settled,
    /// 6: what has landed as other commits is found even if its own commits are not on the remote any more.
    FoundByNote,
    /// 6: each attempt to land as other commits leaves a note of its own.
    OwnNotes,
}

/// The rules that hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// The one that does not hold; `None`: all do.
    pub(super) off: Option<Rule>,
}

impl Rules {
    /// All of them.
    pub(super) const ALL: Self = Self { off: None };

    /// All but this one.
    pub(super) fn without(rule: Rule) -> Self {
        Self { off: Some(rule) }
    }

    /// Whether a rule holds.
    pub(super) fn hold(self, rule: Rule) -> bool {
        self.off != Some(rule)
    }
}
