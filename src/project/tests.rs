use std::os::unix::fs::symlink;

use super::*;

/// A scratch folder with its physical path.
fn scratch() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(dir.path()).unwrap();
    (dir, path)
}

fn touch(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
}

/// A minimal repository, as far as this module reads it.
fn repository(root: &Path) {
    touch(&root.join(".git/HEAD"));
}

fn no_env(_: &str) -> Option<OsString> {
    None
}

fn locate(cwd: &Path) -> Project {
    Project::locate(cwd, &no_env, None, None).unwrap()
}

fn locate_by_exe(cwd: &Path, exe: &Path) -> Project {
    Project::locate(cwd, &no_env, None, Some(exe)).unwrap()
}

#[test]
fn root_is_the_top_of_the_work_tree() {
    let (_guard, dir) = scratch();
    repository(&dir);
    let sub = dir.join("a/b");
    fs::create_dir_all(sub.join(".git")).unwrap(); // empty: does not count

    let project = locate(&sub);
    assert_eq!(project.root(), dir);
    assert_eq!(project.cwd(), sub);
    assert_eq!(project.ralph_dir(), dir.join(".ralph"));
    assert_eq!(project.ralph_home(), Path::new(".ralph"));
    project.require_git().unwrap();
}

#[test]
fn git_may_be_a_file() {
    let (_guard, dir) = scratch();
    repository(&dir);
    touch(&dir.join(".git/worktrees/w/HEAD"));
    let tree = dir.join(".worktrees/w");
    fs::create_dir_all(tree.join("sub")).unwrap();
    for target in ["../../.git/worktrees/w".into(), dir.join(".git/worktrees/w").display().to_string()] {
        fs::write(tree.join(".git"), format!("gitdir: {target}\n")).unwrap();
        let project = locate(&tree.join("sub"));
        assert_eq!(project.root(), tree);
        project.require_git().unwrap();
    }
}

#[test]
fn a_dangling_work_tree_is_named_and_not_skipped() {
    let (_guard, dir) = scratch();
    repository(&dir);
    let tree = dir.join("w");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join(".git"), "gitdir: /nowhere/at/all\n").unwrap();
    let project = locate(&tree);
    assert_eq!(project.root(), tree);
    assert!(matches!(project.require_git(), Err(ProjectError::DanglingWorkTree { path }) if path == tree));
}

#[test]
fn outside_a_repository_only_require_git_complains() {
    let (_guard, dir) = scratch();
    let project = locate(&dir);
    assert_eq!(project.root(), dir);
    let message = project.require_git().unwrap_err().to_string();
    assert!(message.starts_with("not a git repository, /"), "{message}");
    assert!(message.contains("'git init'"), "{message}");
    assert!(!message.contains('\n'));
}

#[test]
fn a_symlinked_current_directory_leads_to_the_real_project() {
    let (_guard, dir) = scratch();
    repository(&dir.join("real"));
    fs::create_dir(dir.join("real/sub")).unwrap();
    symlink(dir.join("real/sub"), dir.join("link")).unwrap();
    assert_eq!(locate(&dir.join("link")).root(), dir.join("real"));
}

#[test]
fn flag_beats_environment_beats_everything_else() {
    let (_guard, dir) = scratch();
    repository(&dir);
    touch(&dir.join(".ralph/config"));
    fs::create_dir(dir.join("sub")).unwrap();
    let cwd = dir.join("sub");
    let env = |name: &str| (name == "RALPH_DIR").then(|| OsString::from("from-env"));
    let exe = dir.join(".ralph/ralph");
    let at = |flag: Option<&Path>| Project::locate(&cwd, &env, flag, Some(&exe)).unwrap();

    assert_eq!(at(None).ralph_dir(), cwd.join("from-env"));
    assert_eq!(at(None).ralph_home(), Path::new("sub/from-env"));
    assert_eq!(at(Some(Path::new("../other"))).ralph_dir(), dir.join("other"));
    assert_eq!(at(Some(Path::new("/abs/olute"))).ralph_home(), Path::new("/abs/olute"));
    assert_eq!(at(Some(Path::new(".."))).ralph_home(), Path::new("."));

    let empty = |name: &str| (name == "RALPH_DIR").then(OsString::new);
    assert_eq!(Project::locate(&cwd, &empty, None, None).unwrap().ralph_dir(), dir.join(".ralph"));
    let refused = Project::locate(&cwd, &no_env, Some(Path::new("")), None);
    assert!(matches!(refused, Err(ProjectError::EmptyRalphDir)));
}

