//! What kind of machine this is: how ralph keeps hold of processes on it, how well it is tested there, and whether the
//! project is on a Windows drive.

use std::path::Path;

use super::Finding;
use crate::platform::backend::{Backend, VARIABLE, in_force, tier};
use crate::platform::calls::{Mount, mounts};

/// The backend in force, and the tier.
pub(super) fn check() -> Finding {
    let (found, tier) = (in_force(), tier());
    let detail = format!(
        "{}-{}, backend {}, tier {}: {}",
        std::env::consts::OS,
        std::env::consts::ARCH,
        found.backend.word(),
        tier.number,
        tier.tested
    );
    if let Some(why) = &found.why {
        return Finding::warn(
            "platform",
            format!("{detail}; {why}"),
            "run 'ralph doctor --supervision' once; 'ralph help safety' says what this backend cannot hold",
        );
    }
    match std::env::var(VARIABLE) {
        Ok(named) if !named.is_empty() && named != Backend::Linux.word() => Finding::warn(
            "platform",
            format!("{detail}; {VARIABLE} is '{named}', which is no backend"),
            format!("set {VARIABLE} to portable or linux, or unset it"),
        ),
        _ => Finding::ok("platform", detail),
    }
}

/// A warning if this folder is on a drive of Windows, which WSL shows as a network file system.
pub(super) fn check_drive(folder: &Path) -> Option<Finding> {
    let folder = folder.canonicalize().ok()?;
    let all = mounts().ok()?;
    let mount = holding(&all, &folder).filter(|mount| is_drive(mount))?;
    let drive = mount.source.trim_end_matches('\\');
    Some(Finding::warn(
        "drive",
        format!(
            "the project is on the Windows drive {drive}, at {}: git is slow there, and locks and modes of files are not those of Linux",
            mount.place.display()
        ),
        "clone it into the Linux file system of WSL, such as your home folder",
    ))
}

/// The mount that has this folder: the last one of the longest path.
fn holding<'a>(all: &'a [Mount], folder: &Path) -> Option<&'a Mount> {
    let around = all.iter().filter(|mount| folder.starts_with(&mount.place));
    around.max_by_key(|mount| mount.place.components().count())
}

/// WSL 1 mounts drives as `drvfs`, WSL 2 as `9p` or `virtiofs` from `C:\` or a name with `drvfs` in it.
fn is_drive(mount: &Mount) -> bool {
    let is_letter = |source: &[u8]| matches!(source, [letter, b':', ..] if letter.is_ascii_alphabetic());
    match mount.kind.as_str() {
        "drvfs" => true,
        "9p" | "virtiofs" => is_letter(mount.source.as_bytes()) || mount.source.starts_with("drvfs"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(place: &str, kind: &str, source: &str) -> Mount {
        Mount { place: place.into(), options: b"rw".to_vec(), kind: kind.into(), source: source.into() }
    }

    #[test]
    fn a_windows_drive_is_known_by_the_table_of_mounts() {
        let all = [
            mount("/", "ext4", "/dev/sdc"),
            mount("/mnt/c", "9p", "C:\\"),
            mount("/mnt/c/linux", "ext4", "/dev/sdd"),
            mount("/mnt/d", "drvfs", "D:"),
            mount("/mnt/e", "virtiofs", "drvfsaE0"),
            mount("/shared", "9p", "share"),
        ];
        for (folder, is_there) in [
            ("/home/me", false),
            ("/mnt/c", true),
            ("/mnt/c/work/app", true),
            ("/mnt/cc", false),
            ("/mnt/c/linux/app", false),
            ("/mnt/d/x", true),
            ("/mnt/e/x", true),
            ("/shared/x", false),
        ] {
            assert_eq!(is_drive(holding(&all, Path::new(folder)).unwrap()), is_there, "{folder}");
        }
        assert_eq!(check_drive(Path::new("/")), None);
    }
}
