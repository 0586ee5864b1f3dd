//! The mounts of a program behind walls, in a mount namespace of its own.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_bind_recursive, mount_change, mount_remount, move_mount, open_tree,
};
use rustix::process::getuid;

use crate::platform::calls::{KERNEL, KERNEL_SETTINGS, Mount, OPEN_FILES, mounts};

use super::parts::{FRESH, LAYERS, MASKS, named, numbered};
use super::plan::{Layer, Plan};

/// Where the kernel itself refuses what it must.
pub(super) const AS_IT_IS: [&str; 2] = [KERNEL, "/dev/pts"];

/// Mounts what the plan says.
pub(super) fn build(folder: &Path, plan: &Plan) -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let masks = folder.join(MASKS);
    mount("ralph", &masks, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"size=64k,mode=755")?;
    make_masks(&masks)?;
    let shown = put(folder, &masks, plan)?;
    for place in if getuid().is_root() { &KERNEL_SETTINGS[..] } else { &[] } {
        bind_if_there(Path::new(place), Path::new(place))?;
        close_one(Path::new(place), MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC)?;
    }
    hide(&masks, plan, &shown)?;
    let terminals = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", "/dev/pts", "devpts", terminals, c"newinstance,ptmxmode=0666,mode=620")
        .map_err(|error| named("/dev/pts", error))?;
    bind_if_there(Path::new("/dev/pts/ptmx"), Path::new("/dev/ptmx"))?;
    // Tops and fresh folders are there a second time, without masks.
    if let Some(place) = folder.parent() {
        mount_bind(masks.join(NOTHING), place).map_err(|error| named(place.display(), error))?;
    }
    Ok(())
}

/// Puts all in its place that can be written, or that is shown in what is new, and closes the rest; returns what is shown.
fn put(folder: &Path, masks: &Path, plan: &Plan) -> io::Result<Vec<PathBuf>> {
    let mut places = Places::default();
    if getuid().is_root() {
        places.copy(&masks.join(DEVICES), Path::new(DEV))?;
        places.copy_more(&usual_devices().collect::<Vec<_>>())?;
    }
    // A mount is copied as it is: first those that can be written, and those that cannot when nothing can.
    let mut shown = Vec::new();
    for (at, layer) in plan.layers.iter().enumerate() {
        let top = numbered(folder, LAYERS, at);
        places.copy(&top, &layer.path)?;
        fill(&top, layer, &mut shown).map_err(|error| named(layer.path.display(), error))?;
    }
    for (at, place) in plan.fresh.iter().enumerate() {
        let fresh = numbered(folder, FRESH, at);
        places.copy(&fresh, place)?;
        keep(&fresh, place, plan, &mut shown).map_err(|error| named(place.display(), error))?;
    }
    places.copy_more(plan.made.iter().chain(&plan.writable))?;
    close()?;
    places.copy_more(&shown)?;
    plan.read_only.iter().try_for_each(|place| places.copy(place, place))?;
    places.attach()?;
    Ok(shown)
}

/// Puts masks in the place of what is hidden. Of a folder whose entries are shown it is known what is not there.
fn hide(masks: &Path, plan: &Plan, shown: &[PathBuf]) -> io::Result<()> {
    let shown: HashSet<&PathBuf> = shown.iter().collect();
    let may_be = |place: &&PathBuf| {
        let entry =
            |top: &Path| place.ancestors().find(|above| above.parent() == Some(top)).map(Path::to_owned);
        plan.layers.iter().all(|layer| entry(&layer.path).is_none_or(|entry| shown.contains(&entry)))
    };
    for place in plan.hidden.iter().filter(may_be) {
        let Ok(metadata) = place.symlink_metadata() else { continue };
        let mask = masks.join(if metadata.is_dir() { FOLDER } else { FILE });
        mount_bind(&mask, place).map_err(|error| named(place.display(), error))?;
    }
    Ok(())
}

/// Copies of mounts that are to be put in the place of others. So each can be another one than what is around it, and nothing can take
/// its place.
#[derive(Default)]
struct Places(BTreeMap<PathBuf, OwnedFd>);

impl Places {
    /// Copies what is mounted there, with all below it; what is not there is left out. A later one for the same place counts.
    fn copy(&mut self, from: &Path, place: &Path) -> io::Result<()> {
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        match open_tree(CWD, from, flags) {
            Ok(copy) => drop(self.0.insert(place.to_owned(), copy)),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(named(from.display(), error)),
        }
        Ok(())
    }

    /// Copies what is mounted in each of these places where nothing is to be put yet.
    fn copy_more<'a>(&mut self, places: impl IntoIterator<Item = &'a PathBuf>) -> io::Result<()> {
        places
            .into_iter()
            .try_for_each(|place| if self.0.contains_key(place) { Ok(()) } else { self.copy(place, place) })
    }

    /// Puts each in its place, the upper ones first.
    fn attach(self) -> io::Result<()> {
        for (place, copy) in self.0 {
            match move_mount(copy, "", CWD, &place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(named(place.display(), error)),
            }
        }
        Ok(())
    }
}

