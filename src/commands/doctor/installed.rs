//! How this ralph was installed, which command updates it, and whether `PATH` leads to another one.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::files::theirs;
use crate::process::programs::interpreters;
use crate::text::line::shell_word;
use crate::version;

/// The name of the program.
const NAME: &str = "ralph";
/// The longest list of installed programs that is read, in bytes.
const LIST: u64 = 8 << 20;
/// The longest script that is read, in bytes.
const SCRIPT: u64 = 64 << 10;

/// Who put the program file where it is, and the command that puts a newer one there.
#[derive(Debug, PartialEq, Eq)]
struct Installed {
    by: &'static str,
    update: String,
}

/// Tells which ralph this is, and of others on `PATH`. `exe` is the program file.
pub(super) fn check(exe: Option<PathBuf>, search_path: &OsStr) -> Vec<Finding> {
    let this = version::this();
    let about = format!("{} for {}, tier {}", version::LINE, this.target, this.tier);
    let Some(exe) = exe else { return vec![Finding::ok("ralph", about)] };
    let Installed { by, update } = installed(&exe, Path::new("/"));
    let mut findings = vec![Finding::ok("ralph", format!("{about}; installed by {by}: {update}"))];
    let others = others(&exe, search_path);
    if !others.is_empty() {
        let others = others.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        findings.push(Finding::warn(
            "path",
            format!("this ralph is {}, and PATH also leads to {others}", exe.display()),
            "remove all but one, or call each by its path",
        ));
    }
    findings
}

/// Recognises the place of the program file. `root` is where the system's files are.
fn installed(exe: &Path, root: &Path) -> Installed {
    let words: Vec<&str> = exe.iter().filter_map(OsStr::to_str).collect();
    let behind = |folders: &[&str]| {
        let at = words.windows(folders.len()).position(|window| window == folders)?;
        words.get(at + folders.len()).map(|word| (*word).to_owned())
    };
    let by = |by, update: String| Installed { by, update };
    if let Some(package) = of_npm(&words) {
        let is_global = words.windows(2).any(|pair| pair == ["lib", "node_modules"]);
        let flag = if is_global { "-g " } else { "" };
        if words.contains(&".pnpm") {
            return by(
                "pnpm",
                format!("'pnpm update {package} --latest' updates it, with -g if it is global"),
            );
        }
        return by("npm", format!("'npm install {flag}{package}@latest' updates it"));
    }
    if let Some(name) = behind(&["pipx", "venvs"]) {
        return by("pipx", format!("'pipx upgrade {name}' updates it"));
    }
    if let Some(name) = behind(&["uv", "tools"]) {
        return by("uv", format!("'uv tool upgrade {name}' updates it"));
    }
    if behind(&["Cellar"]).is_some() {
        return by("Homebrew", "'brew upgrade ralph' updates it".to_owned());
    }
    if words.starts_with(&["/", "nix", "store"]) {
        return by("Nix", "'nix profile upgrade ralph' updates it, if it is in a profile".to_owned());
    }
    of_dpkg(exe, root).or_else(|| of_pip(exe)).or_else(|| of_cargo(exe)).unwrap_or_else(|| {
        let folder = exe.parent().unwrap_or(exe);
        by("hand", format!("'sh install.sh --to {}' puts another one there", shell_word(folder)))
    })
}

/// The package that people have installed, of one with a program in it: `node_modules/@SCOPE/ralph-linux-CPU-LIBC/bin/ralph`.
fn of_npm(words: &[&str]) -> Option<String> {
    let at = words.iter().rposition(|word| *word == "node_modules")?;
    let scope = words.get(at + 1).filter(|scope| scope.starts_with('@'))?;
    words.get(at + 2).filter(|name| name.starts_with("ralph-linux-"))?;
    Some(format!("{scope}/{NAME}"))
}

fn of_dpkg(exe: &Path, root: &Path) -> Option<Installed> {
    let list = theirs::read(&root.join("var/lib/dpkg/info/ralph.list"), LIST).ok()?;
    let is_listed =
        |line: &str| Path::new("/").join(exe.strip_prefix(root).unwrap_or(exe)) == Path::new(line);
    let update = "'apt install ./ralph_VERSION-1_ARCH.deb' puts a newer package in its place".to_owned();
    String::from_utf8_lossy(&list).lines().any(is_listed).then_some(Installed { by: "dpkg", update })
}

