//! What walls have refused, as far as it can be read from what programs print about it: the kernel tells us nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::plan::{Held, Plan, depth};
use crate::platform::calls::KERNEL;

/// How far from such words a path stands at most, in bytes.
const NEAR: usize = 400;
/// How long the words are at most, in bytes.
const WORDS: usize = 32;

/// At most so many places are told apart that one program was refused; more tell nothing new.
pub(super) const MOST_REFUSED: usize = 200;
/// What git tries to lock in a folder that linked work trees share, and does without.
const DONE_WITHOUT: &str = "packed-refs.lock";

/// What stands between a path and words.
const BETWEEN: [char; 12] = ['\'', '"', '`', '‘', '’', ',', ';', ':', '(', ')', '=', '\\'];

/// What the C library, and so nearly every program, says of a path that is held back.
static REFUSALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(erofs: )?read-only file system|(eacces: )?permission denied|\berofs\b|\beacces\b").ok()
});

/// What walls have turned away, and how often.
#[derive(Debug, Default)]
pub struct TurnedAway {
    /// Hosts with their ports, which is certain.
    pub hosts: BTreeMap<String, u64>,
    /// Paths, as far as what was printed tells.
    pub paths: BTreeMap<(Held, PathBuf), u64>,
}

impl TurnedAway {
    /// With what one stream has told.
    #[must_use]
    pub fn and(mut self, overheard: Overheard) -> Self {
        for (held, times) in overheard.end() {
            *self.paths.entry(held).or_default() += times;
        }
        self
    }
}

/// Listens to what one program prints.
#[derive(Debug)]
pub struct Overheard {
    plan: Plan,
    cwd: PathBuf,
    /// The end of what was printed, and up to where it was looked through.
    text: Vec<u8>,
    seen: usize,
    found: BTreeMap<(Held, PathBuf), u64>,
}

impl Overheard {
    /// What is printed by a program that works there behind these walls.
    #[must_use]
    pub(super) fn of(plan: Plan, cwd: PathBuf) -> Self {
        Self { plan, cwd, text: Vec::new(), seen: 0, found: BTreeMap::new() }
    }

    /// Takes what it prints next.
    pub fn take(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        // The path may stand behind the words.
        self.look(self.text.len().saturating_sub(NEAR));
        let old = self.seen.saturating_sub(NEAR);
        self.text.drain(..old);
        self.seen -= old;
    }

    /// The paths that seem to have been refused, and how often.
    fn end(mut self) -> BTreeMap<(Held, PathBuf), u64> {
        self.look(self.text.len());
        self.found
    }

    /// Looks through the text up to there.
    fn look(&mut self, end: usize) {
        let Some(words) = REFUSALS.as_ref().filter(|_| self.found.len() < MOST_REFUSED) else {
            self.seen = self.seen.max(end);
            return;
        };
        let from = self.seen.saturating_sub(WORDS);
        let Some(text) = self.text.get(from..) else { return };
        let new: Vec<_> = words
            .find_iter(text)
            .map(|found| (from + found.start()..from + found.end(), is_of_mount(found.as_bytes())))
            .filter(|(found, _)| found.end > self.seen && found.end <= end)
            .collect();
        for (found, is_of_mount) in new {
            // A mount that cannot be written says so itself; only what is hidden is not permitted, unless Landlock is alone.
            let says = |held: &Held| match held {
                Held::Hidden => !is_of_mount,
                Held::ReadOnly => is_of_mount != self.plan.is_alone,
            };
            let held = self
                .paths_near(found.start, found.end)
                .find_map(|path| Some((self.plan.holds(&path).filter(says)?, path)));
            if let Some(held) = held.filter(|(_, path)| !path.ends_with(DONE_WITHOUT)) {
                *self.found.entry(held).or_default() += 1;
            }
        }
        self.seen = self.seen.max(end);
    }

    /// The paths next to these words, on their line: the one before them first.
    fn paths_near(&self, start: usize, end: usize) -> impl Iterator<Item = PathBuf> {
        let before = &self.text[start.saturating_sub(NEAR)..start];
        let after = &self.text[end..self.text.len().min(end + NEAR)];
        let before = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let after = after.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let [before, after] = [before, after].map(|text| String::from_utf8_lossy(text).into_owned());
        // In JSON a line ends like this.
        let before = before.rsplit("\\n").next().unwrap_or_default();
        let after = after.split("\\n").next().unwrap_or_default();
        let is_between = |c: char| c.is_whitespace() || BETWEEN.contains(&c);
        let path = |word: &&str| word.contains('/');
        // A name alone is one in the folder where it works.
        let nearest = before.rsplit(is_between).find(|word| !word.is_empty()).map(|word| self.cwd.join(word));
        let next = after.split(is_between).find(path).map(|word| self.cwd.join(word));
        nearest.into_iter().chain(next)
    }
}

/// Whether these words are about a file system that cannot be written.
fn is_of_mount(words: &[u8]) -> bool {
    let words = words.to_ascii_lowercase();
    words.starts_with(b"read") || words.starts_with(b"erofs")
}

