//! Random histories of workers, a lander, and users, on real repositories.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::*;
use crate::engine::context::News;
use crate::git::landing::{add, begin, keep, merge_into, put};
use crate::git::range::is_ancestor;
use crate::graph::sqlite::SqliteStore;
use crate::graph::{Claim, HowDone, Made, NewTask, Status};
use crate::process::launch::Launch;
use crate::side_command::ValidationCommand;
use crate::text::redact::Redactor;

/// What a history does.
#[derive(Debug, Clone)]
enum Step {
    /// A worker takes a task, and hands in what it has made of it.
    Work(Kind),
    /// The lander does a round.
    Land,
    /// Another process becomes the lander.
    NewLander,
    /// The user commits on the trunk.
    Commit,
    /// A person reopened a task.
    Reset(usize),
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A file of its own.
    Plain,
    /// A line that others rewrite, too.
    Line,
    /// The next number, in a file of its own: two that are equal do not go together.
    Number,
    /// Nothing.
    Nothing,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![4 => Just(Kind::Plain), 2 => Just(Kind::Line), 3 => Just(Kind::Number), 1 => Just(Kind::Nothing)];
    prop_oneof![
        6 => kind.prop_map(Step::Work),
        4 => Just(Step::Land),
        1 => Just(Step::NewLander),
        1 => Just(Step::Commit),
        1 => (0_usize..8).prop_map(Step::Reset),
    ]
}

struct World {
    dir: tempfile::TempDir,
    store: SqliteStore,
    lander: Lander,
    team: Arc<Team>,
    trunk: Trunk,
    style: Style,
    tasks: Vec<String>,
    /// Every commit that was handed in.
    handed_in: BTreeSet<String>,
    tips: Vec<String>,
    landed: BTreeMap<String, usize>,
    reopened: BTreeMap<String, usize>,
    users: usize,
    landers: u64,
}

fn git(root: &Path, words: &[&str]) -> String {
    crate::git::tests::git(root, words)
}

impl World {
    fn new(style: Style) -> Self {
        let (dir, root) = crate::git::tests::repository();
        git(&root, &["symbolic-ref", "HEAD", "refs/heads/main"]);
        fs::write(root.join(".git/info/exclude"), "/.worktrees/\n/graph*\n").unwrap();
        fs::create_dir(root.join("numbers")).unwrap();
        fs::write(root.join("numbers/first"), "1\n").unwrap();
        fs::write(root.join("line"), "0\n").unwrap();
        git(&root, &["add", "."]);
        git(&root, &["commit", "--quiet", "-m", "begin"]);
        let trunk = Trunk::new(&root, "main");
        begin(&trunk, false).unwrap();
        let open = || SqliteStore::open(&root.join("graph.db"), Duration::from_secs(30)).unwrap();
        let mut store = open();
        let title = |number: usize| NewTask { title: format!("task {number}"), ..NewTask::default() };
        let tasks = (0..8).map(|number| store.add(&title(number)).unwrap()).collect();
        let team: Arc<Team> = Arc::default();
        let lander = lander(&root, open(), &team, &trunk, style, 0);
        let tips = vec![trunk.tip().unwrap()];
        Self {
            dir,
            store,
            lander,
            team,
            trunk,
            style,
            tasks,
            tips,
            handed_in: BTreeSet::new(),
            landed: BTreeMap::new(),
            reopened: BTreeMap::new(),
            users: 0,
            landers: 0,
        }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn play(&mut self, step: &Step) {
        match step {
            Step::Work(kind) => drop(self.work(*kind)),
            Step::Land => drop(self.land()),
            Step::NewLander => {
                self.landers += 1;
                let store =
                    SqliteStore::open(&self.root().join("graph.db"), Duration::from_secs(30)).unwrap();
                self.lander = lander(&self.root(), store, &self.team, &self.trunk, self.style, self.landers);
            }
            Step::Commit => {
                self.users += 1;
                let (root, name) = (self.root(), format!("user-{}", self.users));
                fs::write(root.join(&name), "").unwrap();
                git(&root, &["add", &name]);
                git(&root, &["commit", "--quiet", "-m", &name]);
            }
            Step::Reset(which) => {
                let id = self.tasks[*which].clone();
                self.store.reset(&id).unwrap();
                *self.reopened.entry(id).or_default() += 1;
            }
        }
    }

    /// Takes a task, if one is ready, and hands in what becomes of it.
    fn work(&mut self, kind: Kind) -> Option<String> {
        let holder = Holder::of_self("worker").unwrap();
        let lease = Duration::from_mins(1);
        let claim = self.store.claim_returned(&Scope::All, &holder, lease).unwrap();
        let claim = claim.or_else(|| self.store.claim(&Scope::All, &holder, lease).unwrap())?;
        let (root, tip) = (self.root(), self.trunk.tip().unwrap());
        let tree = root.join(".worktrees/tasks/1");
        let made = self.store.landing(&claim.task).unwrap();
        let start = made.as_ref().map_or_else(|| tip.clone(), |made| made.made.head.clone());
        add(&root, &tree, &tip).unwrap();
        put(&root, &tree, Some("1"), &start).unwrap();
        let conflicts = merge_into(&tree, &tip, "Merge main").unwrap();
        Self::make(&tree, &claim, kind, made.is_some(), &conflicts);
        let head = crate::git::head(&tree).unwrap();
        if is_ancestor(&root, &head, &tip) {
            self.store.complete(&claim, HowDone::default()).unwrap();
            return Some(claim.task);
        }
        let made = Made { trunk: "main".into(), base: tip, head: head.clone() };
        self.store.keep(&claim, &made).unwrap();
        keep(&root, &claim.reference(), &head).unwrap();
        self.store.queue(&claim, &made, HowDone::default()).unwrap();
        self.handed_in.insert(head);
        Some(claim.task)
    }

    fn make(tree: &Path, claim: &Claim, kind: Kind, is_again: bool, conflicts: &[String]) {
        let id = &claim.task;
        let number = || {
            let all = fs::read_dir(tree.join("numbers")).unwrap().flatten();
            let read = |path: PathBuf| fs::read_to_string(path).unwrap().trim().parse::<u32>().unwrap();
            let others = all.filter(|entry| entry.file_name() != id.as_str());
            let next = others.map(|entry| read(entry.path())).max().unwrap_or_default() + 1;
            fs::write(tree.join("numbers").join(id), format!("{next}\n")).unwrap();
        };
        if is_again {
            if tree.join("numbers").join(id).exists() {
                number();
            }
            if !conflicts.is_empty() {
                fs::write(tree.join("line"), format!("{id}\n")).unwrap();
            }
        } else {
            match kind {
                Kind::Nothing => return,
                Kind::Plain => {}
                Kind::Line => fs::write(tree.join("line"), format!("{id} {}\n", claim.fence)).unwrap(),
                Kind::Number => number(),
            }
            fs::write(tree.join(format!("work-{id}")), claim.fence.to_string()).unwrap();
        }
        git(tree, &["add", "."]);
        git(tree, &["commit", "--quiet", "--allow-empty", "-m", id]);
    }

    /// One round of the lander, after which everything that must hold does; returns whether there was something to do.
    fn land(&mut self) -> bool {
        let Ok(ran) = self.lander.round() else { panic!("nothing is wrong with the trunk") };
        while let Some(News::Fact(fact)) = self.team.news(0) {
            if let Fact::Landed { task, .. } = *fact {
                *self.landed.entry(task.id.to_string()).or_default() += 1;
            }
        }
        let (root, tip) = (self.root(), self.trunk.tip().unwrap());
        let last = self.tips.last().unwrap();
        assert!(is_ancestor(&root, last, &tip), "the tip moves only to descendants");
        self.tips.push(tip.clone());
        let files = git(&root, &["grep", "-h", "", &tip, "--", "numbers"]);
        let numbers: Vec<&str> = files.lines().collect();
        assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len(), "the tip is green");
        for commit in &self.handed_in {
            let refs = git(&root, &["for-each-ref", "--count=1", "--contains", commit]);
            assert!(!refs.is_empty(), "{commit} is reachable");
        }
        for (id, times) in &self.landed {
            let reopened = self.reopened.get(id).copied().unwrap_or_default();
            assert!(*times <= 1 + reopened, "{id} has landed {times} times");
        }
        matches!(ran, Ran::On)
    }

