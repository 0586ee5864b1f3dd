//! Gives the statements of a config file their values.

use std::collections::{HashMap, HashSet};

use super::parse::{Assign, Statement};
use super::syntax::{Action, Parameter, Part, Word};
use super::{Assignment, Result, Source};

/// Most bytes that expansions may insert over the whole file: doubling a variable line by line must end in a
/// message, not in the machine's memory.
const MAX_EXPANDED: usize = 16 << 20;

/// Variables whose value bash makes itself: an assignment to one is ignored, refused or reinterpreted there.
const DYNAMIC: [&str; 17] = [
    "_",
    "BASHOPTS",
    "BASHPID",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SRANDOM",
    "UID",
];

/// Variables that bash sets when it starts: empty here, not empty there, unless the environment has them.
const PRESET: [&str; 12] = [
    "HOSTNAME",
    "HOSTTYPE",
    "IFS",
    "MACHTYPE",
    "OLDPWD",
    "OPTERR",
    "OPTIND",
    "OSTYPE",
    "PATH",
    "PIPESTATUS",
    "PWD",
    "SHLVL",
];

/// Carries out the statements in order and returns the variables they leave.
pub(super) fn run(
    statements: &[Statement],
    source: &Source,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Assignment>> {
    let mut state = State {
        source,
        env,
        variables: Vec::new(),
        index: HashMap::new(),
        exported: HashSet::new(),
        budget: MAX_EXPANDED,
    };
    for statement in statements {
        state.statement(statement)?;
    }
    let State { mut variables, exported, .. } = state;
    for variable in &mut variables {
        variable.exported = exported.contains(variable.name.as_str()) || env(&variable.name).is_some();
    }
    Ok(variables)
}

struct State<'a> {
    source: &'a Source,
    env: &'a dyn Fn(&str) -> Option<String>,
    variables: Vec<Assignment>,
    index: HashMap<String, usize>,
    exported: HashSet<&'a str>,
    budget: usize,
}

impl<'a> State<'a> {
    fn statement(&mut self, statement: &'a Statement) -> Result<()> {
        match statement {
            Statement::Assign(assign) => {
                let value = self.value(&assign.value, assign.at)?;
                self.assign(assign, value)
            }
            Statement::Export(targets) => {
                // `export A=1 B=$A` gives B the old A: the shell expands all words before the builtin sees them.
                let values = targets
                    .iter()
                    .map(|target| self.value(&target.value, target.at))
                    .collect::<Result<Vec<_>>>()?;
                for (target, value) in targets.iter().zip(values) {
                    if !target.name_only {
                        self.assign(target, value)?;
                    }
                    self.exported.insert(&target.name);
                }
                Ok(())
            }
            Statement::Expand(word) => self.expand(word, &mut Vec::new()),
        }
    }

    fn assign(&mut self, assign: &Assign, value: String) -> Result<()> {
        let value = if assign.append { self.get(&assign.name).unwrap_or_default() + &value } else { value };
        self.spend(value.len(), assign.at)?;
        self.set(&assign.name, value, assign.at)
    }

    fn set(&mut self, name: &str, value: String, at: usize) -> Result<()> {
        if is_dynamic(name) {
            let problem = format!("bash sets `{name}` itself; use another name for your value");
            return Err(self.source.error(at, problem));
        }
        let line = self.source.line(at);
        if let Some(known) = self.index.get(name) {
            let variable = &mut self.variables[*known];
            variable.value = value;
            variable.line = line;
        } else {
            self.index.insert(name.to_owned(), self.variables.len());
            self.variables.push(Assignment { name: name.to_owned(), value, exported: false, line });
        }
        Ok(())
    }

    /// The file's own value, else the environment's.
    fn get(&self, name: &str) -> Option<String> {
        match self.index.get(name) {
            Some(known) => Some(self.variables[*known].value.clone()),
            None => (self.env)(name),
        }
    }

    fn value(&mut self, word: &'a Word, at: usize) -> Result<String> {
        let mut bytes = Vec::new();
        self.expand(word, &mut bytes)?;
        String::from_utf8(bytes).map_err(|_| {
            self.source.error(at, "this value is not valid UTF-8; correct its \\x or octal escapes")
        })
    }

    fn expand(&mut self, word: &'a Word, out: &mut Vec<u8>) -> Result<()> {
        for part in word {
            match part {
                Part::Text(text) => out.extend(text),
                Part::Parameter(parameter) => self.parameter(parameter, out)?,
                Part::Home { at } => {
                    let home = self.get("HOME").ok_or_else(|| {
                        self.source.error(*at, "`~` needs HOME, which is not set; write the whole path")
                    })?;
                    self.spend(home.len(), *at)?;
                    out.extend(home.into_bytes());
                }
            }
        }
        Ok(())
    }

    fn parameter(&mut self, parameter: &'a Parameter, out: &mut Vec<u8>) -> Result<()> {
        let Parameter { name, at, operator } = parameter;
        let current = self.get(name);
        if current.is_none() && (is_dynamic(name) || PRESET.contains(&name.as_str())) {
            let problem = format!(
                "`{name}` has a value only inside bash, which does not run here; write the value itself"
            );
            return Err(self.source.error(*at, problem));
        }
        let Some(operator) = operator else {
            let value = current.unwrap_or_default();
            self.spend(value.len(), *at)?;
            out.extend(value.into_bytes());
            return Ok(());
        };
        let present = current.filter(|value| !(operator.colon && value.is_empty()));
        match (operator.action, present) {
            (Action::Alternative, Some(_)) | (Action::Default, None) => self.expand(&operator.word, out),
            (Action::Alternative, None) => Ok(()),
            (action, present) => {
                // `:=` that finds a value in the environment adopts it: the file names the variable as its own.
                let sets =
                    matches!(action, Action::Assign) && (present.is_none() || !self.index.contains_key(name));
                let value = match present {
                    Some(value) => value,
                    None => self.value(&operator.word, *at)?,
                };
                self.spend(value.len(), *at)?;
                out.extend(value.as_bytes());
                if sets { self.set(name, value, *at) } else { Ok(()) }
            }
        }
    }

    fn spend(&mut self, bytes: usize, at: usize) -> Result<()> {
        let problem = "the values of this file grow beyond 16 MiB here; make them smaller";
        self.budget = self.budget.checked_sub(bytes).ok_or_else(|| self.source.error(at, problem))?;
        Ok(())
    }
}

fn is_dynamic(name: &str) -> bool {
    name.starts_with("BASH_") || DYNAMIC.contains(&name)
}
