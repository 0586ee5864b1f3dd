//! Proofs where the repository is unusual, or something goes wrong on the way.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::scratch::{Run, Scratch, Started, claude_says, executable, finish, wait_for};

const FIX: &str = "echo good > code; git commit -qam fix";

/// A project with a check that wants its code to be good; it may say what else it wants.
fn project(more: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("code", "bad\n");
    executable(
        &scratch.path("check"),
        &format!("#!/bin/sh\n{more}\ngrep -q good code || {{ echo bad; exit 1; }}\n"),
    );
    commit(&scratch);
    agent(&scratch, FIX);
    scratch
}

fn commit(scratch: &Scratch) {
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "-m", "begin"]);
}

fn agent(scratch: &Scratch, deed: &str) {
    scratch.agent("claude", &format!("{deed}\n{}", claude_says("<promise>COMPLETE</promise>")));
}

const LOOP: &str = "prompt p.md 2 --proof base --validate ./check";

#[track_caller]
fn is_proven(scratch: &Scratch) -> Run {
    let run = scratch.run(LOOP);
    assert!(run.code == Some(0) && run.stdout.contains("Proof: proven: clean tree "), "{run:?}");
    assert_eq!(scratch.state()["iteration"].as_integer(), Some(1), "at once: {run:?}");
    run
}

#[test]
fn a_sparse_checkout_is_proven_with_all_its_files() {
    let scratch = project("test -e far/away || exit 2");
    scratch.write("far/away", "");
    scratch.write("near/by", "");
    commit(&scratch);
    scratch.git(&["sparse-checkout", "set", "near"]);
    assert!(!scratch.path("far").exists());
    is_proven(&scratch);
    assert!(!scratch.path("far").exists());
}

#[test]
fn submodules_are_laid_out_as_well() {
    let scratch = project("test -e lib/file || exit 2");
    let other = scratch.outside().join("lib").display().to_string();
    let made =
        format!("git init -q '{other}' && cd '{other}' && echo > file && git add . && git commit -qm lib");
    assert_eq!(Scratch::finish(scratch.command("bash").args(["-c", &made])).code, Some(0));
    scratch.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &other, "lib"]);
    commit(&scratch);
    is_proven(&scratch);
}

#[test]
fn what_a_partial_clone_lacks_is_fetched() {
    let scratch = project("test -e old || exit 2");
    scratch.write("old", "there\n");
    commit(&scratch);
    let script = "git clone -q --bare . ../origin && git -C ../origin config uploadpack.allowFilter true &&
        git -C ../origin config uploadpack.allowAnySHA1InWant true && rm -rf .git code old &&
        git clone -q --no-checkout --filter=blob:none \"file://$(realpath ../origin)\" ../new && mv ../new/.git . &&
        git checkout -q -f";
    let made = Scratch::finish(scratch.command("bash").args(["-c", script]));
    assert_eq!(made.code, Some(0), "{made:?}");
    is_proven(&scratch);
}

/// As with git-crypt and LFS, the repository has other bytes than the checkout.
fn filtered(scratch: &Scratch, scope: &str) {
    for (name, value) in
        [("clean", "sed s/shown/kept/"), ("smudge", "sed s/kept/shown/"), ("required", "true")]
    {
        scratch.git(&["config", scope, &format!("filter.crypt.{name}"), value]);
    }
    scratch.write(".gitattributes", "data filter=crypt\n");
    scratch.write("data", "shown\n");
    commit(scratch);
}

#[test]
fn filters_of_the_user_apply_and_those_of_the_repository_are_told_as_missing() {
    let wants_data = "grep -q shown data || { echo no data; exit 2; }";
    let scratch = project(wants_data);
    filtered(&scratch, "--global");
    is_proven(&scratch);

    let scratch = project(wants_data);
    filtered(&scratch, "--local");
    let run = scratch.run(LOOP);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("(no data; filters of the repository's own configuration"), "{run:?}");
    assert!(scratch.run("report").stdout.contains("in place only"), "{run:?}");

    // One that the agent defines is no reason to look in place.
    let scratch = project("");
    let crypt =
        "git config filter.crypt.smudge 'sed s/bad/good/'; git config filter.crypt.clean 'sed s/good/bad/'";
    agent(
        &scratch,
        &format!("{crypt}; echo 'code filter=crypt' > .git/info/attributes; rm code; git checkout -q code"),
    );
    let run = scratch.run(LOOP);
    assert!(run.code == Some(4) && run.stdout.contains("in a clean tree failed"), "{run:?}");
}

