//! Feeds the reader that `FUZZ_TARGET` names; `scripts/fuzz` says how it is built and run.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<String> =
    LazyLock::new(|| std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a reader of src/fuzz.rs"));

fuzz_target!(|bytes: &[u8]| {
    assert!(ralph::fuzz::run(&TARGET, bytes), "no reader is called '{}'", *TARGET);
});
