//! Comments of the user on what a loop has changed: `ralph diff --comment` and `ralph note --file`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::scratch::{Run, Scratch, Started, executable, wait_for};

/// The files that the first iteration changes.
const WORK: &str = "printf 'one\\nTWO\\nthree\\n' > kept; mkdir -p src; printf 'x' > \"src/a \\\"é.rs\"; rm gone; \
                    printf 'a\\0b' > picture; git mv old new; git add -A .; git commit -qm work";

/// A project whose agent keeps its prompts as `../prompt.N`; the first iteration commits something. The loop `prompt` has ended.
fn worked() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("kept", "one\ntwo\nthree\n");
    scratch.write("gone", "first\nsecond\n");
    scratch.write("old", "moved\n");
    scratch.git(&["add", "-A", "."]);
    scratch.git(&["commit", "-qm", "before"]);
    let count = "n=$(ls .. | grep -c '^prompt'); cat > ../prompt.$((n + 1))";
    let works = format!("if [ $n = 0 ]; then {WORK}; fi");
    scratch.agent("claude", &format!("{count}; {works}; say '<promise>COMPLETE</promise>'; result"));
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    scratch
}

fn prompt(scratch: &Scratch, number: usize) -> String {
    fs::read_to_string(scratch.outside().join(format!("prompt.{number}"))).unwrap()
}

/// Runs `ralph diff` with an editor that is this shell script; `$1` is the file.
fn edited(scratch: &Scratch, args: &str, script: &str) -> Run {
    let editor = scratch.outside().join("an editor");
    executable(&editor, &format!("#!/bin/sh\n{script}\n"));
    let command = format!("'{}' --wait", editor.display());
    let mut ralph = scratch.ralph(&format!("diff {args}"));
    ralph.env("EDITOR", command).env("TMPDIR", scratch.outside());
    Scratch::finish(&mut ralph)
}

/// The files that editors have left.
fn drafts(scratch: &Scratch) -> Vec<String> {
    let names = fs::read_dir(scratch.outside()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "diff")).collect()
}

#[test]
fn comments_on_a_diff_are_in_the_next_prompt_with_file_line_and_code() {
    let scratch = worked();
    // Whatever the user's settings are.
    for (key, value) in [("diff.noprefix", "true"), ("color.ui", "always"), ("diff.external", "false")] {
        scratch.git(&["config", key, value]);
    }
    let script = "test \"$1\" = --wait || exit 9\n\
                  sed -i -e '1i #> Mind the style.' -e '/^+TWO/a #> Why capitals?\\n#> Please not.' -e '/^-second/a #> Keep this.' \
                  -e '/^+x/a #> An end is missing.' -e '/^Binary/a #> No pictures.' -e '/^rename to/a #> Why?' \"$2\"";
    let run = edited(&scratch, "prompt --comment", script);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{run:?}");
    assert_eq!(run.stdout, "6 comments noted for the next prompt of prompt\n");
    assert!(drafts(&scratch).is_empty());
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let (_, notes) = prompt(&scratch, 2)
        .split_once("## Notes from the user\n\n")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    for expected in [
        "- Mind the style.\n",
        "- kept, line 2: Why capitals?\n  Please not.\n  \n        1   one\n        2 - two\n      → 2 + TWO\n        3   three\n",
        "- gone, line 2 before the change, which was removed: Keep this.\n  \n        1 - first\n      → 2 - second\n",
        "- src/a \"é.rs, line 1: An end is missing.\n  \n      → 1 + x\n",
        "- picture: No pictures.\n",
        "- new: Why?\n",
    ] {
        assert!(notes.contains(expected), "{expected}\n{notes}");
    }
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    assert!(!prompt(&scratch, 3).contains("capitals"), "once");
}

