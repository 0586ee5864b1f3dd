//! The mounts of a program behind walls, in a mount namespace of its own.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change, mount_remount,
};
use rustix::process::getuid;

use super::parts::{FRESH, LAYERS, MASKS, named, numbered};
use super::plan::{Layer, Plan};

/// What root could write, as it owns it.
const OF_ROOT: [&str; 5] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"];
/// Where the kernel itself refuses what it must.
pub(super) const AS_IT_IS: [&str; 2] = ["/proc", "/dev/pts"];

/// What holds for a place and all below it, up to the next place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Writable,
    ReadOnly,
}

/// Mounts what the plan says.
pub(super) fn build(folder: &Path, plan: &Plan) -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let masks = masks(folder)?;
    for (at, layer) in plan.layers.iter().enumerate() {
        put_layer(&numbered(folder, LAYERS, at), layer)?;
    }
    for (at, place) in plan.fresh.iter().enumerate() {
        freshen(&numbered(folder, FRESH, at), place, plan).map_err(|error| named(place.display(), error))?;
    }
    let own = if getuid().is_root() { &OF_ROOT[..] } else { &[] };
    let own: Vec<PathBuf> = own.iter().map(PathBuf::from).collect();
    let rules = rules(plan, &own)?;
    // Each is a mount of its own: so it can be another one than what is around it, and nothing can take its place.
    for place in plan.writable.iter().chain(&plan.made).chain(&plan.read_only).chain(&own) {
        bind_if_there(place, place)?;
    }
    for place in plan.hidden.iter().chain(&devices()) {
        let Ok(metadata) = place.symlink_metadata() else { continue };
        let mask = masks.join(if metadata.is_dir() { FOLDER } else { FILE });
        mount_bind(&mask, place).map_err(|error| named(place.display(), error))?;
    }
    let terminals = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", "/dev/pts", "devpts", terminals, c"newinstance,ptmxmode=0666,mode=620")
        .map_err(|error| named("/dev/pts", error))?;
    bind_if_there(Path::new("/dev/pts/ptmx"), Path::new("/dev/ptmx"))?;
    // Tops and fresh folders are there a second time, without masks.
    if let Some(place) = folder.parent() {
        mount_bind(masks.join(FOLDER), place).map_err(|error| named(place.display(), error))?;
    }
    close(&rules)
}

const FOLDER: &str = "folder";
const FILE: &str = "file";

/// Makes what stands in the place of what is hidden: a folder and a file that cannot be opened.
fn masks(folder: &Path) -> io::Result<PathBuf> {
    let masks = folder.join(MASKS);
    mount("ralph", &masks, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"size=64k,mode=755")?;
    DirBuilder::new().mode(0o0).create(masks.join(FOLDER))?;
    empty(&masks.join(FILE), 0o0)?;
    Ok(masks)
}

fn empty(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Puts a folder in the place of another one, with all that is in that.
fn put_layer(top: &Path, layer: &Layer) -> io::Result<()> {
    for entry in fs::read_dir(&layer.path).map_err(|error| named(layer.path.display(), error))? {
        let entry = entry?;
        let (from, to) = (entry.path(), top.join(entry.file_name()));
        let kind = entry.file_type()?;
        if to.symlink_metadata().is_ok() {
            // It was copied.
        } else if kind.is_symlink() {
            symlink(fs::read_link(&from)?, &to)?;
        } else if kind.is_dir() {
            fs::create_dir(&to)?;
            bind_if_there(&from, &to)?;
        } else {
            empty(&to, 0o600)?;
            bind_if_there(&from, &to)?;
        }
    }
    mount_bind_recursive(top, &layer.path).map_err(|error| named(layer.path.display(), error))
}

/// Puts an empty folder in the place of one for temporary files, with what is kept of that.
fn freshen(fresh: &Path, place: &Path, plan: &Plan) -> io::Result<()> {
    for kept in &plan.kept {
        let Some(below) = kept.strip_prefix(place).ok().filter(|below| !below.as_os_str().is_empty()) else {
            continue;
        };
        let to = fresh.join(below);
        if to.exists() {
            // It is below another one that is kept.
            continue;
        }
        if kept.is_dir() {
            fs::create_dir_all(&to)?;
        } else if kept.exists() {
            fs::create_dir_all(to.parent().unwrap_or(fresh))?;
            empty(&to, 0o600)?;
        }
        bind_if_there(kept, &to)?;
    }
    Ok(mount_bind_recursive(fresh, place)?)
}

fn bind_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match mount_bind_recursive(from, to) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(named(from.display(), error)),
    }
}