impl Plan {
    /// What holds a path back; `None`: nothing does.
    #[must_use]
    pub fn holds(&self, path: &Path) -> Option<Held> {
        let path = straight(path);
        let covers = |places: &[PathBuf]| depth(places, &path);
        if covers(&self.hidden).is_some() {
            return Some(Held::Hidden);
        }
        let layer = self.layers.iter().find(|layer| path.parent() == Some(&layer.path) || path == layer.path);
        let is_new = |place: &PathBuf| path.starts_with(place);
        // What is new there can be written.
        if layer.is_some_and(|layer| {
            path.symlink_metadata().is_err() || layer.copied.iter().any(|name| layer.path.join(name) == path)
        }) {
            return None;
        }
        let open =
            [covers(&self.writable), covers(&self.made), covers(&self.fresh)].into_iter().flatten().max();
        let is_kept = self.kept.iter().any(|kept| !self.fresh.contains(kept) && is_new(kept));
        let kept = is_kept.then(|| covers(&self.kept)).flatten();
        let is_devices = ["/dev", KERNEL].iter().any(|place| path.starts_with(place));
        // What can be written is kept as well.
        let is_open = |open| {
            covers(&self.read_only).is_none_or(|closed| closed < open) && kept.is_none_or(|kept| kept <= open)
        };
        match open {
            None if is_devices => None,
            Some(open) if is_open(open) => None,
            _ => Some(Held::ReadOnly),
        }
    }
}

/// A path without `.` and `..`, which may lead out of where it seems to be.
fn straight(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(straight.pop()),
            std::path::Component::CurDir => {}
            part => straight.push(part),
        }
    }
    straight
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::walls::Layer;

    fn plan() -> Plan {
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        Plan {
            writable: paths(&["/work/p", "/home/u/.claude", "/tmp/x/y"]),
            read_only: paths(&["/work/p/.git/hooks", "/work/p/ralph.toml"]),
            hidden: paths(&["/home/u/.ssh"]),
            layers: vec![Layer { path: "/home/u".into(), copied: vec![".claude.json".to_owned()] }],
            fresh: paths(&["/tmp"]),
            kept: paths(&["/home/u", "/work/p", "/tmp/kept"]),
            ..Plan::default()
        }
    }

    #[test]
    fn a_plan_says_what_is_held_back() {
        for (path, held) in [
            ("/work/p/src/main.rs", None),
            ("/work/p/.git/hooks/pre-commit", Some(Held::ReadOnly)),
            ("/work/p/x/../ralph.toml", Some(Held::ReadOnly)),
            ("/home/u/.claude/x", None),
            ("/home/u/.claude.json", None),
            ("/home/u/.cargo/bin/x", Some(Held::ReadOnly)),
            ("/home/u/new-one", None),
            ("/home/u/.ssh/id", Some(Held::Hidden)),
            ("/etc/passwd", Some(Held::ReadOnly)),
            ("/tmp/a", None),
            ("/tmp/kept/a", Some(Held::ReadOnly)),
            ("/tmp/x/y/z", None),
            ("/dev/null", None),
        ] {
            assert_eq!(plan().holds(Path::new(path)), held, "{path}");
        }
    }

    #[test]
    fn what_tools_print_is_read_and_counted_once_each() {
        let lines = "bash: line 1: /etc/hosts: Read-only file system\n\
            cp: cannot create regular file '/home/u/.cargo/bin/x': Read-only file system\n\
            {\"text\":\"a\\ncat: /home/u/.ssh/id: Permission denied\\nb /usr/x\"}\n\
            Error: EROFS: read-only file system, open '/usr/lib/x'\n\
            cannot open /usr/lib/y (EROFS)\n\
            PermissionError: [Errno 13] Permission denied: '/home/u/.ssh/id'\n\
            cat: /etc/shadow: Permission denied\n\
            /usr/bin/claude: line 5: ralph.toml: Read-only file system\n\
            error: could not lock config file .git/hooks/x: Read-only file system\n\
            /work/p/a.sh: Permission denied\n\
            /usr/bin/x: line 7: ./target/x: Permission denied\n";
        let expected: Vec<(Held, &str, u64)> = vec![
            (Held::Hidden, "/home/u/.ssh/id", 2),
            (Held::ReadOnly, "/etc/hosts", 1),
            (Held::ReadOnly, "/home/u/.cargo/bin/x", 1),
            (Held::ReadOnly, "/usr/lib/x", 1),
            (Held::ReadOnly, "/usr/lib/y", 1),
            (Held::ReadOnly, "/work/p/.git/hooks/x", 1),
            (Held::ReadOnly, "/work/p/ralph.toml", 1),
        ];
        let expected: BTreeMap<_, _> =
            expected.into_iter().map(|(held, path, times)| ((held, PathBuf::from(path)), times)).collect();
        for piece in [1, 7, 64, 100_000] {
            let mut overheard = Overheard::of(plan(), "/work/p".into());
            lines.as_bytes().chunks(piece).for_each(|bytes| overheard.take(bytes));
            assert_eq!(overheard.end(), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_far_behind_is_forgotten() {
        let mut overheard = Overheard::of(plan(), "/work/p".into());
        for _ in 0..10_000 {
            overheard.take(&[b'x'; 100]);
        }
        assert!(overheard.text.len() < 3 * NEAR);
    }
}
