//! Gemini CLI, and gemini over the Agent Client Protocol.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;

use super::option::CliOption;
use super::screens::Means::{Attention, Press, Trust};
use super::screens::Sight::Text;
use super::screens::{BROWSER, LOGIN, LONG, PERMISSION, Program, QUESTION, known};
use super::setup::{LoginCheck, Setup, TrustCheck};
use super::{Facts, GitConfig, Preset, PromptLimit, Provider, State, Structured};
use crate::reply::decode::Item;
use crate::reply::show::Show;
use crate::reply::usage::Class;
use crate::reply::verdict::Asides;

pub(super) const FACTS: Facts = Facts { presets: &[LINES, OVER_ACP], screens: Some(SCREENS) };

const INSTALL: &str = "npm install -g @google/gemini-cli";

const PROVIDER: Provider = Provider {
    hosts: &[
        "generativelanguage.googleapis.com",
        "cloudcode-pa.googleapis.com",
        "oauth2.googleapis.com",
        "accounts.google.com",
        "www.googleapis.com",
    ],
    variables: &["GOOGLE_GEMINI_BASE_URL", "CODE_ASSIST_ENDPOINT"],
};

const STATE: State = State { folders: &[".gemini"], ..State::NONE };

const LINES: Preset = Preset {
    name: "gemini",
    title: "Gemini CLI",
    cli: "gemini",
    // Only a person can trust the folder.
    args: &["--output-format", "stream-json", "--yolo", "--skip-trust"],
    needs: "a login method chosen once in `gemini`, or `GEMINI_API_KEY` with that method in its settings",
    keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    // It cuts off what is longer.
    longest_prompt: Some(PromptLimit::Bytes(8 << 20)),
    response: RESPONSE,
    display: DISPLAY,
    result: RESULT,
    types: &["init", "message", "tool_use", "error", "result"],
    shortcut: Some(("message", shortcut)),
    tool_results: Some(("tool_result", r#""tool_id"\s*:\s*"([^"\\]+)""#)),
    has_final: true,
    asides: ASIDES,
    setup: SETUP,
    // A key alone chooses no method.
    login: "run 'gemini' and choose how to log in; for a key alone, set GEMINI_API_KEY and security.auth.selectedType to \"gemini-api-key\" in ~/.gemini/settings.json",
    install: INSTALL,
    structured: Structured { option: &["--output-format", "-o"], value: "stream-json", ..Structured::NONE },
    model: Some(CliOption::with_value(&["-m", "--model"])),
    git_config: GitConfig::Hidden,
    state: STATE,
    provider: PROVIDER,
    ..Preset::BLANK
};

const OVER_ACP: Preset = Preset {
    name: "gemini-acp",
    cli: "gemini",
    args: &["--acp", "--skip-trust"],
    needs: "as `gemini`",
    keys: LINES.keys,
    reads_itself: true,
    login: "run 'gemini' and choose how to log in",
    install: INSTALL,
    git_config: GitConfig::Hidden,
    state: STATE,
    provider: PROVIDER,
    ..Preset::ACP
};

/// A key alone does not choose a login method.
const SETUP: Setup = Setup {
    login: LoginCheck::Traces {
        variables: &["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"],
        files: &[
            ("~/.gemini/settings.json", "/security/auth/selectedType"),
            (".gemini/settings.json", "/security/auth/selectedType"),
        ],
        keys: &[("gemini-api-key", "GEMINI_API_KEY", "~/.gemini/.env")],
    },
    trust: Some(TrustCheck {
        option: "--skip-trust",
        variable: ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        question: ("~/.gemini/settings.json", "/security/folderTrust/enabled"),
        folders: "~/.gemini/trustedFolders.json",
    }),
    ..Setup::NONE
};

const ASIDES: Asides = Asides {
    // No login method is chosen; the folder is not trusted. An error of its provider: the low bits of its HTTP status.
    exits: &[
        (41, Class::Auth),
        (55, Class::Permission),
        (401 - 256, Class::Auth),
        (403 - 256, Class::Auth),
        (429 - 256, Class::Limit),
        (500 - 256, Class::Overload),
        (502 - 256, Class::Overload),
        (503 - 256, Class::Overload),
        (504 - 256, Class::Overload),
    ],
    chatter: &[
        "Ripgrep is not available",
        "YOLO mode is enabled",
        "Loaded cached credentials",
        "Data collection is disabled",
        "Approval mode overridden",
        "Keychain initialization",
        "Using FileKeychain",
    ],
    ..Asides::NONE
};

// The prompt is echoed with role "user". "auto" is no model; the end reports which models were used.
const RESPONSE: &str = r#"select(.type == "message" and .role == "assistant") | .content"#;

const DISPLAY: &str = with_plain!(
    r#"
if .type == "message" then select(.role == "assistant") | if .delta then {delta: .content} else {text: .content} end
elif .type == "tool_use" then {tool: .tool_name, input: .parameters}
elif .type == "error" then if .severity == "error" then {error: (.message // "" | plain)} else {notice: .message} end
elif .type == "result" and .error then {error: (.error.message // "" | plain)}
else empty end
"#
);

const RESULT: &str = with_class!(
    r#"
if .type == "init" then {session_id} + if .model == "auto" then {} else {model} end
elif .type == "tool_use" then {tool_started: .tool_id}
elif .type == "error" then select(.severity == "error") | {error: (.message // "" | plain), class: (.message | class)}
elif .type == "result" then
  {final: true, input_tokens: .stats.input_tokens, output_tokens: .stats.output_tokens}
  + (.stats.models // {} | keys | if . == [] then {} else {model: join(", ")} end)
  + if .status == "success" then {}
    elif .error then {error: (.error.message // "" | plain), class: (.error.message | class)}
    else {error: ""} end
else empty end
"#
);

const SCREENS: Program = Program {
    name: "gemini",
    names: &["gemini", "gemini-cli"],
    past: r"^[│┃\s]*[>*!]\s+Type your message|restarting to apply the trust",
    not_ready: &[
        known(Text("trust the files in this folder|Do you trust this folder"), Trust("^Trust folder")),
        known(
            Text(
                "authorization code:|visit the following URL|Waiting for auth|[Ll]ogin with Google\\.\\.\\.",
            ),
            Attention(BROWSER),
        ),
        known(
            Text("How would you like to authenticate|No authentication method|Enter Gemini API Key"),
            Attention(LOGIN),
        ),
        // Not recorded: from its sources.
        known(
            Text("Do you want to connect .* to Gemini CLI"),
            Press(&["Escape"], "an offer to connect an editor, declined"),
        ),
        known(Text("Select Theme"), Press(&["Escape"], "the choice of a theme, left as it is")),
        known(Text("\\(Use Enter to select|Press Enter to (continue|confirm)"), Attention(QUESTION)),
    ],
    // The input line is painted for a moment before it asks whether to trust the folder.
    ready: &[(Text("Type your message"), LONG)],
    asks: &[
        (Text(r"1\. Allow once .* No, suggest changes \(esc\)$"), PERMISSION),
        (Text("Enter to select( · [^·]+)* · Esc to cancel$"), QUESTION),
    ],
    error: "^✕ |^│ Usage limit reached",
    message: "^✦ |^╭",
    input: r"^[│┃\s]*[>*!](\s|$)",
    placeholder: r"\[Pasted Text: \d+ (lines|chars)[^\]]*\]",
    // Enter right after a paste counts as a part of it.
    pause: Duration::from_millis(500),
    ..Program::BLANK
};

/// A `message` line of gemini with a delta of the assistant's text.
fn shortcut(line: &[u8]) -> Option<Vec<Item>> {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        role: Cow<'a, str>,
        content: String,
        delta: bool,
    }

    let Line { role, content, delta } = serde_json::from_slice(line).ok()?;
    let is_ours = role == "assistant" && delta;
    is_ours.then(|| vec![Item::Text(content.clone()), Item::Show(Show::Delta(content))])
}