/// The rules of all places.
fn rules(plan: &Plan, own: &[PathBuf]) -> io::Result<BTreeMap<PathBuf, Rule>> {
    let mut rules = BTreeMap::from([(PathBuf::from("/"), Rule::ReadOnly)]);
    let mut add = |places: &[PathBuf], rule| rules.extend(places.iter().map(|place| (place.clone(), rule)));
    add(&plan.kept, Rule::ReadOnly);
    for Layer { path, copied } in &plan.layers {
        let entries: io::Result<Vec<PathBuf>> = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect();
        add(&entries?, Rule::ReadOnly);
        add(std::slice::from_ref(path), Rule::Writable);
        add(&copied.iter().map(|name| path.join(name)).collect::<Vec<_>>(), Rule::Writable);
    }
    add(&plan.fresh, Rule::Writable);
    add(&plan.made, Rule::Writable);
    add(&plan.writable, Rule::Writable);
    add(&plan.read_only, Rule::ReadOnly);
    add(&AS_IT_IS.map(PathBuf::from), Rule::Writable);
    add(own, Rule::ReadOnly);
    Ok(rules)
}

/// Devices that every program may use.
pub(super) const USUAL: [&str; 8] = ["full", "null", "ptmx", "random", "tty", "urandom", "zero", "console"];

/// The devices, which root could write to, as it owns them: disks, memory, terminals of others.
fn devices() -> Vec<PathBuf> {
    let all = fs::read_dir("/dev").into_iter().flatten().flatten();
    let is_device = |entry: &fs::DirEntry| {
        let is_usual = USUAL.iter().any(|name| entry.file_name() == *name);
        let kind = entry.file_type();
        kind.is_ok_and(|kind| kind.is_block_device() || kind.is_char_device() && !is_usual)
    };
    if getuid().is_root() { all.filter(is_device).map(|entry| entry.path()).collect() } else { Vec::new() }
}

/// Makes every mount read-only but those that the nearest rule lets be written.
fn close(rules: &BTreeMap<PathBuf, Rule>) -> io::Result<()> {
    let mut seen = HashSet::new();
    let table = fs::read("/proc/self/mountinfo")?;
    for line in table.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b' ');
        let (Some(place), Some(options)) = (fields.nth(4), fields.next()) else { continue };
        let place = unescaped(place);
        let has = |name: &str| options.split(|byte| *byte == b',').any(|option| option == name.as_bytes());
        let rule = place.ancestors().find_map(|above| rules.get(above)).copied();
        if !seen.insert(place.clone()) || rule == Some(Rule::Writable) {
            continue;
        }
        let mut flags = MountFlags::BIND | MountFlags::RDONLY;
        // What it has been without cannot be taken away.
        flags.set(MountFlags::NOSUID, has("nosuid"));
        flags.set(MountFlags::NODEV, has("nodev"));
        flags.set(MountFlags::NOEXEC, has("noexec"));
        match mount_remount(&place, flags, c"") {
            // It is covered by another one, so that no path leads there.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT | Errno::ACCESS) => {}
            Err(error) => return Err(named(place.display(), error)),
        }
    }
    Ok(())
}

/// A path as the kernel writes it: blanks and backslashes are three octal digits behind a backslash.
fn unescaped(path: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, others @ ..] = rest {
        let digits = others.get(..3).filter(|_| *first == b'\\');
        let code = digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        plain.push(code.unwrap_or(*first));
        rest = if code.is_some() { &others[3..] } else { others };
    }
    OsString::from_vec(plain).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_the_kernel_writes_them() {
        for (written, path) in [("/a", "/a"), ("/a\\040b\\134c", "/a b\\c"), ("/x\\", "/x\\"), ("\\0", "\\0")]
        {
            assert_eq!(unescaped(written.as_bytes()), Path::new(path), "{written}");
        }
    }
}
