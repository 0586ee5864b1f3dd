//! A still screen: the rule by which an interactive agent is inactive.
//!
//! Only the end of the screen counts, its last lines that are not empty. Any change there, as of a spinner or a clock, counts.

use std::time::{Duration, Instant};

use super::text::written;

/// How many lines are compared.
const LINES: usize = 20;

/// How long a screen has stood still, and how long it may.
#[derive(Debug)]
pub struct Still {
    /// `None`: without a limit.
    limit: Option<Duration>,
    seen: Vec<String>,
    /// Since when there was neither a change nor another sign of life.
    since: Instant,
    /// Since when the clock is stopped.
    held: Option<Instant>,
    /// The last other sign of life.
    sign: Option<String>,
}

impl Still {
    /// A watch that begins now. A limit of zero means no limit.
    #[must_use]
    pub fn new(limit: Duration, now: Instant) -> Self {
        let limit = Some(limit).filter(|limit| !limit.is_zero());
        Self { limit, seen: Vec::new(), since: now, held: None, sign: None }
    }

    /// A look at the screen.
    pub fn see(&mut self, screen: &[String], now: Instant) {
        let written = written(screen);
        let end = &written[written.len().saturating_sub(LINES)..];
        if end != self.seen {
            self.seen = end.to_vec();
            self.sign = None;
            self.begin(now);
        }
    }

    /// Another sign of life at `at`: `what`, as in "the tools used the CPU".
    pub fn alive(&mut self, what: &str, at: Instant) {
        if at > self.since {
            self.sign = Some(what.to_owned());
            self.begin(at);
        }
    }

    fn begin(&mut self, at: Instant) {
        self.since = at;
        self.held = self.held.map(|held| held.max(at));
    }

    /// Stops the clock until it is released: for a back-off, a pause, the wait for a ready screen.
    pub fn hold(&mut self, now: Instant) {
        self.held.get_or_insert(now);
    }

    /// Releases the clock.
    pub fn release(&mut self, now: Instant) {
        if let Some(held) = self.held.take() {
            self.since += now.saturating_duration_since(held);
        }
    }

    /// Moves everything by a gap in which the whole process was stopped.
    pub fn shift(&mut self, gap: Duration) {
        self.since += gap;
        self.held = self.held.map(|held| held + gap);
    }

    /// When it will be inactive, if nothing happens. `None`: never while the clock is stopped or without a limit.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if self.held.is_some() {
            return None;
        }
        self.limit.map(|limit| self.since + limit)
    }

    /// Whether the program is inactive.
    #[must_use]
    pub fn is_inactive(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now >= deadline)
    }

    /// How long nothing has changed.
    #[must_use]
    pub fn duration(&self, now: Instant) -> Duration {
        self.held.unwrap_or(now).saturating_duration_since(self.since)
    }

    /// What was checked, for people, with the other `evidence`.
    #[must_use]
    pub fn looked_at(&self, evidence: &[&str]) -> String {
        let screen = format!("the screen's last {} lines", self.seen.len().max(1));
        let mut all = vec![screen.replace("last 1 lines", "last line")];
        all.extend(evidence.iter().map(|&evidence| evidence.to_owned()));
        let end = all.pop().unwrap_or_default();
        let list = if all.is_empty() { end } else { format!("{} and {end}", all.join(", ")) };
        let sign = self.sign.as_ref().map(|sign| format!("; the last sign of life: {sign}"));
        format!("looked at: {list}{}", sign.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn still(seconds: u64) -> (Still, impl Fn(u64) -> Instant) {
        let start = Instant::now();
        let at = move |second| start + Duration::from_secs(second);
        (Still::new(Duration::from_secs(seconds), start), at)
    }

    #[test]
    fn a_screen_that_stands_is_inactive_when_its_time_is_up() {
        let (mut still, at) = still(180);
        still.see(&screen("working"), at(10));
        still.see(&screen("working\n\n \n"), at(100));
        assert_eq!(still.deadline(), Some(at(190)));
        assert!(!still.is_inactive(at(189)) && still.is_inactive(at(190)));
        // A spinner or a clock is a change.
        still.see(&screen("working."), at(189));
        assert!(!still.is_inactive(at(200)));
        assert_eq!(still.duration(at(200)), Duration::from_secs(11));
    }

    #[test]
    fn only_the_end_of_the_screen_counts() {
        let (mut still, at) = still(60);
        let lines = |top: &str| {
            let mut lines = vec![top.to_owned()];
            lines.extend((0..20).map(|line| line.to_string()));
            lines.extend([String::new(), " ".to_owned()]);
            lines
        };
        still.see(&lines("12:00:01"), at(1));
        still.see(&lines("12:00:02"), at(2));
        assert_eq!(still.deadline(), Some(at(61)));
        still.see(&lines("x")[..20], at(3));
        assert_eq!(still.deadline(), Some(at(63)));
    }

    #[test]
    fn zero_is_off() {
        let (mut still, at) = still(0);
        still.see(&screen("a"), at(1));
        assert_eq!(still.deadline(), None);
        assert!(!still.is_inactive(at(1_000_000)));
    }

    #[test]
    fn no_time_passes_while_the_clock_is_held() {
        let (mut still, at) = still(60);
        still.see(&screen("a"), at(10));
        still.hold(at(20));
        still.hold(at(30));
        assert_eq!(still.deadline(), None);
        assert!(!still.is_inactive(at(500)));
        assert_eq!(still.duration(at(500)), Duration::from_secs(10));
        still.release(at(120));
        still.release(at(130));
        assert_eq!(still.deadline(), Some(at(170)));
        // What changes meanwhile begins anew.
        still.hold(at(130));
        still.see(&screen("b"), at(140));
        still.release(at(150));
        assert_eq!(still.deadline(), Some(at(210)));
        still.shift(Duration::from_secs(5));
        assert_eq!(still.deadline(), Some(at(215)));
    }

    #[test]
    fn other_signs_of_life_count_as_well_and_are_told() {
        let (mut still, at) = still(60);
        still.see(&screen("a\nb"), at(10));
        assert_eq!(still.looked_at(&[]), "looked at: the screen's last 2 lines");
        still.alive("tools used the CPU", at(40));
        still.alive("an older one", at(30));
        assert_eq!(still.deadline(), Some(at(100)));
        assert_eq!(
            still.looked_at(&["the CPU of its tools", "changed files"]),
            "looked at: the screen's last 2 lines, the CPU of its tools and changed files; \
             the last sign of life: tools used the CPU"
        );
        still.see(&screen("c"), at(50));
        assert_eq!(
            still.looked_at(&["changed files"]),
            "looked at: the screen's last line and changed files"
        );
    }
}