/// An environment of Python names the program in its list of the package's files.
fn of_pip(exe: &Path) -> Option<Installed> {
    let bin = exe.parent()?;
    let python = ["python3", "python"].iter().map(|name| bin.join(name)).find(|path| path.exists())?;
    let entries =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let packages = entries(&bin.parent()?.join("lib")).flat_map(|python| {
        ["site-packages", "dist-packages"].into_iter().flat_map(move |name| entries(&python.join(name)))
    });
    let package = packages
        .filter(|info| info.extension().is_some_and(|end| end == "dist-info"))
        .filter(|info| info.file_name().is_some_and(|name| name.to_string_lossy().contains(NAME)))
        .find(|info| {
            let record = theirs::read(&info.join("RECORD"), LIST).unwrap_or_default();
            String::from_utf8_lossy(&record).lines().any(|line| line.starts_with("../../../bin/ralph,"))
        })?;
    let name = package.file_stem()?.to_str()?.split('-').next()?.replace('_', "-");
    let update = format!("'{} -m pip install --upgrade {name}' updates it", shell_word(&python));
    Some(Installed { by: "pip", update })
}

/// 'cargo install' lists its programs beside the folder they are in; a build has a marked folder above it.
fn of_cargo(exe: &Path) -> Option<Installed> {
    let home = exe.parent()?.parent()?;
    let list = theirs::read(&home.join(".crates.toml"), LIST).unwrap_or_default();
    let list = String::from_utf8_lossy(&list).into_owned();
    let of_ours = list
        .lines()
        .find(|line| line.split_once(" = ").is_some_and(|(_, names)| names.contains("\"ralph\"")));
    if let Some((name, source)) = of_ours.and_then(|line| line.trim_start_matches('"').split_once(' ')) {
        let from = source.split_once("(path+file://").and_then(|(_, path)| path.split_once(')'));
        let what = from
            .map_or_else(|| name.to_owned(), |(path, _)| format!("--path {}", shell_word(Path::new(path))));
        return Some(Installed {
            by: "cargo",
            update: format!("'cargo install --locked {what}' updates it"),
        });
    }
    let is_built = exe.ancestors().skip(1).take(4).any(|folder| folder.join("CACHEDIR.TAG").exists());
    let update = "'git pull' and 'cargo build' in its clone update it".to_owned();
    is_built.then_some(Installed { by: "cargo build", update })
}

/// Whether a script becomes `exe`, the program of this package of npm: it is the package's launcher, or pnpm's own script, which
/// calls the launcher.
fn is_launcher(script: &Path, package: &str, exe: &Path) -> bool {
    let launcher = format!("{package}/bin/{NAME}");
    let lies = |folder: &Path| {
        folder.join("node_modules").join(&launcher).canonicalize().is_ok_and(|at| at == script)
    };
    let calls = || {
        let text = theirs::read(script, SCRIPT).unwrap_or_default();
        String::from_utf8_lossy(&text).contains(&format!("/{launcher}"))
    };
    exe.ancestors().any(lies) || !interpreters(script).is_empty() && calls()
}

