//! The system calls that no program behind walls gets.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Numbers of x86-64 and of the architectures whose table is the common one.
macro_rules! calls {
    ($($name:ident $x86:literal $common:literal)*) => {
        #[cfg(target_arch = "x86_64")]
        const REFUSED: &[i64] = &[$($x86),*];
        #[cfg(not(target_arch = "x86_64"))]
        const REFUSED: &[i64] = &[$($common),*];
    };
}

// What goes past other walls, or asks the kernel what only an administrator asks.
calls! {
    io_uring_setup 425 425
    io_uring_enter 426 426
    io_uring_register 427 427
    add_key 248 217
    request_key 249 218
    keyctl 250 219
    bpf 321 280
    perf_event_open 298 241
    userfaultfd 323 282
    open_by_handle_at 304 265
    kexec_load 246 104
    init_module 175 105
    finit_module 313 273
    delete_module 176 106
}
#[cfg(target_arch = "x86_64")]
const IOCTL: i64 = 16;
#[cfg(not(target_arch = "x86_64"))]
const IOCTL: i64 = 29;
/// What changes limits and priorities of any process of the user: the call, the argument that names the process, where 0 is the
/// caller, and one that is 0 where nothing is changed.
#[cfg(target_arch = "x86_64")]
const OF_OTHERS: [(i64, u8, Option<u8>); 3] = [(302, 0, Some(2)), (141, 1, None), (251, 1, None)];
#[cfg(not(target_arch = "x86_64"))]
const OF_OTHERS: [(i64, u8, Option<u8>); 3] = [(261, 0, Some(2)), (140, 1, None), (30, 1, None)];
/// The calls among these that name a group of processes, or a user, by their first argument, unless it is this.
#[cfg(target_arch = "x86_64")]
const OF_GROUPS: [(i64, u64); 2] = [(141, 0), (251, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OF_GROUPS: [(i64, u64); 2] = [(140, 0), (30, 1)];
/// Types into a terminal as its user would.
const TYPING: [u64; 2] = [0x5412, 0x541C];

/// Has the kernel answer them with "not permitted", from now on.
pub(super) fn refuse() -> io::Result<()> {
    let typing = TYPING.map(|request| {
        let is_it = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request);
        is_it.and_then(|condition| SeccompRule::new(vec![condition]))
    });
    let typing: Result<Vec<_>, _> = typing.into_iter().collect();
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(IOCTL, typing.map_err(io::Error::other)?);
    // Of a group or of a whole user.
    let group = |(call, single): (i64, u64)| {
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, single);
        Ok((call, SeccompRule::new(vec![condition?])?))
    };
    let groups: Result<Vec<(i64, SeccompRule)>, seccompiler::BackendError> =
        OF_GROUPS.into_iter().map(group).collect();
    for (call, rule) in groups.map_err(io::Error::other)? {
        rules.entry(call).or_default().push(rule);
    }
    for (call, process, new) in OF_OTHERS {
        let is_other = |at: u8| SeccompCondition::new(at, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
        let conditions: Result<Vec<_>, _> =
            [Some(process), new].into_iter().flatten().map(is_other).collect();
        let rule = conditions.and_then(SeccompRule::new).map_err(io::Error::other)?;
        rules.entry(call).or_default().push(rule);
    }
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(1), arch)
        .map_err(io::Error::other)?;
    let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}
