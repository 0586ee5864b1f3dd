//! Tells the program which commit it is made of, and for which machines.

use std::path::Path;
use std::process::Command;

/// The commit and its date, where the sources are no clone: 'git archive' fills it in, and the package on a registry has it.
const COMMIT_FILE: &str = "commit.txt";

fn main() {
    let release = var("PROFILE").as_deref() == Some("release");
    // A build for working on ralph has none: every commit would compile it anew, to name a tree that has changed since.
    let (commit, date) = if release { commit() } else { Default::default() };
    let version = var("CARGO_PKG_VERSION").unwrap_or_default();
    let built = match (commit.as_str(), release) {
        ("", true) => "unknown commit".to_owned(),
        ("", false) => "debug build".to_owned(),
        _ => format!("{commit} {date}"),
    };
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| var(name).is_some_and(|set| set.split(',').any(|word| word == value));
    let is_linked_with_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is_linked_with_glibc && !is("CARGO_CFG_TARGET_FEATURE", "crt-static") {
        // A program that may lie anywhere corrects 36,000 addresses at each start, 0.9 of 2.4 ms, and each attempt starts ralph for its
        // walls. Heap, stack and libraries lie at random addresses all the same.
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo::rustc-env=RALPH_VERSION={version} ({built})");
    println!("cargo::rustc-env=RALPH_COMMIT={commit}");
    println!("cargo::rustc-env=RALPH_DATE={date}");
    println!("cargo::rustc-env=RALPH_TARGET={}", var("TARGET").unwrap_or_default());
}

fn var(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The short name of the commit, with '-dirty' if files differ from it, and its day; empty if that is not known.
fn commit() -> (String, String) {
    println!("cargo::rerun-if-changed={COMMIT_FILE}");
    let file = std::fs::read_to_string(COMMIT_FILE).unwrap_or_default();
    let (commit, seconds) = match file.split_whitespace().collect::<Vec<_>>()[..] {
        [commit, seconds] if !commit.starts_with('$') => {
            (commit.get(..12).map(str::to_owned), Some(seconds.to_owned()))
        }
        _ => of_git(),
    };
    let seconds = var("SOURCE_DATE_EPOCH").or(seconds).and_then(|seconds| seconds.trim().parse().ok());
    (commit.unwrap_or_default(), seconds.map(day).unwrap_or_default())
}

/// The same two of the clone that this folder is the top of, as git says them.
fn of_git() -> (Option<String>, Option<String>) {
    if !Path::new(".git").exists() {
        return (None, None);
    }
    for path in [".git/HEAD", ".git/logs/HEAD", "src", "docs", "prompts", "Cargo.toml", "Cargo.lock"] {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    (commit, git(&["show", "--no-patch", "--format=%ct", "HEAD"]))
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The day in UTC of these seconds since 1970, as `YYYY-MM-DD`.
fn day(seconds: u64) -> String {
    // Days are counted in years that begin in March, so that the leap day is the last one.
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