#[test]
fn vendored_executable_is_found_through_symlinks() {
    let (_guard, dir) = scratch();
    repository(&dir);
    touch(&dir.join(".ralph/ralph"));
    touch(&dir.join(".ralph/prompts/build.md"));
    symlink(".ralph/ralph", dir.join("ralph")).unwrap();
    assert_eq!(locate_by_exe(&dir, &dir.join(".ralph/ralph")).ralph_dir(), dir.join(".ralph"));
    assert_eq!(locate_by_exe(&dir, &dir.join("ralph")).ralph_dir(), dir.join(".ralph"));
}

#[test]
fn vendored_folder_outside_the_project_still_counts() {
    let (_guard, dir) = scratch();
    repository(&dir.join("project"));
    fs::create_dir(dir.join("project/.ralph")).unwrap();
    touch(&dir.join("tool/ralph"));
    touch(&dir.join("tool/config"));
    let project = locate_by_exe(&dir.join("project"), &dir.join("tool/ralph"));
    assert_eq!(project.ralph_dir(), dir.join("tool"));
    assert_eq!(project.ralph_home(), dir.join("tool"));
    assert_eq!(project.root(), dir.join("project"));
}

#[test]
fn other_executables_do_not_move_the_ralph_dir() {
    let (_guard, dir) = scratch();
    repository(&dir);
    touch(&dir.join("target/release/ralph"));
    fs::create_dir_all(dir.join("target/release/config")).unwrap(); // a folder is not a config
    let exe = dir.join("target/release/ralph");
    assert_eq!(locate_by_exe(&dir, &exe).ralph_dir(), dir.join(".ralph"));
}

#[test]
fn an_executable_that_was_replaced_while_running_keeps_its_folder() {
    let (_guard, dir) = scratch();
    repository(&dir);
    touch(&dir.join("tool/config"));
    let exe = dir.join("tool/ralph (deleted)");
    assert_eq!(locate_by_exe(&dir, &exe).ralph_dir(), dir.join("tool"));
}

#[test]
fn project_root_as_ralph_dir_needs_config_and_prompt_and_no_dot_ralph() {
    let (_guard, dir) = scratch();
    repository(&dir);
    touch(&dir.join("config"));
    assert_eq!(locate(&dir).ralph_home(), Path::new(".ralph"));
    touch(&dir.join("prompts/plan.md"));
    assert_eq!(locate(&dir).ralph_home(), Path::new("."));
    assert_eq!(locate(&dir).config(), dir.join("config"));
    fs::create_dir(dir.join(".ralph")).unwrap();
    assert_eq!(locate(&dir).ralph_home(), Path::new(".ralph"));
}

#[test]
fn homes_follow_the_xdg_rules() {
    let (_guard, dir) = scratch();
    let with = |pairs: &'static [(&str, &str)]| {
        let env = |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|pair| OsString::from(pair.1));
        let project = Project::locate(&dir, &env, None, None).unwrap();
        (project.user_settings(), project.registry())
    };
    let path = |text: &str| Some(PathBuf::from(text));
    assert_eq!(with(&[]), (None, None));
    assert_eq!(
        with(&[("HOME", "/h"), ("XDG_STATE_HOME", "relative")]),
        (path("/h/.config/ralph/ralph.toml"), path("/h/.local/state/ralph/loops"))
    );
    assert_eq!(
        with(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "/s")]),
        (path("/c/ralph/ralph.toml"), path("/s/ralph/loops"))
    );
}