#[test]
fn a_running_loop_gets_comments_on_what_is_not_committed() {
    let scratch = worked();
    let agent = "cat > ../second; printf 'one\\n2\\nthree\\n' > kept; touch ../changed; until test -e ../go; do sleep 0.05; done";
    scratch
        .agent("claude", &format!("if test -e ../go; then cat > ../third; else {agent}; fi; say hi; result"));
    let ralph = Started::new(&scratch, "prompt p.md 2");
    wait_for("its work", || scratch.outside().join("changed").exists().then_some(()));
    let run = edited(&scratch, "prompt --comment --json", "sed -i '/^+2/a #> A word, please.' \"$2\"");
    assert_eq!(run.code, Some(0), "{run:?}");
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    let comment = &told["comments"][0];
    assert_eq!(
        (&told["loop"], &comment["file"], &comment["line"]),
        (&json!("prompt"), &json!("kept"), &json!(2))
    );
    assert_eq!((&comment["text"], &comment["is_removed"]), (&json!("A word, please."), &json!(false)));
    let meant = json!({ "number": 2, "sign": "+", "text": "2", "is_meant": true });
    assert!(comment["code"].as_array().unwrap().contains(&meant), "{comment}");
    fs::write(scratch.outside().join("go"), "").unwrap();
    assert_eq!(ralph.finish().code, Some(0));
    let third = fs::read_to_string(scratch.outside().join("third")).unwrap();
    assert!(third.contains("- kept, line 2: A word, please.\n") && third.contains("→ 2 + 2\n"), "{third}");
}

#[test]
fn nothing_is_sent_and_nothing_is_lost_if_the_editor_fails_or_nothing_was_written() {
    let scratch = worked();
    let run = edited(&scratch, "prompt --comment", "true");
    assert_eq!((run.code, &*run.stdout), (Some(0), "no comments: nothing was sent\n"), "{run:?}");
    let run = edited(&scratch, "prompt --comment", "exit 3");
    assert!(run.code == Some(1) && run.stderr.contains("failed (exit status: 3)"), "{run:?}");
    assert!(!run.stderr.contains("what you wrote") && drafts(&scratch).is_empty(), "{run:?}");
    let run = edited(&scratch, "prompt --comment", "echo '#> mine' >> \"$2\"; exit 3");
    let kept = drafts(&scratch);
    assert!(
        run.code == Some(1)
            && run
                .stderr
                .contains(&format!("what you wrote is in {}", scratch.outside().join(&kept[0]).display())),
        "{run:?}"
    );
    assert!(fs::read_to_string(scratch.outside().join(&kept[0])).unwrap().ends_with("#> mine\n"));
    let run = edited(&scratch, "prompt --comment", "rm \"$2\"");
    assert!(run.code == Some(1) && run.stderr.contains("comments.diff: nothing was sent"), "{run:?}");
    let large = "{ printf '#> '; head -c 200000 /dev/zero | tr '\\0' y; echo; } >> \"$2\"";
    let run = edited(&scratch, "prompt --comment", large);
    assert!(run.code == Some(1) && run.stderr.contains("a note of 200 KB is too large"), "{run:?}");
    assert_eq!(drafts(&scratch).len(), 2, "{run:?}");
    let run =
        edited(&scratch, "prompt --comment", "sed -i -e 's/^+TWO/+my own/' -e '/^-two/a #> why' \"$2\"");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("1 line in the diff without '#>' was not sent"), "{run:?}");
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let second = prompt(&scratch, 2);
    assert!(
        second.contains("- kept, line 2 before the change, which was removed: why\n")
            && !second.contains("my own"),
        "{second}"
    );
}

#[test]
fn comments_need_an_editor_and_a_loop() {
    let scratch = worked();
    let refused = |args: &str, why: &str| {
        let run = Scratch::finish(scratch.ralph(args).env_remove("EDITOR").env_remove("VISUAL"));
        assert!(run.code == Some(1) && run.stderr.contains(why), "{args}: {run:?}");
    };
    refused("diff prompt --comment", "no editor can be opened, since this is no terminal: set EDITOR");
    refused("diff prompt --comment --stat", "cannot be used with");
    refused("diff prompt --json", "--comment");
    refused("diff nothing --comment", "'ralph history' lists");
    let run = edited(&scratch, "prompt --comment", "kill -9 $$");
    assert!(run.code == Some(1) && run.stderr.contains("failed (exit status: 137)"), "{run:?}");
    let run = Scratch::finish(scratch.ralph("diff prompt --comment").env("VISUAL", "no-such-editor"));
    assert!(
        run.code == Some(1) && run.stderr.contains("the editor 'no-such-editor' failed (exit status: 127)"),
        "{run:?}"
    );
}