const DEVICES: &str = "devices";
const FOLDER: &str = "folder";
const NOTHING: &str = "nothing";
const FILE: &str = "file";

/// Makes what stands in the place of what is hidden: a folder and a file that cannot be opened; and an empty folder, for what is no
/// secret and no part of the work.
fn make_masks(masks: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o0).create(masks.join(FOLDER))?;
    DirBuilder::new().mode(0o555).create(masks.join(NOTHING))?;
    empty(&masks.join(FILE), 0o0)?;
    if getuid().is_root() {
        make_devices(&masks.join(DEVICES))?;
    }
    // Copies of what is around it have it, too.
    close_one(masks, MountFlags::NOSUID | MountFlags::NODEV)
}

fn empty(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Makes room in a top for all that is in the folder in whose place it will be.
fn fill(top: &Path, layer: &Layer, shown: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(&layer.path)? {
        let entry = entry?;
        let (from, to) = (entry.path(), top.join(entry.file_name()));
        let (kind, is_there) = (entry.file_type()?, to.symlink_metadata().is_ok());
        if is_there && layer.copied.iter().any(|copied| entry.file_name() == **copied) {
            continue;
        }
        // The program before may have had the same.
        match (is_there, kind.is_symlink(), kind.is_dir()) {
            (true, true, _) => continue,
            (true, ..) => {}
            (false, true, _) => {
                symlink(fs::read_link(&from)?, &to)?;
                continue;
            }
            (false, _, true) => fs::create_dir(&to)?,
            (false, ..) => drop(empty(&to, 0o600)?),
        }
        shown.push(from);
    }
    Ok(())
}

/// Makes room in a fresh folder for what is kept of the one in whose place it will be.
fn keep(fresh: &Path, place: &Path, plan: &Plan, shown: &mut Vec<PathBuf>) -> io::Result<()> {
    for kept in &plan.kept {
        let Some(below) = kept.strip_prefix(place).ok().filter(|below| !below.as_os_str().is_empty()) else {
            continue;
        };
        let to = fresh.join(below);
        if kept.is_dir() {
            fs::create_dir_all(&to)?;
        } else if kept.exists() && !to.exists() {
            fs::create_dir_all(to.parent().unwrap_or(fresh))?;
            empty(&to, 0o600)?;
        }
        shown.push(kept.clone());
    }
    Ok(())
}

fn bind_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match mount_bind_recursive(from, to) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(named(from.display(), error)),
    }
}

/// The folder of devices.
const DEV: &str = "/dev";
/// Devices that every program may use.
pub(super) const USUAL_DEVICES: [&str; 8] =
    ["full", "null", "ptmx", "random", "tty", "urandom", "zero", "console"];
/// What else is in their folder: folders that others are put in the place of, and links.
const BESIDE: [&str; 2] = ["pts", "shm"];
const LINKS: [(&str, &str); 4] =
    [("fd", OPEN_FILES), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")];

/// Those of them that are here.
fn usual_devices() -> impl Iterator<Item = PathBuf> {
    USUAL_DEVICES.iter().map(|name| Path::new(DEV).join(name)).filter(|path| path.exists())
}

/// Makes what stands in the place of all devices for root, who could write to each, as it owns them: disks, memory, terminals of others.
fn make_devices(devices: &Path) -> io::Result<()> {
    fs::create_dir(devices)?;
    BESIDE.iter().try_for_each(|name| fs::create_dir(devices.join(name)))?;
    LINKS.iter().try_for_each(|(name, to)| symlink(to, devices.join(name)))?;
    usual_devices()
        .try_for_each(|path| empty(&devices.join(path.file_name().unwrap_or_default()), 0o600).map(drop))
}

/// Makes every mount read-only that is there.
fn close() -> io::Result<()> {
    // Paths lead to the last one of those in a place.
    let all: BTreeMap<PathBuf, Mount> =
        mounts()?.into_iter().map(|mount| (mount.place.clone(), mount)).collect();
    for (place, mount) in all {
        if mount.has("ro") || AS_IT_IS.iter().any(|open| place.starts_with(open)) {
            continue;
        }
        // What it has been without cannot be taken away.
        let mut flags = MountFlags::empty();
        flags.set(MountFlags::NOSUID, mount.has("nosuid"));
        flags.set(MountFlags::NODEV, mount.has("nodev"));
        flags.set(MountFlags::NOEXEC, mount.has("noexec"));
        close_one(&place, flags)?;
    }
    Ok(())
}

fn close_one(place: &Path, flags: MountFlags) -> io::Result<()> {
    match mount_remount(place, MountFlags::BIND | MountFlags::RDONLY | flags, c"") {
        // It is covered by another one, so that no path leads there.
        Ok(()) | Err(Errno::INVAL | Errno::NOENT | Errno::ACCESS) => Ok(()),
        Err(error) => Err(named(place.display(), error)),
    }
}
