//! The interactive programs that we know: how each one is named on a command line, and what its screens mean.
//!
//! From the recordings under `tests/screens/`: claude 2.1.330, codex 0.169, gemini 0.61, opencode 1.18, cline 3.0 and aider 0.86;
//! of amp only its login. What else stands here comes from earlier versions and from documentation, and says so.

use std::time::Duration;

use super::SETTLED;

/// One interactive program.
#[derive(Debug)]
pub struct Program {
    /// What people call it.
    pub name: &'static str,
    /// The file names of its executables and images.
    names: &'static [&'static str],
    /// Options that no other program has: they name it where a script of the user's starts it.
    options: &'static [&'static str],
    /// Screens on which it cannot take a prompt; the first that is seen counts, before all that mean ready.
    pub(super) not_ready: &'static [Known],
    /// What shows that it can, and for how long that has to be seen.
    pub(super) ready: &'static [(Sight, Duration)],
    /// A regular expression for the first line of where a prompt is typed; the last such line of a screen is it. Empty: it
    /// is the last line of the screen.
    pub(super) input: &'static str,
    /// A regular expression for what is shown in the place of a long prompt. Empty: nothing is.
    pub(super) placeholder: &'static str,
    /// How long it needs between a paste and Enter, besides the time until the paste is on its screen.
    pub pause: Duration,
}

/// A screen that is not ready.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) sight: Sight,
    pub(super) means: Means,
}

/// Where a regular expression is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sight {
    /// In the whole screen as one line: see `text::flowed`.
    Text(&'static str),
    /// In one of its lines.
    Line(&'static str),
    /// In the last line that has something on it. For programs that leave what was answered above.
    Last(&'static str),
}

/// What a screen asks for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Means {
    /// These keys, as tmux names them: what they answer is harmless.
    Press(&'static [&'static str], &'static str),
    /// The entry of a menu that this regular expression finds.
    Choose(&'static str, &'static str),
    /// The same, if the user said so; else a person.
    Trust(&'static str),
    /// A person.
    Attention(&'static str),
    /// Nothing: it is still starting.
    Starting,
}

use Means::{Attention, Choose, Press, Starting, Trust};
use Sight::{Last, Line, Text};

const fn known(sight: Sight, means: Means) -> Known {
    Known { sight, means }
}

const LOGIN: &str = "it wants a login";
const BROWSER: &str = "it wants a login in a browser";
const UPDATE: &str = "an update, declined";
const NOTES: &str = "release notes";
/// A sight that may also be seen while the rest of the screen is still to come.
const LONGER: Duration = Duration::from_secs(2);
/// A sight that may be there long before the program is.
const LONGEST: Duration = Duration::from_secs(15);

/// What programs of every kind ask.
pub(super) const ANY: &[Known] = &[
    known(Last(r"(?i)(password|passphrase|passcode)[^:]*:$"), Attention("it asks for a password")),
    known(Last(r"(?i)[(\[](yes/no|y/n)\b.*[)\]][?:]?$"), Attention("it asks a question")),
];

const CLAUDE: Program = Program {
    name: "claude",
    names: &["claude", "claude-code"],
    options: &["--dangerously-skip-permissions", "--allow-dangerously-skip-permissions"],
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
        known(Text("Enter to confirm|Esc to (cancel|go back)$"), Attention("it asks a question")),
        known(Text("Press Enter to continue"), Attention("it waits for Enter")),
        known(Text("^Welcome to Claude Code v[0-9.]+( [.█▓▒░▄▀*…]+)*$"), Starting),
    ],
    ready: &[
        (Line(r"^[│┃\s]*[❯>](\s|$)"), SETTLED),
        (Text("bypass permissions|permission mode|shift\\+tab to cycle"), LONGER),
        (Text(r"(^|[^o] |[^o ])Claude Code v\d"), LONGER),
    ],
    input: r"^[│┃\s]*[❯>](\s|$)",
    placeholder: r"\[Pasted text #\d+( \+\d+ lines)?\]",
    pause: Duration::ZERO,
};

const CODEX: Program = Program {
    name: "codex",
    names: &["codex"],
    options: &["--dangerously-bypass-approvals-and-sandbox"],
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
        // Not recorded: from earlier versions.
        known(Text("(?i)Update available.* Skip"), Choose("(?i)^skip$|^skip", UPDATE)),
        known(
            Text("(?i)(press )?enter (to )?(continue|confirm)( ·| or |$)"),
            Attention("it asks a question"),
        ),
        known(Text("Waiting for startup"), Starting),
    ],
    ready: &[
        // The line below the input that names the model comes when it has started; a folder that is not trusted and a login
        // that is missing show before that.
        (Line(r"^\s+\S.* · (~|/)\S*|context left|⏎ send"), SETTLED),
        (Line(r"^\s*›(\s|$)"), LONGEST),
    ],
    input: r"^\s*[›▌](\s|$)",
    placeholder: r"\[Pasted Content \d+ chars\]",
    pause: Duration::ZERO,
};

const GEMINI: Program = Program {
    name: "gemini",
    names: &["gemini", "gemini-cli"],
    options: &[],
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
        known(
            Text("\\(Use Enter to select|Press Enter to (continue|confirm)"),
            Attention("it asks a question"),
        ),
    ],
    ready: &[(Text("Type your message"), SETTLED)],
    input: r"^[│┃\s]*[>*!](\s|$)",
    placeholder: r"\[Pasted Text: \d+ (lines|chars)[^\]]*\]",
    // Enter right after a paste is taken for a part of it.
    pause: Duration::from_millis(500),
};

