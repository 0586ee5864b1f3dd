//! Claims are proven in a clean checkout of their commit: cheats that leave something beside it are refused, honest work
//! passes at the first attempt.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::branch_project::{BranchProject, plan};
use crate::policies::{attempts, prompt};
use crate::processes::send;
use crate::run_tasks::{add, ends, tasks};
use crate::scratch::{Run, Scratch, Started, claude_says, executable, wait_for};

/// What the validation command finds good.
pub(crate) const CHECK: &str = "#!/bin/sh\ngrep -q good code || { echo \"code is $(cat code)\"; exit 1; }\n";
pub(crate) const COMPLETE: &str = "<promise>COMPLETE</promise>";
/// What an agent does honestly.
pub(crate) const FIX: &str = "echo good > code; git commit -qam fix";

/// A project with a program that is bad, and its check.
pub(crate) fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("code", "bad\n");
    scratch.write(".gitignore", "ignored\nnode_modules/\n");
    executable(&scratch.path("check"), CHECK);
    scratch.git(&["add", "code", "check", ".gitignore"]);
    scratch.git(&["commit", "--quiet", "-m", "begin"]);
    scratch
}

/// An agent that does these things, one in each attempt, and says each time that all is done.
pub(crate) fn agent(scratch: &Scratch, deeds: &[&str]) {
    let turns: Vec<_> = deeds.iter().map(|deed| (*deed, COMPLETE)).collect();
    agent_that(scratch, &turns);
}

/// An agent that does and says these things, one after the other, and keeps its prompts.
pub(crate) fn agent_that(scratch: &Scratch, turns: &[(&str, &str)]) {
    let case = |((deed, says), n): (&(&str, &str), u8)| {
        let says = claude_says(says).replace("cat > /dev/null", "cat > \"$HOME/prompt.$n\"");
        format!("{n}) {deed}\n{says}\n;;\n")
    };
    let cases: String = turns.iter().zip(1..).map(case).collect();
    let rest = claude_says(COMPLETE);
    let body = format!(
        "n=$(($(cat \"$HOME/n\" 2>/dev/null || echo 0) + 1)); echo $n > \"$HOME/n\"\ncase $n in\n{cases}*) {rest}\n;;\nesac\n"
    );
    scratch.agent("claude", &body);
}

pub(crate) fn start(scratch: &Scratch, limit: usize, validate: &str) -> std::process::Command {
    let mut ralph = scratch.ralph(&format!("prompt p.md {limit} --proof clean --validate"));
    ralph.arg(validate);
    ralph
}

pub(crate) fn run(scratch: &Scratch, limit: usize, validate: &str) -> Run {
    Scratch::finish(&mut start(scratch, limit, validate))
}

/// The folder of the project's proof trees, in the user's state folder.
pub(crate) fn trees(scratch: &Scratch) -> PathBuf {
    let script = "printf %s \"$(pwd -P)/.ralph/runs\" | sha256sum | cut -c 1-12";
    let key = Scratch::finish(scratch.command("bash").args(["-c", script])).stdout;
    scratch.outside().join("home/state/ralph/proof").join(key.trim())
}

pub(crate) fn tree(scratch: &Scratch) -> PathBuf {
    trees(scratch).join("prompt")
}

/// One attempt does this, and its claim is refused for this reason.
#[track_caller]
pub(crate) fn is_refused(scratch: &Scratch, deed: &str, reason: &str) {
    agent(scratch, &[deed]);
    let run = run(scratch, 1, "./check");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains(reason), "'{reason}' is missing: {run:?}");
}

