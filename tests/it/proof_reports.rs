//! Tests that a validation command counts only in reports.

use std::fs;

use crate::proofs::{at_base, measured};
use crate::scratch::{Scratch, executable};

/// Has a test for each line of the code, and prints nothing.
const CHECK: &str = "#!/bin/sh
mkdir -p ignored/a
{ echo '<testsuite>'; while read -r name; do echo \"<testcase name='$name'/>\"; done < code; echo '</testsuite>'; } > ignored/a/r.xml
grep -q good code
";

#[test]
fn tests_in_reports_are_counted_where_the_output_counts_none() {
    let scratch = measured();
    executable(&scratch.path("scripts/check"), CHECK);
    scratch.write("code", "bad\nworse\n");
    scratch.git(&["commit", "--quiet", "-am", "reports"]);
    let deeds = [
        "echo good > code; git commit -qam fewer",
        "printf 'good\\nworse\\nmore\\n' > code; git commit -qam more",
    ];
    let junit = [("RALPH_PROOF_JUNIT", "ignored/**/*.xml")];
    let run = at_base(&scratch, &deeds, &junit, "scripts/check");
    let prompt = fs::read_to_string(scratch.outside().join("home/prompt.2")).unwrap_or_default();
    assert!(prompt.contains("1 tests ran and 0 were skipped, where at"), "{prompt}: {run:?}");
    assert!(run.code == Some(0) && run.stdout.contains("3 tests (+1)"), "{run:?}");
    let shown = Scratch::finish(&mut scratch.ralph("proof --json"));
    assert!(shown.stdout.contains("JUnit: 3 tests ran, 0 failed, 0 skipped, in 1 report"), "{shown:?}");
}
