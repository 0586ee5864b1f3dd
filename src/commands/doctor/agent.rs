//! Checks the agent: whether it is installed, may be started like that, and can work without a person.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Output;

use anstream::adapter::strip_str;
use regex::Regex;

use super::probe::{Unanswered, ask, is_of_project, json, path, variable};
use super::{DoctorOptions, Finding, Health, session};
use crate::presets::Protocol;
use crate::presets::setup::{LoginCheck, Place, TrustCheck};
use crate::process::programs::find_program;
use crate::project::Project;
use crate::text::line;

/// The longest version that is shown, in characters.
const LONGEST_VERSION: usize = 80;

/// Checks the agent.
pub(super) fn check(project: &Project, options: &DoctorOptions) -> Vec<Finding> {
    if let Some(reason) = &options.refused {
        let fix = match &options.named_by {
            None => "choose another one with --agent, or fix the setting it names".to_owned(),
            Some(place) => format!("fix {place}"),
        };
        return vec![Finding::fail("agent", reason, fix)];
    }
    let found = find(project, options);
    let refusal = found.as_deref().and_then(|path| not_started(path, project, options));
    let (mut findings, answers) = match (&found, refusal) {
        (_, Some(refusal)) => (vec![refusal], false),
        (Some(path), None) if options.preset.protocol == Protocol::Acp => {
            (session::check(path, project, options), true)
        }
        _ => {
            let (version, answers) = check_version(found.as_deref(), project, options);
            (vec![version], answers)
        }
    };
    // An agent that does not answer to `--version` is asked nothing else: each question would take as long.
    let asked = found.as_deref().filter(|_| answers);
    if let Some(path) = asked {
        findings.extend(check_flags(path, project, options));
    }
    findings.extend(check_root(options));
    if let Some(login) = check_login(asked, project, options) {
        // What a session says of it counts, but where it says nothing.
        findings.retain(|finding| finding.check != "login" || finding.status != Health::Warn);
        if findings.iter().all(|finding| finding.check != "login") {
            findings.push(login);
        }
    }
    if options.preset.protocol != Protocol::Acp {
        findings.push(check_verifying(options));
    }
    findings.extend(options.preset.setup.trust.map(|trust| check_trust(&trust, project, options)));
    findings
}

/// Why an agent is not started: a program of the project's choice runs in a loop, which the user starts, but not in a check.
fn not_started(path: &Path, project: &Project, options: &DoctorOptions) -> Option<Finding> {
    let why = match &options.started_by {
        _ if is_of_project(path, project) => "it is part of the project".to_owned(),
        Some(place) if options.preset.protocol == Protocol::Acp => {
            format!("the project says how, in {place}")
        }
        _ => return None,
    };
    let (agent, path) = (&options.agent, path.display());
    Some(Finding::warn(
        "agent",
        format!("{agent}, {path}: not started, because {why}"),
        "look at it, and try it by hand or in a loop",
    ))
}

/// The path of the agent's program.
fn find(project: &Project, options: &DoctorOptions) -> Option<PathBuf> {
    let program = options.program.as_ref()?;
    // With a slash it is a path, as in a shell, from the project root.
    if program.contains('/') {
        Some(project.root().join(program)).filter(|path| path.is_file())
    } else {
        find_program(program, &options.search_path)
    }
}

/// Its version, if it answers.
fn check_version(found: Option<&Path>, project: &Project, options: &DoctorOptions) -> (Finding, bool) {
    let agent = &options.agent;
    let Some(program) = &options.program else {
        return (Finding::ok("agent", format!("{agent}, built in")), true);
    };
    let Some(path) = found else {
        let choose = match &options.named_by {
            None => "choose another agent with --agent or AGENT_TYPE".to_owned(),
            Some(place) => format!("name another agent in {place}"),
        };
        let fix = format!("install {program}, or {choose}");
        return (Finding::fail("agent", format!("{agent}: {program} is not on PATH"), fix), false);
    };
    match version_of(path, project, options) {
        Ok(version) => (Finding::ok("agent", format!("{agent}, {version}, {}", path.display())), true),
        Err(why) => {
            let fix = format!("run '{program} --version' by hand to see whether it works");
            let finding =
                Finding::warn("agent", format!("{agent}, {}: no version ({why})", path.display()), fix);
            (finding, !matches!(why, Unanswered::InTime(_)))
        }
    }
}

