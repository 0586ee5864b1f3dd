//! Desktop notifications, through the platform's own command.

use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::message::Message;
use super::program;
use crate::process::launch::Launch;
use crate::settings::notify::Moment;

/// The time limit of the command.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// The command that shows notifications on this platform.
pub(crate) const PROGRAM: &str = if cfg!(target_os = "macos") { "osascript" } else { "notify-send" };

/// Shows a message; `launch` says where and how the command runs.
pub(super) fn show(launch: &Launch, message: &Message, cancelled: &AtomicBool) -> Result<(), String> {
    let args = if cfg!(target_os = "macos") { for_osascript(message) } else { for_notify_send(message) };
    let launch = Launch { program: PROGRAM.into(), args, ..launch.clone() };
    program::run(&launch, "", LIMIT, cancelled).map(drop).map_err(|failed| failed.why)
}

/// After `--`, a text cannot be an option.
fn for_notify_send(message: &Message) -> Vec<OsString> {
    let urgency = match message.moment {
        Moment::Failure | Moment::Attention => "critical",
        Moment::End | Moment::Waiting => "normal",
    };
    let urgency = format!("--urgency={urgency}");
    ["--app-name=ralph", &urgency, "--", &message.title, &escaped(&message.text)].map(Into::into).into()
}

/// The texts are arguments of the script, not part of it.
fn for_osascript(message: &Message) -> Vec<OsString> {
    let script = "on run texts\ndisplay notification (item 2 of texts) with title (item 1 of texts)\nend run";
    ["-e", script, &message.title, &message.text].map(Into::into).into()
}

/// Many desktops parse the text as markup, and `notify-send` interprets backslashes like C.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\\', r"\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_neither_option_nor_markup_nor_escape_nor_script() {
        let text = r#"--help <b>&\n" & quit"#.to_owned();
        let message = Message { moment: Moment::Attention, text, ..Message::test("project") };
        assert_eq!(
            for_notify_send(&message),
            [
                "--app-name=ralph",
                "--urgency=critical",
                "--",
                "ralph in project",
                r#"--help &lt;b&gt;&amp;\\n" &amp; quit"#
            ]
        );
        let args = for_osascript(&message);
        assert_eq!(args[2..], ["ralph in project", r#"--help <b>&\n" & quit"#]);
        assert!(args[0] == "-e" && !args[1].to_string_lossy().contains("quit"), "{args:?}");
    }
}