const OPENCODE: Program = Program {
    name: "opencode",
    names: &["opencode", "opencode-ai"],
    options: &[],
    not_ready: &[
        // Not recorded: from its sources.
        known(Text("Update [Aa]vailable .*(Skip|Confirm|esc)"), Press(&["Escape"], UPDATE)),
        known(
            Text("(Connect a provider|Select provider|Add credential|API key) .*(enter|esc)"),
            Attention(LOGIN),
        ),
    ],
    ready: &[(Text(r"ctrl\+p commands|tab (switch agent|agents)"), SETTLED), (Text(r"opencode v\d"), LONGER)],
    input: r"^\s*┃",
    placeholder: r"\[Pasted ~\d+ lines\]",
    pause: Duration::ZERO,
};

const CLINE: Program = Program {
    name: "cline",
    names: &["cline"],
    options: &[],
    not_ready: &[
        known(Text("any other key to close"), Press(&["Escape"], "an offer to subscribe, closed")),
        known(Text("Signing in with|Waiting for (sign-in|authentication|browser)"), Attention(BROWSER)),
        known(
            Text("Connect a model provider to get started|Sign in with Cline|Bring your own provider"),
            Attention(LOGIN),
        ),
        known(Text("Enter to select"), Attention("it asks a question")),
    ],
    ready: &[
        (Line(r"^\s*❯ (What can I do for you|Ask anything)"), SETTLED),
        (Text(r"Auto-approve .*\(Shift\+Tab\)"), LONGER),
    ],
    input: r"^\s*❯(\s|$)",
    placeholder: r"\.\.\. Pasted \+\d+ lines\]",
    pause: Duration::ZERO,
};

const AMP: Program = Program {
    name: "amp",
    names: &["amp"],
    options: &["--dangerously-allow-all"],
    not_ready: &[
        known(Text(r"log in to Amp\?|Starting login flow"), Attention(LOGIN)),
        known(Text("(?i)paste your code here|open this link|login code"), Attention(BROWSER)),
    ],
    // Not recorded: it does not start without its own server.
    ready: &[(Line(r"^╰─.*[~/].*─╯$"), LONGER), (Text("Welcome to Amp"), LONGER)],
    input: r"^[│┃]\s",
    placeholder: r"\[Pasted text #\d+[^\]]*\]",
    pause: Duration::ZERO,
};

const AIDER: Program = Program {
    name: "aider",
    names: &["aider", "aider-chat"],
    options: &[],
    not_ready: &[
        known(Last("Login to OpenRouter|[Ee]nter your .*key"), Attention(LOGIN)),
        known(
            Last(
                r"(collection of anonymous analytics|see what.s new|[Rr]un this command|to update|\.gitignore|documentation (url|URL)).*\(Y\)es/\(N\)o",
            ),
            Press(&["n", "Enter"], "an offer, declined"),
        ),
        known(Last(r"\(Y\)es/\(N\)o.*:$"), Attention("it asks a question")),
    ],
    ready: &[(Last(r"^([\w-]+( [\w-]+)*)?>$"), SETTLED)],
    input: r"^([\w-]+( [\w-]+)*)?>(\s|$)",
    placeholder: "",
    pause: Duration::ZERO,
};

const SHELL: Program = Program {
    name: "a shell",
    names: &["sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox"],
    options: &[],
    not_ready: &[],
    ready: &[(Last(r"[$#%>❯➜»λ]$"), SETTLED)],
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
    not_ready: &[],
    ready: &[(Last(r"(^|[\w:)\]])>{1,3}$|^In \[\d+\]:$|[=)-][>#]$"), SETTLED)],
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
    not_ready: &[],
    ready: &[],
    input: "",
    placeholder: r"(?i)\[pasted [^\]]*\d+[^\]]*\]",
    pause: Duration::ZERO,
};

