//! Which agent works in a phase, with which model: its own settings in the place of the general ones.

use super::agents::{self, GENERAL, counts, forget, is_about_agent};
use super::{Origin, Resolved, Settings, SettingsError, Verb, resolved, values};

/// A phase of work that may have an agent of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Plans are written.
    Plan,
    /// Plans and tasks are carried out.
    Build,
    /// Documents and tasks of features are written.
    Feature,
    /// Work is looked at by a fresh agent.
    Verify,
    /// Documents are looked at by a fresh agent.
    Review,
}

/// The settings that name agents: one, or in a list several.
#[must_use]
pub fn names_agents(key: &str) -> bool {
    key == GENERAL[0] || key == agents::LIST || Phase::ALL.iter().any(|phase| phase.keys()[0] == key)
}

/// Refuses names that no agent has.
///
/// # Errors
/// For the first one.
pub(super) fn check_names(rows: &[Resolved]) -> Result<(), SettingsError> {
    for row in rows.iter().filter(|row| names_agents(row.setting.key)) {
        if let Some(problem) = agents::wrong_name(row) {
            return Err(SettingsError::Invalid { place: row.place(), problem });
        }
    }
    Ok(())
}

impl Phase {
    /// All phases.
    const ALL: [Self; 5] = [Self::Plan, Self::Build, Self::Feature, Self::Verify, Self::Review];

    /// Its settings in the place of [`GENERAL`].
    const fn keys(self) -> [&'static str; 3] {
        match self {
            Self::Plan => ["plan.agent", "plan.model", "plan.effort"],
            Self::Build => ["build.agent", "build.model", "build.effort"],
            Self::Feature => ["feature.agent", "feature.model", "feature.effort"],
            Self::Verify => ["verify.agent", "verify.model", "verify.effort"],
            Self::Review => ["review.agent", "review.model", "review.effort"],
        }
    }

    /// Whether its agent looks at the work of another one, which flags are about.
    const fn inspects(self) -> bool {
        matches!(self, Self::Verify | Self::Review)
    }

    /// Whether its own value counts where the general one comes from there.
    const fn counts(self, own: &Origin, general: &Origin) -> bool {
        self.inspects() || counts(own, general)
    }
}

impl Verb {
    /// The phase that its loops are; `None`: their agents are always those of the general settings.
    #[must_use]
    pub const fn phase(self) -> Option<Phase> {
        match self {
            Self::Plan | Self::LoopPlan => Some(Phase::Plan),
            Self::Build | Self::LoopBuild | Self::Tasks => Some(Phase::Build),
            Self::Feature => Some(Phase::Feature),
            Self::Prompt | Self::Run | Self::Spawn => None,
        }
    }
}

impl Settings {
    /// These settings in a phase; `None`: it has none of its own.
    ///
    /// # Errors
    /// If a value cannot be read.
    pub fn in_phase(&self, phase: Phase) -> Result<Option<Self>, SettingsError> {
        let mut rows = self.rows.clone();
        let mut is_other = false;
        let [agent, ..] = phase.keys();
        let (known, own) = (resolved::row(&self.rows, GENERAL[0]), resolved::row(&self.rows, agent));
        if !own.value.is_empty() && own.value != known.value && !phase.counts(&own.origin, &known.origin) {
            // Its model and effort are for that agent.
            return Ok(None);
        }
        let names_agent = !own.value.is_empty() && phase.counts(&own.origin, &known.origin);
        for (general, own) in GENERAL.into_iter().zip(phase.keys()) {
            let (known, own) = (resolved::row(&self.rows, general), resolved::row(&self.rows, own));
            if own.value.is_empty() || !phase.counts(&own.origin, &known.origin) {
                continue;
            }
            if general == GENERAL[0] && own.value != known.value {
                let is_kept = |row: &Resolved| !phase.inspects() && matches!(row.origin, Origin::Flag(_));
                rows.iter_mut().filter(|row| is_about_agent(row) && !is_kept(row)).for_each(forget);
            }
            for row in rows.iter_mut().filter(|row| row.setting.key == general) {
                (row.value, row.origin) = (own.value.clone(), own.origin.clone());
            }
            is_other = true;
        }
        if !is_other {
            return Ok(None);
        }
        let account = agents::split(&mut rows, &self.accounts)
            .or_else(|| self.account.clone().filter(|_| !names_agent));
        let named_by = if names_agent { agent } else { self.named_by };
        Ok(Some(Self { values: values(&rows)?, rows, account, named_by, ..self.clone() }))
    }

    /// The settings of all agents besides that of these settings: those that go on in its place, and those of phases.
    ///
    /// # Errors
    /// If a value cannot be read.
    pub fn other_agents(&self) -> Result<Vec<Self>, SettingsError> {
        let mut others = self.stand_ins()?;
        for phase in Phase::ALL {
            others.extend(self.in_phase(phase)?);
        }
        Ok(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Sources;

    fn of(toml: &str, flags: &[(&'static str, &str)], phase: Phase) -> [String; 4] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ralph.toml");
        std::fs::write(&file, toml).unwrap();
        let flags = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        let sources = Sources { project_toml: Some(file), flags, ..Sources::none() };
        let settings = Settings::load(&sources).unwrap();
        let settings = settings.in_phase(phase).unwrap().unwrap_or(settings);
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        [
            settings.agent_type.clone(),
            text(&settings.agent_model),
            text(&settings.agent_effort),
            text(&settings.agent_args),
        ]
    }

    #[test]
    fn a_phase_has_its_own_agent_and_the_rest_of_the_general_one_only_for_the_same_agent() {
        let toml = "[agent]\nprovider = 'claude'\nmodel = 'opus'\nargs = '-x'\n\
            [plan]\nmodel = 'small'\n[verify]\nagent = 'codex'\neffort = 'high'\n[build]\nagent = 'claude'\n";
        assert_eq!(of(toml, &[], Phase::Plan), ["claude", "small", "", "-x"]);
        assert_eq!(of(toml, &[], Phase::Build), ["claude", "opus", "", "-x"]);
        assert_eq!(of(toml, &[], Phase::Verify), ["codex", "", "high", ""]);
        assert_eq!(of(toml, &[], Phase::Review), ["claude", "opus", "", "-x"]);
    }

    #[test]
    fn a_flag_comes_before_the_phase_of_the_work_and_not_before_those_who_look_at_it() {
        let toml = "[build]\nagent = 'codex'\nmodel = 'm'\n[verify]\nagent = 'codex'\nmodel = 'v'\n";
        let flags = [("agent.provider", "gemini"), ("agent.model", "flash")];
        assert_eq!(of(toml, &flags, Phase::Build), ["gemini", "flash", "", ""]);
        assert_eq!(of(toml, &flags[..1], Phase::Build), ["gemini", "", "", ""]);
        assert_eq!(of(toml, &flags, Phase::Verify), ["codex", "v", "", ""]);
        let model = [("agent.model", "flash")];
        assert_eq!(of(toml, &model, Phase::Build), ["codex", "flash", "", ""]);
        let toml = "[verify]\nagent = 'codex'\n";
        assert_eq!(of(toml, &model, Phase::Verify), ["codex", "", "", ""]);
    }
}