    /// Works and lands until nothing is left.
    fn finish(&mut self) {
        for _ in 0..100 {
            while self.land() {}
            if self.work(Kind::Plain).is_none() && self.store.landings().unwrap().is_empty() {
                break;
            }
        }
        let is_over = |id: &String| {
            let status = self.store.task(id).unwrap().status;
            assert!(matches!(status, Status::Done | Status::Failed), "{id} is {}", status.word());
            status == Status::Done
        };
        let root = self.root();
        let files = git(&root, &["ls-tree", "--name-only", "main"]);
        for id in self.tasks.iter().filter(|id| is_over(id)) {
            let had_work = self.landed.contains_key(id);
            assert!(!had_work || files.contains(&format!("work-{id}\n")), "{id}: {files}");
        }
        for user in 1..=self.users {
            assert!(files.contains(&format!("user-{user}\n")), "{files}");
        }
        assert_eq!(self.trunk.commit(), self.trunk.tip(), "the trunk has followed");
        assert_eq!(git(&root, &["status", "--porcelain"]), "");
    }
}

fn lander(
    root: &Path,
    store: SqliteStore,
    team: &Arc<Team>,
    trunk: &Trunk,
    style: Style,
    number: u64,
) -> Lander {
    let tree = root.join(".worktrees/tasks/gate");
    let launch = Launch { cwd: tree.clone(), ..Launch::default() };
    let command = "[ -z \"$(cat numbers/* | sort | uniq -d)\" ]";
    let command =
        ValidationCommand::new(command, command.to_owned(), String::new(), Duration::from_mins(1), &launch);
    let gate = Gate::new(root, tree, command, None, Redactor::default());
    let mut holder = Holder::of_self("lander").unwrap();
    // Each one is gone when the next one comes.
    holder.process.start_ticks += number + 1;
    let rules = Rules { batch: 4, retries: 50, style, pushes: false, lease: Duration::from_mins(20) };
    let place = (root.to_owned(), Vec::new());
    Lander::new(
        Box::new(store),
        Arc::clone(team),
        trunk.clone(),
        place,
        (holder, Scope::All),
        Some(gate),
        rules,
    )
}

/// How many histories are played; more by `HISTORIES=1000`.
fn cases() -> u32 {
    std::env::var("HISTORIES").ok().and_then(|number| number.parse().ok()).unwrap_or(12)
}

proptest! {
    #![proptest_config(Config { cases: cases(), max_shrink_iters: 200, ..Config::default() })]
    #[test]
    fn whatever_happens_nothing_is_lost_and_the_tip_stays_green(
        steps in prop::collection::vec(step(), 5..30),
        is_linear in any::<bool>(),
    ) {
        let mut world = World::new(if is_linear { Style::Rebase } else { Style::Merge });
        for step in &steps {
            world.play(step);
        }
        world.finish();
    }
}
