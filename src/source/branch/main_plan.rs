//! The main plan, which all branches of a build share: each changes only its own section.

use std::fs;
use std::io::{self, ErrorKind::NotFound};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::files::atomic::{self, Durability};
use crate::files::{FileError, if_there, own, theirs, way_to_read};
use crate::plan::{
    PlanError, Task, Ticks, has_section, mark_done, merge_tasks, open_box, tasks, without_claims,
};

/// The plan at the project root. Its text is read again for each change, because the user may be editing it.
#[derive(Debug)]
pub struct MainPlan {
    path: PathBuf,
    /// Its text when the loop over it began; empty if it did not exist.
    before: String,
    /// Held while the file is read, changed and written.
    writing: Mutex<()>,
}

impl MainPlan {
    /// The plan in this file with its current text as the beginning.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        let before = read(&path).unwrap_or_default();
        Self::since(path, before)
    }

    /// The plan in this file, which had this text when the loop over it began.
    #[must_use]
    pub fn since(path: PathBuf, before: String) -> Self {
        Self { path, before, writing: Mutex::default() }
    }

    /// Its text when the loop over it began.
    #[must_use]
    pub fn before(&self) -> &str {
        &self.before
    }

    /// Reopens work that was marked as done since the beginning in sections whose name `is_meant` and that ralph has
    /// not built: any agent can write that. A label that was added a second time, which would make the plan invalid,
    /// is removed. Returns a notice that names them.
    ///
    /// # Errors
    /// If the plan cannot be written.
    pub(crate) fn take_claims_back(&self, is_meant: &dyn Fn(&str) -> bool) -> Result<Option<String>, String> {
        // An unreadable plan marks nothing as done; the caller that needs it reports the error.
        if read(&self.path).is_err() {
            return Ok(None);
        }
        let (mut claimed, mut doubled) = (Vec::new(), Vec::new());
        self.change(|now| {
            let cleared = without_claims(now, &self.before, is_meant);
            (claimed, doubled) = (cleared.claimed, cleared.doubled);
            Ok(cleared.text)
        })?;
        if claimed.is_empty() && doubled.is_empty() {
            return Ok(None);
        }
        let plan = Path::new(self.path.file_name().unwrap_or_default()).display();
        let mut said = Vec::new();
        if !claimed.is_empty() {
            said.push(format!(
                "work of '{}' was marked as done, which ralph has not built: it is planned again; mark it yourself if it is done",
                claimed.join("', '")
            ));
        }
        if !doubled.is_empty() {
            said.push(format!(
                "'{}' had a Goal, Base, Status or PR more than when the run began: the added line is removed",
                doubled.join("', '")
            ));
        }
        Ok(Some(format!("{plan}: {}", said.join("; "))))
    }

    /// Carries the ticks and new tasks of a branch from the copy in its work tree. Tasks among the `known` that are
    /// missing in the main plan were removed by the user, and stay out.
    pub(super) fn carry_from(
        &self,
        copy: &Path,
        branch: &str,
        ticks: Ticks,
        known: &[String],
    ) -> Result<(), String> {
        let from = read_copy(copy)?.ok_or_else(|| format!("cannot read {}", copy.display()))?;
        let from = without_torn_end(from, branch, known);
        self.change(|into| merge_tasks(&from, into, branch, ticks, known).map_err(|error| self.fault(&error)))
    }

    /// Copies the plan into a branch's work tree, and returns the texts of its tasks. If a copy with the same tasks
    /// exists, only its ticks change.
    pub(super) fn bring_to(&self, copy: &Path, branch: &str) -> Result<Vec<String>, String> {
        let main = read(&self.path)?;
        let own = texts(&main, branch).map_err(|error| self.fault(&error))?;
        let old = read_copy(copy)?;
        let is_current = |old: &&String| texts(old, branch).is_ok_and(|texts| texts == own);
        let merged = old
            .as_ref()
            .filter(is_current)
            .and_then(|old| merge_tasks(&main, old, branch, Ticks::From, &[]).ok())
            // A copy that ends too early was torn.
            .filter(|merged| !main.starts_with(merged.as_str()));
        let text = merged.unwrap_or(main);
        if old.as_ref() != Some(&text) {
            write_copy(copy, &text)?;
        }
        Ok(own)
    }

    /// Whether an agent of the branch can use the copy: it exists and has the branch's section.
    pub(super) fn is_usable(copy: &Path, branch: &str) -> Result<bool, String> {
        Ok(read_copy(copy)?.is_some_and(|text| has_section(&text, branch)))
    }

    /// Marks a branch as done.
    pub(super) fn mark_done(&self, branch: &str, pull_request: Option<&str>) -> Result<(), String> {
        self.change(|text| mark_done(text, branch, pull_request).map_err(|error| self.fault(&error)))
    }

    /// The tasks of a branch; none if the plan cannot be read.
    pub(super) fn tasks(&self, branch: &str) -> Vec<Task> {
        let text = read(&self.path).unwrap_or_default();
        tasks(&text, branch).unwrap_or_default()
    }

    /// The tasks of a branch that its agents have not ticked: those that are open in their copy of the plan, and those that are
    /// open here and gone from the copy.
    pub(super) fn open_in(&self, copy: &Path, branch: &str) -> (Vec<String>, Vec<String>) {
        let here = self.tasks(branch);
        let own = read_copy(copy).ok().flatten().and_then(|text| tasks(&text, branch).ok());
        let Some(own) = own else { return (open(&here), Vec::new()) };
        let is_gone = |task: &&Task| !task.ticked && !own.iter().any(|other| other.text == task.text);
        let gone = here.iter().filter(is_gone).map(|task| task.text.clone()).collect();
        (open(&own), gone)
    }

    /// Whether every task of a branch is ticked.
    pub(super) fn is_all_ticked(&self, branch: &str) -> bool {
        let tasks = self.tasks(branch);
        !tasks.is_empty() && tasks.iter().all(|task| task.ticked)
    }

    /// Edits the text of the plan, again if a person or an agent has written it meanwhile.
    fn change(&self, mut edit: impl FnMut(&str) -> Result<String, String>) -> Result<(), String> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let text = read(&self.path)?;
            let changed = edit(&text)?;
            if changed == text || write(&self.path, &text, &changed)? {
                return Ok(());
            }
        }
    }

    fn fault(&self, error: &PlanError) -> String {
        format!("{}, {error}", self.path.display())
    }
}