#[test]
fn ralph_dir_is_created_on_demand_or_refused_clearly() {
    let (_guard, dir) = scratch();
    let at = |flag: &str| Project::locate(&dir, &no_env, Some(Path::new(flag)), None).unwrap();

    at("deep/er/.ralph").create_ralph_dir().unwrap();
    at("deep/er/.ralph").create_ralph_dir().unwrap();
    assert!(dir.join("deep/er/.ralph").is_dir());

    fs::write(dir.join("file"), "").unwrap();
    assert!(matches!(at("file").create_ralph_dir(), Err(ProjectError::RalphDirIsFile { .. })));
    // The file is the obstacle.
    let error = at("file/sub").require_room().unwrap_err();
    assert!(matches!(error, ProjectError::RalphDirIsFile { path } if path == dir.join("file")));
    symlink("/nowhere/at/all", dir.join("dangling")).unwrap();
    assert!(matches!(at("dangling").create_ralph_dir(), Err(ProjectError::RalphDirUnwritable { .. })));
    assert!(matches!(at("/proc/ralph").create_ralph_dir(), Err(ProjectError::RalphDirUnwritable { .. })));
}

#[test]
fn run_time_files_lie_in_a_folder_that_is_ours_alone() {
    let (_guard, dir) = scratch();
    repository(&dir);
    let run_dir = |flag: &str| {
        let project = Project::locate(&dir, &no_env, Some(Path::new(flag)), None).unwrap();
        let again = project.elsewhere(project.root(), project.ralph_dir());
        assert_eq!(again.run_dir(), project.run_dir(), "{flag}");
        project.relative(project.run_dir())
    };
    let program = |folder: &str| {
        touch(&dir.join(folder).join("ralph"));
        touch(&dir.join(folder).join("config"));
        fs::set_permissions(dir.join(folder).join("ralph"), Permissions::from_mode(0o755)).unwrap();
    };
    program("tools");
    program(".");
    touch(&dir.join("bin/ralph"));
    fs::create_dir_all(dir.join("empty")).unwrap();
    symlink("empty", dir.join("link")).unwrap();
    for (ralph_dir, expected) in [
        (".ralph", ".ralph"),
        ("deep/.ralph", "deep/.ralph"),
        ("tools", "tools/.ralph"),
        (".", ".ralph"),
        ("docs", "docs/.ralph"),
        ("bin", "bin/.ralph"),
        ("empty", "empty/.ralph"),
        ("link", "empty/.ralph"),
    ] {
        assert_eq!(run_dir(ralph_dir), Path::new(expected), "{ralph_dir}");
    }
}

#[test]
fn a_run_dir_does_not_hide_the_ralph_dir_around_it() {
    let (_guard, dir) = scratch();
    repository(&dir);
    touch(&dir.join("config"));
    touch(&dir.join("prompts/plan.md"));
    let project = locate(&dir);
    assert_eq!((project.ralph_home().as_path(), project.run_dir()), (Path::new("."), &*dir.join(".ralph")));
    project.create_run_dir().unwrap();
    assert_eq!(locate(&dir), project);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(project.run_dir()), mode(&project.run_dir().join(RUN_DIR_MARK))), (0o700, 0o600));
    project.create_run_dir().unwrap();
    assert_eq!(fs::read_dir(project.run_dir()).unwrap().count(), 1);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 4, "nothing half-made is left");

    // A `.ralph` with a user's files is a ralph dir.
    touch(&dir.join(".ralph/prompts/build.md"));
    assert_eq!(locate(&dir).ralph_home(), Path::new(".ralph"));

    fs::remove_dir_all(dir.join(".ralph")).unwrap();
    project.restore_run_dir().unwrap();
    assert_eq!(locate(&dir), project);
    fs::create_dir(dir.join("other")).unwrap();
    symlink("..", dir.join("other/.ralph")).unwrap();
    let other = Project::locate(&dir, &no_env, Some(Path::new("other")), None).unwrap();
    let refused = other.create_run_dir().unwrap_err().to_string();
    assert!(refused.contains("other/.ralph: it is a symbolic link"), "{refused}");
    let full =
        ProjectError::RalphDirUnwritable { path: "/x".into(), reason: io::ErrorKind::StorageFull.into() };
    assert!(full.to_string().contains("): free some space on that disk, or name"), "{full}");
}