#[test]
fn an_honest_fix_is_proven_at_once_in_a_tree_of_its_own() {
    let scratch = project();
    agent(&scratch, &[FIX]);
    let log = scratch.outside().join("log");
    let validate = format!(
        "{{ pwd; echo $HOME; echo $TMPDIR; env | grep -v CEILING | grep -c ^GIT_; }} >> {}; ./check",
        log.display()
    );
    let run = run(&scratch, 3, &validate);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!scratch.outside().join("home/prompt.2").exists(), "{run:?}");
    let report = scratch.run("report").stdout;
    assert!(report.contains("proven: clean tree "), "{report}");
    let log = fs::read_to_string(log).unwrap();
    let tree = tree(&scratch).canonicalize().unwrap();
    let tree = tree.display();
    let proof = format!("{tree}\n{tree}~home\n{tree}~tmp\n0\n");
    assert!(log.ends_with(&proof) && !log.contains(&format!("{}\n", scratch.root().display())), "{log}");
    assert_eq!(scratch.git(&["status", "--porcelain", "--", "code", "check", ".ralph/runs"]), "");
    assert!(scratch.git(&["for-each-ref", "refs/ralph/base"]).contains("refs/ralph/base/prompt"));
    // Without a claim the command runs in place, as ever.
    scratch.agent("claude", &claude_says("not yet"));
    let log = scratch.outside().join("second");
    crate::proofs::run(&scratch, 1, &format!("pwd >> {}; ./check", log.display()));
    assert!(
        fs::read_to_string(log)
            .unwrap()
            .contains(&format!("{}\n", scratch.root().canonicalize().unwrap().display()))
    );
}

#[test]
fn what_is_not_committed_does_not_count_and_the_next_prompt_names_it() {
    let scratch = project();
    scratch.write("notes of the user", "there before\n");
    agent(&scratch, &["echo good > code; echo x > more", "git add more; git commit -qam fix"]);
    let run = run(&scratch, 3, "./check");
    assert_eq!(run.code, Some(0), "{run:?}");
    let prompt = fs::read_to_string(scratch.outside().join("home/prompt.2")).unwrap();
    assert!(prompt.contains("not committed: code, more: commit"), "{prompt}");
    assert!(!scratch.outside().join("home/prompt.3").exists());
}

#[test]
fn files_that_git_ignores_prove_nothing() {
    let scratch = project();
    executable(&scratch.path("check"), "#!/bin/sh\ntest -e ignored || { echo nothing there; exit 1; }\n");
    scratch.git(&["commit", "--quiet", "-am", "check"]);
    is_refused(&scratch, "echo x > ignored", "nothing there");
}

#[test]
fn what_git_is_told_not_to_see_proves_nothing() {
    for hide in ["--assume-unchanged", "--skip-worktree"] {
        let scratch = project();
        is_refused(&scratch, &format!("git update-index {hide} code; echo good > code"), "code is bad");
    }
}

#[test]
fn hooks_and_filters_that_an_agent_configures_have_no_effect() {
    let scratch = project();
    let deed = "git config filter.x.smudge 'echo good'; git config filter.x.clean 'echo bad'; echo 'code filter=x' > .git/info/attributes
        printf '#!/bin/sh\\necho good > code\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout
        git config core.hooksPath .git/hooks; rm code; git checkout -q code";
    is_refused(&scratch, deed, "code is bad");
}

#[test]
fn programs_in_the_files_of_agents_are_not_found() {
    let scratch = project();
    agent(
        &scratch,
        &["mkdir -p ignored; printf '#!/bin/sh\\nexit 0\\n' > ignored/look; chmod +x ignored/look"],
    );
    let mut ralph = start(&scratch, 1, "look");
    let path =
        scratch.command("true").get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    ralph.env("PATH", format!("{}:{}", scratch.path("ignored").display(), path.display()));
    let run = Scratch::finish(&mut ralph);
    assert_eq!(run.code, Some(4), "{run:?}");
}

#[test]
fn a_history_that_was_rewritten_proves_nothing() {
    let scratch = project();
    let deed = "echo good > code; git commit -qa --amend -m other";
    is_refused(&scratch, deed, "does not descend from");
    // Nor do objects that stand for others.
    let scratch = project();
    let base = scratch.git(&["rev-parse", "HEAD"]);
    let deed = format!("{deed}; git replace --graft HEAD {}", base.trim());
    is_refused(&scratch, &deed, "does not descend from");
}

