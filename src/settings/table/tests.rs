use std::collections::HashSet;

use super::*;
use crate::settings::toml::WITHOUT_EFFECT;

#[test]
fn names_follow_one_rule_and_are_unique() {
    let mut seen = HashSet::new();
    for setting in TABLE {
        assert!(setting.key.contains('.') || setting.key == "agents", "{}", setting.key);
        let names = [setting.key, setting.shell].into_iter().chain(setting.env.iter().copied());
        for name in names.chain(setting.flag.as_ref().map(|flag| flag.long)) {
            assert!(seen.insert(name), "{name} stands twice");
        }
    }
    for key in WITHOUT_EFFECT {
        assert!(seen.insert(key), "{key} stands twice");
    }
}

#[test]
fn what_a_row_says_fits_together() {
    for setting in TABLE {
        let key = setting.key;
        let defaults = Verb::ALL.map(|verb| setting.default_of(Some(verb)));
        assert!(!setting.empty.is_empty() || !defaults.contains(&""), "{key}: what is no value?");
        assert!(!setting.except.iter().any(|(_, value)| *value == setting.default), "{key}: no exception");
        if let Some(flag) = &setting.flag {
            assert!(flag.long.starts_with("--") && !flag.help.is_empty(), "{key}");
            assert_eq!(flag.value.is_empty(), setting.kind == ValueKind::Switch, "{key}");
        }
    }
}

#[test]
fn what_verbs_make_of_a_default_names_all_that_differ() {
    let words = |key: &str| TABLE.iter().find(|setting| setting.key == key).unwrap().defaults_by_verb();
    assert_eq!(words("loop.max_retries"), "by verb (3, run 0, spawn 0, loop 0)");
    assert_eq!(words("loop.max_iterations"), "by verb (10, run none, feature none, loop build 20)");
    assert_eq!(words("monitoring.max_consecutive_errors"), "by verb (0, spawn 5, run tasks 3, loop 3)");
}
