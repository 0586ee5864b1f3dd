//! `ralph --version`, which is answered before the command line is taken apart: installers and scripts ask often.

use std::ffi::OsString;

use crate::version::{LINE, this};

/// The exit code, if the words ask for the version and for nothing else.
#[must_use]
pub fn answer(words: &[OsString]) -> Option<anyhow::Result<u8>> {
    let is = |word: &OsString, names: &[&str]| names.iter().any(|name| word == name);
    let asks = words.iter().any(|word| is(word, &["--version", "-V"]));
    if !asks || !words.iter().all(|word| is(word, &["--version", "-V", "--json"])) {
        return None;
    }
    let json = words.iter().any(|word| word == "--json");
    Some(super::print(|out| {
        if json {
            serde_json::to_writer_pretty(&mut *out, &this())?;
            out.push(b'\n');
        } else {
            out.extend(format!("ralph {LINE}\n").into_bytes());
        }
        Ok(())
    }))
}
