//! What we know of each interactive program.
//!
//! From the recordings under `tests/screens/`: claude 2.1.330, codex 0.169, gemini 0.61, opencode 1.18, cline 3.0 and aider 0.86;
//! of amp only its login. What else stands here comes from earlier versions and from documentation, and says so.

use std::time::Duration;

use super::SETTLED;
use super::program::Means::{Attention, Choose, Press, Starting, Trust};
use super::program::Sight::{Last, Line, Text};
use super::program::{Known, Means, Program, Sight};

const fn known(sight: Sight, means: Means) -> Known {
    Known { sight, means }
}

const PERMISSION: &str = "it asks for permission";
const QUESTION: &str = "it asks a question";
const LOGIN: &str = "it wants a login";
const BROWSER: &str = "it wants a login in a browser";
const UPDATE: &str = "an update, declined";
const NOTES: &str = "release notes";
/// A sight that may be followed by a dialog at once.
const LONG: Duration = Duration::from_secs(1);
/// A sight that may also be seen while the rest of the screen is still to come.
const LONGER: Duration = Duration::from_secs(2);
/// A sight that may be there long before the program is.
const LONGEST: Duration = Duration::from_secs(15);

/// What programs of every kind ask.
pub(super) const ANY: &[Known] = &[
    known(Last(r"(?i)(password|passphrase|passcode)[^:]*:$"), Attention("it asks for a password")),
    known(Last(r"(?i)[(\[](yes/no|y/n)\b.*[)\]][?:]?$"), Attention(QUESTION)),
];

const CLAUDE: Program = Program {
    name: "claude",
    names: &["claude", "claude-code"],
    options: &["--dangerously-skip-permissions", "--allow-dangerously-skip-permissions"],
    past: "",
    not_ready: &[
        known(
            Text("Choose the text style|looks best with your terminal"),
            Press(&["Enter"], "the choice of a theme, left as it is"),
        ),
        known(Text("Select login method|Select a login method"), Attention(LOGIN)),
        known(
            Text("Browser didn.t open|Paste code here if prompted|Use the url below to sign in"),
            Attention(BROWSER),
        ),
        known(
            Text("Detected a custom API key"),
            Attention("it asks whether to use the API key of the environment"),
        ),
        known(
            Text(
                "Accessing workspace: .*Enter to confirm|trust the files in this folder|[Dd]o you trust this folder",
            ),
            Trust("Yes"),
        ),
        known(
            Text("running in Bypass Permissions mode .*(Enter to confirm|Yes, I accept)"),
            Attention("it asks whether to accept the mode that skips permissions"),
        ),
        // Not recorded: from earlier versions.
        known(
            Text("Use Claude Code.s terminal setup"),
            Choose("(?i)no,|not now|maybe later", "an offer to change the terminal's keys, declined"),
        ),
        known(Text("Security notes: .*Press Enter to continue"), Press(&["Enter"], "security notes")),
        known(Text("(?i)release notes .*press enter to continue"), Press(&["Enter"], NOTES)),
        known(Text("Not logged in · (Please )?[Rr]un /login|Invalid API key · "), Attention(LOGIN)),
        known(Text("Enter to confirm|Esc to (cancel|go back)$"), Attention(QUESTION)),
        known(Text("Press Enter to continue"), Attention("it waits for Enter")),
        known(Text("^Welcome to Claude Code v[0-9.]+( [.█▓▒░▄▀*…]+)*$"), Starting),
    ],
    ready: &[
        (Line(r"^[│┃\s]*[❯>](\s|$)"), SETTLED),
        (Text("bypass permissions|permission mode|shift\\+tab to cycle"), LONGER),
        (Text(r"(^|[^o] |[^o ])Claude Code v\d"), LONGER),
    ],
    asks: &[
        (
            Text("Auto mode can.t check actions .* Esc to cancel$"),
            "its auto mode cannot check what it wants to do",
        ),
        (Text(r"Do you want to [^?]+\? .*1\. .* Esc to cancel( · [\w+/ ]+)*$"), PERMISSION),
        (
            Text(r"Enter to (select|confirm|submit)( · [^·]+)* · Esc to (cancel|go back)( · [\w+/ ]+)*$"),
            QUESTION,
        ),
    ],
    // What tools print stands behind the same marks, and so does what the model says, also of errors that it has fixed. What
    // follows "API Error" is a status, JSON, or one of claude's own sentences.
    error: r"^\s+⎿\s+(Not logged in ·|You.ve hit your |Credit balance |Prompt is too long|Invalid API key|Please run /login)|^(?:[^\S\n]+⎿[^\S\n]+|● )(?:API Error:? \(?(?:[45]\d\d(?:[^\d\w]|$)|\{|Request (?:rejected \(\d|timed out|was aborted)|Connection (?:error|closed)|Unable to connect|Claude.s response exceeded|Claude Code is unable|[^\n]{0,40}safeguards flagged))|^● (Please run /login ·|Usage limit reached ·)",
    message: r"^● |^\S \S+ for \d",
    input: r"^[│┃\s]*[❯>](\s|$)",
    placeholder: r"\[Pasted text #\d+( \+\d+ lines)?\]",
    pause: Duration::ZERO,
};

