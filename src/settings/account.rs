//! Logins of agents besides the usual ones: `[[account]]` in a `ralph.toml`.

use std::path::PathBuf;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use crate::presets;
use crate::text::secret::secrets;

/// The heading of an account.
pub(super) const HEADING: &str = "account";

/// A login of an agent besides its usual one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name, by which lists of agents have it.
    pub name: String,
    /// Its agent.
    pub agent: String,
    /// The variables that make the agent use it: names, and values as they are written.
    env: Vec<(String, String)>,
}

impl Account {
    /// The folder that it names for the state of its agent.
    pub(crate) fn folder(&self, env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let variable = presets::preset(&self.agent)?.state.variable?;
        let named = self.env.iter().find(|(name, _)| name == variable)?;
        self.value(named, &env).ok().map(PathBuf::from)
    }

    /// The variables of ralph's own whose values it takes: secrets, however they are called.
    pub(crate) fn taken(&self) -> impl Iterator<Item = &str> {
        self.env.iter().filter_map(|(_, written)| written.strip_prefix('$'))
    }

    /// Its variables with their values: `$NAME` is the value of a variable of ralph's own, `~/` the home.
    ///
    /// # Errors
    /// If such a variable is not set: a message that names it.
    pub fn variables(&self, env: impl Fn(&str) -> Option<String>) -> Result<Vec<(String, String)>, String> {
        self.env.iter().map(|one| Ok((one.0.clone(), self.value(one, &env)?))).collect()
    }

    /// The value of one of its variables.
    fn value(
        &self,
        (name, written): &(String, String),
        env: &impl Fn(&str) -> Option<String>,
    ) -> Result<String, String> {
        let set = |variable: &str| env(variable).filter(|value| !value.is_empty());
        let at_home = if written == "~" { Some("") } else { written.strip_prefix("~/") };
        match (written.strip_prefix('$'), at_home) {
            (Some(variable), _) => set(variable).ok_or_else(|| {
                format!(
                    "account '{}' takes {name} from {variable}, which is not in the environment: set it, or leave the account out",
                    self.name
                )
            }),
            (_, Some(rest)) => {
                let home = set("HOME").map(PathBuf::from).unwrap_or_default();
                Ok(home.join(rest).to_string_lossy().into_owned())
            }
            _ => Ok(written.clone()),
        }
    }
}

/// Reads the table below a heading; the error says what is wrong and what to do.
pub(super) fn read(table: &DeTable<'_>) -> Result<Account, String> {
    let mut account = Account { name: String::new(), agent: String::new(), env: Vec::new() };
    for (key, value) in table {
        match (&**key.get_ref(), value.get_ref()) {
            ("name", DeValue::String(name)) => account.name = name.to_string(),
            ("agent", DeValue::String(agent)) => account.agent = agent.to_string(),
            ("env", DeValue::Table(env)) => {
                account.env = env.iter().map(variable).collect::<Result<_, _>>()?;
            }
            ("name" | "agent", _) => {
                return Err(format!("`{}` of an account is a string in quotes", key.get_ref()));
            }
            ("env", _) => {
                return Err("`env` of an account is like { CODEX_HOME = \"~/.codex-work\" }".to_owned());
            }
            (other, _) => return Err(format!("an account has name, agent and env, and no `{other}`")),
        }
    }
    let Account { name, agent, .. } = &account;
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
        return Err("an account has a `name` of letters, digits, `-`, `_` and `.`".to_owned());
    }
    if presets::preset(name).is_some() {
        return Err(format!("`{name}` is the name of an agent; an account has another one"));
    }
    let has_program = |agent: &str| presets::preset(agent).is_some_and(|preset| !preset.cli.is_empty());
    if !has_program(agent) {
        let names: Vec<&str> = presets::names().into_iter().filter(|name| has_program(name)).collect();
        return Err(format!("account `{name}` has an `agent`, one of {}", names.join(", ")));
    }
    if account.env.is_empty() {
        return Err(format!("account `{name}` has an `env` with the variables that make it another login"));
    }
    Ok(account)
}

fn variable(
    (name, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>),
) -> Result<(String, String), String> {
    let name = name.get_ref();
    let DeValue::String(value) = value.get_ref() else {
        return Err(format!("`{name}` of an account is a string in quotes"));
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_ours = name.starts_with("RALPH_");
    if name.is_empty() || is_ours || !name.chars().all(is_name) || value.contains('\0') {
        return Err(format!(
            "`{name}` of an account is no variable for an agent: write its name and its value"
        ));
    }
    if value.strip_prefix('$').is_some_and(|taken| taken.is_empty() || !taken.chars().all(is_name)) {
        return Err(format!("`{name}` is not \"$\" with the name of a variable behind it"));
    }
    if !value.starts_with('$') && !secrets(name, value, false).is_empty() {
        return Err(format!(
            "`{name}` is a secret: write the name of a variable that has it, as in \"$WORK_{name}\""
        ));
    }
    Ok((name.to_string(), value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::toml;

    fn problem(text: &str) -> String {
        toml::parse(text).unwrap_err().message
    }

    #[test]
    fn an_account_has_variables_and_no_secret() {
        let text = "[[account]]\nname = 'work'\nagent = 'claude'\nenv = { CLAUDE_CONFIG_DIR = '~/.c', ANTHROPIC_API_KEY = '$WORK' }\n";
        let document = toml::parse(text).unwrap();
        let [account] = &document.accounts[..] else { panic!("{document:?}") };
        let env = |name: &str| Some(if name == "HOME" { "/h" } else { "key" }.to_owned());
        let variables = account.variables(env).unwrap();
        let expected = [("CLAUDE_CONFIG_DIR", "/h/.c"), ("ANTHROPIC_API_KEY", "key")];
        assert!(
            expected
                .iter()
                .all(|(name, value)| variables.contains(&((*name).to_owned(), (*value).to_owned())))
        );
        assert!(account.variables(|_| None).unwrap_err().contains("WORK, which is not in the environment"));
        for (text, said) in [
            (
                "[[account]]\nname = 'a'\nagent = 'claude'\nenv = { ANTHROPIC_API_KEY = 'sk-ant-0123456789abcdef' }\n",
                "is a secret",
            ),
            ("[[account]]\nname = 'claude'\nagent = 'claude'\n", "is the name of an agent"),
            ("[[account]]\nname = 'a'\n", "has an `agent`"),
            ("[[account]]\nagent = 'claude'\n", "has a `name`"),
            ("[[account]]\nname = 'a'\nagent = 'claude'\nkey = 1\n", "no `key`"),
            ("[account]\nname = 'a'\n", "[[account]]"),
        ] {
            assert!(problem(text).contains(said), "{text}: {}", problem(text));
        }
    }
}
