//! Checks commits: their author, whether they can be signed, and where they are published.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::probe::{ask, is_of_project, not_started};
use super::{DoctorOptions, Finding};
use crate::git::forge::Forge;
use crate::git::identity::{
    CommitIdentity, author, signing_programs, signs, try_own_signature, try_signature,
};
use crate::git::remote::remote;
use crate::process::programs::find_program;
use crate::project::Project;
use crate::text::line;

/// Checks what commits need.
pub(super) fn check(project: &Project, options: &DoctorOptions) -> Vec<Finding> {
    if project.require_readable_git().is_err() {
        // That has its own finding; git would only wait.
        return Vec::new();
    }
    let mut findings = vec![check_identity(project, options)];
    if project.in_git() {
        findings.push(check_signing(project, options));
        findings.push(check_remote(project, options));
        findings.push(check_forge(project, options));
    }
    findings
}

fn check_identity(project: &Project, options: &DoctorOptions) -> Finding {
    // Another configuration could make git run a program.
    let is_of_author = |name: &OsStr| {
        ["GIT_AUTHOR_", "GIT_COMMITTER_", "EMAIL"]
            .iter()
            .any(|begin| name.as_encoded_bytes().starts_with(begin.as_bytes()))
    };
    let env: Vec<_> = options.env.iter().filter(|(name, _)| is_of_author(name)).cloned().collect();
    match author(project.root(), &env) {
        Ok(author) => Finding::ok("identity", author),
        Err(_) => Finding::warn(
            "identity",
            "git does not know who commits",
            "run 'git config --global user.name NAME' and 'git config --global user.email ADDRESS'",
        ),
    }
}

/// Whether commits are signed, and can be without a question.
fn check_signing(project: &Project, options: &DoctorOptions) -> Finding {
    let root = project.root();
    let of_branches =
        CommitIdentity { signing_key: options.git.signing_key.clone(), ..CommitIdentity::default() };
    let signs = signs(root);
    if !signs && of_branches.signing_key.is_none() {
        return Finding::ok("signing", "commits are not signed");
    }
    if let Some(program) = signer_of_project(project, options) {
        return Finding::warn(
            "signing",
            not_started(&program),
            "look at what 'git config --show-origin --get-regexp ^gpg' names, and take it out unless you want it",
        );
    }
    let tried = match (signs, &of_branches.signing_key) {
        (true, _) => try_own_signature(root).and_then(|()| try_signature(root, &of_branches)),
        (false, _) => try_signature(root, &of_branches),
    };
    match tried {
        Ok(()) => Finding::ok("signing", "a trial signature asked for nothing"),
        Err(error) => Finding::warn(
            "signing",
            error.to_string(),
            "unlock the key by signing something yourself before a loop starts, or set 'git config commit.gpgsign false'",
        ),
    }
}

/// The program that git would start to sign, if it is part of the project.
fn signer_of_project(project: &Project, options: &DoctorOptions) -> Option<PathBuf> {
    // git's default programs, if its configuration names none.
    let usual = ["gpg", "gpgsm", "ssh-keygen"].map(str::to_owned);
    let path = |name: String| {
        if name.contains('/') {
            Some(project.root().join(name))
        } else {
            find_program(&name, &options.search_path)
        }
    };
    let mut programs = signing_programs(project.root()).into_iter().chain(usual).filter_map(path);
    programs.find(|program| is_of_project(program, project))
}

fn check_remote(project: &Project, options: &DoctorOptions) -> Finding {
    match remote(project.root(), options.git.forge) {
        Some(remote) => Finding::ok("remote", remote.name),
        None if !options.git.auto_push => Finding::ok("remote", "none, and nothing is to be pushed"),
        None => Finding::warn(
            "remote",
            "none: 'ralph loop build' pushes nothing",
            "run 'git remote add origin URL', or set GIT_AUTO_PUSH=false",
        ),
    }
}

/// The program that opens pull requests on the remote's forge.
fn check_forge(project: &Project, options: &DoctorOptions) -> Finding {
    let remote = remote(project.root(), options.git.forge);
    let row = remote.map_or(Forge::GitHub, |remote| remote.home.forge()).row();
    let (program, noun) = (row.program, row.noun);
    if !options.git.auto_pr {
        return Finding::ok(program, "not needed: GIT_AUTO_PR is off");
    }
    let off = "or set GIT_AUTO_PR=false";
    let Some(path) = find_program(program, &options.search_path) else {
        return Finding::warn(
            program,
            format!("not installed: 'ralph loop build' opens no {noun}s"),
            format!("install it from {}, {off}", row.site),
        );
    };
    match ask(&path, &["auth", "status"], project, options) {
        Ok(output) if output.status.success() => Finding::ok(program, "logged in"),
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            let said = line::one_line_within(line::first(&said).unwrap_or("no reason given"), 200);
            let advice = format!("run '{program} auth login', {off}");
            Finding::warn(program, format!("not logged in: {said}"), advice)
        }
        Err(reason) => Finding::warn(
            program,
            format!("'{program} auth status': {reason}"),
            "run it by hand to see whether it works",
        ),
    }
}
