//! The hidden verb `ralph __inside FOLDER PROGRAM [ARGUMENTS]`: builds the walls that are planned in FOLDER around itself, and becomes
//! the program.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, Signal, getgid, getrlimit, getuid, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, set_no_new_privs};

use super::parts::{NOT_BUILT, PLAN, named};
use super::plan::Plan;
use super::reach::Reach;
use super::{calls, loopback, mounts, way_out};
use crate::files::own;
use crate::platform::calls::{KERNEL, map_user, signal_at_parents_death};
use crate::platform::mark;

/// What does not hold where the kernel's Landlock is older than version 6, or not there.
const PARTLY: &str = "so that programs can be signalled, and sockets without a path reached";

/// The largest plan, in bytes.
const MOST: u64 = 64 << 20;

/// Builds the walls and becomes the program. Returns only if that fails, with the exit code.
#[must_use]
pub fn main(argv: &[OsString]) -> i32 {
    let Err(error) = enter(argv);
    let _ = writeln!(io::stderr(), "error: ralph cannot start this program behind walls: {error}");
    NOT_BUILT
}

fn enter(argv: &[OsString]) -> io::Result<Infallible> {
    let [folder, program, arguments @ ..] = argv else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no program"));
    };
    let folder = Path::new(folder);
    let plan: Plan = serde_json::from_slice(&own::read(&folder.join(PLAN), MOST)?)?;
    let cwd = std::env::current_dir()?;
    // What others have left open for us leads past the walls, but what marks us leads nowhere. Its name is another one
    // behind the walls.
    let marks = mark::inherited();
    if plan.is_bound {
        signal_at_parents_death(Signal::KILL)?;
    }
    if plan.is_alone {
        mark::close_inherited(&marks)?;
        restrict(&plan)?;
        return become_it(program, arguments, &plan, Vec::new());
    }
    let is_cut_off = plan.reach != Reach::All;
    separate(is_cut_off).map_err(|error| named("user namespaces", error))?;
    if is_cut_off {
        loopback::bring_up().map_err(|error| named("its loopback", error))?;
    }
    let proxy = match &plan.reach {
        Reach::Hosts(hosts) if !plan.is_trial => {
            way_out::open(folder, hosts).map_err(|error| named("its proxy", error))?
        }
        _ => Vec::new(),
    };
    let limit = getrlimit(Resource::Nofile);
    // Each mount is held by a descriptor until all are in their places.
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    mounts::build(folder, &plan)?;
    setrlimit(Resource::Nofile, limit)?;
    // By its name it is another one now.
    std::env::set_current_dir(&cwd).map_err(|error| named(cwd.display(), error))?;
    mark::close_inherited(&marks)?;
    restrict(&plan)?;
    become_it(program, arguments, &plan, proxy)
}

/// Becomes the program. Returns only if that fails.
fn become_it(
    program: &OsString,
    arguments: &[OsString],
    plan: &Plan,
    proxy: Vec<(&'static str, String)>,
) -> io::Result<Infallible> {
    let mut command = Command::new(program);
    command.envs(plan.set.iter().map(|(name, value)| (name, value))).envs(proxy);
    for name in &plan.unset {
        command.env_remove(name);
    }
    Err(named(program.display(), command.args(arguments).exec()))
}

/// Enters namespaces of its own, in which it has the same user and group, and all rights.
fn separate(is_cut_off: bool) -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let mut spaces = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    spaces.set(UnshareFlags::NEWNET, is_cut_off);
    #[expect(
        deprecated,
        reason = "what is unsafe about it is a table of files that threads share: it is not unshared"
    )]
    rustix::thread::unshare(spaces)?;
    map_user(user, group)
}

/// Gives all rights up, for good: no program that it becomes has new ones.
fn restrict(plan: &Plan) -> io::Result<()> {
    set_no_new_privs(true)?;
    let status = if plan.is_alone { landlock_alone(plan) } else { landlock(plan) };
    let status = status.map_err(|error| named("Landlock", io::Error::other(error)))?;
    if plan.is_alone && status == RulesetStatus::NotEnforced {
        return Err(named("Landlock", io::Error::other("this kernel does not have it")));
    }
    match status {
        RulesetStatus::PartiallyEnforced if plan.is_trial => {
            writeln!(io::stderr(), "this kernel is older than Linux 6.12, {PARTLY}")?;
        }
        RulesetStatus::NotEnforced if plan.is_trial => {
            writeln!(io::stderr(), "this kernel does not have Landlock, {PARTLY}")?;
        }
        _ => {}
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    calls::refuse().map_err(|error| named("seccomp", error))
}

/// A second wall where the mounts are the first, and the only one against signals and sockets without a path. It also keeps what is
/// mounted as it is. Returns whether the kernel knows all that is asked of it.
fn landlock(plan: &Plan) -> Result<RulesetStatus, RulesetError> {
    let layers = plan.layers.iter().map(|layer| &layer.path);
    let own = ["/dev", KERNEL].map(PathBuf::from);
    let places = plan.writable.iter().chain(&plan.made).chain(&plan.fresh).chain(layers).chain(&own);
    // Not that to shorten files by name, which the mounts forbid: the kernel looks for it at each opening, also of files that are read.
    let access = AccessFs::from_write(ABI::V2);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(access)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules(places, access))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// The only wall where no namespace can be entered. It takes nothing out of what is allowed as a whole: so all is allowed but what is
/// on the way to something hidden, piece by piece. What is in folders can be listed everywhere.
fn landlock_alone(plan: &Plan) -> Result<RulesetStatus, RulesetError> {
    let (all, look) = (AccessFs::from_all(ABI::V3), AccessFs::from_read(ABI::V3));
    let own = mounts::USUAL_DEVICES
        .iter()
        .map(|name| Path::new("/dev").join(name))
        .chain(mounts::AS_IT_IS.map(PathBuf::from));
    // Root could set the kernel there.
    let own = own.filter(|place| !getuid().is_root() || place != KERNEL);
    let mut readable = Vec::new();
    open_around(Path::new("/"), &plan.hidden, &mut readable);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules(plan.writable.iter().chain(&plan.made), all))?
        .add_rules(path_beneath_rules(own, all))?
        .add_rules(path_beneath_rules(readable, look))?
        .add_rules(path_beneath_rules(["/"], AccessFs::ReadDir))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// The places below a folder that have nothing hidden in them.
fn open_around(folder: &Path, hidden: &[PathBuf], open: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if hidden.contains(&path) || entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            // A link is where it leads to.
            continue;
        }
        if hidden.iter().any(|hidden| hidden.starts_with(&path)) {
            open_around(&path, hidden, open);
        } else {
            open.push(path);
        }
    }
}
