//! A repository cannot run programs, or send data away, by being cloned: `ralph trust`.

use std::fs;

use crate::policies::{agent, project};
use crate::receiver::{Answer, Receiver};
use crate::scratch::{Run, Scratch};
use crate::terminal::Terminal;

/// A project whose own settings have a hook that leaves a file.
fn with_hook() -> Scratch {
    let scratch = project("complete");
    scratch.write("ralph.toml", "[hooks]\non_end = 'echo ran >> ../ran'\n");
    scratch
}

fn runs(scratch: &Scratch) -> usize {
    fs::read_to_string(scratch.outside().join("ran")).unwrap_or_default().lines().count()
}

fn run(scratch: &Scratch) -> Run {
    let run = scratch.run("prompt p.md 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    run
}

#[test]
fn hooks_of_a_project_run_when_they_are_trusted_and_not_when_they_change() {
    let scratch = with_hook();
    let untrusted = run(&scratch);
    let said =
        "wants to run programs or to send data away (hooks.on_end); that is ignored until you trust it";
    assert!(untrusted.stderr.matches(said).count() == 1 && untrusted.stderr.contains("'ralph trust'"));
    assert_eq!(runs(&scratch), 0);

    let asked = scratch.run("trust");
    assert!(asked.code == Some(1) && asked.stderr.contains("'ralph trust --yes'"), "{asked:?}");
    assert!(asked.stdout.contains("hooks.on_end = echo ran >> ../ran  (ralph.toml line 2)"), "{asked:?}");
    let trusted = scratch.run("trust --yes");
    assert!(trusted.code == Some(0) && trusted.stdout.contains("trusted: "), "{trusted:?}");
    assert!(!run(&scratch).stderr.contains("warning"));
    assert_eq!(runs(&scratch), 1);
    assert!(scratch.run("trust").stdout.contains("this is trusted already"));
    let list = scratch.run("trust --list");
    assert!(list.stdout.contains("/project  ") && list.stdout.contains("hooks.on_end"), "{list:?}");

    scratch.write("ralph.toml", "[hooks]\non_end = 'echo other >> ../ran'\n");
    assert!(run(&scratch).stderr.contains(said));
    assert_eq!(runs(&scratch), 1);
    // Settings that need no trust may change.
    scratch
        .write("ralph.toml", "# A word\n[loop]\nmax_retries = 1\n[hooks]\non_end = 'echo ran >> ../ran'\n");
    assert!(!run(&scratch).stderr.contains("warning"));
    assert_eq!(runs(&scratch), 2);

    assert!(scratch.run("trust --remove").stdout.contains("no longer trusted"));
    assert!(scratch.run("trust --remove").stdout.contains("was not trusted"));
    assert!(run(&scratch).stderr.contains(said));
    assert_eq!((runs(&scratch), &*scratch.run("trust --list").stdout), (2, "no project is trusted\n"));
}

#[test]
fn a_project_sends_nothing_away_by_itself() {
    let scratch = project("complete");
    let receiver = Receiver::start(Answer::Status(200));
    let url = receiver.url("/hush");
    for (file, text) in [
        ("ralph.toml", format!("[notify]\nwebhook = '{url}'\ncommand = 'echo ran >> ../ran'\n")),
        (".ralph/config", format!("NOTIFY_WEBHOOK='{url}'\nNOTIFY_COMMAND='echo ran >> ../ran'\n")),
        (".ralph.toml", format!("[notify]\nwebhook = '{url}'\ncommand = 'echo ran >> ../ran'\n")),
    ] {
        scratch.write(file, text);
        let untrusted = run(&scratch);
        assert!(untrusted.stderr.contains("(notify.command, notify.webhook)"), "{file}: {untrusted:?}");
        assert_eq!((runs(&scratch), receiver.requests().len()), (0, 0), "{file}");
        let shown = scratch.run("trust");
        assert!(shown.stdout.contains("127.0.0.1, …") && !shown.stdout.contains("hush"), "{shown:?}");
        fs::remove_file(scratch.path(file)).unwrap();
    }
    // What the user says is the user's, and takes the place of what the project says.
    scratch.write("ralph.toml", format!("[notify]\nwebhook = '{}'\n", receiver.url("/theirs")));
    let mut command = scratch.ralph("prompt p.md 1");
    let own = Scratch::finish(command.env("RALPH_NOTIFY_WEBHOOK", receiver.url("/mine")));
    assert!(own.code == Some(0) && !own.stderr.contains("warning"), "{own:?}");
    assert_eq!(receiver.requests()[0].path, "/mine");
}

#[test]
fn a_setting_of_the_users_holds_where_that_of_the_project_is_not_trusted() {
    let scratch = with_hook();
    let folder = scratch.outside().join("home/config/ralph");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("ralph.toml"), "[hooks]\non_end = 'echo mine > ../mine'\n").unwrap();
    run(&scratch);
    assert_eq!(
        (runs(&scratch), fs::read_to_string(scratch.outside().join("mine")).unwrap()),
        (0, "mine\n".into())
    );
}

#[test]
fn a_person_at_the_terminal_is_asked() {
    for (answer, said, ran) in [("n\r", "not trusted", 0), ("y\r", "trusted: ", 1)] {
        let scratch = with_hook();
        let mut terminal = Terminal::start(scratch.ralph("trust").env("TERM", "xterm"), 24, 100);
        terminal.wait_for("the question", |screen| screen.contains("Trust this? [y/N]"));
        terminal.press(answer);
        let end = terminal.end();
        assert!(end.code == Some(0) && end.history.contains(said), "{}", end.history);
        run(&scratch);
        assert_eq!(runs(&scratch), ran);
    }
}

#[test]
fn an_agent_cannot_trust_its_project() {
    let scratch = with_hook();
    let ralph = env!("CARGO_BIN_EXE_ralph");
    agent(&scratch, &format!("{ralph} trust --yes > ../said 2>&1; complete"));
    run(&scratch);
    let said = fs::read_to_string(scratch.outside().join("said")).unwrap();
    assert!(said.contains("'ralph trust' is not for agents at work"), "{said}");
    assert_eq!(runs(&scratch), 0);
}

#[test]
fn a_work_tree_has_the_trust_of_its_repository_and_a_copy_cannot_claim_it() {
    let scratch = with_hook();
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "--message", "hook"]);
    assert_eq!(scratch.run("trust --yes").code, Some(0));
    scratch.git(&["worktree", "add", "--quiet", "../tree"]);
    let tree = scratch.outside().join("tree");
    let in_folder = |folder: &std::path::Path| {
        let run = Scratch::finish(scratch.ralph("prompt p.md 1").current_dir(folder));
        assert_eq!(run.code, Some(0), "{run:?}");
        run
    };
    assert!(!in_folder(&tree).stderr.contains("warning"));
    assert_eq!(runs(&scratch), 1);

    // A copy that says that it is the same work tree.
    let copy = scratch.outside().join("copy");
    let copied = scratch.command("cp").arg("-r").args([&tree, &copy]).status().unwrap();
    assert!(copied.success());
    assert!(in_folder(&copy).stderr.contains("wants to run programs"));
    assert_eq!(runs(&scratch), 1);
}
