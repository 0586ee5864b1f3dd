//! The agents of a loop: the one that is wanted most, and those that go on in its place.

use super::setting::ValueKind;
use super::{Account, Origin, Resolved, Settings, SettingsError, resolved, values};
use crate::presets;

/// The setting that lists them.
pub(super) const LIST: &str = "agents";
/// The general settings of agent, model and effort.
pub(super) const GENERAL: [&str; 3] = ["agent.provider", "agent.model", "agent.effort"];
/// What is about the agent of the general setting besides those of its section that replace parts of a preset.
const LADDER: &str = "model.ladder";
/// The words for how hard a model thinks, which may follow its name.
const EFFORTS: [&str; 6] = ["minimal", "low", "medium", "high", "xhigh", "max"];

/// An agent as a list names it: `claude`, `claude:opus`, `claude:opus:high`, `work:opus` for an account, `acp:gemini --acp`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Named {
    agent: String,
    model: Option<String>,
    effort: Option<String>,
    account: Option<Account>,
}

impl Named {
    fn of(word: &str, accounts: &[Account]) -> Self {
        let (agent, model) = word.split_once(':').unwrap_or((word, ""));
        let agent = agent.trim();
        let account = accounts.iter().find(|account| account.name == agent);
        let agent = account.map_or(agent, |account| &account.agent);
        if presets::preset(agent).is_none_or(|preset| preset.cli.is_empty()) {
            return Self { agent: word.to_owned(), ..Self::default() };
        }
        let (model, effort) = with_effort(model);
        let some = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let (agent, account) = (agent.to_owned(), account.cloned());
        Self { agent, model: some(model), effort: effort.and_then(some), account }
    }

    fn values(&self) -> [Option<&str>; 3] {
        [Some(&self.agent), self.model.as_deref(), self.effort.as_deref()]
    }
}

/// Takes a model and the effort behind it apart.
fn with_effort(model: &str) -> (&str, Option<&str>) {
    match model.rsplit_once(':') {
        Some((model, effort)) if EFFORTS.contains(&effort.trim()) => (model, Some(effort)),
        _ => (model, None),
    }
}

/// What is wrong with a name in a setting that names agents: a list has an empty one, it begins with a colon, or has two efforts.
pub(super) fn wrong_name(row: &Resolved) -> Option<String> {
    let value = row.value.trim();
    let is_list = matches!(row.setting.kind, ValueKind::Names) && !value.is_empty();
    let words: Vec<&str> = if is_list { value.split(',').map(str::trim).collect() } else { vec![value] };
    if is_list && words.contains(&"") {
        return Some(format!("`{value}` has a comma without an agent: take it out"));
    }
    words.into_iter().find_map(problem)
}

fn problem(word: &str) -> Option<String> {
    let (agent, model) = word.split_once(':')?;
    let lacks = if agent.trim().is_empty() {
        "has no agent before its colon"
    } else {
        // A command line may have such words.
        let is_plain = !word.contains(char::is_whitespace);
        let (model, effort) = with_effort(model);
        effort.zip(with_effort(model).1).filter(|_| is_plain)?;
        "has two efforts"
    };
    Some(format!(
        "`{word}` {lacks}: write AGENT, AGENT:MODEL or AGENT:MODEL:EFFORT, such as claude:opus:high"
    ))
}

/// Has the first agent of the list be that of the general settings, where the list counts; else takes the list back. Returns the
/// login of that agent, if it is not its usual one, and the key of the setting that has named it.
pub(super) fn settle(rows: &mut [Resolved], accounts: &[Account]) -> (Option<Account>, &'static str) {
    let [list, general] = [LIST, GENERAL[0]].map(|key| resolved::row(rows, key).clone());
    let does_count = !list.value.trim().is_empty() && list.origin.strength() >= general.origin.strength();
    let (word, origin) = match names(&list).next().filter(|_| does_count) {
        Some(first) => (first.to_owned(), list.origin.clone()),
        None => (general.value.clone(), general.origin.clone()),
    };
    if !does_count && let Some(row) = rows.iter_mut().find(|row| row.setting.key == LIST) {
        row.value.clear();
    }
    let named = Named::of(&word, accounts);
    // What is said of no agent by name is said of this one.
    if does_count && named.agent != general.value && general.origin != Origin::Default {
        rows.iter_mut().filter(|row| is_about_agent(row) && counts(&origin, &row.origin)).for_each(forget);
    }
    put(rows, &named, &origin);
    (named.account, if does_count { LIST } else { GENERAL[0] })
}

