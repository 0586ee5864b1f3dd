//! What follows from what the validation command finds in the clean tree for a claim. Pure.

use std::time::Duration;

use super::counts::{COUNTED, Counts, counts};
use super::protected::{AllProtected, Change, Protected, Role, named};
use crate::engine::fact::ProofProgram;
use crate::engine::validation::{IN_CHECKOUT, NO_OUTPUT, NOT_VERIFIED, Validation};
use crate::reply::usage::Usage;
use crate::text::count;
use crate::text::duration;
use crate::text::line::shell_word;
use crate::text::list::some_of;

/// How many files are named.
const SHOWN: usize = 5;

/// The tests that an output counts; `None` also if a part of it was left out.
pub(super) fn tests_in(output: &str) -> Option<Counts> {
    counts(output).filter(|_| !output.contains("bytes left out") || output.contains(COUNTED))
}

/// What was left out of the tests, if that is so.
pub(super) fn fewer(before: Counts, now: Counts, base: &str) -> Option<String> {
    let is_less = now.ran < before.ran || now.skipped > before.skipped;
    is_less.then(|| {
        format!(
            "{} tests ran and {} were skipped, where at {base:.7} {} ran and {} were skipped: bring them back",
            now.ran, now.skipped, before.ran, before.skipped
        )
    })
}

/// What is wrong with the programs that the command runs, if anything is.
pub(super) fn other_programs(programs: &[ProofProgram]) -> Option<String> {
    let other: Vec<String> =
        programs.iter().filter(|program| program.before.is_some()).map(ProofProgram::what_differs).collect();
    (!other.is_empty()).then(|| {
        format!(
            "the validation command runs other programs than when the loop began: {}: bring back what was there",
            some_of(other, SHOWN)
        )
    })
}

/// What has proven a claim in the clean tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Proven {
    /// The commit.
    pub(super) commit: String,
    /// The tests that ran.
    pub(super) tests: Option<Counts>,
    /// The tests that ran at the base.
    pub(super) before: Option<Counts>,
    /// What the base's own tests say; `None` if nothing protected has changed, or the base has none.
    pub(super) base: Option<BaseSays>,
    /// The tests that agents do not get pass, too.
    pub(super) is_held_out: bool,
    /// How many mutants were made of it, and how many of them no test notices.
    pub(super) mutants: Option<(u64, usize)>,
    /// How long the command took.
    pub(super) elapsed: Duration,
    /// What it printed.
    pub(super) output: String,
    /// What a second agent has cost.
    pub(super) usage: Usage,
}

/// What the base's own tests say of work that passes with the tests that it brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BaseSays {
    /// They pass, too.
    Passes,
    /// They do not, and a second agent finds that right.
    Overruled,
    /// They do not, and nothing follows from that.
    Told,
}

impl Proven {
    /// The result of the validation.
    pub(super) fn validation(self) -> Validation {
        let by = Some(self.by());
        Validation { ok: true, by, output: self.output, usage: self.usage, ..Validation::default() }
    }

    /// In the words of reports: `clean tree 2f3a9c1, 41 tests (+3), base's tests pass, 12s`.
    pub(super) fn by(&self) -> String {
        let mut words = vec![format!("clean tree {:.7}", self.commit)];
        words.extend(self.tests.map(|now| {
            let more =
                self.before.map(|before| now.ran.cast_signed().saturating_sub(before.ran.cast_signed()));
            let more = more.filter(|more| *more != 0).map(|more| format!(" ({more:+})")).unwrap_or_default();
            count::of(now.ran, "test") + &more
        }));
        words.extend(self.base.map(|base| match base {
            BaseSays::Passes => "base's tests pass".to_owned(),
            BaseSays::Overruled => "a second agent agrees".to_owned(),
            BaseSays::Told => "base's tests fail".to_owned(),
        }));
        words.extend(self.is_held_out.then(|| "held-out tests pass".to_owned()));
        words.extend(self.mutants.map(|(made, unnoticed)| {
            let made = count::of(made, "mutant");
            if unnoticed == 0 { made + " noticed" } else { format!("{unnoticed} of {made} unnoticed") }
        }));
        words.push(duration::elapsed(self.elapsed));
        words.join(", ")
    }
}