const CODEX: Program = Program {
    name: "codex",
    names: &["codex"],
    options: &["--dangerously-bypass-approvals-and-sandbox"],
    past: "",
    not_ready: &[
        known(
            Text("Finish signing in|Opening your browser|press c to copy it:|one-time code below"),
            Attention(BROWSER),
        ),
        known(Text("Sign in with ChatGPT|Paste or type your API key"), Attention(LOGIN)),
        // The second and third are those of earlier versions.
        known(
            Text(
                "Trust this folder\\?|[Dd]o you trust the contents of this directory|allow Codex to work in this folder",
            ),
            Trust("(?i)trust and continue|^yes"),
        ),
        known(
            Text("Try new model.* Use existing model"),
            Choose("(?i)^use existing model", "an offer of another model, declined"),
        ),
        // Not recorded: from earlier versions.
        known(Text("(?i)Update available.* Skip"), Choose("(?i)^skip$|^skip", UPDATE)),
        known(Text("(?i)(press )?enter(/esc)? (to )?(continue|confirm)( ·| or |$)"), Attention(QUESTION)),
        known(Text("Waiting for startup"), Starting),
    ],
    ready: &[
        // The line below the input that names the model comes when it has started; a folder that is not trusted and a login
        // that is missing show before that.
        (Line(r"^\s+\S.* · (~|/)\S*|context left|⏎ send"), SETTLED),
        (Line(r"^\s*›(\s|$)"), LONGEST),
    ],
    asks: &[
        (Text("Would you like to .* Press enter to confirm or esc to cancel$"), PERMISSION),
        (Text("(?i)press enter to (confirm|submit|select)[^.]*$"), QUESTION),
    ],
    // But for "Conversation interrupted", which a person has done.
    error: r"^■ (?:[^C]|C(?:[^o]|o(?:[^n]|n[^v])))",
    message: "^[•■] ",
    input: r"^\s*[›▌](\s|$)",
    placeholder: r"\[Pasted Content \d+ chars\]",
    pause: Duration::ZERO,
};

const GEMINI: Program = Program {
    name: "gemini",
    names: &["gemini", "gemini-cli"],
    options: &[],
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
    // It is painted for a moment before it asks whether to trust the folder.
    ready: &[(Text("Type your message"), LONG)],
    asks: &[
        (Text(r"1\. Allow once .* No, suggest changes \(esc\)$"), PERMISSION),
        (Text("Enter to select( · [^·]+)* · Esc to cancel$"), QUESTION),
    ],
    error: "^✕ |^│ Usage limit reached",
    message: "^✦ |^╭",
    input: r"^[│┃\s]*[>*!](\s|$)",
    placeholder: r"\[Pasted Text: \d+ (lines|chars)[^\]]*\]",
    // Enter right after a paste is taken for a part of it.
    pause: Duration::from_millis(500),
};

const OPENCODE: Program = Program {
    name: "opencode",
    names: &["opencode", "opencode-ai"],
    options: &[],
    past: "",
    not_ready: &[
        // Not recorded: from its sources.
        known(Text("Update [Aa]vailable .*(Skip|Confirm|esc)"), Press(&["Escape"], UPDATE)),
        known(
            Text("(Connect a provider|Select provider|Add credential|API key) .*(enter|esc)"),
            Attention(LOGIN),
        ),
    ],
    ready: &[(Text(r"ctrl\+p commands|tab (switch agent|agents)"), SETTLED), (Text(r"opencode v\d"), LONGER)],
    asks: &[
        (Text("△ Permission required .* Allow once Allow always Reject( .*)?$"), PERMISSION),
        (Text(r"↑↓ select enter \w+ esc dismiss( .*)?$"), QUESTION),
    ],
    // A block like that of the prompt, before the line that ends a turn.
    error: r"^\s*┃\n\s*┃  (\S.*)(?:\n\s*┃  .*)*\n\s*┃\n\n {5}▣",
    message: r"^ {5}[^\s▣]",
    input: r"^\s*┃",
    placeholder: r"\[Pasted ~\d+ lines\]",
    pause: Duration::ZERO,
};

