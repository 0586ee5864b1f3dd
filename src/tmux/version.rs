//! Checks the version of tmux.

use super::error::TmuxError;

/// The first version that has client flags `-f`, `pause-after` and pane-wide subscriptions. Source: tmux's `CHANGES`.
const OLDEST: (u32, u32) = (3, 2);

/// Checks whether the tmux with this version text (`tmux -V`) is new enough.
pub(super) fn check(said: &str) -> Result<(), TmuxError> {
    let too_old = || TmuxError::TooOld { found: said.trim().to_owned() };
    let version = said.trim().strip_prefix("tmux ").ok_or_else(too_old)?;
    // Builds from its repository, and OpenBSD's, have other numbers and are new enough.
    if version == "master" || version.starts_with("openbsd-") {
        return Ok(());
    }
    match number(version.strip_prefix("next-").unwrap_or(version)) {
        Some(version) if version >= OLDEST => Ok(()),
        _ => Err(too_old()),
    }
}

/// `3.3a` and `3.2-rc` are 3.3 and 3.2.
fn number(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.split_once('.')?;
    let digits = rest.split(|char: char| !char.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_old_is_refused() {
        for good in [
            "tmux 3.2",
            "tmux 3.2-rc4",
            "tmux 3.3a\n",
            "tmux next-3.5",
            "tmux 3.10",
            "tmux 4.0",
            "tmux master",
            "tmux openbsd-7.4",
        ] {
            check(good).unwrap();
        }
        for bad in ["tmux 3.1c", "tmux 2.9a", "tmux 1.8", "tmux next-3.1", "tmux", "", "tmux x", "screen 4.0"]
        {
            let error = check(bad).unwrap_err().to_string();
            assert!(
                error.contains(&format!("'{}'", bad.trim())) && error.contains("apt-get install tmux"),
                "{error}"
            );
        }
    }
}