/// A failure in the clean tree at this commit, with words for the next agent, who sees nothing there.
pub(super) fn in_clean_tree(found: Validation, commit: &str) -> Validation {
    let by = found.by.map(|by| format!("{by} in a clean tree"));
    let about = format!(
        "{IN_CHECKOUT} of your commit {commit:.7}, which has the committed files, but none that git ignores)\n"
    );
    let at =
        if found.output.starts_with(NO_OUTPUT) { found.output.find('\n').map_or(0, |at| at + 1) } else { 0 };
    let (head, rest) = found.output.split_at(at);
    Validation { output: format!("{head}{about}{rest}"), by, ..found }
}

/// A failure in the clean tree at a commit that has passed there before.
pub(super) fn flaky(found: Validation, commit: &str) -> Validation {
    let by = found.by.map(|by| format!("flaky: {by} in a clean tree, the second time,"));
    let about = format!(
        "(flaky: in a clean checkout of your commit {commit:.7} it passed at first, and then failed in this way, with another \
         TMPDIR and nothing else changed: find what depends on time, order, chance, or on what an earlier run has left)\n"
    );
    Validation { output: about + &found.output, by, ..found }
}

/// Why work that passes in the clean tree may not be what it seems.
#[derive(Debug, Clone, Default)]
pub(super) struct Doubt {
    /// Fewer tests ran than at the base.
    pub(super) fewer: Option<String>,
    /// The command runs other programs than when the loop began.
    pub(super) programs: Option<String>,
    /// It does not pass with the base's version of these files.
    pub(super) base: Option<(AllProtected, Validation)>,
}

impl Doubt {
    /// Whether there is none.
    pub(super) const fn is_none(&self) -> bool {
        self.fewer.is_none() && self.programs.is_none() && self.base.is_none()
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        self.fewer.iter().chain(&self.programs).cloned()
    }

    /// What the user should know if the work counts all the same.
    pub(super) fn told(&self, base: &str) -> String {
        let changed = self.base.as_ref().map(|(protected, _)| {
            let named = named(protected, SHOWN);
            format!("the work passes only with files that its agent has changed since {base:.7}: {named}: look at these")
        });
        self.notes().chain(changed).collect::<Vec<_>>().join("; ")
    }

    /// A second agent has refused the claim for this reason.
    pub(super) fn objection(self, reason: &str, base: &str) -> Validation {
        let refusal = self.refusal(base);
        let by = Some("a second agent".to_owned());
        Validation {
            undecided: true,
            output: format!("a second agent: {reason}\n{}", refusal.output),
            by,
            ..refusal
        }
    }

    /// The claim is refused for it.
    pub(super) fn refusal(self, base: &str) -> Validation {
        let notes: Vec<String> = self.notes().collect();
        let Some((protected, found)) = self.base else {
            return Validation { undecided: true, output: notes.join("; "), ..Validation::default() };
        };
        let notes = if notes.is_empty() { String::new() } else { format!("({})\n", notes.join("; ")) };
        let way_back = way_back(&protected, base);
        let about = format!(
            "(run with the files of {base:.7} that your work is measured by, in place of yours: {}; {way_back})\n",
            named(&protected, SHOWN)
        );
        let by = found.by.map(|by| format!("{by} with the tests of {base:.7}"));
        Validation { output: notes + &about + &found.output, by, ..found }
    }
}

/// How an agent undoes what it has changed.
fn way_back(protected: &AllProtected, base: &str) -> String {
    let (whole, parts): (Vec<_>, Vec<_>) =
        protected.iter().partition(|(_, protected)| protected.mixed.is_none());
    let (new, old): (Vec<_>, Vec<_>) =
        whole.into_iter().partition(|(_, protected)| protected.change == Change::Added);
    let paths = |files: &[(&String, &_)]| {
        files.iter().take(SHOWN).map(|(path, _)| shell_word(path)).collect::<Vec<_>>().join(" ")
    };
    let mut ways = Vec::new();
    if !old.is_empty() {
        ways.push(format!(
            "do not change these, or take the change back with 'git checkout {base:.10} -- {}'",
            paths(&old)
        ));
    }
    if !new.is_empty() {
        ways.push(format!("the work has to pass without {} as well", paths(&new)));
    }
    if !parts.is_empty() {
        ways.push(format!(
            "leave what {} about tests as it was",
            paths(&parts) + if parts.len() == 1 { " says" } else { " say" }
        ));
    }
    ways.join("; ")
}

