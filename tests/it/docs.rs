//! The documents name everything that a user can set, call or choose, and agree with the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ralph::cli::Cli;
use ralph::engine::outcome::Outcome;
use ralph::engine::report::AttemptStatus;
use ralph::git::refs::is_valid_branch;
use ralph::plan::Plan;
use ralph::settings::{Settings, Sources};
use regex::Regex;

use crate::scratch::{Scratch, claude_says};
use crate::terminal::Terminal;

const README: &str = include_str!("../../README.md");
const CONTRIBUTING: &str = include_str!("../../CONTRIBUTING.md");
const CHANGELOG: &str = include_str!("../../CHANGELOG.md");
const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");
const COMMANDS: &str = include_str!("../../docs/commands.md");
const EXIT_CODES: &str = include_str!("../../docs/exit-codes.md");

/// The rows of the table under a heading, each as its cells; without the heading of the table and the line below it.
fn table(text: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, below) = text.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    let lines =
        below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    lines.skip(2).map(cells).collect()
}

/// Users copy them from either place.
#[test]
fn the_recipes_of_the_guide_are_those_that_are_tried() {
    let page = fs::read_to_string("docs/many-machines.md").unwrap();
    let recipes: Vec<PathBuf> = fs::read_dir("recipes").unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(recipes.len() >= 5, "{recipes:?}");
    for recipe in recipes {
        let text = fs::read_to_string(&recipe).unwrap();
        assert!(page.contains(&format!("\n{text}```\n")), "{}", recipe.display());
    }
}

/// The text in backticks.
fn codes(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The verb that a command begins with: `loop build` in `ralph loop build -m 10`.
fn verb(command: &str) -> String {
    let is_verb = |word: &&str| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_lowercase());
    command.split(' ').skip(1).take_while(is_verb).collect::<Vec<_>>().join(" ")
}

/// Every verb with its own definition, `loop plan` and `task deps add` like the others.
fn verbs() -> BTreeMap<String, clap::Command> {
    fn collect(above: &str, command: &clap::Command, verbs: &mut BTreeMap<String, clap::Command>) {
        for verb in command.get_subcommands() {
            let name = format!("{above}{}", verb.get_name());
            if verb.has_subcommands() {
                collect(&format!("{name} "), verb, verbs);
            } else {
                verbs.insert(name, verb.clone());
            }
        }
    }
    let mut verbs = BTreeMap::new();
    collect("", &Cli::whole(), &mut verbs);
    verbs
}

#[test]
fn the_verbs_are_those_of_the_program() {
    let known: BTreeSet<String> = verbs().into_keys().collect();
    let rows = table(COMMANDS, "# Verbs and flags");
    let of_table: BTreeSet<String> = rows.iter().map(|row| verb(codes(&row[0])[0])).collect();
    assert_eq!(of_table, known, "docs/commands.md");

    let missing: Vec<&String> =
        known.iter().filter(|verb| !CHANGELOG.contains(&format!("`ralph {verb}`"))).collect();
    assert_eq!(missing, [""; 0], "CHANGELOG");
}

/// `--max-iterations`, `--max` and `-m`.
fn names(arg: &clap::Arg) -> Vec<String> {
    let long =
        arg.get_long_and_visible_aliases().unwrap_or_default().into_iter().map(|long| format!("--{long}"));
    long.chain(
        arg.get_short_and_visible_aliases().unwrap_or_default().into_iter().map(|short| format!("-{short}")),
    )
    .collect()
}

/// Every ralph command line in an example, and in backticks if it is complete.
#[test]
fn the_examples_are_understood() {
    let mut examples = 0;
    let named: BTreeSet<String> =
        verbs().into_keys().chain(["loop", "task", "task deps", "feature"].map(str::to_owned)).collect();
    for document in [README, CONTRIBUTING, &specs(), &docs()] {
        let blocks = document.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
        let spans = document.lines().flat_map(codes).filter(|code| !has_placeholder(code));
        for line in blocks.flat_map(str::lines).chain(spans) {
            let command =
                line.split(" #").next().unwrap_or(line).split(['|', '>']).next().unwrap_or(line).trim_end();
            // A verb alone is spoken of, not called.
            let is_named = command.strip_prefix("ralph ").is_some_and(|verb| named.contains(verb));
            if !command.starts_with("ralph ") || is_named {
                continue;
            }
            let words = shlex::split(command).unwrap_or_else(|| panic!("{line}"));
            if let Err(error) = Cli::read(words.into_iter().map(Into::into).collect()) {
                assert!(!error.use_stderr(), "{line}: {error}");
            }
            examples += 1;
        }
    }
    assert!(examples > 15, "only {examples} examples were found");
}

