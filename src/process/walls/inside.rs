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
    ABI, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

use super::parts::{NOT_BUILT, PLAN, named};
use super::plan::Plan;
use super::reach::Reach;
use super::{calls, loopback, mounts, way_out};
use crate::files::own;

/// What does not hold where the kernel's Landlock is older than version 6.
const PARTLY: &str = "this kernel is older than Linux 6.12, so that programs can be signalled, and sockets without a path reached";

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
    mounts::build(folder, &plan)?;
    // By its name it is another one now.
    std::env::set_current_dir(&cwd).map_err(|error| named(cwd.display(), error))?;
    close_inherited()?;
    restrict(&plan)?;
    let mut command = Command::new(program);
    command.envs(plan.set.iter().map(|(name, value)| (name, value))).envs(proxy);
    for name in &plan.unset {
        command.env_remove(name);
    }
    Err(named(program.display(), command.args(arguments).exec()))
}

/// Closes what others have left open for us: it leads past the walls.
fn close_inherited() -> io::Result<()> {
    let all: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in all {
        // The one that has listed them is closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
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
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Gives all rights up, for good.
fn restrict(plan: &Plan) -> io::Result<()> {
    set_no_new_privs(true)?;
    let is_whole = landlock(plan).map_err(|error| named("Landlock", io::Error::other(error)))?;
    if plan.is_trial && !is_whole {
        writeln!(io::stderr(), "{PARTLY}")?;
    }
    // Until the kernel knows no more of them.
    (0..64)
        .map_while(|number| {
            remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)).ok()
        })
        .for_each(drop);
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    calls::refuse().map_err(|error| named("seccomp", error))
}

/// A second wall where the mounts are the first, and the only one against signals and sockets without a path. It also keeps what is
/// mounted as it is. Returns whether the kernel knows all that is asked of it.
fn landlock(plan: &Plan) -> Result<bool, RulesetError> {
    let layers = plan.layers.iter().map(|layer| &layer.path);
    let own = ["/dev", "/proc"].map(PathBuf::from);
    let places = plan.writable.iter().chain(&plan.made).chain(&plan.fresh).chain(layers).chain(&own);
    let access = AccessFs::from_write(ABI::V3);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(access)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules(places, access))?
        .restrict_self()?;
    Ok(status.ruleset == RulesetStatus::FullyEnforced)
}
