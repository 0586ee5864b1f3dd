//! The programs outside of the project that the validation command runs.

use std::fs;

use crate::proofs::{at_base, measured};
use crate::scratch::{Scratch, executable};

#[test]
fn a_program_that_came_before_another_on_path_needs_a_second_voice_and_so_does_it_again() {
    let scratch = measured();
    let bin = scratch.outside().join("bin");
    executable(&scratch.path("scripts/check"), "#!/bin/sh\nset -e\nexec grep -rq good code\n");
    scratch.git(&["commit", "--quiet", "-am", "grep"]);
    let cheat = format!(
        "printf '#!/bin/sh\\n' > {0}/grep; chmod +x {0}/grep; echo more > code; git commit -qam cheat",
        bin.display()
    );
    let honest = format!("rm {}/grep; echo good > code; git commit -qam fix", bin.display());
    let run = at_base(&scratch, &[&cheat, &honest], &[], "scripts/check");
    let prompt = fs::read_to_string(scratch.outside().join("home/prompt.2")).unwrap_or_default();
    let named = format!("grep is {}/grep now", bin.display());
    assert!(prompt.contains(&named), "{prompt}: {run:?}");
    assert_eq!(run.code, Some(0), "{run:?}");

    // The record of the refused claim says what it was, so that the same verdict comes from the same state.
    let refused = scratch.git(&["rev-parse", "HEAD~1"]);
    let shown = Scratch::finish(scratch.ralph("proof --json").arg(refused.trim()));
    assert!(shown.stdout.contains("\"before\":{\"digest\":\""), "{shown:?}");
    executable(&bin.join("grep"), "#!/bin/sh\n");
    let mut again = scratch.ralph("proof --again");
    let again = Scratch::finish(again.arg(refused.trim()).env("RALPH_PROOF_ON_PROTECTED", "refuse"));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stdout.contains(&named), "{again:?}");
}

#[test]
fn programs_of_the_loops_start_are_recorded() {
    let scratch = measured();
    let run = at_base(&scratch, &["echo good > code; git commit -qam fix"], &[], "scripts/check");
    assert_eq!(run.code, Some(0), "{run:?}");
    let shown = Scratch::finish(&mut scratch.ralph("proof"));
    assert!(shown.stdout.contains("/bin/sh, ") || shown.stdout.contains("/bin/sh: as"), "{shown:?}");
}
