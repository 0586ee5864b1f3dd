//! The shortest way through the whole program.

use crate::scratch::{Scratch, claude_says};

#[test]
fn a_loop_ends_when_the_agent_says_so() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("All done.\n<promise>COMPLETE</promise>"));
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("Exit Reason: completion signal detected"), "{run:?}");
    assert!(run.stdout.contains("Total Iterations: 1\n"), "{run:?}");
    assert!(run.stderr.contains("All done."), "{run:?}");
}
