//! The forges on which branches become pull requests: one table, with the program of each, its words and its answers.

use std::path::Path;

use serde_json::Value;

use crate::process::ladder::Ladder;
use crate::process::launch::Launch;
pub use crate::settings::forge::ForgeChoice;

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
    /// How settings name it; its hosts have that word in their names.
    choice: ForgeChoice,
    /// The host of the forge itself, and others under which it answers ssh.
    host: &'static str,
    ssh_hosts: &'static [&'static str],
    /// Whether all its repositories are OWNER/REPO; otherwise there may be more parts.
    has_two_parts: bool,
    /// What stands in the address of an issue between its repository and its number.
    issues: &'static [&'static str],
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
    /// Whether it names the one of a branch that is there already.
    pub(crate) names_known: bool,
    /// The arguments that show the one of a branch as JSON.
    pub(crate) find: fn(&str) -> Vec<String>,
    /// The arguments that give the one of a branch another description.
    pub(crate) describe: fn(&str, &str) -> Vec<String>,
    /// How an option names a repository.
    named: fn(&Repository) -> String,
    /// The ref on the remote with the commits of a pull request, before and after its number.
    head: (&'static str, &'static str),
    /// The arguments that show a pull request as JSON, and those that list the comments on its code.
    pub(crate) view: fn(u64) -> Vec<String>,
    pub(crate) comments: fn(u64, Option<&Repository>) -> Vec<String>,
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
    /// Lists of remarks that are not about a line, each with author, text and time of a remark.
    pub(crate) remarks: &'static [(&'static str, &'static str, &'static str, &'static str)],
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
    choice: ForgeChoice::Github,
    host: "github.com",
    ssh_hosts: &["ssh.github.com"],
    has_two_parts: true,
    issues: &["/issues/"],
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
    names_known: true,
    find: |branch| words(&["pr", "view", branch, "--json", "body,state,url"]),
    describe: |branch, body| words(&["pr", "edit", branch, "--body", body]),
    named: |repository| format!("{}/{}", repository.host, repository.path),
    head: ("refs/pull/", "/head"),
    view: |number| {
        let fields = "title,body,author,state,url,headRefName,baseRefName,isCrossRepository,reviews,comments";
        words(&["pr", "view", &number.to_string(), "--json", fields])
    },
    comments: |number, repository| {
        let path = repository.map_or("{owner}/{repo}", |repository| &*repository.path);
        api(&format!("repos/{path}/pulls/{number}/comments"), repository)
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
        remarks: &[
            ("/reviews", "/author/login", "/body", "/submittedAt"),
            ("/comments", "/author/login", "/body", "/createdAt"),
        ],
        notes: None,
        note_author: "/user/login",
        file: "/path",
        line: "/line",
        old_line: "/original_line",
        left_out: &[],
    },
};