/// Those of the tasks that are open.
pub(super) fn open(tasks: &[Task]) -> Vec<String> {
    tasks.iter().filter_map(open_box).collect()
}

fn texts(text: &str, branch: &str) -> Result<Vec<String>, PlanError> {
    Ok(tasks(text, branch)?.into_iter().map(|task| task.text).collect())
}

/// The copy of the plan, if it is a file with text. Links are not followed: an agent may have linked it to a user's
/// file.
///
/// # Errors
/// If the system lacks resources to read it: it is not lost then, and must not be overwritten.
fn read_copy(path: &Path) -> Result<Option<String>, String> {
    let content = if_there(own::read(path, theirs::MAX_TEXT));
    let told = |error: io::Error| format!("cannot read {}: {error}: {}", path.display(), way_to_read(&error));
    Ok(content.map_err(told)?.and_then(|content| String::from_utf8(content).ok()))
}

fn write_copy(path: &Path, text: &str) -> Result<(), String> {
    if path.symlink_metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        // The agent made a link; its target stays.
        fs::remove_file(path).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
    }
    let written = atomic::write_own(path, text.as_bytes(), Durability::Synced);
    written.map(drop).map_err(|error| error.to_string())
}

/// The plan without its last line, if that is the beginning of a task among the `known`: its writer was interrupted.
fn without_torn_end(mut text: String, branch: &str, known: &[String]) -> String {
    let last = tasks(&text, branch).ok().and_then(|mut tasks| tasks.pop()).map(|task| task.text);
    let is_torn = |last: &String| {
        text.ends_with(last.as_str())
            && !known.contains(last)
            && known.iter().any(|known| known.starts_with(last.as_str()))
    };
    if last.as_ref().is_some_and(is_torn) {
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    }
    text
}