const CLINE: Program = Program {
    name: "cline",
    names: &["cline"],
    options: &[],
    past: "",
    not_ready: &[
        known(Text("any other key to close"), Press(&["Escape"], "an offer to subscribe, closed")),
        known(Text("Signing in with|Waiting for (sign-in|authentication|browser)"), Attention(BROWSER)),
        known(
            Text("Connect a model provider to get started|Sign in with Cline|Bring your own provider"),
            Attention(LOGIN),
        ),
        known(Text("Enter to select"), Attention(QUESTION)),
    ],
    ready: &[
        (Line(r"^\s*❯ (What can I do for you|Ask anything)"), SETTLED),
        (Text(r"Auto-approve .*\(Shift\+Tab\)"), LONGER),
    ],
    asks: &[],
    error: "",
    message: "",
    input: r"^\s*❯(\s|$)",
    placeholder: r"\.\.\. Pasted \+\d+ lines\]",
    pause: Duration::ZERO,
};

const AMP: Program = Program {
    name: "amp",
    names: &["amp"],
    options: &["--dangerously-allow-all"],
    past: "",
    not_ready: &[
        known(Text(r"log in to Amp\?|Starting login flow"), Attention(LOGIN)),
        known(Text("(?i)paste your code here|open this link|login code"), Attention(BROWSER)),
    ],
    // Not recorded: it does not start without its own server.
    ready: &[(Line(r"^╰─.*[~/].*─╯$"), LONGER), (Text("Welcome to Amp"), LONGER)],
    asks: &[],
    error: "",
    message: "",
    input: r"^[│┃]\s",
    placeholder: r"\[Pasted text #\d+[^\]]*\]",
    pause: Duration::ZERO,
};

const AIDER: Program = Program {
    name: "aider",
    names: &["aider", "aider-chat"],
    options: &[],
    past: "",
    not_ready: &[
        known(Last("Login to OpenRouter|[Ee]nter your .*key"), Attention(LOGIN)),
        known(
            Last(
                r"(collection of anonymous analytics|see what.s new|[Rr]un this command|to update|\.gitignore|documentation (url|URL)).*\(Y\)es/\(N\)o.*\[\w+\]:$",
            ),
            Press(&["n", "Enter"], "an offer, declined"),
        ),
        known(Last(r"\(Y\)es/\(N\)o.*:$"), Attention(QUESTION)),
    ],
    ready: &[(Last(r"^([\w-]+( [\w-]+)*)?>$"), SETTLED)],
    asks: &[],
    error: "",
    message: "",
    input: r"^([\w-]+( [\w-]+)*)?>(\s|$)",
    placeholder: "",
    pause: Duration::ZERO,
};

const SHELL: Program = Program {
    name: "a shell",
    names: &["sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox"],
    options: &[],
    past: "",
    not_ready: &[],
    ready: &[(Last(r"[$#%>❯➜»λ]$"), SETTLED)],
    asks: &[],
    error: "",
    message: "",
    input: "",
    placeholder: "",
    pause: Duration::ZERO,
};

const INTERPRETER: Program = Program {
    name: "an interpreter",
    names: &[
        "python", "python3", "ipython", "pypy", "node", "deno", "bun", "irb", "lua", "ghci", "psql",
        "sqlite3",
    ],
    options: &[],
    past: "",
    not_ready: &[],
    ready: &[(Last(r"(^|[\w:)\]])>{1,3}$|^In \[\d+\]:$|[=)-][>#]$"), SETTLED)],
    asks: &[],
    error: "",
    message: "",
    input: "",
    placeholder: "",
    pause: Duration::ZERO,
};

/// The scripted agent looks like claude.
const SCRIPT: Program = Program { name: "script", names: &["__script"], options: &[], ..CLAUDE };

/// A program with a pattern of the user's for its ready screen.
pub(super) static UNKNOWN: Program = Program {
    name: "this program",
    names: &[],
    options: &[],
    past: "",
    not_ready: &[],
    ready: &[],
    asks: &[],
    error: "",
    message: "",
    input: "",
    placeholder: r"(?i)\[pasted [^\]]*\d+[^\]]*\]",
    pause: Duration::ZERO,
};

/// Those that are agents.
pub(super) static AGENTS: [Program; 8] = [CLAUDE, CODEX, GEMINI, OPENCODE, CLINE, AMP, AIDER, SCRIPT];
/// Those that run what they are told to; they count only where nothing is told to them.
pub(super) static SHELLS: [Program; 2] = [SHELL, INTERPRETER];
