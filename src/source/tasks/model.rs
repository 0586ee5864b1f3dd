//! Which model an attempt gets.

use crate::memory::model::{Choice, Strategy, Trace, choose};

/// How models are chosen.
#[derive(Debug, Clone)]
pub(crate) enum Models {
    /// The agent's own choice, or what the settings say of every agent.
    Usual,
    /// By a strategy from a ladder, the smallest first.
    Ladder(Strategy, Vec<String>),
}

impl Models {
    /// What an agent may ask for.
    pub(super) fn ladder(&self) -> &[String] {
        match self {
            Self::Usual => &[],
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
