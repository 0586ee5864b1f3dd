//! Interactive programs that are no agents; each agent has a file in [`crate::presets`].

use super::SETTLED;
use crate::presets::screens::Means::Attention;
use crate::presets::screens::Sight::Last;
use crate::presets::screens::{Known, Program, QUESTION, known};

/// Questions of any program.
pub(super) const ANY: &[Known] = &[
    known(Last(r"(?i)(password|passphrase|passcode)[^:]*:$"), Attention("it asks for a password")),
    known(Last(r"(?i)[(\[](yes/no|y/n)\b.*[)\]][?:]?$"), Attention(QUESTION)),
];

const SHELL: Program = Program {
    name: "a shell",
    names: &["sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox"],
    ready: &[(Last(r"[$#%>❯➜»λ]$"), SETTLED)],
    ..Program::BLANK
};

const INTERPRETER: Program = Program {
    name: "an interpreter",
    names: &[
        "python", "python3", "ipython", "pypy", "node", "deno", "bun", "irb", "lua", "ghci", "psql",
        "sqlite3",
    ],
    ready: &[(Last(r"(^|[\w:)\]])>{1,3}$|^In \[\d+\]:$|[=)-][>#]$"), SETTLED)],
    ..Program::BLANK
};

/// A program with a user's pattern for its ready screen.
pub(super) static UNKNOWN: Program =
    Program { placeholder: r"(?i)\[pasted [^\]]*\d+[^\]]*\]", ..Program::BLANK };

/// Programs that run a command; they count only without one.
pub(super) static SHELLS: [Program; 2] = [SHELL, INTERPRETER];
