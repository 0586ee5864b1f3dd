//! The forges on which branches become pull requests: one table, with the program of each, its words and its answers.

use std::path::Path;

use serde_json::Value;

use crate::process::launch::Launch;

/// A pull request to open.
pub(crate) struct Request<'a> {
    /// The branch that it is to be merged into.
    pub(crate) base: &'a str,
    /// The branch with the work.
    pub(crate) head: &'a str,
    pub(crate) title: &'a str,
    pub(crate) body: &'a str,
}

/// A forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forge {
    /// GitHub, also where another host serves it.
    GitHub,
    /// GitLab, also where another host serves it.
    GitLab,
}

/// What is known about a forge.
pub(crate) struct Row {
    /// Its word in settings, which its hosts have in their names.
    word: &'static str,
    /// The program that speaks to it, and where that is from.
    pub(crate) program: &'static str,
    pub(crate) site: &'static str,
    /// What it calls a pull request.
    pub(crate) noun: &'static str,
    /// The command by which a user opens one, before the name of the branch.
    pub(crate) create_by_hand: &'static str,
    /// The command that lists them.
    pub(crate) list: &'static str,
    /// Variables by which the program does not ask, advertise or colour.
    pub(crate) env: &'static [(&'static str, &'static str)],
    /// Its exit code if the user is not logged in, and what it says then.
    pub(crate) login_code: Option<i32>,
    pub(crate) login_words: &'static [&'static str],
    /// What it says if the branch to merge into is not on the remote.
    pub(crate) no_base: &'static str,
    /// The arguments that open a pull request.
    pub(crate) create: fn(&Request<'_>) -> Vec<String>,
    /// The arguments that show the one of a branch as JSON, for a program that does not name it when it is there already.
    pub(crate) find: Option<fn(&str) -> Vec<String>>,
    /// The ref on the remote with the commits of a pull request, before and after its number.
    head: (&'static str, &'static str),
    /// The arguments that show a pull request as JSON, and those that list the comments on its code.
    pub(crate) view: fn(u64) -> Vec<String>,
    pub(crate) comments: fn(u64) -> Vec<String>,
    pub(crate) shape: Shape,
}

/// Where its answers have what is needed, as JSON pointers.
pub(crate) struct Shape {
    pub(crate) title: &'static str,
    pub(crate) body: &'static str,
    pub(crate) author: &'static str,
    pub(crate) state: &'static str,
    pub(crate) address: &'static str,
    pub(crate) head: &'static str,
    pub(crate) base: &'static str,
    pub(crate) is_fork: fn(&Value) -> bool,
    /// Lists of remarks that are not about a line, each with author and text of a remark.
    pub(crate) remarks: &'static [(&'static str, &'static str, &'static str)],
    /// Where a comment on code has its notes, unless it is one itself.
    pub(crate) notes: Option<&'static str>,
    pub(crate) note_author: &'static str,
    pub(crate) file: &'static str,
    pub(crate) line: &'static str,
    pub(crate) old_line: &'static str,
    /// Flags of notes that are not for an agent: those of the forge itself, and those that are settled.
    pub(crate) left_out: &'static [&'static str],
}

const GITHUB: Row = Row {
    word: "github",
    program: "gh",
    site: "https://cli.github.com",
    noun: "pull request",
    create_by_hand: "gh pr create --head",
    list: "gh pr list",
    env: &[("GH_PROMPT_DISABLED", "1"), ("GH_NO_UPDATE_NOTIFIER", "1"), ("NO_COLOR", "1")],
    login_code: Some(4),
    login_words: &["gh auth login"],
    no_base: "Base ref must be a branch",
    create: |request| {
        let Request { base, head, title, body } = request;
        words(&["pr", "create", "--base", base, "--head", head, "--title", title, "--body", body])
    },
    find: None,
    head: ("refs/pull/", "/head"),
    view: |number| {
        let fields = "title,body,author,state,url,headRefName,baseRefName,isCrossRepository,reviews,comments";
        words(&["pr", "view", &number.to_string(), "--json", fields])
    },
    comments: |number| {
        words(&["api", &format!("repos/{{owner}}/{{repo}}/pulls/{number}/comments"), "--paginate"])
    },
    shape: Shape {
        title: "/title",
        body: "/body",
        author: "/author/login",
        state: "/state",
        address: "/url",
        head: "/headRefName",
        base: "/baseRefName",
        is_fork: |request| request["isCrossRepository"] == true,
        remarks: &[("/reviews", "/author/login", "/body"), ("/comments", "/author/login", "/body")],
        notes: None,
        note_author: "/user/login",
        file: "/path",
        line: "/line",
        old_line: "/original_line",
        left_out: &[],
    },
};