#[test]
fn what_is_written_into_the_proof_tree_is_gone_at_the_next_proof() {
    let deeds = [
        // The base's check is looked at beside this attempt; the claim ends that, and seals the tree.
        "true",
        "printf '#!/bin/sh\\nexit 0\\n' > \"$T/check\"; touch -r .gitignore \"$T/check\"",
        "git -C \"$T\" update-index --assume-unchanged check; printf '#!/bin/sh\\nexit 0\\n' > \"$T/check\"",
        "rm -r \"$T\"",
        "rm \"$T/.git\"; git init -q \"$T\"",
    ];
    let scratch = project();
    let deeds = deeds.map(|deed| deed.replace("$T", &tree(&scratch).display().to_string()));
    agent(&scratch, &deeds.each_ref().map(String::as_str));
    let run = run(&scratch, deeds.len(), "./check");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("code is bad"), "{run:?}");
    let prompt = fs::read_to_string(scratch.outside().join("home/prompt.5")).unwrap();
    assert!(prompt.contains("run in a clean checkout"), "{prompt}");
}

/// Attempts that do these things at the level `base`, with more flags.
pub(crate) fn at_base(scratch: &Scratch, deeds: &[&str], more: &[(&str, &str)], validate: &str) -> Run {
    agent(scratch, deeds);
    let mut ralph = scratch.ralph(&format!("prompt p.md {} --proof base --validate", deeds.len()));
    ralph.env("RALPH_PROOF_ON_PROTECTED", "refuse");
    Scratch::finish(ralph.arg(validate).envs(more.iter().copied()))
}

/// A project whose check is below `scripts/`, and its tests below `tests/`.
pub(crate) fn measured() -> Scratch {
    let scratch = project();
    executable(
        &scratch.path("scripts/check"),
        "#!/bin/sh\nfor test in tests/*; do sh $test || exit 1; done\n",
    );
    scratch.write("tests/good", "grep -q good code || { echo code is bad; exit 1; }\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "-m", "tests"]);
    scratch
}

#[test]
fn an_object_of_git_that_was_written_over_proves_nothing() {
    let scratch = measured();
    let deed = "id=$(git rev-parse HEAD:tests/good); file=.git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-)
        chmod +w $file; python3 -c \"import sys,zlib; open(sys.argv[1],'wb').write(zlib.compress(b'blob 5\\\\0true\\\\n'))\" $file";
    let run = at_base(&scratch, &[deed], &[], "scripts/check");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("does not have the content that its name says"), "{run:?}");
}

#[test]
fn a_proof_is_recorded_shown_and_made_again() {
    let scratch = measured();
    let deed = "echo good > code; echo 'true' >> tests/good; git commit -qam fix";
    let run = at_base(&scratch, &[deed], &[], "scripts/check");
    assert_eq!(run.code, Some(0), "{run:?}");
    let commit = scratch.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let json: serde_json::Value = serde_json::from_str(&scratch.run("proof --json").stdout).unwrap();
    assert_eq!((&json["event"], &json["commit"]), (&"proof".into(), &commit.as_str().into()), "{json}");
    let of: Vec<_> = json["runs"].as_array().unwrap().iter().map(|run| (&run["of"], &run["ok"])).collect();
    let expected = [("base", false), ("claim", true), ("claim_with_base", true)];
    let expected: Vec<_> = expected.map(|(of, ok)| (of.into(), ok.into())).into();
    assert_eq!(of, expected.iter().map(|(of, ok)| (of, ok)).collect::<Vec<_>>(), "{json}");
    assert_eq!(
        (&json["protected"][0]["path"], &json["protected"][0]["change"]),
        (&"tests/good".into(), &"grown".into())
    );
    let shown = scratch.run(&format!("proof {}", &commit[..7]));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for words in
        [&commit, "base's tests pass", "grown    tests/good", "passed   scripts/check at the claimed commit"]
    {
        assert!(shown.stdout.contains(words), "{words}: {shown:?}");
    }

    let again = scratch.run(&format!("proof --again {commit}"));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(
        again.stdout.contains("proven: clean tree ") && again.stdout.contains("base's tests pass"),
        "{again:?}"
    );
    let trees = fs::read_dir(trees(&scratch)).unwrap();
    assert!(
        !trees.map(|entry| entry.unwrap().file_name()).any(|name| name.to_string_lossy().contains("again"))
    );
    // Something outside of the commit has changed since.
    scratch.write("ralph.toml", "[proof]\nprotected = [\"code\"]\non_protected = \"refuse\"\n");
    let again = scratch.run("proof --again");
    assert_eq!(again.code, Some(4), "{again:?}");
    assert!(again.stderr.contains("another verdict"), "{again:?}");
    let other = scratch.run("proof nothing");
    assert!(other.code == Some(1) && other.stderr.contains("no proof of 'nothing' is kept"), "{other:?}");
}