/// Takes the agent of the general settings apart, which may be an account, and have a model; returns its account.
pub(super) fn split(rows: &mut [Resolved], accounts: &[Account]) -> Option<Account> {
    let Resolved { value, origin, .. } = resolved::row(rows, GENERAL[0]).clone();
    let named = Named::of(&value, accounts);
    put(rows, &named, &origin);
    named.account
}

/// The words of the list.
fn names(list: &Resolved) -> impl Iterator<Item = &str> {
    list.value.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// Puts an agent, its model and its effort in the place of the general ones, as far as they are named.
fn put(rows: &mut [Resolved], named: &Named, from: &Origin) {
    for (key, value) in GENERAL.into_iter().zip(named.values()) {
        let row = rows.iter_mut().find(|row| row.setting.key == key);
        let row = row.filter(|row| key == GENERAL[0] || counts(from, &row.origin));
        if let Some((row, value)) = row.zip(value).filter(|(row, value)| row.value != *value) {
            (row.value, row.origin) = (value.to_owned(), from.clone());
        }
    }
}

impl Settings {
    /// Where another setting than [`GENERAL`]'s has named the agent: a list, or that of a phase.
    #[must_use]
    pub fn agent_named_elsewhere(&self) -> Option<String> {
        let [named_by, general] = [self.named_by, GENERAL[0]].map(|key| resolved::row(&self.rows, key));
        let named = Resolved { setting: named_by.setting, ..general.clone() };
        (self.named_by != GENERAL[0]).then(|| named.place())
    }

    /// The settings of the agents that go on in the place of the one of these settings, in the order in which they are wanted.
    ///
    /// # Errors
    /// If a value cannot be read.
    pub fn stand_ins(&self) -> Result<Vec<Self>, SettingsError> {
        let list = resolved::row(&self.rows, LIST);
        let [agent, model, effort] = GENERAL.map(|key| resolved::row(&self.rows, key));
        // As far as the list has said it; what the general settings say is for each that the list says no more of.
        let listed = |row: &Resolved| {
            Some(row.value.clone()).filter(|value| row.origin == list.origin && !value.is_empty())
        };
        let own = Named {
            agent: agent.value.clone(),
            model: listed(model),
            effort: listed(effort),
            account: self.account.clone(),
        };
        let (mut stand_ins, mut known) = (Vec::new(), Vec::new());
        for word in names(list) {
            let named = Named::of(word, &self.accounts);
            if named == own || known.contains(&named) {
                continue;
            }
            let mut rows = self.rows.clone();
            let is_other = named.agent != own.agent;
            rows.iter_mut().filter(|row| is_about_agent(row) && is_other).for_each(forget);
            let is_listed =
                |row: &Resolved| GENERAL[1..].contains(&row.setting.key) && row.origin == list.origin;
            rows.iter_mut().filter(|row| is_listed(row)).for_each(forget);
            put(&mut rows, &named, &list.origin);
            known.push(named.clone());
            let (values, account) = (values(&rows)?, named.account);
            stand_ins.push(Self { values, account, rows, named_by: LIST, ..self.clone() });
        }
        Ok(stand_ins)
    }
}

/// Whether a value for less than all counts where the general one comes from there.
pub(super) const fn counts(own: &Origin, general: &Origin) -> bool {
    match general {
        Origin::Flag(_) => matches!(own, Origin::Flag(_)),
        Origin::Env(_) => matches!(own, Origin::Env(_) | Origin::Flag(_)),
        _ => true,
    }
}

/// Whether a setting is about one agent, and says nothing of others.
pub(super) fn is_about_agent(row: &Resolved) -> bool {
    let Resolved { setting, .. } = row;
    setting.key == LADDER || setting.kind == ValueKind::Override && setting.key.starts_with("agent.")
}

/// Takes a value back.
pub(super) fn forget(row: &mut Resolved) {
    (row.value, row.origin) = (row.setting.default.to_owned(), Origin::Default);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Sources;

    fn load(toml: &str, flags: &[(&'static str, &str)]) -> Settings {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ralph.toml");
        std::fs::write(&file, toml).unwrap();
        let flags = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        Settings::load(&Sources { project_toml: Some(file), flags, ..Sources::none() }).unwrap()
    }

    /// Each as `AGENT MODEL EFFORT ARGS`.
    fn all(settings: &Settings) -> Vec<String> {
        let one = |settings: &Settings| {
            let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
            let Settings { values, .. } = settings;
            let rest = [&values.agent_model, &values.agent_effort, &values.agent_args].map(text);
            format!("{} {}", values.agent_type, rest.join(" "))
        };
        let stand_ins = settings.stand_ins().unwrap();
        [one(settings)].into_iter().chain(stand_ins.iter().map(one)).collect()
    }

    #[test]
    fn the_first_of_the_list_is_the_agent_and_the_others_stand_in() {
        let toml = "agents = ['claude:opus:high', 'codex', 'acp:gemini --acp', 'claude:sonnet', 'codex']\n\
            [agent]\nargs = '-x'\n";
        let list = ["claude opus high -x", "codex - - -", "acp:gemini --acp - - -", "claude sonnet - -x"];
        assert_eq!(all(&load(toml, &[])), list);
        let toml = "agents = ['codex', 'claude']\n[agent]\nprovider = 'claude'\nmodel = 'opus'\n";
        assert_eq!(all(&load(toml, &[])), ["codex - - -", "claude - - -"]);
    }

    #[test]
    fn a_name_that_no_agent_has_is_refused() {
        let check = |key: &'static str, value: &str| {
            let sources = Sources { flags: vec![(key, value.to_owned())], ..Sources::none() };
            Settings::load(&sources).map_err(|error| error.to_string())
        };
        for key in [GENERAL[0], LIST, "verify.agent"] {
            for value in [":::", ":opus", "claude:opus:high:low"] {
                let error = check(key, value).unwrap_err();
                assert!(
                    error.contains(&format!("`{value}` has ")) && error.contains("AGENT:MODEL"),
                    "{error}"
                );
            }
            for value in
                ["claude:opus:high", "opencode:ollama:llama3:8b:low", "opencode:a:high:b", "claude:low"]
            {
                assert!(check(key, value).is_ok(), "{key}: {value}");
            }
        }
        assert!(check(LIST, "claude, :opus").is_err());
    }

    #[test]
    fn a_list_with_an_empty_name_is_refused_from_every_source() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        for value in ["claude,", ",claude", "claude, ,codex", ","] {
            let env = |name: &str| (name == "RALPH_AGENTS").then(|| value.to_owned());
            std::fs::write(&file, format!("AGENTS='{value}'\n")).unwrap();
            let all = [
                Sources { flags: vec![(LIST, value.to_owned())], ..Sources::none() },
                Sources { env: &env, ..Sources::none() },
                Sources { shell_config: Some(file.clone()), ..Sources::none() },
            ];
            for sources in all {
                let error = Settings::load(&sources).unwrap_err().to_string();
                assert!(error.contains(&format!("`{value}` has a comma without an agent")), "{error}");
            }
        }
        let none = Sources { flags: vec![(LIST, " ".to_owned())], ..Sources::none() };
        assert_eq!(all(&Settings::load(&none).unwrap()), all(&load("", &[])));
    }

    #[test]
    fn a_flag_for_one_agent_has_none_that_stand_in() {
        let toml = "agents = ['claude', 'codex']\n";
        assert_eq!(all(&load(toml, &[("agent.provider", "gemini")])), ["gemini - - -"]);
        assert_eq!(all(&load(toml, &[("agent.provider", "claude:opus")])), ["claude opus - -"]);
        assert_eq!(all(&load(toml, &[("agent.model", "m")])), ["claude m - -", "codex - - -"]);
        let both = [("agent.provider", "gemini"), (LIST, "gemini, opencode:ollama/a:8b")];
        assert_eq!(all(&load(toml, &both)), ["gemini - - -", "opencode ollama/a:8b - -"]);
    }

    #[test]
    fn in_a_phase_with_an_agent_of_its_own_the_rest_of_the_list_stands_in() {
        let settings = load("agents = ['claude', 'codex']\n[plan]\nagent = 'codex'\n", &[]);
        let planning = settings.in_phase(crate::settings::Phase::Plan).unwrap().unwrap();
        assert_eq!(all(&planning), ["codex - - -", "claude - - -"]);
    }
}