const GITLAB: Row = Row {
    choice: ForgeChoice::Gitlab,
    host: "gitlab.com",
    ssh_hosts: &["altssh.gitlab.com"],
    has_two_parts: false,
    issues: &["/-/issues/", "/-/work_items/"],
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
    names_known: false,
    find: |branch| words(&["mr", "view", branch, "--output", "json"]),
    describe: |branch, body| words(&["mr", "update", branch, "--description", body]),
    named: |repository| format!("https://{}/{}", repository.host, repository.path),
    head: ("refs/merge-requests/", "/head"),
    view: |number| words(&["mr", "view", &number.to_string(), "--output", "json"]),
    comments: |number, repository| {
        let id =
            repository.map_or_else(|| ":id".to_owned(), |repository| repository.path.replace('/', "%2F"));
        api(&format!("projects/{id}/merge_requests/{number}/discussions"), repository)
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

/// The arguments that list what is at a path of the API, all pages of it.
fn api(path: &str, repository: Option<&Repository>) -> Vec<String> {
    let host = repository.map_or_else(Vec::new, |repository| words(&["--hostname", &repository.host]));
    [words(&["api", path, "--paginate"]), host].concat()
}

/// A repository, as the addresses of its forge name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The host of the forge, in small letters, with the port of its pages.
    host: String,
    /// `OWNER/REPO`, or more parts.
    path: String,
    /// Whether the forge's program can be asked about it by this name. The host of an ssh address may be a name that only ssh knows,
    /// and a forge may be at a path of its host.
    is_sure: bool,
}

impl Repository {
    /// The repository of a remote with this URL; `None` for a folder.
    fn of_url(forge: Forge, url: &str) -> Option<Self> {
        let row = forge.row();
        let (is_ssh, place, path) = if let Some((scheme, rest)) = url.split_once("://") {
            let (place, path) = rest.split_once('/')?;
            (scheme.contains("ssh"), place, path)
        } else {
            let (place, path) = url.split_once(':').filter(|(place, _)| !place.contains('/'))?;
            (true, place, path)
        };
        let host = place.rsplit('@').next()?.to_lowercase();
        let (name, port) = host.split_once(':').unwrap_or((&host, ""));
        let is_its_own = name == row.host || is_ssh && row.ssh_hosts.contains(&name);
        // The port of ssh is none of the pages, that of the pages may be another server.
        let host = if is_its_own {
            row.host
        } else if is_ssh {
            name
        } else {
            &*host
        };
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let parts = path.split('/').count();
        let fits = if is_its_own && !row.has_two_parts { parts >= 2 } else { parts == 2 };
        let is_web = url.starts_with("https://") && port.is_empty();
        let is_plain = is_path(path) && !host.is_empty();
        let is_sure = fits && (is_its_own || is_web);
        is_plain.then(|| Self { host: host.to_owned(), path: path.to_owned(), is_sure })
    }

    /// The one that `gh repo set-default` has chosen, from its entry for the remote of this repository.
    fn chosen(resolved: &str, of_remote: Option<Self>) -> Option<Self> {
        if resolved == "base" {
            return of_remote;
        }
        let (host, path) = match resolved.split('/').count() {
            3 => resolved.split_once('/')?,
            _ => (of_remote.as_ref().map_or(GITHUB.host, |repository| &*repository.host), resolved),
        };
        let is_one = path.split('/').count() == 2 && is_path(path);
        is_one.then(|| Self { host: host.to_lowercase(), path: path.to_owned(), is_sure: true })
    }

    fn is(&self, other: &Self) -> bool {
        self.host == other.host && self.path.eq_ignore_ascii_case(&other.path)
    }
}

/// Whether this is a path of plain names.
fn is_path(path: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    path.split('/').all(|part| !part.is_empty() && part.chars().all(is_of_name))
}

/// Where the pull requests of a remote are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The forge that serves it.
    forge: Forge,
    /// The repository that gets them, as far as it is known.
    repository: Option<Repository>,
    /// The owner of the repository with the branches, if that is another one.
    owner: Option<String>,
}

impl Home {
    /// That of a remote with this URL to which is pushed. `resolved`: what `gh repo set-default` has noted, and the URL of the remote
    /// at which it is.
    pub(super) fn of(forge: Forge, url: &str, resolved: Option<(&str, &str)>) -> Self {
        let pushed = Repository::of_url(forge, url);
        let Some((resolved, at)) = resolved.filter(|_| forge == Forge::GitHub) else {
            return Self { forge, repository: pushed, owner: None };
        };
        let repository = Repository::chosen(resolved, Repository::of_url(forge, at));
        let other = pushed.filter(|pushed| repository.as_ref().is_some_and(|chosen| !chosen.is(pushed)));
        let owner = other.and_then(|pushed| Some(pushed.path.split_once('/')?.0.to_owned()));
        Self { forge, repository, owner }
    }

    /// The place of pull requests of which only the forge is known.
    #[cfg(test)]
    pub(crate) const fn unnamed(forge: Forge) -> Self {
        Self { forge, repository: None, owner: None }
    }

    /// The forge.
    #[must_use]
    pub fn forge(&self) -> Forge {
        self.forge
    }

    fn sure(&self) -> Option<&Repository> {
        self.repository.as_ref().filter(|repository| repository.is_sure)
    }