#[test]
fn claims_of_tasks_and_branches_are_proven_as_well() {
    let scratch =
        tasks("[ $n = 1 ] || work; [ $n = 1 ] && echo more > more || git add -A; git commit -qm more; done_");
    add(&scratch, "task");
    let ended = scratch.run("run --all --no-verify --proof clean --validate true");
    ends(&scratch, &ended, 0, "complete");
    assert!(prompt(&scratch, 2).contains("not committed: more: commit"), "{}", prompt(&scratch, 2));
    assert_eq!(attempts(&scratch), 2);

    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    project.agent("if [ $RALPH_ITERATION = 1 ]; then work; echo > proof; else git add proof; git commit -qm proof; fi; end");
    let mut build = project.scratch.ralph("loop build --proof clean --validate");
    let run = Scratch::finish(build.arg("test -e proof"));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(project.home("prompt-one-2").contains("not committed: proof: commit"), "{run:?}");
    assert_eq!(project.calls("one"), 2);
    let listed = project.scratch.git(&["worktree", "list"]);
    assert!(
        listed.contains("/one ")
            && listed.contains("/ralph/proof/")
            && project.plan().contains("Status: done"),
        "{listed}"
    );
    let run = project.scratch.run("loop build");
    assert!(run.code == Some(0) && run.stdout.contains("done"), "{run:?}");
}

#[test]
fn a_command_that_needs_files_of_the_user_is_told_once_and_runs_in_place() {
    let scratch = project();
    scratch.write("node_modules/runner", "echo ran");
    executable(
        &scratch.path("check"),
        &format!("{CHECK}. ./node_modules/runner\n").replace("grep", ". ./node_modules/runner; grep"),
    );
    scratch.git(&["commit", "--quiet", "-am", "check"]);
    agent(&scratch, &["true", FIX]);
    let run = run(&scratch, 3, "./check");
    assert_eq!(run.code, Some(0), "{run:?}");
    let told = run.stderr.matches("claims are validated in place only").count();
    assert_eq!(told, 1, "{run:?}");
    let report = scratch.run("report").stdout;
    assert!(report.contains("proven: ./check, in place only"), "{report}");
}

#[test]
fn without_a_commit_the_command_runs_in_place() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    let run = run(&scratch, 2, "true");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("has no commit of git"), "{run:?}");
    assert!(!tree(&scratch).exists());
}

#[test]
fn a_proof_that_was_killed_is_made_by_the_next_start() {
    let scratch = project();
    agent(&scratch, &[FIX]);
    let at_work = scratch.outside().join("at-work");
    // It hangs at the claim, the first time.
    let validate =
        format!("./check || exit 1; test -e {0} && exit 0; touch {0}; sleep 600", at_work.display());
    let ralph = Started::quietly(&mut start(&scratch, 3, &validate));
    wait_for("the proof", || at_work.exists().then_some(()));
    drop(ralph);
    fs::write(scratch.path(".git/worktrees/prompt/index.lock"), "").unwrap();
    scratch.git(&["worktree", "lock", tree(&scratch).to_str().unwrap()]);
    let run = run(&scratch, 3, &validate);
    assert_eq!(run.code, Some(0), "{run:?}");
    let listed = scratch.git(&["worktree", "list", "--porcelain"]);
    assert!(listed.contains("detached") && !listed.contains("locked"), "{listed}");
}

