//! The parts of a row of the [`table`](super::table).

use std::borrow::Cow;

/// What `ralph config` shows of a filter that the agent's preset has.
pub const BUILT_IN: &str = "built in";
/// What it shows where a setting has no value.
pub const NONE: &str = "none";

/// A verb that runs loops; some defaults depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `ralph plan`.
    Plan,
    /// `ralph build`.
    Build,
    /// `ralph prompt`.
    Prompt,
    /// `ralph run`.
    Run,
    /// `ralph run` over tasks.
    Tasks,
    /// `ralph feature spec` and the others whose agents write what there is to do.
    Feature,
    /// `ralph spawn`.
    Spawn,
    /// `ralph loop plan`.
    LoopPlan,
    /// `ralph loop build`.
    LoopBuild,
}

impl Verb {
    /// Those whose agents write no code: their own checks prove what was written.
    pub const PLANNING: &'static [Self] = &[Self::Plan, Self::LoopPlan, Self::Feature];

    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Plan,
        Self::Build,
        Self::Prompt,
        Self::Run,
        Self::Tasks,
        Self::Feature,
        Self::Spawn,
        Self::LoopPlan,
        Self::LoopBuild,
    ];

    /// Its words on the command line, such as `loop plan`.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Build => "build",
            Self::Prompt => "prompt",
            Self::Run => "run",
            Self::Tasks => "run tasks",
            Self::Feature => "feature",
            Self::Spawn => "spawn",
            Self::LoopPlan => "loop plan",
            Self::LoopBuild => "loop build",
        }
    }
}

/// The kind of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Text that may not be empty, such as a name or a path.
    Name,
    /// Text.
    Text,
    /// Text that is never shown.
    Secret,
    /// Text that replaces that of an agent's preset; empty means the preset's.
    Override,
    /// A whole number, `least` or more.
    Count {
        /// The smallest number that makes sense.
        least: u32,
    },
    /// A duration, see [`duration`](crate::text::duration).
    Duration(Span),
    /// Durations that follow each other, each may be zero; may be none.
    Pauses,
    /// An amount of money above zero, in US dollars.
    Money,
    /// An amount of room on a disk, `1 GB` or `5%`, or `0`.
    Room,
    /// An amount of bytes, `2 GB`, or `0` for no limit.
    Size,
    /// On or off: `true` or `false`. As a flag it has no value and means `true`.
    Switch,
    /// Words; a list in TOML, separated by blanks elsewhere. May be none.
    Words,
    /// Names, which may have blanks in them; a list in TOML, separated by commas elsewhere. May be none.
    Names,
}

/// The range of a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Any above zero.
    AboveZero,
    /// Any, or zero.
    OrZero,
    /// Above zero and at most five minutes.
    UpToFiveMinutes,
    /// Thirty seconds or more.
    AtLeast30Seconds,
}

/// One row of the table.
#[derive(Debug)]
pub struct Setting {
    /// Path in `ralph.toml`, `section.name`.
    pub key: &'static str,
    /// Name in the shell-style config.
    pub shell: &'static str,
    /// Names in the environment, the first that is set wins.
    pub env: &'static [&'static str],
    /// The flag that sets it.
    pub flag: Option<Flag>,
    /// The default, as one would write it.
    pub default: &'static str,
    /// Verbs that have another default.
    pub except: &'static [(&'static [Verb], &'static str)],
    /// The meaning of no value, in words; empty if there always is a value.
    pub empty: &'static str,
    /// The kind of the value.
    pub kind: ValueKind,
    /// What it does, in one line.
    pub doc: &'static str,
    /// Whether it makes programs run, or sends data away: a project's own value counts only if the user trusts the project.
    pub needs_trust: bool,
    /// Its words from the loosest on: a project's own value that is no looser than the user's needs no trust.
    pub loosest_first: &'static [&'static str],
    /// Whether more words are tighter: a project's own value that has all of the user's needs no trust.
    pub more_is_tighter: bool,
}

/// The flag of a setting.
#[derive(Debug)]
pub struct Flag {
    /// Its name, with the dashes.
    pub long: &'static str,
    /// Its short name, without the dash.
    pub short: Option<char>,
    /// The name of its value in `--help`; empty for a switch.
    pub value: &'static str,
    /// Its heading in `--help`, if it is not among the general options.
    pub heading: Option<&'static str>,
    /// The setting with all its values, where it is given more than once; empty: that is an error.
    pub several: &'static str,
    /// Its text in `--help`, to which the default is added.
    pub help: &'static str,
    /// Its text in `resume --help`, if `resume` can change the setting of a loop that has ended; else empty.
    pub raised: &'static str,
    /// Whether every verb that reads a project has it, not only those that run loops.
    pub everywhere: bool,
    /// The verbs of loops that do not have it.
    pub without: &'static [Verb],
}

