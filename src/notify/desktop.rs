//! A notification on the desktop, over the session's D-Bus.

use notify_rust::{Notification, Urgency};

use super::message::Message;
use crate::settings::notify::Moment;

/// Shows a message.
pub(super) fn show(message: &Message) -> Result<(), String> {
    let urgency = match message.moment {
        Moment::Failure | Moment::Attention => Urgency::Critical,
        Moment::End | Moment::Waiting => Urgency::Normal,
    };
    Notification::new()
        .appname("ralph")
        .summary(&message.title)
        .body(&escaped(&message.text))
        .urgency(urgency)
        .show()
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Many desktops read the text as markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