    /// A branch that was pushed, as requests name it.
    pub(crate) fn head(&self, branch: &str) -> String {
        self.owner.as_ref().map_or_else(|| branch.to_owned(), |owner| format!("{owner}:{branch}"))
    }

    /// The command line of the forge's program with these arguments about the repository, in the work tree `tree`, with the run mark of
    /// a loop.
    pub(crate) fn ask(&self, tree: &Path, mut arguments: Vec<String>, mark: &str) -> Launch {
        if let Some(repository) = self.sure() {
            arguments.extend(["--repo".to_owned(), (self.forge.row().named)(repository)]);
        }
        self.call(tree, arguments, mark)
    }

    /// The command line that lists the comments on the code of a pull request.
    pub(crate) fn ask_comments(&self, tree: &Path, number: u64) -> Launch {
        self.call(tree, (self.forge.row().comments)(number, self.sure()), "")
    }

    fn call(&self, tree: &Path, arguments: Vec<String>, mark: &str) -> Launch {
        let row = self.forge.row();
        Launch {
            program: row.program.into(),
            args: arguments.into_iter().map(Into::into).collect(),
            cwd: tree.to_owned(),
            env: row.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            mark: mark.to_owned(),
            ladder: Ladder::AT_ONCE,
            ..Launch::default()
        }
    }

    /// The line of a description by which the merge closes the issue with this address; `None` if it is none of this forge.
    #[must_use]
    pub fn closes(&self, address: &str) -> Option<String> {
        let home = self.repository.as_ref()?;
        let (host, rest) = address.strip_prefix("https://")?.split_once('/')?;
        let row = self.forge.row();
        let (path, number) = row.issues.iter().find_map(|between| rest.split_once(between))?;
        let number: u64 = number.parse().ok()?;
        let parts = path.split('/').count();
        let is_one = is_path(path) && if row.has_two_parts { parts == 2 } else { parts >= 2 };
        let issue = Repository { host: host.to_lowercase(), path: path.to_owned(), is_sure: true };
        if issue.host != home.host || !is_one {
            return None;
        }
        if issue.is(home) {
            return Some(format!("Closes #{number}"));
        }
        // A name that only ssh knows may be that of another host.
        home.is_sure.then(|| format!("Closes {path}#{number}"))
    }
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