/// Programs called ralph on `PATH` that are not this one.
fn others(exe: &Path, search_path: &OsStr) -> Vec<PathBuf> {
    let words: Vec<&str> = exe.iter().filter_map(OsStr::to_str).collect();
    let package = of_npm(&words);
    let own = exe.canonicalize().unwrap_or_else(|_| exe.to_owned());
    let mut found: Vec<PathBuf> = Vec::new();
    for path in std::env::split_paths(search_path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(NAME))
    {
        let Ok(real) = path.canonicalize() else { continue };
        let is_own = real == own || package.as_ref().is_some_and(|package| is_launcher(&real, package, &own));
        if real.is_file()
            && !is_own
            && found.iter().all(|known| known.canonicalize().ok().as_ref() != Some(&real))
        {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn file(path: &Path, content: &str) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        path.to_owned()
    }

    #[test]
    fn the_place_of_the_program_says_who_put_it_there() {
        let nowhere = Path::new("/nowhere");
        for (exe, by, update) in [
            (
                "/usr/lib/node_modules/@o/ralph/node_modules/@o/ralph-linux-x64-glibc/bin/ralph",
                "npm",
                "install -g @o/ralph@latest",
            ),
            ("/p/node_modules/@o/ralph-linux-x64-musl/bin/ralph", "npm", "'npm install @o/ralph@latest'"),
            (
                "/p/node_modules/.pnpm/@o+r@1/node_modules/@o/ralph-linux-x64-glibc/bin/ralph",
                "pnpm",
                "pnpm update @o/ralph",
            ),
            ("/home/u/.local/pipx/venvs/ralph-loop/bin/ralph", "pipx", "'pipx upgrade ralph-loop'"),
            ("/home/u/.local/share/uv/tools/ralph/bin/ralph", "uv", "'uv tool upgrade ralph'"),
            ("/home/linuxbrew/.linuxbrew/Cellar/ralph/1.0/bin/ralph", "Homebrew", "'brew upgrade ralph'"),
            ("/nix/store/abc-ralph/bin/ralph", "Nix", "nix profile upgrade"),
            ("/nowhere/my bin/ralph", "hand", "'sh install.sh --to '/nowhere/my bin''"),
        ] {
            let found = installed(Path::new(exe), nowhere);
            assert!(found.by == by && found.update.contains(update), "{exe}: {found:?}");
        }
    }

    #[test]
    fn lists_of_installed_files_say_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let found = |exe: &Path| installed(exe, root);
        file(&root.join("var/lib/dpkg/info/ralph.list"), "/.\n/usr/bin\n/usr/bin/ralph\n");
        assert_eq!(found(&root.join("usr/bin/ralph")).by, "dpkg");
        assert_eq!(found(&root.join("usr/local/bin/ralph")).by, "hand");

        file(&root.join("venv/bin/python3"), "");
        file(
            &root.join("venv/lib/python3.11/site-packages/ralph_loop-0.1.0.dist-info/RECORD"),
            "../../../bin/ralph,sha256=x,1\n",
        );
        let pip = found(&root.join("venv/bin/ralph"));
        assert!(
            pip.by == "pip"
                && pip.update.ends_with("/venv/bin/python3 -m pip install --upgrade ralph-loop' updates it"),
            "{pip:?}"
        );

        for (line, update) in [
            (
                "\"ralph 0.1.0 (path+file:///src/ralph)\" = [\"ralph\"]",
                "'cargo install --locked --path /src/ralph' updates it",
            ),
            (
                "\"ralph-loop 0.1.0 (registry+https://x/y)\" = [\"ralph\"]",
                "'cargo install --locked ralph-loop' updates it",
            ),
        ] {
            file(
                &root.join(".cargo/.crates.toml"),
                &format!("[v1]\n\"other 1.0.0 (x)\" = [\"other\"]\n{line}\n"),
            );
            assert_eq!(
                found(&root.join(".cargo/bin/ralph")),
                Installed { by: "cargo", update: update.to_owned() }
            );
        }
        file(&root.join("target/CACHEDIR.TAG"), "");
        assert_eq!(found(&root.join("target/debug/ralph")).by, "cargo build");
    }

    #[test]
    fn another_ralph_on_path_is_told_once_and_a_launcher_is_none() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let exe = file(&root.join("a/ralph"), "");
        let other = file(&root.join("b/ralph"), "");
        for folder in ["c", "d"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        symlink(&other, root.join("c/ralph")).unwrap();
        let path = std::env::join_paths(["a", "b", "c", "d"].map(|folder| root.join(folder))).unwrap();
        assert_eq!(others(&exe, &path), std::slice::from_ref(&other));

        let launched = file(&root.join("node_modules/@o/ralph-linux-x64-glibc/bin/ralph"), "");
        let script = file(&root.join("node_modules/@o/ralph/bin/ralph"), "#!/bin/sh\n");
        symlink(script, root.join("d/ralph")).unwrap();
        file(&root.join("b/ralph"), "#!/bin/sh\nexec \"$basedir/../@o/ralph/bin/ralph\" \"$@\"\n");
        assert_eq!(others(&launched, &path), std::slice::from_ref(&exe));
        file(&root.join("b/ralph"), "#!/bin/sh\nexec something else\n");
        assert_eq!(others(&launched, &path), [exe, other]);
    }
}