#[test]
fn the_tree_of_the_first_look_is_removed_after_the_first_claim_or_with_the_loop() {
    let scratch = project();
    let put_away = trees(&scratch).join("prompt~gone");
    let wait = format!("until test -e {}; do sleep 0.02; done", put_away.display());
    let seen = scratch.outside().join("seen");
    let start = || {
        let mut ralph = scratch.ralph("prompt p.md 1 --proof base --validate");
        ralph.arg(format!("ls .. >> {}; ./check", seen.display()));
        ralph
    };
    let then_ends = "touch \"$HOME/waited\"; until test -e \"$HOME/end\"; do sleep 0.02; done";
    agent(&scratch, &[&format!("{wait}; {FIX}"), &format!("{wait}; {then_ends}")]);
    let run = Scratch::finish(&mut start());
    assert_eq!(run.code, Some(0), "{run:?}");
    // A claim that follows at once has its new tree first: new files are slow to make after many were removed.
    let seen = fs::read_to_string(&seen).unwrap();
    assert!(seen.contains("prompt~gone") && !put_away.exists(), "{seen}");

    let ralph = Started::quietly(&mut start());
    let waited = scratch.outside().join("home/waited");
    wait_for("the first look", || waited.exists().then_some(()));
    assert!(put_away.exists());
    send(ralph.pid(), Signal::TERM);
    fs::write(scratch.outside().join("home/end"), "").unwrap();
    let run = ralph.finish();
    assert!(!put_away.exists(), "{run:?}");
}

#[test]
fn proof_trees_are_removed_with_the_others() {
    let scratch = project();
    agent(&scratch, &[FIX]);
    assert_eq!(run(&scratch, 3, "./check").code, Some(0));
    let run = scratch.run("clean --worktrees");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stdout.contains(&format!("removed {}\n", tree(&scratch).display())), "{run:?}");
    let left = || {
        let entries = fs::read_dir(trees(&scratch)).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    assert_eq!(left(), ["~project"], "{run:?}");
    assert!(!scratch.git(&["worktree", "list"]).contains("proof"));
    // Of a loop that was killed in its first attempt.
    fs::create_dir(trees(&scratch).join("prompt~gone")).unwrap();
    let run = scratch.run("clean --worktrees prompt");
    assert_eq!((run.code, left()), (Some(0), vec!["~project".into()]), "{run:?}");
}

#[test]
fn tests_that_agents_do_not_get_find_work_that_was_made_for_the_others() {
    for is_ref in [false, true] {
        let scratch = project();
        executable(&scratch.path("check"), "#!/bin/sh\nfor test in tests/*; do sh $test || exit 1; done\n");
        scratch.write("tests/one", "grep -q good code || { echo code is bad; exit 1; }\n");
        scratch.git(&["add", "."]);
        scratch.git(&["commit", "--quiet", "-m", "tests"]);
        let hidden = "grep -q 'really' code || { echo the secret answer; echo '# pass 1'; echo '# fail 1'; exit 1; }\n";
        let held_out = if is_ref {
            scratch.git(&["checkout", "--quiet", "-b", "hidden"]);
            scratch.write("tests/two", hidden);
            scratch.git(&["add", "."]);
            scratch.git(&["commit", "--quiet", "-m", "hidden"]);
            scratch.git(&["checkout", "--quiet", "-"]);
            "hidden".to_owned()
        } else {
            let folder = scratch.outside().join("hidden");
            executable(&folder.join("tests/two"), hidden);
            folder.display().to_string()
        };
        agent(&scratch, &[FIX, "echo really good > code; git commit -qam real"]);
        let with =
            |value: &str| Scratch::finish(start(&scratch, 3, "./check").env("RALPH_PROOF_HELD_OUT", value));
        let run = with(&held_out);
        assert_eq!(run.code, Some(0), "{run:?}");
        let prompt = fs::read_to_string(scratch.outside().join("home/prompt.2")).unwrap();
        assert!(prompt.contains("1 test that you do not have failed"), "{prompt}");
        assert!(!prompt.contains("secret answer"), "{prompt}");
        assert!(scratch.run("report").stdout.contains("held-out tests pass"), "{run:?}");
        assert!(!tree(&scratch).join("tests/two").exists());
        let kept = Scratch::finish(scratch.command("grep").args(["-r", "secret answer", ".ralph"]));
        assert_eq!(kept.stdout, "");
        for (wrong, words) in [("no-such", "neither a folder"), ("tests", "is in the project")] {
            let run = with(wrong);
            assert!(run.code == Some(1) && run.stderr.contains(words), "{run:?}");
        }
    }
}