impl Setting {
    /// The defaults of rows.
    pub(super) const ROW: Self = Self {
        key: "",
        shell: "",
        env: &[],
        flag: None,
        default: "",
        except: &[],
        empty: "",
        kind: ValueKind::Text,
        doc: "",
        needs_trust: false,
        loosest_first: &[],
        more_is_tighter: false,
    };

    /// The default of a verb, as one would write it; without a verb, that of most verbs.
    #[must_use]
    pub fn default_of(&self, verb: Option<Verb>) -> &'static str {
        let other = self.except.iter().find(|(verbs, _)| verb.is_some_and(|verb| verbs.contains(&verb)));
        other.map_or(self.default, |(_, value)| value)
    }

    /// Whether a project's own value counts only if the user trusts the project, where it would be `usual` without that.
    #[must_use]
    pub fn asks_trust(&self, value: &str, usual: &str) -> bool {
        let place = |word: &str| self.loosest_first.iter().position(|known| *known == word);
        let is_no_looser = place(value).zip(place(usual)).is_some_and(|(value, usual)| value >= usual);
        let has_all = self.more_is_tighter
            && usual.split_whitespace().all(|word| value.split_whitespace().any(|own| own == word));
        self.needs_trust && !is_no_looser && !has_all
    }

    /// Whether `resume` can change it.
    #[must_use]
    pub fn can_be_raised(&self) -> bool {
        self.flag.as_ref().is_some_and(|flag| !flag.raised.is_empty())
    }

    /// That there is no value, for people.
    #[must_use]
    pub fn no_value(&self) -> Cow<'static, str> {
        match self.empty {
            NONE | "the agent preset's own" => NONE.into(),
            meaning => format!("{NONE} ({meaning})").into(),
        }
    }

    /// The value that a text stands for, which may be one that `ralph config` shows: there is none, or the preset's own (then it
    /// is empty), or the defaults of verbs, which decide nothing (`None`).
    #[must_use]
    pub fn meant<'a>(&self, text: &'a str) -> Option<&'a str> {
        let shown = text.trim();
        if !self.except.is_empty() && shown == self.defaults_by_verb() {
            return None;
        }
        let is_none =
            !self.empty.is_empty() && (shown == NONE || shown == self.empty || *shown == *self.no_value());
        let is_of_preset = self.kind == ValueKind::Override && shown == BUILT_IN;
        Some(if is_none || is_of_preset { "" } else { text })
    }

    /// A value for people; without one, the meaning of that.
    #[must_use]
    pub fn in_words<'a>(&self, value: &'a str) -> &'a str {
        if value.is_empty() { self.empty } else { value }
    }

    /// The default for people, with the differences of verbs: `3; 0 with run, loop`.
    #[must_use]
    pub fn defaults_in_words(&self) -> String {
        let others = self.except.iter();
        let others = others.map(|(verbs, value)| format!("; {} with {}", self.in_words(value), names(verbs)));
        self.in_words(self.default).to_owned() + &others.collect::<String>()
    }

    /// The defaults if verbs differ, in few words: `by verb (3, run 0, loop 0)`. The first is that of all verbs that are
    /// not named.
    #[must_use]
    pub fn defaults_by_verb(&self) -> String {
        let number = |value: &'static str| if value.is_empty() { "none" } else { value };
        let others = self.except.iter().flat_map(|(verbs, value)| {
            families(verbs).into_iter().map(move |verb| format!(", {verb} {}", number(value)))
        });
        format!("by verb ({}{})", number(self.default), others.collect::<String>())
    }
}

impl Flag {
    /// A general option of the verbs that run loops.
    pub(super) const GENERAL: Self = Self {
        long: "",
        short: None,
        value: "",
        heading: None,
        several: "",
        help: "",
        raised: "",
        everywhere: false,
        without: &[],
    };
    /// An option about what ends or holds a loop.
    pub(super) const STOPPING: Self = Self { heading: Some("When to stop or wait"), ..Self::GENERAL };
}

/// Verbs by their first word, if all verbs with that word are among them.
fn families(verbs: &[Verb]) -> Vec<&'static str> {
    let first_word = |verb: Verb| verb.words().split(' ').next().unwrap_or_default();
    let name = |verb: &Verb| {
        let family = first_word(*verb);
        let is_whole =
            Verb::ALL.iter().filter(|other| first_word(**other) == family).all(|other| verbs.contains(other));
        if is_whole { family } else { verb.words() }
    };
    let mut names: Vec<_> = verbs.iter().map(name).collect();
    names.dedup();
    names
}

/// Verbs for people; `loop` stands for both of its verbs.
fn names(verbs: &[Verb]) -> String {
    let (verbs, both) = match verbs {
        [verbs @ .., Verb::LoopPlan, Verb::LoopBuild] => (verbs, Some("loop")),
        verbs => (verbs, None),
    };
    verbs.iter().map(|verb| verb.words()).chain(both).collect::<Vec<_>>().join(", ")
}
