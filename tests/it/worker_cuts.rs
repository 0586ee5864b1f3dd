//! A monitor of a worker that is killed right before or after something it has tmux do. A `tmux` of the test's own does that: it is
//! between the monitor and the real one, and kills its parent once.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::scratch::finish;
use crate::workers::Tmux;

/// Takes a prompt as claude does, keeps it, and is at work until there is a file `go`.
const AGENT: &str = r"
printf '❯ '; read -r line; echo $line >>got
printf '● Working.\n❯ \n'; until [ -e go ]; do sleep 0.05; done; exit 0
";

const SPAWN: &str = "spawn --name w --prompt-file prompt.md -n 1 -- claude";

impl Tmux {
    /// With a `tmux` that kills its parent at its call number `count` that has this word, before it does it or afterwards.
    fn cut(word: &str, count: u32, is_after: bool) -> Self {
        Self::between(|real, calls| {
            format!(
                "case \" $* \" in *{word}*) echo >>'{calls}'
                 if [ $(wc -l <'{calls}') = {count} ]; then
                   if {is_after}; then {real} \"$@\"; fi
                   kill -9 $PPID; exit 1
                 fi ;;
                 esac
                 exec {real} \"$@\""
            )
        })
    }

    /// With a `tmux` of the test's own, a script that gets the path of the real one and that of a file.
    fn between(script: impl Fn(&str, &str) -> String) -> Self {
        let tmux = Self::new();
        tmux.scratch.write("prompt.md", "Do the thing that is to be done.");
        tmux.scratch.agent("claude", AGENT);
        let found = Command::new("bash").args(["-c", "command -v tmux"]).output().unwrap();
        let real = String::from_utf8(found.stdout).unwrap();
        let calls = tmux.scratch.outside().join("calls");
        tmux.scratch.agent("tmux", &script(real.trim(), &calls.display().to_string()));
        tmux
    }

    /// The next one ends well, and the agent gets its prompt once.
    fn assert_goes_on(&self, moment: &str) {
        let first = self.run(SPAWN);
        assert_eq!(first.code, None, "{moment}: killed: {first:?}");
        self.scratch.write("go", "");
        let run = self.run("run w");
        assert_eq!(run.code, Some(0), "{moment}: {run:?}");
        let got = self.scratch.read("got");
        assert_eq!(got, "Do the thing that is to be done.\n", "{moment}: {run:?}");
        let log = self.log();
        assert_eq!(
            log.iter().filter(|line| line.starts_with("[END] iteration 1 exit=0")).count(),
            1,
            "{log:?}"
        );
        self.assert_nothing_left();
    }
}

#[test]
fn an_agent_gets_its_prompt_once_wherever_its_monitor_is_killed() {
    for (count, is_after, moment) in [
        (1, false, "before the paste"),
        (1, true, "after the paste"),
        (2, false, "before Enter"),
        (2, true, "after Enter"),
    ] {
        Tmux::cut("paste-buffer", count, is_after).assert_goes_on(moment);
    }
}

#[test]
fn where_a_screen_does_not_tell_whether_it_has_the_prompt_the_attempt_fails() {
    let tmux = Tmux::cut("paste-buffer", 2, false);
    // What it shows is an echo, before Enter as afterwards.
    tmux.scratch.agent("echoes", "printf 'ready>'; read -r line; echo $line >>got; sleep 600");
    let first = tmux.run("spawn --name w --prompt-file prompt.md -n 1 --ready-pattern ready> -- echoes");
    assert_eq!(first.code, None, "{first:?}");
    let run = tmux.run("run w");
    assert!(run.stderr.contains("does not show whether it has its prompt: ralph was killed"), "{run:?}");
    assert_eq!(tmux.state()["total_failures"], 1, "{run:?}");
    tmux.assert_nothing_left();
}

#[test]
fn panes_that_a_killed_monitor_has_not_written_down_are_closed() {
    for is_after in [false, true] {
        Tmux::cut("new-session", 1, is_after).assert_goes_on("a pane is made");
    }
    for verb in ["kill w", "clean w"] {
        let tmux = Tmux::cut("new-session", 1, true);
        let first = tmux.run(SPAWN);
        assert_eq!(first.code, None, "{first:?}");
        let run = tmux.run(verb);
        assert_eq!(run.code, Some(0), "{verb}: {run:?}");
        tmux.assert_nothing_left();
    }
}

#[test]
fn a_pane_of_a_loop_whose_end_only_the_log_has_is_closed_by_resume() {
    let tmux = Tmux::cut("kill-pane", 1, false);
    tmux.scratch.write("go", "");
    let first = tmux.run(SPAWN);
    assert_eq!(first.code, None, "{first:?}");
    let run = tmux.run("resume w");
    assert!(run.code == Some(1) && run.stderr.contains("has come to its end (limit)"), "{run:?}");
    tmux.assert_nothing_left();
}

#[test]
fn a_pane_whose_end_is_booked_is_closed_by_whoever_comes_next() {
    for verb in ["kill w", "clean w", "spawn --replace --name w --prompt-file prompt.md -n 1 -- claude"] {
        let tmux = Tmux::cut("kill-pane", 1, false);
        tmux.scratch.write("go", "");
        let first = tmux.run(SPAWN);
        assert_eq!(first.code, None, "{first:?}");
        let doctor = tmux.run("doctor").stdout;
        assert!(
            doctor.contains("nothing runs in 1 pane any more: w") && doctor.contains("'ralph kill w'"),
            "{doctor}"
        );
        let run = finish(tmux.ralph(verb).spawn().unwrap());
        assert_eq!(run.code, Some(0), "{verb}: {run:?}");
        tmux.assert_nothing_left();
    }
}

#[test]
fn a_wrapper_that_ends_before_it_listens_is_not_waited_for() {
    let tmux = Tmux::between(|real, _| {
        format!(
            r#"words=(); for word; do words+=("${{word/#__supervise/__gone}}"); done; {real} "${{words[@]}}""#
        )
    });
    let began = Instant::now();
    let run = tmux.run(SPAWN);
    assert!(run.stderr.contains("before it could take its prompt; it showed: "), "{run:?}");
    assert!(began.elapsed() < Duration::from_secs(25), "30 s are for one that may still come: {run:?}");
    assert!(!tmux.folder().join("launch").exists(), "it has secrets");
    tmux.assert_nothing_left();
}
