//! Lines of an events log as paragraphs.

use crate::record::event_line::{EventLine, Fact};
use crate::text::palette::{ERROR, FAINT, NOTE, STRONG};
use crate::view::watch::model::Model;
use crate::view::watch::scroll::Paragraph;

/// What goes on from one line to the next.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    /// The last paragraph is what the assistant says in pieces, or thinks.
    open: Option<bool>,
}

impl Transcript {
    pub(super) fn take(&mut self, line: &str, model: &mut Model) {
        let Ok(EventLine { fact, .. }) = EventLine::read(line) else { return };
        let (is_thought, piece) = match &fact {
            Fact::TextDelta { text } => (false, text),
            Fact::Thought { text } => (true, text),
            fact => {
                if let Some(paragraph) = paragraph(fact) {
                    self.open = None;
                    model.add(paragraph);
                }
                return;
            }
        };
        let before = (self.open == Some(is_thought)).then(|| model.take_last()).flatten();
        let style = if is_thought { FAINT } else { anstyle::Style::new() };
        let mut paragraph = before.unwrap_or(Paragraph { style, sign: "", text: String::new() });
        paragraph.text.push_str(piece);
        model.add(paragraph);
        self.open = Some(is_thought);
    }
}

fn paragraph(fact: &Fact<'_>) -> Option<Paragraph> {
    let (style, sign, text) = match fact {
        Fact::AttemptStarted { iteration, retry: 0, .. } => (STRONG, "▶ ", format!("iteration {iteration}")),
        Fact::AttemptStarted { iteration, retry, .. } => {
            (STRONG, "▶ ", format!("iteration {iteration}, retry {retry}"))
        }
        Fact::Text { text } => (anstyle::Style::new(), "", text.to_string()),
        Fact::Tool { name, input } => (FAINT, "· ", format!("{name} {input}")),
        Fact::AgentError { message } => (ERROR, "✗ ", message.to_string()),
        Fact::AgentNotice { message } | Fact::Notice { message } => (NOTE, "! ", message.to_string()),
        Fact::Validated { ok: false, output } => (ERROR, "✗ ", format!("validation failed:\n{output}")),
        _ => return None,
    };
    Some(Paragraph { style, sign, text })
}