/// The first line of a program's answer to `--version`.
fn version_of(program: &Path, project: &Project, options: &DoctorOptions) -> Result<String, Unanswered> {
    let output = ask(program, &["--version"], project, options)?;
    if !output.status.success() {
        return Err(Unanswered::Because(output.status.to_string()));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let line = line::first(&said).ok_or_else(|| Unanswered::Because("it said nothing".to_owned()))?;
    Ok(line::one_line_within(line, LONGEST_VERSION))
}

/// Whether the installed version has the options that it is started with, by its help.
fn check_flags(program: &Path, project: &Project, options: &DoctorOptions) -> Option<Finding> {
    let preset = options.preset;
    let has_options = options.args.iter().any(|arg| arg.as_encoded_bytes().starts_with(b"-"));
    // An agent that only speaks the protocol has no help.
    if preset.cli.is_empty() || preset.protocol == Protocol::Acp && !has_options {
        return None;
    }
    let subcommand = Some(preset.structured.subcommand).filter(|subcommand| !subcommand.is_empty());
    let args: Vec<&str> = subcommand.into_iter().chain(["--help"]).collect();
    let words = args.join(" ");
    let by_hand = format!("run '{} {words}' by hand to see what it knows", preset.cli);
    let output = match ask(program, &args, project, options) {
        Ok(output) => output,
        Err(reason) => return Some(Finding::warn("flags", format!("unknown: {reason}"), by_hand)),
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let used = options.args.iter().map(|arg| arg.to_string_lossy().into_owned());
    let used: Vec<String> = used
        .take_while(|arg| arg != "--")
        .filter(|arg| arg.starts_with('-') && arg.len() > 1)
        .map(|arg| arg.split('=').next().unwrap_or_default().to_owned())
        .filter(|arg| !preset.setup.unlisted.contains(&arg.as_str()))
        .collect();
    let is_named = |flag: &str| {
        said.split(|char: char| !(char.is_alphanumeric() || char == '-')).any(|word| word == flag)
    };
    let unknown: Vec<&str> = used.iter().map(String::as_str).filter(|flag| !is_named(flag)).collect();
    Some(if used.iter().any(|flag| is_named(flag)) || used.is_empty() {
        match unknown.as_slice() {
            [] => Finding::ok("flags", format!("known to this version: {}", used.join(" "))),
            unknown => Finding::warn(
                "flags",
                format!("not in its help: {}", unknown.join(" ")),
                format!("update {}, or set AGENT_ARGS to what this version knows; {by_hand}", preset.cli),
            ),
        }
    } else {
        Finding::warn("flags", format!("unknown: its help names none of {}", used.join(" ")), by_hand)
    })
}

/// What makes a verifying agent read-only.
fn check_verifying(options: &DoctorOptions) -> Finding {
    let agent = &options.agent;
    Finding::ok(
        "verifying",
        match options.preset.read_only {
            Some(_) => format!("{agent} edits nothing where it only verifies a task, and can run the tests"),
            None => format!(
                "nothing keeps {agent} from editing where it only verifies a task: what it changes is noticed, and does not count"
            ),
        },
    )
}

fn check_root(options: &DoctorOptions) -> Option<Finding> {
    let refusal = options.preset.asides.root?;
    let (name, value) = refusal.unless;
    let is_allowed = variable(name, options).is_some_and(|set| set == value);
    Some(if !options.as_root {
        Finding::ok("root", "an ordinary user")
    } else if !options.args.iter().any(|arg| arg == refusal.option) {
        Finding::ok("root", format!("root, without {}", refusal.option))
    } else if is_allowed {
        Finding::ok("root", format!("root, with {name}={value}"))
    } else {
        Finding::fail(
            "root",
            format!("{} refuses {} as root", options.agent, refusal.option),
            format!("{}; or set AGENT_ARGS without the flag", refusal.way_out()),
        )
    })
}

fn check_login(found: Option<&Path>, project: &Project, options: &DoctorOptions) -> Option<Finding> {
    let (args, judged): (_, fn(&Output, &str, &DoctorOptions) -> Finding) = match options.preset.setup.login {
        LoginCheck::NotNeeded => return None,
        LoginCheck::Traces { variables, files, keys } => {
            return Some(traced_login(variables, (files, keys), project, options));
        }
        LoginCheck::Json(args) => (args, told_login),
        LoginCheck::Exit(args) => (args, exited_login),
        LoginCheck::Counts(args) => (args, counted_login),
    };
    let call = format!("{} {}", options.preset.cli, args.join(" "));
    Some(match ask(found?, args, project, options) {
        Ok(output) => match (judged(&output, &call, options), &options.started_by) {
            (said, Some(place)) if said.status != Health::Ok && !options.env.is_empty() => {
                untold(&format!("'{call}' was asked without the variables of {place}"), options)
            }
            (said, _) => said,
        },
        Err(why) => untold(&format!("'{call}': {why}"), options),
    })
}

fn untold(why: &str, options: &DoctorOptions) -> Finding {
    Finding::warn("login", format!("unknown: {why}"), options.preset.login)
}

/// Judged by an object with `loggedIn` and, perhaps, `authMethod`.
fn told_login(output: &Output, call: &str, options: &DoctorOptions) -> Finding {
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match object["loggedIn"].as_bool() {
        None => untold(&format!("this version does not answer '{call}'"), options),
        Some(false) => {
            Finding::fail("login", format!("'{call}' says that no user is logged in"), options.preset.login)
        }
        Some(true) => {
            let how = object["authMethod"].as_str().map_or_else(String::new, |how| format!(": {how}"));
            Finding::ok("login", format!("'{call}' says so{how}"))
        }
    }
}

fn exited_login(output: &Output, call: &str, options: &DoctorOptions) -> Finding {
    if output.status.success() {
        return Finding::ok("login", format!("'{call}' says so"));
    }
    let says =
        format!("'{call}' says that no user is logged in; a provider with a key of its own needs no login");
    Finding::warn("login", says, options.preset.login)
}

fn counted_login(output: &Output, call: &str, options: &DoctorOptions) -> Finding {
    match credentials(&output.stdout) {
        None => untold(&format!("'{call}' names no number"), options),
        Some(0) => {
            let says =
                format!("'{call}' knows no credentials; a key in the agent's configuration needs none");
            Finding::warn("login", says, options.preset.login)
        }
        Some(count) => Finding::ok("login", format!("'{call}' knows {count}")),
    }
}

fn traced_login(
    variables: &[&str],
    (files, keys): (&[Place], &[(&str, &str, &str)]),
    project: &Project,
    options: &DoctorOptions,
) -> Finding {
    if let Some(name) = variables.iter().find(|name| variable(name, options).is_some()) {
        return Finding::ok("login", format!("judged by its traces: {name} is set"));
    }
    let is_there = |file: &str| path(file, project, options).is_some_and(|path| path.is_file());
    if let Some((file, _)) = files.iter().find(|(file, pointer)| pointer.is_empty() && is_there(file)) {
        return Finding::ok("login", format!("judged by its traces: {file} is there"));
    }
    let value = |(file, pointer): &Place| {
        let value = json(file, project, options)?.pointer(pointer)?.as_str()?.to_owned();
        Some((*file, value))
    };
    if let Some((file, value)) = files.iter().find_map(value) {
        let lacks = |(method, name, file): &&(&str, &str, &str)| {
            *method == value && variable(name, options).is_none() && !is_there(file)
        };
        return match keys.iter().find(lacks) {
            None => Finding::ok("login", format!("judged by its traces: {file} names '{value}'")),
            Some((_, name, _)) => {
                let says = format!("{file} names '{value}', and {name} is not set");
                Finding::fail("login", says, format!("set {name}, or {}", options.preset.login))
            }
        };
    }
    let places: Vec<&str> = variables.iter().copied().chain(files.iter().map(|(file, _)| *file)).collect();
    untold(&format!("no trace of one in {}", places.join(", ")), options)
}

/// The number of credentials in a list, including those of the environment.
fn credentials(said: &[u8]) -> Option<u64> {
    let said = String::from_utf8_lossy(said);
    // The pattern is ours, and a test compiles it.
    let pattern = Regex::new(r"(\d+) (credential|environment variable)s?\b").ok()?;
    let text = strip_str(&said).to_string();
    let counts: Vec<u64> = pattern.captures_iter(&text).filter_map(|found| found[1].parse().ok()).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

fn check_trust(trust: &TrustCheck, project: &Project, options: &DoctorOptions) -> Finding {
    let (name, value) = trust.variable;
    let (file, pointer) = trust.question;
    if options.args.iter().any(|arg| arg == trust.option) {
        return Finding::ok("trust", trust.option);
    }
    if variable(name, options).is_some_and(|set| set == value) {
        return Finding::ok("trust", format!("{name}={value}"));
    }
    let question = json(file, project, options).and_then(|json| json.pointer(pointer)?.as_bool());
    if question == Some(false) {
        return Finding::ok("trust", format!("{file} asks for none"));
    }
    if is_trusted(&json(trust.folders, project, options).unwrap_or_default(), project.root()) {
        let folders = path(trust.folders, project, options).unwrap_or_default();
        return Finding::ok("trust", format!("{} trusts this folder", folders.display()));
    }
    Finding::fail(
        "trust",
        format!("{} does not trust this folder, and ends at once", options.agent),
        format!(
            "start it here once by hand and trust it, or set {name}={value}, or AGENT_EXTRA_ARGS={}",
            trust.option
        ),
    )
}

/// Whether a list of folders trusts this one: the innermost folder on it decides.
fn is_trusted(folders: &serde_json::Value, root: &Path) -> bool {
    let Some(folders) = folders.as_object() else { return false };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let root = real(root);
    let rules = folders.iter().filter_map(|(folder, trust)| {
        let folder = real(Path::new(OsStr::new(folder)));
        match trust.as_str()? {
            "TRUST_FOLDER" => Some((folder, true)),
            "TRUST_PARENT" => Some((folder.parent()?.to_owned(), true)),
            "DO_NOT_TRUST" => Some((folder, false)),
            _ => None,
        }
    });
    let matching = rules.filter(|(folder, _)| root.starts_with(folder));
    // Of two entries for one folder, the refusing one counts.
    matching
        .max_by_key(|(folder, trusts)| (folder.components().count(), !trusts))
        .is_some_and(|(_, trusts)| trusts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_every_kind_are_counted() {
        let list = "\u{1b}[90m~/.local\u{1b}[39m\n└  2 credentials\n\n└  1 environment variable\n";
        assert_eq!(credentials(list.as_bytes()), Some(3));
        assert_eq!((credentials(b"0 credentials"), credentials(b"no such command")), (Some(0), None));
    }

    #[test]
    fn the_innermost_folder_decides_about_trust() {
        let trusts = |folders: &str| is_trusted(&serde_json::from_str(folders).unwrap(), Path::new("/a/b"));
        for (folders, expected) in [
            ("{}", false),
            ("[]", false),
            (r#"{"/a/b":"TRUST_FOLDER"}"#, true),
            (r#"{"/a":"TRUST_FOLDER"}"#, true),
            (r#"{"/a/bc":"TRUST_FOLDER"}"#, false),
            (r#"{"/a/b/c":"TRUST_PARENT"}"#, true),
            (r#"{"/a":"TRUST_FOLDER","/a/b":"DO_NOT_TRUST"}"#, false),
            (r#"{"/a":"DO_NOT_TRUST","/a/b":"TRUST_FOLDER"}"#, true),
            (r#"{"/a/b":"DO_NOT_TRUST","/a/b/c":"TRUST_PARENT"}"#, false),
            (r#"{"/a/b":"SOMETHING","/a":5}"#, false),
        ] {
            assert_eq!(trusts(folders), expected, "{folders}");
        }
    }
}