/// A word in capitals or in brackets is a placeholder; an arrow is a link.
fn has_placeholder(code: &str) -> bool {
    let is_capital = |word: &str| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase());
    code.contains(['[', '…', '>']) || code.split(' ').any(is_capital)
}

#[test]
fn every_flag_in_the_text_exists() {
    let known: BTreeSet<String> =
        verbs().values().flat_map(|verb| verb.get_arguments().flat_map(names).collect::<Vec<_>>()).collect();
    // Of the RALPH.md and of the plan in the examples, of agents, and what clap adds by itself.
    let others =
        ["--", "--dir", "--gzip", "--help", "--only", "--skip-trust", "--thinking", "--variant", "--version"];
    let documents = [README, CONTRIBUTING, &specs(), &docs()];
    for code in documents.into_iter().flat_map(str::lines).flat_map(codes) {
        let flag = code.split([' ', '=']).next().unwrap_or(code);
        let is_flag = code.starts_with("--");
        assert!(!is_flag || known.contains(flag) || others.contains(&flag), "there is no {flag}");
    }
}

#[test]
fn the_exit_codes_are_those_of_the_program() {
    let codes: BTreeSet<u8> = Outcome::ALL.into_iter().map(Outcome::code).collect();
    let told: Vec<u8> =
        table(EXIT_CODES, "## Exit codes").iter().map(|row| row[0].parse().unwrap()).collect();
    assert_eq!(told, Vec::from_iter(codes));
}

#[test]
fn the_states_of_an_attempt_are_those_of_the_program() {
    use AttemptStatus::{AgentFailure, CompleteUnproven, Interrupted, Success, Timeout, UsageLimit};
    let all = [Success, CompleteUnproven, AgentFailure, Timeout, UsageLimit, Interrupted];
    let words: Vec<String> = all.iter().map(|status| format!("`{}`", status.word())).collect();
    let records = include_str!("../../specs/records.md");
    assert!(records.contains(&format!("`Status:` ({})", words.join(", "))), "{words:?}");
    let events = include_str!("../../docs/events.md");
    let row = events.lines().find(|line| line.starts_with("| `attempt_ended`")).unwrap();
    assert!(words.iter().all(|word| row.contains(word)), "{row}");
}

#[test]
fn the_oldest_rust_is_named() {
    assert!(README.contains(&format!("Rust {} or newer", env!("CARGO_PKG_RUST_VERSION"))));
}

#[test]
fn the_help_of_status_names_all_that_its_json_has() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("more"));
    scratch.run("prompt p.md 1");
    let object: serde_json::Value = serde_json::from_str(&scratch.run("status --json").stdout).unwrap();
    let help = scratch.run("help status").stdout;
    let words: BTreeSet<&str> =
        help.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).collect();
    let unknown: Vec<_> = object.as_object().unwrap().keys().filter(|key| !words.contains(&***key)).collect();
    assert_eq!(unknown, [""; 0]);
}

/// All specs in one.
fn specs() -> String {
    markdown("specs").into_iter().map(|(_, text)| text).collect()
}

/// All pages of the guide in one.
fn docs() -> String {
    markdown("docs").into_iter().map(|(_, text)| text).collect()
}

/// The documents in a folder of the repository.
fn markdown(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.map(|file| (file.clone(), fs::read_to_string(&file).unwrap())).collect()
}

/// The lines that are no code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// What a link calls a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|char| char.is_alphanumeric() || "-_ ".contains(*char));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let link = Regex::new(r"\]\(([^()\s]+)\)").unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = [markdown("docs"), markdown("specs")].concat();
    for (name, text) in [
        ("README.md", README),
        ("CONTRIBUTING.md", CONTRIBUTING),
        ("CHANGELOG.md", CHANGELOG),
        ("ARCHITECTURE.md", ARCHITECTURE),
    ] {
        documents.push((root.join(name), text.to_owned()));
    }
    let mut links = 0;
    for (path, text) in &documents {
        for line in prose(text) {
            for target in link.captures_iter(line).map(|found| found.extract::<1>().1[0]) {
                if target.starts_with("https://") {
                    continue;
                }
                let (file, heading) = target.split_once('#').unwrap_or((target, ""));
                let file = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
                assert!(file.exists(), "{}: {target} is not there", path.display());
                if !heading.is_empty() {
                    let text = fs::read_to_string(&file).unwrap();
                    let mut headings = prose(&text).filter(|line| line.starts_with('#')).map(anchor);
                    assert!(headings.any(|found| found == heading), "{}: no {target}", path.display());
                }
                links += 1;
            }
        }
    }
    assert!(links > 60, "only {links} links were found");
}

#[test]
fn the_readme_is_short() {
    assert!(README.lines().count() <= 150);
}