#[test]
fn a_bare_repository_is_told_and_a_work_tree_of_it_is_proven() {
    let scratch = project("");
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let bash = |script: String| Scratch::finish(scratch.command("bash").args(["-e", "-c", &script]));
    let run =
        bash(format!("git clone -q --bare . ../bare; cp p.md ../bare; cd ../bare; exec '{ralph}' {LOOP}"));
    assert!(run.code == Some(1) && run.stderr.contains("'git worktree add ../work'"), "{run:?}");
    let run = bash(format!(
        "git -C ../bare worktree add -q ../work; cp p.md ../work; cd ../work; exec '{ralph}' {LOOP}"
    ));
    assert!(run.code == Some(0) && run.stdout.contains("Proof: proven: clean tree "), "{run:?}");
}

#[test]
fn nothing_is_measured_against_a_base_that_is_gone() {
    let scratch = project("");
    let base = scratch.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let object = format!(".git/objects/{}/{}", &base[..2], &base[2..]);
    agent(&scratch, &format!("{FIX}; rm -f {object}"));
    let run = scratch.run("prompt p.md 1 --proof base --validate ./check");
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(run.stderr.contains(&format!("does not have commit {}", &base[..10])), "{run:?}");
}

#[test]
fn a_proof_that_is_interrupted_leaves_nothing_and_is_made_by_the_next_start() {
    let scratch = project("[ -e \"$RALPH_TEST_GO\" ] || { touch \"$RALPH_TEST_AT\"; sleep 600; }");
    let [at, go] = ["at", "go"].map(|name| scratch.outside().join(name));
    // The first look at the base is not what waits.
    let check = fs::read_to_string(scratch.path("check")).unwrap();
    let check = check
        .replace("$RALPH_TEST_GO", &go.display().to_string())
        .replace("$RALPH_TEST_AT", &at.display().to_string())
        .replace("#!/bin/sh\n", "#!/bin/sh\ngrep -q good code || { echo bad; exit 1; }\n");
    executable(&scratch.path("check"), &check);
    commit(&scratch);
    let ralph = Started::new(&scratch, LOOP);
    wait_for("the proof", || at.exists().then_some(()));
    scratch.ask_to_stop(ralph.pid(), Signal::INT);
    scratch.ask_to_stop(ralph.pid(), Signal::INT);
    let run = ralph.finish();
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(run.elapsed.as_secs() < 30, "{run:?}");
    scratch.assert_nothing_left();
    assert!(!scratch.git(&["worktree", "list", "--porcelain"]).contains("\nlocked"));
    fs::write(go, "").unwrap();
    let run = scratch.run("resume");
    assert!(run.code == Some(0) && run.stdout.contains("Proof: proven: clean tree "), "{run:?}");
}

#[test]
fn an_output_without_end_is_cut_and_counts_as_any_other() {
    let scratch = project("yes 'a line of output that says nothing at all' | head -c 300000000");
    is_proven(&scratch);
    let runs = scratch.path(".ralph/runs");
    let size = Scratch::finish(scratch.command("du").arg("-sk").arg(runs)).stdout;
    let size: u64 = size.split_whitespace().next().unwrap().parse().unwrap();
    assert!(size < 4096, "{size} KiB");
}

#[test]
fn a_checkout_that_finds_no_room_proves_nothing_and_is_made_again() {
    let scratch = project("");
    scratch.write("large", vec![b'x'; 3_000_000]);
    commit(&scratch);
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let mut shell: Command = scratch.command("bash");
    shell.args([
        "-c",
        &format!(
            "trap '' XFSZ; ulimit -f 1000; exec '{ralph}' prompt p.md 1 --proof base --validate ./check"
        ),
    ]);
    let run = finish(shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("git checkout --quiet, ") && run.stdout.contains("/ralph/proof/"), "{run:?}");
    agent(&scratch, "true");
    let run = scratch.run(LOOP);
    assert!(run.code == Some(0) && run.stdout.contains("Proof: proven: clean tree "), "{run:?}");
}

#[test]
fn where_room_is_short_the_tree_of_the_first_look_makes_room_at_once() {
    const INSIDE: &str = r#"mkdir -p "$1" && mount -t tmpfs -o size=24m tmpfs "$1" && shift && exec "$@""#;
    // One tree with what is built in it has room there, two do not.
    let scratch = project("head -c 8000000 /dev/zero > built && touch \"$RAN\" || exit 2");
    scratch.write("large", vec![b'x'; 6_000_000]);
    scratch.write(".gitignore", "built\n");
    commit(&scratch);
    let ran = scratch.outside().join("ran");
    agent(&scratch, &format!("until test -e {}; do sleep 0.02; done; {FIX}", ran.display()));
    let mut inside = scratch.container();
    inside.args(["--mount", "sh", "-c", INSIDE, "sh"]).arg(scratch.home().join("state/ralph/proof"));
    inside.arg(env!("CARGO_BIN_EXE_ralph")).args(LOOP.split_whitespace()).env("RAN", &ran);
    let run = Scratch::finish(&mut inside);
    assert!(run.code == Some(0) && run.stdout.contains("Proof: proven: clean tree "), "{run:?}");
    assert_eq!(scratch.state()["iteration"].as_integer(), Some(1), "at once: {run:?}");
}