#[test]
fn all_work_trees_share_the_graph_of_the_main_checkout() {
    let (_guard, dir) = scratch();
    let main = dir.join("main");
    repository(&main);
    let trees = main.join(".git/worktrees/w");
    touch(&trees.join("HEAD"));
    fs::write(trees.join("commondir"), "../..\n").unwrap();
    for tree in [dir.join("beside"), main.join(".worktrees/w")] {
        fs::create_dir_all(tree.join("sub")).unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", trees.display())).unwrap();
        for cwd in [&tree, &tree.join("sub"), &main] {
            assert_eq!(locate(cwd).graph(), main.join(".ralph/progress.db"), "{}", cwd.display());
        }
        let named = Project::locate(&tree, &no_env, Some(Path::new("mine")), None).unwrap();
        assert_eq!(named.graph(), tree.join("mine/.ralph/progress.db"));
    }
    touch(&main.join("config"));
    touch(&main.join("prompts/plan.md"));
    assert_eq!(locate(&dir.join("beside")).graph(), main.join(".ralph/progress.db"));
}

#[test]
fn the_graph_of_a_bare_repository_is_in_its_git_folder() {
    let (_guard, dir) = scratch();
    let bare = dir.join("outer/bare");
    repository(&dir.join("outer"));
    touch(&bare.join("HEAD"));
    for folder in ["objects", "refs", "worktrees/w"] {
        fs::create_dir_all(bare.join(folder)).unwrap();
    }
    touch(&bare.join("worktrees/w/HEAD"));
    fs::write(bare.join("worktrees/w/commondir"), "../..\n").unwrap();
    let tree = dir.join("tree");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join(".git"), format!("gitdir: {}\n", bare.join("worktrees/w").display())).unwrap();
    for cwd in [&bare, &bare.join("refs"), &tree] {
        assert_eq!(locate(cwd).graph(), bare.join("ralph/progress.db"), "{}", cwd.display());
    }
    assert_eq!(locate(&dir).graph(), dir.join(".ralph/progress.db"), "no git at all");
    for folder in ["objects", "refs"] {
        fs::create_dir_all(dir.join("outer/.git").join(folder)).unwrap();
    }
    for cwd in ["outer", "outer/.git/refs"] {
        assert_eq!(locate(&dir.join(cwd)).graph(), dir.join("outer/.ralph/progress.db"), "{cwd}");
    }
}

#[test]
fn a_machine_without_descriptors_is_no_missing_repository() {
    let full = "project::tests::a_machine_without_descriptors_is_no_missing_repository";
    let set_up = || {
        let (guard, dir) = scratch();
        repository(&dir);
        touch(&dir.join(".git/worktrees/w/HEAD"));
        fs::create_dir(dir.join("w")).unwrap();
        fs::write(dir.join("w/.git"), format!("gitdir: {}\n", dir.join(".git/worktrees/w").display()))
            .unwrap();
        (guard, dir)
    };
    crate::files::testing::without_descriptors(full, set_up, |(_guard, dir)| {
        let project = locate(&dir.join("w"));
        assert_eq!(project.root(), dir.join("w"), "not the one around it");
        for result in [project.require_git(), project.require_readable_git()] {
            let message = result.unwrap_err().to_string();
            assert!(
                message.contains("Too many open files") && message.ends_with("('ulimit -n')"),
                "{message}"
            );
        }
    });
}

#[test]
fn branches_of_a_list_are_where_each_of_them_is() {
    let (_guard, dir) = scratch();
    let here = locate(&dir);
    for name in ["one", "folder/two", "linked"] {
        fs::create_dir_all(here.of_branch(name, None).records()).unwrap();
    }
    let compare = || {
        let mut found = here.branches();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(
            found.iter().map(|(name, _)| &**name).collect::<Vec<_>>(),
            ["folder/two", "linked", "one"]
        );
        for (name, places) in found {
            assert_eq!(places, here.of_branch(&name, None));
        }
    };
    compare();
    fs::create_dir_all(here.worktree("folder")).unwrap();
    symlink(&dir, here.worktree("linked")).unwrap();
    compare();
    fs::rename(here.worktrees(), dir.join("elsewhere")).unwrap();
    symlink("elsewhere", here.worktrees()).unwrap();
    compare();
}