/// `ralph help PAGE`, which prints the file as it is where stdout is no terminal.
#[test]
fn help_prints_every_page() {
    let scratch = Scratch::new();
    let list = scratch.run("help");
    assert_eq!(list.code, Some(0), "{list:?}");
    assert_eq!(list.stdout.matches("\nPages of the guide").count(), 1, "{list:?}");
    for (path, text) in markdown("docs") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let run = scratch.run(&format!("help {name}"));
        assert_eq!((run.code, run.stdout), (Some(0), text), "{name}");
        assert!(list.stdout.contains(&format!("\n  {name} ")), "{name}: {list:?}");
    }
    assert_eq!(scratch.run("help RALPH.md").stdout, include_str!("../../docs/ralph-md.md"));
}

#[test]
fn a_terminal_gets_a_page_as_text() {
    let mut command = Scratch::new().ralph("help limits");
    let end = Terminal::start(command.current_dir("/").env("TERM", "xterm"), 24, 45).end();
    assert_eq!(end.code, Some(0));
    assert!(end.bytes.starts_with("\u{1b}[1mLimits and waits\u{1b}[0m\r\n\r\n"), "{}", end.bytes);
    assert!(!end.bytes.contains("](") && !end.bytes.contains("**"), "{}", end.bytes);
    let line = end.history.lines().find(|line| line.contains("--max-cost 15")).unwrap_or_default();
    assert!(line.starts_with("    ralph build 20 "), "{}", end.history);
}

#[test]
fn help_knows_verbs_and_what_was_meant() {
    let scratch = Scratch::new();
    for verb in verbs().into_keys().chain(["loop", "task", "task deps", "feature"].map(str::to_owned)) {
        let (help, run) = (scratch.run(&format!("{verb} --help")), scratch.run(&format!("help {verb}")));
        assert_eq!((run.code, run.stdout), (Some(0), help.stdout), "{verb}");
    }
    assert_eq!(scratch.run("task deps help add").stdout, scratch.run("task deps add --help").stdout);
    assert_eq!(scratch.run("loop help").stdout, scratch.run("loop --help").stdout);
    for (words, meant) in [
        ("trubleshooting", "did you mean 'troubleshooting'?"),
        ("biuld", "did you mean 'build'?"),
        ("xyzzy", "'ralph help' lists verbs and pages"),
        ("task ad", "did you mean 'add'?"),
        ("limits x", "use 'ralph help limits'"),
    ] {
        let run = scratch.run(&format!("help {words}"));
        assert!(run.code == Some(1) && run.stderr.contains(meant), "{words}: {run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    }
}

#[test]
fn every_spec_is_in_the_list_of_specs() {
    let list = table(include_str!("../../specs/README.md"), "# Specs");
    let listed: BTreeSet<String> =
        list.iter().map(|row| row[0][1..].split(']').next().unwrap_or_default().to_owned()).collect();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/specs");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(listed, files.filter(|file| file != "README.md").collect());
}

/// The first example in this language about branches.
fn example(language: &str) -> &'static str {
    let page = include_str!("../../docs/branches.md");
    let (_, example) = page.split_once(&format!("```{language}\n")).expect("the example");
    example.split("```\n").next().unwrap_or_default()
}

#[test]
fn the_plan_can_be_built() {
    let text = example("markdown");
    let plan = Plan::parse(text, &is_valid_branch).unwrap();
    assert_eq!(plan.order().unwrap(), [None, Some(0)]);
    assert_eq!(plan.sections[0].tasks.len(), 2);
}

#[test]
fn the_plan_can_be_built_whatever_the_first_branch_is_called() {
    let text = example("markdown");
    for name in ["main", "master", "trunk"] {
        let scratch = Scratch::new();
        scratch.git(&["branch", "--quiet", "--move", name]);
        scratch.git(&["commit", "--quiet", "--allow-empty", "--message", "First"]);
        scratch.write("IMPLEMENTATION_PLAN.md", text);
        let run = scratch.run("loop build --dry-run --agent script");
        assert!(run.code == Some(0) && run.stdout.contains("feature/export-gz"), "{name}: {run:?}");
    }
}

#[test]
fn the_settings_are_good_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ralph.toml");
    fs::write(&path, example("toml")).unwrap();
    let settings = Settings::load(&Sources {
        verb: None,
        flags: Vec::new(),
        env: &|_| None,
        shell_config: None,
        shell_config_explicit: false,
        older_toml: None,
        project_toml: Some(path),
        user_toml: None,
        trusts: &|_| true,
    });
    let settings = settings.unwrap();
    assert_eq!(settings.warnings, [""; 0]);
    assert_eq!(settings.git.protected_branches, ["main", "production"]);
    assert_eq!(settings.git.name.as_deref(), Some("Build Agent"));
}