/// Whether the base has no tests of its own to measure the work by: only tests came, and without them none runs.
pub(super) fn has_no_tests(protected: &AllProtected, found: &Validation) -> bool {
    let only_came =
        protected.values().all(|protected| protected.change == Change::Added && protected.role == Role::Test);
    only_came && tests_in(&found.output).is_some_and(|tests| tests.ran == 0)
}

/// Whether new tests have passed only because none of them has run: sources that name them are not there.
pub(super) fn have_not_run(tests: &AllProtected, before: Option<Counts>, now: Option<Counts>) -> bool {
    let is_new =
        |test: &Protected| test.role == Role::Test && (test.change == Change::Added || test.mixed.is_some());
    tests.values().any(is_new) && before.zip(now).is_some_and(|(before, now)| now.ran <= before.ran)
}

/// What a command has found where the agent works, because a clean tree lacks something.
pub(super) fn in_place_only(found: Validation) -> Validation {
    let by = found.by.map(|by| format!("{by}, in place only"));
    Validation { by, ..found }
}

/// Why a claim was not looked at.
#[derive(Debug)]
pub(super) enum Unproven {
    /// Files are changed or new.
    Uncommitted(Vec<String>),
    /// The history was rewritten.
    OtherHistory {
        /// The claimed commit.
        commit: String,
        /// The commit where the work began.
        base: String,
    },
    /// There is no commit any more.
    NoCommit,
    /// The command has run no test.
    NoTests,
    /// The tests that it brings pass without it.
    Green {
        /// The commit where the work began.
        base: String,
        /// The tests, and what runs them.
        tests: Box<AllProtected>,
    },
    /// Tests that agents do not get fail: how many, if that is known.
    HeldOut(Option<u64>),
    /// Tests that agents do not get were laid out, and no more tests have run than without them.
    HeldOutNotRun,
    /// There was no time left for a run of the command.
    NoTime {
        /// The longest time for a claim.
        limit: Duration,
        /// The command, and where it was to run.
        missing: String,
    },
    /// The clean tree cannot be made.
    NoTree(String),
}

