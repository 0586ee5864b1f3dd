//! Changes of the work that its tests should notice.

use std::fs;

use crate::proofs::{at_base, measured, tree};
use crate::scratch::{Scratch, executable};

const SOURCE: &str = "value=$((1 + 2))\nunused=$((4 + 5))\n";

#[test]
fn changes_of_the_work_that_no_test_notices_are_told_and_nothing_follows() {
    let scratch = measured();
    executable(&scratch.path("tests/sum"), "[ ! -e sum.sh ] || { . ./sum.sh; [ $value = 3 ]; }\n");
    scratch.git(&["add", "tests"]);
    scratch.git(&["commit", "--quiet", "-m", "sum"]);
    let deed = "echo good > code; printf 'value=$((1 + 2))\\nunused=$((4 + 5))\\n' > sum.sh; git add .; git commit -qm fix";
    let run = at_base(&scratch, &[deed], &[("RALPH_PROOF_MUTANTS", "5")], "scripts/check");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("1 of 2 mutants unnoticed"), "{run:?}");
    let shown = Scratch::finish(&mut scratch.ralph("proof"));
    assert!(shown.stdout.contains("sum.sh:2: no test notices '"), "{shown:?}");
    // Nothing of it stays.
    assert_eq!(fs::read_to_string(tree(&scratch).join("sum.sh")).unwrap(), SOURCE);
    assert_eq!(fs::read_to_string(scratch.path("sum.sh")).unwrap(), SOURCE);
}