#[test]
fn a_proof_tree_sees_nothing_of_the_project_that_is_not_committed() {
    let scratch = project();
    scratch.write("node_modules/answer/index.js", "module.exports = 'good'\n");
    executable(
        &scratch.path("check"),
        "#!/bin/sh\n[ \"$(node -p \"try { require('answer') } catch { 'bad' }\")\" = good ] || exec grep good code\n",
    );
    scratch.git(&["commit", "--quiet", "-am", "check"]);
    agent(&scratch, &["true", FIX]);
    let run = run(&scratch, 2, "./check");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("claims are validated in place only"), "{run:?}");
}

#[test]
fn the_proof_trees_of_a_project_that_is_gone_are_removed_by_another() {
    let gone = project();
    agent(&gone, &[FIX]);
    assert_eq!(run(&gone, 3, "./check").code, Some(0));
    let here = Scratch::new();
    let clean = |ralph: &mut std::process::Command| {
        Scratch::finish(ralph.env("XDG_STATE_HOME", gone.outside().join("home/state")))
    };
    assert_eq!(clean(&mut here.ralph("clean --worktrees")).stdout, "no worktrees to clean\n");
    assert!(tree(&gone).exists());
    let trees = trees(&gone);
    fs::remove_dir_all(gone.root()).unwrap();
    let run = clean(&mut here.ralph("clean --worktrees"));
    assert!(run.stdout.contains("which is gone") && !trees.exists(), "{run:?}");
}

#[test]
fn git_in_the_tree_of_proofs_never_finds_the_users_repository() {
    let scratch = project();
    scratch.write("notes", "committed");
    scratch.git(&["add", "notes"]);
    scratch.git(&["commit", "--quiet", "--message", "notes"]);
    scratch.write("notes", "mine");
    agent(&scratch, &[FIX, "true"]);
    // Cut off from git, with what it has built: each start finds such a tree.
    for _ in 0..2 {
        let run = run(&scratch, 2, "./check && { rm -f .git 2>/dev/null; true; }");
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(scratch.read("notes"), "mine");
        assert_eq!(scratch.git(&["symbolic-ref", "--short", "HEAD"]).trim(), "main");
    }
}

#[test]
fn a_proof_that_takes_too_long_proves_nothing_and_names_the_missing_run() {
    let scratch = measured();
    let deed = "echo good > code; echo true >> tests/good; git commit -qam fix";
    // It hangs with the tests of the base.
    let validate = "scripts/check && { tail -1 tests/good | grep -qx true || sleep 600; }";
    let run = at_base(&scratch, &[deed], &[("RALPH_PROOF_LIMIT", "8s")], validate);
    assert_eq!(run.code, Some(4), "{run:?}");
    for words in ["did not end within 8s (proof.limit)", "at the claimed commit, with the base's version"] {
        assert!(run.stdout.contains(words), "{words}: {run:?}");
    }
    let shown = scratch.run("proof").stdout;
    assert!(shown.contains("refuted: ") && shown.contains("proof.limit"), "{shown}");
}