    /// The one that serves the host of this URL: the one that the user has chosen, else by the host's name.
    #[must_use]
    pub fn of_url(url: &str, choice: ForgeChoice) -> Self {
        let host = host(url).to_lowercase();
        let find = |is_it: &dyn Fn(ForgeChoice) -> bool| {
            Self::ALL.into_iter().find(|forge| is_it(forge.row().choice))
        };
        let by_host = || find(&|known| host.contains(known.word()));
        find(&|known| known == choice).or_else(by_host).unwrap_or(Self::GitHub)
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
            assert_eq!(Forge::of_url(url, ForgeChoice::Auto), forge, "{url}");
            assert_eq!(Forge::of_url(url, ForgeChoice::Gitlab), Forge::GitLab);
        }
        assert_eq!(Forge::GitLab.head(12), "refs/merge-requests/12/head");
    }

    /// What the program is asked about a remote with this URL.
    fn asked(forge: Forge, url: &str, resolved: Option<(&str, &str)>) -> String {
        let launch = Home::of(forge, url, resolved).ask(Path::new("/"), Vec::new(), "");
        launch.args.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_repository_is_named_where_its_url_says_which_one_it_is() {
        for (forge, url, named) in [
            (Forge::GitHub, "https://github.com/Ann/Tool.git", "--repo github.com/Ann/Tool"),
            (Forge::GitHub, "git@github.com:ann/tool", "--repo github.com/ann/tool"),
            (Forge::GitHub, "ssh://git@ssh.github.com:443/ann/tool.git", "--repo github.com/ann/tool"),
            (Forge::GitHub, "https://x:token@git.example.org/ann/tool/", "--repo git.example.org/ann/tool"),
            // A name that only ssh knows, a port, more than a repository, a folder.
            (Forge::GitHub, "git@work:ann/tool.git", ""),
            (Forge::GitHub, "https://git.example.org:8443/ann/tool", ""),
            (Forge::GitHub, "https://github.com/ann/tool/x", ""),
            (Forge::GitHub, "/srv/ann/tool.git", ""),
            (Forge::GitHub, "file:///ann/tool.git", ""),
            (Forge::GitHub, "../ann/tool:x", ""),
            (Forge::GitLab, "git@altssh.gitlab.com:a/b/c.git", "--repo https://gitlab.com/a/b/c"),
            (Forge::GitLab, "https://lab.example.org/a/b", "--repo https://lab.example.org/a/b"),
            // It may be a/b at a path of that host.
            (Forge::GitLab, "https://lab.example.org/lab/a/b", ""),
        ] {
            assert_eq!(asked(forge, url, None), named, "{url}");
        }
    }

    #[test]
    fn what_gh_was_told_to_take_counts() {
        let fork = "git@github.com:bo/tool.git";
        for (resolved, at, named, head) in [
            ("base", "https://github.com/ann/tool", "--repo github.com/ann/tool", "bo:x"),
            ("base", fork, "--repo github.com/bo/tool", "x"),
            ("ann/tool", fork, "--repo github.com/ann/tool", "bo:x"),
            ("git.example.org/ann/tool", fork, "--repo git.example.org/ann/tool", "bo:x"),
            ("nonsense", fork, "", "x"),
        ] {
            assert_eq!(asked(Forge::GitHub, fork, Some((resolved, at))), named);
            assert_eq!(Home::of(Forge::GitHub, fork, Some((resolved, at))).head("x"), head);
        }
        let lab = "https://gitlab.com/a/b";
        assert_eq!(asked(Forge::GitLab, lab, Some(("ann/tool", fork))), "--repo https://gitlab.com/a/b");
    }

    #[test]
    fn issues_of_the_forge_are_closed_by_their_requests() {
        let hub = Home::of(Forge::GitHub, "git@github.com:ann/tool.git", None);
        let lab = Home::of(Forge::GitLab, "git@lab.example.org:group/sub/tool.git", None);
        let port = Home::of(Forge::GitHub, "https://git.example.org:8443/ann/tool", None);
        let web = Home::of(Forge::GitHub, "https://git.example.org/ann/tool", None);
        let ssh = Home::of(Forge::GitHub, "ssh://git@git.example.org:2222/ann/tool", None);
        for (home, address, line) in [
            (&hub, "https://github.com/Ann/Tool/issues/12", Some("Closes #12")),
            (&hub, "https://github.com/bo/other/issues/3", Some("Closes bo/other#3")),
            (&hub, "https://git.example.org/ann/tool/issues/12", None),
            (&hub, "https://github.com/ann/tool/pull/12", None),
            (&hub, "https://github.com/ann/tool/issues/12#issuecomment-1", None),
            (&hub, "https://github.com/ann/to ol/issues/12", None),
            (&hub, "https://work.atlassian.net/browse/ABC-1", None),
            (&lab, "https://lab.example.org/group/sub/tool/-/issues/7", Some("Closes #7")),
            (&lab, "https://lab.example.org/group/tool/-/work_items/8", None),
            (&port, "https://git.example.org/ann/tool/issues/12", None),
            (&port, "https://git.example.org:8443/ann/tool/issues/12", Some("Closes #12")),
            (&web, "https://git.example.org/bo/other/issues/3", Some("Closes bo/other#3")),
            (&ssh, "https://git.example.org/ann/tool/issues/12", Some("Closes #12")),
            (&ssh, "https://git.example.org/bo/other/issues/3", None),
            (&hub, "https://github.com/ann/issues/5", None),
            (&hub, "https://github.com/ann/tool/x/issues/5", None),
            (&lab, "https://github.com/ann/tool/issues/12", None),
            (&Home::unnamed(Forge::GitHub), "https://github.com/ann/tool/issues/12", None),
        ] {
            assert_eq!(home.closes(address).as_deref(), line, "{address}");
        }
    }
}
