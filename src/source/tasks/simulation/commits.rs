//! Commits: what each one was made on, what it is for, and which ones it contains.

use std::cell::RefCell;

/// A commit. The first one is that with which the repository began.
pub(super) type Commit = u32;
/// So many lines of files are rewritten by several tasks.
const LINES: usize = 8;

/// What a commit is.
#[derive(Debug, Clone)]
struct Made {
    parents: Vec<Commit>,
    /// The gate is red with it, as long as it is the last commit of a landing.
    is_bad: bool,
    /// The commits that have changed the common lines last.
    lines: [Commit; LINES],
    /// Which tip of the trunk was the first one to contain it.
    landed: Option<u32>,
    /// Which tip it was itself.
    tip: Option<u32>,
}

/// Which commits a search has seen. A set for each search would take most of the time of a history.
#[derive(Debug, Default)]
struct Seen {
    /// The number of the last search that has seen each commit.
    searches: Vec<u32>,
    last: u32,
}

impl Seen {
    /// Begins a search among so many commits; returns its number.
    fn begin(&mut self, commits: usize) -> u32 {
        self.searches.resize(commits, 0);
        self.last += 1;
        self.last
    }
}

/// All commits.
#[derive(Debug)]
pub(super) struct Commits {
    all: Vec<Made>,
    tips: u32,
    /// Each tip contains the last one, so that what one contains follows from its number.
    is_one_line: bool,
    seen: RefCell<Seen>,
}

impl Commits {
    /// The first commit alone, which is the tip.
    pub(super) fn new() -> Self {
        let first =
            Made { parents: Vec::new(), is_bad: false, lines: [0; LINES], landed: Some(0), tip: Some(0) };
        Self { all: vec![first], tips: 1, is_one_line: true, seen: RefCell::default() }
    }

    fn of(&self, commit: Commit) -> &Made {
        &self.all[commit as usize]
    }

    fn add(&mut self, parents: Vec<Commit>, is_bad: bool, lines: [Commit; LINES]) -> Commit {
        let commit = Commit::try_from(self.all.len()).unwrap_or(Commit::MAX);
        self.all.push(Made { parents, is_bad, lines, landed: None, tip: None });
        commit
    }

    /// Makes a commit on another one. `touches`: it changes one of the common lines.
    pub(super) fn work(&mut self, on: Commit, is_bad: bool, touches: Option<usize>) -> Commit {
        let lines = self.of(on).lines;
        let commit = self.add(vec![on], is_bad, lines);
        if let Some(line) = touches {
            self.all[commit as usize].lines[line % LINES] = commit;
        }
        commit
    }

    /// Makes what another commit has changed once more, on `onto`.
    pub(super) fn again(&mut self, of: Commit, onto: Commit) -> Option<Commit> {
        let (before, lines) = (self.of(onto).lines, self.lines_of_both(onto, of)?);
        let is_bad = self.of(of).is_bad;
        let made = self.add(vec![onto], is_bad, lines);
        for (line, before) in self.all[made as usize].lines.iter_mut().zip(before) {
            if *line != before {
                *line = made;
            }
        }
        Some(made)
    }

    /// Merges `theirs` into `ours`; `None`: they conflict.
    pub(super) fn merge(&mut self, ours: Commit, theirs: Commit) -> Option<Commit> {
        if self.contains(theirs, ours) {
            return Some(theirs);
        }
        let lines = self.lines_of_both(ours, theirs)?;
        Some(self.add(vec![ours, theirs], false, lines))
    }

    /// Merges them as an agent does that resolves their conflicts.
    pub(super) fn resolve(&mut self, ours: Commit, theirs: Commit) -> Commit {
        let merged = self.add(vec![ours, theirs], false, [0; LINES]);
        for line in 0..LINES {
            self.all[merged as usize].lines[line] = self.line_of_both(line, ours, theirs).unwrap_or(merged);
        }
        merged
    }

    /// The lines of a merge; `None`: both sides have changed the same one.
    fn lines_of_both(&self, ours: Commit, theirs: Commit) -> Option<[Commit; LINES]> {
        let mut lines = [0; LINES];
        for (at, line) in lines.iter_mut().enumerate() {
            *line = self.line_of_both(at, ours, theirs)?;
        }
        Some(lines)
    }

