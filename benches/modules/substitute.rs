//! How fast variables are put into a prompt.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use ralph::prompt::substitute;

/// A prompt of about this many bytes.
#[divan::bench(args = [4_000, 1_000_000])]
fn prompt(bencher: Bencher<'_, '_>, size: usize) {
    let part =
        "Read ${SPECS_DIR}/README.md. Code such as `echo $HOME $1` stays as it is, iteration $ITERATION.\n";
    let template = part.repeat(size / part.len());
    let lookup = |name: &str| match name {
        "SPECS_DIR" => Some("specs".into()),
        "ITERATION" => Some("7".into()),
        _ => None,
    };
    bencher.counter(BytesCount::new(template.len())).bench(|| substitute(black_box(&template), &lookup));
}
