//! A project with a plan of branches, a remote, an agent that makes real commits, and a `gh` that only records its
//! arguments: the real one needs GitHub.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::scratch::Scratch;

/// What every agent below begins with. `open`: the line of the first open task in the branch's own section of the plan.
/// `work`: commits a file with its text and ticks that task off. Each call is noted in `../calls`.
const WORDS: &str = r###"
cat > "$HOME/prompt-${RALPH_BRANCH//\//-}-$RALPH_ITERATION"
echo "$RALPH_BRANCH $RALPH_ITERATION" >> "$HOME/calls"
plan=IMPLEMENTATION_PLAN.md
open() {
    awk -v heading="## Branch: $RALPH_BRANCH" '/^## /{own = $0 == heading} own && /^- \[ \]/{print NR; exit}' $plan
}
work() {
    local line task; line=$(open)
    [ -n "$line" ] || return
    task=$(sed -n "${line}s/^- \[ \] //p" $plan)
    rm -f "$(git rev-parse --git-dir)/index.lock"
    # It may have been killed between the commit and the tick.
    if ! git log --format=%s | grep -qxF "$task"; then
        echo "$task" > "${RALPH_BRANCH//\//-}-$line.txt"
        git add -A && git commit --quiet --message "$task" || return
    fi
    sed -i "${line}s/\[ \]/[x]/" $plan
}
end() {
    if [ -n "$(open)" ]; then say 'one more'; else say '<promise>COMPLETE</promise>'; fi
    result
}
"###;

/// A `gh` that writes its arguments, one per line, and prints an address.
pub(crate) const GH: &str = r#"
printf '%s\n' "$*" >> "$HOME/gh"
case "$1 $2" in
  'pr create') echo "https://example.com/pr/$(grep -c '^pr create' "$HOME/gh")" ;;
esac
"#;

/// A project whose agent does one task of its branch in each iteration.
pub(crate) struct BranchProject {
    pub scratch: Scratch,
}

impl BranchProject {
    /// On branch `master`, with this plan, a bare repository as the remote `origin`, and `gh`.
    pub(crate) fn new(plan: &str) -> Self {
        let project = Self::without_remote(plan);
        let scratch = &project.scratch;
        let remote = project.remote();
        scratch.git(&["init", "--quiet", "--bare", remote.to_str().unwrap()]);
        scratch.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
        scratch.git(&["push", "--quiet", "origin", "master"]);
        scratch.agent("gh", GH);
        project
    }

    /// [`new`](Self::new) without a remote and without `gh`.
    pub(crate) fn without_remote(plan: &str) -> Self {
        let scratch = Scratch::new();
        scratch.git(&["checkout", "--quiet", "-b", "master"]);
        fs::remove_dir_all(scratch.path(".ralph")).unwrap();
        fs::remove_file(scratch.path("p.md")).unwrap();
        scratch.write("code.txt", "code\n");
        scratch.git(&["add", "code.txt"]);
        scratch.git(&["commit", "--quiet", "--message", "Begin"]);
        scratch.write("IMPLEMENTATION_PLAN.md", plan);
        let project = Self { scratch };
        project.agent("work; end");
        project
    }

    /// What the agent does, as bash; see [`WORDS`].
    pub(crate) fn agent(&self, body: &str) {
        self.scratch.agent("claude", &format!("{WORDS}\n{body}"));
    }

    pub(crate) fn remote(&self) -> PathBuf {
        self.scratch.outside().join("remote.git")
    }

    /// Where a file in the agents' home is.
    pub(crate) fn home_path(&self, name: &str) -> PathBuf {
        self.scratch.outside().join("home").join(name)
    }

    /// A file in the agents' home.
    pub(crate) fn home(&self, name: &str) -> String {
        fs::read_to_string(self.home_path(name)).unwrap_or_default()
    }

    /// How often an agent was called for a branch.
    pub(crate) fn calls(&self, branch: &str) -> usize {
        self.home("calls").lines().filter(|line| line.split(' ').next() == Some(branch)).count()
    }

    pub(crate) fn plan(&self) -> String {
        self.scratch.read("IMPLEMENTATION_PLAN.md")
    }

    /// The subjects of the commits that a branch has ahead of `master`, oldest first.
    pub(crate) fn commits(&self, branch: &str) -> Vec<String> {
        let range = format!("master..{branch}");
        self.scratch.git(&["log", "--reverse", "--format=%s", &range]).lines().map(str::to_owned).collect()
    }

    /// The commit of a branch on the remote.
    pub(crate) fn pushed(&self, branch: &str) -> Option<String> {
        let remote = self.remote();
        let output = self
            .scratch
            .command("git")
            .args(["--git-dir", remote.to_str().unwrap(), "rev-parse", "--verify", "--quiet"])
            .arg(format!("refs/heads/{branch}"))
            .output()
            .unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// The commit of a branch here.
    pub(crate) fn head(&self, branch: &str) -> String {
        self.scratch.git(&["rev-parse", &format!("refs/heads/{branch}")]).trim().to_owned()
    }

    /// The state file of a branch.
    pub(crate) fn state(&self, branch: &str) -> toml::Table {
        self.scratch.read(&Self::state_file(branch)).parse().unwrap()
    }

    /// Where the state file of a branch is, from the project root.
    pub(crate) fn state_file(branch: &str) -> String {
        format!(".ralph/runs/branches/{}/state.toml", branch.replace('/', "%2F"))
    }

    /// The content of the events logs of a branch, of all runs.
    pub(crate) fn events(&self, branch: &str) -> String {
        let runs = fs::read_dir(self.scratch.path(".ralph/runs")).into_iter().flatten().flatten();
        let folders = runs.map(|run| run.path().join(branch.replace('/', "%2F")));
        let files = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        let events = files.map(|file| file.path()).filter(|path| path.to_string_lossy().ends_with(".jsonl"));
        events.map(|path| fs::read_to_string(path).unwrap()).collect()
    }
}

/// A plan with these branches, each with so many tasks.
pub(crate) fn plan(branches: &[(&str, usize)]) -> String {
    let mut text = String::from("# Plan\n\n");
    for (name, tasks) in branches {
        write!(text, "## Branch: {name}\nGoal: Have {name}\nBase: master\n\n").unwrap();
        for task in 1..=*tasks {
            writeln!(text, "- [ ] Do {task} of {name}").unwrap();
        }
        text.push('\n');
    }
    text
}
