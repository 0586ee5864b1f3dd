use std::collections::HashSet;

use super::*;
use crate::settings::toml::WITHOUT_EFFECT;

#[test]
fn names_follow_one_rule_and_are_unique() {
    let mut seen = HashSet::new();
    for setting in TABLE {
        assert_eq!(setting.env[0], format!("RALPH_{}", setting.shell));
        assert!(setting.key.contains('.'), "{}", setting.key);
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
