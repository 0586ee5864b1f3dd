//! Which model an attempt gets.

use crate::memory::model::{Choice, Strategy, Trace, choose};

/// How models are chosen.
#[derive(Debug, Clone)]
pub(crate) enum Models {
    /// What the settings name for every agent, else the agent's own choice.
    Usual(Option<String>),
    /// By a strategy from a ladder, the smallest first.
    Ladder(Strategy, Vec<String>),
}

impl Models {
    /// What is used where nothing is chosen, as far as that is known.
    pub(super) fn usual(&self) -> Option<&str> {
        match self {
            Self::Usual(model) => model.as_deref(),
            Self::Ladder(..) => None,
        }
    }

    /// What an agent may ask for.
    pub(super) fn ladder(&self) -> &[String] {
        match self {
            Self::Usual(_) => &[],
            Self::Ladder(_, ladder) => ladder,
        }
    }

    /// The next model, and the one that the strategy would have taken if the last agent had not asked for it.
    pub(super) fn choose(&self, traces: &[Trace]) -> Option<(String, Option<String>)> {
        let Self::Ladder(strategy, ladder) = self else { return None };
        let Choice { model, instead_of } = choose(*strategy, ladder, traces)?;
        Some((model.to_owned(), instead_of.map(str::to_owned)))
    }
}
