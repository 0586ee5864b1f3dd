//! Names in the shell-style config that are no settings, but were probably meant to be. Other names are welcome there, so only
//! a likely typing error counts.

use std::fmt;
use std::path::{Path, PathBuf};

use super::setting::Setting;
use super::shell::Assignment;
use super::table::TABLE;
use crate::text::nearest::slip;

/// A name that is close to that of a setting. If something uses the name, it is no mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearMiss {
    /// The name as it was written.
    pub name: String,
    /// The setting that was probably meant, by its name in the config.
    pub meant: &'static str,
    /// The config.
    pub path: PathBuf,
    /// The line of the last assignment, from 1.
    pub line: usize,
}

impl fmt::Display for NearMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, meant, path, line } = self;
        write!(
            f,
            "{} line {line}: {name} is no setting, and no prompt uses it: did you mean {meant}?",
            path.display()
        )
    }
}

/// The near misses among the names that a config assigns.
pub(super) fn near_misses(path: &Path, assignments: &[Assignment]) -> Vec<NearMiss> {
    let near_miss = |assignment: &Assignment| {
        let Assignment { name, line, .. } = assignment;
        let meant = meant(assignment)?;
        Some(NearMiss { name: name.clone(), meant, path: path.to_owned(), line: *line })
    };
    assignments.iter().filter_map(near_miss).collect()
}

fn meant(assignment: &Assignment) -> Option<&'static str> {
    let name = assignment.name.as_str();
    if TABLE.iter().any(|setting| setting.shell == name) {
        return None;
    }
    let only = |is_meant: &dyn Fn(&Setting) -> bool| {
        let mut found = TABLE.iter().filter(|setting| is_meant(setting));
        found.next().filter(|_| found.next().is_none()).map(|setting| setting.shell)
    };
    // Its name in the environment means nothing here.
    only(&|setting| setting.env.contains(&name))
        .or_else(|| slip(name, TABLE.iter().map(|setting| setting.shell)))
        // The first word is missing, as in MAX_ITERATIONS. A single word is too vague, and an exported one is for programs.
        .or_else(|| {
            only(&|setting| setting.shell.strip_suffix(name).is_some_and(|first| first.ends_with('_')))
                .filter(|_| name.contains('_') && !assignment.exported)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_names_of_ones_own_are_not() {
        for (line, expected) in [
            ("MAX_CSOT=5", Some("MAX_COST")),
            ("MAX_COSTS=5", Some("MAX_COST")),
            ("max_cost=5", Some("MAX_COST")),
            ("AGENT_TPYE=codex", Some("AGENT_TYPE")),
            ("VALIDATION_COMAND=true", Some("VALIDATION_COMMAND")),
            ("MAX_RETRYS=1", Some("MAX_RETRIES")),
            ("export MAX_CSOT=5", Some("MAX_COST")),
            ("RALPH_AGENT_TYPE=codex", Some("AGENT_TYPE")),
            ("RALPH_MODEL=x", Some("AGENT_MODEL")),
            ("MAX_ITERATIONS=5", Some("DEFAULT_MAX_ITERATIONS")),
            ("export MAX_ITERATIONS=5", None),
            ("MAX_COST=5", None),
            ("MODEL=x", None),
            ("TYPE=x", None),
            ("TIMEOUT=x", None),
            ("TEST_COMMAND=x", None),
            ("AGENT_NAME=x", None),
            ("AGENT_KEY=x", None),
            ("MAX_WORKERS=x", None),
            ("SPECS=x", None),
            ("GIT_BRANCH=x", None),
            ("COMMAND=x", None),
            ("X=x", None),
        ] {
            let assignments = super::super::shell::parse(line, &|_| None).unwrap();
            let found = near_misses(Path::new("config"), &assignments);
            assert_eq!(found.first().map(|near_miss| near_miss.meant), expected, "{line}");
        }
    }
}