const GITLAB: Row = Row {
    word: "gitlab",
    program: "glab",
    site: "https://gitlab.com/gitlab-org/cli",
    noun: "merge request",
    create_by_hand: "glab mr create --source-branch",
    list: "glab mr list",
    env: &[("NO_PROMPT", "1"), ("GLAB_CHECK_UPDATE", "0"), ("GLAB_SEND_TELEMETRY", "0"), ("NO_COLOR", "1")],
    login_code: None,
    login_words: &["glab auth login", "401 Unauthorized", "401 {message"],
    no_base: "target_branch",
    create: |request| {
        let Request { base, head, title, body } = request;
        let words =
            words(&["mr", "create", "--source-branch", head, "--target-branch", base, "--title", title]);
        // With a bare `-` as its value an editor would be opened.
        [words, vec!["--description".to_owned(), (*body).to_owned(), "--yes".to_owned()]].concat()
    },
    find: Some(|branch| words(&["mr", "view", branch, "--output", "json"])),
    head: ("refs/merge-requests/", "/head"),
    view: |number| words(&["mr", "view", &number.to_string(), "--output", "json"]),
    comments: |number| {
        words(&["api", &format!("projects/:id/merge_requests/{number}/discussions"), "--paginate"])
    },
    shape: Shape {
        title: "/title",
        body: "/description",
        author: "/author/username",
        state: "/state",
        address: "/web_url",
        head: "/source_branch",
        base: "/target_branch",
        is_fork: |request| request["source_project_id"] != request["target_project_id"],
        remarks: &[],
        notes: Some("/notes"),
        note_author: "/author/username",
        file: "/position/new_path",
        line: "/position/new_line",
        old_line: "/position/old_line",
        left_out: &["/system", "/resolved"],
    },
};

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Forge {
    /// All of them. The first one serves hosts whose names say nothing.
    pub const ALL: [Self; 2] = [Self::GitHub, Self::GitLab];

    /// What is known about it.
    pub(crate) const fn row(self) -> &'static Row {
        match self {
            Self::GitHub => &GITHUB,
            Self::GitLab => &GITLAB,
        }
    }

    /// The command line of its program with these arguments, in the work tree `tree`, with the run mark of a loop.
    pub(crate) fn call(self, tree: &Path, arguments: Vec<String>, mark: &str) -> Launch {
        let row = self.row();
        Launch {
            program: row.program.into(),
            args: arguments.into_iter().map(Into::into).collect(),
            cwd: tree.to_owned(),
            env: row.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            mark: mark.to_owned(),
            ..Launch::default()
        }
    }

    /// The one with this word in settings.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|forge| forge.row().word == word)
    }

    /// The one that serves the host of this URL, by the host's name.
    #[must_use]
    pub fn of_url(url: &str) -> Self {
        let host = host(url).to_lowercase();
        Self::ALL.into_iter().find(|forge| host.contains(forge.row().word)).unwrap_or(Self::GitHub)
    }

    /// The ref on the remote with the commits of a pull request.
    #[must_use]
    pub fn head(self, number: u64) -> String {
        let (before, after) = self.row().head;
        format!("{before}{number}{after}")
    }
}

/// The host of a URL, or of git's `user@host:path`; empty for a path.
fn host(url: &str) -> &str {
    let after_scheme = url.split_once("://").map(|(_, rest)| rest);
    let place = after_scheme.or_else(|| url.split_once(':').map(|(place, _)| place)).unwrap_or_default();
    let place = place.split('/').next().unwrap_or_default();
    place.rsplit('@').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forge_is_known_by_its_host() {
        for (url, forge) in [
            ("https://github.com/gitlab/x.git", Forge::GitHub),
            ("git@gitlab.com:a/b.git", Forge::GitLab),
            ("ssh://git@GitLab.example.org:22/a/b", Forge::GitLab),
            ("https://oauth:github@gitlab.example.org/a", Forge::GitLab),
            ("/srv/gitlab/x.git", Forge::GitHub),
            ("https://code.example.org/a/b", Forge::GitHub),
        ] {
            assert_eq!(Forge::of_url(url), forge, "{url}");
        }
        assert_eq!(Forge::named("gitlab"), Some(Forge::GitLab));
        assert_eq!(Forge::named("auto"), None);
        assert_eq!(Forge::GitLab.head(12), "refs/merge-requests/12/head");
    }
}