    /// Which commit a line has from in a merge; `None`: both sides have changed it.
    fn line_of_both(&self, line: usize, ours: Commit, theirs: Commit) -> Option<Commit> {
        let [own, other] = [ours, theirs].map(|side| self.of(side).lines[line]);
        if own == other || self.contains(ours, other) {
            Some(own)
        } else {
            self.contains(theirs, own).then_some(other)
        }
    }

    /// Whether the gate is red with this commit as the last one of a landing.
    pub(super) fn is_bad(&self, commit: Commit) -> bool {
        self.of(commit).is_bad
    }

    /// Whether a commit contains another one.
    pub(super) fn contains(&self, commit: Commit, other: Commit) -> bool {
        if commit == other || other == 0 {
            return true;
        }
        // A commit is always younger than what it contains.
        let mut left = if commit > other { vec![commit] } else { Vec::new() };
        let mut seen = self.seen.borrow_mut();
        let search = seen.begin(self.all.len());
        while let Some(next) = left.pop() {
            let made = self.of(next);
            if next == other {
                return true;
            }
            if let (true, Some(tip)) = (self.is_one_line, made.tip) {
                if self.of(other).landed.is_some_and(|landed| landed <= tip) {
                    return true;
                }
                continue;
            }
            for parent in &made.parents {
                let last = &mut seen.searches[*parent as usize];
                if *parent >= other && *last != search {
                    *last = search;
                    left.push(*parent);
                }
            }
        }
        false
    }

    /// The commits that a commit contains, and that `known` does not have.
    pub(super) fn unknown(&self, commit: Commit, known: impl Fn(Commit) -> bool) -> Vec<Commit> {
        let mut found = Vec::new();
        let mut left = vec![commit];
        while let Some(next) = left.pop() {
            if next != 0 && !found.contains(&next) && !known(next) {
                found.push(next);
                left.extend(&self.of(next).parents);
            }
        }
        found
    }

    /// A commit is the tip of the trunk from now on.
    pub(super) fn becomes_tip(&mut self, commit: Commit, last: Commit) {
        self.is_one_line &= self.contains(commit, last);
        let mut left = vec![commit];
        while let Some(next) = left.pop() {
            let made = &mut self.all[next as usize];
            if made.landed.is_none() {
                made.landed = Some(self.tips);
                left.extend(&made.parents);
            }
        }
        self.all[commit as usize].tip.get_or_insert(self.tips);
        self.tips += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_commit_contains_does_not_depend_on_the_tips_that_are_known() {
        let mut commits = Commits::new();
        let one = commits.work(0, false, None);
        let two = commits.work(one, false, None);
        let other = commits.work(0, false, None);
        let merged = commits.merge(two, other).unwrap();
        let found = |commits: &Commits| {
            [(merged, other), (merged, one), (two, one), (other, one), (one, two)]
                .map(|(commit, inside)| commits.contains(commit, inside))
        };
        let before = found(&commits);
        assert_eq!(before, [true, true, true, false, false]);
        commits.becomes_tip(two, 0);
        assert_eq!(found(&commits), before);
        commits.becomes_tip(merged, two);
        assert_eq!(found(&commits), before);
        let later = commits.work(merged, false, None);
        assert!(commits.contains(later, other) && commits.contains(later, later));
        assert_eq!(commits.unknown(later, |commit| commit == merged), [later]);
    }

    #[test]
    fn two_that_change_the_same_line_conflict_until_that_is_resolved() {
        let mut commits = Commits::new();
        let one = commits.work(0, false, Some(1));
        let other = commits.work(0, false, Some(1));
        assert_eq!(commits.merge(one, other), None);
        let resolved = commits.resolve(other, one);
        assert_eq!(commits.merge(one, resolved), Some(resolved));
        let third = commits.work(0, false, Some(2));
        assert!(commits.merge(resolved, third).is_some() && commits.again(third, resolved).is_some());
    }
}