fn read(path: &Path) -> Result<String, String> {
    theirs::text(path).map_err(|error| match error.kind() {
        NotFound => format!("{} is not there any more", path.display()),
        _ => format!("cannot read {}: {error}", path.display()),
    })
}

/// Writes the plan if it still has its `old` text; returns whether it had.
fn write(path: &Path, old: &str, new: &str) -> Result<bool, String> {
    let within = path.parent().map_or(Ok(()), |folder| theirs::require_within(folder, path));
    within.map_err(|error| FileError::at(path)(error).to_string())?;
    atomic::change_theirs(path, old.as_bytes(), new.as_bytes()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Plans {
        folder: tempfile::TempDir,
        main: MainPlan,
    }

    impl Plans {
        /// A main plan with these lines in the section of `a`, and a second branch that does not change.
        fn new(lines: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let main = MainPlan::new(folder.path().join("main"));
            let plans = Self { folder, main };
            plans.write("main", lines);
            plans
        }

        fn write(&self, file: &str, lines: &str) {
            let text = format!("## Branch: a\nGoal: g\n{lines}\n## Branch: b\nGoal: h\n- [ ] one\n");
            fs::write(self.folder.path().join(file), text).unwrap();
        }

        /// The lines of the section of `a`.
        fn lines(&self, file: &str) -> String {
            let text = fs::read_to_string(self.folder.path().join(file)).unwrap();
            let (own, other) = text.split_once("\n## Branch: b\n").unwrap();
            assert_eq!(other, "Goal: h\n- [ ] one\n");
            own.strip_prefix("## Branch: a\nGoal: g\n").unwrap().to_owned()
        }

        fn copy(&self) -> PathBuf {
            self.folder.path().join("copy")
        }

        /// The text after an iteration, when both plans are equal.
        fn settle(&self, known: &[String]) -> String {
            self.main.carry_from(&self.copy(), "a", Ticks::From, known).unwrap();
            self.main.bring_to(&self.copy(), "a").unwrap();
            assert_eq!(self.lines("main"), self.lines("copy"));
            self.lines("main")
        }
    }

    #[test]
    fn ticks_and_new_tasks_come_back() {
        let plans = Plans::new("- [ ] one\n- [ ] two\n");
        let known = plans.main.bring_to(&plans.copy(), "a").unwrap();
        assert_eq!(known, ["one", "two"]);
        plans.write("copy", "- [x] one\n- [ ] two\n- [ ] found on the way\n");
        assert_eq!(plans.settle(&known), "- [x] one\n- [ ] two\n- [ ] found on the way\n");
        assert!(!plans.main.is_all_ticked("a"));
    }

    #[test]
    fn what_a_person_changes_meanwhile_holds() {
        let plans = Plans::new("- [ ] one\n- [ ] two\n");
        let known = plans.main.bring_to(&plans.copy(), "a").unwrap();
        plans.write("main", "- [ ] two, but better\n- [ ] one\n- [ ] three\n");
        plans.write("copy", "- [x] one\n- [ ] two\n");
        assert_eq!(plans.settle(&known), "- [ ] two, but better\n- [x] one\n- [ ] three\n");
    }

    #[test]
    fn a_plan_that_cannot_be_read_claims_nothing() {
        let plans = Plans::new("- [ ] one\n");
        let path = plans.folder.path().join("main");
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(plans.main.take_claims_back(&|_| true), Ok(None));
        fs::remove_file(&path).unwrap();
        assert_eq!(plans.main.take_claims_back(&|_| true), Ok(None));
    }

    #[test]
    fn at_the_start_the_main_plan_counts_and_notes_of_agents_stay() {
        let plans = Plans::new("- [ ] one\n");
        plans.write("copy", "- [x] one\n\nNote: it was hard.\n");
        plans.main.bring_to(&plans.copy(), "a").unwrap();
        assert_eq!(plans.lines("copy"), "- [ ] one\n\nNote: it was hard.\n");
        fs::remove_file(plans.folder.path().join("main")).unwrap();
        assert!(plans.main.bring_to(&plans.copy(), "a").unwrap_err().contains("is not there any more"));
    }
}
