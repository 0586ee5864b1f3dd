//! The choice of a model for an attempt.

use crate::memory::model::{Choice, Strategy, Trace, choose};

/// How models are chosen.
#[derive(Debug, Clone)]
pub(crate) enum Models {
    /// The model of the settings for every agent, else the agent's own choice.
    Usual(Option<String>),
    /// A strategy chooses from a ladder, the smallest model first.
    Ladder(Strategy, Vec<String>),
}

impl Models {
    /// The default model, if it is known.
    pub(super) fn usual(&self) -> Option<&str> {
        match self {
            Self::Usual(model) => model.as_deref(),
            Self::Ladder(..) => None,
        }
    }

    /// The models that an agent may ask for.
    pub(super) fn ladder(&self) -> &[String] {
        match self {
            Self::Usual(_) => &[],
            Self::Ladder(_, ladder) => ladder,
        }
    }

    /// The model of the first task, and why it is that one; `None` where the agent takes one by itself.
    pub(crate) fn begins_with(&self) -> Option<String> {
        match self {
            Self::Usual(model) => Some(format!("begins with {}, as the settings say", model.as_ref()?)),
            Self::Ladder(strategy, ladder) => {
                let (model, _) = self.choose(&[])?;
                let ladder = ladder.join(", ");
                Some(format!(
                    "begins with {model}, which the model strategy '{strategy}' chooses from {ladder}: --model names one \
                     for all tasks"
                ))
            }
        }
    }

    /// The next model, and the one that the strategy would have chosen without the last agent's request.
    pub(super) fn choose(&self, traces: &[Trace]) -> Option<(String, Option<String>)> {
        let Self::Ladder(strategy, ladder) = self else { return None };
        let Choice { model, instead_of } = choose(*strategy, ladder, traces)?;
        Some((model.to_owned(), instead_of.map(str::to_owned)))
    }
}