impl Unproven {
    /// What the next prompt says, and its first line what reports say.
    pub(super) fn validation(&self) -> Validation {
        let output = match self {
            Self::Uncommitted(files) => {
                let files = some_of(files, SHOWN);
                format!("not committed: {files}: commit what belongs to the work, and remove the rest")
            }
            Self::OtherHistory { commit, base } => format!(
                "the commit {commit:.7} does not descend from {base:.7}, where the work began: put the work on top of that, with \
                 'git reset --soft {base:.10}' and a new commit"
            ),
            Self::NoCommit => "the branch has no commit any more: commit the work".to_owned(),
            Self::NoTests => {
                "the validation command has run no test: see to it that the tests run".to_owned()
            }
            Self::Green { base, tests } => format!(
                "the new tests pass without the work, over the sources of {base:.7}: {}: have them fail there, or, where the work \
                 keeps all behaviour, leave the tests as they were",
                named(tests, SHOWN)
            ),
            Self::HeldOut(failed) => {
                let failed = match failed {
                    Some(failed) => format!("{} that you do not have", count::of(*failed, "test")),
                    None => "tests that you do not have".to_owned(),
                };
                format!(
                    "{failed} failed: the work passes its own tests, but does not do all that was asked for; read that again"
                )
            }
            Self::HeldOutNotRun => "no more tests have run with those that you do not have than without them: leave it to the runner of the \
                 tests which ones run, and what is printed about them"
                .to_owned(),
            Self::NoTime { limit, missing } => format!(
                "the proof did not end within {} (proof.limit), before the end of {missing}: make the validation command faster",
                duration::format(*limit)
            ),
            Self::NoTree(why) => format!("{NOT_VERIFIED}{why}"),
        };
        Validation { undecided: true, output, ..Validation::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ok: bool, output: &str) -> Validation {
        Validation { ok, output: output.to_owned(), ..Validation::default() }
    }

    #[test]
    fn what_was_found_says_where_it_was_found() {
        let by = |found: Validation| Validation { by: Some("npm test".to_owned()), ..found };
        let told = |found: Validation| in_clean_tree(by(found), "2f3a9c1234");
        let bad = told(found(false, "no\n(exit code 1)"));
        assert_eq!(bad.by.unwrap(), "npm test in a clean tree");
        assert!(
            bad.output.starts_with("(run in a clean checkout") && bad.output.ends_with("no\n(exit code 1)")
        );
        let silent = told(found(false, &format!("{NO_OUTPUT}npm test)\n(exit code 1)"))).output;
        assert!(
            silent.starts_with(NO_OUTPUT) && silent.contains("checkout") && silent.ends_with("(exit code 1)")
        );
        assert_eq!(in_place_only(by(found(true, ""))).by.unwrap(), "npm test, in place only");
    }

    #[test]
    fn what_has_proven_a_claim_is_one_line() {
        let (commit, elapsed) = ("2f3a9c1234".to_owned(), Duration::from_secs(12));
        let alone = Proven { commit, elapsed, ..Proven::default() };
        assert_eq!(alone.by(), "clean tree 2f3a9c1, 12s");
        let counts = |ran| Some(Counts { ran, ..Counts::default() });
        let base = Some(BaseSays::Passes);
        let all = Proven { tests: counts(41), before: counts(38), base, ..alone.clone() };
        assert_eq!(all.by(), "clean tree 2f3a9c1, 41 tests (+3), base's tests pass, 12s");
        assert_eq!(
            Proven { tests: counts(1), before: counts(1), ..alone }.by(),
            "clean tree 2f3a9c1, 1 test, 12s"
        );
    }

    #[test]
    fn a_doubt_says_what_differs_and_how_it_is_undone() {
        let file = |change, role, mixed: Option<&str>| super::super::protected::Protected {
            change,
            role,
            contents: Default::default(),
            mixed: mixed.map(str::to_owned),
        };
        let protected = AllProtected::from([
            ("conftest.py".to_owned(), file(Change::Added, Role::Runner, None)),
            ("package.json".to_owned(), file(Change::Changed, Role::Runner, Some("{}"))),
            ("tests/a b".to_owned(), file(Change::Removed, Role::Test, None)),
        ]);
        let failed = found(false, "no\n(exit code 1)");
        let doubt = || Doubt {
            fewer: Some("0 tests ran".to_owned()),
            base: Some((protected.clone(), failed.clone())),
            ..Doubt::default()
        };
        let output = doubt().refusal("1234567890ab").output;
        for words in [
            "0 tests ran",
            "tests/a b (removed)",
            "git checkout 1234567890 -- 'tests/a b'",
            "without conftest.py",
            "package.json says",
        ] {
            assert!(output.contains(words), "{words}: {output}");
        }
        assert!(output.ends_with("(exit code 1)") && doubt().told("1234567").contains("conftest.py (added)"));
        assert!(!has_no_tests(&protected, &found(false, "Ran 0 tests in 0.000s\n\nOK\n(exit code 5)")));
        let came =
            AllProtected::from([("tests/test_a.py".to_owned(), file(Change::Added, Role::Test, None))]);
        assert!(has_no_tests(&came, &found(false, "No tests found, exiting with code 1\n(exit code 1)")));
        assert!(!has_no_tests(
            &came,
            &found(false, "Ran 2 tests in 0.000s\n\nFAILED (failures=1)\n(exit code 1)")
        ));
    }

    #[test]
    fn a_claim_that_was_not_looked_at_says_why_in_its_first_line() {
        let files = (0..7).map(|n| format!("f{n}")).collect();
        let found = Unproven::Uncommitted(files).validation();
        assert!(found.undecided && !found.ok && found.output.contains("f4") && !found.output.contains("f6"));
        assert!(!found.output.contains('\n'), "{}", found.output);
    }
}
