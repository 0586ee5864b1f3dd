//! What has to be in order before an agent can work, and how that can be told without spending anything.
//!
//! All of it was tried with the real agents.

use crate::reply::usage::Class;
use crate::reply::verdict::Asides;

/// What has to be in order before an agent can work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Whether its user is logged in.
    pub login: LoginCheck,
    /// Where it refuses to work as root.
    pub root: Option<RootRefusal>,
    /// Where it works only in folders that its user trusts.
    pub trust: Option<TrustCheck>,
    /// Options that it takes although its help does not name them.
    pub unlisted: &'static [&'static str],
}

/// A file below the home folder (`~/…`) or the project, and the place in its JSON, as a JSON pointer.
pub type Place = (&'static str, &'static str);

/// How it can be told whether the user of an agent is logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginCheck {
    /// Nobody has to be.
    NotNeeded,
    /// With these arguments it prints an object with `loggedIn`.
    Json(&'static [&'static str]),
    /// With these arguments it exits with 0 when somebody is logged in, but does not know of every way.
    Exit(&'static [&'static str]),
    /// With these arguments it prints how many credentials there are, of those that it keeps itself.
    Counts(&'static [&'static str]),
    /// By what a login leaves, of which one is enough.
    Traces {
        /// Variables.
        variables: &'static [&'static str],
        /// Values in files.
        files: &'static [Place],
        /// A value among these that is worth nothing without a variable, or a file that may set it.
        keys: &'static [(&'static str, &'static str, &'static str)],
    },
}

/// How an agent refuses to work as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootRefusal {
    /// With this option,
    pub option: &'static str,
    /// unless this variable has this value.
    pub unless: (&'static str, &'static str),
}

/// How an agent is told that a folder can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustCheck {
    /// By this option,
    pub option: &'static str,
    /// by this variable with this value,
    pub variable: (&'static str, &'static str),
    /// by switching the question off,
    pub question: Place,
    /// or by a file with an object: from a path to `TRUST_FOLDER`, `TRUST_PARENT` or `DO_NOT_TRUST`.
    pub folders: &'static str,
}

pub(super) const NONE: Setup = Setup { login: LoginCheck::NotNeeded, root: None, trust: None, unlisted: &[] };
pub(super) const AMP: Setup = Setup {
    login: LoginCheck::Traces { variables: &["AMP_API_KEY"], files: &[], keys: &[] },
    unlisted: &["--dangerously-allow-all"],
    ..NONE
};
pub(super) const CLAUDE: Setup = Setup {
    login: LoginCheck::Json(&["auth", "status"]),
    root: Some(RootRefusal { option: "--dangerously-skip-permissions", unless: ("IS_SANDBOX", "1") }),
    ..NONE
};
pub(super) const CLINE: Setup = Setup {
    login: LoginCheck::Traces {
        variables: &[],
        files: &[("~/.cline/data/settings/providers.json", "/lastUsedProvider")],
        keys: &[],
    },
    ..NONE
};
pub(super) const CODEX: Setup = Setup { login: LoginCheck::Exit(&["login", "status"]), ..NONE };
/// A key alone does not choose a login method.
pub(super) const GEMINI: Setup = Setup {
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
    ..NONE
};
pub(super) const OPENCODE: Setup = Setup { login: LoginCheck::Counts(&["auth", "list"]), ..NONE };

pub(super) const CLAUDE_ASIDES: Asides =
    Asides { root_refusal: "cannot be used with root/sudo privileges", ..Asides::NONE };
pub(super) const GEMINI_ASIDES: Asides = Asides {
    // No login method is chosen; the folder is not trusted. An error of its provider: what fits of its HTTP status.
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