/// Those that are agents.
static AGENTS: [Program; 8] = [CLAUDE, CODEX, GEMINI, OPENCODE, CLINE, AMP, AIDER, SCRIPT];
/// Those that run what they are told to; they count only where nothing is told to them.
static SHELLS: [Program; 2] = [SHELL, INTERPRETER];

impl Program {
    /// The program of a command line, also behind `env`, a script, `docker run` or `bash -c`: the last word that names an
    /// agent by its file name or by an option that only it has, else a shell that is started without a script. `None`: none
    /// that we know.
    #[must_use]
    pub fn of(command: &[String]) -> Option<&'static Self> {
        let words = words(command);
        words.iter().rev().find_map(|word| agent(word)).or_else(|| shell(&words))
    }

    /// The names of all, for messages.
    pub fn known() -> impl Iterator<Item = &'static str> {
        AGENTS.iter().map(|program| program.name)
    }

    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = &'static Self> {
        AGENTS.iter().chain(&SHELLS).chain([&UNKNOWN])
    }

    /// The program with this name of ours.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        AGENTS.iter().chain(&SHELLS).find(|program| program.name == name)
    }
}

/// The words of a command line; those of a script after `-c` in its place. What follows an option for a model is the name of
/// one.
fn words(command: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let mut before = "";
    for word in command {
        let is_option = before.starts_with('-') && !before.starts_with("--") && before.ends_with('c');
        let is_script =
            is_option && program_word(&words).is_some_and(|(_, word)| SHELL.names.contains(&file_name(word)));
        match shlex::split(word).filter(|_| is_script && word.contains(char::is_whitespace)) {
            // The shell around a script is not what is started.
            Some(script) => words = script,
            None if matches!(before, "-m" | "--model") => {}
            None => words.push(word.clone()),
        }
        before = word;
    }
    words
}

/// The part of a word that names a program: `@scope/name@1.2`, `image/name:tag`, `/path/to/name.exe`.
fn file_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let end = name.find(['@', ':']).unwrap_or(name.len());
    name[..end].trim_end_matches(".exe").trim_end_matches(".cmd")
}

/// The last word that is no option, and its place.
fn program_word(words: &[String]) -> Option<(usize, &String)> {
    words.iter().enumerate().rfind(|(_, word)| !word.starts_with(['-', '+']))
}

fn agent(word: &str) -> Option<&'static Program> {
    AGENTS.iter().find(|program| program.names.contains(&file_name(word)) || program.options.contains(&word))
}

fn shell(words: &[String]) -> Option<&'static Program> {
    let (last, word) = program_word(words)?;
    let runs_something = words[last + 1..].iter().any(|word| !word.starts_with("--") && word.ends_with('c'));
    let name = file_name(word);
    // `python3.12` is python.
    let plain = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let is_named = |program: &&Program| program.names.contains(&name) || program.names.contains(&plain);
    SHELLS.iter().find(is_named).filter(|_| !runs_something)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Option<&'static str> {
        let command: Vec<String> = shlex::split(command).unwrap();
        Program::of(&command).map(|program| program.name)
    }

    #[test]
    fn agents_are_found_behind_what_starts_them() {
        for (command, name) in [
            ("claude", "claude"),
            ("/usr/local/bin/claude --model opus", "claude"),
            ("env -i A=b claude", "claude"),
            ("./sandbox.sh claude", "claude"),
            ("./sandbox.sh --dangerously-skip-permissions", "claude"),
            ("docker run --rm -it -v .:/work image claude", "claude"),
            ("docker run -it registry.example/claude:latest", "claude"),
            ("npx -y @anthropic-ai/claude-code@latest", "claude"),
            ("bash -lc 'cd sub && exec claude --dangerously-skip-permissions'", "claude"),
            ("sh -c codex", "codex"),
            ("codex -c 'model = \"claude\"'", "codex"),
            ("npx @openai/codex", "codex"),
            ("opencode -m openai/codex", "opencode"),
            ("timeout 60 gemini --yolo", "gemini"),
            ("cline", "cline"),
            ("/bin/ralph __script --screen", "script"),
            ("amp", "amp"),
            ("aider --model openai/amp", "aider"),
            ("claude --append-system-prompt 'you are in bash'", "claude"),
        ] {
            assert_eq!(of(command), Some(name), "{command}");
        }
    }

    #[test]
    fn a_shell_counts_where_it_is_told_nothing() {
        for (command, name) in [
            ("bash", "a shell"),
            ("bash --norc -i", "a shell"),
            ("docker run -it debian sh", "a shell"),
            ("python3.12", "an interpreter"),
            ("python3 -q", "an interpreter"),
        ] {
            assert_eq!(of(command), Some(name), "{command}");
        }
        for command in
            ["bash run.sh", "python3 tool.py --fast", "sh -c 'vim x'", "python3 -c pass", "vim", ""]
        {
            assert_eq!(of(command), None, "{command}");
        }
    }
}