#[test]
fn a_note_about_a_line() {
    let scratch = worked();
    let note = |place: &str| Scratch::finish(scratch.ralph("note prompt Why? --file").arg(place));
    let run = note("kept:3");
    assert_eq!(
        (run.code, &*run.stdout),
        (Some(0), "noted for the next prompt of prompt, when it goes on\n"),
        "{run:?}"
    );
    assert_eq!(note("src/a \"é.rs:1").code, Some(0));
    let absolute = format!("{}:1", scratch.path("new").display());
    assert_eq!(note(&absolute).code, Some(0));
    fs::write(scratch.outside().join("secret"), "x\n").unwrap();
    std::os::unix::fs::symlink("../secret", scratch.path("link")).unwrap();
    for (place, why) in [
        ("kept:4", "kept has 3 lines"),
        ("kept:0", "give a file and the number of a line"),
        ("kept", "give a file and the number of a line"),
        (":3", "give a file and the number of a line"),
        ("kep:1", "did you mean 'kept'?"),
        ("src:1", "src"),
        ("../secret:1", "is outside of the loop's work tree"),
        ("link:1", "is outside of the loop's work tree"),
        ("picture:1", "picture is no text"),
    ] {
        let run = note(place);
        assert!(run.code == Some(1) && run.stderr.contains(why), "{place}: {run:?}");
    }
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let second = prompt(&scratch, 2);
    let notes = "## Notes from the user\n\n\
                 - kept, line 3: Why?\n  \n        1   one\n        2   TWO\n      → 3   three\n\
                 - src/a \"é.rs, line 1: Why?\n  \n      → 1   x\n\
                 - new, line 1: Why?\n  \n      → 1   moved\n";
    assert!(second.ends_with(notes), "{second}");
}

#[test]
fn what_a_killed_ralph_has_left_in_the_editor_is_removed_or_named() {
    let scratch = worked();
    for (writes, is_kept) in [("true", false), ("sed -i '1i #> Mine.' \"$2\"", true)] {
        let editor = scratch.outside().join("an editor");
        let opened = scratch.outside().join("opened");
        executable(
            &editor,
            &format!(
                "#!/bin/sh\n{writes}\necho $$ > '{0}.new'; mv '{0}.new' '{0}'; exec cat '{0}.end'\n",
                opened.display()
            ),
        );
        // The editor ends when this does, also where the test fails.
        let end = scratch.outside().join("opened.end");
        let _ = fs::remove_file(&end);
        assert!(std::process::Command::new("mkfifo").arg(&end).status().unwrap().success());
        let held = fs::OpenOptions::new().read(true).write(true).open(&end).unwrap();
        let mut ralph = scratch.ralph("diff prompt --comment");
        ralph.env("EDITOR", format!("'{}' --wait", editor.display())).env("TMPDIR", scratch.outside());
        let mut ralph = ralph.spawn().unwrap();
        let editing = wait_for("the editor", || fs::read_to_string(&opened).ok());
        ralph.kill().unwrap();
        ralph.wait().unwrap();
        let ended = std::process::Command::new("kill").arg(editing.trim()).status().unwrap();
        assert!(ended.success());
        drop(held);
        fs::remove_file(&opened).unwrap();
        assert_eq!(drafts(&scratch).len(), 1, "what was killed has left it");
        let run = edited(&scratch, "prompt --comment", "true");
        assert_eq!(run.code, Some(0), "{run:?}");
        let left = drafts(&scratch);
        assert_eq!(left.len(), usize::from(is_kept), "{run:?}");
        for name in left {
            let path = scratch.outside().join(&name);
            assert!(
                run.stderr.contains(&format!("was killed: what was written in it is in {}", path.display())),
                "{run:?}"
            );
            assert!(fs::read_to_string(&path).unwrap().contains("#> Mine."));
            // It is said once, and stays.
            let run = edited(&scratch, "prompt --comment", "true");
            assert!(!run.stderr.contains("was killed") && path.exists(), "{run:?}");
        }
    }
}
